//! Gaussians that are too wide for a mask, computed from a low picture that is D times smaller along each
//! side ([`PyramidKernel`] says why that is a Gaussian).
//!
//! ```text
//! row y      p p p p p p p p ..      interleaved samples
//!    | sums of six low rows += weight * row, four rows at once           decimate.rs
//! sums       s s s s s s s s ..      one line for each open low row
//!    | border, deinterleaving, every D-th, low filter along the row      low_rows.rs
//! low rows   l l ..                  a ring, one for each weight of the low filter
//!    | low filter along the column, six low pixels to D pixels           interpolate.rs
//! wide rows  w w w w w w w w ..      a ring of six
//!    | six of them, shift, add, clamp                                    paired_rows.rs, interpolate.rs
//! row y      p p p p p p p p ..
//! ```
//!
//! All steps but the first and the last work on every D-th row only. `rows/sums/decimator.rs` says which rows
//! belong to which sums. The first and the last step multiply pairs of words where there are vectors; the other
//! loops are plain Rust, which the compiler vectorizes for each instruction set.

mod decimate;
mod interpolate;
mod low_rows;
mod paired_rows;

use crate::engine::cpu::algorithms::fir::taps::Group;
use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::plane_filter::{PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::span::Span;
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::sums::decimator::Decimator;
use crate::engine::cpu::rows::sums::integer::Sum;
use crate::engine::cpu::rows::words::sample::{SampleEncoding, total};
use crate::engine::cpu::simd::scratch::{self, LineRing, aligned, room, spread};
use crate::engine::cpu::simd::{Vectors, run_plain, with_simd};
use crate::filter::{Border, ChannelStep, Convolve, Kernel, PyramidGrid, PyramidKernel};
use crate::frame::{Layout, PixelFormat, Plane};
use decimate::{add_rows, add_rows_one_by_one};
use interpolate::{MakeRow, MakeWideRow, Taps};
use low_rows::MakeLowRow;
use paired_rows::PairedRows;

/// One plane's part of a step with a pyramid.
pub(in crate::engine::cpu) struct Pyramid {
    kernel: PyramidKernel,
    taps: Taps,
    vectors: Option<Vectors>,
    /// How samples are decimated with vectors.
    encoding: SampleEncoding,
    /// How rows of the result are made of pairs of wide rows; `None`: of the wide rows, one by one.
    paired: Option<PairedRows>,
    format: PixelFormat,
    border: Border,
    /// The border above and below the plane.
    rows: RowBorder,
    channels: Vec<ChannelStep>,
    /// The constants of each channel; empty if none is convolved.
    convolved: Vec<Convolve>,
}

/// Scratch memory of a thread, for sums of type `S`.
#[derive(Default)]
struct PyramidScratch<S> {
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    rings: RingMemory<S>,
    paired: PairMemory,
}

/// Scratch memory of [`PairedRows`].
#[derive(Default)]
struct PairMemory {
    /// Pairs of wide rows.
    pairs: Vec<u32>,
    taps: [Group; 3],
    /// Result rows that the strip does not have.
    spare: Vec<u8>,
}

/// Scratch memory of [`LowRows`] and [`WideRows`].
#[derive(Default)]
struct RingMemory<S> {
    /// The sums of the vertical decimation.
    sums: Vec<i32>,
    low_rows: Vec<i32>,
    wide_rows: Vec<i32>,
    /// Lines of one component: an extended row, a decimated row, and a low row filtered along the column.
    lines: [Vec<i32>; 3],
    /// Sums along a line.
    line_sums: Vec<S>,
}

/// Cost of a sample, in multiply-adds of two samples and two weights.
const COST: f64 = 16.0;

impl PlaneFilter for Pyramid {
    /// `None` for other kernels. A plane in which nothing is convolved is accepted, too.
    fn new(part: &PlanePart<'_>, _: Option<&Pyramid>) -> Option<Pyramid> {
        let Kernel::Pyramid(kernel) = &part.step.kernel else {
            return None;
        };
        let channels = part.channels();
        let first = channels.iter().find_map(ChannelStep::convolved);
        // Channels that are not convolved are computed along with the rest and then replaced.
        let convolved = first.map_or_else(Vec::new, |first| {
            let of = |c: &ChannelStep| *c.convolved().unwrap_or(first);
            channels.iter().map(of).collect()
        });
        Some(Pyramid {
            taps: Taps::new(kernel),
            kernel: kernel.clone(),
            vectors: part.vectors,
            encoding: SampleEncoding::choose(part.format, 0, || None).0,
            paired: PairedRows::new(part, kernel),
            format: part.format,
            border: part.step.border,
            rows: RowBorder::new(part.step.border, part.format, channels, (1, false)),
            channels: channels.to_vec(),
            convolved,
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * COST
    }

    fn plan(&self, _: &Plane) -> String {
        if self.convolved.is_empty() {
            return "copied or filled".to_owned();
        }
        let (step, low) = (self.kernel.grid.step, self.kernel.low.weights.len());
        let bits = if self.kernel.is_wide() { 64 } else { 32 };
        format!("pyramid: {low}x{low} low pixels, {step} pixels apart, sums of {bits} bits")
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        if self.kernel.is_wide() {
            self.make::<i64>(picture, layout, strip, scratch.of());
        } else {
            self.make::<i32>(picture, layout, strip, scratch.of());
        }
    }
}

impl Pyramid {
    /// Makes the rows of the strip.
    fn make<S: Sum>(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut PyramidScratch<S>,
    ) {
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let (step, samples) = (self.kernel.grid.step, plane.width * plane.channels);
        let PyramidScratch {
            outside,
            rings,
            paired,
        } = scratch;
        let rows = PlaneRows::new(picture, strip, (&self.channels, &self.rows), outside);
        if self.convolved.is_empty() {
            for (y, out) in strip.bytes.chunks_mut(plane.stride).take(strip.rows).enumerate() {
                rows.fill_unconvolved_channels(y, &mut out[..row_bytes]);
            }
            return;
        }
        let top = first_low(strip.first_row, step);
        let mut wide = WideRows::new(self, rows, strip.first_row, &plane, rings);
        let mut row = 0;
        while row < strip.rows {
            let (at, bytes) = (strip.first_row + row, &mut strip.bytes[row * plane.stride..]);
            // The first of the wide rows that this row is interpolated from.
            let (first, place) = ((first_low(at, step) - top) as usize, at % step);
            let are_next = row == 0 || place == 0;
            wide.make_before(first + PyramidGrid::TAPS);
            let six = std::array::from_fn(|tap| &wide.ring.line(first + tap)[..samples]);
            let made = match &self.paired {
                Some(rows) => {
                    let pairs = aligned(&mut paired.pairs, PairedRows::elements(samples));
                    if are_next {
                        PairedRows::pair(six, pairs);
                    }
                    let made = rows.at_once.min(step - place).min(strip.rows - row);
                    let out = OutputRows {
                        bytes: &mut bytes[..(made - 1) * plane.stride + row_bytes],
                        stride: plane.stride,
                        row_bytes,
                        spare: room(&mut paired.spare, 2 * row_bytes),
                    };
                    rows.make(self, (pairs, &mut paired.taps), (place, made), samples, out);
                    made
                }
                None => {
                    let made = MakeRow::<S>::new(
                        six,
                        (&self.kernel, &self.convolved),
                        (place, self.format),
                        &mut bytes[..row_bytes],
                    );
                    run_plain(self.vectors, made);
                    1
                }
            };
            for (k, out) in bytes.chunks_mut(plane.stride).take(made).enumerate() {
                wide.low
                    .rows
                    .fill_unconvolved_channels(row + k, &mut out[..row_bytes]);
            }
            row += made;
        }
    }
}

/// The first of the six low rows that row `row` is interpolated from: two before the one on or before it.
fn first_low(row: usize, step: usize) -> i64 {
    row as i64 / step as i64 - 2
}

/// The low rows of a strip.
struct LowRows<'a, S> {
    pyramid: &'a Pyramid,
    /// The rows of the picture, counted from the strip's first row.
    rows: PlaneRows<'a>,
    /// Number of the strip's first row in the plane.
    first_row: i64,
    decimator: Decimator<'a, i32>,
    /// The latest low rows, as many as the low filter has weights.
    ring: LineRing<'a, i32>,
    /// Numbers of a low row.
    len: usize,
    /// The pixels that low pixels are decimated from.
    span: Span,
    /// The border's constant of each component, as numbers between the passes.
    outside: Vec<i32>,
    extended: &'a mut [i32],
    decimated: &'a mut [i32],
    line_sums: &'a mut [S],
}

impl<S: Sum> LowRows<'_, S> {
    /// Makes all low rows up to and without row `end`, counted from the first one.
    fn make_before(&mut self, end: usize) {
        let pyramid = self.pyramid;
        let widening = pyramid.encoding.widening(pyramid.format);
        let rows = &pyramid.kernel.rows;
        let missing = match pyramid.vectors {
            Some(_) => pyramid.encoding.correction(total(&rows.weights)),
            None => 0,
        };
        let rounding = (rows.start() + missing) as i32;
        while let Some((_, low)) = self.ring.next_before(end) {
            let sums = self.decimator.next(|block, target| {
                let from = block - self.first_row;
                let rows = [0, 1, 2, 3].map(|k| self.rows.row(from + k));
                match pyramid.vectors {
                    Some(vectors) => {
                        with_simd!(vectors, simd => add_rows(simd, widening, rows, target));
                    }
                    None => add_rows_one_by_one(pyramid.format, rows, target),
                }
            });
            let make = MakeLowRow {
                kernel: &pyramid.kernel,
                sums,
                rounding,
                span: &self.span,
                outside: &self.outside,
                extended: &mut *self.extended,
                decimated: &mut *self.decimated,
                line_sums: &mut *self.line_sums,
                to: &mut low[..self.len],
            };
            run_plain(pyramid.vectors, make);
        }
    }
}

/// The wide rows of a strip: low rows after the low filter along the column, with all columns.
struct WideRows<'a, S> {
    low: LowRows<'a, S>,
    /// The latest six wide rows.
    ring: LineRing<'a, i32>,
    /// Samples of a wide row.
    samples: usize,
    channels: usize,
    filtered: &'a mut [i32],
}

