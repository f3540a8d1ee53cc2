//! Row filters for a number of terms that is known at compile time, from 16-bit words to 16-bit
//! intermediates: all weights stay in registers.
#![allow(unsafe_code)]

use super::{InterleavedTerms, Pairing, RowFilter};
use crate::engine::cpu::rows::store::prefetch::prefetch;
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE, has_32_registers};

/// A row filter that an unrolled loop is compiled for.
pub(in crate::engine::cpu::algorithms::fir) struct UnrolledRow {
    terms: Terms,
    /// The start value of sums.
    start: i32,
    /// The right shift of sums.
    shift: u32,
}

/// The terms of a row filter.
enum Terms {
    /// Neighbouring words are pairs: the packed weights of the pairs at words 0, 2, 4 .., for even and for
    /// odd results.
    InPlace(Vec<[i32; 2]>),
    /// A symmetric row, folded.
    Interleaved {
        /// Number of weights of the row.
        count: usize,
        /// Words from a pixel to the next.
        pixel_stride: usize,
        /// Packed weights: of two sums of mirrored words each, from the ends to the middle; then of the last
        /// sum and the middle word, or of the middle word alone.
        weights: Vec<i32>,
    },
}

/// Most taps of words that are paired in place: the weights of more leave too few registers for the sums.
const fn most_taps<L: Simd>() -> usize {
    if has_32_registers::<L>() {
        13
    } else if L::HAS_VNNI {
        5
    } else {
        8
    }
}

impl UnrolledRow {
    /// The unrolled form of a row filter; `None` if no loop is compiled for its terms, or rounds as it does.
    pub(in crate::engine::cpu::algorithms::fir) fn of<L: Simd>(
        _: L,
        pass: &RowFilter,
    ) -> Option<UnrolledRow> {
        if !(1..=16).contains(&pass.shift) {
            return None;
        }
        let terms = match &pass.pairing {
            Pairing::InPlace(taps) => {
                let are_neighbours = taps.iter().enumerate().all(|(t, tap)| tap.0 == 2 * t);
                if !are_neighbours || !(2..=most_taps::<L>()).contains(&taps.len()) {
                    return None;
                }
                Terms::InPlace(taps.iter().map(|tap| tap.1).collect())
            }
            Pairing::Interleaved(interleaved) => {
                let (count, pixel_stride) = shape(interleaved).filter(|_| !has_32_registers::<L>())?;
                let most = if pixel_stride == 3 { 25 } else { 9 };
                if !(5..=most).contains(&count) || !(2..=4).contains(&pixel_stride) {
                    return None;
                }
                let sums = interleaved.sums.iter().map(|sum| sum.1);
                let last = interleaved.mixed.iter().map(|mixed| mixed.2);
                let last = last.chain(interleaved.singles.iter().map(|single| single.1));
                Terms::Interleaved {
                    count,
                    pixel_stride,
                    weights: sums.chain(last).collect(),
                }
            }
        };
        let weights = match &terms {
            Terms::InPlace(weights) => weights.as_flattened(),
            Terms::Interleaved { weights, .. } => weights,
        };
        rounds_late::<L>(pass, weights).then_some(UnrolledRow {
            terms,
            start: pass.start,
            shift: pass.shift,
        })
    }

    /// Number of terms: pairs of words, or weights of a folded row.
    pub(in crate::engine::cpu::algorithms::fir) fn terms(&self) -> usize {
        match &self.terms {
            Terms::InPlace(weights) => weights.len(),
            Terms::Interleaved { count, .. } => *count,
        }
    }

    /// True if the filter has few terms, so that its loop has room for prefetching.
    pub(in crate::engine::cpu::algorithms::fir) fn is_short(&self) -> bool {
        matches!(&self.terms, Terms::InPlace(weights) if weights.len() <= 4)
    }

