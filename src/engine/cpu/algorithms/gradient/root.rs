//! The scaled root of a sum of squares, rounded half up, as docs/arithmetic.md defines it in integers.
//!
//! Floating point makes it fast. Every method here is monotonic in the sum of squares, and so is the
//! definition; or it is off by a known share, as estimates in vectors are. So a method agrees with the
//! definition everywhere if it does, with that share, at the least sum of squares of each result, and at one
//! below. That is checked for every result when a plan is made, and a method that fails is not used.

use super::integer_width::{Int16, Int32, IntegerWidth};
use crate::engine::cpu::simd::vector::Simd;
use crate::filter::Scale;
use std::fmt;

/// The largest result for which floating-point methods are tried.
const MOST_CHECKED: u32 = 1 << 17;

/// The unit of rounding of 32-bit floating point.
const UNIT: f64 = 1.0 / (1 << 24) as f64;

/// The largest result that [`Simd::roots_below`] is exact enough for.
const MOST_ESTIMATED: u32 = 8000;

/// The description of [`RootMethod::Single`].
const SINGLE: &str = "roots of 32-bit numbers";

/// The description of [`RootMethod::Corrected`].
pub(super) const CORRECTED: &str = "roots of 32-bit numbers put right by integers";

/// The scaled root for one scale and one largest result.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root {
    /// The scale, and the largest result.
    made_for: (Scale, u32),
    /// The least sum of squares of the largest result; larger sums may be replaced by it.
    pub(super) most: u64,
    pub(super) method: RootMethod,
}

/// How a root is computed.
#[derive(Debug, Clone, Copy)]
pub(super) enum RootMethod {
    /// In floating point of 32 bits.
    Single {
        /// The factor of the root.
        factor: f32,
        /// The part by which the product may be off before it is rounded.
        tolerance: f64,
    },
    /// The same, corrected by integers of 32 bits.
    Corrected(Correction),
    /// In floating point of 64 bits; holds the factor of the root.
    Double(f64),
    /// In integers, by the definition.
    Integers,
}

/// Corrects a root that may be one too small, in integers of 16 or of 32 bits.
///
/// With r = n/d sqrt(m), `near` is one too small if r is at least near + 1/2:
///
/// ```text
/// near + 1/2 <= r   <=>   d^2 (near^2 + near + 1/4) <= n^2 m
///                   <=>   rest = n^2 m - d^2 near^2 > d^2 near + ceil(d^2 / 4) - 1 = edge      in integers
/// ```
///
/// Both products may need far more bits, but `rest` does not: with near - 1/2 <= r < near + 3/2 its magnitude
/// is less than d^2 (3 near + 3). So everything is computed modulo 2^16 or 2^32, and the comparison is right.
#[derive(Debug, Clone, Copy)]
pub(super) struct Correction {
    /// The scale, unless it is 1.
    pub(super) factor: Option<f32>,
    /// n^2, modulo 2^32.
    above: i32,
    /// d^2
    below: i32,
    /// d^2 / 4, rounded up, less 1.
    quarter: i32,
}

impl Correction {
    /// `None` if integers of `bits` do not hold the difference.
    fn new(scale: Scale, most_result: u32, bits: u32) -> Option<Correction> {
        let square = |a: u32| u64::from(a).pow(2);
        let (above, below) = (square(scale.numerator()), square(scale.denominator()));
        let factor = (scale.numerator() as f64 / f64::from(scale.denominator())) as f32;
        let most = below * (3 * u64::from(most_result) + 3);
        (most < 1 << (bits - 1)).then_some(Correction {
            factor: (factor != 1.0).then_some(factor),
            above: above as i32,
            below: below as i32,
            quarter: below.div_ceil(4) as i32 - 1,
        })
    }

    /// The root of `squares`, which is at most [`Root::most`].
    #[inline(always)]
    pub(super) fn root(&self, squares: i32) -> i32 {
        self.one_more(root_below(squares, self.factor.unwrap_or(1.0)), squares)
    }

    /// `near`, or one more where that is the root.
    #[inline(always)]
    fn one_more(&self, near: i32, squares: i32) -> i32 {
        let square = near.wrapping_mul(near).wrapping_mul(self.below);
        let rest = squares.wrapping_mul(self.above).wrapping_sub(square);
        let edge = near.wrapping_mul(self.below).wrapping_add(self.quarter);
        near + i32::from(rest > edge)
    }

