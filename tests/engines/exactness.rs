//! The CPU engines against a float64 oracle, against each other, and against what convolution must obey.

use super::oracle::{
    Random, chain, compare, copy, first_difference, format, frame_of, is_tried, noise, real, run,
};
use framepipe::engine::Engine;
use framepipe::engine::cpu::Cpu;
use framepipe::engine::reference::Reference;
use framepipe::filter::{
    Algorithm, AlphaWeighting, Border, Chain, Filter, Kernel, Mask, NAMED_MASKS, Plan, Planes, factors,
};
use framepipe::frame::{Allocator, Buffer, Channel, Colour, Frame, FramePool, Pageable, PixelFormat, Range};
use std::collections::VecDeque;
use std::sync::Arc;

const SIZES: [(usize, usize); 8] = [
    (1, 1),
    (1, 7),
    (9, 1),
    (2, 3),
    (5, 5),
    (17, 13),
    (67, 31),
    (31, 101),
];

fn filter(spec: &str) -> Filter {
    spec.parse().unwrap_or_else(|e| panic!("{spec}: {e}"))
}

fn reference(chain: &Chain, frame: &Frame) -> Frame {
    run(&mut Reference::new(chain.clone()), frame, 1)
}

fn one(spec: &str, border: Border, algorithm: Algorithm) -> Chain {
    Chain {
        filters: vec![filter(spec)],
        border,
        planes: Planes::All,
        algorithm,
        alpha: Default::default(),
    }
}

/// A mask of each kind: odd in both directions, non-square, single row and column, negative, fractional,
/// large.
const SPECS: [&str; 16] = [
    "box:size=3",
    "box:size=5",
    "gaussian:sigma=1.1",
    "gaussian:sigma=2.5",
    "gaussian:sigma=0.1",
    "binomial:size=7",
    "laplacian4",
    "laplacian8",
    "log:size=9:sigma=1.4",
    "log5",
    "sharpen",
    "unsharp:sigma=1.5:amount=0.8",
    "sobel-x",
    "scharr-y:bias=128",
    "motion:length=9:angle=30",
    "mask:rows=0.1 0.5 -1/3 2 0.25",
];

#[test]
fn the_threaded_engine_gives_the_references_bits() {
    let mut random = Random::new(1);
    let mut compared = 0;
    for (f, format) in PixelFormat::integers().enumerate() {
        for (k, spec) in SPECS.iter().enumerate() {
            for algorithm in [Algorithm::Direct, Algorithm::Separable, Algorithm::Auto] {
                let cannot = algorithm == Algorithm::Separable && factors(&filter(spec).mask).is_none();
                if cannot || !is_tried(f + k) {
                    continue;
                }
                let border =
                    Border::ALL[(k + random.below(Border::ALL.len() as u64) as usize) % Border::ALL.len()];
                let size = SIZES[random.below(8) as usize];
                let chain = one(spec, border, algorithm);
                let frame = noise(format, size.0, size.1, &mut random);
                compare(&chain, &frame, 3, 32);
                compared += 1;
            }
        }
    }
    assert!(compared > 750, "{compared}");
}

#[test]
fn every_border_and_size_agrees_too() {
    let mut random = Random::new(2);
    for border in Border::ALL {
        for size in SIZES {
            for name in ["gray", "yuv420p10le", "rgba", "gray16le"] {
                for spec in [
                    "gaussian:sigma=1.7",
                    "log:size=7:sigma=1",
                    "mask:rows=1 2 3;0 0 1;-1 4 0;1 1 1;2 0 0",
                ] {
                    let chain = one(spec, border, Algorithm::Auto);
                    let frame = noise(format(name), size.0, size.1, &mut random);
                    compare(&chain, &frame, 2, 1);
                }
            }
        }
    }
}

