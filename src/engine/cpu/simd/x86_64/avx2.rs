//! AVX2: vectors of eight 32-bit integers, with or without the multiply-accumulate instruction of AVX-VNNI.
#![allow(unsafe_code)]

use super::float::{Doubles4, Singles8};
use crate::engine::cpu::simd::float::TransformCosts;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd};
use core::arch::asm;
use core::arch::x86_64::*;

/// The proof that this machine has AVX2, FMA and F16C, and AVX-VNNI if the field is true.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Avx2<const VNNI: bool>(());

impl<const VNNI: bool> Avx2<VNNI> {
    /// True if this build has the loops of the set; build.rs decides.
    const COMPILED: bool = !VNNI || cfg!(compile_avxvnni);

    /// The proof; `None` if this machine lacks the instructions, or if no loops are compiled for them.
    pub(super) fn detect() -> Option<Avx2<VNNI>> {
        let has_avx2 = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("fma")
            && std::arch::is_x86_feature_detected!("f16c");
        let has_all = has_avx2 && (!VNNI || std::arch::is_x86_feature_detected!("avxvnni"));
        (Self::COMPILED && has_all).then_some(Avx2(()))
    }

    /// A proof without a check: for plans, which run no loops.
    #[cfg(test)]
    pub(super) fn assume() -> Avx2<VNNI> {
        Avx2(())
    }
}

/// Index of the quarters of a vector that packing two vectors leaves as 0, 2, 1, 3: restores their order.
const SORT: i32 = 0b11_01_10_00;

/// Shuffle of each eight bytes: the first four go to even places, the others to odd ones.
#[inline(always)]
pub(super) fn mix_bytes() -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15) }
}

/// Shuffle of sixteen bytes: the first eight go to even places, the others to odd ones.
#[inline(always)]
pub(super) fn merge_bytes() -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15) }
}

/// [`mix_bytes`] for words.
#[inline(always)]
pub(super) fn mix_words() -> __m128i {
    // SAFETY: SSE2 is part of x86-64.
    unsafe { _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15) }
}

/// Adds to each word the word `by` places before it, within each half of a vector; `by` is the number of
/// channels, or twice or four times that.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn add_before(words: __m256i, by: usize) -> __m256i {
    // SAFETY: this function requires AVX2.
    unsafe {
        let moved = match by {
            1 => _mm256_bslli_epi128::<2>(words),
            2 => _mm256_bslli_epi128::<4>(words),
            3 => _mm256_bslli_epi128::<6>(words),
            4 => _mm256_bslli_epi128::<8>(words),
            6 => _mm256_bslli_epi128::<12>(words),
            _ => return words,
        };
        _mm256_add_epi16(words, moved)
    }
}

/// For each place of the next vector, the index of the last word of its channel in `of` words (all 16, or the
/// upper eight), for `C` channels.
const fn last_words<const C: usize>(of: usize, follow: usize) -> [u8; 32] {
    let mut places = [0; 32];
    let mut at = 0;
    while at < 32 {
        let word = of - C + at / 2 % follow % C;
        places[at] = (2 * word + at % 2) as u8;
        at += 1;
    }
    places
}

/// In a vector that has the same word at all places of a channel: the index of each place's word 16 places
/// further on, in either half.
const fn words_further<const C: usize>() -> [u8; 32] {
    let mut places = [0; 32];
    let mut at = 0;
    while at < 32 {
        // The phase advances by 16 modulo the channels: 1 for three channels, 0 for one, two or four.
        let (word, by) = (at / 2 % 8, 16 % C);
        let from = if word + by < 8 { word + by } else { word + by - C };
        places[at] = (2 * from + at % 2) as u8;
        at += 1;
    }
    places
}

