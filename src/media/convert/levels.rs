//! Integer samples of one format into those of another by their levels; each component goes to its place.
//! swscale shifts samples, so that white of 8 bits becomes 65283 of 65535, takes all grays for full range,
//! and leaves chroma of gray in nv12 without a value. Gray of YUV is its luma, in its range.

use super::component::Component;
use crate::frame::{Channel, Colour, Frame, PixelFormat, levels};

/// Samples of one format and range into those of another, without a matrix.
pub(super) struct LevelConversion {
    /// What becomes of each sample of luma or a colour, and of chroma.
    colour: Vec<u16>,
    chroma: Vec<u16>,
    /// Chroma of gray.
    neutral: u16,
    alpha: AlphaConversion,
}

impl LevelConversion {
    /// Between two formats of integers with these colour facts.
    pub(super) fn new(from: (PixelFormat, Colour), to: (PixelFormat, Colour)) -> LevelConversion {
        LevelConversion {
            // A colour of RGB has the levels of luma in full range.
            colour: levels(from, to, Channel::Luma),
            chroma: levels(from, to, Channel::Cb),
            neutral: to.1.zero_level(to.0, Channel::Cb) as u16,
            alpha: AlphaConversion::new(from, to),
        }
    }

    /// Fills `converted` from `frame`, which has its size. Gray goes to every colour, and alpha that `frame`
    /// lacks is opaque.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        let luma = Component::of(frame.format(), Channel::Luma);
        for (channel, target) in Component::all(converted.format()) {
            let source = Component::of(frame.format(), channel);
            match channel {
                Channel::Alpha => {}
                Channel::Cb | Channel::Cr => {
                    fill((frame, source), &self.chroma, self.neutral, (converted, target));
                }
                _ => fill((frame, source.or(luma)), &self.colour, 0, (converted, target)),
            }
        }
        self.alpha.run(frame, converted);
    }
}

/// Alpha of one depth into that of another.
pub(super) struct AlphaConversion(Vec<u16>);

impl AlphaConversion {
    /// Between two formats of integers with these colour facts.
    pub(super) fn new(from: (PixelFormat, Colour), to: (PixelFormat, Colour)) -> AlphaConversion {
        AlphaConversion(levels(from, to, Channel::Alpha))
    }

    /// Fills the alpha of `converted`, if it has one, from `frame`; what lacks alpha is opaque.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        if let Some(target) = Component::of(converted.format(), Channel::Alpha) {
            let source = Component::of(frame.format(), Channel::Alpha);
            let opaque = converted.format().max_value() as u16;
            fill((frame, source), &self.0, opaque, (converted, target));
        }
    }
}

