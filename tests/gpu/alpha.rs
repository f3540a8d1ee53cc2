//! Colour under alpha: formats, variants, masks, and every colour under every alpha.

use super::{assert_same_rows, card, case, chain, frame_in, hold_against_reference, is_tried, options};
use framepipe::engine::Engine;
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant};
use framepipe::engine::reference::Reference;
use framepipe::engine::verify::Case;
use framepipe::filter::{Algorithm, Border, Planes};
use framepipe::frame::{Buffer, Channel, Frame, FramePool, PixelFormat};
use rayon::prelude::*;

/// Every format with alpha in every variant, under masks of every kind.
#[test]
fn colour_under_alpha_in_every_format_and_variant() {
    let Some(_card) = card() else { return };
    let specs = [
        ("mask:rows=1 2 3;0 1 4;2 0 1:divisor=14:bias=5", Algorithm::Direct),
        ("gaussian:size=9:sigma=2", Algorithm::Separable),
        ("unsharp:sigma=1:threshold=9", Algorithm::Direct),
        ("sobel:bias=-20", Algorithm::Auto),
        ("gaussian:size=17:sigma=3", Algorithm::Direct),
        ("gaussian:sigma=10.4", Algorithm::Auto),
        ("mask:rows=1 1 1;1 1 1;1 1 1:divisor=12", Algorithm::Separable),
        ("kirsch:scale=1/4", Algorithm::Auto),
        ("gaussian:size=33:sigma=6:bias=9", Algorithm::Separable),
        ("laplacian8:abs:bias=3", Algorithm::Auto),
        ("emboss", Algorithm::Direct),
    ];
    let sizes = [(67, 45), (1, 1), (129, 33), (200, 7), (3, 90)];
    let mut formats: Vec<PixelFormat> = PixelFormat::integers()
        .filter(|format| format.has_alpha())
        .collect();
    formats.sort_by_key(ToString::to_string);
    let works: Vec<_> = (0..formats.len())
        .flat_map(|f| (0..MemoryVariant::ALL.len()).map(move |v| (f, v)))
        .filter(|(f, v)| is_tried(f + v, 2 * MemoryVariant::ALL.len()))
        .collect();
    works.par_iter().for_each(|&(f, v)| {
        let (format, memory) = (formats[f], MemoryVariant::ALL[v]);
        let (spec, algorithm) = specs[(f + 3 * v) % specs.len()];
        let border = Border::ALL[(f + v) % Border::ALL.len()];
        let mut planes =
            [Planes::All, Planes::AllWithAlpha, Planes::Gray, Planes::Luma][(f + v / 2) % 4].clone();
        if planes.check(format).is_err() {
            planes = Planes::Only(vec![Channel::Green]);
        }
        let list = [0, 1].map(|k| {
            let chain = chain(&[spec], border, planes.clone(), algorithm);
            case(
                chain,
                &format.to_string(),
                sizes[(f + 2 * v + k) % sizes.len()],
                (f + v) as u64,
            )
        });
        let options = options(memory);
        hold_against_reference(&list, algorithm, options);
        hold_rows_at(&list[0], algorithm, options, 1);
    });
}

/// Gaussians that fit no mask, at every border and of odd sizes.
#[test]
fn wide_gaussians_of_colour_under_alpha() {
    let Some(_card) = card() else { return };
    let sizes = [(67, 45), (1, 1), (129, 33), (203, 7), (3, 91)];
    let formats = ["rgba", "ya8", "gbrap", "yuva444p", "rgba64le"];
    let works: Vec<_> = (0..formats.len())
        .flat_map(|f| (0..Border::ALL.len()).map(move |b| (f, b)))
        .filter(|(f, b)| is_tried(f + b, 5))
        .collect();
    works.par_iter().for_each(|&(f, b)| {
        let format = formats[f];
        let spec = ["gaussian:sigma=12:bias=9", "gaussian:sigma=40"][b % 2];
        let green_or_luma = if format.starts_with('y') {
            Planes::Luma
        } else {
            Planes::Only(vec![Channel::Green])
        };
        let planes = [Planes::All, Planes::AllWithAlpha, green_or_luma][(f + 2 * b) % 3].clone();
        let list = [0, 1].map(|k| {
            let mut chain = chain(&[spec], Border::ALL[b], planes.clone(), Algorithm::Auto);
            if b == 2 {
                chain.filters[0].threshold = 40.0;
            }
            case(
                chain,
                format,
                sizes[(f + b + 2 * k) % sizes.len()],
                (f + 9 * b) as u64,
            )
        });
        let options = options(MemoryVariant::ALL[(f + 2 * b) % MemoryVariant::ALL.len()]);
        hold_against_reference(&list, Algorithm::Auto, options);
        hold_rows_at(&list[0], Algorithm::Auto, options, 1);
    });
}

