//! 3x3 masks on 8-bit samples, which are read in place in the picture: no row is copied or kept.
//!
//! ```text
//! row y      a b c      terms of a row:   a + c, b    the outer weights are equal      Gaussians, sharpening
//! row y + 1  d e f                        c - a       they are opposite                Sobel along x
//! row y + 2  g h i                        a, b, c     any others                       emboss
//!
//! result y = w0 (terms of row y) + w1 (terms of row y + 1) + w2 (terms of row y + 2)
//! ```
//!
//! Each row is read once for the three result rows that it contributes to. If the first and the last row of
//! the mask are equal, their products are computed once. Sums that fit 16 bits are computed in words
//! (`sums_16.rs`), others in 32 bits, for masks that are symmetric both ways (`sums_32.rs`).
#![allow(unsafe_code)]

mod sums_16;
mod sums_32;

use super::folded::folded;
use crate::engine::cpu::rows::border::RowBorder;
use crate::engine::cpu::rows::plane_filter::{AlgorithmPlan, PlaneFilter, PlanePart, samples};
use crate::engine::cpu::rows::plane_rows::PlaneRows;
use crate::engine::cpu::rows::store::prefetch::{NextRows, next_result, prefetch};
use crate::engine::cpu::rows::store::row_pointers;
use crate::engine::cpu::rows::strip::{OutputRows, Picture, Strip};
use crate::engine::cpu::rows::words::sample::range;
use crate::engine::cpu::simd::scratch::{self, room};
use crate::engine::cpu::simd::vector::{IntLoop, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{ChannelStep, DirectKernel, Kernel};
use crate::frame::{Layout, Plane};
use sums_16::{Constants16, Difference, Each, Sum, Terms};
use sums_32::Constants32;

/// One plane's part of a step with a 3x3 mask.
pub(in crate::engine::cpu) struct Mask3x3 {
    vectors: Vectors,
    border: RowBorder,
    channels: Vec<ChannelStep>,
    sums: Sums,
}

/// Scratch memory of a thread.
#[derive(Default)]
struct MaskScratch {
    /// A stored row of the border's constant.
    outside: Vec<u8>,
    /// Output rows that the strip does not have.
    spare: Vec<u8>,
}

/// How a mask's sums are computed.
#[derive(Debug, Clone, Copy)]
enum Sums {
    /// In 16 bits.
    Bits16(WordMask),
    /// In 32 bits.
    Bits32(SymmetricMask),
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

/// The way to compute the sums of a mask; `None` if neither can.
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
    // Rounding needs a shift of at least 1.
    let more = u32::from(shift == 0);
    let shift = shift + more;
    let weights: Vec<i32> = kernel.weights.iter().map(|q| q << more).collect();
    let (least, most) = range(&weights, (0, 255));
    let word = |q: i32| i16::try_from(q).ok();
    let [a, b, c, d, e, f, g, h, i] = <[i32; 9]>::try_from(weights).ok()?;
    // `pmulhrsw` rounds words for shifts up to 14; a bias may take half the range of words.
    let words = i64::from(i16::MIN)..=i64::from(i16::MAX);
    if words.contains(&least) && words.contains(&most) && shift < 15 && high.unsigned_abs() < 1 << 14 {
        let row = |row: [i32; 3]| Some([word(row[0])?, word(row[1])?, word(row[2])?]);
        return Some(Sums::Bits16(WordMask {
            rows: [row([a, b, c])?, row([d, e, f])?, row([g, h, i])?],
            shift,
            high: high as i16,
        }));
    }
    let is_symmetric = [c, g, i] == [a; 3] && (d, h) == (f, b);
    (is_symmetric && high == 0).then_some(())?;
    Some(Sums::Bits32(SymmetricMask {
        outer: [word(a)?, word(b)?],
        middle: [word(d)?, word(e)?],
        shift,
    }))
}

/// Cost of a sample in multiply-adds: less than with the lines of `fir`, as bytes are read in place.
const COST: f64 = 1.5;

impl PlaneFilter for Mask3x3 {
    /// `None` if nothing is convolved in the plane, for other masks, and for samples of more than 8 bits.
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

    fn plan(&self, _: &Plane) -> AlgorithmPlan {
        let bits = match self.sums {
            Sums::Bits16(_) => 16,
            Sums::Bits32(_) => 32,
        };
        AlgorithmPlan::new(
            "3x3",
            format_args!("{ROWS} rows at a time, bytes in place, {bits}-bit sums"),
        )
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
        scratch: &mut MaskScratch,
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
            // Rows that only missing output rows would read may be any.
            let rows = std::array::from_fn(|k| input.row((first + k.min(made + 1)) as i64 - 1));
            let place = |k: usize| (first + k) * plane.stride;
            let (now, later) = next_result(strip.bytes, place(made), ROWS, plane.stride);
            let out = OutputRows {
                bytes: &mut now[place(0)..place(made - 1) + samples],
                stride: plane.stride,
                row_bytes: samples,
                spare: &mut scratch.spare,
            };
            let next = [input.ahead((first + ROWS + 1) as i64, ROWS), later];
            make(simd, self.sums, plane.channels, (rows, next), ends, out.split());
            for k in 0..made {
                input.fill_unconvolved_channels(first + k, &mut strip.bytes[place(k)..place(k) + samples]);
            }
        }
    }
}

