//! Sums of products, and how they become samples within 32 bits.

use super::loops::Finish;
use crate::engine::cpu::simd::vector::{Order, TILE};
use crate::filter::{ChannelStep, Convolve};
use crate::frame::PixelFormat;

/// Sums as they come to their last step.
pub(super) struct Sums {
    pub(super) pieces: usize,
    pub(super) bits: u32,
    /// The scale: samples are `sum >> shift`.
    pub(super) shift: u32,
    /// The least and the largest sum, without bias.
    pub(super) range: (i64, i64),
    /// The largest magnitude of a value that is weighted.
    pub(super) largest: i64,
    /// The sum of the weights' magnitudes.
    pub(super) weight: i64,
    /// What is added to make up for an offset of the values.
    pub(super) correction: i64,
    /// What is added for the same reason once sums are shifted down.
    pub(super) raise: i64,
}

impl Sums {
    /// How they become samples, if 32 bits suffice for that, where they lie in `order` in vectors of `lanes` numbers.
    pub(super) fn finish(
        &self,
        format: PixelFormat,
        channels: &[ChannelStep],
        (order, lanes): (Order, usize),
    ) -> Option<Finish> {
        let each = convolved(channels, self.raise)?;
        let pattern = |value: &dyn Fn(&Convolve) -> i64| pattern(&each, (order, lanes), value);
        let limit = i64::from(i32::MAX);
        let (lowest, highest) = self.range;
        let fits = |more: i64| lowest + more >= i64::from(i32::MIN) && highest + more <= limit;
        let biased = |c: &Convolve| (c.high << self.shift) + c.low;
        let mut finish = Finish {
            bits: self.bits,
            fits_alone: fits(0),
            ..unbiased(format, channels, self.shift)
        };
        if each.iter().all(|c| fits(biased(c))) {
            // 32-bit sums may wrap on the way: they end where they should.
            finish.start[0] = pattern(&|c| biased(c).wrapping_add(self.correction));
            finish.start[1..].fill(pattern(&|_| 0));
            return Some(finish);
        }
        let high_fits = |c: &Convolve| c.high.abs() + (highest.max(-lowest) >> self.shift) + 2 <= limit;
        if !each.iter().all(high_fits) {
            return None;
        }
        finish.high = pattern(&|c| c.high);
        if each.iter().all(|c| fits(c.low)) {
            finish.start[0] = pattern(&|c| c.low.wrapping_add(self.correction));
            finish.start[1..].fill(pattern(&|_| 0));
            return Some(finish);
        }
        let below = self.bits * (self.pieces as u32 - 1);
        let carry = limit >> self.bits;
        let piece_fits = (self.weight << self.bits) + (1 << self.bits) + carry <= limit;
        let top_fits =
            |c: &Convolve| self.weight * ((self.largest >> below) + 1) + (c.low >> below) + carry <= limit;
        if self.pieces == 1 || self.shift < below || !piece_fits || !each.iter().all(top_fits) {
            return None;
        }
        finish.whole = false;
        finish.shift = self.shift - below;
        for p in 0..self.pieces {
            let down = self.bits * p as u32;
            let mask = if p + 1 < self.pieces {
                (1 << self.bits) - 1
            } else {
                -1
            };
            finish.start[p] = pattern(&|c| (c.low >> down) & mask);
        }
        Some(finish)
    }
}

/// How sums of groups of terms (see `groups`) become samples; with `correction` is added what makes up for an offset of the values.
pub(super) fn finish_groups(
    format: PixelFormat,
    channels: &[ChannelStep],
    shift: u32,
    correction: i64,
) -> Option<Finish> {
    let below = (1_i64 << shift) - 1;
    let each = convolved(channels, 0)?;
    let start = |c: &Convolve| c.low + correction;
    let pattern = |value: &dyn Fn(&Convolve) -> i64| pattern(&each, (Order::Plain, 1), value);
    Some(Finish {
        start: [pattern(&|c| start(c) & below), pattern(&|_| 0), pattern(&|_| 0)],
        high: pattern(&|c| c.high + (start(c) >> shift)),
        ..unbiased(format, channels, shift)
    })
}

/// What the channels' samples are made with, and `raise` added. Channels that are not convolved are computed along with the others and then replaced.
fn convolved(channels: &[ChannelStep], raise: i64) -> Option<Vec<Convolve>> {
    let first = channels.iter().find_map(ChannelStep::convolved)?;
    let of = |c: &ChannelStep| {
        let c = c.convolved().unwrap_or(first);
        let high = c.high + raise;
        Convolve { high, ..*c }
    };
    Some(channels.iter().map(of).collect())
}

/// How sums become samples, but for what is added to them.
fn unbiased(format: PixelFormat, channels: &[ChannelStep], shift: u32) -> Finish {
    Finish {
        channels: channels.len(),
        shift,
        whole: true,
        max: format.max_value() as u16,
        left: format.shift(),
        ..Finish::default()
    }
}

/// A value of each channel for the numbers of a step of the inner loops, for every channel that it may begin with.
fn pattern(each: &[Convolve], (order, lanes): (Order, usize), value: &dyn Fn(&Convolve) -> i64) -> Vec<i32> {
    let all = (0..each.len()).flat_map(|phase| (0..TILE).map(move |at| (phase, at)));
    all.map(|(phase, at)| value(&each[(phase + order.sample(at, lanes)) % each.len()]) as i32)
        .collect()
}
