//! The algorithms, a folder for each. This file chooses the cheapest for each plane; no other knows them all.
//!
//! ```text
//! box_blur/   running sums                      fir/       weighted sums by multiply-adds
//! fft/        overlap-save, exact               scalar/    plain Rust, for any machine
//! pyramid/    wide Gaussians                    gradient/  magnitudes, absolute values, the largest sum
//! doubles/    integers with long weights        float/     all filters of floating-point samples, and of
//!                                                          integers under alpha
//! ```

mod box_blur;
mod doubles;
mod fft;
mod fir;
mod float;
mod gradient;
mod pyramid;
mod scalar;

use super::rows::plane_filter::{PlaneFilter, PlanePart, explained, samples};
use super::rows::store::threshold::Threshold;
use super::rows::strip::{Picture, StripCount, strips};
use super::simd::{InstructionSet, Vectors};
use super::threads::Threads;
use crate::filter::{Chain, FloatPlan, Kernel, Plan, PlanError, Step};
use crate::frame::{Colour, Layout, PixelFormat, Plane};
use box_blur::BoxBlur;
use doubles::Doubles;
use fft::Fft;
use fir::Fir;
use fir::mask_3x3::Mask3x3;
use float::FloatFilter;
use gradient::Gradient;
use pyramid::Pyramid;
use scalar::Scalar;
use std::sync::Arc;

/// Prepares one algorithm for every plane of a step; `None` for planes that it cannot filter.
type Prepare = fn(&[PlanePart<'_>]) -> Vec<Option<Arc<dyn PlaneFilter>>>;

/// All algorithms for integer sums. Each plane gets the cheapest that can filter it; on a tie the first.
const ALGORITHMS: [Prepare; 8] = [
    prepare::<BoxBlur>,
    prepare::<Mask3x3>,
    prepare::<Fir>,
    prepare::<Doubles>,
    prepare::<Scalar>,
    prepare::<Fft>,
    prepare::<Gradient>,
    prepare::<Pyramid>,
];

/// [`Prepare`] for the algorithm `F`.
fn prepare<F: PlaneFilter + 'static>(parts: &[PlanePart<'_>]) -> Vec<Option<Arc<dyn PlaneFilter>>> {
    let mut before: Option<Arc<F>> = None;
    let of_plane = |part: &PlanePart<'_>| {
        let filter = Arc::new(F::new(part, before.as_deref())?);
        before = Some(Arc::clone(&filter));
        Some(filter as Arc<dyn PlaneFilter>)
    };
    parts.iter().map(of_plane).collect()
}

/// The algorithms that can filter one plane of a step.
struct Candidates(Vec<Arc<dyn PlaneFilter>>);

impl Candidates {
    /// The cheapest for a plane of this size.
    fn cheapest(&self, plane: &Plane) -> &dyn PlaneFilter {
        let costs = self.0.iter().map(|filter| (filter, filter.cost(plane)));
        match costs.min_by(|one, other| one.1.total_cmp(&other.1)) {
            Some((filter, _)) => &**filter,
            // `Scalar`, `Doubles`, `Gradient` and `Pyramid` need no vectors and together filter every kernel
            // of integers.
            None => unreachable!("every kernel has an algorithm in plain Rust"),
        }
    }
}

/// A step of integer sums: each plane has its own algorithm.
pub(super) struct PlanesStep {
    step: Step,
    format: PixelFormat,
    /// For each plane.
    candidates: Vec<Candidates>,
    threshold: Option<Threshold>,
}

impl PlanesStep {
    fn new(step: Step, format: PixelFormat, vectors: Option<Vectors>) -> PlanesStep {
        let part = |plane| PlanePart {
            step: &step,
            plane,
            format,
            vectors,
        };
        let parts: Vec<PlanePart<'_>> = (0..step.planes.len()).map(part).collect();
        let prepared = ALGORITHMS.map(|prepare| prepare(&parts));
        let of_plane = |plane: usize| {
            let filters = prepared.iter().filter_map(|planes| planes[plane].clone());
            Candidates(filters.collect())
        };
        PlanesStep {
            format,
            candidates: (0..parts.len()).map(of_plane).collect(),
            threshold: Threshold::new(&step, format, vectors),
            step,
        }
    }

    /// The algorithm chosen for plane `plane` of this size.
    fn filter(&self, plane: usize, geometry: &Plane) -> &dyn PlaneFilter {
        self.candidates[plane].cheapest(geometry)
    }

    fn apply(&self, threads: &Threads, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        let filter = |plane: usize| self.filter(plane, &layout.planes()[plane]);
        let at_once = |plane: usize| filter(plane).rows_at_once(&layout.planes()[plane]);
        let count = StripCount::of(&self.step, threads.share());
        let strips = strips(count, layout, output, at_once);
        threads.each(strips, |scratch, mut strip| {
            filter(strip.plane).filter(input, layout, &mut strip, scratch);
            if let Some(threshold) = &self.threshold {
                threshold.apply(input, layout, &mut strip);
            }
        });
    }
}

