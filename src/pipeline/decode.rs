//! The decode stage: numbers the frames and passes them on.

use super::error::{Halt, PipelineError};
use super::stop::Stop;
use super::{Progress, send};
use crate::frame::{Frame, Remarks};
use crate::report::{Doing, Stage, StageClock};
use crate::source::{IndexedSource, Source, Supply};
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Reads a source in order, until it or the run ends, and gives back its remarks. The clock is the caller's,
/// because it counts also when the source is woken from a wait at the run's end.
pub(super) fn stream(
    mut source: Box<dyn Source>,
    supply: &Supply,
    output: &Sender<Frame>,
    stop: &Stop,
    progress: &Progress,
    clock: &mut StageClock,
) -> Result<Remarks, Halt> {
    while !stop.is_ending() {
        let began = Instant::now();
        let waited = supply.pool.waited();
        let range = clock.range(c"decode", clock.frames);
        let next = source.next(supply)?;
        drop(range);
        // The source takes its buffer inside `next`; that wait is not work.
        let waited = supply.pool.waited() - waited;
        let elapsed = began.elapsed();
        let busy = elapsed.saturating_sub(waited);
        clock.output_wait += waited;
        clock.busy += busy;
        progress.add_busy(Stage::Decode, busy);
        let Some(mut frame) = next else {
            stop.input_ended();
            break;
        };
        frame.sequence = clock.frames;
        // When exactly the source waited inside the call is not known, so that the wait is drawn at the
        // call's beginning.
        let worked_from = began + elapsed.saturating_sub(busy);
        clock.span(
            Doing::BufferWait,
            frame.sequence,
            began,
            elapsed.saturating_sub(busy),
        );
        clock.span(Doing::Work, frame.sequence, worked_from, busy);
        let bytes = frame.layout().picture_bytes();
        if !send(output, frame, stop, clock)? {
            break;
        }
        clock.frame(bytes, busy);
        progress.add_frame(Stage::Decode);
    }
    Ok(source.remarks())
}

/// The remarks, or an error if the run is strict and there are warnings among them.
pub(super) fn accepted(remarks: Remarks, strict: bool) -> Result<Remarks, Halt> {
    match remarks.refusal() {
        Some(problem) if strict => Err(PipelineError::Strict { problem }.into()),
        _ => Ok(remarks),
    }
}

/// One of several workers that read an indexed source. `next` is the next index to read, shared by all of
/// them.
pub(super) fn indexed(
    source: &dyn IndexedSource,
    next: &AtomicU64,
    supply: &Supply,
    output: &Sender<Frame>,
    stop: &Stop,
    progress: &Progress,
    clock: &mut StageClock,
) -> Result<(), Halt> {
    let len = source.len();
    while !stop.is_ending() {
        // The buffer comes first and the index second: so whoever has the lowest index also has a buffer for
        // it, and the engine, which waits for just that frame while others fill the pool, always gets it.
        let began = Instant::now();
        let buffer = supply.take().map_err(|_| Halt::Stopped)?;
        let waited = began.elapsed();
        clock.output_wait += waited;
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= len {
            stop.input_ended();
            break;
        }
        clock.span(Doing::BufferWait, index, began, waited);
        let began = Instant::now();
        let range = clock.range(c"decode", index);
        let mut frame = source.read(index, buffer)?;
        drop(range);
        let busy = began.elapsed();
        clock.busy += busy;
        clock.span(Doing::Work, index, began, busy);
        progress.add_busy(Stage::Decode, busy);
        frame.sequence = index;
        let bytes = frame.layout().picture_bytes();
        if !send(output, frame, stop, clock)? {
            break;
        }
        clock.frame(bytes, busy);
        progress.add_frame(Stage::Decode);
    }
    Ok(())
}
