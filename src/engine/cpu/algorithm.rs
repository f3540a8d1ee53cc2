//! Chooses the algorithm for each plane: the only file that knows all of them.

use super::box_blur::BoxBlur;
use super::doubles::Doubles;
use super::fft::Fft;
use super::fir::Fir;
use super::fir::mask_3x3::Mask3x3;
use super::gradient::Gradient;
use super::pyramid::Pyramid;
use super::rows::alpha::Alpha;
use super::rows::plane_filter::{PlaneFilter, PlanePart};
use super::rows::threshold::Threshold;
use super::scalar::Scalar;
use super::simd::{InstructionSet, Vectors};
use crate::filter::{Plan, Step};
use crate::frame::{Layout, PixelFormat, Plane};
use std::sync::Arc;

/// An algorithm, ready for each plane that it can make of those given.
type MakeReady = fn(&[PlanePart<'_>]) -> Vec<Option<Arc<dyn PlaneFilter>>>;

/// Those of weights of two bytes. The cheapest that can make a plane makes it, and of several the first one.
const ALGORITHMS: [MakeReady; 7] = [
    ready::<BoxBlur>,
    ready::<Mask3x3>,
    ready::<Fir>,
    ready::<Scalar>,
    ready::<Fft>,
    ready::<Gradient>,
    ready::<Pyramid>,
];

/// The one of long weights, whose sums leave what the others hold.
const OF_LONG_WEIGHTS: [MakeReady; 1] = [ready::<Doubles>];

fn ready<F: PlaneFilter + 'static>(parts: &[PlanePart<'_>]) -> Vec<Option<Arc<dyn PlaneFilter>>> {
    let mut before: Option<Arc<F>> = None;
    let of_plane = |part: &PlanePart<'_>| {
        let filter = Arc::new(F::new(part, before.as_deref())?);
        before = Some(Arc::clone(&filter));
        Some(filter as Arc<dyn PlaneFilter>)
    };
    parts.iter().map(of_plane).collect()
}

/// The algorithms that can make one plane of a step.
struct Candidates(Vec<Arc<dyn PlaneFilter>>);

impl Candidates {
    /// The cheapest for a plane of this size.
    fn cheapest(&self, plane: &Plane) -> &dyn PlaneFilter {
        let costs = self.0.iter().map(|filter| (filter, filter.cost(plane)));
        match costs.min_by(|one, other| one.1.total_cmp(&other.1)) {
            Some((filter, _)) => &**filter,
            None => unreachable!("plain Rust makes every plane, or doubles do"),
        }
    }
}

/// How a step is carried out.
pub(super) struct StepPlan {
    /// For each plane.
    candidates: Vec<Candidates>,
    pub(super) alpha: Option<Alpha>,
    pub(super) threshold: Option<Threshold>,
}

impl StepPlan {
    fn new(step: &Step, format: PixelFormat, set: InstructionSet, vectors: Option<Vectors>) -> StepPlan {
        let alpha = Alpha::new(step, format, set);
        let part = |plane| PlanePart {
            step,
            plane,
            format,
            // Alpha has no alpha.
            premultiplied: alpha
                .as_ref()
                .is_some_and(|alpha| alpha.own_plane() != Some(plane)),
            vectors,
        };
        let parts: Vec<PlanePart<'_>> = (0..step.planes.len()).map(part).collect();
        let algorithms: &[MakeReady] = match step.kernel.is_long() {
            true => &OF_LONG_WEIGHTS,
            false => &ALGORITHMS,
        };
        let ready: Vec<_> = algorithms.iter().map(|ready| ready(&parts)).collect();
        let of_plane = |plane: usize| Candidates(ready.iter().filter_map(|of| of[plane].clone()).collect());
        StepPlan {
            candidates: (0..parts.len()).map(of_plane).collect(),
            alpha,
            threshold: Threshold::new(step, format, vectors),
        }
    }

    /// What makes a plane of such a picture.
    pub(super) fn filter(&self, plane: usize, layout: &Layout) -> &dyn PlaneFilter {
        self.candidates[plane].cheapest(&layout.planes()[plane])
    }
}

/// A plan, and how each step is carried out.
pub(super) struct ChainPlan {
    pub(super) plan: Plan,
    pub(super) step_plans: Vec<StepPlan>,
}

impl ChainPlan {
    pub(super) fn new(plan: Plan, set: InstructionSet) -> ChainPlan {
        ChainPlan::with(plan, set, Vectors::of(set))
    }

    fn with(plan: Plan, set: InstructionSet, vectors: Option<Vectors>) -> ChainPlan {
        let of_step = |step: &Step| StepPlan::new(step, plan.format, set, vectors);
        let step_plans = plan.steps.iter().map(of_step).collect();
        ChainPlan { plan, step_plans }
    }

    /// What such a picture takes, in multiply-adds of two samples and two weights each: those of the
    /// algorithms, and as many as reading and writing the samples is worth.
    pub(super) fn terms(&self, layout: &Layout) -> f64 {
        /// Of a sample that is not in a cache.
        const MOVE: f64 = 4.0;
        let planes = layout.planes().iter().enumerate();
        let of_step = |step: &StepPlan| -> f64 {
            let of_plane = |(plane, place): (usize, &Plane)| {
                let samples = (place.width * place.height * place.channels) as f64;
                step.filter(plane, layout).cost(place) + MOVE * samples
            };
            planes.clone().map(of_plane).sum()
        };
        self.step_plans.iter().map(of_step).sum()
    }

