//! Fragments of an MP4 file: how long their pictures last, and those behind a place where its boxes break
//! off.
//!
//! ```text
//!   ftyp moov moof mdat moof mdat ?????? moof mdat moof mdat
//!                                 ^ foreign or zero bytes, which FFmpeg takes for a box of all that is left
//! ```
//!
//! The outermost boxes are walked, whatever their names are, up to where one cannot be; only behind that
//! place is every byte looked at.

use crate::media::containers::bytes::BoxHead;
use crate::media::containers::mp4::{LARGEST, be, boxes};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Outermost boxes after which the walk gives up: weeks of fragments.
pub(super) const MAX_BOXES: u32 = 1_000_000;

/// What a fragment begins with: the name of its box, and behind 4 bytes the name of the first one inside.
const FRAGMENT: &[u8; 4] = b"moof";
const FRAGMENT_HEADER: &[u8; 4] = b"mfhd";

/// The box behind all fragments.
const INDEX: &[u8; 4] = b"mfra";

/// True if the boxes of the MP4 file at `path`, which was read up to byte `reached`, break off, and fragments
/// are behind that place, or may have been.
pub(in crate::source::video) fn breaks_off(path: &Path, reached: u64) -> bool {
    let ask = || -> io::Result<bool> {
        let mut file = path.is_file().then(|| File::open(path)).transpose()?;
        let Some(file) = &mut file else {
            return Ok(false);
        };
        let length = file.metadata()?.len();
        lacks_fragments(file, length, reached)
    };
    ask().unwrap_or(false)
}

fn lacks_fragments(file: &mut (impl Read + Seek), length: u64, reached: u64) -> io::Result<bool> {
    match break_of(file, length)? {
        Some(end) if reached > end.at => has_fragment(file, reached),
        Some(end) => Ok(end.is_in_fragments || has_fragment(file, end.at)?),
        None => Ok(false),
    }
}

/// Where what should be a box is none.
struct Break {
    at: u64,
    /// There are fragments before it, and not yet their index, which is the last box.
    is_in_fragments: bool,
}