/// The instruction of `_mm256_dpwssd_avx_epi32`: the compiler splits a chain of the intrinsic into
/// multiplications and additions, twice as many instructions.
#[inline]
#[target_feature(enable = "avx2,avxvnni")]
fn add_products(mut sum: __m256i, pairs: __m256i, weights: __m256i) -> __m256i {
    // SAFETY: it works on registers alone, and the features above are those it needs.
    unsafe {
        asm!(
            "{{vex}} vpdpwssd {sum}, {pairs}, {weights}",
            sum = inlateout(ymm_reg) sum,
            pairs = in(ymm_reg) pairs,
            weights = in(ymm_reg) weights,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// The instruction itself: the compiler splits the intrinsic if a shift follows.
#[inline]
#[target_feature(enable = "avx2")]
fn high_words(a: __m256i, b: __m256i) -> __m256i {
    let mut products = a;
    // SAFETY: it works on registers alone, and AVX2 is the feature that it needs.
    unsafe {
        asm!(
            "vpmulhuw {products}, {products}, {b}",
            products = inlateout(ymm_reg) products,
            b = in(ymm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    products
}

impl<const VNNI: bool> Simd for Avx2<VNNI> {
    type V = __m256i;

    const LANES: usize = 8;

    const REGISTERS: usize = 16;

    const HAS_VNNI: bool = VNNI;

    // Estimates are off by e = 1.5 x 2^-12; a step leaves 1.5 e^2, and a unit of rounding 2^-24.
    const NEAR_ROOT_ERROR: f64 = 4.5 / (1 << 24) as f64;

    // Sixteen registers are too few for a second chain of sums.
    const LATENCY_BOUND: bool = false;

    type WithoutVnni = Avx2<false>;

    type Singles = Singles8;

    type Doubles = Doubles4;

    const TRANSFORM_COSTS: TransformCosts = TransformCosts {
        singles: [0.42e6, 2.3e6, 12e6],
        doubles: [0.7e6, 3.6e6, 22e6],
    };

    #[inline]
    fn without_vnni(self) -> Avx2<false> {
        Avx2(())
    }

    fn singles(self) -> Singles8 {
        // SAFETY: `self` proves AVX2, fused multiply-adds and F16C.
        unsafe { Singles8::new() }
    }

    fn doubles(self) -> Doubles4 {
        // SAFETY: `self` proves AVX2, fused multiply-adds and F16C.
        unsafe { Doubles4::new() }
    }

    #[inline]
    fn enter<W: IntLoop>(self, work: W) {
        #[target_feature(enable = "avx2,fma")]
        fn inside<L: Simd, W: IntLoop>(simd: L, work: W) {
            work.run(simd);
        }
        #[target_feature(enable = "avx2,avxvnni")]
        fn inside_vnni<L: Simd, W: IntLoop>(simd: L, work: W) {
            work.run(simd);
        }
        if const { !Self::COMPILED } {
            unreachable!("`detect` gives no proof of what is not compiled");
        }
        // SAFETY: `self` proves AVX2 and fused multiply-adds, and AVX-VNNI where the set has it.
        unsafe {
            if VNNI {
                inside_vnni(self, work);
            } else {
                inside(self, work);
            }
        }
    }

    #[inline(always)]
    fn splat(self, value: i32) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load<T>(self, from: *const T) -> __m256i {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store<T>(self, to: *mut T, value: __m256i) {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes.
        unsafe { _mm256_storeu_si256(to.cast(), value) }
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: SSE is part of x86-64, and asking for memory that is not there has no effect.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn add_i32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    fn sub_i32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn add_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_epi16(a, b) }
    }

    #[inline(always)]
    fn add_i8(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_epi8(a, b) }
    }

    #[inline(always)]
    fn earlier_i16<const N: usize>(self, before: __m256i, words: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            // The last half before `words`, and the first half of these.
            let between = _mm256_permute2x128_si256::<0x21>(before, words);
            match N {
                1 => _mm256_alignr_epi8::<14>(words, between),
                2 => _mm256_alignr_epi8::<12>(words, between),
                3 => _mm256_alignr_epi8::<10>(words, between),
                4 => _mm256_alignr_epi8::<8>(words, between),
                _ => unreachable!("by {N} words"),
            }
        }
    }

    #[inline(always)]
    fn sub_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_epi16(a, b) }
    }

    #[inline(always)]
    fn add_saturating_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_adds_epi16(a, b) }
    }

    #[inline(always)]
    fn sub_saturating_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_subs_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mullo_epi16(a, b) }
    }

    #[inline(always)]
    fn min_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_min_epi16(a, b) }
    }

    #[inline(always)]
    fn max_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_max_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_round_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mulhrs_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_high_u16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { high_words(a, b) }
    }

    #[inline(always)]
    fn multiply_high_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mulhi_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_high_u32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let even = _mm256_mul_epu32(a, b);
            let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
            _mm256_blend_epi32::<0b1010_1010>(_mm256_srli_epi64::<32>(even), odd)
        }
    }

    #[inline(always)]
    fn add_pairs_u8(self, bytes: __m256i, ones: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_maddubs_epi16(bytes, ones) }
    }

    #[inline(always)]
    fn average_u16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_avg_epu16(a, b) }
    }

    #[inline(always)]
    fn running_sums_i16<const C: usize>(self, words: __m256i, before: __m256i) -> [__m256i; 2] {
        // SAFETY: `self` proves AVX2; places are 32 bytes.
        unsafe {
            let places = |places: &[u8; 32]| _mm256_loadu_si256(places.as_ptr().cast());
            let halves = add_before(add_before(add_before(words, C), 2 * C), 4 * C);
            // The lower half moves to the upper one; zeros below it.
            let below = _mm256_permute2x128_si256::<0x08>(halves, halves);
            let below = _mm256_shuffle_epi8(below, places(const { &last_words::<C>(8, 8) }));
            let sums = _mm256_add_epi16(halves, below);
            let end = _mm256_permute4x64_epi64::<0xFF>(sums);
            let end = _mm256_shuffle_epi8(end, places(const { &last_words::<C>(4, 16) }));
            let further = if 16 % C == 0 {
                before
            } else {
                _mm256_shuffle_epi8(before, places(const { &words_further::<C>() }))
            };
            [_mm256_add_epi16(sums, before), _mm256_add_epi16(further, end)]
        }
    }

    #[inline(always)]
    fn shift_right_u16(self, a: __m256i, by: u32) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_srl_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn shift_left_i16(self, a: __m256i, by: u32) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sll_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn add_dot_i16(self, sum: __m256i, pairs: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2, and AVX-VNNI where it is used.
        unsafe {
            if VNNI {
                add_products(sum, pairs, weights)
            } else {
                _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, weights))
            }
        }
    }

    #[inline(always)]
    fn dot_i16(self, pairs: __m256i, weights: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_madd_epi16(pairs, weights) }
    }

    #[inline(always)]
    fn multiply_i32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mullo_epi32(a, b) }
    }

    #[inline(always)]
    fn min_i32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_min_epi32(a, b) }
    }

    #[inline(always)]
    fn max_i32(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_max_epi32(a, b) }
    }

    #[inline(always)]
    fn scaled_roots(self, numbers: __m256i, factor: Option<f32>) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let mut roots = _mm256_sqrt_ps(_mm256_cvtepi32_ps(numbers));
            if let Some(factor) = factor {
                roots = _mm256_mul_ps(roots, _mm256_set1_ps(factor));
            }
            _mm256_cvtps_epi32(roots)
        }
    }

    /// As r = m y with an estimate y of the number's inverse root, and a step of Newton's method,
    /// r + y (m - r^2) / 2. 0 gives the least number.
    #[inline(always)]
    fn near_roots(self, numbers: __m256i, factor: Option<f32>) -> __m256i {
        // SAFETY: `self` proves AVX2, and FMA.
        unsafe {
            let numbers = _mm256_cvtepi32_ps(numbers);
            let inverse = _mm256_rsqrt_ps(numbers);
            let near = _mm256_mul_ps(numbers, inverse);
            let rest = _mm256_mul_ps(_mm256_fnmadd_ps(near, near, numbers), inverse);
            let mut roots = _mm256_fmadd_ps(rest, _mm256_set1_ps(0.5), near);
            if let Some(factor) = factor {
                roots = _mm256_mul_ps(roots, _mm256_set1_ps(factor));
            }
            _mm256_cvtps_epi32(roots)
        }
    }

    #[inline(always)]
    fn roots_below(self, numbers: __m256i, factor: Option<f32>) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let mut roots = _mm256_sqrt_ps(_mm256_cvtepi32_ps(numbers));
            if let Some(factor) = factor {
                roots = _mm256_mul_ps(roots, _mm256_set1_ps(factor));
            }
            _mm256_cvttps_epi32(roots)
        }
    }

    #[inline(always)]
    fn lengths_below(self, a: __m256i, b: __m256i, factor: Option<f32>) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let (a, b) = (_mm256_cvtepi32_ps(a), _mm256_cvtepi32_ps(b));
            let squares = _mm256_add_ps(_mm256_mul_ps(a, a), _mm256_mul_ps(b, b));
            let mut roots = _mm256_sqrt_ps(squares);
            if let Some(factor) = factor {
                roots = _mm256_mul_ps(roots, _mm256_set1_ps(factor));
            }
            _mm256_cvttps_epi32(roots)
        }
    }

    #[inline(always)]
    fn count_above_i16(self, count: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_epi16(count, _mm256_cmpgt_epi16(a, b)) }
    }

    #[inline(always)]
    fn count_above_i32(self, count: __m256i, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_epi32(count, _mm256_cmpgt_epi32(a, b)) }
    }

    #[inline(always)]
    fn shift_right_i32(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_srav_epi32(a, by) }
    }

    #[inline(always)]
    fn shift_left_i32(self, a: __m256i, by: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sllv_epi32(a, by) }
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_xor_si256(a, b) }
    }

    #[inline(always)]
    fn merge_i16(self, low: __m256i, high: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_blend_epi16::<0xAA>(low, high) }
    }

    #[inline(always)]
    fn interleave_i16(self, a: __m256i, b: __m256i) -> [__m256i; 2] {
        // SAFETY: `self` proves AVX2.
        unsafe { [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)] }
    }

    #[inline(always)]
    fn pack_i16(self, a: __m256i, b: __m256i) -> __m256i {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_packs_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn widen(self, from: *const u8) -> __m256i {
        // SAFETY: `self` proves AVX2, the caller the 16 bytes.
        unsafe { _mm256_cvtepu8_epi16(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn pair_bytes(self, a: *const u8, b: *const u8) -> [__m256i; 2] {
        // SAFETY: `self` proves AVX2, the caller the 16 bytes of each.
        unsafe {
            let (a, b) = (_mm_loadu_si128(a.cast()), _mm_loadu_si128(b.cast()));
            [
                _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(a, b)),
                _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(a, b)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn pair_words(self, a: *const u16, b: *const u16) -> [__m256i; 2] {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes of each.
        unsafe {
            let (a, b) = (_mm256_loadu_si256(a.cast()), _mm256_loadu_si256(b.cast()));
            let (low, high) = (_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b));
            [
                _mm256_permute2x128_si256::<0x20>(low, high),
                _mm256_permute2x128_si256::<0x31>(low, high),
            ]
        }
    }

    #[inline(always)]
    unsafe fn store_bytes<const N: usize>(self, values: [__m256i; N], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX2, the caller the 8 N bytes.
        unsafe {
            let halves = _mm256_packs_epi32(values[0], values[1]);
            if N == 4 {
                self.store_packed([halves, _mm256_packs_epi32(values[2], values[3])], order, to);
            } else {
                let ordered = match order {
                    Order::Plain => _mm256_permute4x64_epi64::<SORT>(halves),
                    Order::Interleaved | Order::Alternate => halves,
                };
                let (low, high) = (
                    _mm256_castsi256_si128(ordered),
                    _mm256_extracti128_si256::<1>(ordered),
                );
                let bytes = _mm_packus_epi16(low, high);
                let bytes = match order {
                    Order::Alternate => _mm_shuffle_epi8(bytes, mix_bytes()),
                    Order::Plain | Order::Interleaved => bytes,
                };
                _mm_storeu_si128(to.cast(), bytes);
            }
        }
    }

    #[inline(always)]
    unsafe fn store_packed(self, words: [__m256i; 2], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes.
        unsafe {
            let bytes = _mm256_packus_epi16(words[0], words[1]);
            let bytes = match order {
                Order::Plain => _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)),
                Order::Interleaved => _mm256_permute4x64_epi64::<SORT>(bytes),
                Order::Alternate => {
                    let eights = _mm256_permute4x64_epi64::<SORT>(bytes);
                    _mm256_shuffle_epi8(eights, _mm256_broadcastsi128_si256(mix_bytes()))
                }
            };
            _mm256_storeu_si256(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn store_even_odd(self, words: [__m256i; 2], to: *mut u8) {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes.
        unsafe {
            let bytes = _mm256_packus_epi16(words[0], words[1]);
            let order = _mm256_broadcastsi128_si256(merge_bytes());
            _mm256_storeu_si256(to.cast(), _mm256_shuffle_epi8(bytes, order));
        }
    }

    #[inline(always)]
    unsafe fn store_words(self, values: [__m256i; 2], order: Order, max: u16, left: u32, to: *mut u8) {
        // SAFETY: `self` proves AVX2, the caller the 32 bytes.
        unsafe {
            let words = _mm256_packus_epi32(values[0], values[1]);
            let words = _mm256_min_epu16(words, _mm256_set1_epi16(max as i16));
            let words = _mm256_sll_epi16(words, _mm_cvtsi32_si128(left as i32));
            let words = match order {
                Order::Plain => _mm256_permute4x64_epi64::<SORT>(words),
                Order::Interleaved => words,
                Order::Alternate => _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(mix_words())),
            };
            _mm256_storeu_si256(to.cast(), words);
        }
    }
}
