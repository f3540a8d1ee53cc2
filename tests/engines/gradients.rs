//! Gradient magnitudes, absolute values and thresholds against integers that are computed here anew: every
//! format, border and instruction set, on frames of odd sizes, down to one pixel.

use super::oracle::{Random, first_difference, frame_of, noise, run};
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Border, Chain, Planes};
use framepipe::frame::{Channel, Colour, Frame, PixelFormat, Range};

/// What a filter is, in the words of docs/arithmetic.md, for sums that are counted in `1/unit`.
enum Rule {
    /// The magnitude of two masks, times a fraction.
    Magnitude([[i128; 9]; 2], (i128, i128)),
    /// The largest of these, over a power of two.
    Largest(Vec<[i128; 9]>, u32),
    /// The absolute value of one, likewise.
    Absolute([i128; 9], u32),
}

const SOBEL: [[i128; 9]; 2] = [[-1, 0, 1, -2, 0, 2, -1, 0, 1], [-1, -2, -1, 0, 0, 0, 1, 2, 1]];

/// Kirsch's masks by the neighbours that weigh 5: three in a row of the eight around the centre.
fn kirsch() -> Vec<[i128; 9]> {
    let around = [0, 1, 2, 5, 8, 7, 6, 3];
    (0..8)
        .map(|first| {
            let mut mask = [-3; 9];
            mask[4] = 0;
            for k in 0..3 {
                mask[around[(first + k) % 8]] = 5;
            }
            mask
        })
        .collect()
}

fn rules() -> Vec<(&'static str, Rule)> {
    let prewitt = [[-1, 0, 1, -1, 0, 1, -1, 0, 1], [-1, -1, -1, 0, 0, 0, 1, 1, 1]];
    let scharr = [[-3, 0, 3, -10, 0, 10, -3, 0, 3], [-3, -10, -3, 0, 0, 0, 3, 10, 3]];
    let roberts = [[1, 0, 0, 0, -1, 0, 0, 0, 0], [0, 1, 0, -1, 0, 0, 0, 0, 0]];
    let turned = roberts.map(|mut mask| {
        mask.reverse();
        mask
    });
    let laplacian = [-2, -2, -2, -2, 16, -2, -2, -2, -2];
    vec![
        ("sobel", Rule::Magnitude(SOBEL, (1, 1))),
        ("sobel:scale=1/3", Rule::Magnitude(SOBEL, (1, 3))),
        ("sobel:scale=0.5", Rule::Magnitude(SOBEL, (1, 2))),
        ("sobel:scale=0.12207", Rule::Magnitude(SOBEL, (401, 3285))),
        ("prewitt:scale=7/4", Rule::Magnitude(prewitt, (7, 4))),
        ("scharr", Rule::Magnitude(scharr, (1, 1))),
        ("scharr:scale=1/16", Rule::Magnitude(scharr, (1, 16))),
        ("roberts", Rule::Magnitude(roberts, (1, 1))),
        ("roberts:flip:scale=30", Rule::Magnitude(turned, (30, 1))),
        ("kirsch", Rule::Largest(kirsch(), 0)),
        ("kirsch:scale=1/4", Rule::Largest(kirsch(), 2)),
        ("kirsch:flip:scale=1/2", Rule::Largest(kirsch(), 1)),
        ("laplacian8:abs:scale=2", Rule::Absolute(laplacian, 0)),
        ("sobel-x:abs:scale=0.125", Rule::Absolute(SOBEL[0], 3)),
        // It does not add up to 0, so that the zero level counts.
        ("emboss:abs", Rule::Absolute([-2, -1, 0, -1, 1, 1, 0, 1, 2], 0)),
    ]
}

/// floor(n/d sqrt(squares) + 1/2): the one r with (2r - 1)^2 d^2 <= 4 n^2 squares < (2r + 1)^2 d^2.
fn root(squares: i128, (n, d): (i128, i128)) -> i128 {
    let exact = 4 * n * n * squares;
    let mut r = (n as f64 / d as f64 * (squares as f64).sqrt() + 0.5).floor() as i128;
    let edge = |r: i128| (2 * r - 1) * d;
    while r > 0 && edge(r) * edge(r) > exact {
        r -= 1;
    }
    while edge(r + 1) * edge(r + 1) <= exact {
        r += 1;
    }
    r
}

