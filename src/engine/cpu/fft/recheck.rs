//! Recomputes the results that a 32-bit FFT could have rounded wrongly, as docs/arithmetic.md says: a sum of
//! products for each.
#![allow(unsafe_code)]

use super::tile::{Uncertain, row_of_results};
use crate::engine::cpu::simd::vector::{Simd, Work};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{Convolve, DirectKernel, Division};

/// Weights that rows are filled up with zeros to a multiple of: as many as the longest vectors hold.
const TOGETHER: usize = 32;

/// A mask's weights as sums are made with them.
pub(super) struct Recheck {
    vectors: Option<Vectors>,
    /// Row by row, each filled up.
    weights: Vec<i16>,
    /// Weights of a row with those that fill it up.
    across: usize,
    division: Division,
    largest: i64,
}

/// A tile with its results.
pub(super) struct Tile<'a> {
    /// Which one of the pair.
    pub(super) number: usize,
    /// Points a side.
    pub(super) side: usize,
    /// Columns and rows of results that are wanted.
    pub(super) wanted: (usize, usize),
    /// Its samples, row by row from the first on; [`Recheck::beyond`] more are there at the end.
    pub(super) samples: &'a [u16],
    /// From a row of them to the next.
    pub(super) stride: usize,
    pub(super) made: &'a mut [u16],
}

impl Recheck {
    /// That of a mask for samples up to `largest` of at most 12 bits.
    pub(super) fn new(kernel: &DirectKernel, largest: u32, vectors: Option<Vectors>) -> Recheck {
        let across = kernel.width.next_multiple_of(TOGETHER);
        let mut weights = vec![0; across * kernel.height];
        for (filled, row) in weights
            .chunks_exact_mut(across)
            .zip(kernel.weights.chunks(kernel.width))
        {
            // Quantised weights are no larger than two signed bytes hold.
            filled.iter_mut().zip(row).for_each(|(q, &of)| *q = of as i16);
        }
        Recheck {
            vectors,
            weights,
            across,
            division: kernel.division,
            largest: i64::from(largest),
        }
    }

    /// Samples beyond the last row's last one that are read, and do not matter.
    pub(super) const fn beyond() -> usize {
        TOGETHER
    }

    /// Recomputes the uncertain results of a tile.
    pub(super) fn recheck(&self, uncertain: &[Uncertain], c: &Convolve, tile: Tile<'_>) {
        let rechecking = Rechecking {
            by: self,
            uncertain,
            c,
            tile,
        };
        if let Some(vectors) = self.vectors {
            with_simd!(vectors, simd => simd.unfused().enter(rechecking));
            return;
        }
        rechecking.each(ScalarDot);
    }
}

/// The results of a tile that are to be computed.
struct Rechecking<'a> {
    by: &'a Recheck,
    uncertain: &'a [Uncertain],
    c: &'a Convolve,
    tile: Tile<'a>,
}

/// A way to sum products.
trait Dot: Copy {
    /// The sum of the products of the weights, in rows of `across`, and of the samples, whose rows begin
    /// `stride` apart.
    fn dot(self, weights: &[i16], across: usize, samples: &[u16], stride: usize) -> i32;
}

/// In plain Rust.
#[derive(Clone, Copy)]
struct ScalarDot;

impl Dot for ScalarDot {
    fn dot(self, weights: &[i16], across: usize, samples: &[u16], stride: usize) -> i32 {
        let rows = weights.chunks_exact(across).zip(samples.chunks(stride));
        let products = rows.flat_map(|(q, p)| q.iter().zip(p).map(|(&q, &p)| i32::from(q) * i32::from(p)));
        products.sum()
    }
}

/// By the multiply-add of pairs of words.
#[derive(Clone, Copy)]
struct PairDot<L>(L);

impl<L: Simd> Dot for PairDot<L> {
    #[inline(always)]
    fn dot(self, weights: &[i16], across: usize, samples: &[u16], stride: usize) -> i32 {
        let PairDot(simd) = self;
        let rows = weights.len() / across;
        assert!(across.is_multiple_of(TOGETHER) && samples.len() >= (rows - 1) * stride + across);
        let mut sums = [simd.splat(0); 2];
        for row in 0..rows {
            for k in (0..across).step_by(TOGETHER) {
                for part in 0..TOGETHER / (2 * L::LANES) {
                    let at = k + 2 * L::LANES * part;
                    // SAFETY: a row has a multiple of 32 weights, of which a vector's words are a part, and
                    // there are as many samples for each, as was asserted.
                    unsafe {
                        let q = simd.load(weights.as_ptr().add(row * across + at));
                        let p = simd.load(samples.as_ptr().add(row * stride + at));
                        sums[part % 2] = simd.multiply_add(sums[part % 2], p, q);
                    }
                }
            }
        }
        let mut numbers = [0; TOGETHER];
        // SAFETY: a vector of any set has no more than half as many numbers.
        unsafe { simd.store(numbers.as_mut_ptr(), simd.add(sums[0], sums[1])) };
        numbers.iter().sum()
    }
}

impl Rechecking<'_> {
    /// Recomputes each uncertain result.
    #[inline(always)]
    fn each(self, by: impl Dot) {
        let Rechecking {
            by: recheck,
            uncertain,
            c,
            tile,
        } = self;
        for doubt in uncertain {
            let mut lanes = doubt.lanes[tile.number];
            while lanes != 0 {
                let x = usize::from(doubt.column) + lanes.trailing_zeros() as usize;
                let y = usize::from(doubt.row);
                lanes &= lanes - 1;
                if x >= tile.wanted.0 || y >= tile.wanted.1 {
                    break;
                }
                let samples = &tile.samples[y * tile.stride + x..];
                let sum = by.dot(&recheck.weights, recheck.across, samples, tile.stride);
                let result = recheck.division.of(i64::from(sum) + c.low) + c.high;
                tile.made[y * row_of_results(tile.side) + x] = result.clamp(0, recheck.largest) as u16;
            }
        }
    }
}

impl Work for Rechecking<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        self.each(PairDot(simd));
    }
}
