//! All cores: a frame for each thread, the caller's among them, or the rows of a frame shared out over threads where fewer frames than threads are waiting.
//!
//! `rows` holds the portable inner loops; `reading`, `planar_rows`, `row_pass`, `grouped_terms`, `loops`, `mirrored_loops`, `row_sums` and `window_loops` hold those over vectors, which `pairs`, `mirrored` and `window`
//! feed and which `avx2` and `avx512` make instructions of; all are free of threads. Small boxes of bytes have loops of their own (`small_boxes`, `column_sums`). Large direct masks are convolved by way of Fourier transforms (`overlap_save`, `tiles`, `fourier`). Colour under alpha is weighted when a row is read and made straight when it is
//! written (`alpha`, `alpha_loops`).
// Where there are no vectors, what only they need is not used.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_variables))]

#[cfg(target_arch = "x86_64")]
mod box_blur;
mod fft;
#[cfg(target_arch = "x86_64")]
mod fir;
mod job;
mod rows;
mod scalar;
mod simd;
mod team;

pub use simd::{InstructionSet, UnknownInstructionSet};

use super::{Engine, EngineError};
use crate::filter::{Chain, Plan};
use crate::frame::{Allocator, Buffer, Colour, Frame, Layout, Pageable, PixelFormat};
use crossbeam_channel::{Receiver, bounded};
use job::{Between, Job, Prepared};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use team::Team;

/// The threaded engine.
pub struct Cpu {
    chain: Chain,
    team: Arc<Team>,
    set: InstructionSet,
    prepared: Option<(PixelFormat, Colour, Arc<Prepared>)>,
    /// Where the results of the frames in flight will come, oldest first.
    in_flight: VecDeque<Receiver<std::thread::Result<(Frame, Between)>>>,
    /// What frames that are done have worked in.
    spare: Vec<Between>,
}

/// Frames that are worked on at the same time, at most: each more is one more in memory, and threads beyond that share out a frame's rows.
const MOST_AT_ONCE: usize = 4;

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
            let available: Vec<String> = InstructionSet::available().map(|set| set.to_string()).collect();
            return Err(EngineError::Unavailable(format!(
                "this machine cannot run the instruction set {set}; choose one that it has: {}",
                available.join(", ")
            )));
        }
        Ok(Cpu {
            chain,
            team: Arc::new(Team::new(threads)?),
            set,
            prepared: None,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
        })
    }

    fn prepared(&mut self, format: PixelFormat, colour: Colour) -> Result<Arc<Prepared>, EngineError> {
        match &self.prepared {
            Some((f, c, prepared)) if *f == format && *c == colour => Ok(Arc::clone(prepared)),
            _ => {
                let prepared = Arc::new(Prepared::new(Plan::new(&self.chain, format, &colour)?, self.set));
                self.prepared = Some((format, colour, Arc::clone(&prepared)));
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
        match self.team.size() {
            1 => format!("cpu: 1 thread, {}", self.set),
            n => format!("cpu: {n} threads, {}", self.set),
        }
    }

    /// With several threads those that are worked on, and a next one for each thread but the caller's, which hands out none while it works on its own.
    fn depth(&self) -> usize {
        match self.team.size() {
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
        let job = Job {
            prepared: self.prepared(format, input.metadata.colour)?,
            output: Frame::new(Layout::new(format, width, height, row_alignment)?, output)?,
            inner: Layout::new(format, width, height, 64)?,
            between: self.spare.pop().unwrap_or_default(),
            input,
        };
        let (done, result) = bounded(1);
        self.in_flight.push_back(result);
        self.team.hand_over(move |team| {
            let result = catch_unwind(AssertUnwindSafe(|| job.run(team)));
            // Nobody waits for it any more if the engine is gone.
            let _ = done.send(result);
        });
        Ok(())
    }

    fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
        let Some(result) = self.in_flight.pop_front() else {
            return Ok(None);
        };
        while result.is_empty() && self.team.take_one() {}
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
