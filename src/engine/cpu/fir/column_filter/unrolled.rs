//! Column filter and 2-D filter of few taps, whose number is known at compile time: weights stay in registers
//! as far as these suffice, and branches leave the loop. Columns are made four output rows at a time: a line
//! that is read serves the upper two rows and, one line further down the column, the lower two.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::Lines;
use crate::engine::cpu::fir::taps::Tap;
use crate::engine::cpu::rows::prefetch::prefetch;
use crate::engine::cpu::rows::requantize::{Divide, HighWordRounding, JoinLimbs, Requantize};
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{Order, Simd, TILE, Work, has_32_registers};

/// How samples are made: from one sum of all taps, from the high words of such sums, or from one sum that a
/// multiplication divides.
const SUMS: u8 = 0;

const HIGH_WORDS: u8 = 1;

const DIVIDED: u8 = 2;

/// Taps in one sum for each limb whose weights registers can hold, at most.
pub(in crate::engine::cpu::fir) const MOST: usize = 8;

/// True for vectors with which four rows of a column are faster than two: others fuse multiplication and
/// addition, and have no registers left for weights.
const fn holds_four_rows<L: Simd>() -> bool {
    has_32_registers::<L>() || !L::FUSED_MULTIPLY_ADD
}

/// True if four rows are made at a time of a column of so many taps and limbs in samples of so many bytes, of
/// components that are deinterleaved if `is_planar`.
pub(in crate::engine::cpu::fir) fn makes_four_rows<L: Simd>(
    _: L,
    taps: usize,
    limbs: usize,
    (bytes, high_words): (usize, bool),
    is_planar: bool,
) -> bool {
    // Of fewer taps four rows are not better where registers are few; in two limbs they need more, as their
    // sums take all of these.
    let range = match (bytes, limbs) {
        // Where weights leave no registers, chains of products are no faster than the general loop's.
        (1, 1) if high_words && has_32_registers::<L>() && L::FUSED_MULTIPLY_ADD => 2..=11,
        (1, 1) if high_words && has_32_registers::<L>() => 2..=13,
        (1, 1) if high_words => 4..=13,
        (2, 1) => 4..=MOST,
        // Large pictures of several components come no faster from memory.
        (2, LIMBS) if L::FUSED_MULTIPLY_ADD && is_planar && (5..=6).contains(&taps) => return false,
        // Of twice as many numbers fewer are left for weights.
        (2, LIMBS) if has_32_registers::<L>() => 3..=MOST,
        (2, LIMBS) => 7..=13,
        _ => return false,
    };
    holds_four_rows::<L>() && range.contains(&taps)
}

/// The rows that such a loop makes: two or four.
pub(in crate::engine::cpu::fir) struct Unrolled<'a> {
    pub(in crate::engine::cpu::fir) lines: Lines<'a>,
    pub(in crate::engine::cpu::fir) taps: &'a [Tap],
    /// The element at which the line below the last tap's begins, for four rows.
    pub(in crate::engine::cpu::fir) beyond: usize,
    pub(in crate::engine::cpu::fir) finish: &'a Requantize,
    pub(in crate::engine::cpu::fir) uniform: UniformRequantize,
    /// True if [those are rounded](Requantize::rounds_high_words).
    pub(in crate::engine::cpu::fir) high_words: bool,
    pub(in crate::engine::cpu::fir) samples: usize,
}

/// The constants that are the same for all samples.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu::fir) struct UniformRequantize {
    /// What the sums of each limb begin with.
    start: [i32; LIMBS],
    /// What is added after the shift.
    high: i32,
}

/// Limbs of a sample, at most.
const LIMBS: usize = 2;

impl UniformRequantize {
    /// What samples of `bytes` bytes are made with, if that is the same for all and if they are made of so
    /// many limbs in a way that such loops know.
    pub(in crate::engine::cpu::fir) fn of<L: Simd>(
        _: L,
        finish: &Requantize,
        limbs: usize,
        bytes: usize,
    ) -> Option<UniformRequantize> {
        let only = |values: &[i32]| {
            let (&first, others) = values.split_first()?;
            others.iter().all(|&value| value == first).then_some(first)
        };
        let uniform = UniformRequantize {
            start: [only(&finish.start[0])?, only(&finish.start[1])?],
            high: if finish.high.is_empty() {
                0
            } else {
                only(&finish.high)?
            },
        };
        // Bytes are rounded once they are words where that spares an addition.
        let rounds_late = finish.fits_alone && finish.half() == Some(uniform.start[0]);
        let is_rounded = uniform.high == 0 && (L::FUSED_MULTIPLY_ADD || rounds_late);
        let is_narrow = limbs <= if bytes == 2 { LIMBS } else { 1 };
        let is_made = bytes == 2 || is_rounded && finish.factor.is_none();
        (is_narrow && is_made).then_some(uniform)
    }
}

