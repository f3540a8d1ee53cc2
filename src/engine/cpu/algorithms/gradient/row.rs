//! A row of the result, block by block: the masks' sums are combined to one number, which is requantized.

use super::root::{Root, RootMethod, double_root, single_root};
use super::sums::{BLOCK, Masks, Number, Places};
use crate::engine::cpu::rows::words::convert;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::{CombinedKernel, Combining, Convolve};
use crate::frame::PixelFormat;
use std::fmt;

/// How sums are combined and requantized.
pub(super) struct CombinedRequantize {
    combining: Combining,
    /// The method of roots, for magnitudes.
    root: Option<Root>,
    /// The value to add before the shift, for each channel, or one for all.
    low: Vec<i64>,
    /// The value to add after the shift, likewise.
    high: Vec<i64>,
    shift: u32,
    max: i64,
    format: PixelFormat,
}

impl CombinedRequantize {
    pub(super) fn new(
        kernel: &CombinedKernel,
        channels: &[Convolve],
        format: PixelFormat,
        root: Option<Root>,
    ) -> CombinedRequantize {
        let is_uniform = channels
            .windows(2)
            .all(|two| (two[0].low, two[0].high) == (two[1].low, two[1].high));
        let each = if is_uniform {
            &channels[..channels.len().min(1)]
        } else {
            channels
        };
        CombinedRequantize {
            combining: kernel.combining,
            root,
            low: each.iter().map(|c| c.low).collect(),
            high: each.iter().map(|c| c.high).collect(),
            shift: kernel.shift,
            max: i64::from(format.max_value()),
            format,
        }
    }

    pub(super) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }
}

impl fmt::Display for CombinedRequantize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.combining, &self.root) {
            (Combining::Magnitude(_), Some(root)) => root.method.fmt(f),
            (Combining::Largest, _) => f.write_str("the largest"),
            _ => f.write_str("absolute values"),
        }
    }
}

/// The loop that makes a row of the result.
pub(super) struct MakeRow<'a, T> {
    pub(super) masks: &'a Masks,
    pub(super) places: Places<'a, T>,
    pub(super) requantizing: &'a CombinedRequantize,
    pub(super) out: &'a mut [u8],
}

impl<T: Number> Plain for MakeRow<'_, T> {
    #[inline(always)]
    fn run(self) {
        let format = self.requantizing.format;
        let bytes = format.bytes_per_sample();
        let samples = self.out.len() / bytes;
        let mut sums = [[T::default(); BLOCK]; 2];
        let mut numbers = [0_i32; BLOCK];
        let mut x = 0;
        while x < samples {
            let count = BLOCK.min(samples - x);
            let [first, second] = sums.each_mut().map(|sums| &mut sums[..count]);
            let numbers = &mut numbers[..count];
            match (self.requantizing.combining, &self.requantizing.root) {
                (Combining::Magnitude(_), Some(root)) => {
                    self.masks.sum(0, &self.places, x, first);
                    self.masks.sum(1, &self.places, x, second);
                    roots(root, first, second, numbers);
                    whole_levels(self.requantizing, x, numbers);
                }
                (Combining::Absolute, _) => {
                    self.masks.sum(0, &self.places, x, first);
                    for sum in &mut *first {
                        // No sum is the least number of the type, so this does not overflow.
                        *sum = (*sum).max(sum.times(T::of_number(-1)));
                    }
                    requantize(self.requantizing, x, first, numbers);
                }
                _ => {
                    self.masks.largest(&self.places, x, first);
                    requantize(self.requantizing, x, first, numbers);
                }
            }
            let out = &mut self.out[x * bytes..(x + count) * bytes];
            convert::store(format, numbers, out);
            x += count;
        }
    }
}

/// The scaled roots of the sums of squares of `first` and `second`.
#[inline(always)]
fn roots<T: Number>(root: &Root, first: &[T], second: &[T], out: &mut [i32]) {
    let second = &second[..first.len()];
    let out = &mut out[..first.len()];
    let is_narrow = size_of::<T>() == 2;
    match root.method {
        // The squares of two 16-bit sums add up to 32 bits at most.
        RootMethod::Single { factor, .. } if is_narrow => {
            let most = root.most as i32;
            for at in 0..first.len() {
                let (a, b) = (first[at].narrow(), second[at].narrow());
                out[at] = single_root((a * a + b * b).min(most), factor);
            }
        }
        RootMethod::Corrected(correction) if is_narrow => {
            let most = root.most as i32;
            for at in 0..first.len() {
                let (a, b) = (first[at].narrow(), second[at].narrow());
                out[at] = correction.root((a * a + b * b).min(most));
            }
        }
        RootMethod::Double(factor) => {
            // Sums of masks with magnitudes are below 2^26, so these squares are exact.
            let most = root.most as f64;
            for at in 0..first.len() {
                let (a, b) = (first[at].real(), second[at].real());
                let squares = a * a + b * b;
                out[at] = double_root(if squares < most { squares } else { most }, factor);
            }
        }
        RootMethod::Single { .. } | RootMethod::Corrected(_) | RootMethod::Integers => {
            for at in 0..first.len() {
                let (a, b) = (first[at].wide(), second[at].wide());
                let squares = ((a * a + b * b) as u64).min(root.most);
                out[at] = match root.method {
                    RootMethod::Single { factor, .. } => single_root(squares as i32, factor),
                    RootMethod::Corrected(correction) => correction.root(squares as i32),
                    RootMethod::Double(_) | RootMethod::Integers => root.scale().root(squares) as i32,
                };
            }
        }
    }
}

/// Adds the channels' values to numbers that are whole levels, and clamps them.
#[inline(always)]
fn whole_levels(requantizing: &CombinedRequantize, x: usize, numbers: &mut [i32]) {
    let max = requantizing.max as i32;
    if let [high] = requantizing.high[..] {
        // With larger values every number is clamped.
        let high = high.clamp(-(1 << 29), 1 << 29) as i32;
        for number in numbers {
            *number = (*number + high).clamp(0, max);
        }
        return;
    }
    for (at, number) in numbers.iter_mut().enumerate() {
        let high = requantizing.high[(x + at) % requantizing.high.len()];
        *number = (i64::from(*number) + high).clamp(0, requantizing.max) as i32;
    }
}

/// Shifts sums down, adding the channels' values before and after, and clamps them.
#[inline(always)]
fn requantize<T: Number>(requantizing: &CombinedRequantize, x: usize, sums: &[T], out: &mut [i32]) {
    let out = &mut out[..sums.len()];
    let shift = requantizing.shift;
    match (&requantizing.low[..], &requantizing.high[..]) {
        (&[low], &[high]) if size_of::<T>() < 8 => {
            let (low, max) = (low as i32, requantizing.max as i32);
            let high = high.clamp(-(1 << 29), 1 << 29) as i32;
            // Clamped after the shift, before an addition could wrap.
            for at in 0..sums.len() {
                let level = (sums[at].narrow() + low) >> shift;
                out[at] = (level.min(1 << 30) + high).clamp(0, max);
            }
        }
        (low, high) => {
            for at in 0..sums.len() {
                let channel = (x + at) % low.len();
                let level = (sums[at].wide() + low[channel]) >> shift;
                out[at] = (level + high[channel]).clamp(0, requantizing.max) as i32;
            }
        }
    }
}
