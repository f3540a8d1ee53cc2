//! Blocks of memory that frames live in, and the pools that bound how many there are.

mod pageable;
mod shared;

pub use pageable::Pageable;
pub use shared::Shared;

use crossbeam_channel::{Receiver, Sender, bounded};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A block of bytes that can hold a frame. An engine implements it for memory that its device reaches
/// quickly.
pub trait Memory: Send + Sync {
    /// The whole block.
    fn bytes(&self) -> &[u8];
    /// The whole block, to write into.
    fn bytes_mut(&mut self) -> &mut [u8];
    /// True if the memory is page-locked, so that a device can copy from and to it without staging.
    fn is_pinned(&self) -> bool {
        false
    }
    /// Bytes of the block.
    fn size(&self) -> usize {
        self.bytes().len()
    }
    /// Where the block lies in the memory of a device, as a type that the device's engine knows; `None` for
    /// memory of the host. [`Memory::bytes`] fetches what lies on a device.
    fn on_device(&self) -> Option<&dyn Any> {
        None
    }
}

/// A device in whose memory frames can lie, as a type that the device's engine knows.
pub type DeviceHandle = Arc<dyn Any + Send + Sync>;

/// Makes blocks of memory.
pub trait Allocator: Send + Sync {
    /// A block of at least `len` bytes, its content unspecified but initialised.
    fn allocate(&self, len: usize) -> Result<Box<dyn Memory>, AllocationError>;
}

/// Memory could not be allocated.
#[derive(Debug, thiserror::Error)]
#[error("cannot allocate {len} bytes of {kind} memory for a frame: {reason}")]
pub struct AllocationError {
    /// Bytes that were requested.
    pub len: usize,
    /// "ordinary" or "pinned".
    pub kind: &'static str,
    /// The system's or driver's reason.
    pub reason: String,
}

/// A frame's memory. Taken from a pool, it goes back there when it is dropped.
pub struct Buffer {
    memory: Option<Box<dyn Memory>>,
    /// Borrowed memory (a guest), in place of `memory`.
    guest: Option<Box<dyn Memory>>,
    tag: u64,
    pool: Option<PoolHandle>,
}

/// A free buffer of a pool: its block, if it was used before, and the tag of its content.
type Free = (Option<Box<dyn Memory>>, u64);

#[derive(Clone)]
struct PoolHandle {
    /// The pool that the block returns to; closed for blocks without one.
    free: Sender<Free>,
    allocator: Arc<dyn Allocator>,
    bytes: Arc<Bytes>,
}

/// The bytes that a pool's buffers and other blocks hold, and the most that they held.
#[derive(Default)]
struct Bytes {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Bytes {
    fn add(&self, len: usize) {
        let now = self.now.fetch_add(len, Ordering::Relaxed) + len;
        self.most.fetch_max(now, Ordering::Relaxed);
    }

    fn remove(&self, len: usize) {
        self.now.fetch_sub(len, Ordering::Relaxed);
    }
}

impl Buffer {
    /// A buffer that belongs to no pool.
    pub fn unpooled(memory: Box<dyn Memory>) -> Buffer {
        Buffer {
            memory: Some(memory),
            guest: None,
            tag: 0,
            pool: None,
        }
    }

    /// Replaces the buffer's memory by borrowed memory, such as a decoder's picture, until the buffer is
    /// dropped. The buffer's own block stays with the pool.
    pub fn host(&mut self, guest: Box<dyn Memory>) {
        self.tag = 0;
        self.guest = Some(guest);
    }

    /// The guest in a buffer of its own, while this buffer goes back to its pool; without a guest the buffer
    /// itself.
    pub fn detached(mut self) -> Buffer {
        match self.guest.take() {
            Some(guest) => Buffer::unpooled(guest),
            None => self,
        }
    }

