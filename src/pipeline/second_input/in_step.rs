//! Reads two sources in step, each on a thread of its own, and writes a picture of each pair to a sink.
//!
//! ```text
//!  thread of A -> queue ─┐
//!                        ├─> visit -> sink         on the caller's thread
//!  thread of B -> queue ─┘
//! ```
//!
//! A thread reads one frame ahead at most, so that memory does not grow with the inputs' length.

use crate::frame::{Frame, FramePool, Pageable, Remarks};
use crate::pipeline::error::{Halt, PipelineError, first_cause};
use crate::pipeline::progress::Progress;
use crate::pipeline::stages::decode::{self, accepted};
use crate::pipeline::stages::thread::{guarded, panicked, spawn};
use crate::pipeline::stop::Stop;
use crate::report::Stage;
use crate::sink::{AnySink, Flow, SinkError, Written};
use crate::source::{AnySource, Source, Supply};
use crossbeam_channel::{Receiver, bounded, select_biased};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Frames of one source that may wait for the other.
const AHEAD: usize = 1;

/// `Continue` goes on to the next pair, with an optional picture for the sink; `Break` stops early.
pub type Verdict = ControlFlow<(), Option<Frame>>;

/// The result of reading two sources.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct InStep {
    /// Remarks of the first source and of the second.
    pub remarks: [Remarks; 2],
    /// What the sink reports; `None` without a sink, or if nothing was written.
    pub written: Option<Written>,
}

/// Reads `sources` in step and shows each pair to `visit`, until both end. Where one ends before the other,
/// `visit` is called once more, with `None` in its place. A frame's `sequence` counts from 0.
///
/// `strict` makes a source's warnings an error. After [`Stop::finish`] no further pair is shown, and the
/// output is finished; on an error nothing is left under the output's name. `progress` counts frames of the
/// first source as decoded, and pairs as encoded.
pub fn in_step(
    sources: [AnySource; 2],
    sink: Option<AnySink>,
    strict: bool,
    stop: &Stop,
    progress: &Progress,
    mut visit: impl FnMut(Option<&Frame>, Option<&Frame>) -> Result<Verdict, SinkError>,
) -> Result<InStep, PipelineError> {
    let inputs = sources.each_ref().map(|source| source.info().description.clone());
    let blank = Progress::new();
    let (halts, result) = std::thread::scope(|scope| {
        let (mut queues, mut threads, mut halts) = (Vec::new(), Vec::new(), Vec::new());
        for (source, progress) in sources.into_iter().zip([progress, &blank]) {
            let source = source.in_order();
            let supply = supply(source.as_ref(), stop);
            let (sender, frames) = bounded(AHEAD);
            queues.push(frames);
            // The queue is closed after the gate: `sender` outlives the guard.
            let started = spawn(scope, Stage::Decode, move || {
                guarded(Stage::Decode, stop, || {
                    let mut accounts = decode::Accounts::default();
                    decode::stream(source, &supply, &sender, stop, progress, &mut accounts)
                        .and_then(|remarks| accepted(remarks, strict))
                })
            });
            match started {
                Ok(thread) => threads.push(thread),
                Err(error) => halts.push(error.into()),
            }
        }
        let mut pairs = Pairs {
            inputs,
            output: sink.map(|sink| Output::new(sink, stop)),
            stop,
            progress,
        };
        let written = match (halts.is_empty(), &queues[..]) {
            (true, [a, b]) => guarded(Stage::Encode, stop, || pairs.read(a, b, &mut visit)),
            _ => Err(Halt::Stopped),
        };
        // Wakes a source that waits for room or input; no more frames are needed.
        stop.fail();
        let mut result = InStep::default();
        for (thread, remarks) in threads.into_iter().zip(&mut result.remarks) {
            let ended = thread.join();
            match ended.unwrap_or_else(|payload| Err(panicked(Stage::Decode, payload.as_ref()))) {
                Ok(of_source) => *remarks = of_source,
                // Once all is done only warnings of a source matter, not that it was woken.
                Err(halt) if written.is_err() || halt.is_strict() => halts.push(halt),
                Err(_) => {}
            }
        }
        match written {
            Ok(written) => result.written = written,
            Err(halt) => halts.push(halt),
        }
        (halts, result)
    });
    match first_cause(halts, stop.is_abandon_asked()) {
        Some(error) => Err(error),
        None => Ok(result),
    }
}

