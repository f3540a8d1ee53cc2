//! Vertical decimation: adds four rows of a picture to the sums of the low rows that they contribute to.

use crate::engine::cpu::rows::sums::decimator::{ROWS_AT_ONCE, Target};
use crate::engine::cpu::rows::words::numbers;
use crate::engine::cpu::simd::vector::Plain;
use crate::frame::PixelFormat;

/// Samples that are made at a time: they stay in the first-level cache with their input.
const BLOCK: usize = 256;

/// The loop that adds four rows to sums.
pub(super) struct AddRows<'a> {
    pub(super) rows: [&'a [u8]; ROWS_AT_ONCE],
    pub(super) format: PixelFormat,
    pub(super) target: Target<'a, i32>,
}

impl Plain for AddRows<'_> {
    #[inline(always)]
    fn run(mut self) {
        let samples = self.target.samples;
        let (sums, lines) = self.target.parts();
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
            for &(start, weights) in lines {
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
