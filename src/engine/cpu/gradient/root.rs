//! The scaled root of a sum of squares, rounded half up, as docs/arithmetic.md defines it in integers.
//!
//! Floating point makes it fast. Every method here is monotonic in the sum of squares, and so is the
//! definition; so two of them agree everywhere if they agree at the least squares of each result and at one
//! below. That is checked for every result when a plan is made, and a method that fails is not used.

use crate::engine::cpu::simd::vector::Simd;
use crate::filter::Scale;
use std::fmt;

/// The largest result that the ways in floating point are tried for.
const MOST_CHECKED: u32 = 1 << 17;

/// How roots are found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Root {
    /// What it was made for.
    made_for: (Scale, u32),
    /// Larger sums of squares give the largest result, or one above the largest sample.
    pub(super) most: u64,
    pub(super) way: Way,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Way {
    /// Numbers of 32 bits, and what the root is multiplied by.
    Single(f32),
    /// The same, corrected by integers of 32 bits.
    Corrected(Correction),
    /// Numbers of 64 bits.
    Double(f64),
    /// As it is defined.
    Integers,
}

/// What puts a root right that may be one too large: r is at most the scaled root of m plus a half where
/// `(2r - 1)^2 d^2 <= 4 n^2 m`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Correction {
    /// A little more than the scale.
    factor: f32,
    /// d^2
    below: i32,
    /// 4 n^2
    above: i32,
}

impl Correction {
    /// `None` where 32 bits do not hold both sides for every result.
    fn new(scale: Scale, factor: f32, most_result: u32) -> Option<Correction> {
        let square = |a: u32| i64::from(a).pow(2);
        let (below, above) = (square(scale.denominator()), 4 * square(scale.numerator()));
        let most = above.checked_mul(scale.least_squares(most_result) as i64)?;
        let edge = below.checked_mul(square(2 * most_result + 5))?;
        (most.max(edge) <= i64::from(i32::MAX)).then_some(Correction {
            factor,
            below: below as i32,
            above: above as i32,
        })
    }

    /// The root of `squares`, which are the least of the largest result at most.
    #[inline(always)]
    pub(super) fn root(&self, squares: i32) -> i32 {
        let near = single_root(squares, self.factor);
        let edge = 2 * near - 1;
        let is_above = near > 0 && edge * edge * self.below > self.above * squares;
        near - i32::from(is_above)
    }
}

/// A root of 32-bit numbers as vectors find it.
#[derive(Debug, Clone, Copy)]
pub(super) enum VectorRoot {
    /// And what it is multiplied by, if not by 1.
    Single(Option<f32>),
    /// And the largest squares.
    Corrected(Correction, i32),
}

impl VectorRoot {
    /// The roots of sums of squares, as [`single_root`] and [`Correction::root`] find them; -1 may stand for
    /// 0, and results beyond the largest are no less than it.
    #[inline(always)]
    pub(super) fn of<L: Simd>(self, simd: L, squares: L::V) -> L::V {
        match self {
            VectorRoot::Single(factor) => simd.scaled_roots(squares, factor),
            VectorRoot::Corrected(correction, most) => {
                let squares = simd.min_numbers(squares, simd.splat(most));
                let near = simd.scaled_roots(squares, Some(correction.factor));
                let edge = simd.add(simd.add(near, near), simd.splat(-1));
                let edges = simd.multiply_numbers(edge, edge);
                // Their difference is below 0 where the root is too large, and -1 once it is shifted down.
                let beyond = simd.multiply_numbers(edges, simd.splat(-correction.below));
                let exact = simd.multiply_numbers(squares, simd.splat(correction.above));
                let is_above = simd.shift_down(simd.add(exact, beyond), simd.splat(31));
                simd.add(near, is_above)
            }
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Single(_) => "roots of 32-bit numbers",
            Way::Corrected(_) => "roots of 32-bit numbers put right by integers",
            Way::Double(_) => "roots of 64-bit numbers",
            Way::Integers => "roots of integers",
        })
    }
}

