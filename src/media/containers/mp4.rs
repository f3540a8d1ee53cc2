//! The box of an MP4 or QuickTime file that holds the facts of its tracks (`moov`), and the boxes in it.

use super::bytes::BoxHead;
use std::io::{self, Read, Seek};

/// Bytes of the largest list of tracks that is read.
pub(crate) const LARGEST: u64 = 64 << 20;

/// Elements of a file or a list after which a search gives up.
pub(crate) const MOST: usize = 10_000;

/// Bytes of a box's head.
const HEAD: usize = 8;

/// What the movie box holds; `None` if there is none, or it is too large.
pub(crate) fn movie(file: &mut (impl Read + Seek)) -> io::Result<Option<Vec<u8>>> {
    let mut at = 0_u64;
    for _ in 0..MOST {
        let head = BoxHead::at(file, at)?;
        let end = head.size.and_then(|size| at.checked_add(size));
        let Some(end) = end.filter(|&end| end >= at + HEAD as u64) else {
            return Ok(None);
        };
        if &head.name == b"moov" {
            let content = file.stream_position()?;
            let Some(length) = end.checked_sub(content).filter(|&length| length <= LARGEST) else {
                return Ok(None);
            };
            let mut movie = vec![0; length as usize];
            file.read_exact(&mut movie)?;
            return Ok(Some(movie));
        }
        at = end;
    }
    Ok(None)
}

/// The contents of the boxes of that name among `bytes`.
pub(crate) fn boxes<'a>(bytes: &'a [u8], name: &'a [u8; 4]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let next = move || -> Option<(&'a [u8], &'a [u8])> {
        let size = be(rest, 0, 4)? as usize;
        let (whole, behind) = rest.split_at_checked(size)?;
        rest = behind;
        Some((whole.get(4..HEAD)?, whole.get(HEAD..)?))
    };
    std::iter::from_fn(next)
        .take(MOST)
        .filter_map(move |(found, content)| (found == name).then_some(content))
}

/// A number of `len` bytes at `at`, the most significant first.
pub(crate) fn be(bytes: &[u8], at: usize, len: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(len)?)?;
    Some(bytes.iter().fold(0, |all, &byte| all << 8 | u64::from(byte)))
}
