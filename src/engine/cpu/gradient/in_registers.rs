//! Rows of the result made in registers, from the samples under the masks' weights to the stored result, with
//! sums of 16 bits where those hold them, else of 32 (`lanes.rs`).
//!
//! ```text
//! p0 p1 p2      the samples around a result, clockwise from the upper left; a vector has those of as many
//! p7 .. p3      results as it has words or numbers
//! p6 p5 p4
//!
//! slopes        u = p4 - p0, v = p2 - p6       sobel, prewitt, scharr: corners serve both masks
//!               x = corner (u + v) + side (p3 - p7)
//!               y = corner (u - v) + side (p5 - p1)
//! differences   x = a - b, y = c - d           roberts
//!                 | (x y) (x y) ..             of words one multiply-add makes a square of each pair
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

use super::lanes::Lanes;
use super::root::Root;
use super::sums::{Place, Places, Tap};
use crate::engine::cpu::rows::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::vector::{Order, Simd, TILE, Work};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{CombinedKernel, Combining, Compass, Convolve, RING};
use crate::frame::PixelFormat;

/// A plane whose rows are made so.
pub(super) struct InRegisters<W: Lanes> {
    vectors: Vectors,
    form: Form<W>,
    levels: Levels,
}

/// Which samples are taken, and what is made of them.
enum Form<W: Lanes> {
    Slopes(Slopes<W>),
    Differences([Place; 4], Differences<W>),
    Largest(Largest),
    /// Of so many weights, or of fewer.
    Six([Place; 6], Absolute<6>),
    Nine([Place; 9], Absolute<9>),
}

impl<W: Lanes> InRegisters<W> {
    /// `None` where other loops make the rows: without vectors, where a root or a level takes more bits,
    /// where channels differ, and for larger masks.
    pub(super) fn new(
        vectors: Option<Vectors>,
        kernel: &CombinedKernel,
        (masks, compass): (&[Vec<Tap>], Option<Compass>),
        channels: &[Convolve],
        (format, root): (PixelFormat, Option<&Root>),
    ) -> Option<InRegisters<W>> {
        let first = channels.first()?;
        let known = |c: &Convolve| (c.low, c.high, c.level);
        if channels.iter().any(|c| known(c) != known(first)) {
            return None;
        }
        let shift = || {
            (kernel.shift < 8 * W::BYTES as u32).then_some(Shift {
                low: first.low as i32,
                shift: kernel.shift,
            })
        };
        let form = match kernel.combining {
            Combining::Magnitude(_) => {
                let root = W::root(root?, kernel.most_sum(format.max_value()))?;
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
                        let (places, sum) = Absolute::new::<W>(taps, start, shift()?)?;
                        Form::Six(places, sum)
                    }
                    _ => {
                        let (places, sum) = Absolute::new::<W>(taps, start, shift()?)?;
                        Form::Nine(places, sum)
                    }
                }
            }
        };
        Some(InRegisters {
            vectors: vectors?,
            form,
            levels: Levels::new::<W>(format, first.high)?,
        })
    }

    /// Makes a row; what comes `next` is prefetched meanwhile. Lines go on for as long as a row's samples,
    /// rounded up to [`TILE`].
    pub(super) fn make(&self, lines: &Places<'_, W::Number>, out: &mut [u8], next: NextRows<'_>) {
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

    fn make_of<M: Make<W, N>, const N: usize>(
        &self,
        make: M,
        places: [Place; N],
        lines: &Places<'_, W::Number>,
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
        with_simd!(self.vectors, simd => simd.unfused().enter(row));
    }
}

/// What is made of the samples at `N` places: integers, at least 0 or, as a root, -1 for 0.
trait Make<W: Lanes, const N: usize>: Copy {
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> L::V;
}

/// Two masks of 3x3 across each other, and what a corner and the middle of a side weigh.
#[derive(Clone, Copy)]
struct Slopes<W: Lanes> {
    corner: i32,
    side: i32,
    root: W::Root,
}

