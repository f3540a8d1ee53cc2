//! Long weights, of three bytes or of 31 bits: their sums are below 2^53 (docs/arithmetic.md, Weights), so
//! 64-bit floating point computes them exactly, in any order. Any number of components stays interleaved: the
//! next tap of a row is as many samples further on.
//!
//! ```text
//! row of the picture     r g b r g b ..                      8 or 16 bits
//!    |  strip.rs         border, 64-bit numbers
//! line           ..  b | r g b r g b ..  r g b | r  ..       a halo on both sides
//!    |  rows/sums/fused.rs    separable: along the row, t = floor((sum + start) / 2^shift)
//! ring of lines          the rows of a mask, and three more
//!    |  rows/sums/fused.rs    four output rows per pass over the lines; symmetric masks are folded
//! sums           r g b r g b ..                              a line per mask, bias and rounding included
//!    |  strip.rs         largest or absolute value, floor(sum / 2^shift), clamp, 8 or 16 bits
//! row of the result
//! ```
//!
//! Planes are split into parts of some columns if a ring of whole rows would exceed the second-level cache.

mod strip;

use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sums::fused::{ROWS, Taps, vectors};
use crate::engine::cpu::simd::float::{Doubles2, Float, Sums};
use crate::engine::cpu::simd::scratch::Scratch;
use crate::engine::cpu::simd::vector::Simd;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{Border, ChannelStep, Combining, Convolve, Kernel, Pass};
use crate::frame::{Layout, PixelFormat, Plane};
use std::sync::Arc;
use strip::{DoubleScratch, StripWork};

/// One plane's part of a step with long weights.
pub(super) struct Doubles {
    vectors: Option<Vectors>,
    format: PixelFormat,
    border: Border,
    channels: Vec<ChannelStep>,
    /// True if some channel is convolved.
    convolves: bool,
    kernel: Arc<DoubleKernel>,
    /// The start value of the sums of each mask, for each channel.
    starts: Vec<Vec<f64>>,
    /// The value to add to the combined number, for each channel; 0 if the start value includes it.
    biases: Vec<f64>,
    /// The border's constant of each channel.
    outside: Vec<f64>,
}

/// The masks of a step, for all its planes.
struct DoubleKernel {
    /// The row pass of a separable mask.
    row: Option<RowPass>,
    /// The masks, all of one size; for a separable mask its column.
    masks: Vec<Taps<f64>>,
    /// How the sums of the masks are combined; `None` for one mask.
    combining: Option<Combining>,
    /// The factor of sums, a power of two.
    scale: f64,
    /// Columns and rows of the mask.
    size: (usize, usize),
}

/// A row pass: `t = floor((sum + start) * scale)`.
struct RowPass {
    weights: Vec<f64>,
    start: f64,
    scale: f64,
}

/// Weights as floating-point numbers, which hold them exactly.
fn numbers(weights: &[i32]) -> Vec<f64> {
    weights.iter().map(|&q| f64::from(q)).collect()
}

/// 2^-shift.
fn scale(shift: u32) -> f64 {
    1.0 / (1_u64 << shift) as f64
}

impl RowPass {
    fn new(pass: &Pass) -> RowPass {
        RowPass {
            weights: numbers(&pass.weights),
            start: pass.start() as f64,
            scale: scale(pass.shift),
        }
    }
}

impl DoubleKernel {
    /// `None` for pyramids and magnitudes, whose weights are never long, and for weighted colours.
    fn new(kernel: &Kernel) -> Option<DoubleKernel> {
        let taps = |weights: &[i32], width: usize| Taps::folded(&numbers(weights), width);
        let (row, masks, combining, shift) = match kernel {
            Kernel::Direct(k) => (None, vec![taps(&k.weights, k.width)], None, k.division.shift()),
            Kernel::Separable(k) => {
                let column = vec![taps(&k.column.weights, 1)];
                (
                    Some(RowPass::new(&k.row)),
                    column,
                    None,
                    k.column.division.shift(),
                )
            }
            Kernel::Combined(k) => {
                if let Combining::Magnitude(_) = k.combining {
                    return None;
                }
                let masks = k.masks.iter().map(|weights| taps(weights, k.width));
                (None, masks.collect(), Some(k.combining), k.shift)
            }
            Kernel::Pyramid(_) | Kernel::Weighted(_) => return None,
        };
        Some(DoubleKernel {
            row,
            masks,
            combining,
            scale: scale(shift),
            size: kernel.size(),
        })
    }

