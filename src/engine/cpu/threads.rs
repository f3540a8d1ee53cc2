//! The thread pool: a frame per thread, or strips of one frame where threads would idle. Each thread reuses
//! its scratch memory for all frames.

use super::simd::scratch::Scratch;
use crate::engine::EngineError;
use crate::shortage::Shortage;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The work on one frame.
type FrameJob = Box<dyn FnOnce(&Threads) + Send>;

/// A fixed number of threads, including the caller. Frames wait until a thread is free. A frame that would
/// leave threads idle is split into strips.
pub(in crate::engine) struct Threads {
    /// The worker threads; `None` where the caller works alone.
    pool: Option<rayon::ThreadPool>,
    /// The memory of each thread; the caller's is the last.
    scratch: Vec<Mutex<Scratch>>,
    /// Frames that no thread has begun, oldest first.
    waiting: Mutex<VecDeque<FrameJob>>,
    /// Number of frames that were submitted and are not done.
    frames: AtomicUsize,
}

impl Threads {
    /// A pool of `threads` threads (0: one per core), including the caller.
    pub(in crate::engine) fn new(threads: usize) -> Result<Threads, EngineError> {
        let size = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(size - 1)
                .thread_name(|i| format!("convolve-{i}"))
                .build()
                .map_err(|_| {
                    let lacking = Shortage::of_thread();
                    EngineError::Unavailable(format!("cannot start the engine's threads: {lacking}"))
                })
        };
        let pool = if size > 1 { Some(start()?) } else { None };
        Ok(Threads {
            pool,
            scratch: (0..size).map(|_| Mutex::default()).collect(),
            waiting: Mutex::default(),
            frames: AtomicUsize::new(0),
        })
    }

    /// Number of threads, including the caller.
    pub(super) fn size(&self) -> usize {
        self.scratch.len()
    }

    /// Queues `frame`, a closure that sends its own result. Without workers it runs now; otherwise frames
    /// begin in order as threads become free. One unfinished frame is always left for the caller to run
    /// ([`Threads::run_one`]), so no thread is woken for it.
    pub(super) fn submit(self: &Arc<Threads>, frame: impl FnOnce(&Threads) + Send + 'static) {
        let Some(pool) = &self.pool else {
            frame(self);
            return;
        };
        let others = self.frames.fetch_add(1, Ordering::Relaxed);
        self.waiting().push_back(Box::new(frame));
        if others > 0 {
            let threads = Arc::clone(self);
            pool.spawn_fifo(move || {
                threads.run_one();
            });
        }
    }

    /// Runs the oldest frame that no thread has begun; false if there is none. A caller that waits for a
    /// result runs frames itself, so that with one thread per core all cores filter.
    pub(super) fn run_one(&self) -> bool {
        let Some(frame) = self.waiting().pop_front() else {
            return false;
        };
        let _guard = CountGuard(&self.frames);
        frame(self);
        true
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<FrameJob>> {
        // No thread panics while it changes the queue, so a poisoned lock still holds a valid one.
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Threads per unfinished frame: all of them for a single frame.
    pub(super) fn share(&self) -> usize {
        self.size().div_ceil(self.frames.load(Ordering::Relaxed).max(1))
    }

    /// Calls `work` once with each item, on this thread and on idle ones.
    pub(super) fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(&mut Scratch, T) + Sync) {
        let others = self.share().min(items.len()).saturating_sub(1);
        let items = Mutex::new(items.into_iter());
        // A panic in `work` leaves the iterator valid: the lock is not held then.
        let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = || {
            let index = self
                .pool
                .as_ref()
                .and_then(rayon::ThreadPool::current_thread_index);
            let own = index.unwrap_or(self.size() - 1);
            let mut scratch = self.scratch[own].lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(item) = next() {
                work(&mut scratch, item);
            }
        };
        let (Some(pool), 1..) = (&self.pool, others) else {
            run();
            return;
        };
        let busy = AtomicUsize::new(0);
        pool.in_place_scope(|scope| {
            let (run, busy) = (&run, &busy);
            for _ in 0..others {
                scope.spawn(move |_| {
                    busy.fetch_add(1, Ordering::Relaxed);
                    let _guard = CountGuard(busy);
                    run();
                });
            }
            run();
            // Each other thread has at most one item left. Spinning for it is faster than sleeping and
            // waking.
            let begin = Instant::now();
            while busy.load(Ordering::Acquire) > 0 && begin.elapsed() < SPIN_TIME {
                std::thread::yield_now();
            }
        });
    }

    /// Calls `work` once with each row and its number. Threads take `at_once` rows at a time, which should be
    /// worth waking a thread for.
    pub(in crate::engine) fn each_row<T: Send>(
        &self,
        at_once: usize,
        rows: Vec<T>,
        work: impl Fn(usize, T) + Sync,
    ) {
        let mut batches = Vec::with_capacity(rows.len().div_ceil(at_once));
        let mut rows = rows.into_iter().enumerate().peekable();
        while rows.peek().is_some() {
            batches.push(rows.by_ref().take(at_once).collect::<Vec<_>>());
        }
        self.each(batches, |_, rows| {
            rows.into_iter().for_each(|(y, row)| work(y, row));
        });
    }
}

/// How long a thread spins for the others to finish before it sleeps.
const SPIN_TIME: Duration = Duration::from_micros(100);

/// Decrements the counter when dropped, also while a panic unwinds.
struct CountGuard<'a>(&'a AtomicUsize);

impl Drop for CountGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crossbeam_channel::unbounded;
    use std::thread::{ThreadId, current};

    const LONG: Duration = Duration::from_secs(30);

    #[test]
    fn the_caller_is_one_of_the_threads() {
        let threads = Arc::new(Threads::new(2).unwrap());
        let (began, begins) = unbounded::<ThreadId>();
        let (done, all) = unbounded();
        // Each frame waits for the other one, so that two threads are needed.
        let together = Arc::new(std::sync::Barrier::new(2));
        for _ in 0..2 {
            let (began, done, together) = (began.clone(), done.clone(), Arc::clone(&together));
            threads.submit(move |_| {
                began.send(current().id()).unwrap();
                together.wait();
                done.send(()).unwrap();
            });
        }
        // The frame that was handed to no other thread, or the other one.
        assert!(threads.run_one());
        let mut by: Vec<ThreadId> = (0..2).map(|_| begins.recv_timeout(LONG).unwrap()).collect();
        by.retain(|&id| id != current().id());
        assert_eq!(by.len(), 1);
        (0..2).for_each(|_| all.recv_timeout(LONG).unwrap());
        assert!(!threads.run_one());
    }

    #[test]
    fn one_frame_alone_waits_for_the_caller_and_has_all_threads() {
        let threads = Arc::new(Threads::new(3).unwrap());
        let (began, begins) = unbounded();
        let (sender, ids) = unbounded();
        threads.submit(move |threads| {
            sender.send(current().id()).unwrap();
            let together = std::sync::Barrier::new(3);
            threads.each(vec![(); 3], |_, ()| {
                began.send(current().id()).unwrap();
                together.wait();
            });
        });
        assert!(ids.recv_timeout(Duration::from_millis(20)).is_err());
        assert!(threads.run_one());
        assert_eq!(ids.recv_timeout(LONG).unwrap(), current().id());
        let by: std::collections::HashSet<ThreadId> = begins.try_iter().collect();
        assert_eq!(by.len(), 3);
    }
}
