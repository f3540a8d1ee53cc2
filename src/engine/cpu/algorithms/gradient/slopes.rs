//! Gradients by two 3x3 masks across each other, such as Sobel's, as separable sums of 16 bits.
//!
//! ```text
//! -c 0 c     1                  -c -s -c     -1
//! -s 0 s  =  .  x (-1 0 1)       0  0  0  =   0  x (c s c)        c: weight of the corners, 1 for Sobel
//! -c 0 c     .                   c  s  c      1                   s: weight of the sides' middles, 2
//!
//! row y+1      p p p p ..           samples as words, border filled
//!    | row pass
//! d2, t2       d = p[x+1] - p[x-1]                  differences
//!              t = c (p[x-1] + p[x+1]) + s p[x]     smoothed
//!    | column pass, with the lines d0 and t0 of row y-1, and d1 of row y
//! sums         c (d0 + d2) + s d1,   t2 - t0
//!    | root(x^2 + y^2)
//! row y        p p p p ..           d2 and t2 replace d0 and t0
//! ```
//!
//! Each row is differenced and smoothed once instead of three times, and both passes are one loop, so that
//! four lines are all that the first-level cache has to keep.
//!
//! Where sums need a bit or two more, such as Scharr's of 12 bits, they are saturated ([`SaturatedSlopes`]).
#![allow(unsafe_code)]

use super::integer_width::{Int16, Int32, IntegerWidth};
use super::pairs::{NumberSums, Pairs};
use super::root::WordRoot;
use super::store::{Levels, Step, StoreRow};
use crate::engine::cpu::rows::store::prefetch::NextRows;
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::CombinedKernel;

/// The weights of the corners and of the middles of sides. With `UNIT` corners have the weight 1.
#[derive(Clone, Copy)]
pub(super) struct Slopes<const UNIT: bool> {
    corner: i32,
    side: i32,
}

impl Slopes<false> {
    /// `None` for other masks, and for weights that take more than 16 bits.
    pub(super) fn new(kernel: &CombinedKernel) -> Option<Slopes<false>> {
        let [across, down] = &kernel.masks[..] else {
            return None;
        };
        let &[_, _, corner, _, _, side, ..] = &across[..] else {
            return None;
        };
        let (c, s) = (corner, side);
        let is_known =
            across[..] == [-c, 0, c, -s, 0, s, -c, 0, c] && down[..] == [-c, -s, -c, 0, 0, 0, c, s, c];
        let is_short = c.abs().max(s.abs()) <= i32::from(i16::MAX);
        (is_known && kernel.width == 3 && is_short).then_some(Slopes { corner, side })
    }

    /// The same, if corners have the weight 1.
    pub(super) fn unit(self) -> Option<Slopes<true>> {
        let Slopes { corner, side } = self;
        (corner == 1).then_some(Slopes { corner, side })
    }
}

/// Slopes in words.
pub(super) trait WordSlopes: Copy + Send + Sync + 'static {
    /// The row pass: the difference and the smoothed sample of the samples before, at and after a result.
    fn pass<L: Simd>(self, simd: L, samples: [L::V; 3]) -> [L::V; 2];

    /// The column pass: both masks' sums, of the differences of three rows and of the smoothed samples of the
    /// upper and the lower one.
    fn sums<L: Simd>(self, simd: L, differences: [L::V; 3], smoothed: [L::V; 2]) -> [L::V; 2];
}

impl<const UNIT: bool> Slopes<UNIT> {
    /// The weighted sum of a corner, a middle and the other corner.
    #[inline(always)]
    fn smooth<L: Simd>(self, simd: L, [first, middle, last]: [L::V; 3]) -> L::V {
        let mut corners = Int16::add(simd, first, last);
        if !UNIT {
            corners = Int16::times(simd, corners, self.corner);
        }
        Int16::add(simd, corners, Int16::times(simd, middle, self.side))
    }
}

impl<const UNIT: bool> WordSlopes for Slopes<UNIT> {
    #[inline(always)]
    fn pass<L: Simd>(self, simd: L, samples: [L::V; 3]) -> [L::V; 2] {
        let difference = Int16::sub(simd, samples[2], samples[0]);
        [difference, self.smooth(simd, samples)]
    }

    #[inline(always)]
    fn sums<L: Simd>(self, simd: L, differences: [L::V; 3], [above, below]: [L::V; 2]) -> [L::V; 2] {
        [self.smooth(simd, differences), Int16::sub(simd, below, above)]
    }
}

