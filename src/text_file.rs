//! Small files of text that users write: read up to a limit, line by line, with `#` comments.

use std::io::{self, Read};

/// All of `file` as text; `None` if it is longer than `most` bytes or is no text.
pub(crate) fn read(file: impl Read, most: u64) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    let read = file.take(most + 1).read_to_end(&mut bytes)?;
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
