//! Mask files: rows of numbers, `#` comments, a divisor and a bias.

use std::path::Path;

use super::matrix::Divisor;
use crate::filter::masks::number::{Number, NumberError};
use crate::filter::{Bias, MAX_BIAS};
use crate::messages::text_file::{LineError, TextFileError, each_line, read_text};

/// The content of a mask file.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::filter) struct MaskFile {
    pub(in crate::filter) rows: Vec<Vec<Number>>,
    pub(in crate::filter) divisor: Divisor,
    pub(in crate::filter) bias: Bias,
}

/// Why a file is no mask.
pub type MaskFileError = TextFileError<LineProblem>;

impl LineError for LineProblem {
    const KIND: &'static str = "mask file";
    // More than any mask needs; a longer file is something else.
    const MOST_MIB: u64 = 1;
    const ADVICE: &'static str = "write rows of numbers";

    fn empty(path: &Path) -> String {
        format!(
            "the mask file {} has no rows of numbers; write one line for each row of the mask",
            path.display()
        )
    }
}

/// What is wrong with a line of a mask file.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// A number is none.
    #[error(transparent)]
    Number(#[from] NumberError),
    /// No number at all.
    #[error("there is no number; write rows with ; between them, such as 1 2 1;2 4 2;1 2 1")]
    Empty,
    /// Nothing between two commas, or at an end of the line.
    #[error("a number is missing beside a comma; write one between any two commas")]
    Missing,
    /// The row differs in length from the first one.
    #[error(
        "this row has {found} numbers, the first row has {expected}; all rows of a mask are of one length"
    )]
    Ragged {
        /// This row's numbers.
        found: usize,
        /// The first row's numbers.
        expected: usize,
    },
    /// A second divisor or bias.
    #[error("a second '{0}' line; leave one")]
    Repeated(&'static str),
    /// A divisor of zero.
    #[error("the divisor is zero; leave the line out or give another number")]
    ZeroDivisor,
    /// A bias beyond the limit.
    #[error("the bias is {0}; it may be from -{MAX_BIAS} to {MAX_BIAS}")]
    Bias(f64),
}

impl MaskFile {
    /// Reads the file at `path`.
    pub(in crate::filter) fn read(path: &Path) -> Result<MaskFile, MaskFileError> {
        MaskFile::parse(&read_text(path)?, path)
    }

    /// Parses the text of a file; `path` is for the errors.
    pub(in crate::filter) fn parse(text: &str, path: &Path) -> Result<MaskFile, MaskFileError> {
        let mut rows: Vec<Vec<Number>> = Vec::new();
        let (mut divisor, mut bias) = (None, None);
        each_line(text, path, |_, content| {
            match (value_of(content, "divisor"), value_of(content, "bias")) {
                (Some(value), _) => parse_divisor(value).and_then(|d| set(&mut divisor, d, "divisor")),
                (_, Some(value)) => parse_bias(value).and_then(|b| set(&mut bias, b, "bias")),
                _ => parse_row(content, rows.first().map(Vec::len)).map(|row| rows.push(row)),
            }
        })?;
        if rows.is_empty() {
            return Err(MaskFileError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(MaskFile {
            rows,
            divisor: divisor.unwrap_or(Divisor::One),
            bias: bias.unwrap_or(Bias::NONE),
        })
    }
}

/// What follows `word`, with or without an equals sign between.
fn value_of<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let rest = line.strip_prefix(word)?;
    if !rest.is_empty() && !rest.starts_with(|c: char| c == '=' || c.is_whitespace()) {
        return None;
    }
    let rest = rest.trim_start();
    Some(rest.strip_prefix('=').unwrap_or(rest).trim())
}

fn set<T>(place: &mut Option<T>, value: T, word: &'static str) -> Result<(), LineProblem> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(LineProblem::Repeated(word)),
    }
}

fn parse_divisor(value: &str) -> Result<Divisor, LineProblem> {
    if value == "sum" {
        return Ok(Divisor::Sum);
    }
    let number: Number = value.parse()?;
    if number.value == 0.0 {
        return Err(LineProblem::ZeroDivisor);
    }
    Ok(Divisor::Number(number))
}

