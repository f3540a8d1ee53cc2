//! Filters that combine the sums of several masks, or of one, to one number: gradient magnitudes, the largest
//! of several slopes, absolute values.
//!
//! ```text
//! row y - 1   c c | p p p p .. | c c     interleaved samples, border filled
//! row y       c c | p p p p .. | c c     a ring: each row is loaded once, for all masks
//! row y + 1   c c | p p p p .. | c c
//!    | in blocks of BLOCK samples        sums.rs    each mask's sums, in 16 bits where these hold them
//! sums        s s s s ..  t t t t ..
//!    | |s|, max(s, t ..), root           root.rs    floating point where it provably rounds as integers do
//! numbers     n n n n ..
//!    | shift, add, clamp                 row.rs
//! row y       p p p p ..
//! ```
//!
//! These loops are plain Rust, which the compiler vectorizes for each instruction set. Where 32 bits hold the
//! sums, common masks have vector loops that store nothing but results (`in_registers.rs`, `store.rs`), in 16
//! bits or in 32 (`integer_width.rs`). Sobel's and its kind of 16 bits are separated (`slopes.rs`).

mod in_registers;
mod integer_width;
mod pairs;
mod root;
mod row;
mod slopes;
mod store;
mod sums;

use crate::engine::cpu::rows::border::{Apron, RowBorder};
use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::store::prefetch::{NextRows, next_result};
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::simd::scratch::{self, LineRing, aligned, spread};
use crate::engine::cpu::simd::vector::TILE;
use crate::engine::cpu::simd::{Vectors, run_plain};
use crate::filter::{ChannelStep, CombinedKernel, Combining, Convolve, Kernel};
use crate::frame::{Layout, PixelFormat, Plane};
use in_registers::{InRegisters, Rows};
use root::Root;
use row::{CombinedRequantize, MakeRow};
use slopes::SlopeRows;
use std::fmt;
use sums::{Masks, Number, Places, Sample, Widen};

/// One plane's part of a step with a combined kernel.
pub(in crate::engine::cpu) struct Gradient {
    vectors: Option<Vectors>,
    format: PixelFormat,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    /// True if some channel is convolved.
    convolves: bool,
    /// Rows of the masks.
    rows: usize,
    /// Columns of the masks.
    columns: usize,
    masks: Masks,
    width: Width,
    requantizing: CombinedRequantize,
    /// The vector loop, if there is one for the masks.
    in_registers: Option<InRegisters>,
}

/// Bits of sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Sixteen,
    ThirtyTwo,
    SixtyFour,
}

impl Width {
    /// The fewest bits that hold every sum with its bias.
    fn of(kernel: &CombinedKernel, format: PixelFormat) -> Width {
        let most = kernel.most_sum(format.max_value());
        match most {
            // A root takes the sum of two squares.
            _ if most <= i64::from(i16::MAX) => Width::Sixteen,
            _ if most + (1 << kernel.shift) <= i64::from(i32::MAX) => Width::ThirtyTwo,
            _ => Width::SixtyFour,
        }
    }
}

impl fmt::Display for Width {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Width::Sixteen => "16",
            Width::ThirtyTwo => "32",
            Width::SixtyFour => "64",
        })
    }
}

/// Scratch memory of a thread, for sums of type `T`.
#[derive(Default)]
struct GradientScratch<T> {
    apron: Apron,
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    /// The ring of rows as numbers, or what is made of them.
    lines: Vec<T>,
}

/// Cost of one weight and one sample, in multiply-adds of two samples and two weights.
const COST: f64 = 1.0;

