//! Vertical decimation: every D-th row of a Gaussian along the columns. Each row of the picture is read once
//! and added to the sums of the six low rows that it contributes to.
//!
//! ```text
//! block   rows           low rows whose sums are open
//! b       b D ..         b - 2, b - 1, b, b + 1, b + 2, b + 3
//! b + 1   b D + D ..            b - 1, b, b + 1, b + 2, b + 3, b + 4
//! ```
//!
//! Low row `j` opens with block `j - 3` and is whole after block `j + 2`.

use crate::engine::cpu::simd::scratch::{aligned, spread};
use crate::filter::PyramidGrid;

/// Rows that are added at once; D is a multiple of this number.
pub(in crate::engine::cpu) const ROWS_AT_ONCE: usize = 4;

/// Makes the sums of low rows, one low row after the other, in numbers of type `N`.
pub(in crate::engine::cpu) struct Decimator<'a, N> {
    /// The 6 D weights of a low row.
    weights: &'a [N],
    /// D, the rows of a block.
    step: usize,
    /// A line for each open low row.
    sums: &'a mut [N],
    /// Elements from a line to the next.
    pitch: usize,
    /// Samples of a line.
    samples: usize,
    /// Number of the first low row.
    first: i64,
    /// Number of the low row that is returned next.
    next: i64,
    /// Number of the block that is added next.
    block: i64,
}

impl<'a, N: Copy + Default> Decimator<'a, N> {
    /// Makes low rows of `samples` samples, from low row `first` on, with 6 D weights, in `memory`.
    pub(in crate::engine::cpu) fn new(
        weights: &'a [N],
        first: i64,
        samples: usize,
        memory: &'a mut Vec<N>,
    ) -> Decimator<'a, N> {
        let pitch = spread(samples);
        Decimator {
            weights,
            step: weights.len() / PyramidGrid::TAPS,
            sums: aligned(memory, PyramidGrid::TAPS * pitch),
            pitch,
            samples,
            first,
            next: first,
            block: first - 3,
        }
    }

    /// The sums of the next low row. `add` adds the four rows of the picture from the given row on, some of
    /// which may lie outside of it.
    pub(in crate::engine::cpu) fn next(&mut self, mut add: impl FnMut(i64, Target<'_, N>)) -> &[N] {
        while self.block <= self.next + 2 {
            self.add_block(&mut add);
            self.block += 1;
        }
        let at = self.line(self.next);
        self.next += 1;
        &self.sums[at..at + self.samples]
    }

    /// Index of the first sum of a low row.
    fn line(&self, low: i64) -> usize {
        (low - self.first) as usize % PyramidGrid::TAPS * self.pitch
    }

    /// Adds the rows of the next block to all open low rows.
    fn add_block(&mut self, add: &mut impl FnMut(i64, Target<'_, N>)) {
        let (step, block) = (self.step, self.block);
        let opened = self.line(block + 3);
        self.sums[opened..opened + self.samples].fill(N::default());
        for row in (0..step).step_by(ROWS_AT_ONCE) {
            let mut lines = [(0, [N::default(); ROWS_AT_ONCE]); PyramidGrid::TAPS];
            let open = (block - 2..=block + 3).filter(|&low| low >= self.first);
            let mut count = 0;
            for (line, low) in lines.iter_mut().zip(open) {
                let weights = &self.weights[(block - low + 3) as usize * step + row..];
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
pub(in crate::engine::cpu) struct Target<'a, N> {
    /// The memory of all lines.
    sums: &'a mut [N],
    /// Samples of a line.
    pub(in crate::engine::cpu) samples: usize,
    lines: [Line<N>; PyramidGrid::TAPS],
    /// Number of open lines.
    count: usize,
}

/// Index of the first sum of a low row, and the weights of the four rows in it.
pub(in crate::engine::cpu) type Line<N> = (usize, [N; ROWS_AT_ONCE]);

impl<N> Target<'_, N> {
    /// The memory of all sums, and the lines in it.
    #[inline(always)]
    pub(in crate::engine::cpu) fn parts(&mut self) -> (&mut [N], &[Line<N>]) {
        (self.sums, &self.lines[..self.count])
    }
}
