//! Small text files that users write: read up to a limit, line by line, with `#` comments.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A kind of text file, by the errors of its lines.
pub trait LineError: Error + Send + Sync + 'static {
    /// The kind's name in sentences.
    const KIND: &'static str;
    /// The limit of its size, in MiB.
    const MOST_MIB: u64;
    /// What to write into the file, as the end of a sentence.
    const ADVICE: &'static str;

    /// The sentence about a file at `path` without content.
    fn empty(path: &Path) -> String;
}

/// Why a text file of the user's cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TextFileError<P: LineError> {
    /// It cannot be read.
    #[error("the {} {} cannot be read: {cause}", P::KIND, path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        cause: io::Error,
    },
    /// It is not text, or far too long.
    #[error(
        "{} is no {}: it is not a text of less than {} MiB; {}",
        path.display(), P::KIND, P::MOST_MIB, P::ADVICE
    )]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It has no content.
    #[error("{}", P::empty(path))]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A line is wrong.
    #[error("{}, line {line}: {problem}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        #[source]
        problem: P,
    },
}

/// The text of the file at `path`.
pub(crate) fn read_text<P: LineError>(path: &Path) -> Result<String, TextFileError<P>> {
    let text = read(path, P::MOST_MIB << 20).map_err(|cause| TextFileError::Unreadable {
        path: path.to_owned(),
        cause,
    })?;
    text.ok_or_else(|| TextFileError::NotText {
        path: path.to_owned(),
    })
}

/// Gives `parse` each line of `text` that has content, with its number, counted from 1. `path` is for errors.
pub(crate) fn each_line<P: LineError>(
    text: &str,
    path: &Path,
    mut parse: impl FnMut(usize, &str) -> Result<(), P>,
) -> Result<(), TextFileError<P>> {
    for (line, content) in lines(text) {
        parse(line, content).map_err(|problem| TextFileError::Line {
            path: path.to_owned(),
            line,
            problem,
        })?;
    }
    Ok(())
}

/// The whole file at `path` as text; `None` if it is longer than `most` bytes or is no text.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Option<String>> {
    // Checked before it is opened, because opening a pipe waits for its writer.
    let facts = path.metadata()?;
    if !facts.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    if facts.len() > most {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).ok().filter(|_| read as u64 <= most))
}

/// The lines with content, without comments, each with its number, counted from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.trim_start_matches('\u{feff}').lines().enumerate();
    all.filter_map(|(at, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((at + 1, content))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::process::Command;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn text_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        for (bytes, expected) in [
            (&b"12345678"[..], Some("12345678")),
            (b"123456789", None),
            (b"\xff\xfe", None),
            (b"", Some("")),
        ] {
            fs::write(&path, bytes).unwrap();
            assert_eq!(read(&path, 8).unwrap().as_deref(), expected, "{bytes:?}");
        }
    }

    #[test]
    fn lines_are_counted_with_those_that_say_nothing() {
        let found: Vec<(usize, &str)> = lines("\u{feff}# a\n\n b # c\r\n#\nd").collect();
        assert_eq!(found, [(3, "b"), (5, "d")]);
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let (done, waiting) = mpsc::channel();
        std::thread::spawn(move || done.send(read(&pipe, 8)));
        let answer = waiting.recv_timeout(Duration::from_secs(20));
        let error = answer.expect("it waits for the pipe's writer").unwrap_err();
        assert_eq!(error.to_string(), "it is no regular file");
    }
}
