//! Which algorithm carries out which part of a step: the only file that knows all of them.

use super::box_blur;
use super::fft::Transforms;
use super::fir;
use super::scalar;
use super::simd::InstructionSet;
use super::simd::Vectors;
use crate::engine::cpu::fft::overlap_save::OverlapSave;
use crate::engine::cpu::fir::symmetric_3x3;
use crate::engine::cpu::rows::alpha::{Alpha, Source};
use crate::engine::cpu::rows::strip::Strip;
use crate::filter::{Kernel, Plan, Step};
use crate::frame::{Layout, PixelFormat};

/// How one plane's part of a step is carried out.
pub(super) enum Way {
    /// Plain Rust.
    Portable,
    /// Sums of windows that rows enter and leave.
    BoxBlur(Box<box_blur::BoxBlur>),
    /// Small masks that mirror themselves, on bytes where they lie.
    Symmetric3x3(Box<symmetric_3x3::Symmetric3x3>),
    /// Weighted sums, two rows or four at a time.
    Fir(Box<fir::Fir>),
}

/// What plain loops take for a weight and a sample, in terms of [`Way::terms`].
const PLAIN_TERMS: usize = 4;

impl Way {
    /// `under_alpha`: rows are weighted before they are convolved.
    fn new(step: &Step, plane: usize, format: PixelFormat, set: InstructionSet, under_alpha: bool) -> Way {
        if let Some(vectors) = Vectors::of(set) {
            if let Some(box_blur) = box_blur::BoxBlur::new(vectors, step, plane, format) {
                return Way::BoxBlur(Box::new(box_blur));
            }
            if let Some(symmetric_3x3) = symmetric_3x3::Symmetric3x3::new(vectors, step, plane, format)
                && !under_alpha
            {
                return Way::Symmetric3x3(Box::new(symmetric_3x3));
            }
            if let Some(fir) = fir::Fir::new(vectors, step, plane, format) {
                return Way::Fir(Box::new(fir));
            }
        }
        Way::Portable
    }

    /// What a sample takes of a direct mask, in multiply-adds of two samples and two weights each; `None` where it does not grow with the mask.
    fn terms(&self, kernel: &Kernel) -> Option<usize> {
        match (self, kernel) {
            (Way::Portable, Kernel::Direct(k)) => {
                Some(PLAIN_TERMS * k.weights.iter().filter(|&&q| q != 0).count())
            }
            (Way::Fir(fir), Kernel::Direct(_)) => Some(fir.terms()),
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
            Way::Portable => scalar::convolve(step, source, layout, strip),
            Way::BoxBlur(box_blur) => box_blur.convolve(source, layout, strip, &mut scratch.box_blur),
            Way::Symmetric3x3(symmetric_3x3) => {
                symmetric_3x3.convolve(source, layout, strip, &mut scratch.symmetric_3x3)
            }
            Way::Fir(fir) => fir.convolve(source, layout, strip, &mut scratch.fir),
        }
    }
}

/// How a step is carried out.
pub(super) struct Carried {
    /// One a plane.
    pub(super) ways: Vec<Way>,
    /// Ways that large planes may take instead.
    transforms: Option<Transforms>,
    pub(super) alpha: Option<Alpha>,
}

impl Carried {
    /// The way by Fourier transforms, if that is the faster one for a plane.
    pub(super) fn overlap_save(&self, step: &Step, plane: usize, layout: &Layout) -> Option<&OverlapSave> {
        let terms = self.ways[plane].terms(&step.kernel)?;
        let transforms = self.transforms.as_ref()?;
        transforms.faster(&layout.planes()[plane], &step.planes[plane], terms)
    }
}

/// A plan, and how each step is carried out.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) carried: Vec<Carried>,
}

impl Prepared {
    pub(super) fn new(plan: Plan, set: InstructionSet) -> Prepared {
        let of_step = |step: &Step| {
            let alpha = Alpha::new(step, plan.format, set);
            let way = |plane| Way::new(step, plane, plan.format, set, alpha.is_some());
            let ways: Vec<Way> = (0..step.planes.len()).map(way).collect();
            let may_be_slower = ways.iter().any(|way| way.terms(&step.kernel).is_some());
            let transforms = || Transforms::new(step, plan.format, set);
            Carried {
                transforms: may_be_slower.then(transforms).flatten(),
                ways,
                alpha,
            }
        };
        let carried = plan.steps.iter().map(of_step).collect();
        Prepared { plan, carried }
    }
}

/// What one thread works in. It grows to what the largest plane needs and is then never allocated again.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) overlap_save: crate::engine::cpu::fft::overlap_save::Scratch,
    pub(super) symmetric_3x3: crate::engine::cpu::fir::symmetric_3x3::Scratch,
    pub(super) fir: crate::engine::cpu::fir::Scratch,
    pub(super) box_blur: crate::engine::cpu::box_blur::Scratch,
}
