//! Gaussians that are too wide for a mask, computed from a low picture that is D times smaller along each
//! side ([`PyramidKernel`] says why that is a Gaussian).
//!
//! ```text
//! row y      p p p p p p p p ..      interleaved samples
//!    | sums of six low rows += weight * row, four rows at once           decimate.rs
//! sums       s s s s s s s s ..      one line for each open low row
//!    | border, deinterleaving, every D-th, low filter along the row      passes.rs
//! low rows   l l ..                  a ring, one for each weight of the low filter
//!    | low filter along the column, six low pixels to D pixels
//! wide rows  w w w w w w w w ..      a ring of six
//!    | six of them, shift, add, clamp
//! row y      p p p p p p p p ..
//! ```
//!
//! All steps but the first and the last work on every D-th row only. `rows/sums/decimator.rs` says which rows
//! belong to which sums, `rings.rs` when a row is made. The passes after the sums multiply pairs of words
//! (`pairs/`) where 32 bits hold their sums and there are vectors; else they are plain Rust (`plain/`).

mod decimate;
mod pairs;
mod passes;
mod plain;
mod rings;

use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::words::sample::{SampleEncoding, total};
use crate::engine::cpu::simd::Vectors;
use crate::engine::cpu::simd::scratch;
use crate::filter::{Border, ChannelStep, Convolve, Kernel, PyramidKernel};
use crate::frame::{Layout, PixelFormat, Plane};
use pairs::{PairMemory, PairedKernel, Pairs};
use passes::{PassGeometry, Passes};
use plain::{PlainMemory, PlainPasses, PlainTaps};
use rings::{RingMemory, Rings};

/// One plane's part of a step with a pyramid.
pub(in crate::engine::cpu) struct Pyramid {
    kernel: PyramidKernel,
    loops: Loops,
    vectors: Option<Vectors>,
    /// How samples are decimated with vectors.
    encoding: SampleEncoding,
    format: PixelFormat,
    border: Border,
    /// The border above and below the plane.
    rows: RowBorder,
    channels: Vec<ChannelStep>,
    /// The constants of each channel; empty if none is convolved.
    convolved: Vec<Convolve>,
}

/// The passes after the vertical decimation, with their weights.
enum Loops {
    /// None: nothing is convolved.
    Unfiltered,
    /// [`Pairs`].
    Pairs(PairedKernel),
    /// [`PlainPasses`].
    Plain(PlainTaps),
}

impl Loops {
    fn new(part: &PlanePart<'_>, kernel: &PyramidKernel) -> Loops {
        if part.channels().iter().all(|c| c.convolved().is_none()) {
            return Loops::Unfiltered;
        }
        match PairedKernel::new(part, kernel) {
            Some(kernel) => Loops::Pairs(kernel),
            None => Loops::Plain(plain::taps(kernel)),
        }
    }
}

/// Scratch memory of a thread, for passes with memory `M` and low rows of `T`.
#[derive(Default)]
struct PyramidScratch<M, T> {
    passes: M,
    strip: StripMemory<T>,
}

/// Scratch memory of a strip.
#[derive(Default)]
struct StripMemory<T> {
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    rings: RingMemory<T>,
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
            loops: Loops::new(part, kernel),
            kernel: kernel.clone(),
            vectors: part.vectors,
            encoding: SampleEncoding::choose(part.format, 0, || None).0,
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

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        if matches!(self.loops, Loops::Unfiltered) {
            return AlgorithmPlan::UNFILTERED;
        }
        let (step, low) = (self.kernel.grid.step, self.kernel.low.weights.len());
        let bits = if self.kernel.is_wide() { 64 } else { 32 };
        let loops = format_args!("{low}x{low} low pixels, {step} pixels apart, sums of {bits} bits");
        AlgorithmPlan::new("pyramid", loops)
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let geometry = || PassGeometry::new(self, &layout.planes()[strip.plane]);
        let place = (picture, layout);
        match &self.loops {
            Loops::Unfiltered => self.leave(place, strip, scratch.of()),
            Loops::Pairs(kernel) => {
                let memory: &mut PyramidScratch<PairMemory, u32> = scratch.of();
                let passes = Pairs::new(kernel, geometry(), &mut memory.passes);
                self.make(place, strip, passes, &mut memory.strip);
            }
            Loops::Plain(taps) if self.kernel.is_wide() => {
                let memory: &mut PyramidScratch<PlainMemory<i64>, i32> = scratch.of();
                let passes = PlainPasses::new(taps, geometry(), &mut memory.passes);
                self.make(place, strip, passes, &mut memory.strip);
            }
            Loops::Plain(taps) => {
                let memory: &mut PyramidScratch<PlainMemory<i32>, i32> = scratch.of();
                let passes = PlainPasses::new(taps, geometry(), &mut memory.passes);
                self.make(place, strip, passes, &mut memory.strip);
            }
        }
    }
}

impl Pyramid {
    /// What sums of the vertical decimation lack, since 32768 is taken from samples of 16 bits.
    fn missing_in_sums(&self) -> i64 {
        let taken = self.vectors.map(|_| total(&self.kernel.rows.weights));
        taken.map_or(0, |weights| self.encoding.correction(weights))
    }

    /// Copies or fills the rows of a strip in which nothing is convolved.
    fn leave(&self, (picture, layout): (Picture<'_>, &Layout), strip: &mut Strip<'_>, outside: &mut Vec<u8>) {
        let (stride, row_bytes) = (layout.planes()[strip.plane].stride, layout.row_bytes(strip.plane));
        let rows = PlaneRows::new(picture, strip, (&self.channels, &self.rows), outside);
        for (y, out) in strip.bytes.chunks_mut(stride).take(strip.rows).enumerate() {
            rows.fill_unconvolved_channels(y, &mut out[..row_bytes]);
        }
    }

    /// Makes the rows of the strip.
    fn make<P: Passes>(
        &self,
        (picture, layout): (Picture<'_>, &Layout),
        strip: &mut Strip<'_>,
        passes: P,
        memory: &mut StripMemory<P::Low>,
    ) {
        let plane = layout.planes()[strip.plane];
        let row_bytes = layout.row_bytes(strip.plane);
        let rows = PlaneRows::new(picture, strip, (&self.channels, &self.rows), &mut memory.outside);
        let step = self.kernel.grid.step;
        let mut rings = Rings::new(self, (rows, strip.first_row), &plane, passes, &mut memory.rings);
        let mut row = 0;
        while row < strip.rows {
            let bytes = &mut strip.bytes[row * plane.stride..];
            let place = (strip.first_row + row) % step;
            let (wide, passes) = rings.wide_rows(strip.first_row + row);
            let made = passes.at_once().min(step - place).min(strip.rows - row);
            let out = OutputRows {
                bytes: &mut bytes[..(made - 1) * plane.stride + row_bytes],
                stride: plane.stride,
                row_bytes,
                spare: &mut [],
            };
            passes.make_rows(wide, row == 0 || place == 0, place, out);
            for (k, out) in bytes.chunks_mut(plane.stride).take(made).enumerate() {
                rings
                    .rows
                    .fill_unconvolved_channels(row + k, &mut out[..row_bytes]);
            }
            row += made;
        }
    }
}
