//! 3x3 masks on bytes, which are read in place in the picture: no row is copied, and none is kept.
//!
//! ```text
//! row y      a b c      terms of a row:   a + c, b    the outer weights are equal      Gaussians, sharpening
//! row y + 1  d e f                        c - a       they are opposite                Sobel's kind along x
//! row y + 2  g h i                        a, b, c     any others                       emboss
//!
//! result y = w0 (terms of row y) + w1 (terms of row y + 1) + w2 (terms of row y + 2)
//! ```
//!
//! Each row is read once for the three results that it is part of; where the first and the last row of the
//! mask are equal, their products are made once. Sums that fit 16 bits are made in words (`words.rs`),
//! others, of masks that are symmetric both ways, in numbers of 32 bits (`numbers.rs`).
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

mod numbers;
mod words;

use super::folded::folded;
use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::plane_filter::{PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::prefetch::{NextRows, next_result, prefetch};
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::words::sample::range;
use crate::engine::cpu::simd::scratch::{self, room};
use crate::engine::cpu::simd::vector::{Simd, TILE, Work};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, Kernel};
use crate::frame::{Layout, Plane};
use numbers::NumberConstants;
use words::{Difference, Each, Sum, Terms, WordConstants};

/// One plane's part of a step with such a mask.
pub(in crate::engine::cpu) struct Mask3x3 {
    vectors: Vectors,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    sums: Sums,
}

/// The memory that a thread works in.
#[derive(Default)]
struct Scratch {
    /// A row outside the frame.
    outside: Vec<u8>,
    /// The last of the output rows, where the strip has no such rows.
    spare: Vec<u8>,
}

/// How a mask's sums are made.
#[derive(Debug, Clone, Copy)]
enum Sums {
    Words(WordMask),
    Numbers(SymmetricMask),
}

/// A mask whose sums fit words: results are `((sum + half) >> shift) + high`, clamped.
#[derive(Debug, Clone, Copy)]
struct WordMask {
    rows: [[i16; 3]; 3],
    /// 1 to 14.
    shift: u32,
    high: i16,
}

/// A mask that is symmetric both ways: results are `(sum + half) >> shift`, clamped.
#[derive(Debug, Clone, Copy)]
struct SymmetricMask {
    /// The weights of the outer samples and of the middle one in the first and the last row.
    outer: [i16; 2],
    /// The same of the row in the middle.
    middle: [i16; 2],
    /// At least 1.
    shift: u32,
}

/// `None` for sums that neither makes.
fn sums(kernel: &DirectKernel, channels: &[ChannelStep]) -> Option<Sums> {
    if (kernel.width, kernel.height) != (3, 3) || kernel.division.factor().is_some() || kernel.long {
        return None;
    }
    let shift = kernel.division.shift();
    let half = (1 << shift) >> 1;
    let mut convolved = channels.iter().filter_map(ChannelStep::convolved);
    let high = convolved.next()?.high;
    let rounds = |c: &ChannelStep| c.convolved().is_none_or(|c| (c.low, c.high) == (half, high));
    if !channels.iter().all(rounds) {
        return None;
    }
    // Halves take a shift of one at least.
    let more = u32::from(shift == 0);
    let shift = shift + more;
    let weights: Vec<i32> = kernel.weights.iter().map(|q| q << more).collect();
    let (least, most) = range(&weights, (0, 255));
    let word = |q: i32| i16::try_from(q).ok();
    let [a, b, c, d, e, f, g, h, i] = <[i32; 9]>::try_from(weights).ok()?;
    // Words are rounded as a product with what shifts 15 bits out, and half the range is left for the bias.
    let words = i64::from(i16::MIN)..=i64::from(i16::MAX);
    if words.contains(&least) && words.contains(&most) && shift < 15 && high.unsigned_abs() < 1 << 14 {
        let row = |row: [i32; 3]| Some([word(row[0])?, word(row[1])?, word(row[2])?]);
        return Some(Sums::Words(WordMask {
            rows: [row([a, b, c])?, row([d, e, f])?, row([g, h, i])?],
            shift,
            high: high as i16,
        }));
    }
    let is_symmetric = [c, g, i] == [a; 3] && (d, h) == (f, b);
    (is_symmetric && high == 0).then_some(())?;
    Some(Sums::Numbers(SymmetricMask {
        outer: [word(a)?, word(b)?],
        middle: [word(d)?, word(e)?],
        shift,
    }))
}

/// Multiply-adds that a sample takes, less than with any line of `fir`: bytes are taken where they lie.
const COST: f64 = 1.5;

