//! The row filter of a separable mask, for vectors of any width: two rows of words become a line of pairs of
//! intermediates (see `rows/sums/column_filter.rs`).
//!
//! ```text
//! row a    a0 a1 a2 a3 a4 ..         words
//! row b    b0 b1 b2 b3 b4 ..
//!    | in place, where neighbours in memory are neighbouring pixels: pairs (a0 a1) (a2 a3) ..
//!    |     even sums   (a0 a1) (w0 w1)  +  (a2 a3) (w2  0)      a row of three weights
//!    |     odd sums    (a0 a1) ( 0 w0)  +  (a2 a3) (w1 w2)
//!    | interleaved, where they are `channels` words apart: pairs (a0 a3) (a1 a4) ..
//!    |     sums        (a0 a3) (w0 w1)  +  ..
//! sums     s0 s2 s4 ..  s1 s3 s5 ..  32 bits, of each row
//!    | add, shift, split into limbs
//! line     a0 b0 a2 b2 ..  a1 b1 a3 b3 ..    intermediates of both rows, in the order of the sums
//! ```
//!
//! `unrolled.rs` has loops for a number of terms that is known at compile time.
#![allow(unsafe_code)]

pub(super) mod unrolled;

use crate::engine::cpu::rows::store::requantize::JoinLimbs;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE, has_32_registers};

/// The row filter of a separable mask: `(sum + start) >> shift`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct RowFilter {
    /// How words are paired.
    pub(super) pairing: Pairing,
    /// The start value of sums.
    pub(super) start: i32,
    /// The right shift of sums.
    pub(super) shift: u32,
    /// Bits of a limb of the intermediate.
    pub(super) bits: u32,
}

/// How the words of a row become pairs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pairing {
    /// Neighbours in memory are neighbouring pixels: for each pair the index of its first word, and its
    /// packed weights for even and for odd results.
    InPlace(Vec<(usize, [i32; 2])>),
    /// Two vectors of words are interleaved in registers.
    Interleaved(InterleavedTerms),
}

impl Default for Pairing {
    fn default() -> Pairing {
        Pairing::InPlace(Vec::new())
    }
}

/// The terms of a row filter in pairs, each with its two packed weights. A term is a word, or the sum of two
/// words of equal weight.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InterleavedTerms {
    /// Pairs of two sums.
    pub(super) sums: Vec<([[usize; 2]; 2], i32)>,
    /// Pairs of a sum and a word.
    pub(super) mixed: Vec<([usize; 2], usize, i32)>,
    /// Pairs of two words.
    pub(super) singles: Vec<([usize; 2], i32)>,
}

impl InterleavedTerms {
    /// Largest index of a word that the first sample reads.
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

/// The constants that turn sums of a row filter into limbs of intermediates, in registers.
struct LimbRounding<T> {
    joining: JoinLimbs<T>,
    /// Left shift that moves the result from its place in a sum to the high word; `None` if it would be a
    /// right shift.
    up: Option<T>,
    limbs: IntermediateLimbs<T>,
}

impl<T: Copy> LimbRounding<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, limbs: usize, pass: &RowFilter) -> LimbRounding<T> {
        // Samples have limbs of 8 bits, and intermediates 24 bits: with a shift below 8 the joined sum fits
        // 32 bits.
        let whole = limbs > 1 && pass.shift < 8;
        let below = if limbs == 1 || whole { 0 } else { 8 };
        LimbRounding {
            joining: JoinLimbs::new(simd, 8, whole, pass.shift - below),
            up: (pass.shift <= 16).then(|| simd.splat(16 - pass.shift as i32)),
            limbs: IntermediateLimbs::new(simd, pass.bits),
        }
    }
}

/// Most limbs of an intermediate.
const MOST_LIMBS: usize = 3;

/// The constants that split intermediates into limbs, in registers.
#[derive(Clone, Copy)]
pub(super) struct IntermediateLimbs<T> {
    /// For each limb the right shift to the low word.
    down: [T; MOST_LIMBS],
    /// For each limb the left shift to the high word.
    up: [T; MOST_LIMBS],
    /// The bits of two limbs.
    mask: T,
}

impl<T: Copy> IntermediateLimbs<T> {
    #[inline(always)]
    pub(super) fn new<L: Simd<V = T>>(simd: L, bits: u32) -> IntermediateLimbs<T> {
        let limb = u16::MAX >> (16 - bits);
        let mut limbs = IntermediateLimbs {
            down: [simd.splat(0); MOST_LIMBS],
            up: [simd.splat(16); MOST_LIMBS],
            mask: simd.splat(i32::from(limb) << 16 | i32::from(limb)),
        };
        for k in 1..MOST_LIMBS {
            let below = (k as u32 * bits).min(16) as i32;
            limbs.down[k] = simd.splat(k as i32 * bits as i32);
            limbs.up[k] = simd.splat(16 - below);
        }
        limbs
    }

