//! The engine stage: keeps the engine's depth filled, in order.

use super::order::Reorder;
use super::queue::send;
use crate::engine::{DeviceTimes, Engine};
use crate::explain::EXPLAIN_TARGET;
use crate::frame::{Buffer, Colour, Frame, FramePool, Layout, Remarks};
use crate::pipeline::error::{Halt, PipelineError};
use crate::pipeline::progress::Progress;
use crate::pipeline::stop::Stop;
use crate::report::{Activity, Stage, StageClock};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How long a graceful stop waits for the source's current frame. A silent pipe would never deliver it.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The way out of the stage.
pub(super) struct Output {
    /// The buffers that results are written to.
    pub(super) pool: FramePool,
    pub(super) frames: Sender<Frame>,
    /// The alignment of the results' rows, in bytes.
    pub(super) row_alignment: usize,
}

/// The source's frames, as far as it knows them before the first one.
pub(super) struct ExpectedFrames {
    /// Size and format.
    pub(super) layout: Layout,
    pub(super) colour: Colour,
    /// Their number, if it is known.
    pub(super) frames: Option<u64>,
}

impl ExpectedFrames {
    /// Prepares the engine, and memory for the first results, while the source still reads its first frame.
    /// An engine that refuses these frames reports it when the first one is submitted.
    fn prepare(&self, engine: &mut dyn Engine, output: &Output) -> Result<(), PipelineError> {
        engine.expect(&self.layout, &self.colour);
        let (format, width, height) = (self.layout.format(), self.layout.width(), self.layout.height());
        let (width, height) = engine.output_size(format, width, height);
        let Ok(result) = Layout::new(format, width, height, output.row_alignment.max(1)) else {
            return Ok(());
        };
        let frames = usize::try_from(self.frames.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let soon = frames.min(engine.depth().max(1));
        // All are held until the last is taken, so that the pool hands out different ones.
        let mut buffers: Vec<Buffer> = std::iter::from_fn(|| output.pool.try_take()).take(soon).collect();
        Ok(buffers
            .iter_mut()
            .try_for_each(|buffer| buffer.fit(result.size()))?)
    }
}

/// What the stage returns.
pub(super) struct EngineResult {
    pub(super) clock: StageClock,
    pub(super) device: Option<DeviceTimes>,
    pub(super) remarks: Remarks,
    /// True if the stage stopped taking frames before the decode stage had ended.
    pub(super) left_early: bool,
}

/// The answer to asking for a frame.
// It lives on the stack for one turn of the loop; a box would be an allocation a frame.
#[allow(clippy::large_enum_variant)]
enum Next {
    Frame(Frame),
    /// Nothing is waiting now.
    Nothing,
    /// The source has delivered its last frame.
    End,
    /// A graceful stop, and the source did not deliver its current frame in [`STOP_GRACE`].
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
                match self.frames.recv_timeout(STOP_GRACE) {
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

    /// The queue is closed: the source is at its end, or the decode stage has failed.
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

/// Keeps up to `engine.depth()` frames in flight and passes results on in order. While frames are in flight
/// it collects the oldest instead of waiting for input, so that a slow source delays no result.
pub(super) fn run(
    mut engine: Box<dyn Engine>,
    expected: Option<ExpectedFrames>,
    input: &Receiver<Frame>,
    output: &Output,
    stop: &Stop,
    progress: &Progress,
    clock: StageClock,
) -> Result<EngineResult, Halt> {
    if let Some(expected) = expected {
        expected.prepare(engine.as_mut(), output)?;
    }
    let mut running = Running {
        input: Input {
            frames: input,
            stop,
            reorder: Reorder::default(),
        },
        engine,
        output,
        stop,
        progress,
        clock,
        flying: VecDeque::new(),
        taken: 0,
        ended: false,
        left_early: false,
    };
    loop {
        running.submit_frames()?;
        let Some((sequence, submitted)) = running.flying.pop_front() else {
            if running.ended {
                break;
            }
            continue;
        };
        let frame = running.collect(sequence)?;
        if !running.pass_on(frame, submitted.elapsed())? {
            running.left_early = true;
            break;
        }
    }
    running.finish()
}

/// The stage while it runs.
struct Running<'a> {
    engine: Box<dyn Engine>,
    input: Input<'a>,
    output: &'a Output,
    stop: &'a Stop,
    progress: &'a Progress,
    clock: StageClock,
    /// The frames in flight: number, and when each was submitted.
    flying: VecDeque<(u64, Instant)>,
    taken: u64,
    ended: bool,
    left_early: bool,
}

impl Running<'_> {
    /// Submits frames until the engine is full or no frame is waiting.
    fn submit_frames(&mut self) -> Result<(), Halt> {
        let depth = self.engine.depth().max(1);
        while !self.ended && self.flying.len() < depth {
            if self.stop.is_abandoned() {
                return Err(Halt::Stopped);
            }
            // Waits are recorded for the frame that ends them.
            let (mut buffer_wait, mut input_wait) = (None, None);
            // The buffer first, so that a frame that is taken can always be submitted.
            let buffer = match self.output.pool.try_take() {
                Some(buffer) => buffer,
                // The sink holds all others, and may wait for a frame that is in flight here.
                None if !self.flying.is_empty() => break,
                None => {
                    let began = Instant::now();
                    let pool = &self.output.pool;
                    let buffer = pool.take(self.stop.abandoned()).map_err(|_| Halt::Stopped)?;
                    let waited = began.elapsed();
                    self.clock.output_wait += waited;
                    buffer_wait = Some((Activity::BufferWait, began, waited));
                    buffer
                }
            };
            let next = if self.flying.is_empty() {
                let began = Instant::now();
                let next = self.input.wait()?;
                let waited = began.elapsed();
                self.clock.input_wait += waited;
                input_wait = Some((Activity::InputWait, began, waited));
                next
            } else {
                self.input.poll()?
            };
            match next {
                Next::Frame(frame) => {
                    self.taken += 1;
                    for (activity, began, waited) in buffer_wait.into_iter().chain(input_wait) {
                        self.clock.span(activity, frame.sequence, began, waited);
                    }
                    self.submit(frame, buffer)?;
                }
                Next::Nothing => break,
                Next::End => self.ended = true,
                Next::GaveUp => (self.ended, self.left_early) = (true, true),
            }
        }
        Ok(())
    }

