//! Raw video: the bytes of each frame, planes in order, rows without padding, nothing else.

use super::outlet::Outlet;
use super::{Flow, Sink, SinkError, Written};
use crate::frame::Frame;
use crate::source::StreamInfo;
use std::path::Path;

struct Raw {
    outlet: Outlet,
    rate: String,
    geometry: String,
}

/// Writes raw frames of any native format to a file, or to standard output for "-".
pub fn create(target: &Path, info: &StreamInfo, overwrite: bool) -> Result<Box<dyn Sink>, SinkError> {
    Ok(Box::new(Raw {
        outlet: Outlet::open(target, overwrite)?,
        rate: info
            .frame_rate
            .map_or_else(String::new, |r| format!(":{}/{}", r.num, r.den)),
        geometry: format!("{}x{}:{}", info.width, info.height, info.format),
    }))
}

impl Sink for Raw {
    fn row_alignment(&self) -> usize {
        1
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        if self.outlet.frames() == 0 {
            let layout = frame.layout();
            self.geometry = format!("{}x{}:{}", layout.width(), layout.height(), layout.format());
        }
        self.outlet.write_frame(&[], &frame)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        let description = format!(
            "{} raw frames to {}, to be read as raw:{}{}",
            self.outlet.frames(),
            self.outlet.label(),
            self.geometry,
            self.rate
        );
        self.outlet.finish(description, Vec::new())
    }
}
