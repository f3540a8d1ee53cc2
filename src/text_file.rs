//! Small files of text that users write: read up to a limit, line by line, with `#` comments.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// All of the file at `path` as text; `None` if it is longer than `most` bytes or is no text.
pub(crate) fn read(path: &Path, most: u64) -> io::Result<Option<String>> {
    // Looked at before it is opened, because opening a pipe waits for its writer.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    let read = File::open(path)?.take(most + 1).read_to_end(&mut bytes)?;
    Ok(String::from_utf8(bytes).ok().filter(|_| read as u64 <= most))
}

/// What the lines say that say something, each with its number, counted from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let all = text.trim_start_matches('\u{feff}').lines().enumerate();
    all.filter_map(|(at, line)| {
        let content = line.split('#').next().unwrap_or_default().trim();
        (!content.is_empty()).then_some((at + 1, content))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
