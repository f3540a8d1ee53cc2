//! Boxes of bytes by column sums: each column's sum over the rows of the window changes by the byte that
//! enters less the one that leaves, both read in place in the picture, and a result is the scaled sum of
//! neighbouring columns' sums.
//!
//! Columns at even and at odd places are kept separately, as a mask and a shift take them out of words of two
//! bytes, and a shift puts results back. Only the column sums are kept from row to row, so that a row of RGB
//! fits the first-level cache.
//!
//! On planes of one component the sums of *pairs* of columns are kept, too, from 7 columns on: the windows of
//! two neighbouring results have all pairs in common but for what lies at their ends.
//!
//! ```text
//! 7 columns          . e o e o e o e .        9 columns     e o e o e o e o e .
//! even result        o[e o|e o|e o]           even result  [e o|e o|e o|e o]e
//! odd result           [e o|e o|e o]e         odd result      o[e o|e o|e o|e o]
//! ```
//!
//! From 17 columns on sums leave 16 bits. They come in two or four parts that fit words, whose mean divides
//! them (see [`MeanDivision`](crate::filter::MeanDivision)).
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::Columns;
use super::plan::Quotient;
use crate::engine::cpu::rows::border::{Apron, From, RowBorder};
use crate::engine::cpu::simd::scratch::aligned;
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{Simd, TILE, Work};

/// Columns of the largest masks that are made so: of pixels of several components, of sums that fit words,
/// and of all.
const MOST_APART: usize = 7;
const MOST_IN_WORDS: usize = 15;
const MOST: usize = 31;

/// Columns from which on the sums of pairs save more than it takes to keep them.
const LEAST_PAIRED: usize = 7;

/// True if windows are made of pairs.
const fn are_paired(columns: usize, channels: usize) -> bool {
    channels == 1 && columns >= LEAST_PAIRED
}

/// Parts of sums that leave words.
pub(super) const fn parts(columns: usize) -> usize {
    if columns <= 21 { 2 } else { 4 }
}

/// Pairs of columns in each part, at most.
const fn pairs_of_a_part(columns: usize) -> usize {
    columns.div_ceil(2 * parts(columns))
}

/// Components of a pixel, at most.
const MOST_CHANNELS: usize = 4;

/// True for masks of so many columns whose sums fit words and that are made so.
pub(super) fn suit(columns: usize, channels: usize) -> bool {
    let most = if channels == 1 { MOST_IN_WORDS } else { MOST_APART };
    (3..=most).contains(&columns) && channels <= MOST_CHANNELS
}

/// The same for larger sums, to which `add` is added.
pub(super) fn suit_in_parts((columns, rows): (usize, usize), channels: usize, add: i64) -> bool {
    let part = (2 * pairs_of_a_part(columns) * rows * usize::from(u8::MAX)) as i64 + add;
    (MOST_IN_WORDS + 2..=MOST).contains(&columns) && channels == 1 && (0..=u16::MAX.into()).contains(&part)
}

/// The memory that a thread works in.
#[derive(Default)]
pub(in crate::engine::cpu) struct Scratch {
    /// Sums of the columns at even places, at odd ones, and of both together.
    sums: [Vec<u16>; 3],
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(super) struct ColumnSums<'a> {
    sums: [&'a mut [u16]; 3],
    zeros: &'a [u8],
    /// Samples of a row, and where the first one's sum lies, counted in samples.
    samples: usize,
    origin: usize,
    /// Columns of the mask, and from one to the next.
    columns: usize,
    channels: usize,
    quotient: Quotient,
}

/// Where the three kinds of sums lie in the memory of [`ColumnSums`].
const PAIRS: usize = 2;

impl<'a> ColumnSums<'a> {
    /// All zero, for rows of `width` pixels and masks of so many columns.
    pub(super) fn new(
        scratch: &'a mut Scratch,
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

    /// Where the first sample's sum and the second one's lie, and that of both.
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

    fn extend(&mut self, places: &Apron, rows: usize) {
        let [even, odd, pairs] = &mut self.sums;
        let halves = [even, odd];
        for &(to, from) in places {
            let sum = match from {
                From::Place(from) => halves[from % 2][from / 2],
                From::Constant(value) => value * rows as u16,
            };
            halves[to % 2][to / 2] = sum;
        }
        // The row's last column may have a pair in the apron.
        for &(to, _) in places {
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

/// See [`Columns::change`]; `PAIRED`: the sums of pairs change, too.
struct Change<'a, const PAIRED: bool> {
    entering: &'a [u8],
    leaving: &'a [u8],
    sums: [*mut u16; 3],
}

impl<const PAIRED: bool> Change<'_, PAIRED> {
    /// Changes the sums of a step's columns from place `x` on, by bytes at `entering` and at `leaving`.
    ///
    /// # Safety
    /// A step's bytes are readable at both, and its sums lie within the row's.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, low: L::V, x: usize, entering: *const u8, leaving: *const u8) {
        // SAFETY: 4 LANES bytes are readable at both, and the columns' sums from x to x + 4 LANES lie within
        // those of the row, filled up to a multiple of TILE.
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

impl<const PAIRED: bool> Work for Change<'_, PAIRED> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let (step, samples) = (4 * L::LANES, self.entering.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones; both rows have as many bytes.
            unsafe {
                let (entering, leaving) = (self.entering.as_ptr().add(x), self.leaving.as_ptr().add(x));
                self.step(simd, low, x, entering, leaving);
            }
        }
        if whole < samples {
            let mut last = [[0_u8; TILE]; 2];
            last[0][..samples - whole].copy_from_slice(&self.entering[whole..]);
            last[1][..samples - whole].copy_from_slice(&self.leaving[whole..]);
            // SAFETY: the copies are a step long, and sums go on to a multiple of TILE.
            unsafe { self.step(simd, low, whole, last[0].as_ptr(), last[1].as_ptr()) };
        }
    }
}

/// See [`Columns::make`].
struct Make<'a, const COLUMNS: usize, const CHANNELS: usize> {
    sums: [*mut u16; 3],
    quotient: Quotient,
    out: &'a mut [u8],
}

