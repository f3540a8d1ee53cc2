//! The encode stage: hands frames to the sink and finishes it.

use super::queue::receive;
use crate::frame::Frame;
use crate::pipeline::error::{Halt, PipelineError};
use crate::pipeline::progress::Progress;
use crate::pipeline::stop::Stop;
use crate::report::{Activity, Latencies, Stage, StageClock};
use crate::sink::{Flow, IndexedSink, Sink, Written};
use crossbeam_channel::Receiver;
use std::time::Instant;

/// The result of one worker.
pub(super) struct Encoded {
    pub(super) clock: StageClock,
    pub(super) end_to_end: Latencies,
    /// What a stream sink reports; an indexed sink reports when all workers are done.
    pub(super) written: Option<Written>,
}

/// Writes frames in order, and finishes the sink unless the run has failed. A sink that is dropped unfinished
/// removes its output.
pub(super) fn stream(
    mut sink: Box<dyn Sink>,
    input: Receiver<Frame>,
    stop: &Stop,
    progress: &Progress,
    mut clock: StageClock,
) -> Result<Encoded, Halt> {
    let mut end_to_end = Latencies::default();
    sink.watch(stop.abandoned());
    while let Some(frame) = receive(&input, stop, &mut clock)? {
        if frame.sequence != clock.frames {
            return Err(PipelineError::Order {
                stage: Stage::Engine,
                expected: clock.frames,
                found: frame.sequence,
            }
            .into());
        }
        let (sequence, bytes, born) = (frame.sequence, frame.layout().picture_bytes(), frame.born);
        let pts = frame.metadata.pts;
        let began = Instant::now();
        let range = clock.range(c"encode", sequence);
        let flow = sink.write(frame)?;
        drop(range);
        let busy = began.elapsed();
        clock.busy += busy;
        clock.span(Activity::Work, sequence, began, busy);
        progress.add_busy(Stage::Encode, busy);
        if flow == Flow::Closed {
            stop.reader_gone();
            break;
        }
        clock.frame(bytes, busy);
        end_to_end.record(born.elapsed());
        progress.set_delayed(sink.delayed_frames());
        progress.set_bytes(sink.bytes());
        progress.add_taken(pts);
    }
    // The engine stage must not wait for room while the sink is finished.
    drop(input);
    if !stop.is_reader_gone() {
        check_count(clock.frames, progress)?;
        if clock.frames == 0 {
            // An output without frames is discarded.
            return Ok(Encoded {
                clock,
                end_to_end,
                written: None,
            });
        }
    }
    let began = Instant::now();
    let written = sink.finish()?;
    if written.closed_early {
        // Some sinks hold much back until the end.
        stop.reader_gone();
    }
    // With what was held back until the end, and the container's index.
    progress.set_bytes(written.bytes);
    clock.busy += began.elapsed();
    Ok(Encoded {
        clock,
        end_to_end,
        written: Some(written),
    })
}

/// One of several workers that write to an indexed sink.
pub(super) fn indexed(
    sink: &dyn IndexedSink,
    input: &Receiver<Frame>,
    stop: &Stop,
    progress: &Progress,
    mut clock: StageClock,
) -> Result<Encoded, Halt> {
    let mut end_to_end = Latencies::default();
    while let Some(frame) = receive(input, stop, &mut clock)? {
        let (sequence, bytes, born) = (frame.sequence, frame.layout().picture_bytes(), frame.born);
        let pts = frame.metadata.pts;
        let began = Instant::now();
        let range = clock.range(c"encode", sequence);
        sink.write(frame)?;
        drop(range);
        let busy = began.elapsed();
        clock.busy += busy;
        clock.span(Activity::Work, sequence, began, busy);
        progress.add_busy(Stage::Encode, busy);
        clock.frame(bytes, busy);
        end_to_end.record(born.elapsed());
        progress.set_bytes(sink.bytes());
        progress.add_taken(pts);
    }
    Ok(Encoded {
        clock,
        end_to_end,
        written: None,
    })
}

/// Compares the number of frames written with the number that the engine returned; called before a sink is
/// finished.
pub(super) fn check_count(written: u64, progress: &Progress) -> Result<(), PipelineError> {
    let filtered = progress.frames(Stage::Engine);
    if written == filtered {
        return Ok(());
    }
    Err(PipelineError::FrameCount {
        decoded: progress.frames(Stage::Decode),
        filtered,
        written,
    })
}
