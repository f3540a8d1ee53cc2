//! Floating-point samples into integers and back, and the arrangements of either.
//!
//! ```text
//!   integer to float      v / max                         rounded once, to the nearest
//!   float to integer      clamp(v, 0, 1) * max            rounded to the nearest; what is no number is 0
//! ```
//!
//! Values are taken as they are: 1.0 is white, and no tone curve is laid over them. Colour that is multiplied
//! by its alpha is divided by it on the way to integers, whose colour is straight, and to formats without
//! alpha. YUV goes through RGB of 16 bits; swscale itself never sees a floating-point sample.

use super::component::Component;
use super::{ConvertError, Converter, colour_after};
use crate::frame::{AlphaKind, Channel, Colour, ColourModel, Frame, PixelFormat};
use half::f16;
use std::ops::AddAssign;

/// The number of samples outside the range of the new format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CutSamples {
    /// Below 0 by half a step or more.
    pub below: u64,
    /// Above 1 by half a step or more.
    pub above: u64,
    /// No numbers (NaN).
    pub no_number: u64,
    /// Beyond what floating-point numbers of 16 bits hold: they became infinite.
    pub beyond_half: u64,
    /// Pixels whose colour, multiplied by alpha, is not black while alpha is 0: light that straight colours
    /// cannot show.
    pub unseen: u64,
}

impl CutSamples {
    /// In words, such as "12 samples above 1, 3 below 0"; `None` if nothing was cut.
    pub fn words(self) -> Option<String> {
        let counts = [
            (self.above, "above 1"),
            (self.below, "below 0"),
            (self.no_number, "that are no numbers (NaN)"),
            (self.beyond_half, "beyond 65504, which became infinite"),
        ];
        let words: Vec<String> = counts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        (!words.is_empty()).then(|| words.join(", "))
    }
}

impl AddAssign for CutSamples {
    fn add_assign(&mut self, other: CutSamples) {
        self.below += other.below;
        self.above += other.above;
        self.no_number += other.no_number;
        self.beyond_half += other.beyond_half;
        self.unseen += other.unseen;
    }
}

/// A conversion with floating-point samples at one end or both.
pub(super) struct FloatConversion {
    /// Makes RGB or gray of 16 bits of frames that are not read here.
    before: Option<Box<Converter>>,
    /// The formats between which samples are converted here.
    from: PixelFormat,
    to: PixelFormat,
    /// Facts of the format that is read.
    read: Colour,
    /// Makes the format that is wanted of RGB or gray of 16 bits.
    after: Option<Box<Converter>>,
    /// Facts of the format that is written.
    colour: Colour,
}

/// The format of integers of 16 bits that holds most of `format`'s floating-point samples; `None` for
/// components that are no colours.
pub fn integers_for(format: PixelFormat) -> Option<PixelFormat> {
    match (format.model(), format.has_alpha()) {
        (ColourModel::Data, _) => None,
        (ColourModel::Gray, false) => Some(PixelFormat::GRAY16),
        (ColourModel::Gray, true) => Some(PixelFormat::YA16),
        (_, false) => Some(PixelFormat::RGB48),
        (_, true) => Some(PixelFormat::RGBA64),
    }
}

/// True if samples go from one format to the other here, without a matrix.
fn is_direct(from: PixelFormat, to: PixelFormat) -> bool {
    match (from.model(), to.model()) {
        (ColourModel::Data, ColourModel::Data) => {
            from.planes()[0].channels.len() == to.planes()[0].channels.len()
        }
        (ColourModel::Gray, ColourModel::Gray | ColourModel::Rgb) | (ColourModel::Rgb, ColourModel::Rgb) => {
            true
        }
        _ => false,
    }
}

