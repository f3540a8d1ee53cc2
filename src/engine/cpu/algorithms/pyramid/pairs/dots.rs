//! Sums along lines of pairs of words, 32 bits each, for vectors of any width.
//!
//! ```text
//! taps            (at, w0 w1)  (at', w2 w3)  ..
//! line at         a0 b0 a1 b1 a2 b2 ..
//! line at'        c0 d0 c1 d1 c2 d2 ..
//!    | a w0 + b w1 + c w2 + d w3 ..; start, shift
//! numbers         n0    n1    n2    ..
//! ```
//!
//! A number of 16 bits without sign becomes a word with sign when 32768 is taken from it. The start value of
//! sums, whose weights add up to a power of two, gives that back. The functions are inlined into the loops
//! that [`Simd::enter`] compiles with a set's instructions.
#![allow(unsafe_code)]

use crate::engine::cpu::simd::vector::{Simd, TILE};

/// Vectors of sums that are made at a time.
const VECTORS: usize = 4;

/// The element that the first sum reads, and its two packed weights, low half first.
pub(super) type Dot = (usize, i32);

/// Start and shift of sums whose weights add up to `2^bits`.
#[derive(Clone, Copy)]
pub(super) struct Rounding {
    start: i32,
    shift: i32,
}

impl Rounding {
    pub(super) fn new(bits: u32) -> Rounding {
        Rounding {
            start: (1 << bits >> 1) + (1 << (bits + 15)),
            shift: bits as i32,
        }
    }
}

/// A number as the word that is multiplied.
#[inline(always)]
pub(super) fn word(number: i32) -> u32 {
    number as u32 & 0xFFFF ^ 0x8000
}

/// Makes a multiple of [`TILE`] numbers, each the rounded sum of all `dots`.
#[inline(always)]
pub(super) fn dot_lines<L: Simd>(
    simd: L,
    elements: &[u32],
    dots: &[Dot],
    rounding: Rounding,
    to: &mut [i32],
) {
    assert!(to.len().is_multiple_of(TILE));
    assert!(dots.iter().all(|&(at, _)| at + to.len() <= elements.len()));
    let (start, shift) = (simd.splat(rounding.start), simd.splat(rounding.shift));
    // Four vectors are at most a tile.
    for x in (0..to.len()).step_by(VECTORS * L::LANES) {
        let mut sums = [start; VECTORS];
        for &(at, weights) in dots {
            let weights = simd.splat(weights);
            for v in 0..VECTORS {
                // SAFETY: asserted above: to.len() is a multiple of TILE, which x + VECTORS LANES does not
                // exceed, and at + to.len() is at most the number of elements.
                let pairs = unsafe { simd.load(elements.as_ptr().add(at + x + v * L::LANES)) };
                sums[v] = simd.add_dot_i16(sums[v], pairs, weights);
            }
        }
        for v in 0..VECTORS {
            let made = simd.shift_right_i32(sums[v], shift);
            // SAFETY: x + VECTORS LANES is at most to.len(), which was asserted to be a multiple of TILE.
            unsafe { simd.store(to.as_mut_ptr().add(x + v * L::LANES), made) };
        }
    }
}

/// Pairs of weights for each place of a period, a multiple of a vector of any set.
pub(super) struct PeriodicDots<const N: usize>(pub(super) [Vec<u32>; N]);

/// Makes a multiple of [`TILE`] numbers, each the rounded sum of `N` pairs, `step` elements apart, whose
/// weights depend on the number's place in a period.
#[inline(always)]
pub(super) fn dot_periods<L: Simd, const N: usize>(
    simd: L,
    (elements, step): (&[u32], usize),
    dots: &PeriodicDots<N>,
    rounding: Rounding,
    to: &mut [i32],
) {
    let period = dots.0[0].len();
    assert!(to.len().is_multiple_of(TILE) && period.is_multiple_of(L::LANES));
    assert!(dots.0.iter().all(|weights| weights.len() == period));
    assert!((N - 1) * step + to.len() <= elements.len());
    let (start, shift) = (simd.splat(rounding.start), simd.splat(rounding.shift));
    let mut place = 0;
    for x in (0..to.len()).step_by(L::LANES) {
        let mut sum = start;
        for (tap, weights) in dots.0.iter().enumerate() {
            // SAFETY: asserted above: all weights are as many as a period, a multiple of LANES, which `place`
            // stays below in steps of LANES; x + LANES is at most to.len(), and (N - 1) step + to.len() at
            // most the number of elements.
            unsafe {
                let weights = simd.load(weights.as_ptr().add(place));
                let pairs = simd.load(elements.as_ptr().add(x + tap * step));
                sum = simd.add_dot_i16(sum, pairs, weights);
            }
        }
        // SAFETY: x + LANES is at most to.len(), which was asserted to be a multiple of TILE.
        unsafe { simd.store(to.as_mut_ptr().add(x), simd.shift_right_i32(sum, shift)) };
        place += L::LANES;
        if place == period {
            place = 0;
        }
    }
}
