//! The matrix of weights.

use super::number::{Number, Ratio};
use std::fmt;

/// The widest and tallest mask.
pub const MAX_MASK: usize = 63;

/// A matrix of weights with odd sides, applied as a correlation: the weight at row `j`, column `i` multiplies
/// the pixel at (x + i - width/2, y + j - height/2).
#[derive(Debug, Clone, PartialEq)]
pub struct Mask {
    width: usize,
    height: usize,
    weights: Vec<f64>,
    exact: Option<Exact>,
}

/// The weights as integers over one divisor, where they are known to be that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exact {
    /// Row by row.
    pub numerators: Vec<i64>,
    /// The divisor of sums, not zero.
    pub divisor: i64,
}

/// Why a matrix is no mask.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MaskError {
    /// A side is even or zero.
    #[error("a mask of {width}x{height} has no centre; both sides must be odd, such as 3x3 or 5x3")]
    EvenSide {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// A side is longer than [`MAX_MASK`].
    #[error("a mask of {width}x{height} is too large; the limit is {MAX_MASK}x{MAX_MASK}")]
    TooLarge {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
    },
    /// There is not one weight for each pixel of the mask.
    #[error("a mask of {width}x{height} has {} weights, not {found}", .width * .height)]
    Count {
        /// Columns.
        width: usize,
        /// Rows.
        height: usize,
        /// Weights that were given.
        found: usize,
    },
    /// The rows differ in length.
    #[error("row {row} of the mask has {found} numbers, the first row has {expected}")]
    Ragged {
        /// The row, counted from 1.
        row: usize,
        /// Its numbers.
        found: usize,
        /// The first row's numbers.
        expected: usize,
    },
    /// A weight is not a finite number.
    #[error("the weight in row {row}, column {column} of the mask is not a finite number")]
    NotFinite {
        /// Counted from 1.
        row: usize,
        /// Counted from 1.
        column: usize,
    },
    /// The divisor is zero.
    #[error("the mask's divisor is zero; leave it out or give another number")]
    ZeroDivisor,
    /// The sum was to be the divisor, and it is zero.
    #[error(
        "the mask's weights add up to zero, so that their sum cannot be its divisor; leave the divisor out \
         or give a number"
    )]
    ZeroSum,
}

impl Mask {
    /// A mask from its weights, row by row.
    ///
    /// # Errors
    /// [`MaskError::TooLarge`], [`MaskError::EvenSide`], [`MaskError::Count`] unless there are `width` times
    /// `height` weights, and [`MaskError::NotFinite`], in this order.
    pub fn new(width: usize, height: usize, weights: Vec<f64>) -> Result<Mask, MaskError> {
        if width > MAX_MASK || height > MAX_MASK {
            return Err(MaskError::TooLarge { width, height });
        }
        if width.is_multiple_of(2) || height.is_multiple_of(2) {
            return Err(MaskError::EvenSide { width, height });
        }
        if weights.len() != width * height {
            return Err(MaskError::Count {
                width,
                height,
                found: weights.len(),
            });
        }
        if let Some(at) = weights.iter().position(|w| !w.is_finite()) {
            return Err(MaskError::NotFinite {
                row: at / width + 1,
                column: at % width + 1,
            });
        }
        Ok(Mask {
            width,
            height,
            weights,
            exact: None,
        })
    }

    /// A mask from integers over one divisor, which is kept, so that rank and factors are found exactly.
    ///
    /// # Errors
    /// [`MaskError::ZeroDivisor`], and those of [`Mask::new`].
    pub fn from_integers(
        width: usize,
        height: usize,
        numerators: Vec<i64>,
        divisor: i64,
    ) -> Result<Mask, MaskError> {
        if divisor == 0 {
            return Err(MaskError::ZeroDivisor);
        }
        let weights = numerators.iter().map(|&n| n as f64 / divisor as f64).collect();
        let mut mask = Mask::new(width, height, weights)?;
        mask.exact = Some(Exact { numerators, divisor });
        Ok(mask)
    }

    /// Columns, odd.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows, odd.
    pub fn height(&self) -> usize {
        self.height
    }

    /// The weights, row by row.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// The weights as integers over a divisor, if they are known to be that.
    pub fn exact(&self) -> Option<&Exact> {
        self.exact.as_ref()
    }

    /// The weight in row `j`, column `i`.
    pub fn at(&self, i: usize, j: usize) -> f64 {
        self.weights[j * self.width + i]
    }

    /// The sum of the weights: what a constant picture is multiplied by.
    pub fn sum(&self) -> f64 {
        match &self.exact {
            Some(e) => e.numerators.iter().map(|&n| i128::from(n)).sum::<i128>() as f64 / e.divisor as f64,
            None => self.weights.iter().sum(),
        }
    }

    /// The mask turned by 180 degrees: with it, correlation becomes convolution in the mathematical sense.
    #[must_use]
    pub fn flipped(&self) -> Mask {
        let mut flipped = self.clone();
        flipped.weights.reverse();
        if let Some(exact) = &mut flipped.exact {
            exact.numerators.reverse();
        }
        flipped
    }

    /// The mask with every weight multiplied by a number; exact where both are and integers hold it.
    pub(in crate::filter) fn scaled(&self, by: &Number) -> Result<Mask, MaskError> {
        let exactly = |exact: &Exact, ratio: Ratio| {
            let numerators = exact.numerators.iter();
            let numerators = numerators
                .map(|n| n.checked_mul(ratio.numerator))
                .collect::<Option<Vec<_>>>()?;
            Some((numerators, exact.divisor.checked_mul(ratio.denominator)?))
        };
        let scaled = self.exact.as_ref().zip(by.ratio);
        match scaled.and_then(|(exact, ratio)| exactly(exact, ratio)) {
            Some((numerators, divisor)) => Mask::from_integers(self.width, self.height, numerators, divisor),
            None => {
                let weights = self.weights.iter().map(|w| w * by.value).collect();
                Mask::new(self.width, self.height, weights)
            }
        }
    }
}

impl fmt::Display for Mask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_mask_is_refused_with_its_reason() {
        let of = |width, height, count| Mask::new(width, height, vec![1.0; count]).unwrap_err();
        for (error, said) in [
            (of(3, 3, 8), "a mask of 3x3 has 9 weights, not 8"),
            (of(3, 1, 4), "a mask of 3x1 has 3 weights, not 4"),
            (of(2, 3, 6), "a mask of 2x3 has no centre"),
            (of(0, 0, 0), "a mask of 0x0 has no centre"),
            (of(65, 1, 65), "a mask of 65x1 is too large"),
            (of(usize::MAX, 3, 0), "is too large"),
        ] {
            assert!(error.to_string().contains(said), "{error}");
        }
        let error = Mask::from_integers(3, 1, vec![1, 2], 3).unwrap_err();
        assert_eq!(
            error,
            MaskError::Count {
                width: 3,
                height: 1,
                found: 2
            }
        );
    }
}
