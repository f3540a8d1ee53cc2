//! Vector loops that make rows of the result in registers, from the samples under the masks' weights to the
//! stored samples, with sums of 16 bits where these hold them, else of 32 (`lanes.rs`).
//!
//! ```text
//! p0 p1 p2      the samples around a result, clockwise from the upper left; vectors hold these samples for
//! p7 .. p3      as many results as they have words or numbers
//! p6 p5 p4
//!
//! slopes        u = corner (p4 - p0), v = corner (p2 - p6)       sobel, prewitt, scharr: corners serve both
//!               x = u + v + side (p3 - p7)                       masks
//!               y = u - v + side (p5 - p1)
//! differences   x = a - b, y = c - d                             roberts
//!               root(x^2 + y^2)
//!
//! the largest   p0 + p1 + max(p7, p2) ..       kirsch: two sums of three neighbours share a pair
//! absolute      |q0 a + q1 b + ..|             up to nine weights of any mask
//! ```
//!
//! Of x and y that need 32 bits the samples stay words, less 2^15: one multiply-add makes the difference of a
//! pair with its weight.
//!
//! `row.rs` makes all other rows.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::Width;
use super::lanes::{Lanes, Numbers, Words};
use super::root::{CORRECTED, Correction, HalfEstimated, Root, SingleRoot, WordRoot};
use super::sums::{Centred, Places, Sample, Tap, TapOffset};
use crate::engine::cpu::rows::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{CombinedKernel, Combining, Compass, Convolve, RING};
use crate::frame::PixelFormat;
use std::marker::PhantomData;

/// The vector loop of a plane, by the lines that it reads.
pub(super) enum InRegisters {
    /// Samples as words; sums of 16 bits.
    Words(Box<dyn Rows<i16>>),
    /// Samples less 2^15 as words; sums of 32 bits.
    Centred(Box<dyn Rows<Centred>>),
    /// Samples as numbers; sums of 32 bits.
    Numbers(Box<dyn Rows<i32>>),
}

/// What a loop is made for.
struct Planned<'a> {
    vectors: Vectors,
    kernel: &'a CombinedKernel,
    width: Width,
    format: PixelFormat,
    first: Convolve,
}

impl InRegisters {
    /// `None` if there is no loop: for sums of `width` 64, if a root or a level needs more bits, if channels
    /// differ in their constants, and for larger masks.
    pub(super) fn new(
        vectors: Vectors,
        (kernel, width): (&CombinedKernel, Width),
        (masks, compass): (&[Vec<Tap>], Option<Compass>),
        channels: &[Convolve],
        (format, root): (PixelFormat, Option<&Root>),
    ) -> Option<InRegisters> {
        let first = *channels.first()?;
        let known = |c: &Convolve| (c.low, c.high, c.level);
        if channels.iter().any(|c| known(c) != known(&first)) {
            return None;
        }
        let planned = Planned {
            vectors,
            kernel,
            width,
            format,
            first,
        };
        match (kernel.combining, width) {
            (_, Width::SixtyFour) => None,
            (Combining::Magnitude(_), _) => match Slopes::new(kernel) {
                Some(Slopes { corner: 1, side }) => {
                    planned.magnitudes(Slopes::<true> { corner: 1, side }, RING, root?)
                }
                Some(slopes) => planned.magnitudes(slopes, RING, root?),
                None => planned.magnitudes(Differences, differences(masks)?, root?),
            },
            (_, Width::Sixteen) => Some(InRegisters::Words(planned.others::<Words>(masks, compass)?)),
            (_, Width::ThirtyTwo) => Some(InRegisters::Numbers(planned.others::<Numbers>(masks, compass)?)),
        }
    }

    /// The description of the roots; `None` if there are none.
    pub(super) fn roots(&self) -> Option<&'static str> {
        match self {
            InRegisters::Words(rows) => rows.roots(),
            InRegisters::Centred(rows) => rows.roots(),
            InRegisters::Numbers(rows) => rows.roots(),
        }
    }

    /// Bits of sums.
    pub(super) fn width(&self) -> Width {
        match self {
            InRegisters::Words(_) => Width::Sixteen,
            InRegisters::Centred(_) | InRegisters::Numbers(_) => Width::ThirtyTwo,
        }
    }
}

