//! Row filters of few terms, whose number is known at compile time, from 16-bit words to 16-bit
//! intermediates: all weights stay in registers.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::{InterleavedTerms, Pairing, RowFilter};
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{Simd, TILE, Work, has_32_registers};

/// A row pass of so few terms.
pub(in crate::engine::cpu::fir) struct UnrolledRow {
    terms: Terms,
    start: i32,
    shift: u32,
}

enum Terms {
    /// Neighbouring words are pairs: the weights of those at 0, 2, 4 and so on, for even and for odd results.
    InPlace(Vec<[i32; 2]>),
    /// So many words, `step` apart, folded: those with equal weights are added two by two from the ends to
    /// the middle; the weights of two of these sums, or of the last one and the middle word, or of that word
    /// alone.
    Interleaved {
        count: usize,
        step: usize,
        weights: Vec<i32>,
    },
}

/// The most taps of words that are paired in place: their accumulators have to stay in registers, of which
/// weights leave too few.
const fn most_taps<L: Simd>() -> usize {
    if has_32_registers::<L>() {
        13
    } else if L::FUSED_MULTIPLY_ADD {
        5
    } else {
        8
    }
}

impl UnrolledRow {
    /// The terms of a row filter with few of them that rounds as these loops do.
    pub(in crate::engine::cpu::fir) fn of<L: Simd>(_: L, pass: &RowFilter) -> Option<UnrolledRow> {
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
                let (count, step) = shape(interleaved).filter(|_| !has_32_registers::<L>())?;
                let most = if step == 3 { 25 } else { 9 };
                if !(5..=most).contains(&count) || !(2..=4).contains(&step) {
                    return None;
                }
                let sums = interleaved.sums.iter().map(|sum| sum.1);
                let last = interleaved.mixed.iter().map(|mixed| mixed.2);
                let last = last.chain(interleaved.singles.iter().map(|single| single.1));
                Terms::Interleaved {
                    count,
                    step,
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

    /// How many terms it has.
    pub(in crate::engine::cpu::fir) fn terms(&self) -> usize {
        match &self.terms {
            Terms::InPlace(weights) => weights.len(),
            Terms::Interleaved { count, .. } => *count,
        }
    }

    /// Makes the intermediates of two rows of words as pairs.
    pub(in crate::engine::cpu::fir) fn make<L: Simd>(&self, simd: L, rows: [&[u16]; 2], out: &mut [u32]) {
        let work = RowJob {
            rows,
            pass: self,
            out,
        };
        match &self.terms {
            Terms::InPlace(weights) if const { has_32_registers::<L>() } && weights.len() > 8 => {
                unroll!(weights.len(), [9, 10, 11, 12, 13], N => work.in_place::<L, N>(simd, weights));
            }
            Terms::InPlace(weights) => {
                unroll!(weights.len(), [2, 3, 4, 5, 6, 7, 8], N => work.in_place::<L, N>(simd, weights));
            }
            // A constant in the condition, so that loops that nothing enters are not compiled.
            Terms::Interleaved { .. } if const { has_32_registers::<L>() } => {
                unreachable!("no loop is compiled for few terms that are interleaved in such vectors");
            }
            Terms::Interleaved { count, step, weights } => match step {
                2 => unroll!(*count, [5, 7, 9], K => work.interleaved::<L, K, 2>(simd, weights)),
                3 => {
                    unroll!(*count, [5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25],
                        K => work.interleaved::<L, K, 3>(simd, weights));
                }
                _ => unroll!(*count, [5, 7, 9], K => work.interleaved::<L, K, 4>(simd, weights)),
            },
        }
    }
}

/// True if sums need not begin with what rounds them, since it is there for nothing or since the mean of
/// words that are twice the intermediate and of 0 is the same: where none is negative.
fn rounds_late<L: Simd>(pass: &RowFilter, weights: &[i32]) -> bool {
    let is_half = pass.start == 1 << (pass.shift - 1);
    L::FUSED_MULTIPLY_ADD || (is_half && weights.iter().all(|pair| *pair >= 0 && pair & 0x8000 == 0))
}

/// How many words have weights and how far apart they are, where words of equal weights are added two by two
/// from the ends to the middle.
fn shape(interleaved: &InterleavedTerms) -> Option<(usize, usize)> {
    let count = 4 * interleaved.sums.len() + 3 * interleaved.mixed.len() + interleaved.singles.len();
    let middle = match (&interleaved.mixed[..], &interleaved.singles[..]) {
        ([mixed], []) => mixed.1,
        // Alone, without another one's weight beside its own.
        ([], [([middle, _], 0..=0xFFFF)]) => *middle,
        _ => return None,
    };
    let step = middle / (count / 2).max(1);
    let twins = |i: usize| [i * step, (count - 1 - i) * step];
    let sums = interleaved.sums.iter().enumerate();
    let are_sums = sums.map(|(k, sum)| sum.0 == [twins(2 * k), twins(2 * k + 1)]);
    let is_mixed = interleaved
        .mixed
        .iter()
        .map(|mixed| mixed.0 == twins(count / 2 - 1));
    let is_regular = middle == count / 2 * step && are_sums.chain(is_mixed).all(|is| is);
    is_regular.then_some((count, step))
}

/// Two rows of words, and where their intermediates go.
struct RowJob<'a> {
    rows: [&'a [u16]; 2],
    pass: &'a UnrolledRow,
    out: &'a mut [u32],
}

impl RowJob<'_> {
    fn in_place<L: Simd, const N: usize>(self, simd: L, weights: &[[i32; 2]]) {
        let samples = self.out.len();
        assert!(samples.is_multiple_of(TILE));
        assert!(self.rows.iter().all(|row| row.len() >= samples + 2 * (N - 1)));
        // The assertions bound every read: a tap's vector of words at x ends at x + 2 (N - 1) + 2 LANES, and
        // x + 2 LANES is at most `samples`.
        let mut all = [[0; 2]; N];
        all.copy_from_slice(weights);
        simd.enter(InPlace::<N> {
            few: self,
            weights: all,
        });
    }

    fn interleaved<L: Simd, const K: usize, const C: usize>(self, simd: L, weights: &[i32]) {
        let samples = self.out.len();
        assert!(samples.is_multiple_of(TILE));
        assert!(self.rows.iter().all(|row| row.len() >= samples + (K - 1) * C));
        // The assertions bound every read: x + 2 LANES is at most `samples`, and terms lie up to K - 1 pixels
        // beyond.
        let mut all = [0; K];
        all[..weights.len()].copy_from_slice(weights);
        simd.enter(Interleaved::<K, C> {
            few: self,
            weights: all,
        });
    }
}

/// The constants that turn sums into pairs of intermediates.
#[derive(Clone, Copy)]
struct Ending<T> {
    start: T,
    /// The shifts that bring a sum's word down to the low half, and up to the high one.
    down: T,
    up: T,
    zero: T,
}

impl<T: Copy> Ending<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, pass: &UnrolledRow) -> Ending<T> {
        let down = pass.shift as i32 - i32::from(!L::FUSED_MULTIPLY_ADD);
        Ending {
            start: simd.splat(if L::FUSED_MULTIPLY_ADD { pass.start } else { 0 }),
            down: simd.splat(down),
            up: simd.splat(16 - down),
            zero: simd.splat(0),
        }
    }

    /// The intermediates of an upper and a lower row's sums.
    #[inline(always)]
    fn pairs<L: Simd<V = T>>(&self, simd: L, [upper, lower]: [T; 2]) -> T {
        let pairs = simd.merge(simd.shift_down(upper, self.down), simd.shift_up(lower, self.up));
        if L::FUSED_MULTIPLY_ADD {
            pairs
        } else {
            simd.average_words(pairs, self.zero)
        }
    }
}

