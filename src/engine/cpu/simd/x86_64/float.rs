//! Floating-point vectors of AVX2 with fused multiply-adds, and of AVX-512.
#![allow(unsafe_code)]

use crate::engine::cpu::simd::float::{Complex, Exact, Float, FloatLoop, Samples, Sums};
use core::arch::x86_64::*;

/// Transposes four rows within each 128 bits: quarter q of vector c holds lane 4q + c of all rows.
macro_rules! columns_within_quarters {
    ($name:ident, $v:ty, $unpack_low:ident, $unpack_high:ident, $shuffle:ident) => {
        /// Transposes four rows within each 128 bits.
        ///
        /// # Safety
        /// The machine has the instructions.
        #[inline(always)]
        unsafe fn $name([a, b, c, d]: [$v; 4]) -> [$v; 4] {
            // SAFETY: this function requires the instructions.
            unsafe {
                let (ab, cd) = ($unpack_low(a, b), $unpack_low(c, d));
                let (ab_high, cd_high) = ($unpack_high(a, b), $unpack_high(c, d));
                [
                    $shuffle::<0b01_00_01_00>(ab, cd),
                    $shuffle::<0b11_10_11_10>(ab, cd),
                    $shuffle::<0b01_00_01_00>(ab_high, cd_high),
                    $shuffle::<0b11_10_11_10>(ab_high, cd_high),
                ]
            }
        }
    };
}

columns_within_quarters!(
    quarters_of_eight,
    __m256,
    _mm256_unpacklo_ps,
    _mm256_unpackhi_ps,
    _mm256_shuffle_ps
);

columns_within_quarters!(
    quarters_of_sixteen,
    __m512,
    _mm512_unpacklo_ps,
    _mm512_unpackhi_ps,
    _mm512_shuffle_ps
);

/// Transposes four rows of four numbers.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn columns_of_doubles4([a, b, c, d]: [__m256d; 4]) -> [__m256d; 4] {
    // SAFETY: this function requires AVX2.
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

/// Transposes eight rows of eight numbers.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn columns_of_singles8(a: [__m256; 8]) -> [__m256; 8] {
    // SAFETY: this function requires AVX2.
    unsafe {
        let upper = quarters_of_eight([a[0], a[1], a[2], a[3]]);
        let lower = quarters_of_eight([a[4], a[5], a[6], a[7]]);
        [
            _mm256_permute2f128_ps::<0x20>(upper[0], lower[0]),
            _mm256_permute2f128_ps::<0x20>(upper[1], lower[1]),
            _mm256_permute2f128_ps::<0x20>(upper[2], lower[2]),
            _mm256_permute2f128_ps::<0x20>(upper[3], lower[3]),
            _mm256_permute2f128_ps::<0x31>(upper[0], lower[0]),
            _mm256_permute2f128_ps::<0x31>(upper[1], lower[1]),
            _mm256_permute2f128_ps::<0x31>(upper[2], lower[2]),
            _mm256_permute2f128_ps::<0x31>(upper[3], lower[3]),
        ]
    }
}

/// The first and third, then the second and fourth quarters of two vectors.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn even_and_odd_quarters(a: __m512d, b: __m512d) -> [__m512d; 2] {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        [
            _mm512_shuffle_f64x2::<0b10_00_10_00>(a, b),
            _mm512_shuffle_f64x2::<0b11_01_11_01>(a, b),
        ]
    }
}

/// Transposes four rows of four quarters.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn columns_of_quarters([a, b, c, d]: [__m512d; 4]) -> [__m512d; 4] {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let ([even, odd], [even_below, odd_below]) =
            (even_and_odd_quarters(a, b), even_and_odd_quarters(c, d));
        let [first, third] = even_and_odd_quarters(even, even_below);
        let [second, fourth] = even_and_odd_quarters(odd, odd_below);
        [first, second, third, fourth]
    }
}

