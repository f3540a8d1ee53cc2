//! Frames in the card's memory, and the blocks that they lie in.

use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::frame::Memory;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A block of the card's memory, and when what was written to it last is there.
struct Block {
    memory: DeviceMemory,
    ready: Event,
}

/// Blocks that frames of one size lie in. There are as many as were needed at a time, since those that wait
/// are bounded elsewhere.
pub(super) struct Blocks {
    device: Arc<Device>,
    free: Mutex<Vec<Block>>,
}

impl Blocks {
    pub(super) fn new(device: &Arc<Device>) -> Blocks {
        Blocks {
            device: Arc::clone(device),
            free: Mutex::default(),
        }
    }

    fn free(&self) -> MutexGuard<'_, Vec<Block>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A block of `size` bytes that `stream` may write to.
    pub(super) fn take(self: &Arc<Blocks>, size: usize, stream: &Stream) -> Result<CardFrame, EngineError> {
        let free = self.free().pop();
        let block = match free.filter(|block| block.memory.len() >= size) {
            Some(block) => {
                // A frame that nobody looked at may still be on its way into the block.
                stream.wait_for(&block.ready)?;
                block
            }
            None => Block {
                memory: DeviceMemory::uncleared(&self.device, size)?.ok_or_else(|| EngineError::Device {
                    doing: "making room on the card for decoded frames".to_owned(),
                    reason: "it has no memory left; --decoder-memory sets how much they may take".to_owned(),
                })?,
                ready: Event::untimed(&self.device)?,
            },
        };
        Ok(CardFrame {
            block: Some(block),
            home: Arc::clone(self),
            size,
            fetched: OnceLock::new(),
            is_written: false,
        })
    }
}

/// A frame's memory on the card. When it is dropped, nothing may be reading it any more.
pub(crate) struct CardFrame {
    block: Option<Block>,
    home: Arc<Blocks>,
    size: usize,
    /// The same bytes on the host, where somebody wanted them.
    fetched: OnceLock<Vec<u8>>,
    /// Somebody wrote into the host's copy, which is the frame from then on.
    is_written: bool,
}

impl CardFrame {
    fn block(&self) -> &Block {
        // Taken out in `drop` alone.
        self.block
            .as_ref()
            .unwrap_or_else(|| unreachable!("a frame has its block until it is dropped"))
    }

    /// Where it lies.
    pub(crate) fn pointer(&self) -> u64 {
        self.block().memory.pointer()
    }

    /// Happens when the frame is there.
    pub(crate) fn ready(&self) -> &Event {
        &self.block().ready
    }

    /// True if it lies on that card.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        self.home.device.info.ordinal == device.info.ordinal
    }

    fn fetch(&self) -> Result<Vec<u8>, EngineError> {
        self.home.device.bind()?;
        self.ready().wait()?;
        let mut bytes = vec![0; self.size];
        self.block().memory.read(&mut bytes)?;
        Ok(bytes)
    }
}

impl Memory for CardFrame {
    fn bytes(&self) -> &[u8] {
        self.fetched.get_or_init(|| match self.fetch() {
            Ok(bytes) => bytes,
            // A card that fails here fails everything else, too; the stage that asked ends with this.
            Err(error) => panic!("{error}"),
        })
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes();
        self.is_written = true;
        self.fetched.get_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn on_device(&self) -> Option<&dyn Any> {
        (!self.is_written).then_some(self)
    }
}

impl Drop for CardFrame {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.home.free().push(block);
        }
    }
}
