//! Steps from picture to picture, to find where some are missing.
//!
//! ```text
//! shown at   0  40  80 120             360 400 ...    ms
//! steps        40  40  40      240       40           5 pictures fit in between and are not there
//! ```
//!
//! A container that loses a piece in the middle (zeros in the place of its bytes) goes on behind it as if
//! nothing were missing. Only where nearly all steps are the same can a longer one be taken for a hole, and
//! only if the picture before it was not stated to last so long. Whether it is one, `holes` finds out.

use crate::frame::Rational;
use crate::wording::counted;
use std::collections::{BTreeMap, BTreeSet};

/// Kinds of steps that are counted; a video with more has no rate.
const MOST_KINDS: usize = 256;

/// Longer steps than the usual one that are kept.
const MOST_LONG: usize = 4096;

/// Steps that must have been seen; behind the last hole, too, where reading stops before the end of the
/// stream.
const FEWEST: u64 = 8;

/// The steps of a stream, in ticks of its time base.
#[derive(Debug, Default)]
pub(in crate::source::video) struct Steps {
    last: Option<Shown>,
    kinds: BTreeMap<i64, u64>,
    /// Steps that are longer than any before by half, or were: where they begin, how long they are, and how
    /// many steps there were with them.
    long: Vec<(i64, i64, u64)>,
    /// The step from the first picture to the second.
    first: Option<i64>,
    count: u64,
    seams: Seams,
    /// A packet is shown before one that came earlier.
    goes_back: bool,
    /// The stream was read to its end.
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    at: i64,
    lasts: i64,
}

/// Where the clock jumps, by the packets that were read: pictures come out of the decoder later.
#[derive(Debug, Default)]
struct Seams {
    /// The largest time before each jump, in ascending order.
    times: Vec<i64>,
    epoch: usize,
    /// The largest time so far.
    latest: Option<i64>,
}

impl Seams {
    /// True if the clock jumps between a picture and the next one.
    fn lie_between(&self, at: i64, next: i64) -> bool {
        let first = self.times.partition_point(|&seam| seam < at);
        self.times.get(first).is_some_and(|&seam| seam < next)
    }
}

impl Steps {
    /// A packet that was read, which is shown at `at`, after so many jumps of the clock.
    pub(in crate::source::video) fn note_packet(&mut self, at: Option<i64>, epoch: usize) {
        let seams = &mut self.seams;
        if epoch != seams.epoch {
            seams.epoch = epoch;
            seams.times.extend(seams.latest);
        }
        self.goes_back |= at.is_some() && at < seams.latest;
        seams.latest = seams.latest.max(at);
    }

    /// True if packets come in another order than their pictures are shown in.
    pub(in crate::source::video) fn goes_back(&self) -> bool {
        self.goes_back
    }

    /// A picture that is shown at `at` for `lasts`.
    pub(in crate::source::video) fn note(&mut self, at: Option<i64>, lasts: Option<i64>) {
        let Some(at) = at else {
            self.last = None;
            return;
        };
        let shown = Shown {
            at,
            lasts: lasts.unwrap_or(0),
        };
        let Some(before) = self.last.replace(shown) else {
            return;
        };
        let step = at - before.at;
        if step <= 0 || self.seams.lie_between(before.at, at) {
            return;
        }
        self.count += 1;
        if self.count == 1 {
            self.first = Some(step);
        }
        if self.kinds.len() < MOST_KINDS || self.kinds.contains_key(&step) {
            *self.kinds.entry(step).or_default() += 1;
        }
        let stated = before.lasts.saturating_mul(4) >= step.saturating_mul(3);
        if !stated && self.long.len() < MOST_LONG {
            let usual = self.usual().unwrap_or(step);
            if is_long(step, usual) || self.count < FEWEST {
                self.long.push((before.at, step, self.count));
            }
        }
    }

    /// Notes that the stream was read to its end.
    pub(in crate::source::video) fn end(&mut self) {
        self.ended = true;
    }

    /// The step from the first picture to the second.
    pub(in crate::source::video) fn first(&self) -> Option<i64> {
        self.first
    }

