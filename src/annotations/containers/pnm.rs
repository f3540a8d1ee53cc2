//! PBM, PGM, PPM and PAM: comments in the head.
//!
//! ```text
//!  P1 .. P6   numbers: width, height, and the greatest sample but for P1 and P4; a comment is from # to the
//!             end of its line
//!  P7         lines up to ENDHDR; one that begins with # is a comment
//! ```

use super::comment::{is_line, lines_of};
use crate::annotations::bytes::text;
use crate::annotations::{FileMetadata, once, word};
use crate::messages::metadata_limit::METADATA_LIMIT;
use std::io::{self, BufRead, Read};

/// What the head of a file says beside the size and the samples.
pub(in crate::annotations) fn read(input: &mut impl BufRead) -> io::Result<FileMetadata> {
    let mut found = FileMetadata::default();
    let mut head = input.take(METADATA_LIMIT as u64);
    let mut magic = [0; 2];
    let is_there = head.read_exact(&mut magic).is_ok();
    let comments = match magic {
        [b'P', b'1' | b'4'] if is_there => between_numbers(&mut head, 2)?,
        [b'P', b'2' | b'3' | b'5' | b'6'] if is_there => between_numbers(&mut head, 3)?,
        [b'P', b'7'] if is_there => among_lines(&mut head)?,
        _ => Vec::new(),
    };
    if head.limit() == 0 {
        once(&mut found.too_large, word::TEXT);
        return Ok(found);
    }
    let lines: Vec<String> = comments
        .iter()
        .map(|comment| text(comment).trim().to_owned())
        .filter(|line| !line.is_empty())
        .collect();
    found.annotations.take_text("Comment", lines.join("\n"));
    Ok(found)
}

/// Puts texts into the head of a file whose first line is its magic number alone, if they are lines of a
/// comment. Those that are not stay in `texts`.
pub(in crate::annotations) fn insert(texts: &mut Vec<(String, String)>, file: Vec<u8>) -> Vec<u8> {
    let (Some([b'P', _, b'\n']), Some((first, rest))) = (file.get(..3), file.split_at_checked(3)) else {
        return file;
    };
    let mut out = first.to_vec();
    texts.retain(|(name, text)| {
        let lines = lines_of(name, text);
        let fits = lines.split('\n').all(is_line);
        for line in lines.split('\n').filter(|_| fits) {
            out.extend([b"# ", line.as_bytes(), b"\n"].concat());
        }
        !fits
    });
    out.extend_from_slice(rest);
    out
}

/// The comments before the last of so many numbers ends.
fn between_numbers(head: &mut impl BufRead, numbers: usize) -> io::Result<Vec<Vec<u8>>> {
    let mut comments = Vec::new();
    let (mut ended, mut is_number) = (0, false);
    while ended < numbers {
        let Some(&byte) = head.fill_buf()?.first() else {
            break;
        };
        head.consume(1);
        if byte == b'#' {
            let mut comment = Vec::new();
            head.read_until(b'\n', &mut comment)?;
            comments.push(comment);
        } else if !byte.is_ascii_digit() && !byte.is_ascii_whitespace() {
            break;
        }
        let was_number = std::mem::replace(&mut is_number, byte.is_ascii_digit());
        ended += usize::from(was_number && !is_number);
    }
    Ok(comments)
}

/// The comments among the lines of a PAM file's head.
fn among_lines(head: &mut impl BufRead) -> io::Result<Vec<Vec<u8>>> {
    let mut comments = Vec::new();
    loop {
        let mut line = Vec::new();
        if head.read_until(b'\n', &mut line)? == 0 || line.trim_ascii() == b"ENDHDR" {
            return Ok(comments);
        }
        if let Some(comment) = line.trim_ascii_start().strip_prefix(b"#") {
            comments.push(comment.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_the_head_are_read() {
        let said = |file: &[u8]| {
            let found = read(&mut io::Cursor::new(file)).unwrap().annotations.texts;
            found.into_iter().map(|(_, text)| text).collect::<String>()
        };
        for (file, comments) in [
            (&b"P5 1 1 255\n#"[..], ""),
            (b"P5\n# Copyright me\n#\n4 4#two\n255\n#ab", "Copyright me\ntwo"),
            (b"P4\n1 # one\n1\n#", "one"),
            (b"P6 1 1 255#last\nabc", "last"),
            (b"P2\n# caf\xe9\n1 1 9 1", "caf\u{e9}"),
            (b"P7\n# hm\nWIDTH 1\n #too\nENDHDR\n# no\n", "hm\ntoo"),
            (b"P5 # cut", "cut"),
            (b"P5 x # no", ""),
            (b"P# no", ""),
            (b"#", ""),
        ] {
            assert_eq!(said(file), comments, "{}", file.escape_ascii());
        }
        let texts = |texts: &[(&str, &str)]| -> Vec<(String, String)> {
            let owned = texts
                .iter()
                .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
            owned.collect()
        };
        for file in [&b"P6\n1 1\n255\nabc"[..], b"P7\nWIDTH 1\nENDHDR\n"] {
            let mut given = texts(&[
                ("Comment", "caf\u{e9}\n# two"),
                ("a", "b\n"),
                ("Title", "c"),
                ("d", "e\rf"),
            ]);
            let out = insert(&mut given, file.to_vec());
            assert_eq!(said(&out), "caf\u{e9}\n# two\nTitle: c");
            assert_eq!(given, texts(&[("a", "b\n"), ("d", "e\rf")]));
            assert!(out.ends_with(&file[3..]));
        }
        let long = [&b"P5 #"[..], &vec![b'a'; METADATA_LIMIT]].concat();
        assert_eq!(read(&mut io::Cursor::new(long)).unwrap().too_large, [word::TEXT]);
    }
}
