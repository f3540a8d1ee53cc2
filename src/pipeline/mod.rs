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
//! queue. A stage that fails closes first a gate that all others watch ([`Stop`]), and then its queues. A
//! queue that closes while the gate is open is therefore a proper end, and a sink is never finished after a
//! failure. A panic inside a stage is a failure like any other.
//!
//! `job` holds a run's parts and options, `budget` counts the buffers, `stages` has the threads, and
//! `second_input` reads mattes, or another input in step.

mod budget;
mod error;
mod job;
mod progress;
mod second_input;
mod stages;
mod stop;
#[cfg(test)]
mod tests;

pub use budget::Budget;
pub use error::PipelineError;
pub use job::{Job, Outcome, PipelineOptions};
pub use progress::Progress;
pub use second_input::{InStep, MatteReader, Verdict, in_step};
pub use stop::Stop;

use crate::explain::EXPLAIN_TARGET;
use crate::frame::FramePool;
use crate::report::{Completion, DecoderReport, Measurements, PoolMemory};
use error::first_cause;
use stages::{Joined, Pools, start};
use std::time::Instant;

/// Runs a job to its end on threads of its own, and returns when the last of them has ended. `stop` and
/// `progress` are for this one run. On an error nothing is left under the output's name.
pub fn run(job: Job, stop: &Stop, progress: &Progress) -> Result<Outcome, PipelineError> {
    job.source.prepare().map_err(PipelineError::Source)?;
    let began = Instant::now();
    let budget = job.budget();
    let input = job.source.info().description.clone();
    let pools = Pools {
        input: FramePool::new(budget.input_buffers, job.engine.input_allocator()),
        output: FramePool::new(budget.output_buffers, job.engine.output_allocator()),
    };
    let joined = std::thread::scope(|scope| {
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
    } = joined;
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
