//! The engine stage: keeps the engine's depth filled, in order.

use super::error::{Halt, PipelineError};
use super::order::Reorder;
use super::stop::Stop;
use super::{Progress, send};
use crate::engine::{DeviceTimes, EXPLANATION, Engine};
use crate::frame::{Frame, FramePool};
use crate::report::{Doing, Stage, StageClock};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a gentle end waits for a source that is in the middle of a frame. A pipe that has gone silent never ends it.
const GRACE: Duration = Duration::from_secs(2);

/// Where results go.
pub(super) struct Output {
    /// The buffers that they are written to.
    pub(super) pool: FramePool,
    pub(super) frames: Sender<Frame>,
    /// The alignment of their rows, in bytes.
    pub(super) row_alignment: usize,
}

/// What the stage hands over when it ends.
pub(super) struct Convolved {
    pub(super) clock: StageClock,
    pub(super) device: Option<DeviceTimes>,
    /// True if the stage stopped taking frames before the decode stage had ended.
    pub(super) left_early: bool,
}

/// The answer to asking for a frame.
#[allow(clippy::large_enum_variant)] // It lives on the stack for one turn of the loop; a box would be an allocation a frame.
enum Next {
    Frame(Frame),
    /// Nothing is waiting now.
    Nothing,
    /// The source has given its last frame.
    End,
    /// No more frames are wanted, and the source did not end by itself in time.
    GaveUp,
}

struct Input<'a> {
    frames: &'a Receiver<Frame>,
    stop: &'a Stop,
    reorder: Reorder,
}

impl Input<'_> {
    /// The next frame in order, without waiting.
    fn poll(&mut self) -> Result<Next, Halt> {
        loop {
            if let Some(frame) = self.reorder.take() {
                return Ok(Next::Frame(frame));
            }
            match self.frames.try_recv() {
                Ok(frame) => self.reorder.put(frame),
                Err(TryRecvError::Empty) => return Ok(Next::Nothing),
                Err(TryRecvError::Disconnected) => return self.end(),
            }
        }
    }

    /// Waits for the next frame in order.
    fn wait(&mut self) -> Result<Next, Halt> {
        loop {
            match self.poll()? {
                Next::Nothing => {}
                next => return Ok(next),
            }
            if self.stop.is_ending() && !self.stop.is_abandoned() {
                match self.frames.recv_timeout(GRACE) {
                    Ok(frame) => self.reorder.put(frame),
                    Err(RecvTimeoutError::Timeout) => return Ok(Next::GaveUp),
                    Err(RecvTimeoutError::Disconnected) => return self.end(),
                }
                continue;
            }
            crossbeam_channel::select_biased! {
                recv(self.stop.abandoned()) -> _ => return Err(Halt::Stopped),
                recv(self.frames) -> frame => match frame {
                    Ok(frame) => self.reorder.put(frame),
                    Err(_) => return self.end(),
                },
                recv(self.stop.ending()) -> _ => {}
            }
        }
    }

    /// The decode stage has ended: well, or because it failed.
    fn end(&self) -> Result<Next, Halt> {
        if self.stop.is_abandoned() {
            return Err(Halt::Stopped);
        }
        match self.reorder.gap() {
            Some((expected, found)) => Err(PipelineError::Order {
                stage: Stage::Decode,
                expected,
                found,
            }
            .into()),
            None => Ok(Next::End),
        }
    }
}

