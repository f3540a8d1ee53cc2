//! The vertical running sum of a box, for vectors of any width: 16-bit row sums (see `row_sums`) enter and
//! leave the windows row by row.
//!
//! Sums of words may wrap on the way: a final sum that fits 16 bits is right.
#![allow(unsafe_code)]

use super::row_sums::{PREFIX, Rest, add_steps};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::rows::store::requantize::{Divide, Requantize, store};
use crate::engine::cpu::rows::store::row_pointers;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE};

/// The division of 16-bit sums, `((sum + add) * factor) >> (16 + down)`. Kept sums include `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) add: u16,
    pub(super) factor: u16,
    pub(super) down: u32,
}

impl Scale {
    /// The result of a sum.
    pub(super) fn of(self, sum: u16) -> u8 {
        let product = u32::from(sum + self.add) * u32::from(self.factor);
        (product >> 16 >> self.down) as u8
    }
}

/// Lines in the memory of the ring that a row uses besides the row sums: two middle rows.
pub(super) const LINES: usize = 2;

/// A row that enters the windows.
pub(super) struct NewRow<'a> {
    /// The row's sums.
    pub(super) sums: Rest<'a>,
    /// Index in the memory of the ring of the leaving row's sums, which the new ones replace.
    pub(super) at: usize,
    /// Indices in that memory of the middle row of the windows that this row completes, and of the middle row
    /// before; if there is none, of a row of zeros.
    pub(super) lines: [usize; LINES],
}

/// The sums of the windows of a row, kept for the next row, and their requantization: one sum per sample, up
/// to the next multiple of [`TILE`].
pub(in crate::engine::cpu) enum WindowSums<'a> {
    /// Sums of 16 bits, divided by a multiplication.
    Scaled {
        sums: &'a mut [u16],
        scale: &'a Scale,
        /// Padding bits below a stored sample.
        left: u32,
    },
    /// Weighted sums of 32 bits: they change by the weighted changes of the window's sum and of its centre.
    Weighted {
        sums: &'a mut [i32],
        /// The weight of all samples, and the difference of the centre's weight from it.
        weights: [i32; 2],
        requantize: &'a Requantize,
    },
}

