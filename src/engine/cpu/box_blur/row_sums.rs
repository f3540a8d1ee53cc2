//! Horizontal sums of a box, for vectors of any width. A few samples of each sum are left out here and added
//! where the sums are used (see `sliding_window`).
#![allow(unsafe_code)]

use crate::engine::cpu::simd::vector::{Simd, TILE, Work};
use std::fmt;

/// Fewer samples than this are added where they are used; from here on they are summed by four, and from
/// [`LEAST_RUNNING`] on by prefix sums along the row. Where neighbours are side by side, so that few loads
/// straddle cache lines, they are summed by eight first if few of these make a sum.
const LEAST_FOURS: usize = 9;

const LEAST_RUNNING: usize = 17;

/// Samples of a row, at most, for rows to be made one by one.
const LONGEST_ALONE: usize = 4096;

/// How the samples of a row are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowSums {
    /// How many there are, an odd number up to 63.
    count: usize,
    /// From a sample to the next one of its channel, 1 to 4.
    step: usize,
    way: Way,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Where they are used.
    Alone,
    /// By sums of four or of eight (`part`), so many of which have a sample too few (`sign` 1) or too many
    /// (-1).
    Parts { part: usize, parts: usize, sign: i8 },
    /// By prefix sums: that up to the last sample less that before the first.
    Running,
}

/// Words of a cache line, of which running sums have one before those of the row's start.
const LINE: usize = 32;

/// Sums along a row that are yet to be made: of `count` words that are `step` words apart, and one of `more`
/// that is added, or taken away where `sign` is negative; none if it is 0.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    pub(super) words: &'a [u16],
    pub(super) count: usize,
    pub(super) step: usize,
    pub(super) more: &'a [u16],
    pub(super) sign: i8,
}

/// Numbers of parts, and the sign of the sample that they lack or have too many, which loops are compiled
/// for.
const WITH_ONE_MORE: [(usize, i8); 4] = [(2, 1), (3, -1), (3, 1), (4, -1)];

/// Running sums as such parts: one of them, less one.
pub(super) const RUNNING: (usize, i8) = (1, -1);

impl Way {
    /// By sums of `part` samples, if few of them and one sample make `count`.
    fn by(part: usize, count: usize) -> Option<Way> {
        let parts = (count + part / 2) / part;
        let sign = match (parts * part) as i64 - count as i64 {
            -1 => 1,
            1 => -1,
            _ => return None,
        };
        WITH_ONE_MORE
            .contains(&(parts, sign))
            .then_some(Way::Parts { part, parts, sign })
    }
}

impl fmt::Display for RowSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.way {
            Way::Alone => f.write_str("samples"),
            Way::Parts { part, .. } => write!(f, "sums of {part}"),
            Way::Running => f.write_str("prefix sums"),
        }
    }
}

impl RowSums {
    /// Sums of `count` samples, `step` apart.
    pub(super) fn new(count: usize, step: usize) -> RowSums {
        let way = match count {
            ..LEAST_FOURS => Some(Way::Alone),
            LEAST_FOURS..LEAST_RUNNING => Way::by(4, count),
            _ if step == 1 => Way::by(8, count),
            _ => None,
        };
        let way = way.unwrap_or(Way::Running);
        RowSums { count, step, way }
    }

    /// True if two rows of so many samples are made at a time: where the first-level cache does not hold the
    /// windows' sums until the next row.
    pub(super) fn suits_two_rows(&self, samples: usize) -> bool {
        self.way == Way::Running && samples > LONGEST_ALONE
    }

    /// From the first sample of a sum to the last one.
    fn across(&self) -> usize {
        (self.count - 1) * self.step
    }

    /// Sums of four samples and of eight that are needed for `made` sums by so many parts: to the end of a
    /// step.
    fn fours_and_eights(&self, part: usize, parts: usize, made: usize) -> [usize; 2] {
        let last = (made + (parts - 1) * part * self.step).next_multiple_of(TILE);
        match part {
            4 => [last, 0],
            _ => [(last + 4 * self.step).next_multiple_of(TILE), last],
        }
    }

    /// How many samples are read for `made` sums, a multiple of [`TILE`], and words are written on the way,
    /// at most.
    pub(super) fn reach(&self, made: usize) -> usize {
        let alone = made + self.across() + self.step;
        match self.way {
            Way::Alone => alone,
            Way::Parts { part, parts, .. } => {
                let [fours, _] = self.fours_and_eights(part, parts, made);
                // A sample too many is read, too.
                fours.max(alone + self.step) + 3 * self.step
            }
            Way::Running => LINE + alone + TILE,
        }
    }

