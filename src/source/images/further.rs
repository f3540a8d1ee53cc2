//! What stands behind the first picture of a file, in words, and the padding that does not count.

use std::io::{self, BufRead, Read};

/// Bytes that are taken for padding if nothing else follows.
const MOST_PADDING: usize = 1 << 20;

/// What follows the first picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Further {
    /// Pictures of the same kind.
    Pictures,
    /// Something else than padding.
    Data,
}

impl Further {
    pub(super) fn sentence(self) -> &'static str {
        match self {
            Further::Pictures => "several pictures are in the file, of which the first is read",
            Further::Data => "data behind the picture in the file are left out",
        }
    }

    /// What these bytes behind a picture are, `None` for padding; files of its kind begin with `magic`.
    pub(super) fn of(behind: &mut impl BufRead, magic: &[u8]) -> io::Result<Option<Further>> {
        let mut passed = 0;
        loop {
            let bytes = behind.fill_buf()?;
            let Some(&first) = bytes.first() else {
                return Ok(None);
            };
            // A file of holes has gigabytes of zeros.
            if passed > MOST_PADDING {
                return Ok(Some(Further::Data));
            }
            if !is_padding(first) {
                let mut begin = Vec::new();
                behind.take(magic.len() as u64).read_to_end(&mut begin)?;
                return Ok(Some(match !magic.is_empty() && begin == magic {
                    true => Further::Pictures,
                    false => Further::Data,
                }));
            }
            let padding = bytes.iter().take_while(|&&byte| is_padding(byte)).count();
            passed += padding;
            behind.consume(padding);
        }
    }
}

/// True for bytes that mean nothing behind a picture.
pub(super) fn is_padding(byte: u8) -> bool {
    matches!(byte, 0 | 0xff) || byte.is_ascii_whitespace()
}