impl FloatConversion {
    /// Prepares a conversion between formats of which one at least holds floating-point samples.
    pub(super) fn new(
        (format, colour): (PixelFormat, Colour),
        to: PixelFormat,
        (width, height): (usize, usize),
    ) -> Result<FloatConversion, ConvertError> {
        let refused = || ConvertError::NoFloatWay {
            from: format.to_string(),
            to: to.to_string(),
        };
        let (mut before, mut after) = (None, None);
        let (mut first, mut last, mut read) = (format, to, colour);
        if !is_direct(first, last) && !first.is_float() {
            let gray = to.model() == ColourModel::Gray;
            first = match (gray, format.has_alpha() && to.has_alpha()) {
                (true, false) => PixelFormat::GRAY16,
                (true, true) => PixelFormat::YA16,
                (false, false) => PixelFormat::RGB48,
                (false, true) => PixelFormat::RGBA64,
            };
            let converter = Converter::new((format, colour), first, width, height)?;
            read = converter.colour();
            before = Some(Box::new(converter));
        } else if !is_direct(first, last) && !last.is_float() {
            last = integers_for(first).ok_or_else(refused)?;
            let between = colour_after(colour, first, last, height);
            after = Some(Box::new(Converter::new((last, between), to, width, height)?));
        }
        if !is_direct(first, last) {
            return Err(refused());
        }
        let result = match &after {
            Some(converter) => converter.colour(),
            None => colour_after(read, first, last, height),
        };
        Ok(FloatConversion {
            before,
            from: first,
            to: last,
            read,
            after,
            colour: result,
        })
    }

    /// The facts of frames that were converted.
    pub(super) fn colour(&self) -> Colour {
        self.colour
    }

    /// Fills `converted`, which has the wanted format, from `frame`.
    pub(super) fn run(&mut self, frame: &Frame, converted: &mut Frame) -> Result<CutSamples, ConvertError> {
        let brought;
        let frame = match &mut self.before {
            Some(before) => {
                brought = before.convert(frame)?;
                &brought
            }
            None => frame,
        };
        let Some(after) = &mut self.after else {
            return Ok(samples(frame, self.from, self.read, converted));
        };
        let has_alpha = after.to.has_alpha();
        let layout = frame.layout();
        let layout = crate::frame::Layout::new(self.to, layout.width(), layout.height(), 64)?;
        let mut between = Frame::new(layout, super::unpooled(&layout)?)?;
        let mut cut = samples(frame, self.from, self.read, &mut between);
        if !has_alpha {
            cut.unseen = 0;
        }
        after.fill(&between, converted)?;
        Ok(cut)
    }
}

/// Fills `to` with the samples of `frame`, component by component and row by row.
fn samples(frame: &Frame, from: PixelFormat, colour: Colour, to: &mut Frame) -> CutSamples {
    let format = to.format();
    let (width, height) = (to.layout().width(), to.layout().height());
    let mut cut = CutSamples::default();
    let alpha = Component::of(from, Channel::Alpha);
    let is_straight = !format.is_float() || !format.has_alpha();
    let divides = colour.alpha == AlphaKind::Associated && from.is_float() && is_straight;
    let mut line = vec![0.0_f32; width];
    let mut opacity = vec![1.0_f32; width];
    let hides = divides && format.has_alpha();
    let mut is_unseen = vec![false; width];
    // Half a step of the integers.
    let least = 0.5 / format.max_value() as f32;
    for y in 0..height {
        is_unseen.fill(false);
        if let Some(alpha) = alpha.filter(|_| divides) {
            read(frame, alpha, y, colour, &mut opacity);
        }
        for (channel, target) in Component::all(format) {
            let source = match channel {
                Channel::Data => Some(target),
                Channel::Alpha => alpha,
                // Gray goes to every colour.
                _ => Component::of(from, channel).or_else(|| Component::of(from, Channel::Luma)),
            };
            match source {
                Some(source) => read(frame, source, y, colour, &mut line),
                None => line.fill(1.0),
            }
            if divides && channel != Channel::Alpha {
                if hides {
                    let pixels = line.iter().zip(&opacity).zip(&mut is_unseen);
                    pixels.for_each(|((&value, &a), unseen)| {
                        *unseen |= value >= least && (a <= 0.0 || a.is_nan());
                    });
                }
                // Light without opacity has no straight colour; it is kept unchanged.
                for (value, &a) in line.iter_mut().zip(&opacity) {
                    *value = if a > 0.0 { *value / a } else { *value };
                }
            }
            cut += write(&line, target, y, to);
        }
        cut.unseen += is_unseen.iter().filter(|&&unseen| unseen).count() as u64;
    }
    cut
}

