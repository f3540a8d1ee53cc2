//! The loop over the steps of a row, which stores their results.
#![allow(unsafe_code)]

use super::integer_width::IntegerWidth;
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE};
use crate::frame::PixelFormat;

/// What a loop makes in a step, of four times [`Simd::LANES`] results.
pub(super) trait Step {
    /// The integers that are made.
    type Integers: IntegerWidth;

    /// Their order, if these are numbers.
    const ORDER: Order;

    /// Makes the results from sample `x` on, in vectors of words or of numbers.
    fn make<L: Simd>(&mut self, simd: L, x: usize) -> [L::V; 4];
}

/// The loop that makes and stores a row, and prefetches the rows of `next`.
pub(super) struct StoreRow<'a, S> {
    pub(super) steps: S,
    pub(super) levels: Levels,
    pub(super) out: &'a mut [u8],
    pub(super) next: NextRows<'a>,
}

impl<S: Step> IntLoop for StoreRow<'_, S> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        if self.levels.are_plain_bytes() {
            self.store::<L, true>(simd);
        } else {
            self.store::<L, false>(simd);
        }
    }
}

impl<S: Step> StoreRow<'_, S> {
    /// The loop. With `PLAIN_BYTES`, of [`Levels::are_plain_bytes`], it has no branches.
    #[inline(always)]
    fn store<L: Simd, const PLAIN_BYTES: bool>(self, simd: L) {
        let StoreRow {
            mut steps,
            mut levels,
            out,
            next,
        } = self;
        if PLAIN_BYTES {
            (levels.high, levels.bytes) = (0, 1);
        }
        let (samples, step) = (out.len() / levels.bytes, 4 * L::LANES);
        let mut last = [0_u8; 2 * TILE];
        let row = out.as_mut_ptr();
        for x in (0..samples).step_by(step) {
            let made = steps.make(simd, x);
            let at = x * levels.bytes;
            let to = match x + step <= samples {
                true => row.wrapping_add(at),
                false => last.as_mut_ptr(),
            };
            // SAFETY: the step ends within the row, or `last` has room for TILE samples of two bytes, which
            // is no less than a step.
            unsafe { levels.store::<S::Integers, L>(simd, made, S::ORDER, to) };
            prefetch(simd, next, at, step * levels.bytes);
        }
        let rest = &mut out[samples / step * step * levels.bytes..];
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

/// Converts integers to stored samples.
#[derive(Clone, Copy)]
pub(super) struct Levels {
    /// The value to add.
    high: i32,
    /// The integer that becomes the largest sample.
    most: i32,
    /// The integer, at least 0, that becomes the smallest sample.
    least: i32,
    /// The largest sample.
    max: u16,
    /// Bytes of a stored sample.
    bytes: usize,
    /// Padding bits below a stored sample.
    left: u32,
}

impl Levels {
    /// `None` if integers of `W` do not hold the levels.
    pub(super) fn new<W: IntegerWidth>(format: PixelFormat, high: i64) -> Option<Levels> {
        let most = i64::from(format.max_value()) - high;
        let fits = most >= 0 && high >= -W::MOST && high.max(most) <= W::MOST;
        fits.then_some(Levels {
            high: high as i32,
            most: most as i32,
            least: (-high).max(0) as i32,
            max: format.max_value() as u16,
            bytes: format.bytes_per_sample(),
            left: format.shift(),
        })
    }

    /// Bytes of a stored sample.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// True if samples have a byte, and nothing is added to integers.
    fn are_plain_bytes(&self) -> bool {
        self.high == 0 && self.bytes == 1
    }

    /// Stores the results of a step, in vectors of words or, in `order`, of numbers.
    ///
    /// # Safety
    /// 4 LANES samples are writable at `to`.
    #[inline(always)]
    unsafe fn store<W: IntegerWidth, L: Simd>(self, simd: L, mut made: [L::V; 4], order: Order, to: *mut u8) {
        let are_words = W::BYTES == 2;
        // Stores clamp, except for words that become samples of two bytes.
        if self.high != 0 || (are_words && self.bytes == 2) {
            for k in 0..W::BYTES {
                let least = W::max(simd, made[k], W::splat(simd, self.least));
                let clamped = W::min(simd, least, W::splat(simd, self.most));
                made[k] = W::add(simd, clamped, W::splat(simd, self.high));
            }
        }
        let [a, b, c, d] = made;
        let half = to.wrapping_add(4 * L::LANES);
        // SAFETY: 4 LANES samples are writable at `to`: if they have two bytes, 2 LANES at `to` and 2 LANES
        // at `half`.
        unsafe {
            match (are_words, self.bytes) {
                (true, 1) => simd.store_packed([a, b], Order::Interleaved, to),
                (false, 1) => simd.store_bytes([a, b, c, d], order, to),
                (true, _) => {
                    simd.store(to, simd.shift_left_i16(a, self.left));
                    simd.store(half, simd.shift_left_i16(b, self.left));
                }
                (false, _) => {
                    simd.store_words([a, b], order, self.max, self.left, to);
                    simd.store_words([c, d], order, self.max, self.left, half);
                }
            }
        }
    }
}
