//! The trait of integer vectors: the operations of inner loops, which each instruction set implements.
//!
//! A value of a type that implements [`Simd`] proves that this machine has the instructions, so its
//! arithmetic is safe to call. Everything is inlined into [`Simd::enter`], which is compiled with the set's
//! instructions: hence the `inline(always)` throughout.
#![allow(unsafe_code)]

use super::float::{Exact, TransformCosts};
use super::levels::Levels;

/// The order of samples in two neighbouring vectors of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum Order {
    /// One after the other.
    Plain,
    /// The order of [`Simd::interleave_i16`]: sixteen bytes of the first vector, then sixteen of the second
    /// hold eight samples in order.
    Interleaved,
    /// Even samples in the first vector, odd ones in the second.
    Alternate,
}

impl Order {
    /// The index of the sample at place `at`, in vectors of `lanes` numbers.
    pub(in crate::engine::cpu) fn sample(self, at: usize, lanes: usize) -> usize {
        let (pair, within) = (at / (2 * lanes) * 2 * lanes, at % (2 * lanes));
        let (second, lane) = (within / lanes, within % lanes);
        match self {
            Order::Plain => at,
            // Each vector has four numbers of every eight samples.
            Order::Interleaved => pair + lane / 4 * 8 + second * 4 + lane % 4,
            Order::Alternate => pair + 2 * lane + second,
        }
    }
}

/// A set of vector instructions, and the proof that this machine has it. A vector holds [`Simd::LANES`]
/// numbers of 32 bits, or twice as many *words* of 16 bits. Arithmetic is named by the element that
/// it works on, as in `add_i16`.
pub(in crate::engine::cpu) trait Simd: Copy {
    /// A vector.
    type V: Copy;

    /// Numbers of 32 bits that a vector holds.
    const LANES: usize;

    /// Registers that hold vectors.
    const REGISTERS: usize;

    /// True if one instruction multiplies pairs of words and adds the products to sums: VNNI.
    const HAS_VNNI: bool;

    /// True if the latency of multiply-adds limits chains of them, and registers hold enough independent sums
    /// to hide it.
    const LATENCY_BOUND: bool;

    /// True if deinterleaving rows pays, which needs permutations across the whole vector.
    const DEINTERLEAVES: bool = false;

    /// The largest part by which the roots of [`Simd::near_roots`] are off.
    const NEAR_ROOT_ERROR: f64;

    /// The costs of Fourier transforms with [`Simd::Singles`] and [`Simd::Doubles`].
    const TRANSFORM_COSTS: TransformCosts;

    /// The same vectors without the instruction that adds products to sums.
    type WithoutVnni: Simd<V = Self::V>;

    /// Vectors of floating-point numbers of 32 bits.
    type Singles: Levels;

    /// Vectors of floating-point numbers of 64 bits.
    type Doubles: Exact;

    /// The same proof for loops with few multiply-adds: sets with and without VNNI share their code.
    fn without_vnni(self) -> Self::WithoutVnni;

    /// The same proof for floating-point numbers of 32 bits.
    fn singles(self) -> Self::Singles;

    /// The same proof for floating-point numbers of 64 bits.
    fn doubles(self) -> Self::Doubles;

    /// Runs a loop, compiled for this set.
    fn enter<W: IntLoop>(self, work: W);

    /// The same for a loop that permutes bytes, for which some machines have further instructions.
    #[inline]
    fn enter_with_bytes<W: IntLoop>(self, work: W) {
        self.enter(work);
    }

    /// The same number everywhere.
    fn splat(self, value: i32) -> Self::V;

    /// Reads a vector.
    ///
    /// # Safety
    /// The bytes of a vector are readable at `from`, on whatever alignment.
    unsafe fn load<T>(self, from: *const T) -> Self::V;

    /// Writes a vector.
    ///
    /// # Safety
    /// The bytes of a vector are writable at `to`, on whatever alignment.
    unsafe fn store<T>(self, to: *mut T, value: Self::V);

    /// Prefetches the cache line of an address, which may be any.
    fn prefetch<T>(self, at: *const T);

    /// Sums of numbers.
    fn add_i32(self, a: Self::V, b: Self::V) -> Self::V;

    /// Differences of numbers.
    fn sub_i32(self, a: Self::V, b: Self::V) -> Self::V;

