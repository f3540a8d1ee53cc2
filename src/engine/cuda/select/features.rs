//! The features of a launch that kernel selection looks up: mask, components, sample size, samples.
//!
//! Which kernel is the fastest depends on these alone, so that a launch that was never timed takes what the
//! nearest one that was takes.

use crate::engine::EngineError;
use crate::engine::cuda::kernels::plane_group::{Interleaving, is_wide};
use crate::filter::{Kernel, Step};
use crate::frame::{Layout, PixelFormat};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The features of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchFeatures {
    /// True for a row and a column pass, false for the whole mask at each pixel.
    pub separable: bool,
    /// Columns of the mask.
    pub mask_width: usize,
    /// Rows of the mask.
    pub mask_height: usize,
    /// Interleaved components of a pixel.
    pub channels: usize,
    /// Bytes of a sample.
    pub sample_bytes: usize,
    /// True if sums take 64 bits.
    pub wide: bool,
    /// Samples of all planes of the launch.
    pub samples: u64,
}

impl LaunchFeatures {
    /// Those of one step on `planes` of a frame of `size` pixels.
    pub(crate) fn of(
        step: &Step,
        format: PixelFormat,
        interleaving: Interleaving,
        planes: &[usize],
        size: (usize, usize),
    ) -> Result<LaunchFeatures, EngineError> {
        let layout = Layout::new(format, size.0, size.1, 1)?;
        let (mask_width, mask_height) = step.kernel.size();
        let samples = planes.iter().map(|&plane| {
            let geometry = &layout.planes()[plane];
            (geometry.width * geometry.height * geometry.channels) as u64
        });
        Ok(LaunchFeatures {
            separable: matches!(step.kernel, Kernel::Separable(_)),
            mask_width,
            mask_height,
            channels: interleaving.channels,
            sample_bytes: format.bytes_per_sample(),
            wide: is_wide(step, format),
            samples: samples.sum(),
        })
    }

    /// Multiply-adds for one sample.
    pub fn taps(&self) -> usize {
        if self.separable {
            self.mask_width + self.mask_height
        } else {
            self.mask_width * self.mask_height
        }
    }

    /// The distance of two launches of the same algorithm: 0 for equal features; `None` for different
    /// algorithms, which are not comparable.
    ///
    /// A factor of two counts 1 in the taps and in the bytes of a sample, a half in the interleaved
    /// components and a quarter in the samples, and sums of another width count 1: which kernel is the
    /// fastest changes with the mask and hardly with the frame.
    pub fn distance(&self, other: &LaunchFeatures) -> Option<f64> {
        let ratio = |a: f64, b: f64| (a / b).log2().abs();
        let count = |a: usize, b: usize| ratio(a as f64, b as f64);
        (self.separable == other.separable).then(|| {
            count(self.taps(), other.taps())
                + count(self.sample_bytes, other.sample_bytes)
                + count(self.channels, other.channels) / 2.0
                + ratio(self.samples as f64, other.samples as f64) / 4.0
                + if self.wide == other.wide { 0.0 } else { 1.0 }
        })
    }

    /// True if every number is one that a frame and a mask can have.
    pub(crate) fn is_possible(&self) -> bool {
        (1..=63).contains(&self.mask_width)
            && (1..=63).contains(&self.mask_height)
            && (1..=4).contains(&self.channels)
            && (1..=2).contains(&self.sample_bytes)
            && self.samples > 0
    }
}

impl fmt::Display for LaunchFeatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}x{}, {} bits{}, {} interleaved, {} samples",
            if self.separable { "separable" } else { "direct" },
            self.mask_width,
            self.mask_height,
            8 * self.sample_bytes,
            if self.wide { " with wide sums" } else { "" },
            self.channels,
            self.samples
        )
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A square mask on 8-bit gray pixels.
    pub(crate) fn gray(separable: bool, size: usize, samples: u64) -> LaunchFeatures {
        LaunchFeatures {
            separable,
            mask_width: size,
            mask_height: size,
            channels: 1,
            sample_bytes: 1,
            wide: false,
            samples,
        }
    }

    #[test]
    fn launches_are_as_far_apart_as_their_features() {
        let one = gray(false, 8, 1_000_000);
        assert_eq!(one.distance(&one), Some(0.0));
        assert_eq!(one.distance(&gray(true, 8, 1_000_000)), None);
        // Four times the taps; sixteen times the samples.
        assert_eq!(one.distance(&gray(false, 16, 1_000_000)), Some(2.0));
        assert_eq!(one.distance(&gray(false, 8, 16_000_000)), Some(1.0));
        let deep = LaunchFeatures {
            sample_bytes: 2,
            wide: true,
            channels: 4,
            ..one
        };
        assert_eq!(one.distance(&deep), Some(3.0));
        assert_eq!(deep.distance(&one), Some(3.0));
    }

    #[test]
    fn a_separable_mask_has_the_taps_of_both_passes() {
        assert_eq!(gray(true, 7, 1).taps(), 14);
        assert_eq!(gray(false, 7, 1).taps(), 49);
    }
}
