//! The regions that are there at a moment, and their rectangles.
//!
//! Moments and the ends of periods are integers in one unit, so the position of a moving rectangle is a
//! rational number that is rounded once. Regions are sorted by their begin: a list with a line for each frame
//! takes one step per frame.

use super::rectangle::Rectangle;
use super::syntax::{Period, Region};
use super::{End, MOST_AT_ONCE, RegionError};
use crate::frame::{Metadata, Point, Rational};

/// Nanoseconds in a second.
const SECOND: i128 = 1_000_000_000;

/// The meaning of frames' times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Seconds of one tick of a timestamp.
    pub time_base: Rational,
    /// Frames per second, for frames without a timestamp. `None` if the input has no times (image files
    /// without a rate).
    pub frame_rate: Option<Rational>,
}

/// All regions of a run.
pub(super) struct Timeline {
    clock: Clock,
    always: Vec<Region>,
    timed: Lane,
    counted: Lane,
    /// For each region, true if it was there in some frame; always true without a period.
    met: Vec<bool>,
}

/// A region that is there at a moment.
pub(super) struct ActiveRegion<'a> {
    pub(super) region: &'a Region,
    pub(super) at: Rectangle,
}

/// Regions whose periods have the same unit.
#[derive(Default)]
struct Lane {
    /// The regions, sorted by their begin.
    stretches: Vec<Stretch>,
    /// Number of regions that have begun at the last moment.
    begun: usize,
    /// Indices of those of them that have not ended.
    there: Vec<usize>,
    last: Option<i128>,
    /// The first and the last of all moments.
    seen: Option<(i128, i128)>,
}

struct Stretch {
    from: i128,
    to: Option<i128>,
    region: Region,
    /// Its place in `Timeline::met`.
    number: usize,
}

impl Timeline {
    pub(super) fn new(regions: Vec<Region>, clock: Clock) -> Result<Timeline, RegionError> {
        let mut timeline = Timeline {
            clock,
            always: Vec::new(),
            timed: Lane::default(),
            counted: Lane::default(),
            met: vec![false; regions.len()],
        };
        // A tick is a whole number, too, of nanoseconds over the time base's denominator.
        let unit = i128::from(clock.time_base.den);
        for (number, region) in regions.into_iter().enumerate() {
            let (lane, from, to) = match region.period {
                Period::Always => {
                    timeline.always.push(region);
                    timeline.met[number] = true;
                    continue;
                }
                Period::Times(..) if clock.frame_rate.is_none() => {
                    return Err(RegionError::NoTimes(region.label));
                }
                Period::Times(from, to) => (
                    &mut timeline.timed,
                    i128::from(from) * unit,
                    to.map(|to| i128::from(to) * unit),
                ),
                Period::Frames(from, to) => (&mut timeline.counted, i128::from(from), to.map(i128::from)),
            };
            lane.stretches.push(Stretch {
                from,
                to,
                region,
                number,
            });
        }
        for lane in [&mut timeline.timed, &mut timeline.counted] {
            lane.stretches.sort_by_key(|stretch| stretch.from);
            let at_once = timeline.always.len() + lane.most_at_once();
            if at_once > MOST_AT_ONCE {
                return Err(RegionError::TooMany(at_once));
            }
        }
        Ok(timeline)
    }

