//! Steps from picture to picture, to find where some are missing.
//!
//! ```text
//! shown at   0  40  80 120             360 400 ...    ms
//! steps        40  40  40      240       40           5 pictures fit in between and are not there
//! ```
//!
//! A container that loses a piece in the middle (zeros in the place of its bytes) goes on behind it as if
//! nothing were missing. Only where nearly all steps are the same can a longer one be taken for a hole, and
//! only if the picture before it was not stated to last so long.

use crate::frame::Rational;
use std::collections::BTreeMap;

/// Kinds of steps that are counted; a video with more has no rate.
const MOST_KINDS: usize = 256;

/// Longer steps than the usual one that are kept.
const MOST_LONG: usize = 4096;

/// Steps that must have been seen.
const FEWEST: u64 = 8;

/// The steps of a stream, in ticks of its time base.
#[derive(Debug, Default)]
pub(in crate::source::video) struct Steps {
    last: Option<Shown>,
    kinds: BTreeMap<i64, u64>,
    /// Steps that are longer than any before by half, or were: where they begin, and how long they are.
    long: Vec<(i64, i64)>,
    count: u64,
}

#[derive(Debug, Clone, Copy)]
struct Shown {
    at: i64,
    lasts: i64,
    epoch: usize,
}

impl Steps {
    /// A picture that is shown at `at` for `lasts`, after so many jumps of the clock.
    pub(in crate::source::video) fn note(&mut self, at: Option<i64>, lasts: Option<i64>, epoch: usize) {
        let Some(at) = at else {
            self.last = None;
            return;
        };
        let shown = Shown {
            at,
            lasts: lasts.unwrap_or(0),
            epoch,
        };
        let Some(before) = self.last.replace(shown) else {
            return;
        };
        let step = at - before.at;
        if step <= 0 || before.epoch != epoch {
            return;
        }
        self.count += 1;
        if self.kinds.len() < MOST_KINDS || self.kinds.contains_key(&step) {
            *self.kinds.entry(step).or_default() += 1;
        }
        let stated = before.lasts.saturating_mul(4) >= step.saturating_mul(3);
        if !stated && self.long.len() < MOST_LONG {
            let usual = self.usual().unwrap_or(step);
            if is_long(step, usual) || self.count < FEWEST {
                self.long.push((before.at, step));
            }
        }
    }

    /// The step that most pictures take.
    fn usual(&self) -> Option<i64> {
        let most = self.kinds.iter().max_by_key(|&(_, &count)| count);
        most.map(|(&step, _)| step)
    }

    /// Where pictures are missing, and how many would fit there; empty for a stream without a rate.
    fn holes(&self) -> Vec<(i64, u64)> {
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
        let holes: Vec<(i64, u64)> = self
            .long
            .iter()
            .filter(|&&(_, step)| is_long(step, usual))
            .map(|&(at, step)| (at, ((step + usual / 2) / usual - 1).max(1) as u64))
            .collect();
        let explained = regular + holes.len() as u64;
        let is_fixed = self.count >= FEWEST && regular * 20 >= self.count * 19 && explained == self.count;
        if is_fixed { holes } else { Vec::new() }
    }

    /// The pictures that are missing, as a sentence.
    pub(in crate::source::video) fn sentence(&self, base: Rational) -> Option<String> {
        let holes = self.holes();
        let &(at, _) = holes.first()?;
        let missing: u64 = holes.iter().map(|&(_, missing)| missing).sum();
        let seconds = at as f64 * base.to_f64();
        let places = match holes.len() {
            1 => "at one place".to_owned(),
            n => format!("at {n} places, first"),
        };
        Some(match missing {
            1 => format!("1 frame is missing {places} after {seconds:.3} s"),
            n => format!("{n} frames are missing {places} after {seconds:.3} s"),
        })
    }
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
            steps.note(Some(at), Some(lasts), 0);
        }
        steps
    }

    #[test]
    fn holes_of_a_fixed_rate_are_counted() {
        let base = Rational { num: 1, den: 1000 };
        let times = (0..100).filter(|n| !(50..60).contains(n)).map(|n| n * 40);
        let found = steps(times, 40);
        assert_eq!(found.holes(), [(49 * 40, 10)]);
        assert_eq!(
            found.sentence(base).as_deref(),
            Some("10 frames are missing at one place after 1.960 s")
        );
        // 30 frames a second in milliseconds, a hole near the beginning and one of a single frame.
        let times = (0..300)
            .filter(|n| ![2, 3, 100].contains(n))
            .map(|n: i64| (n * 1000 + 15) / 30);
        assert_eq!(
            steps(times, 33).holes().iter().map(|h| h.1).collect::<Vec<_>>(),
            [2, 1]
        );
    }

    #[test]
    fn what_the_container_states_is_no_hole() {
        let mut found = Steps::default();
        for n in 0..50 {
            found.note(
                Some(if n < 25 { n * 40 } else { n * 40 + 2000 }),
                Some(if n == 24 { 2040 } else { 40 }),
                0,
            );
        }
        assert!(found.holes().is_empty());
        // Neither is a jump of the clock, nor anything in a stream without a rate.
        let mut found = Steps::default();
        for n in 0..50 {
            found.note(
                Some(n * 40 + if n < 25 { 0 } else { 9000 }),
                Some(40),
                usize::from(n >= 25),
            );
        }
        assert!(found.holes().is_empty());
        let times = (0..90).map(|n: i64| n * 40 + (n * n * 7919) % 30 + 200 * (n / 4));
        assert!(steps(times, 0).holes().is_empty());
        assert!(steps((0..90).map(|n| n * 40), 40).holes().is_empty());
    }
}