    /// Makes the intermediates of two rows of words as pairs, and prefetches `next`, the next two rows of
    /// bytes, if it [is short](Self::is_short).
    pub(in crate::engine::cpu::algorithms::fir) fn make<L: Simd>(
        &self,
        simd: L,
        rows: [&[u16]; 2],
        next: &[u8],
        out: &mut [u32],
    ) {
        let work = RowJob {
            rows,
            next,
            pass: self,
            out,
        };
        match &self.terms {
            Terms::InPlace(weights) if const { has_32_registers::<L>() } && weights.len() > 8 => {
                unroll!(weights.len(), [9, 10, 11, 12, 13], TAPS => work.in_place::<L, TAPS>(simd, weights));
            }
            Terms::InPlace(weights) => {
                unroll!(weights.len(), [2, 3, 4, 5, 6, 7, 8],
                    TAPS => work.in_place::<L, TAPS>(simd, weights));
            }
            // A constant condition: loops that a set never enters are not compiled.
            Terms::Interleaved { .. } if const { has_32_registers::<L>() } => {
                unreachable!("`UnrolledRow::of` refuses interleaved terms for 32 registers");
            }
            Terms::Interleaved {
                count,
                pixel_stride,
                weights,
            } => match pixel_stride {
                2 => unroll!(*count, [5, 7, 9], WEIGHTS => work.interleaved::<L, WEIGHTS, 2>(simd, weights)),
                3 => {
                    unroll!(*count, [5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25],
                        WEIGHTS => work.interleaved::<L, WEIGHTS, 3>(simd, weights));
                }
                _ => unroll!(*count, [5, 7, 9], WEIGHTS => work.interleaved::<L, WEIGHTS, 4>(simd, weights)),
            },
        }
    }
}

/// True if the loops round as the filter asks. With VNNI any start value is free. Otherwise
/// sums have none: they are shifted one bit less, and the mean of a word and 0, halves up, rounds it. That
/// needs a start value of one half, and weights that are not negative.
fn rounds_late<L: Simd>(pass: &RowFilter, weights: &[i32]) -> bool {
    let is_half = pass.start == 1 << (pass.shift - 1);
    L::HAS_VNNI || (is_half && weights.iter().all(|pair| *pair >= 0 && pair & 0x8000 == 0))
}

/// The number of weights of a folded row, and the words from a pixel to the next; `None` if the terms are not
/// the sums of mirrored words, in order from the ends to the middle.
fn shape(interleaved: &InterleavedTerms) -> Option<(usize, usize)> {
    let count = 4 * interleaved.sums.len() + 3 * interleaved.mixed.len() + interleaved.singles.len();
    let middle = match (&interleaved.mixed[..], &interleaved.singles[..]) {
        ([mixed], []) => mixed.1,
        // The middle word alone: the other half of its packed weights is 0.
        ([], [([middle, _], 0..=0xFFFF)]) => *middle,
        _ => return None,
    };
    let pixel_stride = middle / (count / 2).max(1);
    let twins = |i: usize| [i * pixel_stride, (count - 1 - i) * pixel_stride];
    let sums = interleaved.sums.iter().enumerate();
    let are_sums = sums.map(|(k, sum)| sum.0 == [twins(2 * k), twins(2 * k + 1)]);
    let is_mixed = interleaved
        .mixed
        .iter()
        .map(|mixed| mixed.0 == twins(count / 2 - 1));
    let is_regular = middle == count / 2 * pixel_stride && are_sums.chain(is_mixed).all(|is| is);
    is_regular.then_some((count, pixel_stride))
}

/// Two rows of words, the rows to prefetch, and the line for their intermediates.
struct RowJob<'a> {
    rows: [&'a [u16]; 2],
    next: &'a [u8],
    pass: &'a UnrolledRow,
    out: &'a mut [u32],
}

impl RowJob<'_> {
    /// Checks the bounds, and runs the loop for `TAPS` pairs.
    fn in_place<L: Simd, const TAPS: usize>(self, simd: L, weights: &[[i32; 2]]) {
        let samples = self.out.len();
        assert!(samples.is_multiple_of(TILE));
        assert!(self.rows.iter().all(|row| row.len() >= samples + 2 * (TAPS - 1)));
        // The assertions bound every read: a tap's vector of words at x ends at x + 2 (TAPS - 1) + 2 LANES,
        // and x + 2 LANES is at most `samples`.
        let mut all = [[0; 2]; TAPS];
        all.copy_from_slice(weights);
        simd.enter(InPlace::<TAPS> {
            job: self,
            weights: all,
        });
    }

    /// Checks the bounds, and runs the loop for `WEIGHTS` weights, `PIXEL_STRIDE` words apart.
    fn interleaved<L: Simd, const WEIGHTS: usize, const PIXEL_STRIDE: usize>(self, simd: L, weights: &[i32]) {
        let samples = self.out.len();
        assert!(samples.is_multiple_of(TILE));
        assert!(
            self.rows
                .iter()
                .all(|row| row.len() >= samples + (WEIGHTS - 1) * PIXEL_STRIDE)
        );
        // The assertions bound every read: x + 2 LANES is at most `samples`, and terms reach WEIGHTS - 1
        // pixels further.
        let mut all = [0; WEIGHTS];
        all[..weights.len()].copy_from_slice(weights);
        simd.enter(Interleaved::<WEIGHTS, PIXEL_STRIDE> {
            job: self,
            weights: all,
        });
    }
}

