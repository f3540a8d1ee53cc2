//! Frames of floating-point samples: the reference against real numbers and against the definition, stated
//! here anew and followed to the bit; and the CPU engine against the reference.

use super::oracle::{Random, compare, empty_frame, run, stored};
use framepipe::engine::Engine;
use framepipe::engine::cpu::Cpu;
use framepipe::engine::reference::Reference;
use framepipe::filter::{
    Algorithm, Border, Chain, Filter, FloatKernel, FloatPlan, FloatPyramid, Mask, Planes, Response,
};
use framepipe::frame::{AlphaKind, Channel, Colour, Frame, PixelFormat};
use half::f16;
use std::collections::HashMap;

/// Sizes around the widths of vectors, and those of one row or column.
const SIZES: [(usize, usize); 10] = [
    (1, 1),
    (1, 19),
    (23, 1),
    (2, 3),
    (7, 5),
    (17, 13),
    (31, 11),
    (33, 7),
    (61, 4),
    (101, 3),
];

/// Every kind of kernel, small and large.
const SPECS: [&str; 20] = [
    "box:size=3",
    "gaussian:sigma=1.5",
    "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5",
    "sobel",
    "laplacian8:abs:scale=2",
    "kirsch:scale=1/4:bias=7",
    "mask:rows=1 4 6 4 1:divisor=16:bias=-20",
    "mask:rows=1;-2;3",
    "unsharp:sigma=0.8:threshold=12",
    "mask:rows=0.5",
    "mask:rows=1:bias=30",
    "sobel-x:bias=128",
    "roberts:scale=2.5:bias=3",
    "gaussian:size=31:sigma=6",
    "gaussian:sigma=11",
    "motion:length=9:angle=30",
    "scharr:scale=1/9",
    "unsharp:size=3:threshold=5:bias=2",
    "gaussian:size=5",
    "mask:rows=0 0 0 0 0;0 0 0 0 0;0 0 0 0 0;0 0 0 0 0;0 0 0 0 0",
];

/// The formats that have names, and some of many components.
pub(super) fn formats() -> Vec<PixelFormat> {
    let others = [(32, 1), (32, 2), (32, 5), (16, 3), (16, 7), (32, 19)];
    PixelFormat::floats()
        .chain(others.map(|(bits, count)| PixelFormat::float_channels(bits, count).unwrap()))
        .collect()
}

/// What noise holds beside numbers around 0 to 1.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Extras {
    None,
    /// Zeros of both signs, subnormal numbers, very large ones.
    Finite,
    /// Infinities and what is not a number, quiet or not, too.
    All,
}

/// A frame whose samples `make` gives the bits of, from a number of 32 bits.
pub(super) fn frame_of_bits(
    format: PixelFormat,
    (width, height): (usize, usize),
    make: &mut dyn FnMut() -> u32,
) -> Frame {
    let mut frame = empty_frame(format, width, height, 64);
    let bytes = format.bytes_per_sample();
    for plane in 0..format.planes().len() {
        for y in 0..height {
            for sample in frame.row_mut(plane, y).chunks_exact_mut(bytes) {
                sample.copy_from_slice(&make().to_le_bytes()[..bytes]);
            }
        }
    }
    frame
}

pub(super) fn noise(format: PixelFormat, size: (usize, usize), random: &mut Random, extras: Extras) -> Frame {
    let is_half = format.depth() == 16;
    let of = |value: f32| {
        if is_half {
            u32::from(f16::from_f32(value).to_bits())
        } else {
            value.to_bits()
        }
    };
    let special: &[f32] = match extras {
        Extras::None => &[],
        Extras::Finite => &[0.0, -0.0, 1e-40, -3e-42, 3e-6, -1e-7, 6e4, -5e4, 1e30],
        Extras::All => &[
            0.0,
            -0.0,
            1e-40,
            3e-6,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            3e38,
        ],
    };
    frame_of_bits(format, size, &mut || match random.below(24) {
        at if (at as usize) < special.len() => of(special[at as usize]),
        // A quiet and a signalling one with a payload.
        20 if extras == Extras::All && is_half => 0xfe31,
        21 if extras == Extras::All && is_half => 0x7c07,
        20 if extras == Extras::All => 0xffc0_1234,
        21 if extras == Extras::All => 0x7f80_0777,
        22 => of(1.0),
        23 => of(0.0),
        _ => of(random.below(1 << 24) as f32 / (1 << 23) as f32 - 0.5),
    })
}

pub(super) fn chain(specs: &[&str], border: Border, planes: &str, algorithm: Algorithm) -> Chain {
    Chain {
        filters: specs.iter().map(|spec| spec.parse().unwrap()).collect(),
        border,
        planes: planes.parse().unwrap(),
        algorithm,
        alpha: Default::default(),
    }
}

pub(super) fn associated() -> Colour {
    Colour {
        alpha: AlphaKind::Associated,
        ..Colour::default()
    }
}

