//! Components that two frames have in common, and their rows as plain samples.

use crate::frame::{Channel, Frame, Layout, PixelFormat};

/// The order in which components are listed, that of FFmpeg's filters.
const ORDER: [Channel; 7] = [
    Channel::Luma,
    Channel::Cb,
    Channel::Cr,
    Channel::Red,
    Channel::Green,
    Channel::Blue,
    Channel::Alpha,
];

/// A component that both frames of a pair have, in the same size and depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Component {
    /// What its samples stand for.
    pub channel: Channel,
    /// Samples in a row, at least 1.
    pub width: usize,
    /// Rows, at least 1.
    pub height: usize,
    /// The largest sample value, 2^8 - 1 to 2^16 - 1.
    pub max: u32,
    /// Plane, and place in the plane, in A.
    a: (usize, usize),
    /// The same in B.
    b: (usize, usize),
}

/// The components that can be compared, in the order y, u, v, r, g, b, a: none if the frames' sizes differ.
pub fn common(a: &Layout, b: &Layout) -> Vec<Component> {
    // Samples are compared as levels.
    if a.format().is_float() || b.format().is_float() {
        return Vec::new();
    }
    if (a.width(), a.height()) != (b.width(), b.height()) || a.format().depth() != b.format().depth() {
        return Vec::new();
    }
    let component = |channel| {
        let (in_a, in_b) = (a.format().place(channel)?, b.format().place(channel)?);
        let (plane, other) = (a.planes().get(in_a.0)?, b.planes().get(in_b.0)?);
        ((plane.width, plane.height) == (other.width, other.height)).then_some(Component {
            channel,
            width: plane.width,
            height: plane.height,
            max: a.format().max_value(),
            a: in_a,
            b: in_b,
        })
    };
    ORDER.into_iter().filter_map(component).collect()
}

impl Component {
    /// The letter of `--planes`: y, u, v, r, g, b or a.
    pub fn name(&self) -> &'static str {
        name(self.channel)
    }

    /// Row `y` of A's samples.
    pub(super) fn read_a(&self, frame: &Frame, y: usize, samples: &mut Vec<u16>) {
        read(frame, self.a, y, samples);
    }

    /// Row `y` of B's samples.
    pub(super) fn read_b(&self, frame: &Frame, y: usize, samples: &mut Vec<u16>) {
        read(frame, self.b, y, samples);
    }

    /// True if the planes hold the same bytes, so that no sample needs to be looked at.
    pub(super) fn is_stored_equally(&self, a: &Frame, b: &Frame) -> bool {
        a.format() == b.format() && (0..self.height).all(|y| a.row(self.a.0, y) == b.row(self.b.0, y))
    }

    /// log2 of how many pixels of the frame one sample stands for, across and down.
    pub(super) fn subsampling(&self, format: PixelFormat) -> (u8, u8) {
        let plane = format.planes().get(self.a.0);
        plane.map_or((0, 0), |plane| (plane.log2_x, plane.log2_y))
    }
}

/// A component's letter.
pub(super) fn name(channel: Channel) -> &'static str {
    match channel {
        Channel::Luma => "y",
        Channel::Cb => "u",
        Channel::Cr => "v",
        Channel::Red => "r",
        Channel::Green => "g",
        Channel::Blue => "b",
        Channel::Alpha => "a",
        Channel::Data => "data",
    }
}

fn read(frame: &Frame, (plane, at): (usize, usize), y: usize, samples: &mut Vec<u16>) {
    samples.clear();
    let (format, row) = (frame.format(), frame.row(plane, y));
    let channels = frame.layout().planes().get(plane).map_or(1, |p| p.channels);
    if format.bytes_per_sample() == 1 {
        samples.extend(row.iter().skip(at).step_by(channels).map(|&byte| u16::from(byte)));
    } else {
        let (words, _) = row.as_chunks::<2>();
        let words = words.iter().skip(at).step_by(channels);
        samples.extend(words.map(|&word| u16::from_le_bytes(word) >> format.shift()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_formats_have_in_common() {
        let names = |a: (&str, usize), b: (&str, usize)| -> String {
            let layout = |(format, width): (&str, usize)| {
                Layout::new(PixelFormat::from_name(format).unwrap(), width, 5, 1).unwrap()
            };
            common(&layout(a), &layout(b))
                .iter()
                .map(Component::name)
                .collect()
        };
        assert_eq!(names(("nv12", 7), ("yuv420p", 7)), "yuv");
        assert_eq!(names(("yuv420p", 7), ("yuv444p", 7)), "y");
        assert_eq!(names(("gray", 7), ("yuv444p", 7)), "y");
        assert_eq!(names(("bgra", 7), ("argb", 7)), "rgba");
        assert_eq!(names(("ya8", 7), ("rgba", 7)), "a");
        // The chroma of one column is no smaller.
        assert_eq!(names(("yuv422p", 1), ("yuv444p", 1)), "yuv");
        assert_eq!(names(("rgb24", 7), ("yuv444p", 7)), "");
        assert_eq!(names(("gray", 7), ("gray10le", 7)), "");
        assert_eq!(names(("gray", 7), ("gray", 8)), "");
    }
}
