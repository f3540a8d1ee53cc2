//! Masks that are made of a Gaussian or of binomial coefficients: blurs, and what they are subtracted from.

use super::normalised;
use crate::filter::{Mask, MaskError};

/// The sigma of a Gaussian that fits a mask of `size`: 0.8 at 3, and 0.15 more for each further pixel
/// (OpenCV's rule).
pub(super) fn sigma_of(size: f64) -> f64 {
    0.3 * ((size - 1.0) * 0.5 - 1.0) + 0.8
}

/// A Gaussian's side and standard deviation, in pixels.
pub(super) struct Bell {
    pub(super) size: usize,
    pub(super) sigma: f64,
}

impl Bell {
    /// The Gaussian along one axis, adding up to 1. It narrows to a single 1 as sigma goes to 0.
    pub(super) fn row(&self) -> Vec<f64> {
        let centre = (self.size / 2) as f64;
        // Divided before it is squared, for the square of a tiny sigma is 0.
        let weight = |i: usize| (-0.5 * ((i as f64 - centre) / self.sigma).powi(2)).exp();
        normalised((0..self.size).map(weight).collect())
    }
}

/// The square matrix of the products of a row with itself.
pub(super) fn outer(row: &[f64]) -> Vec<f64> {
    row.iter().flat_map(|c| row.iter().map(move |r| r * c)).collect()
}

pub(super) fn binomial(size: usize) -> Result<Mask, MaskError> {
    let degree = size as u32 - 1;
    // Row 62 adds up to 2^62, so that every number of it fits.
    let mut row = vec![1_i64];
    for k in 0..degree {
        let next = i128::from(row[k as usize]) * i128::from(degree - k) / i128::from(k + 1);
        row.push(next as i64);
    }
    // The products add up to 4^degree.
    if 2 * degree <= 62 {
        let products = row.iter().flat_map(|c| row.iter().map(move |r| r * c)).collect();
        Mask::from_integers(size, size, products, 1 << (2 * degree))
    } else {
        // Dividing by a power of two adds no error to that of each number's own rounding.
        let row: Vec<f64> = row
            .iter()
            .map(|&n| n as f64 / 2_f64.powi(degree as i32))
            .collect();
        Mask::new(size, size, outer(&row))
    }
}

pub(super) fn unsharp(bell: &Bell, amount: f64) -> Result<Mask, MaskError> {
    let mut weights: Vec<f64> = outer(&bell.row()).iter().map(|w| -amount * w).collect();
    let centre = weights.len() / 2;
    weights[centre] += 1.0 + amount;
    Mask::new(bell.size, bell.size, weights)
}

/// `-amount * (r^2 - c) / sigma^4 * gaussian`, where c, which is 2 sigma^2 for a continuous and endless
/// Gaussian, is the weighted mean of r^2 over the mask's pixels. That makes the sum zero and leaves the
/// weights' fall-off to the sides alone, as taking a mean away from every weight would not. The last of it
/// goes to the centre, on a grid on which f64 adds without error.
pub(super) fn laplacian_of_gaussian(bell: &Bell, amount: f64) -> Result<Mask, MaskError> {
    let size = bell.size;
    let gaussian = outer(&bell.row());
    let centre = (size / 2) as f64;
    let squared = |at: usize| ((at % size) as f64 - centre).powi(2) + ((at / size) as f64 - centre).powi(2);
    let crossing: f64 = gaussian.iter().enumerate().map(|(at, g)| g * squared(at)).sum();
    let gain = -amount / bell.sigma.powi(4);
    let mut weights: Vec<f64> = gaussian
        .iter()
        .enumerate()
        .map(|(at, g)| gain * g * (squared(at) - crossing))
        .collect();
    sum_to_zero(&mut weights);
    Mask::new(size, size, weights)
}

/// Rounds weights to multiples of a power of two that is so much larger than the precision of their total
/// magnitude that any sum of them is exact, and makes the centre what the others lack.
fn sum_to_zero(weights: &mut [f64]) {
    let total: f64 = weights.iter().map(|w| w.abs()).sum();
    let grid = 2_f64.powi(total.log2().ceil() as i32 - 50);
    weights.iter_mut().for_each(|w| *w = (*w / grid).round() * grid);
    weights[weights.len() / 2] -= weights.iter().sum::<f64>();
}