/// Buffers for one source: one that it fills, those that it keeps, those in the queue, and one being
/// compared.
fn supply(source: &dyn Source, stop: &Stop) -> Supply {
    Supply {
        pool: FramePool::new(2 + AHEAD + source.held_buffers(), Arc::new(Pageable)),
        stop: stop.abandoned().clone(),
    }
}

/// Reads both sources' queues, on the caller's thread.
struct Pairs<'a> {
    /// The sources' descriptions.
    inputs: [String; 2],
    output: Option<Output>,
    stop: &'a Stop,
    progress: &'a Progress,
}

impl Pairs<'_> {
    fn read(
        &mut self,
        a: &Receiver<Frame>,
        b: &Receiver<Frame>,
        visit: &mut impl FnMut(Option<&Frame>, Option<&Frame>) -> Result<Verdict, SinkError>,
    ) -> Result<Option<Written>, Halt> {
        loop {
            let one = self.next(a)?;
            let other = self.next(b)?;
            // After an interruption a missing frame does not mean that this source ended first.
            if self.stop.is_finish_asked() {
                break;
            }
            if self.progress.frames(Stage::Encode) == 0 {
                let frames = [&one, &other].into_iter().zip(&self.inputs);
                if let Some((_, input)) = frames.into_iter().find(|(frame, _)| frame.is_none()) {
                    let input = input.clone();
                    return Err(PipelineError::NoFrames { input }.into());
                }
            }
            if one.is_none() && other.is_none() {
                break;
            }
            let Verdict::Continue(picture) = visit(one.as_ref(), other.as_ref())? else {
                break;
            };
            if one.is_none() || other.is_none() {
                break;
            }
            if let (Some(output), Some(picture)) = (&mut self.output, picture) {
                output.write(picture)?;
            }
            self.progress
                .add_taken(one.as_ref().and_then(|frame| frame.metadata.pts));
        }
        self.output.take().map_or(Ok(None), Output::finish)
    }

    /// The next frame of a queue; `None` at its proper end, and after [`Stop::finish`], which does not wait
    /// for a silent pipe.
    fn next(&self, queue: &Receiver<Frame>) -> Result<Option<Frame>, Halt> {
        let frame = select_biased! {
            recv(self.stop.abandoned()) -> _ => None,
            recv(self.stop.ending()) -> _ => None,
            recv(queue) -> frame => frame.ok(),
        };
        match frame {
            None if self.stop.is_abandoned() => Err(Halt::Stopped),
            frame => Ok(frame),
        }
    }
}

/// The sink and its state.
struct Output {
    sink: AnySink,
    has_frames: bool,
    /// The output's reader has gone.
    is_closed: bool,
}

impl Output {
    fn new(mut sink: AnySink, stop: &Stop) -> Output {
        if let AnySink::Stream(sink) = &mut sink {
            sink.watch(stop.abandoned());
        }
        Output {
            sink,
            has_frames: false,
            is_closed: false,
        }
    }

    fn write(&mut self, picture: Frame) -> Result<(), Halt> {
        if self.is_closed {
            return Ok(());
        }
        match &mut self.sink {
            AnySink::Stream(sink) => self.is_closed = sink.write(picture)? == Flow::Closed,
            AnySink::Indexed(sink) => sink.write(picture)?,
        }
        self.has_frames = true;
        Ok(())
    }

    /// Finishes an output of at least one frame; an empty one is dropped.
    fn finish(self) -> Result<Option<Written>, Halt> {
        if !self.has_frames {
            return Ok(None);
        }
        Ok(Some(match self.sink {
            AnySink::Stream(sink) => sink.finish()?,
            AnySink::Indexed(sink) => sink.finish()?,
        }))
    }
}