/// Reads a component of row `y`: floating-point numbers as they are, integers as parts of their white.
pub(super) fn read(frame: &Frame, place: Component, y: usize, colour: Colour, line: &mut [f32]) {
    let (row, format) = (frame.row(place.plane, y), frame.format());
    let Component { plane, at, step } = place;
    let channel = format.planes()[plane].channels[at];
    let (black, size) = match format.is_float() {
        true => (0.0, 1.0),
        false => (
            colour.zero_level(format, channel) as f32,
            colour.span(format, channel) as f32,
        ),
    };
    let part = |word: u16| (f32::from(word) - black) / size;
    match (format.bytes_per_sample(), format.is_float()) {
        (1, _) => each(line, row, (at, step), |[v]: [u8; 1]| part(v.into())),
        (2, false) => each(line, row, (at, step), |v| part(u16::from_le_bytes(v))),
        (2, true) => each(line, row, (at, step), |v| f16::from_le_bytes(v).to_f32()),
        _ => each(line, row, (at, step), f32::from_le_bytes),
    }
}

fn each<const N: usize>(
    line: &mut [f32],
    row: &[u8],
    (at, step): (usize, usize),
    value: impl Fn([u8; N]) -> f32,
) {
    let (stored, _) = row.as_chunks::<N>();
    let stored = stored.iter().skip(at).step_by(step);
    line.iter_mut()
        .zip(stored)
        .for_each(|(to, &from)| *to = value(from));
}

/// Writes a component of row `y`, and counts what integers do not hold.
pub(super) fn write(line: &[f32], place: Component, y: usize, to: &mut Frame) -> CutSamples {
    let format = to.format();
    let Component { plane, at, step } = place;
    let row = to.row_mut(plane, y);
    let mut cut = CutSamples::default();
    match (format.bytes_per_sample(), format.is_float()) {
        (2, true) => put(line, row, (at, step), |v| {
            let half = f16::from_f32(v);
            cut.beyond_half += u64::from(half.is_infinite() && v.is_finite());
            half.to_le_bytes()
        }),
        (_, true) => put(line, row, (at, step), f32::to_le_bytes),
        (bytes, false) => {
            let max = f64::from(format.max_value());
            let mut whole = |value: f32| {
                let scaled = f64::from(value) * max;
                cut.below += u64::from(scaled <= -0.5);
                cut.above += u64::from(scaled >= max + 0.5);
                cut.no_number += u64::from(scaled.is_nan());
                // NaN becomes 0.
                scaled.clamp(0.0, max).round() as u16
            };
            match bytes {
                1 => put(line, row, (at, step), |v| [whole(v) as u8]),
                _ => put(line, row, (at, step), |v| whole(v).to_le_bytes()),
            }
        }
    }
    cut
}

