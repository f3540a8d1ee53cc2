//! The vertical running sum of a box, for vectors of any width: 16-bit row sums (see `row_sums`) enter and
//! leave the windows as rows come and go.
//!
//! Sums of words may wrap on the way: a sum that ends within 16 bits ends right.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::row_sums::{RUNNING, Rest, add_steps};
use crate::engine::cpu::rows::prefetch::{NextRows, prefetch};
use crate::engine::cpu::rows::requantize::{Divide, Requantize, store};
use crate::engine::cpu::simd::vector::{Order, Simd, TILE, Work};

/// `((sum + add) x factor) >> (16 + down)`, where sums are kept with `add`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scale {
    pub(super) add: u16,
    pub(super) factor: u16,
    pub(super) down: u32,
}

impl Scale {
    /// What a sum becomes.
    pub(super) fn of(self, sum: u16) -> u8 {
        let product = u32::from(sum + self.add) * u32::from(self.factor);
        (product >> 16 >> self.down) as u8
    }
}

/// Lines of the ring that are used beside those of the rows that enter and leave.
pub(super) const LINES: usize = 2;

/// A row that enters the windows.
pub(super) struct NewRow<'a> {
    /// Its sums.
    pub(super) sums: Rest<'a>,
    /// Where in the memory of the ring they go, and where those of the row that leaves are.
    pub(super) at: usize,
    /// Where in that memory the row lies that is in the middle of the windows that it completes, and the one
    /// that was in the middle before; where there are none, there are zeros.
    pub(super) lines: [usize; LINES],
}

/// The sums of a row's windows, kept from one row to the next, and how they become results: one sum a
/// sample, up to the next multiple of [`TILE`].
pub(in crate::engine::cpu) enum WindowSums<'a> {
    /// The window's sums are scaled.
    Scaled {
        sums: &'a mut [u16],
        scale: &'a Scale,
        /// Padding bits below a stored sample.
        left: u32,
    },
    /// Weighted sums change by what the window's sums and the centre change by.
    Weighted {
        sums: &'a mut [i32],
        /// What all samples weigh, and how much more the centre does.
        weights: [i32; 2],
        finish: &'a Requantize,
    },
}

/// Makes `R` rows of the result, of samples of `BYTES` bytes: one, or of running sums two, step by step along
/// both, so that the windows' sums are in the nearest cache for the second one. What comes `next` is
/// prefetched meanwhile. At each new row's place in `ring` there are the sums of the row that leaves the
/// windows, which give way to its own, `made` (a multiple of [`TILE`]) of them.
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
            step,
            more,
            ..
        } = row.sums;
        assert!(words.len() >= made + (count - 1) * step && more.len() >= made);
    }
    let terms = (rows[0].sums.count, rows[0].sums.sign);
    assert!(rows.iter().all(|row| terms == (row.sums.count, row.sums.sign)));
    let ring = ring.as_mut_ptr();
    let rows = rows.map(|row| Row {
        words: row.sums.words.as_ptr(),
        step: row.sums.step,
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
            let ending = Scaled { sums, scale, left };
            enter::<L, BYTES, R, _>(simd, work, terms, ending);
        }
        WindowSums::Weighted {
            sums,
            weights,
            finish,
        } => {
            assert!(sums.len() >= made);
            let ending = Weighted {
                sums: sums.as_mut_ptr(),
                weights,
                finish,
            };
            match (weights[1] != 0, finish.factor.is_some()) {
                (false, false) => enter::<L, BYTES, R, _>(simd, work, terms, Divided::<false, false>(ending)),
                (false, true) => enter::<L, BYTES, R, _>(simd, work, terms, Divided::<false, true>(ending)),
                (true, false) => enter::<L, BYTES, R, _>(simd, work, terms, Divided::<true, false>(ending)),
                (true, true) => enter::<L, BYTES, R, _>(simd, work, terms, Divided::<true, true>(ending)),
            }
        }
    }
}

/// What [`make`] has checked.
struct RowsOf<'a, const R: usize> {
    rows: [Row; R],
    next: NextRows<'a>,
    out: [&'a mut [u8]; R],
}

