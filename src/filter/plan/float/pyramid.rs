//! Gaussians that are too wide for a mask, of floating-point samples: the passes of a pyramid (`pyramid.rs`)
//! as sums of fused multiply-adds.
//!
//! ```text
//! sum(weights, start):  s = start;  for each weight w and its number p, in order:  s = fma(w, p, s)
//!
//! every D-th row        r = sum(decimate, 0)        along the column, of columns outside the picture too
//! every D-th column     c = sum(decimate, 0)        along the row
//! low rows              a = sum(low, 0)             along the row
//! low columns           b = sum(low, 0)             along the column
//! all columns           e = sum(interpolate, 0)     along the row
//! all rows              out = sum(interpolate, bias)   along the column
//! ```
//!
//! Nothing else is rounded. Weights of 0 are multiplied like all others, so that what is not a number spreads
//! to them, too.

use crate::filter::plan::pyramid::{PyramidGrid, PyramidWeights};

/// The weights of a pyramid of one level.
#[derive(Debug, Clone, PartialEq)]
pub struct FloatPyramid {
    /// Where low pixels lie, and how many there are.
    pub grid: PyramidGrid,
    /// Decimates, along a column and along a row: 6 D weights, the first one 0, for the pixels from 3 D
    /// before a low pixel's on.
    pub decimate: Vec<f32>,
    /// The low picture's filter, an odd number of weights.
    pub low: Vec<f32>,
    /// For each of the D places of a pixel behind a low pixel, the weights of the low pixels from the second
    /// before that one on.
    pub interpolate: Vec<[f32; PyramidGrid::TAPS]>,
}

impl FloatPyramid {
    /// The Gaussian of `sigma` pixels, at least 10.
    pub fn new(sigma: f64) -> FloatPyramid {
        let weights = PyramidWeights::new(sigma, nearest_floats, nearest_floats);
        FloatPyramid {
            grid: weights.grid,
            decimate: weights.rows,
            low: weights.low,
            interpolate: weights.interpolate,
        }
    }

    /// What decimating the rows makes of a column that is `value` everywhere.
    pub fn decimated_constant(&self, value: f32) -> f32 {
        self.decimate
            .iter()
            .fold(0.0, |sum, weight| weight.mul_add(value, sum))
    }
}

/// Weights as the nearest numbers of 32 bits that add up to 1 but for the rounding of the nearest pixel's.
fn nearest_floats(weights: &[f64], nearest: usize) -> Vec<f32> {
    let total: f64 = weights.iter().sum();
    let mut rounded: Vec<f32> = weights.iter().map(|w| (w / total) as f32).collect();
    let sum: f64 = rounded.iter().map(|&w| f64::from(w)).sum();
    rounded[nearest] = (f64::from(rounded[nearest]) + 1.0 - sum) as f32;
    rounded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::plan::pyramid::tests::{SIGMAS, largest_difference};

    fn real(kernel: &FloatPyramid) -> PyramidWeights<f64> {
        let weights = PyramidWeights {
            grid: kernel.grid,
            rows: kernel.decimate.clone(),
            columns: kernel.decimate.clone(),
            low: kernel.low.clone(),
            interpolate: kernel.interpolate.clone(),
        };
        weights.real()
    }

    #[test]
    fn the_passes_are_a_gaussian_to_a_share_of_the_range() {
        for sigma in SIGMAS {
            let difference = largest_difference(&real(&FloatPyramid::new(sigma)), sigma);
            assert!(difference < 2.5e-4, "sigma {sigma}: {difference}");
        }
    }

    #[test]
    fn weights_add_up_to_one() {
        for sigma in SIGMAS.into_iter().chain([1000.0]) {
            let weights = real(&FloatPyramid::new(sigma));
            let interpolate = weights.interpolate.iter().map(|places| &places[..]);
            for weights in interpolate.chain([&weights.rows[..], &weights.low[..]]) {
                let sum: f64 = weights.iter().sum();
                assert!((sum - 1.0).abs() <= 2.0_f64.powi(-25), "sigma {sigma}: {sum}");
                assert!(weights.iter().all(|&w| w >= 0.0), "sigma {sigma}");
            }
            assert_eq!(weights.rows.len(), 6 * weights.grid.step);
            assert_eq!(weights.low.len(), 2 * weights.grid.low_radius + 1);
        }
    }
}
