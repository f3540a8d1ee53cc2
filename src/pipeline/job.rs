//! A run's parts and options, and what it returns.

use super::budget::Budget;
use crate::engine::Engine;
use crate::frame::{Layout, LayoutError, Remarks};
use crate::report::{Measurements, Recording};
use crate::sink::{AnySink, Written};
use crate::source::{AnySource, StreamInfo};

/// A source, an engine and a sink to run. Create the sink from `source.info()`.
pub struct Job {
    /// Where frames come from.
    pub source: AnySource,
    /// What filters them.
    pub engine: Box<dyn Engine>,
    /// Where they go.
    pub sink: AnySink,
    /// How many threads and buffers.
    pub options: PipelineOptions,
}

/// How many threads and buffers a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PipelineOptions {
    /// Frames that may wait between two stages, at least 1. More evens out stages of uneven speed and costs
    /// memory and latency.
    pub queue: usize,
    /// Threads that read an indexed source, at least 1; a stream has always one.
    pub source_workers: usize,
    /// Threads that write to an indexed sink, at least 1; a stream has always one.
    pub sink_workers: usize,
    /// Fail where source or engine warn of something, before the output gets its name. Sinks have a rule of
    /// their own ([`crate::sink::Rules`]).
    pub strict: bool,
    /// What the stages keep beyond their sums.
    pub recording: Recording,
}

impl Default for PipelineOptions {
    /// Three frames between two stages, and as many workers as the process may use cores.
    fn default() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        PipelineOptions {
            queue: 3,
            source_workers: cores,
            sink_workers: cores,
            strict: false,
            recording: Recording::default(),
        }
    }
}

impl PipelineOptions {
    /// Threads that read a source of these facts, if it is indexed.
    pub(super) fn readers(&self, info: &StreamInfo) -> usize {
        match info.pictures {
            0 => self.source_workers.max(1),
            // The source only repeats decoded pictures.
            _ => 1,
        }
    }
}

impl Job {
    /// A job with the default options.
    pub fn new(source: AnySource, engine: impl Engine + 'static, sink: AnySink) -> Job {
        Job {
            source,
            engine: Box::new(engine),
            sink,
            options: PipelineOptions::default(),
        }
    }

    /// Lets results stay in the memory of the engine's device where the sink reads them there. Called before
    /// the run, or not at all: then results go through the host's memory.
    #[doc(hidden)]
    pub fn share_device(&mut self) {
        let reads = self.sink.read_on_device(self.engine.result_device());
        self.engine.leave_results(reads);
    }

    /// The buffers that the run will have.
    pub fn budget(&self) -> Budget {
        let source = match &self.source {
            AnySource::Stream(source) => (1, source.held_buffers()),
            AnySource::Indexed(source) => (self.options.readers(source.info()), 0),
        };
        let sink = match &self.sink {
            AnySink::Stream(sink) => (1, sink.held_buffers()),
            AnySink::Indexed(_) => (self.options.sink_workers.max(1), 0),
        };
        let budget = Budget::new(
            self.options.queue.max(1),
            self.engine.depth().max(1),
            source,
            sink,
        );
        match self.most_frames() {
            Some(frames) => budget.at_most(frames, sink.1 > 0),
            None => budget,
        }
    }

    /// How many frames come at most, if that is known. What a stream says of its length is a hint only.
    fn most_frames(&self) -> Option<u64> {
        match &self.source {
            AnySource::Stream(source) => source.info().is_single.then_some(1),
            AnySource::Indexed(source) => Some(source.len()),
        }
    }

    /// Bytes that the buffers of run and engine may come to, with what frames keep beside them, by the first
    /// frame's size.
    #[doc(hidden)]
    pub fn buffer_bytes(&self) -> u128 {
        match self.layouts() {
            Ok((input, output)) => {
                let mut budget = self.budget();
                if self.source.info().pictures > 0 {
                    budget.input_buffers = self.source.info().pictures;
                }
                let frames = budget.frames().min(self.most_frames().unwrap_or(u64::MAX));
                budget.bytes(input.size(), output.size())
                    + u128::from(frames) * u128::from(self.source.info().kept_bytes)
                    + self.engine.own_bytes(&input)
            }
            Err(_) => 0,
        }
    }

    /// Layouts of the first frame: input and result.
    fn layouts(&self) -> Result<(Layout, Layout), LayoutError> {
        let info = self.source.info();
        let input = Layout::new(info.format, info.width, info.height, 64)?;
        let (width, height) = self.engine.output_size(info.format, info.width, info.height);
        let output = Layout::new(info.format, width, height, self.sink.row_alignment())?;
        Ok((input, output))
    }
}

/// The result of a run that did not fail.
#[derive(Debug)]
#[non_exhaustive]
pub struct Outcome {
    /// The sink's last word; empty if the run was interrupted before its first frame.
    pub written: Written,
    /// What source, engine and sink have to say, in this order.
    pub remarks: Remarks,
    /// Where the time went.
    pub measurements: Measurements,
}
