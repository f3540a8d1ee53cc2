//! Vector loops that make rows of the result in registers, from the samples under the masks' weights to the
//! stored samples, with sums of 16 bits where these hold them, else of 32 (`integer_width.rs`).
//!
//! ```text
//! p0 p1 p2      the samples around a result, clockwise from the upper left; vectors hold these samples for
//! p7 .. p3      as many results as they have words or numbers
//! p6 p5 p4
//!
//! slopes        u = corner (p4 - p0), v = corner (p2 - p6)       sobel, prewitt, scharr: corners serve both
//!               x = u + v + side (p3 - p7)                       masks; sums of 16 bits: `slopes.rs`
//!               y = u - v + side (p5 - p1)
//! differences   x = a - b, y = c - d                             roberts
//!               root(x^2 + y^2)
//!
//! the largest   p0 + p1 + max(p7, p2) ..       kirsch: two sums of three neighbours share a pair
//! absolute      |q0 a + q1 b + ..|             up to nine weights of any mask
//! ```
//!
//! Of x and y that need 32 bits the samples stay words, less 2^15 (`pairs.rs`).
//!
//! `row.rs` makes all other rows.
#![allow(unsafe_code)]

use super::Width;
use super::integer_width::{Int16, Int32, IntegerWidth};
use super::pairs::{NumberSums, Pairs};
use super::root::{CORRECTED, Correction, Root, WordRoot, WordRoots};
use super::slopes::{SaturatedSlopes, SlopeLoop, SlopeRows, Slopes, WordSlopes};
use super::store::{Levels, Step, StoreRow};
use super::sums::{Centred, Places, Sample, Tap, TapOffset};
use crate::engine::cpu::rows::store::prefetch::NextRows;
use crate::engine::cpu::simd::vector::{Order, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{CombinedKernel, Combining, Compass, Convolve, RING};
use crate::frame::PixelFormat;
use std::marker::PhantomData;

/// The vector loop of a plane, by the lines that it reads.
pub(super) enum InRegisters {
    /// Samples as words, and lines made of them; sums of 16 bits.
    Slopes(Box<dyn SlopeRows>),
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
                Some(slopes) => planned.slopes(slopes, root?),
                None => planned.differences(differences(masks)?, root?),
            },
            (_, Width::Sixteen) => Some(InRegisters::Words(planned.others::<Int16>(masks, compass)?)),
            (_, Width::ThirtyTwo) => planned
                .saturated_largest(compass)
                .map(InRegisters::Words)
                .or_else(|| Some(InRegisters::Numbers(planned.others::<Int32>(masks, compass)?))),
        }
    }

    /// The description of the roots; `None` if there are none.
    pub(super) fn roots(&self) -> Option<&'static str> {
        match self {
            InRegisters::Slopes(rows) => Some(rows.roots()),
            InRegisters::Words(rows) => rows.roots(),
            InRegisters::Centred(rows) => rows.roots(),
            InRegisters::Numbers(rows) => rows.roots(),
        }
    }

    /// Bits of sums.
    pub(super) fn width(&self) -> Width {
        match self {
            InRegisters::Slopes(_) | InRegisters::Words(_) => Width::Sixteen,
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
            levels: self.levels::<M::Integers>()?,
        }))
    }

    /// `None` if integers of `W` do not hold them.
    fn levels<W: IntegerWidth>(&self) -> Option<Levels> {
        Levels::new::<W>(self.format, self.first.high)
    }

    /// A loop of roots of slopes.
    fn slopes(&self, slopes: Slopes<false>, root: &Root) -> Option<InRegisters> {
        let words = match slopes.unit() {
            Some(slopes) => self.word_slopes(slopes, root),
            None => self.word_slopes(slopes, root),
        };
        words
            .or_else(|| self.saturated_slopes(slopes, root))
            .or_else(|| self.number_roots(slopes, RING, root))
    }

    /// A loop of roots of slopes of 16 bits; `None` if these do not hold them.
    fn word_slopes(&self, slopes: impl WordSlopes, root: &Root) -> Option<InRegisters> {
        match self.word_roots(root)? {
            WordRoots::Near(root) => self.slope_loop(slopes, root),
            WordRoots::Single(root) => self.slope_loop(slopes, root),
            WordRoots::Corrected(root) => self.slope_loop(slopes, root),
        }
    }

    /// A loop of roots of slopes that are saturated to 16 bits.
    fn saturated_slopes(&self, slopes: Slopes<false>, root: &Root) -> Option<InRegisters> {
        let (most, root) = root.in_limited_words()?;
        let slopes = SaturatedSlopes::new(slopes, self.format.max_value(), most)?;
        self.slope_loop(slopes, root)
    }

    fn slope_loop(&self, slopes: impl WordSlopes, root: impl WordRoot) -> Option<InRegisters> {
        Some(InRegisters::Slopes(Box::new(SlopeLoop {
            vectors: self.vectors,
            slopes,
            root,
            levels: self.levels::<Int16>()?,
        })))
    }

    /// A loop of roots of two differences.
    fn differences(&self, places: [TapOffset; 4], root: &Root) -> Option<InRegisters> {
        let words = self.word_roots(root).and_then(|root| match root {
            WordRoots::Near(root) => self.rows(WordDifferences { root }, places),
            WordRoots::Single(root) => self.rows(WordDifferences { root }, places),
            WordRoots::Corrected(root) => self.rows(WordDifferences { root }, places),
        });
        words
            .map(InRegisters::Words)
            .or_else(|| self.number_roots(Differences, places, root))
    }

    /// The method of roots of sums of 16 bits; `None` if these do not hold the sums.
    fn word_roots(&self, root: &Root) -> Option<WordRoots> {
        if self.width != Width::Sixteen {
            return None;
        }
        let near_error = with_simd!(self.vectors, simd => near_root_error(simd));
        let corrected = || root.in_words(self.most_sum()).map(WordRoots::Corrected);
        root.single_in_words(near_error).or_else(corrected)
    }

    /// A loop of roots of sums of 32 bits.
    fn number_roots<S: NumberSums<N>, const N: usize>(
        &self,
        sums: S,
        places: [TapOffset; N],
        root: &Root,
    ) -> Option<InRegisters> {
        let root = root.in_numbers(self.most_sum())?;
        self.rows(NumberRoots { sums, root }, places)
            .map(InRegisters::Centred)
    }

    /// The largest sum of a mask.
    fn most_sum(&self) -> i64 {
        self.kernel.most_sum(self.format.max_value())
    }

    /// What is left to do with sums; `None` if integers of `W` are shifted out.
    fn shift<W: IntegerWidth>(&self) -> Option<Shift> {
        let shift = self.kernel.shift;
        (shift < 8 * W::BYTES as u32).then_some(Shift {
            low: self.first.low as i32,
            shift,
        })
    }

    /// A loop of the largest sums, saturated to 16 bits.
    fn saturated_largest(&self, compass: Option<Compass>) -> Option<Box<dyn Rows<i16>>> {
        let largest = SaturatedLargest::new(compass?, self.shift::<Int16>()?, self.format.max_value())?;
        let most = i64::from(self.format.max_value()) - self.first.high;
        let exceeds = i64::from(i16::MAX >> largest.shift.shift) >= most;
        self.rows(largest, RING).filter(|_| exceeds)
    }

    /// A loop of the largest sums, or of absolute values.
    fn others<W: IntegerWidth>(
        &self,
        masks: &[Vec<Tap>],
        compass: Option<Compass>,
    ) -> Option<Box<dyn Rows<W::Number>>> {
        let (kernel, first) = (self.kernel, &self.first);
        let shift = self.shift::<W>()?;
        if kernel.combining == Combining::Largest {
            let largest = Largest::<W> {
                compass: compass.filter(Compass::is_balanced)?,
                shift,
                width: PhantomData,
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

/// How far off [`Simd::near_roots`] are.
fn near_root_error<L: Simd>(_: L) -> f64 {
    L::NEAR_ROOT_ERROR
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
        let samples = out.len() / self.levels.bytes();
        let under = self
            .places
            .map(|place| lines.under(place, 0, samples.next_multiple_of(TILE)));
        let row = StoreRow {
            steps: RowSteps {
                make: self.make,
                under,
            },
            levels: self.levels,
            out,
            next,
        };
        with_simd!(self.vectors, simd => simd.without_vnni().enter(row));
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
    type Integers: IntegerWidth;

    /// The description of the roots; `None` if there are none.
    const ROOTS: Option<&'static str> = None;

    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> [L::V; R];
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

impl NumberSums<4> for Differences {
    #[inline(always)]
    fn sums<L: Simd>(self, simd: L, p: Pairs<L::V, 4>) -> [L::V; 2] {
        [p.differ(simd, 0, 1, 1), p.differ(simd, 2, 3, 1)]
    }
}

/// The roots of the sums of squares of two differences of 16 bits.
#[derive(Clone, Copy)]
struct WordDifferences<R> {
    root: R,
}

impl<R: WordRoot> Make<4, 1> for WordDifferences<R> {
    type Line = i16;
    type Integers = Int16;
    const ROOTS: Option<&'static str> = Some(R::NAME);

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, [a, b, c, d]: [L::V; 4]) -> [L::V; 1] {
        let sums = [Int16::sub(simd, a, b), Int16::sub(simd, c, d)];
        [self.root.of_words(simd, sums)]
    }
}

/// The roots of the sums of squares of two sums of 32 bits.
#[derive(Clone, Copy)]
struct NumberRoots<S> {
    sums: S,
    root: Correction,
}

impl<S: NumberSums<N>, const N: usize> Make<N, 2> for NumberRoots<S> {
    type Line = Centred;
    type Integers = Int32;
    const ROOTS: Option<&'static str> = Some(CORRECTED);

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, words: [L::V; N]) -> [L::V; 2] {
        let mut roots = [simd.splat(0); 2];
        for half in 0..2 {
            let sums = self.sums.sums(simd, Pairs { words, half });
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
    fn down<W: IntegerWidth, L: Simd>(self, simd: L, sums: L::V) -> L::V {
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
    width: PhantomData<W>,
}

/// The largest sum of three neighbours in a ring of eight, and the sum of all.
#[inline(always)]
fn most_of_three<W: IntegerWidth, L: Simd>(simd: L, p: [L::V; 8]) -> [L::V; 2] {
    let mut all = W::add(simd, p[0], p[1]);
    let mut most = W::add(simd, all, W::max(simd, p[7], p[2]));
    for k in [2, 4, 6] {
        let pair = W::add(simd, p[k], p[k + 1]);
        let three = W::add(simd, pair, W::max(simd, p[k - 1], p[(k + 2) % 8]));
        all = W::add(simd, all, pair);
        most = W::max(simd, most, three);
    }
    [most, all]
}

impl<W: IntegerWidth> Make<8, 1> for Largest<W> {
    type Line = W::Number;
    type Integers = W;

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> [L::V; 1] {
        let (more, others) = (self.compass.more as i32, self.compass.others as i32);
        let [most, all] = most_of_three::<W, L>(simd, p);
        let more = W::times(simd, most, more);
        let sum = W::add(simd, more, W::times(simd, all, others));
        [self.shift.down::<W, L>(simd, sum)]
    }
}

/// [`Largest`] in words where its parts need all 16 bits, and its sums more: these are saturated.
///
/// ```text
/// k most - m (all - most)            k, m: weights of the three and of the others, without sign
/// (k most - 2^15) - (m (all - most) - 2^15)      parts of 16 bits as words with sign
/// ```
#[derive(Clone, Copy)]
struct SaturatedLargest {
    three: i32,
    others: i32,
    shift: Shift,
}

impl SaturatedLargest {
    /// `None` if 16 bits do not hold the parts for samples up to `max_value`, or sums may be below 0.
    fn new(compass: Compass, shift: Shift, max_value: u32) -> Option<SaturatedLargest> {
        let (three, others) = (compass.more + compass.others, -compass.others);
        let most = i64::from(max_value);
        let fits = three > 0 && (3 * three).max(5 * others) * most <= i64::from(u16::MAX);
        let fits = fits && 8 * most <= i64::from(i16::MAX) && (0..1 << 15).contains(&shift.low);
        (fits && compass.is_balanced()).then_some(SaturatedLargest {
            three: three as i32,
            others: others as i32,
            shift,
        })
    }
}

impl Make<8, 1> for SaturatedLargest {
    type Line = i16;
    type Integers = Int16;

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> [L::V; 1] {
        let [most, all] = most_of_three::<Int16, L>(simd, p);
        let rest = Int16::sub(simd, all, most);
        let half_range = Int16::splat(simd, i32::from(i16::MIN));
        let three = Int16::add(simd, Int16::times(simd, most, self.three), half_range);
        let others = Int16::add(simd, Int16::times(simd, rest, self.others), half_range);
        let sum = simd.sub_saturating_i16(three, others);
        let sum = simd.add_saturating_i16(sum, Int16::splat(simd, self.shift.low));
        [Int16::shift_down(simd, sum, self.shift.shift)]
    }
}

/// The absolute value of a mask's sum.
#[derive(Clone, Copy)]
struct Absolute<W, const N: usize> {
    weights: [i32; N],
    start: i32,
    shift: Shift,
    width: PhantomData<W>,
}

impl<W: IntegerWidth, const N: usize> Absolute<W, N> {
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
                width: PhantomData,
            },
        ))
    }
}

impl<W: IntegerWidth, const N: usize> Make<N, 1> for Absolute<W, N> {
    type Line = W::Number;
    type Integers = W;

    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> [L::V; 1] {
        let mut sum = W::splat(simd, self.start);
        for k in 0..N {
            sum = W::add(simd, sum, W::multiply_weight(simd, samples[k], self.weights[k]));
        }
        let size = W::max(simd, sum, W::sub(simd, simd.splat(0), sum));
        [self.shift.down::<W, L>(simd, size)]
    }
}

/// The steps of a row.
struct RowSteps<'a, M: Make<N, R>, const N: usize, const R: usize> {
    make: M,
    /// The samples under each weight, rounded up to a multiple of [`TILE`].
    under: [&'a [M::Line]; N],
}

impl<M: Make<N, R>, const N: usize, const R: usize> Step for RowSteps<'_, M, N, R> {
    type Integers = M::Integers;
    const ORDER: Order = if R == 2 { Order::Interleaved } else { Order::Plain };

    #[inline(always)]
    fn make<L: Simd>(&mut self, simd: L, x: usize) -> [L::V; 4] {
        // Vectors that hold the samples of a step.
        let vectors = size_of::<M::Line>();
        let mut made = [simd.splat(0); 4];
        for k in 0..vectors {
            let mut samples = [simd.splat(0); N];
            for n in 0..N {
                // SAFETY: `under` has the samples of a row rounded up to TILE, a multiple of a step's 4
                // LANES.
                samples[n] = unsafe { simd.load(self.under[n].as_ptr().add(x + 4 * L::LANES / vectors * k)) };
            }
            let results = self.make.make(simd, samples);
            for r in 0..R {
                made[R * k + r] = results[r];
            }
        }
        made
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::engine::cpu::simd::InstructionSet;
    use crate::engine::cpu::simd::vector::IntLoop;

    /// A method of roots in vectors.
    pub(in super::super) trait VectorRoot: Copy {
        /// True if sums are words.
        const IN_WORDS: bool;

        fn of<L: Simd>(self, simd: L, sums: [L::V; 2]) -> L::V;
    }

    impl<R: WordRoot> VectorRoot for R {
        const IN_WORDS: bool = true;

        #[inline(always)]
        fn of<L: Simd>(self, simd: L, sums: [L::V; 2]) -> L::V {
            self.of_words(simd, sums)
        }
    }

    /// A correction of numbers.
    #[derive(Clone, Copy)]
    pub(in super::super) struct OfInt32(pub(in super::super) Correction);

    impl VectorRoot for OfInt32 {
        const IN_WORDS: bool = false;

        #[inline(always)]
        fn of<L: Simd>(self, simd: L, sums: [L::V; 2]) -> L::V {
            self.0.of_numbers(simd, sums)
        }
    }

    /// The loop over pairs of sums.
    struct Lengths<'a, R> {
        root: R,
        pairs: &'a [(i32, i32)],
        out: &'a mut Vec<i32>,
    }

    impl<R: VectorRoot> IntLoop for Lengths<'_, R> {
        #[inline(always)]
        fn run<L: Simd>(self, simd: L) {
            for pairs in self.pairs.chunks(L::LANES) {
                let mut sums = [[0_i32; 16]; 2];
                for (at, &(a, b)) in pairs.iter().enumerate() {
                    (sums[0][at], sums[1][at]) = (a, b);
                }
                if R::IN_WORDS {
                    // Words of both halves of a number.
                    sums = sums.map(|sums| sums.map(|sum| sum << 16 | sum & 0xFFFF));
                }
                let sums = sums.each_ref().map(|sums| {
                    // SAFETY: a vector has at most 16 numbers.
                    unsafe { simd.load(sums.as_ptr()) }
                });
                let mut results = [0_i32; 16];
                // SAFETY: a vector has at most 16 numbers.
                unsafe { simd.store(results.as_mut_ptr(), self.root.of(simd, sums)) };
                for root in &results[..pairs.len()] {
                    self.out.push(if R::IN_WORDS { root << 16 >> 16 } else { *root });
                }
            }
        }
    }

    /// The roots of the sums of squares of pairs, for each instruction set of this machine whose near roots
    /// are off by `near_error` at most.
    pub(in super::super) fn lengths(
        root: impl VectorRoot,
        pairs: &[(i32, i32)],
        near_error: f64,
    ) -> Vec<Vec<i32>> {
        let sets = InstructionSet::available().filter_map(Vectors::of);
        let sets = sets.filter(|&set| with_simd!(set, simd => near_root_error(simd)) <= near_error);
        let results = sets.map(|vectors| {
            let mut out = Vec::with_capacity(pairs.len());
            let lengths = Lengths {
                root,
                pairs,
                out: &mut out,
            };
            with_simd!(vectors, simd => simd.without_vnni().enter(lengths));
            out
        });
        results.collect()
    }
}
