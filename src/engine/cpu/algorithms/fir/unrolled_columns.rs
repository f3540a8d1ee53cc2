//! Column filter and 2-D filter for a number of taps that is known at compile time: weights stay in registers
//! as far as possible, and the loop has no branches. Columns may be filtered four output rows at a time: each
//! loaded line serves the upper two rows and, as the line one further up, the lower two.
#![allow(unsafe_code)]

use crate::engine::cpu::rows::store::prefetch::prefetch;
use crate::engine::cpu::rows::store::requantize::{Divide, JoinLimbs, Requantize};
use crate::engine::cpu::rows::store::row_pointers;
use crate::engine::cpu::rows::sums::column_filter::Lines;
use crate::engine::cpu::rows::sums::taps::Tap;
use crate::engine::cpu::simd::unroll::unroll;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE, has_32_registers};
use std::ops::RangeInclusive;

/// Most taps of the loops that make two rows: the weights of more do not fit the registers.
pub(super) const MOST: usize = 8;

/// True for vectors with which four rows of a column are faster than two. With 16 registers and VNNI no
/// registers are left for weights.
const fn holds_four_rows<L: Simd>() -> bool {
    has_32_registers::<L>() || !L::HAS_VNNI
}

/// Columns of which four rows at a time are made, with one kind of vectors.
struct FourRows {
    /// Bytes of a sample of the result.
    bytes: usize,
    limbs: usize,
    /// True for vectors with 32 registers.
    many_registers: bool,
    has_vnni: bool,
    taps: RangeInclusive<usize>,
}

/// Where four rows at a time beat two.
///
/// Measured on Zen 3, Zen 5 and Xeons: docs/lab/2026-11-22-cpu-four-output-rows.md and
/// docs/lab/2026-11-23-cpu-unrolled-loops.md. [`Unrolled::make_four`] has a loop for each.
#[rustfmt::skip]
const FOUR_ROWS: [FourRows; 9] = [
    // More taps than 11 are no faster than the general loop: weights leave no registers.
    FourRows { bytes: 1, limbs: 1, many_registers: true, has_vnni: true, taps: 2..=11 },
    FourRows { bytes: 1, limbs: 1, many_registers: true, has_vnni: false, taps: 2..=13 },
    FourRows { bytes: 1, limbs: 1, many_registers: false, has_vnni: false, taps: 4..=13 },
    FourRows { bytes: 2, limbs: 1, many_registers: true, has_vnni: true, taps: 4..=8 },
    FourRows { bytes: 2, limbs: 1, many_registers: true, has_vnni: false, taps: 4..=8 },
    FourRows { bytes: 2, limbs: 1, many_registers: false, has_vnni: false, taps: 4..=8 },
    // Two limbs have twice as many sums.
    FourRows { bytes: 2, limbs: MOST_LIMBS, many_registers: true, has_vnni: true, taps: 3..=8 },
    FourRows { bytes: 2, limbs: MOST_LIMBS, many_registers: true, has_vnni: false, taps: 3..=8 },
    FourRows { bytes: 2, limbs: MOST_LIMBS, many_registers: false, has_vnni: false, taps: 7..=13 },
];

/// A column filter that may make four rows at a time.
pub(super) struct ColumnShape {
    pub(super) taps: usize,
    /// Limbs of a sample of its lines.
    pub(super) limbs: usize,
    /// Bytes of a sample of the result.
    pub(super) bytes: usize,
    /// True if rows are deinterleaved.
    pub(super) is_planar: bool,
}

/// True if an unrolled loop makes four rows of this column at a time.
pub(super) fn makes_four_rows<L: Simd>(_: L, column: &ColumnShape) -> bool {
    let &ColumnShape {
        taps, limbs, bytes, ..
    } = column;
    // Memory limits the speed of large pictures of several components.
    let is_memory_bound =
        bytes == 2 && limbs == MOST_LIMBS && L::HAS_VNNI && column.is_planar && (5..=6).contains(&taps);
    let has_loop = |row: &FourRows| {
        (row.bytes, row.limbs) == (bytes, limbs)
            && row.many_registers == has_32_registers::<L>()
            && row.has_vnni == L::HAS_VNNI
            && row.taps.contains(&taps)
    };
    !is_memory_bound && FOUR_ROWS.iter().any(has_loop)
}