/// Where `at` is found in a row of `len`, by walking there.
fn walk(border: Border, at: i64, len: i64) -> Option<i64> {
    let mut at = at;
    while at < 0 || at >= len {
        at = match border {
            Border::Zero | Border::Constant(_) => return None,
            Border::Replicate if at < 0 => 0,
            Border::Replicate => len - 1,
            Border::Wrap if at < 0 => at + len,
            Border::Wrap => at - len,
            Border::Reflect if at < 0 => -1 - at,
            Border::Reflect => 2 * len - 1 - at,
            Border::Mirror if len == 1 => 0,
            Border::Mirror if at < 0 => -at,
            Border::Mirror => 2 * len - 2 - at,
            other => panic!("no oracle of {other}"),
        };
    }
    Some(at)
}

/// The samples of a component, and what it is.
#[derive(Clone)]
struct Grid {
    channel: Channel,
    size: (i64, i64),
    samples: Vec<f32>,
    /// What lies outside.
    outside: f32,
    border: Border,
}

impl Grid {
    fn at(&self, x: i64, y: i64) -> f32 {
        let (width, height) = self.size;
        match (walk(self.border, x, width), walk(self.border, y, height)) {
            (Some(x), Some(y)) => self.samples[(y * width + x) as usize],
            _ => self.outside,
        }
    }

    /// Weights of so many columns around (x, y), added to `sum` one after the other.
    fn add(&self, weights: &[f32], columns: usize, (x, y): (i64, i64), mut sum: f32) -> f32 {
        let rows = weights.len() / columns;
        for (k, weight) in weights.iter().enumerate() {
            let (i, j) = ((k % columns) as i64, (k / columns) as i64);
            let pixel = self.at(x + i - columns as i64 / 2, y + j - rows as i64 / 2);
            sum = f32::mul_add(*weight, pixel, sum);
        }
        sum
    }
}

fn grids(frame: &Frame, border: Border) -> Vec<Grid> {
    let planes = frame.format().planes().iter().enumerate();
    let components =
        planes.flat_map(|(index, plane)| (0..).zip(plane.channels).map(move |(c, &n)| (index, c, n)));
    components
        .map(|(index, c, channel)| {
            let (width, height) = (frame.layout().width(), frame.layout().height());
            let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            let number = |(x, y)| match frame.format().depth() {
                16 => f16::from_bits(stored(frame, index, x, y, c) as u16).to_f32(),
                _ => f32::from_bits(stored(frame, index, x, y, c)),
            };
            Grid {
                channel,
                size: (width as i64, height as i64),
                samples: places.map(number).collect(),
                outside: match border {
                    Border::Constant(_) if channel == Channel::Alpha => 1.0,
                    Border::Constant(level) => (level / 255.0) as f32,
                    _ => 0.0,
                },
                border,
            }
        })
        .collect()
}

fn floats(weights: &[f64]) -> Vec<f32> {
    weights.iter().map(|&w| w as f32).collect()
}

/// The passes of a pyramid, stated anew: each number is asked for by the pass, its column and its row, and
/// remembered.
struct Passes<'a> {
    kernel: &'a FloatPyramid,
    grid: &'a Grid,
    bias: f32,
    known: HashMap<(usize, i64, i64), f32>,
}

impl Passes<'_> {
    /// What pass `pass` makes; 0 is the picture.
    fn number(&mut self, pass: usize, x: i64, y: i64) -> f32 {
        if pass == 0 {
            return self.grid.at(x, y);
        }
        if let Some(&known) = self.known.get(&(pass, x, y)) {
            return known;
        }
        let (kernel, step) = (self.kernel, self.kernel.grid.step as i64);
        let radius = kernel.low.len() as i64 / 2;
        let place = |at: i64| &kernel.interpolate[at.rem_euclid(step) as usize][..];
        let (weights, first) = match pass {
            1 => (&kernel.decimate[..], (y - 3) * step),
            2 => (&kernel.decimate[..], (x - 3) * step),
            3 => (&kernel.low[..], x - radius),
            4 => (&kernel.low[..], y - radius),
            5 => (place(x), x.div_euclid(step) - 2),
            _ => (place(y), y.div_euclid(step) - 2),
        };
        let is_along_row = [2, 3, 5].contains(&pass);
        let mut sum = if pass == 6 { self.bias } else { 0.0 };
        for (at, weight) in (first..).zip(weights) {
            let (x, y) = if is_along_row { (at, y) } else { (x, at) };
            sum = f32::mul_add(*weight, self.number(pass - 1, x, y), sum);
        }
        self.known.insert((pass, x, y), sum);
        sum
    }
}