    fn submit(&mut self, frame: Frame, buffer: Buffer) -> Result<(), Halt> {
        let sequence = frame.sequence;
        let began = Instant::now();
        let range = self.clock.range(c"submit", sequence);
        self.engine
            .submit(frame, buffer, self.output.row_alignment)
            .map_err(|cause| PipelineError::Engine { sequence, cause })?;
        drop(range);
        for line in self.engine.explanation() {
            tracing::info!(target: EXPLAIN_TARGET, "{line}");
        }
        let busy = began.elapsed();
        self.clock.busy += busy;
        self.clock.span(Activity::Submit, sequence, began, busy);
        self.progress.add_busy(Stage::Engine, busy);
        self.flying.push_back((sequence, began));
        Ok(())
    }

    /// The oldest frame in flight, whose number is `sequence`.
    fn collect(&mut self, sequence: u64) -> Result<Frame, Halt> {
        let began = Instant::now();
        let range = self.clock.range(c"collect", sequence);
        let collected = self
            .engine
            .collect()
            .map_err(|cause| PipelineError::Engine { sequence, cause })?;
        drop(range);
        let busy = began.elapsed();
        self.clock.busy += busy;
        self.clock.span(Activity::Collect, sequence, began, busy);
        self.progress.add_busy(Stage::Engine, busy);
        let frame = collected.ok_or(PipelineError::FrameCount {
            decoded: self.taken,
            filtered: self.clock.frames,
            written: self.clock.frames,
        })?;
        if frame.sequence != sequence {
            return Err(PipelineError::Order {
                stage: Stage::Engine,
                expected: sequence,
                found: frame.sequence,
            }
            .into());
        }
        Ok(frame)
    }

    /// Sends a result to the encode stage. False if that stage takes no more frames.
    fn pass_on(&mut self, frame: Frame, latency: Duration) -> Result<bool, Halt> {
        let bytes = frame.layout().picture_bytes();
        if !send(&self.output.frames, frame, self.stop, &mut self.clock)? {
            return Ok(false);
        }
        self.clock.frame(bytes, latency);
        self.progress.add_frame(Stage::Engine);
        Ok(true)
    }

    fn finish(mut self) -> Result<EngineResult, Halt> {
        // The decode stage counts its last frame before it closes the queue.
        let decoded = self.progress.frames(Stage::Decode);
        if !self.left_early && (decoded != self.taken || self.taken != self.clock.frames) {
            return Err(PipelineError::FrameCount {
                decoded,
                filtered: self.clock.frames,
                written: self.progress.frames(Stage::Encode),
            }
            .into());
        }
        let whole = !self.left_early && !self.stop.is_ending();
        Ok(EngineResult {
            device: self.engine.device_times(),
            remarks: self.engine.remarks(whole),
            clock: self.clock,
            left_early: self.left_early,
        })
    }
}
