//! Rectangles: their syntax, and their part in a picture.

use crate::frame::Turn;
use crate::wording::shortened;
use std::fmt;
use std::str::FromStr;

/// The largest number in a rectangle: more pixels than a picture has in a row.
const MOST: i64 = 1 << 30;

/// A rectangle of pixels, which may lie partly or wholly outside of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rectangle {
    /// Pixels from the picture's left edge to the rectangle; negative if it begins left of the picture.
    pub x: i64,
    /// Rows from the picture's top to the rectangle; negative if it begins above the picture.
    pub y: i64,
    /// Columns, at least 1.
    pub width: i64,
    /// Rows, at least 1.
    pub height: i64,
}

/// A text that is no rectangle.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RectangleError {
    /// It does not have the form of a rectangle.
    #[error("'{text}' is no rectangle; write WIDTHxHEIGHT+X+Y in pixels, such as 200x100+10+20{hint}")]
    Form {
        /// The text.
        text: String,
        /// The end of the message: what may have been meant, or nothing.
        hint: String,
    },
    /// Width or height is zero.
    #[error("'{0}' is empty; a region has at least one column and one row")]
    Empty(String),
    /// A number that is too large for any picture.
    #[error("'{0}' has a number above {MOST}, which no picture reaches")]
    TooLarge(String),
}

impl FromStr for Rectangle {
    type Err = RectangleError;

    /// Reads `WIDTHxHEIGHT+X+Y`; an offset may be negative, `-10` or `+-10`.
    fn from_str(text: &str) -> Result<Rectangle, RectangleError> {
        let wrong = || RectangleError::Form {
            text: shortened(text),
            hint: hint(text),
        };
        let (width, rest) = text.split_once(['x', 'X']).ok_or_else(wrong)?;
        let place = rest.find(['+', '-']).ok_or_else(wrong)?;
        let (height, offsets) = rest.split_at(place);
        let (x, offsets) = offset(offsets).ok_or_else(wrong)?;
        let (y, rest) = offset(offsets).ok_or_else(wrong)?;
        if !rest.is_empty() || !is_number(width) || !is_number(height) {
            return Err(wrong());
        }
        // A number that does not fit a machine word is too large, too.
        let number = |digits: &str| digits.parse().unwrap_or(i64::MAX);
        let (width, height) = (number(width), number(height));
        let (x, y) = (x.0 * number(x.1), y.0 * number(y.1));
        if [width, height, x, y].iter().any(|n| n.abs() > MOST) {
            return Err(RectangleError::TooLarge(shortened(text)));
        }
        if width == 0 || height == 0 {
            return Err(RectangleError::Empty(shortened(text)));
        }
        Ok(Rectangle { x, y, width, height })
    }
}

fn is_number(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The sign and digits of the offset that `text` begins with, and what follows.
fn offset(text: &str) -> Option<((i64, &str), &str)> {
    let (sign, rest) = match text.strip_prefix('+') {
        Some(rest) => rest.strip_prefix('-').map_or((1, rest), |rest| (-1, rest)),
        None => (-1, text.strip_prefix('-')?),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, rest) = rest.split_at(end);
    is_number(digits).then_some(((sign, digits), rest))
}

/// A guess at what was meant, as the end of a message.
fn hint(text: &str) -> String {
    if shortened(text) != text {
        return String::new();
    }
    let numbers: Vec<&str> = text.split([':', ',']).map(str::trim).collect();
    if let ([a, b, c, d], true) = (&numbers[..], numbers.iter().all(|n| is_number(n))) {
        return match text.contains(',') {
            // The order is unknown: most tools that write commas begin with the offset.
            true => format!("; if that is X,Y,WIDTH,HEIGHT, it is {c}x{d}+{a}+{b}"),
            false => format!("; FFmpeg's crop={text} is {a}x{b}+{c}+{d}"),
        };
    }
    match text.split_once(['x', 'X']) {
        Some((w, h)) if is_number(w) && is_number(h) => format!("; where it lies is missing: {text}+X+Y"),
        _ => String::new(),
    }
}

impl fmt::Display for Rectangle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}{:+}{:+}", self.width, self.height, self.x, self.y)
    }
}

impl Rectangle {
    /// Where it lies in the stored picture of `size` if it is a rectangle of the picture as `turn` shows it.
    pub(super) fn stored(&self, turn: Turn, (width, height): (usize, usize)) -> Rectangle {
        let size = (width as i64, height as i64);
        let ((x, width), (y, height)) = turn.stored((self.x, self.width), (self.y, self.height), size);
        Rectangle { x, y, width, height }
    }

    /// Its part in a picture; `None` if it lies outside.
    pub(super) fn within(&self, width: usize, height: usize) -> Option<Area> {
        let (columns, rows) = (
            overlap(self.x, self.width, width)?,
            overlap(self.y, self.height, height)?,
        );
        Some(Area {
            x: columns.0,
            y: rows.0,
            width: columns.1,
            height: rows.1,
        })
    }

