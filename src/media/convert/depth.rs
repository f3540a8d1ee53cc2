//! Integer samples of one depth into those of another, where white is the greatest sample of either: RGB,
//! gray in full range, and alpha. swscale shifts them, so that white of 8 bits becomes 65283 of 65535, and
//! changes samples of more than 8 bits where they only go to other places. Planes of YUV that it does not
//! read are deinterleaved here.
//!
//! Gray of YUV is its luma, which swscale stretches to full range beyond 8 bits.
//!
//! ```text
//!   v * most / most before      rounded to the nearest; up from 8 to 16 bits that is v * 257
//!   v * 2^(bits - bits before)  the same of luma in limited range
//! ```

use super::loss::nearest_native;
use crate::frame::{Channel, Colour, ColourModel, Frame, PixelFormat};
use crate::media::ffmpeg::{AvFormat, is_scaled_from};
use crate::media::rescale::rescaled;

/// The sample of `to` bits of limited range for each one of `from` bits, from 0 on.
fn shifted(from: u32, to: u32) -> Vec<u16> {
    let most = (1_u32 << to) - 1;
    let half = (1 << from.saturating_sub(to)) >> 1;
    let step = |v: u32| ((((v + half) << to) >> from).min(most)) as u16;
    (0..1_u32 << from).map(step).collect()
}

/// True if samples go from one format to the other by a change of depth or of place: no matrix, and full
/// range but for luma. Those of 8 bits swscale gives as they are.
pub(super) fn is_direct((from, colour): (PixelFormat, Colour), to: PixelFormat) -> bool {
    let is_integer = !from.is_float() && !to.is_float();
    let is_family = match (from.model(), to.model()) {
        (ColourModel::Rgb, ColourModel::Rgb) => true,
        (ColourModel::Gray, ColourModel::Gray | ColourModel::Rgb) => !colour.is_limited(from),
        (ColourModel::Yuv, ColourModel::Gray) => true,
        _ => false,
    };
    let is_inexact = from.depth() != to.depth() || from.depth() > 8;
    is_integer && is_family && is_inexact && from != to
}

/// The format of the same samples in a plane for each, if swscale reads that and not `from`.
pub(crate) fn deinterleaved(from: PixelFormat) -> Option<PixelFormat> {
    let is_read = |format: PixelFormat| AvFormat::from_name(format.name()).is_some_and(is_scaled_from);
    if from.is_float() || is_read(from) {
        return None;
    }
    PixelFormat::all().find(|to| {
        let subsampling = |format: PixelFormat| {
            let chroma = format.place(Channel::Cb)?;
            let plane = &format.planes()[chroma.0];
            Some((plane.log2_x, plane.log2_y))
        };
        let is_planar = to.planes().iter().all(|plane| plane.channels.len() == 1);
        (to.model(), to.depth(), to.has_alpha()) == (from.model(), from.depth(), from.has_alpha())
            && is_planar
            && subsampling(*to) == subsampling(from)
            && is_read(*to)
    })
}

/// The format that frames are to be brought to before swscale makes `target` of them, so that what it is
/// inexact in is done here; `None` where there is nothing of that, or more.
pub(crate) fn before_scaling(from: (PixelFormat, Colour), target: AvFormat) -> Option<PixelFormat> {
    let (to, is_exact) = nearest_native(target)?;
    (is_exact && is_direct(from, to)).then_some(to)
}

/// A change of depth.
pub(super) struct DepthConversion {
    /// The sample for each one of a colour, and of alpha.
    colour: Vec<u16>,
    alpha: Vec<u16>,
    /// Bits below a sample in its word.
    shift: u32,
}

/// Where the samples of a component lie in a row.
#[derive(Clone, Copy)]
struct Place {
    plane: usize,
    at: usize,
    step: usize,
}

impl DepthConversion {
    /// Between two formats of integers, of frames with these colour facts.
    pub(super) fn new((from, colour): (PixelFormat, Colour), to: PixelFormat) -> DepthConversion {
        let alpha = rescaled(from.max_value(), to.max_value() as u16);
        let is_limited = from.model() == ColourModel::Yuv && colour.is_limited(from);
        DepthConversion {
            colour: match is_limited {
                true => shifted(from.depth(), to.depth()),
                false => alpha.clone(),
            },
            alpha,
            shift: from.shift(),
        }
    }

