//! Sums of 16 bits, twice as many at a time as sums of 32. Partial sums may overflow, as long as the final
//! sum fits.
#![allow(unsafe_code)]

use super::{Places, READ, ROWS, Step, WordMask, samples_of};
use crate::engine::cpu::simd::vector::Simd;
use std::marker::PhantomData;

/// The terms that a row's three samples are reduced to, because of a symmetry that all rows of the mask have.
pub(super) trait Terms: Copy {
    /// Number of terms.
    const COUNT: usize;

    /// True if a bias may be added to the rounded sums.
    const BIASED: bool = true;

    /// True if the mask has the symmetry.
    fn suit(mask: &WordMask) -> bool;

    /// The weight of each term in a row of the mask.
    fn weights(row: [i16; 3]) -> [i16; 3];

    /// The terms of the left, the middle and the right sample; elements from [`Terms::COUNT`] on are unused.
    fn of<L: Simd>(simd: L, samples: [L::V; 3]) -> [L::V; 3];
}

/// The outer samples have equal weights. Terms: their sum, and the middle sample.
#[derive(Clone, Copy)]
pub(super) struct Sum<const BIASED: bool>;

/// The outer samples have opposite weights, and the middle one has weight 0. Term: their difference.
#[derive(Clone, Copy)]
pub(super) struct Difference;

/// No symmetry. Terms: the samples.
#[derive(Clone, Copy)]
pub(super) struct Each;

impl<const BIASED: bool> Terms for Sum<BIASED> {
    const COUNT: usize = 2;
    const BIASED: bool = BIASED;

    fn suit(mask: &WordMask) -> bool {
        mask.rows.iter().all(|row| row[0] == row[2]) && (BIASED || mask.high == 0)
    }

    fn weights(row: [i16; 3]) -> [i16; 3] {
        [row[0], row[1], 0]
    }

    #[inline(always)]
    fn of<L: Simd>(simd: L, [left, middle, right]: [L::V; 3]) -> [L::V; 3] {
        [simd.add_i16(left, right), middle, middle]
    }
}

impl Terms for Difference {
    const COUNT: usize = 1;

    fn suit(mask: &WordMask) -> bool {
        mask.rows
            .iter()
            .all(|row| i32::from(row[0]) == -i32::from(row[2]) && row[1] == 0)
    }

    fn weights(row: [i16; 3]) -> [i16; 3] {
        [row[2], 0, 0]
    }

    #[inline(always)]
    fn of<L: Simd>(simd: L, [left, _, right]: [L::V; 3]) -> [L::V; 3] {
        [simd.sub_i16(right, left); 3]
    }
}

impl Terms for Each {
    const COUNT: usize = 3;

    fn suit(_: &WordMask) -> bool {
        true
    }

    fn weights(row: [i16; 3]) -> [i16; 3] {
        row
    }

    #[inline(always)]
    fn of<L: Simd>(_: L, samples: [L::V; 3]) -> [L::V; 3] {
        samples
    }
}

/// The mask in registers. `MIRRORED` if its first and its last row are equal.
#[derive(Clone, Copy)]
pub(super) struct Constants16<T, R: Terms, const MIRRORED: bool> {
    /// The weight of each term, row by row.
    rows: [[T; 3]; 3],
    /// Mask of the low byte of each word.
    low: T,
    /// The factor with which `pmulhrsw` shifts words down and rounds them.
    factor: T,
    /// The bias to add then.
    high: T,
    terms: PhantomData<R>,
}

impl<T: Copy, R: Terms, const MIRRORED: bool> Constants16<T, R, MIRRORED> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = T>>(simd: L, mask: WordMask) -> Self {
        let both = |word: i16| simd.splat(i32::from(word) << 16 | i32::from(word) & 0xFFFF);
        let mut rows = [[both(0); 3]; 3];
        for y in 0..3 {
            let weights = R::weights(mask.rows[y]);
            for k in 0..3 {
                rows[y][k] = both(weights[k]);
            }
        }
        Constants16 {
            rows,
            low: both(255),
            factor: both(1 << (15 - mask.shift)),
            high: both(mask.high),
            terms: PhantomData,
        }
    }

    /// The weighted sum of a picture row's terms for row `row` of the mask.
    #[inline(always)]
    fn weighted<L: Simd<V = T>>(&self, simd: L, row: usize, terms: [T; 3]) -> T {
        let mut sum = simd.multiply_i16(terms[0], self.rows[row][0]);
        for k in 1..R::COUNT {
            sum = simd.add_i16(sum, simd.multiply_i16(terms[k], self.rows[row][k]));
        }
        sum
    }
}

impl<V: Copy, R: Terms, const MIRRORED: bool> Step<V> for Constants16<V, R, MIRRORED> {
    #[inline(always)]
    unsafe fn make<L: Simd<V = V>, const IS_GRAY: bool>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        places: Places,
    ) {
        // At even and at odd places: sums of the result row whose last row is read now, and of the next one.
        let mut sums = [[self.low; 2]; 2];
        for y in 0..READ {
            // SAFETY: 4 LANES bytes are readable from each place in each row of `from` on.
            let row = unsafe { samples_of::<L, IS_GRAY>(simd, self.low, from[y], places) };
            let mut words = [self.low; 2];
            for odd in 0..2 {
                let terms = R::of(simd, row[odd]);
                let below = self.weighted(simd, 2, terms);
                let last = simd.add_i16(sums[0][odd], below);
                sums[0][odd] = simd.add_i16(sums[1][odd], self.weighted(simd, 1, terms));
                sums[1][odd] = if MIRRORED {
                    below
                } else {
                    self.weighted(simd, 0, terms)
                };
                words[odd] = simd.multiply_round_i16(last, self.factor);
                if R::BIASED {
                    words[odd] = simd.add_i16(words[odd], self.high);
                }
            }
            if let Some(row) = y.checked_sub(2) {
                // SAFETY: 4 LANES bytes are writable from the middle place in each row of `to` on.
                unsafe { simd.store_even_odd(words, to[row].wrapping_add(places[1])) };
            }
        }
    }
}
