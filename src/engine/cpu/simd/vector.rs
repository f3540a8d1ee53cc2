//! The trait of integer vectors: the few operations that inner loops are made of, which each instruction set
//! implements.
//!
//! A value of a type that is [`Simd`] proves that this machine has the instructions, so that arithmetic is
//! safe to call. Everything is inlined into [`Simd::enter`], which is compiled with the set's instructions:
//! hence the `inline(always)` throughout.
#![allow(unsafe_code)]

use super::float::{Exact, Samples, TransformTerms};

/// How the samples of two neighbouring vectors of numbers lie in them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum Order {
    /// One after the other.
    Plain,
    /// As [`Simd::interleave_words`] leaves them: sixteen bytes of the first and sixteen of the second vector
    /// hold eight samples in order.
    Interleaved,
    /// Those at even places in the first vector, those at odd places in the second.
    Alternate,
}

impl Order {
    /// Which sample lies at place `at`, in vectors of `lanes` numbers.
    pub(in crate::engine::cpu) fn sample(self, at: usize, lanes: usize) -> usize {
        let (pair, within) = (at / (2 * lanes) * 2 * lanes, at % (2 * lanes));
        let (second, lane) = (within / lanes, within % lanes);
        match self {
            Order::Plain => at,
            // Four numbers of each eight samples in either vector.
            Order::Interleaved => pair + lane / 4 * 8 + second * 4 + lane % 4,
            Order::Alternate => pair + 2 * lane + second,
        }
    }
}

/// A set of vector instructions, and the proof that this machine has it. A vector holds [`Simd::LANES`]
/// numbers of 32 bits, or twice as many *words* of 16 bits.
pub(in crate::engine::cpu) trait Simd: Copy {
    /// A vector.
    type V: Copy;

    /// Numbers of 32 bits that a vector holds.
    const LANES: usize;

    /// Registers that hold vectors.
    const REGISTERS: usize;

    /// True if products are added to sums by the instruction that multiplies.
    const FUSED_MULTIPLY_ADD: bool;

    /// True where a sum waits for each product as long as it takes to multiply, and registers hold the sums
    /// of as many vectors as fill that time.
    const LATENCY_BOUND: bool;

    /// The same vectors without the instruction that adds products to sums.
    type Unfused: Simd<V = Self::V>;

    /// Vectors of real numbers of 32 bits.
    type Singles: Samples;

    /// Vectors of real numbers of 64 bits.
    type Doubles: Exact;

    /// What Fourier transforms take with these.
    const TRANSFORM_TERMS: TransformTerms;

    /// The same proof for loops that hardly multiply and add: both sets share what is compiled of these.
    fn unfused(self) -> Self::Unfused;

    /// The same proof for real numbers of 32 bits.
    fn singles(self) -> Self::Singles;

    /// The same proof for real numbers of 64 bits.
    fn doubles(self) -> Self::Doubles;

    /// True if rows of interleaved components are worth deinterleaving, for which vectors need permutations
    /// across their whole width.
    const DEINTERLEAVES: bool = false;

    /// Runs a loop, compiled for this set.
    fn enter<W: Work>(self, work: W);

