//! A range of an input: the frames from one time on and before another, or so many of them.
//!
//! ```text
//!   shown at   0.00  0.04  0.08  0.12  0.16  0.20        --start 0.06 --end 0.16
//!   kept                   0.08  0.12
//!   becomes                0.02  0.06                    the clock begins at the start of the range
//! ```
//!
//! A frame belongs to the range if it is shown at its start or after it, and before its end. So ranges that
//! follow one another give each frame once. The source says by [`Source::pass_over`] how it gets to the start
//! without decoding all that comes before it; whether it does or not, this module keeps the same frames.

use super::seam::{SeamLog, SeamWatch};
use crate::frame::{Buffer, Frame, Rational, Remarks, SECOND, Skipped};
pub use crate::frame::{InvalidPoint, Point};
#[cfg(feature = "ffmpeg")]
use crate::source::ReadRange;
use crate::source::{AnySource, IndexedSource, Source, SourceError, StreamInfo, Supply, late_start_sentence};
use std::sync::Arc;

/// Which frames of an input are read: those from `start` on that meet neither `end` nor `length`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TimeRange {
    /// Where it begins; at the first frame if `None`.
    pub start: Option<Point>,
    /// Where it ends, counted from the beginning of the input's clock.
    pub end: Option<Point>,
    /// The most time that it takes, counted from its start.
    pub duration: Option<Point>,
    /// The most frames.
    pub frames: Option<u64>,
    /// Frames before a start that is a time are read and counted, not passed over, so that every frame knows
    /// its place in the input.
    pub counts_all: bool,
}

/// Why a range cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRange(String);

impl TimeRange {
    /// A range with a start and ends, each of which may be left out.
    pub fn new(
        start: Option<Point>,
        end: Option<Point>,
        duration: Option<Point>,
        frames: Option<u64>,
    ) -> Result<TimeRange, InvalidRange> {
        let ordered = match (start, end) {
            (Some(Point::Time(start)), Some(Point::Time(end))) => start < end,
            (Some(Point::Frame(start)), Some(Point::Frame(end))) => start < end,
            (None, Some(end)) => !matches!(end, Point::Time(0) | Point::Frame(0)),
            _ => true,
        };
        if let (false, Some(end)) = (ordered, end) {
            let start = start.unwrap_or(Point::Time(0));
            return Err(InvalidRange(format!(
                "the range ends at {end}, and begins at {start}: it holds no frame"
            )));
        }
        if frames == Some(0) || matches!(duration, Some(Point::Time(0) | Point::Frame(0))) {
            return Err(InvalidRange("a range of no length holds no frame".to_owned()));
        }
        Ok(TimeRange {
            start,
            end,
            duration,
            frames,
            counts_all: false,
        })
    }

    /// True if one of its ends is a time.
    fn goes_by_time(&self) -> bool {
        let mut points = [self.start, self.end, self.duration].into_iter().flatten();
        points.any(|point| matches!(point, Point::Time(_)))
    }

    /// True if every frame is in it.
    pub fn is_all(&self) -> bool {
        *self == TimeRange::default()
    }

    /// What is read of `source`, of which it begins at tick `start`, if that is known.
    #[cfg(feature = "ffmpeg")]
    fn stretch(&self, source: &mut dyn Source, start: Option<i64>) -> Result<ReadRange, SourceError> {
        let is_limited = self.end.is_some() || self.duration.is_some() || self.frames.is_some();
        let Some(start) = start else {
            return Ok(ReadRange {
                is_limited,
                ..ReadRange::default()
            });
        };
        let base = source.info().time_base;
        // From the time that was written, not from the tick behind it.
        let begins = match self.start {
            Some(Point::Time(begins)) => begins,
            _ => base.nanos(start),
        };
        let mut times = Vec::new();
        let mut frames = Vec::new();
        match self.end {
            Some(Point::Time(end)) => times.push(end),
            Some(Point::Frame(number)) => frames.extend(time_of(source, i64::MIN, number)?),
            None => {}
        }
        let mut most = self.frames;
        match self.duration {
            Some(Point::Time(length)) => times.push(begins.saturating_add(length)),
            Some(Point::Frame(length)) => most = Some(most.map_or(length, |most| most.min(length))),
            None => {}
        }
        if let Some(most) = most {
            frames.extend(time_of(source, start, most)?);
        }
        let time = times.into_iter().min();
        let frame = frames.into_iter().map(|tick| base.nanos(tick)).min();
        Ok(ReadRange {
            start: base.nanos(start),
            end: time.into_iter().chain(frame).min(),
            is_counted: frame.is_some_and(|frame| time.is_none_or(|time| frame < time)),
            is_limited,
        })
    }

