//! Floating-point sums by fused multiply-adds in vectors of 32-bit numbers:
//! [`FloatPlan`](crate::filter::FloatPlan), and [`WeightedKernel`] for integer samples weighted by alpha. Any
//! number of components stays interleaved: the next tap of a row is as many samples further on.
//!
//! ```text
//! row of the picture     r g b r g b ..                      16 or 32 bits, or levels of 8 to 16 bits
//!    |  lines.rs         border, 32 bits, colours times alpha (of levels: levels.rs)
//! line           ..  b | r g b r g b ..  r g b | r  ..       a halo on both sides
//!    |  rows/sums/fused.rs    separable: along the row
//! ring of lines          the rows of a mask, and three more
//!    |  rows/sums/fused.rs    four output rows x some vectors per pass over the lines
//! sums           r g b r g b ..                              a line per mask
//!    |  finish.rs        combining, colours over alpha, threshold, 16 or 32 bits; or levels.rs
//! row of the result
//! ```
//!
//! Each sum is added up tap by tap, in the order of the definition. Sums of different samples are computed at
//! the same time: in the lanes of a vector, in several vectors side by side and in four rows.
//!
//! Where nothing is done to samples but to add them up, rows are read and results stored in place, without
//! the first and the last step (in_place.rs).
//!
//! Planes are split into parts of some columns if a ring of whole rows would exceed the second-level cache.
//! Gaussians that are too wide for a mask are computed from a smaller picture (pyramid.rs).

mod finish;
mod in_place;
mod levels;
mod lines;
mod masks;
mod part;
mod pyramid;
mod strip;

use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, explained, samples};
use crate::engine::cpu::rows::store::threshold::Threshold;
use crate::engine::cpu::rows::strip::{Picture, Strip, StripCount, strips};
use crate::engine::cpu::rows::sums::fused::{self, ROWS, Taps};
use crate::engine::cpu::simd::float::{Float, Samples, Singles4};
use crate::engine::cpu::simd::vector::Simd;
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::engine::cpu::threads::Threads;
use crate::filter::{FloatKernel, FloatMask, FloatStep, Step, WeightedKernel};
use crate::frame::{Channel, Layout, PixelFormat, Plane};
use finish::needs_before;
use levels::{PlaneLevels, float_step};
use masks::Masks;
use pyramid::Pyramid;
use std::collections::BTreeMap;
use strip::{FloatScratch, StripWork};

/// A step, prepared for frames of one format.
pub(in crate::engine::cpu) struct FloatFilter {
    step: FloatStep,
    format: PixelFormat,
    loops: FloatLoops,
    vectors: Option<Vectors>,
    /// The conversions of each plane's samples; `None` for floating-point samples.
    levels: Option<Vec<PlaneLevels>>,
    /// The threshold of integer samples.
    threshold: Option<Threshold>,
}

/// The loops of a step's kernel.
enum FloatLoops {
    /// Sums of masks.
    Masks(Masks),
    /// A wide Gaussian.
    Pyramid(Pyramid),
}

impl FloatLoops {
    fn new(kernel: &FloatKernel) -> FloatLoops {
        let taps = |mask: &FloatMask| Taps::new(&mask.weights, mask.width);
        let (row, masks, combining) = match kernel {
            FloatKernel::Pyramid(kernel) => return FloatLoops::Pyramid(Pyramid::new(kernel)),
            FloatKernel::Direct(mask) => (None, vec![taps(mask)], None),
            FloatKernel::Combined { masks, combining } => {
                (None, masks.iter().map(taps).collect(), Some(*combining))
            }
            FloatKernel::Separable { row, column } => (Some(row.clone()), vec![Taps::new(column, 1)], None),
        };
        FloatLoops::Masks(Masks {
            row,
            masks,
            combining,
            size: kernel.size(),
        })
    }

    /// Number of multiply-adds of a sample.
    fn taps(&self) -> usize {
        match self {
            FloatLoops::Masks(masks) => {
                masks.row.as_ref().map_or(0, Vec::len) + masks.masks.iter().map(Taps::len).sum::<usize>()
            }
            FloatLoops::Pyramid(_) => pyramid::COST,
        }
    }
}

/// The numbers of a vector, and the vectors of a row that are made at once.
fn shape<S: Samples>(_: S) -> (usize, usize) {
    (S::LANES, fused::vectors::<S>())
}

