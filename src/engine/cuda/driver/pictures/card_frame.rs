//! Frames in the card's memory, and the blocks that they lie in.
//!
//! ```text
//!  take --> frame --dropped--> free -------------------------------> take
//!             '--lent to another library, dropped--> lent --' when all work on the card is done
//! ```
//!
//! A block may be written to again when all work that reads it is done. This library's work has events for
//! that; the work of other libraries is not known here.

use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::frame::Memory;
use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes that are allocated at once: each allocation stops the card and its decoders for a while.
const SLAB: usize = 256 << 20;

/// The most frames of one allocation.
const MOST_IN_SLAB: usize = 64;

/// Lent blocks are taken back only when there are this many, since that waits for all work on the card.
const FEWEST_LENT: usize = 8;

/// The event at the end of the last write to a block. It notes what was seen to have happened, which saves
/// driver calls.
pub(crate) struct Ready {
    event: Event,
    /// The number of records, and the last one that was seen to have happened.
    recorded: AtomicU64,
    seen: AtomicU64,
}

impl Ready {
    fn new(device: &Arc<Device>) -> Result<Ready, EngineError> {
        Ok(Ready {
            event: Event::untimed(device)?,
            recorded: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        })
    }

    /// Records the end of what was enqueued on `stream`; the result is for [`Ready::wait`].
    pub(crate) fn record(&self, stream: &Stream) -> Result<u64, EngineError> {
        self.event.record(stream)?;
        // Only after the record: a thread that saw the event happen before it must count the earlier record.
        Ok(self.recorded.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Waits on the host for the record of that number.
    pub(crate) fn wait(&self, number: u64) -> Result<(), EngineError> {
        if self.seen.load(Ordering::Acquire) < number {
            self.event.wait_asleep()?;
            self.saw(number);
        }
        Ok(())
    }

    /// Notes that the record of that number has happened.
    pub(crate) fn saw(&self, number: u64) {
        self.seen.fetch_max(number, Ordering::AcqRel);
    }

    /// Makes work that is enqueued on `stream` from now on wait for it.
    pub(crate) fn hold(&self, stream: &Stream) -> Result<(), EngineError> {
        match self.seen.load(Ordering::Acquire) >= self.recorded.load(Ordering::Acquire) {
            true => Ok(()),
            false => stream.wait_for(&self.event),
        }
    }
}

/// Room for a frame in the card's memory.
struct Block {
    slab: Arc<DeviceMemory>,
    pointer: u64,
    ready: Arc<Ready>,
}

/// Blocks for frames of one size, as many as were needed at a time. Their number is bounded by others, who
/// limit the frames that wait.
pub(crate) struct Blocks {
    device: Arc<Device>,
    size: usize,
    free: Mutex<Vec<Block>>,
    /// Blocks that another library may still be reading.
    lent: Mutex<Vec<Block>>,
}

impl Blocks {
    /// Blocks of `size` bytes each; there are none yet.
    pub(crate) fn new(device: &Arc<Device>, size: usize) -> Blocks {
        Blocks {
            device: Arc::clone(device),
            size,
            free: Mutex::default(),
            lent: Mutex::default(),
        }
    }

    /// Bytes of a block.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    fn free(&self) -> MutexGuard<'_, Vec<Block>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lent(&self) -> MutexGuard<'_, Vec<Block>> {
        self.lent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Further blocks, when none is free: new ones, or lent ones once there are enough.
    fn more(&self) -> Result<Vec<Block>, EngineError> {
        if self.lent().len() < FEWEST_LENT {
            match self.slab() {
                Err(_) if !self.lent().is_empty() => {}
                made => return made,
            }
        }
        // Taken before the wait: blocks that are dropped later may be read by work that it does not wait for.
        let blocks = std::mem::take(&mut *self.lent());
        self.device.synchronise()?;
        Ok(blocks)
    }

    /// A block that `stream` may write to.
    pub(crate) fn take(self: &Arc<Blocks>, stream: &Stream) -> Result<CardFrame, EngineError> {
        let mut free = self.free();
        if free.is_empty() {
            *free = self.more()?;
        }
        let block = free.pop().ok_or_else(|| self.short())?;
        drop(free);
        // A frame that was dropped unread may still be being written to the block.
        block.ready.hold(stream)?;
        Ok(CardFrame {
            block: Some(block),
            home: Arc::clone(self),
            fetched: OnceLock::new(),
            is_written: false,
            is_lent: AtomicBool::new(false),
        })
    }

    /// New blocks: as many as are allocated at once, or one where the card is nearly full.
    fn slab(&self) -> Result<Vec<Block>, EngineError> {
        let several = (SLAB / self.size.max(1)).clamp(1, MOST_IN_SLAB);
        for count in [several, 1] {
            if let Some(slab) = DeviceMemory::uncleared(&self.device, count * self.size)? {
                let slab = Arc::new(slab);
                let block = |k: usize| {
                    Ok(Block {
                        pointer: slab.pointer() + (k * self.size) as u64,
                        slab: Arc::clone(&slab),
                        ready: Arc::new(Ready::new(&self.device)?),
                    })
                };
                return (0..count).map(block).collect();
            }
        }
        Err(self.short())
    }

    fn short(&self) -> EngineError {
        EngineError::Device {
            doing: "making room on the card for a frame".to_owned(),
            reason: "it has no memory left; --decoder-memory sets how much decoded frames may take"
                .to_owned(),
        }
    }
}

/// A frame's memory on the card. When it is dropped, nothing of this library may be reading it any more.
pub(crate) struct CardFrame {
    block: Option<Block>,
    home: Arc<Blocks>,
    /// The host's copy of the bytes, if it was asked for.
    fetched: OnceLock<Vec<u8>>,
    /// True if the host's copy was written to: it is the frame from then on.
    is_written: bool,
    /// True if its address was given to another library.
    is_lent: AtomicBool,
}

impl CardFrame {
    fn block(&self) -> &Block {
        // It is taken out in `drop` only.
        self.block
            .as_ref()
            .unwrap_or_else(|| unreachable!("a frame has its block until it is dropped"))
    }

    /// Its address on the card.
    pub(crate) fn pointer(&self) -> u64 {
        self.block().pointer
    }

    /// Its address, for another library, whose work may still read it after the frame is dropped.
    pub(crate) fn lend(&self) -> u64 {
        self.is_lent.store(true, Ordering::Relaxed);
        self.pointer()
    }

    /// The card's number.
    pub(crate) fn ordinal(&self) -> usize {
        self.home.device.info.ordinal
    }

    /// The event at the end of the work that writes the frame.
    pub(crate) fn ready(&self) -> &Arc<Ready> {
        &self.block().ready
    }

    /// True if it lies on that card.
    pub(crate) fn is_on(&self, device: &Device) -> bool {
        self.ordinal() == device.info.ordinal
    }

    /// Waits on the host until the frame is complete.
    pub(crate) fn wait(&self) -> Result<(), EngineError> {
        self.home.device.bind()?;
        self.ready().event.wait()
    }

    /// Waits on the host for all work on its card, also of other libraries.
    pub(crate) fn wait_for_all(&self) -> Result<(), EngineError> {
        self.home.device.synchronise()
    }

    /// Makes sure that the host's copy is there for [`Memory::bytes`].
    pub(crate) fn prefetch(&self) -> Result<(), EngineError> {
        if self.fetched.get().is_none() {
            // If another thread was faster, its copy is the same.
            let _ = self.fetched.set(self.fetch()?);
        }
        Ok(())
    }

    /// A copy on the host.
    pub(crate) fn fetch(&self) -> Result<Vec<u8>, EngineError> {
        self.wait()?;
        let mut bytes = vec![0; self.home.size];
        let block = self.block();
        block.slab.read(block.pointer, &mut bytes)?;
        Ok(bytes)
    }
}

impl Memory for CardFrame {
    fn bytes(&self) -> &[u8] {
        self.fetched.get_or_init(|| match self.fetch() {
            Ok(bytes) => bytes,
            // A card that fails here fails everything else, too; the stage that reads the bytes ends.
            Err(error) => panic!("{error}"),
        })
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        self.bytes();
        self.is_written = true;
        self.fetched.get_mut().map_or(&mut [], Vec::as_mut_slice)
    }

    fn size(&self) -> usize {
        self.home.size
    }

    fn on_device(&self) -> Option<&dyn Any> {
        (!self.is_written).then_some(self)
    }
}

impl Drop for CardFrame {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            match *self.is_lent.get_mut() {
                true => self.home.lent().push(block),
                false => self.home.free().push(block),
            }
        }
    }
}
