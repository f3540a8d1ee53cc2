//! The end of an XBM file: numbers as text between braces.

use crate::media::containers::bytes::byte;
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    // A definition, or a comment before it.
    if !matches!(byte(file)?, b'#' | b'/') {
        return Ok(None);
    }
    for bracket in *b"{}" {
        while byte(file)? != bracket {}
    }
    file.stream_position().map(Some)
}
