//! SGI files: the header of 512 bytes. Read only.
//!
//! ```text
//!  0 0x01da | 2 packing | 3 bytes of a sample | 4 dimensions, sizes | 24 name, 80 bytes | 104 colour map
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::bytes::{be32, part, text};

/// Bytes of the header.
pub(in crate::annotations) const HEADER: u64 = 512;

/// What writers put in place of a name.
const NO_NAME: &str = "no name";

/// The name of the picture, and a kind of samples that is read as gray.
pub(in crate::annotations) fn read(header: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    let name = part(header, 24, 80).unwrap_or_default();
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = text(&name[..end]).trim().to_owned();
    if name != NO_NAME {
        found.annotations.take_text("Title", name);
    }
    match be32(header, 104) {
        Some(1) => found
            .unknown
            .push("colours in the bits of each sample (colour map 1), which are read as gray".to_owned()),
        Some(2) => found
            .unknown
            .push("numbers of a screen's colours (colour map 2), which are read as gray".to_owned()),
        Some(3) => found
            .unknown
            .push("a table of colours without a picture (colour map 3)".to_owned()),
        _ => {}
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_and_the_kind_of_samples_are_read() {
        let header = |name: &[u8], map: u8| {
            let mut header = vec![0; 512];
            header[24..24 + name.len()].copy_from_slice(name);
            header[107] = map;
            read(&header)
        };
        for plain in [header(b"", 0), header(b"no name", 0), read(b"\x01\xda")] {
            assert_eq!(plain, FileMetadata::default());
        }
        let found = header(b"a cat\0dog", 1);
        assert_eq!(
            found.annotations.texts,
            [("Title".to_owned(), "a cat".to_owned())]
        );
        assert!(found.unknown[0].contains("colour map 1"));
        assert_eq!(header(&[b'x'; 80], 2).annotations.texts[0].1, "x".repeat(80));
    }
}