/// How a step is computed.
pub(super) enum StepPlan {
    /// Integers, each plane by itself.
    Planes(PlanesStep),
    /// Floating-point sums, all planes together: colours may be weighted by an alpha of another plane.
    Floats(FloatFilter),
}

impl StepPlan {
    /// For integer samples.
    fn new(step: Step, format: PixelFormat, vectors: Option<Vectors>) -> StepPlan {
        match &step.kernel {
            Kernel::Weighted(kernel) => {
                StepPlan::Floats(FloatFilter::weighted(&step, kernel, format, vectors))
            }
            _ => StepPlan::Planes(PlanesStep::new(step, format, vectors)),
        }
    }

    /// Applies the step to `input`. `layout` is the layout of `output`.
    pub(super) fn apply(&self, threads: &Threads, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        match self {
            StepPlan::Planes(step) => step.apply(threads, input, layout, output),
            StepPlan::Floats(filter) => filter.apply(threads, input, layout, output),
        }
    }

    /// Estimated cost of a picture, in multiply-adds of two samples and two weights: the algorithms' own,
    /// plus `MOVE` a sample for memory traffic of integers.
    fn cost(&self, layout: &Layout) -> f64 {
        /// Cost of reading and writing a sample that is in no cache.
        const MOVE: f64 = 4.0;
        let step = match self {
            StepPlan::Planes(step) => step,
            StepPlan::Floats(filter) => return filter.cost(layout),
        };
        let of_plane =
            |(plane, geometry)| step.filter(plane, geometry).cost(geometry) + MOVE * samples(geometry);
        layout.planes().iter().enumerate().map(of_plane).sum()
    }

    /// Explains how each plane of a picture is filtered, one line for all planes with the same plan.
    fn explanation(&self, layout: &Layout) -> Vec<String> {
        let step = match self {
            StepPlan::Planes(step) => step,
            StepPlan::Floats(filter) => return filter.explanation(layout),
        };
        let planes = layout.planes().iter().enumerate();
        let plans = planes.map(|(plane, geometry)| step.filter(plane, geometry).plan(geometry));
        explained(step.format, step.step.kernel.size(), plans)
    }
}

/// A chain, prepared for frames of one format.
pub(super) struct ChainPlan {
    /// How each step is computed.
    pub(super) steps: Vec<StepPlan>,
}

impl ChainPlan {
    pub(super) fn new(
        chain: &Chain,
        format: PixelFormat,
        colour: &Colour,
        set: InstructionSet,
    ) -> Result<ChainPlan, PlanError> {
        ChainPlan::with(chain, format, colour, Vectors::of(set))
    }

    fn with(
        chain: &Chain,
        format: PixelFormat,
        colour: &Colour,
        vectors: Option<Vectors>,
    ) -> Result<ChainPlan, PlanError> {
        let steps = if format.is_float() {
            let steps = FloatPlan::new(chain, format, colour)?.steps.into_iter();
            steps
                .map(|step| StepPlan::Floats(FloatFilter::new(step, format, vectors)))
                .collect()
        } else {
            let steps = Plan::new(chain, format, colour)?.steps.into_iter();
            steps.map(|step| StepPlan::new(step, format, vectors)).collect()
        };
        Ok(ChainPlan { steps })
    }

    /// Estimated cost of a picture, in multiply-adds of two samples and two weights.
    pub(super) fn cost(&self, layout: &Layout) -> f64 {
        self.steps.iter().map(|step| step.cost(layout)).sum()
    }

    /// Explains each step, one line for all planes with the same plan.
    pub(super) fn explanation(&self, layout: &Layout) -> Vec<String> {
        self.steps
            .iter()
            .flat_map(|step| step.explanation(layout))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Border, Planes};

