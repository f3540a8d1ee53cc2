//! Runs a source, an engine and a sink side by side: threads, bounded queues, frame pools, and one end for
//! all of them.
//!
//! ```text
//! decode thread(s) -> queue -> engine thread -> queue -> encode thread(s)
//!        ^------ input pool ------'   '------ output pool ------^
//! ```
//!
//! The queues are short and the pools fixed ([`Budget`]), so that memory does not depend on the input's
//! length, and a stage that is faster than its neighbour waits. The end of the input travels down as a closed
//! queue. A stage that fails first closes a gate that all the others watch, and then its queues; so a closed
//! queue behind an open gate is always a proper end, and a sink is never finished after a failure. A panic
//! inside a stage is a failure like any other.

mod budget;
mod convolve;
mod decode;
mod encode;
mod error;
mod in_step;
mod matte;
mod order;
mod progress;
mod stop;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use error::PipelineError;
pub use in_step::{InStep, Next, in_step};
pub use matte::MatteReader;
pub use progress::Progress;
pub use stop::Stop;

use crate::engine::{EXPLAIN_TARGET, Engine};
use crate::frame::{Frame, FramePool, Layout, LayoutError, Remarks};
use crate::report::{
    Activity, Completion, DecoderClock, DecoderReport, Latencies, Measurements, PoolMemory, Recording, Stage,
    StageClock,
};
use crate::shortage::thread_error;
use crate::sink::{AnySink, Written};
use crate::source::{AnySource, StreamInfo, Supply};
use convolve::{Convolved, ExpectedFrames};
use crossbeam_channel::{Receiver, Sender, bounded};
use encode::Encoded;
use error::{Halt, first_cause};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Instant;

/// What a run works with. The sink was made from the source's facts.
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
    /// Threads that read an indexed source.
    fn readers(&self, info: &StreamInfo) -> usize {
        match info.pictures {
            0 => self.source_workers.max(1),
            // There is nothing to read.
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
        match &self.source {
            // What a stream says of its length is a hint only.
            AnySource::Stream(_) => budget,
            AnySource::Indexed(source) => budget.at_most(source.len(), sink.1 > 0),
        }
    }

    /// Bytes that the buffers of run and engine may come to, by the first frame's size.
    pub fn buffer_bytes(&self) -> u128 {
        match self.layouts() {
            Ok((input, output)) => {
                let mut budget = self.budget();
                if self.source.info().pictures > 0 {
                    budget.input_buffers = self.source.info().pictures;
                }
                budget.bytes(input.size(), output.size()) + self.engine.own_bytes(&input)
            }
            Err(_) => 0,
        }
    }

    /// How the first frame lies before and after the engine.
    fn layouts(&self) -> Result<(Layout, Layout), LayoutError> {
        let info = self.source.info();
        let input = Layout::new(info.format, info.width, info.height, 64)?;
        let (width, height) = self.engine.output_size(info.format, info.width, info.height);
        let output = Layout::new(info.format, width, height, self.sink.row_alignment())?;
        Ok((input, output))
    }
}

/// What a run that did not fail has done.
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

/// Runs a job to its end on threads of its own, and returns when the last of them has ended. `stop` and
/// `progress` are for this one run. On an error nothing is left under the output's name.
pub fn run(job: Job, stop: &Stop, progress: &Progress) -> Result<Outcome, PipelineError> {
    let began = Instant::now();
    let budget = job.budget();
    let input = job.source.info().description.clone();
    let pools = Pools {
        input: FramePool::new(budget.input_buffers, job.engine.input_allocator()),
        output: FramePool::new(budget.output_buffers, job.engine.output_allocator()),
    };
    let halves = std::thread::scope(|scope| {
        let started = start(scope, job, &pools, began, stop, progress);
        if started.is_err() {
            stop.fail();
        }
        started.map(|threads| threads.join(stop, progress))
    })?;
    let wall = began.elapsed();
    let Joined {
        halts,
        decode,
        decoders,
        engine,
        encode,
        device,
        end_to_end,
        written,
        source_remarks,
        engine_remarks,
    } = halves;
    if let Some(error) = first_cause(halts, stop.is_abandon_asked()) {
        return Err(error);
    }
    let ending = match (stop.is_reader_gone(), stop.is_finish_asked()) {
        (true, _) => Completion::Closed,
        // A stop that came when everything had been read interrupted nothing.
        (false, true) if !(stop.has_input_ended() && encode.frames == decode.frames) => {
            Completion::Interrupted
        }
        (false, _) => Completion::Complete,
    };
    let frames = encode.frames;
    if frames == 0 && ending == Completion::Complete {
        return Err(PipelineError::NoFrames { input });
    }
    let mut remarks = source_remarks;
    remarks.append(engine_remarks);
    let mut written = written.unwrap_or_default();
    remarks.append(std::mem::take(&mut written.remarks));
    let measurements = Measurements {
        ending,
        frames,
        began: Some(began),
        wall,
        stages: [decode, engine, encode],
        decoders,
        end_to_end,
        device,
        memory: PoolMemory {
            input_buffers: budget.input_buffers,
            input_bytes: pools.input.most_bytes(),
            output_buffers: budget.output_buffers,
            output_bytes: pools.output.most_bytes(),
        },
    };
    for line in DecoderReport::lines(&measurements) {
        tracing::info!(target: EXPLAIN_TARGET, "{line}");
    }
    Ok(Outcome {
        written,
        remarks,
        measurements,
    })
}