/// The sample that a rule makes of the signals around it, row by row, with a bias.
fn made(rule: &Rule, signals: &[i128; 9], level: i128, bias: i128, max: i128) -> i128 {
    let sum = |mask: &[i128; 9]| mask.iter().zip(signals).map(|(q, p)| q * p).sum::<i128>();
    let rounded = |sum: i128, shift: u32| (2 * sum + (1 << shift)).div_euclid(2 << shift);
    let number = match rule {
        Rule::Magnitude([x, y], scale) => root(sum(x) * sum(x) + sum(y) * sum(y), *scale),
        Rule::Largest(masks, shift) => rounded(masks.iter().map(sum).max().unwrap(), *shift),
        Rule::Absolute(mask, shift) => rounded(sum(mask).abs(), *shift),
    };
    (level + bias + number).clamp(0, max)
}

/// Compares every sample of a filter's result with the rule, which floating-point sums under alpha miss by a
/// level at most; counts those in range.
fn hold(result: &Frame, input: &Frame, border: Border, (rule, bias): (&Rule, i128), what: &str) -> usize {
    let (format, colour) = (input.format(), input.metadata.colour);
    let max = i128::from(format.max_value());
    let eight = 1 << (format.depth() - 8);
    let mut within = 0;
    for (index, plane) in input.layout().planes().iter().enumerate() {
        for (c, &channel) in format.planes()[index].channels.iter().enumerate() {
            let level = i128::from(colour.zero_level(format, channel));
            let outside = match border {
                Border::Constant(v) if !channel.is_chroma() => v as i128 * eight - level,
                _ => 0,
            };
            for (x, y) in (0..plane.height).flat_map(|y| (0..plane.width).map(move |x| (x, y))) {
                let got = i128::from(result.sample(index, x, y, c));
                if channel == Channel::Alpha {
                    assert_eq!(got, i128::from(input.sample(index, x, y, c)), "{what}: alpha");
                    continue;
                }
                let signal = |k: usize| {
                    let (dx, dy) = (k as i64 % 3 - 1, k as i64 / 3 - 1);
                    let at = (
                        border.index(x as i64 + dx, plane.width),
                        border.index(y as i64 + dy, plane.height),
                    );
                    match at {
                        (Some(x), Some(y)) => i128::from(input.sample(index, x, y, c)) - level,
                        _ => outside,
                    }
                };
                let signals = std::array::from_fn(signal);
                let bias = if channel.is_chroma() { 0 } else { bias * eight };
                let expected = made(rule, &signals, level, bias, max);
                let off = i128::from(format.has_alpha());
                assert!(
                    (got - expected).abs() <= off,
                    "{what}, plane {index} channel {c} at ({x}, {y}): {got} instead of {expected}"
                );
                within += usize::from(expected > 0 && expected < max);
            }
        }
    }
    within
}

/// The picture with opaque alpha, under which colours are convolved as they are.
fn opaque(frame: &Frame) -> Frame {
    let format = frame.format();
    let mut made = frame_of(
        format,
        frame.layout().width(),
        frame.layout().height(),
        1,
        |plane, x, y, c| match format.planes()[plane].channels[c] {
            Channel::Alpha => format.max_value(),
            _ => u32::from(frame.sample(plane, x, y, c)),
        },
    );
    made.metadata = frame.metadata.clone();
    made
}

