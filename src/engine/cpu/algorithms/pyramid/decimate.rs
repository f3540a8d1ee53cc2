//! Vertical decimation: adds four rows of a picture to the sums of the low rows that they contribute to.
//!
//! ```text
//! row 0   a0 a1 a2 a3 ..   stored samples
//! row 1   b0 b1 b2 b3 ..
//!    | pairs of words, a block at a time                             rows/words/widen.rs
//! line    a0 b0 a1 b1 ..
//!    | one multiply-add is two rows of a sum's weights
//! sums    s0 s1 s2 ..      32 bits, one line for each open low row
//! ```
//!
//! Without vectors the rows are multiplied one by one.
#![allow(unsafe_code)]

use crate::engine::cpu::rows::sums::decimator::{ROWS_AT_ONCE, Target};
use crate::engine::cpu::rows::sums::taps::pack;
use crate::engine::cpu::rows::words::convert;
use crate::engine::cpu::rows::words::widen::{Widening, pair_rows};
use crate::engine::cpu::simd::vector::{IntLoop, Simd};
use crate::frame::PixelFormat;

/// Samples that are made at a time: they stay in the first-level cache with their input.
const BLOCK: usize = 512;

/// Two lines of pairs, of two rows each.
type PairLines = [[u32; BLOCK]; ROWS_AT_ONCE / 2];

/// Adds four stored rows to sums, with the vectors of `simd`. The samples are those that `widening` makes:
/// where it takes 32768 from them, sums are less by as many times their weights.
pub(super) fn add_rows<L: Simd>(
    simd: L,
    widening: Widening,
    rows: [&[u8]; ROWS_AT_ONCE],
    mut target: Target<'_, i32>,
) {
    let (samples, bytes) = (target.samples, widening.bytes);
    let (sums, lines) = target.parts();
    let mut pairs: PairLines = [[0; BLOCK]; ROWS_AT_ONCE / 2];
    for x in (0..samples).step_by(BLOCK) {
        let wanted = BLOCK.min(samples - x);
        for (pairs, rows) in pairs.iter_mut().zip(rows.as_chunks::<2>().0) {
            let rows = rows.map(|row| &row[x * bytes..(x + wanted) * bytes]);
            pair_rows(simd, widening, rows, pairs, 0);
        }
        for &(start, [a, b, c, d]) in lines {
            let made = wanted.next_multiple_of(L::LANES);
            simd.enter(AddPairs {
                pairs: pairs.each_ref().map(|line| &line[..made]),
                weights: [pack(a, b), pack(c, d)],
                sums: &mut sums[start + x..][..made],
            });
        }
    }
}

/// The loop that adds two lines of pairs to the sums of one low row.
struct AddPairs<'a> {
    pairs: [&'a [u32]; ROWS_AT_ONCE / 2],
    weights: [i32; ROWS_AT_ONCE / 2],
    /// As many as there are pairs in a line, a multiple of a vector.
    sums: &'a mut [i32],
}

impl IntLoop for AddPairs<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let AddPairs { pairs, weights, sums } = self;
        let weights = weights.map(|pair| simd.splat(pair));
        assert!(pairs.iter().all(|line| line.len() == sums.len()));
        for x in (0..sums.len() / L::LANES * L::LANES).step_by(L::LANES) {
            // SAFETY: x + LANES is at most the number of sums; lines were asserted to be as long.
            unsafe {
                let to = sums.as_mut_ptr().add(x);
                let mut sum = simd.load(to.cast_const());
                for (line, weights) in pairs.iter().zip(weights) {
                    sum = simd.add_dot_i16(sum, simd.load(line.as_ptr().add(x)), weights);
                }
                simd.store(to, sum);
            }
        }
    }
}

/// Adds four stored rows to sums, without vectors.
pub(super) fn add_rows_one_by_one(
    format: PixelFormat,
    rows: [&[u8]; ROWS_AT_ONCE],
    mut target: Target<'_, i32>,
) {
    let (samples, bytes) = (target.samples, format.bytes_per_sample());
    let (sums, lines) = target.parts();
    let mut numbers = [0_i32; BLOCK];
    for x in (0..samples).step_by(BLOCK) {
        let wanted = BLOCK.min(samples - x);
        for (row, stored) in rows.iter().enumerate() {
            convert::load(format, &stored[x * bytes..], &mut numbers[..wanted], i32::from);
            for (start, weights) in lines {
                for (sum, number) in sums[start + x..].iter_mut().zip(&numbers[..wanted]) {
                    *sum += weights[row] * number;
                }
            }
        }
    }
}