/// Filters a frame whose rows begin at multiples of `alignment`.
fn hold_rows_at(case: &Case, algorithm: Algorithm, options: CudaOptions, alignment: usize) {
    let unpooled = || Buffer::unpooled(Box::new(Vec::new()));
    let chain = case.chain(algorithm);
    let mut reference = Reference::new(chain.clone());
    reference.submit(case.frame().unwrap(), unpooled(), 1).unwrap();
    let expected = reference.collect().unwrap().unwrap();
    let mut engine = Cuda::new(chain, options).unwrap();
    let pool = FramePool::new(2, engine.input_allocator());
    let frame = frame_in(pool.try_take().unwrap(), case, alignment);
    engine.submit(frame, pool.try_take().unwrap(), alignment).unwrap();
    let got = engine.collect().unwrap().unwrap();
    assert_same_rows(&expected, &got, format_args!("{case:?}, {options:?}"));
}

/// Frames of many blocks, and of rows that end within one.
#[test]
fn large_frames_of_colour_under_alpha() {
    let Some(_card) = card() else { return };
    std::thread::scope(|scope| {
        for (spec, format, border, size) in [
            ("gaussian:size=3", "rgba", Border::Wrap, (6331, 3571)),
            ("gaussian:size=15", "rgba", Border::Mirror, (4201, 1999)),
            (
                "gaussian:size=25:sigma=4",
                "gbrap",
                Border::Constant(77.0),
                (4201, 1303),
            ),
            (
                "gaussian:size=33:sigma=6",
                "rgba64le",
                Border::Replicate,
                (4201, 1303),
            ),
        ] {
            scope.spawn(move || {
                let chain = chain(&[spec], border, Planes::All, Algorithm::Auto);
                let case = case(chain, format, size, 4);
                hold_against_reference(
                    std::slice::from_ref(&case),
                    Algorithm::Auto,
                    options(MemoryVariant::Auto),
                );
                hold_rows_at(&case, Algorithm::Auto, CudaOptions::default(), 1);
            });
        }
    });
}

/// Every colour of 8 bits under every alpha, rows packed and not; deep formats with both at their ends and
/// noise between.
#[test]
fn every_colour_under_every_alpha() {
    let Some(_card) = card() else { return };
    let specs = [
        "mask:rows=1",
        "mask:rows=1:divisor=3:bias=20",
        "mask:rows=-1 3 -1:bias=-9",
        "mask:rows=-1 3 -1",
        "mask:rows=-2 5 -2",
    ];
    let formats = [
        "rgba",
        "argb",
        "ya8",
        "yuva444p",
        "gbrap",
        "rgba64le",
        "yuva444p16le",
        "gbrap10le",
    ];
    for (place, format) in formats.into_iter().enumerate() {
        let tried = specs
            .into_iter()
            .enumerate()
            .filter(|(turn, _)| is_tried(place + turn, 3));
        for (turn, spec) in tried {
            let planes = [Planes::All, Planes::AllWithAlpha][turn % 2].clone();
            let chain = chain(&[spec], Border::Replicate, planes, Algorithm::Direct);
            let case = case(chain, format, (257, 256), 2);
            let mut engine = Cuda::new(case.chain.clone(), CudaOptions::default()).unwrap();
            let mut reference = Reference::new(case.chain.clone());
            for alignment in [1, 64] {
                let pool = FramePool::new(2, engine.input_allocator());
                let mut frame = frame_in(pool.try_take().unwrap(), &case, alignment);
                spread_colours(&mut frame);
                let unpooled = Buffer::unpooled(Box::new(vec![0; frame.layout().size()]));
                let mut same = frame_in(unpooled, &case, alignment);
                spread_colours(&mut same);
                let output = Buffer::unpooled(Box::new(Vec::new()));
                reference.submit(same, output, 1).unwrap();
                engine.submit(frame, pool.try_take().unwrap(), alignment).unwrap();
                let expected = reference.collect().unwrap().unwrap();
                let got = engine.collect().unwrap().unwrap();
                assert_same_rows(
                    &expected,
                    &got,
                    format_args!("{format}, {spec}, rows at {alignment}"),
                );
            }
        }
    }
}

/// Colours that grow along the rows and alpha that grows down; of deep formats that only at the edges.
fn spread_colours(frame: &mut Frame) {
    let format = frame.format();
    let (bytes, max) = (format.bytes_per_sample(), format.max_value() as usize);
    for (plane, described) in format.planes().iter().enumerate() {
        let (width, height) = (
            frame.layout().planes()[plane].width,
            frame.layout().planes()[plane].height,
        );
        for y in 0..height {
            let row = frame.row_mut(plane, y);
            for x in 0..width {
                for (c, &channel) in described.channels.iter().enumerate() {
                    let at = if channel == Channel::Alpha {
                        y
                    } else {
                        (x + 85 * c) % 256
                    };
                    let value = match at {
                        _ if bytes == 1 => at,
                        0..4 => at,
                        252.. => max + at - 255,
                        _ => continue,
                    };
                    let begin = (x * described.channels.len() + c) * bytes;
                    row[begin..begin + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
                }
            }
        }
    }
}