    /// The same as numbers of frames, first and one behind the last, for `rate` frames a second; `None` where
    /// a time is given and there is no rate.
    pub fn numbers(&self, rate: Option<Rational>) -> Option<(u64, Option<u64>)> {
        // The first frame that is shown at that time or after it.
        let number = |point: Point| match point {
            Point::Frame(frame) => Some(frame),
            Point::Time(nanos) => {
                let rate = rate?;
                let (num, den) = (
                    i128::from(rate.num),
                    i128::from(rate.den.max(1)) * i128::from(SECOND),
                );
                u64::try_from((i128::from(nanos) * num + den - 1).div_euclid(den)).ok()
            }
        };
        let first = self.start.map_or(Some(0), number)?;
        let mut ends = Vec::new();
        if let Some(end) = self.end {
            ends.push(number(end)?);
        }
        match (self.duration, self.start) {
            (Some(Point::Time(length)), Some(Point::Time(start))) => {
                ends.push(number(Point::Time(start.saturating_add(length)))?);
            }
            (Some(length), _) => ends.push(first.saturating_add(number(length)?)),
            (None, _) => {}
        }
        ends.extend(self.frames.map(|frames| first.saturating_add(frames)));
        Some((first, ends.into_iter().min()))
    }

    /// How many frames are in it of an input that `info` describes, as far as that is known.
    pub fn count(&self, info: &StreamInfo) -> Option<u64> {
        match self.numbers(info.frame_rate) {
            Some((first, end)) => {
                let end = [end, info.frames].into_iter().flatten().min();
                end.map(|end| end.saturating_sub(first))
            }
            None => self.frames,
        }
    }
}

/// When frame `number` of those that are shown at tick `from` or later is shown: of an input that can be read
/// only once, by its frame rate.
#[cfg(feature = "ffmpeg")]
fn time_of(source: &mut dyn Source, from: i64, number: u64) -> Result<Option<i64>, SourceError> {
    let known = source.time_of(from, number)?;
    let info = source.info();
    let is_read_once = info
        .origin
        .as_ref()
        .is_some_and(|origin| origin.outline.is_some());
    let estimate = || {
        let rate = info.frame_rate.filter(|_| is_read_once)?;
        let ticks = number as f64 / rate.to_f64() / info.time_base.to_f64();
        Some(from.max(0).saturating_add(ticks as i64))
    };
    Ok(known.or_else(estimate))
}

/// The frames of `source` that are in `range`, on a clock that begins with it.
pub fn within(source: AnySource, range: TimeRange) -> Result<AnySource, SourceError> {
    if range.is_all() {
        return Ok(source);
    }
    match source {
        AnySource::Stream(source) => Ok(AnySource::Stream(Box::new(Ranged::new(source, range)?))),
        AnySource::Indexed(source) => Part::new(source, range).map(AnySource::indexed),
    }
}

/// The same, with the frames beside its cuts noted, where both are given as times.
pub fn watched(source: AnySource, range: TimeRange, log: SeamLog) -> Result<AnySource, SourceError> {
    let AnySource::Stream(source) = source else {
        return within(source, range);
    };
    let base = source.info().time_base;
    let tick = |point: Option<Point>| match point {
        Some(Point::Time(nanos)) => Some(base.tick_at(nanos)),
        _ => None,
    };
    let (start, end) = (tick(range.start), tick(range.end));
    within(AnySource::stream(SeamWatch::new(source, start, end, log)), range)
}

/// Frames that come one after another, from the start of a range to its end.
struct Ranged {
    inner: Box<dyn Source>,
    info: StreamInfo,
    range: TimeRange,
    /// The tick that the range begins at; that of its first frame, where frames are counted.
    start: Option<i64>,
    /// Frames that have come, in the range and before it.
    seen: u64,
    /// How many frames come before the range, where the source passes over some of them: known if the range
    /// begins at a frame.
    passed_over: Option<Option<u64>>,
    kept: u64,
    /// When the frame that came last is shown, in ticks.
    last: Option<i64>,
    /// A frame has said when it is shown.
    has_times: bool,
    ended: bool,
}