#[test]
fn frames_in_flight_come_back_in_order_with_the_references_bits() {
    let mut random = Random::new(12);
    // Planes under alpha take several rounds of strips, and so do the steps of a chain.
    let formats = ["gray", "rgb24", "rgba", "yuva444p", "gbrap16le"];
    for (turn, threads) in [2, 3, 4, 7, 12].into_iter().enumerate() {
        let chain = Chain {
            filters: vec![
                filter("gaussian:size=5"),
                filter("laplacian8"),
                filter("box:size=9"),
            ],
            ..one("box:size=3", Border::ALL[turn], Algorithm::Auto)
        };
        let mut engine = Cpu::new(chain.clone(), threads).unwrap();
        let depth = engine.depth();
        assert!(depth > threads.min(4), "{threads} threads keep {depth} frames");
        let mut expected = VecDeque::new();
        for sequence in 0..2 * depth + 1 {
            // Of several sizes and formats, so that frames that are done first had to wait for others.
            let size = [(203, 331), (33, 5), (64, 150)][random.below(3) as usize];
            let mut frame = noise(
                format(formats[random.below(5) as usize]),
                size.0,
                size.1,
                &mut random,
            );
            frame.sequence = sequence as u64;
            frame.metadata.pts = Some(3 * sequence as i64);
            let memory = Pageable.allocate(frame.layout().size() * 2).unwrap();
            let mut input = copy(&frame, 64);
            (input.sequence, input.metadata) = (frame.sequence, frame.metadata.clone());
            engine.submit(input, Buffer::unpooled(memory), 1).unwrap();
            expected.push_back(frame);
            // The last ones are collected without another one behind them, and all at the end.
            while expected.len() == depth || sequence == 2 * depth && !expected.is_empty() {
                let source = expected.pop_front().unwrap();
                let result = engine.collect().unwrap().unwrap();
                assert_eq!(
                    (result.sequence, result.metadata.pts),
                    (source.sequence, source.metadata.pts)
                );
                let place = first_difference(&reference(&chain, &source), &result);
                assert_eq!(
                    place,
                    None,
                    "{threads} threads, frame {sequence} of {}",
                    source.format()
                );
            }
        }
        assert!(engine.collect().unwrap().is_none());
    }
}

#[test]
fn an_engine_that_goes_with_frames_in_flight_gives_their_buffers_back() {
    let pool = FramePool::new(6, Arc::new(Pageable));
    let mut engine = Cpu::new(one("gaussian:size=7", Border::Mirror, Algorithm::Auto), 2).unwrap();
    let mut random = Random::new(13);
    for _ in 0..engine.depth() {
        let frame = noise(format("gray"), 700, 500, &mut random);
        let mut input = Frame::new(*frame.layout(), pool.try_take().unwrap()).unwrap();
        input.bytes_mut().copy_from_slice(frame.bytes());
        engine.submit(input, pool.try_take().unwrap(), 64).unwrap();
    }
    drop(engine);
    // Waits until the threads are done with the last of them.
    let never = crossbeam_channel::never();
    let buffers: Vec<Buffer> = (0..6).map_while(|_| pool.take(&never).ok()).collect();
    assert_eq!(buffers.len(), 6);
}

#[test]
fn chains_and_choices_of_planes_agree_too() {
    let mut random = Random::new(3);
    let choices = ["all", "luma", "gray", "chroma", "y,v", "all+alpha", "r,b", "a"];
    for (turn, planes) in choices.into_iter().enumerate() {
        let planes: Planes = planes.parse().unwrap();
        let formats = PixelFormat::integers()
            .filter(|&f| planes.check(f).is_ok())
            .enumerate();
        for (_, format) in formats.filter(|(f, _)| is_tried(turn + f)) {
            let filters = vec![
                filter("gaussian:sigma=1.2"),
                filter("sharpen"),
                filter("sobel-x:bias=20"),
            ];
            let chain = Chain {
                filters,
                border: Border::Mirror,
                planes: planes.clone(),
                algorithm: Algorithm::Auto,
                alpha: Default::default(),
            };
            let frame = noise(format, 37, 29, &mut random);
            compare(&chain, &frame, 2, 64);
        }
    }
}

/// A format of the same components, all of full size, without alpha.
fn without_alpha(format: PixelFormat) -> PixelFormat {
    let is_whole = |f: &PixelFormat| f.planes().iter().all(|p| (p.log2_x, p.log2_y) == (0, 0));
    let is_kin = |f: &PixelFormat| (f.model(), f.depth()) == (format.model(), format.depth());
    PixelFormat::integers()
        .find(|f| !f.has_alpha() && is_kin(f) && is_whole(f))
        .unwrap()
}

