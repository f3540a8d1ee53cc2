//! One frame's way through the steps of a chain.

#[cfg(target_arch = "x86_64")]
use super::box_blur;
use super::fft::Transforms;
#[cfg(target_arch = "x86_64")]
use super::fir;
use super::scalar;
use super::simd::InstructionSet;
#[cfg(target_arch = "x86_64")]
use super::simd::Vectors;
use super::team::{Scratch, Team};
use crate::engine::cpu::fft::overlap_save::OverlapSave;
#[cfg(target_arch = "x86_64")]
use crate::engine::cpu::fir::symmetric_3x3;
use crate::engine::cpu::rows::alpha::{Alpha, Source, Weighted};
use crate::engine::cpu::rows::strip::{Picture, Strip, strips};
use crate::filter::{Kernel, Plan, Step};
use crate::frame::{Frame, Layout, PixelFormat};
use std::ops::Range;
use std::sync::Arc;

/// How one plane's part of a step is carried out.
enum Way {
    /// Plain loops.
    Portable,
    /// Sums of windows that rows enter and leave.
    #[cfg(target_arch = "x86_64")]
    Window(Box<box_blur::Window>),
    /// Small masks that mirror themselves, on bytes where they lie.
    #[cfg(target_arch = "x86_64")]
    Mirrored(Box<symmetric_3x3::Mirrored>),
    /// Pairs of samples, two rows at a time.
    #[cfg(target_arch = "x86_64")]
    Pairs(Box<fir::Pairs>),
}

/// What plain loops take for a weight and a sample, in terms of [`Way::terms`].
const PLAIN_TERMS: usize = 4;

impl Way {
    /// `under_alpha`: rows are weighted before they are convolved.
    fn new(step: &Step, plane: usize, format: PixelFormat, set: InstructionSet, under_alpha: bool) -> Way {
        #[cfg(target_arch = "x86_64")]
        if let Some(vectors) = Vectors::of(set) {
            if let Some(window) = box_blur::Window::new(vectors, step, plane, format) {
                return Way::Window(Box::new(window));
            }
            if let Some(mirrored) = symmetric_3x3::Mirrored::new(vectors, step, plane, format)
                && !under_alpha
            {
                return Way::Mirrored(Box::new(mirrored));
            }
            if let Some(pairs) = fir::Pairs::new(vectors, step, plane, format) {
                return Way::Pairs(Box::new(pairs));
            }
        }
        let _ = (step, plane, format, set, under_alpha);
        Way::Portable
    }

    /// What a sample takes of a direct mask, in multiply-adds of two samples and two weights each; `None` where it does not grow with the mask.
    fn terms(&self, kernel: &Kernel) -> Option<usize> {
        match (self, kernel) {
            (Way::Portable, Kernel::Direct(k)) => {
                Some(PLAIN_TERMS * k.weights.iter().filter(|&&q| q != 0).count())
            }
            #[cfg(target_arch = "x86_64")]
            (Way::Pairs(pairs), Kernel::Direct(_)) => Some(pairs.terms()),
            _ => None,
        }
    }

    fn convolve(
        &self,
        step: &Step,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        match self {
            Way::Portable => scalar::convolve(step, source, layout, strip),
            #[cfg(target_arch = "x86_64")]
            Way::Window(window) => window.convolve(source, layout, strip, &mut scratch.window),
            #[cfg(target_arch = "x86_64")]
            Way::Mirrored(mirrored) => mirrored.convolve(source, layout, strip, &mut scratch.mirrored),
            #[cfg(target_arch = "x86_64")]
            Way::Pairs(pairs) => pairs.convolve(source, layout, strip, &mut scratch.pairs),
        }
    }
}

/// How a step is carried out.
struct Carried {
    /// One a plane.
    ways: Vec<Way>,
    /// Ways that large planes may take instead.
    transforms: Option<Transforms>,
    alpha: Option<Alpha>,
}

