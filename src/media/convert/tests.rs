//! Conversions against the formulas of H.273 in numbers of 64 bits.

use super::component::Component;
use super::*;
use crate::frame::{Channel, YCGCO};

fn frame(name: &str, width: usize, height: usize, fill: impl Fn(usize) -> u8) -> Frame {
    let layout = Layout::new(PixelFormat::from_name(name).unwrap(), width, height, 1).unwrap();
    let mut frame = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
    for (at, byte) in frame.bytes_mut().iter_mut().enumerate() {
        *byte = fill(at);
    }
    frame
}

fn convert(from: &Frame, colour: Colour, to: &str) -> Frame {
    let to = PixelFormat::from_name(to).unwrap();
    let (width, height) = (from.layout().width(), from.layout().height());
    Converter::new((from.format(), colour), to, width, height)
        .unwrap()
        .convert(from)
        .unwrap()
}

#[test]
fn rgb_survives_a_change_of_arrangement() {
    let before = frame("rgb24", 17, 5, |at| (at * 37 % 251) as u8);
    let planar = convert(&before, Colour::default(), "gbrp");
    for y in 0..5 {
        for x in 0..17 {
            assert_eq!(planar.sample(2, x, y, 0), before.sample(0, x, y, 0));
            assert_eq!(planar.sample(0, x, y, 0), before.sample(0, x, y, 1));
            assert_eq!(planar.sample(1, x, y, 0), before.sample(0, x, y, 2));
        }
    }
}

#[test]
fn range_decides_what_white_is() {
    let limited = frame("yuv444p", 8, 4, |at| if at < 32 { 235 } else { 128 });
    let colour = Colour::default();
    let rgb = convert(&limited, colour, "rgb24");
    assert!(rgb.row(0, 2).iter().all(|&v| v >= 254), "{:?}", rgb.row(0, 2));
    let full = Colour {
        range: Range::Full,
        ..colour
    };
    let rgb = convert(&limited, full, "rgb24");
    assert!(
        rgb.row(0, 2).iter().all(|&v| (234..=236).contains(&v)),
        "{:?}",
        rgb.row(0, 2)
    );
    let after = convert(&rgb, rgb.metadata.colour, "yuv444p");
    assert!(
        after.row(0, 1).iter().all(|&v| v.abs_diff(218) <= 1),
        "{:?}",
        after.row(0, 1)
    );
    assert_eq!(after.metadata.colour.range, Range::Limited);
    assert_eq!(after.metadata.colour.matrix, 6);
}

#[test]
fn the_matrix_is_the_tagged_one() {
    let green = frame("rgb24", 8, 4, |at| if at % 3 == 1 { 255 } else { 0 });
    let luma = |matrix| {
        let colour = Colour {
            matrix,
            ..Colour::default()
        };
        convert(&green, colour, "yuv444p").sample(0, 3, 2, 0)
    };
    assert!(
        luma(1).abs_diff(173) <= 1 && luma(6).abs_diff(145) <= 1,
        "{} {}",
        luma(1),
        luma(6)
    );
}

#[test]
fn ycgco_is_four_additions() {
    let colour = Colour {
        matrix: YCGCO,
        range: Range::Full,
        ..Colour::default()
    };
    let planes = |y: u8, cg: u8, co: u8| frame("yuv444p", 4, 1, move |at| [y, cg, co][at / 4]);
    for (y, cg, co, rgb) in [
        (128, 255, 128, [1, 255, 1]),
        (128, 128, 128, [128, 128, 128]),
        (100, 90, 150, [160, 62, 116]),
        (250, 200, 60, [110, 255, 246]),
    ] {
        let mut before = planes(y, cg, co);
        before.metadata.colour = colour;
        assert_eq!(
            &convert(&before, colour, "rgb24").row(0, 0)[..3],
            &rgb,
            "{y} {cg} {co}"
        );
    }
    let limited = Colour {
        range: Range::Limited,
        ..colour
    };
    let mut before = planes(235, 128, 128);
    before.metadata.colour = limited;
    assert_eq!(&convert(&before, limited, "rgb48le").row(0, 0)[..6], &[255; 6]);
    let mut subsampled = frame("yuv420p", 4, 4, |at| if at < 16 { 128 } else { 140 });
    subsampled.metadata.colour = colour;
    assert_eq!(
        &convert(&subsampled, colour, "rgb24").row(0, 0)[..3],
        &[128, 140, 104]
    );
}

#[test]
fn matrices_without_a_formula_are_refused() {
    let before = PixelFormat::from_name("yuv444p").unwrap();
    let rgb = PixelFormat::from_name("rgb24").unwrap();
    for matrix in [0, 10, 11, 12, 13, 14, 15, 16, 17] {
        let colour = Colour {
            matrix,
            ..Colour::default()
        };
        assert!(matches!(
            Converter::new((before, colour), rgb, 4, 4),
            Err(ConvertError::Matrix { .. })
        ));
    }
}

#[test]
fn a_frame_of_another_size_is_refused() {
    let gray = PixelFormat::from_name("gray").unwrap();
    let rgb = PixelFormat::from_name("rgb24").unwrap();
    let mut converter = Converter::new((gray, Colour::default()), rgb, 4, 4).unwrap();
    assert!(matches!(
        converter.convert(&frame("gray", 5, 4, |_| 0)),
        Err(ConvertError::Mismatch { .. })
    ));
}

/// The weights of red and blue in luma, from H.273's table.
fn weights_of(matrix: u8) -> (f64, f64) {
    match matrix {
        1 => (0.2126, 0.0722),
        9 => (0.2627, 0.0593),
        _ => (0.299, 0.114),
    }
}

