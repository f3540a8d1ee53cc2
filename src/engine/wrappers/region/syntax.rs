//! The syntax of regions: a time, a rectangle, and a rectangle to move to.
//!
//! ```text
//! 200x100+10+20                                       in every frame
//! 0:05..0:08 200x100+10+20                            from 0:05 on and before 0:08
//! 0:05..0:08 200x100+10+20 -> 300x100+400+20          moves and grows, and would be there at 0:08
//! 120f..     200x100+10+20                            from frame 120 on, counted from 0
//! ```
//!
//! A file has one region per line; `#` begins a comment.

use super::rectangle::{Rectangle, RectangleError};
use crate::frame::{InvalidPoint, Point};
use crate::messages::text_file::{LineError, TextFileError, each_line, read_text};
use crate::wording::{shortened, shortened_to};
use std::cmp::Ordering;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// Characters of a region in messages, at most: more than one of usual numbers has.
const LONGEST_LABEL: usize = 120;

/// The period in which a region is there: from one point of the input on, and before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// In every frame.
    Always,
    /// Nanoseconds of the input's clock.
    Times(i64, Option<i64>),
    /// Frames from the first one.
    Frames(u64, Option<u64>),
}

/// A rectangle that is there for a period, in which it may move and change its size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// The period of the region.
    pub period: Period,
    /// The rectangle at the beginning.
    pub first: Rectangle,
    /// The rectangle at the end of the period. If it differs from `first`, the period must have an end.
    pub last: Rectangle,
    /// The region as the user wrote it, with file and line if it has any, for messages.
    pub label: String,
}

