//! The row filter of a separable mask, for vectors of any width: two rows of words become a line of pairs
//! (see `column_filter`).
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

pub(super) mod unrolled;

use crate::engine::cpu::rows::requantize::JoinLimbs;
use crate::engine::cpu::simd::vector::{Simd, TILE, Work, has_32_registers};

/// The row filter of a separable mask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RowFilter {
    /// How words are paired.
    pub(super) pairing: Pairing,
    /// What the sums begin with.
    pub(super) start: i32,
    /// How far they are shifted down.
    pub(super) shift: u32,
    /// Bits of a limb of the intermediate.
    pub(super) bits: u32,
}

/// How the words of a row become pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Neighbours in memory are neighbouring pixels: the first word of each pair, and its two weights for
    /// even and for odd results.
    InPlace(Vec<(usize, [i32; 2])>),
    /// Vectors of words are interleaved.
    Interleaved(InterleavedTerms),
}

impl Default for Pairing {
    fn default() -> Pairing {
        Pairing::InPlace(Vec::new())
    }
}

/// The terms of a row filter, two by two with their weights.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InterleavedTerms {
    /// Sums of two words of equal weight, with another such sum.
    pub(super) sums: Vec<([[usize; 2]; 2], i32)>,
    /// Such a sum with a single word.
    pub(super) mixed: Vec<([usize; 2], usize, i32)>,
    /// Single words.
    pub(super) singles: Vec<([usize; 2], i32)>,
}

impl InterleavedTerms {
    /// The furthest word that is read for the first sample.
    fn reach(&self) -> usize {
        let sums = self.sums.iter().flat_map(|(at, _)| at.as_flattened());
        let mixed = self
            .mixed
            .iter()
            .flat_map(|(sum, single, _)| sum.iter().chain([single]));
        let singles = self.singles.iter().flat_map(|(at, _)| at);
        sums.chain(mixed).chain(singles).copied().max().unwrap_or(0)
    }
}

/// How the sums of a row pass become limbs of intermediates.
struct RowEnding<T> {
    joining: JoinLimbs<T>,
    /// Shifts the result's low word of a sum up to the high word; `None` if that is a shift down.
    up: Option<T>,
    limbs: IntermediateLimbs<T>,
}

impl<T: Copy> RowEnding<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, limbs: usize, pass: &RowFilter) -> RowEnding<T> {
        // Sums come in limbs of 8 bits, and intermediates have 24, so with a shift below 8 the whole sum fits
        // 32.
        let whole = limbs > 1 && pass.shift < 8;
        let below = if limbs == 1 || whole { 0 } else { 8 };
        RowEnding {
            joining: JoinLimbs::new(simd, 8, whole, pass.shift - below),
            up: (pass.shift <= 16).then(|| simd.splat(16 - pass.shift as i32)),
            limbs: IntermediateLimbs::new(simd, pass.bits),
        }
    }
}

/// Limbs of an intermediate, at most.
const LIMBS: usize = 3;

/// How intermediates are split into limbs.
#[derive(Clone, Copy)]
pub(super) struct IntermediateLimbs<T> {
    /// The shifts that bring each limb down to the low word, and up to the high one.
    down: [T; LIMBS],
    up: [T; LIMBS],
    /// The bits of two limbs.
    mask: T,
}

impl<T: Copy> IntermediateLimbs<T> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = T>>(simd: L, bits: u32) -> IntermediateLimbs<T> {
        let limb = u16::MAX >> (16 - bits);
        let mut limbs = IntermediateLimbs {
            down: [simd.splat(0); LIMBS],
            up: [simd.splat(16); LIMBS],
            mask: simd.splat(i32::from(limb) << 16 | i32::from(limb)),
        };
        for k in 1..LIMBS {
            let below = (k as u32 * bits).min(16) as i32;
            limbs.down[k] = simd.splat(k as i32 * bits as i32);
            limbs.up[k] = simd.splat(16 - below);
        }
        limbs
    }

    /// Writes the intermediates of an upper and a lower row as pairs, in `P` limbs `stride` elements apart.
    ///
    /// # Safety
    /// A vector is writable at `to`, and at the places of the other limbs.
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd<V = T>, const P: usize>(
        self,
        simd: L,
        [upper, lower]: [T; 2],
        to: *mut u32,
        stride: usize,
    ) {
        for k in 0..P {
            let low = if k == 0 {
                upper
            } else {
                simd.shift_down(upper, self.down[k])
            };
            let mut pairs = simd.merge(low, simd.shift_up(lower, self.up[k]));
            if k + 1 < P {
                pairs = simd.and(pairs, self.mask);
            }
            // SAFETY: LANES elements are writable at `to` and at each limb's place, `stride` elements on.
            unsafe { simd.store(to.add(k * stride), pairs) };
        }
    }
}

