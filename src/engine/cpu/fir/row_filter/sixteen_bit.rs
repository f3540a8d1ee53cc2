//! The row filter of 16-bit samples whose sums exceed 32 bits, in carry groups of terms (see `carry`).
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::{IntermediateLimbs, Pairing};
use crate::engine::cpu::fir::carry::{CarrySave, ends, groups};
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{Simd, TILE, Work, has_32_registers};

/// A row pass in groups of terms.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine::cpu::fir) struct SixteenBit {
    terms: Terms,
    /// The start of the result, and that of the first group's sums.
    begin: i32,
    carried: i32,
    /// How far sums are shifted down.
    shift: u32,
    /// Bits of a limb of the intermediate.
    bits: u32,
}

/// The words that a term pairs and what they weigh: `A` places and `W` pairs of weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Term<const A: usize, const W: usize> {
    at: [usize; A],
    weights: [i32; W],
}

impl<const A: usize, const W: usize> Term<A, W> {
    /// The weights of both halves of the results.
    #[inline(always)]
    fn splat<L: Simd>(&self, simd: L) -> [L::V; 2] {
        [simd.splat(self.weights[0]), simd.splat(self.weights[W - 1])]
    }

    /// The pairs of words for both halves of the results from `from` on.
    ///
    /// # Safety
    /// A vector of words is readable at each of the places from there.
    #[inline(always)]
    unsafe fn pairs<L: Simd>(&self, simd: L, from: *const u16) -> [L::V; 2] {
        // SAFETY: 2 LANES words are readable at each of the places.
        let words = unsafe {
            [
                simd.load(from.add(self.at[0])),
                simd.load(from.add(self.at[A - 1])),
            ]
        };
        if A == 1 {
            words
        } else {
            simd.interleave_words(words[0], words[1])
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Terms {
    /// A word and its neighbour, with weights for even and for odd results.
    InPlace(Vec<Vec<Term<1, 2>>>),
    /// Two words that are interleaved.
    Interleaved(Vec<Vec<Term<2, 1>>>),
}

impl SixteenBit {
    /// The row filter in groups for words between two numbers, paired so, with `start` added to the sums
    /// before they are shifted down. `None` if words in two limbs are faster.
    pub(in crate::engine::cpu::fir) fn of(
        pairing: &Pairing,
        values: (i64, i64),
        (start, shift): (i64, u32),
        bits: u32,
    ) -> Option<SixteenBit> {
        let below = (1_i64 << shift) - 1;
        let terms = match pairing {
            Pairing::InPlace(taps) => {
                let terms = taps.iter().map(|&(at, weights)| Term { at: [at], weights });
                Terms::InPlace(groups(terms.collect(), |t| &t.weights, values, shift)?)
            }
            Pairing::Interleaved(interleaved)
                if interleaved.sums.is_empty() && interleaved.mixed.is_empty() =>
            {
                let terms = interleaved.singles.iter().map(|&(at, weights)| Term {
                    at,
                    weights: [weights],
                });
                Terms::Interleaved(groups(terms.collect(), |t| &t.weights, values, shift)?)
            }
            Pairing::Interleaved(_) => return None,
        };
        Some(SixteenBit {
            terms,
            begin: (start >> shift) as i32,
            carried: (start & below) as i32,
            shift,
            bits,
        })
    }

    /// Makes the intermediates of two rows of words as pairs, as
    /// [`row_filter`](crate::engine::cpu::fir::row_filter::row_filter) does.
    pub(in crate::engine::cpu::fir) fn make<L: Simd>(
        &self,
        simd: L,
        rows: [&[u16]; 2],
        (out, out_limbs): (&mut [u32], usize),
    ) {
        let samples = out.len() / out_limbs;
        let furthest = match &self.terms {
            Terms::InPlace(groups) => groups.iter().flatten().map(|t| t.at[0]).max(),
            Terms::Interleaved(groups) => groups.iter().flatten().flat_map(|t| t.at).max(),
        };
        let needed = furthest.unwrap_or(0) + samples;
        assert!(rows.iter().all(|row| needed <= row.len()));
        assert!(samples.is_multiple_of(TILE) && samples * out_limbs == out.len());
        // The assertions bound every read (2 LANES words from x + a term's place on, x + 2 LANES at most
        // `samples`) and every write.
        let work = GroupedWork {
            rows: rows.map(<[u16]>::as_ptr),
            pass: self,
            out: out.as_mut_ptr(),
            samples,
        };
        match (&self.terms, out_limbs) {
            (Terms::InPlace(groups), 1) => work.enter::<L, 1, 2, 1>(simd, groups),
            (Terms::InPlace(groups), 2) => work.enter::<L, 1, 2, 2>(simd, groups),
            (Terms::InPlace(groups), _) => work.enter::<L, 1, 2, 3>(simd, groups),
            (Terms::Interleaved(groups), 1) => work.enter::<L, 2, 1, 1>(simd, groups),
            (Terms::Interleaved(groups), 2) => work.enter::<L, 2, 1, 2>(simd, groups),
            (Terms::Interleaved(groups), _) => work.enter::<L, 2, 1, 3>(simd, groups),
        }
    }
}

/// What [`SixteenBit::make`] has checked.
#[derive(Clone, Copy)]
struct GroupedWork<'a> {
    rows: [*const u16; 2],
    pass: &'a SixteenBit,
    out: *mut u32,
    samples: usize,
}

impl GroupedWork<'_> {
    fn enter<L: Simd, const A: usize, const W: usize, const T: usize>(
        self,
        simd: L,
        groups: &[Vec<Term<A, W>>],
    ) {
        // Constants in the conditions, so that loops that nothing enters are not compiled.
        if const { has_32_registers::<L>() } {
            return simd.enter(Grouped::<A, W, T, 2>(self, groups));
        }
        let terms = groups.iter().map(Vec::len).sum();
        if const { T == 2 } && (3..=8).contains(&terms) {
            unroll!(terms, [3, 4, 5, 6, 7, 8], N => simd.enter(FewGrouped::<A, W, N>::new(self, groups)));
        } else {
            simd.enter(Grouped::<A, W, T, 1>(self, groups));
        }
    }
}

/// The loop over `N` terms, to two limbs.
struct FewGrouped<'a, const A: usize, const W: usize, const N: usize> {
    work: GroupedWork<'a>,
    terms: [Term<A, W>; N],
    /// A bit for each term that is the last one of its group.
    ends: u32,
}

