//! Recomputes the results that an FFT may have rounded wrongly, by docs/arithmetic.md: one sum of products
//! for each.
#![allow(unsafe_code)]

use super::tile::{Uncertain, row_of_results};
use crate::engine::cpu::simd::vector::{IntLoop, Simd};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{Convolve, DirectKernel, Division};

/// Rows of weights are padded with zeros to a multiple of this number, the words of the longest vectors.
const TOGETHER: usize = 32;

/// A mask, prepared for sums of products.
pub(super) struct Recheck {
    vectors: Option<Vectors>,
    weights: Weights,
    /// Weights of a padded row.
    across: usize,
    division: Division,
    /// The largest sample.
    largest: i64,
}

/// Weights, row by row, each row padded.
enum Weights {
    /// Weights of 16 bits.
    Words(Vec<i16>),
    /// Long weights, whose sums are exact in 64-bit floating point.
    Doubles(Vec<f64>),
}

/// A tile with its results.
pub(super) struct Tile<'a> {
    /// Index in the pair, 0 or 1.
    pub(super) number: usize,
    /// Side of the tile, in points.
    pub(super) side: usize,
    /// Columns and rows of results that are wanted.
    pub(super) wanted: (usize, usize),
    /// Its samples, row by row, followed by [`Recheck::beyond`] more.
    pub(super) samples: &'a [u16],
    /// Samples from a row to the next.
    pub(super) stride: usize,
    /// The results.
    pub(super) made: &'a mut [u16],
}

impl Recheck {
    /// Prepares a mask for samples up to `largest`, of at most 12 bits if weights are not long.
    pub(super) fn new(kernel: &DirectKernel, largest: u32, vectors: Option<Vectors>) -> Recheck {
        let across = kernel.width.next_multiple_of(TOGETHER);
        let rows = kernel.weights.chunks(kernel.width);
        let filled = rows.flat_map(|row| {
            row.iter()
                .copied()
                .chain(std::iter::repeat_n(0, across - row.len()))
        });
        let weights = if kernel.long {
            Weights::Doubles(filled.map(f64::from).collect())
        } else {
            // Quantised weights are no larger than two signed bytes hold.
            Weights::Words(filled.map(|q| q as i16).collect())
        };
        Recheck {
            vectors,
            weights,
            across,
            division: kernel.division,
            largest: i64::from(largest),
        }
    }

    /// Samples that are read after the last row's end; their weights are 0.
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
            with_simd!(vectors, simd => simd.without_vnni().enter(rechecking));
            return;
        }
        match &self.weights {
            Weights::Words(weights) => rechecking.each(ScalarDot { weights }),
            Weights::Doubles(weights) => rechecking.each(DoubleDot { weights }),
        }
    }
}

/// The loop that recomputes the uncertain results of a tile.
struct Rechecking<'a> {
    by: &'a Recheck,
    uncertain: &'a [Uncertain],
    c: &'a Convolve,
    tile: Tile<'a>,
}

/// A method to sum products.
trait Dot: Copy {
    /// The sum of the products of the weights, in rows of `across`, and of the samples, whose rows begin
    /// `stride` apart.
    fn dot(self, across: usize, samples: &[u16], stride: usize) -> i64;
}

/// In plain Rust.
#[derive(Clone, Copy)]
struct ScalarDot<'a> {
    weights: &'a [i16],
}

impl Dot for ScalarDot<'_> {
    fn dot(self, across: usize, samples: &[u16], stride: usize) -> i64 {
        let rows = self.weights.chunks_exact(across).zip(samples.chunks(stride));
        let products = rows.flat_map(|(q, p)| q.iter().zip(p).map(|(&q, &p)| i32::from(q) * i32::from(p)));
        products.map(i64::from).sum()
    }
}

/// In 64-bit floating point, which is exact below 2^53 in any order.
#[derive(Clone, Copy)]
struct DoubleDot<'a> {
    weights: &'a [f64],
}

impl Dot for DoubleDot<'_> {
    #[inline(always)]
    fn dot(self, across: usize, samples: &[u16], stride: usize) -> i64 {
        const LANES: usize = 8;
        let mut sums = [0.0; LANES];
        for (q, p) in self.weights.chunks_exact(across).zip(samples.chunks(stride)) {
            for (q, p) in q.as_chunks::<LANES>().0.iter().zip(p.as_chunks::<LANES>().0) {
                for lane in 0..LANES {
                    sums[lane] += q[lane] * f64::from(p[lane]);
                }
            }
        }
        sums.iter().sum::<f64>() as i64
    }
}

/// In vectors, by multiply-adds of pairs of words.
#[derive(Clone, Copy)]
struct PairDot<'a, L> {
    simd: L,
    weights: &'a [i16],
}

