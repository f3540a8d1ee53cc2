//! Samples that are floating-point numbers: how they are stored.

use crate::frame::{Frame, PixelFormat};
use half::f16;

/// `value` as `format` stores it: 16 bits are rounded to nearest even.
pub fn rounded(format: PixelFormat, value: f32) -> f32 {
    match format.depth() {
        16 => f16::from_f32(value).to_f32(),
        _ => value,
    }
}

impl Frame {
    /// The floating-point sample of `channel` (an index into the plane's interleaved samples) at (`x`, `y`)
    /// of plane `index`. Any other format gives 0.
    pub fn float(&self, index: usize, x: usize, y: usize, channel: usize) -> f32 {
        let at = x * self.layout().planes()[index].channels + channel;
        let row = self.row(index, y);
        match self.format().bytes_per_sample() {
            2 => row
                .as_chunks()
                .0
                .get(at)
                .map_or(0.0, |&b| f16::from_le_bytes(b).to_f32()),
            4 => row.as_chunks().0.get(at).map_or(0.0, |&b| f32::from_le_bytes(b)),
            _ => 0.0,
        }
    }

    /// Sets what [`Frame::float`] gives.
    pub fn set_float(&mut self, index: usize, x: usize, y: usize, channel: usize, value: f32) {
        let at = x * self.layout().planes()[index].channels + channel;
        let bytes = self.format().bytes_per_sample();
        let sample = &mut self.row_mut(index, y)[at * bytes..(at + 1) * bytes];
        match bytes {
            2 => sample.copy_from_slice(&f16::from_f32(value).to_le_bytes()),
            4 => sample.copy_from_slice(&value.to_le_bytes()),
            _ => {}
        }
    }
}
