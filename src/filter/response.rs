//! What a filter makes of the sums that its masks give: the sum itself, its absolute value, the magnitude of
//! a gradient, or the largest of several; and Gaussians that no mask holds.
//!
//! ```text
//! linear      one mask      S                          a blur, an edge with its sign
//! absolute    one mask      |S|                        laplacian8:abs
//! magnitude   two masks     n/d sqrt(S0^2 + S1^2)      sobel, prewitt, scharr, roberts
//! largest     eight masks   max(S0, .. S7)             kirsch
//! wide        no mask       a pyramid (pyramid.rs)     gaussian:sigma=50
//! ```

use super::Mask;
use std::fmt;

/// How a filter's result follows from the sums of its masks.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum Response {
    /// The sum over the filter's mask.
    #[default]
    Linear,
    /// The absolute value of that sum.
    Absolute,
    /// The magnitude of a gradient: the root of the sum of the squares of two masks' sums, times a scale.
    Magnitude {
        /// The second mask, of the first one's size.
        across: Mask,
        /// What the root is multiplied by.
        scale: Scale,
    },
    /// The largest of the sums over the filter's mask and these, all of one size.
    Largest {
        /// The masks beside the filter's own.
        others: Vec<Mask>,
    },
    /// A Gaussian that is wider than masks are, of which the filter's mask is the middle.
    WideGaussian {
        /// Its standard deviation, in pixels.
        sigma: f64,
    },
}

impl Response {
    /// The masks beside the filter's own.
    pub fn others(&self) -> &[Mask] {
        match self {
            Response::Linear | Response::Absolute | Response::WideGaussian { .. } => &[],
            Response::Magnitude { across, .. } => std::slice::from_ref(across),
            Response::Largest { others } => others,
        }
    }

    /// The same of masks that are turned by 180 degrees.
    #[must_use]
    pub(super) fn flipped(self) -> Response {
        match self {
            Response::Linear | Response::Absolute | Response::WideGaussian { .. } => self,
            Response::Magnitude { across, scale } => Response::Magnitude {
                across: across.flipped(),
                scale,
            },
            Response::Largest { others } => Response::Largest {
                others: others.iter().map(Mask::flipped).collect(),
            },
        }
    }
}

/// How the sums of the masks are combined, in words.
impl fmt::Display for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Response::Linear => f.write_str("the sum"),
            Response::Absolute => f.write_str("the absolute value of the sum"),
            Response::Magnitude { scale, .. } => {
                f.write_str("the root of the sum of the squares of both sums")?;
                match (scale.numerator, scale.denominator) {
                    (1, 1) => Ok(()),
                    (n, 1) => write!(f, ", times {n}"),
                    (n, d) => write!(f, ", times {n}/{d}"),
                }
            }
            Response::Largest { others } => write!(f, "the largest of the {} sums", others.len() + 1),
            Response::WideGaussian { sigma } => write!(
                f,
                "a Gaussian of sigma {sigma}, which fits no mask and is made of a smaller picture"
            ),
        }
    }
}

/// A positive fraction in lowest terms: what the root of a sum of squares is multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    numerator: u32,
    denominator: u32,
}

impl Scale {
    /// No scale.
    pub const ONE: Scale = Scale {
        numerator: 1,
        denominator: 1,
    };

    /// The largest denominator: with it, the squares that decide how a root of 16-bit samples is rounded fit
    /// 63 bits.
    pub const MAX_DENOMINATOR: u32 = 1 << 14;

    /// The least and the largest number that a scale may stand for.
    pub const RANGE: (f64, f64) = (0.001, 1000.0);

