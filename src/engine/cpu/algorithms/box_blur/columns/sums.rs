//! Box filters of bytes by column sums: each column's sum over the rows of the window changes by the entering
//! byte less the leaving one, both read in place in the picture. A result is the scaled sum of neighbouring
//! columns' sums.
//!
//! Columns at even and at odd places are kept separately: a mask and a shift split words into two bytes, and
//! a shift joins the results. Only column sums are kept from row to row, so a row of RGB fits the first-level
//! cache.
#![allow(unsafe_code)]

use super::Columns;
use crate::engine::cpu::algorithms::box_blur::sliding_window::Scale;
use crate::engine::cpu::rows::border::{Apron, ApronSource, RowBorder};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::scratch::aligned;
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};

/// Most columns of a mask.
const MOST: usize = 7;

/// Most components of a pixel.
const MOST_CHANNELS: usize = 4;

/// True if this method suits masks of `columns` columns, given that their sums fit words.
pub(in crate::engine::cpu::algorithms::box_blur) fn suit(columns: usize, channels: usize) -> bool {
    (3..=MOST).contains(&columns) && channels <= MOST_CHANNELS
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu) struct ColumnScratch {
    /// Sums of the columns at even places, and of those at odd places.
    sums: [Vec<u16>; 2],
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(in crate::engine::cpu::algorithms::box_blur) struct ColumnSums<'a> {
    /// See [`ColumnScratch`].
    sums: [&'a mut [u16]; 2],
    /// A row of zeros.
    zeros: &'a [u8],
    /// Samples of a row.
    samples: usize,
    /// Samples before the first one's sum: the apron, and padding.
    origin: usize,
    /// Columns of the mask.
    columns: usize,
    /// Samples from a column to the next.
    channels: usize,
    scale: Scale,
}

impl<'a> ColumnSums<'a> {
    /// Sums that are all zero, for rows of `width` pixels and masks of `columns` columns.
    pub(in crate::engine::cpu::algorithms::box_blur) fn new(
        scratch: &'a mut ColumnScratch,
        border: &RowBorder,
        width: usize,
        (columns, scale): (usize, Scale),
    ) -> ColumnSums<'a> {
        let (origin, channels) = (border.origin(), border.channels());
        let samples = width * channels;
        let len = (2 * origin + samples.next_multiple_of(TILE)) / 2 + TILE;
        // The row's first sums begin a cache line.
        let skipped = (TILE - origin) % TILE / 2;
        let sums = scratch.sums.each_mut().map(|sums| {
            let sums = &mut aligned(sums, skipped + len)[skipped..];
            sums.fill(0);
            sums
        });
        scratch.zeros.resize(scratch.zeros.len().max(samples), 0);
        ColumnSums {
            sums,
            zeros: &scratch.zeros[..samples],
            samples,
            origin,
            columns,
            channels,
            scale,
        }
    }

    /// Pointers to the first sample's sum and to the second sample's.
    fn places(&mut self) -> [*mut u16; 2] {
        let at = self.origin / 2;
        self.sums.each_mut().map(|sums| sums[at..].as_mut_ptr())
    }
}

impl Columns for ColumnSums<'_> {
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let leaving = leaving.unwrap_or(self.zeros);
        assert!(entering.len() == self.samples && leaving.len() == self.samples);
        let sums = self.places();
        simd.enter(Change {
            entering,
            leaving,
            sums,
        });
    }

    fn extend(&mut self, apron: &Apron, rows: usize) {
        let halves = &mut self.sums;
        for &(to, from) in apron {
            let sum = match from {
                ApronSource::Sample(from) => halves[from % 2][from / 2],
                ApronSource::Constant(value) => value * rows as u16,
            };
            halves[to % 2][to / 2] = sum;
        }
    }

    fn make<L: Simd>(&mut self, simd: L, out: &mut [u8], next: NextRows<'_>) {
        let (columns, channels, scale) = (self.columns, self.channels, self.scale);
        assert!(out.len() == self.samples && columns / 2 * channels <= self.origin);
        let sums = self.places();
        macro_rules! make {
            ($($columns:literal x $channels:literal),*) => {
                match (columns, channels) {
                    $(($columns, $channels) => {
                        simd.enter(Make::<$columns, $channels> { sums, scale, out, next })
                    })*
                    _ => unreachable!("a box of {columns} columns on {channels} channels"),
                }
            };
        }
        make!(3 x 1, 3 x 2, 3 x 3, 3 x 4, 5 x 1, 5 x 2, 5 x 3, 5 x 4, 7 x 2, 7 x 3, 7 x 4);
    }
}

/// The loop of [`Columns::change`].
struct Change<'a> {
    entering: &'a [u8],
    leaving: &'a [u8],
    sums: [*mut u16; 2],
}

