//! The bias of a filter. It is kept as the ratio that was written, since 2.3 as a floating-point number is a
//! little below 2.3, and a result that ends in a half would be rounded down.

use super::masks::number::{Number, Ratio};

/// What is added to luma and RGB results, in levels of 8-bit pixels.
///
/// ```
/// use framepipe::filter::Bias;
///
/// let bias = Bias::from(2.3);
/// assert_eq!(bias.value(), 2.3);
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bias(Number);

impl Bias {
    /// Nothing is added.
    pub const NONE: Bias = Bias(Number {
        value: 0.0,
        ratio: Some(Ratio {
            numerator: 0,
            denominator: 1,
        }),
    });

    /// The nearest floating-point number, in levels of 8-bit pixels.
    pub fn value(&self) -> f64 {
        self.0.value
    }

    /// `floor((bias x levels + 1/2) x one)`, where `levels` are those of a pixel to one of 8 bits.
    pub(in crate::filter) fn rounding(&self, levels: u32, one: i64) -> i64 {
        let exactly = |ratio: Ratio| {
            let (n, d) = (i128::from(ratio.numerator), i128::from(ratio.denominator));
            let doubled = n.checked_mul(2 * i128::from(levels))?.checked_add(d)?;
            i64::try_from(doubled.checked_mul(one.into())?.div_euclid(2 * d)).ok()
        };
        self.0.ratio.and_then(exactly).unwrap_or_else(|| {
            let bias = self.0.value * f64::from(levels);
            let below = ((bias - bias.floor() + 0.5) * one as f64).floor() as i64;
            bias.floor() as i64 * one + below
        })
    }
}

impl From<Number> for Bias {
    fn from(number: Number) -> Bias {
        Bias(number)
    }
}

impl From<f64> for Bias {
    /// The shortest decimal that is read as this number.
    fn from(value: f64) -> Bias {
        let shortest = format!("{value:?}").parse();
        Bias(shortest.unwrap_or(Number { value, ratio: None }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_exact() {
        let written = |text: &str| Bias::from(text.parse::<Number>().unwrap());
        // 1/5 + 2.3 is a half: 23/10 + 1/2 is 28/10, over tenths.
        assert_eq!(written("2.3").rounding(1, 10), 28);
        assert_eq!(Bias::from(2.3).rounding(1, 10), 28);
        assert_eq!(written("-2.3").rounding(1, 10), -18);
        assert_eq!(written("1/3").rounding(1, 3), 2);
        assert_eq!(written("1/3").rounding(256, 3), 257);
        assert_eq!(Bias::NONE.rounding(256, 7), 3);
        // More digits than a ratio holds.
        assert_eq!(written("0.123456789012345678901234567").rounding(1, 8), 4);
    }
}