    /// The smallest rectangle that holds both.
    pub(super) fn hull(&self, other: &Rectangle) -> Rectangle {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        Rectangle {
            x,
            y,
            width: (self.x + self.width).max(other.x + other.width) - x,
            height: (self.y + self.height).max(other.y + other.height) - y,
        }
    }
}

/// The begin and the length of the part of a stretch in `0..len`.
fn overlap(begin: i64, length: i64, len: usize) -> Option<(usize, usize)> {
    let (from, to) = (
        begin.max(0),
        (begin + length).min(i64::try_from(len).unwrap_or(i64::MAX)),
    );
    let (from, to) = (usize::try_from(from).ok()?, usize::try_from(to).ok()?);
    (from < to).then(|| (from, to - from))
}

/// A rectangle that lies in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// A whole picture.
    pub(super) fn whole(width: usize, height: usize) -> Area {
        Area {
            x: 0,
            y: 0,
            width,
            height,
        }
    }

    pub(super) fn right(&self) -> usize {
        self.x + self.width
    }

    pub(super) fn bottom(&self) -> usize {
        self.y + self.height
    }

    /// The smallest area that holds both.
    pub(super) fn hull(&self, other: &Area) -> Area {
        let (x, y) = (self.x.min(other.x), self.y.min(other.y));
        Area {
            x,
            y,
            width: self.right().max(other.right()) - x,
            height: self.bottom().max(other.bottom()) - y,
        }
    }

    /// True if a sample of some plane may belong to both.
    pub(super) fn is_near(&self, other: &Area) -> bool {
        // More pixels than a sample of any plane stands for.
        const MARGIN: usize = 16;
        let meet = |begin: usize, end: usize| begin < end + MARGIN;
        meet(self.x, other.right())
            && meet(other.x, self.right())
            && meet(self.y, other.bottom())
            && meet(other.y, self.bottom())
    }

    /// Number of pixels.
    pub(super) fn size(&self) -> u128 {
        self.width as u128 * self.height as u128
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_are_read_and_written() {
        for (text, x, y, width, height) in [
            ("200x100+10+20", 10, 20, 200, 100),
            ("1X1+0+0", 0, 0, 1, 1),
            ("5x6-7+8", -7, 8, 5, 6),
            ("5x6+-7-8", -7, -8, 5, 6),
        ] {
            let read: Rectangle = text.parse().unwrap();
            assert_eq!(read, Rectangle { x, y, width, height }, "{text}");
            assert_eq!(read.to_string().parse(), Ok(read));
        }
        for text in [
            "",
            "x",
            "200x100",
            "200x100+10",
            "200x100+10+",
            "x100+1+1",
            "2x+1+1",
            "2x2+1+1+1",
            "2x2++1+1",
            "2x2+1+1f",
            "2.5x2+1+1",
            "-2x2+1+1",
            "200:100:10:20",
            "+1+1",
            "2x2 +1+1",
        ] {
            assert!(
                matches!(text.parse::<Rectangle>(), Err(RectangleError::Form { .. })),
                "{text}"
            );
        }
        for text in ["0x5+1+1", "5x0+1+1"] {
            assert_eq!(
                text.parse::<Rectangle>(),
                Err(RectangleError::Empty(text.to_owned()))
            );
        }
        for text in [
            "1073741825x5+1+1",
            "5x5+99999999999999999999+1",
            "5x5+0-1073741825",
        ] {
            assert_eq!(
                text.parse::<Rectangle>(),
                Err(RectangleError::TooLarge(text.to_owned()))
            );
        }
    }

    #[test]
    fn what_other_tools_write_is_guessed() {
        let said = |text: &str| text.parse::<Rectangle>().unwrap_err().to_string();
        assert!(said("200:100:10:20").ends_with("; FFmpeg's crop=200:100:10:20 is 200x100+10+20"));
        assert!(said("10,20,200,100").ends_with("it is 200x100+10+20"));
        assert!(said("200x100").ends_with("; where it lies is missing: 200x100+X+Y"));
    }

    #[test]
    fn what_lies_outside_is_cut_off() {
        let within = |text: &str| {
            let area = text.parse::<Rectangle>().unwrap().within(10, 8);
            area.map(|a| (a.x, a.y, a.width, a.height))
        };
        assert_eq!(within("3x2+4+5"), Some((4, 5, 3, 2)));
        assert_eq!(within("30x20-4-5"), Some((0, 0, 10, 8)));
        assert_eq!(within("5x5-4+6"), Some((0, 6, 1, 2)));
        for text in ["4x4-4+0", "4x4+10+0", "4x4+0-4", "4x4+0+8"] {
            assert_eq!(within(text), None, "{text}");
        }
    }
}
