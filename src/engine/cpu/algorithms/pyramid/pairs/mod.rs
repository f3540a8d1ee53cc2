//! The passes with vectors, where sums fit 32 bits: every multiply-add is of a pair of words.
//!
//! ```text
//! sums         s0 s1 s2 s3 ..
//!    | shift, border; numbers of 16 bits less 32768
//! extended     e0 e1 e2 e3 ..                     words
//!    | pairs that are D apart become neighbours
//! phases       e0 e1 | eD eD+1 | ..               D / 2 lines
//!    | sums of these lines                                                             dots.rs
//! decimated    d0 d1 d2 ..
//!    | neighbours: d0 d1 | d1 d2 | ..; low filter along the row
//! low row      l0 l1 l2 ..
//!    | with the low row above it: a pair for each column
//! ring         k0 l0 | k1 l1 | ..                 a line for each weight of the low filter
//!    | low filter along the column: every other line
//! filtered     f0 f1 f2 ..
//!    | neighbours, D times each: f0 f1 | f0 f1 | .. | f1 f2 | ..
//! wide row     w0 w1 w2 ..
//! ```

mod dots;
mod rows;

use super::passes::{PassGeometry, Passes, Slots};
use crate::engine::cpu::rows::plane_filter::PlanePart;
use crate::engine::cpu::rows::strip::OutputRows;
use crate::engine::cpu::rows::sums::taps::pack;
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};
use crate::engine::cpu::simd::with_simd;
use crate::filter::{PyramidGrid, PyramidKernel};
use dots::{Dot, PeriodicDots, Rounding, dot_lines, dot_periods, word};
use rows::{PairedRows, RowMemory};

/// Numbers of the longest vector.
const LONGEST: usize = 16;

/// Pairs of the six low pixels that a pixel is interpolated from.
const PAIRS: usize = PyramidGrid::TAPS / 2;

/// A kernel whose sums fit 32 bits, prepared for the loops.
pub(super) struct PairedKernel {
    /// The weights of interpolation for all D places after a low pixel, repeated to fill a vector.
    interpolate: PeriodicDots<PAIRS>,
    rows: PairedRows,
}

impl PairedKernel {
    /// `None` without vectors, if nothing is convolved, or if sums do not fit 32 bits.
    pub(super) fn new(part: &PlanePart<'_>, kernel: &PyramidKernel) -> Option<PairedKernel> {
        let period = 0..kernel.grid.step.max(LONGEST);
        let pairs = |tap: usize| {
            let weights = period.clone().map(|at| kernel.interpolate[at % kernel.grid.step]);
            weights.map(|w| pack(w[2 * tap], w[2 * tap + 1]) as u32).collect()
        };
        Some(PairedKernel {
            interpolate: PeriodicDots(std::array::from_fn(pairs)),
            rows: PairedRows::new(part, kernel)?,
        })
    }
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct PairMemory {
    extended: Vec<u16>,
    /// Lines of pairs: phases, a decimated row's, the latest low row's, and repeated low pixels'.
    lines: [Vec<u32>; 4],
    /// Numbers: a decimated row, a filtered one, and a wide one.
    numbers: [Vec<i32>; 3],
    /// The taps of the three filters: horizontal decimation, low filter along the row and along the column.
    dots: [Vec<Dot>; 3],
    rows: RowMemory,
}

/// The passes of a strip.
pub(super) struct Pairs<'a> {
    kernel: &'a PairedKernel,
    geometry: PassGeometry<'a>,
    /// Low pixels of a component of a row, rounded up to a multiple of [`TILE`].
    columns: usize,
    /// Elements from a phase to the next.
    pitch: usize,
    /// A component of a row, with what the border adds at both ends.
    extended: &'a mut [u16],
    phases: &'a mut [u32],
    /// A decimated component: each number and the next.
    neighbours: &'a mut [u32],
    /// The latest low row, and the one before it in the low halves.
    latest: &'a mut [u32],
    /// A filtered low row: each number and the next, D times.
    repeated: &'a mut [u32],
    decimated: &'a mut [i32],
    filtered: &'a mut [i32],
    /// A component of a wide row.
    wide: &'a mut [i32],
    /// The taps of the decimation, and of the low filter along the row and along the column.
    decimate: &'a [Dot],
    along: &'a [Dot],
    down: &'a mut Vec<Dot>,
    rows: &'a mut RowMemory,
}

impl<'a> Pairs<'a> {
    pub(super) fn new(
        kernel: &'a PairedKernel,
        geometry: PassGeometry<'a>,
        memory: &'a mut PairMemory,
    ) -> Pairs<'a> {
        let PyramidKernel {
            grid, columns, low, ..
        } = &geometry.pyramid.kernel;
        let width = geometry.width;
        let pixels = grid.low_pixels(width).next_multiple_of(TILE);
        let reach = pixels + 2 * grid.low_radius + 1;
        let decimated_columns = reach.next_multiple_of(TILE);
        let pitch = spread(decimated_columns + PyramidGrid::TAPS);
        let [phases, neighbours, latest, repeated] = &mut memory.lines;
        let [decimated, filtered, wide] = &mut memory.numbers;
        let [decimate, along, down] = &mut memory.dots;
        let half = grid.step / 2;
        decimate.clear();
        decimate.extend(
            columns
                .weights
                .as_chunks()
                .0
                .iter()
                .enumerate()
                .map(|(k, &[a, b])| {
                    let at = k % half * pitch + k / half;
                    (at, pack(a, b))
                }),
        );
        along.clear();
        along.extend(low.weights.chunks(2).enumerate().map(|(k, w)| {
            let next = w.get(1).copied().unwrap_or(0);
            (2 * k, pack(w[0], next))
        }));
        Pairs {
            kernel,
            columns: pixels,
            pitch,
            extended: room(&mut memory.extended, geometry.span.pixels),
            phases: aligned(phases, half * pitch),
            neighbours: aligned(neighbours, decimated_columns),
            latest: aligned(latest, geometry.channels * pixels),
            repeated: aligned(
                repeated,
                width.next_multiple_of(TILE) + PyramidGrid::TAPS * grid.step,
            ),
            decimated: aligned(decimated, decimated_columns),
            filtered: aligned(filtered, pixels),
            wide: aligned(wide, width.next_multiple_of(TILE)),
            decimate,
            along,
            down,
            rows: &mut memory.rows,
            geometry,
        }
    }
}

