//! Pixels that are made once and go through a run any number of times, without a copy.
//!
//! ```text
//! Shared  [pixels] <--- buffer of frame 0 (in flight)
//!                  <--- buffer of frame 8 (in a queue)     each goes back to its pool without them
//! ```

use super::{Buffer, Memory};
use std::sync::Arc;

/// A block of constant content, for any number of buffers at a time. Clones are the same block; it is freed
/// with the last of them and the last buffer that holds it.
#[derive(Clone)]
pub struct Shared(Arc<Buffer>);

impl Shared {
    /// With the current content of `block`.
    pub fn new(block: Buffer) -> Shared {
        Shared(Arc::new(block))
    }

    /// Replaces `buffer`'s own memory until `buffer` is dropped. A write to the buffer first copies the block
    /// to ordinary memory and changes that copy alone.
    pub fn lend_to(&self, buffer: &mut Buffer) {
        buffer.host(Box::new(BlockView {
            block: Arc::clone(&self.0),
            changed: None,
        }));
    }
}

/// The block in one buffer.
struct BlockView {
    block: Arc<Buffer>,
    /// The copy that was written to.
    changed: Option<Vec<u8>>,
}

impl Memory for BlockView {
    fn bytes(&self) -> &[u8] {
        self.changed.as_deref().unwrap_or_else(|| self.block.bytes())
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.changed.get_or_insert_with(|| self.block.bytes().to_vec())
    }

    fn is_pinned(&self) -> bool {
        self.changed.is_none() && self.block.is_pinned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{FramePool, Pageable};

    #[test]
    fn buffers_show_one_block_and_writing_changes_a_copy() {
        let pool = FramePool::new(3, Arc::new(Pageable));
        let mut block = pool.try_take().unwrap().another(10).unwrap();
        block.bytes_mut().fill(7);
        let shared = Shared::new(block);
        let mut buffers = [pool.try_take().unwrap(), pool.try_take().unwrap()];
        for buffer in &mut buffers {
            shared.lend_to(buffer);
            buffer.fit(10).unwrap();
        }
        let [mut one, other] = buffers;
        assert_eq!(one.bytes().as_ptr(), other.bytes().as_ptr());
        assert_eq!(pool.allocated_bytes(), 10);
        one.bytes_mut()[3] = 8;
        assert_eq!((one.bytes()[3], other.bytes()[3]), (8, 7));
        assert_eq!(one.bytes()[4], 7);
        drop(one);
        // The block outlives the `Shared` that lent it; the last buffer frees it.
        drop(shared);
        assert_eq!(other.bytes(), [7; 10]);
        assert_eq!(pool.allocated_bytes(), 10);
        drop(other);
        assert_eq!(pool.allocated_bytes(), 0);
    }
}
