//! Integer samples weighted by alpha, [`WeightedKernel`]: converts levels to numbers, and sums to levels.
//!
//! ```text
//! picture   r g b a  r g b a       bytes or words, a vector at a time
//! c         r g b a  r g b a       numbers
//! a         a a a 1  a a a 1       each pixel's alpha, from within the vector or from a plane of its own
//! line      (c - L) a              colours premultiplied, alpha unchanged
//!    |  sums
//! sums      P P P A  P P P A
//! by        A A A 1  A A A 1       0, not 1, if alpha is copied: a sample over 0 keeps its value
//! result    clamp(floor((P gain) / by + base))
//! ```
//!
//! Pixels have 1, 2 or 4 samples, so that each lane of a vector has the same constants in every pixel.

use crate::engine::cpu::rows::plane_rows::copy_or_fill;
use crate::engine::cpu::simd::levels::Levels;
use crate::filter::{ChannelStep, FloatChannelStep, FloatConvolve, FloatStep, Step, WeightedKernel};
use crate::frame::{Channel, PixelFormat};

/// The most lanes of a vector.
const LANES: usize = 16;

/// A number for each lane of a vector.
type Lanes = [f32; LANES];

/// All bits of a lane.
const ALL: f32 = f32::from_bits(u32::MAX);

/// The step of the numbers: border constants are converted, and alpha is convolved if colours are averages
/// weighted by it.
pub(super) fn float_step(step: &Step, kernel: &WeightedKernel, format: PixelFormat) -> FloatStep {
    let channel = |(what, &channel): (&ChannelStep, &Channel)| {
        let is_alpha = channel == Channel::Alpha;
        let border = match what.convolved() {
            Some(convolve) => kernel.outside(convolve),
            None if is_alpha && kernel.weighting.normalise => kernel.outside,
            None => return FloatChannelStep::Copy,
        };
        FloatChannelStep::Convolve(FloatConvolve {
            bias: 0.0,
            border,
            is_alpha,
        })
    };
    let planes = step.planes.iter().zip(format.planes());
    FloatStep {
        border: step.border,
        kernel: kernel.kernel.clone(),
        planes: planes
            .map(|(steps, plane)| steps.iter().zip(plane.channels).map(channel).collect())
            .collect(),
        alpha: Some(kernel.weighting),
        // The threshold compares levels, after requantization.
        threshold: 0.0,
    }
}

/// The divisor of colours.
#[derive(Clone, Copy, PartialEq)]
enum Divisor {
    /// The sum of alpha.
    Sum,
    /// The level of the result's alpha.
    Result,
    /// The pixel's alpha before the step.
    Kept,
    /// A number of a separate line.
    Separate,
}

/// The conversions of one plane's samples.
pub(super) struct PlaneLevels {
    format: PixelFormat,
    steps: Vec<ChannelStep>,
    /// The divisor of colours if alpha is a component of the plane.
    divisor: Divisor,
    /// Zero levels of colours, 0 for alpha.
    zero: Lanes,
    /// A mask of the lanes that are multiplied by alpha, and the factor 1 of the others.
    multiplied: [Lanes; 2],
    /// A mask of the lanes that are divided by alpha, and the divisor of the others: 1 if they are convolved,
    /// 0 if they are copied.
    divided: [Lanes; 2],
    /// The factor of colours; 1 for alpha.
    gain: Lanes,
    /// The value to add before rounding down.
    base: Lanes,
    /// The index of alpha within each four lanes, as an integer.
    places: Lanes,
}

impl PlaneLevels {
    /// The conversions of plane `plane` of a step whose kernel is `kernel`.
    pub(super) fn new(
        step: &Step,
        kernel: &WeightedKernel,
        format: PixelFormat,
        plane: usize,
    ) -> PlaneLevels {
        let (channels, steps) = (format.planes()[plane].channels, &step.planes[plane]);
        let count = channels.len();
        let lanes = |value: &dyn Fn(usize, Channel, &ChannelStep) -> f32| -> Lanes {
            std::array::from_fn(|lane| value(lane, channels[lane % count], &steps[lane % count]))
        };
        let is_colour = |channel: Channel| channel != Channel::Alpha;
        let place = channels.iter().position(|&channel| !is_colour(channel));
        let weighting = &kernel.weighting;
        PlaneLevels {
            format,
            steps: steps.clone(),
            divisor: match (weighting.normalise, weighting.filter_alpha) {
                (true, _) => Divisor::Sum,
                (false, true) => Divisor::Result,
                (false, false) => Divisor::Kept,
            },
            zero: lanes(&|_, channel, what| match what.convolved() {
                Some(convolve) if is_colour(channel) => f32::from(convolve.level),
                _ => 0.0,
            }),
            multiplied: [
                lanes(&|_, channel, _| if is_colour(channel) { ALL } else { 0.0 }),
                lanes(&|_, channel, _| if is_colour(channel) { 0.0 } else { 1.0 }),
            ],
            divided: [
                lanes(&|_, channel, what| match what.convolved() {
                    Some(_) if is_colour(channel) => ALL,
                    _ => 0.0,
                }),
                lanes(&|_, channel, what| match what.convolved() {
                    Some(_) if !is_colour(channel) => 1.0,
                    _ => 0.0,
                }),
            ],
            gain: lanes(&|_, channel, _| if is_colour(channel) { weighting.gain } else { 1.0 }),
            base: lanes(&|_, channel, what| match what.convolved() {
                Some(convolve) if is_colour(channel) => kernel.base(channel, convolve.level),
                _ => 0.5,
            }),
            places: lanes(&|lane, _, _| {
                let own = place.map_or(lane, |place| lane / count * count + place);
                f32::from_bits(own as u32 % 4)
            }),
        }
    }

