//! Box filters of two-byte samples by column sums of 32 bits: each column's sum over the rows of the window
//! changes by the entering sample less the leaving one, both read in place in the picture.
//!
//! From 9 columns on neighbouring sums are added up by four first, a block of the row at a time, which the
//! first-level cache holds. A window is a number of these sums, and one column more or less:
//!
//! ```text
//! columns 9   4 + 4 + 1        11   4 + 4 + 4 - 1        13   4 + 4 + 4 + 1    ..
//! ```
#![allow(unsafe_code)]

use super::Columns;
use crate::engine::cpu::rows::border::{Apron, ApronSource, RowBorder};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::rows::store::requantize::{Divide, Requantize, offset_and_store};
use crate::engine::cpu::simd::Entered;
use crate::engine::cpu::simd::scratch::{aligned, room};
use crate::engine::cpu::simd::vector::{IntLoop, Order, Plain, Simd, TILE};

/// Most columns of a mask.
pub(in crate::engine::cpu::algorithms::box_blur) const MOST_COLUMNS: usize = 63;

/// Fewest columns that are added up by four first.
const LEAST_FOURS: usize = 9;

/// Samples of a block, for which sums of four are made at a time: a multiple of [`TILE`].
const BLOCK: usize = 512;

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu::algorithms::box_blur) struct DeepScratch {
    columns: Vec<u32>,
    fours: Vec<u32>,
    /// A row of zeros.
    zeros: Vec<u8>,
}

/// The sums of a strip's columns.
pub(in crate::engine::cpu::algorithms::box_blur) struct DeepColumns<'a> {
    /// The sums, from the apron's first column on.
    columns: &'a mut [u32],
    /// Sums of four neighbours, for one block.
    fours: &'a mut [u32],
    /// A row of zeros.
    zeros: &'a [u8],
    /// Index of the apron's first sample in the padded rows of [`Apron`].
    lead: usize,
    /// Index of the row's first sample in them.
    origin: usize,
    window: Window,
    requantize: &'a Requantize,
}

/// The columns of a window.
#[derive(Clone, Copy)]
struct Window {
    /// Number of columns.
    columns: usize,
    /// Samples from a column to the next one of its channel.
    pixel_stride: usize,
    /// Number of sums of four; 0 if none are made.
    fours: usize,
}

impl Window {
    fn new(columns: usize, pixel_stride: usize) -> Window {
        let fours = if columns < LEAST_FOURS {
            0
        } else {
            columns.div_ceil(2) / 2
        };
        Window {
            columns,
            pixel_stride,
            fours,
        }
    }

    /// Number of sums of four for the windows of `made` samples.
    fn fours_of(self, made: usize) -> usize {
        made + self.fours.saturating_sub(1) * 4 * self.pixel_stride
    }
}

impl<'a> DeepColumns<'a> {
    /// Sums that are all zero, for rows of `width` pixels and masks of `columns` columns.
    pub(in crate::engine::cpu::algorithms::box_blur) fn new(
        scratch: &'a mut DeepScratch,
        border: &RowBorder,
        width: usize,
        (columns, requantize): (usize, &'a Requantize),
    ) -> DeepColumns<'a> {
        let pixel_stride = border.channels();
        let (window, samples) = (Window::new(columns, pixel_stride), width * pixel_stride);
        // The last window may have a column too many.
        let sums = samples.next_multiple_of(TILE) + (columns + 1) * pixel_stride;
        let sums = aligned(&mut scratch.columns, sums);
        sums.fill(0);
        DeepColumns {
            columns: sums,
            fours: aligned(&mut scratch.fours, window.fours_of(BLOCK)),
            zeros: room(&mut scratch.zeros, 2 * samples),
            lead: border.lead(),
            origin: border.origin(),
            window,
            requantize,
        }
    }
}

impl Columns for DeepColumns<'_> {
    fn change<L: Simd>(&mut self, simd: L, entering: &[u8], leaving: Option<&[u8]>) {
        let first = self.origin - self.lead;
        simd.enter(Entered(Change {
            entering: entering.as_chunks().0,
            leaving: leaving.unwrap_or(self.zeros).as_chunks().0,
            left: self.requantize.left,
            sums: &mut self.columns[first..],
        }));
    }

    fn extend(&mut self, apron: &Apron, rows: usize) {
        for &(to, from) in apron {
            self.columns[to - self.lead] = match from {
                ApronSource::Sample(from) => self.columns[from - self.lead],
                ApronSource::Constant(value) => u32::from(value) * rows as u32,
            };
        }
    }

    fn make<L: Simd>(&mut self, simd: L, out: &mut [u8], next: NextRows<'_>) {
        let Window {
            columns,
            pixel_stride,
            fours: count,
        } = self.window;
        for (block, out) in out.chunks_mut(2 * BLOCK).enumerate() {
            let from = &self.columns[block * BLOCK..];
            let next = next.map(|row| row.get(2 * BLOCK * block..).unwrap_or_default());
            let make = if count == 0 {
                Make {
                    main: from,
                    count: columns,
                    stride: pixel_stride,
                    one: from,
                    sign: 0,
                    requantize: self.requantize,
                    out,
                    next,
                }
            } else {
                let made = (out.len() / 2).next_multiple_of(TILE);
                let fours = &mut self.fours[..self.window.fours_of(made)];
                simd.enter(Entered(AddFour(from, pixel_stride, fours)));
                Make {
                    main: fours,
                    count,
                    stride: 4 * pixel_stride,
                    // The column after the fours, or the one that they have too many.
                    one: &from[columns.min(4 * count) * pixel_stride..],
                    sign: if columns > 4 * count { 1 } else { -1 },
                    requantize: self.requantize,
                    out,
                    next,
                }
            };
            make.check();
            if self.requantize.factor.is_some() {
                simd.enter(Divided::<true>(make));
            } else {
                simd.enter(Divided::<false>(make));
            }
        }
    }
}