impl Passes for Pairs<'_> {
    type Low = u32;

    fn low_len(&self) -> usize {
        self.geometry.channels * self.columns
    }

    fn make_low_row(&mut self, sums: &[i32], to: &mut [u32]) {
        let passes = self;
        with_simd!(passes.kernel.rows.vectors, simd => simd.enter(MakeLowRow { passes, sums, to }));
    }

    fn make_wide_row(&mut self, low: &Slots<'_, u32>, to: &mut [i32]) {
        let passes = self;
        with_simd!(passes.kernel.rows.vectors, simd => simd.enter(MakeWideRow { passes, low, to }));
    }

    fn at_once(&self) -> usize {
        self.kernel.rows.at_once
    }

    fn make_rows(
        &mut self,
        wide: [&[i32]; PyramidGrid::TAPS],
        are_new: bool,
        place: usize,
        out: OutputRows<'_>,
    ) {
        let rows = &self.kernel.rows;
        rows.make(self.geometry.pyramid, self.rows, (wide, are_new), place, out);
    }
}

/// The loop that makes a low row.
struct MakeLowRow<'a, 'b> {
    passes: &'a mut Pairs<'b>,
    sums: &'a [i32],
    to: &'a mut [u32],
}

impl IntLoop for MakeLowRow<'_, '_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        self.passes.low_row(simd, self.sums, self.to);
    }
}

/// The loop that makes a wide row.
struct MakeWideRow<'a, 'b> {
    passes: &'a mut Pairs<'b>,
    low: &'a Slots<'a, u32>,
    to: &'a mut [i32],
}

impl IntLoop for MakeWideRow<'_, '_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        self.passes.wide_row(simd, self.low, self.to);
    }
}

impl Pairs<'_> {
    #[inline(always)]
    fn low_row<L: Simd>(&mut self, simd: L, sums: &[i32], to: &mut [u32]) {
        let kernel = &self.geometry.pyramid.kernel;
        let columns = Rounding::new(kernel.columns.shift);
        let low = Rounding::new(kernel.low.shift);
        for channel in 0..self.geometry.channels {
            self.geometry
                .extend(sums, channel, |number| word(number) as u16, self.extended);
            self.find_phases();
            dot_lines(simd, self.phases, self.decimate, columns, self.decimated);
            let next = self.decimated[1..].iter().chain(&[0]);
            for ((pair, &this), &next) in self.neighbours.iter_mut().zip(&*self.decimated).zip(next) {
                *pair = word(this) | word(next) << 16;
            }
            dot_lines(simd, self.neighbours, self.along, low, self.filtered);
            let latest = &mut self.latest[channel * self.columns..][..self.columns];
            for (pair, &number) in latest.iter_mut().zip(&*self.filtered) {
                *pair = *pair >> 16 | word(number) << 16;
            }
        }
        to.copy_from_slice(self.latest);
    }

    /// Sorts the pairs of the extended row into phases.
    #[inline(always)]
    fn find_phases(&mut self) {
        let step = self.geometry.pyramid.kernel.grid.step;
        for (i, words) in self.extended.chunks_exact(step).enumerate() {
            for (phase, &[a, b]) in words.as_chunks().0.iter().enumerate() {
                self.phases[phase * self.pitch + i] = u32::from(a) | u32::from(b) << 16;
            }
        }
    }

    #[inline(always)]
    fn wide_row<L: Simd>(&mut self, simd: L, low: &Slots<'_, u32>, to: &mut [i32]) {
        let PassGeometry {
            pyramid,
            width,
            channels,
            ..
        } = self.geometry;
        let (kernel, step) = (&pyramid.kernel, pyramid.kernel.grid.step);
        let (weights, last) = kernel.low.weights.as_chunks::<2>();
        for channel in 0..channels {
            // A line holds a low row and, above it, the one before.
            let at = |row: usize| (low.start)(row) + channel * self.columns;
            let pairs = weights.iter().enumerate();
            self.down.clear();
            self.down
                .extend(pairs.map(|(k, &[a, b])| (at(2 * k + 1), pack(a, b))));
            self.down.extend(
                last.iter()
                    .map(|&w| (at(kernel.low.weights.len() - 1), pack(0, w))),
            );
            dot_lines(
                simd,
                low.elements,
                self.down,
                Rounding::new(kernel.low.shift),
                self.filtered,
            );
            let neighbours = self.filtered.windows(2).map(|n| word(n[0]) | word(n[1]) << 16);
            for (to, pair) in self.repeated.chunks_mut(step).zip(neighbours) {
                to.fill(pair);
            }
            let rounding = Rounding::new(kernel.interpolate_bits);
            let repeated = (&*self.repeated, 2 * step);
            dot_periods(simd, repeated, &self.kernel.interpolate, rounding, self.wide);
            let pixels = to[channel..].iter_mut().step_by(channels);
            for (to, &made) in pixels.zip(&self.wide[..width]) {
                *to = made;
            }
        }
    }
}