impl Unrolled<'_> {
    /// Makes two rows, of samples of `BYTES` bytes.
    pub(in crate::engine::cpu::fir) fn make<L: Simd, const BYTES: usize>(
        &self,
        simd: L,
        out: [&mut [u8]; 2],
    ) {
        if self.finish.factor.is_some() {
            // Bytes are not divided so.
            if self.lines.limbs > 1 {
                self.of_few::<L, 2, LIMBS, DIVIDED>(simd, out);
            } else {
                self.of_few::<L, 2, 1, DIVIDED>(simd, out);
            }
        } else if self.lines.limbs > 1 {
            // Nor have they more than one limb.
            self.of_few::<L, 2, LIMBS, SUMS>(simd, out);
        } else if BYTES == 1 && self.high_words {
            self.of_few::<L, 1, 1, HIGH_WORDS>(simd, out);
        } else {
            self.of_few::<L, BYTES, 1, SUMS>(simd, out);
        }
    }

    /// Makes four rows, where [that is done](makes_four_rows).
    pub(in crate::engine::cpu::fir) fn make_four<L: Simd, const BYTES: usize>(
        &self,
        simd: L,
        out: [&mut [u8]; 4],
    ) {
        if const { !holds_four_rows::<L>() } {
            unreachable!("no loop makes four rows with such vectors");
        }
        let taps = self.taps.len();
        // Constants in the conditions, so that loops that nothing enters are not compiled.
        if self.lines.limbs > 1 && const { has_32_registers::<L>() } {
            unroll!(taps, [3, 4, 5, 6, 7, 8], N => self.enter::<L, 2, LIMBS, N, SUMS, 4>(simd, out));
        } else if self.lines.limbs > 1 {
            unroll!(taps, [7, 8, 9, 10, 11, 12, 13], N => self.enter::<L, 2, LIMBS, N, SUMS, 4>(simd, out));
        } else if BYTES == 1 && const { has_32_registers::<L>() } && taps < 4 {
            unroll!(taps, [2, 3], N => self.enter::<L, 1, 1, N, HIGH_WORDS, 4>(simd, out));
        } else if BYTES == 2 {
            unroll!(taps, [4, 5, 6, 7, 8], N => self.enter::<L, 2, 1, N, SUMS, 4>(simd, out));
        } else if const { L::FUSED_MULTIPLY_ADD } || taps < 12 {
            unroll!(taps, [4, 5, 6, 7, 8, 9, 10, 11],
                N => self.enter::<L, 1, 1, N, HIGH_WORDS, 4>(simd, out));
        } else {
            unroll!(taps, [12, 13], N => self.enter::<L, 1, 1, N, HIGH_WORDS, 4>(simd, out));
        }
    }

    fn of_few<L: Simd, const BYTES: usize, const P: usize, const WAY: u8>(
        &self,
        simd: L,
        out: [&mut [u8]; 2],
    ) {
        unroll!(self.taps.len(), [2, 3, 4, 5, 6, 7, 8], N => self.enter::<L, BYTES, P, N, WAY, 2>(simd, out));
    }

    /// Asserts that the lines go on to a multiple of [`TILE`] in each of so many limbs.
    fn check(&self, limbs: usize) {
        let places = self.taps.iter().map(|tap| tap.at);
        let furthest = places.chain([self.beyond]).max().unwrap_or(0);
        let last = furthest + (limbs - 1) * self.lines.limb_stride + self.samples.next_multiple_of(TILE);
        assert!(limbs == self.lines.limbs && last <= self.lines.elements.len());
    }

    fn enter<L: Simd, const BYTES: usize, const P: usize, const N: usize, const WAY: u8, const R: usize>(
        &self,
        simd: L,
        out: [&mut [u8]; R],
    ) {
        let samples = self.samples;
        let taps = <[Tap; N]>::try_from(self.taps).unwrap_or_else(|_| unreachable!("{N} taps"));
        self.check(P);
        assert!(out.iter().all(|row| row.len() >= samples * BYTES));
        // What is asserted here and there bounds every read, which goes up to a multiple of TILE, and every
        // write.
        let rows = Rows::<BYTES, P, N, WAY, R> {
            from: taps.map(|tap| self.lines.elements[tap.at..].as_ptr()),
            beyond: self.lines.elements[self.beyond..].as_ptr(),
            weights: taps.map(|tap| [tap.weights[0], tap.weights[1]]),
            finish: self.finish,
            lines: self.lines,
            uniform: self.uniform,
            samples,
            out,
        };
        simd.enter(rows);
    }
}

