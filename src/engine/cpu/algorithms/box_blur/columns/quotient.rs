//! The division of windows of bytes, by 16-bit words: of their sums where these fit, else of what they change
//! by from row to row.
//!
//! Nothing is kept of a column then; of each result the remainder is kept, and the quotient is the result
//! above it:
//!
//! ```text
//! change     entering row's sum - leaving row's sum       of the same columns
//! x          remainder + change                           16 bits with sign
//! result     result above + x / divisor, rounded          exact, since the remainder is
//! remainder  x - divisor times that quotient              at most half the divisor, of either sign
//! ```
#![allow(unsafe_code)]

use crate::engine::cpu::algorithms::box_blur::sliding_window::Scale;
use crate::engine::cpu::simd::scratch::filled;
use crate::engine::cpu::simd::vector::{Simd, TILE};
use crate::filter::SignedDivision;

/// The division of windows.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu::algorithms::box_blur) enum Quotient {
    /// Of their sums.
    Sums(Scale),
    /// Of what they change by.
    Changes {
        division: SignedDivision,
        /// What is added to sums: the result of an empty window, before division.
        add: i64,
    },
}

/// The largest change of a window of `columns` columns, of either sign, and the largest remainder.
pub(in crate::engine::cpu::algorithms::box_blur) fn largest_change(columns: usize, divisor: i64) -> i64 {
    (columns * usize::from(u8::MAX)) as i64 + divisor / 2
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct QuotientScratch {
    remainders: [Vec<u16>; 2],
    above: Vec<u8>,
}

/// What is kept of results, and how windows become results. Remainders are words for those at even and at odd
/// places, as many as a row has, rounded up to a multiple of [`TILE`].
pub(in crate::engine::cpu::algorithms::box_blur) struct Kept<'a> {
    pub(super) quotient: Quotient,
    pub(super) remainders: [&'a mut [u16]; 2],
    /// The results above the strip's first row.
    pub(super) above: &'a mut [u8],
}

impl<'a> Kept<'a> {
    /// The remainders and results of empty windows, for rows of `samples` bytes.
    pub(super) fn new(scratch: &'a mut QuotientScratch, quotient: Quotient, samples: usize) -> Kept<'a> {
        let (remainder, result) = match quotient {
            Quotient::Sums(_) => (0, 0),
            Quotient::Changes { division, add } => {
                let divisor = i64::from(division.divisor);
                (add % divisor - divisor / 2, add / divisor)
            }
        };
        let half = samples.next_multiple_of(TILE) / 2;
        let remainders = scratch.remainders.each_mut();
        Kept {
            quotient,
            remainders: remainders.map(|line| filled(line, half, remainder as u16)),
            above: filled(&mut scratch.above, samples, result as u8),
        }
    }
}

/// A [`Quotient`] in registers.
#[derive(Clone, Copy)]
pub(super) struct Constants<T> {
    /// The start value of sums.
    add: T,
    factor: T,
    /// The shift of sums after the multiplication, and that of changes, as a factor.
    down: u32,
    down_factor: T,
    divisor: T,
    /// Mask of the low bytes of words.
    low: T,
}

impl<T: Copy> Constants<T> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = T>>(simd: L, quotient: Quotient) -> Constants<T> {
        let [add, factor, down, divisor] = match quotient {
            Quotient::Sums(Scale { add, factor, down }) => [add.into(), factor.into(), down as i32, 0],
            Quotient::Changes { division, .. } => [
                0,
                division.factor.into(),
                division.shift as i32,
                division.divisor.into(),
            ],
        };
        let words = |value: i32| simd.splat(value << 16 | value);
        Constants {
            add: words(add),
            factor: words(factor),
            down: down as u32,
            down_factor: words(1 << (15 - down)),
            divisor: words(divisor),
            low: words(0xFF),
        }
    }

    /// Stores a step's results: of windows at even and at odd places, their sums with `ARE_SUMS`, else what
    /// they change by. `kept` are their remainders, `above` the results above.
    ///
    /// # Safety
    /// 4 LANES bytes are writable at `to`. Without `ARE_SUMS` as many are readable at `above`, and 2 LANES
    /// words are readable and writable at each of `kept`.
    #[inline(always)]
    pub(super) unsafe fn store<L: Simd<V = T>, const ARE_SUMS: bool>(
        &self,
        simd: L,
        mut values: [T; 2],
        kept: [*mut u16; 2],
        above: *const u8,
        to: *mut u8,
    ) {
        // SAFETY: a vector is 4 LANES bytes or 2 LANES words, as many as this function requires at `to` and
        // at each of `kept`, and at `above`, which is read without `ARE_SUMS` alone.
        unsafe {
            if ARE_SUMS {
                for value in &mut values {
                    let product = simd.multiply_high_u16(simd.add_i16(*value, self.add), self.factor);
                    *value = simd.shift_right_u16(product, self.down);
                }
                return simd.store(to, simd.xor(values[0], simd.shift_left_i16(values[1], 8)));
            }
            for odd in 0..2 {
                let value = simd.add_i16(simd.load(kept[odd]), values[odd]);
                let product = simd.multiply_high_i16(value, self.factor);
                values[odd] = simd.multiply_round_i16(product, self.down_factor);
                let left = simd.sub_i16(value, simd.multiply_i16(values[odd], self.divisor));
                simd.store(kept[odd], left);
            }
            let changes = simd.xor(simd.and(values[0], self.low), simd.shift_left_i16(values[1], 8));
            simd.store(to, simd.add_i8(simd.load(above), changes));
        }
    }
}
