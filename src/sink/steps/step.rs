//! A sink behind a step that each frame goes through first, whichever kind of sink it is.

use crate::frame::{DeviceHandle, Frame};
use crate::sink::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crossbeam_channel::Receiver;
use std::sync::Arc;

/// What is done to each frame, by several threads at once.
pub(super) trait Step: Send + Sync + 'static {
    /// True if frames leave in memory of the step's own, so that the sink behind keeps none of the run's.
    const COPIES: bool = false;

    /// One frame.
    fn run(&self, frame: Frame) -> Result<Frame, SinkError>;

    /// The sink's account of the run with the step's own words.
    fn noted(&self, written: Written) -> Written {
        written
    }
}

/// `sink` with `step` before it.
pub(in crate::sink) fn around(step: impl Step, sink: AnySink) -> AnySink {
    match sink {
        AnySink::Stream(inner) => AnySink::stream(StepSink { step, inner }),
        AnySink::Indexed(inner) => AnySink::indexed(StepFiles { step, inner }),
    }
}

struct StepSink<S> {
    step: S,
    inner: Box<dyn Sink>,
}

impl<S: Step> Sink for StepSink<S> {
    fn row_alignment(&self) -> usize {
        if S::COPIES { 64 } else { self.inner.row_alignment() }
    }

    fn held_buffers(&self) -> usize {
        if S::COPIES { 0 } else { self.inner.held_buffers() }
    }

    fn delayed_frames(&self) -> u64 {
        self.inner.delayed_frames()
    }

    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn read_on_device(&mut self, _device: Result<DeviceHandle, &'static str>) -> bool {
        self.inner.read_on_device(Err(
            "something is done with each frame in the host's memory first",
        ))
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

struct StepFiles<S> {
    step: S,
    inner: Arc<dyn IndexedSink>,
}

impl<S: Step> IndexedSink for StepFiles<S> {
    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        self.inner.write(self.step.run(frame)?)
    }

    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn finish(&self) -> Result<Written, SinkError> {
        Ok(self.step.noted(self.inner.finish()?))
    }
}