impl<'a, const A: usize, const W: usize, const N: usize> FewGrouped<'a, A, W, N> {
    /// Groups of as many terms.
    fn new(work: GroupedWork<'a>, groups: &[Vec<Term<A, W>>]) -> Self {
        let mut terms = groups.iter().flatten();
        FewGrouped {
            work,
            terms: std::array::from_fn(|_| *terms.next().unwrap_or_else(|| unreachable!("{N} terms"))),
            ends: ends(groups),
        }
    }
}

impl<const A: usize, const W: usize, const N: usize> Work for FewGrouped<'_, A, W, N> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let FewGrouped { work, terms, ends } = self;
        let pass = work.pass;
        let (begin, carried) = (simd.splat(pass.begin), simd.splat(pass.carried));
        let carrying = CarrySave::new(simd, pass.shift);
        let limbs = IntermediateLimbs::new(simd, pass.bits);
        let mut weights = [[begin; 2]; N];
        for t in 0..N {
            weights[t] = terms[t].splat(simd);
        }
        for x in (0..work.samples).step_by(2 * L::LANES) {
            // Of each row, the vectors at even and at odd places, or the lower and the upper ones of what was
            // interleaved.
            let mut results = [[begin; 2]; 2];
            for row in 0..2 {
                let mut sums = [carried; 2];
                for t in 0..N {
                    // SAFETY: `make` asserted that rows go on for `samples` words from each term's places,
                    // and x + 2 LANES is at most that.
                    let pairs = unsafe { terms[t].pairs(simd, work.rows[row].add(x)) };
                    for half in 0..2 {
                        sums[half] = simd.multiply_add(sums[half], pairs[half], weights[t][half]);
                    }
                    // The last one always ends a group.
                    if t + 1 == N || ends >> t & 1 == 1 {
                        for half in 0..2 {
                            let result = &mut results[row][half];
                            (*result, sums[half]) = carrying.carry(simd, *result, sums[half]);
                        }
                    }
                }
            }
            for half in 0..2 {
                let rows = [results[0][half], results[1][half]];
                // SAFETY: x + 2 LANES is at most `samples`, a limb's length.
                unsafe { limbs.put::<L, 2>(simd, rows, work.out.add(x + L::LANES * half), work.samples) };
            }
        }
    }
}