impl PlaneFilter for Gradient {
    /// `None` for other kernels and for long weights. A plane in which nothing is convolved is accepted, too.
    fn new(part: &PlanePart<'_>, before: Option<&Gradient>) -> Option<Gradient> {
        let Kernel::Combined(kernel) = &part.step.kernel else {
            return None;
        };
        if kernel.long {
            return None;
        }
        let (format, channels) = (part.format, part.channels());
        let first = channels.iter().find_map(ChannelStep::convolved);
        // Channels that are not convolved are computed along with the rest and then replaced.
        let each: Vec<Convolve> = first.map_or_else(Vec::new, |first| {
            let of = |c: &ChannelStep| *c.convolved().unwrap_or(first);
            channels.iter().map(of).collect()
        });
        let root = match kernel.combining {
            Combining::Magnitude(scale) => {
                let high = each.iter().map(|c| c.high).min().unwrap_or(0);
                let most = (i64::from(format.max_value()) - high).clamp(0, 1 << 24) as u32;
                let known = before.and_then(|before| before.requantizing.root());
                let known = known.filter(|root| root.is_for(scale, most));
                Some(known.copied().unwrap_or_else(|| Root::new(scale, most)))
            }
            Combining::Absolute | Combining::Largest => None,
        };
        let (masks, width) = (Masks::new(kernel, &each), Width::of(kernel, format));
        let known = (&masks.taps[..], masks.compass);
        let ends = (format, root.as_ref());
        let in_registers = part
            .vectors
            .and_then(|vectors| InRegisters::new(vectors, (kernel, width), known, &each, ends));
        Some(Gradient {
            in_registers,
            vectors: part.vectors,
            format,
            border: RowBorder::new(part.step.border, format, channels, (kernel.width, false)),
            channels: channels.to_vec(),
            convolves: first.is_some(),
            rows: kernel.height,
            columns: kernel.width,
            masks,
            width,
            requantizing: CombinedRequantize::new(kernel, &each, format, root),
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * COST * self.masks.weights() as f64
    }

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        if !self.convolves {
            return AlgorithmPlan::UNFILTERED;
        }
        let loops = self.in_registers.as_ref();
        let width = loops.map_or(self.width, InRegisters::width);
        let place = if loops.is_some() { " in registers" } else { "" };
        let roots = loops.and_then(InRegisters::roots);
        let requantizing = roots.map_or_else(|| self.requantizing.to_string(), str::to_owned);
        let masks = &self.masks;
        let loops = format_args!("{masks} in one pass, sums of {width} bits{place}, {requantizing}");
        AlgorithmPlan::new("gradient", loops)
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        match (&self.in_registers, self.width) {
            _ if !self.convolves => self.leave(picture, layout, strip, scratch.of()),
            (Some(InRegisters::Slopes(rows)), _) => {
                self.make_slopes(picture, layout, strip, scratch.of(), rows.as_ref());
            }
            (Some(InRegisters::Words(rows)), _) => {
                self.make(picture, layout, strip, scratch.of(), vectors(rows.as_ref()));
            }
            (Some(InRegisters::Centred(rows)), _) => {
                self.make(picture, layout, strip, scratch.of(), vectors(rows.as_ref()));
            }
            (Some(InRegisters::Numbers(rows)), _) => {
                self.make(picture, layout, strip, scratch.of(), vectors(rows.as_ref()));
            }
            (None, Width::Sixteen) => self.make(picture, layout, strip, scratch.of(), self.plain::<i16>()),
            (None, Width::ThirtyTwo) => self.make(picture, layout, strip, scratch.of(), self.plain::<i32>()),
            (None, Width::SixtyFour) => self.make(picture, layout, strip, scratch.of(), self.plain::<i64>()),
        }
    }
}

/// The function that makes a row with the vector loop `rows`.
fn vectors<T>(rows: &dyn Rows<T>) -> impl Fn(&Places<'_, T>, &mut [u8], NextRows<'_>) {
    |places, out, next| rows.make(places, out, next)
}

/// The rows of a strip, and those that masks reach above and below it, as numbers. Row k is row `k - above`
/// of the strip.
struct SampleRows<'a> {
    gradient: &'a Gradient,
    rows: PlaneRows<'a>,
    apron: &'a Apron,
    above: i64,
    /// Samples of a row.
    samples: usize,
}

impl SampleRows<'_> {
    /// Writes a row with its apron.
    fn widen<T: Sample>(&self, k: usize, line: &mut [T]) {
        let from = self.rows.row(k as i64 - self.above);
        let origin = self.gradient.border.origin();
        let to = &mut line[origin..origin + self.samples];
        run_plain(self.gradient.vectors, Widen::new(self.gradient.format, from, to));
        RowBorder::fill(self.apron, line, T::of_sample);
    }
}

impl Gradient {
    /// The function that makes a row in plain Rust.
    fn plain<T: Number>(&self) -> impl Fn(&Places<'_, T>, &mut [u8], NextRows<'_>) {
        |places, out, _| {
            let row = MakeRow {
                masks: &self.masks,
                places: *places,
                requantizing: &self.requantizing,
                out,
            };
            run_plain(self.vectors, row);
        }
    }