    /// Makes sure that the buffer holds at least `len` bytes; its content may be lost. A pooled buffer keeps
    /// the larger block from then on.
    pub fn fit(&mut self, len: usize) -> Result<(), AllocationError> {
        if self.guest.as_ref().is_some_and(|g| g.size() >= len) {
            return Ok(());
        }
        self.guest = None;
        // Not by its bytes: they would be fetched from a device.
        let have = self.memory.as_ref().map_or(0, |m| m.size());
        if have >= len && self.memory.is_some() {
            return Ok(());
        }
        self.tag = 0;
        match &self.pool {
            Some(pool) => {
                // Free the small block first, so that the two are never held at once.
                self.memory = None;
                pool.bytes.remove(have);
                let memory = pool.allocator.allocate(len)?;
                pool.bytes.add(memory.size());
                self.memory = Some(memory);
            }
            None => self.memory = Some(Pageable.allocate(len)?),
        }
        Ok(())
    }

    /// The whole block; empty until [`Buffer::fit`] was called on a new pool's buffer.
    pub fn bytes(&self) -> &[u8] {
        self.content().map_or(&[], Memory::bytes)
    }

    /// The whole block, to write into. Clears the tag.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        self.tag = 0;
        let content = self.guest.as_mut().or(self.memory.as_mut());
        content.map_or(&mut [], |m| m.bytes_mut())
    }

    /// The tag that [`Buffer::set_tag`] gave the content, kept while the block is in the pool; 0 once the
    /// block was borrowed for writing or allocated anew.
    pub fn tag(&self) -> u64 {
        self.tag
    }

    /// Tags the content, so that its writer recognises it when the pool hands the block out again.
    pub fn set_tag(&mut self, tag: u64) {
        self.tag = tag;
    }

    /// True if the block is page-locked.
    pub fn is_pinned(&self) -> bool {
        self.content().is_some_and(Memory::is_pinned)
    }

    /// Where the block lies on a device; see [`Memory::on_device`].
    pub fn on_device(&self) -> Option<&dyn Any> {
        self.content().and_then(Memory::on_device)
    }

    fn content(&self) -> Option<&dyn Memory> {
        self.guest.as_deref().or(self.memory.as_deref())
    }

    /// Another block of at least `len` bytes, of the same kind. Its bytes count for this buffer's pool, but
    /// it is not one of the pool's buffers: it is freed when dropped.
    pub fn another(&self, len: usize) -> Result<Buffer, AllocationError> {
        let mut buffer = Buffer {
            memory: None,
            guest: None,
            tag: 0,
            pool: self.pool.clone().map(|pool| PoolHandle {
                free: bounded(0).0,
                ..pool
            }),
        };
        buffer.fit(len)?;
        Ok(buffer)
    }
}

/// A buffer as the guest of another buffer.
impl Memory for Buffer {
    fn bytes(&self) -> &[u8] {
        Buffer::bytes(self)
    }
    fn bytes_mut(&mut self) -> &mut [u8] {
        Buffer::bytes_mut(self)
    }
    fn is_pinned(&self) -> bool {
        Buffer::is_pinned(self)
    }
    fn size(&self) -> usize {
        self.content().map_or(0, Memory::size)
    }
    fn on_device(&self) -> Option<&dyn Any> {
        Buffer::on_device(self)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Before the buffer can be taken again: the number of guests is bounded by the number of buffers.
        self.guest = None;
        if let Some(pool) = self.pool.take() {
            // A pool's channel has room for every buffer of the pool, a reserve's for as many as it keeps;
            // either is closed only when the run is over.
            if let Err(refused) = pool.free.try_send((self.memory.take(), self.tag)) {
                let lost = refused.into_inner().0.map_or(0, |m| m.bytes().len());
                pool.bytes.remove(lost);
            }
        }
    }
}

/// A fixed number of buffers. Taking one waits until one is free, which is what bounds a run's memory.
///
/// A buffer that was used before is taken before one that never was, and memory is allocated when a buffer
/// is first used: a run whose stages keep pace has few blocks, and page-locks no more of them.
#[derive(Clone)]
pub struct FramePool {
    /// Buffers that came back.
    free: Receiver<Free>,
    /// One for each buffer that was never taken. The sender keeps the channel open.
    unused: (Sender<()>, Receiver<()>),
    pool: PoolHandle,
    capacity: usize,
    waited: Arc<AtomicU64>,
}