impl<W: Lanes> Slopes<W> {
    fn new(kernel: &CombinedKernel, root: W::Root) -> Option<Slopes<W>> {
        let [across, down] = &kernel.masks[..] else {
            return None;
        };
        let &[_, _, corner, _, _, side, ..] = &across[..] else {
            return None;
        };
        let (c, s) = (corner, side);
        let is_known =
            across[..] == [-c, 0, c, -s, 0, s, -c, 0, c] && down[..] == [-c, -s, -c, 0, 0, 0, c, s, c];
        (is_known && kernel.width == 3).then_some(Slopes { corner, side, root })
    }
}

impl<W: Lanes> Make<W, 8> for Slopes<W> {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> L::V {
        let (u, v) = (W::sub(simd, p[4], p[0]), W::sub(simd, p[2], p[6]));
        let corners = [W::add(simd, u, v), W::sub(simd, u, v)];
        let sides = [W::sub(simd, p[3], p[7]), W::sub(simd, p[5], p[1])];
        let mut sums = sides;
        for k in 0..2 {
            let weighted = W::times(simd, corners[k], self.corner);
            sums[k] = W::add(simd, weighted, W::times(simd, sides[k], self.side));
        }
        W::magnitude(simd, self.root, sums)
    }
}

/// Two masks, each of which takes one sample from another.
#[derive(Clone, Copy)]
struct Differences<W: Lanes>(W::Root);

fn differences<W: Lanes>(masks: &[Vec<Tap>], root: W::Root) -> Option<Form<W>> {
    let [first, second] = masks else {
        return None;
    };
    let taps: [&Tap; 4] = first.iter().chain(second).collect::<Vec<_>>().try_into().ok()?;
    // Their signs leave the squares as they are.
    let differ = |a: &Tap, b: &Tap| a.weight.abs() == 1 && a.weight == -b.weight;
    let is_known = first.len() == 2 && differ(taps[0], taps[1]) && differ(taps[2], taps[3]);
    is_known.then(|| Form::Differences(taps.map(|tap| tap.place), Differences(root)))
}

impl<W: Lanes> Make<W, 4> for Differences<W> {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 4]) -> L::V {
        let sums = [W::sub(simd, p[0], p[1]), W::sub(simd, p[2], p[3])];
        W::magnitude(simd, self.0, sums)
    }
}

/// What is added to sums, and how far they are shifted down.
#[derive(Clone, Copy)]
struct Shift {
    low: i32,
    shift: u32,
}

impl Shift {
    /// Sums of at least 0.
    #[inline(always)]
    fn down<W: Lanes, L: Simd>(self, simd: L, sums: L::V) -> L::V {
        let low = W::splat(simd, self.low);
        W::shift_down(simd, W::add(simd, sums, low), self.shift)
    }
}

/// The largest of eight masks' sums. Turned into one another they add up to 0, so that the largest does not
/// fall below.
#[derive(Clone, Copy)]
struct Largest {
    compass: Compass,
    shift: Shift,
}

impl<W: Lanes> Make<W, 8> for Largest {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, p: [L::V; 8]) -> L::V {
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
        self.shift.down::<W, L>(simd, sum)
    }
}

/// The absolute value of a mask's sum.
#[derive(Clone, Copy)]
struct Absolute<const N: usize> {
    weights: [i32; N],
    start: i32,
    shift: Shift,
}