fn parse_bias(value: &str) -> Result<Bias, LineProblem> {
    let bias = value.parse::<Number>()?;
    if bias.value.abs() > MAX_BIAS {
        return Err(LineProblem::Bias(bias.value));
    }
    Ok(bias.into())
}

fn parse_row(line: &str, expected: Option<usize>) -> Result<Vec<Number>, LineProblem> {
    let row = parse_numbers(line)?;
    match expected {
        Some(expected) if expected != row.len() => Err(LineProblem::Ragged {
            found: row.len(),
            expected,
        }),
        _ => Ok(row),
    }
}

/// Numbers separated by blanks or commas.
pub(in crate::filter) fn parse_numbers(line: &str) -> Result<Vec<Number>, LineProblem> {
    if line.trim().is_empty() {
        return Err(LineProblem::Empty);
    }
    let mut numbers = Vec::new();
    for piece in line.split(',') {
        let before = numbers.len();
        for number in piece.split_whitespace() {
            numbers.push(number.parse()?);
        }
        if numbers.len() == before {
            return Err(LineProblem::Missing);
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::language::matrix;

    fn parse(text: &str) -> Result<MaskFile, MaskFileError> {
        MaskFile::parse(text, Path::new("my.txt"))
    }

    #[test]
    fn a_file_with_everything_in_it() {
        let file = parse(
            "\u{feff}# soft\n\ndivisor = 16 # the sum\r\n1 2,1\n 2, 4 , 2\n\t1\t2 1 # last\nbias -3/2\n",
        )
        .unwrap();
        assert_eq!(file.bias.value(), -1.5);
        let mask = matrix::mask(&file.rows, file.divisor).unwrap();
        let exact = mask.exact().unwrap();
        assert_eq!(exact.numerators, [1, 2, 1, 2, 4, 2, 1, 2, 1]);
        assert_eq!(exact.divisor, 16);
        assert_eq!(parse("1 1 1\ndivisor sum").unwrap().divisor, Divisor::Sum);
    }

    #[test]
    fn wrong_lines_are_reported_with_file_and_number() {
        for (text, expected) in [
            (
                "# x\n1 2 1\n1 2\n",
                "my.txt, line 3: this row has 2 numbers, the first row has 3",
            ),
            ("1 nan 1", "my.txt, line 1: 'nan' is not a finite number"),
            ("1 2 1\n\n1 x 1", "my.txt, line 3: 'x' is not a number"),
            ("1,,2", "my.txt, line 1: a number is missing"),
            ("1,2,", "my.txt, line 1: a number is missing"),
            ("1\ndivisor 0", "my.txt, line 2: the divisor is zero"),
            ("1\ndivisor", "my.txt, line 2: '' is not a number"),
            (
                "divisor 2\n1\ndivisor 3",
                "my.txt, line 3: a second 'divisor' line",
            ),
            ("bias 1\nbias 1", "my.txt, line 2: a second 'bias' line"),
            ("bias 65536", "my.txt, line 1: the bias is 65536"),
            ("divisors 2", "my.txt, line 1: 'divisors' is not a number"),
            ("", "my.txt has no rows"),
            ("# nothing\ndivisor 2", "my.txt has no rows"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text:?} gave: {error}");
        }
    }

    #[test]
    fn what_is_no_text_file_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let missing = MaskFile::read(&folder.path().join("missing.txt")).unwrap_err();
        assert!(
            missing.to_string().contains("missing.txt cannot be read"),
            "{missing}"
        );
        let directory = MaskFile::read(folder.path()).unwrap_err();
        assert!(
            matches!(directory, MaskFileError::Unreadable { .. }),
            "{directory}"
        );
        for (name, bytes) in [
            ("binary", vec![0xff, 0xfe, 0]),
            ("long", vec![b' '; (1 << 20) + 1]),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = MaskFile::read(&path).unwrap_err();
            assert!(matches!(error, MaskFileError::NotText { .. }), "{name}: {error}");
        }
    }
}