impl Ranged {
    fn new(mut inner: Box<dyn Source>, mut range: TimeRange) -> Result<Ranged, SourceError> {
        let mut info = inner.info().clone();
        let is_time = matches!(range.start, Some(Point::Time(_)));
        let counts = matches!(range.end, Some(Point::Frame(_))) || range.counts_all && is_time;
        let first = match range.start {
            Some(Point::Frame(frame)) => Some(frame),
            _ => None,
        };
        let begins = match range.start {
            None => Some(0),
            Some(Point::Time(start)) => Some(info.time_base.tick_at(start)),
            Some(Point::Frame(frame)) => inner.time_of(i64::MIN, frame)?,
        };
        #[cfg(feature = "ffmpeg")]
        if let Some(origin) = &mut info.origin {
            origin.stretch = range.stretch(inner.as_mut(), begins)?;
        }
        if let (Some(Point::Frame(_)), false, Some(tick)) = (range.start, counts, begins) {
            range.start = Some(Point::Time(info.time_base.nanos(tick)));
        }
        let start = match range.start {
            Some(Point::Frame(_)) => None,
            _ => begins,
        };
        let mut passed_over = None;
        if let Some(start) = start.filter(|&start| start > 0 && !counts) {
            inner.pass_over(start);
            passed_over = Some(first);
        }
        info.frames = range.count(&info);
        info.frames_are_estimated |= range.goes_by_time() && !info.has_a_tick_a_frame();
        // A number of frames is a fact, unless the input ends before.
        info.frames_are_estimated &= range.frames.is_none() || info.frames != range.frames;
        Ok(Ranged {
            inner,
            info,
            range,
            start,
            seen: 0,
            passed_over,
            kept: 0,
            last: None,
            has_times: false,
            ended: false,
        })
    }

    /// True if a frame, the `number`th and shown at tick `at`, comes before the range.
    fn is_before(&self, number: u64, at: i64) -> bool {
        match (self.range.start, self.start) {
            (Some(Point::Frame(first)), _) => number < first,
            (_, Some(start)) => at < start,
            (_, None) => false,
        }
    }

    /// True if a frame comes after the range, which begins at tick `start`.
    fn is_after(&self, number: u64, at: i64, start: i64) -> bool {
        let base = self.info.time_base;
        let is_past = |point: Point| match point {
            Point::Frame(frame) => number >= frame,
            Point::Time(end) => at >= base.tick_at(end),
        };
        let is_long = |length: Point| match length {
            Point::Frame(frames) => self.kept >= frames,
            Point::Time(length) => {
                // From the time that was written, not from the tick behind it.
                let begins = match self.range.start {
                    Some(Point::Time(begins)) => begins,
                    _ => base.nanos(start),
                };
                at >= base.tick_at(begins.saturating_add(length))
            }
        };
        self.range.end.is_some_and(is_past) || self.range.duration.is_some_and(is_long)
    }

    /// True once as many frames have come as there may be, so that none need be read to know it.
    fn is_full(&self) -> bool {
        let length = match self.range.duration {
            Some(Point::Frame(frames)) => Some(frames),
            _ => None,
        };
        [self.range.frames, length]
            .into_iter()
            .flatten()
            .any(|most| self.kept >= most)
    }

    /// When frame `number` is shown that does not say so: behind the last one that did, or in a bare stream
    /// by its number.
    fn guessed_time(&self, number: u64) -> i64 {
        match self.last {
            Some(last) if self.has_times => last + self.time_by_rate(1).max(1),
            _ => self.time_by_rate(number),
        }
    }

    /// When frame `number` of a bare stream is shown, in ticks, by its frame rate.
    fn time_by_rate(&self, number: u64) -> i64 {
        let (base, rate) = (
            self.info.time_base,
            self.info.frame_rate.unwrap_or(Rational { num: 25, den: 1 }),
        );
        let ticks = i128::from(number) * i128::from(rate.den) * i128::from(base.den);
        ticks.div_euclid((i128::from(rate.num) * i128::from(base.num)).max(1)) as i64
    }

    fn invalid(&self, problem: String) -> SourceError {
        SourceError::Invalid {
            path: self.info.description.clone(),
            problem,
        }
    }
}

