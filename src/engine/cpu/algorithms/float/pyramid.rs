//! Gaussians that are too wide for a mask, computed from a low picture that is D times smaller along each
//! side ([`FloatPyramid`] defines the sums).
//!
//! ```text
//! rows           r g b r g b ..   four at once: 32 bits, colours times alpha (lines.rs)
//!    | sums of six low rows += weight * row                                      rows/sums/decimator.rs
//! sums           r g b r g b ..   one line for each open low row
//!    | deinterleaving, border; pixels at the same place modulo D go to one line
//! phases         r_0 r_D r_2D ..  |  r_1 r_D+1 ..  |  ..                         D lines
//!    | sums of these lines; low filter along the row
//! low rows       r r ..  g g ..   a ring, one for each weight of the low filter
//!    | low filter along the column; each low pixel D times; six of these
//! wide rows      r g b r g b ..   a ring of six
//!    | sums of six lines, four rows at once
//! sums           r g b r g b ..   (finish.rs)
//! ```
//!
//! In every step the lanes of a vector hold different sums. In the line of a phase pixels that are D apart
//! are neighbours, so that a vector loads them at once.

use super::part::{Part, PartMemory};
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::strip::Strip;
use crate::engine::cpu::rows::sums::decimator::{Decimator, ROWS_AT_ONCE, Target};
use crate::engine::cpu::rows::sums::fused::{ROWS, along_row, of_places};
use crate::engine::cpu::simd::float::{FloatLoop, Samples};
use crate::engine::cpu::simd::levels::Levels;
use crate::engine::cpu::simd::scratch::{LineRing, aligned, room, spread};
use crate::filter::{FloatPyramid, PyramidGrid};
use crate::frame::Layout;

/// Multiply-adds per sample, including those of the low picture.
pub(super) const COST: usize = 16;

/// Numbers of the longest vector.
const LONGEST: usize = 16;

const TAPS: usize = PyramidGrid::TAPS;

/// A kernel, prepared for the loops.
pub(super) struct Pyramid {
    kernel: FloatPyramid,
    /// For each of the six low pixels its weights for all D places after a low pixel, repeated to fill a
    /// vector.
    taps: [Vec<f32>; TAPS],
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct PyramidMemory {
    /// Four rows of the picture, and four of the result.
    rows: Vec<f32>,
    sums: Vec<f32>,
    phases: Vec<f32>,
    low_rows: Vec<f32>,
    wide_rows: Vec<f32>,
    /// Lines of one component: decimated; filtered; each low pixel repeated D times; all columns.
    lines: [Vec<f32>; 4],
}

impl Pyramid {
    pub(super) fn new(kernel: &FloatPyramid) -> Pyramid {
        let (places, step) = (&kernel.interpolate, kernel.grid.step);
        Pyramid {
            taps: std::array::from_fn(|tap| {
                let period = 0..step.max(LONGEST);
                period.map(|at| places[at % step][tap]).collect()
            }),
            kernel: kernel.clone(),
        }
    }

    /// Describes how a plane is filtered, with vectors of `lanes` numbers.
    pub(super) fn describe(&self, (lanes, _): (usize, usize)) -> String {
        let (step, low) = (self.kernel.grid.step, self.kernel.low.len());
        format!("pyramid, {low}x{low} low pixels, {step} pixels apart, vectors of {lanes}")
    }
}

/// The intermediate lines of a plane.
struct Lines<'a> {
    pyramid: &'a Pyramid,
    channels: usize,
    /// Samples of a row, rounded up to a multiple of a vector.
    samples: usize,
    /// Low pixels of a row that results are interpolated from, rounded up likewise.
    columns: usize,
    /// Numbers from one phase to the next.
    pitch: usize,
    /// The pixels that low pixels are decimated from.
    span: Span,
    /// The border's constant of each component, as sums of the vertical decimation.
    outside: Vec<f32>,
    phases: &'a mut [f32],
    decimated: &'a mut [f32],
    filtered: &'a mut [f32],
    stretched: &'a mut [f32],
    wide: &'a mut [f32],
}

