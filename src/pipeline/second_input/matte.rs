//! Reads mattes ahead of the engine that mixes by them, on a thread of their own.

use crate::engine::region::MatteFrames;
use crate::frame::fact::Fact;
use crate::frame::{Frame, FramePool, Pageable, Remarks, SideData};
use crate::pipeline::error::Halt;
use crate::pipeline::progress::Progress;
use crate::pipeline::stages::decode;
use crate::pipeline::stages::thread::guarded;
use crate::pipeline::stop::Stop;
use crate::report::Stage;
use crate::shortage::thread_error;
use crate::source::range::{self, Point, TimeRange};
use crate::source::{AnySource, Supply};
use crossbeam_channel::{Receiver, bounded};
use std::error::Error;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

/// Mattes that may be read ahead of their frames.
const AHEAD: usize = 2;

/// The frames of a source as mattes. Reading starts when the first matte is asked for.
pub struct MatteReader {
    name: String,
    source: Option<AnySource>,
    /// How its stream is shown, which frames leave to it.
    rotation: Option<SideData>,
    stop: Stop,
    frames: Option<Receiver<Frame>>,
    thread: Option<JoinHandle<Result<Remarks, Halt>>>,
    remarks: Remarks,
}

impl MatteReader {
    /// Reads `source`; errors name it `name`. Reading ends when `stop` ends the run at once, or when the
    /// reader is dropped.
    pub fn new(source: AnySource, name: String, stop: Stop) -> MatteReader {
        let mut blocks = source.info().side_data.iter();
        MatteReader {
            name,
            rotation: blocks.find(|block| block.fact == Fact::Rotation).cloned(),
            source: Some(source),
            stop,
            frames: None,
            thread: None,
            remarks: Remarks::default(),
        }
    }

    /// The same with a note about the mattes.
    pub fn noting(mut self, note: String) -> MatteReader {
        self.remarks.notes.push(note);
        self
    }

    /// Starts the thread.
    fn start(&mut self, source: AnySource) -> std::io::Result<()> {
        let source = source.in_order();
        let supply = Supply {
            // One is filled, one is used, and `AHEAD` wait.
            pool: FramePool::new(2 + AHEAD + source.held_buffers(), Arc::new(Pageable)),
            stop: self.stop.abandoned().clone(),
        };
        let (sender, frames) = bounded(AHEAD);
        // A gate of its own: the end of the mattes does not end the run, and an error is reported with the
        // frame that needs the matte.
        let own = Stop::new();
        let thread = Builder::new().name("matte".to_owned()).spawn(move || {
            guarded(Stage::Decode, &own, || {
                let mut accounts = decode::Accounts::default();
                let progress = Progress::new();
                decode::stream(source, &supply, &sender, &own, &progress, &mut accounts)
            })
        })?;
        (self.frames, self.thread) = (Some(frames), Some(thread));
        Ok(())
    }

    /// The result of the thread, which has closed its queue.
    fn ended(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        match thread.join() {
            Ok(Ok(remarks)) => {
                self.remarks.append(remarks);
                Ok(())
            }
            Ok(Err(Halt::Failed(_, error))) => Err(Box::new(error)),
            Ok(Err(Halt::Stopped)) => Err("the run was stopped".into()),
            Err(_) => Err(format!("{}: reading it broke down", self.name).into()),
        }
    }
}

impl MatteFrames for MatteReader {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn pass_over(&mut self, pictures: u64) -> Result<u64, Box<dyn Error + Send + Sync>> {
        let (first, source) = match self.source.take() {
            Some(AnySource::Indexed(source)) => {
                // A single picture is for all frames.
                let first = pictures.min(source.len().saturating_sub(1));
                (first, AnySource::Indexed(source))
            }
            Some(AnySource::Stream(mut source)) => {
                let is_there = source.time_of(i64::MIN, pictures)?.is_some();
                (if is_there { pictures } else { 0 }, AnySource::Stream(source))
            }
            None => return Ok(0),
        };
        let range = TimeRange {
            start: (first > 0).then_some(Point::Frame(first)),
            ..TimeRange::default()
        };
        self.source = Some(range::within(source, range)?);
        Ok(first)
    }

    fn next(&mut self) -> Result<Option<Frame>, Box<dyn Error + Send + Sync>> {
        if let Some(source) = self.source.take() {
            self.start(source).map_err(thread_error)?;
        }
        let Some(frames) = &self.frames else {
            return Ok(None);
        };
        let mut frame = crossbeam_channel::select_biased! {
            recv(self.stop.abandoned()) -> _ => return Err("the run was stopped".into()),
            recv(frames) -> frame => frame.ok(),
        };
        if frame.is_none() {
            self.frames = None;
            self.ended()?;
        }
        if let (Some(frame), Some(rotation)) = (&mut frame, &self.rotation) {
            frame.metadata.side_data.insert(0, rotation.clone());
        }
        Ok(frame)
    }

    fn remarks(&mut self) -> Remarks {
        std::mem::take(&mut self.remarks)
    }
}
