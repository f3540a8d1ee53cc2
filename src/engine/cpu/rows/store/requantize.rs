//! Requantization: a 32-bit sum becomes a sample (bias, division, clamp, pack), with the proof that 32 bits
//! hold the sum.
#![allow(unsafe_code)]

use crate::engine::cpu::simd::vector::{Order, Simd, TILE};
use crate::filter::{ChannelStep, Convolve, Division};
use crate::frame::PixelFormat;

/// Requantization of sums: `clamp(((sum + start) >> shift) + high, 0, max) << left`. With a `factor` a
/// multiplication and a shift divide (see [`Division`]).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::engine::cpu) struct Requantize {
    /// The start values of each limb's sums: [`TILE`] values for a vector that begins with a sample of the
    /// first channel, then the same for each further channel, in the order of the samples in vectors.
    pub(in crate::engine::cpu) start: [Vec<i32>; 3],
    /// The values to add after the shift, in the same order; empty if they are all 0.
    pub(in crate::engine::cpu) high: Vec<i32>,
    /// Samples that a pixel interleaves.
    pub(in crate::engine::cpu) channels: usize,
    /// Bits of a limb.
    pub(in crate::engine::cpu) bits: u32,
    /// True if the sum of all limbs fits 32 bits: limbs are joined before the shift. False if the bits above
    /// a limb are carried into the next one.
    pub(in crate::engine::cpu) whole: bool,
    /// Right shift of the joined sum (with carries: of the highest limb's sum).
    pub(in crate::engine::cpu) shift: u32,
    /// Multiplier of a division by a constant: `(sum * factor >> 32) >> shift`. `None`: the divisor is a
    /// power of two, and the shift alone divides.
    pub(in crate::engine::cpu) factor: Option<u32>,
    /// The largest sample.
    pub(in crate::engine::cpu) max: u16,
    /// Padding bits below a stored sample.
    pub(in crate::engine::cpu) left: u32,
    /// True if 32 bits also hold the sums without their start value.
    pub(in crate::engine::cpu) fits_alone: bool,
}

impl Requantize {
    /// The start value that rounds halves up; `None` for a shift of 0.
    pub(in crate::engine::cpu) fn half(&self) -> Option<i32> {
        self.shift.checked_sub(1).map(|below| 1 << below)
    }
}

/// Adds [`Requantize::high`], clamps and stores LANES VECTORS samples.
#[inline(always)]
pub(in crate::engine::cpu) unsafe fn offset_and_store<L: Simd, const BYTES: usize, const VECTORS: usize>(
    simd: L,
    mut values: [L::V; VECTORS],
    requantize: &Requantize,
    phase: usize,
    order: Order,
    to: *mut u8,
) {
    if !requantize.high.is_empty() {
        for v in 0..VECTORS {
            // SAFETY: the pattern is TILE x channels long.
            let high = unsafe { simd.load(requantize.high.as_ptr().add(phase * TILE + L::LANES * v)) };
            values[v] = simd.add_i32(values[v], high);
        }
    }
    // SAFETY: LANES VECTORS samples of BYTES bytes are writable at `to`.
    unsafe { store::<L, BYTES, VECTORS>(simd, values, requantize, order, to) };
}

/// Clamps and stores LANES VECTORS samples.
#[inline(always)]
pub(in crate::engine::cpu) unsafe fn store<L: Simd, const BYTES: usize, const VECTORS: usize>(
    simd: L,
    values: [L::V; VECTORS],
    requantize: &Requantize,
    order: Order,
    out: *mut u8,
) {
    if BYTES == 1 {
        // SAFETY: LANES VECTORS bytes are writable at `out`.
        unsafe { simd.store_bytes(values, order, out) };
        return;
    }
    for v in (0..VECTORS).step_by(2) {
        let two = [values[v], values[v + 1]];
        // SAFETY: LANES VECTORS words are writable at `out`, of which these are two vectors from the v-th on.
        unsafe {
            simd.store_words(
                two,
                order,
                requantize.max,
                requantize.left,
                out.add(2 * L::LANES * v),
            );
        };
    }
}

