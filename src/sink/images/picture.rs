//! The picture that an encoder of image files is given: a frame's samples as the file stores them.

use super::stored::Stored;
use crate::frame::{Channel, Colour, Frame};
use half::f16;
use std::borrow::Cow;
use std::sync::Arc;

/// Pixels as a file stores them, and what is said about them.
pub(super) struct Picture<'a> {
    pub(super) pixels: Cow<'a, [u8]>,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) stored: Stored,
    pub(super) icc: Option<Arc<[u8]>>,
    pub(super) orientation: Option<u8>,
    /// The frame's colour facts.
    pub(super) colour: Colour,
    /// Significant bits of a sample, of which 16 or 8 are stored.
    pub(super) depth: u32,
    /// The file is a bare codestream, where its kind has a container too.
    pub(super) is_bare: bool,
}

/// The frame's samples, interleaved and ordered as the file stores them; borrowed where they lie so already.
pub(super) fn pixels(frame: &Frame, stored: Stored) -> Cow<'_, [u8]> {
    let (layout, format) = (frame.layout(), frame.format());
    let planes = format.planes();
    if planes.len() == 1
        && planes[0].channels == stored.channels
        && (matches!(format.depth(), 8 | 16) && !stored.float || format.depth() == 32)
        && layout.is_tight()
    {
        return Cow::Borrowed(frame.bytes());
    }
    if stored.float {
        return Cow::Owned(floats(frame, stored));
    }
    let bytes = format.bytes_per_sample();
    let row_bytes = layout.width() * stored.channels.len() * bytes;
    let mut pixels = vec![0_u8; row_bytes * layout.height()];
    let max = format.max_value();
    // Exact at both ends and invertible in between.
    let scale: Vec<u16> = match format.depth() {
        8 | 16 => Vec::new(),
        _ => (0..=max).map(|v| ((v * 65535 + max / 2) / max) as u16).collect(),
    };
    for (slot, &channel) in stored.channels.iter().enumerate() {
        // Gray goes to every colour.
        let gray = (channel != Channel::Alpha)
            .then(|| format.place(Channel::Luma))
            .flatten();
        let Some((plane, offset)) = format.place(channel).or(gray) else {
            continue;
        };
        let step = planes[plane].channels.len();
        for y in 0..layout.height() {
            let source = frame.row(plane, y);
            let target = &mut pixels[y * row_bytes..(y + 1) * row_bytes];
            if bytes == 1 {
                let samples = source[offset..].iter().step_by(step);
                for (to, from) in target[slot..]
                    .iter_mut()
                    .step_by(stored.channels.len())
                    .zip(samples)
                {
                    *to = *from;
                }
            } else {
                let samples = source[2 * offset..].chunks(2 * step);
                for (to, from) in target[2 * slot..]
                    .chunks_mut(2 * stored.channels.len())
                    .zip(samples)
                {
                    let word = u16::from_le_bytes([from[0], from[1]]);
                    let word = scale.get(usize::from(word)).copied().unwrap_or(word);
                    to[..2].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
    Cow::Owned(pixels)
}

/// The same of floating-point samples, as numbers of 32 bits.
fn floats(frame: &Frame, stored: Stored) -> Vec<u8> {
    let (layout, format) = (frame.layout(), frame.format());
    let count = stored.channels.len();
    let row_bytes = 4 * layout.width() * count;
    let mut pixels = vec![0_u8; row_bytes * layout.height()];
    for (slot, &channel) in stored.channels.iter().enumerate() {
        // Gray goes to every colour.
        let luma = (channel != Channel::Alpha).then_some(Channel::Luma);
        let Some((plane, at)) = format.place(channel).or_else(|| format.place(luma?)) else {
            continue;
        };
        let step = format.planes()[plane].channels.len();
        for (y, target) in pixels.chunks_exact_mut(row_bytes).enumerate() {
            let places = target.as_chunks_mut::<4>().0.iter_mut().skip(slot).step_by(count);
            let row = frame.row(plane, y);
            if format.depth() == 16 {
                let samples = row.as_chunks::<2>().0.iter().skip(at).step_by(step);
                let wide = samples.map(|&half| f16::from_le_bytes(half).to_f32().to_le_bytes());
                places.zip(wide).for_each(|(to, from)| *to = from);
            } else {
                let samples = row.as_chunks::<4>().0.iter().skip(at).step_by(step);
                places.zip(samples).for_each(|(to, from)| *to = *from);
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Layout, PixelFormat};
    use crate::media::still::ImageKind;
    use crate::sink::images::stored::stored;

    fn format(name: &str) -> PixelFormat {
        PixelFormat::from_name(name).unwrap()
    }

    #[test]
    fn components_are_put_in_order_and_scaled() {
        let gather = |name: &str, samples: &[u16], kind: ImageKind| {
            let layout = Layout::new(format(name), 2, 1, 16).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            let mut samples = samples.iter();
            for index in 0..layout.planes().len() {
                for place in frame
                    .row_mut(index, 0)
                    .chunks_mut(format(name).bytes_per_sample())
                {
                    let sample = samples.next().unwrap().to_le_bytes();
                    let len = place.len();
                    place.copy_from_slice(&sample[..len]);
                }
            }
            pixels(&frame, stored(kind, format(name)).unwrap()).into_owned()
        };
        assert_eq!(
            gather("bgr24", &[3, 2, 1, 6, 5, 4], ImageKind::Png),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("abgr", &[4, 3, 2, 1, 8, 7, 6, 5], ImageKind::Tiff),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("gbrp", &[2, 5, 3, 6, 1, 4], ImageKind::Jpeg),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("gbrap", &[2, 6, 3, 7, 1, 5, 4, 8], ImageKind::Png),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("ya8", &[9, 1, 8, 2], ImageKind::Bmp),
            [9, 9, 9, 1, 8, 8, 8, 2]
        );
        assert_eq!(gather("gray10le", &[0, 1023], ImageKind::Png), [0, 0, 255, 255]);
        assert_eq!(gather("gray10le", &[1, 512], ImageKind::Png), [64, 0, 32, 128]);
        assert_eq!(
            gather("bgr48le", &[3, 2, 1, 6, 5, 0x104], ImageKind::Pnm),
            [1, 0, 2, 0, 3, 0, 4, 1, 5, 0, 6, 0]
        );
    }
}
