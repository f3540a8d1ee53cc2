//! Small boxes of bytes, several rows at a time: each row that the windows reach is read once, in place in
//! the picture, and its bytes are added up along the row in registers. The entering row's sum less the
//! leaving row's turns a window's sum into the next row's. Nothing is stored but results.
//!
//! Sums at even and at odd places are kept separately: a mask and a shift split words into two bytes, and a
//! shift joins the results. On planes of one component the multiply-add of bytes adds neighbours up. Vectors
//! read beyond a row's ends; the results that this spoils are computed again one by one.
#![allow(unsafe_code)]

use super::sliding_window::Scale;
use crate::engine::cpu::rows::border::{Apron, ApronSource, RowBorder};
use crate::engine::cpu::rows::store::prefetch::{NextRows, prefetch};
use crate::engine::cpu::rows::store::row_pointers;
use crate::engine::cpu::simd::scratch::{aligned, spread};
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE, has_32_registers};

/// Columns and rows of the largest boxes.
const LARGEST: usize = 5;

/// Most components of a pixel.
const MOST_CHANNELS: usize = 4;

/// Rows that are made at a time.
pub(super) const AT_ONCE: usize = 8;

/// Most rows that their windows reach.
pub(super) const MOST_ROWS: usize = AT_ONCE + LARGEST - 1;

/// True if this method suits a box: the row sums of larger ones do not fit the registers.
pub(in crate::engine::cpu) fn suit<L: Simd>(
    _: L,
    (columns, rows): (usize, usize),
    channels: usize,
    scale: Scale,
) -> bool {
    let is_small = columns == 3 || columns == LARGEST && const { has_32_registers::<L>() };
    columns == rows && is_small && channels <= MOST_CHANNELS && scale.down <= 8
}

/// Scratch memory of a thread.
#[derive(Default)]
pub(in crate::engine::cpu) struct RegisterScratch {
    /// Copies of rows without readable memory beside them, with room at both ends.
    alone: Vec<u8>,
    ends: Vec<BorderFix>,
}

/// A sample near the end of a row, whose window reaches beyond the row.
#[derive(Clone, Copy)]
struct BorderFix {
    /// Index of the sample.
    at: usize,
    /// Indices of the window's samples that the row has; the first `inside` are used.
    from: [usize; LARGEST],
    inside: usize,
    /// The sum of the window's other samples, which are the border's constant.
    outside: u16,
}

impl BorderFix {
    /// Lists these samples for rows of `width` pixels with this apron, and boxes of `size`.
    fn find(border: &RowBorder, apron: &Apron, size: usize, width: usize, ends: &mut Vec<BorderFix>) {
        let channels = border.channels();
        let (samples, origin, reach) = (width * channels, border.origin(), size / 2 * channels);
        let head = 0..reach.min(samples);
        let tail = samples.saturating_sub(reach).max(head.end)..samples;
        ends.clear();
        for at in head.chain(tail) {
            let mut end = BorderFix {
                at,
                from: [0; LARGEST],
                inside: 0,
                outside: 0,
            };
            for padded in (0..size).map(|k| origin + at + k * channels - reach) {
                let beyond = apron.iter().find(|(to, _)| *to == padded);
                match beyond.map_or(ApronSource::Sample(padded), |(_, from)| *from) {
                    ApronSource::Sample(place) => {
                        end.from[end.inside] = place - origin;
                        end.inside += 1;
                    }
                    ApronSource::Constant(value) => end.outside += value,
                }
            }
            ends.push(end);
        }
    }
}

/// Boxes of one size on rows of one length.
pub(super) struct InRegisters<'a> {
    /// Columns and rows of the box.
    size: usize,
    channels: usize,
    scale: Scale,
    /// Samples of a row.
    samples: usize,
    alone: &'a mut [u8],
    ends: &'a [BorderFix],
}