    /// The step that most pictures take.
    fn usual(&self) -> Option<i64> {
        let most = self.kinds.iter().max_by_key(|&(_, &count)| count);
        most.map(|(&step, _)| step)
    }

    /// Where pictures seem to be missing; empty for a stream without a rate. Steps in `stated` are no holes:
    /// a picture was said to last so long.
    pub(in crate::source::video) fn holes(&self, stated: &BTreeSet<i64>) -> Vec<Hole> {
        let Some(usual) = self.usual() else {
            return Vec::new();
        };
        // Containers round to milliseconds, so that a step may be a tick more or less.
        let is_usual = |step: i64| (step - usual).abs() <= (usual / 8).max(1);
        let regular: u64 = self
            .kinds
            .iter()
            .filter(|&(&step, _)| is_usual(step))
            .map(|(_, &count)| count)
            .sum();
        // A container that brings forward its sound may move all pictures but the first.
        let is_moved = |step: i64, count: u64| count == 1 && 8 * step < 15 * usual;
        let long: Vec<_> = (self.long.iter())
            .filter(|&&(_, step, _)| is_long(step, usual))
            .collect();
        let holes: Vec<Hole> = (long.iter())
            .filter(|&&&(_, step, count)| !is_moved(step, count) && !stated.contains(&step))
            .map(|&&(at, step, _)| Hole {
                at,
                step,
                missing: ((step + usual / 2) / usual - 1).max(1) as u64,
            })
            .collect();
        let behind = long.last().map_or(0, |&&(_, _, count)| self.count - count);
        if !self.ended && behind < FEWEST {
            // A rate that changes where reading stops looks the same.
            return Vec::new();
        }
        let is_odd = |step: i64| !is_usual(step) && !is_long(step, usual);
        let explained = regular + long.len() as u64 + u64::from(self.first.is_some_and(is_odd));
        let is_fixed = self.count >= FEWEST && regular * 20 >= self.count * 19 && explained == self.count;
        if is_fixed { holes } else { Vec::new() }
    }
}

/// A longer step than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) struct Hole {
    /// When the picture before it is shown, and how long after that the next one is, in ticks.
    pub(in crate::source::video) at: i64,
    pub(in crate::source::video) step: i64,
    /// Pictures that fit in between.
    missing: u64,
}

/// How many pictures are missing in `holes`.
pub(in crate::source::video) fn missing_in(holes: &[Hole]) -> u64 {
    holes.iter().map(|hole| hole.missing).sum()
}

/// The pictures that are missing in `holes`, as a sentence; `base` is the seconds of a tick.
pub(in crate::source::video) fn missing_sentence(holes: &[Hole], base: Rational) -> Option<String> {
    let seconds = holes.first()?.at as f64 * base.to_f64();
    let missing = missing_in(holes);
    let places = match holes.len() {
        1 => "at one place".to_owned(),
        n => format!("at {n} places, first"),
    };
    Some(match missing {
        1 => format!("1 frame is missing {places} after {seconds:.3} s"),
        n => format!("{n} frames are missing {places} after {seconds:.3} s"),
    })
}

/// Word of `holes` where nothing shows that pictures are missing.
pub(in crate::source::video) fn still_sentence(holes: &[Hole], base: Rational) -> Option<String> {
    let seconds = |ticks: i64| ticks as f64 * base.to_f64();
    let first = holes.first()?;
    let others = match holes.len() - 1 {
        0 => String::new(),
        n => format!(", and at {}", counted(n as u64, "further place")),
    };
    Some(format!(
        "no new picture is shown for {:.3} s after {:.3} s{others}: a picture that is held, or frames that \
         are missing",
        seconds(first.step),
        seconds(first.at)
    ))
}

