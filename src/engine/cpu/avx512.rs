//! AVX-512: vectors of sixteen numbers, with or without the instruction that multiplies and adds to a sum at once.
#![allow(unsafe_code)]

use super::avx2::{merge_bytes, mix_bytes, mix_words, unmix_bytes};
use super::lanes::{Lanes, Order, Work};
use super::pixel_pairs::places;
use core::arch::x86_64::*;

/// The proof that this machine has AVX-512F and BW, and VNNI if that is true.
#[derive(Debug, Clone, Copy)]
pub(super) struct Avx512<const VNNI: bool>(());

impl<const VNNI: bool> Avx512<VNNI> {
    /// The proof, if there is one.
    pub(super) fn detect() -> Option<Avx512<VNNI>> {
        let has_words =
            std::arch::is_x86_feature_detected!("avx512f") && std::arch::is_x86_feature_detected!("avx512bw");
        let has_all = has_words && (!VNNI || std::arch::is_x86_feature_detected!("avx512vnni"));
        has_all.then_some(Avx512(()))
    }
}

/// Fours of bytes in order, where each quarter of a vector holds one of each of four inputs.
#[inline(always)]
unsafe fn fours_sorted(bytes: __m512i) -> __m512i {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe {
        let fours = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        _mm512_permutexvar_epi32(fours, bytes)
    }
}

/// Quarters 0, 2, 4, 6, 1, 3, 5, 7 of 64 bits: what sorts the halves of lanes that packing mixes up.
#[inline(always)]
unsafe fn sorted(packed: __m512i) -> __m512i {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe { _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed) }
}

/// Pairs of words that numbers hold.
#[inline(always)]
unsafe fn paired(low: __m512i, high: __m512i) -> __m512i {
    // SAFETY: the caller has the proof of AVX-512F.
    unsafe { _mm512_or_si512(low, _mm512_slli_epi32::<16>(high)) }
}

impl<const VNNI: bool> Lanes for Avx512<VNNI> {
    type V = __m512i;

    const LANES: usize = 16;

    const FUSES: bool = VNNI;

    #[inline]
    fn enter<W: Work>(self, work: W) {
        #[target_feature(enable = "avx512f,avx512bw")]
        fn inside<L: Lanes, W: Work>(lanes: L, work: W) {
            work.run(lanes);
        }
        #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
        fn inside_vnni<L: Lanes, W: Work>(lanes: L, work: W) {
            work.run(lanes);
        }
        // SAFETY: `self` proves AVX-512, and VNNI if it is asked for.
        unsafe {
            if VNNI {
                inside_vnni(self, work);
            } else {
                inside(self, work);
            }
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
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    fn add_words(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_add_epi16(a, b) }
    }

    #[inline(always)]
    fn sub_words(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sub_epi16(a, b) }
    }