    /// [`Correction::one_more`] in vectors, for the sum of the squares of `a` and `b`. For a root beyond the
    /// largest result it is anything that is not less than that.
    #[inline(always)]
    fn corrected<W: IntegerWidth, L: Simd>(&self, simd: L, near: L::V, [a, b]: [L::V; 2]) -> L::V {
        let mut edge = near;
        let rest = if (self.above, self.below) == (1, 1) {
            // a^2 - near^2 as one product.
            let product = W::multiply(simd, W::sub(simd, a, near), W::add(simd, a, near));
            W::add(simd, product, W::multiply(simd, b, b))
        } else {
            let (below, quarter) = (W::splat(simd, self.below), W::splat(simd, self.quarter));
            edge = W::add(simd, W::multiply(simd, near, below), quarter);
            let squares = W::add(simd, W::multiply(simd, a, a), W::multiply(simd, b, b));
            let exact = W::multiply(simd, squares, W::splat(simd, self.above));
            let square = W::multiply(simd, W::multiply(simd, near, near), below);
            W::sub(simd, exact, square)
        };
        W::count_above(simd, near, rest, edge)
    }

    /// The roots of the sums of squares of two sums of 32 bits.
    #[inline(always)]
    pub(super) fn of_numbers<L: Simd>(&self, simd: L, [a, b]: [L::V; 2]) -> L::V {
        let near = simd.lengths_below(a, b, self.factor);
        self.corrected::<Int32, L>(simd, near, [a, b])
    }
}

/// A method of roots in vectors, of the sums of squares of two sums of 16 bits. The result may be negative
/// for 0, and beyond the largest result anything that is not less than that.
pub(super) trait WordRoot: Copy + Send + Sync + 'static {
    /// The description.
    const NAME: &str;

    fn of_words<L: Simd>(&self, simd: L, sums: [L::V; 2]) -> L::V;
}

/// [`RootMethod::Single`], with the factor unless it is 1. With `NEAR` half of the roots are
/// [`Simd::near_roots`].
#[derive(Debug, Clone, Copy)]
pub(super) struct SingleRoot<const NEAR: bool>(Option<f32>);

impl<const NEAR: bool> WordRoot for SingleRoot<NEAR> {
    const NAME: &str = SINGLE;

    #[inline(always)]
    fn of_words<L: Simd>(&self, simd: L, sums: [L::V; 2]) -> L::V {
        let [low, high] = squares(simd, sums);
        // One half may wait for the divider while estimates of the other are improved.
        let high = if NEAR {
            simd.near_roots(high, self.0)
        } else {
            simd.scaled_roots(high, self.0)
        };
        simd.pack_i16(simd.scaled_roots(low, self.0), high)
    }
}

impl WordRoot for Correction {
    const NAME: &str = CORRECTED;

    #[inline(always)]
    fn of_words<L: Simd>(&self, simd: L, sums: [L::V; 2]) -> L::V {
        let [low, high] = squares(simd, sums);
        let (low, high) = (
            simd.roots_below(low, self.factor),
            simd.roots_below(high, self.factor),
        );
        self.corrected::<Int16, L>(simd, simd.pack_i16(low, high), sums)
    }
}

/// A method of roots of two sums of 16 bits.
pub(super) enum WordRoots {
    Near(SingleRoot<true>),
    Single(SingleRoot<false>),
    Corrected(Correction),
}

/// The sums of squares of two vectors of words, as numbers.
#[inline(always)]
fn squares<L: Simd>(simd: L, sums: [L::V; 2]) -> [L::V; 2] {
    let [low, high] = simd.interleave_i16(sums[0], sums[1]);
    [simd.dot_i16(low, low), simd.dot_i16(high, high)]
}

impl fmt::Display for RootMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RootMethod::Single { .. } => SINGLE,
            RootMethod::Corrected(_) => CORRECTED,
            RootMethod::Double(_) => "roots of 64-bit numbers",
            RootMethod::Integers => "roots of integers",
        })
    }
}

impl Root {
    /// The scale of roots.
    pub(super) fn scale(&self) -> Scale {
        self.made_for.0
    }

    /// True if this is the root of these arguments of [`Root::new`].
    pub(super) fn is_for(&self, scale: Scale, most_result: u32) -> bool {
        self.made_for == (scale, most_result)
    }