    /// The plan of each plane of such a picture, one line for all planes that are made in the same way.
    pub(super) fn explanation(&self, layout: &Layout) -> Vec<String> {
        let steps = self.plan.steps.iter().zip(&self.step_plans);
        let lines = steps.flat_map(|(step, step_plan)| {
            let planes = layout.planes().iter().enumerate();
            let ways = planes.map(|(plane, place)| step_plan.filter(plane, layout).plan(place));
            explained(self.plan.format, step.kernel.size(), ways)
        });
        lines.collect()
    }
}

/// How a step makes its planes, a line for all that are made in the same way.
pub(super) fn explained(
    format: PixelFormat,
    (columns, rows): (usize, usize),
    planes: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for (plane, way) in planes.enumerate() {
        let plane = plane.to_string();
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, planes)) => planes.push(plane),
            None => ways.push((way, vec![plane])),
        }
    }
    let line = |(way, planes): (String, Vec<String>)| {
        let noun = if planes.len() == 1 { "plane" } else { "planes" };
        let planes = planes.join(", ");
        format!("{format}, {columns}x{rows} mask, {noun} {planes}: {way}")
    };
    ways.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::{Border, Chain, Planes};
    use crate::frame::Colour;

    /// Filter, format, algorithm and size; and what makes it with each set of [`InstructionSet::ALL`]: one
    /// word for all planes, or one for each.
    const CHOICES: &str = "
        box:size=3                  | gray     | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=3                  | gray     | direct    | 1920x1080 | scalar | box | box | box | box
        box:size=3                  | gray12le | direct    | 1920x1080 | scalar | box | box | box | box
        box:size=9                  | rgb24    | separable | 1920x1080 | scalar | box | box | box | box
        box:size=15                 | gray     | direct    | 1920x1080 | fft    | box | box | box | box
        box:size=25                 | gray10le | separable | 1920x1080 | scalar | box | box | box | box
        box:size=63                 | yuv420p  | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=7                  | gray16le | separable | 1920x1080 | scalar | box | box | box | box
        box:size=25                 | gray16le | direct    | 1920x1080 | fft    | box | box | box | box
        box:size=3                  | rgba     | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=3                  | nv12     | auto      | 1920x1080 | scalar | box | box | box | box
        gaussian:size=3             | gray     | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:size=3             | rgb24    | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:size=3             | rgba     | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=3             | gray10le | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=3             | gray     | separable | 1920x1080 | scalar | fir | fir | fir | fir
        sharpen                     | yuv420p  | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        laplacian8                  | gray     | auto      | 1920x1080 | scalar | box | box | box | box
        laplacian8:bias=20          | gray     | auto      | 1920x1080 | scalar | box | box | box | box
        mask:rows=0 0 0;0 1 0;0 0 0 | gray     | auto      | 1920x1080 | scalar | box | box | box | box
        sobel-x                     | gray     | auto      | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        mask:rows=1 2 3;4 5 6;7 8 9 | gray     | direct    | 1920x1080 | scalar | 3x3 | 3x3 | 3x3 | 3x3
        gaussian:sigma=2            | gray     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | nv12     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | rgba64le | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=7             | gray     | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=25            | gray16le | separable | 1920x1080 | scalar | fir | fir | fir | fir
        sobel          | gray     | auto   | 1920x1080 | gradient | gradient | gradient | gradient | gradient
        laplacian8:abs | rgba64le | direct | 1920x1080 | gradient | gradient | gradient | gradient | gradient
        gaussian:sigma=10.4 | gray | auto | 1920x1080 | pyramid | pyramid | pyramid | pyramid | pyramid
        disk:radius=4               | gray     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=4               | gray16le | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=6               | gray     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=6               | gray10le | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=12              | gray     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=12              | gray     | auto      | 20x15     | scalar | fir | fir | fir | fir
        disk:radius=12              | yuv420p  | auto      | 640x480   | fft    | fir | fir | fir | fir
        disk:radius=12              | rgb24    | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=12              | rgba     | auto      | 1920x1080 | fft    | fir | fir | fir | fir
        disk:radius=31              | gray16le | auto      | 1920x1080 | fft    | fft | fft | fft | fft
        gaussian:size=25            | gray     | direct    | 1920x1080 | fft    | fft | fft | fft | fir
    ";

    /// What makes each plane of a filter's step.
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
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let plan = ChainPlan::with(plan, set, Vectors::assume(set));
        let of_plane = |(plane, place)| {
            let plan = plan.step_plans[0].filter(plane, &layout).plan(place);
            let name = plan.split(':').next().unwrap();
            name.to_owned()
        };
        let mut names: Vec<String> = layout.planes().iter().enumerate().map(of_plane).collect();
        if names.iter().all(|name| *name == names[0]) {
            names.truncate(1);
        }
        names.join(", ")
    }

    #[test]
    fn each_mask_gets_its_algorithm() {
        let mut others = Vec::new();
        for line in CHOICES.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            for (set, expected) in InstructionSet::ALL.into_iter().zip(&cells[4..]) {
                if set != InstructionSet::Portable && Vectors::assume(set).is_none() {
                    eprintln!("SKIPPED: no loops of {set} are written for this kind of machine");
                    continue;
                }
                let found = chosen(&cells, set);
                if found != *expected {
                    others.push(format!("{set} takes {found}: {line}"));
                }
            }
        }
        assert!(others.is_empty(), "{others:#?}");
    }

    #[test]
    fn colours_under_alpha_are_premultiplied_and_alpha_in_its_own_plane_is_not() {
        if Vectors::assume(InstructionSet::Avx2).is_some() {
            let cells = ["gaussian:size=3", "gbrap", "direct", "64x48"];
            assert_eq!(chosen(&cells, InstructionSet::Avx2), "fir, fir, fir, 3x3");
        }
    }
}
