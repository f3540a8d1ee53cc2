//! One input read by several readers at once, in order.
//!
//! The input is cut into stretches that can be decoded by themselves, one after another as readers ask for
//! them:
//!
//! ```text
//!   stretch    0      1      2      3      4
//!   reader A   ffffff               ffffff
//!   reader B          ffffff               ffffff
//!   reader C                 ffffff
//!   out        0 0 0 0 0 0 1 1 1 1 1 1 2 2 ...
//! ```
//!
//! Frames of later stretches wait for their turn. Those that wait are limited in number, which bounds the
//! memory, and no number of readers and no limit stops the whole:
//!
//! - Stretches are claimed in order, so that the oldest one that is not whole is some reader's, and that
//!   reader gives it before any later one.
//! - A reader waits only with a frame of a later stretch in its hand. For the oldest one there is always
//!   room.

use crate::frame::{Decoded, Frame, Stopped};
use crate::source::SourceError;
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the consumer waits before it looks whether the run is stopped.
const TICK: Duration = Duration::from_millis(50);

/// The part of an input between two places where decoding can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    /// When its first frame is shown, in ticks; `None` at the beginning of the input.
    pub(super) start: Option<i64>,
    /// When the first frame behind it is shown; `None` at the end of the input.
    pub(super) end: Option<i64>,
}

/// Finds where stretches end.
pub(super) trait Cutter: Send {
    /// Where the stretch that begins at `start` ends, or `None` with the input.
    fn end_of(&mut self, start: Option<i64>) -> Result<Option<i64>, SourceError>;
}

/// What a reader has next.
// It lives on the stack for one turn of the loop; a box would be an allocation a frame.
#[allow(clippy::large_enum_variant)]
pub(super) enum Read {
    /// A frame, and when it is shown. Times grow from frame to frame.
    Frame(Frame, i64),
    /// It has read all of the spans that it began, though frames of the last may still be in its decoder.
    NeedsStretch,
}

/// Reads stretches.
pub(super) trait Reader: Send {
    /// The next stretch to read, which comes after those before.
    fn begin(&mut self, span: Span) -> Result<(), SourceError>;

    /// No stretch follows: what is left of those begun is to be given.
    fn end(&mut self) -> Result<(), SourceError>;

    /// The next frame of the stretches that were begun.
    fn read(&mut self) -> Result<Read, SourceError>;

    /// True if frames of a stretch may still be in the decoder when it needs another.
    fn is_behind(&self) -> bool;
}

/// Opens a reader, on the thread that it will work on.
pub(super) type Open = Box<dyn FnOnce() -> Result<Box<dyn Reader>, SourceError> + Send>;

/// A stretch on its way.
#[derive(Default)]
struct Stretch {
    frames: VecDeque<Frame>,
    is_whole: bool,
    failure: Option<SourceError>,
}

#[derive(Default)]
struct State {
    /// From the oldest on.
    stretches: VecDeque<Stretch>,
    /// The number of the oldest.
    oldest: usize,
    /// Frames in all of them.
    waiting: usize,
    /// Readers that have not ended.
    readers: usize,
    /// All stretches were claimed.
    is_all: bool,
    is_stopped: bool,
    /// Why a reader could not be opened.
    unopened: Option<SourceError>,
}

/// Where the next stretch begins.
struct Claims {
    cutter: Box<dyn Cutter>,
    next: usize,
    start: Option<i64>,
    is_over: bool,
}

struct Shared {
    state: Mutex<State>,
    claims: Mutex<Claims>,
    /// A frame, an end or a failure has come.
    came: Condvar,
    /// There is room for frames.
    room: Condvar,
    most_waiting: usize,
}

/// What the consumer gets.
// As above.
#[allow(clippy::large_enum_variant)]
pub(super) enum Next {
    Frame(Frame),
    /// All frames were given.
    End,
    /// The oldest frame that is missing cannot be had by these readers.
    Failed(SourceError),
}

