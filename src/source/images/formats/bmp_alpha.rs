//! The fourth byte of the pixels of BMP files of 32 bits without masks: no header calls it alpha, and many
//! programs write alpha into it.

use crate::source::images::picture::unused_sentence;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of both headers up to the kind of packing.
const HEADERS: usize = 34;

/// A sentence about the fourth bytes, if there are any and they differ.
pub(in crate::source::images) fn conversion(path: &Path) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    Ok(differ(BufReader::new(file))?.then(|| unused_sentence("fourth byte")))
}

fn differ(mut file: impl Read + Seek) -> io::Result<bool> {
    let mut header = [0; HEADERS];
    if file.read_exact(&mut header).is_err() {
        return Ok(false);
    }
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    // The header is of 40 bytes or more, and states 32 bits and no packing.
    if word(14) < 40 || header[28..34] != [32, 0, 0, 0, 0, 0] {
        return Ok(false);
    }
    let (width, height) = (u64::from(word(18)), u64::from((word(22) as i32).unsigned_abs()));
    file.seek(SeekFrom::Start(word(10).into()))?;
    let mut pixels = file.take(width.saturating_mul(height).saturating_mul(4));
    let (mut first, mut piece) = (None, Vec::new());
    loop {
        piece.clear();
        if pixels.by_ref().take(1 << 16).read_to_end(&mut piece)? == 0 {
            return Ok(false);
        }
        let all = piece.as_chunks::<4>().0;
        let first = *first.get_or_insert(all.first().map_or(0, |pixel| pixel[3]));
        if all.iter().any(|pixel| pixel[3] != first) {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn fourth_bytes_that_differ_are_found() {
        let differ_in = |bits: u8, packing: u8, fourth: [u8; 2]| {
            let mut file = b"BM".to_vec();
            file.resize(54, 0);
            (file[10], file[14], file[18], file[22]) = (54, 40, 1, 2);
            (file[28], file[30]) = (bits, packing);
            file.extend([1, 2, 3, fourth[0], 4, 5, 6, fourth[1], 9, 9, 9, 77]);
            differ(Cursor::new(file)).unwrap()
        };
        assert!(differ_in(32, 0, [0, 1]));
        assert!(!differ_in(32, 0, [1, 1]));
        assert!(!differ_in(32, 3, [0, 1]));
        assert!(!differ_in(24, 0, [0, 1]));
        assert!(!differ(Cursor::new(b"BM")).unwrap());
    }
}