/// Makes `R` rows of the result, of samples of `BYTES` bytes, and prefetches the rows of `next`. `R` is 1, or
/// for prefix sums 2: two rows advance step by step together, so that the windows' sums are in the
/// first-level cache for the second one. In `ring` the new rows' sums, `made` (a multiple of [`TILE`]) of
/// each, replace those of the rows that leave the windows.
pub(in crate::engine::cpu) fn make<L: Simd, const BYTES: usize, const R: usize>(
    simd: L,
    (rows, next): ([NewRow<'_>; R], NextRows<'_>),
    (ring, made): (&mut [u16], usize),
    window: WindowSums<'_>,
    out: [&mut [u8]; R],
) {
    assert!(
        made.is_multiple_of(TILE)
            && out
                .iter()
                .all(|row| row.len() == out[0].len() && row.len() <= made * BYTES)
    );
    for row in &rows {
        let lines = row.lines.iter().chain([&row.at]);
        assert!(lines.max().is_some_and(|last| last + made <= ring.len()));
        let Rest {
            words,
            count,
            stride,
            more,
            ..
        } = row.sums;
        assert!(words.len() >= made + (count - 1) * stride && more.len() >= made);
    }
    let terms = (rows[0].sums.count, rows[0].sums.sign);
    assert!(rows.iter().all(|row| terms == (row.sums.count, row.sums.sign)));
    let ring = ring.as_mut_ptr();
    let rows = rows.map(|row| Row {
        words: row.sums.words.as_ptr(),
        stride: row.sums.stride,
        more: row.sums.more.as_ptr(),
        ring,
        at: row.at,
        lines: row.lines,
    });
    let work = RowsOf { rows, next, out };
    // The assertions bound every read and every write: x goes up to `made` in steps that divide TILE.
    match window {
        WindowSums::Scaled { sums, scale, left } => {
            assert!(sums.len() >= made);
            let (sums, scale) = (sums.as_mut_ptr(), *scale);
            let requantizing = Scaled { sums, scale, left };
            enter::<L, BYTES, R, _>(simd, work, terms, requantizing);
        }
        WindowSums::Weighted {
            sums,
            weights,
            requantize,
        } => {
            assert!(sums.len() >= made);
            let requantizing = Weighted {
                sums: sums.as_mut_ptr(),
                weights,
                requantize,
            };
            match (weights[1] != 0, requantize.factor.is_some()) {
                (false, false) => {
                    enter::<L, BYTES, R, _>(simd, work, terms, Divided::<false, false>(requantizing));
                }
                (false, true) => {
                    enter::<L, BYTES, R, _>(simd, work, terms, Divided::<false, true>(requantizing));
                }
                (true, false) => {
                    enter::<L, BYTES, R, _>(simd, work, terms, Divided::<true, false>(requantizing));
                }
                (true, true) => {
                    enter::<L, BYTES, R, _>(simd, work, terms, Divided::<true, true>(requantizing));
                }
            }
        }
    }
}

/// The rows of [`make`], which has checked their bounds.
struct RowsOf<'a, const R: usize> {
    rows: [Row; R],
    next: NextRows<'a>,
    out: [&'a mut [u8]; R],
}

/// Runs the loop compiled for `terms`: words per row sum, and the sign of one further word.
fn enter<L: Simd, const BYTES: usize, const R: usize, E: WindowRequantize>(
    simd: L,
    work: RowsOf<'_, R>,
    terms: (usize, i8),
    requantizing: E,
) {
    // A constant condition: for two rows only this loop is compiled.
    if const { R == 2 } {
        assert!(terms == PREFIX);
        return simd.enter(Rows::<BYTES, 1, -1, R, E> { work, requantizing });
    }
    match terms {
        (1, 0) => simd.enter(Rows::<BYTES, 1, 0, R, E> { work, requantizing }),
        (1, _) => simd.enter(Rows::<BYTES, 1, -1, R, E> { work, requantizing }),
        (2, _) => simd.enter(Rows::<BYTES, 2, 1, R, E> { work, requantizing }),
        (3, 0) => simd.enter(Rows::<BYTES, 3, 0, R, E> { work, requantizing }),
        (3, 1) => simd.enter(Rows::<BYTES, 3, 1, R, E> { work, requantizing }),
        (3, _) => simd.enter(Rows::<BYTES, 3, -1, R, E> { work, requantizing }),
        (4, _) => simd.enter(Rows::<BYTES, 4, -1, R, E> { work, requantizing }),
        (5, _) => simd.enter(Rows::<BYTES, 5, 0, R, E> { work, requantizing }),
        _ => simd.enter(Rows::<BYTES, 7, 0, R, E> { work, requantizing }),
    }
}

/// A [`NewRow`] as pointers.
#[derive(Clone, Copy)]
struct Row {
    words: *const u16,
    stride: usize,
    more: *const u16,
    ring: *mut u16,
    at: usize,
    lines: [usize; LINES],
}

/// A vector of changes of the windows' sums: the entering row's sums less those of the leaving row.
#[derive(Clone, Copy)]
struct Entering<V> {
    change: V,
}

impl Row {
    /// A vector of one of the row's lines, from sample `x` on.
    ///
    /// # Safety
    /// `lines[line] + x + 2 LANES` is at most the length of `ring`.
    #[inline(always)]
    unsafe fn line<L: Simd>(self, simd: L, line: usize, x: usize) -> L::V {
        // SAFETY: 2 LANES words are readable at `lines[line] + x` in `ring`, as this function requires.
        unsafe { simd.load(self.ring.cast_const().add(self.lines[line] + x)) }
    }

    /// The changes from sample `x` on. The entering row's sums replace those of the leaving row in the ring.
    ///
    /// # Safety
    /// `x + 2 LANES` is at most the number of sums that [`make`] has checked (`made`).
    #[inline(always)]
    unsafe fn enter<L: Simd, const COUNT: usize, const SIGN: i8>(self, simd: L, x: usize) -> Entering<L::V> {
        // SAFETY: x + 2 LANES is at most `made`. `make` asserted that words are readable (count - 1) steps
        // further than that, and that further samples and the ring's line have `made` words.
        unsafe {
            let mut sum = add_steps::<L, COUNT>(simd, self.words.add(x), self.stride);
            if SIGN > 0 {
                sum = simd.add_i16(sum, simd.load(self.more.add(x)));
            } else if SIGN < 0 {
                sum = simd.sub_i16(sum, simd.load(self.more.add(x)));
            }
            let line = self.ring.add(self.at + x);
            let change = simd.sub_i16(sum, simd.load(line));
            simd.store(line, sum);
            Entering { change }
        }
    }
}

/// Applies changes to the windows' sums, and requantizes them to samples.
trait WindowRequantize {
    /// The constants that stay in registers along a row.
    type Constants<V: Copy>: Copy;

    fn constants<L: Simd>(&self, simd: L) -> Self::Constants<L::V>;

    /// Writes 4 LANES samples of `BYTES` bytes, from sample `x` on.
    ///
    /// # Safety
    /// `x + 4 LANES` is at most the number of sums that [`make`] has checked (`made`); 4 LANES samples are
    /// writable at `to`.
    unsafe fn put<L: Simd, const BYTES: usize>(
        &self,
        simd: L,
        constants: Self::Constants<L::V>,
        row: Row,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    );
}

/// The loop of [`make`] for samples of `BYTES` bytes, with sums of `COUNT` words and a further one of sign
/// `SIGN`.
struct Rows<'a, const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E> {
    work: RowsOf<'a, R>,
    requantizing: E,
}

