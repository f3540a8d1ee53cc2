//! Lays frames with alpha over a colour before they reach a sink.

use super::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crate::convert::flatten::{Background, flat_format, flatten};
use crate::frame::Frame;
use crate::source::StreamInfo;
use crossbeam_channel::Receiver;
use std::sync::Arc;

/// The stream's facts as they are once frames are laid over a colour.
pub fn info_after(info: &StreamInfo) -> StreamInfo {
    let to = flat_format(info.format);
    let mut after = info.clone();
    if to != info.format {
        after.colour = crate::convert::colour_after(info.colour, info.format, to, info.height);
        after.format = to;
    }
    after
}

/// `sink` behind it; `path` is for messages.
pub fn flattening(sink: AnySink, path: String, background: Background) -> AnySink {
    let step = Step { path, background };
    match sink {
        AnySink::Stream(inner) => AnySink::Stream(Box::new(Flattening { step, inner })),
        AnySink::Indexed(inner) => AnySink::Indexed(Arc::new(FlatteningIndexed { step, inner })),
    }
}

struct Step {
    path: String,
    background: Background,
}

impl Step {
    fn run(&self, frame: Frame) -> Result<Frame, SinkError> {
        flatten(frame, self.background).map_err(|e| SinkError::Unsupported {
            path: self.path.clone(),
            problem: e.to_string(),
        })
    }

    fn noted(&self, mut written: Written) -> Written {
        let [red, green, blue] = self.background.0;
        written.description += &format!(", alpha laid over #{red:02x}{green:02x}{blue:02x}");
        written
    }
}

struct Flattening {
    step: Step,
    inner: Box<dyn Sink>,
}

impl Sink for Flattening {
    fn row_alignment(&self) -> usize {
        self.inner.row_alignment()
    }

    fn held_buffers(&self) -> usize {
        self.inner.held_buffers()
    }

    fn delayed_frames(&self) -> u64 {
        self.inner.delayed_frames()
    }

    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.inner.watch(stop);
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        self.inner.write(self.step.run(frame)?)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(self.step.noted(self.inner.finish()?))
    }
}

struct FlatteningIndexed {
    step: Step,
    inner: Arc<dyn IndexedSink>,
}

impl IndexedSink for FlatteningIndexed {
    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        self.inner.write(self.step.run(frame)?)
    }

    fn finish(&self) -> Result<Written, SinkError> {
        Ok(self.step.noted(self.inner.finish()?))
    }
}
