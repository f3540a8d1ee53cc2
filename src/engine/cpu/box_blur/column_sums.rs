//! Small boxes of bytes by column sums: each column's sum over the rows of the window changes by the byte
//! that enters less the one that leaves, both read in place in the picture, and a result is the scaled sum of
//! neighbouring columns' sums.
//!
//! Columns at even and at odd places are kept separately, as a mask and a shift take them out of words of two
//! bytes, and a shift puts results back. Only the column sums are kept from row to row, so that a row of RGB
//! fits the first-level cache.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::sliding_window::Scale;
use crate::engine::cpu::rows::border::{Apron, From, RowBorder};
use crate::engine::cpu::simd::scratch::aligned;
use crate::engine::cpu::simd::vector::{Simd, TILE, Work};

/// Columns of the masks that are made so.
const COLUMNS: [usize; 3] = [3, 5, 7];

/// Components of a pixel, at most.
const MOST_CHANNELS: usize = 4;

/// True for masks of so many columns that are made so.
pub(in crate::engine::cpu) fn suit(columns: usize, channels: usize) -> bool {
    COLUMNS.contains(&columns) && channels <= MOST_CHANNELS
}

/// The memory that a thread works in.
#[derive(Default)]
pub(in crate::engine::cpu) struct Scratch {
    /// Sums of the columns at even places, and at odd ones.
    sums: [Vec<u16>; 2],
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(super) struct ColumnSums<'a> {
    sums: [&'a mut [u16]; 2],
    zeros: &'a [u8],
    /// Samples of a row, and where the first one's sum lies, counted in samples.
    samples: usize,
    origin: usize,
}

impl<'a> ColumnSums<'a> {
    /// All zero, for rows of so many samples.
    pub(super) fn new(scratch: &'a mut Scratch, border: &RowBorder, samples: usize) -> ColumnSums<'a> {
        let origin = border.origin();
        let len = (2 * origin + samples.next_multiple_of(TILE)) / 2 + TILE;
        let sums = scratch.sums.each_mut().map(|half| {
            let half = aligned(half, len);
            half.fill(0);
            half
        });
        scratch.zeros.resize(scratch.zeros.len().max(samples), 0);
        ColumnSums {
            sums,
            zeros: &scratch.zeros[..samples],
            samples,
            origin,
        }
    }

    /// A row enters the window, and another one leaves it once the window is full.
    pub(super) fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let leaving = leaving.unwrap_or(self.zeros);
        assert!(entering.len() == self.samples && leaving.len() == self.samples);
        let sums = self.halves();
        simd.enter(Change {
            entering,
            leaving,
            sums,
        });
    }

    /// Fills in the apron of a row of sums: what the border says, of which a constant has been in all
    /// rows of the window.
    pub(super) fn extend(&mut self, places: &Apron, rows: usize) {
        for &(to, from) in places {
            let sum = match from {
                From::Place(from) => self.sums[from % 2][from / 2],
                From::Constant(value) => value * rows as u16,
            };
            self.sums[to % 2][to / 2] = sum;
        }
    }

    /// Makes a row of the result of sums of `columns` (one of [`COLUMNS`]) columns that are `channels`
    /// samples apart.
    pub(super) fn make<L: Simd>(
        &mut self,
        simd: L,
        (columns, channels): (usize, usize),
        scale: Scale,
        out: &mut [u8],
    ) {
        assert!(out.len() == self.samples && columns / 2 * channels <= self.origin);
        let sums = self.halves();
        macro_rules! make {
            ($($columns:literal x $channels:literal),*) => {
                match (columns, channels) {
                    $(($columns, $channels) => simd.enter(Make::<$columns, $channels> { sums, scale, out }),)*
                    _ => unreachable!("a box of {columns} columns on {channels} channels"),
                }
            };
        }
        make!(3 x 1, 3 x 2, 3 x 3, 3 x 4, 5 x 1, 5 x 2, 5 x 3, 5 x 4, 7 x 1, 7 x 2, 7 x 3, 7 x 4);
    }

    /// Where the first sample's sum and the second one's lie.
    fn halves(&mut self) -> [*mut u16; 2] {
        let at = self.origin / 2;
        self.sums.each_mut().map(|half| half[at..].as_mut_ptr())
    }
}

/// See [`ColumnSums::change`].
struct Change<'a> {
    entering: &'a [u8],
    leaving: &'a [u8],
    sums: [*mut u16; 2],
}