struct Pools {
    input: FramePool,
    output: FramePool,
}

/// What a decode thread returns: its accounts, and the source's remarks or why it ended early.
type DecodeEnd = (decode::Accounts, Result<Remarks, Halt>);

/// A stage's threads, or why one could not be started.
type Started<T> = Result<T, PipelineError>;

/// The encode stage's threads, and an indexed sink that is to be finished when they are done.
type EncodeThreads<'scope> = (
    Vec<ScopedJoinHandle<'scope, Result<Encoded, Halt>>>,
    Option<std::sync::Arc<dyn crate::sink::IndexedSink>>,
);

/// The running stages.
struct Threads<'scope> {
    decode: Vec<ScopedJoinHandle<'scope, DecodeEnd>>,
    engine: ScopedJoinHandle<'scope, Result<Convolved, Halt>>,
    encode: Vec<ScopedJoinHandle<'scope, Result<Encoded, Halt>>>,
    /// An indexed sink, to be finished when its workers are done.
    unfinished: Option<std::sync::Arc<dyn crate::sink::IndexedSink>>,
}

/// What the stages returned.
#[derive(Default)]
struct Joined {
    halts: Vec<Halt>,
    decode: StageClock,
    decoders: Vec<DecoderClock>,
    engine: StageClock,
    encode: StageClock,
    device: Option<crate::engine::DeviceTimes>,
    end_to_end: Latencies,
    written: Option<Written>,
    source_remarks: Remarks,
    engine_remarks: Remarks,
}

fn start<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    job: Job,
    pools: &Pools,
    began: Instant,
    stop: &'env Stop,
    progress: &'env Progress,
) -> Result<Threads<'scope>, PipelineError> {
    let Job {
        source,
        engine,
        sink,
        options,
    } = job;
    let (decoded, to_engine) = bounded(options.queue.max(1));
    let (filtered, to_sink) = bounded(options.queue.max(1));
    let output = convolve::Output {
        pool: pools.output.clone(),
        frames: filtered,
        row_alignment: sink.row_alignment(),
    };
    let supply = Supply {
        pool: pools.input.clone(),
        stop: stop.abandoned().clone(),
    };
    let blank = StageClock {
        ranges: engine.ranges(),
        ..StageClock::recording(options.recording, began)
    };
    let starter = Starter {
        scope,
        blank,
        stop,
        progress,
    };
    let info = source.info();
    let expected = match info.uniform {
        // An impossible geometry is the source's to tell.
        true => Layout::new(info.format, info.width, info.height, 64).ok(),
        false => None,
    };
    let expected = expected.map(|layout| ExpectedFrames {
        layout,
        colour: info.colour,
        frames: info.frames,
    });
    // From the last stage to the first, so that nobody sends to one that could not be started.
    let (encode, unfinished) = starter.encode(sink, options.sink_workers, to_sink)?;
    let engine = starter.engine(engine, expected, to_engine, output, options.strict)?;
    let decode = starter.decode(source, &options, &supply, decoded)?;
    Ok(Threads {
        decode,
        engine,
        encode,
        unfinished,
    })
}

/// Starts the threads of each stage.
struct Starter<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    /// The initial clock of each thread.
    blank: StageClock,
    stop: &'env Stop,
    progress: &'env Progress,
}