/// The run was cancelled while a stage waited for a free buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the run was stopped")]
pub struct Stopped;

impl FramePool {
    /// A pool of `capacity` buffers; their memory is allocated when they are first used.
    pub fn new(capacity: usize, allocator: Arc<dyn Allocator>) -> FramePool {
        let (sender, free) = bounded(capacity);
        let unused = bounded(capacity);
        for _ in 0..capacity {
            let _ = unused.0.try_send(());
        }
        FramePool {
            free,
            unused,
            pool: PoolHandle {
                free: sender,
                allocator,
                bytes: Arc::default(),
            },
            capacity,
            waited: Arc::default(),
        }
    }

    /// Waits for a free buffer. `stop` is a channel whose closing ends the wait.
    pub fn take(&self, stop: &Receiver<()>) -> Result<Buffer, Stopped> {
        let began = Instant::now();
        let taken = crossbeam_channel::select_biased! {
            recv(stop) -> _ => Err(Stopped),
            recv(self.free) -> free => free.map(|free| self.buffer(free)).map_err(|_| Stopped),
            recv(self.unused.1) -> _ => Ok(self.buffer((None, 0))),
        };
        let nanos = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.waited.fetch_add(nanos, Ordering::Relaxed);
        taken
    }

    /// How long all calls of [`FramePool::take`] have waited so far, added up.
    pub fn waited(&self) -> Duration {
        Duration::from_nanos(self.waited.load(Ordering::Relaxed))
    }

    /// A buffer if one is free at once.
    pub fn try_take(&self) -> Option<Buffer> {
        let free = self.free.try_recv();
        let free = free.or_else(|_| self.unused.1.try_recv().map(|()| (None, 0)));
        Some(self.buffer(free.ok()?))
    }

    fn buffer(&self, (memory, tag): Free) -> Buffer {
        Buffer {
            memory,
            guest: None,
            tag,
            pool: Some(self.pool.clone()),
        }
    }

    /// Gives every free buffer at least `len` bytes now, so that no allocation happens while time is
    /// measured: each page-locked block takes milliseconds.
    pub fn prepare(&self, len: usize) -> Result<(), AllocationError> {
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| self.try_take()).collect();
        buffers.iter_mut().try_for_each(|buffer| buffer.fit(len))
    }

    /// Memory of the pool's kind for a library that keeps pictures of its own.
    pub fn reserve(&self) -> Reserve {
        let (sender, free) = bounded(Reserve::KEPT);
        Reserve {
            free,
            pool: PoolHandle {
                free: sender,
                ..self.pool.clone()
            },
        }
    }

    /// Buffers in all, free or in use.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes that the pool's buffers and its reserves hold now.
    pub fn allocated_bytes(&self) -> usize {
        self.pool.bytes.now.load(Ordering::Relaxed)
    }

    /// The most bytes that they have held at a time.
    pub fn most_bytes(&self) -> usize {
        self.pool.bytes.most.load(Ordering::Relaxed)
    }
}

/// Blocks for a library that keeps further pictures of its own, as a decoder keeps reference pictures. The
/// library bounds their number; they come from the pool's allocator and count with its bytes.
#[derive(Clone)]
pub struct Reserve {
    free: Receiver<Free>,
    pool: PoolHandle,
}

impl Reserve {
    /// Free blocks that are kept for the next picture: more than a decoder's reference pictures and threads
    /// give back at once.
    const KEPT: usize = 64;

