//! The sums of each mask over a block of samples.

use crate::engine::cpu::rows::words::convert;
use crate::engine::cpu::simd::vector::Plain;
use crate::filter::{CombinedKernel, Compass, Convolve, RING};
use crate::frame::PixelFormat;
use std::fmt;

/// Samples that are made at a time: their sums stay in the first-level cache.
pub(super) const BLOCK: usize = 256;

/// The type of a line's elements.
pub(super) trait Sample: Copy + Default + Send + 'static {
    fn of_sample(sample: u16) -> Self;
}

/// A sample less 2^15: a word with sign.
#[derive(Debug, Clone, Copy, Default)]
#[repr(transparent)]
pub(super) struct Centred(#[allow(dead_code, reason = "vectors read it")] i16);

impl Sample for Centred {
    #[inline(always)]
    fn of_sample(sample: u16) -> Centred {
        Centred((sample ^ 0x8000) as i16)
    }
}

/// An integer type of a mask's sums, samples and weights. Partial sums may wrap; the final one is right.
pub(super) trait Number: Sample + Ord {
    fn of_number(number: i64) -> Self;
    fn plus(self, other: Self) -> Self;
    fn times(self, other: Self) -> Self;
    /// The value as 32 bits, for types that are no wider.
    fn narrow(self) -> i32;
    fn wide(self) -> i64;
    fn real(self) -> f64;
}

macro_rules! number {
    ($($name:ident)*) => {$(
        impl Sample for $name {
            #[inline(always)]
            fn of_sample(sample: u16) -> $name {
                sample as $name
            }
        }

        impl Number for $name {
            #[inline(always)]
            fn of_number(number: i64) -> $name {
                number as $name
            }
            #[inline(always)]
            fn plus(self, other: $name) -> $name {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn times(self, other: $name) -> $name {
                self.wrapping_mul(other)
            }
            #[inline(always)]
            fn narrow(self) -> i32 {
                self as i32
            }
            #[inline(always)]
            fn wide(self) -> i64 {
                self as i64
            }
            #[inline(always)]
            fn real(self) -> f64 {
                self as f64
            }
        }
    )*};
}

number!(i16 i32 i64);

/// The masks' weights that are not 0.
pub(super) struct Masks {
    /// For each mask its weights, with their rows and columns.
    pub(super) taps: Vec<Vec<Tap>>,
    /// For each mask the start value of each channel's sums.
    starts: Vec<Vec<i64>>,
    /// Set if the masks are the eight rotations of one compass mask.
    pub(super) compass: Option<Compass>,
}

/// One weight of a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tap {
    pub(super) weight: i64,
    pub(super) place: TapOffset,
}

/// A row and a column of a mask.
pub(super) type TapOffset = (usize, usize);

impl Masks {
    pub(super) fn new(kernel: &CombinedKernel, channels: &[Convolve]) -> Masks {
        let taps = kernel.masks.iter().map(|weights| {
            let all = weights.iter().enumerate().filter(|(_, q)| **q != 0);
            let tap = |(at, &q): (usize, &i32)| Tap {
                weight: i64::from(q),
                place: (at / kernel.width, at % kernel.width),
            };
            all.map(tap).collect()
        });
        let starts = (0..kernel.masks.len()).map(|k| {
            let start = channels.iter().map(|c| kernel.start(k, c.level));
            start.collect()
        });
        Masks {
            taps: taps.collect(),
            starts: starts.collect(),
            compass: Compass::of(kernel),
        }
    }

    /// Number of weights of all masks that are not 0.
    pub(super) fn weights(&self) -> usize {
        self.taps.iter().map(Vec::len).sum()
    }

    /// Number of masks.
    pub(super) fn count(&self) -> usize {
        self.taps.len()
    }

    /// Stores the sums of mask `k` for the results from sample `x` on in `out`.
    #[inline(always)]
    pub(super) fn sum<T: Number>(&self, k: usize, places: &Places<'_, T>, x: usize, out: &mut [T]) {
        let (taps, starts) = (&self.taps[k], &self.starts[k]);
        if starts.iter().all(|&start| start == 0) {
            out.fill(T::default());
        } else {
            for (at, sum) in out.iter_mut().enumerate() {
                *sum = T::of_number(starts[(x + at) % starts.len()]);
            }
        }
        match taps.len() {
            2 => add_taps::<T, 2>(taps, places, x, out),
            6 => add_taps::<T, 6>(taps, places, x, out),
            8 => add_taps::<T, 8>(taps, places, x, out),
            9 => add_taps::<T, 9>(taps, places, x, out),
            _ => {
                for tap in taps {
                    add_taps::<T, 1>(std::slice::from_ref(tap), places, x, out);
                }
            }
        }
    }

    /// Stores the largest sum of all masks for the results from sample `x` on in `out`. All start values are
    /// 0.
    #[inline(always)]
    pub(super) fn largest<T: Number>(&self, places: &Places<'_, T>, x: usize, out: &mut [T]) {
        if let Some(compass) = self.compass {
            largest_around(compass, places, x, out);
            return;
        }
        self.sum(0, places, x, out);
        let mut room = [T::default(); BLOCK];
        let next = &mut room[..out.len()];
        for k in 1..self.count() {
            self.sum(k, places, x, next);
            for at in 0..out.len() {
                out[at] = out[at].max(next[at]);
            }
        }
    }
}

impl fmt::Display for Masks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count() {
            1 => write!(f, "1 mask"),
            count => write!(f, "{count} masks"),
        }
    }
}

