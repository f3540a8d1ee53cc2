//! All cores: the rows of a frame shared out over threads.
//!
//! `rows` holds the portable inner loops; `loops` and `window_loops` hold those over vectors, which `pairs` and `window` feed and which `avx2` and `avx512` make
//! instructions of; all are free of threads. Colour under alpha is weighted when a row is read and made straight when it is written (`alpha`, `alpha_loops`).

mod alpha;
mod alpha_loops;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod edges;
#[cfg(target_arch = "x86_64")]
mod lanes;
#[cfg(target_arch = "x86_64")]
mod loops;
#[cfg(target_arch = "x86_64")]
mod memory;
#[cfg(target_arch = "x86_64")]
mod pairs;
#[cfg(target_arch = "x86_64")]
mod reader;
mod rows;
mod simd;
mod strip;
#[cfg(target_arch = "x86_64")]
mod sums;
mod team;
#[cfg(target_arch = "x86_64")]
mod window;
#[cfg(target_arch = "x86_64")]
mod window_loops;

pub use simd::{InstructionSet, UnknownInstructionSet};

use super::{Engine, EngineError};
use crate::filter::{Chain, Kernel, Plan, Step};
use crate::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat};
use alpha::{Alpha, Source, Weighted};
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use team::{Scratch, Team};

/// The threaded engine.
pub struct Cpu {
    chain: Chain,
    team: Team,
    set: InstructionSet,
    plan: Option<(PixelFormat, Colour, Arc<Prepared>)>,
    /// Pictures between the steps of a chain, kept from frame to frame.
    between: [Vec<u8>; 2],
    done: VecDeque<Frame>,
}

/// A picture to read.
#[derive(Clone, Copy)]
struct Picture<'a> {
    layout: &'a Layout,
    bytes: &'a [u8],
}

impl<'a> Picture<'a> {
    /// Row `y` of plane `index`, without its padding.
    fn row(&self, index: usize, y: usize) -> &'a [u8] {
        let start = self.layout.planes()[index].offset + y * self.layout.planes()[index].stride;
        &self.bytes[start..start + self.layout.row_bytes(index)]
    }
}

/// Rows of one plane of the result, for one thread to write.
struct Strip<'a> {
    plane: usize,
    first_row: usize,
    rows: usize,
    bytes: &'a mut [u8],
}

/// Which row of which plane is being made.
struct At {
    plane: usize,
    /// The row in the plane.
    row: usize,
}

impl Strip<'_> {
    /// Calls `make` with each row of the strip, padding excluded.
    fn each_row(&mut self, layout: &Layout, mut make: impl FnMut(At, &mut [u8])) {
        let (stride, len) = (layout.planes()[self.plane].stride, layout.row_bytes(self.plane));
        for (k, row) in self.bytes.chunks_mut(stride).take(self.rows).enumerate() {
            let at = At {
                plane: self.plane,
                row: self.first_row + k,
            };
            make(at, &mut row[..len]);
        }
    }
}

impl Cpu {
    /// An engine that applies `chain` with `threads` threads (0: one a core) and the best instructions of this machine.
    pub fn new(chain: Chain, threads: usize) -> Result<Cpu, EngineError> {
        Cpu::with_instruction_set(chain, threads, InstructionSet::detect())
    }

    /// [`Cpu::new`] with the instructions of `set`; an error if this machine lacks them.
    pub fn with_instruction_set(
        chain: Chain,
        threads: usize,
        set: InstructionSet,
    ) -> Result<Cpu, EngineError> {
        if !set.is_available() {
            return Err(EngineError::Unavailable(format!(
                "this machine cannot run the instruction set {set}; the best that it has is {}",
                InstructionSet::detect()
            )));
        }
        Ok(Cpu {
            chain,
            team: Team::new(threads)?,
            set,
            plan: None,
            between: [Vec::new(), Vec::new()],
            done: VecDeque::new(),
        })
    }

    fn plan(&mut self, format: PixelFormat, colour: Colour) -> Result<Arc<Prepared>, EngineError> {
        match &self.plan {
            Some((f, c, plan)) if *f == format && *c == colour => Ok(Arc::clone(plan)),
            _ => {
                let plan = Arc::new(Prepared::new(Plan::new(&self.chain, format, &colour)?, self.set));
                self.plan = Some((format, colour, Arc::clone(&plan)));
                Ok(plan)
            }
        }
    }