impl Planned<'_> {
    /// A loop; `None` if its integers do not hold the levels.
    fn rows<M: Make<N, R>, const N: usize, const R: usize>(
        &self,
        make: M,
        places: [TapOffset; N],
    ) -> Option<Box<dyn Rows<M::Line>>> {
        Some(Box::new(Loop::<M, N, R> {
            vectors: self.vectors,
            make,
            places,
            levels: Levels::new::<M::Lanes>(self.format, self.first.high)?,
        }))
    }

    /// A loop of roots.
    fn magnitudes<S: TwoSums<N>, const N: usize>(
        &self,
        sums: S,
        places: [TapOffset; N],
        root: &Root,
    ) -> Option<InRegisters> {
        fn estimates<L: Simd>(_: L) -> bool {
            L::ESTIMATES_ROOTS
        }
        let most_sum = self.kernel.most_sum(self.format.max_value());
        let single = root.single_in_words();
        let is_faster = single.is_none() || with_simd!(self.vectors, simd => estimates(simd));
        let corrected = root.in_words(most_sum).filter(|_| is_faster);
        let words = if self.width != Width::Sixteen {
            None
        } else if corrected == Some(Correction::OF_SCALE_1) && single == Some(SingleRoot::OF_SCALE_1) {
            let root = HalfEstimated;
            self.rows(WordRoots { sums, root }, places)
        } else if let Some(root) = corrected {
            self.rows(WordRoots { sums, root }, places)
        } else if let Some(root) = single {
            self.rows(WordRoots { sums, root }, places)
        } else {
            None
        };
        if let Some(words) = words {
            return Some(InRegisters::Words(words));
        }
        let root = root.in_numbers(most_sum)?;
        self.rows(NumberRoots { sums, root }, places)
            .map(InRegisters::Centred)
    }

    /// A loop of the largest sums, or of absolute values.
    fn others<W: Lanes>(
        &self,
        masks: &[Vec<Tap>],
        compass: Option<Compass>,
    ) -> Option<Box<dyn Rows<W::Number>>> {
        let (kernel, first) = (self.kernel, &self.first);
        let shift = Shift {
            low: first.low as i32,
            shift: Some(kernel.shift).filter(|&shift| shift < 8 * W::BYTES as u32)?,
        };
        if kernel.combining == Combining::Largest {
            let largest = Largest::<W> {
                compass: compass.filter(Compass::is_balanced)?,
                shift,
                lanes: PhantomData,
            };
            return self.rows(largest, RING);
        }
        let (taps, start) = (masks.first()?, kernel.start(0, first.level));
        if taps.len() <= 6 {
            let (places, sum) = Absolute::<W, 6>::new(taps, start, shift)?;
            self.rows(sum, places)
        } else {
            let (places, sum) = Absolute::<W, 9>::new(taps, start, shift)?;
            self.rows(sum, places)
        }
    }
}

/// A loop over lines of `T`.
pub(super) trait Rows<T>: Send + Sync {
    /// Makes a row, and prefetches the rows of `next`. Lines are readable up to a row's samples, rounded up
    /// to [`TILE`].
    fn make(&self, lines: &Places<'_, T>, out: &mut [u8], next: NextRows<'_>);

    /// The description of the roots; `None` if there are none.
    fn roots(&self) -> Option<&'static str>;
}

/// A way to make results, and the places of the samples that they are made from.
struct Loop<M, const N: usize, const R: usize> {
    vectors: Vectors,
    make: M,
    places: [TapOffset; N],
    levels: Levels,
}

impl<M: Make<N, R>, const N: usize, const R: usize> Rows<M::Line> for Loop<M, N, R> {
    fn make(&self, lines: &Places<'_, M::Line>, out: &mut [u8], next: NextRows<'_>) {
        let samples = out.len() / self.levels.bytes;
        let row = MakeRow::<'_, _, M, N, R> {
            make: self.make,
            levels: self.levels,
            under: self
                .places
                .map(|place| lines.under(place, 0, samples.next_multiple_of(TILE))),
            samples,
            out,
            next,
        };
        with_simd!(self.vectors, simd => simd.unfused().enter(row));
    }

    fn roots(&self) -> Option<&'static str> {
        M::ROOTS
    }
}

