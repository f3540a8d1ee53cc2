//! Long weights, of three bytes or of 31 bits: their sums are below 2^53 (docs/arithmetic.md, Weights), so
//! that those of 64-bit floating-point numbers are exact, in any order. Components stay interleaved, however
//! many there are: a tap further on is a step of as many samples.
//!
//! ```text
//! row of the picture     r g b r g b ..                      8 or 16 bits
//!    |  strip.rs         border, 64-bit numbers
//! line           ..  b | r g b r g b ..  r g b | r  ..       a halo on both sides
//!    |  rows/fused_sums.rs    separable: along the row, t = floor((sum + start) / 2^shift)
//! ring of lines          as many as a mask has rows, and three more
//!    |  rows/fused_sums.rs    four output rows, from one reading of the lines; symmetric masks folded
//! sums           r g b r g b ..                              one line a mask; bias and rounding are in them
//!    |  strip.rs         largest or absolute value, floor(sum / 2^shift), clamp, 8 or 16 bits
//! row of the result
//! ```
//!
//! Planes are made in bands of columns where a ring of whole rows would leave the second-level cache.

mod strip;

use super::rows::fused_sums::{ROWS, Taps, vectors};
use super::rows::plane_filter::{PlaneFilter, PlanePart, samples};
use super::rows::strip::{Picture, Strip};
use super::simd::float::{Doubles2, Float, Sums};
use super::simd::scratch::Scratch;
use super::simd::vector::Simd;
use super::simd::{Vectors, with_simd};
use crate::filter::{Border, ChannelStep, Combining, Convolve, Kernel as Integers, Pass};
use crate::frame::{Layout, PixelFormat, Plane};
use std::sync::Arc;
use strip::{Memory, StripWork};

/// One plane's part of a step with long weights.
pub(super) struct Doubles {
    vectors: Option<Vectors>,
    format: PixelFormat,
    border: Border,
    channels: Vec<ChannelStep>,
    /// True if some channel is convolved.
    convolves: bool,
    kernel: Arc<Kernel>,
    /// What the sums of each mask start from, for each channel.
    starts: Vec<Vec<f64>>,
    /// What is added to what is made of them, likewise; 0 where the sums have it.
    biases: Vec<f64>,
    /// The sample outside the plane of each channel, where the border holds a constant.
    outside: Vec<f64>,
}

/// What sums are made of, for all planes of a step.
struct Kernel {
    /// The pass along rows, if there is one.
    row: Option<RowPass>,
    /// The whole masks, of one size; one column after a pass along rows.
    masks: Vec<Taps<f64>>,
    combining: Option<Combining>,
    /// What sums are multiplied by, a power of two.
    scale: f64,
    /// Columns and rows of the mask.
    size: (usize, usize),
}

/// `t = floor((sum + start) scale)`.
struct RowPass {
    weights: Vec<f64>,
    start: f64,
    scale: f64,
}

/// Weights as numbers that hold them exactly.
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

impl Kernel {
    /// `None` for pyramids and magnitudes, whose weights are never long, and for colours under alpha.
    fn new(kernel: &Integers) -> Option<Kernel> {
        let taps = |weights: &[i32], width: usize| Taps::folded(&numbers(weights), width);
        let (row, masks, combining, shift) = match kernel {
            Integers::Direct(k) => (None, vec![taps(&k.weights, k.width)], None, k.division.shift()),
            Integers::Separable(k) => {
                let column = vec![taps(&k.column.weights, 1)];
                (
                    Some(RowPass::new(&k.row)),
                    column,
                    None,
                    k.column.division.shift(),
                )
            }
            Integers::Combined(k) => {
                if let Combining::Magnitude(_) = k.combining {
                    return None;
                }
                let masks = k.masks.iter().map(|weights| taps(weights, k.width));
                (None, masks.collect(), Some(k.combining), k.shift)
            }
            Integers::Pyramid(_) | Integers::Weighted(_) => return None,
        };
        Some(Kernel {
            row,
            masks,
            combining,
            scale: scale(shift),
            size: kernel.size(),
        })
    }

    /// Multiply-adds of a sample.
    fn taps(&self) -> usize {
        let row = self.row.as_ref().map_or(0, |row| row.weights.len());
        row + self.masks.iter().map(Taps::len).sum::<usize>()
    }

    /// Lines that four output rows are made of.
    fn lines(&self) -> usize {
        self.size.1 + ROWS - 1
    }
}

/// Numbers of a vector, and vectors of a row that are made at once.
fn shape<S: Sums>(_: S) -> (usize, usize) {
    (S::LANES, vectors::<S>())
}

/// Multiply-adds of two samples and two weights each that one of a 64-bit number takes, with its part of what
/// is done to lines: vectors hold a quarter as many.
const TERMS: f64 = 2.0;

/// What the same takes in plain Rust, which has less than vectors.
const PLAIN_TERMS: f64 = 3.0;

impl Doubles {
    /// Pixels of the bands that a plane is made in.
    fn band(&self, plane: &Plane) -> usize {
        /// Samples of a ring that stays in the second-level cache.
        const RING: usize = 1 << 15;
        /// Samples of a line that are worth the loops' start.
        const LEAST: usize = 256;
        let halo = match self.kernel.row {
            Some(_) => 0,
            None => 2 * (self.kernel.size.0 / 2) * plane.channels,
        };
        let samples = (RING / self.kernel.lines()).saturating_sub(halo);
        let most = samples.max(LEAST).max(halo).div_ceil(plane.channels);
        let bands = plane.width.div_ceil(most);
        plane.width.div_ceil(bands)
    }
}

impl PlaneFilter for Doubles {
    /// `None` for kernels without long weights; every plane of a step with such a kernel otherwise, also
    /// where nothing is convolved.
    fn new(part: &PlanePart<'_>, before: Option<&Doubles>) -> Option<Doubles> {
        let integers = &part.step.kernel;
        if !integers.is_long() {
            return None;
        }
        let kernel = match before {
            Some(before) => Arc::clone(&before.kernel),
            None => Arc::new(Kernel::new(integers)?),
        };
        let (format, channels) = (part.format, part.channels());
        let one = 1.0 / kernel.scale;
        // Below 2^53: a sum is, with what is added.
        let bias = |c: &Convolve| c.high as f64 * one + c.low as f64;
        let each = |of: &dyn Fn(&Convolve) -> f64| -> Vec<f64> {
            channels.iter().map(|c| c.convolved().map_or(0.0, of)).collect()
        };
        let (starts, biases) = match integers {
            Integers::Combined(k) => {
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
        let each = if self.vectors.is_some() {
            TERMS
        } else {
            PLAIN_TERMS
        };
        samples(plane) * each * self.kernel.taps() as f64
    }

    fn rows_at_once(&self, _: &Plane) -> usize {
        ROWS
    }

    fn plan(&self, plane: &Plane) -> String {
        if !self.convolves {
            return "copied or filled".to_owned();
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
        let bands = match plane.width.div_ceil(self.band(plane)) {
            1 => String::new(),
            n => format!(", in {n} bands"),
        };
        format!("doubles: {way}{folded}, {ROWS} rows of {vectors} vectors of {lanes} at once{bands}")
    }

    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch) {
        let work = StripWork {
            filter: self,
            picture,
            layout,
            strip,
            memory: scratch.of::<Memory>(),
        };
        match self.vectors {
            Some(vectors) => with_simd!(vectors, simd => simd.doubles().enter(work)),
            None => Doubles2.enter(work),
        }
    }
}