    /// The regions of a frame, the `sequence`th of the run.
    pub(super) fn at(
        &mut self,
        sequence: u64,
        metadata: &Metadata,
    ) -> Result<Vec<ActiveRegion<'_>>, RegionError> {
        let number = metadata.place(sequence);
        if let (None, Some(stretch)) = (number, self.counted.stretches.first()) {
            return Err(RegionError::Uncounted(format!(
                "the region {}",
                stretch.region.label
            )));
        }
        let now = self.moment(sequence, metadata);
        let mut present: Vec<ActiveRegion<'_>> = self
            .always
            .iter()
            .map(|region| ActiveRegion {
                region,
                at: region.first,
            })
            .collect();
        let counted = number.map(i128::from);
        for (lane, now) in [(&mut self.timed, now), (&mut self.counted, counted)] {
            let Some(now) = now else { continue };
            lane.go_to(now);
            for &index in &lane.there {
                let stretch = &lane.stretches[index];
                self.met[stretch.number] = true;
                present.push(ActiveRegion {
                    region: &stretch.region,
                    at: stretch.at(now),
                });
            }
        }
        Ok(present)
    }

    /// The moment at which a frame is shown; `None` in an input without times.
    fn moment(&self, sequence: u64, metadata: &Metadata) -> Option<i128> {
        let (base, rate) = (self.clock.time_base, self.clock.frame_rate?);
        let ticks = metadata.pts.unwrap_or_else(|| {
            // The last tick that is not later than the frame, as in ranges.
            let ticks = i128::from(sequence) * i128::from(rate.den) * i128::from(base.den);
            ticks.div_euclid((i128::from(rate.num) * i128::from(base.num)).max(1)) as i64
        });
        let ticks = ticks.saturating_add(metadata.skipped.ticks);
        Some(i128::from(ticks) * i128::from(base.num) * SECOND)
    }

    /// All regions.
    pub(super) fn regions(&self) -> impl Iterator<Item = &Region> {
        let lanes = self.timed.stretches.iter().chain(&self.counted.stretches);
        self.always.iter().chain(lanes.map(|stretch| &stretch.region))
    }

    /// Number of regions that were there in no frame though their time lies in what was read, and the first
    /// of them as the user wrote it.
    pub(super) fn unmet(&self, read: (End, End)) -> Option<(usize, &str)> {
        let unit = i128::from(self.clock.time_base.den);
        let timed = self.timed.within(read, |point| match point {
            Point::Time(nanos) => Some(i128::from(nanos) * unit),
            Point::Frame(_) => None,
        });
        let counted = self.counted.within(read, |point| match point {
            Point::Frame(number) => Some(i128::from(number)),
            Point::Time(_) => None,
        });
        let unmet = timed.chain(counted).filter(|stretch| !self.met[stretch.number]);
        let unmet: Vec<&Stretch> = unmet.collect();
        let first = unmet.iter().min_by_key(|stretch| stretch.number)?;
        Some((unmet.len(), &first.region.label))
    }

    /// True if there are regions, and none of them was there in any frame.
    pub(super) fn met_none(&self) -> bool {
        !self.met.is_empty() && !self.met.contains(&true)
    }
}

impl Lane {
    /// Most regions that are there at one moment.
    fn most_at_once(&self) -> usize {
        let mut ends: Vec<i128> = self.stretches.iter().filter_map(|stretch| stretch.to).collect();
        ends.sort_unstable();
        let (mut most, mut ended) = (0, 0);
        for (begun, stretch) in self.stretches.iter().enumerate() {
            while ends.get(ended).is_some_and(|&end| end <= stretch.from) {
                ended += 1;
            }
            most = most.max(begun + 1 - ended);
        }
        most
    }

    /// The regions whose periods lie in `read`, at least in part. `moment` is a point in the lane's unit, if
    /// it has one; else the frames decide.
    fn within(
        &self,
        (from, to): (End, End),
        moment: impl Fn(Point) -> Option<i128>,
    ) -> impl Iterator<Item = &Stretch> {
        let bound = |end: End, frame: Option<i128>| match end {
            End::Input => None,
            End::At(point) => moment(point).or(frame),
            End::Frame => frame,
        };
        let from = bound(from, self.seen.map(|(first, _)| first));
        let to = bound(to, self.seen.map(|(_, last)| last + 1));
        self.stretches.iter().filter(move |stretch| {
            let ends_before = from.zip(stretch.to).is_some_and(|(from, end)| end <= from);
            !ends_before && to.is_none_or(|to| stretch.from < to)
        })
    }

    fn go_to(&mut self, now: i128) {
        if self.last.is_some_and(|last| now < last) {
            (self.begun, self.there) = (0, Vec::new());
        }
        self.last = Some(now);
        let (first, last) = self.seen.unwrap_or((now, now));
        self.seen = Some((first.min(now), last.max(now)));
        while self.stretches.get(self.begun).is_some_and(|s| s.from <= now) {
            self.there.push(self.begun);
            self.begun += 1;
        }
        let stretches = &self.stretches;
        self.there
            .retain(|&index| stretches[index].to.is_none_or(|to| now < to));
    }
}

impl Stretch {
    /// The rectangle at a moment of the period.
    fn at(&self, now: i128) -> Rectangle {
        let Region { first, last, .. } = self.region;
        let Some(to) = self.to.filter(|_| first != last) else {
            return first;
        };
        let (part, whole) = (now - self.from, to - self.from);
        let between = |first: i64, last: i64| first + rounded(i128::from(last - first), part, whole);
        Rectangle {
            x: between(first.x, last.x),
            y: between(first.y, last.y),
            width: between(first.width, last.width),
            height: between(first.height, last.height),
        }
    }
}

