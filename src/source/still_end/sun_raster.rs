//! The end of a Sun raster file: a map, and rows of whole 16-bit words, plain or in runs.

use super::header::{be32, bytes};
use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, Seek};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const RUNS: u64 = 2;
    let header: [u8; 32] = bytes(file)?;
    let word = |index: usize| be32(&header, 4 * index);
    if word(0) != 0x59a6_6a95 {
        return Ok(None);
    }
    let row = word(1).saturating_mul(word(3)).div_ceil(16).saturating_mul(2);
    let (all, map) = (row.saturating_mul(word(2)), word(7));
    match word(5) {
        0 | 1 | 3 => return Ok(Some(all.saturating_add(32 + map))),
        RUNS => {}
        _ => return Ok(None),
    }
    skip(file, map)?;
    let (mut seen, mut at) = (0, 32 + map);
    while seen < all {
        // 0x80 begins a run of its count plus one, and stands for itself where that is 0.
        if byte(file)? != 0x80 {
            (seen, at) = (seen + 1, at + 1);
            continue;
        }
        let count = u64::from(byte(file)?);
        let has_value = count > 0;
        skip(file, u64::from(has_value))?;
        (seen, at) = (seen + count + 1, at + 2 + u64::from(has_value));
    }
    Ok(Some(at))
}