impl<const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E: WindowRequantize>
    Rows<'_, BYTES, COUNT, SIGN, R, E>
{
    /// Makes a step of a row from sample `x` on; `to` is the address of the row's first sample.
    ///
    /// # Safety
    /// `x + 4 LANES` is at most the number of sums that [`make`] has checked (`made`); 4 LANES samples are
    /// writable from sample `x` of `to` on.
    #[inline(always)]
    unsafe fn step<L: Simd>(
        simd: L,
        requantizing: &E,
        constants: E::Constants<L::V>,
        row: Row,
        x: usize,
        to: *mut u8,
    ) {
        // SAFETY: x + 4 LANES is at most `made`, and 4 LANES samples are writable from sample `x` of `to` on,
        // as this function requires.
        unsafe {
            let entering = [
                row.enter::<L, COUNT, SIGN>(simd, x),
                row.enter::<L, COUNT, SIGN>(simd, x + 2 * L::LANES),
            ];
            requantizing.put::<L, BYTES>(simd, constants, row, x, entering, to.wrapping_add(x * BYTES));
        }
    }
}

impl<const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E: WindowRequantize> IntLoop
    for Rows<'_, BYTES, COUNT, SIGN, R, E>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Rows { work, requantizing } = self;
        let RowsOf { rows, next, mut out } = work;
        let constants = requantizing.constants(simd);
        // Two variables: the compiler would keep an array in memory.
        let (first, second) = (rows[0], rows[R - 1]);
        let step = 4 * L::LANES;
        let samples = out[0].len() / BYTES;
        let whole = samples / step * step;
        let mut last = [[0; 2 * TILE]; R];
        // One loop, compiled once, for the whole steps and for the partial last step, which goes to `last`.
        let parts = [
            (0..whole, row_pointers::starts(&mut out)),
            (whole..samples, row_pointers::starts(&mut last)),
        ];
        for (part, to) in parts {
            let to = row_pointers::offset(to, -((part.start * BYTES) as isize));
            for x in part.step_by(step) {
                prefetch(simd, next, R * x * BYTES, R * step * BYTES);
                // SAFETY: a whole step ends within `out`; `last` has room for TILE samples of two bytes, and
                // sums and lines have `made` elements, a multiple of TILE.
                unsafe {
                    Self::step(simd, &requantizing, constants, first, x, to[0]);
                    if R == 2 {
                        Self::step(simd, &requantizing, constants, second, x, to[R - 1]);
                    }
                }
            }
        }
        for (out, last) in out.iter_mut().zip(&last) {
            let rest = &mut out[whole * BYTES..];
            rest.copy_from_slice(&last[..rest.len()]);
        }
    }
}

/// See [`WindowSums::Scaled`].
struct Scaled {
    sums: *mut u16,
    scale: Scale,
    left: u32,
}

impl WindowRequantize for Scaled {
    type Constants<V: Copy> = V;

    #[inline(always)]
    fn constants<L: Simd>(&self, simd: L) -> L::V {
        let word = i32::from(self.scale.factor);
        simd.splat(word << 16 | word)
    }

    #[inline(always)]
    unsafe fn put<L: Simd, const BYTES: usize>(
        &self,
        simd: L,
        factor: L::V,
        _: Row,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [factor; 2];
        // SAFETY: sums have `made` words, x + 4 LANES is at most `made`, and 4 LANES samples of BYTES bytes
        // are writable at `to`.
        unsafe {
            for v in 0..2 {
                let kept = self.sums.add(x + v * 2 * L::LANES);
                let sum = simd.add_i16(simd.load(kept), entering[v].change);
                simd.store(kept, sum);
                let product = simd.multiply_high_u16(sum, factor);
                values[v] = simd.shift_right_u16(product, self.scale.down);
            }
            if BYTES == 1 {
                simd.store_packed(values, Order::Interleaved, to);
                return;
            }
            for v in 0..2 {
                simd.store(
                    to.add(4 * L::LANES * v),
                    simd.shift_left_i16(values[v], self.left),
                );
            }
        }
    }
}