    /// Copies or fills the channels of a row that are not convolved.
    pub(super) fn copy_or_fill(&self, from: &[u8], to: &mut [u8]) {
        copy_or_fill(&self.steps, self.format, from, to);
    }

    /// Converts the sums of this plane, which is alpha's own, to the divisors of the other planes' colours.
    #[inline(always)]
    pub(super) fn divisors(&self, sums: &mut [f32]) {
        if self.divisor == Divisor::Result {
            let largest = self.format.max_value() as f32;
            for sum in sums {
                *sum = (*sum + 0.5).max(0.0).min(largest).trunc();
            }
        }
    }

    /// Reads samples for sums: colours less their zero level, times alpha; and alpha. If alpha has a plane of
    /// its own, `alpha` holds it.
    #[inline(always)]
    pub(super) fn read<S: Levels>(&self, s: S, from: &[u8], alpha: Option<&[u8]>, to: &mut [f32]) {
        // Four loops, each compiled for its case.
        match (self.format.bytes_per_sample(), alpha) {
            (1, None) => self.read_samples::<S, 1>(s, from, None, to),
            (1, Some(alpha)) => self.read_samples::<S, 1>(s, from, Some(alpha), to),
            (_, None) => self.read_samples::<S, 2>(s, from, None, to),
            (_, Some(alpha)) => self.read_samples::<S, 2>(s, from, Some(alpha), to),
        }
    }

    #[inline(always)]
    fn read_samples<S: Levels, const BYTES: usize>(
        &self,
        s: S,
        from: &[u8],
        alpha: Option<&[u8]>,
        to: &mut [f32],
    ) {
        let constants = ReadConstants {
            zero: s.load(&self.zero),
            multiplied: [s.load(&self.multiplied[0]), s.load(&self.multiplied[1])],
            places: s.load(&self.places),
            is_separate: alpha.is_some(),
        };
        let alpha = alpha.unwrap_or(from);
        let at = to.len() / S::LANES * S::LANES;
        let vectors = from
            .chunks_exact(S::LANES * BYTES)
            .zip(alpha.chunks_exact(S::LANES * BYTES));
        for (to, (from, alpha)) in to.chunks_exact_mut(S::LANES).zip(vectors) {
            s.store(premultiplied::<S, BYTES>(s, &constants, from, alpha), to);
        }
        let rest = &mut to[at..];
        if !rest.is_empty() {
            let (from, alpha) = (padded(&from[at * BYTES..]), padded(&alpha[at * BYTES..]));
            let mut lanes = [0.0; LANES];
            s.store(
                premultiplied::<S, BYTES>(s, &constants, &from, &alpha),
                &mut lanes,
            );
            rest.copy_from_slice(&lanes[..rest.len()]);
        }
    }

    /// Requantizes `sums`, a multiple of a vector, and writes the row to `to`; `stored` is the row before the
    /// step. If alpha has a plane of its own, `by` has the divisors of colours.
    #[inline(always)]
    pub(super) fn finish<S: Levels>(
        &self,
        s: S,
        sums: &[f32],
        by: Option<&[f32]>,
        (stored, to): (&[u8], &mut [u8]),
    ) {
        match self.format.bytes_per_sample() {
            1 => self.finish_samples::<S, 1>(s, sums, by, stored, to),
            _ => self.finish_samples::<S, 2>(s, sums, by, stored, to),
        }
        if self.steps.iter().any(|what| matches!(what, ChannelStep::Fill(_))) {
            self.copy_or_fill(stored, to);
        }
    }