/// A text that is no region.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegionSyntaxError {
    /// A rectangle.
    #[error(transparent)]
    Rectangle(#[from] RectangleError),
    /// A time.
    #[error(transparent)]
    Point(#[from] InvalidPoint),
    /// One end is a time, and the other one a number of frames.
    #[error("'{0}' mixes times and frames; write both ends as times or both as frames")]
    Mixed(String),
    /// It ends before it begins.
    #[error("'{0}' ends before it begins, so that it holds no frame")]
    Backwards(String),
    /// It ends where it begins.
    #[error("'{0}' ends when it begins, so that it holds no frame")]
    Instant(String),
    /// A move without an end, or without a beginning.
    #[error("a region that moves needs the times of both ends, such as 0:05..0:08 {0}")]
    Endless(String),
    /// More than two rectangles.
    #[error("'{0}' has more than one '->'; write a line for each part of the way")]
    Way(String),
}

impl FromStr for Region {
    type Err = RegionSyntaxError;

    /// Reads `[T0..T1] WxH+X+Y [-> WxH+X+Y]`.
    fn from_str(text: &str) -> Result<Region, RegionSyntaxError> {
        let text = text.trim();
        let head = text.split_whitespace().next().unwrap_or_default();
        let (period, way) = match head.split_once("..") {
            Some((from, to)) => (span(head, from, to)?, text[head.len()..].trim()),
            None => (Period::Always, text),
        };
        let (first, last) = match way.split_once("->") {
            None => (way.parse()?, None),
            Some((_, rest)) if rest.contains("->") => return Err(RegionSyntaxError::Way(shortened(way))),
            Some((first, last)) => (first.trim().parse()?, Some(last.trim().parse()?)),
        };
        let has_end = matches!(period, Period::Times(_, Some(_)) | Period::Frames(_, Some(_)));
        if last.is_some() && !has_end {
            return Err(RegionSyntaxError::Endless(shortened(way)));
        }
        Ok(Region {
            period,
            first,
            last: last.unwrap_or(first),
            label: shortened_to(LONGEST_LABEL, text),
        })
    }
}

/// The time from `from` on and before `to`; the beginning or end of the input where one is empty.
fn span(text: &str, from: &str, to: &str) -> Result<Period, RegionSyntaxError> {
    let point = |text: &str| (!text.is_empty()).then(|| text.parse::<Point>()).transpose();
    let period = match (point(from)?, point(to)?) {
        (None, None) => Period::Always,
        (Some(Point::Time(from)), None) => Period::Times(from, None),
        (Some(Point::Frame(from)), None) => Period::Frames(from, None),
        (None, Some(Point::Time(to))) => Period::Times(0, Some(to)),
        (None, Some(Point::Frame(to))) => Period::Frames(0, Some(to)),
        (Some(Point::Time(from)), Some(Point::Time(to))) => Period::Times(from, Some(to)),
        (Some(Point::Frame(from)), Some(Point::Frame(to))) => Period::Frames(from, Some(to)),
        (Some(_), Some(_)) => return Err(RegionSyntaxError::Mixed(shortened(text))),
    };
    let order = match period {
        Period::Times(from, Some(to)) => from.cmp(&to),
        Period::Frames(from, Some(to)) => from.cmp(&to),
        _ => Ordering::Less,
    };
    match order {
        Ordering::Less => Ok(period),
        Ordering::Equal => Err(RegionSyntaxError::Instant(shortened(text))),
        Ordering::Greater => Err(RegionSyntaxError::Backwards(shortened(text))),
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

/// Why a file holds no regions.
pub type RegionFileError = TextFileError<RegionSyntaxError>;

impl LineError for RegionSyntaxError {
    const KIND: &'static str = "file of regions";
    // More than a line for each frame of a long film; a longer file is something else.
    const MOST_MIB: u64 = 64;
    const ADVICE: &'static str = "write a region a line, such as 0:05..0:08 200x100+10+20";

    fn empty(path: &Path) -> String {
        format!(
            "{} has no regions; write one a line, such as 0:05..0:08 200x100+10+20",
            path.display()
        )
    }
}

/// Reads the regions in the file at `path`.
pub fn read_regions(path: &Path) -> Result<Vec<Region>, RegionFileError> {
    regions(&read_text(path)?, path)
}

/// The regions of a file's text; `path` is for errors and labels.
fn regions(text: &str, path: &Path) -> Result<Vec<Region>, RegionFileError> {
    let mut regions = Vec::new();
    each_line(text, path, |line, content| {
        let region: Region = content.parse()?;
        regions.push(Region {
            label: format!("{}, line {line}: {}", path.display(), region.label),
            ..region
        });
        Ok(())
    })?;
    if regions.is_empty() {
        return Err(RegionFileError::Empty {
            path: path.to_owned(),
        });
    }
    Ok(regions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_say_when_and_where() {
        let rectangle = |text: &str| text.parse::<Rectangle>().unwrap();
        let second = 1_000_000_000;
        for (text, period, first, last) in [
            ("2x1+3+4", Period::Always, "2x1+3+4", "2x1+3+4"),
            (".. 2x1+3+4", Period::Always, "2x1+3+4", "2x1+3+4"),
            (
                "0:05..0:08 2x1+3+4 -> 4x1+9+4",
                Period::Times(5 * second, Some(8 * second)),
                "2x1+3+4",
                "4x1+9+4",
            ),
            (
                "1.5.. 2x1+3+4",
                Period::Times(3 * second / 2, None),
                "2x1+3+4",
                "2x1+3+4",
            ),
            (
                "1..2 2x1+3+4",
                Period::Times(second, Some(2 * second)),
                "2x1+3+4",
                "2x1+3+4",
            ),
            (
                "..10f 2x1+3+4->2x1-3+4",
                Period::Frames(0, Some(10)),
                "2x1+3+4",
                "2x1-3+4",
            ),
            ("7f..  2x1+3+4", Period::Frames(7, None), "2x1+3+4", "2x1+3+4"),
        ] {
            let region: Region = text.parse().unwrap();
            assert_eq!(
                (region.period, region.first, region.last),
                (period, rectangle(first), rectangle(last)),
                "{text}"
            );
        }
        let said = |text: &str| text.parse::<Region>().unwrap_err().to_string();
        for (text, part) in [
            ("", "'' is no rectangle"),
            ("0:05..0:08", "'' is no rectangle"),
            ("5..3f 2x1+3+4", "mixes times and frames"),
            ("5..5 2x1+3+4", "ends when it begins"),
            ("9f..8f 2x1+3+4", "ends before it begins"),
            ("..0 2x1+3+4", "ends when it begins"),
            ("2x1+3+4 -> 2x1+5+4", "times of both ends"),
            ("3.. 2x1+3+4 -> 2x1+5+4", "times of both ends"),
            ("1..2 2x1+3+4 -> 2x1+5+4 -> 2x1+6+4", "more than one '->'"),
            ("1..x 2x1+3+4", "'x' is no time"),
            ("1..2 2x1+3+4 ->", "'' is no rectangle"),
            ("1..2 2x0+3+4", "is empty"),
        ] {
            assert!(said(text).contains(part), "{text}: {}", said(text));
        }
    }

    #[test]
    fn files_have_comments_and_their_errors_a_line() {
        let read = |text: &str| regions(text, Path::new("r.txt"));
        let found = read("\u{feff}# faces\n\n 1x1+2+3 # left\r\n0f..9f 4x4+0+0\n").unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!(found[1].label, "r.txt, line 4: 0f..9f 4x4+0+0");
        let said = read("1x1+2+3\n# x\nx\n").unwrap_err().to_string();
        assert!(said.starts_with("r.txt, line 3: 'x' is no rectangle"), "{said}");
        // Whatever is read, no message repeats more of it than a line needs.
        let long = "7".repeat(5000);
        for text in [
            long.clone(),
            format!("{long}x{long}"),
            format!("{long}:1:1:1"),
            format!("0x{long}+1+1"),
            format!("{long}x1+1+1"),
            format!("1x1+1+1 -> {long}"),
            format!("1..2 1x1+1+1 -> 1x1+1+1 -> {long}"),
            format!("1x1+1+1 -> 1x1+1+{}1", "0".repeat(5000)),
            format!("{long}..5 1x1+1+1"),
            format!("1..{long}f 1x1+1+1"),
            format!("9f..{}f 1x1+1+1", "0".repeat(5000)),
        ] {
            let said = read(&text).unwrap_err().to_string();
            assert!(said.len() < 250, "{said}");
        }
        let padded = read(&format!("1x1+{}1+1", "0".repeat(5000))).unwrap();
        assert!(padded[0].label.len() < 200 && padded[0].first.x == 1);
        assert!(matches!(read("# nothing\n"), Err(RegionFileError::Empty { .. })));
    }
}