#[test]
fn straight_colours_are_filtered_as_if_there_were_no_alpha() {
    let mut random = Random::new(7);
    for format in PixelFormat::integers().filter(|f| f.has_alpha()) {
        for spec in ["gaussian:sigma=1.2", "sharpen", "box:size=3:bias=20"] {
            let chain = one(spec, Border::Replicate, Algorithm::Auto).with_alpha(AlphaWeighting::Straight);
            let frame = noise(format, 37, 29, &mut random);
            compare(&chain, &frame, 2, 64);
            let straight = reference(&chain, &frame);
            let other = without_alpha(format);
            let from = |p: usize, c: usize| format.place(other.planes()[p].channels[c]).unwrap();
            let colours = frame_of(other, 37, 29, 1, |p, x, y, c| {
                let (plane, channel) = from(p, c);
                frame.sample(plane, x, y, channel).into()
            });
            let expected = reference(&chain, &colours);
            let (alpha_plane, alpha) = format.place(Channel::Alpha).unwrap();
            for (x, y) in (0..29).flat_map(|y| (0..37).map(move |x| (x, y))) {
                for (p, c) in (0..other.planes().len())
                    .flat_map(|p| (0..other.planes()[p].channels.len()).map(move |c| (p, c)))
                {
                    let (plane, channel) = from(p, c);
                    let found = straight.sample(plane, x, y, channel);
                    assert_eq!(found, expected.sample(p, x, y, c), "{format} {spec} ({x}, {y})");
                }
                let found = straight.sample(alpha_plane, x, y, alpha);
                assert_eq!(found, frame.sample(alpha_plane, x, y, alpha), "{format} {spec}");
            }
            assert!(first_difference(&colours, &expected).is_some(), "{format} {spec}");
        }
    }
}

/// A picture like a photograph: smooth shapes, an edge, fine texture.
fn natural(format: PixelFormat, width: usize, height: usize) -> Frame {
    let max = f64::from(format.max_value());
    let mut random = Random::new(11);
    frame_of(format, width, height, 64, |p, x, y, c| {
        let (x, y) = (x as f64, y as f64);
        let shape = (x * 0.031 + p as f64).sin() * (y * 0.047 + c as f64).cos() * 0.3;
        let edge = if x + 0.6 * y > 60.0 { 0.15 } else { -0.15 };
        let texture = (random.below(1000) as f64 / 1000.0 - 0.5) * 0.08;
        ((0.5 + shape + edge + texture).clamp(0.0, 1.0) * max).round() as u32
    })
}

#[test]
fn results_stay_within_one_level_of_the_real_numbers() {
    let mut compared = 0;
    let formats = [
        "gray",
        "yuv420p",
        "yuv444p10le",
        "gbrp12le",
        "gray14le",
        "gray16le",
        "rgb24",
        "p010le",
    ];
    for (f, name) in formats.into_iter().enumerate() {
        for (k, spec) in SPECS.iter().enumerate() {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                let filter = filter(spec);
                let cannot = algorithm == Algorithm::Separable && factors(&filter.mask).is_none();
                if cannot || !is_tried(f + k) {
                    continue;
                }
                let border = Border::ALL[k % Border::ALL.len()];
                let chain = one(spec, border, algorithm);
                let frames = [
                    natural(format(name), 64, 48),
                    noise(format(name), 33, 21, &mut Random::new(k as u64)),
                ];
                for (frame, is_natural) in frames.iter().zip([true, false]) {
                    let (off, samples) = compare_with_real(frame, &chain, &reference(&chain, frame));
                    compared += 1;
                    // A mask over 60 has many results that end in exactly one half, which any error tips
                    // over.
                    if is_natural && frame.format().depth() == 8 && !spec.contains("1/3") {
                        let share = off as f64 / samples as f64;
                        assert!(
                            share <= 0.005,
                            "{name} {spec} {algorithm}: {share} of the pixels are off by one"
                        );
                    }
                }
            }
        }
    }
    // Every mask as a whole on both frames of four formats or more, and those of rank 1 in two passes, too.
    assert!(compared > 4 * 2 * SPECS.len() + 50, "{compared}");
}

#[test]
fn every_named_mask_border_and_format_is_held_against_the_real_numbers() {
    let formats: Vec<PixelFormat> = PixelFormat::integers().filter(|f| !f.has_alpha()).collect();
    let mut samples = 0;
    for (m, mask) in NAMED_MASKS.iter().enumerate() {
        for (f, &format) in formats.iter().enumerate() {
            // Every mask meets every format and every border; the pairs of formats and borders change with
            // the mask.
            let border = Border::ALL[(m + f) % Border::ALL.len()];
            let chain = one(mask.name, border, Algorithm::Auto);
            let frame = natural(format, 23, 15);
            samples += compare_with_real(&frame, &chain, &reference(&chain, &frame)).1;
        }
    }
    assert!(samples > 500_000, "{samples}");
}

