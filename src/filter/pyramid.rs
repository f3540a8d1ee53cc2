//! Gaussians that are too wide for a mask: the picture is made smaller, blurred, and made larger again.
//!
//! ```text
//! picture   p p p p p p p p p p p p p      every pixel
//!    | decimate: a Gaussian of 0.75 D, taken at every D-th pixel
//! low       l       l       l       l      a D-th of the rows, a D-th of the columns
//!    | filter: a Gaussian of 2 to 4.5 low pixels
//! low       l       l       l       l
//!    | interpolate: a Gaussian of 0.75 D around each low pixel
//! picture   p p p p p p p p p p p p p
//! ```
//!
//! Gaussians in a row are one, whose variance is the sum of theirs; the low filter's is what the other two
//! leave. One of 0.75 D keeps 1.5e-5 of what taking every D-th pixel folds onto the mean, so that the whole
//! differs from a Gaussian by a quarter of a level of 8 bits at most, whatever the picture
//! (docs/arithmetic.md). The time hardly depends on sigma: six multiply-adds a pixel down and six up.

use super::Pass;

/// The widest sampling of the low picture.
const MOST_STEP: usize = 64;

/// Sigma of the Gaussians that decimate and interpolate, in steps.
const EDGE_SIGMA: f64 = 0.75;

/// The least sigma of the low filter, in low pixels: sampled closer, a Gaussian is none any more.
const LEAST_LOW_SIGMA: f64 = 2.0;

/// The integers of a pyramid of one level. All passes round half up. Low pixel `j` lies on pixel `j D`; there
/// are as many outside the picture as results need, made of the border's pixels.
///
/// In order: `rows` and `columns` decimate, `low` filters the low picture's rows and then its columns, and
/// `interpolate` makes all columns and then all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PyramidKernel {
    /// D: pixels from a low pixel to the next, a power of two and at least 4.
    pub step: usize,
    /// Decimates along a column: 6 D weights, the first one 0, for the pixels from 3 D before a low pixel's
    /// on. The sums keep [`PyramidKernel::fraction_bits`].
    pub rows: Pass,
    /// Decimates along a row, likewise.
    pub columns: Pass,
    /// The low picture's filter, an odd number of weights.
    pub low: Pass,
    /// For each of the D places of a pixel behind a low pixel, the weights of the low pixels from the second
    /// before that one on. They add up to `2^interpolate_bits`.
    pub interpolate: Vec<[i32; PyramidKernel::TAPS]>,
    /// The scale of the interpolation, in bits: 15 or 20.
    pub interpolate_bits: u32,
    /// Fraction bits of the numbers between the passes.
    pub fraction_bits: u32,
}

impl PyramidKernel {
    /// Low pixels that a pixel is interpolated from, and that a pixel is decimated into.
    pub const TAPS: usize = 6;

    /// The Gaussian of `sigma` pixels, at least 10, for samples of `depth` bits.
    pub fn new(sigma: f64, depth: u32) -> PyramidKernel {
        let edges = 2.0 * EDGE_SIGMA * EDGE_SIGMA;
        let least = (LEAST_LOW_SIGMA * LEAST_LOW_SIGMA + edges).sqrt();
        let mut step = 4;
        while step < MOST_STEP && sigma >= least * (2 * step) as f64 {
            step *= 2;
        }
        // Sums of samples fit 31 bits. Numbers between the passes have 16 bits, and their sums 31, where that
        // leaves four of a fraction; else 24, and the sums need 64.
        let sample_bits = (31 - depth).min(20);
        let (number_bits, bits) = if depth > 12 { (24, 20) } else { (16, 15) };
        let fraction_bits = number_bits - depth;
        let edge = EDGE_SIGMA * step as f64;
        let decimate = |bits: u32| {
            let mut weights = gaussian(edge, 3 * step - 1, bits);
            weights.insert(0, 0);
            weights
        };
        let rows = Pass {
            weights: decimate(sample_bits),
            shift: sample_bits - fraction_bits,
            offset: 0,
        };
        let columns = Pass {
            weights: decimate(bits),
            shift: bits,
            offset: 0,
        };
        let interpolate: Vec<_> = (0..step).map(|place| interpolation(step, place, bits)).collect();
        let variance = decimation_variance(&rows.weights, step)
            + decimation_variance(&columns.weights, step)
            + 2.0 * interpolation_variance(&interpolate, step);
        let low_sigma = (sigma * sigma - variance / 2.0).sqrt() / step as f64;
        PyramidKernel {
            step,
            rows,
            columns,
            low: Pass {
                weights: gaussian(low_sigma, (4.0 * low_sigma).ceil() as usize, bits),
                shift: bits,
                offset: 0,
            },
            interpolate,
            interpolate_bits: bits,
            fraction_bits,
        }
    }