/// Where what should be a box is none; `None` if all are, or the last one has no size.
fn break_of(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<Break>> {
    let (mut at, mut is_in_fragments) = (0, false);
    for _ in 0..MAX_BOXES {
        if length - at < 8 {
            return Ok(None);
        }
        let head = BoxHead::at(file, at)?;
        let size = match head.size {
            None if &head.name == b"mdat" => return Ok(None),
            size => size.unwrap_or_default(),
        };
        let end = at.checked_add(size).filter(|&end| size >= 8 && end <= length);
        let is_name = head.name.iter().all(|byte| matches!(byte, b' '..=b'~' | 0xA9));
        match end.filter(|_| is_name) {
            Some(end) => at = end,
            None => return Ok(Some(Break { at, is_in_fragments })),
        }
        match &head.name {
            FRAGMENT => is_in_fragments = true,
            INDEX => is_in_fragments = false,
            _ => {}
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

/// What a fragment says of the samples of one track.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Run {
    pub(super) track: u64,
    /// When the first of them is decoded, in the track's ticks.
    pub(super) begins: Option<u64>,
    /// How long each of them lasts, as far as that is stated here.
    lasts: Vec<u64>,
}

/// What the fragment whose box begins at `at` says of its tracks.
pub(super) fn runs(file: &mut (impl Read + Seek), at: u64) -> io::Result<Vec<Run>> {
    let head = BoxHead::at(file, at)?;
    let inside = at + head.size.unwrap_or_default();
    let Some(bytes) = inside
        .checked_sub(file.stream_position()?)
        .filter(|&bytes| bytes <= LARGEST)
    else {
        return Ok(Vec::new());
    };
    let mut content = vec![0; bytes as usize];
    file.read_exact(&mut content)?;
    Ok(boxes(&content, b"traf").filter_map(run).collect())
}

/// What a fragment's box of a track holds.
fn run(track: &[u8]) -> Option<Run> {
    let head = boxes(track, b"tfhd").next()?;
    let flags = be(head, 1, 3)?;
    let usual_at = 8 + if flags & 1 != 0 { 8 } else { 0 } + if flags & 2 != 0 { 4 } else { 0 };
    let usual = if flags & 8 != 0 {
        be(head, usual_at, 4)
    } else {
        None
    };
    let begins = boxes(track, b"tfdt").next();
    let begins = begins.and_then(|time| be(time, 4, if be(time, 0, 1)? == 0 { 4 } else { 8 }));
    let mut lasts: Vec<u64> = usual.into_iter().collect();
    for samples in boxes(track, b"trun") {
        let flags = be(samples, 1, 3)?;
        if flags & 0x100 == 0 {
            continue;
        }
        let first = 8 + if flags & 1 != 0 { 4 } else { 0 } + if flags & 4 != 0 { 4 } else { 0 };
        let each = 4 * (flags & 0xF00).count_ones() as usize;
        let rest = samples.get(first..)?;
        lasts.extend(rest.chunks_exact(each).filter_map(|sample| be(sample, 0, 4)));
    }
    Some(Run {
        track: be(head, 4, 4)?,
        begins,
        lasts,
    })
}

/// How long pictures of a track last by the fragments of the MP4 file at `path`, in the track's ticks.
pub(in crate::source::video) fn stated_durations(path: &Path, track: i32) -> BTreeSet<i64> {
    let mut found = BTreeSet::new();
    let mut ask = || -> io::Result<()> {
        let mut file = path.is_file().then(|| File::open(path)).transpose()?;
        let Some(file) = &mut file else {
            return Ok(());
        };
        let mut at = 0;
        for _ in 0..MAX_BOXES {
            let head = BoxHead::at(file, at)?;
            if &head.name == FRAGMENT {
                let ours = runs(file, at)?
                    .into_iter()
                    .filter(|run| i64::try_from(run.track) == Ok(track.into()));
                found.extend(
                    ours.flat_map(|run| run.lasts)
                        .filter_map(|lasts| i64::try_from(lasts).ok()),
                );
            }
            match head.size.and_then(|size| at.checked_add(size)) {
                Some(end) if end > at => at = end,
                _ => break,
            }
        }
        Ok(())
    };
    // The walk ends where no box is.
    let _ = ask();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn fragments_end_where_boxes_do_or_with_their_index() {
        let fragment = &b"\0\0\0\x18moof\0\0\0\x10mfhd\0\0\0\0\0\0\0\x01\0\0\0\x0Cmdatdata"[..];
        let head = &b"\0\0\0\x10ftypisomisom\0\0\0\x08moov"[..];
        let index = b"\0\0\0\x0Cmfra1234";
        let ask = |parts: &[&[u8]], reached: u64| {
            let file = parts.concat();
            lacks_fragments(&mut Cursor::new(&file), file.len() as u64, reached).unwrap_or(false)
        };
        for foreign in [&[0; 50][..], b"<html>not found</html>", b"\0\0\0\x02free"] {
            assert!(ask(&[head, fragment, foreign, fragment], 0), "{foreign:?}");
            assert!(ask(&[head, fragment, foreign], 0), "{foreign:?}");
            assert!(!ask(&[head, fragment, index, foreign], 0), "{foreign:?}");
            assert!(!ask(&[head, foreign], 0), "{foreign:?}");
            // What was read is not lost.
            let read = (head.len() + foreign.len()) as u64;
            assert!(ask(&[head, foreign, fragment], read), "{foreign:?}");
            assert!(!ask(&[head, foreign, fragment], read + 1), "{foreign:?}");
        }
        for whole in [&b""[..], b"\0\0\0\x0Cprftdata", b"\0\0\0\x08free"] {
            assert!(!ask(&[head, fragment, whole, fragment], 0), "{whole:?}");
        }
    }
}
