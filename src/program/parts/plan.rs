//! The plan: all that decides the result, and the parts.

use super::Identity;
use crate::frame::Rational;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::PathBuf;
use xxhash_rust::xxh3::xxh3_128;

/// The version of the job folder's form.
pub(super) const FORMAT: u32 = 1;

/// A job, settled before any part of it is made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of this form; 1.
    pub format: u32,
    /// The hash of all other fields, in hexadecimal digits.
    pub id: String,
    /// The version of framepipe, which every part must be made by.
    pub framepipe: String,
    /// FFmpeg's libraries, which decide what is decoded and encoded.
    pub libraries: String,
    /// The input as the user named it, absolute.
    pub input: String,
    /// What the input is known by.
    pub identity: Identity,
    /// The output as the user named it, absolute.
    pub output: PathBuf,
    /// What the output is.
    pub output_kind: OutputKind,
    /// The options of `framepipe filter` that decide the result, in its words.
    pub options: Vec<String>,
    /// The filters as every engine computes them.
    pub filters: Vec<PinnedFilter>,
    /// The input's time base, numerator and denominator of a second.
    pub time_base: (i32, i32),
    /// Where the job begins, in ticks; 0 if it begins with the input.
    pub start: i64,
    /// The number of the first image file, where their names are made from numbers of the job's own.
    pub first_number: Option<i64>,
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// Why there is one part only, where more were wanted: the end of a sentence.
    pub uncut: Option<String>,
}

/// What the parts are put together to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutputKind {
    /// A video file: parts hold its filtered stream, and the others are copied from the input at the join.
    Video,
    /// Image files, which parts write under their final names.
    Images,
    /// Any other file: there is one part, which is the whole of it.
    File,
}

/// A filter and its integers, so that a build that makes others of it refuses the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedFilter {
    /// What the user asked for.
    pub name: String,
    /// The hash of the integers of its plan for the input's format.
    pub integers: String,
}

/// Frames that are made in one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// Which.
    pub extent: Extent,
    /// How many frames it has, where that is known.
    pub frames: Option<u64>,
    /// How many come before it, where that is known.
    pub before: Option<u64>,
}

/// A range of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Frames shown at `begin` or later, in ticks, and before `end`. None is the input's own.
    Ticks {
        /// The first tick.
        begin: Option<i64>,
        /// The one behind the last.
        end: Option<i64>,
    },
    /// Frames by their numbers, `begin` and one behind the last.
    Frames {
        /// The first.
        begin: u64,
        /// The one behind the last.
        end: u64,
    },
}

impl Extent {
    /// How many frames it has, where they are known by their numbers.
    pub fn frames(self) -> Option<u64> {
        match self {
            Extent::Frames { begin, end } => Some(end - begin),
            Extent::Ticks { .. } => None,
        }
    }
}

impl PinnedFilter {
    /// A filter of that name; of what is said of its integers the hash is kept.
    pub fn new(name: String, integers: &str) -> PinnedFilter {
        PinnedFilter {
            name,
            integers: format!("{:032x}", xxh3_128(integers.as_bytes())),
        }
    }
}

impl Plan {
    /// The same with its form and its id.
    pub fn sealed(mut self) -> Plan {
        self.format = FORMAT;
        self.id = self.digest();
        self
    }

    /// The input's time base.
    pub fn base(&self) -> Rational {
        let (num, den) = self.time_base;
        Rational { num, den }
    }

    /// True if the id is that of the rest.
    pub fn is_sealed(&self) -> bool {
        self.id == self.digest()
    }

    /// The hash of all but the id.
    fn digest(&self) -> String {
        let mut blank = self.clone();
        blank.id = String::new();
        // A plan is numbers and texts, which JSON can always say.
        let text = serde_json::to_vec(&blank).unwrap_or_default();
        format!("{:032x}", xxh3_128(&text))
    }
}

/// Parts between `start` and `end` that meet at `cuts`, in ticks.
pub fn time_extents(start: Option<i64>, cuts: &[i64], end: Option<i64>) -> Vec<Extent> {
    let begins = std::iter::once(start).chain(cuts.iter().copied().map(Some));
    let ends = cuts.iter().copied().map(Some).chain(std::iter::once(end));
    begins
        .zip(ends)
        .map(|(begin, end)| Extent::Ticks { begin, end })
        .collect()
}

/// At most `parts` parts of these frames, whose lengths differ by one at most.
pub fn frame_extents(frames: Range<u64>, parts: u32) -> Vec<Extent> {
    let count = frames.end.saturating_sub(frames.start);
    let parts = u64::from(parts).clamp(1, count.max(1));
    let place = |k: u64| frames.start + (u128::from(count) * u128::from(k) / u128::from(parts)) as u64;
    (0..parts)
        .map(|k| Extent::Frames {
            begin: place(k),
            end: place(k + 1),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_every_frame_once() {
        for frames in [1, 2, 7, 100, 101] {
            for parts in [1, 2, 7, 22, 1000] {
                let mut next = 0;
                let extents = frame_extents(0..frames, parts);
                assert_eq!(extents.len() as u64, frames.min(u64::from(parts)));
                for extent in extents {
                    let Extent::Frames { begin, end } = extent else {
                        panic!("ticks");
                    };
                    assert_eq!(begin, next);
                    assert!(end > begin);
                    next = end;
                }
                assert_eq!(next, frames);
            }
        }
        assert_eq!(
            time_extents(None, &[5, 9], Some(20)),
            [
                Extent::Ticks {
                    begin: None,
                    end: Some(5)
                },
                Extent::Ticks {
                    begin: Some(5),
                    end: Some(9)
                },
                Extent::Ticks {
                    begin: Some(9),
                    end: Some(20)
                },
            ]
        );
    }
}