/// One filter's sum for a component, by the order that `FloatPlan` states, bias included.
fn value(filter: &Filter, kernel: &FloatKernel, grid: &Grid, (x, y): (i64, i64), bias: f32) -> f32 {
    let columns = filter.mask.width();
    let whole = |mask: &Mask, start| grid.add(&floats(mask.weights()), columns, (x, y), start);
    if let FloatKernel::Separable { row, column } = kernel {
        let ry = column.len() as i64 / 2;
        return (0..).zip(column).fold(bias, |sum, (j, weight)| {
            let along = grid.add(row, row.len(), (x, y + j - ry), 0.0);
            f32::mul_add(*weight, along, sum)
        });
    }
    match &filter.response {
        Response::Absolute => whole(&filter.mask, 0.0).abs() + bias,
        Response::Magnitude { across, scale } => {
            let scale = (f64::from(scale.numerator()) / f64::from(scale.denominator())) as f32;
            let (down, along) = (whole(&filter.mask, 0.0), whole(across, 0.0));
            let squares = f32::mul_add(along, along, down * down);
            squares.sqrt() * scale + bias
        }
        Response::Largest { .. } => {
            let mut largest = None;
            for mask in filter.masks() {
                let sum = whole(mask, 0.0);
                largest = match largest {
                    Some(before) if before >= sum || f32::is_nan(before) => Some(before),
                    _ => Some(sum),
                };
            }
            largest.unwrap() + bias
        }
        _ => whole(&filter.mask, bias),
    }
}

/// The same for all of a component.
fn values(filter: &Filter, kernel: &FloatKernel, grid: &Grid, bias: f32) -> Vec<f32> {
    let (width, height) = grid.size;
    let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    if let FloatKernel::Pyramid(kernel) = kernel {
        let mut passes = Passes {
            kernel,
            grid,
            bias,
            known: HashMap::new(),
        };
        return places.map(|(x, y)| passes.number(6, x, y)).collect();
    }
    places
        .map(|place| value(filter, kernel, grid, place, bias))
        .collect()
}

/// A whole chain for a frame; the bits of every sample, component after component.
fn restated(chain: &Chain, frame: &Frame) -> Vec<Vec<u32>> {
    let format = frame.format();
    let plan = FloatPlan::new(chain, format, &frame.metadata.colour).unwrap();
    let is_half = format.depth() == 16;
    let mut now = grids(frame, chain.border);
    let is_associated = frame.metadata.colour.alpha == AlphaKind::Associated;
    let names = |channel| match &chain.planes {
        Planes::All => channel != Channel::Alpha || is_associated,
        Planes::AllWithAlpha => true,
        Planes::Only(list) => list.contains(&channel),
        other => panic!("no test names {other:?}"),
    };
    let mut is_copied: Vec<bool> = now.iter().map(|grid| !names(grid.channel)).collect();
    for (filter, step) in chain.filters.iter().zip(&plan.steps) {
        let weights = filter.mask.weights();
        let total: f64 = weights.iter().sum();
        let bias = (filter.bias.value() / 255.0) as f32;
        let before = now.clone();
        let alpha = before.iter().position(|grid| grid.channel == Channel::Alpha);
        let mixes = weights.len() > 1 || (alpha.is_some_and(|a| names(before[a].channel)) && total != 1.0);
        let colours = before
            .iter()
            .any(|g| g.channel != Channel::Alpha && names(g.channel));
        let straight = alpha.filter(|_| !is_associated && mixes && colours);
        let is_average = weights.iter().all(|&w| w >= 0.0) && total > 0.0;
        if let Some(a) = straight {
            for grid in now
                .iter_mut()
                .filter(|g| g.channel != Channel::Alpha && names(g.channel))
            {
                for (c, a) in grid.samples.iter_mut().zip(&before[a].samples) {
                    *c *= a;
                }
            }
        }
        let weighted = now.clone();
        let made = |index: usize, bias: f32| values(filter, &step.kernel, &weighted[index], bias);
        let average = straight.filter(|_| is_average).map(|a| made(a, 0.0));
        for index in 0..now.len() {
            if !names(now[index].channel) {
                // An alpha that an average was made of is written anew, though its numbers stay.
                is_copied[index] &= !(average.is_some() && Some(index) == alpha);
                continue;
            }
            let is_alpha = Some(index) == alpha;
            let own_bias = if is_alpha || straight.is_some() { 0.0 } else { bias };
            now[index].samples = made(index, own_bias);
        }
        if let Some(a) = straight {
            let of_result = now[a].samples.clone();
            let by = average.as_ref().unwrap_or(&of_result);
            let gain = if is_average { total.min(1.0) as f32 } else { 1.0 };
            for (grid, before) in now.iter_mut().zip(&before) {
                if grid.channel != Channel::Alpha && names(grid.channel) {
                    for ((value, &by), &was) in grid.samples.iter_mut().zip(by).zip(&before.samples) {
                        let product = *value * gain;
                        let quotient = product / by;
                        *value = if by == 0.0 { was } else { quotient + bias };
                    }
                }
            }
        }
        let threshold = (filter.threshold / 255.0) as f32;
        for ((grid, before), &is_copied) in now.iter_mut().zip(&before).zip(&is_copied) {
            for (value, &was) in grid.samples.iter_mut().zip(&before.samples) {
                if names(grid.channel) && (*value - was).abs() < threshold {
                    *value = was;
                }
                if !is_copied && value.is_nan() {
                    *value = f32::NAN;
                }
                if is_half && !is_copied {
                    *value = f16::from_f32(*value).to_f32();
                }
            }
        }
    }
    let own = bits(frame);
    let components = now.iter().zip(own).zip(is_copied);
    components
        .map(|((grid, own), is_copied)| match is_copied {
            true => own,
            false if is_half => grid
                .samples
                .iter()
                .map(|&v| f16::from_f32(v).to_bits().into())
                .collect(),
            false => grid.samples.iter().map(|v| v.to_bits()).collect(),
        })
        .collect()
}

