//! AVX-512: vectors of sixteen 32-bit integers, with or without the multiply-accumulate instruction of VNNI.
#![allow(unsafe_code)]

use super::avx2::{merge_bytes, mix_bytes, mix_words};
use super::float::{Doubles8, Singles16};
use crate::engine::cpu::simd::float::TransformCosts;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd};
use core::arch::asm;
use core::arch::x86_64::*;

/// The proof that this machine has AVX-512F and BW, and VNNI and VBMI if the fields are true.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Avx512<const VNNI: bool, const VBMI: bool = false>(());

impl<const VNNI: bool, const VBMI: bool> Avx512<VNNI, VBMI> {
    /// True if this build has the loops of the set; build.rs decides.
    const COMPILED: bool = cfg!(compile_avx512) && (!VNNI || cfg!(compile_avx512vnni));
}

impl<const VNNI: bool> Avx512<VNNI> {
    /// The proof; `None` if this machine lacks the instructions, or if no loops are compiled for them.
    pub(super) fn detect() -> Option<Avx512<VNNI>> {
        let has_words =
            std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw");
        let has_all = has_words && (!VNNI || std::arch::is_x86_feature_detected!("avx512vnni"));
        (Self::COMPILED && has_all).then_some(Avx512(()))
    }

    /// A proof without a check: for plans, which run no loops.
    #[cfg(test)]
    pub(super) fn assume() -> Avx512<VNNI> {
        Avx512(())
    }
}

/// Index that sorts groups of four bytes, if each quarter of a vector has one group of each of four inputs.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn fours_sorted(bytes: __m512i) -> __m512i {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(fours, bytes)
    }
}

/// Index of 64-bit elements 0, 2, 4, 6, 1, 3, 5, 7: restores their order after packing two vectors.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn sorted(packed: __m512i) -> __m512i {
    // SAFETY: this function requires AVX-512F.
    unsafe { _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed) }
}

/// 32 words as 16 numbers, each a pair of words.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn paired(low: __m512i, high: __m512i) -> __m512i {
    // SAFETY: this function requires AVX-512F.
    unsafe { _mm512_or_si512(low, _mm512_slli_epi32::<16>(high)) }
}

/// For each component of 32 pixels, the indices of its words in the vectors that hold the pixels.
const fn places_apart<const C: usize>() -> [[u16; 32]; C] {
    let mut places = [[0; 32]; C];
    let mut at = 0;
    while at < 32 * C {
        places[at % C][at / C] = at as u16;
        at += 1;
    }
    places
}

/// The indices of the words of 32 pixels in vectors of one component each.
const fn places_together<const C: usize>() -> [[u16; 32]; C] {
    let mut places = [[0; 32]; C];
    let mut at = 0;
    while at < 32 * C {
        places[at / 32][at % 32] = (at % C * 32 + at / C) as u16;
        at += 1;
    }
    places
}

/// The index of the word `by` places before each of 32 words; the first ones have none.
const fn words_before(by: usize) -> [u16; 32] {
    let mut places = [0; 32];
    let mut at = by;
    while at < 32 {
        places[at] = (at - by) as u16;
        at += 1;
    }
    places
}

/// The same for `C`, 2 `C`, 4 `C`, 8 `C` and 16 `C` places.
const fn all_words_before<const C: usize>() -> [[u16; 32]; 5] {
    [
        words_before(C),
        words_before(2 * C),
        words_before(4 * C),
        words_before(8 * C),
        words_before(16 * C),
    ]
}

/// For each place of the next vector, the index of the last word of its channel in 32 words, for `C`
/// channels.
const fn last_words<const C: usize>() -> [u16; 32] {
    let mut places = [0; 32];
    let mut at = 0;
    while at < 32 {
        places[at] = (32 - C + at % C) as u16;
        at += 1;
    }
    places
}

