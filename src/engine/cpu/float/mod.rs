//! Floating-point sums: [`FloatPlan`](crate::filter::FloatPlan), and [`WeightedKernel`] for integer samples
//! under alpha, by fused multiply-adds in vectors of 32-bit numbers. Components stay interleaved, however
//! many there are: a tap further on is a step of as many samples.
//!
//! ```text
//! row of the picture     r g b r g b ..                      16 or 32 bits, or levels of 8 to 16 bits
//!    |  lines.rs         border, 32 bits, colours times alpha (of levels: levels.rs)
//! line           ..  b | r g b r g b ..  r g b | r  ..       a halo on both sides
//!    |  rows/fused_sums.rs    separable: along the row
//! ring of lines          as many as a mask has rows, and three more
//!    |  rows/fused_sums.rs    four output rows x some vectors, from one reading of the lines
//! sums           r g b r g b ..                              one line a mask
//!    |  finish.rs        several sums made one, colours over alpha, threshold, 16 or 32 bits; or levels.rs
//! row of the result
//! ```
//!
//! Each sum is added up tap by tap, as the definition has it. What is done at once are sums of different
//! samples: in the lanes of a vector, in several vectors side by side and in four rows.
//!
//! Planes are made in bands of columns where a ring of whole rows would leave the second-level cache.
//! Gaussians that fit no mask are made of a smaller picture (pyramid.rs).

mod finish;
mod levels;
mod lines;
mod pyramid;
mod strip;

use super::rows::fused_sums::{self, ROWS, Taps};
use super::rows::plane_filter::{explained, samples};
use super::rows::strip::{Parts, Picture, Strip, strips};
use super::rows::threshold::Threshold;
use super::simd::float::{Float, Samples, Singles4};
use super::simd::vector::Simd;
use super::simd::{Vectors, with_simd};
use super::threads::Threads;
use crate::filter::{FloatCombining, FloatKernel, FloatMask, FloatStep, Step, WeightedKernel};
use crate::frame::{Channel, Layout, PixelFormat, Plane};
use levels::{PlaneLevels, float_step};
use pyramid::Pyramid;
use std::collections::BTreeMap;
use strip::{Memory, StripWork};

/// A step, ready for frames of one format.
pub(super) struct FloatFilter {
    step: FloatStep,
    format: PixelFormat,
    kernel: Kernel,
    vectors: Option<Vectors>,
    /// Each plane's, where samples are integers.
    levels: Option<Vec<PlaneLevels>>,
    /// That of integers.
    threshold: Option<Threshold>,
}

/// What results are made of.
enum Kernel {
    Masks(Masks),
    Pyramid(Pyramid),
}

/// What sums are made of.
struct Masks {
    /// Weights of the pass along rows; `None` if there is none.
    row: Option<Vec<f32>>,
    /// The whole masks, of one size; one column after a pass along rows.
    masks: Vec<Taps<f32>>,
    combining: Option<FloatCombining>,
    /// Columns and rows of the mask.
    size: (usize, usize),
}

impl Kernel {
    fn new(kernel: &FloatKernel) -> Kernel {
        let taps = |mask: &FloatMask| Taps::new(&mask.weights, mask.width);
        let (row, masks, combining) = match kernel {
            FloatKernel::Pyramid(kernel) => return Kernel::Pyramid(Pyramid::new(kernel)),
            FloatKernel::Direct(mask) => (None, vec![taps(mask)], None),
            FloatKernel::Combined { masks, combining } => {
                (None, masks.iter().map(taps).collect(), Some(*combining))
            }
            FloatKernel::Separable { row, column } => (Some(row.clone()), vec![Taps::new(column, 1)], None),
        };
        Kernel::Masks(Masks {
            row,
            masks,
            combining,
            size: kernel.size(),
        })
    }

    /// Multiply-adds of a sample.
    fn taps(&self) -> usize {
        match self {
            Kernel::Masks(masks) => {
                masks.row.as_ref().map_or(0, Vec::len) + masks.masks.iter().map(Taps::len).sum::<usize>()
            }
            Kernel::Pyramid(_) => pyramid::COST,
        }
    }
}

impl Masks {
    /// Lines that four output rows are made of.
    fn lines(&self) -> usize {
        self.size.1 + ROWS - 1
    }

    /// Pixels of the bands that a plane is made in.
    fn band(&self, plane: &Plane) -> usize {
        /// Samples of a ring that stays in the second-level cache.
        const RING: usize = 1 << 16;
        /// Samples of a ring of direct masks, which do enough with each to read it from further away.
        const FAR_RING: usize = 1 << 20;
        /// Samples of the sums of several masks.
        const SUMS: usize = 1 << 15;
        /// Samples of a line that are worth the loops' start.
        const LEAST: usize = 128;
        let halo = 2 * (self.size.0 / 2) * plane.channels;
        let samples = if self.row.is_some() {
            RING / self.lines()
        } else {
            let lines = (FAR_RING / self.lines()).saturating_sub(halo).max(halo);
            lines.min(SUMS / self.masks.len())
        };
        let most = samples.max(LEAST).div_ceil(plane.channels);
        let bands = plane.width.div_ceil(most);
        plane.width.div_ceil(bands)
    }

