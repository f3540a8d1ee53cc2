//! Floating-point vectors: the traits that each instruction set implements, and implementations in plain Rust
//! for any machine. The FFT uses 32 and 64 bits ([`Float`]). Floating-point samples are filtered in 32 bits,
//! each operation rounded by docs/arithmetic.md ([`Samples`]). Sums of long weights use 64 bits, in which
//! they are exact ([`Exact`]).

use half::f16;

/// A vector of real parts and one of imaginary parts.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine::cpu) struct Complex<V> {
    pub(in crate::engine::cpu) re: V,
    pub(in crate::engine::cpu) im: V,
}

/// `N` complex points of several lines, one in each lane of a vector.
pub(in crate::engine::cpu) type Line<R, const N: usize> = [Complex<<R as Float>::V>; N];

/// A set of instructions for vectors of floating-point numbers, and the proof that this machine has it.
///
/// Everything is inlined into [`Float::enter`], which is compiled with the set's instructions: hence the
/// `inline(always)` throughout.
pub(in crate::engine::cpu) trait Float: Copy + Send + Sync + 'static {
    /// A number.
    type Number: Copy + Send + Sync;

    /// A vector.
    type V: Copy + Send + Sync + 'static;

    /// Numbers that a vector holds.
    const LANES: usize;

    /// The unit of rounding: half the distance from 1 to the next larger number.
    const UNIT: f64;

    /// True if results are exact for weights that are not long.
    const IS_EXACT: bool = Self::UNIT < 1e-15;

    /// Runs a loop, compiled for this set.
    fn enter<W: FloatLoop<Self>>(self, work: W);

    /// A number, rounded.
    fn number(value: f64) -> Self::Number;

    /// The same number everywhere.
    fn splat(self, value: Self::Number) -> Self::V;

    /// The first [`Float::LANES`] of these numbers, rounded.
    fn of_doubles(self, from: &[f64]) -> Self::V;

    /// The first [`Float::LANES`] of these integers.
    fn of_words(self, from: &[u16]) -> Self::V;

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

    /// Rounds numbers down, clamps them to 0 to `largest`, and writes them as words.
    fn store_whole(self, value: Self::V, largest: Self::V, to: &mut [u16]);

    /// A bit for each lane: 1 if its number is further than `within` from the middle between two integers.
    fn far_from_halves(self, value: Self::V, within: Self::V) -> u32;

    /// The sum of all lanes.
    fn total(self, value: Self::V) -> f64;

    /// Transposes [`Float::LANES`] vectors: lane i of `to[j]` is lane j of `from[i]`.
    fn transpose(self, from: &[Complex<Self::V>], to: &mut [Complex<Self::V>]);
}

/// Vectors for weighted sums.
pub(in crate::engine::cpu) trait Sums: Float {
    /// Registers that hold vectors.
    const REGISTERS: usize;

    /// Reads the first [`Float::LANES`] numbers.
    fn load(self, from: &[Self::Number]) -> Self::V;

    /// Writes the first [`Float::LANES`] numbers.
    fn store(self, value: Self::V, to: &mut [Self::Number]);

    /// `a x b + c`, rounded once; in 64 bits, where it is exact, rounded once or twice.
    fn fused(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;

    /// Prefetches the cache line of an address, which may be any.
    fn prefetch(self, at: *const u8);
}

/// Vectors of 32-bit numbers, for samples of pictures.
pub(in crate::engine::cpu) trait Samples: Sums + Float<Number = f32> {
    /// Reads the first [`Float::LANES`] little-endian numbers of 16 bits, which are exact in 32.
    fn of_halves(self, from: &[u8]) -> Self::V;

    /// Writes [`Float::LANES`] numbers in 16 bits, little-endian, rounded to nearest even.
    fn store_halves(self, value: Self::V, to: &mut [u8]);

    /// The numbers with every NaN replaced by the quiet NaN.
    fn quiet(self, value: Self::V) -> Self::V;
}

/// Vectors of 64-bit numbers that hold integers below 2^53.
pub(in crate::engine::cpu) trait Exact: Sums + Float<Number = f64> {
    /// Rounds numbers down, which are in the range of 32-bit integers.
    fn floor(self, value: Self::V) -> Self::V;

