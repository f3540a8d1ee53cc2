//! The scaled root of a sum of squares, rounded half up, as docs/arithmetic.md defines it in integers.
//!
//! Floating point makes it fast. Every method here is monotonic in the sum of squares, and so is the
//! definition. So a method agrees with the definition everywhere if it does at the least sum of squares of
//! each result, and at one below. That is checked for every result when a plan is made, and a method that
//! fails is not used.

use crate::engine::cpu::simd::vector::Simd;
use crate::filter::Scale;
use std::fmt;

/// The largest result for which floating-point methods are tried.
const MOST_CHECKED: u32 = 1 << 17;

/// The description of [`RootMethod::Corrected`], and of roots of 32-bit sums in vectors.
pub(super) const IN_NUMBERS: &str = "roots of 32-bit numbers put right by integers";

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
    /// In floating point of 32 bits; holds the factor of the root.
    Single(f32),
    /// The same, corrected by integers of 32 bits.
    Corrected(Correction),
    /// In floating point of 64 bits; holds the factor of the root.
    Double(f64),
    /// In integers, by the definition.
    Integers,
}

/// Corrects a root that may be one too large, in integers of 32 bits.
///
/// With r = n/d sqrt(m), `near` is one too large if it is more than r + 1/2:
///
/// ```text
/// near - 1/2 > r   <=>   d^2 (near^2 - near + 1/4) > n^2 m
///                  <=>   rest = n^2 m - d^2 near (near - 1) - ceil(d^2 / 4) < 0       in integers
/// ```
///
/// Both products may need far more than 32 bits, but their difference `rest` does not: with near - 3/2 <= r <
/// near + 1/2 its magnitude is at most d^2 (2 near + 2). So everything is computed modulo 2^32, and the sign
/// of `rest` is right.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Correction {
    /// A little more than the scale: roots are never too small, and too large by less than 1.
    pub(super) factor: f32,
    /// n^2, modulo 2^32.
    above: i32,
    /// d^2
    below: i32,
    /// d^2 / 4, rounded up.
    quarter: i32,
}

impl Correction {
    /// `None` if 32 bits do not hold the difference.
    fn new(scale: Scale, most_result: u32) -> Option<Correction> {
        let square = |a: u32| u64::from(a).pow(2);
        let (above, below) = (square(scale.numerator()), square(scale.denominator()));
        let factor = scale.numerator() as f64 / f64::from(scale.denominator());
        // `near` may be one more than the largest result.
        let most = below * (2 * u64::from(most_result) + 4);
        (most <= i32::MAX as u64).then_some(Correction {
            factor: (factor * (1.0 + 2.0_f64.powi(-20))) as f32,
            above: above as i32,
            below: below as i32,
            quarter: below.div_ceil(4) as i32,
        })
    }

    /// The root of `squares`, which is at most [`Root::most`].
    #[inline(always)]
    pub(super) fn root(&self, squares: i32) -> i32 {
        self.one_less(single_root(squares, self.factor), squares)
    }

    /// `near`, or one less where that is the root.
    #[inline(always)]
    fn one_less(&self, near: i32, squares: i32) -> i32 {
        let edge = near.wrapping_mul(near - 1).wrapping_mul(self.below);
        let rest = squares.wrapping_mul(self.above).wrapping_sub(edge);
        near - i32::from(near > 0 && rest.wrapping_sub(self.quarter) < 0)
    }

    /// [`Correction::one_less`] in vectors, for `squares` modulo 2^32. The result may be -1 for 0, and for a
    /// root beyond the largest result anything that is not less than that.
    #[inline(always)]
    pub(super) fn corrected<L: Simd>(&self, simd: L, near: L::V, squares: L::V) -> L::V {
        let mut edge = simd.multiply_numbers(near, simd.add(near, simd.splat(-1)));
        let mut exact = squares;
        if self.below != 1 {
            edge = simd.multiply_numbers(edge, simd.splat(self.below));
        }
        if self.above != 1 {
            exact = simd.multiply_numbers(exact, simd.splat(self.above));
        }
        let rest = simd.sub_numbers(exact, simd.add(edge, simd.splat(self.quarter)));
        // The shift gives -1 where `rest` is below 0.
        simd.add(near, simd.shift_down(rest, simd.splat(31)))
    }
}

/// A method of roots in vectors, for sums of squares of 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum VectorRoot {
    /// [`RootMethod::Single`], with the factor unless it is 1.
    Single(Option<f32>),
    /// [`RootMethod::Corrected`].
    Corrected(Correction),
}

impl VectorRoot {
    /// The roots of sums of squares, as of [`single_root`] and [`Correction::root`]. The result may be -1 for
    /// 0, and beyond the largest result anything that is not less than that.
    #[inline(always)]
    pub(super) fn of<L: Simd>(self, simd: L, squares: L::V) -> L::V {
        match self {
            VectorRoot::Single(factor) => simd.scaled_roots(squares, factor),
            VectorRoot::Corrected(correction) => {
                let near = simd.scaled_roots(squares, Some(correction.factor));
                correction.corrected(simd, near, squares)
            }
        }
    }
}

