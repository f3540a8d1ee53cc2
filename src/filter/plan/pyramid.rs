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

use super::integer::kernel::Pass;
use std::ops::Range;

/// The widest sampling of the low picture.
const MOST_STEP: usize = 64;

/// Sigma of the Gaussians that decimate and interpolate, in steps.
const EDGE_SIGMA: f64 = 0.75;

/// The least sigma of the low filter, in low pixels: sampled closer, a Gaussian is none any more.
const LEAST_LOW_SIGMA: f64 = 2.0;

/// The grids of a pyramid of one level. Low pixel `j` lies on pixel `j D`; there are as many outside the
/// picture as results need, made of the border's pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PyramidGrid {
    /// D: pixels from a low pixel to the next, a power of two and at least 4.
    pub step: usize,
    /// Low pixels on each side of one that the low filter reads.
    pub low_radius: usize,
}

impl PyramidGrid {
    /// Low pixels that a pixel is interpolated from, and that a pixel is decimated into.
    pub const TAPS: usize = 6;

    /// Low pixels along a side of `len` pixels that results are interpolated from.
    pub fn low_pixels(&self, len: usize) -> usize {
        (len - 1) / self.step + PyramidGrid::TAPS
    }

    /// Low pixels that those are filtered from: [`PyramidGrid::low_radius`] more at either end.
    pub fn decimated(&self, len: usize) -> usize {
        self.low_pixels(len) + 2 * self.low_radius
    }

    /// The first low pixel that those are filtered from.
    pub fn first(&self) -> i64 {
        -2 - self.low_radius as i64
    }

    /// The pixels that these are decimated from, which begin before a side of `len` pixels and end behind it.
    pub fn pixels(&self, len: usize) -> Range<i64> {
        let step = self.step as i64;
        let first = (self.first() - 3) * step;
        first..first + (self.decimated(len) as i64 + 5) * step
    }

    /// Pixels on each side of one that its result depends on.
    pub fn radius(&self) -> usize {
        self.step * (self.low_radius + 6) - 1
    }
}

/// The integers of a pyramid of one level. All passes round half up.
///
/// In order: `rows` and `columns` decimate, `low` filters the low picture's rows and then its columns, and
/// `interpolate` makes all columns and then all rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PyramidKernel {
    /// Where low pixels lie, and how many there are.
    pub grid: PyramidGrid,
    /// Decimates along a column: 6 D weights, the first one 0, for the pixels from 3 D before a low pixel's
    /// on. The sums keep [`PyramidKernel::fraction_bits`].
    pub rows: Pass,
    /// Decimates along a row, likewise.
    pub columns: Pass,
    /// The low picture's filter, an odd number of weights.
    pub low: Pass,
    /// For each of the D places of a pixel behind a low pixel, the weights of the low pixels from the second
    /// before that one on. They add up to `2^interpolate_bits`.
    pub interpolate: Vec<[i32; PyramidGrid::TAPS]>,
    /// The scale of the interpolation, in bits: 15 or 20.
    pub interpolate_bits: u32,
    /// Fraction bits of the numbers between the passes.
    pub fraction_bits: u32,
}

impl PyramidKernel {
    /// The Gaussian of `sigma` pixels, at least 10, for samples of `depth` bits.
    pub fn new(sigma: f64, depth: u32) -> PyramidKernel {
        // Sums of samples fit 31 bits, and their weights, of which the largest is 0.53 of a D-th, 15. Numbers
        // between the passes have 16 bits, and their sums 31, where that leaves four of a fraction; else 24,
        // and the sums need 64.
        let sample_bits = (31 - depth).min(15 + step(sigma).ilog2()).min(20);
        let (number_bits, bits) = if depth > 12 { (24, 20) } else { (16, 15) };
        let fraction_bits = number_bits - depth;
        let scaled_to = |bits: u32| move |weights: &[f64], nearest: usize| scaled(weights, nearest, bits);
        let weights = PyramidWeights::new(sigma, scaled_to(sample_bits), scaled_to(bits));
        let pass = |weights, shift| Pass {
            weights,
            shift,
            offset: 0,
        };
        PyramidKernel {
            grid: weights.grid,
            rows: pass(weights.rows, sample_bits - fraction_bits),
            columns: pass(weights.columns, bits),
            low: pass(weights.low, bits),
            interpolate: weights.interpolate,
            interpolate_bits: bits,
            fraction_bits,
        }
    }

    /// True if sums over numbers between the passes need 64 bits.
    pub fn is_wide(&self) -> bool {
        self.interpolate_bits > 15
    }

    /// Bits that the last pass's sums are shifted down by.
    pub fn last_shift(&self) -> u32 {
        self.interpolate_bits + self.fraction_bits
    }
}