    /// A block of at least `len` bytes.
    pub fn take(&self, len: usize) -> Result<Buffer, AllocationError> {
        let (memory, tag) = self.free.try_recv().unwrap_or((None, 0));
        let mut buffer = Buffer {
            memory,
            guest: None,
            tag,
            pool: Some(self.pool.clone()),
        };
        buffer.fit(len)?;
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guests_stay_until_the_buffer_is_dropped_and_leave_its_memory_alone() {
        let pool = FramePool::new(1, Arc::new(Pageable));
        let mut buffer = pool.try_take().unwrap();
        buffer.fit(10).unwrap();
        buffer.bytes_mut().fill(7);
        buffer.host(Box::new(vec![3_u8; 20]));
        buffer.fit(20).unwrap();
        assert_eq!(buffer.bytes(), [3; 20]);
        drop(buffer);
        let mut again = pool.try_take().unwrap();
        assert_eq!(again.bytes(), [7; 10]);
        again.host(Box::new(vec![3_u8; 20]));
        again.fit(30).unwrap();
        assert_eq!(again.bytes().len(), 30);
    }

    #[test]
    fn a_reserves_blocks_are_used_again_and_counted() {
        let pool = FramePool::new(1, Arc::new(Pageable));
        let reserve = pool.reserve();
        let (a, b) = (reserve.take(100).unwrap(), reserve.take(100).unwrap());
        assert_eq!(pool.allocated_bytes(), 200);
        let place = b.bytes().as_ptr();
        drop((a, b));
        assert_eq!(pool.allocated_bytes(), 200);
        drop(reserve.take(100).unwrap());
        assert_eq!(reserve.take(100).unwrap().bytes().as_ptr(), place);
        assert_eq!(pool.allocated_bytes(), 200);
    }

    #[test]
    fn a_run_that_keeps_pace_needs_few_blocks() {
        let pool = FramePool::new(8, Arc::new(Pageable));
        let (_keep, stop) = bounded(0);
        for turn in 0..20 {
            let mut pair = [pool.take(&stop).unwrap(), pool.try_take().unwrap()];
            pair.iter_mut().for_each(|buffer| buffer.fit(100).unwrap());
            assert_eq!(pool.allocated_bytes(), 200, "turn {turn}");
        }
        let all: Vec<Buffer> = std::iter::from_fn(|| pool.try_take()).collect();
        assert_eq!(all.len(), 8);
    }

    #[test]
    fn another_block_counts_with_the_pool_and_is_none_of_its_buffers() {
        let pool = FramePool::new(1, Arc::new(Pageable));
        let buffer = pool.try_take().unwrap();
        let other = buffer.another(100).unwrap();
        assert_eq!((other.bytes().len(), pool.allocated_bytes()), (100, 100));
        drop(other);
        assert_eq!((pool.allocated_bytes(), pool.most_bytes()), (0, 100));
        assert!(pool.try_take().is_none());
        drop(buffer);
        assert!(pool.try_take().is_some());
        let alone = Buffer::unpooled(Box::new(Vec::new())).another(7).unwrap();
        assert_eq!(alone.bytes().len(), 7);
    }

    #[test]
    fn a_pool_hands_out_its_capacity_and_takes_buffers_back() {
        let pool = FramePool::new(2, Arc::new(Pageable));
        let (keep, stop) = bounded(0);
        let mut a = pool.take(&stop).unwrap();
        let b = pool.take(&stop).unwrap();
        assert!(pool.try_take().is_none());
        a.fit(100).unwrap();
        assert_eq!(pool.allocated_bytes(), 100);
        drop(a);
        let mut again = pool.try_take().unwrap();
        assert_eq!(again.bytes().len(), 100);
        again.fit(50).unwrap();
        assert_eq!(again.bytes().len(), 100);
        again.fit(300).unwrap();
        assert_eq!(pool.allocated_bytes(), 300);
        drop((again, b));
        pool.prepare(400).unwrap();
        assert_eq!(pool.allocated_bytes(), 800);
        drop(keep);
        assert_eq!(pool.take(&stop).err(), Some(Stopped));
    }

    #[test]
    fn a_tag_stays_with_the_content_and_no_longer() {
        let pool = FramePool::new(1, Arc::new(Pageable));
        let mut buffer = pool.try_take().unwrap();
        buffer.fit(10).unwrap();
        buffer.bytes_mut().fill(7);
        buffer.set_tag(42);
        drop(buffer);
        let mut again = pool.try_take().unwrap();
        again.fit(10).unwrap();
        assert_eq!((again.tag(), again.bytes()[9]), (42, 7));
        again.bytes_mut();
        assert_eq!(again.tag(), 0);
        again.set_tag(43);
        again.fit(11).unwrap();
        assert_eq!(again.tag(), 0);
    }
}
