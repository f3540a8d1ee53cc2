//! Box filters of bytes by column sums: each column's sum over the rows of the window changes by the entering
//! byte less the leaving one, both read in place in the picture. A result is the scaled sum of neighbouring
//! columns' sums.
//!
//! Columns at even and at odd places are kept separately: a mask and a shift split words into two bytes, and
//! a shift joins the results. Only column sums are kept from row to row, so a row of RGB fits the first-level
//! cache.
//!
//! On planes of one component the sums of *pairs* of columns are kept, too, for masks of 7 columns or more:
//! the windows of two neighbouring results share all pairs, except for the columns at their ends.
//!
//! ```text
//! 7 columns          . e o e o e o e .        9 columns     e o e o e o e o e .
//! even result        o[e o|e o|e o]           even result  [e o|e o|e o|e o]e
//! odd result           [e o|e o|e o]e         odd result      o[e o|e o|e o|e o]
//! ```
//!
//! From 17 columns on sums exceed 16 bits. They are added up in two or four parts that fit words, and divided
//! by means of the parts' mean (see [`MeanDivision`](crate::filter::MeanDivision)).
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::Columns;
use super::plan::Quotient;
use crate::engine::cpu::rows::border::{Apron, ApronSource, RowBorder};
use crate::engine::cpu::simd::scratch::aligned;
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// Most columns of a mask on interleaved components.
const MOST_INTERLEAVED: usize = 7;

/// Most columns of a mask whose sums fit words.
const MOST_IN_WORDS: usize = 15;

/// Most columns of a mask.
const MOST: usize = 31;

/// Fewest columns with which keeping sums of pairs pays.
const LEAST_PAIRED: usize = 7;

/// True if windows are added up from pairs.
const fn are_paired(columns: usize, channels: usize) -> bool {
    channels == 1 && columns >= LEAST_PAIRED
}

/// Parts of sums that exceed words.
pub(super) const fn parts(columns: usize) -> usize {
    if columns <= 21 { 2 } else { 4 }
}

/// Most pairs of columns in each part.
const fn pairs_of_a_part(columns: usize) -> usize {
    columns.div_ceil(2 * parts(columns))
}

/// Most components of a pixel.
const MOST_CHANNELS: usize = 4;

/// True if this method suits masks of `columns` columns, given that their sums fit words.
pub(super) fn suit(columns: usize, channels: usize) -> bool {
    let most = if channels == 1 {
        MOST_IN_WORDS
    } else {
        MOST_INTERLEAVED
    };
    (3..=most).contains(&columns) && channels <= MOST_CHANNELS
}

/// True if this method suits larger sums, with a start value of `add`.
pub(super) fn suit_in_parts((columns, rows): (usize, usize), channels: usize, add: i64) -> bool {
    let part = (2 * pairs_of_a_part(columns) * rows * usize::from(u8::MAX)) as i64 + add;
    (MOST_IN_WORDS + 2..=MOST).contains(&columns) && channels == 1 && (0..=u16::MAX.into()).contains(&part)
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu) struct ColumnScratch {
    /// Sums of the columns at even places, of those at odd places, and of pairs of both.
    sums: [Vec<u16>; 3],
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(super) struct ColumnSums<'a> {
    /// See [`ColumnScratch`].
    sums: [&'a mut [u16]; 3],
    /// A row of zeros.
    zeros: &'a [u8],
    /// Samples of a row.
    samples: usize,
    /// Samples before the first one's sum: the apron, and padding.
    origin: usize,
    /// Columns of the mask.
    columns: usize,
    /// Samples from a column to the next.
    channels: usize,
    quotient: Quotient,
}

/// Index of the sums of pairs in [`ColumnSums::sums`]; 0 and 1 are those at even and at odd places.
const PAIRS: usize = 2;

impl<'a> ColumnSums<'a> {
    /// Sums that are all zero, for rows of `width` pixels and masks of `columns` columns.
    pub(super) fn new(
        scratch: &'a mut ColumnScratch,
        border: &RowBorder,
        width: usize,
        (columns, quotient): (usize, Quotient),
    ) -> ColumnSums<'a> {
        let (origin, channels) = (border.origin(), border.channels());
        let samples = width * channels;
        let len = (2 * origin + samples.next_multiple_of(TILE)) / 2 + TILE;
        let sums = scratch.sums.each_mut().map(|sums| {
            let sums = aligned(sums, len);
            sums.fill(0);
            sums
        });
        scratch.zeros.resize(scratch.zeros.len().max(samples), 0);
        ColumnSums {
            sums,
            zeros: &scratch.zeros[..samples],
            samples,
            origin,
            columns,
            channels,
            quotient,
        }
    }

    /// Pointers to the first sample's sum, the second sample's sum, and the sum of both.
    fn places(&mut self) -> [*mut u16; 3] {
        let at = self.origin / 2;
        self.sums.each_mut().map(|sums| sums[at..].as_mut_ptr())
    }
}

