//! Horizontal sums of a box, for vectors of any width. The last few additions of each sum are left to the
//! loop that uses the sums (see `sliding_window`).
#![allow(unsafe_code)]

use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};
use std::fmt;

/// Fewest samples that are added in sums of four first.
const LEAST_FOURS: usize = 9;

/// Fewest samples that are added as prefix sums along the row. If neighbours lie side by side, sums of eight
/// are used instead where a few of them make a sum.
const LEAST_PREFIX: usize = 17;

/// Longest row, in samples, for which rows are made one by one.
const LONGEST_ALONE: usize = 4096;

/// How the samples of a row are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowSums {
    /// Samples of a sum, an odd number up to 63.
    count: usize,
    /// Samples from a pixel to the next, 1 to 4.
    pixel_stride: usize,
    method: RowMethod,
}

/// How a sum is added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RowMethod {
    /// Sample by sample, where the sum is used.
    Alone,
    /// From `parts` sums of `part` (four or eight) samples, and one sample that they lack (`sign` 1) or have
    /// too many (-1).
    Parts { part: usize, parts: usize, sign: i8 },
    /// From two prefix sums: the one up to the last sample, less the one before the first.
    Prefix,
}

/// Words of a cache line; the prefix sums of a row come after one line of zeros.
const LINE: usize = 32;

/// The additions that are left for a row's sums: `count` words that are `stride` words apart, and a
/// word of `more` to add (`sign` 1), to subtract (-1), or to ignore (0).
#[derive(Debug, Clone, Copy)]
pub(super) struct Rest<'a> {
    pub(super) words: &'a [u16],
    pub(super) count: usize,
    pub(super) stride: usize,
    pub(super) more: &'a [u16],
    pub(super) sign: i8,
}

/// The numbers of parts, with the sign of the further sample, that loops are compiled for.
const WITH_ONE_MORE: [(usize, i8); 4] = [(2, 1), (3, -1), (3, 1), (4, -1)];

/// The same for prefix sums: one, less another.
pub(super) const PREFIX: (usize, i8) = (1, -1);

impl RowMethod {
    /// From sums of `part` samples, if a loop is compiled for their number.
    fn by(part: usize, count: usize) -> Option<RowMethod> {
        let parts = (count + part / 2) / part;
        let sign = match (parts * part) as i64 - count as i64 {
            -1 => 1,
            1 => -1,
            _ => return None,
        };
        WITH_ONE_MORE
            .contains(&(parts, sign))
            .then_some(RowMethod::Parts { part, parts, sign })
    }
}

impl fmt::Display for RowSums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.method {
            RowMethod::Alone => f.write_str("samples"),
            RowMethod::Parts { part, .. } => write!(f, "sums of {part}"),
            RowMethod::Prefix => f.write_str("prefix sums"),
        }
    }
}

impl RowSums {
    /// Sums of `count` samples that are `pixel_stride` samples apart.
    pub(super) fn new(count: usize, pixel_stride: usize) -> RowSums {
        let method = match count {
            ..LEAST_FOURS => Some(RowMethod::Alone),
            LEAST_FOURS..LEAST_PREFIX => RowMethod::by(4, count),
            _ if pixel_stride == 1 => RowMethod::by(8, count),
            _ => None,
        };
        let method = method.unwrap_or(RowMethod::Prefix);
        RowSums {
            count,
            pixel_stride,
            method,
        }
    }

    /// True if two rows of `samples` samples are made at a time: if the first-level cache does not hold the
    /// windows' sums until the next row.
    pub(super) fn suits_two_rows(&self, samples: usize) -> bool {
        self.method == RowMethod::Prefix && samples > LONGEST_ALONE
    }

    /// Samples from the first to the last one of a sum.
    fn across(&self) -> usize {
        (self.count - 1) * self.pixel_stride
    }

    /// Number of sums of four and of sums of eight samples that `made` sums of `parts` parts need, in whole
    /// steps.
    fn fours_and_eights(&self, part: usize, parts: usize, made: usize) -> [usize; 2] {
        let last = (made + (parts - 1) * part * self.pixel_stride).next_multiple_of(TILE);
        match part {
            4 => [last, 0],
            _ => [(last + 4 * self.pixel_stride).next_multiple_of(TILE), last],
        }
    }

    /// How many samples are read for `made` sums, a multiple of [`TILE`], and words are written on the
    /// method, at most.
    pub(super) fn reach(&self, made: usize) -> usize {
        let alone = made + self.across() + self.pixel_stride;
        match self.method {
            RowMethod::Alone => alone,
            RowMethod::Parts { part, parts, .. } => {
                let [fours, _] = self.fours_and_eights(part, parts, made);
                // With a sample too many one more is read.
                fours.max(alone + self.pixel_stride) + 3 * self.pixel_stride
            }
            RowMethod::Prefix => LINE + alone + TILE,
        }
    }