/// Has no [`Source::inner`]: frames are timed and numbered from where the range begins.
impl Source for Ranged {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let mut found_end = false;
        while !self.ended && !self.is_full() {
            let Some(mut frame) = self.inner.next(supply)? else {
                found_end = true;
                break;
            };
            let number = self.seen;
            self.seen += 1;
            let at = frame.metadata.pts.unwrap_or_else(|| self.guessed_time(number));
            self.has_times |= frame.metadata.pts.is_some();
            self.last = Some(at);
            if self.is_before(number, at) {
                continue;
            }
            let start = *self.start.get_or_insert(at);
            if self.is_after(number, at, start) {
                break;
            }
            frame.metadata.pts = frame.metadata.pts.map(|pts| pts - start);
            frame.metadata.skipped = Skipped {
                ticks: start,
                frames: self.passed_over.unwrap_or(Some(number - self.kept)),
            };
            frame.sequence = self.kept;
            self.kept += 1;
            return Ok(Some(frame));
        }
        self.ended = true;
        if self.kept == 0 {
            let last = self.last.map(|last| {
                let last = Point::Time(self.info.time_base.nanos(last));
                let which = if found_end { "last" } else { "next" };
                format!(": the {which} one is shown at {last}")
            });
            let clock = self.info.late_start.map(late_start_sentence);
            let clock = clock.map_or_else(String::new, |sentence| format!("; {sentence}"));
            return Err(self.invalid(format!(
                "no frame lies in the range{}{clock}",
                last.unwrap_or_default()
            )));
        }
        Ok(None)
    }

    fn held_buffers(&self) -> usize {
        self.inner.held_buffers()
    }

    fn remarks(&mut self) -> Remarks {
        self.inner.remarks()
    }
}

/// A range of frames that can be read in any order.
struct Part {
    inner: Arc<dyn IndexedSource>,
    info: StreamInfo,
    first: u64,
    len: u64,
}

impl Part {
    fn new(inner: Arc<dyn IndexedSource>, range: TimeRange) -> Result<Part, SourceError> {
        let mut info = inner.info().clone();
        let invalid = |problem: String| SourceError::Invalid {
            path: info.description.clone(),
            problem,
        };
        let Some((first, end)) = range.numbers(info.frame_rate) else {
            return Err(invalid(
                "it has no frame rate, so that a range is in frames, such as 120f".to_owned(),
            ));
        };
        let end = end.unwrap_or(u64::MAX).min(inner.len());
        if first >= end {
            return Err(invalid(format!(
                "no frame lies in the range; it holds {}",
                inner.len()
            )));
        }
        info.frames = Some(end - first);
        Ok(Part {
            inner,
            info,
            first,
            len: end - first,
        })
    }
}

impl IndexedSource for Part {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn prepare(&self) -> Result<(), SourceError> {
        self.inner.prepare()
    }

    fn read(&self, index: u64, buffer: Buffer) -> Result<Frame, SourceError> {
        let mut frame = self.inner.read(self.first + index, buffer)?;
        frame.sequence = index;
        frame.metadata.pts = frame.metadata.pts.map(|pts| pts - self.first as i64);
        frame.metadata.skipped = Skipped {
            ticks: self.first as i64,
            frames: Some(self.first),
        };
        Ok(frame)
    }

    fn remarks(&self) -> Remarks {
        self.inner.remarks()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_numbers_of_frames_at_a_rate() {
        let second = |n: f64| Some(Point::Time((n * 1e9) as i64));
        let rate = Some(Rational { num: 25, den: 1 });
        let numbers = |start, end, duration, frames| {
            TimeRange::new(start, end, duration, frames)
                .map_err(|e| e.to_string())
                .map(|range| range.numbers(rate).unwrap())
        };
        assert_eq!(numbers(None, None, None, None), Ok((0, None)));
        assert_eq!(numbers(second(1.0), second(2.0), None, None), Ok((25, Some(50))));
        assert_eq!(numbers(second(0.01), None, second(0.04), None), Ok((1, Some(2))));
        assert_eq!(
            numbers(Some(Point::Frame(7)), None, None, Some(3)),
            Ok((7, Some(10)))
        );
        assert_eq!(
            numbers(None, Some(Point::Frame(9)), second(0.1), None),
            Ok((0, Some(3)))
        );
        assert!(numbers(second(2.0), second(2.0), None, None).is_err());
        assert!(numbers(None, second(0.0), None, None).is_err());
        assert!(numbers(None, None, None, Some(0)).is_err());
        let range = TimeRange::new(second(1.0), None, None, None).unwrap();
        assert_eq!(range.numbers(None), None);
    }
}