    /// The rows that results are made from.
    fn rows<'a>(
        &'a self,
        picture: Picture<'a>,
        plane: Plane,
        strip: &Strip<'_>,
        (apron, outside): (&'a mut Apron, &'a mut Vec<u8>),
    ) -> SampleRows<'a> {
        self.border.locate_apron(plane.width, apron);
        SampleRows {
            gradient: self,
            rows: PlaneRows::new(picture, strip, (&self.channels, &self.border), outside),
            apron,
            above: self.rows as i64 / 2,
            samples: plane.width * plane.channels,
        }
    }

    /// Copies or fills the rows of a strip in which nothing is convolved.
    fn leave(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut GradientScratch<i16>,
    ) {
        let plane = layout.planes()[strip.plane];
        let source = self.rows(picture, plane, strip, (&mut scratch.apron, &mut scratch.outside));
        for y in 0..strip.rows {
            let out = &mut strip.bytes[y * plane.stride..][..layout.row_bytes(strip.plane)];
            source.rows.fill_unconvolved_channels(y, out);
        }
    }

    /// Makes the rows of the strip. `row` makes one from lines, and prefetches the next rows.
    fn make<T: Sample>(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut GradientScratch<T>,
        row: impl Fn(&Places<'_, T>, &mut [u8], NextRows<'_>),
    ) {
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let source = self.rows(picture, plane, strip, (&mut scratch.apron, &mut scratch.outside));
        // Vectors read up to a multiple of TILE samples.
        let line = spread(2 * self.border.origin() + source.samples.next_multiple_of(TILE));
        let mut ring = LineRing::new(&mut scratch.lines, (self.rows, line), 0);
        let mut starts = Vec::with_capacity(self.rows);
        for y in 0..strip.rows {
            let place = y * plane.stride;
            let (now, later) = next_result(strip.bytes, place + row_bytes, 1, plane.stride);
            let out = &mut now[place..];
            while let Some((k, line)) = ring.next_before(y + self.rows) {
                source.widen(k, line);
            }
            starts.clear();
            let lead = self.border.lead();
            starts.extend((y..y + self.rows).map(|k| ring.slot(k) + lead));
            let places = Places {
                lines: ring.all(),
                starts: &starts,
                columns: self.columns,
                channels: plane.channels,
            };
            let next = source.rows.ahead((y + self.rows) as i64 - source.above, 1);
            row(&places, out, [next, later]);
            source.rows.fill_unconvolved_channels(y, out);
        }
    }

    /// The same for slopes, which keep lines of two rows.
    fn make_slopes(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut GradientScratch<i16>,
        slopes: &dyn SlopeRows,
    ) {
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let source = self.rows(picture, plane, strip, (&mut scratch.apron, &mut scratch.outside));
        let (lead, origin) = (self.border.lead(), self.border.origin());
        let count = source.samples.next_multiple_of(TILE);
        let line = spread(2 * origin + count);
        let memory = aligned(&mut scratch.lines, 5 * line);
        let (samples, memory) = memory.split_at_mut(line);
        let (first, second) = memory.split_at_mut(2 * line);
        let [mut above, mut level] = [first, second].map(|lines| {
            let (differences, smoothed) = lines.split_at_mut(line);
            [&mut differences[..count], &mut smoothed[..count]]
        });
        // Samples with the apron.
        let row = lead..2 * origin - lead + count;
        for (k, [differences, smoothed]) in [&mut above, &mut level].into_iter().enumerate() {
            source.widen(k, samples);
            slopes.pass((&samples[row.clone()], plane.channels), [differences, smoothed]);
        }
        for y in 0..strip.rows {
            let place = y * plane.stride;
            let (now, later) = next_result(strip.bytes, place + row_bytes, 1, plane.stride);
            let out = &mut now[place..];
            let next = source.rows.ahead((y + self.rows) as i64 - source.above, 1);
            source.widen(y + 2, samples);
            let below = (&samples[row.clone()], plane.channels);
            let [differences, smoothed] = &mut above;
            slopes.make(below, [differences, smoothed], level[0], out, [next, later]);
            // The lines above are those of the row below now.
            std::mem::swap(&mut above, &mut level);
            source.rows.fill_unconvolved_channels(y, out);
        }
    }
}