    /// [`RootMethod::Single`] in vectors, if it is the method and its results fit 16 bits; with
    /// [`Simd::near_roots`], if these are `near_error` off at most and that changes no result.
    pub(super) fn single_in_words(&self, near_error: f64) -> Option<WordRoots> {
        match self.method {
            RootMethod::Single { factor, tolerance } if self.made_for.1 < i16::MAX as u32 => {
                let scale = (factor != 1.0).then_some(factor);
                Some(if near_error + other_errors(factor) < tolerance {
                    WordRoots::Near(SingleRoot(scale))
                } else {
                    WordRoots::Single(SingleRoot(scale))
                })
            }
            _ => None,
        }
    }

    /// The correction in integers of 16 bits, for two sums of up to `most_sum`.
    ///
    /// [`Simd::roots_below`] rounds down a number that is off by r / 2^14 and 4 units of rounding, which is
    /// less than 1/2 for results up to [`MOST_ESTIMATED`]: so it is r rounded half up, or one less.
    pub(super) fn in_words(&self, most_sum: i64) -> Option<Correction> {
        self.corrected(most_sum, i16::MAX as i32, 16)
            .filter(|_| self.made_for.1 <= MOST_ESTIMATED)
    }

    /// [`Root::in_words`] for sums that are limited to a largest one, and that one: alone it has a root above
    /// the largest result. `None` if no such sum is small enough.
    pub(super) fn in_limited_words(&self) -> Option<(i32, Correction)> {
        let (scale, most_result) = self.made_for;
        let factor = scale.numerator() as f64 / f64::from(scale.denominator());
        let most_sum = (0.998 * f64::from(i16::MAX) / 2.0_f64.sqrt() / factor.max(1.0)) as i32;
        let exceeds = f64::from(most_sum) * factor > f64::from(most_result) + 1.0;
        let correction = self.in_words(i64::from(most_sum)).filter(|_| exceeds)?;
        Some((most_sum, correction))
    }

    /// The correction in integers of 32 bits, for two sums of up to `most_sum`, the sum of whose squares may
    /// need more than 32 bits.
    ///
    /// It is not checked result by result, as it is no function of the sum of squares. With u = 2^-24, the
    /// unit of rounding of 32-bit floating point, the sum of both squares is off by 2 u; its root by half of
    /// that, and by u for itself; then the factor and the product by u each. So with r the exact root, the
    /// number that is rounded down is off by less than 5 u r, which is 0.04 for r up to 2^17. Then it becomes
    /// r rounded half up, or one less.
    pub(super) fn in_numbers(&self, most_sum: i64) -> Option<Correction> {
        // Floating point of 32 bits holds integers up to 2^24 exactly.
        let is_exact = most_sum <= 1 << 24 && self.made_for.1 < MOST_CHECKED;
        self.corrected(most_sum, i32::MAX / 2, 32).filter(|_| is_exact)
    }

    /// The correction in integers of `bits`; `None` if a length of two sums of up to `most_sum` may be `end`.
    fn corrected(&self, most_sum: i64, end: i32, bits: u32) -> Option<Correction> {
        let (scale, most_result) = self.made_for;
        let correction = Correction::new(scale, most_result, bits)?;
        let longest = most_sum as f64 * 2.0_f64.sqrt() * f64::from(correction.factor.unwrap_or(1.0));
        (longest < f64::from(end) * 0.999).then_some(correction)
    }

    /// The fastest method for results up to `most_result`; larger results may be replaced by that one.
    pub(super) fn new(scale: Scale, most_result: u32) -> Root {
        let most = scale.least_squares(most_result);
        let factor = f64::from(scale.numerator()) / f64::from(scale.denominator());
        // If halves are met exactly, a slightly larger factor rounds them up.
        let singles = [0.0, 2.0_f64.powi(-22)].map(|hair| (factor * (1.0 + hair)) as f32);
        let double = factor * (1.0 + 2.0_f64.powi(-50));
        let agrees = |squares: u64, result: u32, root: &dyn Fn(u64) -> u32| {
            root(squares) == result && squares.checked_sub(1).is_none_or(|less| root(less) < result)
        };
        let all = |root: &dyn Fn(u64) -> u32| {
            // With a large scale one sum of squares may be the least one of several results.
            let mut results = 1..=most_result;
            most_result <= MOST_CHECKED
                && root(0) == 0
                && results.all(|result| {
                    let squares = scale.least_squares(result);
                    agrees(squares, scale.root(squares) as u32, root)
                })
        };
        let fits = most <= i32::MAX as u64;
        let single = |factor: f32| {
            let tolerance = Some(factor)
                .filter(|_| fits)
                .and_then(|f| tolerance(f, scale, most_result))?;
            (UNIT + other_errors(factor) < tolerance).then_some(RootMethod::Single { factor, tolerance })
        };
        let correction = Correction::new(scale, most_result, 32).filter(|_| fits);
        let method = if let Some(single) = singles.into_iter().find_map(single) {
            single
        } else if let Some(correction) = correction.filter(|c| all(&|s| c.root(s as i32) as u32)) {
            RootMethod::Corrected(correction)
        } else if all(&|s| double_root(s as f64, double) as u32) {
            RootMethod::Double(double)
        } else {
            RootMethod::Integers
        };
        Root {
            made_for: (scale, most_result),
            most,
            method,
        }
    }
}