impl Columns for ColumnSums<'_> {
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let leaving = leaving.unwrap_or(self.zeros);
        assert!(entering.len() == self.samples && leaving.len() == self.samples);
        let sums = self.places();
        if are_paired(self.columns, self.channels) {
            simd.enter(Change::<true> {
                entering,
                leaving,
                sums,
            });
        } else {
            simd.enter(Change::<false> {
                entering,
                leaving,
                sums,
            });
        }
    }

    fn extend(&mut self, apron: &Apron, rows: usize) {
        let [even, odd, pairs] = &mut self.sums;
        let halves = [even, odd];
        for &(to, from) in apron {
            let sum = match from {
                ApronSource::Sample(from) => halves[from % 2][from / 2],
                ApronSource::Constant(value) => value * rows as u16,
            };
            halves[to % 2][to / 2] = sum;
        }
        // The row's last column may be paired with one in the apron.
        for &(to, _) in apron {
            pairs[to / 2] = halves[0][to / 2].wrapping_add(halves[1][to / 2]);
        }
    }

    fn make<L: Simd>(&mut self, simd: L, out: &mut [u8]) {
        let (columns, channels, quotient) = (self.columns, self.channels, self.quotient);
        assert!(out.len() == self.samples && columns / 2 * channels <= self.origin);
        let sums = self.places();
        if channels == 1 {
            return unroll!(
                columns,
                [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31],
                COLUMNS => simd.enter(Make::<COLUMNS, 1> { sums, quotient, out })
            );
        }
        macro_rules! make {
            ($($columns:literal x $channels:literal),*) => {
                match (columns, channels) {
                    $(($columns, $channels) => {
                        simd.enter(Make::<$columns, $channels> { sums, quotient, out })
                    })*
                    _ => unreachable!("a box of {columns} columns on {channels} channels"),
                }
            };
        }
        make!(3 x 2, 3 x 3, 3 x 4, 5 x 2, 5 x 3, 5 x 4, 7 x 2, 7 x 3, 7 x 4);
    }
}

/// The loop of [`Columns::change`]; `PAIRED`: it also updates the sums of pairs.
struct Change<'a, const PAIRED: bool> {
    entering: &'a [u8],
    leaving: &'a [u8],
    sums: [*mut u16; 3],
}

impl<const PAIRED: bool> Change<'_, PAIRED> {
    /// Updates the sums of a step's columns from sample `x` on, by the bytes at `entering` and at `leaving`.
    ///
    /// # Safety
    /// 4 LANES bytes are readable at both, and x + 4 LANES is at most the number of samples of a row, rounded
    /// up to a multiple of [`TILE`].
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, low: L::V, x: usize, entering: *const u8, leaving: *const u8) {
        // SAFETY: 4 LANES bytes are readable at both, as this function requires; there are sums for a row's
        // samples, rounded up to a multiple of TILE.
        unsafe {
            let (more, less) = (simd.load(entering), simd.load(leaving));
            let changes = [
                simd.sub_words(simd.and(more, low), simd.and(less, low)),
                simd.sub_words(simd.shift_words_down(more, 8), simd.shift_words_down(less, 8)),
            ];
            let mut sums = changes;
            for odd in 0..2 {
                let kept = self.sums[odd].add(x / 2);
                sums[odd] = simd.add_words(simd.load(kept), changes[odd]);
                simd.store(kept, sums[odd]);
            }
            if PAIRED {
                simd.store(self.sums[PAIRS].add(x / 2), simd.add_words(sums[0], sums[1]));
            }
        }
    }
}