/// Transposes eight rows of eight numbers.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn columns_of_doubles8(a: [__m512d; 8]) -> [__m512d; 8] {
    // SAFETY: this function requires AVX-512F.
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

/// Transposes sixteen rows of sixteen numbers.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn columns_of_singles16(a: [__m512; 16]) -> [__m512; 16] {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let fours = [
            quarters_of_sixteen([a[0], a[1], a[2], a[3]]),
            quarters_of_sixteen([a[4], a[5], a[6], a[7]]),
            quarters_of_sixteen([a[8], a[9], a[10], a[11]]),
            quarters_of_sixteen([a[12], a[13], a[14], a[15]]),
        ];
        let mut columns = a;
        let mut c = 0;
        while c < 4 {
            let quarters = columns_of_quarters([
                _mm512_castps_pd(fours[0][c]),
                _mm512_castps_pd(fours[1][c]),
                _mm512_castps_pd(fours[2][c]),
                _mm512_castps_pd(fours[3][c]),
            ]);
            columns[c] = _mm512_castpd_ps(quarters[0]);
            columns[4 + c] = _mm512_castpd_ps(quarters[1]);
            columns[8 + c] = _mm512_castpd_ps(quarters[2]);
            columns[12 + c] = _mm512_castpd_ps(quarters[3]);
            c += 1;
        }
        columns
    }
}

/// Four words from `from` on, as numbers of 64 bits.
///
/// # Safety
/// The machine has AVX2, and four words are readable at `from`.
#[inline(always)]
unsafe fn doubles4_of_words(from: *const u16) -> __m256d {
    // SAFETY: this function requires AVX2, and what is read at `from`.
    unsafe { _mm256_cvtepi32_pd(_mm_cvtepu16_epi32(_mm_loadl_epi64(from.cast()))) }
}

/// Stores numbers from 0 to 65535 as four words from `to` on, without their fractions.
///
/// # Safety
/// The machine has AVX2, and four words are writable at `to`.
#[inline(always)]
unsafe fn doubles4_to_words(value: __m256d, to: *mut u16) {
    // SAFETY: this function requires AVX2, and what is written at `to`.
    unsafe {
        let numbers = _mm256_cvttpd_epi32(value);
        _mm_storel_epi64(to.cast(), _mm_packus_epi32(numbers, numbers));
    }
}

/// A bit for each number that lies further than `within` from the half between two integers.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn doubles4_far(value: __m256d, within: __m256d) -> u32 {
    // SAFETY: this function requires AVX2.
    unsafe {
        let from_half = _mm256_sub_pd(_mm256_sub_pd(value, _mm256_floor_pd(value)), _mm256_set1_pd(0.5));
        let distance = _mm256_andnot_pd(_mm256_set1_pd(-0.0), from_half);
        _mm256_movemask_pd(_mm256_cmp_pd::<_CMP_GT_OQ>(distance, within)) as u32
    }
}

/// Eight words from `from` on, as numbers of 32 bits.
///
/// # Safety
/// The machine has AVX2, and eight words are readable at `from`.
#[inline(always)]
unsafe fn singles8_of_words(from: *const u16) -> __m256 {
    // SAFETY: this function requires AVX2, and what is read at `from`.
    unsafe { _mm256_cvtepi32_ps(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()))) }
}

/// Stores numbers from 0 to 65535 as eight words from `to` on, without their fractions.
///
/// # Safety
/// The machine has AVX2, and eight words are writable at `to`.
#[inline(always)]
unsafe fn singles8_to_words(value: __m256, to: *mut u16) {
    // SAFETY: this function requires AVX2, and what is written at `to`.
    unsafe {
        let numbers = _mm256_cvttps_epi32(value);
        let words = _mm_packus_epi32(
            _mm256_castsi256_si128(numbers),
            _mm256_extracti128_si256::<1>(numbers),
        );
        _mm_storeu_si128(to.cast(), words);
    }
}

