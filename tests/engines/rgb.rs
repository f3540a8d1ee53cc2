//! RGB of frames, as the CPU and cards make it: against real numbers, and against FFmpeg's converter on
//! smooth pictures.

use super::oracle::{Random, frame_of};
use framepipe::engine::cpu;
use framepipe::engine::rgb::to_rgb;
use framepipe::frame::{
    Channel, Colour, ColourModel, FieldOrder, Frame, Image, ImageMut, PixelFormat, Range,
};

/// Numbers of H.273, with KR and KB.
const MATRICES: [(u8, f64, f64); 6] = [
    (1, 0.2126, 0.0722),
    (4, 0.30, 0.11),
    (5, 0.299, 0.114),
    (6, 0.299, 0.114),
    (7, 0.212, 0.087),
    (9, 0.2627, 0.0593),
];

const SIZES: [(usize, usize); 6] = [(1, 1), (1, 9), (10, 1), (2, 2), (17, 7), (12, 13)];

/// Where the first chroma sample lies by its location, in pixels, if `centre` is the middle of those that it
/// stands for.
fn place_of_chroma(location: u8, centre: (f64, f64)) -> (f64, f64) {
    match location {
        0 | 1 => (0.0, centre.1),
        2 => centre,
        3 => (0.0, 0.0),
        4 => (centre.0, 0.0),
        5 => (0.0, 2.0 * centre.1),
        _ => (centre.0, 2.0 * centre.1),
    }
}

/// A component of a frame at a pixel, in levels, by linear interpolation.
fn level(frame: &Frame, channel: Channel, x: usize, y: usize) -> f64 {
    let (plane, at) = frame.format().place(channel).unwrap();
    let (of, lies) = (&frame.format().planes()[plane], &frame.layout().planes()[plane]);
    let steps = (f64::from(1 << of.log2_x), f64::from(1 << of.log2_y));
    let centre = ((steps.0 - 1.0) / 2.0, (steps.1 - 1.0) / 2.0);
    let first = place_of_chroma(frame.metadata.colour.chroma_location, centre);
    let (u, v) = ((x as f64 - first.0) / steps.0, (y as f64 - first.1) / steps.1);
    let (u, v) = (
        u.clamp(0.0, lies.width as f64 - 1.0),
        v.clamp(0.0, lies.height as f64 - 1.0),
    );
    let sample = |u: f64, v: f64| f64::from(frame.sample(plane, u as usize, v as usize, at));
    let right = (u + 1.0).min(lies.width as f64 - 1.0);
    // Of an interlaced picture every other row is of the same field, if there is one.
    let is_of_fields = frame.metadata.field_order != FieldOrder::Progressive && of.log2_y > 0;
    if is_of_fields && lies.height > 1 {
        let v = (y as f64 - first.1) / steps.1;
        let mut rows = (y % 2..lies.height).step_by(2);
        let above = rows
            .clone()
            .rfind(|&row| row as f64 <= v)
            .or(rows.clone().next())
            .unwrap();
        let below = rows
            .clone()
            .find(|&row| row as f64 > v)
            .or(rows.next_back())
            .unwrap();
        let part = if above == below {
            0.0
        } else {
            ((v - above as f64) / 2.0).max(0.0)
        };
        let row = |v: f64| sample(u.floor(), v) * (1.0 - u.fract()) + sample(right, v) * u.fract();
        return row(above as f64) * (1.0 - part) + row(below as f64) * part;
    }
    let below = (v + 1.0).min(lies.height as f64 - 1.0);
    let row = |v: f64| sample(u.floor(), v) * (1.0 - u.fract()) + sample(right, v) * u.fract();
    row(v.floor()) * (1.0 - v.fract()) + row(below) * v.fract()
}

