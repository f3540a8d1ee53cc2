//! 3x3 masks on bytes that are symmetric both ways: Gaussians, sharpening, Laplacians, disks.
//!
//! A row's outer samples share a weight, and so do the outer rows. So a row of the picture gives two numbers
//! for each result, the sum of its outer samples and the middle one; these are multiplied by two pairs of
//! weights, one for an outer row and one for the middle row. Sums that fit 16 bits are made in words, twice
//! as many at a time. Bytes are read in place in the picture: no row is copied, and none is kept.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::folded::folded;
use super::taps::pack;
use crate::engine::cpu::rows::alpha::Source;
use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::plane_filter::{PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::prefetch::{NextRows, next_result, prefetch};
use crate::engine::cpu::rows::strip::{OutputRows, Strip};
use crate::engine::cpu::rows::words::sample::range;
use crate::engine::cpu::simd::scratch::{self, room};
use crate::engine::cpu::simd::vector::{Simd, TILE, Work};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, Kernel};
use crate::frame::{Layout, Plane};

/// One plane's part of a step with such a mask.
pub(in crate::engine::cpu) struct Symmetric3x3 {
    vectors: Vectors,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    mask: Mask,
}

/// The memory that a thread works in.
#[derive(Default)]
struct Scratch {
    /// A row outside the frame.
    outside: Vec<u8>,
    /// The last of the output rows, where the strip has no such rows.
    spare: Vec<u8>,
}

/// The weights, if they mirror themselves both ways and if sums are rounded half up and nothing else.
fn mask(kernel: &DirectKernel, channels: &[ChannelStep]) -> Option<Mask> {
    let q = <[i32; 9]>::try_from(&kernel.weights[..]).ok()?;
    let [corner, above, _, left, middle, ..] = q;
    let is_mirrored = kernel.width == 3 && [q[2], q[6], q[8]] == [corner; 3] && (q[7], q[5]) == (above, left);
    let shift = kernel
        .division
        .factor()
        .is_none()
        .then(|| kernel.division.shift())?;
    let half = (1 << shift) >> 1;
    let rounds = |c: &ChannelStep| c.convolved().is_none_or(|c| (c.low, c.high) == (half, 0));
    // Halves take a shift of one at least.
    let more = u32::from(shift == 0);
    let weights = [corner, above, left, middle].map(|q| q << more);
    let fits = weights.iter().all(|&q| i16::try_from(q).is_ok());
    let all: Vec<i32> = kernel.weights.iter().map(|q| q << more).collect();
    let (least, most) = range(&all, (0, 255));
    (is_mirrored && fits && channels.iter().all(rounds)).then(|| Mask {
        outer: pack(weights[0], weights[1]),
        middle: pack(weights[2], weights[3]),
        shift: shift + more,
        // Words are rounded as a product with what shifts 15 bits out.
        in_words: least >= i16::MIN.into() && most <= i16::MAX.into() && shift + more < 15,
    })
}

/// Multiply-adds that a sample takes, less than with any line of `fir`: bytes are taken where they lie.
const COST: f64 = 1.5;