impl Part<'_> {
    /// Makes all rows of the strip.
    #[inline(always)]
    pub(super) fn make_pyramid<S: Levels>(
        &self,
        s: S,
        pyramid: &Pyramid,
        layout: &Layout,
        strip: &mut Strip<'_>,
        memory: &mut PyramidMemory,
        PartMemory { starts, work }: &mut PartMemory,
    ) {
        let geometry = layout.planes()[strip.plane];
        let (channels, grid) = (geometry.channels, pyramid.kernel.grid);
        let (step, first_row) = (grid.step, self.first_row as i64);
        let samples = geometry.width * channels;
        let len = samples.next_multiple_of(S::LANES);
        let starts = room(starts, len);
        self.starts(&mut starts[..samples]);
        let PyramidMemory {
            rows,
            sums,
            phases,
            low_rows,
            wide_rows,
            lines,
        } = memory;
        let rows = aligned(rows, ROWS * spread(len));
        let mut lines = Lines::new::<S>(pyramid, self, geometry.width, (phases, lines));
        let low_slots = 2 * grid.low_radius + 1;
        let low_len = lines.columns * channels;
        let mut low_rows = LineRing::new(low_rows, (low_slots, spread(low_len)), 0);
        let mut wide_rows = LineRing::new(wide_rows, (TAPS, spread(len)), 0);
        // The first of the low rows that results are interpolated from: two before the one on or before the
        // first result.
        let first_low = first_row / step as i64 - 2;
        let first_decimated = first_low - grid.low_radius as i64;
        let mut decimator = Decimator::new(&pyramid.kernel.decimate, first_decimated, len, sums);
        for k in (0..strip.rows).step_by(ROWS) {
            let at = self.first_row + k;
            // The first of the wide rows that these rows are interpolated from.
            let first = (at as i64 / step as i64 - 2 - first_low) as usize;
            // Each loop is entered by itself: they are long, and closures would not be compiled with the
            // set's instructions.
            while let Some((k, wide)) = wide_rows.next_before(first + TAPS) {
                while let Some((_, to)) = low_rows.next_before(k + low_slots) {
                    let sums = decimator.next(|first, target| {
                        s.enter(AddRows {
                            part: self,
                            first,
                            rows: &mut *rows,
                            alphas: &mut work.alphas,
                            target,
                        });
                    });
                    let lines = &mut lines;
                    s.enter(MakeLowRow { lines, sums, to });
                }
                let slot = low_rows.slots_from(k);
                s.enter(MakeWideRow {
                    lines: &mut lines,
                    low: low_rows.all(),
                    slot,
                    to: wide,
                });
            }
            let weights = &pyramid.kernel.interpolate[at % step..][..ROWS];
            let six = std::array::from_fn(|tap| wide_rows.slot(first + tap));
            let made = &mut rows[..ROWS * len];
            interpolate_rows(s, weights, (wide_rows.all(), six), &starts[..len], made);
            self.finish(s, layout, strip, k, (made, samples), work);
        }
    }
}

impl<'a> Lines<'a> {
    fn new<S: Samples>(
        pyramid: &'a Pyramid,
        part: &Part<'_>,
        width: usize,
        (phases, lines): (&'a mut Vec<f32>, &'a mut [Vec<f32>; 4]),
    ) -> Lines<'a> {
        let (grid, channels) = (pyramid.kernel.grid, part.reader.channels());
        let samples = (width * channels).next_multiple_of(S::LANES);
        let columns = grid.low_pixels(width).next_multiple_of(S::LANES);
        // Includes vectors that reach beyond the last low pixel.
        let decimated = (columns + 2 * grid.low_radius).next_multiple_of(S::LANES);
        let pitch = spread(decimated + TAPS);
        let stretched = (width + TAPS * grid.step).next_multiple_of(S::LANES);
        let [decimated_line, filtered_line, stretched_line, wide_line] = lines;
        let outside = part.reader.outside.iter();
        Lines {
            pyramid,
            channels,
            samples,
            columns,
            pitch,
            span: Span::new(grid.pixels(width), width, part.reader.border),
            outside: outside
                .map(|&value| pyramid.kernel.decimated_constant(value))
                .collect(),
            phases: aligned(phases, grid.step * pitch),
            decimated: aligned(decimated_line, decimated),
            filtered: aligned(filtered_line, columns),
            stretched: aligned(stretched_line, stretched + LONGEST),
            wide: aligned(wide_line, width.next_multiple_of(S::LANES)),
        }
    }

    /// Sorts the pixels of a component into phases: pixels that are D apart become neighbours.
    #[inline(always)]
    fn find_phases(&mut self, sums: &[f32], channel: usize) {
        let (channels, pitch) = (self.channels, self.pitch);
        let step = self.pyramid.kernel.grid.step;
        let inside = &sums[..self.span.inside.len() * channels];
        for phase in 0..step {
            // The number of pixels before the picture's first one is a multiple of D.
            let line = &mut self.phases[phase * pitch + self.span.lead / step..];
            let pixels = inside.get(phase * channels + channel..).unwrap_or_default();
            for (to, &sum) in line.iter_mut().zip(pixels.iter().step_by(step * channels)) {
                *to = sum;
            }
        }
        for &(place, from) in &self.span.outside {
            let value = from.map_or(self.outside[channel], |x| sums[x * channels + channel]);
            self.phases[place % step * pitch + place / step] = value;
        }
    }
}