/// Output rows that are made at a time.
pub(super) const ROWS: usize = 4;

/// Input rows of [`ROWS`] output rows.
pub(super) const READ: usize = ROWS + 2;

/// Most components of a pixel.
pub(in crate::engine::cpu) const MOST_CHANNELS: usize = 4;

/// The apron of rows: one pixel at each end.
#[derive(Clone, Copy)]
pub(super) struct Ends<'a> {
    /// The pixels of a row that the border puts before its first and after its last one; `None` for the
    /// constant.
    pub(super) pixels: [Option<usize>; 2],
    /// A pixel or more of the border's constant.
    pub(super) constant: &'a [u8],
}

impl<'a> Ends<'a> {
    /// The pixels before the first and after the last one of a row of pixels of `channels` samples.
    fn of(&self, row: &'a [u8], channels: usize) -> [&'a [u8]; 2] {
        self.pixels.map(|pixel| match pixel {
            Some(x) => &row[x * channels..][..channels],
            None => &self.constant[..channels],
        })
    }
}

/// Makes [`ROWS`] rows of the result from [`READ`] rows of the same length, and prefetches the rows of
/// `next`.
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
    let rows = Make {
        channels,
        rows,
        next,
        ends,
        out,
    };
    assert!((1..=MOST_CHANNELS).contains(&channels));
    match (sums, channels) {
        (Sums::Bits16(mask), 1) => simd.without_vnni().enter(Rows::<_, true>(mask, rows)),
        (Sums::Bits16(mask), _) => simd.without_vnni().enter(Rows::<_, false>(mask, rows)),
        (Sums::Bits32(mask), 1) => simd.enter(Rows::<_, true>(mask, rows)),
        (Sums::Bits32(mask), _) => simd.enter(Rows::<_, false>(mask, rows)),
    }
}

/// The arguments of [`make`], which has checked them.
struct Make<'a> {
    channels: usize,
    rows: [&'a [u8]; READ],
    next: NextRows<'a>,
    ends: Ends<'a>,
    out: [&'a mut [u8]; ROWS],
}

/// The loop of [`make`]. `IS_GRAY`: rows have one component, so that samples at even places are the
/// neighbours of those at odd places.
struct Rows<'a, M, const IS_GRAY: bool>(M, Make<'a>);

impl<M: Weighting, const IS_GRAY: bool> IntLoop for Rows<'_, M, IS_GRAY> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Rows(mask, rows) = self;
        mask.make::<L, IS_GRAY>(simd, rows);
    }
}

/// A mask, and the loops that compute its sums.
trait Weighting {
    /// Makes the rows.
    fn make<L: Simd, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>);
}

impl Weighting for SymmetricMask {
    #[inline(always)]
    fn make<L: Simd, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>) {
        rows.with::<L, IS_GRAY>(simd, Constants32::new(simd, self));
    }
}

impl Weighting for WordMask {
    #[inline(always)]
    fn make<L: Simd, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>) {
        if Sum::<false>::suit(&self) {
            self.of_terms::<L, Sum<false>, IS_GRAY>(simd, rows);
        } else if Sum::<true>::suit(&self) {
            self.of_terms::<L, Sum<true>, IS_GRAY>(simd, rows);
        } else if Difference::suit(&self) {
            self.of_terms::<L, Difference, IS_GRAY>(simd, rows);
        } else {
            self.of_terms::<L, Each, IS_GRAY>(simd, rows);
        }
    }
}

impl WordMask {
    #[inline(always)]
    /// Makes the rows from the terms `R`.
    fn of_terms<L: Simd, R: Terms, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>) {
        if self.rows[0] == self.rows[2] {
            rows.with::<L, IS_GRAY>(simd, Constants16::<_, R, true>::new(simd, self));
        } else {
            rows.with::<L, IS_GRAY>(simd, Constants16::<_, R, false>::new(simd, self));
        }
    }
}

/// Indices in a row of a step's left neighbours, middle samples and right neighbours.
type Places = [usize; 3];