    #[inline(always)]
    fn multiply_round_words(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mulhrs_epi16(a, b) }
    }

    #[inline(always)]
    fn average_words(self, a: __m512i, b: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_avg_epu16(a, b) }
    }

    #[inline(always)]
    fn shift_words_down(self, a: __m512i, by: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_srl_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn shift_words_up(self, a: __m512i, by: u32) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_sll_epi16(a, _mm_cvtsi32_si128(by as i32)) }
    }

    #[inline(always)]
    fn multiply_add(self, sum: __m512i, pairs: __m512i, weights: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512, and VNNI where it is used.
        unsafe {
            if VNNI {
                _mm512_dpwssd_epi32(sum, pairs, weights)
            } else {
                _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, weights))
            }
        }
    }

    #[inline(always)]
    fn shift_down(self, a: __m512i, by: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_srav_epi32(a, by) }
    }

    #[inline(always)]
    fn shift_up(self, a: __m512i, by: __m512i) -> __m512i {
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
    fn merge(self, low: __m512i, high: __m512i) -> __m512i {
        // SAFETY: `self` proves AVX-512.
        unsafe { _mm512_mask_blend_epi16(0xAAAA_AAAA, low, high) }
    }

    #[inline(always)]
    fn zip(self, a: __m512i, b: __m512i) -> [__m512i; 2] {
        // SAFETY: `self` proves AVX-512.
        unsafe { [_mm512_unpacklo_epi16(a, b), _mm512_unpackhi_epi16(a, b)] }
    }

    #[inline(always)]
    fn narrow(self, a: __m512i, b: __m512i) -> __m512i {
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
    unsafe fn pair_pixels<const C: usize>(self, from: *const u16, to: *mut u16) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes of each.
        unsafe {
            let order = const { places::<C>(false) };
            let order = _mm512_loadu_si512(order.as_ptr().cast());
            let words = _mm512_loadu_si512(from.cast());
            _mm512_storeu_si512(to.cast(), _mm512_permutexvar_epi16(order, words));
        }
    }

    #[inline(always)]
    unsafe fn part_pixels<const C: usize>(self, from: *const u8, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 32 bytes of each.
        unsafe {
            let order = const { places::<C>(true) };
            let order = _mm512_loadu_si512(order.as_ptr().cast());
            let words = _mm512_cvtepu8_epi16(_mm256_loadu_si256(from.cast()));
            let parted = _mm512_permutexvar_epi16(order, words);
            _mm256_storeu_si256(to.cast(), _mm512_cvtepi16_epi8(parted));
        }
    }

    #[inline(always)]
    unsafe fn put_bytes<const N: usize>(self, values: [__m512i; N], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 16 N bytes.
        unsafe {
            let halves = _mm512_packs_epi32(values[0], values[1]);
            if N == 4 {
                self.put_narrow([halves, _mm512_packs_epi32(values[2], values[3])], order, to);
            } else {
                let ordered = match order {
                    Order::Plain => sorted(halves),
                    Order::Zipped | Order::Alternate => halves,
                };
                // Narrowing takes words for unsigned ones.
                let positive = _mm512_max_epi16(ordered, _mm512_setzero_si512());
                let bytes = _mm512_cvtusepi16_epi8(positive);
                let bytes = match order {
                    Order::Alternate => _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(mix_bytes())),
                    Order::Plain | Order::Zipped => bytes,
                };
                _mm256_storeu_si256(to.cast(), bytes);
            }
        }
    }

    #[inline(always)]
    unsafe fn put_narrow(self, words: [__m512i; 2], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let bytes = _mm512_packus_epi16(words[0], words[1]);
            let bytes = match order {
                Order::Plain => fours_sorted(bytes),
                Order::Zipped => sorted(bytes),
                Order::Alternate => _mm512_shuffle_epi8(sorted(bytes), _mm512_broadcast_i32x4(mix_bytes())),
            };
            _mm512_storeu_si512(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn put_merged(self, words: [__m512i; 2], order: Order, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let mixed = _mm512_packus_epi16(words[0], words[1]);
            let unmixed = _mm512_shuffle_epi8(mixed, _mm512_broadcast_i32x4(unmix_bytes()));
            let bytes = match order {
                Order::Plain => fours_sorted(unmixed),
                Order::Zipped => sorted(unmixed),
                Order::Alternate => sorted(mixed),
            };
            _mm512_storeu_si512(to.cast(), bytes);
        }
    }

    #[inline(always)]
    unsafe fn put_apart(self, words: [__m512i; 2], to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let bytes = _mm512_packus_epi16(words[0], words[1]);
            let order = _mm512_broadcast_i32x4(merge_bytes());
            _mm512_storeu_si512(to.cast(), _mm512_shuffle_epi8(bytes, order));
        }
    }

    #[inline(always)]
    unsafe fn put_words(self, values: [__m512i; 2], order: Order, max: u16, left: u32, to: *mut u8) {
        // SAFETY: `self` proves AVX-512, the caller the 64 bytes.
        unsafe {
            let words = _mm512_packus_epi32(values[0], values[1]);
            let words = _mm512_min_epu16(words, _mm512_set1_epi16(max as i16));
            let words = _mm512_sll_epi16(words, _mm_cvtsi32_si128(left as i32));
            let words = match order {
                Order::Plain => sorted(words),
                Order::Zipped => words,
                Order::Alternate => _mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(mix_words())),
            };
            _mm512_storeu_si512(to.cast(), words);
        }
    }
}