fn put<const N: usize>(
    line: &[f32],
    row: &mut [u8],
    (at, step): (usize, usize),
    mut stored: impl FnMut(f32) -> [u8; N],
) {
    let (places, _) = row.as_chunks_mut::<N>();
    let places = places.iter_mut().skip(at).step_by(step);
    places.zip(line).for_each(|(to, &from)| *to = stored(from));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Layout, Range};

    fn frame(format: PixelFormat, width: usize) -> Frame {
        let layout = Layout::new(format, width, 1, 1).unwrap();
        Frame::new(layout, super::super::unpooled(&layout).unwrap()).unwrap()
    }

    fn floats(format: PixelFormat, values: &[f32]) -> Frame {
        let channels = format.planes()[0].channels.len();
        let mut frame = frame(format, values.len() / channels);
        for (index, &value) in values.iter().enumerate() {
            frame.set_float(0, index / channels, 0, index % channels, value);
        }
        frame
    }

    fn convert(frame: &Frame, colour: Colour, to: PixelFormat) -> (Frame, CutSamples) {
        let mut converter = Converter::new((frame.format(), colour), to, frame.layout().width(), 1).unwrap();
        let converted = converter.convert(frame).unwrap();
        (converted, converter.take_cut())
    }

    #[test]
    fn every_integer_comes_back() {
        for (format, float) in [
            (PixelFormat::GRAY16, PixelFormat::GRAYF32),
            (PixelFormat::GRAY, PixelFormat::GRAYF16),
        ] {
            let most = format.max_value() as usize;
            let mut all = frame(format, most + 1);
            for value in 0..=most {
                let bytes = format.bytes_per_sample();
                all.row_mut(0, 0)[value * bytes..(value + 1) * bytes]
                    .copy_from_slice(&(value as u16).to_le_bytes()[..bytes]);
            }
            let (parts, _) = convert(&all, Colour::default(), float);
            assert_eq!(parts.float(0, most, 0, 0), 1.0);
            if float == PixelFormat::GRAYF32 {
                let exact = (f64::from(12_345_u16) / 65_535.0) as f32;
                assert_eq!(parts.float(0, 12_345, 0, 0), exact);
            }
            let (back, cut) = convert(&parts, Colour::default(), format);
            assert_eq!(back.bytes(), all.bytes());
            assert_eq!(cut, CutSamples::default());
        }
    }

    #[test]
    fn what_integers_do_not_hold_is_counted() {
        let values = [
            -0.1,
            0.5,
            1.000_001,
            7.0,
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-9,
        ];
        let (words, cut) = convert(
            &floats(PixelFormat::GRAYF32, &values),
            Colour::default(),
            PixelFormat::GRAY16,
        );
        let words: Vec<u16> = (0..8).map(|x| words.sample(0, x, 0, 0)).collect();
        assert_eq!(words, [0, 32_768, 65_535, 65_535, 0, 65_535, 0, 0]);
        assert_eq!((cut.below, cut.above, cut.no_number), (2, 2, 1));
        assert_eq!(
            cut.words().unwrap(),
            "2 above 1, 2 below 0, 1 that are no numbers (NaN)"
        );
    }

    #[test]
    fn associated_colour_is_divided_by_its_alpha() {
        let associated = Colour {
            alpha: AlphaKind::Associated,
            ..Colour::default()
        };
        let before = floats(PixelFormat::RGBAF32, &[0.25, 0.5, 0.0, 0.5, 0.25, 0.0, 1.0, 0.0]);
        let (after, cut) = convert(&before, associated, PixelFormat::BGRA);
        assert_eq!(after.row(0, 0), [0, 255, 128, 128, 255, 0, 64, 0]);
        let light = CutSamples {
            unseen: 1,
            ..CutSamples::default()
        };
        assert_eq!(cut, light);
        assert_eq!(after.metadata.colour.alpha, AlphaKind::Straight);
        let (kept, _) = convert(&before, associated, PixelFormat::GBRAPF32);
        assert_eq!((kept.float(2, 0, 0, 0), kept.float(3, 0, 0, 0)), (0.25, 0.5));
        assert_eq!(kept.metadata.colour.alpha, AlphaKind::Associated);
        let (lost, _) = convert(&before, associated, PixelFormat::RGBF32);
        assert_eq!((lost.float(0, 0, 0, 0), lost.float(0, 1, 0, 0)), (0.5, 0.25));
        assert_eq!(lost.metadata.colour.alpha, AlphaKind::Straight);
    }

    #[test]
    fn arrangements_and_ranges() {
        let (rgb, _) = convert(
            &floats(PixelFormat::GRAYF32, &[0.5]),
            Colour::default(),
            PixelFormat::RGBAF16,
        );
        let pixel: Vec<f32> = (0..4).map(|c| rgb.float(0, 0, 0, c)).collect();
        assert_eq!(pixel, [0.5, 0.5, 0.5, 1.0]);
        let limited = Colour {
            range: Range::Limited,
            ..Colour::default()
        };
        let mut gray = frame(PixelFormat::GRAY, 3);
        gray.row_mut(0, 0).copy_from_slice(&[16, 235, 255]);
        let (parts, _) = convert(&gray, limited, PixelFormat::GRAYF32);
        assert_eq!((parts.float(0, 0, 0, 0), parts.float(0, 1, 0, 0)), (0.0, 1.0));
        assert!(parts.float(0, 2, 0, 0) > 1.0);
        assert_eq!(parts.metadata.colour.range, Range::Full);
        // YUV by way of RGB.
        let (yuv, _) = convert(
            &floats(PixelFormat::RGBF32, &[1.0; 48]),
            Colour::default(),
            PixelFormat::YUV444P,
        );
        assert!(yuv.row(0, 0).iter().all(|&luma| luma.abs_diff(235) <= 1));
        let five = PixelFormat::float_channels(32, 5).unwrap();
        let data = floats(five, &[1.0, 2.0, 3.0, 4.0, 5.0]);
        let (short, _) = convert(
            &data,
            Colour::default(),
            PixelFormat::float_channels(16, 5).unwrap(),
        );
        assert_eq!(short.float(0, 0, 0, 4), 5.0);
        for (from, to) in [
            (five, PixelFormat::RGB24),
            (PixelFormat::RGBF32, PixelFormat::GRAYF32),
        ] {
            let refused = Converter::new((from, Colour::default()), to, 1, 1);
            assert!(matches!(refused, Err(ConvertError::NoFloatWay { .. })));
        }
    }
}
