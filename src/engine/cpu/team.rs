//! The threads that share out the rows, and the memory that each keeps from frame to frame.

use crate::engine::EngineError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What one thread works in. It grows to what the largest plane needs and is then never allocated again.
#[derive(Default)]
pub(super) struct Scratch {
    #[cfg(target_arch = "x86_64")]
    pub(super) pairs: super::pairs::Scratch,
    #[cfg(target_arch = "x86_64")]
    pub(super) window: super::window::Scratch,
}

/// A fixed number of threads, of which the caller is one: it works while the others wake up.
pub(super) struct Team {
    others: Option<rayon::ThreadPool>,
    scratch: Vec<Mutex<Scratch>>,
}

impl Team {
    /// A team of `threads` threads (0: one a core).
    pub(super) fn new(threads: usize) -> Result<Team, EngineError> {
        let threads = match threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            n => n,
        };
        let start = || {
            rayon::ThreadPoolBuilder::new()
                .num_threads(threads - 1)
                .thread_name(|i| format!("convolve-{}", i + 1))
                .build()
                .map_err(|e| EngineError::Unavailable(format!("cannot start the engine's threads: {e}")))
        };
        let others = if threads > 1 { Some(start()?) } else { None };
        Ok(Team {
            others,
            scratch: (0..threads).map(|_| Mutex::default()).collect(),
        })
    }

    /// How many threads it has.
    pub(super) fn size(&self) -> usize {
        self.scratch.len()
    }

    /// Calls `work` once with each item, on whichever thread is free.
    pub(super) fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(&mut Scratch, T) + Sync) {
        let most = items.len();
        let items = Mutex::new(items.into_iter());
        // A panic in another frame left nothing behind that this one reads.
        let next = || items.lock().unwrap_or_else(PoisonError::into_inner).next();
        let run = |scratch: &Mutex<Scratch>| {
            let mut scratch = scratch.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(item) = next() {
                work(&mut scratch, item);
            }
        };
        let [own, others @ ..] = &self.scratch[..] else {
            return;
        };
        let Some(pool) = &self.others else {
            run(own);
            return;
        };
        let busy = AtomicUsize::new(0);
        pool.in_place_scope(|scope| {
            let run = &run;
            let busy = &busy;
            for scratch in others.iter().take(most.saturating_sub(1)) {
                busy.fetch_add(1, Ordering::Relaxed);
                scope.spawn(move |_| {
                    let _done = Done(busy);
                    run(scratch);
                });
            }
            run(own);
            // The others have at most one item left each, which is less to wait for than to be woken.
            let begin = Instant::now();
            while busy.load(Ordering::Acquire) > 0 && begin.elapsed() < PATIENCE {
                std::thread::yield_now();
            }
        });
    }
}

/// How long the caller watches the others end before it sleeps.
const PATIENCE: Duration = Duration::from_micros(100);

/// Counts a thread as done when it goes, panicking or not.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