/// Red, green and blue of a pixel, in real numbers from 0 to 1 and beyond.
fn real(frame: &Frame, x: usize, y: usize) -> [f64; 3] {
    let (format, colour) = (frame.format(), frame.metadata.colour);
    let (max, unit) = (
        f64::from(format.max_value()),
        f64::from(1_u32 << (format.depth() - 8)),
    );
    let at = |channel| level(frame, channel, x, y);
    let luma = || match colour.range {
        Range::Limited => (at(Channel::Luma) - 16.0 * unit) / (219.0 * unit),
        _ => at(Channel::Luma) / max,
    };
    let chroma = |channel| {
        let span = if colour.range == Range::Limited {
            224.0 * unit
        } else {
            max
        };
        (at(channel) - 128.0 * unit) / span
    };
    match format.model() {
        ColourModel::Rgb => [Channel::Red, Channel::Green, Channel::Blue].map(|c| at(c) / max),
        ColourModel::Yuv if colour.matrix == 8 => {
            let (y, cg, co) = (luma(), chroma(Channel::Cb), chroma(Channel::Cr));
            [y - cg + co, y + cg, y - cg - co]
        }
        ColourModel::Yuv => {
            let (_, kr, kb) = MATRICES.into_iter().find(|m| m.0 == colour.matrix).unwrap();
            let y = luma();
            let red = y + 2.0 * (1.0 - kr) * chroma(Channel::Cr);
            let blue = y + 2.0 * (1.0 - kb) * chroma(Channel::Cb);
            // What luma is: KR R + KG G + KB B.
            [red, (y - kr * red - kb * blue) / (1.0 - kr - kb), blue]
        }
        _ => [luma(); 3],
    }
}

/// The largest level of the RGB of a format's frames.
fn white(format: PixelFormat) -> f64 {
    if format.depth() == 8 { 255.0 } else { 65535.0 }
}

/// RGB as the CPU engine makes it, in memory that held something else.
fn rgb_by_cpu(frame: &Frame) -> Frame {
    let format = match frame.format().depth() {
        8 => PixelFormat::RGB24,
        _ => PixelFormat::RGB48,
    };
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let mut rgb = frame_of(format, width, height, 1, |_, _, _, _| 0x55);
    let layout = *rgb.layout();
    let mut to = ImageMut::with_layout(rgb.bytes_mut(), layout).unwrap();
    cpu::to_rgb(&Image::from(frame), &mut to).unwrap();
    rgb
}

#[test]
fn rgb_is_within_a_sixtieth_of_a_level_of_real_numbers_before_it_is_rounded() {
    let mut random = Random::new(39);
    // The last one is of several vectors.
    let sizes: Vec<_> = SIZES.into_iter().chain([(71, 3)]).collect();
    for (f, format) in PixelFormat::integers().enumerate() {
        for turn in 0..2 * sizes.len() {
            let (width, height) = sizes[turn % sizes.len()];
            let matrices = MATRICES.map(|m| m.0).into_iter().chain([8]);
            let most = u64::from(format.max_value()) + 1;
            let mut frame = frame_of(format, width, height, 1, |_, _, _, _| random.below(most) as u32);
            frame.metadata.colour = Colour {
                range: [Range::Limited, Range::Full][(f + turn / sizes.len()) % 2],
                matrix: matrices.clone().nth((f + turn) % 7).unwrap(),
                chroma_location: ((f / 2 + turn) % 7) as u8,
                ..Colour::default()
            };
            let orders = [
                FieldOrder::Progressive,
                FieldOrder::TopFirst,
                FieldOrder::BottomFirst,
            ];
            frame.metadata.field_order = orders[(f + turn) % 3];
            let rgb = to_rgb(&frame).unwrap();
            assert_eq!(rgb.len(), 3 * width * height);
            let by_cpu = rgb_by_cpu(&frame);
            for (at, &level) in rgb.iter().enumerate() {
                let (x, y) = (at / 3 % width, at / 3 / width);
                assert_eq!(by_cpu.sample(0, x, y, at % 3), level, "{format} {x} {y}");
            }
            for (pixel, found) in rgb.chunks_exact(3).enumerate() {
                let (x, y) = (pixel % width, pixel / width);
                for (&found, real) in found.iter().zip(real(&frame, x, y)) {
                    let most = white(format);
                    let off = (f64::from(found) - (real * most).clamp(0.0, most)).abs();
                    let facts = frame.metadata.colour;
                    assert!(
                        off <= 0.5 + 1.0 / 60.0,
                        "{format} {width}x{height} {x} {y}: {off} {facts:?}"
                    );
                }
            }
        }
    }
}