/// The part by which roots times `factor` may be off so that they still round as the definition does, for
/// every result up to `most_result`.
fn tolerance(factor: f32, scale: Scale, most_result: u32) -> Option<f64> {
    let root = |squares: u64| f64::from(factor) * (squares as f64).sqrt();
    let of_result = |result: u32| {
        let squares = scale.least_squares(result);
        // With a large scale one sum of squares may be the least one of several results.
        let above = 1.0 - (scale.root(squares) as f64 - 0.5) / root(squares);
        let below = (f64::from(result) - 0.5) / root(squares - 1) - 1.0;
        above.min(below)
    };
    (most_result <= MOST_CHECKED).then(|| (1..=most_result).map(of_result).fold(f64::INFINITY, f64::min))
}

/// The part by which a root times `factor` is off beside what the root itself is: by the rounding of the
/// number, half of which is in its root, and of the product.
fn other_errors(factor: f32) -> f64 {
    UNIT / 2.0 + if factor == 1.0 { 0.0 } else { UNIT }
}

/// The root of `squares` times `factor`, rounded to nearest: adding 2^23 leaves no bits for a fraction.
#[inline(always)]
pub(super) fn single_root(squares: i32, factor: f32) -> i32 {
    const ADDED: f32 = 8_388_608.0;
    ((squares as f32).sqrt() * factor + ADDED).to_bits() as i32 - ADDED.to_bits() as i32
}

/// [`single_root`] less 1/2, and at least 0: the root times `factor`, rounded down, or rounded to nearest.
#[inline(always)]
fn root_below(squares: i32, factor: f32) -> i32 {
    const ADDED: f32 = 8_388_607.5;
    let sum = (squares as f32).sqrt() * factor + ADDED;
    (sum.to_bits() as i32 - 8_388_608.0_f32.to_bits() as i32).max(0)
}

