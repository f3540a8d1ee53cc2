//! Edit lists of MP4 and QuickTime files, as far as FFmpeg's demuxer does not follow them.
//!
//! ```text
//!   edits      pause │ from 2 s, rate 1 │ from 7 s, rate 1 │ pause │ from 9 s, rate 2
//!   followed    yes  │        yes       │        yes       │  no   │        no
//! ```
//!
//! It plays the media from its beginning on where a pause is not at the beginning of the list, and all parts
//! at their normal rate. Where pictures are coded out of order, it may show later parts some frames off. In a
//! file of fragments it follows one pause and one part.

use super::mp4::{be, boxes, movie};
use crate::wording::tidy;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Where the media begins in an edit without any: a pause.
const NO_MEDIA: i64 = -1;

/// One entry of an edit list.
#[derive(Debug, Clone, Copy)]
struct Edit {
    /// In the movie's ticks.
    lasts: u64,
    /// In the media's ticks.
    begins: i64,
    rate: f64,
}

/// What a list is judged by beside its edits.
struct Media {
    /// Ticks of the movie in a second.
    ticks: f64,
    is_fragmented: bool,
    /// Its pictures are coded out of order.
    is_reordered: bool,
}

/// What is to be known of an edit list.
pub(crate) struct EditList {
    /// What FFmpeg does not follow, in words.
    pub(crate) unfollowed: Option<String>,
    /// It has more than one part of the media.
    pub(crate) has_parts: bool,
}

/// The edit lists of an MP4 or QuickTime file.
pub(crate) struct EditLists {
    /// What the movie box holds.
    movie: Vec<u8>,
}

impl EditLists {
    /// Those of the file at `path`; `None` if it has no movie box, or cannot be read twice.
    pub(crate) fn read(path: &Path) -> Option<EditLists> {
        if !path.is_file() {
            return None;
        }
        let mut file = BufReader::new(File::open(path).ok()?);
        let movie = movie(&mut file).ok()??;
        Some(EditLists { movie })
    }

    /// The one of stream `index`.
    pub(crate) fn of(&self, index: usize) -> Option<EditList> {
        of_movie(&self.movie, index)
    }

    /// What the one of stream `index` has that FFmpeg does not follow, in words.
    pub(crate) fn unfollowed(&self, index: usize) -> Option<String> {
        self.of(index)?.unfollowed
    }
}

/// The names of an MP4 or QuickTime file's tracks, by the boxes of user data that FFmpeg's muxer writes for
/// titles; empty if the file has no movie box.
pub(crate) fn track_names(path: &Path) -> Vec<Option<String>> {
    let name = |track| {
        let name = boxes(boxes(track, b"udta").next()?, b"name").next()?;
        Some(String::from_utf8_lossy(name).into_owned())
    };
    let movie = EditLists::read(path).map_or_else(Vec::new, |lists| lists.movie);
    boxes(&movie, b"trak").map(name).collect()
}

fn of_movie(movie: &[u8], index: usize) -> Option<EditList> {
    // FFmpeg makes a stream of each track, in their order.
    let track = boxes(movie, b"trak").nth(index)?;
    let edits = edits(boxes(boxes(track, b"edts").next()?, b"elst").last()?)?;
    let header = boxes(movie, b"mvhd").next()?;
    let ticks = be(header, if header.first()? == &1 { 20 } else { 12 }, 4)?;
    let media = Media {
        ticks: ticks.max(1) as f64,
        is_fragmented: boxes(movie, b"mvex").next().is_some(),
        is_reordered: is_reordered(track),
    };
    Some(EditList {
        unfollowed: unfollowed(&edits, &media),
        has_parts: edits.iter().filter(|edit| edit.begins != NO_MEDIA).count() > 1,
    })
}

/// True if pictures of a track are shown at different times behind those at which they are decoded.
fn is_reordered(track: &[u8]) -> bool {
    let offsets = || {
        let media = boxes(boxes(track, b"mdia").next()?, b"minf").next()?;
        let list = boxes(boxes(media, b"stbl").next()?, b"ctts").next()?;
        let mut offsets = list.get(8..)?.chunks_exact(8).map(|entry| be(entry, 4, 4));
        let first = offsets.next()?;
        Some(offsets.any(|offset| offset != first))
    };
    offsets().unwrap_or(false)
}

/// The entries of an `elst` box.
fn edits(list: &[u8]) -> Option<Vec<Edit>> {
    let long = list.first()? == &1;
    let size = if long { 20 } else { 12 };
    let count = usize::try_from(be(list, 4, 4)?).ok()?;
    let entries = list.get(8..)?.chunks_exact(size).take(count);
    let edit = |entry: &[u8]| {
        Some(Edit {
            lasts: be(entry, 0, size / 2 - 2)?,
            begins: match long {
                true => be(entry, 8, 8)? as i64,
                false => be(entry, 4, 4)? as u32 as i32 as i64,
            },
            rate: f64::from(be(entry, size - 4, 4)? as u32 as i32) / 65536.0,
        })
    };
    entries.map(edit).collect()
}

