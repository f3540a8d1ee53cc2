//! Small boxes of bytes, several rows at a time: each row that their windows reach is read once, in place in
//! the picture, its bytes are added up along the row in registers, and what enters a window less what leaves
//! it makes the next row's sum. Nothing is written but results.
//!
//! Sums at even and at odd places are kept separately, as a mask and a shift take bytes out of words, and a
//! shift puts results back. On planes of one component the instruction that multiplies bytes adds neighbours
//! up. Vectors reach past a row's ends, into whatever memory is there: the results that this spoils are
//! computed again one by one.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::sliding_window::Scale;
use crate::engine::cpu::rows::border::{Apron, From, RowBorder};
use crate::engine::cpu::simd::scratch::{aligned, spread};
use crate::engine::cpu::simd::vector::{Simd, TILE, Work, has_32_registers};

/// Columns and rows of the largest ones.
const LARGEST: usize = 5;

/// Components of a pixel, at most.
const MOST_CHANNELS: usize = 4;

/// Rows that are made at a time.
pub(super) const AT_ONCE: usize = 8;

/// Rows that their windows reach, at most.
pub(super) const MOST_ROWS: usize = AT_ONCE + LARGEST - 1;

/// True for boxes that are made so: what enters and leaves stays in registers, of which larger ones have too
/// few.
pub(in crate::engine::cpu) fn suit<L: Simd>(
    _: L,
    (columns, rows): (usize, usize),
    channels: usize,
    scale: Scale,
) -> bool {
    let is_small = columns == 3 || columns == LARGEST && const { has_32_registers::<L>() };
    columns == rows && is_small && channels <= MOST_CHANNELS && scale.down <= 8
}

/// The memory that a thread works in.
#[derive(Default)]
pub(in crate::engine::cpu) struct Scratch {
    /// Copies of rows beside which there is nothing to read, with room at both ends.
    alone: Vec<u8>,
    ends: Vec<BorderFix>,
}

/// A sample near the end of a row, whose window leaves it.
#[derive(Clone, Copy)]
struct BorderFix {
    /// The sample.
    at: usize,
    /// Those of its window that are found in the row, as many as are `inside`.
    from: [usize; LARGEST],
    inside: usize,
    /// The sum of the others.
    outside: u16,
}

impl BorderFix {
    /// Those of rows of so many pixels, where `places` is the apron.
    fn find(border: &RowBorder, places: &Apron, size: usize, width: usize, ends: &mut Vec<BorderFix>) {
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
                let beyond = places.iter().find(|(to, _)| *to == padded);
                match beyond.map_or(From::Place(padded), |(_, from)| *from) {
                    From::Place(place) => {
                        end.from[end.inside] = place - origin;
                        end.inside += 1;
                    }
                    From::Constant(value) => end.outside += value,
                }
            }
            ends.push(end);
        }
    }
}

/// Boxes of one size on rows of one length.
pub(super) struct InRegisters<'a> {
    size: usize,
    channels: usize,
    scale: Scale,
    samples: usize,
    alone: &'a mut [u8],
    ends: &'a [BorderFix],
}

impl<'a> InRegisters<'a> {
    /// Boxes of `size` that [`suit`], on rows of `width` pixels, of which `places` is the apron.
    pub(super) fn new(
        scratch: &'a mut Scratch,
        border: &RowBorder,
        places: &Apron,
        (size, scale): (usize, Scale),
        width: usize,
    ) -> InRegisters<'a> {
        let channels = border.channels();
        let samples = width * channels;
        BorderFix::find(border, places, size, width, &mut scratch.ends);
        InRegisters {
            size,
            channels,
            scale,
            samples,
            alone: aligned(&mut scratch.alone, MOST_ROWS * spread(with_margins(samples))),
            ends: &scratch.ends,
        }
    }

    /// Makes rows of the result from those that their windows reach, which begin at places of memory: as many
    /// as that are, and one less than a window has.
    pub(super) fn make<L: Simd>(
        &mut self,
        simd: L,
        rows: [(&[u8], usize); MOST_ROWS],
        out: [&mut [u8]; AT_ONCE],
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
                    $($channels => simd.enter(Make::<$size, $channels> { from, scale, ends, samples, out }),)*
                    channels => unreachable!("a box on {channels} channels"),
                }
            };
        }
        // A constant in the condition, so that loops that nothing enters are not compiled.
        if self.size == LARGEST && const { has_32_registers::<L>() } {
            make!(LARGEST, 1 2 3 4);
        } else {
            const SMALLEST: usize = 3;
            make!(SMALLEST, 1 2 3 4);
        }
    }
}

/// The length of a row of so many samples, filled up to whole steps, and of what vectors may read before and
/// after it.
fn with_margins(samples: usize) -> usize {
    TILE + samples.next_multiple_of(TILE) + TILE
}