    /// True if sums over numbers between the passes need 64 bits.
    pub fn is_wide(&self) -> bool {
        self.interpolate_bits > 15
    }

    /// Low pixels on each side of one that the low filter reads.
    pub fn low_radius(&self) -> usize {
        self.low.weights.len() / 2
    }

    /// Low pixels along a side of `len` pixels that results are interpolated from.
    pub fn low_pixels(&self, len: usize) -> usize {
        (len - 1) / self.step + PyramidKernel::TAPS
    }

    /// Low pixels that those are filtered from: [`PyramidKernel::low_radius`] more at either end.
    pub fn decimated(&self, len: usize) -> usize {
        self.low_pixels(len) + 2 * self.low_radius()
    }

    /// Pixels on each side of one that its result depends on.
    pub fn radius(&self) -> usize {
        self.step * (self.low_radius() + 6) - 1
    }

    /// Bits that the last pass's sums are shifted down by.
    pub fn last_shift(&self) -> u32 {
        self.interpolate_bits + self.fraction_bits
    }
}

/// A Gaussian's value, `distance` from its centre; the centre's is 1.
fn bell(distance: f64, sigma: f64) -> f64 {
    (-0.5 * (distance / sigma).powi(2)).exp()
}

/// A Gaussian to `radius` pixels on each side, as integers that add up to `2^bits`.
fn gaussian(sigma: f64, radius: usize, bits: u32) -> Vec<i32> {
    let weight = |at: usize| bell(at as f64 - radius as f64, sigma);
    let weights: Vec<f64> = (0..=2 * radius).map(weight).collect();
    let mut weights = scaled(&weights, bits);
    let lacking = (1 << bits) - weights.iter().sum::<i32>();
    weights[radius] += lacking;
    weights
}

/// The weights of the low pixels around a pixel that lies `place` pixels behind one.
fn interpolation(step: usize, place: usize, bits: u32) -> [i32; PyramidKernel::TAPS] {
    let distance = |tap: usize| place as f64 - (tap as f64 - 2.0) * step as f64;
    let weights: [f64; PyramidKernel::TAPS] = std::array::from_fn(|tap| match distance(tap) {
        // As far as decimation reads, which makes the first tap of place 0 the only one.
        far if far.abs() >= (3 * step) as f64 => 0.0,
        near => bell(near, EDGE_SIGMA * step as f64),
    });
    let mut rounded = [0; PyramidKernel::TAPS];
    rounded.copy_from_slice(&scaled(&weights, bits));
    let nearest = if 2 * place > step { 3 } else { 2 };
    rounded[nearest] += (1 << bits) - rounded.iter().sum::<i32>();
    rounded
}

/// Weights as integers that add up to about `2^bits`.
fn scaled(weights: &[f64], bits: u32) -> Vec<i32> {
    let scale = f64::from(1_u32 << bits) / weights.iter().sum::<f64>();
    weights.iter().map(|w| (w * scale).round() as i32).collect()
}

/// The variance of decimation's weights, in square pixels.
fn decimation_variance(weights: &[i32], step: usize) -> f64 {
    let squares = weights.iter().enumerate().map(|(at, &w)| {
        let distance = at as f64 - (3 * step) as f64;
        f64::from(w) * distance * distance
    });
    squares.sum::<f64>() / weights.iter().map(|&w| f64::from(w)).sum::<f64>()
}