    /// Writes the intermediates of an upper and a lower row as pairs, in `LIMBS` limbs `stride` elements
    /// apart.
    ///
    /// # Safety
    /// A vector is writable at `to`, and at the places of the other limbs.
    #[inline(always)]
    pub(super) unsafe fn put<L: Simd<V = T>, const LIMBS: usize>(
        self,
        simd: L,
        [upper, lower]: [T; 2],
        to: *mut u32,
        stride: usize,
    ) {
        for k in 0..LIMBS {
            let low = if k == 0 {
                upper
            } else {
                simd.shift_right_i32(upper, self.down[k])
            };
            let mut pairs = simd.merge_i16(low, simd.shift_left_i32(lower, self.up[k]));
            if k + 1 < LIMBS {
                pairs = simd.and(pairs, self.mask);
            }
            // SAFETY: LANES elements are writable at `to` and at each limb's place, `stride` elements on.
            unsafe { simd.store(to.add(k * stride), pairs) };
        }
    }
}

/// Writes the intermediates of the sums of an upper and a lower row as pairs, in `LIMBS_OUT` limbs `stride`
/// elements apart.
#[inline(always)]
unsafe fn store_pairs<L: Simd, const LIMBS: usize, const LIMBS_OUT: usize>(
    simd: L,
    sums: [[L::V; LIMBS]; 2],
    rounding: &LimbRounding<L::V>,
    to: *mut u32,
    stride: usize,
) {
    let upper = rounding.joining.join(simd, sums[0]);
    if let (1, 1, Some(up)) = (LIMBS, LIMBS_OUT, rounding.up) {
        let pairs = simd.merge_i16(upper, simd.shift_left_i32(sums[1][0], up));
        // SAFETY: LANES elements are writable at `to`.
        unsafe { simd.store(to, pairs) };
        return;
    }
    let lower = rounding.joining.join(simd, sums[1]);
    // SAFETY: LANES elements are writable at `to` and at each limb's place, `stride` elements on.
    unsafe {
        rounding
            .limbs
            .put::<L, LIMBS_OUT>(simd, [upper, lower], to, stride);
    };
}

/// Filters two rows of words, whose limbs are `limb_stride` words apart. `out` gets pairs (upper, lower) of
/// intermediates in `out_limbs` limbs, `out.len() / out_limbs` (a multiple of [`TILE`]) of each: in
/// [`Order::Alternate`] for [`Pairing::InPlace`], in [`Order::Interleaved`] for [`Pairing::Interleaved`].
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
        // A pair may reach one word further than the last sample's last tap.
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
            // A constant condition: only one of the two loops is compiled.
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
            // A constant condition: only one of the two loops is compiled.
            (_, 2) if const { has_32_registers::<L>() } => {
                simd.enter(Interleaved::<2, 2, 2>(work, interleaved));
            }
            (_, 2) => simd.enter(Interleaved::<2, 2, 1>(work, interleaved)),
            _ if const { has_32_registers::<L>() } => simd.enter(Interleaved::<2, 3, 2>(work, interleaved)),
            _ => simd.enter(Interleaved::<2, 3, 1>(work, interleaved)),
        },
    }
}

/// The arguments of [`row_filter`], which has checked their bounds.
#[derive(Clone, Copy)]
struct RowWork<'a> {
    rows: [*const u16; 2],
    limb_stride: usize,
    pass: &'a RowFilter,
    out: *mut u32,
    samples: usize,
}

impl RowWork<'_> {
    /// Writes 2 `VECTORS` vectors of intermediates, in `LIMBS_OUT` limbs, from sums in `LIMBS` limbs.
    #[inline(always)]
    unsafe fn put<L: Simd, const LIMBS: usize, const LIMBS_OUT: usize, const VECTORS: usize>(
        &self,
        simd: L,
        sums: RowSums<L::V, LIMBS, VECTORS>,
        rounding: &LimbRounding<L::V>,
        x: usize,
    ) {
        for v in 0..VECTORS {
            for half in 0..2 {
                let to = x + 2 * L::LANES * v + L::LANES * half;
                let mut limbs = [[sums[0][0][0][0]; LIMBS]; 2];
                for row in 0..2 {
                    for p in 0..LIMBS {
                        limbs[row][p] = sums[p][row][half][v];
                    }
                }
                // SAFETY: x + 2 LANES VECTORS is at most `samples`, a limb's length.
                unsafe {
                    store_pairs::<L, LIMBS, LIMBS_OUT>(simd, limbs, rounding, self.out.add(to), self.samples);
                };
            }
        }
    }
}

/// The sums of two rows in `LIMBS` limbs, `VECTORS` pairs of vectors of each.
type RowSums<T, const LIMBS: usize, const VECTORS: usize> = [[[[T; VECTORS]; 2]; 2]; LIMBS];

/// The loop for [`Pairing::InPlace`], from `LIMBS` limbs to `LIMBS_OUT`, `VECTORS` vectors of words at a
/// time.
struct InPlace<'a, const LIMBS: usize, const LIMBS_OUT: usize, const VECTORS: usize>(
    RowWork<'a>,
    &'a [(usize, [i32; 2])],
);