    #[inline(always)]
    fn finish_samples<S: Levels, const BYTES: usize>(
        &self,
        s: S,
        sums: &[f32],
        by: Option<&[f32]>,
        stored: &[u8],
        to: &mut [u8],
    ) {
        // Four loops, each compiled for its divisor.
        match (by, self.divisor) {
            (Some(by), _) => self.divide::<S, BYTES>(s, Divisor::Separate, (sums, by), stored, to),
            (None, Divisor::Result) => {
                self.divide::<S, BYTES>(s, Divisor::Result, (sums, sums), stored, to);
            }
            (None, Divisor::Kept) => self.divide::<S, BYTES>(s, Divisor::Kept, (sums, sums), stored, to),
            (None, Divisor::Sum | Divisor::Separate) => {
                self.divide::<S, BYTES>(s, Divisor::Sum, (sums, sums), stored, to);
            }
        }
    }

    #[inline(always)]
    fn divide<S: Levels, const BYTES: usize>(
        &self,
        s: S,
        divisor: Divisor,
        (sums, by): (&[f32], &[f32]),
        stored: &[u8],
        to: &mut [u8],
    ) {
        let constants = FinishConstants {
            gain: s.load(&self.gain),
            base: s.load(&self.base),
            divided: [s.load(&self.divided[0]), s.load(&self.divided[1])],
            places: s.load(&self.places),
            largest: s.splat(self.format.max_value() as f32),
            half: s.splat(0.5),
            divisor,
        };
        let at = to.len() / (S::LANES * BYTES) * S::LANES;
        let numbers = sums.chunks_exact(S::LANES).zip(by.chunks_exact(S::LANES));
        let samples = stored.chunks_exact(S::LANES * BYTES);
        let samples = to.chunks_exact_mut(S::LANES * BYTES).zip(samples);
        for ((to, stored), (sums, by)) in samples.zip(numbers) {
            let numbers = [s.load(sums), s.load(by)];
            straight::<S, BYTES>(s, &constants, numbers, stored, to);
        }
        let rest = &mut to[at * BYTES..];
        if !rest.is_empty() {
            let (stored, mut lanes, mut bytes) =
                (padded(&stored[at * BYTES..]), [0.0; LANES], [0; 2 * LANES]);
            let count = rest.len() / BYTES;
            lanes[..count].copy_from_slice(&by[at..at + count]);
            let numbers = [s.load(&sums[at..]), s.load(&lanes)];
            straight::<S, BYTES>(s, &constants, numbers, &stored, &mut bytes);
            rest.copy_from_slice(&bytes[..rest.len()]);
        }
    }
}

/// The bytes, padded with zeros to the longest vector.
fn padded(bytes: &[u8]) -> [u8; 2 * LANES] {
    let mut all = [0; 2 * LANES];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

/// The constants of [`premultiplied`], in vectors.
struct ReadConstants<V> {
    zero: V,
    multiplied: [V; 2],
    places: V,
    /// True if alpha has a plane of its own.
    is_separate: bool,
}

/// A vector of samples: colours less their zero level, times alpha; and alpha.
#[inline(always)]
fn premultiplied<S: Levels, const BYTES: usize>(
    s: S,
    constants: &ReadConstants<S::V>,
    from: &[u8],
    alpha: &[u8],
) -> S::V {
    let samples = s.of_levels::<BYTES>(from);
    let alpha = if constants.is_separate {
        s.of_levels::<BYTES>(alpha)
    } else {
        s.within_fours(samples, constants.places)
    };
    let [mask, ones] = constants.multiplied;
    s.mul(s.sub(samples, constants.zero), s.select(mask, alpha, ones))
}

/// The constants of [`straight`], in vectors.
struct FinishConstants<V> {
    gain: V,
    base: V,
    divided: [V; 2],
    places: V,
    largest: V,
    half: V,
    divisor: Divisor,
}

/// Requantizes a vector of sums: divides colours by alpha, and writes the levels.
#[inline(always)]
fn straight<S: Levels, const BYTES: usize>(
    s: S,
    constants: &FinishConstants<S::V>,
    [sums, by]: [S::V; 2],
    stored: &[u8],
    to: &mut [u8],
) {
    let before = s.of_levels::<BYTES>(stored);
    let alpha = match constants.divisor {
        Divisor::Separate => by,
        Divisor::Kept => s.within_fours(before, constants.places),
        Divisor::Sum => s.within_fours(sums, constants.places),
        Divisor::Result => {
            let alpha = s.within_fours(sums, constants.places);
            s.whole(s.add(alpha, constants.half), constants.largest)
        }
    };
    let [mask, others] = constants.divided;
    let by = s.select(mask, alpha, others);
    let value = s.add(s.div(s.mul(sums, constants.gain), by), constants.base);
    s.store_levels::<BYTES>(s.choose(by, before, value), constants.largest, to);
}