impl PlaneFilter for Symmetric3x3 {
    /// `None` if nothing is convolved in the plane, or if the mask or the samples are others.
    fn new(part: &PlanePart<'_>, _: Option<&Symmetric3x3>) -> Option<Symmetric3x3> {
        let (step, format, channels) = (part.step, part.format, part.channels());
        let Kernel::Direct(kernel) = &step.kernel else {
            return None;
        };
        let is_convolved = channels.iter().any(|c| c.convolved().is_some());
        if part.premultiplied || format.depth() != 8 || !is_convolved || channels.len() > MOST_CHANNELS {
            return None;
        }
        Some(Symmetric3x3 {
            vectors: part.vectors?,
            border: RowBorder::new(step.border, format, channels, (kernel.width, false)),
            mask: match folded(kernel, channels, format) {
                Some((kernel, channels)) => mask(&kernel, &channels)?,
                None => mask(kernel, channels)?,
            },
            channels: channels.to_vec(),
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * COST
    }

    fn plan(&self, _: &Plane) -> String {
        let sums = if self.mask.in_words { 16 } else { 32 };
        format!("symmetric 3x3: {ROWS} rows at a time, bytes where they lie, {sums}-bit sums")
    }

    fn filter(
        &self,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let scratch = scratch.of();
        with_simd!(self.vectors, simd => self.convolve_with(simd, source, layout, strip, scratch));
    }
}

impl Symmetric3x3 {
    fn convolve_with<L: Simd>(
        &self,
        simd: L,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let samples = plane.width * plane.channels;
        let input = PlaneRows::new(
            source,
            strip,
            (&self.channels, &self.border),
            &mut scratch.outside,
        );
        let ends = Ends {
            pixels: self.border.neighbours(plane.width),
            constant: input.outside(),
        };
        room(&mut scratch.spare, (ROWS - 1) * samples);
        for first in (0..strip.rows).step_by(ROWS) {
            let made = ROWS.min(strip.rows - first);
            // What only rows beyond the strip would need may be any row.
            let rows = std::array::from_fn(|k| input.in_place((first + k.min(made + 1)) as i64 - 1));
            let place = |k: usize| (first + k) * plane.stride;
            let (now, later) = next_result(strip.bytes, place(made), ROWS * plane.stride);
            let out = OutputRows {
                bytes: &mut now[place(0)..place(made - 1) + samples],
                stride: plane.stride,
                row_bytes: samples,
                spare: &mut scratch.spare,
            };
            let next = [input.ahead((first + ROWS + 1) as i64, ROWS), later];
            make(simd, self.mask, plane.channels, (rows, next), ends, out.split());
            for k in 0..made {
                input.complete(first + k, &mut strip.bytes[place(k)..place(k) + samples]);
            }
        }
    }
}

/// Output rows that are made at a time.
pub(super) const ROWS: usize = 4;

/// Rows that these are made from.
pub(super) const READ: usize = ROWS + 2;

/// Components of a pixel, at most.
pub(in crate::engine::cpu) const MOST_CHANNELS: usize = 4;

/// A mask: results are `(sum + half) >> shift`, clamped.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Mask {
    /// What a row above or below weighs: the sum of its outer samples in the low half, its middle one in the
    /// high one.
    pub(super) outer: i32,
    /// The same of the row in the middle.
    pub(in crate::engine::cpu) middle: i32,
    /// At least 1.
    pub(in crate::engine::cpu) shift: u32,
    /// True if words hold sums.
    pub(super) in_words: bool,
}

/// The apron of rows.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// Which pixel comes before a row's first one, and which after its last one; `None` for the constant.
    pub(super) pixels: [Option<usize>; 2],
    /// Samples of the constant, those of a pixel at least.
    pub(super) constant: &'a [u8],
}

impl<'a> Ends<'a> {
    /// The samples beside the first and the last one of a row of pixels of `C` components.
    #[inline(always)]
    fn of<const C: usize>(&self, row: &'a [u8]) -> [&'a [u8]; 2] {
        let [before, after] = self.pixels;
        [self.samples::<C>(row, before), self.samples::<C>(row, after)]
    }

