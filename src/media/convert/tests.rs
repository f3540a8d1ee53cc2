//! Conversions against the formulas of H.273 in numbers of 64 bits.

use super::component::Component;
use super::*;
use crate::frame::{Channel, FieldOrder, YCGCO};

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
    let formats: Vec<PixelFormat> = PixelFormat::integers()
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

/// A column of `count` samples that lie `step` pixels apart from `first` on, at place `at`: by a triangle as
/// wide as the wider of the steps. Samples beyond the ends are the last ones.
fn weighted(column: &[f64], (first, step): (f64, f64), at: f64, width: f64) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for index in -9..column.len() as i32 + 9 {
        let weight = (1.0 - (first + f64::from(index) * step - at).abs() / width).max(0.0);
        let within = index.clamp(0, column.len() as i32 - 1);
        sum += weight * column[within as usize];
        weights += weight;
    }
    sum / weights
}

/// Where the first row of chroma lies by its location, in pixels.
fn first_row(colour: Colour, log2: u32) -> f64 {
    let centre = f64::from((1 << log2) - 1) / 2.0;
    match colour.chroma_location {
        3 | 4 => 0.0,
        5 | 6 => 2.0 * centre,
        _ => centre,
    }
}

/// Every row of chroma of an interlaced picture is made of rows of its own field.
#[test]
fn chroma_of_interlaced_pictures_stays_in_its_field() {
    let names = [
        "yuv420p",
        "nv12",
        "yuv420p10le",
        "yuv422p",
        "yuv422p10le",
        "yuv444p",
        "yuv410p",
        "rgb24",
    ];
    let formats = names.map(|name| PixelFormat::from_name(name).unwrap());
    let heights = [1, 2, 3, 5, 6, 7, 12, 17];
    let orders = [
        FieldOrder::Progressive,
        FieldOrder::TopFirst,
        FieldOrder::BottomFirst,
    ];
    let cases = (0..formats.len() * formats.len() * heights.len() * 3).map(|case| {
        let pair = case / (heights.len() * 3);
        let (from, to) = (formats[pair / formats.len()], formats[pair % formats.len()]);
        (
            from,
            to,
            heights[case / 3 % heights.len()],
            orders[case % 3],
            case,
        )
    });
    for (from, to, height, order, case) in cases {
        let colour = Colour {
            matrix: 1,
            chroma_location: (case % 7) as u8,
            ..Colour::default()
        };
        let layout = Layout::new(from, 8, height, 1).unwrap();
        let mut before = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
        before.metadata.field_order = order;
        let most = u64::from(from.max_value());
        for (channel, place) in Component::all(from) {
            for y in 0..layout.planes()[place.plane].height {
                // Without colours that RGB does not have.
                let noise = (y as u64 * 7919 + place.at as u64 * 31 + place.plane as u64 * 97) % 101;
                let level = match channel.is_chroma() {
                    true => most / 2 + noise * most / 1000,
                    false => most / 3 + noise * most / 1000,
                };
                place.write(&[level as u16; 8], &mut before, y);
            }
        }
        let mut converter = Converter::new((from, colour), to, 8, height).unwrap();
        let after = converter.convert(&before).unwrap();
        let written = after.metadata.colour;
        let (above, below) = (from.chroma_subsampling().1, to.chroma_subsampling().1);
        for (channel, target) in Component::all(to) {
            let rows = after.layout().planes()[target.plane].height;
            for y in 0..rows {
                let known = |wanted: Channel| {
                    let place = Component::of(from, wanted)?;
                    let (black, span) = levels(from, colour, wanted);
                    let of = if wanted.is_chroma() { above } else { 0 };
                    let to = if channel.is_chroma() { below } else { 0 };
                    let column: Vec<f64> = (0..layout.planes()[place.plane].height)
                        .map(|y| (f64::from(before.sample(place.plane, 0, y, place.at)) - black) / span)
                        .collect();
                    if of == to {
                        return Some(column[y]);
                    }
                    let (step, new_step) = (f64::from(1 << of), f64::from(1 << to));
                    let first = if of > 0 { first_row(colour, of) } else { 0.0 };
                    let at = y as f64 * new_step + if to > 0 { first_row(written, to) } else { 0.0 };
                    let width = step.max(new_step);
                    if order == FieldOrder::Progressive || column.len().min(rows) < 2 {
                        return Some(weighted(&column, (first, step), at, width));
                    }
                    let field: Vec<f64> = column.iter().skip(y % 2).step_by(2).copied().collect();
                    let first = first + (y % 2) as f64 * step;
                    Some(weighted(&field, (first, 2.0 * step), at, 2.0 * width))
                };
                let (black, span) = levels(to, written, channel);
                let ideal = (black + expected(channel, 1, &known) * span).clamp(0.0, to.max_value().into());
                let found = f64::from(after.sample(target.plane, 0, y, target.at));
                assert!(
                    (found - ideal).abs() <= 0.501,
                    "{from} to {to}, {height} rows, {order:?}, {colour:?}: {channel:?} of {y} is {found}, \
                     not {ideal:.2}"
                );
            }
        }
    }
}