impl Change<'_> {
    /// Updates the sums of a step's columns from sample `x` on, by the bytes at `entering` and at `leaving`.
    ///
    /// # Safety
    /// 4 LANES bytes are readable at both, and x + 4 LANES is at most the number of samples of a row, rounded
    /// up to a multiple of [`TILE`].
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, low: L::V, x: usize, entering: *const u8, leaving: *const u8) {
        // SAFETY: 4 LANES bytes are readable at both, as this function requires; there are sums for a row's
        // samples, rounded up to a multiple of TILE.
        unsafe {
            let (more, less) = (simd.load(entering), simd.load(leaving));
            let changes = [
                simd.sub_i16(simd.and(more, low), simd.and(less, low)),
                simd.sub_i16(simd.shift_right_u16(more, 8), simd.shift_right_u16(less, 8)),
            ];
            for odd in 0..2 {
                let kept = self.sums[odd].add(x / 2);
                simd.store(kept, simd.add_i16(simd.load(kept), changes[odd]));
            }
        }
    }
}

impl IntLoop for Change<'_> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let low = simd.splat(0x00FF_00FF);
        let (step, samples) = (4 * L::LANES, self.entering.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: the step ends within both rows, which have `samples` bytes.
            unsafe {
                let (entering, leaving) = (self.entering.as_ptr().add(x), self.leaving.as_ptr().add(x));
                self.step(simd, low, x, entering, leaving);
            }
        }
        if whole < samples {
            let mut last = [[0_u8; TILE]; 2];
            last[0][..samples - whole].copy_from_slice(&self.entering[whole..]);
            last[1][..samples - whole].copy_from_slice(&self.leaving[whole..]);
            // SAFETY: the copies are a step long, and there are sums up to a multiple of TILE.
            unsafe { self.step(simd, low, whole, last[0].as_ptr(), last[1].as_ptr()) };
        }
    }
}

/// The loop of [`Columns::make`].
struct Make<'a, const COLUMNS: usize, const CHANNELS: usize> {
    sums: [*mut u16; 2],
    scale: Scale,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

/// A [`Scale`] in registers.
#[derive(Clone, Copy)]
struct Constants<T> {
    add: T,
    factor: T,
}

impl<const COLUMNS: usize, const CHANNELS: usize> Make<'_, COLUMNS, CHANNELS> {
    /// Columns on either side of the middle one.
    const REACH: isize = (COLUMNS / 2) as isize;

    /// A vector of sums at even or at odd places (`kind` 0 or 1), from `place` sums after that of sample `x`
    /// on.
    ///
    /// # Safety
    /// `sums[kind]` has 2 LANES readable words from place `x / 2 + place` on.
    #[inline(always)]
    unsafe fn load<L: Simd>(&self, simd: L, kind: usize, x: usize, place: isize) -> L::V {
        // SAFETY: 2 LANES words are readable at `x / 2 + place`, as this function requires.
        unsafe { simd.load(self.sums[kind].cast_const().offset((x / 2) as isize + place)) }
    }

    /// The results at even and at odd places.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable.
    #[inline(always)]
    unsafe fn results<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize) -> [L::V; 2] {
        let mut values = [c.add; 2];
        for odd in 0..2 {
            for k in 0..COLUMNS {
                // The column's place relative to the step's first one, split into an even number and 0 or 1.
                let place = (odd + k * CHANNELS) as isize - Self::REACH * CHANNELS as isize;
                let half = place.rem_euclid(2) as usize;
                // SAFETY: the place is within the mask's reach of the step's columns, whose sums are
                // readable.
                let sums = unsafe { self.load(simd, half, x, place.div_euclid(2)) };
                values[odd] = simd.add_i16(values[odd], sums);
            }
            let product = simd.multiply_high_u16(values[odd], c.factor);
            values[odd] = simd.shift_right_u16(product, self.scale.down);
        }
        values
    }

    /// Makes a step's results from sample `x` on.
    ///
    /// # Safety
    /// The sums of the step's columns, and of those that the mask reaches on either side, are readable, and 4
    /// LANES bytes are writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, to: *mut u8) {
        // SAFETY: the sums of the step's columns and of the mask's reach are readable, and 4 LANES bytes are
        // writable at `to`, as this function requires.
        unsafe {
            let [even, odd] = self.results(simd, c, x);
            simd.store(to, simd.xor(even, simd.shift_left_i16(odd, 8)));
        }
    }
}

impl<const COLUMNS: usize, const CHANNELS: usize> IntLoop for Make<'_, COLUMNS, CHANNELS> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let to = self.out.as_mut_ptr();
        let Scale { add, factor, .. } = self.scale;
        let constants = Constants {
            add: simd.splat(i32::from(add) << 16 | i32::from(add)),
            factor: simd.splat(i32::from(factor) << 16 | i32::from(factor)),
        };
        let (step, samples) = (4 * L::LANES, self.out.len());
        let whole = samples / step * step;
        for x in (0..whole).step_by(step) {
            prefetch(simd, self.next, x, step);
            // SAFETY: the step ends within the row. The sums have an apron of `origin` samples before the
            // row, which `Columns::make` asserted to be the mask's reach at least, and as many after it.
            unsafe { self.step(simd, &constants, x, to.add(x)) };
        }
        if whole < samples {
            let mut last = [0_u8; TILE];
            // SAFETY: the copy is a step long, and there are sums for the row rounded up to a multiple of
            // TILE and for an apron after that.
            unsafe { self.step(simd, &constants, whole, last.as_mut_ptr()) };
            self.out[whole..].copy_from_slice(&last[..samples - whole]);
        }
    }
}
