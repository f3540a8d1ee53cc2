//! File names as text and back. Bytes that are not UTF-8 become characters of their own, so that names with
//! them can be matched, split and put together like any other.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

/// The character of byte 0, at the end of the last plane, which is for private use.
const FIRST: u32 = 0x10_ff00;

/// A name as text.
pub(crate) fn as_text(name: &OsStr) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.as_bytes().utf8_chunks() {
        text.push_str(chunk.valid());
        let stand_in = |&byte: &u8| char::from_u32(FIRST + u32::from(byte));
        text.extend(chunk.invalid().iter().filter_map(stand_in));
    }
    text
}

/// The name that [`as_text`] gave as `text`.
pub(crate) fn as_name(text: &str) -> OsString {
    let mut name = Vec::with_capacity(text.len());
    for character in text.chars() {
        match u32::from(character).checked_sub(FIRST).map(u8::try_from) {
            // ASCII is always UTF-8.
            Some(Ok(byte)) if !byte.is_ascii() => name.push(byte),
            _ => name.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    OsString::from_vec(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_same_there_and_back() {
        for name in [
            &b"a.png"[..],
            b"q\xff.png",
            b"\xc3\x28\xe2\x82",
            b"\xc3\xa9\xf0\x9f\x8e\x9e",
        ] {
            let name = OsStr::from_bytes(name);
            assert_eq!(as_name(&as_text(name)), name);
        }
        assert_eq!(as_text(OsStr::from_bytes(b"q\xff")).chars().count(), 2);
    }
}
