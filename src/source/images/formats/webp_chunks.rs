//! The lengths that a WebP file states of itself and of its chunks, against the bytes that are there. The
//! decoder makes up what is missing of lossy pixels, without an error.

use std::io::{self, ErrorKind, Read, Seek, SeekFrom};

/// Bytes of the head of a file, and of a chunk.
const HEAD: u64 = 12;
const CHUNK_HEAD: u64 = 8;

/// Chunks that hold pixels.
const PIXELS: [&[u8; 4]; 4] = [b"VP8 ", b"VP8L", b"ALPH", b"ANMF"];

/// What is missing at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source) enum Missing {
    /// Bytes of a chunk that holds pixels.
    Pixels,
    /// Other bytes, of which there may be as many as the file states or none.
    Others,
}

/// What is missing of a WebP file by its own account; nothing of what is none. A lone byte of padding counts
/// as there.
pub(in crate::source) fn missing(input: &mut (impl Read + Seek)) -> io::Result<Option<Missing>> {
    let len = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let mut head = [0; HEAD as usize];
    match input.read_exact(&mut head) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let [b'R', b'I', b'F', b'F', s0, s1, s2, s3, b'W', b'E', b'B', b'P'] = head else {
        return Ok(None);
    };
    // Nothing, or less than a chunk, stands in files whose writer was stopped.
    let stated = CHUNK_HEAD + u64::from(u32::from_le_bytes([s0, s1, s2, s3]));
    let end = if stated > HEAD { stated } else { len };
    let mut at = HEAD;
    while at < end && at.saturating_add(CHUNK_HEAD) <= len {
        input.seek(SeekFrom::Start(at))?;
        let mut head = [0; CHUNK_HEAD as usize];
        input.read_exact(&mut head)?;
        let [n0, n1, n2, n3, size @ ..] = head;
        let name = [n0, n1, n2, n3];
        if name.iter().any(u8::is_ascii_control) {
            return Ok(None);
        }
        let size = u64::from(u32::from_le_bytes(size));
        at += CHUNK_HEAD + size;
        if at > len {
            let has_pixels = PIXELS.contains(&&name);
            return Ok(Some(if has_pixels {
                Missing::Pixels
            } else {
                Missing::Others
            }));
        }
        at += size % 2;
    }
    Ok((end > len.max(at)).then_some(Missing::Others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn lengths_are_held_against_the_file() {
        let mut whole = b"RIFF\x1e\0\0\0WEBPVP8 \x05\0\0\0abcde\0EXIF\x03\0\0\0abc\0".to_vec();
        let of = |bytes: &[u8]| missing(&mut Cursor::new(bytes)).unwrap();
        assert_eq!(of(&whole), None);
        assert_eq!(of(&[&whole[..], b"more"].concat()), None);
        let lacking = |bytes: usize| of(&whole[..whole.len() - bytes]);
        // The padding, the data and the head of the last chunk; then the padding and the data of the pixels.
        assert_eq!(lacking(1), None);
        for bytes in 2..=12 {
            assert_eq!(lacking(bytes), Some(Missing::Others), "{bytes}");
        }
        for bytes in 14..=18 {
            assert_eq!(lacking(bytes), Some(Missing::Pixels), "{bytes}");
        }
        whole[4..8].fill(0);
        assert_eq!(of(&whole), None);
        assert_eq!(of(b"RIFF"), None);
    }
}
