//! Pictures at the end of an AVI file that repeat the one before and have no bytes, by its index.

use crate::media::containers::bytes::skip;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

/// Chunks after which the search for the index gives up.
const MOST_CHUNKS: u32 = 10_000;

/// How many entries without bytes of stream `stream` the index at the end of the file at `path` ends with.
/// `None` where there is no such index, or where it is one of several parts.
pub(in crate::source::video) fn repeats_at_end(path: &Path, stream: usize) -> Option<u64> {
    let mut file = path.is_file().then(|| File::open(path).ok())??;
    let length = file.metadata().ok()?.len();
    in_index(&mut BufReader::new(&mut file), length, stream).ok()?
}

fn in_index(file: &mut (impl BufRead + Seek), length: u64, stream: usize) -> io::Result<Option<u64>> {
    let mut head = [0; 8];
    file.read_exact(&mut head)?;
    let size = |head: &[u8; 8]| u64::from(u32::from_le_bytes([head[4], head[5], head[6], head[7]]));
    // Behind the first part of a large file others follow, which have indexes of their own.
    if &head[..4] != b"RIFF" || size(&head) + 16 < length {
        return Ok(None);
    }
    let mut at = 12;
    for _ in 0..MOST_CHUNKS {
        file.seek(SeekFrom::Start(at))?;
        if file.read_exact(&mut head).is_err() {
            return Ok(None);
        }
        if &head[..4] == b"idx1" {
            return trailing(file, size(&head) / 16, stream).map(Some);
        }
        // Chunks begin at even places.
        at += 8 + size(&head).next_multiple_of(2);
    }
    Ok(None)
}

/// Entries without bytes behind the last one of the stream that has some.
fn trailing(file: &mut impl BufRead, entries: u64, stream: usize) -> io::Result<u64> {
    let mut empty = 0;
    let number = [b'0' + (stream / 10 % 10) as u8, b'0' + (stream % 10) as u8];
    for _ in 0..entries {
        let (mut name, mut size) = ([0; 2], [0; 4]);
        file.read_exact(&mut name)?;
        skip(file, 10)?;
        file.read_exact(&mut size)?;
        match (name == number, size == [0; 4]) {
            (true, true) => empty += 1,
            (true, false) => empty = 0,
            (false, _) => {}
        }
    }
    Ok(empty)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn entries_without_bytes_at_the_end_are_counted() {
        let entry = |name: &[u8; 4], size: u8| [&name[..], &[0; 8], &[size, 0, 0, 0]].concat();
        let entries = [
            entry(b"00dc", 9),
            entry(b"00dc", 0),
            entry(b"00dc", 7),
            entry(b"00dc", 0),
            entry(b"01wb", 5),
            entry(b"00dc", 0),
        ];
        let index = entries.concat();
        let file = [
            &b"RIFF\x78\0\0\0AVI JUNK\x03\0\0\0abc\0idx1"[..],
            &(index.len() as u32).to_le_bytes(),
            &index,
        ];
        let file = file.concat();
        let ask = |length: u64, stream| in_index(&mut Cursor::new(&file), length, stream).unwrap_or(None);
        assert_eq!(ask(file.len() as u64, 0), Some(2));
        assert_eq!(ask(file.len() as u64, 1), Some(0));
        assert_eq!(ask(file.len() as u64 + 4096, 0), None);
    }
}