/// The bits of every sample of a frame, component after component.
fn bits(frame: &Frame) -> Vec<Vec<u32>> {
    let planes = frame.format().planes().iter().enumerate();
    let components = planes.flat_map(|(index, plane)| (0..plane.channels.len()).map(move |c| (index, c)));
    let (width, height) = (frame.layout().width(), frame.layout().height());
    components
        .map(|(index, c)| {
            let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
            places.map(|(x, y)| stored(frame, index, x, y, c)).collect()
        })
        .collect()
}

pub(super) fn reference_is_restated(chain: &Chain, frame: &Frame) {
    let found = bits(&run(&mut Reference::new(chain.clone()), frame, 1));
    let wanted = restated(chain, frame);
    let (format, width, height) = (frame.format(), frame.layout().width(), frame.layout().height());
    for (index, (found, wanted)) in found.iter().zip(&wanted).enumerate() {
        if let Some(at) = found.iter().zip(wanted).position(|(f, w)| f != w) {
            panic!(
                "{format} {width}x{height}, component {index}, sample {at}: {:#x}, not {:#x}: {chain:?}",
                found[at], wanted[at]
            );
        }
    }
}

/// Sums that come out otherwise in another order, and where products are rounded: weights and pixels of 3x3,
/// the bias and the sum, found with exact fractions that are rounded to nearest even once a tap.
const EXACT: [([u32; 9], [u32; 9], u32, u32); 4] = [
    (
        [
            0xbf172724, 0x3f61c79b, 0x3ec337a4, 0x3f6ee184, 0x3f499882, 0xbece0a48, 0xbe8e243a, 0xbf2b07cf,
            0xbf35668f,
        ],
        [
            0x3d8567f8, 0x3e9a4bbd, 0x3f1a656b, 0x3b5db753, 0x3f2d8d19, 0x3ead00d1, 0x3e9eb2ce, 0x3f518a67,
            0x3ef6243c,
        ],
        0x00000000,
        0xbdebfba1,
    ),
    (
        [
            0x3f73b744, 0xbdbe4cda, 0xbcc200c2, 0x3eeb035d, 0xbd2baf2b, 0xbed5fe2b, 0xbe450a0e, 0xbf34fd1e,
            0xbe7be708,
        ],
        [
            0x3f7d06fa, 0x3f75b67e, 0x3f2080c7, 0x3effa731, 0x3ead4d17, 0x3db68dad, 0x3e8b6c3c, 0x3f483265,
            0x3f5e0d10,
        ],
        0x00000000,
        0x3e48baff,
    ),
    (
        [
            0xbf0638ff, 0x3f4e6dea, 0xbf7fa969, 0xbe41ca5c, 0xbee2c98a, 0xbe383bbc, 0xbf4514f7, 0x3f29a956,
            0xbe8125b1,
        ],
        [
            0x3d13b5dd, 0x3f1d1289, 0x3dc231dc, 0x3f0b9398, 0x3eadc257, 0x3f14b59e, 0x3f75532f, 0x3f518aa8,
            0x3ed69487,
        ],
        0x3f000000,
        0x3e63784e,
    ),
    (
        [
            0xbe7e433f, 0xbe0be95e, 0xbf0c1db5, 0xbed58272, 0x3f71e593, 0xbe7635a0, 0x3f6c1a6c, 0x3f53d6af,
            0x3e443806,
        ],
        [
            0x3e8507bd, 0x3f7b218b, 0x3efe1bc1, 0x3ed4bb55, 0x3ea367f6, 0x3f7bf98c, 0x3efbc746, 0x3e92a2ce,
            0x3ef430eb,
        ],
        0xbe800000,
        0xbd3efaaf,
    ),
];

#[test]
fn sums_of_exact_fractions_have_the_engines_bits() {
    for (weights, pixels, bias, wanted) in EXACT {
        let weights = weights.map(|w| f64::from(f32::from_bits(w))).to_vec();
        let mut filter = Filter::of_mask("exact", Mask::new(3, 3, weights).unwrap());
        filter.bias = (f64::from(f32::from_bits(bias)) * 255.0).into();
        let chain = Chain {
            filters: vec![filter],
            ..chain(&["sharpen"], Border::Zero, "all", Algorithm::Direct)
        };
        let mut pixels = pixels.into_iter();
        let frame = frame_of_bits(PixelFormat::GRAYF32, (3, 3), &mut || pixels.next().unwrap());
        let found = run(&mut Reference::new(chain.clone()), &frame, 1);
        assert_eq!(stored(&found, 0, 1, 1, 0), wanted, "{chain:?}");
        compare(&chain, &frame, 1, 1);
    }
}