/// See [`WindowSums::Weighted`].
struct Weighted<'a> {
    sums: *mut i32,
    weights: [i32; 2],
    requantize: &'a Requantize,
}

/// [`Weighted`] with `CENTRE`: the centre has another weight; `DIVIDES`: a multiplication divides.
struct Divided<'a, const CENTRE: bool, const DIVIDES: bool>(Weighted<'a>);

/// The two packed weights, the right shift, and the multiplication that divides.
type Factors<V> = (V, V, Divide<V>);

impl Weighted<'_> {
    #[inline(always)]
    fn factors<L: Simd>(&self, simd: L) -> Factors<L::V> {
        let [window, centre] = self.weights;
        let weights = simd.splat(window & 0xFFFF | centre << 16);
        (
            weights,
            simd.splat(self.requantize.shift as i32),
            Divide::new(simd, self.requantize),
        )
    }

    /// Adds the weighted changes of the window and of the centre to 2 LANES sums from sample `x` on, and
    /// divides the sums.
    ///
    /// # Safety
    /// `x + 2 LANES` is at most the number of sums that [`make`] has checked (`made`).
    #[inline(always)]
    unsafe fn changed<L: Simd, const DIVIDES: bool>(
        &self,
        simd: L,
        (weights, shift, dividing): Factors<L::V>,
        x: usize,
        [window, centre]: [L::V; 2],
    ) -> [L::V; 2] {
        let pairs = simd.interleave_i16(window, centre);
        let mut values = pairs;
        for half in 0..2 {
            // SAFETY: sums have `made` numbers, and x + 2 LANES is at most `made`.
            unsafe {
                let kept = self.sums.add(x + half * L::LANES);
                let sum = simd.add_dot_i16(simd.load(kept), pairs[half], weights);
                simd.store(kept, sum);
                values[half] = if DIVIDES {
                    dividing.of(simd, sum)
                } else {
                    simd.shift_right_i32(sum, shift)
                };
            }
        }
        values
    }
}

/// Adds [`Requantize::high`], clamps and stores 4 LANES samples.
#[inline(always)]
unsafe fn store_values<L: Simd, const BYTES: usize>(
    simd: L,
    values: [[L::V; 2]; 2],
    requantize: &Requantize,
    to: *mut u8,
) {
    let [[a, b], [c, d]] = values;
    let mut values = [a, b, c, d];
    if let Some(&high) = requantize.high.first() {
        let high = simd.splat(high);
        for v in 0..4 {
            values[v] = simd.add_i32(values[v], high);
        }
    }
    // SAFETY: 4 LANES samples of BYTES bytes are writable at `to`.
    unsafe { store::<L, BYTES, 4>(simd, values, requantize, Order::Interleaved, to) };
}

impl<const CENTRE: bool, const DIVIDES: bool> WindowRequantize for Divided<'_, CENTRE, DIVIDES> {
    type Constants<V: Copy> = Factors<V>;

    #[inline(always)]
    fn constants<L: Simd>(&self, simd: L) -> Factors<L::V> {
        self.0.factors(simd)
    }

    #[inline(always)]
    unsafe fn put<L: Simd, const BYTES: usize>(
        &self,
        simd: L,
        factors: Factors<L::V>,
        row: Row,
        x: usize,
        entering: [Entering<L::V>; 2],
        to: *mut u8,
    ) {
        let mut values = [[factors.0; 2]; 2];
        // SAFETY: x + 4 LANES is at most `made`; `make` asserted that lines have `made` words, and 4 LANES
        // samples of BYTES bytes are writable at `to`.
        unsafe {
            for v in 0..2 {
                let at = x + v * 2 * L::LANES;
                let change = entering[v].change;
                let centre = if CENTRE {
                    simd.sub_i16(row.line(simd, 0, at), row.line(simd, 1, at))
                } else {
                    // Any value: its weight is 0.
                    change
                };
                let changes = [change, centre];
                values[v] = self.0.changed::<L, DIVIDES>(simd, factors, at, changes);
            }
            store_values::<L, BYTES>(simd, values, self.0.requantize, to);
        }
    }
}