/// What FFmpeg does not follow of these edits, in words.
fn unfollowed(edits: &[Edit], media: &Media) -> Option<String> {
    let is_fragmented = media.is_fragmented;
    let (mut pauses, mut paused, mut parts, mut empty) = (0, 0, 0, 0);
    let mut found: Vec<String> = Vec::new();
    let mut add = |words: String| {
        if !found.contains(&words) {
            found.push(words);
        }
    };
    for edit in edits {
        // Of fragments, whose length was not known, a list says that its last part lasts 0.
        let counts = edit.lasts > 0 || is_fragmented;
        if edit.begins == NO_MEDIA {
            if counts && parts > 0 {
                pauses += 1;
                paused += edit.lasts;
            }
            continue;
        }
        parts += 1;
        empty += u32::from(!counts);
        if counts && edit.rate != 1.0 {
            add(format!("a rate of {}", tidy(edit.rate)));
        }
        if counts && edit.begins < 0 {
            add("a part before the beginning".to_owned());
        }
    }
    // A part that lasts 0 shows nothing.
    let shown = parts - empty;
    if is_fragmented && shown > 1 {
        add(format!("{shown} parts in a file of fragments"));
    } else if media.is_reordered && shown > 1 {
        add(format!("{shown} parts of pictures that are coded out of order"));
    }
    let seconds = tidy(paused as f64 / media.ticks);
    match pauses {
        0 => {}
        1 => add(format!("a pause of {seconds} s after a part")),
        _ => add(format!("{pauses} pauses of {seconds} s after a part")),
    }
    (!found.is_empty()).then(|| found.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn atom(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = (content.len() as u32 + 8).to_be_bytes();
        [&size, &name[..], content].concat()
    }

    /// A movie of 1000 ticks a second whose second track has these edits: length, beginning, and 65536 times
    /// the rate. Its pictures are decoded so many ticks before they are shown.
    fn film(version: u8, edits: &[(u64, i64, u32)], delays: &[u32], more: &[u8]) -> Vec<u8> {
        let mut list = vec![version, 0, 0, 0];
        list.extend((edits.len() as u32).to_be_bytes());
        for (lasts, begins, rate) in edits {
            if version == 1 {
                list.extend([lasts.to_be_bytes(), begins.to_be_bytes()].concat());
            } else {
                list.extend([(*lasts as u32).to_be_bytes(), (*begins as i32).to_be_bytes()].concat());
            }
            list.extend(rate.to_be_bytes());
        }
        let mut header = vec![0; 12];
        header.extend(1000_u32.to_be_bytes());
        let delays: Vec<u8> = delays
            .iter()
            .flat_map(|&delay| [1, delay])
            .flat_map(u32::to_be_bytes)
            .collect();
        let delays = atom(b"stbl", &atom(b"ctts", &[&[0; 8], &delays[..]].concat()));
        let media = atom(b"mdia", &atom(b"minf", &delays));
        let edited = [atom(b"edts", &atom(b"elst", &list)), media].concat();
        let edited = atom(b"trak", &edited);
        let movie = [atom(b"mvhd", &header), atom(b"trak", &[]), edited, more.to_vec()].concat();
        [
            atom(b"ftyp", b"isom"),
            atom(b"mdat", &[0; 20]),
            atom(b"moov", &movie),
        ]
        .concat()
    }

    #[test]
    fn what_ffmpeg_does_not_follow_of_edit_lists_is_found() {
        const ONE: u32 = 1 << 16;
        let found = |file: &[u8], index| {
            let movie = movie(&mut std::io::Cursor::new(file)).ok()??;
            of_movie(&movie, index)?.unfollowed
        };
        let followed: [&[_]; 7] = [
            &[(1000, 0, ONE)],
            &[(1000, 512, ONE)],
            &[(400, -1, ONE), (1000, 512, ONE)],
            &[(400, -1, 0), (200, -1, ONE), (1000, 0, ONE)],
            &[(0, 0, ONE)],
            &[(400, 5120, ONE), (400, 0, ONE), (400, 0, ONE)],
            &[(400, 0, ONE), (0, -1, ONE)],
        ];
        let not: [(&[_], &str); 8] = [
            (
                &[(400, 0, ONE), (250, -1, ONE), (9, 9, ONE)],
                "a pause of 0.25 s after a part",
            ),
            (&[(400, 0, ONE), (500, -1, ONE)], "a pause of 0.5 s after a part"),
            (
                &[(1, 0, ONE), (500, -1, ONE), (1, 0, ONE), (500, -1, ONE)],
                "2 pauses of 1 s after a part",
            ),
            (&[(400, 0, 2 * ONE), (1, 0, 2 * ONE)], "a rate of 2"),
            (&[(400, 0, ONE), (400, 0, ONE / 2)], "a rate of 0.5"),
            (&[(1000, 0, 0), (1000, 0, ONE)], "a rate of 0"),
            (&[(1000, 0, ONE.wrapping_neg())], "a rate of -1"),
            (&[(1000, -512, ONE)], "a part before the beginning"),
        ];
        for version in [0, 1] {
            for edits in followed {
                assert_eq!(
                    found(&film(version, edits, &[512, 512], &[]), 1),
                    None,
                    "{version}: {edits:?}"
                );
            }
            for (edits, words) in not {
                let file = film(version, edits, &[512, 512], &[]);
                assert_eq!(found(&file, 1).as_deref(), Some(words), "{version}: {edits:?}");
                assert_eq!(found(&file, 0), None);
                // Files that break off anywhere are no reason to panic.
                for end in 0..file.len() {
                    let _ = found(&file[..end], 1);
                }
            }
        }
        let parts = [(400, 0, ONE), (400, 512, ONE)];
        let reordered = film(0, &parts, &[512, 1024, 0], &[]);
        let words = "2 parts of pictures that are coded out of order";
        assert_eq!(found(&reordered, 1).as_deref(), Some(words));
        let one = film(0, &[(0, 512, ONE), (400, 0, ONE)], &[512, 1024, 0], &[]);
        assert_eq!(found(&one, 1), None);
        let fragments = atom(b"mvex", &[]);
        let leading = film(0, &[(400, -1, ONE), (0, 512, ONE)], &[], &fragments);
        assert_eq!(found(&leading, 1), None);
        let several = film(0, &parts, &[], &fragments);
        assert_eq!(
            found(&several, 1).as_deref(),
            Some("2 parts in a file of fragments")
        );
    }
}