/// Each combination of what a step is made of at least once; chains of two filters every third time.
fn each_case(count: usize, mut use_case: impl FnMut(&Chain, &Frame, usize)) {
    let (mut random, formats) = (Random::new(40), formats());
    for k in 0..count {
        let turn = k + k / formats.len();
        let mut specs = vec![SPECS[turn % SPECS.len()]];
        if k % 3 == 2 {
            specs.push(SPECS[(turn + 3) % SPECS.len()]);
        }
        let borders = Border::ALL;
        let border = borders[random.below(borders.len() as u64) as usize];
        let algorithm = [Algorithm::Auto, Algorithm::Direct][random.below(2) as usize];
        let chain = chain(
            &specs,
            border,
            ["all", "all+alpha"][random.below(2) as usize],
            algorithm,
        );
        let format = formats[k % formats.len()];
        let extras = [Extras::None, Extras::Finite, Extras::All][random.below(3) as usize];
        let mut frame = noise(format, SIZES[turn % SIZES.len()], &mut random, extras);
        if random.below(3) == 0 {
            frame.metadata.colour = associated();
        }
        if FloatPlan::new(&chain, format, &frame.metadata.colour).is_ok() {
            use_case(&chain, &frame, k);
        }
    }
}

#[test]
fn the_reference_follows_the_stated_order_to_the_bit() {
    let mut count = 0;
    each_case(260, |chain, frame, _| {
        reference_is_restated(chain, frame);
        count += 1;
    });
    assert!(count > 200, "{count}");
    // Alpha, or some colours alone.
    let mut random = Random::new(41);
    for (format, planes) in [
        (PixelFormat::RGBAF32, "a"),
        (PixelFormat::RGBAF16, "r,b"),
        (PixelFormat::GBRAPF32, "g,a"),
        (PixelFormat::GBRAPF16, "b"),
        (PixelFormat::YAF16, "a"),
        (PixelFormat::RGBF32, "g"),
    ] {
        for spec in ["gaussian:size=5", "sharpen", "unsharp:sigma=0.8:threshold=12"] {
            let chain = chain(&[spec], Border::Mirror, planes, Algorithm::Auto);
            let frame = noise(format, (13, 9), &mut random, Extras::All);
            reference_is_restated(&chain, &frame);
        }
    }
}

/// What real numbers give for one sample, and the most that all roundings may take from it.
fn real(filter: &Filter, grid: &Grid, (x, y): (i64, i64)) -> (f64, f64) {
    const UNIT: f64 = 1.0 / (1 << 24) as f64;
    let (columns, rows) = (filter.mask.width(), filter.mask.height());
    let sums = |mask: &Mask| {
        let (mut sum, mut size) = (0.0, 0.0);
        for (k, weight) in mask.weights().iter().enumerate() {
            let (i, j) = ((k % columns) as i64, (k / columns) as i64);
            let pixel = f64::from(grid.at(x + i - columns as i64 / 2, y + j - rows as i64 / 2));
            sum += weight * pixel;
            size += (weight * pixel).abs();
        }
        (sum, size)
    };
    let (sum, size) = match &filter.response {
        Response::Absolute => {
            let (sum, size) = sums(&filter.mask);
            (sum.abs(), size)
        }
        Response::Magnitude { across, scale } => {
            let scale = f64::from(scale.numerator()) / f64::from(scale.denominator());
            let (a, b) = (sums(&filter.mask), sums(across));
            (scale * a.0.hypot(b.0), scale * (a.1 + b.1))
        }
        Response::Largest { .. } => {
            let all: Vec<(f64, f64)> = filter.masks().map(sums).collect();
            let largest = all.iter().map(|s| s.0).fold(f64::MIN, f64::max);
            (largest, all.iter().map(|s| s.1).fold(0.0, f64::max))
        }
        _ => sums(&filter.mask),
    };
    let bias = filter.bias.value() / 255.0;
    // A rounding a tap; of the weights, the bias and what is made of several sums, a few more.
    let taps = (columns * rows + 8) as f64;
    (sum + bias, taps * UNIT * (size + bias.abs()) + 1e-44)
}

#[test]
fn the_reference_is_as_close_to_real_numbers_as_its_roundings() {
    let mut random = Random::new(42);
    let specs = SPECS
        .iter()
        .filter(|spec| !spec.contains("threshold") && !spec.contains("sigma=11"));
    let mut worst: f64 = 0.0;
    for (k, spec) in specs.enumerate() {
        for (turn, format) in formats().into_iter().enumerate() {
            if format.has_alpha() {
                continue;
            }
            let algorithm = [Algorithm::Auto, Algorithm::Direct][turn % 2];
            let chain = chain(
                &[spec],
                Border::ALL[(k + turn) % Border::ALL.len()],
                "all",
                algorithm,
            );
            let frame = noise(
                format,
                SIZES[(k + 3 * turn) % SIZES.len()],
                &mut random,
                Extras::None,
            );
            let before = grids(&frame, chain.border);
            let after = grids(&run(&mut Reference::new(chain.clone()), &frame, 1), chain.border);
            for (before, after) in before.iter().zip(&after) {
                for (at, &found) in (0..).zip(&after.samples) {
                    let place = (at % before.size.0, at / before.size.0);
                    let (wanted, mut within) = real(&chain.filters[0], before, place);
                    if format.depth() == 16 {
                        within += wanted.abs() / 2048.0 + 3.0e-8;
                    }
                    let off = (f64::from(found) - wanted).abs();
                    assert!(
                        off <= within,
                        "{format} {place:?}: {found}, not {wanted}: {chain:?}"
                    );
                    worst = worst.max(off / within);
                }
            }
        }
    }
    // It is a bound that something comes near to.
    assert!(worst > 0.2, "{worst}");
}

