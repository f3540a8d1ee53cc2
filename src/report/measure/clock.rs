//! The clock of a stage: time at work, and time waiting.

use crate::engine::Ranges;
use crate::report::{Activity, Latencies, Occupancy, Spans, Throughput};
use serde::Serialize;
use std::ffi::CStr;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The stages of a run, in the order that a frame goes through them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// Reads and decodes.
    Decode,
    /// Convolves.
    Engine,
    /// Encodes and writes.
    Encode,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 3] = [Stage::Decode, Stage::Engine, Stage::Encode];

    /// The stage's name, also that of its threads.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Decode => "decode",
            Stage::Engine => "engine",
            Stage::Encode => "encode",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a run records beyond its sums; nothing by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recording {
    /// How many of the first frames' spans each stage keeps; see [`Spans`].
    pub frames: u64,
    /// Whether frames are counted over time; see [`Throughput`].
    pub throughput: bool,
}

/// The times of one stage. Each worker owns one; they are handed over when the threads are joined, and
/// merged.
#[derive(Debug, Clone, Default)]
pub struct StageClock {
    /// Threads that the account covers.
    pub workers: usize,
    /// Frames passed on.
    pub frames: u64,
    /// Bytes of picture passed on, padding excluded.
    pub bytes: u64,
    /// Time at work, summed over the workers.
    pub busy: Duration,
    /// Time without a frame to work on, summed over the workers.
    pub input_wait: Duration,
    /// Time without a free buffer or without room in the next queue, summed over the workers.
    pub output_wait: Duration,
    /// Time that each frame spent in the stage, waiting excluded.
    pub latency: Latencies,
    /// Frames passed on over time, if that was requested.
    pub throughput: Option<Throughput>,
    /// The activities of each worker, if requested.
    pub threads: Vec<Spans>,
    /// A profiler that shows the activities of the worker.
    pub ranges: Option<Arc<dyn Ranges>>,
}

/// A stretch of a worker's time that a profiler sees, until it is dropped.
#[derive(Debug)]
pub struct OpenRange(Option<Arc<dyn Ranges>>);

impl Drop for OpenRange {
    fn drop(&mut self) {
        if let Some(ranges) = &self.0 {
            ranges.end();
        }
    }
}

impl StageClock {
    /// Where the time went in a run that took `wall`.
    pub(in crate::report) fn occupancy(&self, wall: Duration) -> Occupancy {
        Occupancy {
            busy_seconds: self.busy.as_secs_f64(),
            input_wait_seconds: self.input_wait.as_secs_f64(),
            output_wait_seconds: self.output_wait.as_secs_f64(),
            busy_share: self.busy_share(wall),
            input_wait_share: self.input_wait_share(wall),
            output_wait_share: self.output_wait_share(wall),
            latency: self.latency.summary(),
        }
    }

    /// The empty account of one worker.
    pub fn worker() -> StageClock {
        StageClock {
            workers: 1,
            ..StageClock::default()
        }
    }

    /// The account of one worker of a run that began at `epoch`, ready to keep what `recording` asks for.
    pub fn recording(recording: Recording, epoch: Instant) -> StageClock {
        let threads = (recording.frames > 0).then(|| Spans::new(epoch, recording.frames));
        StageClock {
            throughput: recording.throughput.then(|| Throughput::new(epoch)),
            threads: threads.into_iter().collect(),
            ..StageClock::worker()
        }
    }

    /// Shows a profiler, if there is one, that the worker now works on this frame.
    pub fn range(&self, name: &'static CStr, sequence: u64) -> OpenRange {
        if let Some(ranges) = &self.ranges {
            ranges.begin(name, sequence);
        }
        OpenRange(self.ranges.clone())
    }

    /// Records an activity that took `length` from `began` on, if requested.
    pub fn span(&mut self, activity: Activity, sequence: u64, began: Instant, length: Duration) {
        if let Some(spans) = self.threads.first_mut() {
            spans.record(activity, sequence, began, length);
        }
    }

    /// Counts a frame that was passed on.
    pub fn frame(&mut self, bytes: usize, latency: Duration) {
        self.frames += 1;
        self.bytes += bytes as u64;
        self.latency.record(latency);
        if let Some(throughput) = &mut self.throughput {
            throughput.count(Instant::now());
        }
    }

    /// Adds another worker's account.
    pub fn merge(&mut self, mut other: StageClock) {
        self.workers += other.workers;
        self.frames += other.frames;
        self.bytes += other.bytes;
        self.busy += other.busy;
        self.input_wait += other.input_wait;
        self.output_wait += other.output_wait;
        self.latency.merge(&other.latency);
        match (&mut self.throughput, other.throughput) {
            (Some(mine), Some(theirs)) => mine.merge(theirs),
            (mine @ None, theirs) => *mine = theirs,
            (Some(_), None) => {}
        }
        self.threads.append(&mut other.threads);
    }

    /// The share of its threads' time in `wall` at work, 0 to 1.
    pub fn busy_share(&self, wall: Duration) -> f64 {
        share(self.busy, self.workers, wall)
    }

    /// The share of its threads' time without input.
    pub fn input_wait_share(&self, wall: Duration) -> f64 {
        share(self.input_wait, self.workers, wall)
    }

    /// The share of its threads' time without room for output.
    pub fn output_wait_share(&self, wall: Duration) -> f64 {
        share(self.output_wait, self.workers, wall)
    }

    /// Frames a second that the stage would reach if it never waited; `None` before it has done anything.
    pub fn unhindered_rate(&self) -> Option<f64> {
        let busy = self.busy.as_secs_f64() / self.workers.max(1) as f64;
        (self.frames > 0 && busy > 0.0).then(|| self.frames as f64 / busy)
    }
}

fn share(part: Duration, workers: usize, wall: Duration) -> f64 {
    let whole = wall.as_secs_f64() * workers.max(1) as f64;
    if whole > 0.0 {
        (part.as_secs_f64() / whole).min(1.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_accounts_add_up() {
        let mut stage = StageClock::default();
        for _ in 0..4 {
            let mut worker = StageClock::worker();
            worker.busy = Duration::from_secs(3);
            worker.output_wait = Duration::from_secs(1);
            worker.frame(10, Duration::from_millis(5));
            stage.merge(worker);
        }
        assert_eq!((stage.workers, stage.frames, stage.bytes), (4, 4, 40));
        let wall = Duration::from_secs(4);
        assert!((stage.busy_share(wall) - 0.75).abs() < 1e-9);
        assert!((stage.output_wait_share(wall) - 0.25).abs() < 1e-9);
        assert!((stage.unhindered_rate().unwrap() - 4.0 / 3.0).abs() < 1e-9);
        assert_eq!(StageClock::default().unhindered_rate(), None);
        assert!((StageClock::default().busy_share(Duration::ZERO)).abs() < 1e-9);
    }
}