/// Combines the samples under `N` weights to integers of at least 0; a root may be negative instead of 0. A
/// vector of samples makes `R` vectors of integers, in [`Order::Interleaved`] if these are two.
trait Make<const N: usize, const R: usize>: Copy + Send + Sync + 'static {
    /// The type of a line's elements.
    type Line: Sample;

    /// The integers.
    type Lanes: Lanes;

    /// The description of the roots; `None` if there are none.
    const ROOTS: Option<&'static str> = None;

    /// Makes results `k` of a step's vectors of samples.
    fn make<L: Simd>(self, simd: L, samples: [L::V; N], k: usize) -> [L::V; R];
}

/// Two sums of differences of the samples under `N` weights.
trait TwoSums<const N: usize>: Copy + Send + Sync + 'static {
    fn sums<W: Lanes, L: Simd>(self, simd: L, samples: impl Differ<L>) -> [L::V; 2];
}

/// Samples whose differences are made.
trait Differ<L: Simd>: Copy {
    /// Sample `a` less sample `b`, times a weight of 16 bits.
    fn differ(self, simd: L, a: usize, b: usize, weight: i32) -> L::V;
}

/// Differences of 16 bits.
#[derive(Clone, Copy)]
struct InWords<V, const N: usize>([V; N]);

impl<L: Simd, const N: usize> Differ<L> for InWords<L::V, N> {
    #[inline(always)]
    fn differ(self, simd: L, a: usize, b: usize, weight: i32) -> L::V {
        Words::times(simd, Words::sub(simd, self.0[a], self.0[b]), weight)
    }
}

/// Differences of 32 bits, of the first or of the second half of [`Order::Interleaved`].
#[derive(Clone, Copy)]
struct InPairs<V, const N: usize>([V; N], usize);

impl<L: Simd, const N: usize> Differ<L> for InPairs<L::V, N> {
    #[inline(always)]
    fn differ(self, simd: L, a: usize, b: usize, weight: i32) -> L::V {
        let weights = simd.splat(weight.wrapping_neg() << 16 | weight & 0xFFFF);
        simd.multiply(simd.interleave_words(self.0[a], self.0[b])[self.1], weights)
    }
}

/// Two 3x3 masks across each other, such as Sobel's, with the weights of corners and of the middles of sides.
/// With `UNIT` corners have the weight 1.
#[derive(Clone, Copy)]
struct Slopes<const UNIT: bool> {
    corner: i32,
    side: i32,
}

impl Slopes<false> {
    /// `None` for other masks, and for weights that take more than 16 bits.
    fn new(kernel: &CombinedKernel) -> Option<Slopes<false>> {
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
}

impl<const UNIT: bool> TwoSums<8> for Slopes<UNIT> {
    #[inline(always)]
    fn sums<W: Lanes, L: Simd>(self, simd: L, p: impl Differ<L>) -> [L::V; 2] {
        let corner = if UNIT { 1 } else { self.corner };
        let side = self.side;
        let (u, v) = (p.differ(simd, 4, 0, corner), p.differ(simd, 2, 6, corner));
        let x = W::add(simd, W::add(simd, u, v), p.differ(simd, 3, 7, side));
        let y = W::add(simd, W::sub(simd, u, v), p.differ(simd, 5, 1, side));
        [x, y]
    }
}

/// Two masks, each of which subtracts one sample from another.
#[derive(Clone, Copy)]
struct Differences;

/// The places of the samples of [`Differences`]; `None` for other masks.
fn differences(masks: &[Vec<Tap>]) -> Option<[TapOffset; 4]> {
    let [first, second] = masks else {
        return None;
    };
    let taps: [&Tap; 4] = first.iter().chain(second).collect::<Vec<_>>().try_into().ok()?;
    // The sign of a difference does not matter: it is squared.
    let differ = |a: &Tap, b: &Tap| a.weight.abs() == 1 && a.weight == -b.weight;
    let is_known = first.len() == 2 && differ(taps[0], taps[1]) && differ(taps[2], taps[3]);
    is_known.then(|| taps.map(|tap| tap.place))
}

impl TwoSums<4> for Differences {
    #[inline(always)]
    fn sums<W: Lanes, L: Simd>(self, simd: L, p: impl Differ<L>) -> [L::V; 2] {
        [p.differ(simd, 0, 1, 1), p.differ(simd, 2, 3, 1)]
    }
}

/// The roots of the sums of squares of two sums of 16 bits.
#[derive(Clone, Copy)]
struct WordRoots<S, R> {
    sums: S,
    root: R,
}

impl<S: TwoSums<N>, R: WordRoot, const N: usize> Make<N, 1> for WordRoots<S, R> {
    type Line = i16;
    type Lanes = Words;
    const ROOTS: Option<&'static str> = Some(R::NAME);

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N], k: usize) -> [L::V; 1] {
        let sums = self.sums.sums::<Words, L>(simd, InWords(samples));
        [self.root.of_words(simd, sums, k)]
    }
}

