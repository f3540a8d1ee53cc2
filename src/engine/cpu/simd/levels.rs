//! Integer samples as floating-point numbers, for colours weighted by alpha: the trait of the vectors, and
//! its implementation in plain Rust.

use super::float::{Samples, Singles4};

/// Vectors of 32-bit numbers that hold levels of integer samples, of one byte or of two, little-endian.
pub(in crate::engine::cpu) trait Levels: Samples {
    /// Reads as many samples of `BYTES` bytes as a vector has lanes.
    fn of_levels<const BYTES: usize>(self, from: &[u8]) -> Self::V;

    /// Rounds numbers down, clamps them to 0 to `largest`, and writes them as samples of `BYTES` bytes. NaN
    /// becomes 0.
    fn store_levels<const BYTES: usize>(self, value: Self::V, largest: Self::V, to: &mut [u8]);

    /// The same numbers, rounded down and clamped.
    fn whole(self, value: Self::V, largest: Self::V) -> Self::V;

    /// `a / b`, rounded once.
    fn div(self, a: Self::V, b: Self::V) -> Self::V;

    /// In each group of four lanes: lane i is the lane of `value` that lane i of `places`, an integer from 0
    /// to 3, names.
    fn within_fours(self, value: Self::V, places: Self::V) -> Self::V;

    /// `a` where all bits of `mask` are set, `b` where none is.
    fn select(self, mask: Self::V, a: Self::V, b: Self::V) -> Self::V;

    /// `zero` where `by` is 0, else `value`.
    fn choose(self, by: Self::V, zero: Self::V, value: Self::V) -> Self::V;
}

impl Levels for Singles4 {
    #[inline(always)]
    fn of_levels<const BYTES: usize>(self, from: &[u8]) -> [f32; 4] {
        std::array::from_fn(|i| match BYTES {
            1 => f32::from(from[i]),
            _ => f32::from(u16::from_le_bytes([from[2 * i], from[2 * i + 1]])),
        })
    }

    #[inline(always)]
    fn store_levels<const BYTES: usize>(self, value: [f32; 4], largest: [f32; 4], to: &mut [u8]) {
        for (i, to) in to[..4 * BYTES].chunks_exact_mut(BYTES).enumerate() {
            let level = value[i].max(0.0).min(largest[i]) as u16;
            to.copy_from_slice(&level.to_le_bytes()[..BYTES]);
        }
    }

    #[inline(always)]
    fn whole(self, value: [f32; 4], largest: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| value[i].max(0.0).min(largest[i]).trunc())
    }

    #[inline(always)]
    fn div(self, a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i] / b[i])
    }

    #[inline(always)]
    fn within_fours(self, value: [f32; 4], places: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| value[places[i].to_bits() as usize % 4])
    }

    #[inline(always)]
    fn select(self, mask: [f32; 4], a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if mask[i].to_bits() == 0 { b[i] } else { a[i] })
    }

    #[inline(always)]
    fn choose(self, by: [f32; 4], zero: [f32; 4], value: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if by[i] == 0.0 { zero[i] } else { value[i] })
    }
}