#[test]
fn averages_under_alpha_are_those_of_real_numbers() {
    let mut random = Random::new(43);
    for (k, format) in PixelFormat::floats()
        .filter(|f| f.has_alpha() && f.depth() == 32)
        .enumerate()
    {
        for (spec, planes) in [("gaussian:size=5", "all"), ("box:size=3", "all+alpha")] {
            let chain = chain(&[spec], Border::ALL[k], planes, Algorithm::Direct);
            let mut frame = noise(format, (19, 11), &mut random, Extras::None);
            // Alphas from nothing to opaque, and a patch without any.
            let (plane, c) = format.place(Channel::Alpha).unwrap();
            for (x, y) in (0..11).flat_map(|y| (0..19).map(move |x| (x, y))) {
                let alpha = if x > 10 {
                    0.0
                } else {
                    random.below(256) as f32 / 255.0
                };
                frame.set_float(plane, x, y, c, alpha);
            }
            let before = grids(&frame, chain.border);
            let after = grids(&run(&mut Reference::new(chain.clone()), &frame, 1), chain.border);
            let alpha = before.iter().find(|g| g.channel == Channel::Alpha).unwrap();
            let filter = &chain.filters[0];
            for (before, after) in before
                .iter()
                .zip(&after)
                .filter(|(g, _)| g.channel != Channel::Alpha)
            {
                let product = Grid {
                    // Rounded once, as the bound allows for.
                    samples: before
                        .samples
                        .iter()
                        .zip(&alpha.samples)
                        .map(|(c, a)| c * a)
                        .collect(),
                    ..before.clone()
                };
                for (at, &found) in (0..).zip(&after.samples) {
                    let place = (at % 19, at / 19);
                    let ((sum, within), (weight, _)) =
                        (real(filter, &product, place), real(filter, alpha, place));
                    let wanted = match weight {
                        0.0 => f64::from(before.samples[at as usize]),
                        _ => sum * filter.mask.sum().min(1.0) / weight,
                    };
                    let within = if weight == 0.0 {
                        0.0
                    } else {
                        3.0 * within / weight + wanted.abs() * 4e-6
                    };
                    let off = (f64::from(found) - wanted).abs();
                    assert!(
                        off <= within,
                        "{format} {place:?}: {found}, not {wanted}: {chain:?}"
                    );
                }
            }
        }
    }
}

/// Colours and alphas of every size, down to the smallest: what a mask that changes nothing does to them.
#[test]
fn a_mask_that_changes_nothing_keeps_colours_within_the_stated_bound() {
    let mut random = Random::new(47);
    let chain = chain(
        &["mask:rows=0 0 0;0 1 0;0 0 0"],
        Border::Replicate,
        "all+alpha",
        Algorithm::Direct,
    );
    let (mut changed, mut lost, mut worst) = (0, 0, 0.0_f64);
    for format in [PixelFormat::RGBAF32, PixelFormat::GBRAPF32, PixelFormat::RGBAF16] {
        let is_half = format.depth() == 16;
        let (width, height) = (61, 47);
        let mut frame = empty_frame(format, width, height, 64);
        let planes = format.planes().iter().enumerate();
        let places: Vec<(usize, usize, Channel)> = planes
            .flat_map(|(plane, of)| {
                of.channels
                    .iter()
                    .enumerate()
                    .map(move |(c, &channel)| (plane, c, channel))
            })
            .collect();
        for (x, y) in (0..width * height).map(|k| (k % width, k / width)) {
            for &(plane, c, channel) in &places {
                let part = 1.0 + f64::from(random.below(1 << 24) as u32) / f64::from(1 << 24);
                let least = if is_half { 24 } else { 150 };
                let power = match channel {
                    Channel::Alpha => -1 - random.below(least) as i32,
                    _ if is_half => 14 - random.below(39) as i32,
                    _ => 100 - random.below(250) as i32,
                };
                frame.set_float(plane, x, y, c, (part * 2_f64.powi(power)) as f32);
            }
        }
        for mut engine in [
            Box::new(Reference::new(chain.clone())) as Box<dyn Engine>,
            Box::new(Cpu::new(chain.clone(), 1).unwrap()),
        ] {
            let after = run(&mut *engine, &frame, 1);
            for (x, y) in (0..width * height).map(|k| (k % width, k / width)) {
                let sample = |of: &Frame, channel| {
                    let (plane, c) = format.place(channel).unwrap();
                    f64::from(of.float(plane, x, y, c))
                };
                let alpha = sample(&frame, Channel::Alpha);
                assert_eq!(sample(&after, Channel::Alpha), alpha);
                for channel in [Channel::Red, Channel::Green, Channel::Blue] {
                    let (was, found) = (sample(&frame, channel), sample(&after, channel));
                    let off = (found - was).abs();
                    let case = format!("{format} {was:e} under {alpha:e}: {found:e}");
                    if alpha == 0.0 || is_half {
                        assert_eq!(off, 0.0, "{case}");
                        continue;
                    }
                    let bound = 2_f64.powi(-23) * was.abs() + 2_f64.powi(-149) / alpha;
                    assert!(off <= bound, "{case}");
                    // In numbers of 64 bits that product is exact.
                    if was * alpha <= 2_f64.powi(-150) {
                        assert_eq!(found, 0.0, "{case}");
                        lost += u32::from(was > 0.0);
                    }
                    changed += u32::from(off > 0.0);
                    worst = worst.max(off / bound);
                }
            }
        }
    }
    // All of it happens, and the bound is one that something comes near to.
    assert!(
        changed > 1000 && lost > 1000 && worst > 0.4,
        "{changed} {lost} {worst}"
    );
}