/// `way * part / whole`, halves rounded up, for `0 <= part < whole`. A way has 31 bits and a time 94, so the
/// product fits.
fn rounded(way: i128, part: i128, whole: i128) -> i64 {
    (2 * way * part + whole).div_euclid(2 * whole) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Skipped;

    const ALL: (End, End) = (End::Input, End::Input);

    fn clock(base: (i32, i32), rate: Option<(i32, i32)>) -> Clock {
        let rational = |(num, den)| Rational { num, den };
        Clock {
            time_base: rational(base),
            frame_rate: rate.map(rational),
        }
    }

    fn timeline(lines: &[&str], clock: Clock) -> Timeline {
        let regions = lines.iter().map(|line| line.parse().unwrap()).collect();
        Timeline::new(regions, clock).unwrap()
    }

    fn shown(pts: Option<i64>, ticks: i64, frames: Option<u64>) -> Metadata {
        Metadata {
            pts,
            skipped: Skipped { ticks, frames },
            ..Metadata::default()
        }
    }

    fn places(timeline: &mut Timeline, sequence: u64, metadata: &Metadata) -> Vec<String> {
        let present = timeline.at(sequence, metadata).unwrap();
        present.iter().map(|p| p.at.to_string()).collect()
    }

    #[test]
    fn rectangles_move_by_rationals_rounded_half_up() {
        // 30000/1001 frames a second: frame n is shown at n * 1001 / 30000 s.
        let mut line = timeline(
            &["1..2 10x20+0+0 -> 20x10+300-3"],
            clock((1001, 30000), Some((30000, 1001))),
        );
        for n in 0..70_i128 {
            let (num, den) = (n * 1001 - 30000, 30000);
            let way = |from: i128, to: i128| (2 * (from * den + (to - from) * num) + den).div_euclid(2 * den);
            let expected = match num {
                0..30000 => vec![format!(
                    "{}x{}{:+}{:+}",
                    way(10, 20),
                    way(20, 10),
                    way(0, 300),
                    way(0, -3)
                )],
                _ => vec![],
            };
            assert_eq!(
                places(&mut line, n as u64, &shown(Some(n as i64), 0, Some(0))),
                expected,
                "{n}"
            );
            // A frame without a timestamp goes by the rate.
            assert_eq!(
                places(&mut line, n as u64, &shown(None, 0, Some(0))),
                expected,
                "{n}"
            );
        }
        // Two and a half: half up, in either direction.
        let mut line = timeline(&["0f..2f 9x9+0+0 -> 9x9+5-5"], clock((1, 25), None));
        assert_eq!(places(&mut line, 1, &shown(None, 0, Some(0))), ["9x9+3-2"]);
    }

    #[test]
    fn the_longest_times_and_ways_are_no_overflow() {
        let text = "0..9223372036 1073741824x1-1073741824+0 -> 1x1073741824+1073741824+0";
        let (base, rate) = ((1, i32::MAX), Some((i32::MAX, 1)));
        let mut line = timeline(&[text], clock(base, rate));
        // An eighth of the way, less half a second of 292 years.
        let ticks = 9_223_372_036_i64 / 8 * i64::from(i32::MAX);
        let place = places(&mut line, 0, &shown(Some(ticks), 0, Some(0)));
        assert_eq!(place, ["939524096x134217729-805306368+0"]);
    }

    #[test]
    fn times_count_from_the_inputs_beginning_and_may_go_back() {
        let mut line = timeline(
            &["3..4 1x1+1+0", "..2 1x1+2+0", "75f..76f 1x1+3+0", "1x1+4+0"],
            clock((1, 25), Some((25, 1))),
        );
        let mut at = |sequence, pts, ticks, frames| {
            let metadata = shown(Some(pts), ticks, frames);
            places(&mut line, sequence, &metadata).concat()
        };
        assert_eq!(at(0, 0, 0, Some(0)), "1x1+4+01x1+2+0");
        assert_eq!(at(50, 50, 0, Some(0)), "1x1+4+0");
        assert_eq!(at(0, 0, 75, Some(75)), "1x1+4+01x1+1+01x1+3+0");
        assert_eq!(at(24, 24, 75, Some(75)), "1x1+4+01x1+1+0");
        assert_eq!(at(25, 25, 75, Some(75)), "1x1+4+0");
        assert_eq!(at(0, 1, 0, Some(0)), "1x1+4+01x1+2+0");
        assert!(matches!(
            line.at(0, &shown(Some(0), 75, None)),
            Err(RegionError::Uncounted(_))
        ));
        assert_eq!(line.unmet(ALL), None);
    }

    #[test]
    fn regions_outside_of_what_is_read_are_not_missed() {
        let seconds = |s: i64| End::At(Point::Time(s * 1_000_000_000));
        let frames = |n: u64| End::At(Point::Frame(n));
        // Frames 75 to 99 at 25 a second, of which one is missing: shown from 3 s on and before 4 s.
        let lines = [
            "..3 1x1+1+0",
            "2.9..3 1x1+2+0",
            "3.01..3.03 1x1+3+0",
            "3.97..3.98 1x1+4+0",
            "4.. 1x1+5+0",
            "70f..75f 1x1+6+0",
            "80f..81f 1x1+7+0",
            "100f.. 1x1+8+0",
        ];
        for (read, unmet) in [
            (ALL, vec![1, 2, 3, 4, 5, 6, 7, 8]),
            ((seconds(3), seconds(4)), vec![3, 4, 7]),
            ((seconds(3), seconds(5)), vec![3, 4, 5, 7]),
            ((seconds(2), End::Input), vec![1, 2, 3, 4, 5, 7, 8]),
            // Counted regions go by the counted range, and the others by the frames that came.
            ((frames(75), frames(100)), vec![3, 7]),
            ((frames(74), frames(101)), vec![3, 6, 7, 8]),
            ((seconds(3), End::Frame), vec![3, 7]),
            ((End::Frame, End::Frame), vec![3, 7]),
            ((End::Input, End::Frame), vec![1, 2, 3, 6, 7]),
        ] {
            let found: Vec<usize> = (1..)
                .zip(lines)
                .filter(|(_, text)| {
                    let mut line = timeline(&[*text], clock((1, 25), Some((25, 1))));
                    for n in (0..25).filter(|n| *n != 5) {
                        places(&mut line, n, &shown(Some(n as i64), 75, Some(75)));
                    }
                    assert!(line.met_none());
                    line.unmet(read).is_some()
                })
                .map(|(number, _)| number)
                .collect();
            assert_eq!(found, unmet, "{read:?}");
        }
        // Without a frame there is nothing to go by.
        let line = timeline(&["1..2 1x1+1+0"], clock((1, 25), Some((25, 1))));
        assert!(line.unmet((End::Frame, End::Frame)).is_some());
    }

    #[test]
    fn regions_that_no_frame_met_are_counted() {
        let mut line = timeline(
            &["9f..10f 1x1+0+0", "1x1+1+0", "0f.. 1x1+2+0", "7f.. 1x1+0+0"],
            clock((1, 25), None),
        );
        assert_eq!(places(&mut line, 0, &Metadata::default()).len(), 2);
        assert_eq!(line.unmet(ALL), Some((2, "9f..10f 1x1+0+0")));
        assert!(!line.met_none());
        let many = |line: fn(usize) -> String, count: usize| {
            let regions = (0..count).map(|n| line(n).parse().unwrap()).collect();
            Timeline::new(regions, clock((1, 25), Some((25, 1)))).err()
        };
        // One after another there may be any number, and at once there may not.
        assert!(many(|n| format!("{n}f..{}f 1x1+0+0", n + 9), 9000).is_none());
        assert!(many(|n| format!("{n}f..{}f 1x1+0+0", n + 4096), 9000).is_none());
        for (line, at_once) in [
            ((|_| "1x1+0+0".to_owned()) as fn(usize) -> String, 4097),
            (|n| format!("0:00.{n:04}.. 1x1+0+0"), 4097),
            (|n| format!("{n}f..{}f 1x1+0+0", n + 4097), 4097),
        ] {
            let refused = many(line, at_once).unwrap();
            assert!(matches!(refused, RegionError::TooMany(found) if found == at_once));
        }
        let timed = vec!["1..2 1x1+0+0".parse().unwrap()];
        let without = Timeline::new(timed, clock((1, 25), None));
        assert!(matches!(without, Err(RegionError::NoTimes(_))));
    }
}
