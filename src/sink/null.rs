//! A sink that counts frames and drops them: for measuring everything that comes before it.

use super::{Flow, Sink, SinkError, Written};
use crate::frame::Frame;
use crate::wording::counted;

/// Counts and drops.
#[derive(Debug, Default)]
struct Null {
    frames: u64,
    bytes: u64,
}

/// Makes a sink that counts frames and bytes and keeps nothing.
pub fn create() -> Box<dyn Sink> {
    Box::new(Null::default())
}

impl Sink for Null {
    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        self.frames += 1;
        self.bytes += frame.layout().picture_bytes() as u64;
        Ok(Flow::More)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(Written {
            description: format!("nothing: {} counted and dropped", counted(self.frames, "frame")),
            bytes: Some(self.bytes),
            ..Written::default()
        })
    }
}