/// Runs the loop for sums of so many words, and one more of that sign.
fn enter<L: Simd, const BYTES: usize, const R: usize, E: Ending>(
    simd: L,
    work: RowsOf<'_, R>,
    terms: (usize, i8),
    ending: E,
) {
    // A constant in the condition, so that loops that nothing enters are not compiled.
    if const { R == 2 } {
        assert!(terms == RUNNING);
        return simd.enter(Rows::<BYTES, 1, -1, R, E> { work, ending });
    }
    match terms {
        (1, 0) => simd.enter(Rows::<BYTES, 1, 0, R, E> { work, ending }),
        (1, _) => simd.enter(Rows::<BYTES, 1, -1, R, E> { work, ending }),
        (2, _) => simd.enter(Rows::<BYTES, 2, 1, R, E> { work, ending }),
        (3, 0) => simd.enter(Rows::<BYTES, 3, 0, R, E> { work, ending }),
        (3, 1) => simd.enter(Rows::<BYTES, 3, 1, R, E> { work, ending }),
        (3, _) => simd.enter(Rows::<BYTES, 3, -1, R, E> { work, ending }),
        (4, _) => simd.enter(Rows::<BYTES, 4, -1, R, E> { work, ending }),
        (5, _) => simd.enter(Rows::<BYTES, 5, 0, R, E> { work, ending }),
        _ => simd.enter(Rows::<BYTES, 7, 0, R, E> { work, ending }),
    }
}

/// A row to add up, as a [`NewRow`].
#[derive(Clone, Copy)]
struct Row {
    words: *const u16,
    step: usize,
    more: *const u16,
    ring: *mut u16,
    at: usize,
    lines: [usize; LINES],
}

/// A vector of what a row that enters the windows brings: its sums less those of the row that leaves.
#[derive(Clone, Copy)]
struct Entering<V> {
    change: V,
}

impl Row {
    /// A vector of one of its lines, from sample `x` on.
    ///
    /// # Safety
    /// [`make`] has bounded it.
    #[inline(always)]
    unsafe fn line<L: Simd>(self, simd: L, line: usize, x: usize) -> L::V {
        // SAFETY: `make` asserted that each line has `made` words from its place on, and x + 2 LANES is at
        // most `made`.
        unsafe { simd.load(self.ring.cast_const().add(self.lines[line] + x)) }
    }

    /// The sums of the row that enters from sample `x` on, which take the place of those of the one that
    /// leaves.
    #[inline(always)]
    unsafe fn enter<L: Simd, const COUNT: usize, const SIGN: i8>(self, simd: L, x: usize) -> Entering<L::V> {
        // SAFETY: x + 2 LANES is at most `made`: `make` asserted that words go (count - 1) steps further than
        // that, and the samples that are added and the ring's line that far.
        unsafe {
            let mut sum = add_steps::<L, COUNT>(simd, self.words.add(x), self.step);
            if SIGN > 0 {
                sum = simd.add_words(sum, simd.load(self.more.add(x)));
            } else if SIGN < 0 {
                sum = simd.sub_words(sum, simd.load(self.more.add(x)));
            }
            let line = self.ring.add(self.at + x);
            let change = simd.sub_words(sum, simd.load(line));
            simd.store(line, sum);
            Entering { change }
        }
    }
}

/// How what changes becomes samples.
trait Ending {
    /// The constants of a row.
    type Constants<V: Copy>: Copy;

    fn constants<L: Simd>(&self, simd: L) -> Self::Constants<L::V>;

    /// Writes 4 LANES samples of `BYTES` bytes, from sample `x` on.
    ///
    /// # Safety
    /// [`make`] has bounded what lies at `x`; the samples are writable at `to`.
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

/// Rows of samples of `BYTES` bytes, with sums of `COUNT` words and one more of the sign `SIGN`.
struct Rows<'a, const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E> {
    work: RowsOf<'a, R>,
    ending: E,
}

impl<const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E: Ending>
    Rows<'_, BYTES, COUNT, SIGN, R, E>
{
    /// A step of a row from sample `x` on; `to` is where its first sample would be.
    ///
    /// # Safety
    /// [`make`] has bounded what lies at `x`; a step's samples are writable there.
    #[inline(always)]
    unsafe fn step<L: Simd>(
        simd: L,
        ending: &E,
        constants: E::Constants<L::V>,
        row: Row,
        x: usize,
        to: *mut u8,
    ) {
        // SAFETY: x + 4 LANES is at most `made`, as far as words, lines and sums go, and a step's samples are
        // writable at `to` + x.
        unsafe {
            let entering = [
                row.enter::<L, COUNT, SIGN>(simd, x),
                row.enter::<L, COUNT, SIGN>(simd, x + 2 * L::LANES),
            ];
            ending.put::<L, BYTES>(simd, constants, row, x, entering, to.wrapping_add(x * BYTES));
        }
    }
}