/// See [`InRegisters::make`].
struct Make<'a, const SIZE: usize, const CHANNELS: usize> {
    /// Rows [with their margins](with_margins).
    from: [&'a [u8]; MOST_ROWS],
    scale: Scale,
    ends: &'a [BorderFix],
    samples: usize,
    out: [&'a mut [u8]; AT_ONCE],
}

/// What stays in registers along a row.
#[derive(Clone, Copy)]
struct Constants<T> {
    add: T,
    factor: T,
    /// The low bytes of words, and the high ones.
    low: T,
    high: T,
    /// A 1 in every byte.
    ones: T,
}

impl<const SIZE: usize, const CHANNELS: usize> Make<'_, SIZE, CHANNELS> {
    /// The sums of the windows along a row, of those at even and of those at odd places from `from` on.
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
            // Both windows have the middle pair.
            let pair = simd.add_pairs(middle, c.ones);
            let (before, after) = (simd.shift_words_down(first, 8), simd.and(last, c.low));
            if SIZE == LARGEST {
                let (first, last) = (simd.add_pairs(first, c.ones), simd.add_pairs(last, c.ones));
                let even = simd.add_words(simd.add_words(first, pair), after);
                return [even, simd.add_words(simd.add_words(pair, last), before)];
            }
            return [simd.add_words(before, pair), simd.add_words(pair, after)];
        }
        let mut sums = [c.low; 2];
        for k in 0..SIZE {
            let place = (k * CHANNELS) as isize - (SIZE / 2 * CHANNELS) as isize;
            // SAFETY: TILE bytes before `from` and after the step are readable, and the place is at most 8
            // bytes away.
            let bytes = unsafe { simd.load(from.offset(place)) };
            let halves = [simd.and(bytes, c.low), simd.shift_words_down(bytes, 8)];
            for odd in 0..2 {
                sums[odd] = if k == 0 {
                    halves[odd]
                } else {
                    simd.add_words(sums[odd], halves[odd])
                };
            }
        }
        sums
    }

    /// Makes a step's results from place `x` on.
    ///
    /// # Safety
    /// A step from `x` on ends within the row filled up to whole steps, and a step's bytes are writable at
    /// each of `to`.
    #[inline(always)]
    unsafe fn step<L: Simd>(&self, simd: L, c: &Constants<L::V>, x: usize, to: [*mut u8; AT_ONCE]) {
        let mut sums = [c.add; 2];
        let mut rows = [sums; MOST_ROWS];
        // Written out, since the compiler leaves a loop of so many rows as it is.
        macro_rules! rows {
            ($($k:literal)*) => {
                $(if $k < AT_ONCE + SIZE - 1 {
                    // SAFETY: rows have a margin of TILE bytes on either side, and x + 4 LANES is at most
                    // what lies between.
                    rows[$k] = unsafe { Self::along(simd, c, self.from[$k].as_ptr().add(TILE + x)) };
                    for odd in 0..2 {
                        sums[odd] = simd.add_words(sums[odd], rows[$k][odd]);
                    }
                    if $k + 1 >= SIZE {
                        let row = $k + 1 - SIZE;
                        let [even, odd] = sums.map(|sum| simd.multiply_high_words(sum, c.factor));
                        let even = simd.shift_words_down(even, self.scale.down);
                        let odd = simd.and(simd.shift_words_up(odd, 8 - self.scale.down), c.high);
                        // SAFETY: 4 LANES bytes are writable at each of `to`.
                        unsafe { simd.store(to[row], simd.xor(even, odd)) };
                        for odd in 0..2 {
                            sums[odd] = simd.sub_words(sums[odd], rows[row][odd]);
                        }
                    }
                })*
            };
        }
        rows!(0 1 2 3 4 5 6 7 8 9 10 11);
    }

    /// Makes the samples near the ends again.
    fn mend(&mut self) {
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

impl<const SIZE: usize, const CHANNELS: usize> Work for Make<'_, SIZE, CHANNELS> {
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
        let mut to = [core::ptr::null_mut(); AT_ONCE];
        for row in 0..AT_ONCE {
            to[row] = self.out[row].as_mut_ptr();
        }
        let step = 4 * L::LANES;
        let whole = self.samples / step * step;
        for x in (0..whole).step_by(step) {
            // SAFETY: a step ends within the whole ones, and rows of the result have as many samples.
            unsafe { self.step(simd, &constants, x, to.map(|to| to.wrapping_add(x))) };
        }
        if whole < self.samples {
            let mut last = [[0_u8; TILE]; AT_ONCE];
            // SAFETY: the copies are a step long.
            unsafe {
                self.step(
                    simd,
                    &constants,
                    whole,
                    last.each_mut().map(|row| row.as_mut_ptr()),
                );
            };
            for row in 0..AT_ONCE {
                self.out[row][whole..].copy_from_slice(&last[row][..self.samples - whole]);
            }
        }
        self.mend();
    }
}