/// Black (or the centre) and how far it is to white, of a channel.
fn levels(format: PixelFormat, colour: Colour, channel: Channel) -> (f64, f64) {
    let unit = f64::from(1_u32 << (format.depth() - 8));
    let most = f64::from(format.max_value());
    match (channel, colour.is_limited(format)) {
        (Channel::Cb | Channel::Cr, true) => (128.0 * unit, 224.0 * unit),
        (Channel::Cb | Channel::Cr, false) => (128.0 * unit, most),
        (Channel::Luma, true) => (16.0 * unit, 219.0 * unit),
        _ => (0.0, most),
    }
}

/// A channel of a pixel whose channels of another format are known.
fn expected(channel: Channel, matrix: u8, known: &dyn Fn(Channel) -> Option<f64>) -> f64 {
    let (red, blue) = weights_of(matrix);
    let green = 1.0 - red - blue;
    let [r, g, b] = [Channel::Red, Channel::Green, Channel::Blue].map(known);
    if let Some(value) = known(channel) {
        return value;
    }
    match (channel, r, g, b) {
        (Channel::Alpha, ..) => 1.0,
        (Channel::Luma | Channel::Cb | Channel::Cr, Some(r), Some(g), Some(b)) => {
            let luma = red * r + green * g + blue * b;
            match channel {
                Channel::Luma => luma,
                Channel::Cb => (b - luma) / (2.0 * (1.0 - blue)),
                _ => (r - luma) / (2.0 * (1.0 - red)),
            }
        }
        _ => {
            let luma = known(Channel::Luma).unwrap();
            let cb = known(Channel::Cb).unwrap_or(0.0);
            let cr = known(Channel::Cr).unwrap_or(0.0);
            let r = luma + 2.0 * (1.0 - red) * cr;
            let b = luma + 2.0 * (1.0 - blue) * cb;
            match channel {
                Channel::Red => r,
                Channel::Blue => b,
                Channel::Green => (luma - red * r - blue * b) / green,
                _ => 0.0,
            }
        }
    }
}

/// A frame of one colour, of these parts of each channel's span, and the parts that its samples stand for.
fn plain(
    format: PixelFormat,
    colour: Colour,
    parts: &dyn Fn(Channel) -> f64,
) -> (Frame, Vec<(Channel, f64)>) {
    let layout = Layout::new(format, 8, 8, 1).unwrap();
    let mut frame = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
    frame.metadata.colour = colour;
    let mut known = Vec::new();
    for (channel, place) in Component::all(format) {
        let (black, span) = levels(format, colour, channel);
        let level = (black + parts(channel) * span).round();
        known.push((channel, (level - black) / span));
        for y in 0..layout.planes()[place.plane].height {
            place.write(&[level as u16; 8], &mut frame, y);
        }
    }
    (frame, known)
}

/// How far results may be from the formula before they are rounded.
fn tolerance(from: PixelFormat, to: PixelFormat) -> f64 {
    match (from.model(), to.model()) {
        // Weights of 16 bits.
        (ColourModel::Rgb, ColourModel::Gray) => 0.63,
        _ => 0.501,
    }
}

/// Compares a frame of one colour, converted, with the formulas.
fn check(converter: &mut Converter, parts: &dyn Fn(Channel) -> f64) {
    let (from, colour, ..) = converter.input();
    let (frame, known) = plain(from, colour, parts);
    let after = converter.convert(&frame).unwrap();
    let (to, written) = (after.format(), after.metadata.colour);
    let known = |channel| known.iter().find(|(c, _)| *c == channel).map(|(_, part)| *part);
    for (channel, place) in Component::all(to) {
        let (black, span) = levels(to, written, channel);
        let ideal = black + expected(channel, colour.matrix, &known) * span;
        let ideal = ideal.clamp(0.0, f64::from(to.max_value()));
        let size = after.layout().planes()[place.plane];
        for (x, y) in (0..size.height).flat_map(|y| (0..size.width).map(move |x| (x, y))) {
            let found = f64::from(after.sample(place.plane, x, y, place.at));
            assert!(
                (found - ideal).abs() <= tolerance(from, to),
                "{from} to {to}, {colour:?}: {channel:?} is {found}, not {ideal:.2}"
            );
        }
    }
}

#[test]
fn every_pair_of_formats_follows_the_formulas() {
    let formats: Vec<PixelFormat> = PixelFormat::all()
        .filter(|f| AvFormat::from_name(f.name()).is_some())
        .collect();
    let cases = [(Range::Limited, 1), (Range::Full, 9)];
    for (i, &from) in formats.iter().enumerate() {
        for (j, &to) in formats.iter().enumerate() {
            // Within a model, every other case.
            let skipped = if from.model() == to.model() {
                (i + j) % 2
            } else {
                0
            };
            for (range, matrix) in cases.into_iter().skip(skipped).filter(|_| from != to) {
                let range = match from.model() {
                    ColourModel::Rgb => Range::Full,
                    _ => range,
                };
                let colour = Colour {
                    range,
                    matrix,
                    ..Colour::default()
                };
                let mut converter = Converter::new((from, colour), to, 8, 8).unwrap();
                for (luma, blue, red) in [(1.0, 1.0, 1.0), (0.3, 0.7, 0.45), (0.61, 0.33, 0.52)] {
                    check(&mut converter, &|channel| match channel {
                        Channel::Alpha => 0.7,
                        Channel::Blue => blue,
                        Channel::Red => red,
                        Channel::Cb | Channel::Cr if luma == 1.0 => 0.0,
                        Channel::Cb => (blue - 0.5) / 3.0,
                        Channel::Cr => (red - 0.5) / 3.0,
                        _ => luma,
                    });
                }
            }
        }
    }
}
