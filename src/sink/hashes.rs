//! A log of the frames that a sink is given: when each is shown, and the hash of its samples.

use super::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crate::frame::{Frame, content_hash};
use crossbeam_channel::Receiver;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What the log holds of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedFrame {
    /// When it is shown, in ticks of the source's time base counted from the beginning of the input, also
    /// where a range of it is read.
    pub time: Option<i64>,
    /// How long it is shown, in the same ticks.
    pub duration: Option<i64>,
    /// XXH3 of 128 bits over format, size and samples.
    pub hash: u128,
}

/// The frames that were written, by their numbers.
#[derive(Debug, Default)]
pub struct FrameLog(Mutex<BTreeMap<u64, LoggedFrame>>);

impl FrameLog {
    fn enter(&self, frame: &Frame) {
        let metadata = &frame.metadata;
        let logged = LoggedFrame {
            time: metadata.pts.map(|pts| pts + metadata.skipped.ticks),
            duration: metadata.duration,
            hash: content_hash(frame),
        };
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        frames.insert(frame.sequence, logged);
    }

    /// All of them in order; the log is empty then.
    pub fn take(&self) -> Vec<LoggedFrame> {
        let mut frames = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *frames).into_values().collect()
    }
}

/// `inner` behind a log of its frames.
pub fn logging(inner: AnySink, log: Arc<FrameLog>) -> AnySink {
    match inner {
        AnySink::Stream(inner) => AnySink::stream(LoggingSink { inner, log }),
        AnySink::Indexed(inner) => AnySink::indexed(LoggingFiles { inner, log }),
    }
}

struct LoggingSink {
    inner: Box<dyn Sink>,
    log: Arc<FrameLog>,
}

impl Sink for LoggingSink {
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
        self.log.enter(&frame);
        self.inner.write(frame)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        self.inner.finish()
    }
}

struct LoggingFiles {
    inner: Arc<dyn IndexedSink>,
    log: Arc<FrameLog>,
}

impl IndexedSink for LoggingFiles {
    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        self.log.enter(&frame);
        self.inner.write(frame)
    }

    fn finish(&self) -> Result<Written, SinkError> {
        self.inner.finish()
    }
}
