//! The CPU engine: frames in, frames out, in order, on all cores.
//!
//! ```text
//! submit -> threads.rs     a frame per thread, or the strips of one frame where threads would idle
//!           | strips of rows
//!        algorithms/       chooses the cheapest for each plane: running sums, multiply-adds, FFT, ..
//!           |
//!        rows/             a row in, a row out: border, samples to words, sums to samples
//!           |
//!        simd/             the instruction sets
//! collect <- the frame, with the same bits whatever the algorithm and the instruction set
//! ```
//!
//! Imports point downwards only. `pixels/` stands beside the algorithms: conversions of pixels before and
//! after a filter.
// In inner loops registers are arrays, indexed by constants; an iterator over them is one that the compiler
// may not unroll.
#![allow(clippy::needless_range_loop)]

mod algorithms;
pub(super) mod pixels;
mod rows;
mod simd;
mod threads;

pub use pixels::to_rgb;
pub use simd::{InstructionSet, UnknownInstructionSet};

use super::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, Frame, Image, ImageMut, Layout, Pageable, PixelFormat};
use algorithms::ChainPlan;
use crossbeam_channel::{Receiver, bounded};
use rows::strip::Picture;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
pub(super) use threads::Threads;

/// The threaded engine.
pub struct Cpu {
    chain: Chain,
    threads: Arc<Threads>,
    /// A pool of the caller alone, for pictures that are done before another thread has woken.
    caller_only: Threads,
    set: InstructionSet,
    /// The latest plan, with the format and the colour facts that it is for.
    plan: Option<(PixelFormat, Colour, Arc<ChainPlan>)>,
    /// The layout of the last submitted frame; `None` after a new plan.
    last: Option<Layout>,
    /// The algorithms of the last submitted frame, if its layout or its plan was new.
    explanation: Vec<String>,
    /// The receivers of the results of the frames in flight, oldest first.
    in_flight: VecDeque<Receiver<std::thread::Result<(Frame, ChainPictures)>>>,
    /// Scratch memory of the frames that are done.
    spare: Vec<ChainPictures>,
}

/// Most frames filtered at a time. Each costs a frame of memory; further threads help by splitting a frame
/// into strips.
const MAX_PARALLEL_FRAMES: usize = 4;

/// Below this cost in multiply-adds waking a second thread takes longer than it saves.
const MAX_SINGLE_THREAD_COST: f64 = 1e6;

impl Cpu {
    /// An engine that applies `chain` with `threads` threads (0: one per core) and the best instruction set
    /// of this machine.
    pub fn new(chain: Chain, threads: usize) -> Result<Cpu, EngineError> {
        Cpu::with_instruction_set(chain, threads, InstructionSet::detect())
    }

