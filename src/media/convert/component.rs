//! The integer samples of one component of a frame, read and written a row at a time.

use crate::frame::{Channel, Frame, PixelFormat};

/// Where a component lies in the rows of a format.
#[derive(Clone, Copy)]
pub(super) struct Component {
    pub(super) plane: usize,
    /// Its place among those that the plane interleaves, and how many these are.
    pub(super) at: usize,
    pub(super) step: usize,
}

impl Component {
    /// `None` if the format has no such component.
    pub(super) fn of(format: PixelFormat, channel: Channel) -> Option<Component> {
        let (plane, at) = format.place(channel)?;
        Some(Component {
            plane,
            at,
            step: format.planes()[plane].channels.len(),
        })
    }

    /// Each component of a format with what it is.
    pub(super) fn all(format: PixelFormat) -> impl Iterator<Item = (Channel, Component)> {
        let planes = format.planes().iter().enumerate();
        planes.flat_map(|(plane, description)| {
            let step = description.channels.len();
            let channels = description.channels.iter().enumerate();
            channels.map(move |(at, &channel)| (channel, Component { plane, at, step }))
        })
    }

    /// Reads the samples of row `y`. Words may have bits above their depth, which count as the greatest
    /// sample.
    pub(super) fn read(self, frame: &Frame, y: usize, line: &mut [u16]) {
        let (row, format) = (frame.row(self.plane, y), frame.format());
        if format.bytes_per_sample() == 1 {
            let samples = row.iter().skip(self.at).step_by(self.step);
            line.iter_mut().zip(samples).for_each(|(to, &v)| *to = v.into());
            return;
        }
        let (shift, most) = (format.shift(), format.max_value() as u16);
        let words = row.as_chunks().0.iter().skip(self.at).step_by(self.step);
        line.iter_mut()
            .zip(words)
            .for_each(|(to, &word)| *to = (u16::from_le_bytes(word) >> shift).min(most));
    }

    /// Writes the samples of row `y`.
    pub(super) fn write(self, line: &[u16], frame: &mut Frame, y: usize) {
        let format = frame.format();
        let row = frame.row_mut(self.plane, y);
        if format.bytes_per_sample() == 1 {
            let samples = row.iter_mut().skip(self.at).step_by(self.step);
            samples.zip(line).for_each(|(to, &v)| *to = v as u8);
            return;
        }
        let shift = format.shift();
        let words = row.as_chunks_mut().0.iter_mut().skip(self.at).step_by(self.step);
        words
            .zip(line)
            .for_each(|(to, &v)| *to = (v << shift).to_le_bytes());
    }
}