/// The loop that adds four rows of the picture to the sums of low rows.
struct AddRows<'a> {
    part: &'a Part<'a>,
    /// Number of the first row.
    first: i64,
    /// Memory for the rows.
    rows: &'a mut [f32],
    alphas: &'a mut Vec<f32>,
    target: Target<'a, f32>,
}

impl<S: Levels> FloatLoop<S> for AddRows<'_> {
    #[inline(always)]
    fn run(mut self, s: S) {
        let (reader, span) = (&self.part.reader, &self.part.span);
        let (samples, pitch) = (self.target.samples, self.rows.len() / ROWS_AT_ONCE);
        for (r, row) in self.rows.chunks_exact_mut(pitch).enumerate() {
            reader.line(s, self.first + r as i64, span, row, self.alphas);
        }
        let rows = std::array::from_fn(|r| &self.rows[r * pitch..][..samples]);
        let (sums, lines) = self.target.parts();
        let at = if const { S::REGISTERS < 32 } {
            add_tiles::<S, 2>(s, rows, (sums, lines), 0)
        } else {
            add_tiles::<S, 4>(s, rows, (sums, lines), 0)
        };
        add_tiles::<S, 1>(s, rows, (sums, lines), at);
    }
}

/// The loop that makes a low row from the sums of the vertical decimation: the horizontal decimation to every
/// D-th pixel, then the low filter along the row.
struct MakeLowRow<'a, 'b> {
    lines: &'a mut Lines<'b>,
    sums: &'a [f32],
    to: &'a mut [f32],
}

impl<S: Samples> FloatLoop<S> for MakeLowRow<'_, '_> {
    #[inline(always)]
    fn run(self, s: S) {
        let lines = self.lines;
        let (kernel, pitch) = (&lines.pyramid.kernel, lines.pitch);
        let (bits, mask) = (kernel.grid.step.ilog2(), kernel.grid.step - 1);
        let place = |tap: usize| (tap & mask) * pitch + (tap >> bits);
        for channel in 0..lines.channels {
            lines.find_phases(self.sums, channel);
            let phases = (&*lines.phases, place);
            of_places(s, (&kernel.decimate, 0.0), phases, lines.decimated, |sums| sums);
            let to = &mut self.to[channel * lines.columns..][..lines.columns];
            along_row(s, (&kernel.low, 0.0), lines.decimated, 1, to, |sums| sums);
        }
    }
}

/// The loop that makes a wide row: the low filter along the column, then all columns.
struct MakeWideRow<'a, 'b, F> {
    lines: &'a mut Lines<'b>,
    low: &'a [f32],
    /// The index in `low` of the low row under each weight of the filter.
    slot: F,
    to: &'a mut [f32],
}

impl<S: Samples, F: Fn(usize) -> usize> FloatLoop<S> for MakeWideRow<'_, '_, F> {
    #[inline(always)]
    fn run(self, s: S) {
        let lines = self.lines;
        let (kernel, taps) = (&lines.pyramid.kernel, lines.pyramid.taps.each_ref());
        let (step, channels) = (kernel.grid.step, lines.channels);
        for channel in 0..channels {
            let from = channel * lines.columns;
            let place = |tap: usize| (self.slot)(tap) + from;
            let low = (self.low, place);
            of_places(s, (&kernel.low, 0.0), low, lines.filtered, |sums| sums);
            match step {
                4 => stretch::<4>(lines.filtered, lines.stretched),
                8 => stretch::<8>(lines.filtered, lines.stretched),
                _ => {
                    for (to, &low) in lines.stretched.chunks_mut(step).zip(&*lines.filtered) {
                        to.fill(low);
                    }
                }
            }
            if channels == 1 {
                interpolate_columns(s, taps, lines.stretched, step, &mut self.to[..lines.samples]);
                continue;
            }
            interpolate_columns(s, taps, lines.stretched, step, lines.wide);
            let pixels = self.to[channel..lines.samples].iter_mut();
            for (to, &made) in pixels.step_by(channels).zip(&*lines.wide) {
                *to = made;
            }
        }
    }
}

