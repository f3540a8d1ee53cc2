//! Frames over time, in memory that does not grow with the run.

use serde::Serialize;
use std::time::{Duration, Instant};

/// The first interval's length; it doubles when the run outgrows the intervals.
const SHORTEST: Duration = Duration::from_millis(10);

/// Intervals that are kept at most; a run of an hour has intervals of 20.48 s.
const MOST: usize = 256;

/// Frames counted in intervals of equal length from a run's beginning on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Throughput {
    epoch: Instant,
    interval: Duration,
    frames: Vec<u64>,
}

/// Frames over time, for a report.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ThroughputReport {
    /// An interval's length in seconds; the last one may have been cut short by the run's end.
    pub interval_seconds: f64,
    /// Frames written in each interval, from the run's beginning to the last frame.
    pub frames: Vec<u64>,
}

impl Throughput {
    /// Nothing counted yet; time counts from `epoch`.
    pub fn new(epoch: Instant) -> Throughput {
        Throughput {
            epoch,
            interval: SHORTEST,
            frames: Vec::with_capacity(MOST),
        }
    }

    /// Counts a frame that was done at `now`.
    pub fn count(&mut self, now: Instant) {
        let at = now.saturating_duration_since(self.epoch).as_nanos();
        let mut index = at / self.interval.as_nanos();
        while index >= MOST as u128 {
            self.coarsen();
            index = at / self.interval.as_nanos();
        }
        let index = index as usize;
        if self.frames.len() <= index {
            self.frames.resize(index + 1, 0);
        }
        self.frames[index] += 1;
    }

    /// Adds another thread's frames; both count from the same instant.
    pub fn merge(&mut self, mut other: Throughput) {
        while self.interval < other.interval {
            self.coarsen();
        }
        while other.interval < self.interval {
            other.coarsen();
        }
        if self.frames.len() < other.frames.len() {
            self.frames.resize(other.frames.len(), 0);
        }
        for (mine, theirs) in self.frames.iter_mut().zip(&other.frames) {
            *mine += theirs;
        }
    }

    /// Counts each `parts` of the frames as one, such as the two fields of a picture, which is written with
    /// the last of them.
    pub fn join_fields(&mut self, parts: u64) {
        let (mut seen, mut whole) = (0, 0);
        for frames in &mut self.frames {
            seen += *frames;
            *frames = seen / parts.max(1) - whole;
            whole += *frames;
        }
    }

    /// The figures; `None` if nothing was counted.
    pub fn report(&self) -> Option<ThroughputReport> {
        (!self.frames.is_empty()).then(|| ThroughputReport {
            interval_seconds: self.interval.as_secs_f64(),
            frames: self.frames.clone(),
        })
    }

    /// Makes one interval of two.
    fn coarsen(&mut self) {
        let half = self.frames.len().div_ceil(2);
        for index in 0..half {
            let second = self.frames.get(2 * index + 1).copied().unwrap_or(0);
            self.frames[index] = self.frames[2 * index] + second;
        }
        self.frames.truncate(half);
        self.interval *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_and_no_frame_is_lost() {
        let epoch = Instant::now();
        let mut throughput = Throughput::new(epoch);
        // A frame each 5 ms for 20 s: two in each of the first intervals.
        for frame in 0..4000_u32 {
            throughput.count(epoch + Duration::from_millis(5) * frame);
        }
        let report = throughput.report().unwrap();
        assert!(report.frames.len() <= MOST && report.frames.len() > MOST / 2);
        assert_eq!(report.frames.iter().sum::<u64>(), 4000);
        assert_eq!(report.interval_seconds, 0.08);
        assert!(report.frames.iter().all(|&f| f == 16), "{report:?}");
        assert_eq!(throughput.frames.capacity(), MOST);
    }

    #[test]
    fn threads_of_different_coarseness_add_up() {
        let epoch = Instant::now();
        let (mut slow, mut fast) = (Throughput::new(epoch), Throughput::new(epoch));
        slow.count(epoch + Duration::from_secs(9));
        slow.count(epoch);
        for frame in 0..10_u32 {
            fast.count(epoch + Duration::from_millis(10) * frame);
        }
        let mut other_way = fast.clone();
        other_way.merge(slow.clone());
        slow.merge(fast);
        assert_eq!(slow, other_way);
        let report = slow.report().unwrap();
        assert_eq!(report.interval_seconds, 0.04);
        assert_eq!(report.frames[..3], [5, 4, 2]);
        assert_eq!(report.frames.iter().sum::<u64>(), 12);
        assert_eq!(Throughput::new(epoch).report(), None);
        // Two fields make a picture, in the interval of the second one.
        other_way.join_fields(2);
        let pictures = other_way.report().unwrap().frames;
        assert_eq!(pictures[..3], [2, 2, 1]);
        assert_eq!(pictures.iter().sum::<u64>(), 6);
    }
}
