//! The inner loop of whole masks and columns of few taps (see `loops`), how many is known when it is compiled: all weights stay in registers, and what the
//! general loop asks of each step is asked once for a row.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not unroll.
#![allow(clippy::needless_range_loop)]

use super::lanes::{Lanes, Order, Work};
use super::loops::{Finish, Lines, TILE, Tap, Taps, has_more_registers};

/// Taps whose weights registers can hold, at most.
const MOST: usize = 8;

/// What such a loop makes: two rows of samples.
pub(super) struct Few<'a> {
    lines: Lines<'a>,
    taps: &'a [Tap],
    finish: &'a Finish,
    /// What every sum begins with.
    start: i32,
    samples: usize,
}

impl<'a> Few<'a> {
    /// What makes two rows of samples of `bytes` bytes whose sums all begin with `start`, if so few taps do.
    pub(super) fn of<L: Lanes>(
        lines: Lines<'a>,
        taps: Taps<'a>,
        (finish, start): (&'a Finish, i32),
        samples: usize,
        bytes: usize,
    ) -> Option<Few<'a>> {
        let [upper, ..] = taps.groups;
        // Bytes are rounded once they are words where that spares an addition.
        let is_rounded = bytes == 2 || L::FUSES || (finish.shift > 0 && start == 1 << (finish.shift - 1));
        let is_small = (2..=MOST).contains(&upper.single.len()) && upper.folded.is_empty();
        let fits = !has_more_registers::<L>() && lines.pieces == 1 && is_small && is_rounded;
        fits.then_some(Few {
            lines,
            taps: &upper.single,
            finish,
            start,
            samples,
        })
    }

    /// Makes the rows, of samples of `BYTES` bytes.
    pub(super) fn make<L: Lanes, const BYTES: usize>(&self, lanes: L, out: [&mut [u8]; 2]) {
        match self.taps.len() {
            2 => self.enter::<L, BYTES, 2>(lanes, out),
            3 => self.enter::<L, BYTES, 3>(lanes, out),
            4 => self.enter::<L, BYTES, 4>(lanes, out),
            5 => self.enter::<L, BYTES, 5>(lanes, out),
            6 => self.enter::<L, BYTES, 6>(lanes, out),
            7 => self.enter::<L, BYTES, 7>(lanes, out),
            _ => self.enter::<L, BYTES, MOST>(lanes, out),
        }
    }

    fn enter<L: Lanes, const BYTES: usize, const N: usize>(&self, lanes: L, out: [&mut [u8]; 2]) {
        let samples = self.samples;
        let taps = <[Tap; N]>::try_from(self.taps).unwrap_or_else(|_| unreachable!("{N} taps"));
        let last = taps.iter().map(|tap| tap.at).max().unwrap_or(0) + samples.next_multiple_of(TILE);
        assert!(last <= self.lines.elements.len());
        assert!(out.iter().all(|row| row.len() >= samples * BYTES));
        // The assertions bound every read, which goes up to a multiple of TILE, and every write.
        let rows = Rows::<BYTES, N> {
            from: taps.map(|tap| self.lines.elements[tap.at..].as_ptr()),
            weights: taps.map(|tap| [tap.weights[0], tap.weights[1]]),
            finish: self.finish,
            start: self.start,
            order: self.lines.order,
            samples,
            out,
        };
        lanes.enter(rows);
    }
}

/// What [`Few::enter`] has checked: samples of `BYTES` bytes from `N` taps.
struct Rows<'a, const BYTES: usize, const N: usize> {
    from: [*const u32; N],
    weights: [[i32; 2]; N],
    finish: &'a Finish,
    start: i32,
    order: Order,
    samples: usize,
    out: [&'a mut [u8]; 2],
}

/// What stays in registers along a row.
#[derive(Clone, Copy)]
struct Constants<T, const N: usize> {
    weights: [[T; 2]; N],
    start: T,
    shift: T,
    /// What halves words and rounds them up.
    half: T,
}