    /// The fraction that `value` (within [`Scale::RANGE`]) stands for: of its convergents, the last one with
    /// a denominator of up to [`Scale::MAX_DENOMINATOR`]. A number that is such a fraction is kept exactly.
    pub fn nearest(value: f64) -> Scale {
        let most = u64::from(Scale::MAX_DENOMINATOR);
        let (mut before, mut last) = ((1_u64, 0_u64), (value.floor() as u64, 1_u64));
        let mut rest = value.fract();
        // What is left of a fraction that f64 only comes near to.
        while rest > 1e-9 {
            let whole = (1.0 / rest).floor();
            rest = (1.0 / rest).fract();
            if whole > most as f64 {
                break;
            }
            let whole = whole as u64;
            let next = (whole * last.0 + before.0, whole * last.1 + before.1);
            if next.1 > most {
                break;
            }
            (before, last) = (last, next);
        }
        match last {
            // Less than half of the finest step.
            (0, _) => Scale {
                numerator: 1,
                denominator: Scale::MAX_DENOMINATOR,
            },
            (n, d) => Scale {
                numerator: n as u32,
                denominator: d as u32,
            },
        }
    }

    /// The part above the fraction bar, from 1 to 1000 times [`Scale::MAX_DENOMINATOR`].
    pub fn numerator(self) -> u32 {
        self.numerator
    }

    /// The part below the fraction bar, at most [`Scale::MAX_DENOMINATOR`].
    pub fn denominator(self) -> u32 {
        self.denominator
    }

    /// The root of `squares`, times the scale, rounded half up: `floor(n/d sqrt(squares) + 1/2)`, which is
    /// `floor((isqrt(4 n^2 squares) + d) / 2d)`, where isqrt is the root rounded down.
    pub fn root(self, squares: u64) -> u64 {
        let (n, d) = (u128::from(self.numerator), u128::from(self.denominator));
        let twice = (4 * n * n * u128::from(squares)).isqrt();
        ((twice + d) / (2 * d)) as u64
    }

    /// The least sum of squares whose scaled root is at least `result`: `ceil((2 result - 1)^2 d^2 / 4 n^2)`.
    pub fn least_squares(self, result: u32) -> u64 {
        let (n, d) = (u128::from(self.numerator), u128::from(self.denominator));
        let edge = (2 * u128::from(result)).saturating_sub(1) * d;
        (edge * edge).div_ceil(4 * n * n) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(value: f64) -> (u32, u32) {
        let scale = Scale::nearest(value);
        (scale.numerator(), scale.denominator())
    }

    #[test]
    fn fractions_are_found_again_and_others_come_near() {
        for (n, d) in [
            (1, 1),
            (2, 1),
            (1, 3),
            (7, 10),
            (707, 1000),
            (16383, 16384),
            (999, 1),
        ] {
            assert_eq!(parts(f64::from(n) / f64::from(d)), (n, d));
        }
        for value in [std::f64::consts::PI, 0.001234567, 1.0 / 16385.0, 999.99999] {
            let (n, d) = parts(value);
            assert!(d <= Scale::MAX_DENOMINATOR);
            assert!(
                (f64::from(n) / f64::from(d) - value).abs() < 1e-4 * value.max(0.1),
                "{value}"
            );
        }
    }

    #[test]
    fn roots_are_rounded_half_up() {
        for scale in [0.001, 0.25, 1.0 / 3.0, 0.5, 0.7, 1.0, 1.5, 2.0, 1000.0] {
            let scale = Scale::nearest(scale);
            let (n, d) = (u128::from(scale.numerator), u128::from(scale.denominator));
            for squares in (0..3000).chain([65025, 64770, 2_080_800, 33_292_800, 1 << 41]) {
                let root = u128::from(scale.root(squares));
                // root - 1/2 <= n/d sqrt(squares) < root + 1/2, squared and without the fractions.
                let exact = 4 * n * n * u128::from(squares);
                let below = (2 * root).saturating_sub(1) * d;
                let above = (2 * root + 1) * d;
                assert!(
                    below * below <= exact && exact < above * above,
                    "{scale:?} {squares}"
                );
            }
            for result in [1, 2, 255, 1023, 65535] {
                let least = scale.least_squares(result);
                assert!(scale.root(least) >= u64::from(result), "{scale:?} {result}");
                assert!(
                    least == 0 || scale.root(least - 1) < u64::from(result),
                    "{scale:?} {result}"
                );
            }
        }
    }
}
