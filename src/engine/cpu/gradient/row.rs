//! A row of the result, block by block: the masks' sums are combined into one number, which becomes a sample.

use super::root::{self, Root, Way, double_root, single_root};
use super::sums::{BLOCK, Masks, Number, Places};
use crate::engine::cpu::rows::words::numbers;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::{CombinedKernel, Combining, Convolve};
use crate::frame::PixelFormat;
use std::fmt;

/// How sums become samples.
pub(super) struct Ending {
    combining: Combining,
    /// How roots are found, for magnitudes.
    root: Option<Root>,
    /// What is added below one level, for each channel, or for all.
    low: Vec<i64>,
    /// What is added after the shift, likewise.
    high: Vec<i64>,
    shift: u32,
    max: i64,
    format: PixelFormat,
}

impl Ending {
    pub(super) fn new(
        kernel: &CombinedKernel,
        channels: &[Convolve],
        format: PixelFormat,
        root: Option<Root>,
    ) -> Ending {
        let is_uniform = channels
            .windows(2)
            .all(|two| (two[0].low, two[0].high) == (two[1].low, two[1].high));
        let told_apart = if is_uniform {
            &channels[..channels.len().min(1)]
        } else {
            channels
        };
        Ending {
            combining: kernel.combining,
            root,
            low: told_apart.iter().map(|c| c.low).collect(),
            high: told_apart.iter().map(|c| c.high).collect(),
            shift: kernel.shift,
            max: i64::from(format.max_value()),
            format,
        }
    }

    pub(super) fn root(&self) -> Option<&Root> {
        self.root.as_ref()
    }

    /// What [`Ending`] says of itself where vectors of 32-bit sums make it.
    pub(super) fn in_numbers(&self) -> impl fmt::Display {
        match (self.combining, &self.root) {
            (Combining::Magnitude(_), Some(_)) => root::IN_NUMBERS.to_owned(),
            _ => self.to_string(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.combining, &self.root) {
            (Combining::Magnitude(_), Some(root)) => root.way.fmt(f),
            (Combining::Largest, _) => f.write_str("the largest"),
            _ => f.write_str("absolute values"),
        }
    }
}

/// Makes a row of the result.
pub(super) struct MakeRow<'a, T> {
    pub(super) masks: &'a Masks,
    pub(super) places: Places<'a, T>,
    pub(super) ending: &'a Ending,
    pub(super) out: &'a mut [u8],
}

impl<T: Number> Plain for MakeRow<'_, T> {
    #[inline(always)]
    fn run(self) {
        let format = self.ending.format;
        let bytes = format.bytes_per_sample();
        let samples = self.out.len() / bytes;
        let mut sums = [[T::default(); BLOCK]; 2];
        let mut numbers = [0_i32; BLOCK];
        let mut x = 0;
        while x < samples {
            let count = BLOCK.min(samples - x);
            let [first, second] = sums.each_mut().map(|sums| &mut sums[..count]);
            let numbers = &mut numbers[..count];
            match (self.ending.combining, &self.ending.root) {
                (Combining::Magnitude(_), Some(root)) => {
                    self.masks.sum(0, &self.places, x, first);
                    self.masks.sum(1, &self.places, x, second);
                    roots(root, first, second, numbers);
                    whole_levels(self.ending, x, numbers);
                }
                (Combining::Absolute, _) => {
                    self.masks.sum(0, &self.places, x, first);
                    for sum in &mut *first {
                        // The least number of the type is no sum.
                        *sum = (*sum).max(sum.times(T::of_number(-1)));
                    }
                    requantize(self.ending, x, first, numbers);
                }
                _ => {
                    self.masks.largest(&self.places, x, first);
                    requantize(self.ending, x, first, numbers);
                }
            }
            let out = &mut self.out[x * bytes..(x + count) * bytes];
            numbers::store(format, numbers, out);
            x += count;
        }
    }
}

/// The scaled roots of the sums of squares.
#[inline(always)]
fn roots<T: Number>(root: &Root, first: &[T], second: &[T], out: &mut [i32]) {
    let second = &second[..first.len()];
    let out = &mut out[..first.len()];
    let is_narrow = size_of::<T>() == 2;
    match root.way {
        // The squares of two 16-bit sums fit 32 bits.
        Way::Single(factor) if is_narrow => {
            let most = root.most as i32;
            for at in 0..first.len() {
                let (a, b) = (first[at].narrow(), second[at].narrow());
                out[at] = single_root((a * a + b * b).min(most), factor);
            }
        }
        Way::Corrected(correction) if is_narrow => {
            let most = root.most as i32;
            for at in 0..first.len() {
                let (a, b) = (first[at].narrow(), second[at].narrow());
                out[at] = correction.root((a * a + b * b).min(most));
            }
        }
        Way::Double(factor) => {
            // Sums of masks that have magnitudes are below 2^26, so that these squares are exact.
            let most = root.most as f64;
            for at in 0..first.len() {
                let (a, b) = (first[at].real(), second[at].real());
                let squares = a * a + b * b;
                out[at] = double_root(if squares < most { squares } else { most }, factor);
            }
        }
        Way::Single(_) | Way::Corrected(_) | Way::Integers => {
            for at in 0..first.len() {
                let (a, b) = (first[at].wide(), second[at].wide());
                let squares = ((a * a + b * b) as u64).min(root.most);
                out[at] = match root.way {
                    Way::Single(factor) => single_root(squares as i32, factor),
                    Way::Corrected(correction) => correction.root(squares as i32),
                    Way::Double(_) | Way::Integers => root.scale().root(squares) as i32,
                };
            }
        }
    }
}

/// Numbers that are whole levels already, with what is added to them, clamped.
#[inline(always)]
fn whole_levels(ending: &Ending, x: usize, numbers: &mut [i32]) {
    let max = ending.max as i32;
    if let [high] = ending.high[..] {
        // Beyond these the whole range is clamped.
        let high = high.clamp(-(1 << 29), 1 << 29) as i32;
        for number in numbers {
            *number = (*number + high).clamp(0, max);
        }
        return;
    }
    for (at, number) in numbers.iter_mut().enumerate() {
        let high = ending.high[(x + at) % ending.high.len()];
        *number = (i64::from(*number) + high).clamp(0, ending.max) as i32;
    }
}

/// Sums shifted down, with what is added to them, clamped.
#[inline(always)]
fn requantize<T: Number>(ending: &Ending, x: usize, sums: &[T], out: &mut [i32]) {
    let out = &mut out[..sums.len()];
    let shift = ending.shift;
    match (&ending.low[..], &ending.high[..]) {
        (&[low], &[high]) if size_of::<T>() < 8 => {
            let (low, max) = (low as i32, ending.max as i32);
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
                out[at] = (level + high[channel]).clamp(0, ending.max) as i32;
            }
        }
    }
}