    /// Fills `converted` from `frame`, which has its size. Gray goes to every colour, and alpha that `frame`
    /// lacks is opaque.
    pub(super) fn run(&self, frame: &Frame, converted: &mut Frame) {
        let (from, to) = (frame.format(), converted.format());
        let most = to.max_value() as u16;
        for (plane, description) in to.planes().iter().enumerate() {
            for (at, &channel) in description.channels.iter().enumerate() {
                let step = description.channels.len();
                let (source, table) = match channel {
                    Channel::Alpha => (from.place(channel), &self.alpha),
                    _ => {
                        let place = from.place(channel).or_else(|| from.place(Channel::Luma));
                        (place, &self.colour)
                    }
                };
                let source = source.map(|(plane, at)| Place {
                    plane,
                    at,
                    step: from.planes()[plane].channels.len(),
                });
                for y in 0..converted.layout().planes()[plane].height {
                    let row = source.map_or(&[][..], |source| frame.row(source.plane, y));
                    let words = match (source, from.bytes_per_sample()) {
                        (None, _) => Words::One(most),
                        (Some(place), 1) => Words::Bytes(row, place),
                        (Some(place), _) => Words::Pairs(row.as_chunks().0, place),
                    };
                    let target = converted.row_mut(plane, y);
                    let scaled = (&table[..], self.shift);
                    match to.bytes_per_sample() {
                        1 => words.put(scaled, target.as_chunks_mut().0, (at, step), |v| [v as u8]),
                        _ => words.put(scaled, target.as_chunks_mut().0, (at, step), u16::to_le_bytes),
                    }
                }
            }
        }
    }
}

/// The samples of a component in a row.
#[derive(Clone, Copy)]
enum Words<'a> {
    /// The same everywhere.
    One(u16),
    Bytes(&'a [u8], Place),
    Pairs(&'a [[u8; 2]], Place),
}

impl Words<'_> {
    /// Puts the table's samples for words, which are `shift` bits higher, into each `step`-th place from `at`
    /// on.
    fn put<const N: usize>(
        self,
        (table, shift): (&[u16], u32),
        target: &mut [[u8; N]],
        (at, step): (usize, usize),
        stored: impl Fn(u16) -> [u8; N],
    ) {
        let places = target.iter_mut().skip(at).step_by(step);
        // Words may have bits above their depth.
        let most = table.last().copied().unwrap_or_default();
        let scaled = |v: u16| stored(table.get(usize::from(v >> shift)).copied().unwrap_or(most));
        match self {
            Words::One(word) => places.for_each(|to| *to = stored(word)),
            Words::Bytes(row, Place { at, step, .. }) => {
                let row = row.iter().skip(at).step_by(step);
                places.zip(row).for_each(|(to, &v)| *to = scaled(v.into()));
            }
            Words::Pairs(row, Place { at, step, .. }) => {
                let row = row.iter().skip(at).step_by(step);
                places
                    .zip(row)
                    .for_each(|(to, &v)| *to = scaled(u16::from_le_bytes(v)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Converter, unpooled};
    use super::*;
    use crate::frame::{Layout, Range};

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
        let formats = || PixelFormat::all().filter(|f| f.model() != ColourModel::Yuv);
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
        let formats = || PixelFormat::all().filter(|f| f.has_alpha());
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
            PixelFormat::all().filter(move |f| f.model() == model && AvFormat::from_name(f.name()).is_some())
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

    #[test]
    fn limited_range_and_matrices_are_left_to_swscale() {
        let limited = Colour {
            range: Range::Limited,
            ..Colour::default()
        };
        for (from, colour, to) in [
            (PixelFormat::GRAY, limited, PixelFormat::GRAY16),
            (PixelFormat::RGB48, Colour::default(), PixelFormat::GRAY),
            (PixelFormat::RGB24, Colour::default(), PixelFormat::BGR24),
            (PixelFormat::RGB48, Colour::default(), PixelFormat::RGB48),
            (PixelFormat::YUV444P, Colour::default(), PixelFormat::YUV444P10),
        ] {
            assert!(!is_direct((from, colour), to), "{from} {to}");
        }
        let target = AvFormat::from_name("bgr0").unwrap();
        let before = before_scaling((PixelFormat::GBRP16, Colour::default()), target);
        assert_eq!(before, Some(PixelFormat::RGB24));
        assert_eq!(
            before_scaling((PixelFormat::GBRP, Colour::default()), target),
            None
        );
    }
}
