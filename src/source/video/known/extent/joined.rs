//! A second movie behind the end of the first, as in files that were joined byte by byte: FFmpeg reads the
//! first one alone, or takes fragments of the second for newer ones of the first.

use super::fragments::{MAX_BOXES, runs};
use super::sizes::{ASF, asf, walk_gif};
use crate::media::containers::bytes::BoxHead;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// What is said of it.
pub(in crate::source::video) const SENTENCE: &str =
    "another movie begins after its end: not all of both is read";

/// How a PNG file begins.
const PNG: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// How a GIF file begins, and how far behind its end the next one is looked for.
const GIF: &[u8; 4] = b"GIF8";
const GIF_SEARCHED: u64 = 4096;

/// Bytes behind the last frame of an FLV file in which a second header is looked for: a few tags of no frame.
const FLV_SEARCHED: usize = 4096;

/// True if a second movie begins in the file at `path`, which FFmpeg's `demuxer` read up to byte `reached`;
/// of a pipe what was `kept` counts.
pub(in crate::source::video) fn begins_again(path: &Path, kept: &[u8], demuxer: &str, reached: u64) -> bool {
    if demuxer == "gif" && !kept.is_empty() {
        return second_gif(&mut Cursor::new(kept)).unwrap_or(false);
    }
    let ask = || -> io::Result<bool> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        match demuxer {
            "asf" => second_asf(&mut file),
            "flv" => second_flv(&mut file, reached),
            "apng" => second_png(&mut file),
            "gif" => second_gif(&mut BufReader::new(file)),
            name if name.contains("mp4") => second_mp4(&mut file, length, reached),
            _ => Ok(false),
        }
    };
    path.is_file() && ask().unwrap_or(false)
}

/// True if the bytes at `at` are `mark`.
fn is_at(file: &mut (impl Read + Seek), at: u64, mark: &[u8]) -> io::Result<bool> {
    let mut found = vec![0; mark.len()];
    file.seek(SeekFrom::Start(at))?;
    Ok(file.read_exact(&mut found).is_ok() && found == mark)
}

/// The second one begins where the first states that it ends.
fn second_asf(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    match asf(file)? {
        Some(end) => is_at(file, end, &ASF),
        None => Ok(false),
    }
}

/// A header of an FLV file, whose length it states, in the midst of tags.
fn second_flv(file: &mut (impl Read + Seek), reached: u64) -> io::Result<bool> {
    let mut behind = Vec::new();
    file.seek(SeekFrom::Start(reached))?;
    file.take(FLV_SEARCHED as u64).read_to_end(&mut behind)?;
    let is_header = |head: &[u8]| head.starts_with(b"FLV\x01") && head.ends_with(&[0, 0, 0, 9]);
    Ok(behind.windows(9).any(is_header))
}

/// A PNG signature behind the last chunk.
fn second_png(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    let mut at = PNG.len() as u64;
    loop {
        let mut head = [0; 8];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut head)?;
        // Its length, its name and a checksum go with the data.
        at += 12 + u64::from(u32::from_be_bytes([head[0], head[1], head[2], head[3]]));
        if &head[4..] == b"IEND" {
            return is_at(file, at, PNG);
        }
    }
}

/// The first bytes of a GIF file behind the last ones, and perhaps some zeros.
fn second_gif(file: &mut (impl BufRead + Seek)) -> io::Result<bool> {
    walk_gif(file)?;
    let mut behind = Vec::new();
    file.take(GIF_SEARCHED).read_to_end(&mut behind)?;
    let zeros = behind.iter().take_while(|&&byte| byte == 0).count();
    Ok(behind[zeros..].starts_with(GIF))
}

/// A second movie box, with data of which nothing was read, or with fragments in the place of earlier ones.
/// Segments of one stream may each have a movie box in front, too: their times go on.
fn second_mp4(file: &mut (impl Read + Seek), length: u64, reached: u64) -> io::Result<bool> {
    let (mut at, mut movies, mut fragments, mut is_unread) = (0, 0, Vec::new(), false);
    for _ in 0..MAX_BOXES {
        if at + 8 > length {
            break;
        }
        let head = BoxHead::at(file, at)?;
        let end = head.size.map_or(Some(length), |size| at.checked_add(size));
        let Some(end) = end.filter(|&end| end >= at + 8 && end <= length) else {
            break;
        };
        match &head.name {
            b"moov" => movies += 1,
            b"moof" => fragments.push((at, movies > 1)),
            b"mdat" => is_unread |= at >= reached,
            _ => {}
        }
        at = end;
    }
    if movies < 2 || is_unread {
        return Ok(movies > 1);
    }
    let mut latest: BTreeMap<u64, u64> = BTreeMap::new();
    for (at, is_second) in fragments {
        for run in runs(file, at)? {
            let Some(begins) = run.begins else { continue };
            let before = latest.insert(run.track, begins);
            if is_second && before.is_some_and(|before| begins <= before) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes(), &name[..], content].concat()
    }

    #[test]
    fn segments_whose_times_go_on_are_one_movie() {
        let fragment = |begins: u32| {
            let head = boxed(b"tfhd", &[0, 0, 0, 0, 0, 0, 0, 1]);
            let time = boxed(b"tfdt", &[&[0; 4], &begins.to_be_bytes()[..]].concat());
            boxed(b"moof", &boxed(b"traf", &[head, time].concat()))
        };
        let init = [boxed(b"ftyp", b"isomisom"), boxed(b"moov", &[])].concat();
        let ask = |parts: &[&[u8]], reached: u64| {
            let file = parts.concat();
            second_mp4(&mut Cursor::new(&file), file.len() as u64, reached).unwrap_or(false)
        };
        let (first, next, data) = (fragment(0), fragment(512), boxed(b"mdat", b"data"));
        let half = (init.len() + first.len() + data.len()) as u64;
        assert!(!ask(&[&init, &first, &data, &init, &next, &data], 2 * half));
        assert!(ask(&[&init, &first, &data, &init, &first, &data], 2 * half));
        assert!(ask(&[&init, &first, &data, &init, &next, &data], half));
        assert!(!ask(&[&init, &first, &data, &next, &data], half));
        // A movie box that was written anew.
        assert!(!ask(&[&data, &init, &init], data.len() as u64));
    }
}