#[test]
fn halves_are_rounded_to_nearest_even_after_each_filter() {
    let one_and = |ulps: f64| 1.0 + ulps / 1024.0;
    for (factor, wanted) in [
        (one_and(0.5), 0x3c00),
        (one_and(0.500_1), 0x3c01),
        (one_and(1.5), 0x3c02),
        (65519.0, 0x7bff),
        (65520.0, 0x7c00),
        (2_f64.powi(-25), 0x0000),
        (3.0 * 2_f64.powi(-26), 0x0001),
        (-2_f64.powi(-24), 0x8001),
    ] {
        let filter = |factor| Filter::of_mask("factor", Mask::new(1, 1, vec![factor]).unwrap());
        let chain = |filters| Chain {
            filters,
            ..chain(&["sharpen"], Border::Zero, "all", Algorithm::Auto)
        };
        let frame = frame_of_bits(PixelFormat::GRAYF16, (1, 1), &mut || 0x3c00);
        let once = chain(vec![filter(factor)]);
        let found = run(&mut Reference::new(once), &frame, 1);
        assert_eq!(stored(&found, 0, 0, 0, 0), wanted, "{factor}");
        // Twice the rounded number, not twice the number.
        let twice = chain(vec![filter(factor), filter(2.0)]);
        let found = run(&mut Reference::new(twice), &frame, 1);
        let doubled = f16::from_f32(2.0 * f16::from_bits(wanted as u16).to_f32());
        assert_eq!(
            stored(&found, 0, 0, 0, 0),
            u32::from(doubled.to_bits()),
            "{factor}"
        );
    }
}

#[test]
fn what_is_not_a_number_spreads_as_far_as_the_mask_and_is_the_quiet_one() {
    for (format, nan, quiet) in [
        (PixelFormat::GRAYF32, 0xffc0_1234, 0x7fc0_0000),
        (PixelFormat::GRAYF16, 0xfe31, 0x7e00),
    ] {
        let mut at = 0;
        let frame = frame_of_bits(format, (9, 7), &mut || {
            at += 1;
            if at == 3 * 9 + 5 { nan } else { 0 }
        });
        let chain = chain(&["box:size=3"], Border::Replicate, "all", Algorithm::Direct);
        let found = run(&mut Reference::new(chain), &frame, 1);
        for (x, y) in (0..7).flat_map(|y| (0..9).map(move |x| (x, y))) {
            let is_near = (3..=5).contains(&x) && (2..=4).contains(&y);
            assert_eq!(
                stored(&found, 0, x, y, 0),
                if is_near { quiet } else { 0 },
                "({x}, {y})"
            );
        }
    }
}

#[test]
fn every_instruction_set_gives_the_references_bits() {
    let mut count = 0;
    each_case(400, |chain, frame, k| {
        compare(chain, frame, 1 + k % 3, [1, 2, 64][k % 3]);
        count += 1;
    });
    assert!(count > 300, "{count}");
    let mut random = Random::new(44);
    for (format, planes) in [
        (PixelFormat::RGBAF32, "a"),
        (PixelFormat::RGBAF16, "r,b"),
        (PixelFormat::GBRAPF32, "g,a"),
        (PixelFormat::GBRAPF16, "b"),
        (PixelFormat::YAF16, "a"),
        (PixelFormat::RGBF32, "g"),
    ] {
        for spec in ["gaussian:size=5", "sharpen", "unsharp:sigma=0.8:threshold=12"] {
            for extras in [Extras::None, Extras::All] {
                let chain = chain(&[spec], Border::Mirror, planes, Algorithm::Auto);
                let frame = noise(format, (37, 9), &mut random, extras);
                compare(&chain, &frame, 2, 1);
            }
        }
    }
}