    /// Sums of words.
    fn add_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// Sums of bytes.
    fn add_i8(self, a: Self::V, b: Self::V) -> Self::V;

    /// The words `N` (1 to 4) places before each of `words`, which follow those of `before`.
    fn earlier_i16<const N: usize>(self, before: Self::V, words: Self::V) -> Self::V;

    /// Differences of words.
    fn sub_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// Sums of words with sign, as near as words get to them.
    fn add_saturating_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// Differences of words with sign, as near as words get to them.
    fn sub_saturating_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The low words of the products of words.
    fn multiply_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The smaller of words with sign.
    fn min_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The larger of words with sign.
    fn max_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The products of words, divided by 2^15 and rounded, halves up.
    fn multiply_round_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The high words of the products of words without sign.
    fn multiply_high_u16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The high words of the products of words with sign.
    fn multiply_high_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// The high halves of the products of numbers without sign.
    fn multiply_high_u32(self, a: Self::V, b: Self::V) -> Self::V;

    /// The sums of pairs of bytes without sign, where `ones` has 1 in every byte.
    fn add_pairs_u8(self, bytes: Self::V, ones: Self::V) -> Self::V;

    /// The means of words without sign, halves up.
    fn average_u16(self, a: Self::V, b: Self::V) -> Self::V;

    /// Prefix sums: each word plus all words before it at a distance that is a multiple of `C` (1 to 4), plus
    /// the word of `before` at its place. Also returns `before` for the next vector.
    fn running_sums_i16<const C: usize>(self, words: Self::V, before: Self::V) -> [Self::V; 2];

    /// Words without sign, shifted down.
    fn shift_right_u16(self, a: Self::V, by: u32) -> Self::V;

    /// Words, shifted up.
    fn shift_left_i16(self, a: Self::V, by: u32) -> Self::V;

    /// `sum + low x low + high x high`: each number's two words, times the weight's two words, added up.
    fn add_dot_i16(self, sum: Self::V, pairs: Self::V, weights: Self::V) -> Self::V;

    /// `low x low + high x high`, without a sum.
    fn dot_i16(self, pairs: Self::V, weights: Self::V) -> Self::V;

    /// The low halves of the products of numbers.
    fn multiply_i32(self, a: Self::V, b: Self::V) -> Self::V;

    /// The smaller of numbers with sign.
    fn min_i32(self, a: Self::V, b: Self::V) -> Self::V;

    /// The larger of numbers with sign.
    fn max_i32(self, a: Self::V, b: Self::V) -> Self::V;

    /// The roots of numbers that are at least 0, times `factor` if there is one, rounded to nearest, halves
    /// to even. The conversion to 32-bit floating point and each further step are rounded by IEEE 754.
    fn scaled_roots(self, numbers: Self::V, factor: Option<f32>) -> Self::V;

    /// The same without the divider: the root may be off by [`Simd::NEAR_ROOT_ERROR`]. It may be negative
    /// for 0.
    fn near_roots(self, numbers: Self::V, factor: Option<f32>) -> Self::V;

    /// [`Simd::scaled_roots`], rounded down, and off by up to a 2^14th part before that. It may be negative
    /// for 0.
    fn roots_below(self, numbers: Self::V, factor: Option<f32>) -> Self::V;

    /// The roots of `a^2 + b^2`, times `factor` if there is one, rounded down. The conversion to 32-bit
    /// floating point and each further step are rounded to nearest before that; a product may be added up
    /// without.
    fn lengths_below(self, a: Self::V, b: Self::V, factor: Option<f32>) -> Self::V;

    /// Words of `count`, and one more where the word of `a` is above that of `b`, both with sign.
    fn count_above_i16(self, count: Self::V, a: Self::V, b: Self::V) -> Self::V;

    /// The same for numbers.
    fn count_above_i32(self, count: Self::V, a: Self::V, b: Self::V) -> Self::V;

    /// Numbers, shifted down with their sign.
    fn shift_right_i32(self, a: Self::V, by: Self::V) -> Self::V;

    /// Numbers, shifted up.
    fn shift_left_i32(self, a: Self::V, by: Self::V) -> Self::V;

    /// Bitwise and.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;

    /// Bitwise exclusive or.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;

    /// The low words of `low` and the high words of `high`.
    fn merge_i16(self, low: Self::V, high: Self::V) -> Self::V;