    /// Adds up all but a few samples of a row for `made` sums (a multiple of [`TILE`]), of which the first
    /// one's samples begin at `lead`. There have to be [so many](RowSums::reach) words from there on, and
    /// room for as many and those before them.
    pub(super) fn add_up<'a, L: Simd>(
        &self,
        simd: L,
        words: &'a [u16],
        lead: usize,
        [fours_or_all, sums_of_eight]: [&'a mut [u16]; 2],
        made: usize,
    ) -> Rest<'a> {
        let (step, first) = (self.step, &words[lead..]);
        match self.way {
            Way::Alone => Rest {
                words: first,
                count: self.count,
                step,
                more: first,
                sign: 0,
            },
            Way::Parts { part, parts, sign } => {
                let [fours, eights] = self.fours_and_eights(part, parts, made);
                let sums_of_four = &mut fours_or_all[..fours];
                simd.enter(AddParts::<4>::new(first, step, sums_of_four));
                let sums = if part == 4 {
                    &*sums_of_four
                } else {
                    let sums_of_eight = &mut sums_of_eight[..eights];
                    simd.enter(AddParts::<2>::new(sums_of_four, 4 * step, sums_of_eight));
                    &*sums_of_eight
                };
                Rest {
                    words: sums,
                    count: parts,
                    step: part * step,
                    more: &first[self.count.min(parts * part) * step..],
                    sign,
                }
            }
            Way::Running => {
                let all = (lead + made + self.across()).next_multiple_of(TILE);
                let (none, running) = fours_or_all[..LINE + all].split_at_mut(LINE);
                none.fill(0);
                let words = &words[..all];
                match step {
                    1 => simd.enter(AddAlong::<1>(words, running)),
                    2 => simd.enter(AddAlong::<2>(words, running)),
                    3 => simd.enter(AddAlong::<3>(words, running)),
                    _ => simd.enter(AddAlong::<4>(words, running)),
                }
                Rest {
                    words: &fours_or_all[LINE + lead + self.across()..],
                    count: RUNNING.0,
                    step,
                    more: &fours_or_all[LINE + lead - step..],
                    sign: RUNNING.1,
                }
            }
        }
    }
}

/// Adds up `PARTS` words each.
struct AddParts<'a, const PARTS: usize> {
    words: *const u16,
    step: usize,
    out: &'a mut [u16],
}

impl<'a, const PARTS: usize> AddParts<'a, PARTS> {
    fn new(words: &[u16], step: usize, out: &'a mut [u16]) -> AddParts<'a, PARTS> {
        // Every read and every write is bounded by this.
        assert!(out.len().is_multiple_of(TILE) && words.len() >= out.len() + (PARTS - 1) * step);
        AddParts {
            words: words.as_ptr(),
            step,
            out,
        }
    }
}

impl<const PARTS: usize> Work for AddParts<'_, PARTS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        for x in (0..self.out.len()).step_by(2 * L::LANES) {
            // SAFETY: x + 2 LANES is at most the length of `out`, and `new` asserted that words go on PARTS -
            // 1 steps further.
            unsafe {
                let sum = add_steps::<L, PARTS>(simd, self.words.add(x), self.step);
                simd.store(self.out.as_mut_ptr().add(x), sum);
            }
        }
    }
}

/// Adds each word up with all before it that are a multiple of `C` places away; both rows are a multiple of
/// [`TILE`] long, and as long.
struct AddAlong<'a, const C: usize>(&'a [u16], &'a mut [u16]);

impl<const C: usize> Work for AddAlong<'_, C> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let AddAlong(words, out) = self;
        let mut before = simd.splat(0);
        for (words, out) in words
            .chunks_exact(2 * L::LANES)
            .zip(out.chunks_exact_mut(2 * L::LANES))
        {
            // SAFETY: each is a vector.
            unsafe {
                let [sums, next] = simd.running_sums::<C>(simd.load(words.as_ptr()), before);
                simd.store(out.as_mut_ptr(), sums);
                before = next;
            }
        }
    }
}

/// The sum of `COUNT` vectors of words that are `step` words apart.
#[inline(always)]
pub(super) unsafe fn add_steps<L: Simd, const COUNT: usize>(simd: L, from: *const u16, step: usize) -> L::V {
    // SAFETY: 2 LANES words are readable at each of COUNT places, `step` words apart, from `from` on.
    unsafe {
        let mut sum = simd.load(from);
        for k in 1..COUNT {
            sum = simd.add_words(sum, simd.load(from.add(k * step)));
        }
        sum
    }
}
