//! Activities of a stage thread, one span after another, for the first frames of a run and a few in its
//! middle.

use std::time::{Duration, Instant};

/// Activities of a stage thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
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

impl Activity {
    /// True if the thread could not work.
    pub fn is_wait(self) -> bool {
        matches!(
            self,
            Activity::InputWait | Activity::BufferWait | Activity::QueueWait
        )
    }
}

/// One stretch of a stage thread's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The activity.
    pub activity: Activity,
    /// The frame that was worked on, or that ended the wait.
    pub sequence: u64,
    /// Nanoseconds from the run's beginning.
    pub begin: u64,
    /// Nanoseconds from the run's beginning.
    pub end: u64,
}

/// The most spans that a frame leaves behind in all three stages: waiting for a buffer, work and waiting for
/// room; waiting for a buffer and for input, submitting, collecting and waiting for room; waiting for input
/// and work. With several decoders there are a decoder's three before: waiting for a stretch, work and
/// waiting for room; then the decode stage's thread has a wait in the place of work.
pub const SPANS_A_FRAME: usize = 13;

/// Shorter waits are not kept: they are only the cost of the call.
const SHORTEST_WAIT: u64 = 1_000;

/// Frames of a stretch in the middle of a run.
const STRETCH: u64 = 16;

/// The smallest frame number at which such a stretch begins.
const FIRST_STRETCH: u64 = 64;

/// The first frame of the stretch from the middle of a run of `frames` frames: a power of two in its second
/// or third quarter, away from the end; `None` if the run is too short.
#[cfg(any(test, feature = "cli"))]
pub(in crate::report) fn stretch_of(frames: u64) -> Option<u64> {
    let last = (frames / 4 * 3).checked_sub(STRETCH)?;
    (last >= FIRST_STRETCH).then(|| 1 << last.ilog2())
}

/// One thread's spans in the order in which they ended. Frames from `limit` on are not kept, so that the
/// memory is bounded, except for the last two stretches that began at a power of two: the length of a run is
/// known only at its end.
#[derive(Debug, Clone)]
pub struct Spans {
    epoch: Instant,
    limit: u64,
    list: Vec<Span>,
    /// The first frame of each stretch, and its spans; the later one first.
    stretches: [(u64, Vec<Span>); 2],
}

impl Spans {
    /// Nothing yet; times will count from `epoch`, and frames numbered below `limit` will be kept.
    pub fn new(epoch: Instant, limit: u64) -> Spans {
        Spans {
            epoch,
            limit,
            list: Vec::new(),
            stretches: Default::default(),
        }
    }

    /// Keeps an activity that took `length` from `began` on.
    pub fn record(&mut self, activity: Activity, sequence: u64, began: Instant, length: Duration) {
        let start = match sequence {
            first if first < FIRST_STRETCH => None,
            later => Some(1 << later.ilog2()).filter(|start| later - start < STRETCH),
        };
        let is_first = sequence < self.limit;
        if !is_first && start.is_none() {
            return;
        }
        let begin = nanoseconds(began.saturating_duration_since(self.epoch));
        let length = nanoseconds(length);
        if activity.is_wait() && length < SHORTEST_WAIT {
            return;
        }
        let span = Span {
            activity,
            sequence,
            begin,
            end: begin.saturating_add(length),
        };
        if is_first {
            self.list.push(span);
        }
        if let Some(start) = start {
            self.keep(start, span);
        }
    }

    /// Adds to the stretch from `start` on.
    fn keep(&mut self, start: u64, span: Span) {
        if start > self.stretches[0].0 {
            self.stretches.swap(0, 1);
            self.stretches[0].0 = start;
            self.stretches[0].1.clear();
        }
        if let Some((_, spans)) = self.stretches.iter_mut().find(|(known, _)| *known == start) {
            spans.push(span);
        }
    }

    /// The spans of the first frames.
    pub fn list(&self) -> &[Span] {
        &self.list
    }

    /// The spans of the stretch that begins with this frame; empty if none does.
    pub fn stretch(&self, start: u64) -> &[Span] {
        let kept = self.stretches.iter().find(|(known, _)| *known == start);
        kept.map_or(&[], |(_, spans)| spans)
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
        spans.record(Activity::InputWait, 0, at, Duration::from_nanos(999));
        spans.record(Activity::Work, 0, at, Duration::ZERO);
        spans.record(Activity::InputWait, 1, at, length);
        spans.record(Activity::Work, 2, at, length);
        let expected = [
            (Activity::Work, 0, 5_000, 5_000),
            (Activity::InputWait, 1, 5_000, 8_000),
        ];
        let found: Vec<_> = spans
            .list()
            .iter()
            .map(|s| (s.activity, s.sequence, s.begin, s.end))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_stretch_in_the_midst_is_kept_whatever_the_length() {
        for frames in [1_u64, 99, 100, 128, 130, 1000, 1024, 1030, 100_000] {
            let epoch = Instant::now();
            let mut spans = Spans::new(epoch, 2);
            for frame in 0..frames {
                spans.record(Activity::Work, frame, epoch, Duration::ZERO);
            }
            let kept: usize = spans.stretches.iter().map(|(_, spans)| spans.len()).sum();
            assert!(kept <= 2 * STRETCH as usize, "{frames}: {kept}");
            let Some(start) = stretch_of(frames) else {
                assert!(frames < 128, "{frames}");
                continue;
            };
            assert!(
                start >= frames / 4 && start + STRETCH <= frames / 4 * 3,
                "{frames}: {start}"
            );
            let sequences: Vec<u64> = spans.stretch(start).iter().map(|s| s.sequence).collect();
            assert_eq!(
                sequences,
                (start..start + STRETCH).collect::<Vec<_>>(),
                "{frames}"
            );
        }
    }

    #[test]
    fn a_frame_takes_as_many_bytes_as_documented() {
        assert_eq!(size_of::<Span>() * SPANS_A_FRAME, 416);
        assert_eq!(size_of::<crate::engine::FrameTimes>(), 88);
    }
}
