//! JPEG XL packets: codestreams, bare or in boxes. FFmpeg's decoder asks libjxl again and again for what a
//! cut box lacks, and never ends; a bare codestream is taken whole, however much of it is there.
//!
//! ```text
//!  box: length, 32 bits, with itself | name, 4 bytes | data       length 1: 64 bits more; 0: to the end
//!  "JXL " .. | ftyp | .. | jxlc: codestream    or    jxlp: number, 32 bits, part of it | jxlp ..
//! ```

/// What a codestream begins with.
const CODESTREAM: &[u8] = b"\xff\x0a";

/// The box that files of boxes begin with.
const SIGNATURE: &[u8] = b"\0\0\0\x0cJXL \r\n\x87\n";

/// How a packet goes to the decoder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Codestream {
    /// The packet is one.
    Bare,
    /// What the packet's boxes hold of it.
    Boxed(Vec<u8>),
    /// There is none.
    Missing,
}

/// The codestream of a packet, as far as it is there.
pub(crate) fn codestream(packet: &[u8]) -> Codestream {
    if packet.starts_with(CODESTREAM) {
        return Codestream::Bare;
    }
    if !packet.starts_with(SIGNATURE) {
        return Codestream::Missing;
    }
    let mut found = Vec::new();
    let mut rest = packet;
    while let Some((name, data, after)) = first_box(rest) {
        match name {
            b"jxlc" => found.extend_from_slice(data),
            b"jxlp" => found.extend_from_slice(data.get(4..).unwrap_or_default()),
            _ => {}
        }
        rest = after;
    }
    match found.starts_with(CODESTREAM) {
        true => Codestream::Boxed(found),
        false => Codestream::Missing,
    }
}

/// The name of the box that `bytes` begin with, its data as far as they are there, and what follows.
fn first_box(bytes: &[u8]) -> Option<(&[u8; 4], &[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (name, mut rest) = rest.split_first_chunk()?;
    let (mut head, mut length) = (8, u64::from(u32::from_be_bytes(*length)));
    if length == 1 {
        let (long, after) = rest.split_first_chunk()?;
        (head, length, rest) = (16, u64::from_be_bytes(*long), after);
    }
    let length = match length {
        0 => rest.len(),
        length => usize::try_from(length.checked_sub(head)?).unwrap_or(usize::MAX),
    };
    let (data, after) = rest.split_at(length.min(rest.len()));
    Some((name, data, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32 + 8).to_be_bytes(), &name[..], data].concat()
    }

    #[test]
    fn codestreams_are_found_in_boxes() {
        let held = |boxes: &[Vec<u8>]| codestream(&[SIGNATURE, &boxes.concat()].concat());
        assert_eq!(codestream(b"\xff\x0a.."), Codestream::Bare);
        let whole = Codestream::Boxed(b"\xff\x0aabc".to_vec());
        let kind = boxed(b"ftyp", b"jxl \0\0\0\0jxl ");
        assert_eq!(held(&[kind.clone(), boxed(b"jxlc", b"\xff\x0aabc")]), whole);
        let parts = [
            boxed(b"jxlp", b"\0\0\0\0\xff\x0aa"),
            boxed(b"Exif", b"...."),
            boxed(b"jxlp", b"\x80\0\0\x01bc"),
        ];
        assert_eq!(held(&parts), whole);
        let long = b"\0\0\0\x01jxlc\0\0\0\0\0\0\0\x15\xff\x0aabc".to_vec();
        assert_eq!(held(&[long, b"\0\0\0".to_vec()]), whole);
        // To the end; and cut.
        assert_eq!(held(&[b"\0\0\0\0jxlc\xff\x0aabc".to_vec()]), whole);
        assert_eq!(held(&[b"\0\0\x09\0jxlc\xff\x0aabc".to_vec()]), whole);
        let none = [
            &b""[..],
            b"\xff",
            b"\0\x04\0",
            &SIGNATURE[..11],
            SIGNATURE,
            &[SIGNATURE, &kind, b"\x7f\0\0\tj"].concat(),
            &[SIGNATURE, b"\0\0\0\x04jxlc\xff\x0a"].concat(),
            &[SIGNATURE, &boxed(b"jxlp", b"\0")].concat(),
            &[SIGNATURE, &boxed(b"jxlc", b"\xff")].concat(),
        ];
        for packet in none {
            assert_eq!(
                codestream(packet),
                Codestream::Missing,
                "{}",
                packet.escape_ascii()
            );
        }
    }
}
