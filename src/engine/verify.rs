//! Holds an engine against the reference, bit by bit, on frames of noise.

use super::reference::Reference;
use super::{Engine, EngineError};
use crate::filter::{
    Algorithm, Border, Chain, Combining, Compass, Filter, Kernel, Plan, PlanError, Planes, Step,
};
use crate::frame::{Buffer, Colour, Frame, Layout, Pageable, PixelFormat, Range};
use half::f16;

/// Something to compare: a chain, and the frame that it is applied to.
#[derive(Debug, Clone)]
pub struct Case {
    /// The filters, border and planes; the algorithm is chosen when the case is used.
    pub chain: Chain,
    /// The frame's pixel format.
    pub format: PixelFormat,
    /// Pixels across.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The seed of the noise.
    pub seed: u64,
}

/// What comparing found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Comparison {
    /// Frames compared.
    pub frames: u64,
    /// Samples compared.
    pub samples: u64,
    /// Samples that differ.
    pub differences: u64,
    /// The largest difference, in levels; of floating-point samples in numbers that lie between.
    pub largest: u32,
    /// Frames left out, most of them of floating-point samples: the engine cannot filter them as requested.
    pub left_out: u64,
}

/// What the cases choose from, one each in turn; the counts share no factor, so that the combinations differ.
const SPECS: [&str; 16] = [
    "box:size=3",
    "gaussian:sigma=1.5",
    "laplacian8",
    "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5",
    "gaussian:size=31:sigma=6",
    "sobel-x:bias=128",
    "mask:rows=1 4 6 4 1",
    "unsharp:sigma=2:amount=0.7",
    "mask:rows=1;-2;3",
    "sharpen",
    "sobel",
    "laplacian8:abs:scale=2",
    "unsharp:sigma=0.8:threshold=12",
    "kirsch:scale=1/4",
    "scharr:scale=1/9:bias=20",
    "roberts:scale=2.5",
];
/// Columns on either side of the middle one, of further boxes.
const BOXES: std::ops::RangeInclusive<usize> = 2..=31;
const SIZES: [(usize, usize); 7] = [
    (67, 45),
    (1, 1),
    (129, 33),
    (31, 70),
    (200, 7),
    (3, 90),
    (160, 96),
];

/// A few of the cases, with small frames and small masks: enough for every kind of kernel to run once under a
/// memory checker, which makes them a thousand times slower.
pub fn quick_cases() -> Vec<Case> {
    const AREA: usize = 70 * 45;
    const MASK: usize = 25;
    const COUNT: usize = 6;
    let small = |case: &Case| {
        let masks = case
            .chain
            .filters
            .iter()
            .map(|f| f.mask.width() * f.mask.height());
        case.width > 1
            && case.width * case.height <= AREA
            && masks.max().is_some_and(|area| (9..=MASK).contains(&area))
    };
    let mut chosen: Vec<Case> = cases(500)
        .into_iter()
        .filter(small)
        .step_by(3)
        .take(COUNT)
        .collect();
    // Two small masks on planes of one component share a launch.
    for (format, specs, border) in [
        ("gray", ["sharpen", "box:size=5"], Border::Mirror),
        (
            "yuv420p",
            ["box:size=3", "mask:rows=1 2 3;0 -1 4;2 0 1:divisor=5"],
            Border::Replicate,
        ),
    ] {
        let filters: Vec<Filter> = specs.iter().filter_map(|spec| spec.parse().ok()).collect();
        if let Ok(format) = format.parse() {
            chosen.push(Case {
                chain: Chain {
                    filters,
                    border,
                    planes: Planes::All,
                    algorithm: Algorithm::Auto,
                    alpha: Default::default(),
                },
                format,
                width: 67,
                height: 45,
                seed: 2,
            });
        }
    }
    // Kernels deinterleave components from some mask size on; none of the small masks above is
    // that large.
    // Sums of several masks are made by kernels of their own.
    for (format, spec) in [
        ("rgba", "gaussian:size=5"),
        ("rgb48le", "gaussian:size=5"),
        ("yuv420p", "sobel"),
        ("rgba", "kirsch:scale=1/4"),
        ("rgba", "unsharp:size=3:threshold=12"),
    ] {
        if let (Ok(format), Ok(filter)) = (format.parse(), spec.parse()) {
            chosen.push(Case {
                chain: Chain {
                    filters: vec![filter],
                    border: Border::Mirror,
                    planes: Planes::All,
                    algorithm: Algorithm::Auto,
                    alpha: Default::default(),
                },
                format,
                width: 67,
                height: 45,
                seed: 1,
            });
        }
    }
    chosen
}