impl<const BYTES: usize, const COUNT: usize, const SIGN: i8, const R: usize, E: Ending> Work
    for Rows<'_, BYTES, COUNT, SIGN, R, E>
{
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Rows { work, ending } = self;
        let RowsOf { rows, next, mut out } = work;
        let constants = ending.constants(simd);
        // Each by itself, since the compiler keeps an array of them in memory.
        let (first, second) = (rows[0], rows[R - 1]);
        let step = 4 * L::LANES;
        let samples = out[0].len() / BYTES;
        let whole = samples / step * step;
        let mut last = [[0; 2 * TILE]; R];
        // One loop, compiled once, for whole steps and for the rest, which does not fit the row.
        let parts = [
            (0..whole, out.each_mut().map(|row| row.as_mut_ptr())),
            (whole..samples, last.each_mut().map(|row| row.as_mut_ptr())),
        ];
        for (part, to) in parts {
            let to = to.map(|to| to.wrapping_sub(part.start * BYTES));
            for x in part.step_by(step) {
                prefetch(simd, next, R * x * BYTES, R * step * BYTES);
                // SAFETY: a whole step ends within `out`; as many as TILE samples of two bytes fit in `last`,
                // and lines go on to a multiple of TILE.
                unsafe {
                    Self::step(simd, &ending, constants, first, x, to[0]);
                    if R == 2 {
                        Self::step(simd, &ending, constants, second, x, to[R - 1]);
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

impl Ending for Scaled {
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
                let sum = simd.add_words(simd.load(kept), entering[v].change);
                simd.store(kept, sum);
                let product = simd.multiply_high_words(sum, factor);
                values[v] = simd.shift_words_down(product, self.scale.down);
            }
            if BYTES == 1 {
                simd.store_packed(values, Order::Interleaved, to);
                return;
            }
            for v in 0..2 {
                simd.store(
                    to.add(4 * L::LANES * v),
                    simd.shift_words_up(values[v], self.left),
                );
            }
        }
    }
}

/// See [`WindowSums::Weighted`].
struct Weighted<'a> {
    sums: *mut i32,
    weights: [i32; 2],
    finish: &'a Requantize,
}

/// The same; `CENTRE`: the centre weighs more or less than the others, `DIVIDES`: a multiplication divides.
struct Divided<'a, const CENTRE: bool, const DIVIDES: bool>(Weighted<'a>);

/// Both weights, and how sums are divided: by a shift or by a multiplication.
type Factors<V> = (V, V, Divide<V>);

impl Weighted<'_> {
    #[inline(always)]
    fn factors<L: Simd>(&self, simd: L) -> Factors<L::V> {
        let [window, centre] = self.weights;
        let weights = simd.splat(window & 0xFFFF | centre << 16);
        (
            weights,
            simd.splat(self.finish.shift as i32),
            Divide::new(simd, self.finish),
        )
    }

    /// Changes 2 LANES sums from sample `x` on by pairs of what the window and the centre change by, and
    /// divides them.
    ///
    /// # Safety
    /// [`make`] has bounded what lies at `x`.
    #[inline(always)]
    unsafe fn changed<L: Simd, const DIVIDES: bool>(
        &self,
        simd: L,
        (weights, shift, dividing): Factors<L::V>,
        x: usize,
        [window, centre]: [L::V; 2],
    ) -> [L::V; 2] {
        let pairs = simd.interleave_words(window, centre);
        let mut values = pairs;
        for half in 0..2 {
            // SAFETY: sums have `made` numbers, and x + 2 LANES is at most `made`.
            unsafe {
                let kept = self.sums.add(x + half * L::LANES);
                let sum = simd.multiply_add(simd.load(kept), pairs[half], weights);
                simd.store(kept, sum);
                values[half] = if DIVIDES {
                    dividing.of(simd, sum)
                } else {
                    simd.shift_down(sum, shift)
                };
            }
        }
        values
    }
}

/// Adds what is added after the shift, clamps and stores 4 LANES samples.
#[inline(always)]
unsafe fn put_numbers<L: Simd, const BYTES: usize>(
    simd: L,
    values: [[L::V; 2]; 2],
    finish: &Requantize,
    to: *mut u8,
) {
    let [[a, b], [c, d]] = values;
    let mut values = [a, b, c, d];
    if let Some(&high) = finish.high.first() {
        let high = simd.splat(high);
        for v in 0..4 {
            values[v] = simd.add(values[v], high);
        }
    }
    // SAFETY: 4 LANES samples of BYTES bytes are writable at `to`.
    unsafe { store::<L, BYTES, 4>(simd, values, finish, Order::Interleaved, to) };
}

impl<const CENTRE: bool, const DIVIDES: bool> Ending for Divided<'_, CENTRE, DIVIDES> {
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
        // SAFETY: x + 4 LANES is at most `made`, which `make` asserted lines to have, and 4 LANES samples of
        // BYTES bytes are writable at `to`.
        unsafe {
            for v in 0..2 {
                let at = x + v * 2 * L::LANES;
                let change = entering[v].change;
                let centre = if CENTRE {
                    simd.sub_words(row.line(simd, 0, at), row.line(simd, 1, at))
                } else {
                    // It weighs nothing.
                    change
                };
                let changes = [change, centre];
                values[v] = self.0.changed::<L, DIVIDES>(simd, factors, at, changes);
            }
            put_numbers::<L, BYTES>(simd, values, self.0.finish, to);
        }
    }
}
