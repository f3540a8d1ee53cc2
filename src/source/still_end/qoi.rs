//! The end of a QOI file: codes of as many pixels as the header states, and a mark of 8 bytes.

use super::header::{be32, bytes};
use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const MARKER: u64 = 8;
    let header: [u8; 14] = bytes(file)?;
    if !header.starts_with(b"qoif") {
        return Ok(None);
    }
    let pixels = be32(&header, 4).saturating_mul(be32(&header, 8));
    let (mut seen, mut at) = (0_u64, 14_u64);
    while seen < pixels {
        let code = byte(file)?;
        let (more, run) = match code {
            0xfe => (3, 1),
            0xff => (4, 1),
            0x80..0xc0 => (1, 1),
            0xc0.. => (0, u64::from(code & 63) + 1),
            _ => (0, 1),
        };
        skip(file, more)?;
        (seen, at) = (seen + run, at + 1 + more);
    }
    Ok(Some(at + MARKER))
}
