//! The end of an Alias PIX file: runs, each a count and then one pixel.

use super::header::{be16, bytes};
use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let header: [u8; 10] = bytes(file)?;
    let pixels = be16(&header, 0) * be16(&header, 2);
    let pixel_bytes = match be16(&header, 8) {
        24 => 3,
        8 => 1,
        _ => return Ok(None),
    };
    let (mut seen, mut at) = (0, 10);
    while seen < pixels {
        let count = byte(file)?;
        if count == 0 {
            return Ok(None);
        }
        skip(file, pixel_bytes)?;
        (seen, at) = (seen + u64::from(count), at + 1 + pixel_bytes);
    }
    Ok(Some(at))
}
