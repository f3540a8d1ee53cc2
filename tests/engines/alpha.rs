//! Integer colour under alpha: the reference against averages in float64 and against what any average under
//! alpha keeps, and every instruction set against the reference.

use super::oracle::{Random, compare, first_difference, format, frame_of, noise, put, run};
use super::wide_gaussians::gaussian;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Border, Chain, Mask, Planes};
use framepipe::frame::{Channel, ColourModel, Frame, PixelFormat};

/// Sizes around the widths of vectors, those of one row or column, and one of several strips.
const SIZES: [(usize, usize); 12] = [
    (1, 1),
    (1, 19),
    (23, 1),
    (2, 3),
    (7, 5),
    (16, 4),
    (17, 13),
    (31, 11),
    (33, 7),
    (61, 4),
    (101, 3),
    (133, 71),
];

/// Every kind of kernel; gains that are no powers of two, biases, thresholds, sums that no number holds, and
/// chains of which a part has nothing to do with alpha.
const SPECS: [&str; 16] = [
    "gaussian:size=3",
    "gaussian:size=7",
    "box:size=9",
    "sharpen",
    "sobel-x:bias=100",
    "mask:rows=0.1 0.2 0.1:bias=-20.3",
    "mask:rows=1 2 1;2 4 2;1 2 1:divisor=11",
    "unsharp:size=3:threshold=9",
    "gaussian:size=5:bias=3|mask:rows=1:bias=5|sharpen",
    "sobel",
    "kirsch:scale=1/4:bias=7",
    "laplacian8:abs",
    "motion:length=9:angle=30",
    "gaussian:sigma=11",
    "mask:rows=1e38 -1e38 1e38;1 2 1;1e38 1e38 -1e38",
    "mask:rows=0.5",
];

fn with_alpha() -> impl Iterator<Item = PixelFormat> {
    PixelFormat::integers().filter(|format| format.has_alpha())
}

fn reference(chain: &Chain, frame: &Frame) -> Frame {
    run(&mut Reference::new(chain.clone()), frame, 1)
}

/// A chain of filters with `|` between them.
fn chain(specs: &str, border: Border, planes: &str) -> Chain {
    let mut chain = Chain::parse(specs.split('|').next().unwrap()).unwrap();
    chain.filters = specs.split('|').map(|spec| spec.parse().unwrap()).collect();
    chain.with_border(border).with_planes(planes.parse().unwrap())
}

/// Gives the frame another alpha: row by row noise, the largest, nothing, the largest but for one pixel,
/// nothing or the largest, and little here and there.
fn vary_alpha(frame: &mut Frame, random: &mut Random) {
    let format = frame.format();
    let (max, (plane, c)) = (format.max_value(), format.place(Channel::Alpha).unwrap());
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let first = random.below(6) as usize;
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let value = match (first + y / 3) % 6 {
            0 => continue,
            1 => max,
            2 => 0,
            3 => max - u32::from(x == width - 1),
            4 => max * random.below(2) as u32,
            _ => random.below(40).saturating_sub(37) as u32,
        };
        put(frame, plane, x, y, c, value);
    }
}

#[test]
fn every_set_gives_the_references_bits() {
    let mut random = Random::new(26);
    for (f, format) in with_alpha().enumerate() {
        for (k, spec) in SPECS.iter().enumerate() {
            let some = match format.model() {
                ColourModel::Rgb => ["r,g", "g", "r,b,a"][k % 3],
                _ => ["luma", "gray", "y,a"][k % 3],
            };
            let planes = ["all", "all+alpha", some][(f + k) % 3];
            let chain = chain(
                spec,
                Border::ALL[random.below(Border::ALL.len() as u64) as usize],
                planes,
            );
            for size in [SIZES[(f + k) % 11], SIZES[random.below(12) as usize]] {
                let mut frame = noise(format, size.0, size.1, &mut random);
                vary_alpha(&mut frame, &mut random);
                compare(&chain, &frame, 1 + random.below(3) as usize, 1);
            }
        }
    }
}

#[test]
fn every_border_and_size_gives_the_references_bits() {
    let mut random = Random::new(27);
    for (b, border) in Border::ALL.into_iter().enumerate() {
        for (k, size) in SIZES.into_iter().enumerate() {
            for name in ["rgba", "argb", "ya16le", "yuva444p10le"] {
                let spec = SPECS[(b + k) % 8];
                let mut frame = noise(format(name), size.0, size.1, &mut random);
                vary_alpha(&mut frame, &mut random);
                compare(&chain(spec, border, ["all", "all+alpha"][k % 2]), &frame, 2, 64);
            }
        }
    }
}