/// A bit for each number that lies further than `within` from the half between two integers.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn singles8_far(value: __m256, within: __m256) -> u32 {
    // SAFETY: this function requires AVX2.
    unsafe {
        let from_half = _mm256_sub_ps(_mm256_sub_ps(value, _mm256_floor_ps(value)), _mm256_set1_ps(0.5));
        let distance = _mm256_andnot_ps(_mm256_set1_ps(-0.0), from_half);
        _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(distance, within)) as u32
    }
}

/// Eight words from `from` on, as numbers of 64 bits.
///
/// # Safety
/// The machine has AVX-512F, and eight words are readable at `from`.
#[inline(always)]
unsafe fn doubles8_of_words(from: *const u16) -> __m512d {
    // SAFETY: this function requires AVX-512F, and what is read at `from`.
    unsafe { _mm512_cvtepi32_pd(_mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()))) }
}

/// Stores numbers from 0 to 65535 as eight words from `to` on, without their fractions.
///
/// # Safety
/// The machine has AVX-512F, and eight words are writable at `to`.
#[inline(always)]
unsafe fn doubles8_to_words(value: __m512d, to: *mut u16) {
    // SAFETY: this function requires AVX-512F, and what is written at `to`.
    unsafe {
        let numbers = _mm512_cvttpd_epi32(value);
        let words = _mm_packus_epi32(
            _mm256_castsi256_si128(numbers),
            _mm256_extracti128_si256::<1>(numbers),
        );
        _mm_storeu_si128(to.cast(), words);
    }
}

/// A bit for each number that lies further than `within` from the half between two integers.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn doubles8_far(value: __m512d, within: __m512d) -> u32 {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let floor = floor_of_doubles8(value);
        let from_half = _mm512_sub_pd(_mm512_sub_pd(value, floor), _mm512_set1_pd(0.5));
        u32::from(_mm512_cmp_pd_mask::<_CMP_GT_OQ>(_mm512_abs_pd(from_half), within))
    }
}

/// Sixteen words from `from` on, as numbers of 32 bits.
///
/// # Safety
/// The machine has AVX-512F, and sixteen words are readable at `from`.
#[inline(always)]
unsafe fn singles16_of_words(from: *const u16) -> __m512 {
    // SAFETY: this function requires AVX-512F, and what is read at `from`.
    unsafe { _mm512_cvtepi32_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()))) }
}

/// Stores numbers from 0 to 65535 as sixteen words from `to` on, without their fractions.
///
/// # Safety
/// The machine has AVX-512F, and sixteen words are writable at `to`.
#[inline(always)]
unsafe fn singles16_to_words(value: __m512, to: *mut u16) {
    // SAFETY: this function requires AVX-512F, and what is written at `to`.
    unsafe { _mm256_storeu_si256(to.cast(), _mm512_cvtepi32_epi16(_mm512_cvttps_epi32(value))) }
}

/// A bit for each number that lies further than `within` from the half between two integers.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn singles16_far(value: __m512, within: __m512) -> u32 {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let floor = _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(value);
        let from_half = _mm512_sub_ps(_mm512_sub_ps(value, floor), _mm512_set1_ps(0.5));
        u32::from(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(_mm512_abs_ps(from_half), within))
    }
}

