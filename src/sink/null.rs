//! A sink that counts frames and drops them: for measuring everything that comes before it.

use super::{Flow, Sink, SinkError, Written};
use crate::frame::Frame;
use crate::wording::counted;

/// Counts and drops.
#[derive(Debug, Default)]
struct Null {
    frames: u64,
}

/// Makes a sink that counts frames and keeps nothing, so that it has written no bytes.
pub fn create() -> Box<dyn Sink> {
    Box::new(Null::default())
}

impl Sink for Null {
    fn write(&mut self, _frame: Frame) -> Result<Flow, SinkError> {
        self.frames += 1;
        Ok(Flow::More)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        Ok(Written {
            description: format!("nothing: {} counted and dropped", counted(self.frames, "frame")),
            ..Written::default()
        })
    }
}