/// The same of 32 bits.
#[derive(Clone, Copy)]
struct NumberRoots<S> {
    sums: S,
    root: Correction,
}

impl<S: TwoSums<N>, const N: usize> Make<N, 2> for NumberRoots<S> {
    type Line = Centred;
    type Lanes = Numbers;
    const ROOTS: Option<&'static str> = Some(CORRECTED);

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N], _: usize) -> [L::V; 2] {
        let mut roots = [simd.splat(0); 2];
        for half in 0..2 {
            let sums = self.sums.sums::<Numbers, L>(simd, InPairs(samples, half));
            roots[half] = self.root.of_numbers(simd, sums);
        }
        roots
    }
}

/// The value to add to sums, and their right shift.
#[derive(Clone, Copy)]
struct Shift {
    low: i32,
    shift: u32,
}

impl Shift {
    /// Shifts sums of at least 0.
    #[inline(always)]
    fn down<W: Lanes, L: Simd>(self, simd: L, sums: L::V) -> L::V {
        let low = W::splat(simd, self.low);
        W::shift_down(simd, W::add(simd, sums, low), self.shift)
    }
}

/// The largest of eight rotated masks' sums. The sums of all rotations add up to 0, so the largest is at
/// least 0.
#[derive(Clone, Copy)]
struct Largest<W> {
    compass: Compass,
    shift: Shift,
    lanes: PhantomData<W>,
}

impl<W: Lanes> Make<8, 1> for Largest<W> {
    type Line = W::Number;
    type Lanes = W;

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8], _: usize) -> [L::V; 1] {
        let (more, others) = (self.compass.more as i32, self.compass.others as i32);
        let mut all = W::add(simd, p[0], p[1]);
        let mut most = W::add(simd, all, W::max(simd, p[7], p[2]));
        for k in [2, 4, 6] {
            let pair = W::add(simd, p[k], p[k + 1]);
            let three = W::add(simd, pair, W::max(simd, p[k - 1], p[(k + 2) % 8]));
            all = W::add(simd, all, pair);
            most = W::max(simd, most, three);
        }
        let more = W::times(simd, most, more);
        let sum = W::add(simd, more, W::times(simd, all, others));
        [self.shift.down::<W, L>(simd, sum)]
    }
}

/// The absolute value of a mask's sum.
#[derive(Clone, Copy)]
struct Absolute<W, const N: usize> {
    weights: [i32; N],
    start: i32,
    shift: Shift,
    lanes: PhantomData<W>,
}

impl<W: Lanes, const N: usize> Absolute<W, N> {
    /// `None` for more than `N` weights. Missing ones are 0, at any place.
    fn new(taps: &[Tap], start: i64, shift: Shift) -> Option<([TapOffset; N], Absolute<W, N>)> {
        let (mut places, mut weights) = ([taps.first()?.place; N], [0; N]);
        for (k, tap) in taps.iter().enumerate() {
            *places.get_mut(k)? = tap.place;
            weights[k] = tap.weight as i32;
        }
        let total: i64 = taps.iter().map(|tap| tap.weight).sum();
        // Sums may wrap, so the low bits of the start value suffice.
        let start = (start + W::OFFSET * total) as i32;
        Some((
            places,
            Absolute {
                weights,
                start,
                shift,
                lanes: PhantomData,
            },
        ))
    }
}