/// `sum` and a product, where the first one needs no addition.
#[inline(always)]
fn add_product<L: Simd>(simd: L, is_first: bool, sum: L::V, pairs: L::V, weights: L::V) -> L::V {
    if is_first && !L::FUSED_MULTIPLY_ADD {
        simd.multiply(pairs, weights)
    } else {
        simd.multiply_add(sum, pairs, weights)
    }
}

/// The sums of the even and of the odd results of rows whose first words are at `from`: tap t is of the words
/// from 2t on, and has weights for both.
///
/// # Safety
/// A vector is readable at each tap.
#[inline(always)]
unsafe fn in_place_sums<L: Simd, const N: usize, const M: usize>(
    simd: L,
    from: [*const u16; M],
    weights: &[[L::V; 2]; N],
    start: L::V,
) -> [[L::V; 2]; M] {
    // Of even results and of odd ones.
    let mut sums = [[start; 2]; M];
    for t in 0..N {
        for m in 0..M {
            // SAFETY: 2 LANES words are readable from each of N taps on, two words apart.
            let words = unsafe { simd.load(from[m].add(2 * t)) };
            for parity in 0..2 {
                sums[m][parity] = add_product(simd, t == 0, sums[m][parity], words, weights[t][parity]);
            }
        }
    }
    sums
}

/// Neighbouring words are pairs: tap t begins at word 2t, and has weights for even and for odd results.
struct InPlace<'a, const N: usize> {
    few: RowJob<'a>,
    weights: [[i32; 2]; N],
}

