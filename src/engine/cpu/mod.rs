//! The CPU engine: frames in, frames out, in order, on all cores.
//!
//! ```text
//! submit -> threads.rs        a frame a thread, or the rows of a frame shared out where threads are idle
//!           | strips of rows
//!        algorithm.rs         the fastest that can make the plane, the only file that knows them all:
//!           |                 box_blur/  running sums            fir/  weighted sums by multiply-adds
//!           |                 fft/       overlap-save, exact     scalar/  plain Rust, for any machine
//!           |                 pyramid/   wide Gaussians
//!           |                 doubles/   long weights
//!           |                 gradient/  magnitudes, absolute values, the largest of several sums
//!           |              float/  floating-point samples, and integers under alpha: all filters
//!        rows/                a row in, a row out: border, samples to words, sums to samples
//!           |
//!        simd/                the instruction sets
//! collect <- the frame, with the same bits whatever the algorithm and the instruction set
//! ```
//!
//! Imports point downwards only. Each folder is one algorithm, and its `mod.rs` says how it goes.
//! `pixels/` stands beside them: what is done to pixels around a filter.

mod algorithm;
mod box_blur;
mod doubles;
mod fft;
mod fir;
mod float;
mod gradient;
pub(super) mod pixels;
mod pyramid;
mod rows;
mod scalar;
mod simd;
mod threads;

pub use pixels::to_rgb;
pub use simd::{InstructionSet, UnknownInstructionSet};

use super::{Engine, EngineError};
use crate::filter::Chain;
use crate::frame::{Allocator, Buffer, Colour, Frame, Image, ImageMut, Layout, Pageable, PixelFormat};
use algorithm::ChainPlan;
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
    /// The caller alone, for pictures that are done before another thread has woken.
    alone: Threads,
    set: InstructionSet,
    prepared: Option<(PixelFormat, Colour, Arc<ChainPlan>)>,
    /// The layout of the frame that was submitted last, if the plan was the same.
    last: Option<Layout>,
    /// How that frame's planes are made, if others were made in other ways before.
    explanation: Vec<String>,
    /// The receivers of the results of the frames in flight, oldest first.
    in_flight: VecDeque<Receiver<std::thread::Result<(Frame, ChainPictures)>>>,
    /// Scratch memory of the frames that are done.
    spare: Vec<ChainPictures>,
}

/// Frames that are worked on at the same time, at most: each more is one more in memory, and threads beyond
/// that share out a frame's rows.
const MOST_AT_ONCE: usize = 4;

/// Terms of a picture that takes about as long as it takes to wake a thread and to wait for its end.
const MOST_ALONE: f64 = 1e6;

