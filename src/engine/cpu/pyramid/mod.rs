//! Gaussians that are too wide for a mask, by a picture that is D times smaller along each side
//! ([`PyramidKernel`] says why that is a Gaussian).
//!
//! ```text
//! row y      p p p p p p p p ..      samples as they are interleaved
//!    | sums of six low rows += weight * row, four rows at once           decimate.rs
//! sums       s s s s s s s s ..      of the row pass's column: one line for each low row that is open
//!    | border, components apart, every D-th, low filter along the row    low_rows.rs
//! low rows   l l ..                  a ring of as many as the low filter has weights
//!    | low filter along the column, six low pixels to D pixels           interpolate.rs
//! wide rows  w w w w w w w w ..      a ring of six
//!    | six of them, shift, add, clamp
//! row y      p p p p p p p p ..
//! ```
//!
//! All but the first and the last step work on a D-th of the rows; which rows belong to which sums is in
//! `rows/decimator.rs`. The loops are plain Rust that the compiler
//! makes vectors of, for each instruction set.

mod decimate;
mod interpolate;
mod low_rows;

use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::decimator::Decimator;
use crate::engine::cpu::rows::plane_filter::{PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sum::Sum;
use crate::engine::cpu::simd::scratch::{self, LineRing, room, spread};
use crate::engine::cpu::simd::{Vectors, run_plain};
use crate::filter::{Border, ChannelStep, Convolve, Kernel, PyramidGrid, PyramidKernel};
use crate::frame::{Layout, PixelFormat, Plane};
use decimate::AddRows;
use interpolate::{MakeRow, MakeWideRow, Taps};
use low_rows::MakeLowRow;

/// One plane's part of a step with such a kernel.
pub(in crate::engine::cpu) struct Pyramid {
    kernel: PyramidKernel,
    taps: Taps,
    vectors: Option<Vectors>,
    format: PixelFormat,
    border: Border,
    rows: RowBorder,
    channels: Vec<ChannelStep>,
    /// What each channel adds; empty where none is convolved.
    convolved: Vec<Convolve>,
}

/// The memory that a thread works in, for sums of one width.
#[derive(Default)]
struct Scratch<S> {
    outside: Vec<u8>,
    /// Where the pixels of an extended row are found.
    places: Vec<Option<usize>>,
    sums: Vec<i32>,
    low_rows: Vec<i32>,
    wide_rows: Vec<i32>,
    /// One line at a time: a component of an extended row, of a low row before its filter, and after it.
    lines: [Vec<i32>; 3],
    line_sums: Vec<S>,
}

/// Multiply-adds of two samples and two weights each that a sample takes.
const COST: f64 = 16.0;

impl PlaneFilter for Pyramid {
    /// `None` for other kernels; every plane of a step with such a kernel otherwise.
    fn new(part: &PlanePart<'_>, _: Option<&Pyramid>) -> Option<Pyramid> {
        let Kernel::Pyramid(kernel) = &part.step.kernel else {
            return None;
        };
        let channels = part.channels();
        let first = channels.iter().find_map(ChannelStep::convolved);
        // What is not convolved is computed along with the rest and then replaced.
        let convolved = first.map_or_else(Vec::new, |first| {
            let of = |c: &ChannelStep| *c.convolved().unwrap_or(first);
            channels.iter().map(of).collect()
        });
        Some(Pyramid {
            taps: Taps::new(kernel),
            kernel: kernel.clone(),
            vectors: part.vectors,
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
    fn make<S: Sum>(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch<S>,
    ) {
        let plane = layout.planes()[strip.plane];
        let (first_row, row_bytes) = (strip.first_row as i64, layout.row_bytes(strip.plane));
        let rows = PlaneRows::new(picture, strip, (&self.channels, &self.rows), &mut scratch.outside);
        if self.convolved.is_empty() {
            for (y, out) in strip.bytes.chunks_mut(plane.stride).take(strip.rows).enumerate() {
                rows.complete(y, &mut out[..row_bytes]);
            }
            return;
        }
        let (kernel, PyramidGrid { step, low_radius }) = (&self.kernel, self.kernel.grid);
        let samples = plane.width * plane.channels;
        // The low pixels that results are interpolated from begin two before the one on or before the first
        // result and end three behind the one on or before the last.
        let first_low = first_row / step as i64 - 2;
        let columns = kernel.grid.low_pixels(plane.width);
        let filtered = columns * plane.channels;
        self.find_places(plane.width, &mut scratch.places);
        let extended = scratch.places.len();
        let outside: Vec<i32> = self
            .convolved
            .iter()
            .map(|c| i32::from(c.border) << kernel.fraction_bits)
            .collect();
        let low_slots = 2 * low_radius + 1;
        let mut low_rows = LineRing::new(&mut scratch.low_rows, (low_slots, spread(filtered)), 0);
        let mut wide_rows = LineRing::new(&mut scratch.wide_rows, (PyramidGrid::TAPS, spread(samples)), 0);
        let mut decimator = Decimator::new(
            &kernel.rows.weights,
            first_low - low_radius as i64,
            samples,
            &mut scratch.sums,
        );
        let [extended_line, low_line, filtered_line] = &mut scratch.lines;
        let [extended_line, low_line, filtered_line] = [
            room(extended_line, extended),
            room(low_line, kernel.grid.decimated(plane.width)),
            room(filtered_line, columns),
        ];
        let line_sums = room(&mut scratch.line_sums, columns);
        for (y, out) in strip.bytes.chunks_mut(plane.stride).take(strip.rows).enumerate() {
            let out = &mut out[..row_bytes];
            let at = first_row + y as i64;
            // The first of the wide rows that this row is made of.
            let first = (at / step as i64 - 2 - first_low) as usize;
            while let Some((k, wide)) = wide_rows.next_before(first + PyramidGrid::TAPS) {
                while let Some((_, low)) = low_rows.next_before(k + low_slots) {
                    let sums = decimator.next(|block, target| {
                        let from = block - first_row;
                        let rows = [
                            rows.row(from),
                            rows.row(from + 1),
                            rows.row(from + 2),
                            rows.row(from + 3),
                        ];
                        let add = AddRows {
                            rows,
                            format: self.format,
                            target,
                        };
                        run_plain(self.vectors, add);
                    });
                    let make = MakeLowRow {
                        kernel,
                        sums,
                        places: &scratch.places,
                        outside: &outside,
                        extended: &mut *extended_line,
                        decimated: &mut *low_line,
                        line_sums: &mut *line_sums,
                        to: &mut low[..filtered],
                    };
                    run_plain(self.vectors, make);
                }
                let starts: Vec<usize> = (k..k + low_slots).map(|line| low_rows.slot(line)).collect();
                let make = MakeWideRow {
                    kernel,
                    taps: &self.taps,
                    low: low_rows.all(),
                    starts: &starts,
                    channels: plane.channels,
                    filtered: &mut *filtered_line,
                    line_sums: &mut *line_sums,
                    to: &mut wide[..samples],
                };
                run_plain(self.vectors, make);
            }
            let make = MakeRow::<S>::new(
                std::array::from_fn(|tap| &wide_rows.line(first + tap)[..samples]),
                (kernel, &self.convolved),
                (at as usize % step, self.format),
                &mut *out,
            );
            run_plain(self.vectors, make);
            rows.complete(y, out);
        }
    }

    /// Where the pixels of a row are found that its low pixels are decimated from; `None` where the border
    /// holds a constant.
    fn find_places(&self, width: usize, places: &mut Vec<Option<usize>>) {
        let pixels = self.kernel.grid.pixels(width);
        places.clear();
        places.extend(pixels.map(|x| self.border.index(x, width)));
    }
}
