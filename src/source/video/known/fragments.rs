//! Fragments of an MP4 file behind a place where its boxes break off.
//!
//! ```text
//!   ftyp moov moof mdat moof mdat ?????? moof mdat moof mdat
//!                                 ^ foreign or zero bytes, which FFmpeg takes for a box of all that is left
//! ```
//!
//! The outermost boxes are walked, whatever their names are, up to where one cannot be; only behind that
//! place is every byte looked at.

use super::bytes::BoxHead;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Outermost boxes after which the walk gives up: weeks of fragments.
const MAX_BOXES: u32 = 1_000_000;

/// What a fragment begins with: the name of its box, and behind 4 bytes the name of the first one inside.
const FRAGMENT: &[u8; 4] = b"moof";
const FRAGMENT_HEADER: &[u8; 4] = b"mfhd";

/// True if the boxes of the MP4 file at `path` break off, and behind that place a fragment begins at byte
/// `reached` or later.
pub(in crate::source::video) fn has_fragments_behind(path: &Path, reached: u64) -> bool {
    let ask = || -> io::Result<bool> {
        let mut file = path.is_file().then(|| File::open(path)).transpose()?;
        let Some(file) = &mut file else {
            return Ok(false);
        };
        let length = file.metadata()?.len();
        fragments_behind(file, length, reached)
    };
    ask().unwrap_or(false)
}

fn fragments_behind(file: &mut (impl Read + Seek), length: u64, reached: u64) -> io::Result<bool> {
    match break_of(file, length)? {
        Some(place) => has_fragment(file, place.max(reached)),
        None => Ok(false),
    }
}

/// Where what should be a box is none; `None` if all are, or the last one has no size.
fn break_of(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<u64>> {
    let mut at = 0;
    for _ in 0..MAX_BOXES {
        if length - at < 8 {
            return Ok(None);
        }
        file.seek(SeekFrom::Start(at))?;
        let head = BoxHead::read(file)?;
        let size = match head.size {
            None if &head.name == b"mdat" => return Ok(None),
            size => size.unwrap_or_default(),
        };
        let end = at.checked_add(size).filter(|&end| size >= 8 && end <= length);
        let is_name = head.name.iter().all(|byte| matches!(byte, b' '..=b'~' | 0xA9));
        match end.filter(|_| is_name) {
            Some(end) => at = end,
            None => return Ok(Some(at)),
        }
    }
    Ok(None)
}

/// True if a fragment begins at `from` or behind it.
fn has_fragment(file: &mut (impl Read + Seek), from: u64) -> io::Result<bool> {
    // The size, both names and what lies between them.
    const HEAD: usize = 16;
    const PIECE: usize = 1 << 16;
    file.seek(SeekFrom::Start(from))?;
    let mut file = BufReader::with_capacity(PIECE, file);
    let mut bytes: Vec<u8> = Vec::new();
    loop {
        let more = file.fill_buf()?;
        if more.is_empty() {
            return Ok(false);
        }
        let read = more.len();
        bytes.extend_from_slice(more);
        file.consume(read);
        let is_fragment = |head: &[u8]| &head[4..8] == FRAGMENT && &head[12..] == FRAGMENT_HEADER;
        if bytes.windows(HEAD).any(is_fragment) {
            return Ok(true);
        }
        bytes.drain(..bytes.len().saturating_sub(HEAD - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn fragments_are_found_behind_what_is_no_box_alone() {
        let fragment = b"\0\0\0\x18moof\0\0\0\x10mfhd\0\0\0\0\0\0\0\x01\0\0\0\x0Cmdatdata";
        let head = b"\0\0\0\x10ftypisomisom\0\0\0\x08moov";
        let ask = |between: &[u8], reached: u64| {
            let file = [&head[..], fragment, between, fragment].concat();
            fragments_behind(&mut Cursor::new(&file), file.len() as u64, reached).unwrap_or(false)
        };
        let reached = (head.len() + fragment.len()) as u64;
        for foreign in [
            &[0; 50][..],
            b"<html>not found</html>",
            &[1, 2, 3],
            b"\0\0\0\x02free",
        ] {
            assert!(ask(foreign, reached), "{foreign:?}");
            // What was read is not lost.
            assert!(!ask(foreign, reached + foreign.len() as u64 + 1), "{foreign:?}");
        }
        for whole in [&b""[..], b"\0\0\0\x0Cprftdata", b"\0\0\0\x08free"] {
            assert!(!ask(whole, reached), "{whole:?}");
        }
    }
}