    /// The words of `a` and `b` as pairs, in [`Order::Interleaved`].
    fn interleave_i16(self, a: Self::V, b: Self::V) -> [Self::V; 2];

    /// Reads twice [`Simd::LANES`] pixels of `C` (2 to 4) components of `BYTES` bytes, and returns a vector
    /// of words of each component. Only for sets with [`Simd::DEINTERLEAVES`].
    ///
    /// # Safety
    /// Twice [`Simd::LANES`] pixels are readable at `from`.
    unsafe fn deinterleave<const C: usize, const BYTES: usize>(self, _from: *const u8) -> [Self::V; C] {
        unreachable!("components stay interleaved in such vectors");
    }

    /// Interleaves a vector of each component, and writes the pixels.
    ///
    /// # Safety
    /// A vector is readable at each of `from`, and `C` vectors are writable at `to`.
    unsafe fn interleave<const C: usize, const BYTES: usize>(self, _from: [*const u8; C], _to: *mut u8) {
        unreachable!("components stay interleaved in such vectors");
    }

    /// Numbers as words, clamped, of two vectors in the order of [`Simd::interleave_i16`].
    fn pack_i16(self, a: Self::V, b: Self::V) -> Self::V;

    /// As many bytes as a vector has words, as words.
    ///
    /// # Safety
    /// Twice [`Simd::LANES`] bytes are readable at `from`.
    unsafe fn widen(self, from: *const u8) -> Self::V;

    /// Bytes of two rows as pairs of words, in order.
    ///
    /// # Safety
    /// Twice [`Simd::LANES`] bytes are readable at `a` and at `b`.
    unsafe fn pair_bytes(self, a: *const u8, b: *const u8) -> [Self::V; 2];

    /// Words of two rows as pairs, in order.
    ///
    /// # Safety
    /// Twice [`Simd::LANES`] words are readable at `a` and at `b`.
    unsafe fn pair_words(self, a: *const u16, b: *const u16) -> [Self::V; 2];

    /// Clamps numbers to bytes and writes those of all `N` (2 or 4) vectors.
    ///
    /// # Safety
    /// `N` times [`Simd::LANES`] bytes are writable at `to`.
    unsafe fn store_bytes<const N: usize>(self, values: [Self::V; N], order: Order, to: *mut u8);

    /// Clamps words to bytes and writes them. [`Simd::pack_i16`] has made the words from four vectors of
    /// numbers in `order`; words from [`Order::Interleaved`] are in order.
    ///
    /// # Safety
    /// Four times [`Simd::LANES`] bytes are writable at `to`.
    unsafe fn store_packed(self, words: [Self::V; 2], order: Order, to: *mut u8);

    /// Clamps words to bytes and writes them, those of the first vector at even places and those of the
    /// second at odd ones.
    ///
    /// # Safety
    /// Four times [`Simd::LANES`] bytes are writable at `to`.
    unsafe fn store_even_odd(self, words: [Self::V; 2], to: *mut u8);

    /// Clamps numbers to words of at most `max`, shifts them up by `left` and writes them.
    ///
    /// # Safety
    /// Twice [`Simd::LANES`] words are writable at `to`.
    unsafe fn store_words(self, values: [Self::V; 2], order: Order, max: u16, left: u32, to: *mut u8);
}

/// A loop over integer vectors of any width. `run` is `inline(always)`, and so are the functions that it
/// calls.
pub(in crate::engine::cpu) trait IntLoop {
    /// The loop.
    fn run<L: Simd>(self, simd: L);
}

/// A loop in plain Rust that the compiler vectorizes. `run` is `inline(always)`, and so are the functions
/// that it calls.
pub(in crate::engine::cpu) trait Plain {
    /// The loop.
    fn run(self);
}

/// Samples of a step of the widest loop; lines have room for a multiple of it.
pub(in crate::engine::cpu) const TILE: usize = 64;

/// True for sets with 32 registers instead of 16: they hold the sums of twice as many vectors.
pub(in crate::engine::cpu) const fn has_32_registers<L: Simd>() -> bool {
    L::REGISTERS == 32
}

/// Vector registers of a set.
pub(in crate::engine::cpu) fn registers<L: Simd>(_: L) -> usize {
    L::REGISTERS
}