impl<'a> InRegisters<'a> {
    /// Boxes of `size` for which [`suit`] is true, on rows of `width` pixels with this apron.
    pub(super) fn new(
        scratch: &'a mut RegisterScratch,
        border: &RowBorder,
        apron: &Apron,
        (size, scale): (usize, Scale),
        width: usize,
    ) -> InRegisters<'a> {
        let channels = border.channels();
        let samples = width * channels;
        BorderFix::find(border, apron, size, width, &mut scratch.ends);
        InRegisters {
            size,
            channels,
            scale,
            samples,
            alone: aligned(&mut scratch.alone, MOST_ROWS * spread(with_margins(samples))),
            ends: &scratch.ends,
        }
    }

    /// Makes [`AT_ONCE`] rows of the result. `rows` are the rows that their windows reach: the bytes that a
    /// row lies in, and the index of its first byte. The first `AT_ONCE + size - 1` are used.
    pub(super) fn make<L: Simd>(
        &mut self,
        simd: L,
        rows: [(&[u8], usize); MOST_ROWS],
        out: [&mut [u8]; AT_ONCE],
        next: NextRows<'_>,
    ) {
        let samples = self.samples;
        let len = with_margins(samples);
        let copies = self.alone.chunks_exact_mut(spread(len));
        let mut from = [&[][..]; MOST_ROWS];
        let all = from.iter_mut().zip(rows).zip(copies);
        for ((from, (bytes, at)), copy) in all.take(AT_ONCE + self.size - 1) {
            let begin = at.checked_sub(TILE);
            *from = match begin.and_then(|begin| bytes.get(begin..begin + len)) {
                Some(with_margins) => with_margins,
                None => {
                    copy[TILE..][..samples].copy_from_slice(&bytes[at..at + samples]);
                    &copy[..len]
                }
            };
        }
        assert!(out.iter().all(|row| row.len() == samples));
        let (scale, ends) = (self.scale, self.ends);
        macro_rules! make {
            ($size:ident, $($channels:literal)*) => {
                match self.channels {
                    $($channels => {
                        simd.enter(Make::<$size, $channels> { from, scale, ends, samples, out, next })
                    })*
                    channels => unreachable!("a box on {channels} channels"),
                }
            };
        }
        // A constant condition: loops that a set never enters are not compiled.
        if self.size == LARGEST && const { has_32_registers::<L>() } {
            make!(LARGEST, 1 2 3 4);
        } else {
            const SMALLEST: usize = 3;
            make!(SMALLEST, 1 2 3 4);
        }
    }
}

/// Bytes of a row of `samples` samples in whole steps, and of the margins that vectors may read before and
/// after it.
fn with_margins(samples: usize) -> usize {
    TILE + samples.next_multiple_of(TILE) + TILE
}