    /// How a plane is made, in a few words, by so many vectors of a row at once of so many numbers.
    fn plan(&self, place: &Plane, (lanes, vectors): (usize, usize)) -> String {
        let way = match (&self.row, self.masks.len()) {
            (Some(_), _) => "separable".to_owned(),
            (None, 1) => "direct".to_owned(),
            (None, masks) => format!("{masks} masks"),
        };
        let bands = match place.width.div_ceil(self.band(place)) {
            1 => String::new(),
            n => format!(", in {n} bands"),
        };
        format!("{way}, {ROWS} rows of {vectors} vectors of {lanes} at once{bands}")
    }
}

/// Numbers of a vector, and vectors of a row that are made at once.
fn shape<S: Samples>(_: S) -> (usize, usize) {
    (S::LANES, fused_sums::vectors::<S>())
}

impl FloatFilter {
    /// For floating-point samples.
    pub(super) fn new(step: FloatStep, format: PixelFormat, vectors: Option<Vectors>) -> FloatFilter {
        FloatFilter {
            kernel: Kernel::new(&step.kernel),
            step,
            format,
            vectors,
            levels: None,
            threshold: None,
        }
    }

    /// For integer samples under alpha: `kernel` is that of the step.
    pub(super) fn weighted(
        step: &Step,
        kernel: &WeightedKernel,
        format: PixelFormat,
        vectors: Option<Vectors>,
    ) -> FloatFilter {
        let plane = |plane| PlaneLevels::new(step, kernel, format, plane);
        FloatFilter {
            levels: Some((0..step.planes.len()).map(plane).collect()),
            threshold: Threshold::new(step, format, vectors),
            ..FloatFilter::new(float_step(step, kernel, format), format, vectors)
        }
    }

    /// The plane of alpha, if that is one of its own and weights colours.
    fn alpha_plane(&self) -> Option<usize> {
        let (plane, _) = self.step.alpha.and(self.format.place(Channel::Alpha))?;
        (self.step.planes[plane].len() == 1).then_some(plane)
    }

    /// True if something of the plane is convolved.
    fn is_convolved(&self, plane: usize) -> bool {
        self.step.planes[plane].iter().any(|c| c.convolved().is_some())
    }

    /// How a plane is made, in one line.
    pub(super) fn plan(&self, plane: usize, place: &Plane) -> String {
        if !self.is_convolved(plane) {
            return "copied".to_owned();
        }
        let vectors = match self.vectors {
            Some(vectors) => with_simd!(vectors, simd => shape(simd.singles())),
            None => shape(Singles4),
        };
        let way = match &self.kernel {
            Kernel::Masks(masks) => masks.plan(place, vectors),
            Kernel::Pyramid(pyramid) => pyramid.plan(vectors),
        };
        format!("float: {way}")
    }

    /// Carries out the step: `layout` is that of `output`.
    pub(super) fn apply(&self, threads: &Threads, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        let (height, threads_to_use) = (self.step.kernel.size().1, threads.share());
        let parts = match &self.kernel {
            Kernel::Masks(masks) => Parts::new(height, masks.row.is_some(), threads_to_use),
            Kernel::Pyramid(_) => Parts::of_pyramid(height, threads_to_use),
        };
        let strips = strips(parts, layout, output, |_| ROWS);
        threads.each(self.together(strips), |scratch, strips| {
            let work = StripWork {
                filter: self,
                picture: input,
                layout,
                strips,
                memory: scratch.of::<Memory>(),
            };
            match self.vectors {
                Some(vectors) => with_simd!(vectors, simd => simd.singles().enter(work)),
                None => Singles4.enter(work),
            }
        });
    }

    /// Strips that one thread makes: where alpha has a plane of its own, those of the same rows, alpha first.
    fn together<'a>(&self, strips: Vec<Strip<'a>>) -> Vec<Vec<Strip<'a>>> {
        let Some(alpha) = self.alpha_plane() else {
            return strips.into_iter().map(|strip| vec![strip]).collect();
        };
        let mut rows: BTreeMap<usize, Vec<Strip<'a>>> = BTreeMap::new();
        for strip in strips {
            rows.entry(strip.first_row).or_default().push(strip);
        }
        let mut groups: Vec<Vec<Strip<'a>>> = rows.into_values().collect();
        for group in &mut groups {
            group.sort_by_key(|strip| strip.plane != alpha);
        }
        groups
    }

    /// What such a picture takes, in multiply-adds of two 16-bit samples and weights each: a fused one of a
    /// 32-bit sample takes as long.
    pub(super) fn terms(&self, layout: &Layout) -> f64 {
        /// Of a sample that is not in a cache, as long as four of 8 bits.
        const MOVE: f64 = 8.0;
        let planes = layout.planes().iter().enumerate();
        let of_plane = |(index, plane): (usize, &Plane)| {
            let taps = if self.is_convolved(index) {
                self.kernel.taps()
            } else {
                0
            };
            (MOVE + taps as f64) * samples(plane)
        };
        planes.map(of_plane).sum()
    }

    /// The plan of each plane of such a picture, one line for all planes that are made in the same way.
    pub(super) fn explanation(&self, layout: &Layout) -> Vec<String> {
        let planes = layout.planes().iter().enumerate();
        let ways = planes.map(|(plane, place)| self.plan(plane, place));
        explained(self.format, self.step.kernel.size(), ways)
    }
}