impl<L: Simd> Dot for PairDot<'_, L> {
    #[inline(always)]
    fn dot(self, across: usize, samples: &[u16], stride: usize) -> i64 {
        let PairDot { simd, weights } = self;
        let rows = weights.len() / across;
        assert!(across.is_multiple_of(TOGETHER) && samples.len() >= (rows - 1) * stride + across);
        let mut sums = [simd.splat(0); 2];
        for row in 0..rows {
            for k in (0..across).step_by(TOGETHER) {
                for part in 0..TOGETHER / (2 * L::LANES) {
                    let at = k + 2 * L::LANES * part;
                    // SAFETY: a row has a multiple of 32 weights, which is a multiple of a vector's words,
                    // and the assertion gives each row as many samples.
                    unsafe {
                        let q = simd.load(weights.as_ptr().add(row * across + at));
                        let p = simd.load(samples.as_ptr().add(row * stride + at));
                        sums[part % 2] = simd.add_dot_i16(sums[part % 2], p, q);
                    }
                }
            }
        }
        let mut numbers = [0; TOGETHER];
        // SAFETY: a vector of any set has at most 16 numbers, half as many as `numbers`.
        unsafe { simd.store(numbers.as_mut_ptr(), simd.add_i32(sums[0], sums[1])) };
        numbers.iter().copied().map(i64::from).sum()
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
        for uncertain in uncertain {
            let mut lanes = uncertain.lanes[tile.number];
            while lanes != 0 {
                let x = usize::from(uncertain.column) + lanes.trailing_zeros() as usize;
                let y = usize::from(uncertain.row);
                lanes &= lanes - 1;
                if x >= tile.wanted.0 || y >= tile.wanted.1 {
                    break;
                }
                let samples = &tile.samples[y * tile.stride + x..];
                let sum = by.dot(recheck.across, samples, tile.stride);
                let result = recheck.division.of(sum + c.low) + c.high;
                tile.made[y * row_of_results(tile.side) + x] = result.clamp(0, recheck.largest) as u16;
            }
        }
    }
}

impl IntLoop for Rechecking<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        match &self.by.weights {
            Weights::Words(weights) => self.each(PairDot { simd, weights }),
            Weights::Doubles(weights) => self.each(DoubleDot { weights }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::algorithms::fft::tests::step;
    use crate::engine::cpu::simd::InstructionSet;
    use crate::filter::{Border, Kernel, Mask};
    use crate::frame::PixelFormat;

    /// Of whole tiles that are uncertain, and hold anything before.
    #[test]
    fn every_uncertain_result_is_that_of_integers() {
        const SIDE: usize = 64;
        let stride = SIDE + Recheck::beyond();
        for (format, is_long) in [("gray", false), ("gray12le", true), ("gray16le", true)] {
            let format: PixelFormat = format.parse().unwrap();
            let largest = format.max_value();
            let samples: Vec<u16> = (0..SIDE * stride)
                .map(|k| (k as u32 * 40_503 % (largest + 1)) as u16)
                .collect();
            let (width, height) = (25, 31);
            let weights: Vec<f64> = (0..width * height)
                .map(|k| (k * 7919 % 1000) as f64 - 200.0)
                .collect();
            let total: f64 = weights.iter().sum();
            let weights = weights.iter().map(|w| w / total).collect();
            let mask = Mask::new(width, height, weights).unwrap();
            let step = step(mask, Border::Replicate, 1.5, "all", format).unwrap();
            let Kernel::Direct(kernel) = &step.kernel else {
                panic!("{:?}", step.kernel)
            };
            assert_eq!(kernel.long, is_long, "{format}");
            let c = step.planes[0][0].convolved().unwrap();
            let (columns, rows) = (SIDE + 1 - width, SIDE + 1 - height);
            let expected = |y: usize, x: usize| {
                let at = |k: usize| i64::from(samples[(y + k / width) * stride + x + k % width]);
                let products = kernel
                    .weights
                    .iter()
                    .enumerate()
                    .map(|(k, &q)| i64::from(q) * at(k));
                let numerator = products.sum::<i64>() + c.low;
                let result = numerator.div_euclid(kernel.division.divisor()) + c.high;
                result.clamp(0, i64::from(largest)) as u16
            };
            let uncertain: Vec<Uncertain> = (0..rows)
                .flat_map(|row| {
                    (0..columns).step_by(8).map(move |column| Uncertain {
                        row: row as u16,
                        column: column as u16,
                        lanes: [0, 0xFF],
                    })
                })
                .collect();
            let sets = InstructionSet::available().map(Vectors::of);
            for vectors in sets {
                let mut made = vec![0xA5A5; rows * row_of_results(SIDE)];
                let tile = Tile {
                    number: 1,
                    side: SIDE,
                    wanted: (columns, rows),
                    samples: &samples,
                    stride,
                    made: &mut made,
                };
                Recheck::new(kernel, largest, vectors).recheck(&uncertain, c, tile);
                for (y, row) in made.chunks(row_of_results(SIDE)).enumerate() {
                    for (x, &result) in row[..columns].iter().enumerate() {
                        assert_eq!(result, expected(y, x), "{format} {x} {y}");
                    }
                }
            }
        }
    }
}
