//! The widths of sums in vectors: words of 16 bits, and numbers of 32. Loops are generic over both.

use super::sums::Number;
use crate::engine::cpu::simd::vector::Simd;

/// A vector's integers of one width. Partial sums may wrap; the final one is right.
pub(super) trait IntegerWidth: Copy + Send + Sync + 'static {
    /// The type of a line's elements.
    type Number: Number;

    /// Bytes of an integer.
    const BYTES: usize = size_of::<Self::Number>();

    /// Largest level, before it is clamped, that additions and comparisons hold.
    const MOST: i64;

    /// The value that [`IntegerWidth::multiply_weight`] subtracts from samples first.
    const OFFSET: i64;

    /// The low bits of `value` in every lane.
    fn splat<L: Simd>(simd: L, value: i32) -> L::V;

    fn add<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V;
    fn sub<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V;
    fn min<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V;
    fn max<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V;

    /// Integers times a weight; the most common weights are special cases.
    fn times<L: Simd>(simd: L, a: L::V, weight: i32) -> L::V;

    /// Samples less [`IntegerWidth::OFFSET`], times any weight of 16 bits.
    fn multiply_weight<L: Simd>(simd: L, samples: L::V, weight: i32) -> L::V;

    /// The low bits of products of integers.
    fn multiply<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V;

    /// `count`, and one more where `a` is above `b`.
    fn count_above<L: Simd>(simd: L, count: L::V, a: L::V, b: L::V) -> L::V;

    /// Integers of at least 0 shifted down.
    fn shift_down<L: Simd>(simd: L, a: L::V, by: u32) -> L::V;
}

/// Integers of 16 bits.
#[derive(Clone, Copy)]
pub(super) struct Int16;

impl IntegerWidth for Int16 {
    type Number = i16;

    const MOST: i64 = i16::MAX as i64;

    const OFFSET: i64 = 0;

    #[inline(always)]
    fn splat<L: Simd>(simd: L, value: i32) -> L::V {
        let word = value & 0xFFFF;
        simd.splat(word << 16 | word)
    }

    #[inline(always)]
    fn add<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.add_i16(a, b)
    }

    #[inline(always)]
    fn sub<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.sub_i16(a, b)
    }

    #[inline(always)]
    fn min<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.min_i16(a, b)
    }

    #[inline(always)]
    fn max<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.max_i16(a, b)
    }

    #[inline(always)]
    fn times<L: Simd>(simd: L, a: L::V, weight: i32) -> L::V {
        simd.multiply_i16(a, Self::splat(simd, weight))
    }

    #[inline(always)]
    fn multiply_weight<L: Simd>(simd: L, samples: L::V, weight: i32) -> L::V {
        Self::times(simd, samples, weight)
    }

    #[inline(always)]
    fn multiply<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.multiply_i16(a, b)
    }

    #[inline(always)]
    fn count_above<L: Simd>(simd: L, count: L::V, a: L::V, b: L::V) -> L::V {
        simd.count_above_i16(count, a, b)
    }

    /// The integers fit 16 unsigned bits.
    #[inline(always)]
    fn shift_down<L: Simd>(simd: L, a: L::V, by: u32) -> L::V {
        simd.shift_right_u16(a, by)
    }
}

/// Integers of 32 bits.
#[derive(Clone, Copy)]
pub(super) struct Int32;

impl IntegerWidth for Int32 {
    type Number = i32;

    const MOST: i64 = 1 << 29;

    // The difference fits 16 signed bits.
    const OFFSET: i64 = 1 << 15;

    #[inline(always)]
    fn splat<L: Simd>(simd: L, value: i32) -> L::V {
        simd.splat(value)
    }

    #[inline(always)]
    fn add<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.add_i32(a, b)
    }

    #[inline(always)]
    fn sub<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.sub_i32(a, b)
    }

    #[inline(always)]
    fn min<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.min_i32(a, b)
    }

    #[inline(always)]
    fn max<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.max_i32(a, b)
    }

    /// Products of 32-bit numbers take longer than sums. More special cases than these would cost more than
    /// they save.
    #[inline(always)]
    fn times<L: Simd>(simd: L, a: L::V, weight: i32) -> L::V {
        match weight {
            1 => a,
            2 => simd.add_i32(a, a),
            _ => simd.multiply_i32(a, simd.splat(weight)),
        }
    }

    /// As products of words: the high word of a number is its sign, and has weight 0.
    #[inline(always)]
    fn multiply_weight<L: Simd>(simd: L, samples: L::V, weight: i32) -> L::V {
        let rest = simd.add_i32(samples, simd.splat(-(Self::OFFSET as i32)));
        simd.dot_i16(rest, simd.splat(weight & 0xFFFF))
    }

    #[inline(always)]
    fn multiply<L: Simd>(simd: L, a: L::V, b: L::V) -> L::V {
        simd.multiply_i32(a, b)
    }

    #[inline(always)]
    fn count_above<L: Simd>(simd: L, count: L::V, a: L::V, b: L::V) -> L::V {
        simd.count_above_i32(count, a, b)
    }

    #[inline(always)]
    fn shift_down<L: Simd>(simd: L, a: L::V, by: u32) -> L::V {
        simd.shift_right_i32(a, simd.splat(by as i32))
    }
}