impl<const BYTES: usize, const N: usize> Rows<'_, BYTES, N> {
    /// True if words of twice the result are halved and rounded, so that sums need not begin with what rounds them.
    const fn halves<L: Lanes>() -> bool {
        BYTES == 1 && !L::FUSES
    }

    #[inline(always)]
    fn constants<L: Lanes>(&self, lanes: L) -> Constants<L::V, N> {
        let halves = Self::halves::<L>();
        let mut weights = [[lanes.splat(0); 2]; N];
        for t in 0..N {
            weights[t] = [lanes.splat(self.weights[t][0]), lanes.splat(self.weights[t][1])];
        }
        Constants {
            weights,
            start: lanes.splat(if halves { 0 } else { self.start }),
            shift: lanes.splat(self.finish.shift as i32 - i32::from(halves)),
            half: lanes.splat(1 << 30 | 1 << 14),
        }
    }

    /// Makes 4 LANES samples of both rows, from sample `x` on.
    ///
    /// # Safety
    /// x + 4 LANES is at most the multiple of [`TILE`] that `enter` has bounded, and the samples are writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Lanes>(
        &self,
        lanes: L,
        constants: &Constants<L::V, N>,
        order: Order,
        x: usize,
        to: [*mut u8; 2],
    ) {
        let &Constants {
            weights,
            start,
            shift,
            half,
        } = constants;
        let mut words = [[start; 2]; 2];
        for v in 0..2 {
            let mut done = [[start; 2]; 2];
            for k in 0..2 {
                let mut sums = [start; 2];
                for t in 0..N {
                    // SAFETY: the caller has bounded it.
                    let pairs = unsafe { lanes.load(self.from[t].add(x + L::LANES * (2 * v + k))) };
                    for row in 0..2 {
                        let sum = if t == 0 && Self::halves::<L>() {
                            lanes.splat(0)
                        } else {
                            sums[row]
                        };
                        sums[row] = lanes.multiply_add(sum, pairs, weights[t][row]);
                    }
                }
                for row in 0..2 {
                    done[row][k] = lanes.shift_down(sums[row], shift);
                }
            }
            for row in 0..2 {
                if BYTES == 2 {
                    let Finish { max, left, .. } = *self.finish;
                    // SAFETY: the caller has the room.
                    unsafe { lanes.put_words(done[row], order, max, left, to[row].add(4 * L::LANES * v)) };
                    continue;
                }
                words[row][v] = lanes.narrow(done[row][0], done[row][1]);
                if Self::halves::<L>() {
                    words[row][v] = lanes.multiply_round_words(words[row][v], half);
                }
            }
        }
        if BYTES == 1 {
            for row in 0..2 {
                // SAFETY: the caller has the room.
                unsafe { lanes.put_narrow(words[row], order, to[row]) };
            }
        }
    }

    #[inline(always)]
    fn in_order<L: Lanes>(mut self, lanes: L, order: Order) {
        let constants = self.constants(lanes);
        let (samples, step) = (self.samples, 4 * L::LANES);
        let whole = samples / step * step;
        let to = self.out.each_mut().map(|row| row.as_mut_ptr());
        for x in (0..whole).step_by(step) {
            // SAFETY: the step ends within the samples, for which there is room.
            unsafe {
                let to = [to[0].add(x * BYTES), to[1].add(x * BYTES)];
                self.step(lanes, &constants, order, x, to);
            }
        }
        if whole < samples {
            let mut last = [[0_u8; 2 * TILE]; 2];
            // SAFETY: lines go on to a multiple of TILE, and as many as TILE samples of two bytes fit.
            unsafe {
                self.step(
                    lanes,
                    &constants,
                    order,
                    whole,
                    last.each_mut().map(|row| row.as_mut_ptr()),
                );
            }
            for (row, last) in self.out.iter_mut().zip(&last) {
                let rest = whole * BYTES..samples * BYTES;
                row[rest.clone()].copy_from_slice(&last[..rest.len()]);
            }
        }
    }
}

impl<const BYTES: usize, const N: usize> Work for Rows<'_, BYTES, N> {
    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        // Known in each loop, so that it is not asked for in every step.
        match self.order {
            Order::Plain => self.in_order(lanes, Order::Plain),
            Order::Zipped => self.in_order(lanes, Order::Zipped),
            Order::Alternate => self.in_order(lanes, Order::Alternate),
        }
    }
}