/// The loop of [`Columns::change`], for stored samples with `left` padding bits.
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

/// Adds up four sums each: of the first slice, that many elements apart, into the second slice.
struct AddFour<'a>(&'a [u32], usize, &'a mut [u32]);

impl Plain for AddFour<'_> {
    #[inline(always)]
    fn run(self) {
        let AddFour(sums, pixel_stride, out) = self;
        let [b, c, d] = [1, 2, 3].map(|k| &sums[k * pixel_stride..]);
        let all = sums.iter().zip(b).zip(c.iter().zip(d));
        for (out, ((a, b), (c, d))) in out.iter_mut().zip(all) {
            *out = a + b + (c + d);
        }
    }
}

/// The arguments of [`Columns::make`] for a block: a window is the sum of `count` elements of `main` that are
/// `stride` apart, and of `sign` times an element of `one`.
struct Make<'a> {
    main: &'a [u32],
    count: usize,
    stride: usize,
    one: &'a [u32],
    sign: i32,
    requantize: &'a Requantize,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl Make<'_> {
    /// Asserts that sums are readable up to the end of the last step, for every element of a window.
    fn check(&self) {
        let made = (self.out.len() / 2).next_multiple_of(TILE);
        assert!(self.main.len() >= made + (self.count - 1) * self.stride);
        assert!(self.one.len() >= made);
        assert!(self.requantize.high.is_empty() || self.requantize.high.len() >= TILE);
    }
}

/// The loop of [`Columns::make`]; `FACTOR`: a multiplication divides, not a shift.
struct Divided<'a, const FACTOR: bool>(Make<'a>);

impl<const FACTOR: bool> Divided<'_, FACTOR> {
    /// Makes 4 LANES results from sample `x` on.
    ///
    /// # Safety
    /// [`Make::check`] has passed, x + 4 LANES is at most the number of samples of `out`, rounded up to a
    /// multiple of [`TILE`], and 4 LANES words are writable at `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, start: L::V, divide: Divide<L::V>, x: usize, to: *mut u8) {
        let Make {
            main,
            count,
            stride,
            one,
            sign,
            requantize,
            ..
        } = &self.0;
        let mut sums = [start; 4];
        // SAFETY: `check` asserted that for every element of a window sums are readable up to the number of
        // samples, rounded up to a multiple of TILE, which x + 4 LANES does not exceed; 4 LANES words are
        // writable at `to`.
        unsafe {
            let mut from = main.as_ptr().add(x);
            for _ in 0..*count {
                for v in 0..4 {
                    sums[v] = simd.add_i32(sums[v], simd.load(from.add(v * L::LANES)));
                }
                from = from.wrapping_add(*stride);
            }
            if *sign != 0 {
                for v in 0..4 {
                    let one = simd.load(one.as_ptr().add(x + v * L::LANES));
                    sums[v] = if *sign > 0 {
                        simd.add_i32(sums[v], one)
                    } else {
                        simd.sub_i32(sums[v], one)
                    };
                }
            }
            for v in 0..4 {
                sums[v] = if FACTOR {
                    divide.of(simd, sums[v])
                } else {
                    simd.shift_right_i32(sums[v], simd.splat(requantize.shift as i32))
                };
            }
            offset_and_store::<L, 2, 4>(simd, sums, requantize, 0, Order::Plain, to);
        }
    }
}

impl<const FACTOR: bool> IntLoop for Divided<'_, FACTOR> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let start = simd.splat(self.0.requantize.start[0][0]);
        let divide = Divide::new(simd, self.0.requantize);
        let (step, samples) = (4 * L::LANES, self.0.out.len() / 2);
        let whole = samples / step * step;
        let to = self.0.out.as_mut_ptr();
        for x in (0..whole).step_by(step) {
            prefetch(simd, self.0.next, 2 * x, 2 * step);
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
