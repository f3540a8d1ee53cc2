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
        threshold: f32::from(step.threshold),
    }
}

/// What colours are divided by.
#[derive(Clone, Copy)]
enum Divisor {
    /// Alpha's sum.
    Sum,
    /// The level that is made of alpha's sum.
    Result,
    /// Alpha as it is.
    Kept,
}

/// What is done to samples of one plane.
pub(super) struct PlaneLevels {
    format: PixelFormat,
    steps: Vec<ChannelStep>,
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
    /// Differences that count, if there is a threshold.
    least: Option<f32>,
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
            least: (step.threshold > 0).then(|| f32::from(step.threshold)),
        }
    }

    /// Makes a row of a plane of which nothing is convolved.
    pub(super) fn keep(&self, from: &[u8], to: &mut [u8]) {
        keep(&self.steps, self.format, from, to);
    }

    /// Reads samples for sums: colours above their zero level times alpha, which lies in `alpha` if it has a
    /// plane of its own; and alpha.
    #[inline(always)]
    pub(super) fn read<S: Levels>(&self, s: S, from: &[u8], alpha: Option<&[u8]>, to: &mut [f32]) {
        match self.format.bytes_per_sample() {
            1 => self.read_samples::<S, 1>(s, from, alpha, to),
            _ => self.read_samples::<S, 2>(s, from, alpha, to),
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
            multiplied: self.multiplied.map(|lanes| s.load(&lanes)),
            places: s.load(&self.places),
        };
        let (whole, rest) = to.split_at_mut(to.len() / S::LANES * S::LANES);
        let mut at = 0;
        for to in whole.chunks_exact_mut(S::LANES) {
            let end = at + S::LANES * BYTES;
            let alpha = alpha.map(|alpha| &alpha[at..end]);
            s.store(
                premultiplied::<S, BYTES>(s, &constants, &from[at..end], alpha),
                to,
            );
            at = end;
        }
        if !rest.is_empty() {
            let (from, alpha) = (padded(&from[at..]), alpha.map(|alpha| padded(&alpha[at..])));
            let alpha = alpha.as_ref().map(<[u8; 2 * LANES]>::as_slice);
            let mut lanes = [0.0; LANES];
            s.store(premultiplied::<S, BYTES>(s, &constants, &from, alpha), &mut lanes);
            rest.copy_from_slice(&lanes[..rest.len()]);
        }
    }

    /// Writes the row that `sums` are of, whole vectors of them, in the place of `stored`. Alpha lies in `by`
    /// if it has a plane of its own: its sums if it is convolved, else its levels.
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
        let constants = FinishConstants {
            gain: s.load(&self.gain),
            base: s.load(&self.base),
            divided: self.divided.map(|lanes| s.load(&lanes)),
            places: s.load(&self.places),
            largest: s.splat(self.format.max_value() as f32),
            half: s.splat(0.5),
            least: self.least.map(|least| s.splat(least)),
            divisor: self.divisor,
        };
        let mut at = 0;
        let mut vectors = to.chunks_exact_mut(S::LANES * BYTES);
        for to in vectors.by_ref() {
            let from = &stored[at * BYTES..(at + S::LANES) * BYTES];
            let by = by.map(|by| s.load(&by[at..]));
            straight::<S, BYTES>(s, &constants, s.load(&sums[at..]), by, from, to);
            at += S::LANES;
        }
        let rest = vectors.into_remainder();
        if !rest.is_empty() {
            let (from, mut lanes, mut bytes) = (padded(&stored[at * BYTES..]), [0.0; LANES], [0; 2 * LANES]);
            let by = by.map(|by| {
                lanes[..by.len() - at].copy_from_slice(&by[at..]);
                s.load(&lanes)
            });
            straight::<S, BYTES>(s, &constants, s.load(&sums[at..]), by, &from, &mut bytes);
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
}

#[inline(always)]
fn premultiplied<S: Levels, const BYTES: usize>(
    s: S,
    constants: &ReadConstants<S::V>,
    from: &[u8],
    alpha: Option<&[u8]>,
) -> S::V {
    let samples = s.of_levels::<BYTES>(from);
    let alpha = match alpha {
        Some(alpha) => s.of_levels::<BYTES>(alpha),
        None => s.within_fours(samples, constants.places),
    };
    let [mask, ones] = constants.multiplied;
    s.mul(s.sub(samples, constants.zero), s.masked(alpha, mask, ones))
}

/// What [`straight`] needs, in vectors.
struct FinishConstants<V> {
    gain: V,
    base: V,
    divided: [V; 2],
    places: V,
    largest: V,
    half: V,
    least: Option<V>,
    divisor: Divisor,
}

#[inline(always)]
fn straight<S: Levels, const BYTES: usize>(
    s: S,
    constants: &FinishConstants<S::V>,
    sums: S::V,
    by: Option<S::V>,
    stored: &[u8],
    to: &mut [u8],
) {
    let before = s.of_levels::<BYTES>(stored);
    let alpha = match (by, constants.divisor) {
        (Some(by), _) => by,
        (None, Divisor::Kept) => s.within_fours(before, constants.places),
        (None, Divisor::Sum | Divisor::Result) => s.within_fours(sums, constants.places),
    };
    let alpha = match constants.divisor {
        Divisor::Result => s.whole(s.add(alpha, constants.half), constants.largest),
        Divisor::Sum | Divisor::Kept => alpha,
    };
    let [mask, others] = constants.divided;
    let by = s.masked(alpha, mask, others);
    let value = s.add(s.div(s.mul(sums, constants.gain), by), constants.base);
    let mut value = s.choose(by, before, value);
    if let Some(least) = constants.least {
        value = s.keep_near(s.whole(value, constants.largest), before, least);
    }
    s.put_levels::<BYTES>(value, constants.largest, to);
}
