//! What Fourier transforms ask of a vector of real numbers, for each set of instructions.

use super::overlap_save::Memories;

/// A vector of real parts and one of imaginary parts.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Complex<V> {
    pub(super) re: V,
    pub(super) im: V,
}

/// A line of so many complex points, as many lines at a time as a vector has lanes.
pub(super) type Line<R, const N: usize> = [Complex<<R as Reals>::V>; N];

/// A set of instructions for vectors of 64-bit floating-point numbers, and the proof that this machine has it.
///
/// Everything is meant to be compiled into [`Reals::enter`], whose instructions are those of the set: hence the `inline(always)` throughout.
pub(super) trait Reals: Copy {
    /// A vector.
    type V: Copy;

    /// Numbers that a vector holds.
    const LANES: usize;

    /// Runs a loop, compiled for this set.
    fn enter<W: Work<Self>>(self, work: W);

    /// What a thread works in, for vectors of this set.
    fn memory(memories: &mut Memories) -> &mut Vec<Complex<Self::V>>;

    /// The same number everywhere.
    fn splat(self, value: f64) -> Self::V;

    /// Sums.
    fn add(self, a: Self::V, b: Self::V) -> Self::V;

    /// Differences.
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;

    /// Products.
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;

    /// `a x b + c`, rounded once or twice.
    fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;

    /// `a x b - c`, rounded once or twice.
    fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;

    /// The first [`Reals::LANES`] of these integers.
    fn of_integers(self, from: &[i32]) -> Self::V;

    /// Writes the whole numbers below these ones, which are clamped to 0 to `largest`.
    fn put_whole(self, value: Self::V, largest: Self::V, to: &mut [i32]);

    /// Columns for rows: lane i of `to[j]` is lane j of `from[i]`, for [`Reals::LANES`] vectors.
    fn transpose(self, from: &[Complex<Self::V>], to: &mut [Complex<Self::V>]);
}

/// A loop over vectors. `run` is `inline(always)`, and so is what it calls.
pub(super) trait Work<R> {
    /// The loop.
    fn run(self, reals: R);
}

/// Two numbers, as every machine of this kind has them; the compiler makes vectors of them where it can.
#[derive(Debug, Clone, Copy)]
pub(super) struct Two;

/// Both numbers of what is made of two pairs.
macro_rules! both {
    ($a:ident, $b:ident => $value:expr) => {{
        let of = |$a: f64, $b: f64| $value;
        [of($a[0], $b[0]), of($a[1], $b[1])]
    }};
}

impl Reals for Two {
    type V = [f64; 2];

    const LANES: usize = 2;

    fn enter<W: Work<Two>>(self, work: W) {
        work.run(self);
    }

    fn memory(memories: &mut Memories) -> &mut Vec<Complex<[f64; 2]>> {
        &mut memories.two
    }

    #[inline(always)]
    fn splat(self, value: f64) -> [f64; 2] {
        [value; 2]
    }

    #[inline(always)]
    fn add(self, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        both!(a, b => a + b)
    }

    #[inline(always)]
    fn sub(self, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        both!(a, b => a - b)
    }

    #[inline(always)]
    fn mul(self, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        both!(a, b => a * b)
    }

    #[inline(always)]
    fn mul_add(self, a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> [f64; 2] {
        self.add(self.mul(a, b), c)
    }

    #[inline(always)]
    fn mul_sub(self, a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> [f64; 2] {
        self.sub(self.mul(a, b), c)
    }

    #[inline(always)]
    fn of_integers(self, from: &[i32]) -> [f64; 2] {
        [f64::from(from[0]), f64::from(from[1])]
    }

    #[inline(always)]
    fn put_whole(self, value: [f64; 2], largest: [f64; 2], to: &mut [i32]) {
        let whole = both!(value, largest => value.max(0.0).min(largest) as i32);
        to[..2].copy_from_slice(&whole);
    }

    #[inline(always)]
    fn transpose(self, from: &[Complex<[f64; 2]>], to: &mut [Complex<[f64; 2]>]) {
        let [a, b] = [from[0], from[1]];
        to[0] = Complex {
            re: [a.re[0], b.re[0]],
            im: [a.im[0], b.im[0]],
        };
        to[1] = Complex {
            re: [a.re[1], b.re[1]],
            im: [a.im[1], b.im[1]],
        };
    }
}