/// The variance of what a low pixel becomes, in square pixels.
fn interpolation_variance(places: &[[i32; PyramidKernel::TAPS]], step: usize) -> f64 {
    let (mut squares, mut sum) = (0.0, 0.0);
    for (place, weights) in places.iter().enumerate() {
        for (tap, &w) in weights.iter().enumerate() {
            let distance = place as f64 - (tap as f64 - 2.0) * step as f64;
            squares += f64::from(w) * distance * distance;
            sum += f64::from(w);
        }
    }
    squares / sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// What the passes along one axis weigh the pixels around one with, which lies `place` behind a low one.
    fn composite(kernel: &PyramidKernel, decimate: &Pass, place: usize) -> BTreeMap<i64, f64> {
        let step = kernel.step as i64;
        let total = |weights: &[i32]| weights.iter().map(|&w| f64::from(w)).sum::<f64>();
        let mut found = BTreeMap::new();
        for (tap, &outer) in kernel.interpolate[place].iter().enumerate() {
            for (k, &low) in kernel.low.weights.iter().enumerate() {
                let j = tap as i64 - 2 + k as i64 - kernel.low_radius() as i64;
                for (at, &inner) in decimate.weights.iter().enumerate() {
                    let x = (j - 3) * step + at as i64 - place as i64;
                    *found.entry(x).or_insert(0.0) += f64::from(outer) * f64::from(low) * f64::from(inner);
                }
            }
        }
        let scale = total(&kernel.interpolate[place]) * total(&kernel.low.weights) * total(&decimate.weights);
        found.into_iter().map(|(x, w)| (x, w / scale)).collect()
    }

    /// The largest difference in levels that the two passes can make from a Gaussian, on any picture whose
    /// samples go from 0 to `max`.
    fn largest_difference(kernel: &PyramidKernel, sigma: f64, max: f64) -> f64 {
        let reach = (8.0 * sigma) as i64 + 8 * kernel.step as i64;
        let all: f64 = (-reach..=reach).map(|x| bell(x as f64, sigma)).sum();
        let axis = |decimate: &Pass| {
            let of_place = |place: usize| {
                let found = composite(kernel, decimate, place);
                let difference = |x: i64| {
                    let weight = found.get(&x).copied().unwrap_or(0.0);
                    (weight - bell(x as f64, sigma) / all).abs()
                };
                (-reach..=reach).map(difference).sum::<f64>()
            };
            // The ends, the middle and one beside it.
            let places = [0, 1, kernel.step / 2, kernel.step - 1];
            places.into_iter().map(of_place).fold(0.0, f64::max)
        };
        // Both sides add up to 1, so that half of what differs is too much and half too little.
        (axis(&kernel.rows) + axis(&kernel.columns)) * max / 2.0
    }

    #[test]
    fn the_passes_are_a_gaussian_to_a_quarter_of_a_level_of_8_bits() {
        for sigma in [
            10.34, 11.0, 14.9, 18.1, 18.2, 25.0, 36.2, 36.3, 50.0, 72.5, 100.0, 145.0, 200.0,
        ] {
            let difference = largest_difference(&PyramidKernel::new(sigma, 8), sigma, 255.0);
            assert!(difference < 0.23, "sigma {sigma}: {difference} levels");
        }
    }

    #[test]
    fn weights_add_up_and_sums_fit() {
        for depth in [8, 9, 10, 12, 14, 16] {
            for sigma in [10.4, 30.0, 77.0, 200.0, 1000.0] {
                let kernel = PyramidKernel::new(sigma, depth);
                let (step, max) = (kernel.step, i64::from((1_u32 << depth) - 1));
                let sum = |weights: &[i32]| weights.iter().map(|&w| i64::from(w)).sum::<i64>();
                let rows = sum(&kernel.rows.weights);
                assert_eq!(rows, 1 << (kernel.rows.shift + kernel.fraction_bits));
                assert!(max * rows + kernel.rows.start() <= i64::from(i32::MAX));
                assert_eq!(sum(&kernel.columns.weights), 1 << kernel.columns.shift);
                assert_eq!(sum(&kernel.low.weights), 1 << kernel.low.shift);
                assert_eq!(kernel.rows.weights.len(), 6 * step);
                for weights in &kernel.interpolate {
                    assert_eq!(sum(weights), 1 << kernel.interpolate_bits);
                }
                let most = (max << kernel.fraction_bits) << kernel.interpolate_bits;
                let half = 1_i64 << (kernel.last_shift() - 1);
                assert!(
                    kernel.is_wide() || most + half <= i64::from(i32::MAX),
                    "{depth} bits"
                );
                let all = kernel.rows.weights.iter().chain(&kernel.low.weights);
                assert!(all.chain(kernel.interpolate.iter().flatten()).all(|&w| w >= 0));
            }
        }
    }
}
