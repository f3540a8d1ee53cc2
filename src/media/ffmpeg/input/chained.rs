//! Matroska files put one behind another, of which FFmpeg reads the packets of all with the times of each.

use super::ebml::{EBML, SEGMENT, element};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Elements after which a walk gives up: weeks of video.
const MOST_ELEMENTS: u32 = 1_000_000;

/// What holds packets, and may be written without a size.
const CLUSTER: u32 = 0x1F43_B675;

/// True if behind the first Matroska file in the one at `path` another begins.
pub(super) fn is_chained(path: &Path) -> bool {
    let ask = || -> io::Result<bool> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        has_second(&mut BufReader::new(file), length)
    };
    path.is_file() && ask().unwrap_or(false)
}

/// Walks from the first header to a second one, over what has a size and into what has none.
fn has_second(file: &mut (impl Read + Seek), length: u64) -> io::Result<bool> {
    let mut at = 0;
    for _ in 0..MOST_ELEMENTS {
        if at >= length {
            break;
        }
        file.seek(SeekFrom::Start(at))?;
        let found = element(file, at)?;
        if found.id == EBML && at > 0 {
            return Ok(true);
        }
        let end = found.size.and_then(|size| found.content.checked_add(size));
        at = match end {
            Some(end) => end,
            None if [SEGMENT, CLUSTER].contains(&found.id) => found.content,
            None => break,
        };
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn a_second_header_is_found_behind_sizes_and_without_them() {
        let header = [0x1A, 0x45, 0xDF, 0xA3, 0x82, 1, 2];
        let block = [0xA3, 0x84, 0x81, 0, 0, 0];
        let cluster = |size: u8| [&[0x1F, 0x43, 0xB6, 0x75, size], &block[..]].concat();
        let file =
            |segment: u8, cluster: &[u8]| [&header, &[0x18, 0x53, 0x80, 0x67, segment][..], cluster].concat();
        for one in [
            file(0x8B, &cluster(0x86)),
            file(0xFF, &cluster(0x86)),
            file(0xFF, &cluster(0xFF)),
        ] {
            let found = |bytes: &[u8]| has_second(&mut Cursor::new(bytes), bytes.len() as u64);
            assert!(!found(&one).unwrap_or(true));
            assert!(found(&[&one[..], &one].concat()).unwrap_or(false));
            assert!(!found(&[&one[..], &[0; 40]].concat()).unwrap_or(false));
        }
    }
}
