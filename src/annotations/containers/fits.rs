//! FITS files: the cards of the first header. Read only.
//!
//! ```text
//!  a card, 80 bytes: name, 8 bytes | "= " | value / comment
//!  SIMPLE  =                    T        the first
//!  END                                   the last
//! ```

use crate::annotations::bytes::{part, take_array, text};
use crate::annotations::{FileMetadata, name_once};
use std::io::{self, BufRead};

/// Cards that are read, and names that are kept of them.
const MOST_CARDS: usize = 1 << 16;
const MOST_NAMES: usize = 64;

/// Cards that say how samples are stored, which their decoder knows, or how a file can be checked.
const STORAGE: [&str; 13] = [
    "", "SIMPLE", "BITPIX", "EXTEND", "BSCALE", "BZERO", "BLANK", "DATAMIN", "DATAMAX", "GROUPS", "PCOUNT",
    "GCOUNT", "DATASUM",
];

/// The names of cards that say something of the picture.
pub(in crate::annotations) fn read(input: &mut impl BufRead) -> io::Result<FileMetadata> {
    let mut found = FileMetadata::default();
    let mut names = Vec::new();
    for _ in 0..MOST_CARDS {
        let Some(card) = take_array::<80>(input)? else {
            break;
        };
        let name = part(&card, 0, 8).map(text).unwrap_or_default();
        let name = name.trim_end();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if name == "END" || !name.bytes().all(is_name) {
            break;
        }
        let value = part(&card, 8, 72).map(text).unwrap_or_default();
        if says_something(name, value.trim()) {
            name_once(&mut names, name.to_owned(), MOST_NAMES);
        }
    }
    if !names.is_empty() {
        let more = names.len() == MOST_NAMES;
        let more = if more { " and others" } else { "" };
        found
            .unknown
            .push(format!("header cards ({}{more})", names.join(", ")));
    }
    Ok(found)
}

/// True unless a card is about the samples, or stands in every file.
fn says_something(name: &str, value: &str) -> bool {
    // The reference that the standard asks for.
    let is_reference = || {
        value.starts_with("FITS (Flexible Image Transport System) format is")
            || value.starts_with("and Astrophysics', volume 376")
    };
    match name {
        "CHECKSUM" => false,
        name if STORAGE.contains(&name) || name.starts_with("NAXIS") => false,
        // Planes of red, green and blue.
        "CTYPE3" => !value.contains("'RGB"),
        "COMMENT" | "HISTORY" => !value.is_empty() && !is_reference(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(cards: &[&str]) -> Vec<String> {
        let head: String = cards.iter().map(|card| format!("{card:80}")).collect();
        read(&mut io::Cursor::new(head)).unwrap().unknown
    }

    #[test]
    fn cards_beside_the_samples_are_named_once() {
        let plain = [
            "SIMPLE  =                    T",
            "BITPIX  =                    8",
            "NAXIS1  =                   24",
            "CTYPE3  = 'RGB     '",
            "COMMENT   FITS (Flexible Image Transport System) format is defined in 'Astronomy",
            "",
        ];
        assert_eq!(
            said(&[&plain[..], &["END", "OBJECT  = 'M 31'"]].concat()),
            [""; 0]
        );
        let more = [
            "OBJECT  = 'M 31'",
            "DATE-OBS= '2020-01-01'",
            "HISTORY a",
            "HISTORY b",
            "END",
        ];
        assert_eq!(
            said(&[&plain[..], &more].concat()),
            ["header cards (OBJECT, DATE-OBS, HISTORY)"]
        );
        assert_eq!((said(&[]), said(&["\u{1}\u{2}"])), (vec![], vec![]));
    }
}