impl Change<'_> {
    /// Changes the sums of a step's columns from place `x` on, by bytes at `entering` and at `leaving`.
    ///
    /// # Safety
    /// A step's bytes are readable at both, and its sums lie within the row's.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, low: L::V, x: usize, entering: *const u8, leaving: *const u8) {
        // SAFETY: 4 LANES bytes are readable at both, and the columns' sums from x to x + 4 LANES lie within
        // those of the row, filled up to a multiple of TILE.
        unsafe {
            let (more, less) = (simd.load(entering), simd.load(leaving));
            let changes = [
                simd.sub_words(simd.and(more, low), simd.and(less, low)),
                simd.sub_words(simd.shift_words_down(more, 8), simd.shift_words_down(less, 8)),
            ];
            for odd in 0..2 {
                let kept = self.sums[odd].add(x / 2);
                simd.store(kept, simd.add_words(simd.load(kept), changes[odd]));
            }
        }
    }
}

impl Work for Change<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let (step, samples) = (4 * L::LANES, self.entering.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones; both rows have as many bytes.
            unsafe {
                let (entering, leaving) = (self.entering.as_ptr().add(x), self.leaving.as_ptr().add(x));
                self.step(simd, low, x, entering, leaving);
            }
        }
        if whole < samples {
            let mut last = [[0_u8; TILE]; 2];
            last[0][..samples - whole].copy_from_slice(&self.entering[whole..]);
            last[1][..samples - whole].copy_from_slice(&self.leaving[whole..]);
            // SAFETY: the copies are a step long, and sums go on to a multiple of TILE.
            unsafe { self.step(simd, low, whole, last[0].as_ptr(), last[1].as_ptr()) };
        }
    }
}

/// See [`ColumnSums::make`].
struct Make<'a, const COLUMNS: usize, const CHANNELS: usize> {
    sums: [*mut u16; 2],
    scale: Scale,
    out: &'a mut [u8],
}

impl<const COLUMNS: usize, const CHANNELS: usize> Make<'_, COLUMNS, CHANNELS> {
    /// Makes a step's results from place `x` on.
    ///
    /// # Safety
    /// The sums of the step's columns and of those that the mask reaches are there, and a step's bytes are
    /// writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, [add, factor]: [L::V; 2], x: usize, to: *mut u8) {
        let mut values = [add; 2];
        // SAFETY: sums go on from x by 4 LANES columns and by what the mask reaches on either side, and 4
        // LANES bytes are writable at `to`.
        unsafe {
            for odd in 0..2 {
                for k in 0..COLUMNS {
                    // The column's place from the step's first one: an even number, and 0 or 1.
                    let place = (odd + k * CHANNELS) as isize - (COLUMNS / 2 * CHANNELS) as isize;
                    let half = self.sums[place.rem_euclid(2) as usize].cast_const().add(x / 2);
                    values[odd] = simd.add_words(values[odd], simd.load(half.offset(place.div_euclid(2))));
                }
                let product = simd.multiply_high_words(values[odd], factor);
                values[odd] = simd.shift_words_down(product, self.scale.down);
            }
            simd.store(to, simd.xor(values[0], simd.shift_words_up(values[1], 8)));
        }
    }
}

impl<const COLUMNS: usize, const CHANNELS: usize> Work for Make<'_, COLUMNS, CHANNELS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let to = self.out.as_mut_ptr();
        let (add, factor) = (i32::from(self.scale.add), i32::from(self.scale.factor));
        let constants = [simd.splat(add << 16 | add), simd.splat(factor << 16 | factor)];
        let (step, samples) = (4 * L::LANES, self.out.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones. `ColumnSums::extend` has filled in what the mask
            // reaches beyond the row's ends.
            unsafe { self.step(simd, constants, x, to.add(x)) };
        }
        if whole < samples {
            let mut last = [0_u8; TILE];
            // SAFETY: the copy is a step long, and sums go on for another TILE.
            unsafe { self.step(simd, constants, whole, last.as_mut_ptr()) };
            self.out[whole..].copy_from_slice(&last[..samples - whole]);
        }
    }
}
