//! Rows of the result whose sums 16 bits hold, made in registers from the samples under the masks' weights to
//! the stored result.
//!
//! ```text
//! p0 p1 p2      the samples around a result, clockwise from the upper left; a vector has those of as many
//! p7 .. p3      results as it has words
//! p6 p5 p4
//!
//! slopes        u = p4 - p0, v = p2 - p6       sobel, prewitt, scharr: corners serve both masks
//!               x = corner (u + v) + side (p3 - p7)
//!               y = corner (u - v) + side (p5 - p1)
//! differences   x = a - b, y = c - d           roberts
//!                 | (x y) (x y) ..             one multiply-add makes a square of each pair
//!               root(x^2 + y^2)
//!
//! the largest   p0 + p1 + max(p7, p2) ..       kirsch: two sums of three neighbours share a pair
//! absolute      |q0 a + q1 b + ..|             up to nine weights of any mask
//! ```
//!
//! What this does not make, `row.rs` does.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::root::{Root, VectorRoot};
use super::sums::{Place, Places, Tap};
use crate::engine::cpu::rows::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::vector::{Order, Simd, TILE, Work};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{CombinedKernel, Combining, Compass, Convolve, RING};
use crate::frame::PixelFormat;

/// A plane whose rows are made so.
pub(super) struct InRegisters {
    vectors: Vectors,
    form: Form,
    levels: Levels,
}

/// Which samples are taken, and what is made of them.
enum Form {
    Slopes(Slopes),
    Differences([Place; 4], Differences),
    Largest(Largest),
    /// Of so many weights, or of fewer.
    Six([Place; 6], Absolute<6>),
    Nine([Place; 9], Absolute<9>),
}

impl InRegisters {
    /// `None` where other loops make the rows: without vectors, where a number takes more than a word, where
    /// channels differ, and for larger masks.
    pub(super) fn new(
        vectors: Option<Vectors>,
        kernel: &CombinedKernel,
        (masks, compass): (&[Vec<Tap>], Option<Compass>),
        channels: &[Convolve],
        (format, root): (PixelFormat, Option<&Root>),
    ) -> Option<InRegisters> {
        let first = channels.first()?;
        let known = |c: &Convolve| (c.low, c.high, c.level);
        if channels.iter().any(|c| known(c) != known(first)) {
            return None;
        }
        let shift = || {
            (kernel.shift < 16).then_some(Shift {
                low: first.low as i32,
                shift: kernel.shift,
            })
        };
        let form = match kernel.combining {
            Combining::Magnitude(_) => {
                let root = root?.in_vectors()?;
                let slopes = Slopes::new(kernel, root).map(Form::Slopes);
                slopes.or_else(|| differences(masks, root))?
            }
            Combining::Largest => Form::Largest(Largest {
                compass: compass.filter(Compass::is_balanced)?,
                shift: shift()?,
            }),
            Combining::Absolute => {
                let (taps, start) = (masks.first()?, kernel.start(0, first.level));
                match taps.len() {
                    0..=6 => {
                        let (places, sum) = Absolute::new(taps, start, shift()?)?;
                        Form::Six(places, sum)
                    }
                    _ => {
                        let (places, sum) = Absolute::new(taps, start, shift()?)?;
                        Form::Nine(places, sum)
                    }
                }
            }
        };
        Some(InRegisters {
            vectors: vectors?,
            form,
            levels: Levels::new(format, first.high)?,
        })
    }

    /// Makes a row; what comes `next` is prefetched meanwhile. Lines go on for as long as a row's samples,
    /// rounded up to [`TILE`].
    pub(super) fn make(&self, lines: &Places<'_, i16>, out: &mut [u8], next: NextRows<'_>) {
        match &self.form {
            Form::Slopes(slopes) => self.make_of(*slopes, RING, lines, out, next),
            Form::Differences(places, differences) => {
                self.make_of(*differences, *places, lines, out, next);
            }
            Form::Largest(largest) => self.make_of(*largest, RING, lines, out, next),
            Form::Six(places, sum) => self.make_of(*sum, *places, lines, out, next),
            Form::Nine(places, sum) => self.make_of(*sum, *places, lines, out, next),
        }
    }

    fn make_of<M: Make<N>, const N: usize>(
        &self,
        make: M,
        places: [Place; N],
        lines: &Places<'_, i16>,
        out: &mut [u8],
        next: NextRows<'_>,
    ) {
        let samples = out.len() / self.levels.bytes;
        let row = MakeRow {
            make,
            levels: self.levels,
            under: places.map(|place| lines.under(place, 0, samples.next_multiple_of(TILE))),
            samples,
            out,
            next,
        };
        with_simd!(self.vectors, simd => simd.enter(row));
    }
}