impl<const N: usize> Work for InPlace<'_, N> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let RowJob { rows, pass, out } = self.few;
        let ending = Ending::new(simd, pass);
        let mut weights = [[ending.zero; 2]; N];
        for t in 0..N {
            weights[t] = [simd.splat(self.weights[t][0]), simd.splat(self.weights[t][1])];
        }
        let rows = rows.map(<[u16]>::as_ptr);
        if const { L::LATENCY_BOUND } {
            // Two vectors of both rows at once.
            for x in (0..out.len()).step_by(4 * L::LANES) {
                // SAFETY: the length of `out` is a multiple of TILE and so of 4 LANES, hence x + 4 LANES is
                // at most that, beyond which `in_place` asserted rows to have 2 (N - 1) words.
                unsafe {
                    let next = 2 * L::LANES;
                    let from = [
                        rows[0].add(x),
                        rows[1].add(x),
                        rows[0].add(x + next),
                        rows[1].add(x + next),
                    ];
                    let [a, b, c, d] = in_place_sums::<L, N, 4>(simd, from, &weights, ending.start);
                    for (v, [upper, lower]) in [[a, b], [c, d]].into_iter().enumerate() {
                        for parity in 0..2 {
                            let pairs = ending.pairs(simd, [upper[parity], lower[parity]]);
                            simd.store(out.as_mut_ptr().add(x + next * v + L::LANES * parity), pairs);
                        }
                    }
                }
            }
            return;
        }
        for x in (0..out.len()).step_by(2 * L::LANES) {
            // SAFETY: x + 2 LANES is at most the length of `out`, beyond which `in_place` asserted rows to
            // have 2 (N - 1) words.
            unsafe {
                let [upper] = in_place_sums::<L, N, 1>(simd, [rows[0].add(x)], &weights, ending.start);
                let [lower] = in_place_sums::<L, N, 1>(simd, [rows[1].add(x)], &weights, ending.start);
                for parity in 0..2 {
                    let pairs = ending.pairs(simd, [upper[parity], lower[parity]]);
                    simd.store(out.as_mut_ptr().add(x + L::LANES * parity), pairs);
                }
            }
        }
    }
}

/// The sum of the vectors of words at two places.
///
/// # Safety
/// Both are readable.
#[inline(always)]
unsafe fn two_words<L: Simd>(simd: L, from: *const u16, [a, b]: [usize; 2]) -> L::V {
    // SAFETY: 2 LANES words are readable at both places.
    unsafe { simd.add_words(simd.load(from.add(a)), simd.load(from.add(b))) }
}

/// Vectors of `K` words, `C` words apart, are interleaved: pairs of sums of two words of the same weight, and
/// either another sum with the word in the middle or that one alone. Of the weights K / 4 + 1 count.
struct Interleaved<'a, const K: usize, const C: usize> {
    few: RowJob<'a>,
    weights: [i32; K],
}

impl<const K: usize, const C: usize> Work for Interleaved<'_, K, C> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let RowJob { rows, pass, out } = self.few;
        let ending = Ending::new(simd, pass);
        let mut weights = [ending.zero; K];
        for k in 0..K / 4 + 1 {
            weights[k] = simd.splat(self.weights[k]);
        }
        let (middle, last) = (K / 2, K - 1);
        let rows = rows.map(<[u16]>::as_ptr);
        for x in (0..out.len()).step_by(2 * L::LANES) {
            let mut sums = [[ending.start; 2]; 2];
            for row in 0..2 {
                for k in 0..K / 4 + 1 {
                    let i = 2 * k;
                    // SAFETY: x + 2 LANES is at most the length of `out`, beyond which `interleaved` asserted
                    // rows to have K - 1 pixels.
                    let [first, second] = unsafe {
                        let from = rows[row].add(x);
                        if i + 1 < middle {
                            let twins = |i: usize| [i * C, (last - i) * C];
                            [
                                two_words(simd, from, twins(i)),
                                two_words(simd, from, twins(i + 1)),
                            ]
                        } else if i < middle {
                            [
                                two_words(simd, from, [i * C, (last - i) * C]),
                                simd.load(from.add(middle * C)),
                            ]
                        } else {
                            [simd.load(from.add(middle * C)), ending.zero]
                        }
                    };
                    let pairs = simd.interleave_words(first, second);
                    for half in 0..2 {
                        let sum = &mut sums[half][row];
                        *sum = add_product(simd, k == 0, *sum, pairs[half], weights[k]);
                    }
                }
            }
            for half in 0..2 {
                let pairs = ending.pairs(simd, sums[half]);
                // SAFETY: x + 2 LANES is at most the length.
                unsafe { simd.store(out.as_mut_ptr().add(x + L::LANES * half), pairs) };
            }
        }
    }
}