#[test]
fn every_format_border_and_size_is_exact() {
    let mut random = Random::new(5);
    let rules = rules();
    let sizes = [(1, 1), (1, 7), (13, 1), (2, 2), (17, 11), (37, 5), (301, 3)];
    let mut within = 0;
    for (turn, format) in PixelFormat::integers().enumerate() {
        for (at, (spec, rule)) in rules.iter().enumerate() {
            let (width, height) = sizes[(turn + at) % sizes.len()];
            let border = Border::ALL[(turn + 3 * at) % Border::ALL.len()];
            let bias = [0, 40, -9][(turn + at) % 3];
            let mut input = noise(format, width, height, &mut random);
            input.metadata.colour = Colour {
                range: [Range::Limited, Range::Full][turn % 2],
                ..Colour::default()
            };
            let input = opaque(&input);
            let chain = Chain::parse(&format!("{spec}:bias={bias}"))
                .unwrap()
                .with_border(border);
            let what = format!("{format} {spec} {border} {width}x{height}");
            let reference = run(&mut Reference::new(chain.clone()), &input, 1);
            within += hold(&reference, &input, border, (rule, bias), &what);
            for set in InstructionSet::available() {
                let mut cpu = Cpu::with_instruction_set(chain.clone(), 2, set).unwrap();
                let got = run(&mut cpu, &input, 1);
                assert_eq!(first_difference(&got, &reference), None, "{what} {set}");
            }
        }
    }
    assert!(within > 10_000, "{within}");
}

/// Black and white samples, whose sums are as large as any: where the largest just fit a loop's integers, all
/// of them do.
#[test]
fn the_largest_sums_are_exact() {
    let mut random = Random::new(8);
    let (rules, mut within) = (rules(), 0);
    for name in ["gray", "gray9le", "gray10le", "gray12le", "gray14le", "gray16le"] {
        let format = PixelFormat::from_name(name).unwrap();
        for (spec, rule) in &rules {
            let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
            // Within the masks' reach of each other, flat areas and lines of one and two samples.
            let mut before = 0;
            let input = frame_of(format, 211, 9, 1, |_, _, _, _| {
                if random.below(3) > 0 {
                    before = format.max_value() - before;
                }
                before
            });
            let chain = Chain::parse(spec).unwrap().with_border(border);
            let what = format!("{format} {spec} {border}");
            let reference = run(&mut Reference::new(chain.clone()), &input, 1);
            within += hold(&reference, &input, border, (rule, 0), &what);
            for set in InstructionSet::available() {
                let mut cpu = Cpu::with_instruction_set(chain.clone(), 1, set).unwrap();
                assert_eq!(
                    first_difference(&run(&mut cpu, &input, 1), &reference),
                    None,
                    "{what} {set}"
                );
            }
        }
    }
    assert!(within > 20_000, "{within}");
}

/// Differences along both diagonals that lie about where a root's rounding changes, perfect squares and the
/// largest ones: each in a square of 2x2 samples, `a b` above `0 0`, at whose lower right the root is of
/// `a^2 + b^2`. Of 8 bits all pairs are tried.
#[test]
fn roots_are_rounded_where_they_change() {
    const ACROSS: usize = 151;
    let scales = [(1, 1), (1, 2), (2, 1), (1, 3), (10, 7), (1, 127), (3, 401)];
    for (name, (n, d)) in ["gray16le", "gray14le", "gray12le", "gray10le", "gray"]
        .into_iter()
        .flat_map(|name| scales.map(|scale| (name, scale)))
    {
        let format = PixelFormat::from_name(name).unwrap();
        let max = i128::from(format.max_value());
        let mut pairs = vec![(max, max), (max, 0), (0, max), (max, 1), (max - 1, max), (0, 0)];
        for k in (1..max / 5).step_by((max as usize / 300).max(1)) {
            pairs.extend([(3 * k, 4 * k), (4 * k, 3 * k + 1), (5 * k, 0), (5 * k, 1)]);
        }
        for result in (1..60).chain((60..max).step_by((max as usize / 500).max(1))) {
            let least = ((2 * result - 1) * d).pow(2) as f64 / (4 * n * n) as f64;
            for share in [0.0, 0.2, 0.5, 0.9] {
                let a = (least * share).sqrt() as i128;
                let b = (least - (a * a) as f64).max(0.0).sqrt() as i128;
                pairs.extend((b - 1..=b + 2).map(|b| (a, b)));
            }
        }
        pairs.retain(|&(a, b)| a.min(b) >= 0 && a.max(b) <= max);
        if max == 255 {
            pairs = (0..256).flat_map(|a| (0..256).map(move |b| (a, b))).collect();
        }
        let rows = pairs.len().div_ceil(ACROSS);
        let input = frame_of(format, 2 * ACROSS, 2 * rows, 1, |_, x, y, _| {
            let (a, b) = pairs.get(y / 2 * ACROSS + x / 2).copied().unwrap_or_default();
            [[a, b], [0, 0]][y % 2][x % 2] as u32
        });
        let chain = Chain::parse(&format!("roberts:scale={n}/{d}")).unwrap();
        for set in InstructionSet::available() {
            let mut cpu = Cpu::with_instruction_set(chain.clone(), 1, set).unwrap();
            let got = run(&mut cpu, &input, 1);
            for (at, &(a, b)) in pairs.iter().enumerate() {
                let sample = got.sample(0, at % ACROSS * 2 + 1, at / ACROSS * 2 + 1, 0);
                let expected = root(a * a + b * b, (n, d)).min(max);
                assert_eq!(i128::from(sample), expected, "{name} {n}/{d} {set}: {a} {b}");
            }
        }
    }
}

