//! Pictures with alpha laid over a colour.
//!
//! ```text
//!   result = (colour * alpha + background * (max - alpha)) / max      rounded to the nearest
//! ```
//!
//! Floating-point colour that is multiplied by its alpha is not multiplied again.

use super::{ConvertError, Converter};
use crate::frame::{AlphaKind, Buffer, Channel, ColourModel, Frame, Layout, PixelFormat};

/// The colours that a background can be named by, red, green and blue of 8 bits.
const NAMES: [(&str, [u8; 3]); 8] = [
    ("black", [0, 0, 0]),
    ("white", [255, 255, 255]),
    ("gray", [128, 128, 128]),
    ("red", [255, 0, 0]),
    ("green", [0, 128, 0]),
    ("blue", [0, 0, 255]),
    ("yellow", [255, 255, 0]),
    ("magenta", [255, 0, 255]),
];

/// A colour that pictures with alpha are laid over: red, green and blue of 8 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Background(pub [u8; 3]);

/// A text that names no colour.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no colour; write a name such as white, #RRGGBB, or R,G,B with numbers from 0 to 255")]
pub struct UnknownColour(pub String);

impl std::str::FromStr for Background {
    type Err = UnknownColour;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
        let parts = |parts: Vec<Option<u8>>| -> Option<[u8; 3]> {
            let parts: Option<Vec<u8>> = parts.into_iter().collect();
            parts?.try_into().ok()
        };
        let hex = |digits: &str| {
            let at = |index: usize| u8::from_str_radix(digits.get(index..index + 2)?, 16).ok();
            (digits.len() == 6 && digits.is_ascii()).then(|| parts(vec![at(0), at(2), at(4)]))?
        };
        named
            .map(|&(_, colour)| colour)
            .or_else(|| text.strip_prefix('#').and_then(hex))
            .or_else(|| parts(text.split(',').map(|part| part.trim().parse().ok()).collect()))
            .map(Background)
            .ok_or_else(|| UnknownColour(text.to_owned()))
    }
}

/// The format of frames of `format` once they are laid over a colour: itself if it has no alpha.
pub fn flat_format(format: PixelFormat) -> PixelFormat {
    if format.is_float() && format.has_alpha() {
        return match format.depth() {
            16 => PixelFormat::RGBF16,
            _ => PixelFormat::RGBF32,
        };
    }
    let name = if format.depth() > 8 { "rgb48le" } else { "rgb24" };
    PixelFormat::from_name(name)
        .filter(|_| format.has_alpha())
        .unwrap_or(format)
}

/// `frame` over `background`, as RGB of 8 or 16 bits; itself where it has no alpha.
pub fn flatten(frame: Frame, background: Background) -> Result<Frame, ConvertError> {
    let (format, to) = (frame.format(), flat_format(frame.format()));
    if !format.has_alpha() {
        return Ok(frame);
    }
    if format.is_float() {
        return flatten_floats(frame, background);
    }
    if format.model() == ColourModel::Yuv {
        let name = if format.depth() > 8 { "rgba64le" } else { "rgba" };
        let Some(rgb) = PixelFormat::from_name(name) else {
            return Ok(frame);
        };
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let mut converter = Converter::new((format, frame.metadata.colour), rgb, width, height)?;
        return flatten(converter.convert(&frame)?, background);
    }
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let layout = Layout::new(to, width, height, 1)?;
    let mut flat = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
    let gray = format.place(Channel::Luma);
    let colours = [Channel::Red, Channel::Green, Channel::Blue].map(|channel| format.place(channel).or(gray));
    let alpha = format.place(Channel::Alpha);
    let max = format.max_value();
    let most = if format.depth() > 8 { 65_535 } else { 255 };
    for y in 0..height {
        let row = flat.row_mut(0, y);
        for x in 0..width {
            let sample = |at: Option<(usize, usize)>, otherwise: u32| {
                at.map_or(otherwise, |(plane, channel)| {
                    u32::from(frame.sample(plane, x, y, channel))
                })
            };
            let opacity = u64::from(sample(alpha, max));
            for (slot, at) in colours.into_iter().enumerate() {
                let under = u64::from(background.0[slot]) * u64::from(max);
                let over = u64::from(sample(at, 0)) * 255;
                // In units of 1 / (255 * max * max), brought to the output's range in one step.
                let full = 255 * u64::from(max) * u64::from(max);
                let mixed = over * opacity + under * (u64::from(max) - opacity);
                let value = (mixed * most + full / 2) / full;
                if most == 255 {
                    row[3 * x + slot] = value as u8;
                } else {
                    row[6 * x + 2 * slot..][..2].copy_from_slice(&(value as u16).to_le_bytes());
                }
            }
        }
    }
    flat.sequence = frame.sequence;
    flat.born = frame.born;
    flat.metadata = frame.metadata;
    Ok(flat)
}

