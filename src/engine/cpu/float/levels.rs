//! Integer samples under alpha, [`WeightedKernel`]: from levels to numbers, and from their sums to levels.
//!
//! ```text
//! picture   r g b a  r g b a       bytes or words, a vector at a time
//! c         r g b a  r g b a       numbers
//! a         a a a 1  a a a 1       each pixel's alpha, from within the vector or from a plane of its own
//! line      (c - L) a              colours premultiplied, alpha as it is
//!    |  sums
//! sums      P P P A  P P P A
//! by        A A A 1  A A A 1       0 in place of 1 where alpha is copied: what is over 0 stays what it was
//! result    clamp(floor((P gain) / by + base))
//! ```
//!
//! Pixels have 1, 2 or 4 samples, so that each lane of a vector has the same constants in every pixel.

use crate::engine::cpu::rows::plane_rows::keep;
use crate::engine::cpu::simd::levels::Levels;
use crate::filter::{ChannelStep, FloatChannelStep, FloatConvolve, FloatStep, Step, WeightedKernel};
use crate::frame::{Channel, PixelFormat};

/// The most lanes of a vector.
const LANES: usize = 16;

/// A number for each lane of a vector.
type Lanes = [f32; LANES];

/// All bits of a lane.
const ALL: f32 = f32::from_bits(u32::MAX);

/// The step as sums of numbers see it: a border's constant is what is summed up there, and alpha is convolved
/// if colours are averaged by it.
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
        // Levels are compared when they are made.
        threshold: 0.0,
    }
}

/// What colours are divided by.
#[derive(Clone, Copy, PartialEq)]
enum Divisor {
    /// The sum of the pixel's alpha.
    Sum,
    /// The level that is made of it.
    Result,
    /// The pixel's alpha as it is.
    Kept,
    /// A number of a line of its own.
    Apart,
}

/// What is done to samples of one plane.
pub(super) struct PlaneLevels {
    format: PixelFormat,
    steps: Vec<ChannelStep>,
    /// Where alpha is among the components.
    divisor: Divisor,
    /// Zero levels of colours, 0 of alpha.
    zero: Lanes,
    /// Which lanes are multiplied by alpha, and 1 for the others.
    multiplied: [Lanes; 2],
    /// Which lanes are divided by alpha, and for the others 1 if they are convolved, 0 if they are copied.
    divided: [Lanes; 2],
    gain: Lanes,
    base: Lanes,
    /// Where alpha lies in each four lanes, as an integer.
    places: Lanes,
}

impl PlaneLevels {
    /// That of a plane of a step whose kernel is `kernel`.
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

    /// Makes a row of a plane of which nothing is convolved.
    pub(super) fn keep(&self, from: &[u8], to: &mut [u8]) {
        keep(&self.steps, self.format, from, to);
    }

    /// The numbers that colours of other planes are divided by, of the sums of this one, which is alpha.
    #[inline(always)]
    pub(super) fn divisors(&self, sums: &mut [f32]) {
        if self.divisor == Divisor::Result {
            let largest = self.format.max_value() as f32;
            for sum in sums {
                *sum = (*sum + 0.5).max(0.0).min(largest).trunc();
            }
        }
    }

    /// Reads samples for sums: colours above their zero level times alpha, which lies in `alpha` if it has a
    /// plane of its own; and alpha.
    #[inline(always)]
    pub(super) fn read<S: Levels>(&self, s: S, from: &[u8], alpha: Option<&[u8]>, to: &mut [f32]) {
        // Each a loop of its own, in which what is constant is known.
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
            is_apart: alpha.is_some(),
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

    /// Writes the row that `sums` are of, whole vectors of them, in the place of `stored`. If alpha has a
    /// plane of its own, `by` is what colours are divided by.
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
            self.keep(stored, to);
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
        // Each a loop of its own, in which the divisor is known.
        match (by, self.divisor) {
            (Some(by), _) => self.divide::<S, BYTES>(s, Divisor::Apart, (sums, by), stored, to),
            (None, Divisor::Result) => {
                self.divide::<S, BYTES>(s, Divisor::Result, (sums, sums), stored, to);
            }
            (None, Divisor::Kept) => self.divide::<S, BYTES>(s, Divisor::Kept, (sums, sums), stored, to),
            (None, Divisor::Sum | Divisor::Apart) => {
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

/// The bytes, and as many zeros as a vector may lack.
fn padded(bytes: &[u8]) -> [u8; 2 * LANES] {
    let mut all = [0; 2 * LANES];
    all[..bytes.len()].copy_from_slice(bytes);
    all
}

/// What [`premultiplied`] needs, in vectors.
struct ReadConstants<V> {
    zero: V,
    multiplied: [V; 2],
    places: V,
    /// True if alpha has a plane of its own.
    is_apart: bool,
}

#[inline(always)]
fn premultiplied<S: Levels, const BYTES: usize>(
    s: S,
    constants: &ReadConstants<S::V>,
    from: &[u8],
    alpha: &[u8],
) -> S::V {
    let samples = s.of_levels::<BYTES>(from);
    let alpha = if constants.is_apart {
        s.of_levels::<BYTES>(alpha)
    } else {
        s.within_fours(samples, constants.places)
    };
    let [mask, ones] = constants.multiplied;
    s.mul(s.sub(samples, constants.zero), s.select(mask, alpha, ones))
}

/// What [`straight`] needs, in vectors.
struct FinishConstants<V> {
    gain: V,
    base: V,
    divided: [V; 2],
    places: V,
    largest: V,
    half: V,
    divisor: Divisor,
}

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
        Divisor::Apart => by,
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
    s.put_levels::<BYTES>(s.choose(by, before, value), constants.largest, to);
}
