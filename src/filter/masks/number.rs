//! Numbers as people write weights: integers, decimals and fractions, kept exact where they are of reasonable
//! size.

use crate::wording::shortened;
use std::str::FromStr;

/// A finite number, and the ratio that it is exactly if that is small enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::filter) struct Number {
    pub(in crate::filter) value: f64,
    pub(in crate::filter) ratio: Option<Ratio>,
}

/// A ratio in lowest terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::filter) struct Ratio {
    pub(in crate::filter) numerator: i64,
    /// Positive.
    pub(in crate::filter) denominator: i64,
}

/// A text that is no finite number.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NumberError {
    /// Not a number.
    #[error("'{0}' is not a number; write an integer, a decimal or a fraction such as 1/16")]
    NotANumber(String),
    /// NaN, infinity, or too large for one.
    #[error("'{0}' is not a finite number; write an integer, a decimal or a fraction such as 1/16")]
    NotFinite(String),
    /// A fraction over zero.
    #[error("'{0}' divides by zero; write another denominator")]
    OverZero(String),
}

impl Ratio {
    /// In lowest terms, if both parts then fit; `None` also over zero.
    pub(in crate::filter) fn new(numerator: i128, denominator: i128) -> Option<Ratio> {
        if denominator == 0 {
            return None;
        }
        let common = gcd(numerator, denominator) * denominator.signum();
        Some(Ratio {
            numerator: i64::try_from(numerator / common).ok()?,
            denominator: i64::try_from(denominator / common).ok()?,
        })
    }

    fn over(self, other: Ratio) -> Option<Ratio> {
        Ratio::new(
            i128::from(self.numerator) * i128::from(other.denominator),
            i128::from(self.denominator) * i128::from(other.numerator),
        )
    }
}

impl FromStr for Number {
    type Err = NumberError;

    fn from_str(text: &str) -> Result<Number, NumberError> {
        let Some((above, below)) = text.split_once('/') else {
            return decimal(text, text);
        };
        let (above, below) = (decimal(above.trim(), text)?, decimal(below.trim(), text)?);
        if below.value == 0.0 {
            return Err(NumberError::OverZero(shortened(text)));
        }
        let value = above.value / below.value;
        if !value.is_finite() {
            return Err(NumberError::NotFinite(shortened(text)));
        }
        let ratio = above.ratio.zip(below.ratio).and_then(|(a, b)| a.over(b));
        Ok(Number { value, ratio })
    }
}

/// `part`, a number without a fraction bar, out of `whole`, which an error names.
fn decimal(part: &str, whole: &str) -> Result<Number, NumberError> {
    let value: f64 = part
        .parse()
        .map_err(|_| NumberError::NotANumber(shortened(whole)))?;
    if !value.is_finite() {
        return Err(NumberError::NotFinite(shortened(whole)));
    }
    Ok(Number {
        value,
        ratio: exactly(part),
    })
}

/// The ratio that a text with a decimal point and an exponent stands for; the text is known to be a number.
fn exactly(text: &str) -> Option<Ratio> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    // A sign or the point may stand alone before digits.
    let digits = format!("{whole}{fraction}");
    let digits = match digits.as_str() {
        "" | "+" | "-" => "0",
        digits => digits,
    };
    let digits: i128 = digits.parse().ok()?;
    let places = i32::try_from(fraction.len()).ok()?.checked_sub(exponent)?;
    let power = 10_i128.checked_pow(places.unsigned_abs())?;
    if places >= 0 {
        Ratio::new(digits, power)
    } else {
        Ratio::new(digits.checked_mul(power)?, 1)
    }
}

/// The greatest common divisor, not negative; 0 only of two zeros.
pub(in crate::filter) fn gcd(a: i128, b: i128) -> i128 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    // Callers hold products of two 63-bit numbers at most.
    i128::try_from(a).unwrap_or(i128::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(text: &str) -> Option<(i64, i64)> {
        let number: Number = text.parse().unwrap();
        number.ratio.map(|r| (r.numerator, r.denominator))
    }

    #[test]
    fn integers_decimals_and_fractions_are_exact() {
        for (text, expected) in [
            ("3", (3, 1)),
            ("-3", (-3, 1)),
            ("+3", (3, 1)),
            ("0.0625", (1, 16)),
            ("1/16", (1, 16)),
            ("-2/4", (-1, 2)),
            ("1/-4", (-1, 4)),
            ("0.5/0.25", (2, 1)),
            (".5", (1, 2)),
            ("5.", (5, 1)),
            ("-.25", (-1, 4)),
            ("-0.0", (0, 1)),
            ("1e3", (1000, 1)),
            ("25e-2", (1, 4)),
            ("0.10000000000000000000000000000000000000000", (1, 10)),
        ] {
            assert_eq!(ratio(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn numbers_beyond_reason_are_kept_as_floats() {
        for text in [
            "1e30",
            "1e-30",
            "0.1234567890123456789012345",
            "1/99999999999999999999",
        ] {
            let number: Number = text.parse().unwrap();
            assert_eq!(number.ratio, None, "{text}");
            assert!(number.value > 0.0);
        }
    }

    #[test]
    fn what_is_no_finite_number_is_refused() {
        for text in ["nan", "inf", "-infinity", "1e999", "1/nan", "1e300/1e-300"] {
            let error = text.parse::<Number>().unwrap_err();
            assert_eq!(error, NumberError::NotFinite(shortened(text)));
        }
        for text in ["", "x", "1/2/3", "1,5", "0x10", "1/", "--1", "1 2"] {
            let error = text.parse::<Number>().unwrap_err();
            assert_eq!(error, NumberError::NotANumber(text.to_owned()));
        }
        assert_eq!(
            "1/0".parse::<Number>().unwrap_err(),
            NumberError::OverZero("1/0".to_owned())
        );
    }
}