    /// [`Cpu::new`] with the instruction set `set`; an error if this machine lacks it.
    pub fn with_instruction_set(
        chain: Chain,
        threads: usize,
        set: InstructionSet,
    ) -> Result<Cpu, EngineError> {
        if !set.is_available() {
            let available: Vec<String> = InstructionSet::available().map(|set| set.to_string()).collect();
            return Err(EngineError::Unavailable(format!(
                "this machine cannot run the instruction set {set}; choose one that it has: {}",
                available.join(", ")
            )));
        }
        Ok(Cpu {
            chain,
            threads: Arc::new(Threads::new(threads)?),
            caller_only: Threads::new(1)?,
            set,
            plan: None,
            last: None,
            explanation: Vec::new(),
            in_flight: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// Estimated cost of a frame with `set`, in multiply-adds of two samples and two weights. The time of one
    /// differs little between filters, so one measurement on a machine predicts any filter.
    #[doc(hidden)]
    pub fn cost(
        chain: &Chain,
        layout: &Layout,
        colour: &Colour,
        set: InstructionSet,
    ) -> Result<f64, EngineError> {
        Ok(ChainPlan::new(chain, layout.format(), colour, set)?.cost(layout))
    }

    /// Filters `input` into `output` without further copies, and returns when it is done. Size and format
    /// must agree.
    pub(crate) fn filter(&mut self, input: &Image<'_>, output: &mut ImageMut<'_>) -> Result<(), EngineError> {
        let layout = *input.layout();
        let plan = self.plan(layout.format(), input.colour())?;
        let inner = Layout::new(layout.format(), layout.width(), layout.height(), 64)?;
        let mut intermediate = self.spare.pop().unwrap_or_default();
        let picture = Picture {
            layout: &layout,
            bytes: input.bytes(),
        };
        let output_layout = *output.layout();
        let output = (&output_layout, output.bytes_mut());
        let threads = match plan.cost(&layout) < MAX_SINGLE_THREAD_COST {
            true => &self.caller_only,
            false => &*self.threads,
        };
        apply_all(threads, &plan, picture, output, &inner, &mut intermediate);
        self.spare.push(intermediate);
        Ok(())
    }

    /// The plan for frames of this format with these colour facts.
    fn plan(&mut self, format: PixelFormat, colour: Colour) -> Result<Arc<ChainPlan>, EngineError> {
        match &self.plan {
            Some((f, c, plan)) if *f == format && *c == colour => Ok(Arc::clone(plan)),
            _ => {
                let plan = Arc::new(ChainPlan::new(&self.chain, format, &colour, self.set)?);
                self.plan = Some((format, colour, Arc::clone(&plan)));
                self.last = None;
                Ok(plan)
            }
        }
    }
}

impl Engine for Cpu {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn description(&self) -> String {
        match self.threads.size() {
            1 => format!("cpu: 1 thread, {}", self.set),
            n => format!("cpu: {n} threads, {}", self.set),
        }
    }

    /// The frames being filtered, plus one queued for each worker thread among them. The caller queues
    /// nothing while it filters.
    fn depth(&self) -> usize {
        match self.threads.size() {
            1 => 1,
            n => 2 * n.min(MAX_PARALLEL_FRAMES) - 1,
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
        let inner = Layout::new(format, width, height, 64)?;
        if self.last != Some(inner) {
            self.explanation = plan.explanation(&inner);
            self.last = Some(inner);
        }
        let job = Job {
            plan,
            output: Frame::new(Layout::new(format, width, height, row_alignment)?, output)?,
            inner,
            intermediate: self.spare.pop().unwrap_or_default(),
            input,
        };
        let (done, result) = bounded(1);
        self.in_flight.push_back(result);
        self.threads.submit(move |threads| {
            let result = catch_unwind(AssertUnwindSafe(|| job.run(threads)));
            // The receiver is gone if the engine was dropped.
            let _ = done.send(result);
        });
        Ok(())
    }

    fn explanation(&mut self) -> Vec<String> {
        std::mem::take(&mut self.explanation)
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let Some(result) = self.in_flight.pop_front() else {
            return Ok(None);
        };
        while result.is_empty() && self.threads.run_one() {}
        match result.recv() {
            Ok(Ok((frame, intermediate))) => {
                self.spare.push(intermediate);
                Ok(Some(frame))
            }
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => Err(EngineError::Device {
                doing: "convolving a frame".to_owned(),
                reason: "its thread ended without a result".to_owned(),
            }),
        }
    }
}

/// A frame to filter.
struct Job {
    plan: Arc<ChainPlan>,
    input: Frame,
    /// Memory for the result.
    output: Frame,
    /// The layout of the pictures between the steps.
    inner: Layout,
    /// Memory of these pictures.
    intermediate: ChainPictures,
}

/// Memory for the pictures between the steps of a chain, reused by the next frames.
#[derive(Default)]
struct ChainPictures([Vec<u8>; 2]);

impl Job {
    /// Filters the frame. Returns the result, and the intermediate memory for the next frame.
    fn run(mut self, threads: &Threads) -> (Frame, ChainPictures) {
        let layout = *self.output.layout();
        let picture = Picture {
            layout: self.input.layout(),
            bytes: self.input.bytes(),
        };
        let output = (&layout, self.output.bytes_mut());
        apply_all(
            threads,
            &self.plan,
            picture,
            output,
            &self.inner,
            &mut self.intermediate,
        );
        self.output.sequence = self.input.sequence;
        self.output.born = self.input.born;
        self.output.metadata = self.input.into_parts().0;
        (self.output, self.intermediate)
    }
}

/// Applies all steps of `plan`. `inner` is the layout of the pictures between them.
fn apply_all(
    threads: &Threads,
    plan: &ChainPlan,
    input: Picture<'_>,
    (layout, output): (&Layout, &mut [u8]),
    inner: &Layout,
    intermediate: &mut ChainPictures,
) {
    let ChainPictures([from, to]) = intermediate;
    for (index, step) in plan.steps.iter().enumerate() {
        let picture = match index {
            0 => input,
            _ => Picture {
                layout: inner,
                bytes: from,
            },
        };
        if index + 1 == plan.steps.len() {
            step.apply(threads, picture, layout, output);
        } else {
            to.resize(inner.size(), 0);
            step.apply(threads, picture, inner, to);
            std::mem::swap(from, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_that_are_done_in_a_moment_wake_nobody() {
        let cost = |filter: &str, width, height| {
            let layout = Layout::new(PixelFormat::GRAY, width, height, 1).unwrap();
            let chain = Chain::parse(filter).unwrap();
            Cpu::cost(&chain, &layout, &Colour::default(), InstructionSet::detect()).unwrap()
        };
        assert!(cost("box:size=3", 256, 256) < MAX_SINGLE_THREAD_COST);
        assert!(cost("box:size=3", 1920, 1080) > MAX_SINGLE_THREAD_COST);
        assert!(cost("gaussian:size=25", 256, 256) > MAX_SINGLE_THREAD_COST);
    }
}
