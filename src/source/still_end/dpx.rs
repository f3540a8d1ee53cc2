//! The end of a DPX file: rows of whole 32-bit words, and the length that the header states.

use super::header::bytes;
use crate::annotations::dpx::order;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// FFmpeg's decoder takes a file whose last row lacks bytes for one without padding, and skews the picture.
pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const UNDEFINED: u64 = 0xffff_ffff;
    let header: [u8; 808] = bytes(file)?;
    let Some(order) = order(&header) else {
        return Ok(None);
    };
    // All places are within the header, which is read whole.
    let word = |at: usize| order.read32(&header, at).map_or(0, u64::from);
    let half = |at: usize| order.read16(&header, at).map_or(0, u64::from);
    let stated = Some(word(16)).filter(|&length| length > 0 && length != UNDEFINED);
    let samples = match header[800] {
        1..=4 | 6..=8 => 1,
        50 | 102 => 3,
        51 | 52 | 103 => 4,
        100 => 2,
        _ => return Ok(stated),
    } * word(772);
    let (is_filled, is_packed_in_runs) = (half(804) > 0, half(806) > 0);
    let row = match (header[803], is_filled) {
        (8, _) => samples,
        (10, true) => samples.div_ceil(3) * 4,
        (12, true) | (16, _) => samples * 2,
        (10 | 12, false) => (samples * u64::from(header[803])).div_ceil(32) * 4,
        _ => return Ok(stated),
    };
    if is_packed_in_runs {
        return Ok(stated);
    }
    let end = |row: u64| row.saturating_mul(word(776)).saturating_add(word(4));
    let (padded, unpadded) = (end(row.next_multiple_of(4)), end(row));
    let length = file.seek(SeekFrom::End(0))?;
    // Some programs write rows without padding, and say so by the length alone.
    Ok(Some(match stated.filter(|&stated| stated >= unpadded) {
        Some(stated) if stated == unpadded && (length <= unpadded || begins_at(file, unpadded)?) => unpadded,
        // ImageMagick states more than it writes of gray.
        Some(_) if half(770) == 1 && length >= padded => padded,
        Some(stated) => stated.max(padded),
        None if length == unpadded => unpadded,
        None => padded,
    }))
}

/// True if another DPX file begins at byte `at`.
fn begins_at<R: BufRead + Seek>(file: &mut R, at: u64) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut magic = Vec::new();
    file.take(4).read_to_end(&mut magic)?;
    Ok(order(&magic).is_some())
}