/// One call of an unrolled loop: two or four output rows.
pub(super) struct Unrolled<'a> {
    /// The lines to read.
    pub(super) lines: Lines<'a>,
    /// The taps, none of them folded.
    pub(super) taps: &'a [Tap],
    /// Index of the first element of the line below the last tap's line, for four rows.
    pub(super) beyond: usize,
    pub(super) requantize: &'a Requantize,
    pub(super) uniform: UniformRequantize,
    /// Samples of a row.
    pub(super) samples: usize,
}

/// The constants of a requantization that are the same for all samples.
#[derive(Debug, Clone, Copy)]
pub(super) struct UniformRequantize {
    /// The start value of each limb's sums.
    start: [i32; MOST_LIMBS],
    /// The value to add after the shift.
    high: i32,
}

/// Most limbs of a sample.
const MOST_LIMBS: usize = 2;

impl UniformRequantize {
    /// The constants of `requantize`, for samples of `bytes` bytes from `limbs` limbs; `None` if samples
    /// differ in them, or if no unrolled loop requantizes so.
    pub(super) fn of<L: Simd>(
        _: L,
        requantize: &Requantize,
        limbs: usize,
        bytes: usize,
    ) -> Option<UniformRequantize> {
        let only = |values: &[i32]| {
            let (&first, others) = values.split_first()?;
            others.iter().all(|&value| value == first).then_some(first)
        };
        let uniform = UniformRequantize {
            start: [only(&requantize.start[0])?, only(&requantize.start[1])?],
            high: if requantize.high.is_empty() {
                0
            } else {
                only(&requantize.high)?
            },
        };
        // Without VNNI bytes are rounded after they are packed to words, which saves an addition.
        let rounds_late = requantize.fits_alone && requantize.half() == Some(uniform.start[0]);
        let is_rounded = uniform.high == 0 && (L::HAS_VNNI || rounds_late);
        let is_narrow = limbs <= if bytes == 2 { MOST_LIMBS } else { 1 };
        let is_made = bytes == 2 || is_rounded && requantize.factor.is_none();
        (is_narrow && is_made).then_some(uniform)
    }
}

