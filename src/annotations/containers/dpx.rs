//! DPX files: the header of 2048 bytes. Read only.
//!
//! ```text
//!  0 "SDPX", or "XPDS" if numbers are little endian | 160 creator, 100 bytes | 260 project, 200
//!  460 copyright, 200 | 768 orientation, 16 bits | 801 transfer of the first element, 8 bits
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::bytes::{array, part, text};

/// Bytes of the part of the header that is read.
pub(in crate::annotations) const HEADER: u64 = 2048;

/// The creator that FFmpeg's encoder states, which says nothing of the picture.
const ENCODER: &str = "Lavc";

/// What a file says beside its pixels: its texts, its orientation, and a transfer that no H.273 number names.
pub(in crate::annotations) fn read(header: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    let word: fn([u8; 2]) -> u16 = match header.get(..4) {
        Some(b"SDPX") => u16::from_be_bytes,
        Some(b"XPDS") => u16::from_le_bytes,
        _ => return found,
    };
    for (name, at, length) in [
        ("Author", 160, 100),
        ("Project", 260, 200),
        ("Copyright", 460, 200),
    ] {
        let stated = part(header, at, length).map(until_zero).unwrap_or_default();
        if !stated.starts_with(ENCODER) {
            found.annotations.take_text(name, stated);
        }
    }
    match array(header, 768).map(word) {
        // Where rows and columns begin, and whether stored rows are columns.
        Some(code @ 1..=7) => found.orientation = [1, 2, 4, 3, 5, 6, 8, 7].get(usize::from(code)).copied(),
        Some(0 | u16::MAX) | None => {}
        Some(code) => found.unknown.push(format!("orientation {code}")),
    }
    let transfer = match header.get(801) {
        Some(1) => "transfer (printing density)",
        Some(3) => "transfer (logarithmic)",
        Some(11) => "transfer (depth, linear)",
        Some(12) => "transfer (depth, homogeneous)",
        _ => return found,
    };
    found.unknown.push(transfer.to_owned());
    found
}

/// A text that fills its field or ends at a zero; bytes of an undefined field are all set.
fn until_zero(field: &[u8]) -> String {
    let end = field.iter().position(|&byte| byte == 0 || byte == u8::MAX);
    text(&field[..end.unwrap_or(field.len())]).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(fields: &[(usize, &[u8])]) -> FileMetadata {
        let mut header = vec![0; 2048];
        header[..4].copy_from_slice(b"SDPX");
        for (at, bytes) in fields {
            header[*at..at + bytes.len()].copy_from_slice(bytes);
        }
        read(&header)
    }

    #[test]
    fn the_header_states_orientation_transfer_and_texts() {
        assert_eq!(header(&[]), FileMetadata::default());
        assert_eq!(header(&[(160, b"Lavc59.37.100")]), FileMetadata::default());
        let found = header(&[
            (160, b"somebody\0rest"),
            (460, &[b'c'; 200]),
            (768, &[0, 5]),
            (801, &[3]),
        ]);
        assert_eq!(found.annotations.texts[0], ("Author".into(), "somebody".into()));
        assert_eq!(found.annotations.texts[1], ("Copyright".into(), "c".repeat(200)));
        // Rows go down from the right side: a quarter turn clockwise shows it right.
        assert_eq!(found.orientation, Some(6));
        assert_eq!(found.unknown, ["transfer (logarithmic)"]);
        assert_eq!(header(&[(768, &[1, 0])]).unknown, ["orientation 256"]);
        assert_eq!(
            header(&[(768, &[255, 255]), (260, &[255; 200])]),
            FileMetadata::default()
        );
        assert_eq!(read(b"SDPX"), FileMetadata::default());
    }
}