impl<'scope, 'env: 'scope> Starter<'scope, 'env> {
    fn encode(
        &self,
        sink: AnySink,
        workers: usize,
        to_sink: Receiver<Frame>,
    ) -> Started<EncodeThreads<'scope>> {
        let &Starter {
            scope,
            stop,
            progress,
            ..
        } = self;
        match sink {
            AnySink::Stream(sink) => {
                progress.set_workers(Stage::Encode, 1);
                let clock = self.blank.clone();
                let thread = spawn(scope, Stage::Encode, move || {
                    guarded(Stage::Encode, stop, || {
                        encode::stream(sink, to_sink, stop, progress, clock)
                    })
                })?;
                Ok((vec![thread], None))
            }
            AnySink::Indexed(sink) => {
                let workers = workers.max(1);
                progress.set_workers(Stage::Encode, workers);
                let mut threads = Vec::new();
                for _ in 0..workers {
                    let (sink, to_sink, clock) = (sink.clone(), to_sink.clone(), self.blank.clone());
                    threads.push(spawn(scope, Stage::Encode, move || {
                        guarded(Stage::Encode, stop, || {
                            encode::indexed(sink.as_ref(), &to_sink, stop, progress, clock)
                        })
                    })?);
                }
                Ok((threads, Some(sink)))
            }
        }
    }

    fn engine(
        &self,
        engine: Box<dyn Engine>,
        expected: Option<ExpectedFrames>,
        to_engine: Receiver<Frame>,
        output: convolve::Output,
        strict: bool,
    ) -> Started<ScopedJoinHandle<'scope, Result<Convolved, Halt>>> {
        let &Starter {
            scope,
            stop,
            progress,
            ..
        } = self;
        progress.set_workers(Stage::Engine, 1);
        let clock = self.blank.clone();
        spawn(scope, Stage::Engine, move || {
            // The queue is closed after the gate: `output` outlives the guard.
            guarded(Stage::Engine, stop, || {
                let mut convolved =
                    convolve::run(engine, expected, &to_engine, &output, stop, progress, clock)?;
                convolved.remarks = decode::accepted(convolved.remarks, strict)?;
                Ok(convolved)
            })
        })
    }

    fn decode(
        &self,
        source: AnySource,
        options: &PipelineOptions,
        supply: &Supply,
        decoded: Sender<Frame>,
    ) -> Started<Vec<ScopedJoinHandle<'scope, DecodeEnd>>> {
        let &Starter {
            scope,
            stop,
            progress,
            ..
        } = self;
        let strict = options.strict;
        let mut threads = Vec::new();
        match source {
            AnySource::Stream(source) => {
                let mut accounts = decode::Accounts::of(source.as_ref(), &self.blank);
                progress.set_workers(Stage::Decode, accounts.decoders.len().max(1));
                let supply = supply.clone();
                threads.push(spawn(scope, Stage::Decode, move || {
                    let result = guarded(Stage::Decode, stop, || {
                        decode::stream(source, &supply, &decoded, stop, progress, &mut accounts)
                            .and_then(|remarks| decode::accepted(remarks, strict))
                    });
                    (accounts, result)
                })?);
            }
            AnySource::Indexed(source) => {
                let most = usize::try_from(source.len()).unwrap_or(usize::MAX);
                let workers = options.readers(source.info()).min(most.max(1));
                progress.set_workers(Stage::Decode, workers);
                let next = std::sync::Arc::new(AtomicU64::new(0));
                let reading = std::sync::Arc::new(AtomicUsize::new(workers));
                for _ in 0..workers {
                    let (source, supply) = (source.clone(), supply.clone());
                    let (next, decoded, mut clock) = (next.clone(), decoded.clone(), self.blank.clone());
                    let reading = reading.clone();
                    threads.push(spawn(scope, Stage::Decode, move || {
                        let result = guarded(Stage::Decode, stop, || {
                            decode::indexed(
                                source.as_ref(),
                                &next,
                                &supply,
                                &decoded,
                                stop,
                                progress,
                                &mut clock,
                            )
                            .and_then(|()| {
                                // The last worker to end speaks for all.
                                match reading.fetch_sub(1, Ordering::AcqRel) {
                                    1 => decode::accepted(source.remarks(), strict),
                                    _ => Ok(Remarks::default()),
                                }
                            })
                        });
                        let accounts = decode::Accounts {
                            clock,
                            ..decode::Accounts::default()
                        };
                        (accounts, result)
                    })?);
                }
            }
        }
        Ok(threads)
    }
}

