//! The portable inner loops: one row of one component at a time, as plain arithmetic over slices that the compiler vectorises.

use crate::filter::Border;
use crate::frame::PixelFormat;
use std::ops::{Add, AddAssign, Mul, Shr};

/// The integer type of a sum: `i32` where docs/arithmetic.md says that it suffices, `i64` elsewhere.
pub(super) trait Sum:
    Copy + From<i32> + Add<Output = Self> + AddAssign + Mul<Output = Self> + Shr<u32, Output = Self>
{
    /// The low bits of a bias, which fit by construction.
    fn from_bias(bias: i64) -> Self;
    /// The sum after its shift.
    fn widen(self) -> i64;
}

impl Sum for i32 {
    fn from_bias(bias: i64) -> i32 {
        bias as i32
    }
    fn widen(self) -> i64 {
        i64::from(self)
    }
}

impl Sum for i64 {
    fn from_bias(bias: i64) -> i64 {
        bias
    }
    fn widen(self) -> i64 {
        self
    }
}

/// Where a component's samples lie in a row of bytes.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Place {
    /// Samples that a pixel interleaves.
    pub(in crate::engine::cpu) channels: usize,
    /// Which of them.
    pub(in crate::engine::cpu) channel: usize,
    /// The format, for the size of a sample and its padding bits.
    pub(in crate::engine::cpu) format: PixelFormat,
}

/// Reads the component's samples of one row.
pub(in crate::engine::cpu) fn load<T: From<u16>>(place: Place, row: &[u8], out: &mut [T]) {
    let shift = place.format.shift();
    if place.format.bytes_per_sample() == 1 {
        let sample = |v: u8| T::from(u16::from(v));
        // Pixels of few components are told apart, since their samples are found faster where it is known how far they are from each other.
        match place.channels {
            1 => out.iter_mut().zip(row).for_each(|(o, &v)| *o = sample(v)),
            3 => {
                let pixels = row.as_chunks::<3>().0;
                out.iter_mut()
                    .zip(pixels)
                    .for_each(|(o, v)| *o = sample(v[place.channel]));
            }
            _ => {
                let samples = row[place.channel..].iter().step_by(place.channels);
                out.iter_mut().zip(samples).for_each(|(o, &v)| *o = sample(v));
            }
        }
    } else {
        let samples = row.as_chunks::<2>().0[place.channel..]
            .iter()
            .step_by(place.channels);
        out.iter_mut()
            .zip(samples)
            .for_each(|(o, v)| *o = T::from(u16::from_le_bytes(*v) >> shift));
    }
}

/// Writes the component's samples of one row; the values are in range.
pub(in crate::engine::cpu) fn store<T: Copy + Into<i32>>(place: Place, values: &[T], row: &mut [u8]) {
    let shift = place.format.shift();
    if place.format.bytes_per_sample() == 1 {
        match place.channels {
            1 => row.iter_mut().zip(values).for_each(|(o, &v)| *o = v.into() as u8),
            3 => {
                let pixels = row.as_chunks_mut::<3>().0;
                pixels
                    .iter_mut()
                    .zip(values)
                    .for_each(|(o, &v)| o[place.channel] = v.into() as u8);
            }
            _ => {
                let samples = row[place.channel..].iter_mut().step_by(place.channels);
                samples.zip(values).for_each(|(o, &v)| *o = v.into() as u8);
            }
        }
    } else {
        let samples = row.as_chunks_mut::<2>().0[place.channel..]
            .iter_mut()
            .step_by(place.channels);
        samples
            .zip(values)
            .for_each(|(o, &v)| *o = ((v.into() as u16) << shift).to_le_bytes());
    }
}

/// Fills the `radius` samples on each side of a row whose middle is loaded.
pub(in crate::engine::cpu) fn extend<T: Copy>(line: &mut [T], radius: usize, border: Border, outside: T) {
    let width = line.len() - 2 * radius;
    for k in 1..=radius {
        let left = border.index(-(k as i64), width);
        let right = border.index((width + k - 1) as i64, width);
        line[radius - k] = left.map_or(outside, |i| line[radius + i]);
        line[radius + width + k - 1] = right.map_or(outside, |i| line[radius + i]);
    }
}

/// Adds to each sum the taps of one row: `sums[x] += sum over i of weights[i] * line[x + i]`.
pub(super) fn accumulate<S: Sum>(sums: &mut [S], weights: &[i32], line: &[i32]) {
    for (i, &q) in weights.iter().enumerate().filter(|(_, q)| **q != 0) {
        let q = S::from(q);
        sums.iter_mut()
            .zip(&line[i..])
            .for_each(|(s, &p)| *s += q * S::from(p));
    }
}

/// The samples that the sums stand for.
pub(in crate::engine::cpu) fn finish<S: Sum>(sums: &[S], shift: u32, high: i64, max: i32, out: &mut [i32]) {
    for (o, &s) in out.iter_mut().zip(sums) {
        *o = ((s >> shift).widen() + high).clamp(0, i64::from(max)) as i32;
    }
}

/// The intermediate of a row pass, `(sum + rounding) >> shift`; the rounding is in the sums already.
pub(super) fn intermediate<S: Sum>(sums: &[S], shift: u32, out: &mut [i32]) {
    out.iter_mut()
        .zip(sums)
        .for_each(|(o, &s)| *o = (s >> shift).widen() as i32);
}

/// One tap of a column pass: `sums[x] += weight * line[x]`.
pub(super) fn accumulate_column<S: Sum>(sums: &mut [S], weight: i32, line: &[i32]) {
    let q = S::from(weight);
    sums.iter_mut().zip(line).for_each(|(s, &t)| *s += q * S::from(t));
}