/// `count` cases: every pixel format of integer samples in turn, with filters, borders and odd sizes mixed.
/// The same count gives the same cases.
pub fn cases(count: usize) -> Vec<Case> {
    mixed(count, &PixelFormat::integers().collect::<Vec<_>>())
}

/// The same for floating-point samples: formats that have names, and some of other numbers of components.
pub fn float_cases(count: usize) -> Vec<Case> {
    let others = [(32, 5), (16, 3)];
    let others = others
        .into_iter()
        .filter_map(|(bits, n)| PixelFormat::float_channels(bits, n));
    mixed(count, &PixelFormat::floats().chain(others).collect::<Vec<_>>())
}

/// `count` cases of these formats.
fn mixed(count: usize, formats: &[PixelFormat]) -> Vec<Case> {
    // The texts are constants, and a test parses each of them.
    let filters: Vec<Filter> = SPECS.iter().filter_map(|spec| spec.parse().ok()).collect();
    let boxes: Vec<Filter> = BOXES
        .filter_map(|half| format!("box:size={}", 2 * half + 1).parse().ok())
        .collect();
    let filter = |turn: usize| match turn % (filters.len() + 1) {
        // Boxes have loops for each size.
        last if last == filters.len() => boxes[turn / (filters.len() + 1) % boxes.len()].clone(),
        place => filters[place].clone(),
    };
    (0..count)
        .map(|index| {
            // A second turn through the formats meets other filters, sizes and borders.
            let turn = index + index / formats.len();
            let (width, height) = SIZES[turn % SIZES.len()];
            // Rows end anywhere in a vector and in a tile.
            let more = if width > 3 {
                turn / SIZES.len() * 11 % 64
            } else {
                0
            };
            let width = width + more;
            let mut chosen = vec![filter(turn)];
            if index % 5 == 4 {
                chosen.push(filter(turn + 4));
            }
            Case {
                chain: Chain {
                    filters: chosen,
                    border: Border::ALL[turn % Border::ALL.len()],
                    planes: if index % 9 == 8 {
                        Planes::AllWithAlpha
                    } else {
                        Planes::All
                    },
                    algorithm: Algorithm::Auto,
                    alpha: Default::default(),
                },
                format: formats[index % formats.len()],
                width,
                height,
                seed: index as u64 + 1,
            }
        })
        .collect()
}

impl Case {
    /// True if every mask of the case can be applied with `algorithm`.
    pub fn allows(&self, algorithm: Algorithm) -> bool {
        algorithm != Algorithm::Separable || self.chain.filters.iter().all(Filter::is_separable)
    }

    /// True if tensor cores take every filter of the case: not Gaussians that fit no mask, and of the largest
    /// of several sums those whose masks are one that is turned.
    pub fn suits_tensor(&self) -> bool {
        let fits = |step: &Step| match &step.kernel {
            // Colour under alpha is made without them.
            Kernel::Direct(_) | Kernel::Separable(_) | Kernel::Weighted(_) => true,
            Kernel::Combined(kernel) => {
                let is_turned = || Compass::of(kernel).is_some_and(|compass| compass.is_balanced());
                kernel.combining != Combining::Largest || is_turned()
            }
            Kernel::Pyramid(_) => false,
        };
        let plan = Plan::new(&self.chain, self.format, &Colour::default());
        plan.is_ok_and(|plan| plan.steps.iter().all(fits))
    }

    /// The chain with `algorithm`.
    pub fn chain(&self, algorithm: Algorithm) -> Chain {
        Chain {
            algorithm,
            ..self.chain.clone()
        }
    }

    /// The frame: noise over the whole range of samples, the same each time. Floating-point samples have
    /// subnormal and large numbers and zeros of both signs among them; every fourth frame has infinities and
    /// what is not a number, too.
    pub fn frame(&self) -> Result<Frame, EngineError> {
        let layout = Layout::new(self.format, self.width, self.height, 64)?;
        let mut frame = Frame::new(layout, unpooled(layout.size())?)?;
        fill_with_noise(&mut frame, self.seed);
        if self.format.is_float() {
            strew_extremes(&mut frame, self.seed);
        }
        frame.metadata.colour = Colour {
            range: if self.seed.is_multiple_of(2) {
                Range::Limited
            } else {
                Range::Full
            },
            ..Colour::default()
        };
        Ok(frame)
    }
}

/// Even enough to leave no pattern in samples, and fast (xorshift64*); the same seed gives the same numbers,
/// of 24 bits.
fn randoms(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40
    }
}

