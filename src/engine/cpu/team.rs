//! The threads that share out the rows, and the memory that each keeps from frame to frame.

use crate::engine::EngineError;
use rayon::prelude::*;
use std::sync::{Mutex, PoisonError};

/// What one thread works in. It grows to what the largest plane needs and is then never allocated again.
#[derive(Default)]
pub(super) struct Scratch {
    #[cfg(target_arch = "x86_64")]
    pub(super) pairs: super::pairs::Scratch,
    #[cfg(target_arch = "x86_64")]
    pub(super) window: super::window::Scratch,
}

/// A fixed number of threads; a team of one is the caller itself.
pub(super) struct Team {
    pool: Option<rayon::ThreadPool>,
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
                .num_threads(threads)
                .thread_name(|i| format!("convolve-{i}"))
                .build()
                .map_err(|e| EngineError::Unavailable(format!("cannot start the engine's threads: {e}")))
        };
        let pool = if threads > 1 { Some(start()?) } else { None };
        Ok(Team {
            pool,
            scratch: (0..threads).map(|_| Mutex::default()).collect(),
        })
    }

    /// How many threads it has.
    pub(super) fn size(&self) -> usize {
        self.scratch.len()
    }

    /// Calls `work` once with each item, on whichever thread is free.
    pub(super) fn each<T: Send>(&self, items: Vec<T>, work: impl Fn(&mut Scratch, T) + Sync) {
        let one = |item| {
            let own = rayon::current_thread_index().unwrap_or(0) % self.scratch.len();
            // A panic in another frame left nothing behind that this one reads.
            let mut scratch = self.scratch[own].lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut scratch, item);
        };
        match &self.pool {
            None => items.into_iter().for_each(one),
            Some(pool) => pool.install(|| items.into_par_iter().with_max_len(1).for_each(one)),
        }
    }
}