/// What is made of the samples at `N` places: words, at least 0.
trait Make<const N: usize>: Copy {
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> L::V;
}

/// A word in all places.
#[inline(always)]
fn words<L: Simd>(simd: L, word: i16) -> L::V {
    let word = i32::from(word.cast_unsigned());
    simd.splat(word << 16 | word)
}

/// Two masks of 3x3 across each other, and what a corner and the middle of a side weigh.
#[derive(Clone, Copy)]
struct Slopes {
    corner: i16,
    side: i16,
    root: VectorRoot,
}

impl Slopes {
    fn new(kernel: &CombinedKernel, root: VectorRoot) -> Option<Slopes> {
        let [across, down] = &kernel.masks[..] else {
            return None;
        };
        let &[_, _, c, _, _, s, ..] = &across[..] else {
            return None;
        };
        let is_known =
            across[..] == [-c, 0, c, -s, 0, s, -c, 0, c] && down[..] == [-c, -s, -c, 0, 0, 0, c, s, c];
        let slopes = Slopes {
            corner: i16::try_from(c).ok()?,
            side: i16::try_from(s).ok()?,
            root,
        };
        (is_known && kernel.width == 3).then_some(slopes)
    }
}

impl Make<8> for Slopes {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> L::V {
        let (corner, side) = (words(simd, self.corner), words(simd, self.side));
        let (u, v) = (simd.sub_words(p[4], p[0]), simd.sub_words(p[2], p[6]));
        let corners = [simd.add_words(u, v), simd.sub_words(u, v)];
        let sides = [simd.sub_words(p[3], p[7]), simd.sub_words(p[5], p[1])];
        let mut sums = sides;
        for k in 0..2 {
            let weighted = simd.multiply_words(corners[k], corner);
            sums[k] = simd.add_words(weighted, simd.multiply_words(sides[k], side));
        }
        magnitude(simd, self.root, sums)
    }
}

/// Two masks, each of which takes one sample from another.
#[derive(Clone, Copy)]
struct Differences(VectorRoot);

fn differences(masks: &[Vec<Tap>], root: VectorRoot) -> Option<Form> {
    let [first, second] = masks else {
        return None;
    };
    let taps: [&Tap; 4] = first.iter().chain(second).collect::<Vec<_>>().try_into().ok()?;
    // Their signs leave the squares as they are.
    let differ = |a: &Tap, b: &Tap| a.weight.abs() == 1 && a.weight == -b.weight;
    let is_known = first.len() == 2 && differ(taps[0], taps[1]) && differ(taps[2], taps[3]);
    is_known.then(|| Form::Differences(taps.map(|tap| tap.place), Differences(root)))
}

impl Make<4> for Differences {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 4]) -> L::V {
        magnitude(
            simd,
            self.0,
            [simd.sub_words(p[0], p[1]), simd.sub_words(p[2], p[3])],
        )
    }
}

/// The scaled root of the sum of the squares of two sums.
#[inline(always)]
fn magnitude<L: Simd>(simd: L, root: VectorRoot, sums: [L::V; 2]) -> L::V {
    let mut numbers = simd.interleave_words(sums[0], sums[1]);
    for k in 0..2 {
        numbers[k] = root.of(simd, simd.multiply(numbers[k], numbers[k]));
    }
    simd.pack_words(numbers[0], numbers[1])
}

/// What is added to sums, and how far they are shifted down.
#[derive(Clone, Copy)]
struct Shift {
    low: i32,
    shift: u32,
}

impl Shift {
    /// Sums of at least 0: with what is added to them they fit 16 bits without sign.
    #[inline(always)]
    fn down<L: Simd>(self, simd: L, sums: L::V) -> L::V {
        let low = simd.splat(self.low << 16 | self.low);
        simd.shift_words_down(simd.add_words(sums, low), self.shift)
    }
}

/// The largest of eight masks' sums. Turned into one another they add up to 0, so that the largest does not
/// fall below.
#[derive(Clone, Copy)]
struct Largest {
    compass: Compass,
    shift: Shift,
}

impl Make<8> for Largest {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> L::V {
        let (more, others) = (self.compass.more as i16, self.compass.others as i16);
        let mut all = simd.add_words(p[0], p[1]);
        let mut most = simd.add_words(all, simd.max_words(p[7], p[2]));
        for k in [2, 4, 6] {
            let pair = simd.add_words(p[k], p[k + 1]);
            let three = simd.add_words(pair, simd.max_words(p[k - 1], p[(k + 2) % 8]));
            all = simd.add_words(all, pair);
            most = simd.max_words(most, three);
        }
        let more = simd.multiply_words(most, words(simd, more));
        let sum = simd.add_words(more, simd.multiply_words(all, words(simd, others)));
        self.shift.down(simd, sum)
    }
}

