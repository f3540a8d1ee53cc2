//! Counts how far a run is, for a watcher on another thread.

use crate::report::Stage;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Counters that the stages' threads add to and a watcher reads at any time, without locks.
#[derive(Debug, Default)]
pub struct Progress {
    stages: [StageProgress; 3],
    delayed: AtomicU64,
    bytes: AtomicU64,
    times: Times,
}

/// The earliest and the latest presentation time so far, of frames in any order.
#[derive(Debug)]
struct Times {
    first: AtomicI64,
    last: AtomicI64,
}

impl Default for Times {
    fn default() -> Times {
        Times {
            first: AtomicI64::new(i64::MAX),
            last: AtomicI64::new(i64::MIN),
        }
    }
}

#[derive(Debug, Default)]
struct StageProgress {
    workers: AtomicUsize,
    frames: AtomicU64,
    busy_nanos: AtomicU64,
}

impl Progress {
    /// Counters at zero, for one run.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Frames that `stage` has passed on.
    pub fn frames(&self, stage: Stage) -> u64 {
        self.stages[stage as usize].frames.load(Ordering::Relaxed)
    }

    /// Ticks of the input's time base from the first to the last frame that the sink has taken, by when they
    /// are shown; `None` before the first frame that has a time.
    pub fn span(&self) -> Option<u64> {
        let (first, last) = (&self.times.first, &self.times.last);
        let (first, last) = (first.load(Ordering::Relaxed), last.load(Ordering::Relaxed));
        (first <= last).then(|| last.abs_diff(first))
    }

    /// How long `stage` has worked, averaged over its threads.
    pub fn busy(&self, stage: Stage) -> Duration {
        let stage = &self.stages[stage as usize];
        let workers = stage.workers.load(Ordering::Relaxed).max(1) as u64;
        Duration::from_nanos(stage.busy_nanos.load(Ordering::Relaxed) / workers)
    }

    /// The stage that has worked the longest; `None` before the first frame.
    pub fn busiest(&self) -> Option<Stage> {
        Stage::ALL
            .into_iter()
            .filter(|&s| !self.busy(s).is_zero())
            .max_by_key(|&s| self.busy(s))
    }

    /// Frames that the sink had taken but not yet written (an encoder's look-ahead) when it took the last
    /// one.
    pub fn delayed(&self) -> u64 {
        self.delayed.load(Ordering::Relaxed)
    }

    /// Bytes written to the output so far, if the sink counts them.
    pub fn bytes(&self) -> Option<u64> {
        Some(self.bytes.load(Ordering::Relaxed)).filter(|&bytes| bytes > 0)
    }

    pub(super) fn set_bytes(&self, bytes: Option<u64>) {
        if let Some(bytes) = bytes {
            self.bytes.store(bytes, Ordering::Relaxed);
        }
    }

    pub(super) fn set_delayed(&self, frames: u64) {
        self.delayed.store(frames, Ordering::Relaxed);
    }

    pub(super) fn set_workers(&self, stage: Stage, workers: usize) {
        self.stages[stage as usize]
            .workers
            .store(workers, Ordering::Relaxed);
    }

    pub(super) fn add_frame(&self, stage: Stage) {
        self.stages[stage as usize].frames.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a frame that the sink has taken, which is shown at `pts`.
    pub(super) fn add_taken(&self, pts: Option<i64>) {
        if let Some(pts) = pts {
            self.times.first.fetch_min(pts, Ordering::Relaxed);
            self.times.last.fetch_max(pts, Ordering::Relaxed);
        }
        self.add_frame(Stage::Encode);
    }

    pub(super) fn add_busy(&self, stage: Stage, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.stages[stage as usize]
            .busy_nanos
            .fetch_add(nanos, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_span_is_from_the_earliest_to_the_latest_time() {
        let progress = Progress::new();
        progress.add_taken(None);
        assert_eq!(progress.span(), None);
        for (pts, span) in [(40, 0), (-80, 120), (0, 120), (i64::MAX, i64::MAX as u64 + 80)] {
            progress.add_taken(Some(pts));
            assert_eq!(progress.span(), Some(span));
        }
        assert_eq!(progress.frames(Stage::Encode), 5);
    }

    #[test]
    fn the_busiest_stage_counts_its_workers() {
        let progress = Progress::new();
        assert_eq!(progress.busiest(), None);
        progress.set_workers(Stage::Decode, 4);
        progress.add_busy(Stage::Decode, Duration::from_millis(80));
        progress.add_busy(Stage::Engine, Duration::from_millis(30));
        assert_eq!(progress.busiest(), Some(Stage::Engine));
        assert_eq!(progress.busy(Stage::Decode), Duration::from_millis(20));
    }
}