/// What [`Unrolled::enter`] has checked: `R` rows of samples of `BYTES` bytes from `N` taps of `P` limbs.
struct Rows<'a, const BYTES: usize, const P: usize, const N: usize, const WAY: u8, const R: usize> {
    from: [*const u32; N],
    /// The line below the last one.
    beyond: *const u32,
    weights: [[i32; 2]; N],
    finish: &'a Requantize,
    lines: Lines<'a>,
    uniform: UniformRequantize,
    samples: usize,
    out: [&'a mut [u8]; R],
}

/// What is kept in registers along a row.
#[derive(Clone, Copy)]
struct Constants<T, const P: usize, const N: usize> {
    weights: [[T; 2]; N],
    start: [T; P],
    joining: JoinLimbs<T>,
    dividing: Divide<T>,
    high: T,
    high_words: HighWordRounding<T>,
    /// The factor that halves words and rounds them up.
    half: T,
}

impl<const BYTES: usize, const P: usize, const N: usize, const WAY: u8, const R: usize>
    Rows<'_, BYTES, P, N, WAY, R>
{
    /// True if words of twice the result are halved and rounded, so that sums need no rounding constant.
    const fn halves<L: Simd>() -> bool {
        BYTES == 1 && WAY != HIGH_WORDS && !L::FUSED_MULTIPLY_ADD
    }

    /// True if sums begin with zero.
    const fn begins_empty<L: Simd>() -> bool {
        WAY == HIGH_WORDS || Self::halves::<L>()
    }

    #[inline(always)]
    fn constants<L: Simd>(&self, simd: L) -> Constants<L::V, P, N> {
        let (finish, halves) = (self.finish, u32::from(Self::halves::<L>()));
        let mut weights = [[simd.splat(0); 2]; N];
        for t in 0..N {
            weights[t] = [simd.splat(self.weights[t][0]), simd.splat(self.weights[t][1])];
        }
        let mut start = [simd.splat(0); P];
        for p in 0..P {
            start[p] = simd.splat(self.uniform.start[p]);
        }
        Constants {
            weights,
            start,
            joining: JoinLimbs::new(simd, finish.bits, finish.whole, finish.shift - halves),
            dividing: Divide::new(simd, finish),
            high: simd.splat(self.uniform.high),
            high_words: HighWordRounding::new(simd, finish.shift),
            half: simd.splat(1 << 30 | 1 << 14),
        }
    }

    /// The sums of `M` vectors of samples of each row, from those at `at` on, shifted down but for high
    /// words.
    ///
    /// # Safety
    /// at + LANES is at most the multiple of [`TILE`] that `enter` has bounded.
    #[inline(always)]
    unsafe fn results<L: Simd, const M: usize>(
        &self,
        simd: L,
        constants: &Constants<L::V, P, N>,
        at: [usize; M],
    ) -> [[L::V; R]; M] {
        let &Constants {
            weights,
            start,
            joining,
            dividing,
            high,
            ..
        } = constants;
        let mut sums = [[start; R]; M];
        let mut results = [[high; R]; M];
        for line in 0..N + R / 2 - 1 {
            let from = if line < N { self.from[line] } else { self.beyond };
            for p in 0..P {
                for m in 0..M {
                    // SAFETY: lines go on to the multiple of TILE that at + LANES does not exceed, in each
                    // limb, as `enter` asserted.
                    let pairs = unsafe { simd.load(from.add(at[m] + p * self.lines.limb_stride)) };
                    for two in 0..R / 2 {
                        // The lower two rows read everything a line further down.
                        if line < two || line - two >= N {
                            continue;
                        }
                        let t = line - two;
                        for row in 0..2 {
                            let sum = &mut sums[m][2 * two + row][p];
                            *sum = if t == 0 && Self::begins_empty::<L>() {
                                simd.multiply(pairs, weights[t][row])
                            } else {
                                simd.multiply_add(*sum, pairs, weights[t][row])
                            };
                        }
                    }
                }
            }
        }
        for m in 0..M {
            for row in 0..R {
                if WAY == HIGH_WORDS {
                    results[m][row] = sums[m][row][0];
                } else {
                    results[m][row] = if WAY == DIVIDED {
                        dividing.of(simd, joining.sum(simd, sums[m][row]))
                    } else {
                        joining.join(simd, sums[m][row])
                    };
                    if BYTES == 2 && self.uniform.high != 0 {
                        results[m][row] = simd.add(results[m][row], high);
                    }
                }
            }
        }
        results
    }

    /// Makes 4 LANES samples of each row, from sample `x` on.
    ///
    /// # Safety
    /// x + 4 LANES is at most the multiple of [`TILE`] that `enter` has bounded, and the samples are writable
    /// at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(
        &self,
        simd: L,
        constants: &Constants<L::V, P, N>,
        order: Order,
        x: usize,
        to: [*mut u8; R],
    ) {
        let &Constants {
            high,
            high_words,
            half,
            ..
        } = constants;
        let mut words = [[high; 2]; R];
        for v in 0..2 {
            let at = x + 2 * L::LANES * v;
            // SAFETY: x + 4 LANES is at most the multiple of TILE up to which `enter` asserted lines to go.
            let results = unsafe {
                if const { L::LATENCY_BOUND && N <= 6 && P == 1 } {
                    self.results::<L, 2>(simd, constants, [at, at + L::LANES])
                } else {
                    let [first] = self.results::<L, 1>(simd, constants, [at]);
                    let [second] = self.results::<L, 1>(simd, constants, [at + L::LANES]);
                    [first, second]
                }
            };
            let mut done = [[high; 2]; R];
            for k in 0..2 {
                for row in 0..R {
                    done[row][k] = results[k][row];
                }
            }
            for row in 0..R {
                if BYTES == 2 {
                    let Requantize { max, left, .. } = *self.finish;
                    // SAFETY: 4 LANES samples are writable at each of `to`.
                    unsafe { simd.store_words(done[row], order, max, left, to[row].add(4 * L::LANES * v)) };
                    continue;
                }
                if WAY == HIGH_WORDS {
                    words[row][v] = high_words.of(simd, done[row]);
                    continue;
                }
                words[row][v] = simd.pack_words(done[row][0], done[row][1]);
                if Self::halves::<L>() {
                    words[row][v] = simd.multiply_round_words(words[row][v], half);
                }
            }
        }
        if BYTES == 1 {
            for row in 0..R {
                // SAFETY: 4 LANES bytes are writable at each of `to`.
                unsafe {
                    if WAY == HIGH_WORDS {
                        simd.store_merged(words[row], order, to[row]);
                    } else {
                        simd.store_packed(words[row], order, to[row]);
                    }
                };
            }
        }
    }

    /// Makes all samples. One loop, compiled once for an order, for whole steps and for the rest, which goes
    /// elsewhere and is copied: the step is most of its code.
    #[inline(always)]
    fn make<L: Simd>(mut self, simd: L, order: Order) {
        let constants = self.constants(simd);
        let (samples, step) = (self.samples, 4 * L::LANES);
        let whole = samples / step * step;
        let mut last = [[0_u8; 2 * TILE]; R];
        let parts = [
            (0..whole, self.out.each_mut().map(|row| row.as_mut_ptr())),
            (whole..samples, last.each_mut().map(|row| row.as_mut_ptr())),
        ];
        for (part, to) in parts {
            let to = to.map(|to| to.wrapping_sub(part.start * BYTES));
            for x in part.step_by(step) {
                prefetch(simd, self.lines.next, R * x * BYTES, R * step * BYTES);
                // SAFETY: lines go on to a multiple of TILE. The step ends within the samples, for which
                // there is room, or is the first one in `last`, where as many as TILE samples of two bytes
                // fit.
                unsafe {
                    self.step(
                        simd,
                        &constants,
                        order,
                        x,
                        to.map(|row| row.wrapping_add(x * BYTES)),
                    );
                }
            }
        }
        let rest = (samples - whole) * BYTES;
        for (row, last) in self.out.iter_mut().zip(&last) {
            row[whole * BYTES..][..rest].copy_from_slice(&last[..rest]);
        }
    }
}

impl<const BYTES: usize, const P: usize, const N: usize, const WAY: u8, const R: usize> Work
    for Rows<'_, BYTES, P, N, WAY, R>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        // Known in each loop, so that no step tests it.
        match self.lines.order {
            // Of whole masks, of which two rows are made.
            Order::Plain if R == 2 => self.make(simd, Order::Plain),
            Order::Plain => unreachable!("columns lie in another order"),
            Order::Interleaved => self.make(simd, Order::Interleaved),
            Order::Alternate => self.make(simd, Order::Alternate),
        }
    }
}