/// Repeats each low pixel `D` times.
#[inline(always)]
fn stretch<const D: usize>(low: &[f32], to: &mut [f32]) {
    for (to, &low) in to.as_chunks_mut::<D>().0.iter_mut().zip(low) {
        *to = [low; D];
    }
}

/// Adds the products of four rows to sums, in whole tiles of `V` vectors from sample `from` on. Returns the
/// index of the first sample that is left.
#[inline(always)]
fn add_tiles<S: Samples, const V: usize>(
    s: S,
    rows: [&[f32]; ROWS_AT_ONCE],
    (sums, lines): (&mut [f32], &[(usize, [f32; ROWS_AT_ONCE])]),
    from: usize,
) -> usize {
    let mut at = from;
    while at + V * S::LANES <= rows[0].len() {
        let mut pixels = [[s.splat(0.0); V]; ROWS_AT_ONCE];
        for r in 0..ROWS_AT_ONCE {
            let row = &rows[r][at..][..V * S::LANES];
            for v in 0..V {
                pixels[r][v] = s.load(&row[v * S::LANES..]);
            }
        }
        for (start, weights) in lines {
            let line = &mut sums[start + at..][..V * S::LANES];
            for v in 0..V {
                let mut sum = s.load(&line[v * S::LANES..]);
                for r in 0..ROWS_AT_ONCE {
                    sum = s.fused(s.splat(weights[r]), pixels[r][v], sum);
                }
                s.store(sum, &mut line[v * S::LANES..]);
            }
        }
        at += V * S::LANES;
    }
    at
}

/// Interpolates all columns from low pixels that are repeated D times each.
#[inline(always)]
fn interpolate_columns<S: Samples>(s: S, taps: [&Vec<f32>; TAPS], low: &[f32], step: usize, to: &mut [f32]) {
    let period = taps[0].len();
    let mut at = 0;
    while at + S::LANES <= to.len() {
        let mut sum = s.splat(0.0);
        for tap in 0..TAPS {
            let weights = s.load(&taps[tap][at % period..]);
            sum = s.fused(weights, s.load(&low[at + tap * step..]), sum);
        }
        s.store(sum, &mut to[at..]);
        at += S::LANES;
    }
}

/// Interpolates [`ROWS`] rows of the result from the six lines that begin at `six` in `wide`. Each has as
/// many samples as `starts` has start values.
#[inline(always)]
fn interpolate_rows<S: Samples>(
    s: S,
    weights: &[[f32; TAPS]],
    wide: (&[f32], [usize; TAPS]),
    starts: &[f32],
    to: &mut [f32],
) {
    let at = if const { S::REGISTERS < 32 } {
        row_tiles::<S, 2>(s, weights, wide, starts, to, 0)
    } else {
        row_tiles::<S, 4>(s, weights, wide, starts, to, 0)
    };
    row_tiles::<S, 1>(s, weights, wide, starts, to, at);
}

/// Makes whole tiles of `V` vectors of the rows from sample `from` on. Returns the index of the first sample
/// that is left.
#[inline(always)]
fn row_tiles<S: Samples, const V: usize>(
    s: S,
    weights: &[[f32; TAPS]],
    (wide, six): (&[f32], [usize; TAPS]),
    starts: &[f32],
    to: &mut [f32],
    from: usize,
) -> usize {
    let (weights, len) = (&weights[..ROWS], starts.len());
    let mut at = from;
    while at + V * S::LANES <= len {
        let mut start = [s.splat(0.0); V];
        for v in 0..V {
            start[v] = s.load(&starts[at + v * S::LANES..]);
        }
        let mut sums = [start; ROWS];
        for tap in 0..TAPS {
            let line = &wide[six[tap] + at..][..V * S::LANES];
            let mut numbers = [s.splat(0.0); V];
            for v in 0..V {
                numbers[v] = s.load(&line[v * S::LANES..]);
            }
            for r in 0..ROWS {
                let weight = s.splat(weights[r][tap]);
                for v in 0..V {
                    sums[r][v] = s.fused(weight, numbers[v], sums[r][v]);
                }
            }
        }
        for r in 0..ROWS {
            for v in 0..V {
                s.store(sums[r][v], &mut to[r * len + at + v * S::LANES..]);
            }
        }
        at += V * S::LANES;
    }
    at
}
