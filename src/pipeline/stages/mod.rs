//! The stages of a run and their threads: started from the last stage to the first, and joined.
//!
//! ```text
//! decode.rs -> queue.rs -> engine.rs -> queue.rs -> encode.rs        thread.rs: a thread of a stage
//!                          order.rs: frames of several decode threads in order
//! ```

pub(super) mod decode;
mod encode;
mod engine;
mod order;
mod queue;
pub(super) mod thread;

use super::error::{Halt, PipelineError};
use super::job::{Job, PipelineOptions};
use super::progress::Progress;
use super::stop::Stop;
use crate::engine::{DeviceTimes, Engine};
use crate::frame::{Frame, FramePool, Layout, Remarks};
use crate::report::{DecoderClock, Latencies, Stage, StageClock};
use crate::sink::{AnySink, IndexedSink, Written};
use crate::source::{AnySource, IndexedSource, Source, Supply};
use crossbeam_channel::{Receiver, Sender, bounded};
use encode::Encoded;
use engine::{EngineResult, ExpectedFrames, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;
use thread::{guarded, panicked, spawn};

/// The frame buffers of a run.
pub(super) struct Pools {
    pub(super) input: FramePool,
    pub(super) output: FramePool,
}

/// The result of a decode thread: its accounts, and the source's remarks or why it ended early.
type DecodeEnd = (decode::Accounts, Result<Remarks, Halt>);

/// A stage's threads, or why one could not be started.
type Started<T> = Result<T, PipelineError>;

/// The encode stage's threads, and an indexed sink that is to be finished when they are done.
type EncodeThreads<'scope> = (
    Vec<ScopedJoinHandle<'scope, Result<Encoded, Halt>>>,
    Option<Arc<dyn IndexedSink>>,
);

/// The running stages.
pub(super) struct Threads<'scope> {
    decode: Vec<ScopedJoinHandle<'scope, DecodeEnd>>,
    engine: ScopedJoinHandle<'scope, Result<EngineResult, Halt>>,
    encode: Vec<ScopedJoinHandle<'scope, Result<Encoded, Halt>>>,
    /// An indexed sink, to be finished when its workers are done.
    unfinished: Option<Arc<dyn IndexedSink>>,
}

/// The results of all stages.
#[derive(Default)]
pub(super) struct Joined {
    pub(super) halts: Vec<Halt>,
    pub(super) decode: StageClock,
    pub(super) decoders: Vec<DecoderClock>,
    pub(super) engine: StageClock,
    pub(super) encode: StageClock,
    pub(super) device: Option<DeviceTimes>,
    pub(super) end_to_end: Latencies,
    pub(super) written: Option<Written>,
    pub(super) source_remarks: Remarks,
    pub(super) engine_remarks: Remarks,
}

/// Starts the threads of all stages.
pub(super) fn start<'scope, 'env: 'scope>(
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
    let output = Output {
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
        // The source reports an impossible geometry.
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
        output: Output,
        strict: bool,
    ) -> Started<ScopedJoinHandle<'scope, Result<EngineResult, Halt>>> {
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
                let mut result = engine::run(engine, expected, &to_engine, &output, stop, progress, clock)?;
                result.remarks = decode::accepted(result.remarks, strict)?;
                Ok(result)
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
        match source {
            AnySource::Stream(source) => Ok(vec![self.decode_stream(source, options, supply, decoded)?]),
            AnySource::Indexed(source) => self.decode_indexed(&source, options, supply, &decoded),
        }
    }

    /// The one thread that reads a stream.
    fn decode_stream(
        &self,
        source: Box<dyn Source>,
        options: &PipelineOptions,
        supply: &Supply,
        decoded: Sender<Frame>,
    ) -> Started<ScopedJoinHandle<'scope, DecodeEnd>> {
        let &Starter {
            scope,
            stop,
            progress,
            ..
        } = self;
        let (strict, supply) = (options.strict, supply.clone());
        let mut accounts = decode::Accounts::of(source.as_ref(), &self.blank);
        progress.set_workers(Stage::Decode, accounts.decoders.len().max(1));
        spawn(scope, Stage::Decode, move || {
            let result = guarded(Stage::Decode, stop, || {
                decode::stream(source, &supply, &decoded, stop, progress, &mut accounts)
                    .and_then(|remarks| decode::accepted(remarks, strict))
            });
            (accounts, result)
        })
    }

    /// The threads that read an indexed source, no more than it has frames.
    fn decode_indexed(
        &self,
        source: &Arc<dyn IndexedSource>,
        options: &PipelineOptions,
        supply: &Supply,
        decoded: &Sender<Frame>,
    ) -> Started<Vec<ScopedJoinHandle<'scope, DecodeEnd>>> {
        let &Starter {
            scope,
            stop,
            progress,
            ..
        } = self;
        let strict = options.strict;
        let most = usize::try_from(source.len()).unwrap_or(usize::MAX);
        let workers = options.readers(source.info()).min(most.max(1));
        progress.set_workers(Stage::Decode, workers);
        let next = Arc::new(AtomicU64::new(0));
        let reading = Arc::new(AtomicUsize::new(workers));
        let mut threads = Vec::new();
        for _ in 0..workers {
            let (source, supply, decoded) = (source.clone(), supply.clone(), decoded.clone());
            let (next, reading, mut clock) = (next.clone(), reading.clone(), self.blank.clone());
            threads.push(spawn(scope, Stage::Decode, move || {
                let result = guarded(Stage::Decode, stop, || {
                    let source = source.as_ref();
                    decode::indexed(source, &next, &supply, &decoded, stop, progress, &mut clock)?;
                    // The last worker to end returns the remarks for all.
                    match reading.fetch_sub(1, Ordering::AcqRel) {
                        1 => decode::accepted(source.remarks(), strict),
                        _ => Ok(Remarks::default()),
                    }
                });
                let accounts = decode::Accounts {
                    clock,
                    ..decode::Accounts::default()
                };
                (accounts, result)
            })?);
        }
        Ok(threads)
    }
}

impl Threads<'_> {
    /// Waits for the stages from the last to the first, finishes an indexed sink, and wakes a source that
    /// still waits for input although no more frames are needed.
    pub(super) fn join(self, stop: &Stop, progress: &Progress) -> Joined {
        let mut joined = Joined::default();
        for worker in self.encode {
            if let Some(encoded) = joined.outcome(Stage::Encode, worker.join()) {
                joined.encode.merge(encoded.clock);
                joined.end_to_end.merge(&encoded.end_to_end);
                joined.written = encoded.written;
            }
        }
        let mut left_early = false;
        if let Some(result) = joined.outcome(Stage::Engine, self.engine.join()) {
            joined.engine = result.clock;
            joined.device = result.device;
            joined.engine_remarks = result.remarks;
            left_early = result.left_early;
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
                // Everything that was wanted is written; an error of the source that came later does not
                // matter.
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
    /// Gives a thread's result, or keeps the reason why it ended early.
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
