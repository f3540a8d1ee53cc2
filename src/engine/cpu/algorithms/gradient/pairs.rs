//! Differences of samples in 32 bits, of samples that stay words: one multiply-add makes the difference of a
//! pair with its weight.

use crate::engine::cpu::simd::vector::Simd;

/// The words of the samples under `N` weights, of which the first or the second half of
/// [`Simd::interleave_i16`] is combined.
#[derive(Clone, Copy)]
pub(super) struct Pairs<V, const N: usize> {
    pub(super) words: [V; N],
    pub(super) half: usize,
}

impl<V: Copy, const N: usize> Pairs<V, N> {
    /// Sample `a` less sample `b`, times a weight of 16 bits.
    #[inline(always)]
    pub(super) fn differ<L: Simd<V = V>>(self, simd: L, a: usize, b: usize, weight: i32) -> V {
        let weights = simd.splat(weight.wrapping_neg() << 16 | weight & 0xFFFF);
        simd.dot_i16(
            simd.interleave_i16(self.words[a], self.words[b])[self.half],
            weights,
        )
    }
}

/// Two sums of 32 bits, of differences of the samples under `N` weights.
pub(super) trait NumberSums<const N: usize>: Copy + Send + Sync + 'static {
    fn sums<L: Simd>(self, simd: L, samples: Pairs<L::V, N>) -> [L::V; 2];
}