impl FloatFilter {
    /// A step of floating-point samples.
    pub(super) fn new(step: FloatStep, format: PixelFormat, vectors: Option<Vectors>) -> FloatFilter {
        FloatFilter {
            loops: FloatLoops::new(&step.kernel),
            step,
            format,
            vectors,
            levels: None,
            threshold: None,
        }
    }

    /// A step of integer samples weighted by alpha; `kernel` is the kernel of the step.
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

    /// The index of alpha's plane, if alpha weights colours and has a plane of its own.
    fn alpha_plane(&self) -> Option<usize> {
        let (plane, _) = self.step.alpha.and(self.format.place(Channel::Alpha))?;
        (self.step.planes[plane].len() == 1).then_some(plane)
    }

    /// True if a channel of the plane is convolved.
    fn is_convolved(&self, plane: usize) -> bool {
        self.step.planes[plane].iter().any(|c| c.convolved().is_some())
    }

    /// True if the results of a plane are the sums of one mask of stored 32-bit samples, and nothing else.
    fn makes_in_place(&self, masks: &Masks, plane: usize) -> bool {
        let channels = &self.step.planes[plane];
        masks.combining.is_none()
            && self.levels.is_none()
            && !needs_before(&self.step)
            && self.format.bytes_per_sample() == size_of::<f32>()
            && channels.iter().all(|c| c.convolved().is_some())
            && cfg!(target_endian = "little")
    }

    /// How a plane of this size is filtered.
    pub(super) fn plan(&self, plane: usize, geometry: &Plane) -> AlgorithmPlan {
        if !self.is_convolved(plane) {
            return AlgorithmPlan::UNFILTERED;
        }
        let vectors = match self.vectors {
            Some(vectors) => with_simd!(vectors, simd => shape(simd.singles())),
            None => shape(Singles4),
        };
        let loops = match &self.loops {
            FloatLoops::Masks(masks) => {
                let in_place =
                    in_place::split_columns(masks, &(0..geometry.width), geometry.width, vectors.0);
                let in_place = self.makes_in_place(masks, plane) && in_place.is_some();
                masks.describe(geometry, vectors, in_place)
            }
            FloatLoops::Pyramid(pyramid) => pyramid.describe(vectors),
        };
        AlgorithmPlan::new("float", loops)
    }

    /// Applies the step to `input`. `layout` is the layout of `output`.
    pub(super) fn apply(&self, threads: &Threads, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        let (height, threads_to_use) = (self.step.kernel.size().1, threads.share());
        let count = match &self.loops {
            FloatLoops::Masks(masks) => StripCount::new(height, masks.row.is_some(), threads_to_use),
            FloatLoops::Pyramid(_) => StripCount::of_pyramid(height, threads_to_use),
        };
        let strips = strips(count, layout, output, |_| ROWS);
        threads.each(self.together(strips), |scratch, strips| {
            let work = StripWork {
                filter: self,
                picture: input,
                layout,
                strips,
                memory: scratch.of::<FloatScratch>(),
            };
            match self.vectors {
                Some(vectors) => with_simd!(vectors, simd => simd.singles().enter(work)),
                None => Singles4.enter(work),
            }
        });
    }

    /// Groups strips for one thread each. If alpha has a plane of its own, the strips of the same rows go
    /// together, alpha first; otherwise each is a group.
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

    /// Estimated cost of a picture, in multiply-adds of two 16-bit samples and two weights: a fused
    /// multiply-add of 32-bit samples takes as long.
    pub(super) fn cost(&self, layout: &Layout) -> f64 {
        /// Cost of reading and writing a sample that is in no cache.
        const MOVE: f64 = 8.0;
        let planes = layout.planes().iter().enumerate();
        let of_plane = |(index, plane): (usize, &Plane)| {
            let taps = if self.is_convolved(index) {
                self.loops.taps()
            } else {
                0
            };
            (MOVE + taps as f64) * samples(plane)
        };
        planes.map(of_plane).sum()
    }

    /// Explains how each plane of a picture is filtered, one line for all planes with the same plan.
    pub(super) fn explanation(&self, layout: &Layout) -> Vec<String> {
        let planes = layout.planes().iter().enumerate();
        let plans = planes.map(|(plane, geometry)| self.plan(plane, geometry));
        explained(self.format, self.step.kernel.size(), plans)
    }
}