    /// Number of multiply-adds of a sample.
    fn taps(&self) -> usize {
        let row = self.row.as_ref().map_or(0, |row| row.weights.len());
        row + self.masks.iter().map(Taps::len).sum::<usize>()
    }

    /// Number of lines that [`ROWS`] output rows read.
    fn lines(&self) -> usize {
        self.size.1 + ROWS - 1
    }
}

/// The numbers of a vector, and the vectors of a row that are made at once.
fn shape<S: Sums>(_: S) -> (usize, usize) {
    (S::LANES, vectors::<S>())
}

/// Cost of a weight and a sample in vectors, in multiply-adds of two samples and two weights: a vector holds
/// a quarter as many 64-bit numbers as words.
const COST: f64 = 2.0;

/// The same in plain Rust.
const PLAIN_COST: f64 = 3.0;

impl Doubles {
    /// Width in pixels of the parts that a plane is split into.
    fn part_width(&self, plane: &Plane) -> usize {
        /// Samples of a ring that stays in the second-level cache.
        const RING: usize = 1 << 15;
        /// Fewest samples of a line that are worth starting the loops.
        const LEAST: usize = 256;
        let halo = match self.kernel.row {
            Some(_) => 0,
            None => 2 * (self.kernel.size.0 / 2) * plane.channels,
        };
        let samples = (RING / self.kernel.lines()).saturating_sub(halo);
        let most = samples.max(LEAST).max(halo).div_ceil(plane.channels);
        let parts = plane.width.div_ceil(most);
        plane.width.div_ceil(parts)
    }
}

impl PlaneFilter for Doubles {
    /// `None` for kernels without long weights. A plane in which nothing is convolved is accepted, too.
    fn new(part: &PlanePart<'_>, before: Option<&Doubles>) -> Option<Doubles> {
        let integers = &part.step.kernel;
        if !integers.is_long() {
            return None;
        }
        let kernel = match before {
            Some(before) => Arc::clone(&before.kernel),
            None => Arc::new(DoubleKernel::new(integers)?),
        };
        let (format, channels) = (part.format, part.channels());
        let one = 1.0 / kernel.scale;
        // Exact: a sum with its bias is below 2^53.
        let bias = |c: &Convolve| c.high as f64 * one + c.low as f64;
        let each = |of: &dyn Fn(&Convolve) -> f64| -> Vec<f64> {
            channels.iter().map(|c| c.convolved().map_or(0.0, of)).collect()
        };
        let (starts, biases) = match integers {
            Kernel::Combined(k) => {
                let masks = 0..k.masks.len();
                let starts = masks.map(|mask| each(&|c| k.start(mask, c.level) as f64));
                (starts.collect(), each(&bias))
            }
            _ => (vec![each(&bias)], each(&|_| 0.0)),
        };
        Some(Doubles {
            vectors: part.vectors,
            format,
            border: part.step.border,
            channels: channels.to_vec(),
            convolves: channels.iter().any(|c| c.convolved().is_some()),
            kernel,
            starts,
            biases,
            outside: each(&|c| c.border.into()),
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        let each = if self.vectors.is_some() { COST } else { PLAIN_COST };
        samples(plane) * each * self.kernel.taps() as f64
    }

    fn rows_at_once(&self, _: &Plane) -> usize {
        ROWS
    }

    fn plan(&self, plane: &Plane) -> AlgorithmPlan {
        if !self.convolves {
            return AlgorithmPlan::UNFILTERED;
        }
        let (lanes, vectors) = match self.vectors {
            Some(vectors) => with_simd!(vectors, simd => shape(simd.doubles())),
            None => shape(Doubles2),
        };
        let kernel = &self.kernel;
        let way = match (&kernel.row, kernel.masks.len()) {
            (Some(_), _) => "separable".to_owned(),
            (None, 1) => "direct".to_owned(),
            (None, masks) => format!("{masks} masks"),
        };
        let folded = match kernel.masks.iter().all(Taps::is_folded) {
            true => ", folded",
            false => "",
        };
        let parts = match plane.width.div_ceil(self.part_width(plane)) {
            1 => String::new(),
            n => format!(", in {n} parts"),
        };
        let loops = format_args!("{way}{folded}, {ROWS} rows of {vectors} vectors of {lanes} at once{parts}");
        AlgorithmPlan::new("doubles", loops)
    }

    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch) {
        let work = StripWork {
            filter: self,
            picture,
            layout,
            strip,
            memory: scratch.of::<DoubleScratch>(),
        };
        match self.vectors {
            Some(vectors) => with_simd!(vectors, simd => simd.doubles().enter(work)),
            None => Doubles2.enter(work),
        }
    }
}
