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

    /// How many floating-point samples are infinite or no numbers: those whose exponent has all its bits.
    pub(crate) fn no_numbers(&self) -> u64 {
        let format = self.format();
        if !format.is_float() {
            return 0;
        }
        let rows = (0..format.planes().len()).flat_map(|plane| {
            let height = self.layout().planes()[plane].height;
            (0..height).map(move |y| self.row(plane, y))
        });
        // Counts of 32 bits, which loops sum by vectors; no row has more samples.
        let count = |row: &[u8]| -> u32 {
            if format.depth() == 16 {
                let is_none = |&half: &[u8; 2]| u32::from(u16::from_le_bytes(half) & 0x7c00 == 0x7c00);
                row.as_chunks::<2>().0.iter().map(is_none).sum()
            } else {
                let is_none =
                    |&number: &[u8; 4]| u32::from(u32::from_le_bytes(number) & 0x7f80_0000 == 0x7f80_0000);
                row.as_chunks::<4>().0.iter().map(is_none).sum()
            }
        };
        rows.map(|row| u64::from(count(row))).sum()
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