/// [`Float`] with the named instructions.
macro_rules! vectors {
    (
        $(#[$doc:meta])* $name:ident, $v:ty, $number:ty, $lanes:literal, $features:literal,
        $splat:ident, $load:ident, $add:ident, $sub:ident, $mul:ident, $mul_add:ident, $mul_sub:ident,
        $max:ident, $min:ident,
        $of_words:ident, $to_words:ident, $far:ident, $columns:ident
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(in crate::engine::cpu) struct $name(());

        impl $name {
            /// The proof.
            ///
            /// # Safety
            /// The machine has the features.
            pub(super) unsafe fn new() -> $name {
                $name(())
            }
        }

        impl Float for $name {
            type Number = $number;

            type V = $v;

            const LANES: usize = $lanes;

            const UNIT: f64 = <$number>::EPSILON as f64 / 2.0;

            #[inline]
            fn enter<W: FloatLoop<$name>>(self, work: W) {
                #[target_feature(enable = $features)]
                fn inside<W: FloatLoop<$name>>(simd: $name, work: W) {
                    work.run(simd);
                }
                if const { size_of::<$v>() == 64 && !cfg!(compile_avx512) } {
                    unreachable!("there is no proof of what is not compiled");
                }
                // SAFETY: `self` proves the features.
                unsafe { inside(self, work) }
            }

            #[inline(always)]
            fn number(value: f64) -> $number {
                value as $number
            }

            #[inline(always)]
            fn splat(self, value: $number) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            fn of_doubles(self, from: &[f64]) -> $v {
                let numbers: [$number; $lanes] = std::array::from_fn(|i| from[i] as $number);
                // SAFETY: `self` proves the instruction.
                unsafe { $load(numbers.as_ptr()) }
            }

            #[inline(always)]
            fn of_words(self, from: &[u16]) -> $v {
                let from = &from[..$lanes];
                // SAFETY: `self` proves the instructions, which read the $lanes words of the slice.
                unsafe { $of_words(from.as_ptr()) }
            }

            #[inline(always)]
            fn add(self, a: $v, b: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            fn sub(self, a: $v, b: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $sub(a, b) }
            }

            #[inline(always)]
            fn mul(self, a: $v, b: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $mul(a, b) }
            }

            #[inline(always)]
            fn mul_add(self, a: $v, b: $v, c: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $mul_add(a, b, c) }
            }

            #[inline(always)]
            fn mul_sub(self, a: $v, b: $v, c: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $mul_sub(a, b, c) }
            }

            #[inline(always)]
            fn store_whole(self, value: $v, largest: $v, to: &mut [u16]) {
                let to = &mut to[..$lanes];
                // SAFETY: `self` proves the instructions, which write the $lanes words of the slice.
                unsafe { $to_words($min($max(value, $splat(0.0)), largest), to.as_mut_ptr()) }
            }

            #[inline(always)]
            fn far_from_halves(self, value: $v, within: $v) -> u32 {
                // SAFETY: `self` proves the instructions.
                unsafe { $far(value, within) }
            }

            #[inline(always)]
            fn total(self, value: $v) -> f64 {
                // SAFETY: a vector is as many numbers side by side.
                let numbers: [$number; $lanes] = unsafe { std::mem::transmute(value) };
                numbers.iter().map(|&v| f64::from(v)).sum()
            }

            #[inline(always)]
            fn transpose(self, from: &[Complex<$v>], to: &mut [Complex<$v>]) {
                let (from, to) = (&from[..$lanes], &mut to[..$lanes]);
                let (mut re, mut im) = ([self.splat(0.0); $lanes], [self.splat(0.0); $lanes]);
                for (from, (re, im)) in from.iter().zip(re.iter_mut().zip(&mut im)) {
                    (*re, *im) = (from.re, from.im);
                }
                // SAFETY: `self` proves the instructions.
                let (re, im) = unsafe { ($columns(re), $columns(im)) };
                for (to, (re, im)) in to.iter_mut().zip(re.into_iter().zip(im)) {
                    *to = Complex { re, im };
                }
            }
        }
    };
}

vectors!(
    /// The proof that this machine has AVX2, fused multiply-adds and F16C: vectors of four numbers of 64
    /// bits.
    Doubles4, __m256d, f64, 4, "avx2,fma,f16c",
    _mm256_set1_pd, _mm256_loadu_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd, _mm256_fmadd_pd,
    _mm256_fmsub_pd, _mm256_max_pd, _mm256_min_pd,
    doubles4_of_words, doubles4_to_words, doubles4_far, columns_of_doubles4
);

