//! Interpolation: makes all columns of a low row (a wide row), and a row of the result from six wide rows.

use super::low_rows::filter;
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::rows::words::numbers::store;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::{Convolve, PyramidGrid, PyramidKernel};
use crate::frame::PixelFormat;

/// Samples that are made at a time.
const BLOCK: usize = 256;

/// The weights of interpolation, transposed: for each of the six low pixels its weights for all D places
/// after a low pixel.
pub(super) struct Taps([Vec<i32>; PyramidGrid::TAPS]);

impl Taps {
    pub(super) fn new(kernel: &PyramidKernel) -> Taps {
        Taps(std::array::from_fn(|tap| {
            kernel.interpolate.iter().map(|weights| weights[tap]).collect()
        }))
    }
}

/// The loop that makes a wide row: the low filter along the column, then all columns.
pub(super) struct MakeWideRow<'a, S> {
    pub(super) kernel: &'a PyramidKernel,
    pub(super) taps: &'a Taps,
    /// The memory of low rows, component by component.
    pub(super) low: &'a [i32],
    /// The index of the low row under each weight of the filter.
    pub(super) starts: &'a [usize],
    pub(super) channels: usize,
    /// Memory for a component of the filtered low row.
    pub(super) filtered: &'a mut [i32],
    /// Memory for sums along a line.
    pub(super) line_sums: &'a mut [S],
    /// The wide row, interleaved.
    pub(super) to: &'a mut [i32],
}

impl<S: Sum> Plain for MakeWideRow<'_, S> {
    #[inline(always)]
    fn run(self) {
        let (kernel, channels) = (self.kernel, self.channels);
        let columns = self.filtered.len();
        let half = S::from_bias((1 << kernel.interpolate_bits) >> 1);
        for channel in 0..channels {
            let line = |start: &usize| &self.low[start + channel * columns..][..columns];
            filter(
                &kernel.low,
                self.starts.iter().map(line),
                self.line_sums,
                self.filtered,
            );
            let pixels = self.to.chunks_mut(kernel.grid.step * channels);
            for (pixels, low) in pixels.zip(self.filtered.windows(PyramidGrid::TAPS)) {
                for (place, pixel) in pixels.chunks_exact_mut(channels).enumerate() {
                    let mut sum = half;
                    for (taps, &low) in self.taps.0.iter().zip(low) {
                        sum += S::from(taps[place]) * S::from(low);
                    }
                    pixel[channel] = (sum >> kernel.interpolate_bits).widen() as i32;
                }
            }
        }
    }
}

/// The loop that makes a row of the result.
pub(super) struct MakeRow<'a, S> {
    rows: [&'a [i32]; PyramidGrid::TAPS],
    weights: [S; PyramidGrid::TAPS],
    convolved: &'a [Convolve],
    shift: u32,
    format: PixelFormat,
    out: &'a mut [u8],
}

impl<'a, S: Sum> MakeRow<'a, S> {
    /// The row at `place` (0 to D - 1) after a low row, from the six wide rows around it.
    pub(super) fn new(
        rows: [&'a [i32]; PyramidGrid::TAPS],
        (kernel, convolved): (&'a PyramidKernel, &'a [Convolve]),
        (place, format): (usize, PixelFormat),
        out: &'a mut [u8],
    ) -> MakeRow<'a, S> {
        MakeRow {
            rows,
            weights: kernel.interpolate[place].map(S::from),
            convolved,
            shift: kernel.last_shift(),
            format,
            out,
        }
    }
}

impl<S: Sum> Plain for MakeRow<'_, S> {
    #[inline(always)]
    fn run(self) {
        let bytes = self.format.bytes_per_sample();
        let max = i64::from(self.format.max_value());
        let samples = self.out.len() / bytes;
        let [first, ..] = self.convolved else { return };
        let is_uniform = self
            .convolved
            .iter()
            .all(|c| (c.low, c.high) == (first.low, first.high));
        let mut sums = [S::from(0); BLOCK];
        let mut numbers = [0_i32; BLOCK];
        let mut x = 0;
        while x < samples {
            let count = BLOCK.min(samples - x);
            let (sums, numbers) = (&mut sums[..count], &mut numbers[..count]);
            let rows = self.rows.map(|row| &row[x..x + count]);
            for at in 0..count {
                let mut sum = S::from(0);
                for (&weight, row) in self.weights.iter().zip(&rows) {
                    sum += weight * S::from(row[at]);
                }
                sums[at] = sum;
            }
            if is_uniform {
                let low = S::from_bias(first.low);
                for (number, &sum) in numbers.iter_mut().zip(&*sums) {
                    *number = (((sum + low) >> self.shift).widen() + first.high).clamp(0, max) as i32;
                }
            } else {
                for (at, (number, &sum)) in numbers.iter_mut().zip(&*sums).enumerate() {
                    let c = &self.convolved[(x + at) % self.convolved.len()];
                    let level = ((sum + S::from_bias(c.low)) >> self.shift).widen();
                    *number = (level + c.high).clamp(0, max) as i32;
                }
            }
            store(
                self.format,
                numbers,
                &mut self.out[x * bytes..(x + count) * bytes],
            );
            x += count;
        }
    }
}
