//! Memory of a card that arrays of several libraries lie in.

use framepipe::engine::cuda::{self, keeping_context};
use std::sync::Arc;

/// Memory of a card, held by whoever was handed an array in it. Freed with the thread's own context current
/// again after.
#[derive(Clone)]
pub(crate) struct SharedMemory {
    memory: Option<Arc<cuda::CardMemory>>,
    /// Bytes that are passed over.
    offset: u64,
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take().and_then(Arc::into_inner) {
            keeping_context(|| drop(memory));
        }
    }
}

impl SharedMemory {
    pub(crate) fn new(memory: cuda::CardMemory) -> SharedMemory {
        SharedMemory {
            memory: Some(Arc::new(memory)),
            offset: 0,
        }
    }

    /// The memory itself.
    pub(crate) fn memory(&self) -> Option<&cuda::CardMemory> {
        self.memory.as_deref()
    }

    /// The same memory, from a byte on.
    pub(crate) fn after(mut self, offset: u64) -> SharedMemory {
        self.offset += offset;
        self
    }

    /// The address of its first byte.
    pub(crate) fn pointer(&self) -> u64 {
        self.memory.as_ref().map_or(0, |memory| memory.pointer()) + self.offset
    }
}
