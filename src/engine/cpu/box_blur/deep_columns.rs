//! Boxes of samples of two bytes by column sums of 32 bits: each column's sum over the rows of the window
//! changes by the sample that enters less the one that leaves, both read in place in the picture.
//!
//! From 9 columns on neighbouring sums are added up by four first, block by block of the row, so that the
//! first-level cache holds them; a window is some of these, and a column more or less:
//!
//! ```text
//! columns 9   4 + 4 + 1        11   4 + 4 + 4 - 1        13   4 + 4 + 4 + 1    ..
//! ```
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::Columns;
use crate::engine::cpu::rows::border::{Apron, From, RowBorder};
use crate::engine::cpu::rows::requantize::{Divide, Requantize, offset_and_store};
use crate::engine::cpu::simd::Entered;
use crate::engine::cpu::simd::scratch::{aligned, room};
use crate::engine::cpu::simd::vector::{Order, Plain, Simd, TILE, Work};

/// Columns of the largest masks that are made so.
pub(super) const MOST_COLUMNS: usize = 63;

/// Columns from which on they are added up by four.
const LEAST_FOURS: usize = 9;

/// Samples whose windows are made of the same sums of four: a multiple of [`TILE`].
const BLOCK: usize = 512;

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    columns: Vec<u32>,
    fours: Vec<u32>,
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(super) struct DeepColumns<'a> {
    /// From the apron's first one on.
    columns: &'a mut [u32],
    /// Sums of four neighbours, of a block.
    fours: &'a mut [u32],
    zeros: &'a [u8],
    /// Where a padded row begins in what [`Apron`] counts from, and where its first sample lies.
    lead: usize,
    origin: usize,
    window: Window,
    finish: &'a Requantize,
}

/// The columns of a window.
#[derive(Clone, Copy)]
struct Window {
    columns: usize,
    /// From a column to the next one of its channel.
    step: usize,
    /// Sums of four, if these are made.
    fours: usize,
}

impl Window {
    fn new(columns: usize, step: usize) -> Window {
        let fours = if columns < LEAST_FOURS {
            0
        } else {
            columns.div_ceil(2) / 2
        };
        Window { columns, step, fours }
    }

    /// Sums of four for the windows of so many samples.
    fn fours_of(self, made: usize) -> usize {
        made + self.fours.saturating_sub(1) * 4 * self.step
    }
}

impl<'a> DeepColumns<'a> {
    /// All zero, for rows of `width` pixels and masks of so many columns.
    pub(super) fn new(
        scratch: &'a mut Scratch,
        border: &RowBorder,
        width: usize,
        (columns, finish): (usize, &'a Requantize),
    ) -> DeepColumns<'a> {
        let step = border.channels();
        let (window, samples) = (Window::new(columns, step), width * step);
        // The last window may have a column too many.
        let sums = samples.next_multiple_of(TILE) + (columns + 1) * step;
        let sums = aligned(&mut scratch.columns, sums);
        sums.fill(0);
        DeepColumns {
            columns: sums,
            fours: aligned(&mut scratch.fours, window.fours_of(BLOCK)),
            zeros: room(&mut scratch.zeros, 2 * samples),
            lead: border.lead(),
            origin: border.origin(),
            window,
            finish,
        }
    }
}

impl Columns for DeepColumns<'_> {
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let first = self.origin - self.lead;
        simd.enter(Entered(Change {
            entering: entering.as_chunks().0,
            leaving: leaving.unwrap_or(self.zeros).as_chunks().0,
            left: self.finish.left,
            sums: &mut self.columns[first..],
        }));
    }

    fn extend(&mut self, places: &Apron, rows: usize) {
        for &(to, from) in places {
            self.columns[to - self.lead] = match from {
                From::Place(from) => self.columns[from - self.lead],
                From::Constant(value) => u32::from(value) * rows as u32,
            };
        }
    }

    fn make<L: Simd>(&mut self, simd: L, out: &mut [u8]) {
        let Window {
            columns,
            step,
            fours: count,
        } = self.window;
        for (block, out) in out.chunks_mut(2 * BLOCK).enumerate() {
            let from = &self.columns[block * BLOCK..];
            let make = if count == 0 {
                Make {
                    main: from,
                    count: columns,
                    step,
                    one: from,
                    sign: 0,
                    finish: self.finish,
                    out,
                }
            } else {
                let made = (out.len() / 2).next_multiple_of(TILE);
                let fours = &mut self.fours[..self.window.fours_of(made)];
                simd.enter(Entered(AddFour(from, step, fours)));
                Make {
                    main: fours,
                    count,
                    step: 4 * step,
                    // That after the fours, or the one that they have too many.
                    one: &from[columns.min(4 * count) * step..],
                    sign: if columns > 4 * count { 1 } else { -1 },
                    finish: self.finish,
                    out,
                }
            };
            make.check();
            if self.finish.factor.is_some() {
                simd.enter(Divided::<true>(make));
            } else {
                simd.enter(Divided::<false>(make));
            }
        }
    }
}

