//! WebP files of the extended kind whose flags do not announce the alpha that their lossless picture has. The
//! image crate believes the flags; libwebp and FFmpeg believe the picture.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// Bytes up to the flags, and with them.
const FLAGS: usize = 20;
const HEAD: usize = 30;

const ALPHA: u8 = 0x10;
const ANIMATION: u8 = 0x02;

/// The whole file with the flag set, if it is one of these.
pub(in crate::source::images) fn announced(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut file = BufReader::new(File::open(path)?);
    if !is_unannounced(&mut file)? {
        return Ok(None);
    }
    let mut whole = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut whole)?;
    if let Some(flags) = whole.get_mut(FLAGS) {
        *flags |= ALPHA;
    }
    Ok(Some(whole))
}

fn is_unannounced<R: Read + Seek>(file: &mut BufReader<R>) -> io::Result<bool> {
    let mut head = [0; HEAD];
    if file.read_exact(&mut head).is_err() {
        return Ok(false);
    }
    let is_extended = head.starts_with(b"RIFF") && &head[8..16] == b"WEBPVP8X";
    if !is_extended || head[16..20] != [10, 0, 0, 0] || head[FLAGS] & (ALPHA | ANIMATION) != 0 {
        return Ok(false);
    }
    let mut chunk = [0; 8];
    while file.read_exact(&mut chunk).is_ok() {
        let size = u32::from_le_bytes([chunk[4], chunk[5], chunk[6], chunk[7]]);
        if chunk.starts_with(b"VP8L") {
            // A byte 0x2f, then bits: width and height of 14 each, and alpha.
            let mut start = [0; 5];
            return Ok(file.read_exact(&mut start).is_ok() && start[0] == 0x2f && start[4] & ALPHA != 0);
        }
        file.seek_relative(i64::from(size) + i64::from(size & 1))?;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Cursor;

    #[test]
    fn alpha_is_looked_for_in_the_picture() {
        let is = |flags: u8, bits: u8| {
            let head = [
                &b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0"[..],
                &[flags, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ]
            .concat();
            let chunks = [&b"ICCP\x03\0\0\0abc\0VP8L\x05\0\0\0\x2f\0\0\0"[..], &[bits]].concat();
            is_unannounced(&mut BufReader::new(Cursor::new([head, chunks].concat()))).unwrap()
        };
        assert!(is(0x20, 0x10));
        assert!(!is(0x20, 0));
        assert!(!is(0x30, 0x10));
        assert!(!is(0x02, 0x10));
    }
}
