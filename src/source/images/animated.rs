//! Which image files hold more than one frame, by their first chunks.

use crate::annotations::jpeg_xl::CodestreamHeader;
use crate::media::ffmpeg::{Codestream, codestream};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

/// True if `path` is a PNG, WebP or AVIF file that holds more than one frame.
pub fn is_animated(path: &Path) -> bool {
    png_frames(path).is_ok_and(|frames| frames > 1) || is_animated_webp(path) || is_avif_sequence(path)
}

/// True if `path` is a JPEG XL file whose header announces more than one frame.
pub fn is_animated_jpeg_xl(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(JPEG_XL_HEAD).read_to_end(&mut head));
    let held = match codestream(&head) {
        Codestream::Bare => head,
        Codestream::Boxed(held) => held,
        Codestream::Missing => return false,
    };
    let contents = CodestreamHeader::begin(&held).and_then(CodestreamHeader::contents);
    read.is_ok() && contents.is_some_and(|contents| contents.is_animated)
}

/// Bytes of a JPEG XL file in which its header is searched.
const JPEG_XL_HEAD: u64 = 1 << 16;

/// True if `path` is an AVIF file that calls itself a sequence.
fn is_avif_sequence(path: &Path) -> bool {
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BRANDS).read_to_end(&mut head));
    if read.is_err() || head.get(4..8) != Some(b"ftyp") {
        return false;
    }
    let size = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    head.truncate(size);
    // The first, its version, and those that the file is compatible with.
    head.chunks_exact(4).skip(2).any(|brand| brand == b"avis")
}

/// Bytes of an AVIF file that hold all its brands.
const BRANDS: u64 = 256;

/// True if `path` is a WebP file with an animation.
pub fn is_animated_webp(path: &Path) -> bool {
    let mut head = [0; 21];
    let read = path.is_file() && File::open(path).and_then(|mut f| f.read_exact(&mut head)).is_ok();
    read && &head[..4] == b"RIFF" && &head[8..16] == b"WEBPVP8X" && head[20] & ANIMATION != 0
}

/// The flag of an extended WebP file that announces an animation.
const ANIMATION: u8 = 2;

/// The frames that a PNG file announces before its picture: none for a still.
fn png_frames(path: &Path) -> io::Result<u32> {
    if !path.is_file() {
        return Ok(0);
    }
    let mut file = BufReader::new(File::open(path)?);
    let mut signature = [0; 8];
    file.read_exact(&mut signature)?;
    if signature != *b"\x89PNG\r\n\x1a\n" {
        return Ok(0);
    }
    loop {
        let mut head = [0; 8];
        file.read_exact(&mut head)?;
        let (length, kind) = head.split_at(4);
        match kind {
            b"acTL" => {
                let mut frames = [0; 4];
                file.read_exact(&mut frames)?;
                return Ok(u32::from_be_bytes(frames));
            }
            b"IDAT" | b"IEND" => return Ok(0),
            // Names of chunks are four letters.
            kind if !kind.iter().all(u8::is_ascii_alphabetic) => return Ok(0),
            _ => {
                let length = u32::from_be_bytes([length[0], length[1], length[2], length[3]]);
                // The checksum follows the data.
                file.seek_relative(i64::from(length) + 4)?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(kind: &[u8], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32).to_be_bytes(), kind, data, &[0; 4]].concat()
    }

    #[test]
    fn animations_are_recognised_by_their_first_chunks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.png");
        let is = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            is_animated(&path)
        };
        let signature = b"\x89PNG\r\n\x1a\n".to_vec();
        let header = chunk(b"IHDR", &[0; 13]);
        let control = |frames: u8| chunk(b"acTL", &[0, 0, 0, frames, 0, 0, 0, 0]);
        let data = chunk(b"IDAT", &[0; 5]);
        assert!(is(
            &[signature.clone(), header.clone(), control(2), data.clone()].concat()
        ));
        assert!(!is(&[
            signature.clone(),
            header.clone(),
            control(1),
            data.clone()
        ]
        .concat()));
        assert!(!is(&[signature, header, data, control(2)].concat()));
        assert!(is(b"\0\0\0\x14ftypavif\0\0\0\0avisavis"));
        assert!(is(b"\0\0\0\x10ftypavis\0\0\0\0"));
        assert!(!is(b"\0\0\0\x14ftypavif\0\0\0\0miafavis"));
        assert!(is(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0"));
        assert!(!is(b"RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\x10\0\0\0"));
        assert!(!is(b"RIFF"));
        assert!(!is_animated(folder.path()));
    }
}