impl Unrolled<'_> {
    /// Makes two rows of samples of `BYTES` bytes.
    pub(super) fn make<L: Simd, const BYTES: usize>(&self, simd: L, out: [&mut [u8]; 2]) {
        if self.requantize.factor.is_some() {
            // Only samples of two bytes are divided by a multiplication here.
            if self.lines.limbs > 1 {
                self.two_rows::<L, 2, MOST_LIMBS, true>(simd, out);
            } else {
                self.two_rows::<L, 2, 1, true>(simd, out);
            }
        } else if self.lines.limbs > 1 {
            // Only samples of two bytes have two limbs.
            self.two_rows::<L, 2, MOST_LIMBS, false>(simd, out);
        } else {
            self.two_rows::<L, BYTES, 1, false>(simd, out);
        }
    }

    /// Makes four rows, if [`makes_four_rows`].
    pub(super) fn make_four<L: Simd, const BYTES: usize>(&self, simd: L, out: [&mut [u8]; 4]) {
        if const { !holds_four_rows::<L>() } {
            unreachable!("no loop makes four rows with such vectors");
        }
        let taps = self.taps.len();
        // Constant conditions: loops that a set never enters are not compiled.
        if self.lines.limbs > 1 && const { has_32_registers::<L>() } {
            unroll!(taps, [3, 4, 5, 6, 7, 8],
                TAPS => self.enter::<L, 2, MOST_LIMBS, TAPS, false, 4>(simd, out));
        } else if self.lines.limbs > 1 {
            unroll!(taps, [7, 8, 9, 10, 11, 12, 13],
                TAPS => self.enter::<L, 2, MOST_LIMBS, TAPS, false, 4>(simd, out));
        } else if BYTES == 1 && const { has_32_registers::<L>() } && taps < 4 {
            unroll!(taps, [2, 3], TAPS => self.enter::<L, 1, 1, TAPS, false, 4>(simd, out));
        } else if BYTES == 2 {
            unroll!(taps, [4, 5, 6, 7, 8], TAPS => self.enter::<L, 2, 1, TAPS, false, 4>(simd, out));
        } else if const { L::HAS_VNNI } || taps < 12 {
            unroll!(taps, [4, 5, 6, 7, 8, 9, 10, 11],
                TAPS => self.enter::<L, 1, 1, TAPS, false, 4>(simd, out));
        } else {
            unroll!(taps, [12, 13], TAPS => self.enter::<L, 1, 1, TAPS, false, 4>(simd, out));
        }
    }

    /// Makes two rows with the loop compiled for the number of taps; with `DIVIDES` a multiplication divides
    /// sums, without it a shift.
    fn two_rows<L: Simd, const BYTES: usize, const LIMBS: usize, const DIVIDES: bool>(
        &self,
        simd: L,
        out: [&mut [u8]; 2],
    ) {
        unroll!(self.taps.len(), [2, 3, 4, 5, 6, 7, 8],
            TAPS => self.enter::<L, BYTES, LIMBS, TAPS, DIVIDES, 2>(simd, out));
    }

    /// Asserts that in each of `limbs` limbs the lines can be read up to a multiple of [`TILE`].
    fn check(&self, limbs: usize) {
        let places = self.taps.iter().map(|tap| tap.at);
        let furthest = places.chain([self.beyond]).max().unwrap_or(0);
        let last = furthest + (limbs - 1) * self.lines.limb_stride + self.samples.next_multiple_of(TILE);
        assert!(limbs == self.lines.limbs && last <= self.lines.elements.len());
    }

    /// Checks all bounds, and runs the loop for `TAPS` taps.
    fn enter<
        L: Simd,
        const BYTES: usize,
        const LIMBS: usize,
        const TAPS: usize,
        const DIVIDES: bool,
        const ROWS: usize,
    >(
        &self,
        simd: L,
        out: [&mut [u8]; ROWS],
    ) {
        let samples = self.samples;
        let taps = <[Tap; TAPS]>::try_from(self.taps).unwrap_or_else(|_| unreachable!("{TAPS} taps"));
        self.check(LIMBS);
        assert!(out.iter().all(|row| row.len() >= samples * BYTES));
        let mut from = [std::ptr::null(); TAPS];
        let mut weights = [[0; 2]; TAPS];
        for (k, tap) in taps.iter().enumerate() {
            from[k] = self.lines.elements[tap.at..].as_ptr();
            weights[k] = [tap.weights[0], tap.weights[1]];
        }
        // The assertions here and in `check` bound every read, which goes up to a multiple of TILE, and every
        // write.
        let rows = Rows::<BYTES, LIMBS, TAPS, DIVIDES, ROWS> {
            from,
            beyond: self.lines.elements[self.beyond..].as_ptr(),
            weights,
            requantize: self.requantize,
            lines: self.lines,
            uniform: self.uniform,
            samples,
            out,
        };
        simd.enter(rows);
    }
}

/// The loop of [`Unrolled::enter`], which has checked its bounds: `ROWS` rows of samples of `BYTES` bytes
/// from `TAPS` taps in `LIMBS` limbs, divided by a multiplication if `DIVIDES`.
struct Rows<
    'a,
    const BYTES: usize,
    const LIMBS: usize,
    const TAPS: usize,
    const DIVIDES: bool,
    const ROWS: usize,