vectors!(
    /// The same: vectors of eight numbers of 32 bits.
    Singles8, __m256, f32, 8, "avx2,fma,f16c",
    _mm256_set1_ps, _mm256_loadu_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps, _mm256_fmadd_ps,
    _mm256_fmsub_ps, _mm256_max_ps, _mm256_min_ps,
    singles8_of_words, singles8_to_words, singles8_far, columns_of_singles8
);

vectors!(
    /// The proof that this machine has AVX-512F: vectors of eight numbers of 64 bits.
    Doubles8, __m512d, f64, 8, "avx512f",
    _mm512_set1_pd, _mm512_loadu_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd, _mm512_fmadd_pd,
    _mm512_fmsub_pd, _mm512_max_pd, _mm512_min_pd,
    doubles8_of_words, doubles8_to_words, doubles8_far, columns_of_doubles8
);

vectors!(
    /// The same: vectors of sixteen numbers of 32 bits.
    Singles16, __m512, f32, 16, "avx512f",
    _mm512_set1_ps, _mm512_loadu_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps, _mm512_fmadd_ps,
    _mm512_fmsub_ps, _mm512_max_ps, _mm512_min_ps,
    singles16_of_words, singles16_to_words, singles16_far, columns_of_singles16
);

/// [`Sums`] with the named instructions.
macro_rules! sums {
    (
        $name:ident, $v:ty, $number:ty, $lanes:literal, $registers:literal,
        $load:ident, $store:ident, $mul_add:ident
    ) => {
        impl Sums for $name {
            const REGISTERS: usize = $registers;

            #[inline(always)]
            fn load(self, from: &[$number]) -> $v {
                let from = &from[..$lanes];
                // SAFETY: `self` proves the instruction, and the slice has $lanes numbers.
                unsafe { $load(from.as_ptr()) }
            }

            #[inline(always)]
            fn store(self, value: $v, to: &mut [$number]) {
                let to = &mut to[..$lanes];
                // SAFETY: `self` proves the instruction, and the slice has $lanes numbers.
                unsafe { $store(to.as_mut_ptr(), value) }
            }

            #[inline(always)]
            fn fused(self, a: $v, b: $v, c: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $mul_add(a, b, c) }
            }

            #[inline(always)]
            fn prefetch(self, at: *const u8) {
                // SAFETY: SSE is part of x86-64, and no address is a fault.
                unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
            }
        }
    };
}

sums!(
    Singles8,
    __m256,
    f32,
    8,
    16,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps
);
sums!(
    Singles16,
    __m512,
    f32,
    16,
    32,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps
);
sums!(
    Doubles4,
    __m256d,
    f64,
    4,
    16,
    _mm256_loadu_pd,
    _mm256_storeu_pd,
    _mm256_fmadd_pd
);
sums!(
    Doubles8,
    __m512d,
    f64,
    8,
    32,
    _mm512_loadu_pd,
    _mm512_storeu_pd,
    _mm512_fmadd_pd
);

/// [`Samples`] with the named instructions.
macro_rules! samples {
    ($name:ident, $v:ty, $lanes:literal, $of_halves:ident, $to_halves:ident, $quiet:ident) => {
        impl Samples for $name {
            #[inline(always)]
            fn of_halves(self, from: &[u8]) -> $v {
                let from = &from[..2 * $lanes];
                // SAFETY: `self` proves the instructions, which read the 2 $lanes bytes of the slice.
                unsafe { $of_halves(from.as_ptr()) }
            }

            #[inline(always)]
            fn store_halves(self, value: $v, to: &mut [u8]) {
                let to = &mut to[..2 * $lanes];
                // SAFETY: `self` proves the instructions, which write the 2 $lanes bytes of the slice.
                unsafe { $to_halves(value, to.as_mut_ptr()) }
            }

            #[inline(always)]
            fn quiet(self, value: $v) -> $v {
                // SAFETY: `self` proves the instructions.
                unsafe { $quiet(value) }
            }
        }
    };
}