/// Writes the intermediates of an upper and a lower row as pairs, in `T` limbs `stride` elements apart.
#[inline(always)]
unsafe fn put_pairs<L: Simd, const P: usize, const T: usize>(
    simd: L,
    sums: [[L::V; P]; 2],
    ending: &RowEnding<L::V>,
    to: *mut u32,
    stride: usize,
) {
    let upper = ending.joining.join(simd, sums[0]);
    if let (1, 1, Some(up)) = (P, T, ending.up) {
        let pairs = simd.merge(upper, simd.shift_up(sums[1][0], up));
        // SAFETY: LANES elements are writable at `to`.
        unsafe { simd.store(to, pairs) };
        return;
    }
    let lower = ending.joining.join(simd, sums[1]);
    // SAFETY: LANES elements are writable at `to` and at each limb's place, `stride` elements on.
    unsafe { ending.limbs.put::<L, T>(simd, [upper, lower], to, stride) };
}

/// The row pass over two rows of words, limb after limb `limb_stride` words apart. `out` gets pairs (upper,
/// lower) of intermediates in `out_limbs` limbs, `out.len() / out_limbs` (a multiple of [`TILE`]) of each: in
/// [`Order::Alternate`] where words are paired in place, in [`Order::Interleaved`] where they are
/// interleaved.
pub(super) fn row_filter<L: Simd>(
    simd: L,
    rows: [&[u16]; 2],
    (limbs, limb_stride): (usize, usize),
    pass: &RowFilter,
    out: &mut [u32],
    out_limbs: usize,
) {
    let samples = out.len() / out_limbs;
    let furthest = match &pass.pairing {
        // The last vector's taps end one word further on than the last sample's own.
        Pairing::InPlace(taps) => taps.iter().map(|t| t.0).max().unwrap_or(0),
        Pairing::Interleaved(interleaved) => interleaved.reach(),
    };
    let needed = (limbs - 1) * limb_stride + furthest + samples;
    assert!(limbs <= 2 && rows.iter().all(|row| needed <= row.len()));
    assert!(samples.is_multiple_of(TILE) && samples * out_limbs == out.len());
    // The assertions bound every read (2 LANES words from x + tap on, x + 2 LANES at most `samples`) and
    // every write.
    let work = RowWork {
        rows: rows.map(<[u16]>::as_ptr),
        limb_stride,
        pass,
        out: out.as_mut_ptr(),
        samples,
    };
    match &pass.pairing {
        Pairing::InPlace(taps) => match (limbs, out_limbs) {
            (1, 1) => simd.enter(InPlace::<1, 1, 2>(work, taps)),
            (1, 2) => simd.enter(InPlace::<1, 2, 2>(work, taps)),
            (1, _) => simd.enter(InPlace::<1, 3, 2>(work, taps)),
            (_, 1) => simd.enter(InPlace::<2, 1, 1>(work, taps)),
            // A constant in the condition: only one of the two is compiled.
            (_, 2) if const { has_32_registers::<L>() } => simd.enter(InPlace::<2, 2, 2>(work, taps)),
            (_, 2) => simd.enter(InPlace::<2, 2, 1>(work, taps)),
            _ if const { has_32_registers::<L>() } => simd.enter(InPlace::<2, 3, 2>(work, taps)),
            _ => simd.enter(InPlace::<2, 3, 1>(work, taps)),
        },
        Pairing::Interleaved(interleaved) => match (limbs, out_limbs) {
            (1, 1) => simd.enter(Interleaved::<1, 1, 2>(work, interleaved)),
            (1, 2) => simd.enter(Interleaved::<1, 2, 2>(work, interleaved)),
            (1, _) => simd.enter(Interleaved::<1, 3, 2>(work, interleaved)),
            (_, 1) => simd.enter(Interleaved::<2, 1, 1>(work, interleaved)),
            // A constant in the condition: only one of the two is compiled.
            (_, 2) if const { has_32_registers::<L>() } => {
                simd.enter(Interleaved::<2, 2, 2>(work, interleaved));
            }
            (_, 2) => simd.enter(Interleaved::<2, 2, 1>(work, interleaved)),
            _ if const { has_32_registers::<L>() } => simd.enter(Interleaved::<2, 3, 2>(work, interleaved)),
            _ => simd.enter(Interleaved::<2, 3, 1>(work, interleaved)),
        },
    }
}

/// What [`row_filter`] has checked.
#[derive(Clone, Copy)]
struct RowWork<'a> {
    rows: [*const u16; 2],
    limb_stride: usize,
    pass: &'a RowFilter,
    out: *mut u32,
    samples: usize,
}

impl RowWork<'_> {
    /// Writes `V` times two vectors of intermediates from the sums of `P` limbs as `T` limbs.
    #[inline(always)]
    unsafe fn put<L: Simd, const P: usize, const T: usize, const V: usize>(
        &self,
        simd: L,
        sums: RowSums<L::V, P, V>,
        ending: &RowEnding<L::V>,
        x: usize,
    ) {
        for v in 0..V {
            for half in 0..2 {
                let to = x + 2 * L::LANES * v + L::LANES * half;
                let mut limbs = [[sums[0][0][0][0]; P]; 2];
                for row in 0..2 {
                    for p in 0..P {
                        limbs[row][p] = sums[p][row][half][v];
                    }
                }
                // SAFETY: x + 2 LANES V is at most `samples`, a limb's length.
                unsafe { put_pairs::<L, P, T>(simd, limbs, ending, self.out.add(to), self.samples) };
            }
        }
    }
}