/// The sum of the errors of the weights that a plan really applies.
fn weight_error(frame: &Frame, chain: &Chain) -> f64 {
    let plan = Plan::new(chain, frame.format(), &frame.metadata.colour).unwrap();
    let mask = &chain.filters[0].mask;
    let applied = |i: usize, j: usize| match &plan.steps[0].kernel {
        Kernel::Direct(k) => f64::from(k.weights[j * k.width + i]) / k.division.divisor() as f64,
        // Gradients have integers as weights; one mask stands for all.
        Kernel::Combined(k) => f64::from(k.masks[0][j * k.width + i]) / 2_f64.powi(k.shift as i32),
        Kernel::Separable(k) => {
            let scale = 2_f64.powi(k.row.shift as i32) * k.column.division.divisor() as f64;
            f64::from(k.row.weights[i]) * f64::from(k.column.weights[j]) / scale
        }
        Kernel::Pyramid(_) | Kernel::Weighted(_) => panic!("no mask of integers is applied"),
    };
    let positions = (0..mask.height()).flat_map(|j| (0..mask.width()).map(move |i| (i, j)));
    positions
        .map(|(i, j)| (mask.at(i, j) - applied(i, j)).abs())
        .sum()
}

/// How many samples differ from the rounded real result (by one level; more fails), and how many there are.
fn compare_with_real(frame: &Frame, chain: &Chain, result: &Frame) -> (usize, usize) {
    let (filter, border) = (&chain.filters[0], chain.border);
    let max = f64::from(frame.format().max_value());
    // What the 16 bits of the weights let a picture of 12 bits or more be off, whatever it shows
    // (docs/arithmetic.md).
    let slack = if frame.format().depth() >= 12 {
        weight_error(frame, chain) * max
    } else {
        0.0
    };
    let (mut off, mut samples) = (0, 0);
    for (index, plane) in frame.layout().planes().iter().enumerate() {
        for y in 0..plane.height {
            for x in 0..plane.width {
                for c in 0..plane.channels {
                    let exact = real(frame, &frame.metadata.colour, filter, border, (index, x, y, c));
                    let expected = (exact + 0.5 + 1e-9).floor().clamp(0.0, max);
                    let got = f64::from(result.sample(index, x, y, c));
                    let distance = (got - expected).abs();
                    assert!(
                        distance <= 1.0 || (got - exact).abs() <= 0.5 + slack,
                        "{} {} {border} plane {index} channel {c} ({x}, {y}): {got}, should be {exact}",
                        frame.format(),
                        filter.label
                    );
                    off += usize::from(distance > 0.0);
                    samples += 1;
                }
            }
        }
    }
    (off, samples)
}

#[test]
fn integer_masks_are_exact_in_both_algorithms() {
    let mut random = Random::new(5);
    let mut compared = 0;
    for spec in [
        "mask:rows=1 2 1;2 4 2;1 2 1:divisor=16",
        "binomial:size=5",
        "sobel-x",
        "scharr-y",
        "laplacian8",
    ] {
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let filter = filter(spec);
            if algorithm == Algorithm::Separable && factors(&filter.mask).is_none() {
                continue;
            }
            for name in ["gray", "gray10le", "gray16le"] {
                let frame = noise(format(name), 41, 23, &mut random);
                let chain = one(spec, Border::Mirror, algorithm);
                let (off, _) = compare_with_real(&frame, &chain, &reference(&chain, &frame));
                assert_eq!(off, 0, "{spec} {algorithm} {name}");
                compared += 1;
            }
        }
    }
    // Five masks as a whole, and the four of rank 1 in two passes, on three formats.
    assert_eq!(compared, (5 + 4) * 3);
}

#[test]
fn the_identity_changes_nothing() {
    let mut random = Random::new(6);
    let mask = Mask::from_integers(3, 3, vec![0, 0, 0, 0, 1, 0, 0, 0, 0], 1).unwrap();
    for format in PixelFormat::integers() {
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let frame = noise(format, 19, 11, &mut random);
            let result = reference(&chain(mask.clone(), Border::Zero, algorithm), &frame);
            assert_eq!(first_difference(&frame, &result), None, "{format} {algorithm}");
        }
    }
}