/// Fills a component from another by what `table` makes of each sample, or with a constant.
fn fill(
    (frame, source): (&Frame, Option<Component>),
    table: &[u16],
    constant: u16,
    (converted, target): (&mut Frame, Component),
) {
    let size = converted.layout().planes()[target.plane];
    let mut line = vec![constant; size.width];
    for y in 0..size.height {
        if let Some(source) = source {
            source.read(frame, y, &mut line);
            for sample in &mut line {
                *sample = table.get(usize::from(*sample)).copied().unwrap_or_default();
            }
        }
        target.write(&line, converted, y);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Converter, unpooled};
    use super::*;
    use crate::frame::{ColourModel, Layout, Range};
    use crate::media::ffmpeg::AvFormat;

    /// A row of a frame, one pixel of the same samples for each word.
    fn frame(format: PixelFormat, words: &[u16]) -> Frame {
        let layout = Layout::new(format, words.len(), 1, 1).unwrap();
        let mut frame = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
        let bytes = format.bytes_per_sample();
        for (plane, description) in format.planes().iter().enumerate() {
            let count = description.channels.len();
            for (at, sample) in frame.row_mut(plane, 0).chunks_exact_mut(bytes).enumerate() {
                let word = words[at / count] << format.shift();
                sample.copy_from_slice(&word.to_le_bytes()[..bytes]);
            }
        }
        frame
    }

    fn convert(words: &[u16], from: &str, to: &str) -> Vec<Vec<u32>> {
        let [from, to] = [from, to].map(|name| PixelFormat::from_name(name).unwrap());
        let before = frame(from, words);
        let mut converter = Converter::new((from, Colour::default()), to, words.len(), 1).unwrap();
        let after = converter.convert(&before).unwrap();
        let mut components = Vec::new();
        for (plane, description) in to.planes().iter().enumerate() {
            for at in 0..description.channels.len() {
                components.push(
                    (0..words.len())
                        .map(|x| u32::from(after.sample(plane, x, 0, at)))
                        .collect(),
                );
            }
        }
        components
    }

    #[test]
    fn white_stays_white_at_every_depth() {
        let formats = || PixelFormat::integers().filter(|f| f.model() != ColourModel::Yuv);
        for from in formats() {
            let most = from.max_value() as u16;
            let words = [0, 1, most / 3, most / 2 + 1, most - 1, most];
            for to in formats() {
                let is_gray_only = to.model() == ColourModel::Gray;
                if from == to || is_gray_only && from.model() != ColourModel::Gray {
                    continue;
                }
                let scale = f64::from(to.max_value()) / f64::from(from.max_value());
                let expected: Vec<u32> = words
                    .iter()
                    .map(|&v| (f64::from(v) * scale + 1e-9).round() as u32)
                    .collect();
                let found = convert(&words, from.name(), to.name());
                let alpha = to.has_alpha() && !from.has_alpha();
                let place = to.place(Channel::Alpha).filter(|_| alpha);
                let opaque = place.map(|(plane, at)| plane + at);
                for (index, component) in found.iter().enumerate() {
                    match opaque == Some(index) {
                        true => assert!(component.iter().all(|&v| v == to.max_value()), "{from} {to}"),
                        false => assert_eq!(*component, expected, "{from} {to}"),
                    }
                }
            }
        }
        let all: Vec<u16> = (0..=255).collect();
        let up: Vec<u32> = (0..=255).map(|v| 257 * v).collect();
        assert_eq!(convert(&all, "rgba", "rgba64le"), vec![up; 4]);
    }

    #[test]
    fn opaque_stays_opaque_and_all_alpha_its_share() {
        let formats = || PixelFormat::integers().filter(|f| f.has_alpha());
        for (from, to) in formats().flat_map(|from| formats().map(move |to| (from, to))) {
            let (most, new) = (from.max_value(), to.max_value());
            // No fewer than FFmpeg's vectors hold, and every alpha of 8 bits.
            let words: Vec<u16> = (0..=255).map(|v| (v * most / 255) as u16).collect();
            let is_written = from != to && AvFormat::from_name(to.name()).is_some();
            let to_gray = to.model() == ColourModel::Gray && from.model() != ColourModel::Gray;
            if !is_written || to_gray {
                continue;
            }
            let found = convert(&words, from.name(), to.name());
            let (before, after) = (u64::from(most), u64::from(new));
            let share = |&v: &u16| ((2 * u64::from(v) * after + before) / (2 * before)) as u32;
            let expected: Vec<u32> = words.iter().map(share).collect();
            let (plane, at) = to.place(Channel::Alpha).unwrap();
            let before: usize = to.planes()[..plane].iter().map(|p| p.channels.len()).sum();
            assert_eq!(found[before + at], expected, "{from} {to}");
        }
    }

    #[test]
    fn gray_of_yuv_is_its_luma_in_its_range() {
        let of = |model: ColourModel| {
            PixelFormat::integers()
                .filter(move |f| f.model() == model && AvFormat::from_name(f.name()).is_some())
        };
        for from in of(ColourModel::Yuv).filter(|format| !format.is_float()) {
            for to in of(ColourModel::Gray).filter(|format| !format.is_float()) {
                let most = from.max_value();
                let words: Vec<u16> = (0..=255).map(|v| (v * most / 255) as u16).collect();
                for range in [Range::Limited, Range::Full] {
                    let colour = Colour {
                        range,
                        ..Colour::default()
                    };
                    let mut converter = Converter::new((from, colour), to, words.len(), 1).unwrap();
                    let after = converter.convert(&frame(from, &words)).unwrap();
                    assert_eq!(after.metadata.colour.range, range, "{from} {to}");
                    let (above, below) = match range {
                        Range::Limited => (1 << to.depth(), 1 << from.depth()),
                        _ => (to.max_value(), most),
                    };
                    for (x, &v) in words.iter().enumerate() {
                        let expected =
                            (2 * u64::from(v) * u64::from(above) + u64::from(below)) / (2 * u64::from(below));
                        let expected = expected.min(to.max_value().into());
                        let found = after.sample(0, x, 0, 0);
                        assert_eq!(u64::from(found), expected, "{from} {to} {range:?}: {v}");
                    }
                }
            }
        }
    }
}