/// Divides vectors of sums from 0 to [`Division::LARGEST`] by a multiplication.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Divide<T> {
    factor: T,
    shift: T,
}

impl<T: Copy> Divide<T> {
    /// The division of a requantization that has a factor.
    #[inline(always)]
    pub(in crate::engine::cpu) fn new<L: Simd<V = T>>(simd: L, requantize: &Requantize) -> Divide<T> {
        Divide {
            factor: simd.splat(requantize.factor.unwrap_or(0) as i32),
            shift: simd.splat(requantize.shift as i32),
        }
    }

    #[inline(always)]
    pub(in crate::engine::cpu) fn of<L: Simd<V = T>>(self, simd: L, sums: T) -> T {
        // Sums are below 2^31, and so are their products' high halves.
        simd.shift_right_i32(simd.multiply_high_u32(sums, self.factor), self.shift)
    }
}

/// Joins the sums of limbs to one sum, and shifts it down, in registers.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct JoinLimbs<T> {
    whole: bool,
    bits: T,
    twice: T,
    shift: T,
}

impl<T: Copy> JoinLimbs<T> {
    #[inline(always)]
    pub(in crate::engine::cpu) fn new<L: Simd<V = T>>(
        simd: L,
        bits: u32,
        whole: bool,
        shift: u32,
    ) -> JoinLimbs<T> {
        JoinLimbs {
            whole,
            bits: simd.splat(bits as i32),
            twice: simd.splat(2 * bits as i32),
            shift: simd.splat(shift as i32),
        }
    }

    /// The sum of all limbs, shifted down.
    #[inline(always)]
    pub(in crate::engine::cpu) fn join<L: Simd<V = T>, const LIMBS: usize>(
        self,
        simd: L,
        limbs: [T; LIMBS],
    ) -> T {
        self.shift(simd, self.sum(simd, limbs))
    }

    /// A joined sum, shifted down.
    #[inline(always)]
    pub(in crate::engine::cpu) fn shift<L: Simd<V = T>>(self, simd: L, sum: T) -> T {
        simd.shift_right_i32(sum, self.shift)
    }

    /// The sum of all limbs.
    #[inline(always)]
    pub(in crate::engine::cpu) fn sum<L: Simd<V = T>, const LIMBS: usize>(
        self,
        simd: L,
        limbs: [T; LIMBS],
    ) -> T {
        let mut sum = limbs[0];
        if LIMBS > 1 && self.whole {
            sum = simd.add_i32(sum, simd.shift_left_i32(limbs[1], self.bits));
            if LIMBS > 2 {
                sum = simd.add_i32(sum, simd.shift_left_i32(limbs[2], self.twice));
            }
        } else {
            for p in 1..LIMBS {
                sum = simd.add_i32(limbs[p], simd.shift_right_i32(sum, self.bits));
            }
        }
        sum
    }
}

/// The bounds of sums, from which [`Sums::requantize`] derives their requantization.
pub(in crate::engine::cpu) struct Sums {
    /// Number of limbs.
    pub(in crate::engine::cpu) limbs: usize,
    /// Bits of a limb.
    pub(in crate::engine::cpu) bits: u32,
    /// The division of sums.
    pub(in crate::engine::cpu) division: Division,
    /// The least and the largest sum, without bias.
    pub(in crate::engine::cpu) range: (i64, i64),
    /// The largest magnitude of a value that is weighted.
    pub(in crate::engine::cpu) largest: i64,
    /// The sum of the weights' magnitudes.
    pub(in crate::engine::cpu) weight: i64,
    /// The value to add to sums that corrects for biased samples.
    pub(in crate::engine::cpu) correction: i64,
    /// The value to add after the shift for the same reason.
    pub(in crate::engine::cpu) raise: i64,
}

