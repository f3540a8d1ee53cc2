//! Which algorithm carries out which part of a step: the only file that knows all of them.

use super::box_blur;
use super::fft::{self, OverlapSave, Transforms};
use super::fir;
use super::scalar;
use super::simd::{InstructionSet, Vectors};
use crate::engine::cpu::fir::symmetric_3x3;
use crate::engine::cpu::rows::alpha::{Alpha, Source};
use crate::engine::cpu::rows::strip::Strip;
use crate::filter::{Kernel, Plan, Step};
use crate::frame::{Layout, PixelFormat};

/// How one plane's part of a step is carried out.
pub(super) enum Algorithm {
    /// Plain Rust.
    Portable,
    /// Sums of windows that rows enter and leave.
    BoxBlur(Box<box_blur::BoxBlur>),
    /// Small masks that mirror themselves, on bytes where they lie.
    Symmetric3x3(Box<symmetric_3x3::Symmetric3x3>),
    /// Weighted sums, two rows or four at a time.
    Fir(Box<fir::Fir>),
}

/// What plain loops take for a weight and a sample, in terms of [`Algorithm::terms`].
const PLAIN_TERMS: usize = 4;

impl Algorithm {
    /// `under_alpha`: rows are weighted before they are convolved.
    fn new(
        step: &Step,
        plane: usize,
        format: PixelFormat,
        set: InstructionSet,
        under_alpha: bool,
    ) -> Algorithm {
        if let Some(vectors) = Vectors::of(set) {
            if let Some(box_blur) = box_blur::BoxBlur::new(vectors, step, plane, format) {
                return Algorithm::BoxBlur(Box::new(box_blur));
            }
            if let Some(symmetric_3x3) = symmetric_3x3::Symmetric3x3::new(vectors, step, plane, format)
                && !under_alpha
            {
                return Algorithm::Symmetric3x3(Box::new(symmetric_3x3));
            }
            if let Some(fir) = fir::Fir::new(vectors, step, plane, format) {
                return Algorithm::Fir(Box::new(fir));
            }
        }
        Algorithm::Portable
    }

    /// What a sample takes of a direct mask, in multiply-adds of two samples and two weights each; `None`
    /// where it does not grow with the mask.
    fn terms(&self, kernel: &Kernel) -> Option<usize> {
        match (self, kernel) {
            (Algorithm::Portable, Kernel::Direct(k)) => {
                Some(PLAIN_TERMS * k.weights.iter().filter(|&&q| q != 0).count())
            }
            (Algorithm::Fir(fir), Kernel::Direct(_)) => Some(fir.terms()),
            _ => None,
        }
    }

    pub(super) fn convolve(
        &self,
        step: &Step,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        match self {
            Algorithm::Portable => scalar::convolve(step, source, layout, strip),
            Algorithm::BoxBlur(box_blur) => box_blur.convolve(source, layout, strip, &mut scratch.box_blur),
            Algorithm::Symmetric3x3(symmetric_3x3) => {
                symmetric_3x3.convolve(source, layout, strip, &mut scratch.symmetric_3x3);
            }
            Algorithm::Fir(fir) => fir.convolve(source, layout, strip, &mut scratch.fir),
        }
    }
}

/// How a step is carried out.
pub(super) struct StepPlan {
    /// One a plane.
    pub(super) algorithms: Vec<Algorithm>,
    /// Ways that large planes may take instead.
    transforms: Option<Transforms>,
    pub(super) alpha: Option<Alpha>,
}

impl StepPlan {
    /// The way by Fourier transforms, if that is the faster one for a plane.
    pub(super) fn overlap_save(&self, step: &Step, plane: usize, layout: &Layout) -> Option<&OverlapSave> {
        let terms = self.algorithms[plane].terms(&step.kernel)?;
        let transforms = self.transforms.as_ref()?;
        transforms.faster(&layout.planes()[plane], &step.planes[plane], terms)
    }
}

/// A plan, and how each step is carried out.
pub(super) struct ChainPlan {
    pub(super) plan: Plan,
    pub(super) step_plans: Vec<StepPlan>,
}

impl ChainPlan {
    pub(super) fn new(plan: Plan, set: InstructionSet) -> ChainPlan {
        let of_step = |step: &Step| {
            let alpha = Alpha::new(step, plan.format, set);
            let algorithm = |plane| Algorithm::new(step, plane, plan.format, set, alpha.is_some());
            let algorithms: Vec<Algorithm> = (0..step.planes.len()).map(algorithm).collect();
            let may_be_slower = algorithms
                .iter()
                .any(|algorithm| algorithm.terms(&step.kernel).is_some());
            let transforms = || Transforms::new(step, plan.format, set);
            StepPlan {
                transforms: may_be_slower.then(transforms).flatten(),
                algorithms,
                alpha,
            }
        };
        let step_plans = plan.steps.iter().map(of_step).collect();
        ChainPlan { plan, step_plans }
    }
}

/// What one thread works in. It grows to what the largest plane needs and is then never allocated again.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) overlap_save: fft::Scratch,
    pub(super) symmetric_3x3: symmetric_3x3::Scratch,
    pub(super) fir: fir::Scratch,
    pub(super) box_blur: box_blur::Scratch,
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
        box:size=3                  | gray12le | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        box:size=9                  | rgb24    | separable | 1920x1080 | scalar | box | box | box | box
        box:size=15                 | gray     | direct    | 1920x1080 | fft    | fir | fir | fir | fir
        box:size=25                 | gray10le | separable | 1920x1080 | scalar | box | box | box | box
        box:size=63                 | yuv420p  | auto      | 1920x1080 | scalar | box | box | box | box
        box:size=7                  | gray16le | separable | 1920x1080 | scalar | fir | fir | fir | fir
        box:size=25                 | gray16le | direct    | 1920x1080 | fft    | fft | fft | fft | fft
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
        sobel-x                     | gray     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        mask:rows=1 2 3;4 5 6;7 8 9 | gray     | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | gray     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | nv12     | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:sigma=2            | rgba64le | auto      | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=7             | gray     | direct    | 1920x1080 | scalar | fir | fir | fir | fir
        gaussian:size=25            | gray16le | separable | 1920x1080 | scalar | fir | fir | fir | fir
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
        };
        let format = cells[1].parse().unwrap();
        let (width, height) = cells[3].split_once('x').unwrap();
        let layout = Layout::new(format, width.parse().unwrap(), height.parse().unwrap(), 1).unwrap();
        let plan = Plan::new(&chain, format, &Colour::default()).unwrap();
        let chain_plan = ChainPlan::new(plan, set);
        let (step, step_plan) = (&chain_plan.plan.steps[0], &chain_plan.step_plans[0]);
        let of_plane = |plane: usize| match &step_plan.algorithms[plane] {
            _ if step_plan.overlap_save(step, plane, &layout).is_some() => "fft",
            Algorithm::Portable => "scalar",
            Algorithm::BoxBlur(_) => "box",
            Algorithm::Symmetric3x3(_) => "3x3",
            Algorithm::Fir(_) => "fir",
        };
        let mut names: Vec<&str> = (0..step.planes.len()).map(of_plane).collect();
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
                if !set.is_available() {
                    eprintln!("SKIPPED: this machine has no {set}");
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
}