/// Readers at work.
pub(super) struct Stretches {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Stretches {
    /// Starts a thread for each of `readers`. The first stretch begins at `start`; at most `most_waiting`
    /// frames wait for their turn, and one of the stretch whose turn it is.
    pub(super) fn start(
        readers: Vec<Open>,
        cutter: Box<dyn Cutter>,
        start: Option<i64>,
        most_waiting: NonZeroUsize,
    ) -> Result<Stretches, std::io::Error> {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                readers: readers.len(),
                ..State::default()
            }),
            claims: Mutex::new(Claims {
                cutter,
                next: 0,
                start,
                is_over: false,
            }),
            came: Condvar::new(),
            room: Condvar::new(),
            most_waiting: most_waiting.get(),
        });
        let mut stretches = Stretches {
            shared,
            threads: Vec::new(),
        };
        for (number, open) in readers.into_iter().enumerate() {
            let shared = Arc::clone(&stretches.shared);
            let thread = std::thread::Builder::new().name("stretch".to_owned());
            let thread = thread.spawn(move || {
                Worker {
                    shared,
                    begun: VecDeque::new(),
                    number,
                    since: Instant::now(),
                    idle: Duration::ZERO,
                }
                .run(open);
            })?;
            stretches.threads.push(thread);
        }
        Ok(stretches)
    }

    /// The next frame in order. `is_stopped` ends the wait for it.
    pub(super) fn next(&self, is_stopped: &dyn Fn() -> bool) -> Result<Next, Stopped> {
        let mut state = self.shared.state();
        loop {
            if is_stopped() {
                return Err(Stopped);
            }
            let oldest = state.oldest;
            let next = state.next();
            if next.is_some() || state.oldest != oldest {
                self.shared.room.notify_all();
            }
            if let Some(next) = next {
                return Ok(next);
            }
            let waited = self.shared.came.wait_timeout(state, TICK);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Stretches {
    fn drop(&mut self) {
        self.shared.state().is_stopped = true;
        self.shared.room.notify_all();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl State {
    /// What the consumer gets now; `None` if it has to wait.
    fn next(&mut self) -> Option<Next> {
        while let Some(oldest) = self.stretches.front_mut() {
            if let Some(frame) = oldest.frames.pop_front() {
                self.waiting -= 1;
                return Some(Next::Frame(frame));
            }
            if let Some(failure) = oldest.failure.take() {
                return Some(Next::Failed(failure));
            }
            if !oldest.is_whole {
                return self.is_deserted();
            }
            self.stretches.pop_front();
            self.oldest += 1;
        }
        if self.is_all {
            return Some(Next::End);
        }
        self.is_deserted()
    }

    /// A failure if no reader is left.
    fn is_deserted(&mut self) -> Option<Next> {
        (self.readers == 0).then(|| {
            let unopened = self.unopened.take();
            Next::Failed(unopened.unwrap_or_else(|| SourceError::other("its readers have ended early")))
        })
    }

    fn stretch(&mut self, number: usize) -> Option<&mut Stretch> {
        self.stretches.get_mut(number.checked_sub(self.oldest)?)
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next stretch that nobody has claimed, and its number; `None` if there is none or the run ends.
    fn claim(&self) -> Result<Option<(usize, Span)>, SourceError> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        if claims.is_over || self.state().is_stopped {
            return Ok(None);
        }
        let start = claims.start;
        let end = claims.cutter.end_of(start)?;
        let number = claims.next;
        claims.next += 1;
        (claims.start, claims.is_over) = (end, end.is_none());
        let mut state = self.state();
        state.stretches.push_back(Stretch::default());
        state.is_all = claims.is_over;
        Ok(Some((number, Span { start, end })))
    }

    /// Hands over a frame of stretch `number`, when there is room for it, with the time that this took; false
    /// if nobody wants it any more.
    fn give(&self, number: usize, mut frame: Frame) -> bool {
        let begun = Instant::now();
        let mut state = self.state();
        loop {
            if state.is_stopped {
                return false;
            }
            let is_next = number == state.oldest;
            let full = state.waiting >= self.most_waiting;
            let Some(stretch) = state.stretch(number) else {
                return false;
            };
            if !full || is_next && stretch.frames.is_empty() {
                if let Some(decoded) = &mut frame.decoded {
                    decoded.waited = begun.elapsed();
                }
                stretch.frames.push_back(frame);
                state.waiting += 1;
                if is_next {
                    self.came.notify_one();
                }
                return true;
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// No frame of stretch `number` follows.
    fn finish(&self, number: usize) {
        if let Some(stretch) = self.state().stretch(number) {
            stretch.is_whole = true;
        }
        self.came.notify_one();
    }

    /// The frames of stretch `number` that have not come will not come.
    fn fail(&self, number: usize, failure: SourceError) {
        if let Some(stretch) = self.state().stretch(number) {
            stretch.failure.get_or_insert(failure);
        }
        self.came.notify_one();
    }
}

/// A reader's thread.
struct Worker {
    shared: Arc<Shared>,
    /// The stretches of which frames may still come, with their spans.
    begun: VecDeque<(usize, Span)>,
    /// Which reader it is.
    number: usize,
    /// When it gave its last frame.
    since: Instant,
    /// How long it has had no stretch to read since then.
    idle: Duration,
}

impl Worker {
    fn run(mut self, open: Open) {
        let read = catch_unwind(AssertUnwindSafe(|| match open() {
            Ok(mut reader) => self.read(reader.as_mut()),
            Err(failure) => {
                self.shared.state().unopened.get_or_insert(failure);
                Ok(())
            }
        }));
        let failure = match read {
            Ok(Ok(())) => None,
            Ok(Err(failure)) => Some(failure),
            Err(_) => Some(SourceError::other("its reader has panicked")),
        };
        if let Some(failure) = failure {
            match self.begun.front() {
                Some(&(number, _)) => self.shared.fail(number, failure),
                None => {
                    self.shared.state().unopened.get_or_insert(failure);
                }
            }
            // A later stretch of it, should the consumer get there.
            for &(number, _) in self.begun.iter().skip(1) {
                self.shared
                    .fail(number, SourceError::other("its reader has failed before"));
            }
        }
        self.shared.state().readers -= 1;
        self.shared.came.notify_one();
    }

    /// Reads stretches until none is left.
    fn read(&mut self, reader: &mut dyn Reader) -> Result<(), SourceError> {
        while let Some((number, span)) = self.claim()? {
            self.begun.push_back((number, span));
            reader.begin(span)?;
            if !self.give(reader)? {
                return Ok(());
            }
            if !reader.is_behind() {
                self.finish_all();
            }
        }
        reader.end()?;
        if self.give(reader)? {
            self.finish_all();
        }
        Ok(())
    }

    /// The next stretch; others may be looking for theirs first.
    fn claim(&mut self) -> Result<Option<(usize, Span)>, SourceError> {
        let begun = Instant::now();
        let claimed = self.shared.claim();
        self.idle += begun.elapsed();
        claimed
    }

    fn finish_all(&mut self) {
        for (number, _) in self.begun.drain(..) {
            self.shared.finish(number);
        }
    }

    /// Gives frames until the reader needs another stretch; false if nobody wants them any more.
    fn give(&mut self, reader: &mut dyn Reader) -> Result<bool, SourceError> {
        while let Read::Frame(mut frame, shown) = reader.read()? {
            while self.begun.len() > 1 && self.begun[0].1.is_over(shown) {
                self.shared.finish(self.begun[0].0);
                self.begun.pop_front();
            }
            let Some(&(number, span)) = self.begun.front() else {
                continue;
            };
            // What a decoder gives besides, to get at the stretch: pictures before it, the first behind it.
            if !span.holds(shown) {
                continue;
            }
            frame.decoded = Some(Decoded {
                decoder: self.number,
                began: self.since,
                idle: self.idle,
                busy: self.since.elapsed().saturating_sub(self.idle),
                waited: Duration::ZERO,
            });
            if !self.shared.give(number, frame) {
                return Ok(false);
            }
            (self.since, self.idle) = (Instant::now(), Duration::ZERO);
        }
        Ok(true)
    }
}

impl Span {
    /// True if a frame that is shown then comes behind the stretch.
    fn is_over(self, shown: i64) -> bool {
        self.end.is_some_and(|end| shown >= end)
    }

    /// True if it belongs to the stretch.
    fn holds(self, shown: i64) -> bool {
        self.start.is_none_or(|start| shown >= start) && !self.is_over(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};

    /// Numbers that come in no order that anybody would think of, the same for the same seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, most: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % most
        }
    }

    fn frame(shown: i64) -> Frame {
        let layout = Layout::new(PixelFormat::GRAY, 1, 1, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(vec![0_u8]))).unwrap();
        frame.metadata.pts = Some(shown);
        frame
    }

    /// Stretches of lengths that differ.
    struct Lengths {
        random: Random,
        end: i64,
        longest: u64,
    }

    impl Cutter for Lengths {
        fn end_of(&mut self, start: Option<i64>) -> Result<Option<i64>, SourceError> {
            let end = start.unwrap_or(0) + 1 + self.random.below(self.longest) as i64;
            Ok((end < self.end).then_some(end))
        }
    }

    /// A decoder that keeps frames back until it is fed with later ones, or at its end.
    struct Delayed {
        random: Random,
        end: i64,
        /// Frames that it keeps back.
        delay: usize,
        /// It keeps them from stretch to stretch.
        through: bool,
        to_feed: std::ops::Range<i64>,
        inside: VecDeque<i64>,
        is_flushing: bool,
        fails_at: Option<i64>,
    }

    impl Reader for Delayed {
        fn begin(&mut self, span: Span) -> Result<(), SourceError> {
            let (start, end) = (span.start.unwrap_or(0), span.end.unwrap_or(self.end));
            // Leading pictures and the key frame behind, which others give.
            self.to_feed = match self.through {
                true => start..end,
                false => (start - 2).max(0)..(end + 1).min(self.end),
            };
            self.is_flushing = false;
            Ok(())
        }

        fn end(&mut self) -> Result<(), SourceError> {
            self.is_flushing = true;
            Ok(())
        }

        fn read(&mut self) -> Result<Read, SourceError> {
            loop {
                let kept = if self.is_flushing { 0 } else { self.delay };
                if self.inside.len() > kept {
                    let shown = self.inside.pop_front().unwrap_or(0);
                    if self.fails_at == Some(shown) {
                        return Err(SourceError::other("made to fail"));
                    }
                    if self.random.below(8) == 0 {
                        std::thread::sleep(Duration::from_micros(self.random.below(200)));
                    }
                    return Ok(Read::Frame(frame(shown), shown));
                }
                match self.to_feed.next() {
                    Some(shown) => self.inside.push_back(shown),
                    None if self.through || self.is_flushing => return Ok(Read::NeedsStretch),
                    None => self.is_flushing = true,
                }
            }
        }

        fn is_behind(&self) -> bool {
            self.through
        }
    }

    /// What came out, and whether it ended well.
    fn run(seed: u64, frames: i64, fails_at: Option<i64>) -> (Vec<i64>, bool) {
        let mut random = Random(seed);
        let count = 1 + random.below(12);
        let through = random.below(2) == 0;
        let readers = (0..count).map(|k| {
            let delay = random.below(20) as usize;
            let open = move || {
                let reader = Delayed {
                    random: Random(seed ^ (k + 1) << 17),
                    end: frames,
                    delay,
                    through,
                    to_feed: 0..0,
                    inside: VecDeque::new(),
                    is_flushing: false,
                    fails_at,
                };
                Ok(Box::new(reader) as Box<dyn Reader>)
            };
            Box::new(open) as Open
        });
        let readers = readers.collect();
        let longest = 1 + random.below(40);
        let most = NonZeroUsize::new(1 + random.below(30) as usize).unwrap();
        let cutter = Lengths {
            random: Random(seed + 1),
            end: frames,
            longest,
        };
        let stretches = Stretches::start(readers, Box::new(cutter), None, most).unwrap();
        let mut times = Vec::new();
        loop {
            match stretches.next(&|| false).unwrap() {
                Next::Frame(frame) => times.extend(frame.metadata.pts),
                Next::End => return (times, true),
                Next::Failed(_) => return (times, false),
            }
            assert!(stretches.shared.state().waiting <= most.get() + 1);
        }
    }

    #[test]
    fn frames_come_in_order_with_any_number_of_readers_and_any_limit() {
        for seed in 0..400 {
            let frames = 1 + (seed as i64 * 7) % 500;
            let (times, ended_well) = run(seed, frames, None);
            assert!(ended_well, "seed {seed}");
            assert_eq!(times, (0..frames).collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn a_failure_comes_behind_all_frames_before_it() {
        let mut at_the_frame = 0;
        for seed in 0..100 {
            let at = 1 + (seed as i64 * 31) % 200;
            let (times, ended_well) = run(seed, 300, Some(at));
            assert!(!ended_well, "seed {seed}");
            // A decoder that goes through may fail on a later stretch before it has ended an earlier one.
            let len = times.len() as i64;
            assert_eq!(times, (0..len).collect::<Vec<_>>(), "seed {seed}");
            assert!(len <= at, "seed {seed}: {len} frames, and frame {at} failed");
            at_the_frame += u32::from(len == at);
        }
        assert!(at_the_frame > 10, "{at_the_frame}");
    }

    #[test]
    fn an_end_in_the_midst_and_readers_that_do_not_open_stop_nothing() {
        for count in [0_usize, 1, 3] {
            let fail = || Box::new(|| Err(SourceError::other("cannot be opened"))) as Open;
            let readers = (0..count).map(|_| fail()).collect();
            let cutter = Lengths {
                random: Random(1),
                end: 10,
                longest: 4,
            };
            let stretches = Stretches::start(readers, Box::new(cutter), None, NonZeroUsize::MIN).unwrap();
            assert!(matches!(stretches.next(&|| false), Ok(Next::Failed(_))));
            assert!(matches!(stretches.next(&|| true), Err(Stopped)));
        }
    }
}