> {
    /// The first element of each tap.
    from: [*const u32; TAPS],
    /// The first element of the line below the last tap's.
    beyond: *const u32,
    weights: [[i32; 2]; TAPS],
    requantize: &'a Requantize,
    lines: Lines<'a>,
    uniform: UniformRequantize,
    samples: usize,
    out: [&'a mut [u8]; ROWS],
}

/// Constants that stay in registers along a row.
#[derive(Clone, Copy)]
struct Constants<T, const LIMBS: usize, const TAPS: usize> {
    weights: [[T; 2]; TAPS],
    start: [T; LIMBS],
    joining: JoinLimbs<T>,
    dividing: Divide<T>,
    high: T,
    /// The factor that halves words and rounds them up.
    half: T,
}

impl<const BYTES: usize, const LIMBS: usize, const TAPS: usize, const DIVIDES: bool, const ROWS: usize>
    Rows<'_, BYTES, LIMBS, TAPS, DIVIDES, ROWS>
{
    /// True if sums are shifted one bit less, and words halved and rounded at the end: sums need no rounding
    /// constant then.
    const fn halves<L: Simd>() -> bool {
        BYTES == 1 && !L::HAS_VNNI
    }

    #[inline(always)]
    fn constants<L: Simd>(&self, simd: L) -> Constants<L::V, LIMBS, TAPS> {
        let (requantize, halves) = (self.requantize, u32::from(Self::halves::<L>()));
        let mut weights = [[simd.splat(0); 2]; TAPS];
        for t in 0..TAPS {
            weights[t] = [simd.splat(self.weights[t][0]), simd.splat(self.weights[t][1])];
        }
        let mut start = [simd.splat(0); LIMBS];
        for p in 0..LIMBS {
            start[p] = simd.splat(self.uniform.start[p]);
        }
        Constants {
            weights,
            start,
            joining: JoinLimbs::new(simd, requantize.bits, requantize.whole, requantize.shift - halves),
            dividing: Divide::new(simd, requantize),
            high: simd.splat(self.uniform.high),
            half: simd.splat(1 << 30 | 1 << 14),
        }
    }

    /// The sums of `VECTORS` vectors of each row, which begin at samples `at`, divided.
    ///
    /// # Safety
    /// at + LANES is at most the multiple of [`TILE`] that `enter` has bounded.
    #[inline(always)]
    unsafe fn results<L: Simd, const VECTORS: usize>(
        &self,
        simd: L,
        constants: &Constants<L::V, LIMBS, TAPS>,
        at: [usize; VECTORS],
    ) -> [[L::V; ROWS]; VECTORS] {
        let &Constants {
            weights,
            start,
            joining,
            dividing,
            high,
            ..
        } = constants;
        let mut sums = [[start; ROWS]; VECTORS];
        let mut results = [[high; ROWS]; VECTORS];
        for line in 0..TAPS + ROWS / 2 - 1 {
            let from = if line < TAPS { self.from[line] } else { self.beyond };
            for p in 0..LIMBS {
                for m in 0..VECTORS {
                    // SAFETY: `enter` asserted that lines can be read up to a multiple of TILE in each limb,
                    // which at + LANES does not exceed.
                    let pairs = unsafe { simd.load(from.add(at[m] + p * self.lines.limb_stride)) };
                    for two in 0..ROWS / 2 {
                        // The lower two rows read everything a line further down.
                        if line < two || line - two >= TAPS {
                            continue;
                        }
                        let t = line - two;
                        for row in 0..2 {
                            let sum = &mut sums[m][2 * two + row][p];
                            *sum = if t == 0 && Self::halves::<L>() {
                                simd.dot_i16(pairs, weights[t][row])
                            } else {
                                simd.add_dot_i16(*sum, pairs, weights[t][row])
                            };
                        }
                    }
                }
            }
        }
        for m in 0..VECTORS {
            for row in 0..ROWS {
                results[m][row] = if DIVIDES {
                    dividing.of(simd, joining.sum(simd, sums[m][row]))
                } else {
                    joining.join(simd, sums[m][row])
                };
                if BYTES == 2 && self.uniform.high != 0 {
                    results[m][row] = simd.add_i32(results[m][row], high);
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
        constants: &Constants<L::V, LIMBS, TAPS>,
        order: Order,
        x: usize,
        to: [*mut u8; ROWS],
    ) {
        let &Constants { high, half, .. } = constants;
        let mut words = [[high; 2]; ROWS];
        for v in 0..2 {
            let at = x + 2 * L::LANES * v;
            // SAFETY: x + 4 LANES is at most the multiple of TILE up to which `enter` asserted that lines can
            // be read.
            let results = unsafe {
                if const { L::LATENCY_BOUND && TAPS <= 6 && LIMBS == 1 } {
                    self.results::<L, 2>(simd, constants, [at, at + L::LANES])
                } else {
                    let [first] = self.results::<L, 1>(simd, constants, [at]);
                    let [second] = self.results::<L, 1>(simd, constants, [at + L::LANES]);
                    [first, second]
                }
            };
            let mut done = [[high; 2]; ROWS];
            for k in 0..2 {
                for row in 0..ROWS {
                    done[row][k] = results[k][row];
                }
            }
            for row in 0..ROWS {
                if BYTES == 2 {
                    let Requantize { max, left, .. } = *self.requantize;
                    // SAFETY: 4 LANES samples are writable at each of `to`.
                    unsafe { simd.store_words(done[row], order, max, left, to[row].add(4 * L::LANES * v)) };
                    continue;
                }
                words[row][v] = simd.pack_i16(done[row][0], done[row][1]);
                if Self::halves::<L>() {
                    words[row][v] = simd.multiply_round_i16(words[row][v], half);
                }
            }
        }
        if BYTES == 1 {
            for row in 0..ROWS {
                // SAFETY: 4 LANES bytes are writable at each of `to`.
                unsafe { simd.store_packed(words[row], order, to[row]) };
            }
        }
    }

    /// Makes all samples. One loop serves the whole steps and the partial last step, which goes to `last` and
    /// is copied: the step is most of the code, and is compiled once.
    #[inline(always)]
    fn make<L: Simd>(mut self, simd: L, order: Order) {
        let constants = self.constants(simd);
        let (samples, step) = (self.samples, 4 * L::LANES);
        let whole = samples / step * step;
        let mut last = [[0_u8; 2 * TILE]; ROWS];
        let parts = [
            (0..whole, row_pointers::starts(&mut self.out)),
            (whole..samples, row_pointers::starts(&mut last)),
        ];
        for (part, to) in parts {
            let to = row_pointers::offset(to, -((part.start * BYTES) as isize));
            for x in part.step_by(step) {
                prefetch(simd, self.lines.next, ROWS * x * BYTES, ROWS * step * BYTES);
                // SAFETY: lines can be read up to a multiple of TILE. A whole step ends within the rows; the
                // partial one goes to `last`, which has room for TILE samples of two bytes.
                unsafe {
                    let to = row_pointers::offset(to, (x * BYTES) as isize);
                    self.step(simd, &constants, order, x, to);
                }
            }
        }
        let rest = (samples - whole) * BYTES;
        for (row, last) in self.out.iter_mut().zip(&last) {
            row[whole * BYTES..][..rest].copy_from_slice(&last[..rest]);
        }
    }
}

impl<const BYTES: usize, const LIMBS: usize, const TAPS: usize, const DIVIDES: bool, const ROWS: usize>
    IntLoop for Rows<'_, BYTES, LIMBS, TAPS, DIVIDES, ROWS>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        // The order is a constant of each loop, so that no step tests it.
        match self.lines.order {
            // Whole masks, which make two rows.
            Order::Plain if ROWS == 2 => self.make(simd, Order::Plain),
            Order::Plain => unreachable!("columns have another order"),
            Order::Interleaved => self.make(simd, Order::Interleaved),
            Order::Alternate => self.make(simd, Order::Alternate),
        }
    }
}
