//! Ordinary memory, aligned for vectors.

use super::{AllocationError, Allocator, Memory};
use crate::shortage::Shortage;

/// Ordinary memory from the process's heap.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pageable;

impl Memory for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        self
    }
}

/// Where blocks of ordinary memory begin: at a cache line, which is also a whole vector, so that rows of
/// aligned strides do too.
const LINE: usize = 64;

/// Ordinary memory that begins at a multiple of [`LINE`].
struct Lines {
    /// Up to `LINE - 1` bytes longer than its used part.
    block: Box<[u8]>,
    start: usize,
    len: usize,
}

impl Memory for Lines {
    fn bytes(&self) -> &[u8] {
        &self.block[self.start..self.start + self.len]
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.block[self.start..self.start + self.len]
    }
}

impl Allocator for Pageable {
    fn allocate(&self, len: usize) -> Result<Box<dyn Memory>, AllocationError> {
        let more = len.saturating_add(LINE - 1);
        // Zeroed by the system, page by page as they are written: memory that no frame reaches costs nothing.
        let block = bytemuck::try_zeroed_slice_box::<u8>(more).map_err(|()| AllocationError {
            len,
            kind: "ordinary",
            reason: Shortage::Memory.to_string(),
        })?;
        // Where alignment cannot be found out, speed suffers, no result.
        let start = block.as_ptr().align_offset(LINE).min(LINE - 1);
        Ok(Box::new(Lines { block, start, len }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_blocks_have_the_length_that_was_asked_for_and_begin_at_cache_lines() {
        for len in [0, 1, 63, 64, 4096, 3_000_001] {
            let mut block = Pageable.allocate(len).unwrap();
            assert_eq!((block.bytes().len(), block.bytes_mut().len()), (len, len));
            assert_eq!(block.bytes().as_ptr().align_offset(LINE), 0, "{len}");
        }
        assert!(Pageable.allocate(usize::MAX).is_err());
    }
}