impl Cpu {
    /// An engine that applies `chain` with `threads` threads (0: one a core) and the best instructions of
    /// this machine.
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
            let available: Vec<String> = InstructionSet::available().map(|set| set.to_string()).collect();
            return Err(EngineError::Unavailable(format!(
                "this machine cannot run the instruction set {set}; choose one that it has: {}",
                available.join(", ")
            )));
        }
        Ok(Cpu {
            chain,
            threads: Arc::new(Threads::new(threads)?),
            alone: Threads::new(1)?,
            set,
            prepared: None,
            last: None,
            explanation: Vec::new(),
            in_flight: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    /// What a frame takes with the instructions of `set`, in terms: a term is about as much work in one
    /// filter as in another, so that one machine's time for it tells what any filter takes there.
    #[doc(hidden)]
    pub fn terms(
        chain: &Chain,
        layout: &Layout,
        colour: &Colour,
        set: InstructionSet,
    ) -> Result<f64, EngineError> {
        Ok(ChainPlan::new(chain, layout.format(), colour, set)?.terms(layout))
    }

    /// Filters `input` into `output`, both where they lie, and returns when it is done. Size and format must
    /// agree.
    pub(crate) fn filter(&mut self, input: &Image<'_>, output: &mut ImageMut<'_>) -> Result<(), EngineError> {
        let layout = *input.layout();
        let prepared = self.prepared(layout.format(), input.colour())?;
        let inner = Layout::new(layout.format(), layout.width(), layout.height(), 64)?;
        let mut between = self.spare.pop().unwrap_or_default();
        let picture = Picture {
            layout: &layout,
            bytes: input.bytes(),
        };
        let place = *output.layout();
        let output = (&place, output.bytes_mut());
        let threads = match prepared.terms(&layout) < MOST_ALONE {
            true => &self.alone,
            false => &*self.threads,
        };
        apply_all(threads, &prepared, picture, output, &inner, &mut between);
        self.spare.push(between);
        Ok(())
    }

    fn prepared(&mut self, format: PixelFormat, colour: Colour) -> Result<Arc<ChainPlan>, EngineError> {
        match &self.prepared {
            Some((f, c, prepared)) if *f == format && *c == colour => Ok(Arc::clone(prepared)),
            _ => {
                let prepared = Arc::new(ChainPlan::new(&self.chain, format, &colour, self.set)?);
                self.prepared = Some((format, colour, Arc::clone(&prepared)));
                self.last = None;
                Ok(prepared)
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

    /// With several threads those that are worked on, and a next one for each thread but the caller's, which
    /// hands out none while it works on its own.
    fn depth(&self) -> usize {
        match self.threads.size() {
            1 => 1,
            n => 2 * n.min(MOST_AT_ONCE) - 1,
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
        let prepared = self.prepared(format, input.metadata.colour)?;
        let inner = Layout::new(format, width, height, 64)?;
        if self.last != Some(inner) {
            self.explanation = prepared.explanation(&inner);
            self.last = Some(inner);
        }
        let job = Job {
            prepared,
            output: Frame::new(Layout::new(format, width, height, row_alignment)?, output)?,
            inner,
            between: self.spare.pop().unwrap_or_default(),
            input,
        };
        let (done, result) = bounded(1);
        self.in_flight.push_back(result);
        self.threads.submit(move |threads| {
            let result = catch_unwind(AssertUnwindSafe(|| job.run(threads)));
            // Nobody waits for it any more if the engine is gone.
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
            Ok(Ok((frame, between))) => {
                self.spare.push(between);
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
    prepared: Arc<ChainPlan>,
    input: Frame,
    /// Where the result goes.
    output: Frame,
    /// How the pictures between the steps lie.
    inner: Layout,
    between: ChainPictures,
}

/// Pictures between the steps of a chain, kept from frame to frame.
#[derive(Default)]
struct ChainPictures([Vec<u8>; 2]);

impl Job {
    /// Filters the frame; gives back the result and the memory that was worked in.
    fn run(mut self, threads: &Threads) -> (Frame, ChainPictures) {
        let layout = *self.output.layout();
        let picture = Picture {
            layout: self.input.layout(),
            bytes: self.input.bytes(),
        };
        let output = (&layout, self.output.bytes_mut());
        apply_all(
            threads,
            &self.prepared,
            picture,
            output,
            &self.inner,
            &mut self.between,
        );
        self.output.sequence = self.input.sequence;
        self.output.born = self.input.born;
        self.output.metadata = self.input.into_parts().0;
        (self.output, self.between)
    }
}

/// Carries out all steps. The pictures between them lie as `inner` says.
fn apply_all(
    threads: &Threads,
    prepared: &ChainPlan,
    input: Picture<'_>,
    (layout, output): (&Layout, &mut [u8]),
    inner: &Layout,
    between: &mut ChainPictures,
) {
    let ChainPictures([from, to]) = between;
    for (index, step) in prepared.steps.iter().enumerate() {
        let picture = match index {
            0 => input,
            _ => Picture {
                layout: inner,
                bytes: from,
            },
        };
        if index + 1 == prepared.steps.len() {
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
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn pictures_that_are_done_in_a_moment_wake_nobody() {
        let terms = |filter: &str, width, height| {
            let layout = Layout::new(PixelFormat::GRAY, width, height, 1).unwrap();
            let chain = Chain::parse(filter).unwrap();
            Cpu::terms(&chain, &layout, &Colour::default(), InstructionSet::detect()).unwrap()
        };
        assert!(terms("box:size=3", 256, 256) < MOST_ALONE);
        assert!(terms("box:size=3", 1920, 1080) > MOST_ALONE);
        assert!(terms("gaussian:size=25", 256, 256) > MOST_ALONE);
    }
}
