//! File names with a number in them: `frames/%05d.png`.

use super::names::{as_name, as_text};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// A printf-like pattern with one `%d`, `%5d` or `%05d` in its last component; `%%` stands for a percent sign
/// there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    folder: PathBuf,
    before: String,
    width: usize,
    zeros: bool,
    after: String,
}

/// A pattern that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
    /// Reads a pattern; `None` if `path` has no percent sign.
    pub fn parse(path: &Path) -> Result<Option<Pattern>, PatternError> {
        let Some(text) = last_component(path).filter(|t| t.contains('%')) else {
            return Ok(None);
        };
        let shown = || {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        };
        let mut literal = String::new();
        let mut number: Option<(String, usize, bool)> = None;
        let mut rest = text.as_str();
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
                return Err(PatternError::BadDirective(shown()));
            };
            if number.is_some() {
                return Err(PatternError::TwoNumbers(shown()));
            }
            let zeros = width.starts_with('0');
            let width = match width {
                "" => 0,
                digits => digits
                    .parse()
                    .ok()
                    .filter(|&w| w <= 20)
                    .ok_or_else(|| PatternError::TooWide(shown()))?,
            };
            number = Some((std::mem::take(&mut literal), width, zeros));
            rest = tail;
        }
        literal.push_str(rest);
        Ok(number.map(|(before, width, zeros)| Pattern {
            folder: path.parent().map(Path::to_owned).unwrap_or_default(),
            before,
            width,
            zeros,
            after: literal,
        }))
    }

    /// The folder that the names are in; empty for the current one.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name that holds `number`.
    pub fn name(&self, number: i64) -> PathBuf {
        self.folder.join(as_name(&self.file_name(number)))
    }

    fn file_name(&self, number: i64) -> String {
        let (before, after, width) = (&self.before, &self.after, self.width);
        if self.zeros {
            format!("{before}{number:0width$}{after}")
        } else {
            format!("{before}{number:width$}{after}")
        }
    }

    /// The number in a file's name, if the pattern gives that name for one.
    pub fn number(&self, file_name: impl AsRef<OsStr>) -> Option<i64> {
        let file_name = as_text(file_name.as_ref());
        let digits = file_name.strip_prefix(&self.before)?.strip_suffix(&self.after)?;
        let number = digits.trim_start().parse().ok()?;
        (self.file_name(number) == file_name).then_some(number)
    }

    /// True for a file's name that the pattern would give for a number that 64 bits do not hold.
    pub fn is_beyond(&self, file_name: impl AsRef<OsStr>) -> bool {
        let file_name = as_text(file_name.as_ref());
        let digits = file_name
            .strip_prefix(&self.before)
            .and_then(|rest| rest.strip_suffix(&self.after));
        let Some(digits) = digits else {
            return false;
        };
        let number = digits.trim_start();
        let (sign, figures) = match number.strip_prefix('-') {
            Some(figures) => ("-", figures),
            None => ("", number),
        };
        let bare = figures.trim_start_matches('0');
        let fill = self.width.saturating_sub(sign.len() + bare.len());
        let stated = match self.zeros {
            true => format!("{sign}{}{bare}", "0".repeat(fill)),
            false => format!("{}{sign}{bare}", " ".repeat(fill)),
        };
        !bare.is_empty()
            && bare.bytes().all(|byte| byte.is_ascii_digit())
            && number.parse::<i64>().is_err()
            && stated == digits
    }
}

/// A file's name with its percent signs doubled, so that it is no pattern.
pub fn escaped(name: &OsStr) -> PathBuf {
    as_name(&as_text(name).replace('%', "%%")).into()
}

/// `path` with `%%` in its last component as the percent sign that it stands for; for names that hold no
/// number.
pub fn unescaped(path: &Path) -> PathBuf {
    match last_component(path) {
        Some(name) if name.contains("%%") => path.with_file_name(as_name(&name.replace("%%", "%"))),
        _ => path.to_owned(),
    }
}

/// The last component as text, unless the path ends in a slash.
fn last_component(path: &Path) -> Option<String> {
    let ends_in_slash = path.as_os_str().as_encoded_bytes().ends_with(b"/");
    path.file_name().filter(|_| !ends_in_slash).map(as_text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

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
        assert_eq!(name("%04d", -1), "-001");
        assert_eq!(name("o 100%/%d.png", 1), "o 100%/1.png");
        assert_eq!(Pattern::parse(Path::new("plain.png")), Ok(None));
        assert_eq!(Pattern::parse(Path::new("50%%.png")), Ok(None));
        assert_eq!(Pattern::parse(Path::new("o 100%/")), Ok(None));
        // Bytes that are not UTF-8 stay as they are.
        let odd = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
        let pattern = Pattern::parse(&odd(b"q\xff/\xfe%03d.png")).unwrap().unwrap();
        assert_eq!(pattern.name(7), odd(b"q\xff/\xfe007.png"));
        assert_eq!(pattern.number(OsStr::from_bytes(b"\xfe007.png")), Some(7));
        assert_eq!(pattern.number(OsStr::from_bytes(b"\xfd007.png")), None);
        assert_eq!(escaped(OsStr::from_bytes(b"\xff%.png")), odd(b"\xff%%.png"));
        assert_eq!(unescaped(&odd(b"\xff%%.png")), odd(b"\xff%.png"));
        assert_eq!(unescaped(Path::new("a%%b/50%%.png")), Path::new("a%%b/50%.png"));
    }

    #[test]
    fn numbers_are_found_in_names_that_the_pattern_gives() {
        let pattern = Pattern::parse(Path::new("d/f-%03d.png")).unwrap().unwrap();
        for (name, number) in [
            ("f-001.png", Some(1)),
            ("f-1001.png", Some(1001)),
            ("f--02.png", Some(-2)),
            ("f-1.png", None),
            ("f-0001.png", None),
            ("g-001.png", None),
            ("f-001.tif", None),
            ("f-.png", None),
        ] {
            assert_eq!(pattern.number(name), number, "{name}");
            assert!(!pattern.is_beyond(name), "{name}");
        }
        let most = i64::MAX;
        let beyond = |pattern: &str, number: &str| {
            let pattern = Pattern::parse(Path::new(pattern)).unwrap().unwrap();
            pattern.number(number).is_none() && pattern.is_beyond(number)
        };
        assert!(beyond("%d", "9223372036854775808") && !beyond("%d", &most.to_string()));
        assert!(beyond("%d", "-9223372036854775809") && !beyond("%d", "-9223372036854775808"));
        assert!(beyond("%020d", "09999999999999999999") && !beyond("%d", "09999999999999999999"));
        assert!(beyond("%20d", " 9999999999999999999") && !beyond("%d", " 9999999999999999999"));
        assert!(!beyond("%d", "99999999999999999999x") && !beyond("%d", "-"));
    }

    #[test]
    fn bad_patterns_are_distinguished() {
        let parse = |p: &str| Pattern::parse(Path::new(p));
        assert!(matches!(parse("%d-%d.png"), Err(PatternError::TwoNumbers(_))));
        assert!(matches!(parse("%s.png"), Err(PatternError::BadDirective(_))));
        assert!(matches!(parse("50%"), Err(PatternError::BadDirective(_))));
        assert!(matches!(parse("%099d.png"), Err(PatternError::TooWide(_))));
    }
}
