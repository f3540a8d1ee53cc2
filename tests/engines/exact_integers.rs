//! Masks of integers over a divisor against exact rational arithmetic: on every path each sample is the
//! quotient rounded half up.

use super::oracle::{Random, chain, compare, first_difference, format, frame_of, is_tried, noise, run};
use framepipe::engine::reference::Reference;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Mask, NAMED_MASKS, Planes, Response, factors};
use framepipe::frame::{Channel, Frame, PixelFormat};

const FORMATS: [&str; 9] = [
    "gray", "gray10le", "gray12le", "gray14le", "gray16le", "rgb24", "yuv420p", "nv12", "p010le",
];

/// Each sample of the result as a fraction, rounded half up once: `floor(N / D + 1/2)` with the bias in
/// halves of a level.
fn exact(frame: &Frame, chain: &Chain) -> Frame {
    let filter = &chain.filters[0];
    let (mask, integers) = (&filter.mask, filter.mask.exact().unwrap());
    let format = frame.format();
    let depth = format.depth();
    let (rx, ry) = (mask.width() as i64 / 2, mask.height() as i64 / 2);
    frame_of(
        format,
        frame.layout().width(),
        frame.layout().height(),
        1,
        |p, x, y, c| {
            let plane = frame.layout().planes()[p];
            let channel = format.planes()[p].channels[c];
            let level = i128::from(frame.metadata.colour.zero_level(format, channel));
            let outside = match chain.border {
                Border::Constant(v) if !channel.is_chroma() => {
                    (v * f64::from(1 << (depth - 8))).round() as i128 - level
                }
                _ => 0,
            };
            let mut sum = 0_i128;
            for (k, &n) in integers.numerators.iter().enumerate() {
                let (i, j) = ((k % mask.width()) as i64, (k / mask.width()) as i64);
                let signal = match (
                    chain.border.index(x as i64 + i - rx, plane.width),
                    chain.border.index(y as i64 + j - ry, plane.height),
                ) {
                    (Some(x), Some(y)) => i128::from(frame.sample(p, x, y, c)) - level,
                    _ => outside,
                };
                sum += i128::from(n) * signal;
            }
            let takes_bias = !channel.is_chroma() && channel != Channel::Alpha;
            // Tests write at most two decimals.
            let hundredths =
                ((100.0 * filter.bias.value()).round() as i128 * i128::from(takes_bias)) << (depth - 8);
            let divisor = i128::from(integers.divisor);
            let (numerator, divisor) = if divisor < 0 {
                (-sum, -divisor)
            } else {
                (sum, divisor)
            };
            let sum = 100 * numerator + (100 * level + hundredths + 50) * divisor;
            let rounded = sum.div_euclid(100 * divisor);
            rounded.clamp(0, i128::from(format.max_value())) as u32
        },
    )
}

/// Holds the reference to fractions, and every instruction set to the reference.
fn hold(chain: &Chain, frame: &Frame) {
    let expected = exact(frame, chain);
    let found = run(&mut Reference::new(chain.clone()), frame, 1);
    let place = first_difference(&expected, &found);
    assert_eq!(
        place,
        None,
        "{} {}: {:?}",
        frame.format(),
        chain.algorithm,
        chain.filters
    );
    compare(chain, frame, 2, 1);
}

/// The ways in which a mask can be applied without rounding between passes: rows whose sums leave 24 bits are
/// rounded there, so that `auto` takes the whole mask.
fn algorithms(mask: &Mask, format: PixelFormat) -> &'static [Algorithm] {
    let fits = |row: &[f64]| {
        let magnitude: f64 = row.iter().map(|w| w.abs()).sum();
        magnitude * f64::from(format.max_value()) < f64::from(1 << 24)
    };
    match factors(mask) {
        Some(factors) if fits(&factors.row) => &[Algorithm::Direct, Algorithm::Separable, Algorithm::Auto],
        _ => &[Algorithm::Direct, Algorithm::Auto],
    }
}