impl PlaneFilter for Mask3x3 {
    /// `None` if nothing is convolved in the plane, or if the mask or the samples are others.
    fn new(part: &PlanePart<'_>, _: Option<&Mask3x3>) -> Option<Mask3x3> {
        let (step, format, channels) = (part.step, part.format, part.channels());
        let Kernel::Direct(kernel) = &step.kernel else {
            return None;
        };
        let is_convolved = channels.iter().any(|c| c.convolved().is_some());
        if format.depth() != 8 || !is_convolved || channels.len() > MOST_CHANNELS {
            return None;
        }
        Some(Mask3x3 {
            vectors: part.vectors?,
            border: RowBorder::new(step.border, format, channels, (kernel.width, false)),
            sums: match folded(kernel, channels, format) {
                Some((kernel, channels)) => sums(&kernel, &channels)?,
                None => sums(kernel, channels)?,
            },
            channels: channels.to_vec(),
        })
    }

    fn cost(&self, plane: &Plane) -> f64 {
        samples(plane) * COST
    }

    fn plan(&self, _: &Plane) -> String {
        let bits = match self.sums {
            Sums::Words(_) => 16,
            Sums::Numbers(_) => 32,
        };
        format!("3x3: {ROWS} rows at a time, bytes where they lie, {bits}-bit sums")
    }

    fn filter(
        &self,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut scratch::Scratch,
    ) {
        let scratch = scratch.of();
        with_simd!(self.vectors, simd => self.convolve_with(simd, picture, layout, strip, scratch));
    }
}

impl Mask3x3 {
    fn convolve_with<L: Simd>(
        &self,
        simd: L,
        picture: Picture<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let samples = plane.width * plane.channels;
        let input = PlaneRows::new(
            picture,
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
            let rows = std::array::from_fn(|k| input.row((first + k.min(made + 1)) as i64 - 1));
            let place = |k: usize| (first + k) * plane.stride;
            let (now, later) = next_result(strip.bytes, place(made), ROWS * plane.stride);
            let out = OutputRows {
                bytes: &mut now[place(0)..place(made - 1) + samples],
                stride: plane.stride,
                row_bytes: samples,
                spare: &mut scratch.spare,
            };
            let next = [input.ahead((first + ROWS + 1) as i64, ROWS), later];
            make(simd, self.sums, plane.channels, (rows, next), ends, out.split());
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
    sums: Sums,
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
            sums,
            rows,
            next,
            ends,
            out,
        }),
        2 => simd.enter(Make::<2> {
            sums,
            rows,
            next,
            ends,
            out,
        }),
        3 => simd.enter(Make::<3> {
            sums,
            rows,
            next,
            ends,
            out,
        }),
        4 => simd.enter(Make::<4> {
            sums,
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
    sums: Sums,
    rows: [&'a [u8]; READ],
    next: NextRows<'a>,
    ends: Ends<'a>,
    out: [&'a mut [u8]; ROWS],
}

/// A row's samples left of the results at even places, under them and right of them, and the same at odd
/// places.
///
/// # Safety
/// A step's bytes are readable at `from`, and `C` before and after them.
#[inline(always)]
unsafe fn samples_of<L: Simd, const C: usize>(simd: L, low: L::V, from: *const u8) -> [[L::V; 3]; 2] {
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
    [[left[0], middle[0], right[0]], [left[1], middle[1], right[1]]]
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

impl<const C: usize> Make<'_, C> {
    #[inline(always)]
    fn with_terms<L: Simd, R: Terms>(self, simd: L, mask: WordMask) {
        if mask.rows[0] == mask.rows[2] {
            self.with(simd, WordConstants::<_, R, true>::new(simd, mask));
        } else {
            self.with(simd, WordConstants::<_, R, false>::new(simd, mask));
        }
    }
}

impl<const C: usize> Work for Make<'_, C> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        match self.sums {
            Sums::Numbers(mask) => self.with(simd, NumberConstants::new(simd, mask)),
            Sums::Words(mask) if Sum::<false>::suit(&mask) => self.with_terms::<L, Sum<false>>(simd, mask),
            Sums::Words(mask) if Sum::<true>::suit(&mask) => self.with_terms::<L, Sum<true>>(simd, mask),
            Sums::Words(mask) if Difference::suit(&mask) => self.with_terms::<L, Difference>(simd, mask),
            Sums::Words(mask) => self.with_terms::<L, Each>(simd, mask),
        }
    }
}