impl Carried {
    /// The way by Fourier transforms, if that is the faster one for a plane.
    fn overlap_save(&self, step: &Step, plane: usize, layout: &Layout) -> Option<&OverlapSave> {
        let terms = self.ways[plane].terms(&step.kernel)?;
        let transforms = self.transforms.as_ref()?;
        transforms.faster(&layout.planes()[plane], &step.planes[plane], terms)
    }
}

/// A plan, and how each step is carried out.
pub(super) struct Prepared {
    plan: Plan,
    carried: Vec<Carried>,
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

/// A frame to filter.
pub(super) struct Job {
    pub(super) prepared: Arc<Prepared>,
    pub(super) input: Frame,
    /// Where the result goes.
    pub(super) output: Frame,
    /// How the pictures between the steps lie.
    pub(super) inner: Layout,
    pub(super) between: Between,
}

/// Pictures between the steps of a chain, kept from frame to frame.
#[derive(Default)]
pub(super) struct Between([Vec<u8>; 2]);

impl Job {
    /// Filters the frame; gives back the result and the memory that was worked in.
    pub(super) fn run(mut self, team: &Team) -> (Frame, Between) {
        let (layout, inner) = (*self.output.layout(), self.inner);
        let Between([from, to]) = &mut self.between;
        let steps = &self.prepared.plan.steps;
        for (index, (step, carried)) in steps.iter().zip(&self.prepared.carried).enumerate() {
            let picture = match index {
                0 => Picture {
                    layout: self.input.layout(),
                    bytes: self.input.bytes(),
                },
                _ => Picture {
                    layout: &inner,
                    bytes: from,
                },
            };
            if index + 1 == steps.len() {
                apply(team, step, carried, picture, &layout, self.output.bytes_mut());
            } else {
                to.resize(inner.size(), 0);
                apply(team, step, carried, picture, &inner, to);
                std::mem::swap(from, to);
            }
        }
        self.output.sequence = self.input.sequence;
        self.output.born = self.input.born;
        self.output.metadata = self.input.into_parts().0;
        (self.output, self.between)
    }
}

/// Carries out one step: `layout` is that of `output`.
fn apply(
    team: &Team,
    step: &Step,
    carried: &Carried,
    input: Picture<'_>,
    layout: &Layout,
    output: &mut [u8],
) {
    let convolve = |source: Source<'_>, planes: Range<usize>, output: &mut [u8]| {
        let at_once = |plane: usize| {
            carried
                .overlap_save(step, plane, layout)
                .map_or(2, OverlapSave::rows)
        };
        let strips = strips(step, layout, planes, output, team.share(), at_once);
        team.each(strips, |scratch, mut strip| {
            match carried.overlap_save(step, strip.plane, layout) {
                Some(by) => by.convolve(step, source, layout, &mut strip, &mut scratch.overlap_save),
                None => carried.ways[strip.plane].convolve(step, source, layout, &mut strip, scratch),
            }
        });
    };
    let planes = 0..layout.planes().len();
    let with = |alpha| Source {
        picture: input,
        alpha,
    };
    let Some(alpha) = &carried.alpha else {
        convolve(with(None), planes, output);
        return;
    };
    let weighted = |convolved| with(Some(Weighted { by: alpha, convolved }));
    let Some(own) = alpha.own_plane() else {
        convolve(weighted(None), planes, output);
        return;
    };
    // Alpha comes first: rows of the colours need it convolved.
    let (colours, rest) = output.split_at_mut(layout.planes()[own].offset);
    convolve(with(None), own..own + 1, rest);
    let convolved = (&*rest, layout.planes()[own].stride);
    convolve(weighted(Some(convolved)), 0..own, colours);
    let strips = strips(step, layout, own..own + 1, rest, team.share(), |_| 2);
    team.each(strips, |_, mut strip| alpha.restore(input, layout, &mut strip));
}