/// Pictures of several parts of columns, whose masks reach from one into the next.
#[test]
fn wide_pictures_give_the_references_bits() {
    let mut random = Random::new(28);
    for (name, spec) in [
        ("rgba", "gaussian:size=63:sigma=9"),
        ("gbrap16le", "gaussian:size=41:sigma=9"),
    ] {
        let mut frame = noise(format(name), 1701, 9, &mut random);
        vary_alpha(&mut frame, &mut random);
        compare(&chain(spec, Border::Mirror, "all"), &frame, 2, 64);
    }
}

/// Gaussians that fit no mask, at every border, of odd sizes, and in strips of several threads.
#[test]
fn wide_gaussians_give_the_references_bits() {
    let mut random = Random::new(32);
    let sizes = [(37, 29), (1, 1), (53, 17), (3, 71), (19, 61), (131, 5)];
    for (f, name) in ["rgba", "ya8", "gbrap", "yuva444p", "rgba64le"]
        .into_iter()
        .enumerate()
    {
        for (b, border) in Border::ALL.into_iter().enumerate() {
            for (k, spec) in ["gaussian:sigma=12:bias=-3.5", "gaussian:sigma=40"]
                .into_iter()
                .enumerate()
            {
                let (width, height) = sizes[(f + b + 2 * k) % sizes.len()];
                let planes = ["all", "all+alpha", ["g", "y"][usize::from(name.starts_with('y'))]];
                let mut chain = chain(spec, border, planes[(f + b + k) % 3]);
                if (f + b) % 4 == 3 {
                    chain.filters[0].threshold = 40.0;
                }
                let mut frame = noise(format(name), width, height, &mut random);
                vary_alpha(&mut frame, &mut random);
                compare(&chain, &frame, 1 + random.below(3) as usize, 1);
            }
        }
    }
    for (name, planes) in [("rgba", "all"), ("yuva444p", "all+alpha")] {
        let mut frame = noise(format(name), 13, 457, &mut random);
        vary_alpha(&mut frame, &mut random);
        let chain = chain("sharpen|gaussian:sigma=12|laplacian8", Border::Mirror, planes);
        compare(&chain, &frame, 4, 1);
    }
}

/// Every colour under every alpha at 8 bits, and as many at random of more: nothing changes, on any set.
#[test]
fn the_identity_changes_no_colour_under_any_alpha() {
    let mut random = Random::new(29);
    for (k, format) in with_alpha().enumerate() {
        let (max, is_byte) = (u64::from(format.max_value()), format.depth() == 8);
        let mut make = |size| {
            frame_of(format, size, size, 1, |p, x, y, c| {
                match format.planes()[p].channels[c] {
                    Channel::Alpha if is_byte => y as u32,
                    _ if is_byte => (x + 5 * p + 3 * c) as u32 % 256,
                    _ => random.below(max + 1).min(random.below(3 * max)) as u32,
                }
            })
        };
        let border = [Border::Zero, Border::Mirror][k % 2];
        let (all, few) = (make(if is_byte { 256 } else { 48 }), make(30));
        for (spec, planes) in [
            ("mask:rows=0 0 0;0 1 0;0 0 0", "all"),
            ("mask:rows=0 0 1 0 0", "all+alpha"),
        ] {
            let chain = chain(spec, border, planes);
            assert_eq!(first_difference(&few, &reference(&chain, &few)), None, "{format}");
            for set in InstructionSet::available() {
                let result = run(
                    &mut Cpu::with_instruction_set(chain.clone(), 1, set).unwrap(),
                    &all,
                    1,
                );
                assert_eq!(first_difference(&all, &result), None, "{format} {set}: {chain:?}");
            }
        }
    }
}

