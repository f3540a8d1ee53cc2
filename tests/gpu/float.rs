//! Floating-point samples: every format and border, masks of every kind, colour under alpha, Gaussians that
//! fit no mask, and what is no number.

use super::{EACH_BORDER, assert_same_rows, card, case, chain, hold_stream, is_stand_in, is_tried, options};
use framepipe::engine::cuda::{Cuda, CudaOptions, MemoryVariant};
use framepipe::engine::reference::Reference;
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Border, Chain, Planes};
use framepipe::frame::{AlphaKind, Buffer, Frame, Layout, PixelFormat};
use rayon::prelude::*;

/// All that have a name, and such as interleave other numbers of components.
fn formats() -> Vec<PixelFormat> {
    let more = ["f32x1", "f16x2", "f32x5", "f16x7", "f32x67"].map(|name| name.parse().unwrap());
    PixelFormat::floats().chain(more).collect()
}

/// Ordinary values, some of them subnormal, below 0 or beyond white; of `strange` frames some are infinite,
/// no number, or so large that sums overflow.
fn frame(format: PixelFormat, (width, height): (usize, usize), alignment: usize, strange: bool) -> Frame {
    let layout = Layout::new(format, width, height, alignment).unwrap();
    let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let (least, most) = match format.depth() {
        16 => (6e-8, 65504.0),
        _ => (1e-45, f32::MAX),
    };
    for (plane, place) in layout.planes().iter().enumerate() {
        for at in 0..place.width * place.height * place.channels {
            let (pixel, channel) = (at / place.channels, at % place.channels);
            let value = match (random() * 97.0) as u32 {
                0 => 0.0,
                1 => -0.0,
                2 => least,
                3 => -300.0 * least,
                4 if strange => f32::INFINITY,
                5 if strange => f32::NEG_INFINITY,
                6 if strange => f32::NAN,
                7 | 8 if strange => most,
                9 => 1000.0 * random(),
                _ => 1.5 * random() - 0.25,
            };
            frame.set_float(plane, pixel % place.width, pixel / place.width, channel, value);
        }
    }
    frame
}

/// The frame as the engine makes it.
fn filtered(engine: &mut dyn Engine, frame: Frame) -> Result<Frame, EngineError> {
    engine.submit(frame, Buffer::unpooled(Box::new(Vec::new())), 1)?;
    Ok(engine.collect()?.unwrap())
}

/// A frame, and how colour and alpha belong together in it.
#[derive(Clone, Copy)]
struct Job {
    format: PixelFormat,
    size: (usize, usize),
    alpha: AlphaKind,
    strange: bool,
}

fn job(format: PixelFormat, size: (usize, usize)) -> Job {
    Job {
        format,
        size,
        alpha: AlphaKind::default(),
        strange: false,
    }
}

/// The reference's bits, of rows that are aligned and of rows that follow each other without a gap.
fn hold(chain: &Chain, job: Job, options: CudaOptions) {
    let of = |alignment| {
        let mut frame = frame(job.format, job.size, alignment, job.strange);
        frame.metadata.colour.alpha = job.alpha;
        frame
    };
    let expected = filtered(&mut Reference::new(chain.clone()), of(1)).unwrap();
    let mut engine = Cuda::new(chain.clone(), options).unwrap();
    for alignment in [64, 1] {
        let got = filtered(&mut engine, of(alignment)).unwrap();
        assert_same_rows(
            &expected,
            &got,
            format_args!(
                "{chain:?} on {} of {:?}, rows at {alignment}, {options:?}",
                job.format, job.size
            ),
        );
    }
}