impl<const LIMBS: usize, const LIMBS_OUT: usize, const VECTORS: usize> IntLoop
    for InPlace<'_, LIMBS, LIMBS_OUT, VECTORS>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let InPlace(work, taps) = self;
        let (start, zero) = (simd.splat(work.pass.start), simd.splat(0));
        let rounding = LimbRounding::new(simd, LIMBS, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * VECTORS) {
            // Even and odd results of each row.
            let mut sums: RowSums<L::V, LIMBS, VECTORS> = [[[[zero; VECTORS]; 2]; 2]; LIMBS];
            sums[0] = [[[start; VECTORS]; 2]; 2];
            for &(at, [even, odd]) in taps {
                let weights = [simd.splat(even), simd.splat(odd)];
                for p in 0..LIMBS {
                    for row in 0..2 {
                        for v in 0..VECTORS {
                            let from = x + at + p * work.limb_stride + 2 * L::LANES * v;
                            // SAFETY: `row_filter` asserted that `samples` words are readable from each tap
                            // on, in each limb; x + 2 LANES VECTORS is at most that.
                            let words = unsafe { simd.load(work.rows[row].add(from)) };
                            for parity in 0..2 {
                                let sum = &mut sums[p][row][parity][v];
                                *sum = simd.add_dot_i16(*sum, words, weights[parity]);
                            }
                        }
                    }
                }
            }
            // SAFETY: x + 2 LANES VECTORS is at most `samples`.
            unsafe { work.put::<L, LIMBS, LIMBS_OUT, VECTORS>(simd, sums, &rounding, x) };
        }
    }
}

/// The loop for [`Pairing::Interleaved`], from `LIMBS` limbs to `LIMBS_OUT`, `VECTORS` vectors of words at a
/// time.
struct Interleaved<'a, const LIMBS: usize, const LIMBS_OUT: usize, const VECTORS: usize>(
    RowWork<'a>,
    &'a InterleavedTerms,
);

impl<const LIMBS: usize, const LIMBS_OUT: usize, const VECTORS: usize> IntLoop
    for Interleaved<'_, LIMBS, LIMBS_OUT, VECTORS>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Interleaved(work, interleaved) = self;
        let (start, zero) = (simd.splat(work.pass.start), simd.splat(0));
        let rounding = LimbRounding::new(simd, LIMBS, work.pass);
        for x in (0..work.samples).step_by(2 * L::LANES * VECTORS) {
            let mut sums: RowSums<L::V, LIMBS, VECTORS> = [[[[zero; VECTORS]; 2]; 2]; LIMBS];
            sums[0] = [[[start; VECTORS]; 2]; 2];
            for &([first, second], weights) in &interleaved.sums {
                sums = add_interleaved::<L, LIMBS, VECTORS, 2, 2>(
                    simd,
                    sums,
                    &work,
                    x,
                    (first, second, weights),
                );
            }
            for &(first, second, weights) in &interleaved.mixed {
                sums = add_interleaved::<L, LIMBS, VECTORS, 2, 1>(
                    simd,
                    sums,
                    &work,
                    x,
                    (first, [second; 2], weights),
                );
            }
            for &([first, second], weights) in &interleaved.singles {
                sums = add_interleaved::<L, LIMBS, VECTORS, 1, 1>(
                    simd,
                    sums,
                    &work,
                    x,
                    ([first; 2], [second; 2], weights),
                );
            }
            // SAFETY: x + 2 LANES VECTORS is at most `samples`.
            unsafe { work.put::<L, LIMBS, LIMBS_OUT, VECTORS>(simd, sums, &rounding, x) };
        }
    }
}

/// Adds the products of a pair of terms, of `A` and of `B` words (1 or 2).
#[inline(always)]
fn add_interleaved<L: Simd, const LIMBS: usize, const VECTORS: usize, const A: usize, const B: usize>(
    simd: L,
    mut sums: RowSums<L::V, LIMBS, VECTORS>,
    work: &RowWork<'_>,
    x: usize,
    (first, second, weights): ([usize; 2], [usize; 2], i32),
) -> RowSums<L::V, LIMBS, VECTORS> {
    let weights = simd.splat(weights);
    for p in 0..LIMBS {
        for row in 0..2 {
            for v in 0..VECTORS {
                // SAFETY: `row_filter` asserted that `samples` words are readable from each term's words on,
                // in each limb; x + 2 LANES VECTORS is at most that.
                let [a, b] = unsafe {
                    let from = work.rows[row].add(x + p * work.limb_stride + 2 * L::LANES * v);
                    let (mut a, mut b) = (simd.load(from.add(first[0])), simd.load(from.add(second[0])));
                    if A == 2 {
                        a = simd.add_i16(a, simd.load(from.add(first[1])));
                    }
                    if B == 2 {
                        b = simd.add_i16(b, simd.load(from.add(second[1])));
                    }
                    [a, b]
                };
                let pairs = simd.interleave_i16(a, b);
                for half in 0..2 {
                    let sum = &mut sums[p][row][half][v];
                    *sum = simd.add_dot_i16(*sum, pairs[half], weights);
                }
            }
        }
    }
    sums
}