/// The constants that turn sums into pairs of intermediates, in registers.
#[derive(Clone, Copy)]
struct PairRounding<T> {
    start: T,
    /// Right shift that moves the result from its place in a sum to the low word.
    down: T,
    /// Left shift that moves the result to the high word.
    up: T,
    zero: T,
}

impl<T: Copy> PairRounding<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, pass: &UnrolledRow) -> PairRounding<T> {
        let down = pass.shift as i32 - i32::from(!L::HAS_VNNI);
        PairRounding {
            start: simd.splat(if L::HAS_VNNI { pass.start } else { 0 }),
            down: simd.splat(down),
            up: simd.splat(16 - down),
            zero: simd.splat(0),
        }
    }

    /// The intermediates of an upper and a lower row's sums.
    #[inline(always)]
    fn pairs<L: Simd<V = T>>(&self, simd: L, [upper, lower]: [T; 2]) -> T {
        let pairs = simd.merge_i16(
            simd.shift_right_i32(upper, self.down),
            simd.shift_left_i32(lower, self.up),
        );
        if L::HAS_VNNI {
            pairs
        } else {
            simd.average_u16(pairs, self.zero)
        }
    }
}

/// Adds a product to `sum`. Without VNNI the first product needs no addition.
#[inline(always)]
fn add_product<L: Simd>(simd: L, is_first: bool, sum: L::V, pairs: L::V, weights: L::V) -> L::V {
    if is_first && !L::HAS_VNNI {
        simd.dot_i16(pairs, weights)
    } else {
        simd.add_dot_i16(sum, pairs, weights)
    }
}

/// The sums of the even and of the odd results of `ROWS` rows, which begin at `from`. Tap t reads words from
/// 2t on, and has weights for both.
///
/// # Safety
/// A vector is readable at each tap.
#[inline(always)]
unsafe fn in_place_sums<L: Simd, const TAPS: usize, const ROWS: usize>(
    simd: L,
    from: [*const u16; ROWS],
    weights: &[[L::V; 2]; TAPS],
    start: L::V,
) -> [[L::V; 2]; ROWS] {
    // Even results, and odd ones.
    let mut sums = [[start; 2]; ROWS];
    for t in 0..TAPS {
        for m in 0..ROWS {
            // SAFETY: 2 LANES words are readable from each of TAPS taps on, two words apart.
            let words = unsafe { simd.load(from[m].add(2 * t)) };
            for parity in 0..2 {
                sums[m][parity] = add_product(simd, t == 0, sums[m][parity], words, weights[t][parity]);
            }
        }
    }
    sums
}

/// The loop for pairs of neighbouring words: tap t begins at word 2t, and has weights for even and for odd
/// results.
struct InPlace<'a, const TAPS: usize> {
    job: RowJob<'a>,
    weights: [[i32; 2]; TAPS],
}