#[test]
fn every_named_mask_of_integers_is_the_rounded_quotient() {
    let mut random = Random::new(60);
    let others = [
        "box:size=5",
        "box:size=15",
        "box:size=17",
        "box:size=31",
        "box:size=63",
        "binomial:size=3",
        "binomial:size=7",
        "binomial:size=9",
        "mask:rows=0 0 0 0 0 0 0 0 0;0 0 0 0 0 255 0 0 127;0 0 0 0 0 0 0 0 0:divisor=1000",
        "mask:rows=1 -3 5 -2 1 4 -1:divisor=5",
        "mask:rows=1/3 1/7 -2/21 0.5 1",
        "mask:rows=0.299 0.587 0.114",
        "mask:rows=-1 -1 -1;-1 -1 -1;-1 -1 -1:divisor=9:bias=255",
        "mask:rows=1 1 1;1 1 1;1 1 1:divisor=-9:bias=255.5",
        "mask:rows=1 1 1;1 1 1;1 1 1:divisor=4",
        "sharpen:bias=-3.5",
    ];
    let specs = NAMED_MASKS.iter().map(|mask| mask.name).chain(others);
    let filters = specs.map(|spec| spec.parse::<Filter>().unwrap_or_else(|e| panic!("{spec}: {e}")));
    let filters: Vec<Filter> = filters
        .filter(|filter| filter.response == Response::Linear && filter.mask.exact().is_some())
        .collect();
    assert!(filters.len() > others.len() + 10, "{}", filters.len());
    for (k, filter) in filters.iter().enumerate() {
        for (f, name) in FORMATS.into_iter().enumerate().filter(|(f, _)| is_tried(k + f)) {
            let format = format(name);
            let frame = noise(format, 37, 19, &mut random);
            for &algorithm in algorithms(&filter.mask, format) {
                let chain = Chain {
                    filters: vec![filter.clone()],
                    border: Border::ALL[(k + f) / 2 % Border::ALL.len()],
                    planes: Planes::All,
                    algorithm,
                    alpha: Default::default(),
                };
                hold(&chain, &frame);
            }
        }
    }
}

/// A random mask whose integers engines hold: `most` bounds what the magnitudes add up to.
fn mask(random: &mut Random, most: i64) -> Mask {
    let (w, h) = match random.below(8) {
        0 => (25, 25),
        1 => (1 + 2 * random.below(12) as usize, 1),
        2 => (1, 1 + 2 * random.below(12) as usize),
        _ => (1 + 2 * random.below(5) as usize, 1 + 2 * random.below(5) as usize),
    };
    let reach = (most / (w * h) as i64).clamp(1, 3000);
    let lowest = if random.below(2) == 0 { 0 } else { -reach };
    let mut weight =
        |reach: i64| lowest.max(-reach) + random.below((reach - lowest.max(-reach)) as u64 + 1) as i64;
    let small = (reach as f64).sqrt() as i64;
    let row: Vec<i64> = (0..w).map(|_| weight(small)).collect();
    let column: Vec<i64> = (0..h).map(|_| weight(small)).collect();
    let mut q: Vec<i64> = (0..w * h).map(|_| weight(reach)).collect();
    match weight(reach).rem_euclid(4) {
        0 => q = (0..w * h).map(|k| row[k % w] * column[k / w]).collect(),
        1 => {
            for k in 0..w * h / 2 {
                q[w * h - 1 - k] = q[k];
            }
        }
        2 => {
            let one = q[0];
            q.fill(one);
        }
        _ => {}
    }
    let magnitude: i64 = q.iter().map(|n| n.abs()).sum::<i64>().max(1);
    let divisor = match random.below(4) {
        0 => q.iter().sum::<i64>(),
        1 => magnitude,
        2 => 1 + random.below(2 * magnitude as u64) as i64,
        _ => 1 + random.below(50) as i64,
    };
    Mask::from_integers(w, h, q, if divisor == 0 { 7 } else { divisor }).unwrap()
}

#[test]
fn random_masks_of_integers_are_the_rounded_quotient() {
    let mut random = Random::new(61);
    for k in 0..500 {
        let format = format(FORMATS[k % FORMATS.len()]);
        // A quarter of 2^30, so that a divisor of twice as much fits beside.
        let most = (1 << 28) >> format.depth();
        let mask = mask(&mut random, most);
        let ways = algorithms(&mask, format);
        let algorithm = ways[random.below(ways.len() as u64) as usize];
        let border = Border::ALL[random.below(Border::ALL.len() as u64) as usize];
        let mut chain = chain(mask, border, algorithm);
        let biases = [0.0, 0.0, 40.0, -7.5, 300.0, 2.3, -0.7, 0.35];
        chain.filters[0].bias = biases[random.below(biases.len() as u64) as usize].into();
        let (width, height) = (1 + random.below(40) as usize, 1 + random.below(12) as usize);
        hold(&chain, &noise(format, width, height, &mut random));
    }
}

