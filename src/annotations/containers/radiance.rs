//! Radiance HDR: the lines of the head that say nothing of the samples.
//!
//! ```text
//!   #?RADIANCE
//!   # a comment
//!   SOFTWARE=pfilt        a variable; those of samples and pixels are the decoder's
//!   pfilt -1 -x 100       a command that made the file
//!                         an empty line ends the head
//! ```

use super::comment;
use crate::annotations::bytes::text;
use crate::annotations::{FileMetadata, once, word};
use std::io::{self, BufRead, Read};

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1 << 16;

/// The most bytes that are put into a head, and into a line of it, which readers take.
const MOST_WRITTEN: usize = 1 << 14;
const LONGEST_LINE: usize = 500;

/// What the image crate's encoder states, which says nothing of the picture.
const ENCODER: &str = "Rust HDR encoder";

/// The text that commands are.
const COMMANDS: &str = "Commands";

/// Variables that are no texts.
const OF_PICTURE: [&str; 7] = [
    "FORMAT",
    "EXPOSURE",
    "GAMMA",
    "COLORCORR",
    "PIXASPECT",
    "PRIMARIES",
    "VIEW",
];

/// The texts of a head.
pub(in crate::annotations) fn read(input: &mut impl BufRead) -> io::Result<FileMetadata> {
    let mut found = FileMetadata::default();
    let mut head = input.take(LONGEST_HEAD);
    let (mut comments, mut commands, mut variables) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        head.read_until(b'\n', &mut line)?;
        let line = text(&line).trim().to_owned();
        if std::mem::take(&mut is_first) {
            if !line.starts_with("#?") {
                return Ok(found);
            }
            continue;
        }
        if line.is_empty() {
            break;
        }
        match (line.strip_prefix('#'), variable(&line)) {
            (Some(comment), _) => comments.push(comment.trim().to_owned()),
            (None, Some((name, _))) if OF_PICTURE.contains(&name) => {}
            (None, Some((name, value))) => variables.push((name.to_owned(), value.to_owned())),
            (None, None) => commands.push(line.clone()),
        }
    }
    if head.limit() == 0 {
        once(&mut found.too_large, word::TEXT);
        return Ok(found);
    }
    comments.retain(|comment| !comment.is_empty() && comment != ENCODER);
    let annotations = &mut found.annotations;
    annotations.take_text("Comment", comments.join("\n"));
    for (name, value) in variables {
        let name = if name == "SOFTWARE" { "Software" } else { &name };
        annotations.take_text(name, value);
    }
    annotations.take_text(COMMANDS, commands.join("\n"));
    Ok(found)
}

/// Name and value of a line such as `SOFTWARE=pfilt`.
fn variable(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once('=')?;
    let name = name.trim_end();
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some((name, value.trim()))
}

/// Puts texts behind the first line of a file, as far as readers take them. The others stay in `texts`.
pub(in crate::annotations) fn insert(texts: &mut Vec<(String, String)>, file: Vec<u8>) -> Vec<u8> {
    let begin = file.iter().position(|&byte| byte == b'\n');
    let Some((first, rest)) = begin.and_then(|at| file.split_at_checked(at.checked_add(1)?)) else {
        return file;
    };
    let mut put = Vec::new();
    texts.retain(|(name, text)| {
        let lines = lines_of(name, text);
        let size: usize = lines.iter().map(String::len).sum();
        let fits = lines
            .iter()
            .all(|line| line.len() <= LONGEST_LINE && is_line(line))
            && put.len().saturating_add(size) <= MOST_WRITTEN;
        for line in lines.iter().filter(|_| fits) {
            put.extend([line.as_bytes(), b"\n"].concat());
        }
        !fits
    });
    [first, &put, rest].concat()
}

/// A text as lines of a head: as it stood in one, or as a comment.
fn lines_of(name: &str, text: &str) -> Vec<String> {
    let is_command = |line: &str| !line.starts_with('#') && variable(line).is_none() && is_line(line);
    if name == COMMANDS && text.split('\n').all(is_command) {
        return text.split('\n').map(str::to_owned).collect();
    }
    let name = if name == "Software" { "SOFTWARE" } else { name };
    let line = format!("{name}={text}");
    let is_variable = variable(&line) == Some((name, text)) && is_line(&line);
    if is_variable && !OF_PICTURE.contains(&name) && name != "Comment" {
        return vec![line];
    }
    let lines = comment::lines_of(name, text);
    lines.split('\n').map(|line| format!("# {line}")).collect()
}

/// True for a line that readers give back as it is.
fn is_line(line: &str) -> bool {
    comment::is_line(line.strip_prefix("# ").unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(file: &[u8]) -> Vec<(String, String)> {
        read(&mut io::Cursor::new(file)).unwrap().annotations.texts
    }

    #[test]
    fn texts_of_a_head_are_written_as_they_stood() {
        let file = b"#?RGBE\n# a comment\n#\nSOFTWARE=any one\nEXPOSURE=2\nCAPDATE= 2020:01:02\n\
            FORMAT=32-bit_rle_rgbe\n\tpfilt -1 -x 100\nrpict x=1 a=b\n# caf\xe9\n\n-Y 1 +X 1\n# no\n";
        let texts = said(file);
        let expected = [
            ("Comment", "a comment\ncaf\u{e9}"),
            ("Software", "any one"),
            ("CAPDATE", "2020:01:02"),
            ("Commands", "pfilt -1 -x 100\nrpict x=1 a=b"),
        ]
        .map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(texts, expected);
        let plain = b"#?RADIANCE\n# Rust HDR encoder\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\0\0\0\0";
        assert_eq!(said(plain), []);
        let mut given = texts.clone();
        let out = insert(&mut given, plain.to_vec());
        assert_eq!((said(&out), given), (texts, Vec::new()));
        assert!(out.ends_with(&plain[11..]));
    }

    #[test]
    fn texts_of_others_change_no_picture() {
        let plain = b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 1 +X 1\n\0\0\0\0";
        let texts = |texts: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            owned.collect()
        };
        let long = "x".repeat(600);
        let mut given = texts(&[
            ("EXPOSURE", "2"),
            ("Commands", "EXPOSURE=2"),
            ("Title", "one\ntwo"),
            ("Two words", "x"),
            ("a", "one\n\ntwo"),
            ("b", &long),
        ]);
        let out = insert(&mut given, plain.to_vec());
        let comment = "EXPOSURE: 2\nTitle: one\ntwo\nTwo words: x";
        let expected = [("Comment", comment), ("Commands", "EXPOSURE=2")];
        assert_eq!(said(&out), texts(&expected));
        assert_eq!(given, texts(&[("a", "one\n\ntwo"), ("b", &long)]));
        let endless = [&b"#?RADIANCE\n"[..], &vec![b'a'; 1 << 17]].concat();
        assert_eq!(
            read(&mut io::Cursor::new(endless)).unwrap().too_large,
            [word::TEXT]
        );
        assert_eq!(
            (said(b""), said(b"#?"), said(b"no\n# no\n")),
            (vec![], vec![], vec![])
        );
    }
}
