//! The end of a Photoshop file: three parts, each with its length, then rows, or lengths of rows in runs.

use super::header::{be16, be32, bytes};
use crate::media::containers::bytes::skip;
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let header: [u8; 26] = bytes(file)?;
    // Files of the second version have longer numbers, and no decoder in FFmpeg.
    if !header.starts_with(b"8BPS\0\x01") {
        return Ok(None);
    }
    let rows = be16(&header, 12).saturating_mul(be32(&header, 14));
    let row = be32(&header, 18).saturating_mul(be16(&header, 22)).div_ceil(8);
    let mut at = 28;
    for _ in 0..3 {
        let length = be32(&bytes::<4>(file)?, 0);
        skip(file, length)?;
        at += 4 + length;
    }
    match be16(&bytes::<2>(file)?, 0) {
        0 => Ok(Some(rows.saturating_mul(row).saturating_add(at))),
        1 => {
            for _ in 0..rows {
                at += 2 + be16(&bytes::<2>(file)?, 0);
            }
            Ok(Some(at))
        }
        _ => Ok(None),
    }
}