impl<const PAIRED: bool> IntLoop for Change<'_, PAIRED> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let (step, samples) = (4 * L::LANES, self.entering.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: the step ends within both rows, which have `samples` bytes.
            unsafe {
                let (entering, leaving) = (self.entering.as_ptr().add(x), self.leaving.as_ptr().add(x));
                self.step(simd, low, x, entering, leaving);
            }
        }
        if whole < samples {
            let mut last = [[0_u8; TILE]; 2];
            last[0][..samples - whole].copy_from_slice(&self.entering[whole..]);
            last[1][..samples - whole].copy_from_slice(&self.leaving[whole..]);
            // SAFETY: the copies are a step long, and there are sums up to a multiple of TILE.
            unsafe { self.step(simd, low, whole, last[0].as_ptr(), last[1].as_ptr()) };
        }
    }
}

/// The loop of [`Columns::make`].
struct Make<'a, const COLUMNS: usize, const CHANNELS: usize> {
    sums: [*mut u16; 3],
    quotient: Quotient,
    out: &'a mut [u8],
}

/// A [`Quotient`] in registers.
#[derive(Clone, Copy)]
struct Constants<T> {
    add: T,
    factor: T,
    divisor: T,
}

impl<const COLUMNS: usize, const CHANNELS: usize> Make<'_, COLUMNS, CHANNELS> {
    /// Columns on either side of the middle one.
    const REACH: isize = (COLUMNS / 2) as isize;

    /// The first pair that the windows of an even and an odd result share, counted from the pair of their own
    /// columns.
    const FIRST: isize = (COLUMNS / 2).is_multiple_of(2) as isize - Self::REACH / 2;

    /// Number of pairs that they share.
    const COMMON: usize = COLUMNS / 2 - (COLUMNS / 2).is_multiple_of(2) as usize;

    /// A vector of sums of one kind, from `place` sums after that of sample `x` on.
    ///
    /// # Safety
    /// `sums[kind]` has 2 LANES readable words from place `x / 2 + place` on.
    #[inline(always)]
    unsafe fn load<L: Simd>(&self, simd: L, kind: usize, x: usize, place: isize) -> L::V {
        // SAFETY: 2 LANES words are readable at `x / 2 + place`, as this function requires.
        unsafe { simd.load(self.sums[kind].cast_const().offset((x / 2) as isize + place)) }
    }

    /// The part of the windows of even results, and of those of odd results, besides the pairs that both
    /// share.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn ends<L: Simd>(&self, simd: L, x: usize) -> [L::V; 2] {
        let half = Self::REACH / 2;
        // SAFETY: the places are within the mask's reach of the step's columns, whose sums are readable.
        unsafe {
            if Self::REACH % 2 == 1 {
                return [self.load(simd, 1, x, -half - 1), self.load(simd, 0, x, half + 1)];
            }
            let (first, last) = (self.load(simd, PAIRS, x, -half), self.load(simd, PAIRS, x, half));
            [
                simd.add_words(first, self.load(simd, 0, x, half)),
                simd.add_words(last, self.load(simd, 1, x, -half)),
            ]
        }
    }

    /// The results at even and at odd places, for sums that fit words.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn in_words<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize) -> [L::V; 2] {
        let mut values = [c.add; 2];
        // SAFETY: the places are within the mask's reach of the step's columns, whose sums are readable.
        unsafe {
            if const { are_paired(COLUMNS, CHANNELS) } {
                let mut common = c.add;
                for k in 0..Self::COMMON {
                    let pair = self.load(simd, PAIRS, x, Self::FIRST + k as isize);
                    common = simd.add_words(common, pair);
                }
                values = self.ends(simd, x);
                for odd in 0..2 {
                    values[odd] = simd.add_words(values[odd], common);
                }
            } else {
                for odd in 0..2 {
                    for k in 0..COLUMNS {
                        // The column's place relative to the step's first one, split into an even number and
                        // 0 or 1.
                        let place = (odd + k * CHANNELS) as isize - Self::REACH * CHANNELS as isize;
                        let half = place.rem_euclid(2) as usize;
                        let sums = self.load(simd, half, x, place.div_euclid(2));
                        values[odd] = simd.add_words(values[odd], sums);
                    }
                }
            }
        }
        for odd in 0..2 {
            let product = simd.multiply_high_words(values[odd], c.factor);
            values[odd] = simd.shift_words_down(product, self.quotient.down);
        }
        values
    }

    /// The results at even and at odd places, for sums in parts that fit words. Both share all parts but the
    /// last one, which has the ends.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn in_parts<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize) -> [L::V; 2] {
        let (pairs, last) = const { (pairs_of_a_part(COLUMNS), parts(COLUMNS) - 1) };
        let mut parts = [c.add; 4];
        for k in 0..Self::COMMON {
            let part = if k / pairs < last { k / pairs } else { last };
            // SAFETY: the place is within the mask's reach of the step's columns, whose sums are readable.
            let pair = unsafe { self.load(simd, PAIRS, x, Self::FIRST + k as isize) };
            parts[part] = if part < last && k % pairs == 0 {
                pair
            } else {
                simd.add_words(parts[part], pair)
            };
        }
        let (mut low, mut mean) = (parts[0], parts[0]);
        if last == 3 {
            low = simd.add_words(simd.add_words(parts[0], parts[1]), parts[2]);
            mean = simd.average_words(parts[0], parts[1]);
        }
        // SAFETY: `ends` reads the sums of the step's columns and of the mask's reach, which this function
        // requires to be readable.
        let mut values = unsafe { self.ends(simd, x) };
        for odd in 0..2 {
            let sum = simd.add_words(values[odd], parts[last]);
            let mean = if last == 3 {
                simd.average_words(mean, simd.average_words(parts[2], sum))
            } else {
                simd.average_words(mean, sum)
            };
            let estimate = simd.multiply_high_words(mean, c.factor);
            let multiple = simd.multiply_words(estimate, c.divisor);
            let remainder = simd.sub_words(simd.add_words(low, sum), multiple);
            values[odd] = simd.sub_words(estimate, simd.shift_words_down(remainder, 15));
        }
        values
    }

    /// Makes a step's results from sample `x` on.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable, and 4
    /// LANES bytes are writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, to: *mut u8) {
        // SAFETY: the sums of the step's columns and of the mask's reach are readable, and 4 LANES bytes are
        // writable at `to`, as this function requires.
        unsafe {
            let [even, odd] = if COLUMNS > MOST_IN_WORDS {
                self.in_parts(simd, c, x)
            } else {
                self.in_words(simd, c, x)
            };
            simd.store(to, simd.xor(even, simd.shift_words_up(odd, 8)));
        }
    }
}

impl<const COLUMNS: usize, const CHANNELS: usize> IntLoop for Make<'_, COLUMNS, CHANNELS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let to = self.out.as_mut_ptr();
        let Quotient {
            add, factor, divisor, ..
        } = self.quotient;
        let constants = Constants {
            add: simd.splat(i32::from(add) << 16 | i32::from(add)),
            factor: simd.splat(i32::from(factor) << 16 | i32::from(factor)),
            divisor: simd.splat(i32::from(divisor) << 16 | i32::from(divisor)),
        };
        let (step, samples) = (4 * L::LANES, self.out.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: the step ends within the row. The sums have an apron of `origin` samples before the
            // row, which `Columns::make` asserted to be the mask's reach at least, and as many after it.
            unsafe { self.step(simd, &constants, x, to.add(x)) };
        }
        if whole < samples {
            let mut last = [0_u8; TILE];
            // SAFETY: the copy is a step long, and there are sums for the row rounded up to a multiple of
            // TILE and for an apron after that.
            unsafe { self.step(simd, &constants, whole, last.as_mut_ptr()) };
            self.out[whole..].copy_from_slice(&last[..samples - whole]);
        }
    }
}