/// The absolute value of a mask's sum.
#[derive(Clone, Copy)]
struct Absolute<const N: usize> {
    weights: [i16; N],
    start: i16,
    shift: Shift,
}

impl<const N: usize> Absolute<N> {
    /// `None` for more weights. Those that are lacking weigh nothing, wherever they are.
    fn new(taps: &[Tap], start: i64, shift: Shift) -> Option<([Place; N], Absolute<N>)> {
        let (mut places, mut weights) = ([taps.first()?.place; N], [0; N]);
        for (k, tap) in taps.iter().enumerate() {
            *places.get_mut(k)? = tap.place;
            weights[k] = tap.weight as i16;
        }
        let start = start as i16;
        Some((
            places,
            Absolute {
                weights,
                start,
                shift,
            },
        ))
    }
}

impl<const N: usize> Make<N> for Absolute<N> {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> L::V {
        let mut sum = words(simd, self.start);
        for k in 0..N {
            let weighted = simd.multiply_words(samples[k], words(simd, self.weights[k]));
            sum = simd.add_words(sum, weighted);
        }
        let size = simd.max_words(sum, simd.sub_words(simd.splat(0), sum));
        self.shift.down(simd, size)
    }
}

/// How words become stored samples.
#[derive(Clone, Copy)]
struct Levels {
    /// What is added.
    high: i16,
    /// What becomes the largest sample, and what, at least 0, the smallest.
    most: i16,
    least: i16,
    /// Of a stored sample.
    bytes: usize,
    /// Padding bits below a stored sample.
    left: u32,
}

impl Levels {
    /// `None` where words do not hold them.
    fn new(format: PixelFormat, high: i64) -> Option<Levels> {
        let most = i64::from(format.max_value()) - high;
        let fits = most >= 0 && high > i64::from(i16::MIN);
        Some(Levels {
            high: i16::try_from(high).ok().filter(|_| fits)?,
            most: i16::try_from(most).ok()?,
            least: (-high).max(0) as i16,
            bytes: format.bytes_per_sample(),
            left: format.shift(),
        })
    }

    /// Stores two vectors.
    ///
    /// # Safety
    /// As many samples are writable at `to`.
    #[inline(always)]
    unsafe fn store<L: Simd>(self, simd: L, mut numbers: [L::V; 2], to: *mut u8) {
        // Bytes are clamped when they are stored.
        if self.bytes == 2 || self.high != 0 {
            for k in 0..2 {
                let least = simd.max_words(numbers[k], words(simd, self.least));
                let clamped = simd.min_words(least, words(simd, self.most));
                numbers[k] = simd.add_words(clamped, words(simd, self.high));
            }
        }
        // SAFETY: 4 LANES samples are writable at `to`.
        unsafe {
            if self.bytes == 1 {
                simd.store_packed(numbers, Order::Interleaved, to);
            } else {
                for k in 0..2 {
                    let stored = simd.shift_words_up(numbers[k], self.left);
                    simd.store(to.add(4 * L::LANES * k), stored);
                }
            }
        }
    }
}

/// A row to make.
struct MakeRow<'a, M, const N: usize> {
    make: M,
    levels: Levels,
    /// The samples under each weight, rounded up to whole steps.
    under: [&'a [i16]; N],
    samples: usize,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl<M: Make<N>, const N: usize> Work for MakeRow<'_, M, N> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let (make, levels) = (self.make, self.levels);
        let under = self.under.map(<[i16]>::as_ptr);
        let step = 4 * L::LANES;
        let mut last = [0_u8; 2 * TILE];
        for x in (0..self.samples).step_by(step) {
            let mut numbers = [simd.splat(0); 2];
            for k in 0..2 {
                let mut samples = [simd.splat(0); N];
                for n in 0..N {
                    // SAFETY: whole steps of 4 LANES samples are readable at each of `under`.
                    samples[n] = unsafe { simd.load(under[n].add(x + 2 * L::LANES * k)) };
                }
                numbers[k] = make.make(simd, samples);
            }
            let at = x * levels.bytes;
            if x + step <= self.samples {
                // SAFETY: the step ends within the row.
                unsafe { levels.store(simd, numbers, self.out[at..].as_mut_ptr()) };
            } else {
                // SAFETY: there is room for the longest step.
                unsafe { levels.store(simd, numbers, last.as_mut_ptr()) };
                let rest = &mut self.out[at..];
                rest.copy_from_slice(&last[..rest.len()]);
            }
            prefetch(simd, self.next, at, step * levels.bytes);
        }
    }
}
