//! Progress of several jobs: one line for all of them, or each separately for programs.

use crate::cli::show::progress::{Meter, Snapshot, Watch, Watched};
use framepipe::pipeline::Progress;
use framepipe::report::Stage;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The counters of all jobs of a batch.
pub(super) struct BatchProgress {
    /// How many files there are.
    files: usize,
    /// Frames of a pipeline in one of the output.
    parts: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The numbers of the jobs that have ended.
    ended: BTreeSet<usize>,
    /// Frames of the jobs that have ended.
    frames: u64,
    /// Counters of the jobs that run, by their numbers.
    running: Vec<(usize, Arc<Progress>)>,
}

impl BatchProgress {
    pub(super) fn new(files: usize, parts: u64) -> BatchProgress {
        BatchProgress {
            files,
            parts,
            state: Mutex::default(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Job `number` begins, and counts here.
    pub(super) fn begin(&self, number: usize) -> Arc<Progress> {
        let counters = Arc::new(Progress::new());
        self.state().running.push((number, counters.clone()));
        counters
    }

    /// Job `number` has ended. It may be said again.
    pub(super) fn end(&self, number: usize) {
        let mut state = self.state();
        if let Some(place) = state.running.iter().position(|(n, _)| *n == number) {
            let (_, counters) = state.running.swap_remove(place);
            state.frames += counters.frames(Stage::Encode) / self.parts;
        }
        state.ended.insert(number);
    }

    /// The end of job `number`, of the file `name`, which has no frames to show.
    pub(super) fn without_frames(&self, number: usize, name: &str) -> Snapshot {
        self.end(number);
        Snapshot {
            file: Some(name.to_owned()),
            files: Some((self.done(), self.files)),
            ..Snapshot::default()
        }
    }

    fn done(&self) -> usize {
        self.state().ended.len()
    }
}

impl Watch for BatchProgress {
    fn snapshot(&self, meter: &mut Meter) -> Snapshot {
        let state = self.state();
        let running = || state.running.iter().map(|(_, counters)| counters);
        let written = state.frames
            + running()
                .map(|counters| counters.frames(Stage::Encode) / self.parts)
                .sum::<u64>();
        let busy = |stage: Stage| running().map(|counters| counters.busy(stage)).sum::<Duration>();
        Snapshot {
            written,
            fps: meter.speeds(written, 0.0).0,
            elapsed: meter.elapsed(),
            busiest: Stage::ALL
                .into_iter()
                .filter(|&stage| !busy(stage).is_zero())
                .max_by_key(|&stage| busy(stage)),
            files: Some((state.ended.len(), self.files)),
            ..Snapshot::default()
        }
    }
}

/// A job of the batch, for programs that follow each job.
pub(super) struct BatchJobProgress<'a> {
    pub(super) watched: Watched<'a>,
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) progress: &'a BatchProgress,
}

impl Watch for BatchJobProgress<'_> {
    fn snapshot(&self, meter: &mut Meter) -> Snapshot {
        Snapshot {
            file: Some(self.name.clone()),
            files: Some((self.progress.done(), self.progress.files)),
            ..self.watched.snapshot(meter)
        }
    }

    fn last(&self, meter: &mut Meter) -> Snapshot {
        self.progress.end(self.number);
        self.snapshot(meter)
    }
}
