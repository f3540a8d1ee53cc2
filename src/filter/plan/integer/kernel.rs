//! Kernels of integers: weights, scales and passes, and how one number is made of several sums.

use super::division::Division;
use crate::filter::Scale;

/// The whole mask. Sums fit 32 bits up to 12-bit pixels and need 64 above; of long weights 53 at any depth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectKernel {
    /// Columns, odd.
    pub width: usize,
    /// Rows, odd.
    pub height: usize,
    /// Row by row.
    pub weights: Vec<i32>,
    /// The scale: a weight is `q / divisor`.
    pub division: Division,
    /// True if there are weights of more than two bytes.
    pub long: bool,
}

/// Whole masks of one size, and what is made of their sums. A sum is that of the signal above the zero level,
/// `sum q (p - level)`, and fits as many bits as that of a [`DirectKernel`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CombinedKernel {
    /// Columns, odd.
    pub width: usize,
    /// Rows, odd.
    pub height: usize,
    /// The weights of each mask, row by row.
    pub masks: Vec<Vec<i32>>,
    /// The scale: a weight is `q / 2^shift`. 0 for magnitudes.
    pub shift: u32,
    /// How one number is made of the sums.
    pub combining: Combining,
    /// True if there are weights of more than two bytes.
    pub long: bool,
}

/// How one number is made of the sums of several masks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combining {
    /// The absolute value of the only one.
    Absolute,
    /// The largest.
    Largest,
    /// The root of the sum of squares of two, times this, rounded half up: whole levels.
    Magnitude(Scale),
}

impl CombinedKernel {
    /// What the sum of mask `k` over samples themselves lacks to be that over the signal above `level`.
    pub fn start(&self, k: usize, level: u16) -> i64 {
        -i64::from(level) * self.masks.get(k).map_or(0, |weights| sum(weights))
    }

    /// No sum over the signal of samples of up to `max` is further from 0 than this, whatever level the
    /// signal is counted from: samples under weights of one sign are as far above it as they can be, and
    /// those under weights of the other sign as far below.
    pub fn most_sum(&self, max: u32) -> i64 {
        let of_sign = |weights: &[i32], sign: i64| -> i64 {
            weights.iter().map(|&q| (sign * i64::from(q)).max(0)).sum()
        };
        let most = |weights: &Vec<i32>| of_sign(weights, 1).max(of_sign(weights, -1));
        self.masks.iter().map(most).max().unwrap_or(0) * i64::from(max)
    }

    /// The number that is made of the sums, one a mask.
    pub fn combine(&self, sums: impl Iterator<Item = i64>) -> i64 {
        match self.combining {
            Combining::Absolute => sums.map(i64::abs).sum(),
            Combining::Largest => sums.max().unwrap_or_default(),
            Combining::Magnitude(scale) => scale.root(sums.map(|s| s.unsigned_abs().pow(2)).sum()) as i64,
        }
    }
}

/// One pass that makes numbers for a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pass {
    /// The weights, an odd number of them.
    pub weights: Vec<i32>,
    /// Bits that the pass's sums are shifted down by.
    pub shift: u32,
    /// What is taken from the numbers, so that they have a sign and fit a bit less; mostly 0.
    pub offset: i64,
}

impl Pass {
    /// What sums begin with before the shift: a half, so that halves round up, less the offset.
    pub fn start(&self) -> i64 {
        ((1_i64 << self.shift) >> 1) - (self.offset << self.shift)
    }
}

/// The column pass of a separable kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// The weights, an odd number of them.
    pub weights: Vec<i32>,
    /// How sums become levels.
    pub division: Division,
}

/// Row pass: `t = (sum q p + start) >> row.shift`. Column pass: `out = clamp(floor((sum q t + low) /
/// divisor) + high)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeparableKernel {
    /// Along the row, first.
    pub row: Pass,
    /// Along the column, second.
    pub column: Column,
    /// False: t fits 16 signed bits and every sum 32. True: t fits 24 signed bits and the column sums need
    /// 64.
    pub wide: bool,
    /// True if there are weights of more than two bytes, at most three; then it is wide, and all sums fit 53
    /// bits.
    pub long: bool,
    /// Fraction bits of t.
    pub fraction_bits: u32,
}

/// The sum of a mask's weights.
pub(super) fn sum(weights: &[i32]) -> i64 {
    weights.iter().map(|&q| i64::from(q)).sum()
}