/// Keeps up to `engine.depth()` frames in flight and passes them on in order. While frames are in flight it never waits for input
/// but gives back the oldest, so that a slow source delays nothing that is done.
pub(super) fn run(
    mut engine: Box<dyn Engine>,
    input: &Receiver<Frame>,
    output: &Output,
    stop: &Stop,
    progress: &Progress,
    mut clock: StageClock,
) -> Result<Convolved, Halt> {
    let mut input = Input {
        frames: input,
        stop,
        reorder: Reorder::default(),
    };
    // When each frame in flight was submitted.
    let mut flying: VecDeque<(u64, Instant)> = VecDeque::new();
    let depth = engine.depth().max(1);
    let (mut taken, mut ended, mut left_early) = (0, false, false);
    loop {
        while !ended && flying.len() < depth {
            if stop.is_abandoned() {
                return Err(Halt::Stopped);
            }
            // What was waited for belongs to the frame that the waits end with, if one comes.
            let (mut buffer_wait, mut input_wait) = (None, None);
            // The buffer first: a frame that is taken can then be submitted whatever happens.
            let buffer = match output.pool.try_take() {
                Some(buffer) => buffer,
                // Everything is further down; what is in flight here may be what the sink waits for.
                None if !flying.is_empty() => break,
                None => {
                    let began = Instant::now();
                    let buffer = output.pool.take(stop.abandoned()).map_err(|_| Halt::Stopped)?;
                    let waited = began.elapsed();
                    clock.output_wait += waited;
                    buffer_wait = Some((Doing::BufferWait, began, waited));
                    buffer
                }
            };
            let next = if flying.is_empty() {
                let began = Instant::now();
                let next = input.wait()?;
                let waited = began.elapsed();
                clock.input_wait += waited;
                input_wait = Some((Doing::InputWait, began, waited));
                next
            } else {
                input.poll()?
            };
            match next {
                Next::Frame(frame) => {
                    let sequence = frame.sequence;
                    taken += 1;
                    for (doing, began, waited) in buffer_wait.into_iter().chain(input_wait) {
                        clock.span(doing, sequence, began, waited);
                    }
                    let began = Instant::now();
                    let range = clock.range(c"submit", sequence);
                    engine
                        .submit(frame, buffer, output.row_alignment)
                        .map_err(|cause| PipelineError::Engine { sequence, cause })?;
                    drop(range);
                    for line in engine.explanation() {
                        tracing::info!(target: EXPLANATION, "{line}");
                    }
                    let busy = began.elapsed();
                    clock.busy += busy;
                    clock.span(Doing::Submit, sequence, began, busy);
                    progress.add_busy(Stage::Engine, busy);
                    flying.push_back((sequence, began));
                }
                Next::Nothing => break,
                Next::End => ended = true,
                Next::GaveUp => (ended, left_early) = (true, true),
            }
        }
        let Some((sequence, submitted)) = flying.pop_front() else {
            if ended {
                break;
            }
            continue;
        };
        let began = Instant::now();
        let range = clock.range(c"collect", sequence);
        let collected = engine
            .collect()
            .map_err(|cause| PipelineError::Engine { sequence, cause })?;
        drop(range);
        let busy = began.elapsed();
        clock.busy += busy;
        clock.span(Doing::Collect, sequence, began, busy);
        progress.add_busy(Stage::Engine, busy);
        let frame = collected.ok_or(PipelineError::FrameCount {
            decoded: taken,
            filtered: clock.frames,
            written: clock.frames,
        })?;
        if frame.sequence != sequence {
            return Err(PipelineError::Order {
                stage: Stage::Engine,
                expected: sequence,
                found: frame.sequence,
            }
            .into());
        }
        let bytes = frame.layout().picture_bytes();
        let latency = submitted.elapsed();
        if !send(&output.frames, frame, stop, &mut clock)? {
            left_early = true;
            break;
        }
        clock.frame(bytes, latency);
        progress.add_frame(Stage::Engine);
    }
    // The decode stage has counted its last frame before its end was seen here.
    let decoded = progress.frames(Stage::Decode);
    if !left_early && (decoded != taken || taken != clock.frames) {
        return Err(PipelineError::FrameCount {
            decoded,
            filtered: clock.frames,
            written: progress.frames(Stage::Encode),
        }
        .into());
    }
    let device = engine.device_times();
    Ok(Convolved {
        clock,
        device,
        left_early,
    })
}