impl<W: Lanes, const N: usize> Make<N, 1> for Absolute<W, N> {
    type Line = W::Number;
    type Lanes = W;

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N], _: usize) -> [L::V; 1] {
        let mut sum = W::splat(simd, self.start);
        for k in 0..N {
            sum = W::add(simd, sum, W::weigh(simd, samples[k], self.weights[k]));
        }
        let size = W::max(simd, sum, W::sub(simd, simd.splat(0), sum));
        [self.shift.down::<W, L>(simd, size)]
    }
}

/// Converts integers to stored samples.
#[derive(Clone, Copy)]
struct Levels {
    /// The value to add.
    high: i32,
    /// The integer that becomes the largest sample.
    most: i32,
    /// The integer, at least 0, that becomes the smallest sample.
    least: i32,
    /// The largest sample.
    max: u16,
    /// Bytes of a stored sample.
    bytes: usize,
    /// Padding bits below a stored sample.
    left: u32,
}

impl Levels {
    /// `None` if integers of `W` do not hold the levels.
    fn new<W: Lanes>(format: PixelFormat, high: i64) -> Option<Levels> {
        let most = i64::from(format.max_value()) - high;
        let fits = most >= 0 && high >= -W::MOST && high.max(most) <= W::MOST;
        fits.then_some(Levels {
            high: high as i32,
            most: most as i32,
            least: (-high).max(0) as i32,
            max: format.max_value() as u16,
            bytes: format.bytes_per_sample(),
            left: format.shift(),
        })
    }

    /// True if samples have a byte, and nothing is added to integers.
    fn are_plain_bytes(&self) -> bool {
        self.high == 0 && self.bytes == 1
    }

    /// Stores the results of a step, in vectors of words or, in `order`, of numbers.
    ///
    /// # Safety
    /// 4 LANES samples are writable at `to`.
    #[inline(always)]
    unsafe fn store<W: Lanes, L: Simd>(self, simd: L, mut made: [L::V; 4], order: Order, to: *mut u8) {
        let are_words = W::BYTES == 2;
        // Stores clamp, except for words that become samples of two bytes.
        if self.high != 0 || (are_words && self.bytes == 2) {
            for k in 0..W::BYTES {
                let least = W::max(simd, made[k], W::splat(simd, self.least));
                let clamped = W::min(simd, least, W::splat(simd, self.most));
                made[k] = W::add(simd, clamped, W::splat(simd, self.high));
            }
        }
        let [a, b, c, d] = made;
        let half = to.wrapping_add(4 * L::LANES);
        // SAFETY: 4 LANES samples are writable at `to`: if they have two bytes, 2 LANES at `to` and 2 LANES
        // at `half`.
        unsafe {
            match (are_words, self.bytes) {
                (true, 1) => simd.store_packed([a, b], Order::Interleaved, to),
                (false, 1) => simd.store_bytes([a, b, c, d], order, to),
                (true, _) => {
                    simd.store(to, simd.shift_words_up(a, self.left));
                    simd.store(half, simd.shift_words_up(b, self.left));
                }
                (false, _) => {
                    simd.store_words([a, b], order, self.max, self.left, to);
                    simd.store_words([c, d], order, self.max, self.left, half);
                }
            }
        }
    }
}

/// The loop that makes a row.
struct MakeRow<'a, T, M, const N: usize, const R: usize> {
    make: M,
    levels: Levels,
    /// The samples under each weight, rounded up to whole steps.
    under: [&'a [T]; N],
    samples: usize,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl<M: Make<N, R>, const N: usize, const R: usize> IntLoop for MakeRow<'_, M::Line, M, N, R> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        if self.levels.are_plain_bytes() {
            self.steps::<L, true>(simd);
        } else {
            self.steps::<L, false>(simd);
        }
    }
}

