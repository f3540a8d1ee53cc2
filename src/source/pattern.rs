//! File names with a number in them: `frames/%05d.png`.

use std::path::{Path, PathBuf};

/// A printf-like pattern with one `%d`, `%5d` or `%05d`; `%%` stands for a percent sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    before: String,
    width: usize,
    zeros: bool,
    after: String,
}

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Two numbers in one name.
    #[error("'{0}' has more than one number; a pattern has one, such as frames/%05d.png")]
    TwoNumbers(String),
    /// Something other than a number after a percent sign.
    #[error("'{0}' has a % that begins no number; write %05d for the number and %% for a percent sign")]
    BadDirective(String),
    /// More digits than a file name has room for.
    #[error("'{0}' asks for more than 20 digits")]
    TooWide(String),
}

impl Pattern {
    /// Reads a pattern; `None` if `path` has no percent sign (or is no text).
    pub fn parse(path: &Path) -> Result<Option<Pattern>, PatternError> {
        let Some(text) = path.to_str().filter(|t| t.contains('%')) else {
            return Ok(None);
        };
        let mut literal = String::new();
        let mut number: Option<(String, usize, bool)> = None;
        let mut rest = text;
        while let Some((before, directive)) = rest.split_once('%') {
            literal.push_str(before);
            if let Some(tail) = directive.strip_prefix('%') {
                literal.push('%');
                rest = tail;
                continue;
            }
            let digits = directive.len() - directive.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (width, tail) = directive.split_at(digits);
            let Some(tail) = tail.strip_prefix('d') else {
                return Err(PatternError::BadDirective(text.to_owned()));
            };
            if number.is_some() {
                return Err(PatternError::TwoNumbers(text.to_owned()));
            }
            let zeros = width.starts_with('0');
            let width = match width {
                "" => 0,
                digits => digits
                    .parse()
                    .ok()
                    .filter(|&w| w <= 20)
                    .ok_or_else(|| PatternError::TooWide(text.to_owned()))?,
            };
            number = Some((std::mem::take(&mut literal), width, zeros));
            rest = tail;
        }
        literal.push_str(rest);
        Ok(number.map(|(before, width, zeros)| Pattern {
            before,
            width,
            zeros,
            after: literal,
        }))
    }

    /// The name that holds `number`.
    pub fn name(&self, number: u64) -> PathBuf {
        let (before, after, width) = (&self.before, &self.after, self.width);
        PathBuf::from(if self.zeros {
            format!("{before}{number:0width$}{after}")
        } else {
            format!("{before}{number:width$}{after}")
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn numbers_are_filled_in() {
        let name = |pattern: &str, n| {
            Pattern::parse(Path::new(pattern))
                .unwrap()
                .unwrap()
                .name(n)
                .into_os_string()
                .into_string()
                .unwrap()
        };
        assert_eq!(name("a/%05d.png", 7), "a/00007.png");
        assert_eq!(name("%d", 123), "123");
        assert_eq!(name("100%%-%3d.tif", 5), "100%-  5.tif");
        assert_eq!(name("%02d", 12345), "12345");
        assert_eq!(Pattern::parse(Path::new("plain.png")), Ok(None));
        assert_eq!(Pattern::parse(Path::new("50%%.png")), Ok(None));
    }

    #[test]
    fn bad_patterns_are_told_apart() {
        let parse = |p: &str| Pattern::parse(Path::new(p));
        assert!(matches!(parse("%d-%d.png"), Err(PatternError::TwoNumbers(_))));
        assert!(matches!(parse("%s.png"), Err(PatternError::BadDirective(_))));
        assert!(matches!(parse("50%"), Err(PatternError::BadDirective(_))));
        assert!(matches!(parse("%099d.png"), Err(PatternError::TooWide(_))));
    }
}
