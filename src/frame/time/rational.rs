//! Fractions: time bases, and frame rates as people write them.

use super::point::SECOND;

/// A fraction, such as a frame rate or a time base. The denominator is positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rational {
    /// Numerator.
    pub num: i32,
    /// Denominator.
    pub den: i32,
}

/// The part by which a rate is off whose frames' duration was rounded to microseconds, at 60 frames/s.
#[cfg(feature = "ffmpeg")]
const ROUNDING: f64 = 3e-5;

impl Rational {
    /// The numerator over the denominator.
    pub fn to_f64(self) -> f64 {
        f64::from(self.num) / f64::from(self.den)
    }

    /// `ticks` of this time base in nanoseconds, cut off, so that [`Rational::tick_at`] leads back to the
    /// same tick.
    pub fn nanos(self, ticks: i64) -> i64 {
        let nanos = i128::from(ticks) * i128::from(self.num) * i128::from(SECOND);
        nanos.div_euclid(i128::from(self.den.max(1))) as i64
    }

    /// The first tick of this time base that is at `nanos` or later.
    pub fn tick_at(self, nanos: i64) -> i64 {
        let den = i128::from(self.num.max(1)) * i128::from(SECOND);
        let ticks = i128::from(nanos) * i128::from(self.den);
        (ticks + den - 1).div_euclid(den).min(i128::from(i64::MAX)) as i64
    }

    /// The frame rate that is meant where a container rounded the duration of a frame: a whole number, or one
    /// of NTSC's. Encoders know it by its exact value alone.
    #[cfg(feature = "ffmpeg")]
    pub(crate) fn without_rounding(self) -> Rational {
        let is_same = |other: &Rational| (self.to_f64() / other.to_f64() - 1.0).abs() < ROUNDING;
        let whole = |rate: f64| rate.round().clamp(1.0, 1e6) as i32;
        let whole_rate = Rational {
            num: whole(self.to_f64()),
            den: 1,
        };
        let ntsc = Rational {
            num: whole(self.to_f64() * 1.001) * 1000,
            den: 1001,
        };
        [whole_rate, ntsc].into_iter().find(is_same).unwrap_or(self)
    }
}

/// Words that are no frame rate.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no frame rate; write it like 30, 29.97 or 30000/1001, larger than 0")]
pub struct BadRate(pub String);

/// Reads `30`, `30000/1001` or `29.97` (the last becomes 30000/1001, as do its relatives 23.976 and 59.94).
pub fn parse_rate(text: &str) -> Result<Rational, BadRate> {
    let bad = || BadRate(text.to_owned());
    let (num, den) = if let Some((num, den)) = text.split_once(['/', ':']) {
        (
            num.parse::<i64>().map_err(|_| bad())?,
            den.parse::<i64>().map_err(|_| bad())?,
        )
    } else if let Some((_, decimals)) = text.split_once('.') {
        let value: f64 = text.parse().map_err(|_| bad())?;
        let nearest = value.round();
        let ntsc = nearest * 1000.0 / 1001.0;
        if decimals.len() >= 2 && value != nearest && (value - ntsc).abs() < 0.005 {
            ((nearest * 1000.0) as i64, 1001)
        } else {
            ((value * 1000.0).round() as i64, 1000)
        }
    } else {
        (text.parse::<i64>().map_err(|_| bad())?, 1)
    };
    if num <= 0 || den <= 0 {
        return Err(bad());
    }
    let divisor = gcd(num, den);
    match (i32::try_from(num / divisor), i32::try_from(den / divisor)) {
        (Ok(num), Ok(den)) => Ok(Rational { num, den }),
        _ => Err(bad()),
    }
}

/// The greatest common divisor.
pub(crate) fn gcd(mut a: i64, mut b: i64) -> i64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "ffmpeg")]
    #[test]
    fn rates_of_rounded_durations_are_those_that_were_meant() {
        let meant = |num, den| {
            let Rational { num, den } = Rational { num, den }.without_rounding();
            (num, den)
        };
        // What FFmpeg reads of a duration in nanoseconds, and what one in microseconds is.
        for (num, den) in [(19_001, 317), (1_000_000, 16_683), (60_000, 1001)] {
            assert_eq!(meant(num, den), (60_000, 1001), "{num}/{den}");
        }
        assert_eq!(meant(1_000_000_000, 41_708_333), (24_000, 1001));
        assert_eq!(meant(1_000_000, 33_333), (30, 1));
        assert_eq!(meant(2997, 100), (30_000, 1001));
        for other in [
            (25, 1),
            (25, 2),
            (299, 10),
            (10, 1001),
            (i32::MAX, 1),
            (1, i32::MAX),
        ] {
            assert_eq!(meant(other.0, other.1), other);
        }
    }

    #[test]
    fn ticks_are_the_first_at_a_time_or_after_it() {
        let base = |num, den| Rational { num, den };
        assert_eq!(base(1, 25).tick_at(50_000_000), 2);
        assert_eq!(base(1, 25).tick_at(40_000_000), 1);
        assert_eq!(base(1, 15360).tick_at(33_333_333), 512);
        for den in [25, 1000, 90_000, 15_360, 30_000] {
            for num in [1, 1001] {
                for tick in 0..5000 {
                    let base = base(num, den);
                    assert_eq!(base.tick_at(base.nanos(tick)), tick);
                }
            }
        }
    }

    #[test]
    fn rates_as_people_write_them() {
        for (text, num, den) in [
            ("30", 30, 1),
            ("30000/1001", 30000, 1001),
            ("50:2", 25, 1),
            ("29.97", 30000, 1001),
            ("23.976", 24000, 1001),
            ("59.94", 60000, 1001),
            ("12.5", 25, 2),
            ("25.0", 25, 1),
        ] {
            assert_eq!(parse_rate(text), Ok(Rational { num, den }), "{text}");
        }
        for text in [
            "",
            "0",
            "-5",
            "1/0",
            "0/1",
            "nan",
            "x",
            "1e3",
            "99999999999",
            "0.0",
        ] {
            assert!(parse_rate(text).is_err(), "{text}");
        }
    }
}