impl<const N: usize> Absolute<N> {
    /// `None` for more weights. Those that are lacking weigh nothing, wherever they are.
    fn new<W: Lanes>(taps: &[Tap], start: i64, shift: Shift) -> Option<([Place; N], Absolute<N>)> {
        let (mut places, mut weights) = ([taps.first()?.place; N], [0; N]);
        for (k, tap) in taps.iter().enumerate() {
            *places.get_mut(k)? = tap.place;
            weights[k] = tap.weight as i32;
        }
        let total: i64 = taps.iter().map(|tap| tap.weight).sum();
        // Sums may wrap: of what they begin with the low bits count.
        let start = (start + W::OFFSET * total) as i32;
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

impl<W: Lanes, const N: usize> Make<W, N> for Absolute<N> {
    #[inline(always)]
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> L::V {
        let mut sum = W::splat(simd, self.start);
        for k in 0..N {
            sum = W::add(simd, sum, W::weigh(simd, samples[k], self.weights[k]));
        }
        let size = W::max(simd, sum, W::sub(simd, simd.splat(0), sum));
        self.shift.down::<W, L>(simd, size)
    }
}

/// How integers become stored samples.
#[derive(Clone, Copy)]
struct Levels {
    /// What is added.
    high: i32,
    /// What becomes the largest sample, and what, at least 0, the smallest.
    most: i32,
    least: i32,
    /// The largest sample.
    max: u16,
    /// Of a stored sample.
    bytes: usize,
    /// Padding bits below a stored sample.
    left: u32,
}

impl Levels {
    /// `None` where so many bits do not hold them.
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

    /// Stores the results of a step, in vectors of words or of numbers.
    ///
    /// # Safety
    /// As many samples are writable at `to`.
    #[inline(always)]
    unsafe fn store<W: Lanes, L: Simd>(self, simd: L, mut made: [L::V; 4], to: *mut u8) {
        let are_words = W::BYTES == 2;
        // They are clamped when they are stored, but for words of two bytes.
        if self.high != 0 || (are_words && self.bytes == 2) {
            for k in 0..per_step::<W>() {
                let least = W::max(simd, made[k], W::splat(simd, self.least));
                let clamped = W::min(simd, least, W::splat(simd, self.most));
                made[k] = W::add(simd, clamped, W::splat(simd, self.high));
            }
        }
        let [a, b, c, d] = made;
        let half = to.wrapping_add(4 * L::LANES);
        // SAFETY: 4 LANES samples are writable at `to`, of two bytes 2 LANES there and 2 LANES at `half`.
        unsafe {
            match (are_words, self.bytes) {
                (true, 1) => simd.store_packed([a, b], Order::Interleaved, to),
                (false, 1) => simd.store_bytes([a, b, c, d], Order::Plain, to),
                (true, _) => {
                    simd.store(to, simd.shift_words_up(a, self.left));
                    simd.store(half, simd.shift_words_up(b, self.left));
                }
                (false, _) => {
                    simd.store_words([a, b], Order::Plain, self.max, self.left, to);
                    simd.store_words([c, d], Order::Plain, self.max, self.left, half);
                }
            }
        }
    }
}

/// Vectors that hold the 4 LANES results of a step.
const fn per_step<W: Lanes>() -> usize {
    W::BYTES
}

/// A row to make.
struct MakeRow<'a, W: Lanes, M, const N: usize> {
    make: M,
    levels: Levels,
    /// The samples under each weight, rounded up to whole steps.
    under: [&'a [W::Number]; N],
    samples: usize,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl<W: Lanes, M: Make<W, N>, const N: usize> Work for MakeRow<'_, W, M, N> {
    #[inline(always)]
    fn run<L: Simd>(self, simd: L) {
        let (make, levels) = (self.make, self.levels);
        let under = self.under.map(<[W::Number]>::as_ptr);
        let step = 4 * L::LANES;
        let mut last = [0_u8; 2 * TILE];
        for x in (0..self.samples).step_by(step) {
            let mut made = [simd.splat(0); 4];
            for k in 0..per_step::<W>() {
                let mut samples = [simd.splat(0); N];
                for n in 0..N {
                    // SAFETY: whole steps of 4 LANES samples are readable at each of `under`.
                    samples[n] = unsafe { simd.load(under[n].add(x + step / per_step::<W>() * k)) };
                }
                made[k] = make.make(simd, samples);
            }
            let at = x * levels.bytes;
            if x + step <= self.samples {
                // SAFETY: the step ends within the row.
                unsafe { levels.store::<W, L>(simd, made, self.out[at..].as_mut_ptr()) };
            } else {
                // SAFETY: there is room for the longest step.
                unsafe { levels.store::<W, L>(simd, made, last.as_mut_ptr()) };
                let rest = &mut self.out[at..];
                rest.copy_from_slice(&last[..rest.len()]);
            }
            prefetch(simd, self.next, at, step * levels.bytes);
        }
    }
}