/// The weights of all passes, as numbers of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::filter) struct PyramidWeights<W> {
    pub(in crate::filter) grid: PyramidGrid,
    pub(in crate::filter) rows: Vec<W>,
    pub(in crate::filter) columns: Vec<W>,
    pub(in crate::filter) low: Vec<W>,
    pub(in crate::filter) interpolate: Vec<[W; PyramidGrid::TAPS]>,
}

impl<W: Copy + Into<f64>> PyramidWeights<W> {
    /// Those of the Gaussian of `sigma` pixels, at least 10. `rows` makes numbers of the weights that
    /// decimate rows, `others` of all others. They are given weights of any sum, and the place of the nearest
    /// pixel's: it takes what rounding leaves of the sum.
    pub(in crate::filter) fn new(
        sigma: f64,
        rows: impl Fn(&[f64], usize) -> Vec<W>,
        others: impl Fn(&[f64], usize) -> Vec<W>,
    ) -> PyramidWeights<W> {
        let step = step(sigma);
        let mut decimate = gaussian(EDGE_SIGMA * step as f64, 3 * step - 1);
        decimate.insert(0, 0.0);
        let (rows, columns) = (rows(&decimate, 3 * step), others(&decimate, 3 * step));
        let interpolate: Vec<[W; PyramidGrid::TAPS]> = (0..step)
            .map(|place| {
                let nearest = if 2 * place > step { 3 } else { 2 };
                let rounded = others(&interpolation(step, place), nearest);
                std::array::from_fn(|tap| rounded[tap])
            })
            .collect();
        let variance = decimation_variance(&rows, step)
            + decimation_variance(&columns, step)
            + 2.0 * interpolation_variance(&interpolate, step);
        let low_sigma = (sigma * sigma - variance / 2.0).sqrt() / step as f64;
        let low_radius = (4.0 * low_sigma).ceil() as usize;
        PyramidWeights {
            grid: PyramidGrid { step, low_radius },
            rows,
            columns,
            low: others(&gaussian(low_sigma, low_radius), low_radius),
            interpolate,
        }
    }
}

/// D for the Gaussian of `sigma` pixels: as large as leaves the low filter its least sigma.
fn step(sigma: f64) -> usize {
    let edges = 2.0 * EDGE_SIGMA * EDGE_SIGMA;
    let least = (LEAST_LOW_SIGMA * LEAST_LOW_SIGMA + edges).sqrt();
    let mut step = 4;
    while step < MOST_STEP && sigma >= least * (2 * step) as f64 {
        step *= 2;
    }
    step
}

/// A Gaussian's value, `distance` from its centre; the centre's is 1.
fn bell(distance: f64, sigma: f64) -> f64 {
    (-0.5 * (distance / sigma).powi(2)).exp()
}

/// A Gaussian's values to `radius` pixels on each side.
fn gaussian(sigma: f64, radius: usize) -> Vec<f64> {
    let weight = |at: usize| bell(at as f64 - radius as f64, sigma);
    (0..=2 * radius).map(weight).collect()
}

/// What the low pixels around a pixel weigh that lies `place` pixels behind one.
fn interpolation(step: usize, place: usize) -> [f64; PyramidGrid::TAPS] {
    let distance = |tap: usize| place as f64 - (tap as f64 - 2.0) * step as f64;
    std::array::from_fn(|tap| match distance(tap) {
        // As far as decimation reads, which makes the first tap of place 0 the only one.
        far if far.abs() >= (3 * step) as f64 => 0.0,
        near => bell(near, EDGE_SIGMA * step as f64),
    })
}

/// Weights as integers that add up to `2^bits`.
fn scaled(weights: &[f64], nearest: usize, bits: u32) -> Vec<i32> {
    let scale = f64::from(1_u32 << bits) / weights.iter().sum::<f64>();
    let mut rounded: Vec<i32> = weights.iter().map(|w| (w * scale).round() as i32).collect();
    rounded[nearest] += (1 << bits) - rounded.iter().sum::<i32>();
    rounded
}

/// The variance of decimation's weights, in square pixels.
fn decimation_variance<W: Copy + Into<f64>>(weights: &[W], step: usize) -> f64 {
    let squares = weights.iter().enumerate().map(|(at, &w)| {
        let distance = at as f64 - (3 * step) as f64;
        w.into() * distance * distance
    });
    squares.sum::<f64>() / weights.iter().map(|&w| w.into()).sum::<f64>()
}

/// The variance of what a low pixel becomes, in square pixels.
fn interpolation_variance<W: Copy + Into<f64>>(places: &[[W; PyramidGrid::TAPS]], step: usize) -> f64 {
    let (mut squares, mut sum) = (0.0, 0.0);
    for (place, weights) in places.iter().enumerate() {
        for (tap, &w) in weights.iter().enumerate() {
            let distance = place as f64 - (tap as f64 - 2.0) * step as f64;
            squares += w.into() * distance * distance;
            sum += w.into();
        }
    }
    squares / sum
}