    /// The algorithm chosen with each set named in the first line: one word for all planes, or one for each.
    const CHOICES: &str = "
        filter | format | algorithm | size | portable | avx2 | avx2-vnni | avx512 | avx512-vnni
        box:size=3                  | gray     | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=3                  | gray     | direct    | 1920x1080 | scalar | box | box | box | box
        box:size=3                  | gray12le | direct    | 1920x1080 | scalar | box | box | box | box
        box:size=9                  | rgb24    | separable | 1920x1080 | scalar | box | box | box | box
        box:size=15                 | gray     | direct    | 1920x1080 | fft    | box | box | box | box
        box:size=25                 | gray10le | separable | 1920x1080 | scalar | box | box | box | box
        box:size=63                 | yuv420p  | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=7                  | gray16le | separable | 1920x1080 | scalar | box | box | box | box
        box:size=25                 | gray16le | direct    | 1920x1080 | fft    | box | box | box | box
        box:size=3 | rgba | auto | 1920x1080 | float | float | float | float | float
        box:size=3                  | nv12     | auto      | 1920x1080 | scalar | box | box | box | box
        gaussian:size=3             | gray     | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:size=3             | rgb24    | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:size=3 | rgba | direct | 1920x1080 | float | float | float | float | float
        gaussian:size=3             | gray10le | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=3             | gray     | separable | 1920x1080 | scalar | fir | fir | fir | fir
        sharpen                     | yuv420p  | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        laplacian8                  | gray     | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        laplacian8:bias=20          | gray     | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        laplacian8                  | gray10le | auto      | 1920x1080 | scalar | box | box | fir | fir
        mask:rows=0 0 0;0 1 0;0 0 0 | gray     | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        sobel-x                     | gray     | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        mask:rows=1 2 3;4 5 6;7 8 9 | gray     | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:sigma=2            | gray     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | nv12     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2 | rgba64le | auto | 1920x1080 | float | float | float | float | float
        gaussian:size=7             | gray     | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=25 | gray16le | separable | 1920x1080 | doubles | doubles | doubles | doubles | doubles
        sobel          | gray     | auto   | 1920x1080 | gradient | gradient | gradient | gradient | gradient
        laplacian8:abs | rgba64le | direct | 1920x1080 | float | float | float | float | float
        laplacian8:abs | gray16le | direct | 1920x1080 | gradient | gradient | gradient | gradient | gradient
        gaussian:size=5 | gbrap | auto | 1920x1080 | float | float | float | float | float
        gaussian:sigma=10.4 | gray | auto | 1920x1080 | pyramid | pyramid | pyramid | pyramid | pyramid
        disk:radius=4               | gray     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=4 | gray16le | auto | 1920x1080 | doubles | doubles | doubles | doubles | doubles
        disk:radius=6               | gray     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=6               | gray10le | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=12              | gray     | auto      | 1920x1080 | fft    | fft | fft | fft | fir
        disk:radius=12              | gray     | auto      | 20x15     | scalar | fir | fir | fir | fir
        disk:radius=12              | yuv420p  | auto      | 640x480   | fft    | fft | fft | fft | fir
        disk:radius=12              | rgb24    | auto      | 1920x1080 | fft    | fft | fft | fft | fir
        disk:radius=12 | rgba | auto | 1920x1080 | float | float | float | float | float
        disk:radius=31 | gray16le | auto | 1920x1080 | fft | fft | fft | fft | fft
        disk:radius=31 | gray10le | auto | 1920x1080 | fft | fft | fft | fft | fft
        kirsch:scale=0.7 | gray16le | auto | 1920x1080 | doubles | doubles | doubles | doubles | doubles
        mask:rows=40000 1 2 | gray | auto | 1920x1080 | doubles | doubles | doubles | doubles | doubles
        gaussian:size=25            | gray     | direct    | 1920x1080 | fft    | fft | fft | fft | fft
    ";

    /// The algorithm chosen for each plane of a filter's step.
    fn chosen(cells: &[&str], set: InstructionSet) -> String {
        let chain = Chain {
            filters: vec![cells[0].parse().unwrap()],
            border: Border::Mirror,
            planes: Planes::All,
            algorithm: cells[2].parse().unwrap(),
            alpha: Default::default(),
        };
        let format = cells[1].parse().unwrap();
        let (width, height) = cells[3].split_once('x').unwrap();
        let layout = Layout::new(format, width.parse().unwrap(), height.parse().unwrap(), 1).unwrap();
        let plan = ChainPlan::with(&chain, format, &Colour::default(), Vectors::assume(set)).unwrap();
        let of_plane = |(plane, geometry)| {
            let plan = match &plan.steps[0] {
                StepPlan::Planes(step) => step.filter(plane, geometry).plan(geometry),
                StepPlan::Floats(filter) => filter.plan(plane, geometry),
            };
            plan.algorithm
        };
        let mut names: Vec<&str> = layout.planes().iter().enumerate().map(of_plane).collect();
        if names.iter().all(|name| *name == names[0]) {
            names.truncate(1);
        }
        names.join(", ")
    }

    #[test]
    fn each_mask_gets_its_algorithm() {
        let lines = CHOICES.trim().lines();
        let mut lines = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<&str>>());
        let head = lines.next().unwrap();
        assert!(
            head[4..]
                .iter()
                .all(|name| name.parse::<InstructionSet>().is_ok())
        );
        let lines: Vec<Vec<&str>> = lines.collect();
        assert!(lines.iter().all(|cells| cells.len() == head.len()));
        let mut others = Vec::new();
        for set in InstructionSet::ALL {
            let Some(column) = head.iter().position(|name| *name == set.name()) else {
                eprintln!("SKIPPED: the table has no column for {set}");
                continue;
            };
            if set != InstructionSet::Portable && Vectors::assume(set).is_none() {
                eprintln!("SKIPPED: no loops of {set} are written for this kind of machine");
                continue;
            }
            for cells in &lines {
                let found = chosen(cells, set);
                if found != cells[column] {
                    others.push(format!("{set} takes {found}: {}", cells.join(" | ")));
                }
            }
        }
        assert!(others.is_empty(), "{others:#?}");
    }
}