impl<const TAPS: usize> IntLoop for InPlace<'_, TAPS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let RowJob {
            rows,
            next,
            pass,
            out,
        } = self.job;
        let next = [next, &[]];
        let rounding = PairRounding::new(simd, pass);
        let mut weights = [[rounding.zero; 2]; TAPS];
        for t in 0..TAPS {
            weights[t] = [simd.splat(self.weights[t][0]), simd.splat(self.weights[t][1])];
        }
        let rows = rows.map(<[u16]>::as_ptr);
        if const { L::LATENCY_BOUND } {
            // Two vectors of both rows at once.
            for x in (0..out.len()).step_by(4 * L::LANES) {
                prefetch(simd, next, 2 * x, 8 * L::LANES);
                // SAFETY: the length of `out` is a multiple of TILE and so of 4 LANES, hence x + 4 LANES is
                // at most that length; `in_place` asserted that rows have 2 (TAPS - 1) words more.
                unsafe {
                    let next = 2 * L::LANES;
                    let from = [
                        rows[0].add(x),
                        rows[1].add(x),
                        rows[0].add(x + next),
                        rows[1].add(x + next),
                    ];
                    let [a, b, c, d] = in_place_sums::<L, TAPS, 4>(simd, from, &weights, rounding.start);
                    for (v, [upper, lower]) in [[a, b], [c, d]].into_iter().enumerate() {
                        for parity in 0..2 {
                            let pairs = rounding.pairs(simd, [upper[parity], lower[parity]]);
                            simd.store(out.as_mut_ptr().add(x + next * v + L::LANES * parity), pairs);
                        }
                    }
                }
            }
            return;
        }
        for x in (0..out.len()).step_by(2 * L::LANES) {
            prefetch(simd, next, 2 * x, 4 * L::LANES);
            // SAFETY: x + 2 LANES is at most the length of `out`; `in_place` asserted that rows have
            // 2 (TAPS - 1) words more.
            unsafe {
                let [upper] = in_place_sums::<L, TAPS, 1>(simd, [rows[0].add(x)], &weights, rounding.start);
                let [lower] = in_place_sums::<L, TAPS, 1>(simd, [rows[1].add(x)], &weights, rounding.start);
                for parity in 0..2 {
                    let pairs = rounding.pairs(simd, [upper[parity], lower[parity]]);
                    simd.store(out.as_mut_ptr().add(x + L::LANES * parity), pairs);
                }
            }
        }
    }
}

/// The sum of the vectors of words at `from + a` and at `from + b`.
///
/// # Safety
/// 2 LANES words are readable at `from + a` and at `from + b`.
#[inline(always)]
unsafe fn two_words<L: Simd>(simd: L, from: *const u16, [a, b]: [usize; 2]) -> L::V {
    // SAFETY: 2 LANES words are readable at `from + a` and at `from + b`, as this function requires.
    unsafe { simd.add_i16(simd.load(from.add(a)), simd.load(from.add(b))) }
}

/// The loop for a folded row of `WEIGHTS` weights, `PIXEL_STRIDE` words apart: pairs of sums of mirrored
/// words are interleaved, then the last sum and the middle word, or that word alone. The first
/// WEIGHTS / 4 + 1 packed weights are used.
struct Interleaved<'a, const WEIGHTS: usize, const PIXEL_STRIDE: usize> {
    job: RowJob<'a>,
    weights: [i32; WEIGHTS],
}

impl<const WEIGHTS: usize, const PIXEL_STRIDE: usize> IntLoop for Interleaved<'_, WEIGHTS, PIXEL_STRIDE> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let RowJob { rows, pass, out, .. } = self.job;
        let rounding = PairRounding::new(simd, pass);
        let mut weights = [rounding.zero; WEIGHTS];
        for k in 0..WEIGHTS / 4 + 1 {
            weights[k] = simd.splat(self.weights[k]);
        }
        let (middle, last) = (WEIGHTS / 2, WEIGHTS - 1);
        let rows = rows.map(<[u16]>::as_ptr);
        for x in (0..out.len()).step_by(2 * L::LANES) {
            let mut sums = [[rounding.start; 2]; 2];
            for row in 0..2 {
                for k in 0..WEIGHTS / 4 + 1 {
                    let i = 2 * k;
                    // SAFETY: x + 2 LANES is at most the length of `out`; `interleaved` asserted that rows
                    // have WEIGHTS - 1 pixels more.
                    let [first, second] = unsafe {
                        let from = rows[row].add(x);
                        if i + 1 < middle {
                            let twins = |i: usize| [i * PIXEL_STRIDE, (last - i) * PIXEL_STRIDE];
                            [
                                two_words(simd, from, twins(i)),
                                two_words(simd, from, twins(i + 1)),
                            ]
                        } else if i < middle {
                            [
                                two_words(simd, from, [i * PIXEL_STRIDE, (last - i) * PIXEL_STRIDE]),
                                simd.load(from.add(middle * PIXEL_STRIDE)),
                            ]
                        } else {
                            [simd.load(from.add(middle * PIXEL_STRIDE)), rounding.zero]
                        }
                    };
                    let pairs = simd.interleave_i16(first, second);
                    for half in 0..2 {
                        let sum = &mut sums[half][row];
                        *sum = add_product(simd, k == 0, *sum, pairs[half], weights[k]);
                    }
                }
            }
            for half in 0..2 {
                let pairs = rounding.pairs(simd, sums[half]);
                // SAFETY: x + 2 LANES is at most the length of `out`.
                unsafe { simd.store(out.as_mut_ptr().add(x + L::LANES * half), pairs) };
            }
        }
    }
}