/// The loop of [`InRegisters::make`].
struct Make<'a, const SIZE: usize, const CHANNELS: usize> {
    /// Rows [with their margins](with_margins).
    from: [&'a [u8]; MOST_ROWS],
    scale: Scale,
    ends: &'a [BorderFix],
    samples: usize,
    out: [&'a mut [u8]; AT_ONCE],
    /// The next rows to read and to make.
    next: NextRows<'a>,
}

/// Constants that stay in registers along a row.
#[derive(Clone, Copy)]
struct Constants<T> {
    /// The start value of sums.
    add: T,
    /// The multiplier of the division.
    factor: T,
    /// Mask of the low bytes of words.
    low: T,
    /// Mask of the high bytes of words.
    high: T,
    /// A 1 in every byte.
    ones: T,
}

impl<const SIZE: usize, const CHANNELS: usize> Make<'_, SIZE, CHANNELS> {
    /// The sums of a row's windows at even and at odd places, from `from` on.
    ///
    /// # Safety
    /// A step's bytes, and [`TILE`] before and after them, are readable at `from`.
    #[inline(always)]
    unsafe fn along<L: Simd>(simd: L, c: &Constants<L::V>, from: *const u8) -> [L::V; 2] {
        if CHANNELS == 1 {
            // SAFETY: TILE bytes before `from` are readable, and TILE after the step.
            let [first, middle, last] = [-2, 0, 2].map(|place| unsafe { from.offset(place) });
            // SAFETY: 4 LANES bytes are readable from two bytes before `from` on, and from two after it.
            let [first, middle, last] = unsafe { [simd.load(first), simd.load(middle), simd.load(last)] };
            // Both windows include the middle pair.
            let pair = simd.add_pairs_u8(middle, c.ones);
            let (before, after) = (simd.shift_right_u16(first, 8), simd.and(last, c.low));
            if SIZE == LARGEST {
                let (first, last) = (simd.add_pairs_u8(first, c.ones), simd.add_pairs_u8(last, c.ones));
                let even = simd.add_i16(simd.add_i16(first, pair), after);
                return [even, simd.add_i16(simd.add_i16(pair, last), before)];
            }
            return [simd.add_i16(before, pair), simd.add_i16(pair, after)];
        }
        let mut sums = [c.low; 2];
        for k in 0..SIZE {
            let place = (k * CHANNELS) as isize - (SIZE / 2 * CHANNELS) as isize;
            // SAFETY: TILE bytes before `from` and after the step are readable, and the place is at most 8
            // bytes away.
            let bytes = unsafe { simd.load(from.offset(place)) };
            let halves = [simd.and(bytes, c.low), simd.shift_right_u16(bytes, 8)];
            for odd in 0..2 {
                sums[odd] = if k == 0 {
                    halves[odd]
                } else {
                    simd.add_i16(sums[odd], halves[odd])
                };
            }
        }
        sums
    }

    /// Makes a step's results from sample `x` on.
    ///
    /// # Safety
    /// A step from `x` on ends within the row in whole steps, and 4 LANES bytes are writable at each of `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, to: [*mut u8; AT_ONCE]) {
        let mut sums = [c.add; 2];
        let mut rows = [sums; MOST_ROWS];
        // Unrolled by a macro: the compiler does not unroll a loop over this many rows.
        macro_rules! rows {
            ($($k:literal)*) => {
                $(if $k < AT_ONCE + SIZE - 1 {
                    // SAFETY: rows have a margin of TILE bytes on either side, and x + 4 LANES is at most
                    // what lies between.
                    rows[$k] = unsafe { Self::along(simd, c, self.from[$k].as_ptr().add(TILE + x)) };
                    for odd in 0..2 {
                        sums[odd] = simd.add_i16(sums[odd], rows[$k][odd]);
                    }
                    if $k + 1 >= SIZE {
                        let row = $k + 1 - SIZE;
                        let even = simd.multiply_high_u16(sums[0], c.factor);
                        let odd = simd.multiply_high_u16(sums[1], c.factor);
                        let even = simd.shift_right_u16(even, self.scale.down);
                        let odd = simd.and(simd.shift_left_i16(odd, 8 - self.scale.down), c.high);
                        // SAFETY: 4 LANES bytes are writable at each of `to`.
                        unsafe { simd.store(to[row], simd.xor(even, odd)) };
                        for odd in 0..2 {
                            sums[odd] = simd.sub_i16(sums[odd], rows[row][odd]);
                        }
                    }
                })*
            };
        }
        rows!(0 1 2 3 4 5 6 7 8 9 10 11);
    }

    /// Computes the samples near the ends again.
    fn fix_ends(&mut self) {
        for end in self.ends {
            let mut sums = [0_u16; MOST_ROWS];
            for (sum, row) in sums.iter_mut().zip(self.from).take(AT_ONCE + SIZE - 1) {
                let inside = end.from[..end.inside].iter();
                *sum = end.outside + inside.map(|place| u16::from(row[TILE + place])).sum::<u16>();
            }
            for (out, sums) in self.out.iter_mut().zip(sums.windows(SIZE)) {
                out[end.at] = self.scale.of(sums.iter().sum());
            }
        }
    }
}

impl<const SIZE: usize, const CHANNELS: usize> IntLoop for Make<'_, SIZE, CHANNELS> {
    #[inline(always)]
    fn run<L: Simd>(mut self, simd: L) {
        let (add, factor) = (i32::from(self.scale.add), i32::from(self.scale.factor));
        let constants = Constants {
            add: simd.splat(add << 16 | add),
            factor: simd.splat(factor << 16 | factor),
            low: simd.splat(0x00FF_00FF),
            high: simd.splat(0xFF00_FF00_u32 as i32),
            ones: simd.splat(0x0101_0101),
        };
        let to = row_pointers::starts(&mut self.out);
        let step = 4 * L::LANES;
        let whole = self.samples / step * step;
        for x in (0..whole).step_by(step) {
            prefetch(simd, self.next, AT_ONCE * x, AT_ONCE * step);
            // SAFETY: the step ends within the rows of the result, which have `samples` bytes.
            unsafe { self.step(simd, &constants, x, row_pointers::offset(to, x as isize)) };
        }
        if whole < self.samples {
            let mut last = [[0_u8; TILE]; AT_ONCE];
            // SAFETY: the copies are a step long.
            unsafe {
                self.step(simd, &constants, whole, row_pointers::starts(&mut last));
            };
            for row in 0..AT_ONCE {
                self.out[row][whole..].copy_from_slice(&last[row][..self.samples - whole]);
            }
        }
        self.fix_ends();
    }
}