/// True for a step that leaves out a picture.
fn is_long(step: i64, usual: i64) -> bool {
    2 * step > 3 * usual + 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(times: impl IntoIterator<Item = i64>, lasts: i64) -> Steps {
        let mut steps = Steps::default();
        for at in times {
            steps.note(Some(at), Some(lasts));
        }
        steps.end();
        steps
    }

    #[test]
    fn holes_of_a_fixed_rate_are_counted() {
        let times = (0..100).filter(|n| !(50..60).contains(n)).map(|n| n * 40);
        let hole = |at, step, missing| Hole { at, step, missing };
        let found = steps(times, 40).holes(&BTreeSet::new());
        assert_eq!(found, [hole(49 * 40, 440, 10)]);
        let base = Rational { num: 1, den: 1000 };
        assert_eq!(
            missing_sentence(&found, base).as_deref(),
            Some("10 frames are missing at one place after 1.960 s")
        );
        let said = still_sentence(&[found[0], found[0]], base).unwrap();
        let words = "no new picture is shown for 0.440 s after 1.960 s, and at 1 further place:";
        assert!(said.starts_with(words), "{said}");
        // 30 frames a second in milliseconds, a hole near the beginning and one of a single frame.
        let times = (0..300)
            .filter(|n| ![2, 3, 100].contains(n))
            .map(|n: i64| (n * 1000 + 15) / 30);
        let holes = steps(times, 33).holes(&BTreeSet::new());
        assert_eq!(holes.iter().map(|h| h.missing).collect::<Vec<_>>(), [2, 1]);
    }

    #[test]
    fn what_the_container_states_is_no_hole() {
        let mut found = Steps::default();
        for n in 0..50 {
            found.note(
                Some(if n < 25 { n * 40 } else { n * 40 + 2000 }),
                Some(if n == 24 { 2040 } else { 40 }),
            );
        }
        found.end();
        assert!(found.holes(&BTreeSet::new()).is_empty());
        // Neither is anything in a stream without a rate.
        let times = (0..90).map(|n: i64| n * 40 + (n * n * 7919) % 30 + 200 * (n / 4));
        assert!(steps(times, 0).holes(&BTreeSet::new()).is_empty());
        assert!(
            steps((0..90).map(|n| n * 40), 40)
                .holes(&BTreeSet::new())
                .is_empty()
        );
    }

    #[test]
    fn a_first_step_that_is_no_multiple_or_stated_is_no_hole() {
        // All but the first frame are moved by less than a frame, by one and a half, and by one.
        for (moved, missing) in [(10, 0), (22, 0), (60, 1), (40, 1)] {
            let found = steps([0].into_iter().chain((1..60).map(|n| n * 40 + moved)), 0);
            assert_eq!(found.holes(&BTreeSet::new()).len(), missing, "{moved}");
            assert!(found.holes(&BTreeSet::from([40 + moved])).is_empty(), "{moved}");
            // A true hole of another length is found behind it.
            let times = (1..60).filter(|&n| n != 30 && n != 31).map(|n| n * 40 + moved);
            let found = steps([0].into_iter().chain(times), 0);
            let holes = found.holes(&BTreeSet::from([40 + moved]));
            let places: Vec<(i64, u64)> = holes.iter().map(|hole| (hole.at, hole.missing)).collect();
            assert_eq!(places, [(29 * 40 + moved, 2)]);
        }
    }

    #[test]
    fn a_seam_of_the_clock_is_no_hole_while_pictures_before_it_are_still_in_the_decoder() {
        for (jumps, missing) in [(true, 0), (false, 1)] {
            let mut found = Steps::default();
            let at = |n: i64| n * 40 + if n < 25 { 0 } else { 60 };
            for n in 0..52 {
                found.note_packet(Some(at(n)), usize::from(jumps && n >= 25));
                if n >= 2 {
                    found.note(Some(at(n - 2)), Some(40));
                }
            }
            found.end();
            assert_eq!(found.holes(&BTreeSet::new()).len(), missing);
        }
    }

    #[test]
    fn a_longer_step_where_reading_stops_is_no_hole() {
        for (behind, missing) in [(1, 0), (7, 0), (8, 1)] {
            let mut found = steps((0..30).chain(35..36 + behind).map(|n| n * 40), 40);
            assert_eq!(found.holes(&BTreeSet::new()).len(), 1, "{behind}");
            found.ended = false;
            assert_eq!(found.holes(&BTreeSet::new()).len(), missing, "{behind}");
        }
    }
}