/// 2.3 as a floating-point number is a little less, and a half would be rounded down.
#[test]
fn sums_that_a_decimal_bias_makes_a_half_are_rounded_up() {
    let mut random = Random::new(62);
    for k in 0..120 {
        let format = format(FORMATS[k % FORMATS.len()]);
        let divisor = [5, 7, 10, 25, 3, 100][k % 6];
        let mask = Mask::from_integers(1, 1, vec![1], divisor).unwrap();
        let mut chain = chain(mask, Border::Replicate, Algorithm::Direct);
        chain.filters[0].bias = [2.3, 0.3, 0.1, -1.7, 4.35, 99.99][k / 6 % 6].into();
        hold(&chain, &noise(format, 37, 5, &mut random));
    }
}

/// Boxes are made in several ways, by size and depth: each one at its largest sums, in pictures of less than
/// a vector's width and of several, smaller than the mask and larger.
#[test]
fn boxes_of_every_size_are_the_rounded_mean() {
    let mut random = Random::new(63);
    let sizes = [(1, 1), (1, 13), (13, 1), (31, 7), (67, 5), (131, 37), (200, 3)];
    let formats = ["gray", "gray12le", "gray16le", "rgb48le", "p010le", "gray14le"];
    let mut k = 0;
    let widths = (3..=33).step_by(2).chain([41, 63]).enumerate();
    for (turn, columns) in widths {
        for (r, rows) in [columns, 3, 63].into_iter().enumerate() {
            let formats = formats.into_iter().enumerate();
            for (_, name) in formats.filter(|(f, _)| is_tried(turn + r + f)) {
                k += 1;
                let format = format(name);
                let (width, height) = sizes[k % sizes.len()];
                let mask =
                    Mask::from_integers(columns, rows, vec![1; columns * rows], (columns * rows) as i64);
                let mut chain = chain(mask.unwrap(), Border::Mirror, Algorithm::Auto);
                chain.border = Border::ALL[(k + turn + r) % Border::ALL.len()];
                let max = format.max_value();
                // A sample less than the maximum here and there, so that sums differ.
                let frame = match (k + k / 3) % 3 {
                    0 => noise(format, width, height, &mut random),
                    1 => frame_of(format, width, height, 1, |_, _, _, _| max),
                    _ => frame_of(format, width, height, 1, |_, x, y, _| {
                        max - u32::from((x * 7 + y * 3) % 11 == 0)
                    }),
                };
                hold(&chain, &frame);
            }
        }
    }
    // Bands of black and white as high as the mask change its windows the most; other divisors and a bias
    // leave other remainders.
    for columns in (7..=31).step_by(2) {
        for border in Border::ALL {
            k += 1;
            let all = (columns * columns) as i64;
            let (divisor, bias) = [(all, 0.0), (2 * all + 1, 20.0), (all + 1, 0.0)][k % 3];
            let mask = Mask::from_integers(columns, columns, vec![1; columns * columns], divisor);
            let mut chain = chain(mask.unwrap(), border, Algorithm::Auto);
            chain.filters[0].bias = bias.into();
            let (width, height) = [(1, 1), (1, 47), (37, 1), (67, 70), (131, 40)][k % 5];
            let frame = frame_of(format("gray"), width, height, 1, |_, x, y, _| {
                255 * u32::from((y / columns + x / 50) % 2 == 0)
            });
            compare(&chain, &frame, 1 + k % 2, 1);
        }
    }
}

/// Sums that end in halves, just above and just below, where a quotient is most likely to be rounded wrongly:
/// samples of a row of ones over a divisor that are chosen for their sum.
#[test]
fn sums_beside_halves_are_rounded_right() {
    let mut random = Random::new(62);
    for name in ["gray", "gray10le", "gray16le"] {
        let format = format(name);
        let max = i64::from(format.max_value());
        for size in [3_usize, 5, 7, 9, 13] {
            for divisor in [size as i64, 2 * size as i64, 7, 10, 255] {
                let mask = Mask::from_integers(size, 1, vec![1; size], divisor).unwrap();
                let all = size as i64 * max;
                let chain = chain(mask, Border::Wrap, Algorithm::Direct);
                for _ in 0..4 {
                    // As wide as the mask: with this border every sum is the same.
                    let level = random.below((all / divisor + 1) as u64) as i64;
                    for beside in -1..=1 {
                        let target = (level * divisor + divisor / 2 + beside).clamp(0, all);
                        let mut left = target;
                        let frame = frame_of(format, size, 3, 1, |_, x, _, _| {
                            if x == 0 {
                                left = target;
                            }
                            let sample = left.min(max);
                            left -= sample;
                            sample as u32
                        });
                        hold(&chain, &frame);
                    }
                }
            }
        }
    }
}