impl Sums {
    /// The requantization of these sums, for vectors of `lanes` numbers in `order`; `None` if it needs more
    /// than 32 bits.
    pub(in crate::engine::cpu) fn requantize(
        &self,
        format: PixelFormat,
        channels: &[ChannelStep],
        (order, lanes): (Order, usize),
    ) -> Option<Requantize> {
        let each = convolved(channels, self.raise)?;
        let pattern = |value: &dyn Fn(&Convolve) -> i64| pattern(&each, (order, lanes), value);
        let limit = i64::from(i32::MAX);
        let (lowest, highest) = self.range;
        let (one, shift) = (self.division.divisor(), self.division.shift());
        let factor = self.division.factor();
        // A multiplication divides no negative sums.
        let least = if factor.is_some() { 0 } else { i32::MIN.into() };
        let fits = |more: i64| lowest + more >= least && highest + more <= limit;
        let biased = |c: &Convolve| c.high * one + c.low;
        let mut requantize = Requantize {
            bits: self.bits,
            fits_alone: fits(0),
            factor,
            ..unbiased(format, channels, shift)
        };
        if each.iter().all(|c| fits(biased(c))) {
            // 32-bit sums may wrap on the way: the final sum is right.
            requantize.start[0] = pattern(&|c| biased(c).wrapping_add(self.correction));
            requantize.start[1..].fill(pattern(&|_| 0));
            return Some(requantize);
        }
        let high_fits = |c: &Convolve| c.high.abs() + highest.max(-lowest) / one + 2 <= limit;
        if !each.iter().all(high_fits) {
            return None;
        }
        requantize.high = pattern(&|c| c.high);
        if each.iter().all(|c| fits(c.low)) {
            requantize.start[0] = pattern(&|c| c.low.wrapping_add(self.correction));
            requantize.start[1..].fill(pattern(&|_| 0));
            return Some(requantize);
        }
        let below = self.bits * (self.limbs as u32 - 1);
        let carry = limit >> self.bits;
        let piece_fits = (self.weight << self.bits) + (1 << self.bits) + carry <= limit;
        let top_fits =
            |c: &Convolve| self.weight * ((self.largest >> below) + 1) + (c.low >> below) + carry <= limit;
        let carries = factor.is_none() && self.limbs > 1 && shift >= below;
        if !carries || !piece_fits || !each.iter().all(top_fits) {
            return None;
        }
        requantize.whole = false;
        requantize.shift = shift - below;
        for p in 0..self.limbs {
            let down = self.bits * p as u32;
            let mask = if p + 1 < self.limbs {
                (1 << self.bits) - 1
            } else {
                -1
            };
            requantize.start[p] = pattern(&|c| (c.low >> down) & mask);
        }
        Some(requantize)
    }
}

/// The constants of each channel, with `raise` added. Channels that are not convolved get the constants of
/// the first one that is: they are computed along with the others and then replaced.
fn convolved(channels: &[ChannelStep], raise: i64) -> Option<Vec<Convolve>> {
    let first = channels.iter().find_map(ChannelStep::convolved)?;
    let of = |c: &ChannelStep| {
        let c = c.convolved().unwrap_or(first);
        let high = c.high + raise;
        Convolve { high, ..*c }
    };
    Some(channels.iter().map(of).collect())
}

/// A requantization without start values.
fn unbiased(format: PixelFormat, channels: &[ChannelStep], shift: u32) -> Requantize {
    Requantize {
        channels: channels.len(),
        shift,
        whole: true,
        max: format.max_value() as u16,
        left: format.shift(),
        ..Requantize::default()
    }
}

/// The value of each sample's channel for a [`TILE`] of samples, for each channel that the tile may begin
/// with.
fn pattern(each: &[Convolve], (order, lanes): (Order, usize), value: &dyn Fn(&Convolve) -> i64) -> Vec<i32> {
    let all = (0..each.len()).flat_map(|phase| (0..TILE).map(move |at| (phase, at)));
    all.map(|(phase, at)| value(&each[(phase + order.sample(at, lanes)) % each.len()]) as i32)
        .collect()
}