#[test]
fn every_float_format_under_every_border() {
    let Some(_card) = card() else { return };
    let filters = [
        ("mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5", Algorithm::Direct),
        ("gaussian:size=5:sigma=1", Algorithm::Separable),
        ("gaussian:size=15:sigma=3", Algorithm::Separable),
        ("sobel:bias=20", Algorithm::Auto),
        ("mask:rows=1 4 6 4 1", Algorithm::Direct),
        ("unsharp:sigma=1:threshold=90", Algorithm::Direct),
        ("gaussian:size=17:sigma=3", Algorithm::Direct),
        ("kirsch:scale=1/4", Algorithm::Auto),
        ("laplacian8:abs", Algorithm::Auto),
        ("mask:rows=1;-2;3:bias=-9", Algorithm::Direct),
        ("emboss", Algorithm::Direct),
    ];
    let works: Vec<_> = formats()
        .into_iter()
        .enumerate()
        .flat_map(|(turn, format)| (0..EACH_BORDER.len()).map(move |border| (turn, format, border)))
        // On a stand-in of each format one border.
        .filter(|(turn, _, border)| is_tried(turn + border, EACH_BORDER.len()))
        .collect();
    works.par_iter().for_each(|&(turn, format, border)| {
        let (spec, algorithm) = filters[(turn * 5 + border) % filters.len()];
        let chain = chain(&[spec], EACH_BORDER[border], Planes::AllWithAlpha, algorithm);
        for size in [(1, 1), (1, 41), (67, 3), (139, 37)] {
            // The reference takes long for many components.
            let is_small = format.planes()[0].channels.len() < 16 || size.0 < 100;
            if is_small {
                hold(&chain, job(format, size), options(MemoryVariant::Auto));
            }
        }
    });
}

#[test]
fn every_variant_gives_the_bits_of_floats_or_says_why_it_cannot() {
    let Some(_card) = card() else { return };
    let works: Vec<_> = MemoryVariant::ALL
        .into_iter()
        .enumerate()
        .flat_map(|(v, memory)| {
            [
                ("gaussian:size=9:sigma=2", Algorithm::Separable, "rgbf32"),
                (
                    "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5",
                    Algorithm::Direct,
                    "yaf16",
                ),
                ("gaussian:size=25:sigma=4", Algorithm::Direct, "grayf32"),
            ]
            .into_iter()
            .enumerate()
            .filter(move |(turn, _)| is_tried(v + turn, 3))
            .map(move |(_, work)| (memory, work))
        })
        .collect();
    works.par_iter().for_each(|&(memory, (spec, algorithm, format))| {
        let chain = chain(&[spec], Border::Mirror, Planes::Luma, algorithm);
        let planes = match format {
            "rgbf32" => Planes::All,
            _ => Planes::Luma,
        };
        let chain = Chain { planes, ..chain };
        let format: PixelFormat = format.parse().unwrap();
        if memory == MemoryVariant::Texture {
            let mut engine = Cuda::new(chain, options(memory)).unwrap();
            let error = filtered(&mut engine, frame(format, (9, 9), 1, false))
                .err()
                .unwrap();
            let error = error.to_string();
            assert!(error.contains("--memory texture is not available"), "{error}");
            return;
        }
        hold(&chain, job(format, (75, 35)), options(memory));
        let block = Some((16, 4));
        hold(
            &chain,
            job(format, (75, 35)),
            CudaOptions {
                block,
                ..options(memory)
            },
        );
    });
}

#[test]
fn floating_point_colour_under_alpha() {
    let Some(_card) = card() else { return };
    let specs = [
        ("gaussian:size=5:sigma=1:bias=7", Algorithm::Separable),
        ("sharpen", Algorithm::Direct),
        ("mask:rows=1 1 1;1 1 1;1 1 1:divisor=12", Algorithm::Direct),
        ("unsharp:sigma=1:threshold=60", Algorithm::Direct),
        ("sobel", Algorithm::Auto),
    ];
    let names = ["rgbaf32", "yaf16", "gbrapf32", "rgbaf16", "yaf32", "gbrapf16"];
    let works: Vec<_> = names
        .into_iter()
        .enumerate()
        .flat_map(|(place, format)| (0..specs.len()).map(move |turn| (place, format, turn)))
        .filter(|(place, _, turn)| is_tried(place + turn, specs.len()))
        .collect();
    works.par_iter().for_each(|&(place, format, turn)| {
        let (spec, algorithm) = specs[turn];
        let format: PixelFormat = format.parse().unwrap();
        for (planes, alpha) in [
            (Planes::All, AlphaKind::Straight),
            (Planes::AllWithAlpha, AlphaKind::Straight),
            (Planes::All, AlphaKind::Associated),
        ] {
            if is_stand_in() && (planes == Planes::All) != (place % 2 == 0) {
                continue;
            }
            let chain = chain(&[spec], Border::Constant(200.0), planes, algorithm);
            for size in [(1, 1), (37, 19)] {
                hold(
                    &chain,
                    Job {
                        alpha,
                        ..job(format, size)
                    },
                    options(MemoryVariant::Auto),
                );
            }
        }
    });
}

