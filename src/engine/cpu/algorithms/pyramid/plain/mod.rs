//! The passes in plain Rust, with sums of 32 bits or 64: for samples of more than 12 bits, and without
//! vectors. The compiler vectorizes the loops for each instruction set.

mod interpolate;
mod low_rows;

use super::passes::{PassGeometry, Passes, Slots};
use crate::engine::cpu::rows::strip::OutputRows;
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::simd::run_plain;
use crate::engine::cpu::simd::scratch::room;
use crate::filter::{PyramidGrid, PyramidKernel};
use interpolate::{MakeRow, MakeWideRow};
use low_rows::MakeLowRow;

/// Columns that are made at a time, which divide a period of [`PlainTaps`].
const LANES: usize = 16;

/// For each of the six low pixels its weights for all D places after a low pixel, repeated to fill a vector.
pub(super) type PlainTaps = [Vec<i32>; PyramidGrid::TAPS];

/// The weights of interpolation.
pub(super) fn taps(kernel: &PyramidKernel) -> PlainTaps {
    let step = kernel.grid.step;
    std::array::from_fn(|tap| {
        let period = 0..step.max(LANES);
        period.map(|at| kernel.interpolate[at % step][tap]).collect()
    })
}

/// Scratch memory of a thread, for sums of type `S`.
#[derive(Default)]
pub(super) struct PlainMemory<S> {
    /// Lines of one component: an extended row, a decimated row, a low row filtered along the column, and
    /// that row with each number D times.
    lines: [Vec<i32>; 4],
    /// Sums along a line.
    sums: Vec<S>,
}

/// The passes of a strip, with sums of type `S`.
pub(super) struct PlainPasses<'a, S> {
    taps: &'a PlainTaps,
    geometry: PassGeometry<'a>,
    /// Low pixels of a row.
    columns: usize,
    extended: &'a mut [i32],
    decimated: &'a mut [i32],
    filtered: &'a mut [i32],
    repeated: &'a mut [i32],
    sums: &'a mut [S],
}

impl<'a, S: Sum> PlainPasses<'a, S> {
    pub(super) fn new(
        taps: &'a PlainTaps,
        geometry: PassGeometry<'a>,
        memory: &'a mut PlainMemory<S>,
    ) -> PlainPasses<'a, S> {
        let (grid, width) = (geometry.pyramid.kernel.grid, geometry.width);
        let columns = grid.low_pixels(width);
        let [extended, decimated, filtered, repeated] = &mut memory.lines;
        PlainPasses {
            taps,
            columns,
            extended: room(extended, geometry.span.pixels),
            decimated: room(decimated, grid.decimated(width)),
            filtered: room(filtered, columns),
            repeated: room(repeated, columns * grid.step + LANES),
            sums: room(&mut memory.sums, columns),
            geometry,
        }
    }
}

impl<S: Sum> Passes for PlainPasses<'_, S> {
    type Low = i32;

    fn low_len(&self) -> usize {
        self.geometry.channels * self.columns
    }

    fn make_low_row(&mut self, sums: &[i32], to: &mut [i32]) {
        let make = MakeLowRow {
            geometry: &self.geometry,
            sums,
            extended: &mut *self.extended,
            decimated: &mut *self.decimated,
            line_sums: &mut *self.sums,
            to,
        };
        run_plain(self.geometry.pyramid.vectors, make);
    }

    fn make_wide_row(&mut self, low: &Slots<'_, i32>, to: &mut [i32]) {
        let make = MakeWideRow {
            taps: self.taps,
            geometry: &self.geometry,
            low,
            filtered: &mut *self.filtered,
            repeated: &mut *self.repeated,
            line_sums: &mut *self.sums,
            to,
        };
        run_plain(self.geometry.pyramid.vectors, make);
    }

    fn at_once(&self) -> usize {
        1
    }

    fn make_rows(&mut self, wide: [&[i32]; PyramidGrid::TAPS], _: bool, place: usize, out: OutputRows<'_>) {
        let pyramid = self.geometry.pyramid;
        let out = &mut out.bytes[..out.row_bytes];
        run_plain(pyramid.vectors, MakeRow::<S>::new(pyramid, wide, place, out));
    }
}