impl Root {
    /// What roots are multiplied by.
    pub(super) fn scale(&self) -> Scale {
        self.made_for.0
    }

    /// True if it is what [`Root::new`] makes for these.
    pub(super) fn is_for(&self, scale: Scale, most_result: u32) -> bool {
        self.made_for == (scale, most_result)
    }

    /// The same for vectors; `None` where 32 bits do not do, or 16 for the result.
    pub(super) fn in_vectors(&self) -> Option<VectorRoot> {
        let most = i32::try_from(self.most).ok()?;
        let fits = self.made_for.1 < i16::MAX as u32;
        match self.way {
            Way::Single(factor) => Some(VectorRoot::Single((factor != 1.0).then_some(factor))),
            Way::Corrected(correction) => Some(VectorRoot::Corrected(correction, most)),
            Way::Double(_) | Way::Integers => None,
        }
        .filter(|_| fits)
    }

    /// For results up to `most_result`; larger ones may become it, too.
    pub(super) fn new(scale: Scale, most_result: u32) -> Root {
        let most = scale.least_squares(most_result);
        let factor = f64::from(scale.numerator()) / f64::from(scale.denominator());
        // Where halves are met exactly, a hair more rounds them up.
        let singles = [0.0, 2.0_f64.powi(-22)].map(|hair| (factor * (1.0 + hair)) as f32);
        let double = factor * (1.0 + 2.0_f64.powi(-50));
        let agrees = |squares: u64, result: u32, root: &dyn Fn(u64) -> u32| {
            root(squares) == result && squares.checked_sub(1).is_none_or(|less| root(less) < result)
        };
        let all = |root: &dyn Fn(u64) -> u32| {
            // Where a scale is large, one sum of squares is the least for several results.
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
        let more = (factor * (1.0 + 2.0_f64.powi(-20))) as f32;
        let correction = Correction::new(scale, more, most_result);
        let way = if let Some(single) = singles.into_iter().find(single) {
            Way::Single(single)
        } else if let Some(correction) = correction.filter(|c| all(&|s| c.root(s as i32) as u32)) {
            Way::Corrected(correction)
        } else if all(&|s| double_root(s as f64, double) as u32) {
            Way::Double(double)
        } else {
            Way::Integers
        };
        Root {
            made_for: (scale, most_result),
            most,
            way,
        }
    }
}

/// `squares` times `factor` squared, rounded to nearest: what is added leaves no bits for a fraction.
#[inline(always)]
pub(super) fn single_root(squares: i32, factor: f32) -> i32 {
    const ADDED: f32 = 8_388_608.0;
    ((squares as f32).sqrt() * factor + ADDED).to_bits() as i32 - ADDED.to_bits() as i32
}

/// [`single_root`] in numbers of 64 bits.
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
        match root.way {
            Way::Single(factor) => single_root(squares as i32, factor) as u64,
            Way::Corrected(correction) => correction.root(squares as i32) as u64,
            Way::Double(factor) => double_root(squares as f64, factor) as u64,
            Way::Integers => root.scale().root(squares),
        }
    }

    #[test]
    fn every_way_is_the_definition() {
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
                ways[match found.way {
                    Way::Single(_) => 0,
                    Way::Corrected(_) => 1,
                    Way::Double(_) => 2,
                    Way::Integers => 3,
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
        let way = |scale: f64, most: u32| Root::new(Scale::nearest(scale), most).way;
        for (scale, most) in [(0.5, 255), (1.0, 255), (2.0, 255), (1.0, 1023)] {
            assert!(matches!(way(scale, most), Way::Single(_)), "{scale} {most}");
        }
        for (scale, most) in [(0.0625, 255), (0.3, 255), (0.125, 1023), (1.0, 4095)] {
            assert!(matches!(way(scale, most), Way::Corrected(_)), "{scale} {most}");
        }
        assert!(matches!(way(1.0, 65535), Way::Double(_)));
    }
}