/// Slopes whose sums may need more than 16 bits, and are then replaced by `most` with their sign: the root of
/// one such sum alone is above the largest sample.
///
/// ```text
/// x   c (d0 + d2) + h d1 + h d1      h = s / 2: saturated additions of numbers with one sign saturate as
///                                    the sum of all does
/// t   c (p0 + p2) + s p1 - 2^15      16 bits without sign, less half of their range
/// y   t2 - t0                        saturated
/// ```
#[derive(Clone, Copy)]
pub(super) struct SaturatedSlopes {
    corner: i32,
    half_side: i32,
    most: i32,
}

impl SaturatedSlopes {
    /// `None` if words do not hold the parts of sums of samples up to `max_value`.
    pub(super) fn new(slopes: Slopes<false>, max_value: u32, most: i32) -> Option<SaturatedSlopes> {
        let Slopes { corner, side } = slopes;
        let holds = |weight: i32, end: i64| i64::from(weight) * i64::from(max_value) <= end;
        let words = i64::from(i16::MAX);
        let fits = corner > 0 && side > 0 && side % 2 == 0;
        let fits = fits && holds(2 * corner, words) && holds(side / 2, words);
        (fits && holds(2 * corner + side, i64::from(u16::MAX))).then_some(SaturatedSlopes {
            corner,
            half_side: side / 2,
            most,
        })
    }
}

impl WordSlopes for SaturatedSlopes {
    #[inline(always)]
    fn pass<L: Simd>(self, simd: L, samples: [L::V; 3]) -> [L::V; 2] {
        let [first, middle, last] = samples;
        let corners = Int16::times(simd, Int16::add(simd, first, last), self.corner);
        let side = Int16::times(simd, middle, 2 * self.half_side);
        let half_range = Int16::splat(simd, i32::from(i16::MIN));
        let smoothed = Int16::add(simd, Int16::add(simd, corners, half_range), side);
        [Int16::sub(simd, last, first), smoothed]
    }

    #[inline(always)]
    fn sums<L: Simd>(self, simd: L, [d0, d1, d2]: [L::V; 3], [above, below]: [L::V; 2]) -> [L::V; 2] {
        let corners = Int16::times(simd, Int16::add(simd, d0, d2), self.corner);
        let half = Int16::times(simd, d1, self.half_side);
        let x = simd.add_saturating_i16(simd.add_saturating_i16(corners, half), half);
        let y = simd.sub_saturating_i16(below, above);
        let (least, most) = (Int16::splat(simd, -self.most), Int16::splat(simd, self.most));
        [x, y].map(|sum| Int16::min(simd, Int16::max(simd, sum, least), most))
    }
}

/// In 32 bits the masks are not separated: sums are made from differences of the samples around a result, in
/// the order of [`RING`](crate::filter::RING).
impl NumberSums<8> for Slopes<false> {
    #[inline(always)]
    fn sums<L: Simd>(self, simd: L, p: Pairs<L::V, 8>) -> [L::V; 2] {
        let (corner, side) = (self.corner, self.side);
        let (u, v) = (p.differ(simd, 4, 0, corner), p.differ(simd, 2, 6, corner));
        let x = Int32::add(simd, Int32::add(simd, u, v), p.differ(simd, 3, 7, side));
        let y = Int32::add(simd, Int32::sub(simd, u, v), p.differ(simd, 5, 1, side));
        [x, y]
    }
}

/// The lines of a row, or their memory: differences and smoothed samples, as many as the row has samples,
/// rounded up to [`TILE`].
pub(super) type SlopeLines<'a> = [&'a mut [i16]; 2];

/// A loop over rows of samples as words. Rows begin and end with the apron, `pixel_stride` samples each, and
/// have as many samples between as lines have. Both are passed as a pair.
pub(super) trait SlopeRows: Send + Sync {
    /// Makes the lines of a row.
    fn pass(&self, samples: (&[i16], usize), lines: SlopeLines<'_>);

    /// Makes the result `out` of a row, and prefetches the rows of `next`. `samples` are of the row below,
    /// and `differences` of the row itself; `lines` are of the row above, and become those of the row below.
    fn make(
        &self,
        samples: (&[i16], usize),
        lines: SlopeLines<'_>,
        differences: &[i16],
        out: &mut [u8],
        next: NextRows<'_>,
    );

    /// The description of the roots.
    fn roots(&self) -> &'static str;
}

/// [`SlopeRows`] with a method of roots.
pub(super) struct SlopeLoop<S, R> {
    pub(super) vectors: Vectors,
    pub(super) slopes: S,
    pub(super) root: R,
    pub(super) levels: Levels,
}

impl<S: WordSlopes, R: WordRoot> SlopeRows for SlopeLoop<S, R> {
    fn pass(&self, (samples, pixel_stride): (&[i16], usize), lines: SlopeLines<'_>) {
        let row = PassRow {
            slopes: self.slopes,
            samples: beside(samples, pixel_stride, lines[0].len()),
            lines,
        };
        with_simd!(self.vectors, simd => simd.without_vnni().enter(row));
    }