#[cfg(test)]
pub(in crate::filter) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    impl<W: Copy + Into<f64>> PyramidWeights<W> {
        /// The same as numbers of 64 bits.
        pub(in crate::filter) fn real(&self) -> PyramidWeights<f64> {
            let real = |weights: &[W]| weights.iter().map(|&w| w.into()).collect();
            PyramidWeights {
                grid: self.grid,
                rows: real(&self.rows),
                columns: real(&self.columns),
                low: real(&self.low),
                interpolate: self.interpolate.iter().map(|w| w.map(Into::into)).collect(),
            }
        }
    }

    /// What the passes along one axis weigh the pixels around one with, which lies `place` behind a low one.
    fn composite(weights: &PyramidWeights<f64>, decimate: &[f64], place: usize) -> BTreeMap<i64, f64> {
        let step = weights.grid.step as i64;
        let total = |weights: &[f64]| weights.iter().sum::<f64>();
        let mut found = BTreeMap::new();
        for (tap, &outer) in weights.interpolate[place].iter().enumerate() {
            for (k, &low) in weights.low.iter().enumerate() {
                let j = tap as i64 - 2 + k as i64 - weights.grid.low_radius as i64;
                for (at, &inner) in decimate.iter().enumerate() {
                    let x = (j - 3) * step + at as i64 - place as i64;
                    *found.entry(x).or_insert(0.0) += outer * low * inner;
                }
            }
        }
        let scale = total(&weights.interpolate[place]) * total(&weights.low) * total(decimate);
        found.into_iter().map(|(x, w)| (x, w / scale)).collect()
    }

    /// The largest difference that the passes of both directions can make from a Gaussian, on any picture
    /// whose samples lie 1 apart at most.
    pub(in crate::filter) fn largest_difference(weights: &PyramidWeights<f64>, sigma: f64) -> f64 {
        let step = weights.grid.step;
        let reach = (8.0 * sigma) as i64 + 8 * step as i64;
        let all: f64 = (-reach..=reach).map(|x| bell(x as f64, sigma)).sum();
        let axis = |decimate: &[f64]| {
            let of_place = |place: usize| {
                let found = composite(weights, decimate, place);
                let difference = |x: i64| {
                    let weight = found.get(&x).copied().unwrap_or(0.0);
                    (weight - bell(x as f64, sigma) / all).abs()
                };
                (-reach..=reach).map(difference).sum::<f64>()
            };
            // The ends, the middle and one beside it.
            let places = [0, 1, step / 2, step - 1];
            places.into_iter().map(of_place).fold(0.0, f64::max)
        };
        // Both sides add up to 1, so that half of what differs is too much and half too little.
        (axis(&weights.rows) + axis(&weights.columns)) / 2.0
    }

    /// Around each sigma at which the step changes, and between them.
    pub(in crate::filter) const SIGMAS: [f64; 13] = [
        10.34, 11.0, 14.9, 18.1, 18.2, 25.0, 36.2, 36.3, 50.0, 72.5, 100.0, 145.0, 200.0,
    ];

    #[test]
    fn the_passes_are_a_gaussian_to_a_quarter_of_a_level_of_8_bits() {
        for sigma in SIGMAS {
            let kernel = PyramidKernel::new(sigma, 8);
            let weights = PyramidWeights {
                grid: kernel.grid,
                rows: kernel.rows.weights,
                columns: kernel.columns.weights,
                low: kernel.low.weights,
                interpolate: kernel.interpolate,
            };
            let difference = 255.0 * largest_difference(&weights.real(), sigma);
            assert!(difference < 0.23, "sigma {sigma}: {difference} levels");
        }
    }

    #[test]
    fn weights_add_up_and_sums_fit() {
        for depth in [8, 9, 10, 12, 14, 16] {
            for sigma in [10.4, 30.0, 77.0, 200.0, 1000.0] {
                let kernel = PyramidKernel::new(sigma, depth);
                let (step, max) = (kernel.grid.step, i64::from((1_u32 << depth) - 1));
                let sum = |weights: &[i32]| weights.iter().map(|&w| i64::from(w)).sum::<i64>();
                let rows = sum(&kernel.rows.weights);
                assert_eq!(rows, 1 << (kernel.rows.shift + kernel.fraction_bits));
                assert!(max * rows + kernel.rows.start() <= i64::from(i32::MAX));
                assert_eq!(sum(&kernel.columns.weights), 1 << kernel.columns.shift);
                assert_eq!(sum(&kernel.low.weights), 1 << kernel.low.shift);
                assert_eq!(kernel.rows.weights.len(), 6 * step);
                assert!(kernel.rows.weights.iter().all(|&w| w < 1 << 15));
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