/// Of every kind of sample, colour under alpha and without, pictures far smaller than what a result depends
/// on.
#[test]
fn floats_under_gaussians_that_fit_no_mask() {
    let Some(_card) = card() else { return };
    let works = [
        (10.4, "grayf32", Border::Constant(99.0), (83, 9), Planes::All),
        (11.0, "rgbf16", Border::Mirror, (3, 47), Planes::All),
        (20.0, "f32x5", Border::Wrap, (13, 7), Planes::All),
        (30.0, "rgbaf32", Border::Reflect, (29, 17), Planes::All),
        (
            12.0,
            "gbrapf16",
            Border::Constant(40.0),
            (17, 5),
            Planes::AllWithAlpha,
        ),
        (50.0, "yaf16", Border::Replicate, (9, 31), Planes::AllWithAlpha),
        (150.0, "grayf16", Border::Mirror, (37, 5), Planes::All),
        (1000.0, "grayf32", Border::Replicate, (2, 3), Planes::All),
    ];
    works
        .par_iter()
        .enumerate()
        .for_each(|(turn, (sigma, format, border, size, planes))| {
            let spec = format!("gaussian:sigma={sigma}:bias=3");
            let mut chain = chain(&[&spec], *border, planes.clone(), Algorithm::Auto);
            if turn % 3 == 2 {
                chain.filters[0].threshold = 30.0;
            }
            let is_quick = *sigma < 1000.0 || !is_stand_in();
            for size in [(1, 1), *size].into_iter().filter(|_| is_quick) {
                let job = Job {
                    strange: turn % 4 == 1,
                    ..job(format.parse().unwrap(), size)
                };
                hold(
                    &chain,
                    job,
                    options(MemoryVariant::ALL[turn % MemoryVariant::ALL.len()]),
                );
            }
        });
}

/// Infinities, sums that overflow and cancel, and what is no number: of the tile's kernels and of the plain
/// ones.
#[test]
fn floats_that_are_no_numbers_are_stored_in_one_way() {
    let Some(_card) = card() else { return };
    let works = [
        ("sharpen", "grayf32", MemoryVariant::Auto),
        ("box:size=3", "rgbf16", MemoryVariant::Auto),
        ("kirsch", "yaf32", MemoryVariant::Auto),
        ("sobel", "grayf16", MemoryVariant::Global),
        ("gaussian:size=5", "f16x5", MemoryVariant::Auto),
        ("unsharp:sigma=1:threshold=9", "rgbaf16", MemoryVariant::Auto),
    ];
    works.par_iter().for_each(|&(spec, format, memory)| {
        let chain = chain(&[spec], Border::Reflect, Planes::AllWithAlpha, Algorithm::Auto);
        let strange = Job {
            strange: true,
            ..job(format.parse().unwrap(), (53, 31))
        };
        hold(&chain, strange, options(memory));
    });
}

/// Each step rounds to samples, and what a slot keeps fits the next frame's format and size.
#[test]
fn chains_of_floats_go_through_the_ring_in_order() {
    let Some(_card) = card() else { return };
    let specs = ["gaussian:size=5:sigma=1", "sharpen", "gaussian:sigma=10.4"];
    let chain = chain(&specs, Border::Mirror, Planes::All, Algorithm::Auto);
    let list: Vec<_> = [
        ("grayf16", (61, 33)),
        ("grayf16", (61, 33)),
        ("grayf16", (61, 33)),
        ("grayf16", (45, 60)),
        ("gray", (61, 33)),
        ("rgbf32", (30, 41)),
        ("rgbf32", (30, 41)),
        ("grayf16", (61, 33)),
    ]
    .into_iter()
    .enumerate()
    .map(|(index, (format, size))| case(chain.clone(), format, size, index as u64 + 1))
    .collect();
    let mut engine = Cuda::new(chain.clone(), CudaOptions::default()).unwrap();
    hold_stream(&mut engine, &list, &mut Reference::new(chain));
    let explanation = engine.explanation().join("\n");
    assert!(
        explanation.is_empty() || explanation.contains("float/"),
        "{explanation}"
    );
}