#[test]
fn blurs_keep_a_constant_picture_and_edges_make_it_black() {
    for (f, format) in PixelFormat::integers().enumerate() {
        for (r, range) in [Range::Limited, Range::Full].into_iter().enumerate() {
            let colour = Colour {
                range,
                ..Colour::default()
            };
            let mut frame = frame_of(format, 13, 9, 1, |p, _, _, c| {
                match format.planes()[p].channels[c] {
                    Channel::Alpha => format.max_value(),
                    _ => 3 * format.max_value() / 5,
                }
            });
            frame.metadata.colour = colour;
            let specs = [
                ("gaussian:sigma=1.3", true),
                ("gaussian:sigma=9", true),
                ("box:size=7", true),
                ("sharpen", true),
                ("laplacian8", false),
                ("log:size=11:sigma=1.7", false),
                ("sobel-y", false),
            ];
            let specs = specs.into_iter().enumerate();
            for (_, (spec, blurs)) in specs.filter(|(k, _)| is_tried(f + r + k)) {
                for algorithm in [Algorithm::Direct, Algorithm::Auto] {
                    let result = reference(&one(spec, Border::Replicate, algorithm), &frame);
                    let expected = frame_of(format, 13, 9, 1, |p, x, y, c| {
                        match format.planes()[p].channels[c] {
                            channel if channel != Channel::Alpha && !blurs => {
                                colour.zero_level(format, channel)
                            }
                            _ => u32::from(frame.sample(p, x, y, c)),
                        }
                    });
                    assert_eq!(
                        first_difference(&expected, &result),
                        None,
                        "{format} {spec} {range:?} {algorithm}"
                    );
                }
            }
        }
    }
}

#[test]
fn shifting_the_picture_shifts_the_result() {
    let mut random = Random::new(8);
    let big = noise(format("gray"), 60, 50, &mut random);
    let window = |dx: usize, dy: usize| {
        frame_of(format("gray"), 40, 30, 1, |_, x, y, _| {
            u32::from(big.sample(0, x + dx, y + dy, 0))
        })
    };
    let chain = one("gaussian:sigma=1.5", Border::Replicate, Algorithm::Auto);
    let (a, b) = (reference(&chain, &window(3, 5)), reference(&chain, &window(4, 7)));
    for y in 10..20 {
        for x in 10..30 {
            assert_eq!(a.sample(0, x + 1, y + 2, 0), b.sample(0, x, y, 0));
        }
    }
}

#[test]
fn correlation_is_not_flipped() {
    // One bright pixel; a mask whose only weight is left of the centre looks to the left, so the spot moves
    // right.
    let frame = frame_of(
        format("gray"),
        5,
        3,
        1,
        |_, x, y, _| if (x, y) == (2, 1) { 200 } else { 0 },
    );
    let mask = Mask::from_integers(3, 1, vec![1, 0, 0], 1).unwrap();
    let result = reference(&chain(mask, Border::Zero, Algorithm::Direct), &frame);
    assert_eq!(result.sample(0, 3, 1, 0), 200);
    assert_eq!(result.sample(0, 2, 1, 0), 0);
}

#[test]
fn a_case_worked_by_hand() {
    // 1 2 1 / 2 4 2 / 1 2 1 over 16 at the corner of a 2x2 picture, replicate: (9*10 + 3*20 + 3*30 + 40) / 16
    // = 17.5 -> 18.
    let pixels = [10, 20, 30, 40];
    let frame = frame_of(format("gray"), 2, 2, 1, |_, x, y, _| pixels[2 * y + x]);
    for algorithm in [Algorithm::Direct, Algorithm::Separable] {
        let result = reference(&one("soft", Border::Replicate, algorithm), &frame);
        assert_eq!(result.sample(0, 0, 0, 0), 18);
        // (3*10 + 9*20 + 1*30 + 3*40) / 16 = 22.5 -> 23.
        assert_eq!(result.sample(0, 1, 0, 0), 23);
    }
}

#[test]
fn edges_of_yuv_are_gray_on_black_like_those_of_rgb() {
    let frame = natural(format("yuv444p"), 40, 30);
    let chain = Chain {
        planes: Planes::Gray,
        ..one("laplacian8", Border::Replicate, Algorithm::Auto)
    };
    let result = reference(&chain, &frame);
    for y in 0..30 {
        for x in 0..40 {
            assert!(result.sample(0, x, y, 0) <= 255 && result.sample(1, x, y, 0) == 128);
        }
    }
}

#[test]
fn masks_larger_than_the_frame_are_applied_whole() {
    let frame = noise(format("gray"), 3, 2, &mut Random::new(9));
    for border in Border::ALL {
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let chain = one("gaussian:sigma=6:size=63", border, algorithm);
            compare_with_real(&frame, &chain, &reference(&chain, &frame));
        }
    }
}