/// The sums of two rows in `P` limbs: `V` pairs of vectors.
type RowSums<T, const P: usize, const V: usize> = [[[[T; V]; 2]; 2]; P];

/// The row pass in place, from `P` limbs to `T`, `V` vectors of words at a time.
struct InPlace<'a, const P: usize, const T: usize, const V: usize>(RowWork<'a>, &'a [(usize, [i32; 2])]);

impl<const P: usize, const T: usize, const V: usize> Work for InPlace<'_, P, T, V> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let InPlace(work, taps) = self;
        let (start, zero) = (simd.splat(work.pass.start), simd.splat(0));
        let ending = RowEnding::new(simd, P, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * V) {
            // Even and odd results of each row.
            let mut sums: RowSums<L::V, P, V> = [[[[zero; V]; 2]; 2]; P];
            sums[0] = [[[start; V]; 2]; 2];
            for &(at, [even, odd]) in taps {
                let weights = [simd.splat(even), simd.splat(odd)];
                for p in 0..P {
                    for row in 0..2 {
                        for v in 0..V {
                            let from = x + at + p * work.limb_stride + 2 * L::LANES * v;
                            // SAFETY: `row_filter` asserted that rows go on for `samples` words from each tap
                            // on, in both limbs; x + 2 LANES V is at most that.
                            let words = unsafe { simd.load(work.rows[row].add(from)) };
                            for parity in 0..2 {
                                let sum = &mut sums[p][row][parity][v];
                                *sum = simd.multiply_add(*sum, words, weights[parity]);
                            }
                        }
                    }
                }
            }
            // SAFETY: x + 2 LANES V is at most `samples`.
            unsafe { work.put::<L, P, T, V>(simd, sums, &ending, x) };
        }
    }
}

/// The row pass by interleaving, from `P` limbs to `T`, `V` vectors of words at a time.
struct Interleaved<'a, const P: usize, const T: usize, const V: usize>(RowWork<'a>, &'a InterleavedTerms);

impl<const P: usize, const T: usize, const V: usize> Work for Interleaved<'_, P, T, V> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Interleaved(work, interleaved) = self;
        let (start, zero) = (simd.splat(work.pass.start), simd.splat(0));
        let ending = RowEnding::new(simd, P, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * V) {
            let mut sums: RowSums<L::V, P, V> = [[[[zero; V]; 2]; 2]; P];
            sums[0] = [[[start; V]; 2]; 2];
            for &([first, second], weights) in &interleaved.sums {
                sums = add_interleaved::<L, P, V, 2, 2>(simd, sums, &work, x, (first, second, weights));
            }
            for &(first, second, weights) in &interleaved.mixed {
                sums = add_interleaved::<L, P, V, 2, 1>(simd, sums, &work, x, (first, [second; 2], weights));
            }
            for &([first, second], weights) in &interleaved.singles {
                sums = add_interleaved::<L, P, V, 1, 1>(
                    simd,
                    sums,
                    &work,
                    x,
                    ([first; 2], [second; 2], weights),
                );
            }
            // SAFETY: x + 2 LANES V is at most `samples`.
            unsafe { work.put::<L, P, T, V>(simd, sums, &ending, x) };
        }
    }
}

/// Adds two terms of `A` and `B` words (1 or 2), interleaved.
#[inline(always)]
fn add_interleaved<L: Simd, const P: usize, const V: usize, const A: usize, const B: usize>(
    simd: L,
    mut sums: RowSums<L::V, P, V>,
    work: &RowWork<'_>,
    x: usize,
    (first, second, weights): ([usize; 2], [usize; 2], i32),
) -> RowSums<L::V, P, V> {
    let weights = simd.splat(weights);
    for p in 0..P {
        for row in 0..2 {
            for v in 0..V {
                // SAFETY: `row_filter` asserted that rows go on for `samples` words from each term's words
                // on, in both limbs; x + 2 LANES V is at most that.
                let [a, b] = unsafe {
                    let from = work.rows[row].add(x + p * work.limb_stride + 2 * L::LANES * v);
                    let (mut a, mut b) = (simd.load(from.add(first[0])), simd.load(from.add(second[0])));
                    if A == 2 {
                        a = simd.add_words(a, simd.load(from.add(first[1])));
                    }
                    if B == 2 {
                        b = simd.add_words(b, simd.load(from.add(second[1])));
                    }
                    [a, b]
                };
                let pairs = simd.interleave_words(a, b);
                for half in 0..2 {
                    let sum = &mut sums[p][row][half][v];
                    *sum = simd.multiply_add(*sum, pairs[half], weights);
                }
            }
        }
    }
    sums
}