/// Black, white and what lies between have no colour, whatever is said of it.
#[test]
fn grays_are_gray_and_white_is_white() {
    for format in PixelFormat::integers().filter(|f| f.model() == ColourModel::Yuv) {
        for (matrix, range) in [
            (1, Range::Limited),
            (6, Range::Full),
            (8, Range::Limited),
            (9, Range::Full),
        ] {
            let colour = Colour {
                matrix,
                range,
                ..Colour::default()
            };
            let unit = 1 << (format.depth() - 8);
            let (black, most) = match range {
                Range::Limited => (16 * unit, 235 * unit),
                _ => (0, format.max_value()),
            };
            let mut frame = frame_of(format, 5, 1, 1, |plane, x, _, at| {
                match format.planes()[plane].channels[at].is_chroma() {
                    true => 128 * unit,
                    false => [black, most, black / 2, black + unit * 30, black + unit * 99][x],
                }
            });
            frame.metadata.colour = colour;
            let rgb = to_rgb(&frame).unwrap();
            assert_eq!(rgb[..3], [0; 3]);
            assert_eq!(rgb[3..6], [white(format) as u16; 3], "{format} {colour:?}");
            assert!(rgb.chunks_exact(3).all(|p| p[0] == p[1] && p[1] == p[2]));
        }
    }
}

/// FFmpeg's converter interpolates by cubics and rounds more than once, so that pictures are smooth; and it
/// takes all grays for those of full range.
#[cfg(feature = "ffmpeg")]
#[test]
fn smooth_pictures_are_within_two_levels_of_swscales() {
    use framepipe::convert::Converter;

    let mut compared = 0;
    for (f, format) in PixelFormat::integers().enumerate() {
        let to = if format.depth() == 8 {
            PixelFormat::RGB24
        } else {
            PixelFormat::RGB48
        };
        if format == to {
            continue;
        }
        let unit = 1_u32 << (format.depth() - 8);
        // Where the last sample stands for fewer pixels swscale moves all of them, and at an edge cubics go
        // further: both in proportion to the pixels between samples.
        let is_coarse = format.planes().iter().any(|plane| plane.log2_x == 2);
        let allowed = if is_coarse { 6.0 } else { 2.0 };
        for (turn, (width, height)) in SIZES.into_iter().chain([(64, 48), (37, 31)]).enumerate() {
            let mut frame = frame_of(format, width, height, 1, |plane, x, y, at| {
                let of = &format.planes()[plane];
                let (x, y) = ((x << of.log2_x) as f64, (y << of.log2_y) as f64);
                let level = match of.channels[at] {
                    Channel::Cb => 128.0 + 0.7 * (x - 32.0),
                    Channel::Cr => 128.0 - 0.7 * (y - 24.0) + 0.3 * (x - 32.0),
                    Channel::Green => 200.0 - 1.5 * x - 0.5 * y,
                    _ => 90.0 + 0.5 * x + 0.4 * y,
                };
                (level * f64::from(unit)).round() as u32
            });
            let matrices = MATRICES.map(|m| m.0).into_iter().chain([8]);
            frame.metadata.colour = Colour {
                range: match format.model() {
                    ColourModel::Yuv => [Range::Limited, Range::Full][(f + turn) % 2],
                    _ => Range::Full,
                },
                matrix: matrices.clone().nth((f + turn) % 7).unwrap(),
                // Nothing is said of the middle of four, nor of a place below it.
                chroma_location: 3,
                ..Colour::default()
            };
            // Some formats swscale only writes.
            let Ok(mut swscale) = Converter::new((format, frame.metadata.colour), to, width, height) else {
                continue;
            };
            compared += 1;
            let expected = swscale.convert(&frame).unwrap();
            for (pixel, found) in to_rgb(&frame).unwrap().chunks_exact(3).enumerate() {
                for (c, &found) in found.iter().enumerate() {
                    let expected = expected.sample(0, pixel % width, pixel / width, c);
                    let off = f64::from(found.abs_diff(expected)) / white(format) * 255.0;
                    let facts = frame.metadata.colour;
                    assert!(
                        off <= allowed,
                        "{format} {width}x{height} {pixel} {c}: {off} {facts:?}"
                    );
                }
            }
        }
    }
    assert!(compared >= 60 * (SIZES.len() + 2), "{compared}");
}

#[test]
fn the_room_for_rgb_is_of_its_size_and_depth() {
    let frame = frame_of(PixelFormat::YUV420P, 6, 4, 1, |_, _, _, _| 100);
    for (format, width) in [
        (PixelFormat::RGB48, 6),
        (PixelFormat::RGB24, 5),
        (PixelFormat::BGR24, 6),
    ] {
        let mut bytes = vec![0; 6 * 4 * 6];
        let mut to = ImageMut::new(&mut bytes, format, width, 4).unwrap();
        let error = cpu::to_rgb(&Image::from(&frame), &mut to).unwrap_err();
        assert!(error.to_string().contains("6x4 yuv420p is rgb24"), "{error}");
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
}