    #[inline(always)]
    fn samples<const C: usize>(&self, row: &'a [u8], pixel: Option<usize>) -> &'a [u8] {
        match pixel {
            Some(x) => &row[x * C..x * C + C],
            None => &self.constant[..C],
        }
    }
}

/// Makes [`ROWS`] rows of the result from the row above them, their own ones and the row below them, all as
/// long. What comes `next` is prefetched meanwhile.
fn make<L: Simd>(
    simd: L,
    mask: Mask,
    channels: usize,
    (rows, next): ([&[u8]; READ], NextRows<'_>),
    ends: Ends<'_>,
    out: [&mut [u8]; ROWS],
) {
    let samples = rows[0].len();
    assert!(rows.iter().all(|row| row.len() == samples));
    assert!(out.iter().all(|row| row.len() == samples));
    match channels {
        1 => simd.enter(Make::<1> {
            mask,
            rows,
            next,
            ends,
            out,
        }),
        2 => simd.enter(Make::<2> {
            mask,
            rows,
            next,
            ends,
            out,
        }),
        3 => simd.enter(Make::<3> {
            mask,
            rows,
            next,
            ends,
            out,
        }),
        4 => simd.enter(Make::<4> {
            mask,
            rows,
            next,
            ends,
            out,
        }),
        _ => unreachable!("{channels} components"),
    }
}

/// What [`make`] has checked, for pixels of `C` components.
struct Make<'a, const C: usize> {
    mask: Mask,
    rows: [&'a [u8]; READ],
    next: NextRows<'a>,
    ends: Ends<'a>,
    out: [&'a mut [u8]; ROWS],
}

/// The mask in registers.
#[derive(Clone, Copy)]
struct Constants<T> {
    outer: T,
    middle: T,
    /// The low byte of each word.
    low: T,
    /// What sums begin with, and how far they are shifted down.
    start: T,
    shift: T,
    /// What halves words and rounds them up.
    half: T,
}

impl<T: Copy> Constants<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, mask: Mask) -> Constants<T> {
        let both = |word: i32| simd.splat(word << 16 | word);
        let start = if L::FUSED_MULTIPLY_ADD {
            1 << (mask.shift - 1)
        } else {
            0
        };
        Constants {
            outer: simd.splat(mask.outer),
            middle: simd.splat(mask.middle),
            low: both(255),
            start: simd.splat(start),
            shift: simd.splat(mask.shift as i32 - i32::from(!L::FUSED_MULTIPLY_ADD)),
            half: both(1 << 14),
        }
    }
}

/// Sums at even places and at odd ones, each in two vectors as [`Simd::interleave_words`] leaves them.
type Sums<T> = [[T; 2]; 2];

/// The outer samples' sums and the middle samples of a row, at even places and at odd ones.
///
/// # Safety
/// A step's bytes are readable at `from`, and `C` before and after them.
#[inline(always)]
unsafe fn words_of<L: Simd, const C: usize>(simd: L, low: L::V, from: *const u8) -> [[L::V; 2]; 2] {
    // SAFETY: 4 LANES bytes are readable from C bytes before `from` on, from there, and from C bytes after
    // it.
    let words = unsafe { [simd.load(from.sub(C)), simd.load(from), simd.load(from.add(C))] };
    // No closures: they would not be compiled for the set.
    let mut apart = [[low; 2]; 3];
    for k in 0..3 {
        apart[k] = [simd.and(words[k], low), simd.shift_words_down(words[k], 8)];
    }
    let [left, mut middle, right] = apart;
    if C == 1 {
        // Either neighbour's bytes at the other places.
        middle = [left[1], right[0]];
    }
    [
        [simd.add_words(left[0], right[0]), middle[0]],
        [simd.add_words(left[1], right[1]), middle[1]],
    ]
}

/// The mask in registers, for sums in words.
#[derive(Clone, Copy)]
struct WordConstants<T> {
    /// What outer samples and the middle one of a row above or below weigh.
    outer: [T; 2],
    /// The same of the row in the middle.
    middle: [T; 2],
    low: T,
    /// What shifts words down and rounds them.
    factor: T,
}

impl<T: Copy> WordConstants<T> {
    #[inline(always)]
    fn new<L: Simd<V = T>>(simd: L, mask: Mask) -> WordConstants<T> {
        let both = |word: i32| simd.splat(word << 16 | word & 0xFFFF);
        let two = |pair: i32| [both(pair), both(pair >> 16)];
        WordConstants {
            outer: two(mask.outer),
            middle: two(mask.middle),
            low: both(255),
            factor: both(1 << (15 - mask.shift.min(15))),
        }
    }
}

/// The same as [`step`] with sums in words.
///
/// # Safety
/// As there.
#[inline(always)]
unsafe fn step_in_words<L: Simd, const C: usize>(
    simd: L,
    constants: &WordConstants<L::V>,
    from: [*const u8; READ],
    to: [*mut u8; ROWS],
    x: usize,
) {
    let &WordConstants {
        outer,
        middle,
        low,
        factor,
    } = constants;
    // At even places and at odd ones: of the row of the result that the row read is the last one of, and of
    // the next one.
    let mut sums = [[low; 2]; 2];
    for y in 0..READ {
        // SAFETY: 4 LANES bytes, and C before and after them, are readable at x in each row of `from`.
        let row = unsafe { words_of::<L, C>(simd, low, from[y].add(x)) };
        let mut words = [low; 2];
        for odd in 0..2 {
            let [sides, centre] = row[odd];
            let beside = simd.add_words(
                simd.multiply_words(sides, outer[0]),
                simd.multiply_words(centre, outer[1]),
            );
            let between = simd.add_words(
                simd.multiply_words(sides, middle[0]),
                simd.multiply_words(centre, middle[1]),
            );
            let last = simd.add_words(sums[0][odd], beside);
            sums[0][odd] = simd.add_words(sums[1][odd], between);
            sums[1][odd] = beside;
            words[odd] = simd.multiply_round_words(last, factor);
        }
        if let Some(row) = y.checked_sub(2) {
            // SAFETY: 4 LANES bytes are writable at x in each row of `to`.
            unsafe { simd.store_even_odd(words, to[row].add(x)) };
        }
    }
}

/// Makes a step of each row from place `x` on.
///
/// # Safety
/// From there on a step's bytes are readable in `from`, and `C` before and after them, and a step's bytes are
/// writable in `to`.
#[inline(always)]
unsafe fn step<L: Simd, const C: usize>(
    simd: L,
    constants: &Constants<L::V>,
    from: [*const u8; READ],
    to: [*mut u8; ROWS],
    x: usize,
) {
    let &Constants {
        outer,
        middle,
        low,
        start,
        shift,
        half,
    } = constants;
    // Of the row of the result that the row read is the last one of, and of the next one.
    let mut sums: [Sums<L::V>; 2] = [[[start; 2]; 2]; 2];
    for y in 0..READ {
        // SAFETY: 4 LANES bytes, and C before and after them, are readable at x in each row of `from`.
        let row = unsafe { words_of::<L, C>(simd, low, from[y].add(x)) };
        let pairs = [
            simd.interleave_words(row[0][0], row[0][1]),
            simd.interleave_words(row[1][0], row[1][1]),
        ];
        let mut words = [start; 2];
        for odd in 0..2 {
            let mut done = [start; 2];
            for k in 0..2 {
                let pair = pairs[odd][k];
                let [last, next, first] = if L::FUSED_MULTIPLY_ADD {
                    [
                        simd.multiply_add(sums[0][odd][k], pair, outer),
                        simd.multiply_add(sums[1][odd][k], pair, middle),
                        simd.multiply_add(start, pair, outer),
                    ]
                } else {
                    let weighted = simd.multiply_add(simd.splat(0), pair, outer);
                    [
                        simd.add(sums[0][odd][k], weighted),
                        simd.multiply_add(sums[1][odd][k], pair, middle),
                        weighted,
                    ]
                };
                sums[0][odd][k] = next;
                sums[1][odd][k] = first;
                done[k] = simd.shift_down(last, shift);
            }
            words[odd] = simd.pack_words(done[0], done[1]);
            if !L::FUSED_MULTIPLY_ADD {
                words[odd] = simd.multiply_round_words(words[odd], half);
            }
        }
        if let Some(row) = y.checked_sub(2) {
            // SAFETY: 4 LANES bytes are writable at x in each row of `to`.
            unsafe { simd.store_even_odd(words, to[row].add(x)) };
        }
    }
}

/// The sums of one width, with what they take in registers.
trait Step<V: Copy>: Copy {
    /// Makes a step of each row from place `x` on.
    ///
    /// # Safety
    /// From there on a step's bytes are readable in `from`, and `C` before and after them, and a step's bytes
    /// are writable in `to`.
    unsafe fn make<L: Simd<V = V>, const C: usize>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        x: usize,
    );
}

