//! The running jobs of a batch, each with its own stop, and one handle that ends all of them.

use crate::cli::process::interrupt::Policy;
use framepipe::pipeline::Stop;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The jobs that run, so that one hand ends all of them.
#[derive(Default)]
pub(super) struct Jobs(Mutex<Running>);

#[derive(Default)]
struct Running {
    jobs: Vec<(usize, Stop, Policy)>,
    /// No more are begun.
    is_ending: bool,
    /// The user ended them.
    is_interrupted: bool,
}

impl Jobs {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The stop of job `number`; `None` if it is not to be begun.
    pub(super) fn begin(&self, number: usize, policy: Policy) -> Option<Stop> {
        let mut running = self.running();
        if running.is_ending {
            return None;
        }
        let stop = Stop::new();
        running.jobs.push((number, stop.clone(), policy));
        Some(stop)
    }

    pub(super) fn end(&self, number: usize) {
        self.running().jobs.retain(|(other, ..)| *other != number);
    }

    /// Ends all by a first signal; true if that ends any gently.
    pub(super) fn finish(&self, signal: i32) -> bool {
        let mut running = self.running();
        (running.is_ending, running.is_interrupted) = (true, true);
        let (gentle, hard): (Vec<_>, Vec<_>) =
            running.jobs.iter().partition(|(.., policy)| policy.keeps(signal));
        hard.iter().for_each(|(_, stop, _)| stop.abandon());
        gentle.iter().for_each(|(_, stop, _)| stop.finish());
        !gentle.is_empty()
    }

    /// Ends all at once, by the user or because one failed.
    pub(super) fn abandon(&self, by_user: bool) {
        let mut running = self.running();
        running.is_ending = true;
        running.is_interrupted |= by_user;
        running.jobs.iter().for_each(|(_, stop, _)| stop.abandon());
    }

    pub(super) fn is_interrupted(&self) -> bool {
        self.running().is_interrupted
    }
}