impl Threads<'_> {
    /// Waits for the stages from the last to the first, finishes an indexed sink, and wakes a source that
    /// still waits for input that nobody needs any more.
    fn join(self, stop: &Stop, progress: &Progress) -> Joined {
        let mut joined = Joined::default();
        for worker in self.encode {
            if let Some(encoded) = joined.outcome(Stage::Encode, worker.join()) {
                joined.encode.merge(encoded.clock);
                joined.end_to_end.merge(&encoded.end_to_end);
                joined.written = encoded.written;
            }
        }
        let mut left_early = false;
        if let Some(convolved) = joined.outcome(Stage::Engine, self.engine.join()) {
            joined.engine = convolved.clock;
            joined.device = convolved.device;
            joined.engine_remarks = convolved.remarks;
            left_early = convolved.left_early;
        }
        if let Some(sink) = self
            .unfinished
            .filter(|_| joined.halts.is_empty() && joined.encode.frames > 0)
        {
            let began = Instant::now();
            let frames = joined.encode.frames;
            let finished = guarded(Stage::Encode, stop, || {
                encode::check_count(frames, progress)?;
                Ok(sink.finish()?)
            });
            joined.encode.busy += began.elapsed();
            joined.written = joined.outcome(Stage::Encode, Ok(finished));
        }
        stop.fail();
        for worker in self.decode {
            let (accounts, result) = match worker.join() {
                Ok((accounts, result)) => (accounts, Ok(result)),
                Err(payload) => (decode::Accounts::default(), Err(payload)),
            };
            let decode::Accounts { clock, mut decoders } = accounts;
            joined.decode.merge(DecoderClock::sum_up(&decoders, clock));
            joined.decoders.append(&mut decoders);
            if left_early && joined.halts.is_empty() {
                // Everything that was wanted is written; how the source took its end does not matter.
                if let Ok(Ok(remarks)) = result {
                    joined.source_remarks.append(remarks);
                }
            } else if let Some(remarks) = joined.outcome(Stage::Decode, result) {
                joined.source_remarks.append(remarks);
            }
        }
        joined
    }
}

impl Joined {
    /// Keeps the reason why a thread ended early, or gives what it handed over.
    fn outcome<T>(&mut self, stage: Stage, joined: std::thread::Result<Result<T, Halt>>) -> Option<T> {
        let halt = match joined {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(halt)) => halt,
            Err(payload) => panicked(stage, payload.as_ref()),
        };
        self.halts.push(halt);
        None
    }
}

fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    stage: Stage,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, PipelineError> {
    Builder::new()
        .name(stage.name().to_owned())
        .spawn_scoped(scope, body)
        .map_err(|cause| PipelineError::Thread {
            stage,
            cause: thread_error(cause),
        })
}

/// Runs a stage's body; if it fails or panics, closes the gate before anything that the caller owns is
/// dropped.
fn guarded<T>(stage: Stage, stop: &Stop, body: impl FnOnce() -> Result<T, Halt>) -> Result<T, Halt> {
    let result =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(stage, payload.as_ref())));
    if result.is_err() {
        stop.fail();
    }
    result
}

fn panicked(stage: Stage, payload: &(dyn Any + Send)) -> Halt {
    let message = payload
        .downcast_ref::<&str>()
        .map(|&text| text.to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it gave no reason".to_owned());
    PipelineError::Panicked { stage, message }.into()
}

/// Passes a frame on, waiting for room. False if nobody takes frames any more though nothing failed.
fn send(output: &Sender<Frame>, frame: Frame, stop: &Stop, clock: &mut StageClock) -> Result<bool, Halt> {
    let (began, sequence) = (Instant::now(), frame.sequence);
    let sent = crossbeam_channel::select_biased! {
        recv(stop.abandoned()) -> _ => Err(Halt::Stopped),
        send(output, frame) -> sent => Ok(sent.is_ok()),
    };
    let waited = began.elapsed();
    clock.output_wait += waited;
    clock.span(Activity::QueueWait, sequence, began, waited);
    match sent {
        Ok(false) if stop.is_abandoned() => Err(Halt::Stopped),
        sent => sent,
    }
}

/// The next frame of a queue; `None` at its proper end.
fn receive(input: &Receiver<Frame>, stop: &Stop, clock: &mut StageClock) -> Result<Option<Frame>, Halt> {
    let began = Instant::now();
    let received = crossbeam_channel::select_biased! {
        recv(stop.abandoned()) -> _ => Err(Halt::Stopped),
        recv(input) -> frame => Ok(frame.ok()),
    };
    let waited = began.elapsed();
    clock.input_wait += waited;
    if let Ok(Some(frame)) = &received {
        clock.span(Activity::InputWait, frame.sequence, began, waited);
    }
    match received {
        Ok(None) if stop.is_abandoned() => Err(Halt::Stopped),
        received => received,
    }
}
