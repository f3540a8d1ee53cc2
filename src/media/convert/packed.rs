//! Packed RGB of few bits, such as rgb565le or x2rgb10le, brought to the depth of a native format. swscale
//! repeats bits or shifts them, so that white is not white.
//!
//! ```text
//!   v * most / (2^bits - 1)      rounded to the nearest
//! ```

use super::component::Component;
use crate::frame::{Channel, Frame, PixelFormat};
use crate::media::ffmpeg::{AvError, AvFormat, BitsPlace, Picture};
use crate::media::rescale::rescaled;

/// Pictures of one packed format into frames.
pub(crate) struct PackedConversion {
    /// The parts of a frame, where each lies in pictures, and what becomes of its samples.
    parts: Vec<(Component, BitsPlace, Vec<u16>)>,
}

impl PackedConversion {
    /// `None` unless `coded` is RGB with components that fill no bytes, all of which `native` has.
    pub(crate) fn new(coded: AvFormat, native: PixelFormat) -> Option<PackedConversion> {
        let places = coded.packed_rgb()?;
        if places.iter().all(|place| place.depth % 8 == 0) || native.is_float() {
            return None;
        }
        let channels = [Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha];
        let part = |(&place, channel): (&BitsPlace, Channel)| {
            let table = rescaled((1 << place.depth) - 1, native.max_value() as u16);
            Some((Component::of(native, channel)?, place, table))
        };
        let parts: Option<Vec<_>> = places.iter().zip(channels).map(part).collect();
        let parts = parts.filter(|parts| parts.len() == Component::all(native).count())?;
        Some(PackedConversion { parts })
    }

    /// Fills `frame` from `picture`, which has its size.
    pub(crate) fn run(&self, picture: &Picture, frame: &mut Frame) -> Result<(), AvError> {
        let (width, height) = (picture.width(), picture.height());
        let mut line = vec![0; width];
        for y in 0..height {
            for (component, place, table) in &self.parts {
                let row = picture.row(0, y, place.row(width)).ok_or_else(AvError::bug)?;
                place.read(row, &mut line);
                for sample in &mut line {
                    *sample = table[usize::from(*sample)];
                }
                component.write(&line, frame, y);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::unpooled;
    use super::*;
    use crate::frame::Layout;

    /// No container has a name for these.
    #[test]
    fn ten_bits_in_words_of_four_bytes_stay_as_they_are() {
        let native = PixelFormat::from_name("gbrp10le").unwrap();
        let samples: Vec<[u32; 3]> = (0..1024).map(|n| [n, (n * 7 + 3) % 1024, 1023 - n]).collect();
        for (name, is_big, is_blue_first) in [
            ("x2rgb10le", false, false),
            ("x2rgb10be", true, false),
            ("x2bgr10le", false, true),
            ("x2bgr10be", true, true),
        ] {
            let format = AvFormat::from_name(name).unwrap();
            let mut picture = Picture::allocate(format, samples.len(), 1).unwrap();
            let row = picture.row_mut(0, 0, 4 * samples.len()).unwrap();
            for (pixel, &[red, green, blue]) in row.as_chunks_mut().0.iter_mut().zip(&samples) {
                let (first, last) = if is_blue_first { (blue, red) } else { (red, blue) };
                let word = 3 << 30 | first << 20 | green << 10 | last;
                *pixel = if is_big {
                    word.to_be_bytes()
                } else {
                    word.to_le_bytes()
                };
            }
            let layout = Layout::new(native, samples.len(), 1, 1).unwrap();
            let mut frame = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
            PackedConversion::new(format, native)
                .unwrap()
                .run(&picture, &mut frame)
                .unwrap();
            for (x, &[red, green, blue]) in samples.iter().enumerate() {
                let found = [2, 0, 1].map(|plane| u32::from(frame.sample(plane, x, 0, 0)));
                assert_eq!(found, [red, green, blue], "{name} {x}");
            }
        }
    }
}