/// [`single_root`] in floating point of 64 bits, which adds 2^52.
#[inline(always)]
pub(super) fn double_root(squares: f64, factor: f64) -> i32 {
    const ADDED: f64 = 4_503_599_627_370_496.0;
    (squares.sqrt() * factor + ADDED).to_bits() as i32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::algorithms::gradient::in_registers::tests::{OfInt32, VectorRoot, lengths};

    fn root(root: &Root, squares: u64) -> u64 {
        let squares = squares.min(root.most);
        match root.method {
            RootMethod::Single { factor, .. } => single_root(squares as i32, factor) as u64,
            RootMethod::Corrected(correction) => correction.root(squares as i32) as u64,
            RootMethod::Double(factor) => double_root(squares as f64, factor) as u64,
            RootMethod::Integers => root.scale().root(squares),
        }
    }

    #[test]
    fn every_method_agrees_with_the_definition() {
        let mut ways = [0; 4];
        for scale in [
            1.0,
            2.0,
            0.5,
            0.25,
            1.0 / 3.0,
            0.7,
            1.5,
            0.001,
            1000.0,
            0.70717,
            9999.0 / 16384.0,
        ] {
            let scale = Scale::nearest(scale);
            for most in [255, 1023, 4095, 65535, 300, 0] {
                let found = Root::new(scale, most);
                ways[match found.method {
                    RootMethod::Single { .. } => 0,
                    RootMethod::Corrected(_) => 1,
                    RootMethod::Double(_) => 2,
                    RootMethod::Integers => 3,
                }] += 1;
                let mut squares = 0_u64;
                while squares < 1 << 42 {
                    let expected = scale.root(squares);
                    let got = root(&found, squares);
                    let is_largest = expected >= u64::from(most) && got >= u64::from(most);
                    assert!(
                        is_largest || got == expected,
                        "{scale:?} {most} {squares}: {got} {expected}"
                    );
                    squares += 1 + squares / 999;
                }
            }
        }
        assert!(ways[..3].iter().all(|&count| count > 0), "{ways:?}");
    }

    #[test]
    fn samples_of_up_to_12_bits_take_numbers_of_32_bits() {
        let way = |scale: f64, most: u32| Root::new(Scale::nearest(scale), most).method;
        for (scale, most) in [(0.5, 255), (1.0, 255), (2.0, 255), (1.0, 1023)] {
            assert!(
                matches!(way(scale, most), RootMethod::Single { .. }),
                "{scale} {most}"
            );
        }
        for (scale, most) in [(0.0625, 255), (0.3, 255), (0.125, 1023), (1.0, 4095)] {
            assert!(
                matches!(way(scale, most), RootMethod::Corrected(_)),
                "{scale} {most}"
            );
        }
        assert!(matches!(way(1.0, 65535), RootMethod::Double(_)));
    }

    /// True if `result` is n/d sqrt(a^2 + b^2), rounded half up; or if neither is less than `most`. A
    /// negative one counts as 0.
    fn is_root(result: i32, (a, b): (i32, i32), scale: Scale, most: u32) -> bool {
        let squares = i128::from(a).pow(2) + i128::from(b).pow(2);
        let (n, d) = (i128::from(scale.numerator()), i128::from(scale.denominator()));
        let (exact, result) = (4 * n * n * squares, i128::from(result));
        let result = result.max(0);
        let reaches = |number: i128| number <= 0 || ((2 * number - 1) * d).pow(2) <= exact;
        let most = i128::from(most);
        reaches(result.min(most)) && (result >= most || !reaches(result + 1))
    }

    #[test]
    fn sums_of_squares_above_32_bits_are_rounded_exactly() {
        let fractions = [
            (1, 1),
            (1, 2),
            (2, 1),
            (1, 3),
            (7, 4),
            (1, 16),
            (10, 7),
            (103, 104),
            (999, 1),
        ];
        let mut checked = 0;
        for (n, d) in fractions {
            let scale = Scale::nearest(f64::from(n) / f64::from(d));
            assert_eq!((scale.numerator(), scale.denominator()), (n, d));
            for (most, most_sum) in [
                (4095, 16 * 4095),
                (16383, 4 * 16383),
                (65535, 4 * 65535),
                (65535, 16 * 65535),
                (68000, 1 << 24),
            ] {
                let found = Root::new(scale, most);
                let Some(correction) = found.in_numbers(most_sum) else {
                    // Lengths that take more bits, and scales that leave none.
                    assert!(n == 999 || (d, most) == (104, 68000), "{n}/{d} {most} {most_sum}");
                    continue;
                };
                let mut pairs = Vec::new();
                let mut check = |a: i64, b: i64| {
                    if a.min(b) >= 0 && a.max(b) <= most_sum {
                        pairs.push((a as i32, -b as i32));
                    }
                };
                let ends = most.saturating_sub(50)..=most + 2;
                for result in (0..300).chain((300..most).step_by(397)).chain(ends) {
                    // About where results change: both sums in many proportions, on either side.
                    let least = scale.least_squares(result) as f64;
                    for share in [0.0, 0.1, 0.36, 0.5, 0.77] {
                        let a = (least * share).sqrt() as i64;
                        let b = (least - (a * a) as f64).max(0.0).sqrt() as i64;
                        (b - 2..=b + 2).for_each(|b| check(a, b));
                    }
                }
                // Perfect squares, and one beside them; the largest sums.
                for k in (0..most_sum / 5).step_by(613) {
                    check(3 * k, 4 * k);
                    check(5 * k, 0);
                    check(5 * k, 1);
                }
                check(most_sum, most_sum);
                check(most_sum, 0);
                check(most_sum, 1);
                for roots in lengths(OfInt32(correction), &pairs, f64::INFINITY) {
                    for (&pair, &root) in pairs.iter().zip(&roots) {
                        assert!(
                            is_root(root, pair, scale, most),
                            "{n}/{d} {most} {pair:?}: {root}"
                        );
                    }
                    checked += roots.len();
                }
            }
        }
        assert!(checked == 0 || checked > 100_000, "{checked}");
    }

    #[test]
    fn words_round_every_sum_of_squares_of_bytes_and_the_edges_of_deeper_samples() {
        for (n, d) in [(1, 1), (1, 2), (1, 4), (3, 2), (7, 4), (10, 1)] {
            let scale = Scale::nearest(f64::from(n) / f64::from(d));
            let root = |most: u32, most_sum: i64| Root::new(scale, most).in_words(most_sum);
            // What near roots are off with AVX-512, and with AVX2.
            let errors = [1.1 * UNIT, 4.5 * UNIT];
            let hold_single = |most: u32, pairs: &[(i32, i32)]| {
                let found = errors.map(|error| match Root::new(scale, most).single_in_words(error) {
                    Some(WordRoots::Near(root)) => {
                        hold(root, pairs, scale, most, error);
                        "near"
                    }
                    Some(WordRoots::Single(root)) => {
                        hold(root, pairs, scale, most, f64::INFINITY);
                        "single"
                    }
                    Some(WordRoots::Corrected(_)) | None => "none",
                });
                match (n, d, most) {
                    (1, 1, 255) => assert_eq!(found, ["near"; 2]),
                    (_, _, 255) => assert_eq!(found[0], "near", "{n}/{d}"),
                    (1, 1, 1023) => assert_eq!(found, ["near", "single"]),
                    (1, 1, _) => assert_eq!(found, ["none"; 2]),
                    _ => {}
                }
            };
            // All sums of bytes that do not only give the largest sample, up to their signs and order.
            let end = if (n, d) == (1, 1) { 258 } else { 80 };
            let pairs: Vec<(i32, i32)> = (0..end).flat_map(|a| (0..=a).map(move |b| (a, -b))).collect();
            hold(root(255, 1020).expect("fits"), &pairs, scale, 255, f64::INFINITY);
            hold_single(255, &pairs);
            for (most, most_sum) in [(1023, 4092), (4095, 16380), (8000, 16380)] {
                // About where results change.
                let mut pairs = vec![(most_sum, most_sum), (0, 0), (-most_sum, 0)];
                for result in (0..=most + 1).step_by(if d == 1 { 1 } else { 7 }) {
                    let least = scale.least_squares(result) as f64;
                    for share in [0.0, 0.36, 0.5] {
                        let a = (least * share).sqrt() as i32;
                        let b = (least - f64::from(a * a)).max(0.0).sqrt() as i32;
                        pairs.extend((b - 1..=b + 1).map(|b| (a, b)));
                    }
                }
                pairs.retain(|&(a, b)| a.abs().max(b.abs()) <= most_sum);
                match root(most, i64::from(most_sum)) {
                    Some(correction) => hold(correction, &pairs, scale, most, f64::INFINITY),
                    None => assert!(d > 1 || n == 10, "{n}/{d} {most}"),
                }
                hold_single(most, &pairs);
            }
        }
    }

    /// Checks the roots of pairs of sums, each in both halves of a vector: these may have different methods.
    fn hold(root: impl VectorRoot, pairs: &[(i32, i32)], scale: Scale, most: u32, near_error: f64) {
        let later: Vec<_> = [&[(0, 0); 2][..], pairs].concat();
        for pairs in [pairs, &later] {
            for roots in lengths(root, pairs, near_error) {
                for (&pair, &root) in pairs.iter().zip(&roots) {
                    assert!(
                        is_root(root, pair, scale, most),
                        "{scale:?} {most} {pair:?}: {root}"
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_are_refused_where_the_proof_does_not_hold() {
        let in_numbers =
            |scale: f64, most, most_sum| Root::new(Scale::nearest(scale), most).in_numbers(most_sum);
        assert!(in_numbers(1.0, 65535, 16 * 65535).is_some());
        // Denominators up to 104 at 16 bits.
        assert!(in_numbers(1.0 / 104.0, 65535, 1 << 18).is_some());
        assert!(in_numbers(1.0 / 105.0, 65535, 1 << 18).is_none());
        // Sums that are no real numbers of 32 bits, results of more than 17 bits.
        assert!(in_numbers(1.0, 65535, (1 << 24) + 1).is_none());
        assert!(in_numbers(1.0, 1 << 17, 1 << 18).is_none());
        // Lengths that take more than 32 bits.
        assert!(in_numbers(999.0, 65535, 16 * 65535).is_none());
        // In words: results above 8000, lengths above 15 bits, denominators.
        let in_words = |scale: f64, most, most_sum| Root::new(Scale::nearest(scale), most).in_words(most_sum);
        assert!(in_words(1.0, 8000, 16 * 1023).is_some());
        assert!(in_words(1.0, 8001, 16 * 1023).is_none());
        assert!(in_words(1.0, 4095, 23200).is_none());
        assert!(in_words(0.25, 255, 1020).is_some());
        assert!(in_words(0.125, 255, 1020).is_none());
    }
}