/// Alpha, chains, planes and masks of other sizes: the CPU engine against the reference.
#[test]
fn the_cpu_engine_follows_the_reference_everywhere() {
    let mut random = Random::new(6);
    let specs = [
        "sobel",
        "gaussian:sigma=1,scharr:scale=1/20:bias=3",
        "kirsch:scale=0.3,box:size=3",
        "log:size=7:abs:scale=3.3",
        "mask:rows=-1 2.5 -1/3:abs",
        "mask:rows=-1;2;-3;4;-5:abs:scale=1/7,sobel",
        "unsharp:sigma=1:amount=2:threshold=9",
        "sharpen,unsharp:threshold=3.5:bias=2",
    ];
    let planes = [Planes::All, Planes::AllWithAlpha, Planes::Luma, Planes::Gray];
    let mut compared = 0;
    for (turn, format) in PixelFormat::integers().enumerate() {
        for (at, spec) in specs.iter().enumerate() {
            let planes = &planes[(turn + at) % planes.len()];
            if planes.check(format).is_err() {
                continue;
            }
            let border = Border::ALL[(turn + at) % Border::ALL.len()];
            let chain = Chain::parse(spec)
                .unwrap()
                .with_border(border)
                .with_planes(planes.clone());
            let input = noise(format, 43, 19, &mut random);
            let expected = run(&mut Reference::new(chain.clone()), &input, 1);
            for set in InstructionSet::available() {
                let mut cpu = Cpu::with_instruction_set(chain.clone(), 2, set).unwrap();
                let got = run(&mut cpu, &input, 1);
                let what = format!("{format} {spec} {border} {planes} {set}");
                assert_eq!(first_difference(&got, &expected), None, "{what}");
            }
            compared += 1;
        }
    }
    assert!(compared > 100, "{compared}");
}

#[test]
fn small_differences_leave_samples_as_they_were() {
    let mut random = Random::new(7);
    for name in ["gray", "rgba", "yuv420p10le", "rgb48le"] {
        let format = PixelFormat::from_name(name).unwrap();
        let smooth = |plane: usize, x: usize, y: usize, c: usize| {
            let at = (3 * x + 5 * y + 11 * c + 40 * plane) as u64 + random.below(20);
            (at as u32 * 2) << (format.depth() - 8) & format.max_value()
        };
        let input = frame_of(format, 61, 23, 1, smooth);
        let result = |spec: &str| run(&mut Cpu::new(spec.parse().unwrap(), 1).unwrap(), &input, 1);
        let plain = result("unsharp:amount=0.5");
        let kept = result("unsharp:amount=0.5:threshold=6");
        let threshold = 6 << (format.depth() - 8);
        let (mut left, mut changed) = (0, 0);
        for (index, plane) in input.layout().planes().iter().enumerate() {
            for (x, y) in (0..plane.height).flat_map(|y| (0..plane.width).map(move |x| (x, y))) {
                for c in 0..plane.channels {
                    let [before, plain, kept] =
                        [&input, &plain, &kept].map(|f| i32::from(f.sample(index, x, y, c)));
                    let is_small = (plain - before).abs() < threshold;
                    assert_eq!(kept, if is_small { before } else { plain }, "{name} ({x}, {y})");
                    left += usize::from(is_small && plain != before);
                    changed += usize::from(!is_small);
                }
            }
        }
        assert!(left > 100 && changed > 100, "{name}: {left} {changed}");
    }
}