/// The same for floating-point samples; the result is floating-point, too.
fn flatten_floats(frame: Frame, background: Background) -> Result<Frame, ConvertError> {
    let (format, colour) = (frame.format(), frame.metadata.colour);
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let layout = Layout::new(flat_format(format), width, height, 1)?;
    let mut flat = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
    let gray = format.place(Channel::Luma);
    let colours = [Channel::Red, Channel::Green, Channel::Blue].map(|channel| format.place(channel).or(gray));
    for (y, x) in (0..height).flat_map(|y| (0..width).map(move |x| (y, x))) {
        let sample =
            |place: Option<(usize, usize)>| place.map_or(1.0, |(plane, at)| frame.float(plane, x, y, at));
        let alpha = sample(format.place(Channel::Alpha));
        for (slot, at) in colours.into_iter().enumerate() {
            let own = match colour.alpha {
                AlphaKind::Associated => sample(at),
                AlphaKind::Straight => sample(at) * alpha,
            };
            let under = f32::from(background.0[slot]) / 255.0;
            flat.set_float(0, x, y, slot, own + under * (1.0 - alpha));
        }
    }
    flat.sequence = frame.sequence;
    flat.born = frame.born;
    flat.metadata = frame.metadata;
    flat.metadata.colour.alpha = AlphaKind::Straight;
    Ok(flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(format: &str, samples: &[u16]) -> Frame {
        let format = PixelFormat::from_name(format).unwrap();
        let layout = Layout::new(format, 1, 1, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        let mut samples = samples.iter();
        for plane in 0..layout.planes().len() {
            for place in frame.row_mut(plane, 0).chunks_mut(format.bytes_per_sample()) {
                let sample = samples.next().unwrap().to_le_bytes();
                let len = place.len();
                place.copy_from_slice(&sample[..len]);
            }
        }
        frame
    }

    #[test]
    fn colours_are_mixed_by_alpha_and_rounded() {
        let white = Background([255; 3]);
        let over = |format: &str, samples: &[u16], background| {
            let flat = flatten(frame(format, samples), background).unwrap();
            [0, 1, 2].map(|channel| flat.sample(0, 0, 0, channel))
        };
        assert_eq!(over("rgba", &[200, 100, 0, 255], white), [200, 100, 0]);
        assert_eq!(over("rgba", &[200, 100, 0, 0], Background([1, 2, 3])), [1, 2, 3]);
        // 100 * 128 / 255 + 255 * 127 / 255 = 177.2
        assert_eq!(over("bgra", &[100, 100, 100, 128], white), [177; 3]);
        assert_eq!(over("ya8", &[100, 128], white), [177; 3]);
        assert_eq!(over("argb", &[128, 10, 20, 30], Background([0; 3])), [5, 10, 15]);
        assert_eq!(over("rgba64le", &[65535, 0, 257, 65535], white), [65535, 0, 257]);
        assert_eq!(
            over("gbrap10le", &[0, 0, 1023, 0], Background([0, 255, 51])),
            [0, 65535, 13107]
        );
        let plain = flatten(frame("rgb24", &[1, 2, 3]), white).unwrap();
        assert_eq!(plain.format().name(), "rgb24");
    }

    #[test]
    fn floating_point_colours_stay_such() {
        let layout = Layout::new(PixelFormat::RGBAF32, 1, 1, 1).unwrap();
        for (kind, red) in [
            (AlphaKind::Associated, 3.0 + 0.75),
            (AlphaKind::Straight, 0.75 + 0.75),
        ] {
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            frame.metadata.colour.alpha = kind;
            for (channel, value) in [3.0, 0.5, 0.0, 0.25].into_iter().enumerate() {
                frame.set_float(0, 0, 0, channel, value);
            }
            let flat = flatten(frame, Background([255, 0, 0])).unwrap();
            assert_eq!(
                (flat.format(), flat.float(0, 0, 0, 0)),
                (PixelFormat::RGBF32, red)
            );
            assert_eq!(flat.metadata.colour.alpha, AlphaKind::Straight);
        }
    }

    #[test]
    fn colours_are_named_by_words_and_numbers() {
        let parse = |text: &str| text.parse::<Background>().map(|b| b.0).ok();
        assert_eq!(parse("White"), Some([255; 3]));
        assert_eq!(parse("#0a0B0c"), Some([10, 11, 12]));
        assert_eq!(parse("1, 2,255"), Some([1, 2, 255]));
        for wrong in ["", "#12345", "#12345g", "1,2", "1,2,256", "greenish", "#ééé"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
