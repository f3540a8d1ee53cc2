//! What stands in a file after its first picture, which decoders pass over: more pictures, or other data.
//! Padding does not count.

use std::fmt::Display;
use std::io::{self, BufRead, Read};

/// Bytes that are taken for padding if nothing else follows.
const MOST_PADDING: usize = 1 << 20;

/// What follows the first picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trailing {
    /// Pictures of the same kind.
    Pictures,
    /// Something else than padding.
    Data,
}

impl Trailing {
    /// What is said of it.
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Trailing::Pictures => "the file holds several pictures; only the first is read",
            Trailing::Data => "bytes after the picture are ignored",
        }
    }

    /// What these bytes after a picture are, `None` for padding; files of its kind begin with `magic`.
    pub(super) fn of(behind: &mut impl BufRead, magic: &[u8]) -> io::Result<Option<Trailing>> {
        let mut passed = 0;
        loop {
            let bytes = behind.fill_buf()?;
            let Some(&first) = bytes.first() else {
                return Ok(None);
            };
            // A file of holes has gigabytes of zeros.
            if passed > MOST_PADDING {
                return Ok(Some(Trailing::Data));
            }
            if !is_padding(first) {
                let mut begin = Vec::new();
                behind.take(magic.len() as u64).read_to_end(&mut begin)?;
                return Ok(Some(match !magic.is_empty() && begin == magic {
                    true => Trailing::Pictures,
                    false => Trailing::Data,
                }));
            }
            let padding = bytes.iter().take_while(|&&byte| is_padding(byte)).count();
            passed += padding;
            behind.consume(padding);
        }
    }
}

/// What is said of a file with so many pictures, or what they are, of which one is read.
pub(super) fn several_pictures(count: impl Display, noun: &str, chosen: &str) -> String {
    format!("the file holds {count} {noun}; only the {chosen} is read")
}

/// True for bytes that mean nothing after a picture.
pub(super) fn is_padding(byte: u8) -> bool {
    matches!(byte, 0 | 0xff) || byte.is_ascii_whitespace()
}