#[test]
fn masks_of_every_shape_give_the_references_bits() {
    let mut random = Random::new(45);
    let shapes = [
        (1, 1),
        (63, 1),
        (1, 63),
        (3, 1),
        (1, 3),
        (1, 5),
        (5, 3),
        (3, 5),
        (7, 7),
        (9, 1),
        (1, 9),
        (3, 63),
        (63, 3),
        (63, 63),
        (25, 13),
    ];
    for (k, (columns, rows)) in shapes.into_iter().enumerate() {
        for turn in 0..3 {
            let mut weight = || random.below(1 << 20) as f64 / f64::from(1 << 19) - 0.8;
            let weights: Vec<f64> = if turn == 2 {
                let (row, column): (Vec<f64>, Vec<f64>) = (
                    (0..columns).map(|_| weight()).collect(),
                    (0..rows).map(|_| weight()).collect(),
                );
                (0..columns * rows)
                    .map(|at| row[at % columns] * column[at / columns])
                    .collect()
            } else {
                (0..columns * rows).map(|_| weight()).collect()
            };
            let mut filter = Filter::of_mask("shape", Mask::new(columns, rows, weights).unwrap());
            filter.bias = [0.0, 31.0][turn % 2].into();
            let algorithm = [Algorithm::Auto, Algorithm::Direct, Algorithm::Separable][turn];
            let chain = Chain {
                filters: vec![filter],
                ..chain(
                    &["sharpen"],
                    Border::ALL[(k + turn) % Border::ALL.len()],
                    "all",
                    algorithm,
                )
            };
            let (formats, size) = (formats(), SIZES[(k + 4 * turn) % SIZES.len()]);
            let format = formats[(5 * k + turn) % formats.len()];
            let size = if columns * rows > 1000 { (11, 9) } else { size };
            compare(
                &chain,
                &noise(format, size, &mut random, Extras::Finite),
                1 + turn,
                1,
            );
        }
    }
}

/// Pictures of several strips of rows, and of several parts of columns.
#[test]
fn large_pictures_give_the_references_bits() {
    let mut random = Random::new(46);
    for (spec, format, (width, height), threads) in [
        ("gaussian:size=5", PixelFormat::GRAYF32, (43, 211), 3),
        ("sharpen", PixelFormat::RGBF16, (21, 163), 2),
        ("sobel", PixelFormat::RGBF32, (4500, 3), 1),
        ("kirsch", PixelFormat::RGBAF32, (601, 5), 2),
        ("gaussian:size=5", PixelFormat::GBRAPF32, (31, 131), 3),
        ("sharpen", PixelFormat::GBRAPF16, (9, 139), 2),
        ("gaussian:size=25", PixelFormat::RGBF32, (1920, 2), 1),
        ("gaussian:size=25", PixelFormat::RGBAF16, (1301, 2), 2),
        ("gaussian:size=13:sigma=3", PixelFormat::GBRAPF32, (4500, 2), 1),
    ] {
        for border in [Border::Wrap, Border::Constant(90.0)] {
            let chain = chain(&[spec], border, "all", Algorithm::Auto);
            let frame = noise(format, (width, height), &mut random, Extras::Finite);
            compare(&chain, &frame, threads, 64);
        }
    }
}

#[test]
fn frames_in_flight_come_back_in_order_and_explained() {
    let chain = chain(
        &["gaussian:size=5", "sobel"],
        Border::Mirror,
        "all",
        Algorithm::Auto,
    );
    let mut random = Random::new(47);
    let frames: Vec<Frame> = (0..6)
        .map(|sequence| {
            let mut frame = noise(PixelFormat::RGBAF32, (40, 31), &mut random, Extras::None);
            frame.sequence = sequence;
            frame
        })
        .collect();
    let mut engine = Cpu::new(chain.clone(), 2).unwrap();
    let mut done = Vec::new();
    for frame in &frames {
        let memory = empty_frame(frame.format(), 40, 31, 64).into_parts().1;
        engine.submit(super::oracle::copy(frame, 1), memory, 64).unwrap();
        if frame.sequence as usize + 1 >= engine.depth() {
            done.push(engine.collect().unwrap().unwrap());
        }
    }
    let lines = engine.explanation();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(
        lines[0].starts_with("rgbaf32le, 5x5 mask, plane 0: float: separable, 4 rows of"),
        "{lines:?}"
    );
    assert!(
        lines[1].starts_with("rgbaf32le, 3x3 mask, plane 0: float: 2 masks, 4 rows of"),
        "{lines:?}"
    );
    while let Some(frame) = engine.collect().unwrap() {
        done.push(frame);
    }
    assert_eq!(done.len(), frames.len());
    for (frame, found) in frames.iter().zip(&done) {
        assert_eq!(found.sequence, frame.sequence);
        assert_eq!(
            bits(found),
            bits(&run(&mut Reference::new(chain.clone()), frame, 1))
        );
    }
}