/// Eight numbers of 16 bits from `from` on.
///
/// # Safety
/// The machine has F16C, and eight numbers of 16 bits are readable at `from`.
#[inline(always)]
unsafe fn singles8_of_halves(from: *const u8) -> __m256 {
    // SAFETY: this function requires F16C, and what is read at `from`.
    unsafe { _mm256_cvtph_ps(_mm_loadu_si128(from.cast())) }
}

/// Stores the numbers as eight of 16 bits from `to` on, rounded to nearest even.
///
/// # Safety
/// The machine has F16C, and eight numbers of 16 bits are writable at `to`.
#[inline(always)]
unsafe fn singles8_to_halves(value: __m256, to: *mut u8) {
    // SAFETY: this function requires F16C, and what is written at `to`.
    unsafe { _mm_storeu_si128(to.cast(), _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(value)) }
}

/// Sixteen numbers of 16 bits from `from` on.
///
/// # Safety
/// The machine has AVX-512F, and sixteen numbers of 16 bits are readable at `from`.
#[inline(always)]
unsafe fn singles16_of_halves(from: *const u8) -> __m512 {
    // SAFETY: this function requires AVX-512F, and what is read at `from`.
    unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) }
}

/// Stores the numbers as sixteen of 16 bits from `to` on, rounded to nearest even.
///
/// # Safety
/// The machine has AVX-512F, and sixteen numbers of 16 bits are writable at `to`.
#[inline(always)]
unsafe fn singles16_to_halves(value: __m512, to: *mut u8) {
    // SAFETY: this function requires AVX-512F, and what is written at `to`.
    unsafe {
        let halves = _mm512_cvtps_ph::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(value);
        _mm256_storeu_si256(to.cast(), halves);
    }
}

/// Every NaN as the quiet NaN.
///
/// # Safety
/// The machine has AVX2.
#[inline(always)]
unsafe fn singles8_quiet(value: __m256) -> __m256 {
    // SAFETY: this function requires AVX2.
    unsafe {
        let is_nan = _mm256_cmp_ps::<_CMP_UNORD_Q>(value, value);
        _mm256_blendv_ps(value, _mm256_set1_ps(f32::NAN), is_nan)
    }
}

/// Every NaN as the quiet NaN.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn singles16_quiet(value: __m512) -> __m512 {
    // SAFETY: this function requires AVX-512F.
    unsafe {
        let is_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(value, value);
        _mm512_mask_mov_ps(value, is_nan, _mm512_set1_ps(f32::NAN))
    }
}

samples!(
    Singles8,
    __m256,
    8,
    singles8_of_halves,
    singles8_to_halves,
    singles8_quiet
);
samples!(
    Singles16,
    __m512,
    16,
    singles16_of_halves,
    singles16_to_halves,
    singles16_quiet
);

/// [`Exact`] with the named instructions.
macro_rules! exact {
    ($name:ident, $v:ty, $floor:ident, $max:ident) => {
        impl Exact for $name {
            #[inline(always)]
            fn floor(self, value: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $floor(value) }
            }

            #[inline(always)]
            fn larger(self, a: $v, b: $v) -> $v {
                // SAFETY: `self` proves the instruction.
                unsafe { $max(a, b) }
            }
        }
    };
}

/// The integers at or below the numbers.
///
/// # Safety
/// The machine has AVX-512F.
#[inline(always)]
unsafe fn floor_of_doubles8(value: __m512d) -> __m512d {
    // SAFETY: this function requires AVX-512F.
    unsafe { _mm512_roundscale_pd::<{ _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC }>(value) }
}

exact!(Doubles4, __m256d, _mm256_floor_pd, _mm256_max_pd);
exact!(Doubles8, __m512d, floor_of_doubles8, _mm512_max_pd);