/// Sets every sample to noise over the whole range of the format's values, from 0 up to 1 for floating-point
/// samples; the same seed gives the same noise.
pub fn fill_with_noise(frame: &mut Frame, seed: u64) {
    let (layout, format) = (*frame.layout(), frame.format());
    let mut random = randoms(seed);
    for plane in 0..layout.planes().len() {
        for y in 0..layout.planes()[plane].height {
            let row = frame.row_mut(plane, y);
            match (format.is_float(), format.bytes_per_sample()) {
                (false, 1) => row.fill_with(|| random() as u8),
                (false, _) => {
                    for sample in row.as_chunks_mut().0 {
                        let value = (random() as u32 & format.max_value()) << format.shift();
                        *sample = (value as u16).to_le_bytes();
                    }
                }
                (true, 2) => {
                    for sample in row.as_chunks_mut().0 {
                        *sample = f16::from_f32(random() as f32 / UNITS).to_le_bytes();
                    }
                }
                (true, _) => {
                    for sample in row.as_chunks_mut().0 {
                        *sample = (random() as f32 / UNITS).to_le_bytes();
                    }
                }
            }
        }
    }
}

/// What random numbers are below.
const UNITS: f32 = (1 << 24) as f32;

/// Puts numbers that are rare in pictures here and there.
fn strew_extremes(frame: &mut Frame, seed: u64) {
    const FINITE: [f32; 8] = [0.0, -0.0, 1e-40, -3e-42, 4e-6, -1e-7, 6e4, -3e4];
    const OTHERS: [f32; 3] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
    let mut random = randoms(!seed);
    let has_others = seed.is_multiple_of(4);
    let layout = *frame.layout();
    for (index, plane) in layout.planes().iter().enumerate() {
        for at in 0..plane.width * plane.height * plane.channels {
            let value = match random() % 1024 {
                chance @ 0..16 => FINITE[chance as usize % FINITE.len()],
                chance @ 16..19 if has_others => OTHERS[chance as usize - 16],
                _ => continue,
            };
            let (pixel, channel) = (at / plane.channels, at % plane.channels);
            frame.set_float(index, pixel % plane.width, pixel / plane.width, channel, value);
        }
    }
}

/// How far two samples lie from each other: levels, or numbers from one floating-point number to the other.
fn difference(a: &Frame, b: &Frame, (plane, x, y, channel): (usize, usize, usize, usize)) -> u32 {
    let format = a.format();
    if !format.is_float() {
        let [a, b] = [a, b].map(|frame| frame.sample(plane, x, y, channel));
        return u32::from(a.abs_diff(b));
    }
    let at = (x * a.layout().planes()[plane].channels + channel) * format.bytes_per_sample();
    let place = |frame: &Frame| {
        let bytes = &frame.row(plane, y)[at..at + format.bytes_per_sample()];
        let bits = bytes
            .iter()
            .rev()
            .fold(0, |bits, &byte| bits << 8 | i64::from(byte));
        let sign = 1 << (format.depth() - 1);
        // In the order of the numbers; both zeros are one apart.
        if bits < sign { bits } else { sign - bits - 1 }
    };
    place(a).abs_diff(place(b)).try_into().unwrap_or(u32::MAX)
}

fn unpooled(len: usize) -> Result<Buffer, EngineError> {
    use crate::frame::Allocator;
    Ok(Buffer::unpooled(Pageable.allocate(len)?))
}

/// Filters each case with the engine that `start` makes and with the reference, and counts the samples that
/// differ.
pub fn compare(
    cases: &[Case],
    algorithm: Algorithm,
    start: &mut dyn FnMut(Chain) -> Result<Box<dyn Engine>, EngineError>,
) -> Result<Comparison, EngineError> {
    let mut found = Comparison::default();
    for case in cases.iter().filter(|case| case.allows(algorithm)) {
        let chain = case.chain(algorithm);
        let got = match filter(start(chain.clone())?.as_mut(), case) {
            Err(EngineError::Plan(PlanError::FloatSamples(_)) | EngineError::Unfit(_)) => {
                found.left_out += 1;
                continue;
            }
            got => got?,
        };
        let expected = filter(&mut Reference::new(chain), case)?;
        found.frames += 1;
        for (plane, place) in expected.layout().planes().iter().enumerate() {
            for y in 0..place.height {
                let samples = place.width * place.channels;
                found.samples += samples as u64;
                if expected.row(plane, y) == got.row(plane, y) {
                    continue;
                }
                for at in 0..samples {
                    let (x, channel) = (at / place.channels, at % place.channels);
                    let difference = difference(&expected, &got, (plane, x, y, channel));
                    found.differences += u64::from(difference > 0);
                    found.largest = found.largest.max(difference);
                }
            }
        }
    }
    Ok(found)
}