    fn apply(&self, step: &Step, carried: &Carried, input: Picture<'_>, layout: &Layout, output: &mut [u8]) {
        let team = &self.team;
        let convolve = |source: Source<'_>, planes: Range<usize>, output: &mut [u8]| {
            let strips = strips(step, layout, planes, output, team.size());
            team.each(strips, |scratch, mut strip| {
                carried.ways[strip.plane].convolve(step, source, layout, &mut strip, scratch);
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
        let strips = strips(step, layout, own..own + 1, rest, team.size());
        team.each(strips, |_, mut strip| alpha.restore(input, layout, &mut strip));
    }
}

/// How one plane's part of a step is carried out.
enum Way {
    /// Plain loops.
    Portable,
    /// Sums of windows that rows enter and leave.
    #[cfg(target_arch = "x86_64")]
    Window(Box<window::Window>),
    /// Pairs of samples, two rows at a time.
    #[cfg(target_arch = "x86_64")]
    Pairs(Box<pairs::Pairs>),
}

impl Way {
    fn new(step: &Step, plane: usize, format: PixelFormat, set: InstructionSet) -> Way {
        #[cfg(target_arch = "x86_64")]
        if let Some(vectors) = simd::Vectors::of(set) {
            if let Some(window) = window::Window::new(vectors, step, plane, format) {
                return Way::Window(Box::new(window));
            }
            if let Some(pairs) = pairs::Pairs::new(vectors, step, plane, format) {
                return Way::Pairs(Box::new(pairs));
            }
        }
        let _ = (step, plane, format, set);
        Way::Portable
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
            Way::Portable => strip::convolve(step, source, layout, strip),
            #[cfg(target_arch = "x86_64")]
            Way::Window(window) => window.convolve(source, layout, strip, &mut scratch.window),
            #[cfg(target_arch = "x86_64")]
            Way::Pairs(pairs) => pairs.convolve(source, layout, strip, &mut scratch.pairs),
        }
    }
}

/// How a step is carried out.
struct Carried {
    /// One a plane.
    ways: Vec<Way>,
    alpha: Option<Alpha>,
}

/// A plan, and how each step is carried out.
struct Prepared {
    plan: Plan,
    carried: Vec<Carried>,
}

impl Prepared {
    fn new(plan: Plan, set: InstructionSet) -> Prepared {
        let of_step = |step: &Step| {
            let planes = 0..step.planes.len();
            Carried {
                ways: planes
                    .map(|plane| Way::new(step, plane, plan.format, set))
                    .collect(),
                alpha: Alpha::new(step, plan.format, set),
            }
        };
        let carried = plan.steps.iter().map(of_step).collect();
        Prepared { plan, carried }
    }
}

/// Cuts planes of a picture, with the first of which `bytes` begins, into strips of rows: one if there is one thread, else a few a thread, so that a slow thread
/// holds nobody up for long, but tall enough for the rows that neighbouring strips both read to weigh little.
fn strips<'a>(
    step: &Step,
    layout: &Layout,
    planes: Range<usize>,
    mut bytes: &'a mut [u8],
    threads: usize,
) -> Vec<Strip<'a>> {
    let height = step.kernel.size().1;
    let (most, least_rows) = match &step.kernel {
        // Each strip makes the row pass of the rows around it anew.
        Kernel::Separable(_) => (2 * threads, (8 * height).max(32)),
        Kernel::Direct(_) => (4 * threads, (2 * height).max(32)),
    };
    let mut strips = Vec::new();
    let mut at = layout.planes()[planes.start].offset;
    for (index, plane) in layout
        .planes()
        .iter()
        .enumerate()
        .take(planes.end)
        .skip(planes.start)
    {
        let (_, rest) = bytes.split_at_mut(plane.offset - at);
        let len = plane.stride * (plane.height - 1) + layout.row_bytes(index);
        let (mut own, rest) = rest.split_at_mut(len);
        at = plane.offset + len;
        bytes = rest;
        let parts = match (plane.height / least_rows).clamp(1, most) {
            _ if threads == 1 => 1,
            few if few < threads => few,
            // As many for each thread.
            many => many / threads * threads,
        };
        // Even, since rows are made two at a time.
        let rows = plane.height.div_ceil(parts).next_multiple_of(2);
        let mut first_row = 0;
        while first_row < plane.height {
            let rows = rows.min(plane.height - first_row);
            let end = (rows * plane.stride).min(own.len());
            let (strip, rest) = own.split_at_mut(end);
            own = rest;
            strips.push(Strip {
                plane: index,
                first_row,
                rows,
                bytes: strip,
            });
            first_row += rows;
        }
    }
    strips
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn description(&self) -> String {
        match self.team.size() {
            1 => format!("cpu: 1 thread, {}", self.set),
            n => format!("cpu: {n} threads, {}", self.set),
        }
    }

    fn input_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn output_allocator(&self) -> Arc<dyn Allocator> {
        Arc::new(Pageable)
    }

    fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
        let (format, width, height) = (input.format(), input.layout().width(), input.layout().height());
        let plan = self.plan(format, input.metadata.colour)?;
        let layout = Layout::new(format, width, height, row_alignment)?;
        let mut result = Frame::new(layout, output)?;
        let inner = Layout::new(format, width, height, 64)?;
        let mut between = std::mem::take(&mut self.between);
        let [from, to] = &mut between;
        let steps = &plan.plan.steps;
        for (index, step) in steps.iter().enumerate() {
            let carried = &plan.carried[index];
            let picture = match index {
                0 => Picture {
                    layout: input.layout(),
                    bytes: input.bytes(),
                },
                _ => Picture {
                    layout: &inner,
                    bytes: from,
                },
            };
            if index + 1 == steps.len() {
                self.apply(step, carried, picture, &layout, result.bytes_mut());
            } else {
                to.resize(inner.size(), 0);
                self.apply(step, carried, picture, &inner, to);
                std::mem::swap(from, to);
            }
        }
        self.between = between;
        result.sequence = input.sequence;
        result.born = input.born;
        result.metadata = input.into_parts().0;
        self.done.push_back(result);
        Ok(())
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        Ok(self.done.pop_front())
    }
}
