//! DPX files: the header of 2048 bytes. Read only.
//!
//! ```text
//!  0 "SDPX", or "XPDS" if numbers are little endian | 136 time, 24 bytes | 160 creator, 100
//!  260 project, 200 | 460 copyright, 200 | 768 orientation, 16 bits
//!  the first element: 780 sign, 784 code of black, 792 of white, 32 bits each | 801 transfer | 803 bits
//!  1432 name of the source, 100 | 1532 its time, 24 | 1556 device, 32 | 1588 its number, 32
//!  film: 1680 format, 32 | 1732 frame, 32 | 1764 slate, 100
//! ```

use crate::annotations::FileMetadata;
use crate::annotations::bytes::{Order, part, text};

/// Bytes of the part of the header that is read.
pub(in crate::annotations) const HEADER: u64 = 2048;

/// The creator that FFmpeg's encoder states, which says nothing of the picture.
const ENCODER: &str = "Lavc";

/// Texts with the names that PNG gives such: where each stands, and its bytes.
const TEXTS: [(&str, usize, usize); 11] = [
    ("Creation Time", 136, 24),
    ("Author", 160, 100),
    ("Project", 260, 200),
    ("Copyright", 460, 200),
    ("Source file", 1432, 100),
    ("Source time", 1532, 24),
    ("Source", 1556, 32),
    ("Serial number", 1588, 32),
    ("Film format", 1680, 32),
    ("Film frame", 1732, 32),
    ("Slate", 1764, 100),
];

/// The order of a file's numbers by its first bytes; `None` if it is no DPX file.
pub(crate) fn order(head: &[u8]) -> Option<Order> {
    match head.get(..4)? {
        b"SDPX" => Some(Order::Big),
        b"XPDS" => Some(Order::Little),
        _ => None,
    }
}

/// What a file says beside its pixels: its texts, its orientation, and a transfer that no H.273 number names.
pub(in crate::annotations) fn read(header: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    let Some(order) = order(header) else {
        return found;
    };
    for (name, at, length) in TEXTS {
        let stated = part(header, at, length).map(until_zero).unwrap_or_default();
        if !stated.starts_with(ENCODER) {
            found.annotations.take_text(name, stated);
        }
    }
    match order.read16(header, 768) {
        // Where rows and columns begin, and whether stored rows are columns.
        Some(code @ 1..=7) => found.orientation = [1, 2, 4, 3, 5, 6, 8, 7].get(usize::from(code)).copied(),
        Some(0 | u16::MAX) | None => {}
        Some(code) => found.unknown.push(format!("orientation {code}")),
    }
    // Of numbers that nobody stated all bits are set, or none.
    let stated = |at| order.read32(header, at).filter(|&code| code != u32::MAX);
    if stated(780) == Some(1) {
        found
            .unknown
            .push("the sign of its samples, which are read without".to_owned());
    }
    let most = match header.get(803) {
        Some(&bits @ 1..=31) => (1 << bits) - 1,
        _ => u32::MAX,
    };
    let black = stated(784).filter(|&code| code > 0);
    let white = stated(792).filter(|&code| code > 0 && code != most);
    if black.is_some() || white.is_some() {
        let (black, white) = (black.unwrap_or(0), white.unwrap_or(most));
        found
            .unknown
            .push(format!("the codes of black and white ({black} and {white})"));
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
    fn numbers_are_read_in_the_order_that_the_file_begins_with() {
        let mut header = vec![0; 2048];
        header[768..770].copy_from_slice(&[5, 0]);
        header[784..788].copy_from_slice(&[95, 0, 0, 0]);
        header[803] = 10;
        header[..4].copy_from_slice(b"XPDS");
        let found = read(&header);
        assert_eq!(found.orientation, Some(6));
        assert_eq!(found.unknown, ["the codes of black and white (95 and 1023)"]);
        header[..4].copy_from_slice(b"XDPS");
        assert_eq!(read(&header), FileMetadata::default());
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
        let found = header(&[(136, b"2020:01:02:03:04:05"), (1556, b"a camera")]);
        assert_eq!(
            found.annotations.texts,
            [("Creation Time", "2020:01:02:03:04:05"), ("Source", "a camera")]
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
        );
        let range = |black: u32, white: u32| {
            let (black, white) = (black.to_be_bytes(), white.to_be_bytes());
            header(&[(784, &black), (792, &white), (803, &[10])]).unknown
        };
        assert_eq!(range(95, 685), ["the codes of black and white (95 and 685)"]);
        assert_eq!(range(64, 0), ["the codes of black and white (64 and 1023)"]);
        for (black, white) in [(0, 1023), (0, 0), (u32::MAX, u32::MAX)] {
            assert_eq!(range(black, white), [""; 0]);
        }
        let signed = "the sign of its samples, which are read without";
        assert_eq!(header(&[(780, &[0, 0, 0, 1])]).unknown, [signed]);
        assert_eq!(header(&[(780, &[255; 4])]).unknown, [""; 0]);
    }
}
