//! The decode stage: numbers the frames and passes them on.

use super::queue::send;
use crate::frame::{Frame, Remarks};
use crate::pipeline::error::{Halt, PipelineError};
use crate::pipeline::progress::Progress;
use crate::pipeline::stop::Stop;
use crate::report::{Activity, DecoderClock, Stage, StageClock};
use crate::source::{IndexedSource, Source, Supply};
use crossbeam_channel::Sender;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The times of a decode thread, and of each decoder if the source has several.
#[derive(Default)]
pub(in crate::pipeline) struct Accounts {
    pub(super) clock: StageClock,
    pub(super) decoders: Vec<DecoderClock>,
}

impl Accounts {
    /// The accounts of a thread that reads `source`; `blank` is the initial state of each clock.
    pub(super) fn of(source: &dyn Source, blank: &StageClock) -> Accounts {
        let places = source.info().decoders.iter();
        let decoders = places.map(|place| DecoderClock {
            place: place.clone(),
            clock: blank.clone(),
        });
        Accounts {
            clock: blank.clone(),
            decoders: decoders.collect(),
        }
    }

    /// Counts the call that began at `began` and gave `frame`: first the source waited for a buffer
    /// (`waited`), then it decoded, or waited for a decoder (`took`). Returns the time of decoding.
    fn count(&mut self, frame: &Frame, began: Instant, waited: Duration, took: Duration) -> Duration {
        let sequence = frame.sequence;
        // The source waited at some time inside the call; the wait is drawn at its beginning.
        let clock = &mut self.clock;
        clock.output_wait += waited;
        clock.span(Activity::BufferWait, sequence, began, waited);
        let decoded = frame.decoded.as_ref();
        match decoded.and_then(|decoded| Some((decoded, self.decoders.get_mut(decoded.decoder)?))) {
            Some((decoded, decoder)) => {
                clock.input_wait += took;
                clock.span(Activity::InputWait, sequence, began + waited, took);
                decoder.count(sequence, frame.layout().picture_bytes(), decoded);
                decoded.busy
            }
            None => {
                clock.busy += took;
                clock.span(Activity::Work, sequence, began + waited, took);
                took
            }
        }
    }

    /// Counts the last call, which found the end of the input.
    fn end(&mut self, waited: Duration, took: Duration) {
        self.clock.output_wait += waited;
        match self.decoders.is_empty() {
            true => self.clock.busy += took,
            false => self.clock.input_wait += took,
        }
    }
}

/// Reads a source in order until it or the run ends, and returns its remarks. The accounts belong to the
/// caller, which needs them even if a wait is cut short by the end of the run.
pub(in crate::pipeline) fn stream(
    mut source: Box<dyn Source>,
    supply: &Supply,
    output: &Sender<Frame>,
    stop: &Stop,
    progress: &Progress,
    accounts: &mut Accounts,
) -> Result<Remarks, Halt> {
    while !stop.is_ending() {
        let began = Instant::now();
        let waited = supply.pool.waited();
        let range = accounts.clock.range(c"decode", accounts.clock.frames);
        let next = source.next(supply)?;
        drop(range);
        // The source takes its buffer inside `next`; that wait is not work.
        let waited = supply.pool.waited() - waited;
        let elapsed = began.elapsed();
        let waited = waited.min(elapsed);
        let Some(mut frame) = next else {
            accounts.end(waited, elapsed - waited);
            stop.input_ended();
            break;
        };
        frame.sequence = accounts.clock.frames;
        let busy = accounts.count(&frame, began, waited, elapsed - waited);
        progress.add_busy(Stage::Decode, busy);
        let bytes = frame.layout().picture_bytes();
        if !send(output, frame, stop, &mut accounts.clock)? {
            break;
        }
        accounts.clock.frame(bytes, busy);
        progress.add_frame(Stage::Decode);
    }
    Ok(source.remarks())
}

/// The remarks, or an error if the run is strict and there are warnings among them.
pub(in crate::pipeline) fn accepted(remarks: Remarks, strict: bool) -> Result<Remarks, Halt> {
    match remarks.refusal() {
        Some(problem) if strict => Err(PipelineError::Strict { problem }.into()),
        _ => Ok(remarks),
    }
}

/// One of several workers that read an indexed source. They share `next`, the next index to read.
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
        // The buffer first and the index second, so that the worker with the lowest index always has a
        // buffer. Otherwise later frames could fill the pool while the engine waits for that one.
        let began = Instant::now();
        let buffer = supply.take().map_err(|_| Halt::Stopped)?;
        let waited = began.elapsed();
        clock.output_wait += waited;
        let index = next.fetch_add(1, Ordering::Relaxed);
        if index >= len {
            stop.input_ended();
            break;
        }
        clock.span(Activity::BufferWait, index, began, waited);
        let began = Instant::now();
        let range = clock.range(c"decode", index);
        let mut frame = source.read(index, buffer)?;
        drop(range);
        let busy = began.elapsed();
        clock.busy += busy;
        clock.span(Activity::Work, index, began, busy);
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