impl<V: Copy> Step<V> for Constants<V> {
    #[inline(always)]
    unsafe fn make<L: Simd<V = V>, const C: usize>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        x: usize,
    ) {
        // SAFETY: the caller's.
        unsafe { step::<L, C>(simd, self, from, to, x) };
    }
}

impl<V: Copy> Step<V> for WordConstants<V> {
    #[inline(always)]
    unsafe fn make<L: Simd<V = V>, const C: usize>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        x: usize,
    ) {
        // SAFETY: the caller's.
        unsafe { step_in_words::<L, C>(simd, self, from, to, x) };
    }
}

impl<const C: usize> Make<'_, C> {
    /// Makes up to a step's samples from place `x` on, from copies of the rows with their aprons.
    #[inline(always)]
    fn step_apart<L: Simd>(&mut self, simd: L, constants: &impl Step<L::V>, x: usize) {
        let most = 4 * L::LANES;
        let made = most.min(self.rows[0].len() - x);
        let mut copies = [[0_u8; TILE + 2 * MOST_CHANNELS]; READ];
        for (copy, row) in copies.iter_mut().zip(&self.rows) {
            let [before, after] = self.ends.of::<C>(row);
            match x {
                0 => copy[..C].copy_from_slice(before),
                _ => copy[..C].copy_from_slice(&row[x - C..x]),
            }
            if made == most {
                // SAFETY: a step ends within the row, and there is room for one.
                unsafe { simd.store(copy[C..].as_mut_ptr(), simd.load(row[x..].as_ptr())) };
            } else {
                copy[C..C + made].copy_from_slice(&row[x..]);
            }
            let beyond = row[x + made..].iter().chain(after);
            copy[C + made..][..C]
                .iter_mut()
                .zip(beyond)
                .for_each(|(to, from)| *to = *from);
        }
        let from = copies.each_ref().map(|copy| copy[C..].as_ptr());
        let mut last = [[0_u8; TILE]; ROWS];
        let is_whole = made == most;
        let to = if is_whole {
            self.out.each_mut().map(|row| row[x..].as_mut_ptr())
        } else {
            last.each_mut().map(|row| row.as_mut_ptr())
        };
        // SAFETY: copies hold a step and C more on either side; a whole step ends within the rows, and others
        // go where there is room for one.
        unsafe { constants.make::<L, C>(simd, from, to, 0) };
        if !is_whole {
            for (row, last) in self.out.iter_mut().zip(&last) {
                row[x..].copy_from_slice(&last[..made]);
            }
        }
    }
}

impl<const C: usize> Make<'_, C> {
    #[inline(always)]
    fn with<L: Simd>(mut self, simd: L, constants: impl Step<L::V>) {
        let (samples, size) = (self.rows[0].len(), 4 * L::LANES);
        self.step_apart(simd, &constants, 0);
        let from = self.rows.map(<[u8]>::as_ptr);
        let to = self.out.each_mut().map(|row| row.as_mut_ptr());
        let mut x = size;
        while x + size + C <= samples {
            prefetch(simd, self.next, ROWS * x, ROWS * size);
            // SAFETY: C bytes before the step and C after it are within the rows, which `make` has found as
            // long as each other.
            unsafe {
                constants.make::<L, C>(simd, from, to, x);
            }
            x += size;
        }
        while x < samples {
            self.step_apart(simd, &constants, x);
            x += size;
        }
    }
}

impl<const C: usize> Work for Make<'_, C> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let mask = self.mask;
        if mask.in_words {
            self.with(simd, WordConstants::new(simd, mask));
        } else {
            self.with(simd, Constants::new(simd, mask));
        }
    }
}
