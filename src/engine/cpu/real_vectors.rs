//! Vectors of real numbers in AVX2 with fused multiply-adds, and in AVX-512.
#![allow(unsafe_code)]

use super::overlap_save::Memories;
use super::reals::{Complex, Reals, Work};
use core::arch::x86_64::*;

/// The proof that this machine has AVX2 and fused multiply-adds: vectors of four numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Four(());

/// The proof that this machine has AVX-512F, which includes both: vectors of eight numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Eight(());

impl Four {
    /// The proof, if there is one.
    pub(super) fn detect() -> Option<Four> {
        let has_all =
            std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma");
        has_all.then_some(Four(()))
    }
}

impl Eight {
    /// The proof, if there is one.
    pub(super) fn detect() -> Option<Eight> {
        std::arch::is_x86_feature_detected!("avx512f").then_some(Eight(()))
    }
}

/// The columns of four rows of four.
#[inline(always)]
unsafe fn columns_of_four([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
    // SAFETY: the caller has the proof of AVX2.
    unsafe {
        let (ac, bd) = (
            _mm256_permute2f128_pd::<0x20>(a, c),
            _mm256_permute2f128_pd::<0x20>(b, d),
        );
        let (ac_high, bd_high) = (
            _mm256_permute2f128_pd::<0x31>(a, c),
            _mm256_permute2f128_pd::<0x31>(b, d),
        );
        [
            _mm256_unpacklo_pd(ac, bd),
            _mm256_unpackhi_pd(ac, bd),
            _mm256_unpacklo_pd(ac_high, bd_high),
            _mm256_unpackhi_pd(ac_high, bd_high),
        ]
    }
}

/// The first and third, then the second and fourth quarters of two vectors.
#[inline(always)]
unsafe fn even_and_odd_quarters(a: __m512d, b: __m512d) -> [__m512d; 2] {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe {
        [
            _mm512_shuffle_f64x2::<0b10_00_10_00>(a, b),
            _mm512_shuffle_f64x2::<0b11_01_11_01>(a, b),
        ]
    }
}

/// The columns of four rows of four quarters.
#[inline(always)]
unsafe fn columns_of_quarters([a, b, c, d]: [__m512d; 4]) -> [__m512d; 4] {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe {
        let ([even, odd], [even_below, odd_below]) =
            (even_and_odd_quarters(a, b), even_and_odd_quarters(c, d));
        let [first, third] = even_and_odd_quarters(even, even_below);
        let [second, fourth] = even_and_odd_quarters(odd, odd_below);
        [first, second, third, fourth]
    }
}

/// The columns of eight rows of eight.
#[inline(always)]
unsafe fn columns_of_eight(a: [__m512d; 8]) -> [__m512d; 8] {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe {
        // Quarter q holds lane 2q of two neighbouring rows, and lane 2q + 1.
        let low = columns_of_quarters([
            _mm512_unpacklo_pd(a[0], a[1]),
            _mm512_unpacklo_pd(a[2], a[3]),
            _mm512_unpacklo_pd(a[4], a[5]),
            _mm512_unpacklo_pd(a[6], a[7]),
        ]);
        let high = columns_of_quarters([
            _mm512_unpackhi_pd(a[0], a[1]),
            _mm512_unpackhi_pd(a[2], a[3]),
            _mm512_unpackhi_pd(a[4], a[5]),
            _mm512_unpackhi_pd(a[6], a[7]),
        ]);
        [low[0], high[0], low[1], high[1], low[2], high[2], low[3], high[3]]
    }
}

impl Reals for Four {
    type V = __m256d;

    const LANES: usize = 4;

    #[inline]
    fn enter<W: Work<Four>>(self, work: W) {
        #[target_feature(enable = "avx2,fma")]
        fn inside<W: Work<Four>>(reals: Four, work: W) {
            work.run(reals);
        }
        // SAFETY: `self` proves AVX2 and FMA.
        unsafe { inside(self, work) }
    }

    fn memory(memories: &mut Memories) -> &mut Vec<Complex<__m256d>> {
        &mut memories.four
    }

    #[inline(always)]
    fn splat(self, value: f64) -> __m256d {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_set1_pd(value) }
    }

    #[inline(always)]
    fn add(self, a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_add_pd(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_sub_pd(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m256d, b: __m256d) -> __m256d {
        // SAFETY: `self` proves AVX2.
        unsafe { _mm256_mul_pd(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: `self` proves FMA.
        unsafe { _mm256_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m256d, b: __m256d, c: __m256d) -> __m256d {
        // SAFETY: `self` proves FMA.
        unsafe { _mm256_fmsub_pd(a, b, c) }
    }

    #[inline(always)]
    fn of_integers(self, from: &[i32]) -> __m256d {
        let four = &from[..4];
        // SAFETY: `self` proves AVX2, and four numbers were found there.
        unsafe { _mm256_cvtepi32_pd(_mm_loadu_si128(four.as_ptr().cast())) }
    }

    #[inline(always)]
    fn put_whole(self, value: __m256d, largest: __m256d, to: &mut [i32]) {
        let four = &mut to[..4];
        // SAFETY: `self` proves AVX2, and room for four numbers was found there.
        unsafe {
            let clamped = _mm256_min_pd(_mm256_max_pd(value, _mm256_setzero_pd()), largest);
            _mm_storeu_si128(four.as_mut_ptr().cast(), _mm256_cvttpd_epi32(clamped));
        }
    }

    #[inline(always)]
    fn transpose(self, from: &[Complex<__m256d>], to: &mut [Complex<__m256d>]) {
        let (from, to) = (&from[..4], &mut to[..4]);
        // SAFETY: `self` proves AVX2.
        let (re, im) = unsafe {
            (
                columns_of_four([from[0].re, from[1].re, from[2].re, from[3].re]),
                columns_of_four([from[0].im, from[1].im, from[2].im, from[3].im]),
            )
        };
        for (to, (re, im)) in to.iter_mut().zip(re.into_iter().zip(im)) {
            *to = Complex { re, im };
        }
    }
}

impl Reals for Eight {
    type V = __m512d;

    const LANES: usize = 8;

    #[inline]
    fn enter<W: Work<Eight>>(self, work: W) {
        #[target_feature(enable = "avx512f")]
        fn inside<W: Work<Eight>>(reals: Eight, work: W) {
            work.run(reals);
        }
        // SAFETY: `self` proves AVX-512F.
        unsafe { inside(self, work) }
    }

    fn memory(memories: &mut Memories) -> &mut Vec<Complex<__m512d>> {
        &mut memories.eight
    }

    #[inline(always)]
    fn splat(self, value: f64) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_set1_pd(value) }
    }

    #[inline(always)]
    fn add(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_add_pd(a, b) }
    }

    #[inline(always)]
    fn sub(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_sub_pd(a, b) }
    }

    #[inline(always)]
    fn mul(self, a: __m512d, b: __m512d) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_mul_pd(a, b) }
    }

    #[inline(always)]
    fn mul_add(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_fmadd_pd(a, b, c) }
    }

    #[inline(always)]
    fn mul_sub(self, a: __m512d, b: __m512d, c: __m512d) -> __m512d {
        // SAFETY: `self` proves AVX-512F.
        unsafe { _mm512_fmsub_pd(a, b, c) }
    }

    #[inline(always)]
    fn of_integers(self, from: &[i32]) -> __m512d {
        let eight = &from[..8];
        // SAFETY: `self` proves AVX-512F, and eight numbers were found there.
        unsafe { _mm512_cvtepi32_pd(_mm256_loadu_si256(eight.as_ptr().cast())) }
    }

    #[inline(always)]
    fn put_whole(self, value: __m512d, largest: __m512d, to: &mut [i32]) {
        let eight = &mut to[..8];
        // SAFETY: `self` proves AVX-512F, and room for eight numbers was found there.
        unsafe {
            let clamped = _mm512_min_pd(_mm512_max_pd(value, _mm512_setzero_pd()), largest);
            _mm256_storeu_si256(eight.as_mut_ptr().cast(), _mm512_cvttpd_epi32(clamped));
        }
    }

    #[inline(always)]
    fn transpose(self, from: &[Complex<__m512d>], to: &mut [Complex<__m512d>]) {
        let (from, to) = (&from[..8], &mut to[..8]);
        let (mut re, mut im) = ([self.splat(0.0); 8], [self.splat(0.0); 8]);
        for (from, (re, im)) in from.iter().zip(re.iter_mut().zip(&mut im)) {
            (*re, *im) = (from.re, from.im);
        }
        // SAFETY: `self` proves AVX-512F.
        let (re, im) = unsafe { (columns_of_eight(re), columns_of_eight(im)) };
        for (to, (re, im)) in to.iter_mut().zip(re.into_iter().zip(im)) {
            *to = Complex { re, im };
        }
    }
}