impl<'a, S: Sum> WideRows<'a, S> {
    /// The wide rows for a strip of `plane` that begins with row `first_row`; `rows` are the rows of the
    /// picture.
    fn new(
        pyramid: &'a Pyramid,
        rows: PlaneRows<'a>,
        first_row: usize,
        plane: &Plane,
        memory: &'a mut RingMemory<S>,
    ) -> WideRows<'a, S> {
        let (kernel, grid) = (&pyramid.kernel, pyramid.kernel.grid);
        let samples = plane.width * plane.channels;
        let columns = grid.low_pixels(plane.width);
        let len = columns * plane.channels;
        let span = Span::new(grid.pixels(plane.width), plane.width, pyramid.border);
        let constant = |c: &Convolve| i32::from(c.border) << kernel.fraction_bits;
        let first = first_low(first_row, grid.step) - grid.low_radius as i64;
        let [extended, decimated, filtered] = &mut memory.lines;
        let low = LowRows {
            pyramid,
            rows,
            first_row: first_row as i64,
            decimator: Decimator::new(&kernel.rows.weights, first, samples, &mut memory.sums),
            ring: LineRing::new(&mut memory.low_rows, (2 * grid.low_radius + 1, spread(len)), 0),
            len,
            outside: pyramid.convolved.iter().map(constant).collect(),
            extended: room(extended, span.pixels),
            decimated: room(decimated, grid.decimated(plane.width)),
            line_sums: room(&mut memory.line_sums, columns),
            span,
        };
        WideRows {
            low,
            ring: LineRing::new(&mut memory.wide_rows, (PyramidGrid::TAPS, spread(samples)), 0),
            samples,
            channels: plane.channels,
            filtered: room(filtered, columns),
        }
    }

    /// Makes all wide rows up to and without row `end`, counted from the first one.
    fn make_before(&mut self, end: usize) {
        let pyramid = self.low.pyramid;
        let slots = 2 * pyramid.kernel.grid.low_radius + 1;
        while let Some((k, wide)) = self.ring.next_before(end) {
            self.low.make_before(k + slots);
            let starts: Vec<usize> = (k..k + slots).map(|line| self.low.ring.slot(line)).collect();
            let make = MakeWideRow {
                kernel: &pyramid.kernel,
                taps: &pyramid.taps,
                low: self.low.ring.all(),
                starts: &starts,
                channels: self.channels,
                filtered: &mut *self.filtered,
                line_sums: &mut *self.low.line_sums,
                to: &mut wide[..self.samples],
            };
            run_plain(pyramid.vectors, make);
        }
    }
}