/// The lines that a row of the result is made from.
#[derive(Clone, Copy)]
pub(super) struct Places<'a, T> {
    /// The memory of all lines.
    pub(super) lines: &'a [T],
    /// For each row of the masks the index of the sample under its first weight, for the first result.
    pub(super) starts: &'a [usize],
    /// Columns of the masks.
    pub(super) columns: usize,
    /// Samples from a pixel to the next one.
    pub(super) channels: usize,
}

impl<'a, T> Places<'a, T> {
    /// The samples under one weight of a mask, for `count` results from sample `x` on.
    #[inline(always)]
    pub(super) fn under(&self, (row, column): TapOffset, x: usize, count: usize) -> &'a [T] {
        debug_assert!(column < self.columns);
        &self.lines[self.starts[row] + column * self.channels + x..][..count]
    }
}

/// Adds the products of `N` weights to each sum.
#[inline(always)]
fn add_taps<T: Number, const N: usize>(taps: &[Tap], places: &Places<'_, T>, x: usize, out: &mut [T]) {
    let count = out.len();
    let mut weights = [T::default(); N];
    let mut lines = [&places.lines[..0]; N];
    for t in 0..N {
        weights[t] = T::of_number(taps[t].weight);
        lines[t] = places.under(taps[t].place, x, count);
    }
    for at in 0..count {
        let mut sum = out[at];
        for t in 0..N {
            sum = sum.plus(weights[t].times(lines[t][at]));
        }
        out[at] = sum;
    }
}

/// The largest sum of the eight rotations of a compass mask: the common weight times the sum of all eight
/// neighbours, plus the extra weight of three times the largest sum of three adjacent neighbours.
#[inline(always)]
fn largest_around<T: Number>(compass: Compass, places: &Places<'_, T>, x: usize, out: &mut [T]) {
    let count = out.len();
    let mut ring = [&places.lines[..0]; RING.len()];
    for k in 0..RING.len() {
        ring[k] = places.under(RING[k], x, count);
    }
    let (more, others) = (T::of_number(compass.more), T::of_number(compass.others));
    for at in 0..count {
        let mut pairs = [T::default(); RING.len()];
        for k in 0..RING.len() {
            pairs[k] = ring[k][at].plus(ring[(k + 1) % RING.len()][at]);
        }
        let mut most = pairs[0].plus(ring[2][at]);
        for k in 1..RING.len() {
            most = most.max(pairs[k].plus(ring[(k + 2) % RING.len()][at]));
        }
        let all = pairs[0].plus(pairs[2]).plus(pairs[4].plus(pairs[6]));
        out[at] = more.times(most).plus(others.times(all));
    }
}

/// The loop that converts a row's samples to numbers.
pub(super) struct Widen<'a, T> {
    format: PixelFormat,
    row: &'a [u8],
    to: &'a mut [T],
}

impl<'a, T: Sample> Widen<'a, T> {
    pub(super) fn new(format: PixelFormat, row: &'a [u8], to: &'a mut [T]) -> Widen<'a, T> {
        Widen { format, row, to }
    }
}

impl<T: Sample> Plain for Widen<'_, T> {
    #[inline(always)]
    fn run(self) {
        convert::load(self.format, self.row, self.to, T::of_sample);
    }
}
