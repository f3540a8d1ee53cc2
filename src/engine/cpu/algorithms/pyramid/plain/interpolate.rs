//! Interpolation: makes all columns of a low row (a wide row), and a row of the result from six wide rows.

use super::low_rows::filter;
use super::{LANES, PlainTaps};
use crate::engine::cpu::algorithms::pyramid::Pyramid;
use crate::engine::cpu::algorithms::pyramid::passes::{PassGeometry, Slots};
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::rows::words::convert::store;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::{Convolve, PyramidGrid};
use crate::frame::PixelFormat;

/// Samples that are made at a time.
const BLOCK: usize = 256;

/// The loop that makes a wide row: the low filter along the column, then all columns.
pub(super) struct MakeWideRow<'a, S> {
    pub(super) taps: &'a PlainTaps,
    pub(super) geometry: &'a PassGeometry<'a>,
    /// The low rows, component by component.
    pub(super) low: &'a Slots<'a, i32>,
    /// Memory for a component of the filtered low row.
    pub(super) filtered: &'a mut [i32],
    /// Memory for the same with each number D times, and [`LANES`] more.
    pub(super) repeated: &'a mut [i32],
    /// Memory for sums along a line.
    pub(super) line_sums: &'a mut [S],
    /// The wide row, interleaved.
    pub(super) to: &'a mut [i32],
}

impl<S: Sum> Plain for MakeWideRow<'_, S> {
    #[inline(always)]
    fn run(self) {
        let PassGeometry {
            pyramid, channels, ..
        } = *self.geometry;
        let (kernel, step, columns) = (&pyramid.kernel, pyramid.kernel.grid.step, self.filtered.len());
        let half = S::from_bias((1 << kernel.interpolate_bits) >> 1);
        for channel in 0..channels {
            let starts = (0..kernel.low.weights.len()).map(self.low.start);
            let lines = starts.map(|start| &self.low.elements[start + channel * columns..][..columns]);
            filter(&kernel.low, lines, self.line_sums, self.filtered);
            for (to, &low) in self.repeated.chunks_mut(step).zip(&*self.filtered) {
                to.fill(low);
            }
            for (block, pixels) in self.to.chunks_mut(LANES * channels).enumerate() {
                let x = block * LANES;
                let mut sums = [half; LANES];
                for (tap, weights) in self.taps.iter().enumerate() {
                    let weights = &weights[x % weights.len()..][..LANES];
                    let low = &self.repeated[x + tap * step..][..LANES];
                    for lane in 0..LANES {
                        sums[lane] += S::from(weights[lane]) * S::from(low[lane]);
                    }
                }
                for (to, sum) in pixels[channel..].iter_mut().step_by(channels).zip(sums) {
                    *to = (sum >> kernel.interpolate_bits).widen() as i32;
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
        pyramid: &'a Pyramid,
        rows: [&'a [i32]; PyramidGrid::TAPS],
        place: usize,
        out: &'a mut [u8],
    ) -> MakeRow<'a, S> {
        MakeRow {
            rows,
            weights: pyramid.kernel.interpolate[place].map(S::from),
            convolved: &pyramid.convolved,
            shift: pyramid.kernel.last_shift(),
            format: pyramid.format,
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