    /// Adds up the samples of a row for `made` sums (a multiple of [`TILE`]), except for the additions that
    /// it returns. The first sum's samples begin at `lead`, from where [`RowSums::reach`] words are readable;
    /// both buffers have room for as many words and for `lead`.
    pub(super) fn add_up<'a, L: Simd>(
        &self,
        simd: L,
        words: &'a [u16],
        lead: usize,
        [fours_or_all, sums_of_eight]: [&'a mut [u16]; 2],
        made: usize,
    ) -> Rest<'a> {
        let (pixel_stride, first) = (self.pixel_stride, &words[lead..]);
        match self.method {
            RowMethod::Alone => Rest {
                words: first,
                count: self.count,
                stride: pixel_stride,
                more: first,
                sign: 0,
            },
            RowMethod::Parts { part, parts, sign } => {
                let [fours, eights] = self.fours_and_eights(part, parts, made);
                let sums_of_four = &mut fours_or_all[..fours];
                simd.enter(AddParts::<4>::new(first, pixel_stride, sums_of_four));
                let sums = if part == 4 {
                    &*sums_of_four
                } else {
                    let sums_of_eight = &mut sums_of_eight[..eights];
                    simd.enter(AddParts::<2>::new(sums_of_four, 4 * pixel_stride, sums_of_eight));
                    &*sums_of_eight
                };
                Rest {
                    words: sums,
                    count: parts,
                    stride: part * pixel_stride,
                    more: &first[self.count.min(parts * part) * pixel_stride..],
                    sign,
                }
            }
            RowMethod::Prefix => {
                let all = (lead + made + self.across()).next_multiple_of(TILE);
                let (none, running) = fours_or_all[..LINE + all].split_at_mut(LINE);
                none.fill(0);
                let words = &words[..all];
                match pixel_stride {
                    1 => simd.enter(AddAlong::<1>(words, running)),
                    2 => simd.enter(AddAlong::<2>(words, running)),
                    3 => simd.enter(AddAlong::<3>(words, running)),
                    _ => simd.enter(AddAlong::<4>(words, running)),
                }
                Rest {
                    words: &fours_or_all[LINE + lead + self.across()..],
                    count: PREFIX.0,
                    stride: pixel_stride,
                    more: &fours_or_all[LINE + lead - pixel_stride..],
                    sign: PREFIX.1,
                }
            }
        }
    }
}

/// Sums of `PARTS` words that are `stride` words apart.
struct AddParts<'a, const PARTS: usize> {
    words: *const u16,
    stride: usize,
    out: &'a mut [u16],
}

impl<'a, const PARTS: usize> AddParts<'a, PARTS> {
    fn new(words: &[u16], stride: usize, out: &'a mut [u16]) -> AddParts<'a, PARTS> {
        // This bounds every read and every write.
        assert!(out.len().is_multiple_of(TILE) && words.len() >= out.len() + (PARTS - 1) * stride);
        AddParts {
            words: words.as_ptr(),
            stride,
            out,
        }
    }
}

impl<const PARTS: usize> IntLoop for AddParts<'_, PARTS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        for x in (0..self.out.len()).step_by(2 * L::LANES) {
            // SAFETY: x + 2 LANES is at most the length of `out`, and `new` asserted that words are readable
            // (PARTS - 1) strides further.
            unsafe {
                let sum = add_steps::<L, PARTS>(simd, self.words.add(x), self.stride);
                simd.store(self.out.as_mut_ptr().add(x), sum);
            }
        }
    }
}

/// Prefix sums: each word plus all words before it at a distance that is a multiple of `C`. Both slices have
/// the same length, a multiple of [`TILE`].
struct AddAlong<'a, const C: usize>(&'a [u16], &'a mut [u16]);

impl<const C: usize> IntLoop for AddAlong<'_, C> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let AddAlong(words, out) = self;
        let mut before = simd.splat(0);
        for (words, out) in words
            .chunks_exact(2 * L::LANES)
            .zip(out.chunks_exact_mut(2 * L::LANES))
        {
            // SAFETY: `words` and `out` are chunks of 2 LANES words.
            unsafe {
                let [sums, next] = simd.running_sums_i16::<C>(simd.load(words.as_ptr()), before);
                simd.store(out.as_mut_ptr(), sums);
                before = next;
            }
        }
    }
}

/// The sum of `COUNT` vectors of words that are `stride` words apart.
#[inline(always)]
pub(super) unsafe fn add_steps<L: Simd, const COUNT: usize>(
    simd: L,
    from: *const u16,
    stride: usize,
) -> L::V {
    // SAFETY: 2 LANES words are readable at each of COUNT places, `stride` words apart, from `from` on.
    unsafe {
        let mut sum = simd.load(from);
        for k in 1..COUNT {
            sum = simd.add_i16(sum, simd.load(from.add(k * stride)));
        }
        sum
    }
}
