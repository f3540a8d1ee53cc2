//! Integer samples as vectors of floating-point numbers, with AVX2 and with AVX-512.
#![allow(unsafe_code)]

use super::float::{Singles8, Singles16};
use crate::engine::cpu::simd::levels::Levels;
use std::arch::x86_64::*;

impl Levels for Singles8 {
    #[inline(always)]
    fn of_levels<const BYTES: usize>(self, from: &[u8]) -> __m256 {
        let from = from[..8 * BYTES].as_ptr();
        // SAFETY: `self` proves AVX2, and the slice has the 8 BYTES bytes that are read.
        unsafe {
            _mm256_cvtepi32_ps(match BYTES {
                1 => _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())),
                _ => _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())),
            })
        }
    }

    #[inline(always)]
    fn store_levels<const BYTES: usize>(self, value: __m256, largest: __m256, to: &mut [u8]) {
        let to = to[..8 * BYTES].as_mut_ptr();
        // SAFETY: `self` proves AVX2, and the slice has the 8 BYTES bytes that are written.
        unsafe {
            // NaN stays NaN (`min` returns its second operand) and converts to the least integer; packing
            // clamps negative numbers to 0.
            let numbers = _mm256_cvttps_epi32(_mm256_min_ps(largest, value));
            let (low, high) = (
                _mm256_castsi256_si128(numbers),
                _mm256_extracti128_si256::<1>(numbers),
            );
            let words = _mm_packus_epi32(low, high);
            match BYTES {
                1 => _mm_storel_epi64(to.cast(), _mm_packus_epi16(words, words)),
                _ => _mm_storeu_si128(to.cast(), words),
            }
        }
    }

    #[inline(always)]
    fn whole(self, value: __m256, largest: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let within = _mm256_min_ps(_mm256_max_ps(value, _mm256_setzero_ps()), largest);
            _mm256_cvtepi32_ps(_mm256_cvttps_epi32(within))
        }
    }

    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    fn within_fours(self, value: __m256, places: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_permutevar_ps(value, _mm256_castps_si256(places)) }
    }

    #[inline(always)]
    fn select(self, mask: __m256, a: __m256, b: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_blendv_ps(b, a, mask) }
    }

    #[inline(always)]
    fn choose(self, by: __m256, zero: __m256, value: __m256) -> __m256 {
        // SAFETY: `self` proves AVX2.
        unsafe {
            let is_zero = _mm256_cmp_ps::<_CMP_EQ_OQ>(by, _mm256_setzero_ps());
            _mm256_blendv_ps(value, zero, is_zero)
        }
    }
}

impl Levels for Singles16 {
    #[inline(always)]
    fn of_levels<const BYTES: usize>(self, from: &[u8]) -> __m512 {
        let from = from[..16 * BYTES].as_ptr();
        // SAFETY: `self` proves AVX-512F, and the slice has the 16 BYTES bytes that are read.
        unsafe {
            _mm512_cvtepi32_ps(match BYTES {
                1 => _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())),
                _ => _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())),
            })
        }
    }

    #[inline(always)]
    fn store_levels<const BYTES: usize>(self, value: __m512, largest: __m512, to: &mut [u8]) {
        let to = to[..16 * BYTES].as_mut_ptr();
        // SAFETY: `self` proves AVX-512F, and the slice has the 16 BYTES bytes that are written.
        unsafe {
            let numbers = _mm512_cvttps_epi32(within(value, largest));
            match BYTES {
                1 => _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(numbers)),
                _ => _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(numbers)),
            }
        }
    }

    #[inline(always)]
    fn whole(self, value: __m512, largest: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_cvtepi32_ps(_mm512_cvttps_epi32(within(value, largest))) }
    }

    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    fn within_fours(self, value: __m512, places: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_permutevar_ps(value, _mm512_castps_si512(places)) }
    }

    #[inline(always)]
    fn select(self, mask: __m512, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512F.
        unsafe {
            let mask = _mm512_castps_si512(mask);
            let is_set = _mm512_test_epi32_mask(mask, mask);
            _mm512_mask_blend_ps(is_set, b, a)
        }
    }

    #[inline(always)]
    fn choose(self, by: __m512, zero: __m512, value: __m512) -> __m512 {
        // SAFETY: `self` proves AVX-512F.
        unsafe {
            let is_zero = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(by, _mm512_setzero_ps());
            _mm512_mask_blend_ps(is_zero, value, zero)
        }
    }
}

/// Clamps to 0 to `largest`; NaN becomes 0.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn within(value: __m512, largest: __m512) -> __m512 {
    // SAFETY: this function requires AVX-512F.
    unsafe { _mm512_min_ps(_mm512_max_ps(value, _mm512_setzero_ps()), largest) }
}