/// The loop over terms of `A` places and `W` pairs of weights to `T` limbs, `V` vectors of words at a time.
struct Grouped<'a, const A: usize, const W: usize, const T: usize, const V: usize>(
    GroupedWork<'a>,
    &'a [Vec<Term<A, W>>],
);

/// The sums of two rows, each in two halves of `V` vectors.
type RowSums<T, const V: usize> = [[[T; V]; 2]; 2];

impl<const A: usize, const W: usize, const T: usize, const V: usize> Work for Grouped<'_, A, W, T, V> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Grouped(work, groups) = self;
        let pass = work.pass;
        let (begin, carried) = (simd.splat(pass.begin), simd.splat(pass.carried));
        let carrying = CarrySave::new(simd, pass.shift);
        let limbs = IntermediateLimbs::new(simd, pass.bits);
        for x in (0..work.samples).step_by(2 * L::LANES * V) {
            // Of each row, the vectors at even and at odd places, or the lower and the upper ones of what was
            // interleaved.
            let mut results: RowSums<L::V, V> = [[[begin; V]; 2]; 2];
            let mut sums: RowSums<L::V, V> = [[[carried; V]; 2]; 2];
            for group in groups {
                for term in group {
                    sums = add_term::<L, A, W, V>(simd, sums, &work, x, term);
                }
                for row in 0..2 {
                    for half in 0..2 {
                        for v in 0..V {
                            let result = &mut results[row][half][v];
                            let sum = &mut sums[row][half][v];
                            (*result, *sum) = carrying.carry(simd, *result, *sum);
                        }
                    }
                }
            }
            for v in 0..V {
                for half in 0..2 {
                    let to = x + 2 * L::LANES * v + L::LANES * half;
                    let rows = [results[0][half][v], results[1][half][v]];
                    // SAFETY: x + 2 LANES V is at most `samples`, a limb's length.
                    unsafe { limbs.put::<L, T>(simd, rows, work.out.add(to), work.samples) };
                }
            }
        }
    }
}

/// Adds a term to the sums.
#[inline(always)]
fn add_term<L: Simd, const A: usize, const W: usize, const V: usize>(
    simd: L,
    mut sums: RowSums<L::V, V>,
    work: &GroupedWork<'_>,
    x: usize,
    term: &Term<A, W>,
) -> RowSums<L::V, V> {
    let weights = term.splat(simd);
    for row in 0..2 {
        for v in 0..V {
            // SAFETY: `make` asserted that rows go on for `samples` words from each term's places, and x + 2
            // LANES V is at most that.
            let pairs = unsafe { term.pairs(simd, work.rows[row].add(x + 2 * L::LANES * v)) };
            for half in 0..2 {
                let sum = &mut sums[row][half][v];
                *sum = simd.multiply_add(*sum, pairs[half], weights[half]);
            }
        }
    }
    sums
}