    /// The larger of two numbers.
    fn larger(self, a: Self::V, b: Self::V) -> Self::V;
}

/// Costs of Fourier transforms of a pair of tiles of 64, 128 and 256 points a side, with loading their
/// samples and writing their results, in the set's multiply-adds of two samples and two weights (measured,
/// docs/lab/2026-11-23-cpu-fft.md).
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct TransformCosts {
    /// In 32 bits.
    pub(in crate::engine::cpu) singles: [f64; 3],
    /// In 64 bits.
    pub(in crate::engine::cpu) doubles: [f64; 3],
}

impl TransformCosts {
    /// In plain Rust.
    pub(in crate::engine::cpu) const PLAIN: TransformCosts = TransformCosts {
        singles: [1.1e6, 5.6e6, 28e6],
        doubles: [1.6e6, 7.5e6, 28e6],
    };
}

/// A loop over floating-point vectors. `run` is `inline(always)`, and so are the functions that it calls.
pub(in crate::engine::cpu) trait FloatLoop<R> {
    /// The loop.
    fn run(self, simd: R);
}

/// Vectors as arrays of numbers, for any machine.
macro_rules! plain {
    ($(#[$doc:meta])* $name:ident, $number:ty, $lanes:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy)]
        pub(in crate::engine::cpu) struct $name;

        impl Float for $name {
            type Number = $number;

            type V = [$number; $lanes];

            const LANES: usize = $lanes;

            const UNIT: f64 = <$number>::EPSILON as f64 / 2.0;

            fn enter<W: FloatLoop<$name>>(self, work: W) {
                work.run(self);
            }

            #[inline(always)]
            fn number(value: f64) -> $number {
                value as $number
            }

            #[inline(always)]
            fn splat(self, value: $number) -> Self::V {
                [value; $lanes]
            }

            #[inline(always)]
            fn of_doubles(self, from: &[f64]) -> Self::V {
                std::array::from_fn(|i| from[i] as $number)
            }

            #[inline(always)]
            fn of_words(self, from: &[u16]) -> Self::V {
                std::array::from_fn(|i| from[i].into())
            }

            #[inline(always)]
            fn add(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] + b[i])
            }

            #[inline(always)]
            fn sub(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] - b[i])
            }

            #[inline(always)]
            fn mul(self, a: Self::V, b: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i])
            }

            #[inline(always)]
            fn mul_add(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i] + c[i])
            }

            #[inline(always)]
            fn mul_sub(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
                std::array::from_fn(|i| a[i] * b[i] - c[i])
            }

            #[inline(always)]
            fn store_whole(self, value: Self::V, largest: Self::V, to: &mut [u16]) {
                let whole: [u16; $lanes] = std::array::from_fn(|i| value[i].max(0.0).min(largest[i]) as u16);
                to[..$lanes].copy_from_slice(&whole);
            }

            #[inline(always)]
            fn far_from_halves(self, value: Self::V, within: Self::V) -> u32 {
                let far = |i: usize| (value[i] - value[i].floor() - 0.5).abs() > within[i];
                (0..$lanes).fold(0, |lanes, i| lanes | u32::from(far(i)) << i)
            }

            #[inline(always)]
            fn total(self, value: Self::V) -> f64 {
                value.iter().map(|&v| f64::from(v)).sum()
            }

            #[inline(always)]
            fn transpose(self, from: &[Complex<Self::V>], to: &mut [Complex<Self::V>]) {
                let from = &from[..$lanes];
                for (j, to) in to[..$lanes].iter_mut().enumerate() {
                    *to = Complex {
                        re: std::array::from_fn(|i| from[i].re[j]),
                        im: std::array::from_fn(|i| from[i].im[j]),
                    };
                }
            }
        }
    };
}

plain!(
    /// Two numbers of 64 bits.
    Doubles2, f64, 2
);

plain!(
    /// Four numbers of 32 bits.
    Singles4, f32, 4
);

impl Sums for Singles4 {
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn load(self, from: &[f32]) -> [f32; 4] {
        std::array::from_fn(|i| from[i])
    }

    #[inline(always)]
    fn store(self, value: [f32; 4], to: &mut [f32]) {
        to[..4].copy_from_slice(&value);
    }

    #[inline(always)]
    fn fused(self, a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| a[i].mul_add(b[i], c[i]))
    }

    #[inline(always)]
    fn prefetch(self, _: *const u8) {}
}

impl Samples for Singles4 {
    #[inline(always)]
    fn of_halves(self, from: &[u8]) -> [f32; 4] {
        std::array::from_fn(|i| f16::from_le_bytes([from[2 * i], from[2 * i + 1]]).to_f32())
    }

    #[inline(always)]
    fn store_halves(self, value: [f32; 4], to: &mut [u8]) {
        for (to, value) in to[..8].as_chunks_mut().0.iter_mut().zip(value) {
            *to = f16::from_f32(value).to_le_bytes();
        }
    }

    #[inline(always)]
    fn quiet(self, value: [f32; 4]) -> [f32; 4] {
        value.map(|number| if number.is_nan() { f32::NAN } else { number })
    }
}

impl Sums for Doubles2 {
    const REGISTERS: usize = 16;

    #[inline(always)]
    fn load(self, from: &[f64]) -> [f64; 2] {
        std::array::from_fn(|i| from[i])
    }

    #[inline(always)]
    fn store(self, value: [f64; 2], to: &mut [f64]) {
        to[..2].copy_from_slice(&value);
    }

    #[inline(always)]
    fn fused(self, a: [f64; 2], b: [f64; 2], c: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn prefetch(self, _: *const u8) {}
}

impl Exact for Doubles2 {
    #[inline(always)]
    fn floor(self, value: [f64; 2]) -> [f64; 2] {
        // The conversion rounds towards 0, and holds intermediates, which have 24 bits.
        std::array::from_fn(|i| {
            let whole = f64::from(value[i] as i32);
            whole - f64::from(u8::from(whole > value[i]))
        })
    }

    #[inline(always)]
    fn larger(self, a: [f64; 2], b: [f64; 2]) -> [f64; 2] {
        std::array::from_fn(|i| if b[i] > a[i] { b[i] } else { a[i] })
    }
}