/// A row's left, middle and right samples for the results at even places, and for those at odd places.
/// `IS_GRAY`: neighbouring samples are neighbouring pixels.
///
/// # Safety
/// A step's bytes are readable from each of the places in `row` on.
#[inline(always)]
unsafe fn samples_of<L: Simd, const IS_GRAY: bool>(
    simd: L,
    low: L::V,
    row: *const u8,
    [left, middle, right]: Places,
) -> [[L::V; 3]; 2] {
    // SAFETY: 4 LANES bytes are readable at each place.
    let words = unsafe {
        [
            simd.load(row.wrapping_add(left)),
            simd.load(row.wrapping_add(middle)),
            simd.load(row.wrapping_add(right)),
        ]
    };
    // No closures: they would not be compiled with the set's instructions.
    let mut halves = [[low; 2]; 3];
    for k in 0..3 {
        halves[k] = [simd.and(words[k], low), simd.shift_right_u16(words[k], 8)];
    }
    let [left, mut middle, right] = halves;
    if IS_GRAY {
        // The middle samples are the neighbours' bytes at the other places.
        middle = [left[1], right[0]];
    }
    [[left[0], middle[0], right[0]], [left[1], middle[1], right[1]]]
}

/// One step of the loop, for sums of one width, with its constants in registers.
trait Step<V: Copy>: Copy {
    /// Makes a step of each row.
    ///
    /// # Safety
    /// A step's bytes are readable from each of `places` on in each row of `from`, and writable from the
    /// middle one on in each row of `to`.
    unsafe fn make<L: Simd<V = V>, const IS_GRAY: bool>(
        &self,
        simd: L,
        from: [*const u8; READ],
        to: [*mut u8; ROWS],
        places: Places,
    );
}

/// Copies of parts of the rows with their aprons.
type Copies = [[u8; TILE + 2 * MOST_CHANNELS]; READ];

impl Make<'_> {
    /// Copies up to a step's samples of each row from index `x` on, with a pixel before and after them.
    #[inline(always)]
    fn copy<L: Simd>(&self, simd: L, channels: usize, x: usize, copies: &mut Copies) {
        let size = 4 * L::LANES;
        for k in 0..READ {
            let (row, copy) = (self.rows[k], &mut copies[k]);
            let [before, after] = self.ends.of(row, channels);
            let end = row.len().min(x + size);
            if end == x + size {
                // SAFETY: the step ends within the row, and the copy has room for a pixel and a step.
                unsafe { simd.store(copy[channels..].as_mut_ptr(), simd.load(row[x..].as_ptr())) };
            } else {
                copy[channels..][..end - x].copy_from_slice(&row[x..]);
            }
            // A loop: pixels are too small for a call of `memcpy`.
            for c in 0..channels {
                copy[c] = if x == 0 { before[c] } else { row[x - channels + c] };
                copy[channels + end - x + c] = match row.get(end + c) {
                    Some(&sample) => sample,
                    None => after[end + c - row.len()],
                };
            }
        }
    }

    /// Makes all samples. Steps at either end of the rows read copies with an apron, and a partial step
    /// writes to `last`. One loop serves these and the steps between them: the step is most of the code, and
    /// is compiled once.
    #[inline(always)]
    fn with<L: Simd, const IS_GRAY: bool>(mut self, simd: L, constants: impl Step<L::V>) {
        let (samples, size) = (self.rows[0].len(), 4 * L::LANES);
        let channels = if IS_GRAY { 1 } else { self.channels };
        let mut copies: Copies = [[0; TILE + 2 * MOST_CHANNELS]; READ];
        let mut last = [[0_u8; TILE]; ROWS];
        let mut x = 0;
        while x < samples {
            let mut from = self.rows.map(<[u8]>::as_ptr);
            let mut to = row_pointers::starts(&mut self.out);
            let mut end = samples.saturating_sub(size + channels - 1);
            if x == 0 || x >= end {
                end = x + size;
                self.copy(simd, channels, x, &mut copies);
                for k in 0..READ {
                    from[k] = copies[k][channels..].as_ptr().wrapping_sub(x);
                }
                if end > samples {
                    for k in 0..ROWS {
                        to[k] = last[k].as_mut_ptr().wrapping_sub(x);
                    }
                }
            }
            while x < end {
                prefetch(simd, self.next, ROWS * x, ROWS * size);
                let places = [x.wrapping_sub(channels), x, x + channels];
                // SAFETY: a step and `channels` bytes before and after it lie within the rows, or in copies
                // that hold as many; a whole step ends within the result rows, and the partial one goes to
                // `last`, which has room for a step.
                unsafe { constants.make::<L, IS_GRAY>(simd, from, to, places) };
                x += size;
            }
        }
        let rest = samples % size;
        for (row, last) in self.out.iter_mut().zip(&last) {
            row[samples - rest..].copy_from_slice(&last[..rest]);
        }
    }
}
