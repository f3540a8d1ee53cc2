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
    /// The samples beside the first and the last one of a row of pixels of so many `channels`.
    fn of(&self, row: &'a [u8], channels: usize) -> [&'a [u8]; 2] {
        self.pixels.map(|pixel| match pixel {
            Some(x) => &row[x * channels..][..channels],
            None => &self.constant[..channels],
        })
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
    let rows = Make {
        channels,
        rows,
        next,
        ends,
        out,
    };
    assert!((1..=MOST_CHANNELS).contains(&channels));
    match (sums, channels) {
        (Sums::Words(mask), 1) => simd.unfused().enter(Rows::<_, true>(mask, rows)),
        (Sums::Words(mask), _) => simd.unfused().enter(Rows::<_, false>(mask, rows)),
        (Sums::Numbers(mask), 1) => simd.enter(Rows::<_, true>(mask, rows)),
        (Sums::Numbers(mask), _) => simd.enter(Rows::<_, false>(mask, rows)),
    }
}

/// What [`make`] has checked.
struct Make<'a> {
    channels: usize,
    rows: [&'a [u8]; READ],
    next: NextRows<'a>,
    ends: Ends<'a>,
    out: [&'a mut [u8]; ROWS],
}

/// Rows of one component if `IS_GRAY`, whose neighbours at odd places are those at even ones.
struct Rows<'a, M, const IS_GRAY: bool>(M, Make<'a>);

impl<M: Weighting, const IS_GRAY: bool> Work for Rows<'_, M, IS_GRAY> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let Rows(mask, rows) = self;
        mask.make::<L, IS_GRAY>(simd, rows);
    }
}

/// A mask, and the loops that make its sums.
trait Weighting {
    fn make<L: Simd, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>);
}

impl Weighting for SymmetricMask {
    #[inline(always)]
    fn make<L: Simd, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>) {
        rows.with::<L, IS_GRAY>(simd, NumberConstants::new(simd, self));
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
    fn of_terms<L: Simd, R: Terms, const IS_GRAY: bool>(self, simd: L, rows: Make<'_>) {
        if self.rows[0] == self.rows[2] {
            rows.with::<L, IS_GRAY>(simd, WordConstants::<_, R, true>::new(simd, self));
        } else {
            rows.with::<L, IS_GRAY>(simd, WordConstants::<_, R, false>::new(simd, self));
        }
    }
}

/// Places in a row: of the left neighbours of a step's results, of these, and of the right neighbours.
type Places = [usize; 3];

/// A row's samples left of the results at even places, under them and right of them, and the same at odd
/// places; `IS_GRAY` if neighbours are next to each other.
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
    // No closures: they would not be compiled for the set.
    let mut apart = [[low; 2]; 3];
    for k in 0..3 {
        apart[k] = [simd.and(words[k], low), simd.shift_words_down(words[k], 8)];
    }
    let [left, mut middle, right] = apart;
    if IS_GRAY {
        // Either neighbour's bytes at the other places.
        middle = [left[1], right[0]];
    }
    [[left[0], middle[0], right[0]], [left[1], middle[1], right[1]]]
}

/// The sums of one width, with what they take in registers.
trait Step<V: Copy>: Copy {
    /// Makes a step of each row.
    ///
    /// # Safety
    /// A step's bytes are readable from each place in the rows of `from` on, and writable from the middle one
    /// in those of `to`.
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
    /// Copies up to a step's samples of each row from place `x` on, and a pixel before and after them.
    #[inline(always)]
    fn copy<L: Simd>(&self, simd: L, channels: usize, x: usize, copies: &mut Copies) {
        let size = 4 * L::LANES;
        for k in 0..READ {
            let (row, copy) = (self.rows[k], &mut copies[k]);
            let [before, after] = self.ends.of(row, channels);
            let end = row.len().min(x + size);
            if end == x + size {
                // SAFETY: a step ends within the row, and the copy has room for a pixel and a step.
                unsafe { simd.store(copy[channels..].as_mut_ptr(), simd.load(row[x..].as_ptr())) };
            } else {
                copy[channels..][..end - x].copy_from_slice(&row[x..]);
            }
            // Pixels are too small to be worth a call that copies them.
            for c in 0..channels {
                copy[c] = if x == 0 { before[c] } else { row[x - channels + c] };
                copy[channels + end - x + c] = match row.get(end + c) {
                    Some(&sample) => sample,
                    None => after[end + c - row.len()],
                };
            }
        }
    }

    /// Makes all samples. Steps at either end of the rows read copies, and one that ends within a row writes
    /// elsewhere. One loop, compiled once, for these and for those between them: the step is most of its
    /// code.
    #[inline(always)]
    fn with<L: Simd, const IS_GRAY: bool>(mut self, simd: L, constants: impl Step<L::V>) {
        let (samples, size) = (self.rows[0].len(), 4 * L::LANES);
        let channels = if IS_GRAY { 1 } else { self.channels };
        let mut copies: Copies = [[0; TILE + 2 * MOST_CHANNELS]; READ];
        let mut last = [[0_u8; TILE]; ROWS];
        let mut x = 0;
        while x < samples {
            let mut from = self.rows.map(<[u8]>::as_ptr);
            let mut to = self.out.each_mut().map(|row| row.as_mut_ptr());
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
                // SAFETY: a step and `channels` bytes before and after it are within the rows, or in copies
                // that hold as many; it ends within the results, or goes where there is room for one.
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
