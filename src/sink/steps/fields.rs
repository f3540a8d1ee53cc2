//! Weaves the fields that [`crate::source::fields`] has split into whole frames again.

use crate::frame::{Buffer, DeviceHandle, Frame, FramePool, Layout, Pageable};
use crate::sink::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crossbeam_channel::Receiver;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// `sink` behind a weaver of fields: of each two frames, the first has the even rows, and what is known of
/// the picture.
pub fn weaving(sink: AnySink, path: String) -> AnySink {
    match sink {
        AnySink::Stream(inner) => AnySink::Stream(Box::new(Weaving {
            weaver: Weaver::new(path, inner.row_alignment(), 1 + inner.held_buffers()),
            inner,
            even: None,
        })),
        AnySink::Indexed(inner) => AnySink::Indexed(Arc::new(WeavingIndexed {
            weaver: Weaver::new(path, 1, 0),
            inner,
            waiting: Mutex::default(),
        })),
    }
}

struct Weaving {
    weaver: Weaver,
    inner: Box<dyn Sink>,
    even: Option<Frame>,
}

impl Sink for Weaving {
    fn held_buffers(&self) -> usize {
        1
    }

    fn delayed_frames(&self) -> u64 {
        // Two fields make a frame.
        2 * self.inner.delayed_frames() + u64::from(self.even.is_some())
    }

    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn read_on_device(&mut self, _device: Result<DeviceHandle, &'static str>) -> bool {
        self.inner
            .read_on_device(Err("fields are put together in the host's memory"))
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.inner.watch(stop);
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        match self.even.take() {
            None => {
                self.even = Some(frame);
                Ok(Flow::More)
            }
            Some(even) => self.inner.write(self.weaver.weave(even, &frame)?),
        }
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        // A field without the other, after an interruption, is no picture.
        self.inner.finish()
    }
}

struct WeavingIndexed {
    weaver: Weaver,
    inner: Arc<dyn IndexedSink>,
    /// Fields whose other one is on its way, by the number of their picture. Workers take fields in order, so
    /// that these are few.
    waiting: Mutex<BTreeMap<u64, Frame>>,
}

impl IndexedSink for WeavingIndexed {
    fn bytes(&self) -> Option<u64> {
        self.inner.bytes()
    }

    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        let number = frame.sequence / 2;
        let other = {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            match waiting.remove(&number) {
                Some(other) => other,
                None => {
                    waiting.insert(number, frame);
                    return Ok(());
                }
            }
        };
        let (even, odd) = if frame.sequence.is_multiple_of(2) {
            (frame, other)
        } else {
            (other, frame)
        };
        self.inner.write(self.weaver.weave(even, &odd)?)
    }

    fn finish(&self) -> Result<Written, SinkError> {
        self.inner.finish()
    }
}

struct Weaver {
    path: String,
    alignment: usize,
    pool: FramePool,
}

impl Weaver {
    fn new(path: String, alignment: usize, buffers: usize) -> Weaver {
        Weaver {
            path,
            alignment,
            pool: FramePool::new(buffers, Arc::new(Pageable)),
        }
    }

    /// The frame whose even and odd rows these are.
    fn weave(&self, even: Frame, odd: &Frame) -> Result<Frame, SinkError> {
        let refused = |problem: String| SinkError::Unsupported {
            path: self.path.clone(),
            problem,
        };
        let half = *even.layout();
        let layout = Layout::new(half.format(), half.width(), 2 * half.height(), self.alignment)
            .map_err(|e| refused(e.to_string()))?;
        let buffer = self
            .pool
            .try_take()
            .unwrap_or_else(|| Buffer::unpooled(Box::new(Vec::new())));
        let mut frame = Frame::new(layout, buffer).map_err(|e| refused(e.to_string()))?;
        for (index, plane) in layout.planes().iter().enumerate() {
            for y in 0..plane.height {
                let field = if y % 2 == 0 { &even } else { odd };
                frame.row_mut(index, y).copy_from_slice(field.row(index, y / 2));
            }
        }
        frame.sequence = even.sequence / 2;
        frame.born = even.born;
        frame.metadata = even.into_parts().0;
        Ok(frame)
    }
}
