//! From sums to stored samples: combines several sums, divides colours by alpha, applies the threshold.

use super::lines::Alpha;
use crate::engine::cpu::simd::float::Samples;
use crate::filter::{FloatAlpha, FloatChannelStep, FloatCombining, FloatStep};
use half::f16;

/// Combines the sums of several masks to one number each, plus its bias in `starts`, which replaces the first
/// mask's sum. Each mask has `of` sums, one mask after the other.
#[inline(always)]
pub(super) fn combine(combining: FloatCombining, sums: &mut [f32], of: usize, starts: &[f32]) {
    let (first, others) = sums.split_at_mut(of);
    let mut others = others.chunks_exact(of);
    match combining {
        FloatCombining::Absolute => {
            for sum in first.iter_mut() {
                *sum = sum.abs();
            }
        }
        FloatCombining::Largest => {
            for other in others {
                for (m, &s) in first.iter_mut().zip(other) {
                    // No short-circuit, so that the loop can be vectorized.
                    *m = if (s > *m) | s.is_nan() { s } else { *m };
                }
            }
        }
        FloatCombining::Magnitude(scale) => {
            for (m, &s) in first.iter_mut().zip(others.next().unwrap_or_default()) {
                *m = s.mul_add(s, *m * *m).sqrt() * scale;
            }
        }
    }
    for row in first.chunks_exact_mut(starts.len()) {
        for (sum, start) in row.iter_mut().zip(starts) {
            *sum += start;
        }
    }
}

/// One row of a part whose sums are to be requantized.
pub(super) struct Row<'a> {
    pub(super) step: &'a FloatStep,
    /// The step of each component of the plane.
    pub(super) channels: &'a [FloatChannelStep],
    /// Bytes of a sample.
    pub(super) bytes: usize,
    /// The place of alpha, if it weights the plane's colours.
    pub(super) alpha: Option<Alpha>,
    /// The stored samples before the step.
    pub(super) stored: &'a [u8],
    /// The same as numbers, if [`needs_before`].
    pub(super) before: &'a [f32],
    /// The alpha of each pixel that colours are divided by, if it has a plane of its own.
    pub(super) by: &'a [f32],
}

/// True if results depend on the samples before the step, besides the sums.
pub(super) fn needs_before(step: &FloatStep) -> bool {
    step.alpha.is_some() || step.threshold > 0.0
}

/// Divides the colours of pixels of `channels` components by alpha, which is component `place`.
#[inline(always)]
fn divide_pixels(alpha: &FloatAlpha, samples: &mut [f32], before: &[f32], channels: usize, place: usize) {
    let is_convolved = alpha.normalise || alpha.filter_alpha;
    for (pixel, before) in samples
        .chunks_exact_mut(channels)
        .zip(before.chunks_exact(channels))
    {
        let (convolved, original) = (pixel[place], before[place]);
        let by = if is_convolved { convolved } else { original };
        for (sample, &was) in pixel.iter_mut().zip(before) {
            let straight = (*sample * alpha.gain) / by + alpha.bias;
            *sample = if by == 0.0 { was } else { straight };
        }
        pixel[place] = if alpha.filter_alpha { convolved } else { original };
    }
}

impl Row<'_> {
    /// Requantizes the sums in `samples`, and writes the row.
    #[inline(always)]
    pub(super) fn finish<S: Samples>(&self, s: S, samples: &mut [f32], to: &mut [u8]) {
        if let (Some(alpha), Some(place)) = (&self.step.alpha, self.alpha) {
            match (place, self.channels.len()) {
                (Alpha::Component(place), 4) => divide_pixels(alpha, samples, self.before, 4, place),
                (Alpha::Component(place), 2) => divide_pixels(alpha, samples, self.before, 2, place),
                (Alpha::Component(place), n) => divide_pixels(alpha, samples, self.before, n, place),
                (Alpha::Plane(_), _) => {
                    let colours = samples.iter_mut().zip(self.before).zip(self.by);
                    for ((sample, &was), &by) in colours {
                        let straight = (*sample * alpha.gain) / by + alpha.bias;
                        *sample = if by == 0.0 { was } else { straight };
                    }
                }
            }
        }
        if self.step.threshold > 0.0 {
            for (sample, &was) in samples.iter_mut().zip(self.before) {
                let is_small = (*sample - was).abs() < self.step.threshold;
                *sample = if is_small { was } else { *sample };
            }
        }
        store(s, self.bytes, samples, to);
        let (bytes, pixel) = (self.bytes, self.bytes * self.channels.len());
        for (c, what) in self.channels.iter().enumerate() {
            if what.convolved().is_none() {
                let pixels = to.chunks_exact_mut(pixel).zip(self.stored.chunks_exact(pixel));
                for (to, from) in pixels {
                    to[c * bytes..][..bytes].copy_from_slice(&from[c * bytes..][..bytes]);
                }
            }
        }
    }
}

/// Writes samples of `bytes` bytes. Every NaN becomes the quiet NaN.
#[inline(always)]
fn store<S: Samples>(s: S, bytes: usize, samples: &mut [f32], to: &mut [u8]) {
    let quiet = |sample: f32| if sample.is_nan() { f32::NAN } else { sample };
    if bytes == 4 {
        for (to, &sample) in to.as_chunks_mut().0.iter_mut().zip(samples.iter()) {
            *to = quiet(sample).to_le_bytes();
        }
        return;
    }
    for sample in samples.iter_mut() {
        *sample = quiet(*sample);
    }
    let vectors = samples.chunks_exact(S::LANES);
    let mut halves = to.chunks_exact_mut(2 * S::LANES);
    let rest = vectors.remainder();
    for (from, to) in vectors.zip(halves.by_ref()) {
        s.store_halves(s.load(from), to);
    }
    for (&from, to) in rest.iter().zip(halves.into_remainder().as_chunks_mut().0) {
        *to = f16::from_f32(from).to_le_bytes();
    }
}