/// See [`Columns::change`]: samples as they are stored, `left` bits too high.
struct Change<'a> {
    entering: &'a [[u8; 2]],
    leaving: &'a [[u8; 2]],
    left: u32,
    sums: &'a mut [u32],
}

impl Plain for Change<'_> {
    #[inline(always)]
    fn run(self) {
        match self.left {
            0 => self.by(|sample| sample),
            left => self.by(|sample| sample >> left),
        }
    }
}

impl Change<'_> {
    #[inline(always)]
    fn by(self, sample: impl Fn(u16) -> u16) {
        let rows = self.entering.iter().zip(self.leaving);
        for (sum, (&more, &less)) in self.sums.iter_mut().zip(rows) {
            let [more, less] = [more, less].map(|bytes| u32::from(sample(u16::from_le_bytes(bytes))));
            *sum = *sum + more - less;
        }
    }
}

/// Adds up four sums each that are so far apart.
struct AddFour<'a>(&'a [u32], usize, &'a mut [u32]);

impl Plain for AddFour<'_> {
    #[inline(always)]
    fn run(self) {
        let AddFour(sums, step, out) = self;
        let [b, c, d] = [1, 2, 3].map(|k| &sums[k * step..]);
        let all = sums.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in out.iter_mut().zip(all) {
            *out = a + b + (c + d);
        }
    }
}

/// See [`Columns::make`]: a window is the sum of `count` of `main` that are `step` apart, and of `sign` times
/// `one`.
struct Make<'a> {
    main: &'a [u32],
    count: usize,
    step: usize,
    one: &'a [u32],
    sign: i32,
    finish: &'a Requantize,
    out: &'a mut [u8],
}

impl Make<'_> {
    /// Bounds every read: of as many sums as fill the last step, wherever they begin.
    fn check(&self) {
        let made = (self.out.len() / 2).next_multiple_of(TILE);
        assert!(self.main.len() >= made + (self.count - 1) * self.step);
        assert!(self.one.len() >= made);
        assert!(self.finish.high.is_empty() || self.finish.high.len() >= TILE);
    }
}

/// Divides by a multiplication, or by a shift.
struct Divided<'a, const FACTOR: bool>(Make<'a>);

impl<const FACTOR: bool> Divided<'_, FACTOR> {
    /// Makes 4 LANES results from sample `x` on.
    ///
    /// # Safety
    /// They are within what [`Make::check`] has bounded, and as many words are writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, start: L::V, divide: Divide<L::V>, x: usize, to: *mut u8) {
        let Make {
            main,
            count,
            step,
            one,
            sign,
            finish,
            ..
        } = &self.0;
        let mut sums = [start; 4];
        // SAFETY: by the caller; x goes up to a multiple of TILE in steps that divide it.
        unsafe {
            let mut from = main.as_ptr().add(x);
            for _ in 0..*count {
                for v in 0..4 {
                    sums[v] = simd.add(sums[v], simd.load(from.add(v * L::LANES)));
                }
                from = from.wrapping_add(*step);
            }
            if *sign != 0 {
                for v in 0..4 {
                    let one = simd.load(one.as_ptr().add(x + v * L::LANES));
                    sums[v] = if *sign > 0 {
                        simd.add(sums[v], one)
                    } else {
                        simd.sub_numbers(sums[v], one)
                    };
                }
            }
            for v in 0..4 {
                sums[v] = if FACTOR {
                    divide.of(simd, sums[v])
                } else {
                    simd.shift_down(sums[v], simd.splat(finish.shift as i32))
                };
            }
            offset_and_store::<L, 2, 4>(simd, sums, finish, 0, Order::Plain, to);
        }
    }
}

impl<const FACTOR: bool> Work for Divided<'_, FACTOR> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let start = simd.splat(self.0.finish.start[0][0]);
        let divide = Divide::new(simd, self.0.finish);
        let (step, samples) = (4 * L::LANES, self.0.out.len() / 2);
        let whole = samples / step * step;
        let to = self.0.out.as_mut_ptr();
        for x in (0..whole).step_by(step) {
            // SAFETY: a whole step ends within `out`.
            unsafe { self.step(simd, start, divide, x, to.add(2 * x)) };
        }
        if whole < samples {
            let mut last = [0_u8; 2 * TILE];
            // SAFETY: the copy is a step long.
            unsafe { self.step(simd, start, divide, whole, last.as_mut_ptr()) };
            self.0.out[2 * whole..].copy_from_slice(&last[..2 * (samples - whole)]);
        }
    }
}