fn filter(engine: &mut dyn Engine, case: &Case) -> Result<Frame, EngineError> {
    let frame = case.frame()?;
    let output = unpooled(frame.layout().size())?;
    engine.submit(frame, output, 64)?;
    engine.collect()?.ok_or_else(|| EngineError::Device {
        doing: "comparing with the reference".to_owned(),
        reason: "the engine gave no frame back".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::Cpu;
    use crate::frame::Allocator;
    use std::sync::Arc;

    #[test]
    fn every_filter_of_the_cases_is_one() {
        for spec in SPECS {
            spec.parse::<Filter>().unwrap();
        }
    }

    #[test]
    fn quick_cases_hold_components_that_are_deinterleaved() {
        let cases = quick_cases();
        for name in ["rgba", "rgb48le"] {
            let format = PixelFormat::from_name(name).unwrap();
            assert!(cases.iter().any(|case| {
                case.format == format
                    && case
                        .chain
                        .filters
                        .iter()
                        .any(|f| f.mask.width() == 5 && f.mask.height() == 5)
            }));
        }
    }

    #[test]
    fn quick_cases_hold_chains_that_share_launches() {
        let cases = quick_cases();
        for name in ["gray", "yuv420p"] {
            let format = PixelFormat::from_name(name).unwrap();
            assert!(
                cases
                    .iter()
                    .any(|case| case.format == format && case.chain.filters.len() == 2)
            );
        }
    }

    #[test]
    fn the_cpu_engine_agrees_with_the_reference() {
        let cases = [cases(80), float_cases(40)].concat();
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let found = compare(&cases, algorithm, &mut |chain| Ok(Box::new(Cpu::new(chain, 2)?))).unwrap();
            assert!(found.frames > 30 && found.samples > 150_000, "{found:?}");
            assert_eq!((found.differences, found.largest, found.left_out), (0, 0, 0));
        }
    }

    /// The CPU engine with one sample spoilt.
    struct Spoilt(Cpu);

    impl Engine for Spoilt {
        fn name(&self) -> &'static str {
            "spoilt"
        }
        fn description(&self) -> String {
            self.0.description()
        }
        fn input_allocator(&self) -> Arc<dyn Allocator> {
            self.0.input_allocator()
        }
        fn output_allocator(&self) -> Arc<dyn Allocator> {
            self.0.output_allocator()
        }
        fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
            self.0.submit(input, output, row_alignment)
        }
        fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
            let mut frame = self.0.collect()?;
            if let Some(frame) = &mut frame {
                let row = frame.row_mut(0, 0);
                let last = row.len() - 1;
                row[last] ^= 0x80;
            }
            Ok(frame)
        }
    }

    #[test]
    fn one_wrong_sample_is_found() {
        let cases = cases(3);
        let found = compare(&cases, Algorithm::Direct, &mut |chain| {
            Ok(Box::new(Spoilt(Cpu::new(chain, 1)?)))
        })
        .unwrap();
        assert_eq!(found.frames, 3);
        assert_eq!(found.differences, 3);
        assert!(found.largest >= 128);
        // A sample of floating point with another sign.
        let found = compare(&float_cases(3), Algorithm::Direct, &mut |chain| {
            Ok(Box::new(Spoilt(Cpu::new(chain, 1)?)))
        })
        .unwrap();
        assert_eq!((found.frames, found.differences), (3, 3));
    }

    /// The CPU engine as one that takes no floating-point samples.
    struct IntegersOnly(Cpu);

    impl Engine for IntegersOnly {
        fn name(&self) -> &'static str {
            "integers"
        }
        fn description(&self) -> String {
            self.0.description()
        }
        fn input_allocator(&self) -> Arc<dyn Allocator> {
            self.0.input_allocator()
        }
        fn output_allocator(&self) -> Arc<dyn Allocator> {
            self.0.output_allocator()
        }
        fn submit(&mut self, input: Frame, output: Buffer, row_alignment: usize) -> Result<(), EngineError> {
            let colour = input.metadata.colour;
            Plan::new(&Chain::parse("sharpen").unwrap(), input.format(), &colour)?;
            self.0.submit(input, output, row_alignment)
        }
        fn collect(&mut self) -> Result<Option<Frame>, EngineError> {
            self.0.collect()
        }
    }

    #[test]
    fn frames_that_an_engine_does_not_take_are_counted() {
        let cases = [cases(2), float_cases(3)].concat();
        let found = compare(&cases, Algorithm::Direct, &mut |chain| {
            Ok(Box::new(IntegersOnly(Cpu::new(chain, 1)?)))
        })
        .unwrap();
        assert_eq!((found.frames, found.left_out, found.differences), (2, 3, 0));
    }
}