    /// The same for a loop that permutes bytes, for which a machine may have more.
    #[inline]
    fn enter_with_bytes<W: Work>(self, work: W) {
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
    fn add(self, a: Self::V, b: Self::V) -> Self::V;

    /// Differences of numbers.
    fn sub_numbers(self, a: Self::V, b: Self::V) -> Self::V;

    /// Sums of words.
    fn add_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// Differences of words.
    fn sub_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The low words of the products of words.
    fn multiply_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The smaller of words with sign.
    fn min_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The larger of words with sign.
    fn max_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The products of words, divided by 2^15 and rounded, halves up.
    fn multiply_round_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The high words of the products of words without sign.
    fn multiply_high_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// The high halves of the products of numbers without sign.
    fn multiply_high_numbers(self, a: Self::V, b: Self::V) -> Self::V;

    /// The sums of pairs of bytes without sign, where `ones` has 1 in every byte.
    fn add_pairs(self, bytes: Self::V, ones: Self::V) -> Self::V;

    /// The means of words without sign, halves up.
    fn average_words(self, a: Self::V, b: Self::V) -> Self::V;

    /// Words added up from the first one on, each with those that are a multiple of `C` (1 to 4) places
    /// before it and with what `before` has in its place; and what a vector that follows has before it.
    fn running_sums<const C: usize>(self, words: Self::V, before: Self::V) -> [Self::V; 2];

    /// Words without sign, shifted down.
    fn shift_words_down(self, a: Self::V, by: u32) -> Self::V;

    /// Words, shifted up.
    fn shift_words_up(self, a: Self::V, by: u32) -> Self::V;

    /// `sum + low x low + high x high`: each number's two words, times the weight's two words, added up.
    fn multiply_add(self, sum: Self::V, pairs: Self::V, weights: Self::V) -> Self::V;

    /// `low x low + high x high`, likewise.
    fn multiply(self, pairs: Self::V, weights: Self::V) -> Self::V;

    /// The low halves of the products of numbers.
    fn multiply_numbers(self, a: Self::V, b: Self::V) -> Self::V;

    /// The smaller of numbers with sign.
    fn min_numbers(self, a: Self::V, b: Self::V) -> Self::V;

    /// The larger of numbers with sign.
    fn max_numbers(self, a: Self::V, b: Self::V) -> Self::V;

    /// The roots of numbers that are at least 0, times `factor` if there is one, rounded to nearest, halves
    /// to even. Each step, from the real number of 32 bits on, is rounded as IEEE 754 has it.
    fn scaled_roots(self, numbers: Self::V, factor: Option<f32>) -> Self::V;

    /// `factor` times the roots of the sums of the squares of numbers, rounded likewise in each step and to
    /// nearest, halves to even.
    fn scaled_lengths(self, a: Self::V, b: Self::V, factor: f32) -> Self::V;

    /// Numbers, shifted down with their sign.
    fn shift_down(self, a: Self::V, by: Self::V) -> Self::V;

    /// Numbers, shifted up.
    fn shift_up(self, a: Self::V, by: Self::V) -> Self::V;

    /// The bits that both have.
    fn and(self, a: Self::V, b: Self::V) -> Self::V;

    /// The bits in which they differ.
    fn xor(self, a: Self::V, b: Self::V) -> Self::V;

    /// The low words of `low` and the high words of `high`.
    fn merge(self, low: Self::V, high: Self::V) -> Self::V;

    /// The words of `a` and `b` as pairs, in [`Order::Interleaved`].
    fn interleave_words(self, a: Self::V, b: Self::V) -> [Self::V; 2];

    /// The words of each of `C` (2 to 4) components of as many pixels as a vector has words, whose samples
    /// have so many `BYTES`; only for sets that [`Simd::DEINTERLEAVES`] names.
    ///
    /// # Safety
    /// So many pixels are readable at `from`.
    unsafe fn deinterleave<const C: usize, const BYTES: usize>(self, _from: *const u8) -> [Self::V; C] {
        unreachable!("components stay interleaved in such vectors");
    }

    /// The other way: writes the pixels of which a vector of each component is given.
    ///
    /// # Safety
    /// A vector is readable at each of `from`, and `C` vectors are writable at `to`.
    unsafe fn interleave<const C: usize, const BYTES: usize>(self, _from: [*const u8; C], _to: *mut u8) {
        unreachable!("components stay interleaved in such vectors");
    }

    /// Numbers as words, clamped, where they come as [`Simd::interleave_words`] leaves them.
    fn pack_words(self, a: Self::V, b: Self::V) -> Self::V;

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

    /// Clamps words to bytes and writes them, where [`Simd::pack_words`] has made them of four vectors of
    /// numbers in that order; of [`Order::Interleaved`] it makes words in order.
    ///
    /// # Safety
    /// Four times [`Simd::LANES`] bytes are writable at `to`.
    unsafe fn store_packed(self, words: [Self::V; 2], order: Order, to: *mut u8);

    /// The same where [`Simd::merge`] has made the words, of the numbers of one vector and of the next.
    ///
    /// # Safety
    /// As there.
    unsafe fn store_merged(self, words: [Self::V; 2], order: Order, to: *mut u8);

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

/// A loop over vectors of any width. `run` is `inline(always)`, and so is what it calls.
pub(in crate::engine::cpu) trait Work {
    /// The loop.
    fn run<L: Simd>(self, simd: L);
}

/// A loop in plain Rust that the compiler makes vectors of. `run` is `inline(always)`, and so is what it
/// calls.
pub(in crate::engine::cpu) trait Plain {
    /// The loop.
    fn run(self);
}

/// Samples that one step of the widest loop makes; lines are long enough for a multiple of it.
pub(in crate::engine::cpu) const TILE: usize = 64;

/// True for sets of 32 registers instead of 16, which hold the sums of twice as many vectors.
pub(in crate::engine::cpu) const fn has_32_registers<L: Simd>() -> bool {
    L::REGISTERS == 32
}