/// What divides sums, in registers.
#[derive(Clone, Copy)]
struct Constants<T> {
    add: T,
    factor: T,
    divisor: T,
}

impl<const COLUMNS: usize, const CHANNELS: usize> Make<'_, COLUMNS, CHANNELS> {
    /// Columns on either side of the middle one.
    const REACH: isize = (COLUMNS / 2) as isize;

    /// The first of the pairs that an even and an odd result have in common, counted from that of their own
    /// columns, and how many there are.
    const FIRST: isize = (COLUMNS / 2).is_multiple_of(2) as isize - Self::REACH / 2;
    const COMMON: usize = COLUMNS / 2 - (COLUMNS / 2).is_multiple_of(2) as usize;

    /// A vector of sums of columns at even or at odd places, or of pairs, so many places after that of
    /// sample `x`.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn load<L: Simd>(&self, simd: L, kind: usize, x: usize, place: isize) -> L::V {
        // SAFETY: by the caller.
        unsafe { simd.load(self.sums[kind].cast_const().offset((x / 2) as isize + place)) }
    }

    /// What the windows of even results have beside the pairs that they have in common with the odd ones,
    /// and what those have.
    ///
    /// # Safety
    /// The sums of the step's columns and of those that the mask reaches are there.
    #[inline(always)]
    unsafe fn ends<L: Simd>(&self, simd: L, x: usize) -> [L::V; 2] {
        let half = Self::REACH / 2;
        // SAFETY: the places are within the mask's reach.
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

    /// The results at even and at odd places of sums that fit words.
    ///
    /// # Safety
    /// As with [`Make::ends`].
    #[inline(always)]
    unsafe fn in_words<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize) -> [L::V; 2] {
        let mut values = [c.add; 2];
        // SAFETY: the places are within the mask's reach.
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
                        // The column's place from the step's first one: an even number, and 0 or 1.
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

    /// The results at even and at odd places of sums in parts that fit words: all but the last one, which has
    /// the ends, are common to both.
    ///
    /// # Safety
    /// As with [`Make::ends`].
    #[inline(always)]
    unsafe fn in_parts<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize) -> [L::V; 2] {
        let (pairs, last) = const { (pairs_of_a_part(COLUMNS), parts(COLUMNS) - 1) };
        let mut parts = [c.add; 4];
        for k in 0..Self::COMMON {
            let part = if k / pairs < last { k / pairs } else { last };
            // SAFETY: the places are within the mask's reach.
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
        // SAFETY: by the caller.
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

    /// Makes a step's results from place `x` on.
    ///
    /// # Safety
    /// The sums of the step's columns and of those that the mask reaches are there, and a step's bytes are
    /// writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, to: *mut u8) {
        // SAFETY: sums go on from x by 4 LANES columns and by what the mask reaches on either side, and 4
        // LANES bytes are writable at `to`.
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

impl<const COLUMNS: usize, const CHANNELS: usize> Work for Make<'_, COLUMNS, CHANNELS> {
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
            // SAFETY: a step ends within the whole ones. `Columns::extend` has filled in what the mask
            // reaches beyond the row's ends.
            unsafe { self.step(simd, &constants, x, to.add(x)) };
        }
        if whole < samples {
            let mut last = [0_u8; TILE];
            // SAFETY: the copy is a step long, and sums go on for another TILE.
            unsafe { self.step(simd, &constants, whole, last.as_mut_ptr()) };
            self.out[whole..].copy_from_slice(&last[..samples - whole]);
        }
    }
}