impl fmt::Display for RootMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RootMethod::Single(_) => "roots of 32-bit numbers",
            RootMethod::Corrected(_) => IN_NUMBERS,
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

    /// The method in vectors for sums of 16 bits; `None` if it needs more than 32 bits, or a result more than
    /// 16.
    pub(super) fn in_words(&self) -> Option<VectorRoot> {
        let fits = self.made_for.1 < i16::MAX as u32;
        match self.method {
            RootMethod::Single(factor) => Some(VectorRoot::Single((factor != 1.0).then_some(factor))),
            RootMethod::Corrected(correction) => Some(VectorRoot::Corrected(correction)),
            RootMethod::Double(_) | RootMethod::Integers => None,
        }
        .filter(|_| fits)
    }

    /// The method in vectors for two sums of up to `most_sum`, the sum of whose squares may need more than 32
    /// bits.
    ///
    /// It is not checked result by result, as it is no function of the sum of squares. With u = 2^-24, the
    /// unit of rounding of 32-bit floating point, the sum of both squares is off by 2 u; its root by half of
    /// that, and by u for itself; then the factor and the product by u each. The factor is 16 u too large. So
    /// with r the exact root, the number that is rounded to `near` is above r by less than 21 u r, which is
    /// 0.17 for r up to 2^17. Then `near` is r rounded half up, or one more.
    pub(super) fn in_numbers(&self, most_sum: i64) -> Option<Correction> {
        let (scale, most_result) = self.made_for;
        // Floating point of 32 bits holds integers up to 2^24 exactly.
        let is_exact = most_sum <= 1 << 24;
        let correction = Correction::new(scale, most_result)?;
        let longest = most_sum as f64 * 2.0_f64.sqrt() * f64::from(correction.factor);
        (is_exact && most_result < MOST_CHECKED && longest < f64::from(i32::MAX / 2)).then_some(correction)
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
        let single = |single: &f32| fits && all(&|s| single_root(s as i32, *single) as u32);
        let correction = Correction::new(scale, most_result).filter(|_| fits);
        let method = if let Some(single) = singles.into_iter().find(single) {
            RootMethod::Single(single)
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

/// The root of `squares` times `factor`, rounded to nearest: adding 2^23 leaves no bits for a fraction.
#[inline(always)]
pub(super) fn single_root(squares: i32, factor: f32) -> i32 {
    const ADDED: f32 = 8_388_608.0;
    ((squares as f32).sqrt() * factor + ADDED).to_bits() as i32 - ADDED.to_bits() as i32
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

    fn root(root: &Root, squares: u64) -> u64 {
        let squares = squares.min(root.most);
        match root.method {
            RootMethod::Single(factor) => single_root(squares as i32, factor) as u64,
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
                    RootMethod::Single(_) => 0,
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
                matches!(way(scale, most), RootMethod::Single(_)),
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

    /// What vectors of 32-bit sums compute.
    fn length(correction: &Correction, a: i32, b: i32) -> i32 {
        let (x, y) = (a as f32, b as f32);
        let near = (x * x + y * y).sqrt() * correction.factor;
        let squares = a.wrapping_mul(a).wrapping_add(b.wrapping_mul(b));
        correction.one_less(near.round_ties_even() as i32, squares)
    }

    /// True if `result` is n/d sqrt(a^2 + b^2), rounded half up; or if neither is less than `most`.
    fn is_root(result: i32, (a, b): (i32, i32), scale: Scale, most: u32) -> bool {
        let squares = i128::from(a).pow(2) + i128::from(b).pow(2);
        let (n, d) = (i128::from(scale.numerator()), i128::from(scale.denominator()));
        let (exact, result) = (4 * n * n * squares, i128::from(result));
        let reaches = |number: i128| number <= 0 || ((2 * number - 1) * d).pow(2) <= exact;
        let most = i128::from(most);
        result >= 0 && reaches(result.min(most)) && (result >= most || !reaches(result + 1))
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
            (126, 127),
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
                    assert!(n == 999 || (d, most) == (127, 68000), "{n}/{d} {most} {most_sum}");
                    continue;
                };
                let mut check = |a: i64, b: i64| {
                    if a.min(b) < 0 || a.max(b) > most_sum {
                        return;
                    }
                    let pair = (a as i32, b as i32);
                    let result = length(&correction, pair.0, -pair.1);
                    assert!(
                        is_root(result, pair, scale, most),
                        "{n}/{d} {most} {pair:?}: {result}"
                    );
                    checked += 1;
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
            }
        }
        assert!(checked > 100_000, "{checked}");
    }

    #[test]
    fn lengths_are_refused_where_the_proof_does_not_hold() {
        let in_numbers =
            |scale: f64, most, most_sum| Root::new(Scale::nearest(scale), most).in_numbers(most_sum);
        assert!(in_numbers(1.0, 65535, 16 * 65535).is_some());
        // Denominators up to 127 at 16 bits.
        assert!(in_numbers(1.0 / 127.0, 65535, 1 << 18).is_some());
        assert!(in_numbers(1.0 / 129.0, 65535, 1 << 18).is_none());
        // Sums that are no real numbers of 32 bits, results of more than 17 bits.
        assert!(in_numbers(1.0, 65535, (1 << 24) + 1).is_none());
        assert!(in_numbers(1.0, 1 << 17, 1 << 18).is_none());
        // Lengths that take more than 32 bits.
        assert!(in_numbers(999.0, 65535, 16 * 65535).is_none());
    }
}