/// In a vector that has the same word at all places of a channel: the index, within the same eight words, of
/// each place's word 32 places further on.
const fn words_further<const C: usize>() -> [u8; 64] {
    let mut places = [0; 64];
    let mut at = 0;
    while at < 64 {
        // The phase advances by 32 modulo the channels: 2 for three channels, 0 for one, two or four.
        let (word, by) = (at / 2 % 8, 32 % C);
        let from = if word + by < 8 { word + by } else { word + by - C };
        places[at] = (2 * from + at % 2) as u8;
        at += 1;
    }
    places
}

/// For each component of 32 pixels, the indices of its bytes, as words, in the first 64 and in the last 64
/// bytes of the pixels.
const fn byte_places_apart<const C: usize>() -> [[u8; 64]; C] {
    let mut places = [[0; 64]; C];
    let mut at = 0;
    while at < 32 * C {
        let place = if at < 64 { at } else { at + 128 - 32 * C };
        places[at % C][at / C * 2] = place as u8;
        at += 1;
    }
    places
}

/// The indices of the bytes of 64 pixels in vectors of one component each.
const fn byte_places_together<const C: usize>() -> [[u8; 64]; C] {
    let mut places = [[0; 64]; C];
    let mut at = 0;
    while at < 64 * C {
        places[at / 64][at % 64] = (at % C * 64 + at / C) as u8;
        at += 1;
    }
    places
}

/// Words of `C` (2 to 4) vectors at these indices.
///
/// # Safety
/// The machine has AVX-512F and BW.
#[inline(always)]
unsafe fn gathered<const C: usize>(words: &[__m512i; C], places: &[[u16; 32]; C]) -> [__m512i; C] {
    let mut gathered = *words;
    for k in 0..C {
        // SAFETY: this function requires AVX-512F and BW.
        unsafe {
            // The instruction uses the bits of an index that two vectors need.
            let at = _mm512_loadu_si512(places[k].as_ptr().cast());
            let first = _mm512_permutex2var_epi16(words[0], at, words[1]);
            gathered[k] = if C == 2 {
                first
            } else {
                let beyond = _mm512_movepi16_mask(_mm512_slli_epi16::<9>(at));
                if C == 3 {
                    _mm512_mask_permutexvar_epi16(first, beyond, at, words[2])
                } else {
                    let second = _mm512_permutex2var_epi16(words[2], at, words[C - 1]);
                    _mm512_mask_blend_epi16(beyond, first, second)
                }
            };
        }
    }
    gathered
}