impl<M: Make<N, R>, const N: usize, const R: usize> MakeRow<'_, M::Line, M, N, R> {
    /// The steps of a row. With `PLAIN_BYTES`, of [`Levels::are_plain_bytes`], the loop has no branches.
    #[inline(always)]
    fn steps<L: Simd, const PLAIN_BYTES: bool>(self, simd: L) {
        let (make, mut levels) = (self.make, self.levels);
        if PLAIN_BYTES {
            (levels.high, levels.bytes) = (0, 1);
        }
        let under = self.under.map(<[M::Line]>::as_ptr);
        let order = if R == 2 { Order::Interleaved } else { Order::Plain };
        let step = 4 * L::LANES;
        // Vectors that hold the samples of a step.
        let vectors = size_of::<M::Line>();
        let mut last = [0_u8; 2 * TILE];
        let out = self.out.as_mut_ptr();
        for x in (0..self.samples).step_by(step) {
            let mut made = [simd.splat(0); 4];
            for k in 0..vectors {
                let mut samples = [simd.splat(0); N];
                for n in 0..N {
                    // SAFETY: `under` has the samples of a row rounded up to TILE, a multiple of a step's 4
                    // LANES.
                    samples[n] = unsafe { simd.load(under[n].add(x + step / vectors * k)) };
                }
                let results = make.make(simd, samples, k);
                for r in 0..R {
                    made[R * k + r] = results[r];
                }
            }
            let at = x * levels.bytes;
            let to = match x + step <= self.samples {
                true => out.wrapping_add(at),
                false => last.as_mut_ptr(),
            };
            // SAFETY: the step ends within the row, or `last` has room for TILE samples of two bytes, which
            // is no less than a step.
            unsafe { levels.store::<M::Lanes, L>(simd, made, order, to) };
            prefetch(simd, self.next, at, step * levels.bytes);
        }
        let rest = &mut self.out[self.samples / step * step * levels.bytes..];
        rest.copy_from_slice(&last[..rest.len()]);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::engine::cpu::simd::InstructionSet;

    /// The roots of pairs of sums, as vectors of numbers or of words compute them.
    struct Lengths<'a> {
        correction: Correction,
        in_words: bool,
        pairs: &'a [(i32, i32)],
        out: &'a mut Vec<i32>,
    }

    impl IntLoop for Lengths<'_> {
        #[inline(always)]
        fn run<L: Simd>(self, simd: L) {
            for pairs in self.pairs.chunks(L::LANES) {
                let mut sums = [[0_i32; 16]; 2];
                for (at, &(a, b)) in pairs.iter().enumerate() {
                    (sums[0][at], sums[1][at]) = (a, b);
                }
                if self.in_words {
                    // Words of both halves of a number.
                    sums = sums.map(|sums| sums.map(|sum| sum << 16 | sum & 0xFFFF));
                }
                let [a, b] = sums.each_ref().map(|sums| {
                    // SAFETY: a vector has at most 16 numbers.
                    unsafe { simd.load(sums.as_ptr()) }
                });
                let roots = if self.in_words {
                    self.correction.of_words(simd, [a, b], 0)
                } else {
                    self.correction.of_numbers(simd, [a, b])
                };
                let mut results = [0_i32; 16];
                // SAFETY: a vector has at most 16 numbers.
                unsafe { simd.store(results.as_mut_ptr(), roots) };
                let results = results[..pairs.len()].iter();
                self.out
                    .extend(results.map(|&root| if self.in_words { root << 16 >> 16 } else { root }));
            }
        }
    }

    /// [`Lengths`] for each instruction set of this machine.
    pub(in super::super) fn lengths(
        correction: Correction,
        in_words: bool,
        pairs: &[(i32, i32)],
    ) -> Vec<Vec<i32>> {
        let sets = InstructionSet::available().filter_map(Vectors::of);
        let results = sets.map(|vectors| {
            let mut out = Vec::with_capacity(pairs.len());
            let lengths = Lengths {
                correction,
                in_words,
                pairs,
                out: &mut out,
            };
            with_simd!(vectors, simd => simd.unfused().enter(lengths));
            out
        });
        results.collect()
    }
}