    fn make(
        &self,
        (samples, pixel_stride): (&[i16], usize),
        lines: SlopeLines<'_>,
        differences: &[i16],
        out: &mut [u8],
        next: NextRows<'_>,
    ) {
        let [above, smoothed] = lines;
        let count = differences.len();
        assert!(
            out.len() / self.levels.bytes() <= count,
            "lines are as long as a row"
        );
        let steps = SlopeSteps {
            slopes: self.slopes,
            root: self.root,
            samples: beside(samples, pixel_stride, count),
            lines: [&mut above[..count], &mut smoothed[..count]],
            differences,
        };
        let row = StoreRow {
            steps,
            levels: self.levels,
            out,
            next,
        };
        with_simd!(self.vectors, simd => simd.without_vnni().enter(row));
    }

    fn roots(&self) -> &'static str {
        R::NAME
    }
}

/// The samples before, at and after each of `count` results.
fn beside(samples: &[i16], pixel_stride: usize, count: usize) -> [&[i16]; 3] {
    [0, pixel_stride, 2 * pixel_stride].map(|start| &samples[start..start + count])
}

/// Loads words `x` and following of each slice.
///
/// # Safety
/// Each has a vector from there on.
#[inline(always)]
unsafe fn load<L: Simd, const N: usize>(simd: L, slices: [&[i16]; N], x: usize) -> [L::V; N] {
    let mut words = [simd.splat(0); N];
    for n in 0..N {
        // SAFETY: the slice has a vector from `x` on.
        words[n] = unsafe { simd.load(slices[n].as_ptr().add(x)) };
    }
    words
}

/// The loop that makes a row's lines.
struct PassRow<'a, S> {
    slopes: S,
    samples: [&'a [i16]; 3],
    lines: SlopeLines<'a>,
}

impl<S: WordSlopes> IntLoop for PassRow<'_, S> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let [differences, smoothed] = self.lines;
        let words = 2 * L::LANES;
        let to = differences
            .chunks_exact_mut(words)
            .zip(smoothed.chunks_exact_mut(words));
        for (k, (difference, smooth)) in to.enumerate() {
            // SAFETY: samples are as many as differences, and every chunk has the words of a vector.
            unsafe {
                let [d, t] = self.slopes.pass(simd, load(simd, self.samples, k * words));
                simd.store(difference.as_mut_ptr(), d);
                simd.store(smooth.as_mut_ptr(), t);
            }
        }
    }
}

/// The steps of a row of the result. All slices have the same length, a multiple of [`TILE`] that is no less
/// than a row.
struct SlopeSteps<'a, S, R> {
    slopes: S,
    root: R,
    samples: [&'a [i16]; 3],
    lines: SlopeLines<'a>,
    differences: &'a [i16],
}

impl<S: WordSlopes, R: WordRoot> Step for SlopeSteps<'_, S, R> {
    type Integers = Int16;
    const ORDER: Order = Order::Plain;

    #[inline(always)]
    fn make<L: Simd>(&mut self, simd: L, x: usize) -> [L::V; 4] {
        let mut made = [simd.splat(0); 4];
        for k in 0..2 {
            let at = x + 2 * L::LANES * k;
            debug_assert!(
                at + 2 * L::LANES <= self.differences.len() && self.differences.len().is_multiple_of(TILE)
            );
            let [above, smoothed] = &mut self.lines;
            // SAFETY: steps begin within the row, and are a divisor of TILE, of which the slices' length is a
            // multiple: so a step ends within them, too.
            unsafe {
                let [d2, t2] = self.slopes.pass(simd, load(simd, self.samples, at));
                let [d0, d1, t0] = load(simd, [&**above, self.differences, &**smoothed], at);
                let sums = self.slopes.sums(simd, [d0, d1, d2], [t0, t2]);
                made[k] = self.root.of_words(simd, sums);
                simd.store(above.as_mut_ptr().add(at), d2);
                simd.store(smoothed.as_mut_ptr().add(at), t2);
            }
        }
        made
    }
}