/// The sums of weights times numbers around every pixel; outside is what the border has, or nothing.
fn sums(mask: &Mask, border: Border, (width, height): (usize, usize), numbers: &[f64]) -> Vec<f64> {
    let places = |len: usize, weights: usize| -> Vec<Vec<(usize, usize)>> {
        let at = |x: usize, i: usize| border.index(x as i64 + i as i64 - weights as i64 / 2, len);
        let taps = |x| (0..weights).filter_map(move |i| Some((i, at(x, i)?))).collect();
        (0..len).map(taps).collect()
    };
    let (rows, columns) = (places(height, mask.height()), places(width, mask.width()));
    let mut sums = Vec::new();
    for row in &rows {
        for column in &columns {
            let mut sum = 0.0;
            for &(j, y) in row {
                for &(i, x) in column {
                    sum += mask.at(i, j) * numbers[y * width + x];
                }
            }
            sums.push(sum);
        }
    }
    sums
}

/// What makes a blurred picture of numbers.
type Blur<'a> = &'a dyn Fn(&[f64]) -> Vec<f64>;

/// How many samples of a blur are compared with averages weighted by alpha in float64, which `blur` makes,
/// and how many are equal: none is more than `most` levels off where the result has 16/255 of the largest
/// alpha.
fn compare_with_averages(
    chain: &Chain,
    frame: &Frame,
    is_copied: bool,
    (blur, most): (Blur<'_>, f64),
) -> (usize, usize) {
    let format = frame.format();
    let max = f64::from(format.max_value());
    let (width, height) = (frame.layout().width(), frame.layout().height());
    let result = reference(chain, frame);
    let numbers = |frame: &Frame, p, c| -> Vec<f64> {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        places.map(|(x, y)| f64::from(frame.sample(p, x, y, c))).collect()
    };
    let (alpha_plane, alpha_place) = format.place(Channel::Alpha).unwrap();
    let alpha = numbers(frame, alpha_plane, alpha_place);
    let alphas = blur(&alpha);
    let (mut compared, mut equal) = (0, 0);
    for (p, plane) in format.planes().iter().enumerate() {
        for (c, &channel) in plane.channels.iter().enumerate() {
            let (before, found) = (numbers(frame, p, c), numbers(&result, p, c));
            if channel == Channel::Alpha && is_copied {
                assert_eq!(before, found, "{chain:?}");
                continue;
            }
            let level = f64::from(frame.metadata.colour.zero_level(format, channel));
            let products: Vec<f64> = before.iter().zip(&alpha).map(|(c, a)| (c - level) * a).collect();
            let sums = blur(&products);
            for (at, found) in found.iter().enumerate() {
                let real = match channel {
                    Channel::Alpha => alphas[at],
                    _ if alphas[at] < max * 16.0 / 255.0 => continue,
                    _ => sums[at] / alphas[at] + level,
                };
                let off = (found - (real + 0.5).floor().clamp(0.0, max)).abs();
                assert!(
                    off <= most,
                    "{format}, {channel:?} {at}: {found}, not {real}: {chain:?}"
                );
                compared += 1;
                equal += usize::from(off == 0.0);
            }
        }
    }
    (compared, equal)
}

#[test]
fn blurs_are_within_a_level_of_real_averages() {
    let mut random = Random::new(30);
    for (k, name) in [
        "rgba",
        "ya8",
        "yuva444p",
        "gbrap10le",
        "rgba64le",
        "ya16le",
        "yuva444p16le",
    ]
    .into_iter()
    .enumerate()
    {
        let (mut compared, mut equal) = (0, 0);
        for (i, (spec, (width, height))) in [
            ("gaussian:size=3", (37, 30)),
            ("gaussian:size=7", (37, 30)),
            ("gaussian:size=25", (23, 18)),
            ("gaussian:size=63:sigma=10", (13, 12)),
        ]
        .into_iter()
        .enumerate()
        {
            let border = [Border::Mirror, Border::Zero, Border::Replicate][(i + k) % 3];
            let is_copied = i % 2 == k % 2;
            let chain = chain(spec, border, if is_copied { "all" } else { "all+alpha" });
            let mut frame = noise(format(name), width, height, &mut random);
            vary_alpha(&mut frame, &mut random);
            let mask = &chain.filters[0].mask;
            let blur = |numbers: &[f64]| sums(mask, border, (width, height), numbers);
            let (more, same) = compare_with_averages(&chain, &frame, is_copied, (&blur, 1.0));
            compared += more;
            equal += same;
        }
        assert!(
            compared > 2000 && equal * 100 > compared * 97,
            "{name}: {equal} of {compared}"
        );
    }
}

/// The same of Gaussians that fit no mask, to a level of 8 bits: of noise and of colours and alphas with
/// steps of full height, which show best what is wrong with a kernel.
#[test]
fn wide_blurs_are_within_a_level_of_real_averages() {
    let mut random = Random::new(33);
    let size @ (width, height) = (121, 83);
    for (k, name) in ["rgba", "ya8", "gbrap", "yuva444p", "rgba64le"]
        .into_iter()
        .enumerate()
    {
        let format = format(name);
        let most = (format.max_value() / 255).into();
        for (i, sigma) in [12.0, 40.0].into_iter().enumerate() {
            let border = [Border::Mirror, Border::Zero, Border::Replicate][(i + k) % 3];
            let is_copied = i % 2 == k % 2;
            let planes = if is_copied { "all" } else { "all+alpha" };
            let chain = chain(&format!("gaussian:sigma={sigma}"), border, planes);
            let white = noise(format, width, height, &mut random);
            let steps = frame_of(format, width, height, 1, |p, x, y, c| {
                let is_alpha = format.planes()[p].channels[c] == Channel::Alpha;
                let (across, down) = if is_alpha {
                    (43, 29)
                } else {
                    (17 + 5 * (p + c), 23)
                };
                let of_eight = match ((x / across + y / down) % 2, is_alpha) {
                    (0, true) => 9,
                    (0, false) => 0,
                    _ => 255,
                };
                of_eight * format.max_value() / 255
            });
            let blur = |numbers: &[f64]| gaussian(numbers, size, sigma, (border, 0.0));
            for frame in [&white, &steps] {
                let (compared, equal) = compare_with_averages(&chain, frame, is_copied, (&blur, most));
                println!("{name} {sigma}: {equal} of {compared}");
                assert!(compared > 10_000, "{name}, sigma {sigma}: {compared}");
            }
        }
    }
}

/// The colours of transparent pixels have no part in any other pixel's.
#[test]
fn transparent_pixels_contribute_none() {
    let mut random = Random::new(31);
    for format in with_alpha() {
        for spec in ["gaussian:size=5", "sharpen", "box:size=3:bias=20", "sobel"] {
            let chain = chain(
                spec,
                Border::Reflect,
                ["all", "all+alpha"][random.below(2) as usize],
            );
            let mut frame = noise(format, 23, 24, &mut random);
            vary_alpha(&mut frame, &mut random);
            let (alpha_plane, alpha) = format.place(Channel::Alpha).unwrap();
            let is_transparent = |x, y| frame.sample(alpha_plane, x, y, alpha) == 0;
            let mut changed = false;
            let other = frame_of(format, 23, 24, 1, |p, x, y, c| {
                let sample = u32::from(frame.sample(p, x, y, c));
                if is_transparent(x, y) && (p, c) != (alpha_plane, alpha) {
                    changed = true;
                    return format.max_value() - sample;
                }
                sample
            });
            assert!(changed);
            let [one, two] = [&frame, &other].map(|frame| reference(&chain, frame));
            for (p, plane) in format.planes().iter().enumerate() {
                for (x, y) in (0..24).flat_map(|y| (0..23).map(move |x| (x, y))) {
                    for c in (0..plane.channels.len()).filter(|_| !is_transparent(x, y)) {
                        let samples = (one.sample(p, x, y, c), two.sample(p, x, y, c));
                        assert_eq!(samples.0, samples.1, "{format} {spec} ({x}, {y})");
                    }
                }
            }
        }
    }
}

/// Planes of integers are loaded without a shift.
#[test]
fn no_format_with_alpha_has_padding_bits() {
    assert!(with_alpha().all(|format| format.shift() == 0));
}

#[test]
fn transparent_pixels_lend_no_colour() {
    // Opaque red beside fully transparent green: a blur must not mix green into the red, nor darken it.
    let frame = frame_of(format("rgba"), 8, 4, 1, |_, x, _, c| {
        if x < 4 {
            [200, 0, 0, 255][c]
        } else {
            [0, 255, 0, 0][c]
        }
    });
    for planes in [Planes::All, Planes::AllWithAlpha] {
        let chain = chain("box:size=3", Border::Replicate, &planes.to_string());
        let result = reference(&chain, &frame);
        assert_eq!(
            (0..3).map(|c| result.sample(0, 3, 1, c)).collect::<Vec<_>>(),
            [200, 0, 0]
        );
        let alpha = if planes == Planes::All { 255 } else { 170 };
        assert_eq!(result.sample(0, 3, 1, 3), alpha);
    }
}
