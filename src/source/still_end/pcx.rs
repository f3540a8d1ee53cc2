//! The end of a PCX file: rows, plain or in runs, and a palette of 769 bytes if a pixel is one byte.

use super::header::{bytes, le16};
use crate::media::containers::bytes::{byte, skip};
use std::io::{self, BufRead, Seek, SeekFrom};

pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    const PALETTE: u64 = 1 + 3 * 256;
    const MARK: u8 = 12;
    let header: [u8; 128] = bytes(file)?;
    let (is_packed, bits, planes) = (header[2] == 1, header[3], header[65]);
    let rows = (le16(&header, 10) + 1).saturating_sub(le16(&header, 6));
    if header[0] != 10 {
        return Ok(None);
    }
    let row = le16(&header, 66) * u64::from(planes);
    let mut at = 128;
    if is_packed {
        for _ in 0..rows {
            let mut seen = 0;
            // A run does not go on into the next row.
            while seen < row {
                let code = byte(file)?;
                let is_run = code >= 0xc0;
                skip(file, u64::from(is_run))?;
                at += 1 + u64::from(is_run);
                seen += if is_run { u64::from(code & 63) } else { 1 };
            }
        }
    } else {
        at += row * rows;
    }
    if (bits, planes) == (8, 1) {
        file.seek(SeekFrom::Start(at))?;
        // Without its mark there is none, but for a file that ends before it.
        let mark = file.fill_buf()?.first();
        if mark.is_none_or(|&mark| mark == MARK) {
            at += PALETTE;
        }
    }
    Ok(Some(at))
}
