//! WebP files of the extended kind whose flags are at odds with their chunks. The image crate believes the
//! flags; libwebp and FFmpeg believe the chunks.

use crate::wording::and_list;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// Bytes up to the flags, and with all of their chunk.
const FLAGS: usize = 20;
const HEAD: usize = 30;

const ALPHA: u8 = 0x10;
const EXIF: u8 = 0x08;
const XMP: u8 = 0x04;
const ANIMATION: u8 = 0x02;

/// A file with the flags that its chunks ask for.
pub(in crate::source::images) struct Corrected {
    /// The whole file.
    pub(in crate::source::images) file: Vec<u8>,
    /// What the flags announce and no chunk holds, in words.
    pub(in crate::source::images) absent: Option<String>,
}

/// The file with other flags, if its own are wrong.
pub(in crate::source::images) fn corrected(path: &Path) -> io::Result<Option<Corrected>> {
    let mut file = BufReader::new(File::open(path)?);
    let Some((stated, asked)) = flags(&mut file)?.filter(|(stated, asked)| stated != asked) else {
        return Ok(None);
    };
    let mut whole = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut whole)?;
    if let Some(flags) = whole.get_mut(FLAGS) {
        *flags = asked;
    }
    let absent: Vec<&str> = [(ALPHA, "alpha"), (EXIF, "Exif"), (XMP, "XMP")]
        .into_iter()
        .filter_map(|(flag, word)| (stated & !asked & flag != 0).then_some(word))
        .collect();
    let absent = (!absent.is_empty()).then(|| {
        format!(
            "its header announces {}, and no chunk holds it",
            and_list(&absent)
        )
    });
    Ok(Some(Corrected { file: whole, absent }))
}

/// The flags of a still of the extended kind, and those that its chunks ask for.
fn flags<R: Read + Seek>(file: &mut BufReader<R>) -> io::Result<Option<(u8, u8)>> {
    let mut head = [0; HEAD];
    if file.read_exact(&mut head).is_err() {
        return Ok(None);
    }
    let is_extended = head.starts_with(b"RIFF") && &head[8..16] == b"WEBPVP8X";
    let stated = head[FLAGS];
    if !is_extended || head[16..20] != [10, 0, 0, 0] || stated & ANIMATION != 0 {
        return Ok(None);
    }
    let (mut held, mut is_lossy, mut has_alpha) = (0, false, false);
    let mut chunk = [0; 8];
    while file.read_exact(&mut chunk).is_ok() {
        let [n0, n1, n2, n3, size @ ..] = chunk;
        let size = i64::from(u32::from_le_bytes(size));
        let mut rest = size + (size & 1);
        match &[n0, n1, n2, n3] {
            b"EXIF" => held |= EXIF,
            b"XMP " => held |= XMP,
            b"ALPH" => has_alpha = true,
            b"VP8 " => is_lossy = true,
            b"VP8L" => {
                // A byte 0x2f, then bits: width and height of 14 each, and alpha.
                let mut start = [0; 5];
                if size < 5 || file.read_exact(&mut start).is_err() {
                    break;
                }
                if start[0] == 0x2f && start[4] & ALPHA != 0 {
                    held |= ALPHA;
                }
                rest -= 5;
            }
            _ => {}
        }
        file.seek_relative(rest)?;
    }
    // Without the flag all decoders pass over the alpha of a lossy picture, and a lossless one has room for
    // alpha in any case.
    let absent = match is_lossy && !has_alpha {
        true => ALPHA | EXIF | XMP,
        false => EXIF | XMP,
    } & !held;
    Ok(Some((stated, (stated | held & ALPHA) & !absent)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn flags_follow_the_chunks() {
        let asked = |flags: u8, chunks: &[&[u8]]| {
            let head = [
                &b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0"[..],
                &[flags, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ]
            .concat();
            let file = [&[&head[..]], chunks].concat().concat();
            super::flags(&mut BufReader::new(Cursor::new(file)))
                .unwrap()
                .map(|(_, asked)| asked)
        };
        let profile = b"ICCP\x03\0\0\0abc\0";
        let clear = b"VP8L\x05\0\0\0\x2f\0\0\0\x10\0";
        let opaque = b"VP8L\x05\0\0\0\x2f\0\0\0\0\0";
        let (lossy, alpha) = (b"VP8 \x02\0\0\0ab", b"ALPH\x01\0\0\0a\0");
        let (exif, xmp) = (b"EXIF\x01\0\0\0a\0", b"XMP \0\0\0\0");
        assert_eq!(asked(0x20, &[profile, clear]), Some(0x30));
        assert_eq!(asked(0x20, &[profile, opaque]), Some(0x20));
        assert_eq!(asked(0x30, &[profile, opaque]), Some(0x30));
        assert_eq!(asked(0x02, &[profile, clear]), None);
        assert_eq!(asked(0x1c, &[clear]), Some(0x10));
        assert_eq!(asked(0x1c, &[alpha, lossy, exif, xmp]), Some(0x1c));
        assert_eq!(asked(0x1c, &[lossy, xmp]), Some(0x04));
        assert_eq!(asked(0x00, &[alpha, lossy, exif]), Some(0x00));
    }
}
