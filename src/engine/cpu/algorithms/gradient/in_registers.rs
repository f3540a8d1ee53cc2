//! Vector loops that make rows of the result in registers, from the samples under the masks' weights to the
//! stored samples, with sums of 16 bits where these hold them, else of 32 (`lanes.rs`).
//!
//! ```text
//! p0 p1 p2      the samples around a result, clockwise from the upper left; vectors hold these samples for
//! p7 .. p3      as many results as they have words or numbers
//! p6 p5 p4
//!
//! slopes        u = p4 - p0, v = p2 - p6       sobel, prewitt, scharr: corners serve both masks
//!               x = corner (u + v) + side (p3 - p7)
//!               y = corner (u - v) + side (p5 - p1)
//! differences   x = a - b, y = c - d           roberts
//!                 | (x y) (x y) ..             in words one multiply-add computes x^2 + y^2
//!               root(x^2 + y^2)
//!
//! the largest   p0 + p1 + max(p7, p2) ..       kirsch: two sums of three neighbours share a pair
//! absolute      |q0 a + q1 b + ..|             up to nine weights of any mask
//! ```
//!
//! `row.rs` makes all other rows.
#![allow(unsafe_code)]
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::lanes::Lanes;
use super::root::Root;
use super::sums::{Places, Tap, TapOffset};
use crate::engine::cpu::rows::prefetch::{NextRows, prefetch};
use crate::engine::cpu::simd::vector::{IntLoop, Order, Simd, TILE};
use crate::engine::cpu::simd::{Vectors, with_simd};
use crate::filter::{CombinedKernel, Combining, Compass, Convolve, RING};
use crate::frame::PixelFormat;

/// The vector loop of a plane.
pub(super) struct InRegisters<W: Lanes> {
    vectors: Vectors,
    form: Form<W>,
    levels: Levels,
}

/// The samples that are read, and how they are combined.
enum Form<W: Lanes> {
    /// Two 3x3 masks across each other.
    Slopes(Slopes<W>),
    /// Two differences of two samples.
    Differences([TapOffset; 4], Differences<W>),
    /// The largest of eight compass masks.
    Largest(Largest),
    /// The absolute value of a sum of up to six weights.
    Six([TapOffset; 6], Absolute<6>),
    /// The absolute value of a sum of up to nine weights.
    Nine([TapOffset; 9], Absolute<9>),
}

impl<W: Lanes> InRegisters<W> {
    /// `None` if there is no loop: without vectors, if a root or a level needs more bits, if channels differ
    /// in their constants, and for larger masks.
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

    /// Makes a row, and prefetches the rows of `next`. Lines are readable up to a row's samples, rounded up
    /// to [`TILE`].
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

    /// Runs the loop of one form.
    fn make_of<M: Make<W, N>, const N: usize>(
        &self,
        make: M,
        places: [TapOffset; N],
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

/// Combines the samples under `N` weights to integers of at least 0; a root may be -1 instead of 0.
trait Make<W: Lanes, const N: usize>: Copy {
    fn make<L: Simd>(self, simd: L, samples: [L::V; N]) -> L::V;
}

/// Two 3x3 masks across each other, such as Sobel's, with the weights of corners and of the middles of sides.
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

/// Two masks, each of which subtracts one sample from another.
#[derive(Clone, Copy)]
struct Differences<W: Lanes>(W::Root);

/// [`Form::Differences`] of two masks; `None` for other masks.
fn differences<W: Lanes>(masks: &[Vec<Tap>], root: W::Root) -> Option<Form<W>> {
    let [first, second] = masks else {
        return None;
    };
    let taps: [&Tap; 4] = first.iter().chain(second).collect::<Vec<_>>().try_into().ok()?;
    // The sign of a difference does not matter: it is squared.
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
    /// `None` for more than `N` weights. Missing ones are 0, at any place.
    fn new<W: Lanes>(taps: &[Tap], start: i64, shift: Shift) -> Option<([TapOffset; N], Absolute<N>)> {
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

    /// Stores the results of a step, in vectors of words or of numbers.
    ///
    /// # Safety
    /// 4 LANES samples are writable at `to`.
    #[inline(always)]
    unsafe fn store<W: Lanes, L: Simd>(self, simd: L, mut made: [L::V; 4], to: *mut u8) {
        let are_words = W::BYTES == 2;
        // Stores clamp, except for words that become samples of two bytes.
        if self.high != 0 || (are_words && self.bytes == 2) {
            for k in 0..per_step::<W>() {
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

/// The loop that makes a row.
struct MakeRow<'a, W: Lanes, M, const N: usize> {
    make: M,
    levels: Levels,
    /// The samples under each weight, rounded up to whole steps.
    under: [&'a [W::Number]; N],
    samples: usize,
    out: &'a mut [u8],
    next: NextRows<'a>,
}

impl<W: Lanes, M: Make<W, N>, const N: usize> IntLoop for MakeRow<'_, W, M, N> {
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
                    // SAFETY: `under` has the samples of a row rounded up to TILE, a multiple of a step's 4
                    // LANES.
                    samples[n] = unsafe { simd.load(under[n].add(x + step / per_step::<W>() * k)) };
                }
                made[k] = make.make(simd, samples);
            }
            let at = x * levels.bytes;
            if x + step <= self.samples {
                // SAFETY: the step ends within the row.
                unsafe { levels.store::<W, L>(simd, made, self.out[at..].as_mut_ptr()) };
            } else {
                // SAFETY: `last` has room for TILE samples of two bytes, which is no less than a step.
                unsafe { levels.store::<W, L>(simd, made, last.as_mut_ptr()) };
                let rest = &mut self.out[at..];
                rest.copy_from_slice(&last[..rest.len()]);
            }
            prefetch(simd, self.next, at, step * levels.bytes);
        }
    }
}
