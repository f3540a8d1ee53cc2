//! The end of an SGI file: plain rows, or a table of places and lengths, then rows in runs.

use super::header::{be16, bytes};
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const HEADER: u64 = 512;
    let header: [u8; HEADER as usize] = bytes(file)?;
    let (storage, sample_bytes, dimensions) = (header[2], u64::from(header[3]), be16(&header, 4));
    if be16(&header, 0) != 0x01da {
        return Ok(None);
    }
    let (width, mut rows) = (be16(&header, 6), 1);
    if dimensions >= 2 {
        rows *= be16(&header, 8);
    }
    if dimensions >= 3 {
        rows *= be16(&header, 10);
    }
    if storage == 0 {
        return Ok(Some(HEADER + width * rows * sample_bytes));
    }
    // All places come before all lengths.
    let mut places = Vec::new();
    for _ in 0..rows {
        places.push(u32::from_be_bytes(bytes(file)?));
    }
    let mut end = HEADER + 8 * rows;
    for place in places {
        end = end.max(u64::from(place) + u64::from(u32::from_be_bytes(bytes(file)?)));
    }
    Ok(Some(end))
}
