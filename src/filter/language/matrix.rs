//! Parses rows of numbers and a divisor into a mask: exact where the numbers are.

use crate::filter::masks::number::{Number, Ratio, gcd};
use crate::filter::{Mask, MaskError};

/// What the written numbers are divided by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::filter) enum Divisor {
    /// Themselves: 1.
    One,
    /// Their sum, so that the weights add up to 1.
    Sum,
    /// A number.
    Number(Number),
}

/// The mask whose rows are `rows`, divided by `divisor`.
pub(in crate::filter) fn mask(rows: &[Vec<Number>], divisor: Divisor) -> Result<Mask, MaskError> {
    let (width, height) = (rows.first().map_or(0, Vec::len), rows.len());
    if let Some(row) = rows.iter().position(|r| r.len() != width) {
        return Err(MaskError::Ragged {
            row: row + 1,
            found: rows[row].len(),
            expected: width,
        });
    }
    let numbers: Vec<Number> = rows.iter().flatten().copied().collect();
    if numbers.is_empty() {
        return Err(MaskError::EvenSide { width, height });
    }
    if let Some((numerators, divisor)) = integers(&numbers, divisor)? {
        return Mask::from_integers(width, height, numerators, divisor);
    }
    let divisor = match divisor {
        Divisor::One => 1.0,
        Divisor::Number(number) if number.value == 0.0 => return Err(MaskError::ZeroDivisor),
        Divisor::Number(number) => number.value,
        Divisor::Sum => {
            let sum: f64 = numbers.iter().map(|n| n.value).sum();
            let total: f64 = numbers.iter().map(|n| n.value.abs()).sum();
            // A sum that is only the rounding of numbers that cancel is no divisor.
            if sum.abs() <= total * 1e-12 {
                return Err(MaskError::ZeroSum);
            }
            sum
        }
    };
    Mask::new(width, height, numbers.iter().map(|n| n.value / divisor).collect())
}

/// The quotients as integers over one positive divisor, in lowest terms; `None` if they are not known or too
/// large to be that.
fn integers(numbers: &[Number], divisor: Divisor) -> Result<Option<(Vec<i64>, i64)>, MaskError> {
    let Some((numerators, common)) = over_common(numbers) else {
        return Ok(None);
    };
    let divisor = match divisor {
        Divisor::One => Ratio::new(1, 1),
        Divisor::Sum => {
            let sum = numerators.iter().try_fold(0_i128, |sum, &n| sum.checked_add(n));
            if sum == Some(0) {
                return Err(MaskError::ZeroSum);
            }
            sum.and_then(|sum| Ratio::new(sum, common))
        }
        Divisor::Number(number) if number.value == 0.0 => return Err(MaskError::ZeroDivisor),
        Divisor::Number(number) => number.ratio,
    };
    Ok(divisor.and_then(|divisor| {
        let above = i128::from(divisor.denominator);
        let below = common.checked_mul(i128::from(divisor.numerator))?;
        let numerators: Vec<i128> = numerators
            .iter()
            .map(|n| n.checked_mul(above))
            .collect::<Option<_>>()?;
        let shared = numerators.iter().fold(below, |g, &n| gcd(g, n)) * below.signum();
        let reduced = numerators.iter().map(|n| i64::try_from(n / shared).ok());
        Some((
            reduced.collect::<Option<_>>()?,
            i64::try_from(below / shared).ok()?,
        ))
    }))
}

fn over_common(numbers: &[Number]) -> Option<(Vec<i128>, i128)> {
    let ratios: Vec<Ratio> = numbers.iter().map(|n| n.ratio).collect::<Option<_>>()?;
    let mut common = 1_i128;
    for ratio in &ratios {
        let denominator = i128::from(ratio.denominator);
        common = common.checked_mul(denominator / gcd(common, denominator))?;
        i64::try_from(common).ok()?;
    }
    let numerators = ratios
        .iter()
        .map(|r| i128::from(r.numerator) * (common / i128::from(r.denominator)))
        .collect();
    Some((numerators, common))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str) -> Vec<Vec<Number>> {
        text.split(';')
            .map(|row| row.split_whitespace().map(|n| n.parse().unwrap()).collect())
            .collect()
    }

    fn number(text: &str) -> Divisor {
        Divisor::Number(text.parse().unwrap())
    }

    #[test]
    fn fractions_and_decimals_share_one_divisor() {
        let m = mask(&rows("1/16 0.125 1/16"), Divisor::One).unwrap();
        let exact = m.exact().unwrap();
        assert_eq!((exact.numerators.as_slice(), exact.divisor), (&[1, 2, 1][..], 16));
        let m = mask(&rows("1/3 1/4 1/6"), number("1/2")).unwrap();
        let exact = m.exact().unwrap();
        assert_eq!((exact.numerators.as_slice(), exact.divisor), (&[4, 3, 2][..], 6));
        let m = mask(&rows("1 2 1"), number("-4")).unwrap();
        let exact = m.exact().unwrap();
        assert_eq!(
            (exact.numerators.as_slice(), exact.divisor),
            (&[-1, -2, -1][..], 4)
        );
    }

    #[test]
    fn the_sum_divides() {
        let m = mask(&rows("1 2 1;2 4 2;1 2 1"), Divisor::Sum).unwrap();
        assert_eq!(m.exact().unwrap().divisor, 16);
        assert_eq!(m.sum(), 1.0);
        let m = mask(&rows("1e-30 2e-30 1e-30"), Divisor::Sum).unwrap();
        assert!(m.exact().is_none());
        assert!((m.sum() - 1.0).abs() < 1e-15);
        assert_eq!(
            mask(&rows("-1 0 1"), Divisor::Sum).unwrap_err(),
            MaskError::ZeroSum
        );
        assert_eq!(
            mask(&rows("-1e-30 0 1e-30"), Divisor::Sum).unwrap_err(),
            MaskError::ZeroSum
        );
    }

    #[test]
    fn numbers_too_large_for_integers_become_floats() {
        let m = mask(
            &rows("1/9223372036854775807 1/9223372036854775783 1"),
            Divisor::One,
        )
        .unwrap();
        assert!(m.exact().is_none());
        assert_eq!(m.weights()[2], 1.0);
        let m = mask(&rows("9223372036854775807 1 1"), number("1/3")).unwrap();
        assert!(m.exact().is_none());
        assert_eq!(m.weights()[1], 3.0);
    }

    #[test]
    fn what_is_no_mask_is_refused() {
        assert_eq!(
            mask(&rows("1 2 1;1 2"), Divisor::One).unwrap_err(),
            MaskError::Ragged {
                row: 2,
                found: 2,
                expected: 3
            }
        );
        assert_eq!(
            mask(&rows("1 2"), Divisor::One).unwrap_err(),
            MaskError::EvenSide { width: 2, height: 1 }
        );
        assert_eq!(
            mask(&[], Divisor::Sum).unwrap_err(),
            MaskError::EvenSide { width: 0, height: 0 }
        );
        assert_eq!(
            mask(&rows("1 2 1"), number("0")).unwrap_err(),
            MaskError::ZeroDivisor
        );
        assert_eq!(
            mask(&rows("1e300 0 0"), number("1e-300")).unwrap_err(),
            MaskError::NotFinite { row: 1, column: 1 }
        );
    }
}
