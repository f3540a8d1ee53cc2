//! Places in a stream of frames, as people write them.

use crate::wording::shortened;
use std::fmt;
use std::str::FromStr;

/// Nanoseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000_000;

/// A place in an input, or a length of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Point {
    /// Nanoseconds from the beginning of the input's clock.
    Time(i64),
    /// Frames from the first one.
    Frame(u64),
}

/// A text that is no time.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no time; write seconds such as 12.5, [HH:]MM:SS.mmm, or frames such as 120f")]
pub struct InvalidPoint(pub String);

impl FromStr for Point {
    type Err = InvalidPoint;

    /// Reads seconds (`12.5`), a clock (`1:02:03.25`, `2:03`), or a number of frames (`120f`).
    fn from_str(text: &str) -> Result<Point, InvalidPoint> {
        let invalid = || InvalidPoint(shortened(text));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if let Some(frames) = text.strip_suffix('f') {
            let frames = Some(frames).filter(|frames| is_number(frames));
            return frames
                .and_then(|frames| frames.parse().ok())
                .map(Point::Frame)
                .ok_or_else(invalid);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let parts: Vec<&str> = whole.split(':').collect();
        let sound = parts.iter().all(|part| is_number(part)) && is_number(fraction);
        if !sound || parts.len() > 3 {
            return Err(invalid());
        }
        let mut seconds = 0_i64;
        for (place, part) in parts.iter().enumerate() {
            let part: i64 = part.parse().map_err(|_| invalid())?;
            if place > 0 && part >= 60 {
                return Err(invalid());
            }
            seconds = seconds
                .checked_mul(60)
                .and_then(|s| s.checked_add(part))
                .ok_or_else(invalid)?;
        }
        // Nine digits; what follows is less than a nanosecond.
        let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
        let nanos: i64 = digits.parse().map_err(|_| invalid())?;
        seconds
            .checked_mul(SECOND)
            .and_then(|s| s.checked_add(nanos))
            .map(Point::Time)
            .ok_or_else(invalid)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Point::Time(nanos) => write!(f, "{} s", *nanos as f64 / SECOND as f64),
            Point::Frame(frame) => write!(f, "frame {frame}"),
        }
    }
}

/// What of an input was left out before a frame of the run: by a range, or by a choice of image files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skipped {
    /// Ticks of the stream's time base that were taken from its timestamp: with them it is one of the input's
    /// own clock.
    pub ticks: i64,
    /// Frames that were left out; `None` if they were not counted. With the frame's number in the run it is
    /// the frame's place in the input.
    pub frames: Option<u64>,
}

impl Default for Skipped {
    /// Nothing.
    fn default() -> Self {
        Skipped {
            ticks: 0,
            frames: Some(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read() {
        for (text, expected) in [
            ("12.5", Point::Time(12_500_000_000)),
            ("0", Point::Time(0)),
            ("0.0333333333", Point::Time(33_333_333)),
            ("1:02:03.25", Point::Time(3_723_250_000_000)),
            ("2:03", Point::Time(123 * SECOND)),
            ("90", Point::Time(90 * SECOND)),
            ("120f", Point::Frame(120)),
        ] {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        for text in [
            "",
            "f",
            "-1",
            "1:60",
            "1:2:3:4",
            "1.",
            ".5",
            "1.5f",
            "abc",
            "1e3",
            "99999999999999999999",
            "+3",
        ] {
            assert_eq!(text.parse::<Point>(), Err(InvalidPoint(text.to_owned())));
        }
    }
}
