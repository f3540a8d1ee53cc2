//! Integer colour under alpha: the reference against averages in float64 and against what any average under
//! alpha keeps, and every instruction set against the reference.

use super::oracle::{Random, compare, first_difference, format, frame_of, noise, put, run};
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
    PixelFormat::all().filter(|format| format.has_alpha())
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
            let chain = chain(spec, Border::ALL[random.below(6) as usize], planes);
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

/// Pictures of several bands of columns, whose masks reach from one into the next.
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

/// Every colour under every alpha at 8 bits, and as many at random of more: nothing changes.
#[test]
fn the_identity_changes_no_colour_under_any_alpha() {
    let mut random = Random::new(29);
    for format in with_alpha() {
        let (max, is_byte) = (u64::from(format.max_value()), format.depth() == 8);
        for (border, planes) in [(Border::Zero, "all"), (Border::Mirror, "all+alpha")] {
            let frame = frame_of(format, 256, 256, 1, |p, x, y, c| {
                match format.planes()[p].channels[c] {
                    Channel::Alpha if is_byte => y as u32,
                    _ if is_byte => (x + 5 * p + 3 * c) as u32 % 256,
                    _ => random.below(max + 1).min(random.below(3 * max)) as u32,
                }
            });
            for spec in ["mask:rows=0 0 0;0 1 0;0 0 0", "mask:rows=0 0 1 0 0"] {
                let chain = chain(spec, border, planes);
                let result = reference(&chain, &frame);
                assert_eq!(first_difference(&frame, &result), None, "{format}: {chain:?}");
            }
        }
    }
}

/// The sum of weights times numbers around a pixel.
fn sum(
    mask: &Mask,
    border: Border,
    (width, height): (usize, usize),
    at: impl Fn(usize, usize) -> f64,
) -> Vec<f64> {
    let reach = (mask.width() as i64 / 2, mask.height() as i64 / 2);
    let place = |x: usize, i: usize, reach, len| border.index(x as i64 + i as i64 - reach, len);
    let of_pixel = |x: usize, y: usize| -> f64 {
        let rows = (0..mask.height()).filter_map(|j| Some((j, place(y, j, reach.1, height)?)));
        rows.map(|(j, row)| {
            let columns = (0..mask.width()).filter_map(|i| Some((i, place(x, i, reach.0, width)?)));
            columns
                .map(|(i, column)| mask.at(i, j) * at(column, row))
                .sum::<f64>()
        })
        .sum()
    };
    (0..height)
        .flat_map(|y| (0..width).map(move |x| (x, y)))
        .map(|(x, y)| of_pixel(x, y))
        .collect()
}

/// Blurs under alpha beside averages weighted by alpha in float64: no more than a level off where the result
/// has a sixteenth of the largest alpha, and mostly equal.
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
        let format = format(name);
        let (size, max) = ((29, 23), f64::from(format.max_value()));
        for (i, spec) in [
            "gaussian:size=3",
            "gaussian:size=7",
            "gaussian:size=25",
            "gaussian:size=63:sigma=10",
        ]
        .into_iter()
        .enumerate()
        {
            let border = [Border::Mirror, Border::Zero, Border::Replicate][(i + k) % 3];
            let chain = chain(spec, border, ["all", "all+alpha"][i % 2]);
            let mut frame = noise(format, size.0, size.1, &mut random);
            vary_alpha(&mut frame, &mut random);
            let result = reference(&chain, &frame);
            let mask = &chain.filters[0].mask;
            let (alpha_plane, alpha_place) = format.place(Channel::Alpha).unwrap();
            let alpha = |x: usize, y: usize| f64::from(frame.sample(alpha_plane, x, y, alpha_place));
            let alphas = sum(mask, border, size, alpha);
            let (mut compared, mut equal) = (0, 0);
            for (p, plane) in format.planes().iter().enumerate() {
                for (c, &channel) in plane.channels.iter().enumerate() {
                    let level = f64::from(frame.metadata.colour.zero_level(format, channel));
                    let colour = |x, y| (f64::from(frame.sample(p, x, y, c)) - level) * alpha(x, y);
                    let sums = match channel {
                        Channel::Alpha => alphas.clone(),
                        _ => sum(mask, border, size, colour),
                    };
                    for (at, (sum, a)) in sums.iter().zip(&alphas).enumerate() {
                        let (x, y) = (at % size.0, at / size.0);
                        let found = f64::from(result.sample(p, x, y, c));
                        let real = match channel {
                            Channel::Alpha if i % 2 == 0 => {
                                assert_eq!(found, alpha(x, y), "{name} {spec}: copied alpha");
                                continue;
                            }
                            Channel::Alpha => *sum,
                            _ if *a < max * 16.0 / 255.0 => continue,
                            _ => sum / a + level,
                        };
                        let off = (found - (real + 0.5).floor().clamp(0.0, max)).abs();
                        assert!(
                            off <= 1.0,
                            "{name} {spec} {channel:?} ({x}, {y}): {found}, not {real}"
                        );
                        compared += 1;
                        equal += usize::from(off == 0.0);
                    }
                }
            }
            assert!(
                compared > 500 && equal * 100 > compared * 97,
                "{name} {spec}: {equal} of {compared}"
            );
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
