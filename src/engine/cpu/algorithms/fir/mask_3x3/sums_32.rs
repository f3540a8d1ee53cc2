//! Sums of 32 bits. A row's terms are a pair of words: the sum of the outer samples, and the middle one. One
//! multiply-add with a pair of weights adds the row's products to a sum.
#![allow(unsafe_code)]

use super::{Places, READ, ROWS, Step, SymmetricMask, samples_of};
use crate::engine::cpu::rows::sums::taps::pack;
use crate::engine::cpu::simd::vector::Simd;

/// The mask in registers.
#[derive(Clone, Copy)]
pub(super) struct Constants32<T> {
    /// The pair of weights of the first and the last row.
    outer: T,
    /// The pair of weights of the middle row.
    middle: T,
    /// Mask of the low byte of each word.
    low: T,
    /// The start value of sums.
    start: T,
    /// The right shift of sums.
    shift: T,
    /// The factor with which `pmulhrsw` halves words, halves up.
    half: T,
}

impl<T: Copy> Constants32<T> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = T>>(simd: L, mask: SymmetricMask) -> Constants32<T> {
        let both = |word: i32| simd.splat(word << 16 | word);
        let start = if L::HAS_VNNI { 1 << (mask.shift - 1) } else { 0 };
        Constants32 {
            outer: simd.splat(pack(mask.outer[0].into(), mask.outer[1].into())),
            middle: simd.splat(pack(mask.middle[0].into(), mask.middle[1].into())),
            low: both(255),
            start: simd.splat(start),
            shift: simd.splat(mask.shift as i32 - i32::from(!L::HAS_VNNI)),
            half: both(1 << 14),
        }
    }
}

/// Sums at even places and at odd ones, each in two vectors as [`Simd::interleave_i16`] leaves them.
type Sums<T> = [[T; 2]; 2];

impl<V: Copy> Step<V> for Constants32<V> {
    #[inline(always)]
    unsafe fn make<L: Simd<V = V>, const IS_GRAY: bool>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        places: Places,
    ) {
        let &Constants32 {
            outer,
            middle,
            low,
            start,
            shift,
            half,
        } = self;
        // Sums of the result row whose last row is read now, and of the next result row.
        let mut sums: [Sums<L::V>; 2] = [[[start; 2]; 2]; 2];
        for y in 0..READ {
            // SAFETY: 4 LANES bytes are readable from each place in each row of `from` on.
            let row = unsafe { samples_of::<L, IS_GRAY>(simd, low, from[y], places) };
            let mut pairs = [[low; 2]; 2];
            for odd in 0..2 {
                let [left, middle, right] = row[odd];
                pairs[odd] = simd.interleave_i16(simd.add_i16(left, right), middle);
            }
            let mut words = [start; 2];
            for odd in 0..2 {
                let mut done = [start; 2];
                for k in 0..2 {
                    let pair = pairs[odd][k];
                    let [last, next, first] = if L::HAS_VNNI {
                        [
                            simd.add_dot_i16(sums[0][odd][k], pair, outer),
                            simd.add_dot_i16(sums[1][odd][k], pair, middle),
                            simd.add_dot_i16(start, pair, outer),
                        ]
                    } else {
                        let weighted = simd.add_dot_i16(simd.splat(0), pair, outer);
                        [
                            simd.add_i32(sums[0][odd][k], weighted),
                            simd.add_dot_i16(sums[1][odd][k], pair, middle),
                            weighted,
                        ]
                    };
                    sums[0][odd][k] = next;
                    sums[1][odd][k] = first;
                    done[k] = simd.shift_right_i32(last, shift);
                }
                words[odd] = simd.pack_i16(done[0], done[1]);
                if !L::HAS_VNNI {
                    words[odd] = simd.multiply_round_i16(words[odd], half);
                }
            }
            if let Some(row) = y.checked_sub(2) {
                // SAFETY: 4 LANES bytes are writable from the middle place in each row of `to` on.
                unsafe { simd.store_even_odd(words, to[row].wrapping_add(places[1])) };
            }
        }
    }
}
