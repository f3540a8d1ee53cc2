//! The rings of a strip: low rows, and the wide rows made of them. Each row is made once, when a later one
//! needs it.

use super::Pyramid;
use super::decimate::{add_rows, add_rows_one_by_one};
use super::passes::{Passes, Slots};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::sums::decimator::Decimator;
use crate::engine::cpu::simd::scratch::{LineRing, spread};
use crate::engine::cpu::simd::with_simd;
use crate::filter::PyramidGrid;
use crate::frame::Plane;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct RingMemory<T> {
    /// The sums of the vertical decimation.
    sums: Vec<i32>,
    low_rows: Vec<T>,
    wide_rows: Vec<i32>,
}

/// The low rows and the wide rows of a strip, and the passes that make them.
pub(super) struct Rings<'a, P: Passes> {
    pyramid: &'a Pyramid,
    /// The rows of the picture, counted from the strip's first row.
    pub(super) rows: PlaneRows<'a>,
    /// Number of the strip's first row in the plane.
    first_row: usize,
    /// Number of the first low row that results are interpolated from.
    first_low: i64,
    passes: P,
    decimator: Decimator<'a, i32>,
    /// The latest low rows, as many as the low filter has weights.
    low: LineRing<'a, P::Low>,
    /// The latest six wide rows: low rows after the low filter along the column, with all columns.
    wide: LineRing<'a, i32>,
    /// Samples of a wide row.
    samples: usize,
}

/// The first of the six low rows that row `row` is interpolated from: two before the one on or before it.
fn first_low(row: usize, step: usize) -> i64 {
    row as i64 / step as i64 - 2
}

impl<'a, P: Passes> Rings<'a, P> {
    /// The rings for a strip of `plane` that begins with row `first_row`; `rows` are the rows of the picture.
    pub(super) fn new(
        pyramid: &'a Pyramid,
        (rows, first_row): (PlaneRows<'a>, usize),
        plane: &Plane,
        passes: P,
        memory: &'a mut RingMemory<P::Low>,
    ) -> Rings<'a, P> {
        let (kernel, grid) = (&pyramid.kernel, pyramid.kernel.grid);
        let samples = plane.width * plane.channels;
        let first_low = first_low(first_row, grid.step);
        let first = first_low - grid.low_radius as i64;
        let (slots, len) = (2 * grid.low_radius + 1, spread(passes.low_len()));
        Rings {
            pyramid,
            rows,
            first_row,
            first_low,
            passes,
            decimator: Decimator::new(&kernel.rows.weights, first, samples, &mut memory.sums),
            low: LineRing::new(&mut memory.low_rows, (slots, len), 0),
            wide: LineRing::new(&mut memory.wide_rows, (PyramidGrid::TAPS, spread(samples)), 0),
            samples,
        }
    }

    /// The wide rows that row `row` of the plane is interpolated from, and the passes.
    pub(super) fn wide_rows(&mut self, row: usize) -> ([&[i32]; PyramidGrid::TAPS], &mut P) {
        let first = (first_low(row, self.pyramid.kernel.grid.step) - self.first_low) as usize;
        self.make_wide_before(first + PyramidGrid::TAPS);
        let wide = &self.wide;
        let six = std::array::from_fn(|tap| &wide.line(first + tap)[..self.samples]);
        (six, &mut self.passes)
    }

    /// Makes all wide rows up to and without row `end`, counted from the first one.
    fn make_wide_before(&mut self, end: usize) {
        let slots = 2 * self.pyramid.kernel.grid.low_radius + 1;
        while self.wide.next() < end {
            self.make_low_before(self.wide.next() + slots);
            let Some((k, wide)) = self.wide.next_before(end) else {
                return;
            };
            let low = Slots {
                elements: self.low.all(),
                start: &self.low.slots_from(k),
            };
            self.passes.make_wide_row(&low, &mut wide[..self.samples]);
        }
    }

    /// Makes all low rows up to and without row `end`, counted from the first one.
    fn make_low_before(&mut self, end: usize) {
        let pyramid = self.pyramid;
        let widening = pyramid.encoding.widening(pyramid.format);
        let len = self.passes.low_len();
        while let Some((_, low)) = self.low.next_before(end) {
            let sums = self.decimator.next(|block, target| {
                let from = block - self.first_row as i64;
                let rows = [0, 1, 2, 3].map(|k| self.rows.row(from + k));
                match pyramid.vectors {
                    Some(vectors) => {
                        with_simd!(vectors, simd => add_rows(simd, widening, rows, target));
                    }
                    None => add_rows_one_by_one(pyramid.format, rows, target),
                }
            });
            self.passes.make_low_row(sums, &mut low[..len]);
        }
    }
}
