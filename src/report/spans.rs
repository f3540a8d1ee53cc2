//! What one stage thread did, one span after another, for the first frames of a run.

use std::time::{Duration, Instant};

/// What a stage thread was at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doing {
    /// A frame's work: decoding it, or encoding it.
    Work,
    /// Handing a frame to the engine; an engine that works at once does all its work here.
    Submit,
    /// Waiting for the engine's oldest frame and taking it.
    Collect,
    /// No frame to work on.
    InputWait,
    /// No free buffer.
    BufferWait,
    /// No room in the next queue.
    QueueWait,
}

impl Doing {
    /// True if the thread could not work.
    pub fn is_wait(self) -> bool {
        matches!(self, Doing::InputWait | Doing::BufferWait | Doing::QueueWait)
    }
}

/// One stretch of a stage thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// What it was at.
    pub doing: Doing,
    /// The frame that it was at work on, or that the wait ended with.
    pub sequence: u64,
    /// Nanoseconds from the run's beginning.
    pub begin: u64,
    /// Nanoseconds likewise.
    pub end: u64,
}

/// The most spans that a frame leaves behind in all three stages: waiting for a buffer, work and waiting for
/// room; waiting for a buffer and for input, submitting, collecting and waiting for room; waiting for input
/// and work.
pub const SPANS_A_FRAME: usize = 10;

/// Shorter waits are not kept: they are what asking costs when nothing has to be waited for.
const SHORTEST_WAIT: u64 = 1_000;

/// One thread's spans in the order in which they ended. Frames from `limit` on are not kept, so that the
/// memory is bounded.
#[derive(Debug, Clone)]
pub struct Spans {
    epoch: Instant,
    limit: u64,
    list: Vec<Span>,
}

impl Spans {
    /// Nothing yet; times will count from `epoch`, and frames numbered below `limit` will be kept.
    pub fn new(epoch: Instant, limit: u64) -> Spans {
        Spans {
            epoch,
            limit,
            list: Vec::new(),
        }
    }

    /// Keeps what took `length` from `began` on.
    pub fn record(&mut self, doing: Doing, sequence: u64, began: Instant, length: Duration) {
        if sequence >= self.limit {
            return;
        }
        let begin = nanoseconds(began.saturating_duration_since(self.epoch));
        let length = nanoseconds(length);
        if doing.is_wait() && length < SHORTEST_WAIT {
            return;
        }
        self.list.push(Span {
            doing,
            sequence,
            begin,
            end: begin.saturating_add(length),
        });
    }

    /// What was kept.
    pub fn list(&self) -> &[Span] {
        &self.list
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_beyond_the_limit_and_waits_that_are_none_leave_nothing() {
        let epoch = Instant::now();
        let mut spans = Spans::new(epoch, 2);
        let (at, length) = (epoch + Duration::from_micros(5), Duration::from_micros(3));
        spans.record(Doing::InputWait, 0, at, Duration::from_nanos(999));
        spans.record(Doing::Work, 0, at, Duration::ZERO);
        spans.record(Doing::InputWait, 1, at, length);
        spans.record(Doing::Work, 2, at, length);
        let expected = [
            (Doing::Work, 0, 5_000, 5_000),
            (Doing::InputWait, 1, 5_000, 8_000),
        ];
        let found: Vec<_> = spans
            .list()
            .iter()
            .map(|s| (s.doing, s.sequence, s.begin, s.end))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_frame_takes_as_many_bytes_as_documented() {
        assert_eq!(size_of::<Span>() * SPANS_A_FRAME, 320);
        assert_eq!(size_of::<crate::engine::FrameTimes>(), 88);
    }
}