/// The instruction of `_mm512_dpwssd_epi32`: the compiler splits a chain of the intrinsic into
/// multiplications and additions, which is slower on processors that multiply and add on the same two ports.
#[inline]
#[target_feature(enable = "avx512f,avx512vnni")]
fn add_products(mut sum: __m512i, pairs: __m512i, weights: __m512i) -> __m512i {
    // SAFETY: it works on registers alone, and the features above are those it needs.
    unsafe {
        asm!(
            "vpdpwssd {sum}, {pairs}, {weights}",
            sum = inlateout(zmm_reg) sum,
            pairs = in(zmm_reg) pairs,
            weights = in(zmm_reg) weights,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// The instruction itself: the compiler splits the intrinsic if a shift follows.
#[inline]
#[target_feature(enable = "avx512f,avx512bw")]
fn high_words(a: __m512i, b: __m512i) -> __m512i {
    let mut products = a;
    // SAFETY: it works on registers alone, and the features above are those it needs.
    unsafe {
        asm!(
            "vpmulhuw {products}, {products}, {b}",
            products = inlateout(zmm_reg) products,
            b = in(zmm_reg) b,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    products
}

impl<const VNNI: bool, const VBMI: bool> Simd for Avx512<VNNI, VBMI> {
    type V = __m512i;

    const LANES: usize = 16;

    const REGISTERS: usize = 32;

    const HAS_VNNI: bool = VNNI;

    const DEINTERLEAVES: bool = true;

    // Estimates are off by e = 2^-14; a step leaves 1.5 e^2, and a unit of rounding 2^-24.
    const NEAR_ROOT_ERROR: f64 = 1.1 / (1 << 24) as f64;

    const LATENCY_BOUND: bool = VNNI;

    type WithoutVnni = Avx512<false, VBMI>;

    type Singles = Singles16;

    type Doubles = Doubles8;

    // Multiply-adds take half as long with VNNI.
    const TRANSFORM_COSTS: TransformCosts = if VNNI {
        TransformCosts {
            singles: [0.7e6, 3.5e6, 19e6],
            doubles: [0.83e6, 4.3e6, 26e6],
        }
    } else {
        TransformCosts {
            singles: [0.44e6, 2.4e6, 13e6],
            doubles: [0.78e6, 4.0e6, 24e6],
        }
    };

    #[inline]
    fn without_vnni(self) -> Avx512<false, VBMI> {
        Avx512(())
    }

    fn singles(self) -> Singles16 {
        // SAFETY: `self` proves AVX-512F.
        unsafe { Singles16::new() }
    }

    fn doubles(self) -> Doubles8 {
        // SAFETY: `self` proves AVX-512F.
        unsafe { Doubles8::new() }
    }

    #[inline]
    fn enter<W: IntLoop>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512bw")]
        fn inside<L: Simd, W: IntLoop>(simd: L, work: W) {
            work.run(simd);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn inside_vnni<L: Simd, W: IntLoop>(simd: L, work: W) {
            work.run(simd);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
        fn inside_vbmi<L: Simd, W: IntLoop>(simd: L, work: W) {
            work.run(simd);
        }
        if const { !Self::COMPILED } {
            unreachable!("`detect` gives no proof of what is not compiled");
        }
        // SAFETY: `self` proves AVX-512, and VNNI or VBMI where the set has them.
        unsafe {
            if VBMI {
                inside_vbmi(self, work);
            } else if VNNI {
                inside_vnni(self, work);
            } else {
                inside(self, work);
            }
        }
    }

    #[inline]
    fn enter_with_bytes<W: IntLoop>(self, work: W) {
        if std::arch::is_x86_feature_detected!("avx512vbmi") {
            Avx512::<false, true>(()).enter(work);
        } else {
            self.enter(work);
        }
    }

    #[inline(always)]
    fn splat(self, value: i32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn load<T>(self, from: *const T) -> __m512i {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn store<T>(self, to: *mut T, value: __m512i) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe { _mm512_storeu_si512(to.cast(), value) }
    }

    #[inline(always)]
    fn prefetch<T>(self, at: *const T) {
        // SAFETY: SSE is part of x86-64, and asking for memory that is not there has no effect.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }

    #[inline(always)]
    fn add_i32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn sub_i32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    fn add_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_add_epi16(a, b) }
    }

    #[inline(always)]
    fn add_i8(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_add_epi8(a, b) }
    }

    #[inline(always)]
    fn earlier_i16<const N: usize>(self, before: __m512i, words: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            match N {
                1 | 3 => {
                    // By eight words, and back by seven or five.
                    let between = _mm512_alignr_epi64::<6>(words, before);
                    match N {
                        1 => _mm512_alignr_epi8::<14>(words, between),
                        _ => _mm512_alignr_epi8::<10>(words, between),
                    }
                }
                2 => _mm512_alignr_epi32::<15>(words, before),
                4 => _mm512_alignr_epi64::<7>(words, before),
                _ => unreachable!("by {N} words"),
            }
        }
    }

    #[inline(always)]
    fn sub_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sub_epi16(a, b) }
    }

    #[inline(always)]
    fn add_saturating_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_adds_epi16(a, b) }
    }

    #[inline(always)]
    fn sub_saturating_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_subs_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mullo_epi16(a, b) }
    }

    #[inline(always)]
    fn min_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_min_epi16(a, b) }
    }

    #[inline(always)]
    fn max_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_max_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_round_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mulhrs_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_high_u16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { high_words(a, b) }
    }

    #[inline(always)]
    fn multiply_high_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mulhi_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_high_u32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let even = _mm512_mul_epu32(a, b);
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
            _mm512_mask_blend_epi32(0b1010_1010_1010_1010, _mm512_srli_epi64::<32>(even), odd)
        }
    }

    #[inline(always)]
    fn add_pairs_u8(self, bytes: __m512i, ones: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_maddubs_epi16(bytes, ones) }
    }

    #[inline(always)]
    fn average_u16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_avg_epu16(a, b) }
    }

    #[inline(always)]
    fn running_sums_i16<const C: usize>(self, words: __m512i, before: __m512i) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512F and BW; places are 64 bytes.
        unsafe {
            let places = |places: &[u16; 32]| _mm512_loadu_si512(places.as_ptr().cast());
            let mut sums = words;
            for (k, from) in const { &all_words_before::<C>() }.iter().enumerate() {
                if C << k < 32 {
                    let there = u32::MAX << (C << k);
                    let moved = _mm512_maskz_permutexvar_epi16(there, places(from), sums);
                    sums = _mm512_add_epi16(sums, moved);
                }
            }
            let end = _mm512_permutexvar_epi16(places(const { &last_words::<C>() }), sums);
            let further = if 32 % C == 0 {
                before
            } else {
                let from = _mm512_loadu_si512(const { &words_further::<C>() }.as_ptr().cast());
                _mm512_shuffle_epi8(before, from)
            };
            [_mm512_add_epi16(sums, before), _mm512_add_epi16(further, end)]
        }
    }

    #[inline(always)]
    fn shift_right_u16(self, a: __m512i, by: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_srl_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn shift_left_i16(self, a: __m512i, by: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sll_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn add_dot_i16(self, sum: __m512i, pairs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512, and VNNI where it is used.
        unsafe {
            if VNNI {
                add_products(sum, pairs, weights)
            } else {
                _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, weights))
            }
        }
    }

    #[inline(always)]
    fn dot_i16(self, pairs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_madd_epi16(pairs, weights) }
    }

    #[inline(always)]
    fn multiply_i32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mullo_epi32(a, b) }
    }

    #[inline(always)]
    fn min_i32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_min_epi32(a, b) }
    }

    #[inline(always)]
    fn max_i32(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_max_epi32(a, b) }
    }

    #[inline(always)]
    fn scaled_roots(self, numbers: __m512i, factor: Option<f32>) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let mut roots = _mm512_sqrt_ps(_mm512_cvtepi32_ps(numbers));
            if let Some(factor) = factor {
                roots = _mm512_mul_ps(roots, _mm512_set1_ps(factor));
            }
            _mm512_cvtps_epi32(roots)
        }
    }

    /// As r = m y with an estimate y of the number's inverse root, and a step of Newton's method,
    /// r + y (m - r^2) / 2. 0 gives the least number.
    #[inline(always)]
    fn near_roots(self, numbers: __m512i, factor: Option<f32>) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let numbers = _mm512_cvtepi32_ps(numbers);
            let inverse = _mm512_rsqrt14_ps(numbers);
            let near = _mm512_mul_ps(numbers, inverse);
            let rest = _mm512_mul_ps(_mm512_fnmadd_ps(near, near, numbers), inverse);
            let mut roots = _mm512_fmadd_ps(rest, _mm512_set1_ps(0.5), near);
            if let Some(factor) = factor {
                roots = _mm512_mul_ps(roots, _mm512_set1_ps(factor));
            }
            _mm512_cvtps_epi32(roots)
        }
    }

    /// As the number times an estimate of the inverse root; 0 gives the least number.
    #[inline(always)]
    fn roots_below(self, numbers: __m512i, factor: Option<f32>) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let numbers = _mm512_cvtepi32_ps(numbers);
            let mut roots = _mm512_mul_ps(numbers, _mm512_rsqrt14_ps(numbers));
            if let Some(factor) = factor {
                roots = _mm512_mul_ps(roots, _mm512_set1_ps(factor));
            }
            _mm512_cvttps_epi32(roots)
        }
    }

    #[inline(always)]
    fn lengths_below(self, a: __m512i, b: __m512i, factor: Option<f32>) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let (a, b) = (_mm512_cvtepi32_ps(a), _mm512_cvtepi32_ps(b));
            let mut roots = _mm512_sqrt_ps(_mm512_fmadd_ps(a, a, _mm512_mul_ps(b, b)));
            if let Some(factor) = factor {
                roots = _mm512_mul_ps(roots, _mm512_set1_ps(factor));
            }
            _mm512_cvttps_epi32(roots)
        }
    }

    #[inline(always)]
    fn count_above_i16(self, count: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let above = _mm512_cmpgt_epi16_mask(a, b);
            _mm512_mask_sub_epi16(count, above, count, _mm512_set1_epi16(-1))
        }
    }

    #[inline(always)]
    fn count_above_i32(self, count: __m512i, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe {
            let above = _mm512_cmpgt_epi32_mask(a, b);
            _mm512_mask_sub_epi32(count, above, count, _mm512_set1_epi32(-1))
        }
    }

    #[inline(always)]
    fn shift_right_i32(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_srav_epi32(a, by) }
    }

    #[inline(always)]
    fn shift_left_i32(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sllv_epi32(a, by) }
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_xor_si512(a, b) }
    }

    #[inline(always)]
    fn merge_i16(self, low: __m512i, high: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mask_blend_epi16(0xAAAA_AAAA, low, high) }
    }

    #[inline(always)]
    fn interleave_i16(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512.
        unsafe { [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)] }
    }

    #[inline(always)]
    fn pack_i16(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_packs_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn widen(self, from: *const u8) -> __m512i {
        // SAFETY: `self` proves AVX-512, the caller the 32 bytes.
        unsafe { _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn pair_bytes(self, a: *const u8, b: *const u8) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512, the caller the 32 bytes of each.
        unsafe {
            let a: [__m128i; 2] = a.cast::<[__m128i; 2]>().read_unaligned();
            let b: [__m128i; 2] = b.cast::<[__m128i; 2]>().read_unaligned();
            [
                paired(_mm512_cvtepu8_epi32(a[0]), _mm512_cvtepu8_epi32(b[0])),
                paired(_mm512_cvtepu8_epi32(a[1]), _mm512_cvtepu8_epi32(b[1])),
            ]
        }
    }

    #[inline(always)]
    unsafe fn pair_words(self, a: *const u16, b: *const u16) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes of each.
        unsafe {
            let a: [__m256i; 2] = a.cast::<[__m256i; 2]>().read_unaligned();
            let b: [__m256i; 2] = b.cast::<[__m256i; 2]>().read_unaligned();
            [
                paired(_mm512_cvtepu16_epi32(a[0]), _mm512_cvtepu16_epi32(b[0])),
                paired(_mm512_cvtepu16_epi32(a[1]), _mm512_cvtepu16_epi32(b[1])),
            ]
        }
    }

    #[inline(always)]
    unsafe fn deinterleave<const C: usize, const BYTES: usize>(self, from: *const u8) -> [__m512i; C] {
        // SAFETY: `self` proves AVX-512, the caller 32 pixels.
        unsafe {
            let mut words = [_mm512_setzero_si512(); C];
            if VBMI && BYTES == 1 {
                let places = const { &byte_places_apart::<C>() };
                let (first, last) = (self.load(from), self.load(from.add(32 * C - 64)));
                for k in 0..C {
                    let at = self.load(places[k].as_ptr());
                    words[k] = _mm512_maskz_permutex2var_epi8(0x5555_5555_5555_5555, first, at, last);
                }
                return words;
            }
            for k in 0..C {
                let at = from.add(32 * k * BYTES);
                words[k] = if BYTES == 1 { self.widen(at) } else { self.load(at) };
            }
            gathered(&words, const { &places_apart::<C>() })
        }
    }

    #[inline(always)]
    unsafe fn interleave<const C: usize, const BYTES: usize>(self, from: [*const u8; C], to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes of each component, and C times as many to
        // write.
        unsafe {
            let mut words = [_mm512_setzero_si512(); C];
            if VBMI && BYTES == 1 {
                let places = const { &byte_places_together::<C>() };
                for c in 0..C {
                    words[c] = self.load(from[c]);
                }
                for k in 0..C {
                    let at = self.load(places[k].as_ptr());
                    let first = _mm512_permutex2var_epi8(words[0], at, words[1]);
                    let pixels = if C == 2 {
                        first
                    } else {
                        // The instruction uses the bits of an index that two vectors need.
                        let beyond = _mm512_movepi8_mask(at);
                        if C == 3 {
                            _mm512_mask_permutexvar_epi8(first, beyond, at, words[2])
                        } else {
                            let second = _mm512_permutex2var_epi8(words[2], at, words[C - 1]);
                            _mm512_mask_blend_epi8(beyond, first, second)
                        }
                    };
                    self.store(to.add(64 * k), pixels);
                }
                return;
            }
            let places = const { &places_together::<C>() };
            for half in 0..2 / BYTES {
                for c in 0..C {
                    let at = from[c].add(32 * half);
                    words[c] = if BYTES == 1 { self.widen(at) } else { self.load(at) };
                }
                let pixels = gathered(&words, places);
                for k in 0..C {
                    let to = to.add(32 * BYTES * (C * half + k));
                    if BYTES == 1 {
                        _mm256_storeu_si256(to.cast(), _mm512_cvtepi16_epi8(pixels[k]));
                    } else {
                        self.store(to, pixels[k]);
                    }
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn store_bytes<const N: usize>(self, values: [__m512i; N], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 16 N bytes.
        unsafe {
            let halves = _mm512_packs_epi32(values[0], values[1]);
            if N == 4 {
                self.store_packed([halves, _mm512_packs_epi32(values[2], values[3])], order, to);
            } else {
                let ordered = match order {
                    Order::Plain => sorted(halves),
                    Order::Interleaved | Order::Alternate => halves,
                };
                // The narrowing instruction treats words as unsigned.
                let positive = _mm512_max_epi16(ordered, _mm512_setzero_si512());
                let bytes = _mm512_cvtusepi16_epi8(positive);
                let bytes = match order {
                    Order::Alternate => _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(mix_bytes())),
                    Order::Plain | Order::Interleaved => bytes,
                };
                _mm256_storeu_si256(to.cast(), bytes);
            }
        }
    }

    #[inline(always)]
    unsafe fn store_packed(self, words: [__m512i; 2], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let bytes = _mm512_packus_epi16(words[0], words[1]);
            let bytes = match order {
                Order::Plain => fours_sorted(bytes),
                Order::Interleaved => sorted(bytes),
                Order::Alternate => _mm512_shuffle_epi8(sorted(bytes), _mm512_broadcast_i32x4(mix_bytes())),
            };
            _mm512_storeu_si512(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn store_even_odd(self, words: [__m512i; 2], to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let bytes = _mm512_packus_epi16(words[0], words[1]);
            let order = _mm512_broadcast_i32x4(merge_bytes());
            _mm512_storeu_si512(to.cast(), _mm512_shuffle_epi8(bytes, order));
        }
    }

    #[inline(always)]
    unsafe fn store_words(self, values: [__m512i; 2], order: Order, max: u16, left: u32, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let words = _mm512_packus_epi32(values[0], values[1]);
            let words = _mm512_min_epu16(words, _mm512_set1_epi16(max as i16));
            let words = _mm512_sll_epi16(words, _mm_cvtsi32_si128(left as i32));
            let words = match order {
                Order::Plain => sorted(words),
                Order::Interleaved => words,
                Order::Alternate => _mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(mix_words())),
            };
            _mm512_storeu_si512(to.cast(), words);
        }
    }
}
