//! Every D-th row of a Gaussian along the columns: each row of the picture is read once and added to the sums
//! of the six low rows that it is part of.
//!
//! ```text
//! block   rows           low rows whose sums are open
//! b       b D ..         b - 2, b - 1, b, b + 1, b + 2, b + 3
//! b + 1   b D + D ..            b - 1, b, b + 1, b + 2, b + 3, b + 4
//! ```
//!
//! Low row `j` opens with block `j - 3` and is whole after block `j + 2`.

use crate::engine::cpu::rows::words::numbers;
use crate::engine::cpu::simd::scratch::{aligned, spread};
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::PyramidKernel;
use crate::frame::PixelFormat;

/// Rows that are added at once; D is a multiple of it.
pub(super) const ROWS_AT_ONCE: usize = 4;

/// Samples that are made at a time: they stay in the first cache with what they are made of.
const BLOCK: usize = 256;

/// Sums of low rows, made one after the other.
pub(super) struct Decimator<'a> {
    kernel: &'a PyramidKernel,
    /// A line for each low row that is open.
    sums: &'a mut [i32],
    pitch: usize,
    samples: usize,
    /// The first low row.
    first: i64,
    /// The low row that comes next.
    next: i64,
    /// The block that is added next.
    block: i64,
}

impl<'a> Decimator<'a> {
    /// Low rows of so many samples from low row `first` on, in `memory`.
    pub(super) fn new(
        kernel: &'a PyramidKernel,
        first: i64,
        samples: usize,
        memory: &'a mut Vec<i32>,
    ) -> Decimator<'a> {
        let pitch = spread(samples);
        Decimator {
            kernel,
            sums: aligned(memory, PyramidKernel::TAPS * pitch),
            pitch,
            samples,
            first,
            next: first,
            block: first - 3,
        }
    }

    /// The sums of the next low row. `add` adds four rows of the picture, from the one given on; they may lie
    /// outside it.
    pub(super) fn next(&mut self, mut add: impl FnMut(i64, Target<'_>)) -> &[i32] {
        while self.block <= self.next + 2 {
            self.add_block(&mut add);
            self.block += 1;
        }
        let at = self.line(self.next);
        self.next += 1;
        &self.sums[at..at + self.samples]
    }

    /// Where the sums of a low row lie.
    fn line(&self, low: i64) -> usize {
        (low - self.first) as usize % PyramidKernel::TAPS * self.pitch
    }

    fn add_block(&mut self, add: &mut impl FnMut(i64, Target<'_>)) {
        let (step, block) = (self.kernel.step, self.block);
        let opened = self.line(block + 3);
        self.sums[opened..opened + self.samples].fill(0);
        for row in (0..step).step_by(ROWS_AT_ONCE) {
            let mut lines = [(0, [0; ROWS_AT_ONCE]); PyramidKernel::TAPS];
            let open = (block - 2..=block + 3).filter(|&low| low >= self.first);
            let mut count = 0;
            for (line, low) in lines.iter_mut().zip(open) {
                let weights = &self.kernel.rows.weights[(block - low + 3) as usize * step + row..];
                *line = (self.line(low), std::array::from_fn(|k| weights[k]));
                count += 1;
            }
            let target = Target {
                sums: &mut *self.sums,
                samples: self.samples,
                lines,
                count,
            };
            add(block * step as i64 + row as i64, target);
        }
    }
}

/// The sums that four rows are added to.
pub(super) struct Target<'a> {
    sums: &'a mut [i32],
    samples: usize,
    /// Where each line begins, and the weights of the four rows in it.
    lines: [(usize, [i32; ROWS_AT_ONCE]); PyramidKernel::TAPS],
    /// How many lines there are.
    count: usize,
}

impl<'a> Target<'a> {
    /// The loop that adds these rows.
    pub(super) fn of_rows(self, rows: [&'a [u8]; ROWS_AT_ONCE], format: PixelFormat) -> AddRows<'a> {
        AddRows {
            rows,
            format,
            target: self,
        }
    }
}

/// Adds four rows to the sums that they are part of.
pub(super) struct AddRows<'a> {
    rows: [&'a [u8]; ROWS_AT_ONCE],
    format: PixelFormat,
    target: Target<'a>,
}

impl Plain for AddRows<'_> {
    #[inline(always)]
    fn run(self) {
        let Target {
            sums,
            samples,
            lines,
            count,
        } = self.target;
        let bytes = self.format.bytes_per_sample();
        let mut pixels = [[0_i32; BLOCK]; ROWS_AT_ONCE];
        let mut x = 0;
        while x < samples {
            let wanted = BLOCK.min(samples - x);
            for (line, row) in pixels.iter_mut().zip(self.rows) {
                let row = &row[x * bytes..];
                numbers::load(self.format, row, &mut line[..wanted], i32::from);
            }
            let [a, b, c, d] = pixels.each_ref().map(|line| &line[..wanted]);
            for &(start, weights) in &lines[..count] {
                let sums = &mut sums[start + x..][..wanted];
                for at in 0..wanted {
                    let upper = weights[0] * a[at] + weights[1] * b[at];
                    sums[at] += upper + weights[2] * c[at] + weights[3] * d[at];
                }
            }
            x += wanted;
        }
    }
}
