//! What a Matroska file says that FFmpeg's demuxer does not pass on: chapters within chapters, their further
//! names, hidden ones and editions, languages with a region or a script, and the title of the file where its
//! tags have another one.

use super::mp4::{LARGEST, MOST, be};
use crate::media::ffmpeg::ebml::{EBML, Element, SEGMENT, element};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// What is before the first cluster, or, as the list of these places says, behind the last one.
pub(crate) const TRACKS: u32 = 0x1654_AE6B;
const INFO: u32 = 0x1549_A966;
const CHAPTERS: u32 = 0x1043_A770;
const PLACES: u32 = 0x114D_9B74;
const CLUSTER: u32 = 0x1F43_B675;

const TITLE: u64 = 0x7BA9;

/// A place: what is there, and where, counted from the segment's beginning.
const PLACE: u64 = 0x4DBB;
const PLACE_OF: u64 = 0x53AB;
const PLACE_AT: u64 = 0x53AC;

pub(crate) const TRACK_ENTRY: u64 = 0xAE;
pub(crate) const TRACK_TYPE: u64 = 0x83;
const LANGUAGE: u64 = 0x22_B59C;
const LANGUAGE_TAG: u64 = 0x22_B59D;

/// Elements of chapters: editions, those that play their chapters in another order, chapters, which may hold
/// others, when they begin and end, whether they are hidden or left out, and their names.
const EDITION: u64 = 0x45B9;
const EDITION_ORDERED: u64 = 0x45DD;
const CHAPTER: u64 = 0xB6;
const BEGINS: u64 = 0x91;
const ENDS: u64 = 0x92;
const HIDDEN: u64 = 0x98;
const ENABLED: u64 = 0x4598;
const NAME: u64 = 0x80;

/// Chapters in chapters after which the search gives up.
const DEEPEST: u32 = 8;

/// What FFmpeg does not pass on.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Unread {
    /// The title of the file.
    pub(crate) title: Option<String>,
    chapters: Vec<Chapter>,
    editions: usize,
    is_ordered: bool,
    /// By track: its kind, its language by ISO 639-2, and by a tag of the IETF.
    languages: Vec<(u64, String, String)>,
}

#[derive(Debug, PartialEq)]
struct Chapter {
    /// From when to when, in nanoseconds.
    span: (i64, i64),
    /// It is in another one.
    is_nested: bool,
    is_hidden: bool,
    names: usize,
}

impl Unread {
    /// What the file at `path` says; `None` if it is no Matroska file.
    pub(crate) fn of(path: &Path) -> Option<Unread> {
        let file = path.is_file().then(|| File::open(path).ok())??;
        Unread::read(&mut BufReader::new(file)).ok()
    }

    fn read(file: &mut (impl Read + Seek)) -> io::Result<Unread> {
        let mut unread = Unread::default();
        if let Some(info) = master(file, INFO)? {
            let title = elements(&info, TITLE).next();
            unread.title = title.map(words).filter(|title| !title.is_empty());
        }
        if let Some(tracks) = master(file, TRACKS)? {
            unread.languages = elements(&tracks, TRACK_ENTRY).filter_map(language).collect();
        }
        if let Some(chapters) = master(file, CHAPTERS)? {
            for edition in elements(&chapters, EDITION) {
                unread.editions += 1;
                unread.is_ordered |= number(edition, EDITION_ORDERED) == Some(1);
                unread.add_chapters(edition, 0);
            }
        }
        Ok(unread)
    }

    /// Adds the chapters in an edition, or in a chapter.
    fn add_chapters(&mut self, parent: &[u8], depth: u32) {
        for chapter in elements(parent, CHAPTER) {
            let time = |id| number(chapter, id).map(|at| i64::try_from(at).unwrap_or(i64::MAX));
            let begins = time(BEGINS).unwrap_or(0);
            self.chapters.push(Chapter {
                span: (begins, time(ENDS).unwrap_or(begins)),
                is_nested: depth > 0,
                is_hidden: number(chapter, HIDDEN) == Some(1) || number(chapter, ENABLED) == Some(0),
                names: elements(chapter, NAME).count(),
            });
            if depth < DEEPEST && self.chapters.len() < MOST {
                self.add_chapters(chapter, depth + 1);
            }
        }
    }

    /// What is lost of the chapters that `is_wanted`, by when they begin and end in nanoseconds, in words.
    pub(crate) fn of_chapters(&self, is_wanted: impl Fn((i64, i64)) -> bool) -> Vec<String> {
        let wanted: Vec<&Chapter> = self.chapters.iter().filter(|c| is_wanted(c.span)).collect();
        let (nested, own): (Vec<&Chapter>, Vec<&Chapter>) = wanted.iter().partition(|c| c.is_nested);
        let names: usize = own.iter().map(|chapter| chapter.names.saturating_sub(1)).sum();
        let hidden = own.iter().filter(|chapter| chapter.is_hidden).count();
        let mut lost = Vec::new();
        let mut add = |count: usize, one: &str, many: &str| match count {
            0 => {}
            1 => lost.push(one.to_owned()),
            n => lost.push(format!("{n} {many}")),
        };
        add(nested.len(), "1 nested chapter", "nested chapters");
        add(names, "1 further name of a chapter", "further names of chapters");
        add(hidden, "that 1 chapter is hidden", "marks of hidden chapters");
        if self.editions > 1 && !wanted.is_empty() {
            lost.push(format!("which of {} editions chapters belong to", self.editions));
        }
        if self.is_ordered && !wanted.is_empty() {
            lost.push("the order in which chapters play".to_owned());
        }
        lost
    }

    /// The tag for the language of the `nth` track of a kind (1 for video, 2 for sound, 17 for subtitles), if
    /// it says more than the code of three letters.
    pub(crate) fn language(&self, kind: u64, nth: usize) -> Option<&str> {
        let (_, code, tag) = self.languages.iter().filter(|(k, ..)| *k == kind).nth(nth)?;
        // The code of a language that has none of two letters is its tag, too.
        let is_another = tag.len() == 3 && tag != code && !tag.eq_ignore_ascii_case("und");
        (tag.contains('-') || is_another).then_some(tag.as_str())
    }
}

/// The kind and the language of a track.
fn language(entry: &[u8]) -> Option<(u64, String, String)> {
    let text = |id| elements(entry, id).next().map(words).unwrap_or_default();
    Some((number(entry, TRACK_TYPE)?, text(LANGUAGE), text(LANGUAGE_TAG)))
}

/// The text of an element, which zeros may end.
fn words(content: &[u8]) -> String {
    let end = content.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&content[..end.unwrap_or(content.len())]).into_owned()
}

/// The content of the segment's first element with that id; `None` if there is none, or it is too large.
pub(crate) fn master(file: &mut (impl Read + Seek), id: u32) -> io::Result<Option<Vec<u8>>> {
    let (header, Some(segment)) = at(file, 0)? else {
        return Ok(None);
    };
    let (segment, _) = at(file, segment)?;
    if (header.id, segment.id) != (EBML, SEGMENT) {
        return Ok(None);
    }
    let mut place = segment.content;
    let mut behind = None;
    for _ in 0..MOST {
        let Ok((child, Some(end))) = at(file, place) else {
            break;
        };
        if child.id == id {
            return content(file, (&child, end));
        }
        if child.id == PLACES && behind.is_none() {
            let places = content(file, (&child, end))?.unwrap_or_default();
            let is_it = |place: &&[u8]| number(place, PLACE_OF) == Some(id.into());
            let found = elements(&places, PLACE).find(is_it);
            behind = found.and_then(|place| number(place, PLACE_AT));
        }
        if child.id == CLUSTER {
            break;
        }
        place = end;
    }
    let Some(place) = behind.and_then(|place| segment.content.checked_add(place)) else {
        return Ok(None);
    };
    match at(file, place) {
        Ok((child, Some(end))) if child.id == id => content(file, (&child, end)),
        _ => Ok(None),
    }
}

/// The element at `place`, and where it ends.
fn at(file: &mut (impl Read + Seek), place: u64) -> io::Result<(Element, Option<u64>)> {
    file.seek(SeekFrom::Start(place))?;
    let found = element(file, place)?;
    let end = found.size.and_then(|size| found.content.checked_add(size));
    Ok((found, end))
}

/// What is in an element that ends at `end`.
fn content(file: &mut (impl Read + Seek), (found, end): (&Element, u64)) -> io::Result<Option<Vec<u8>>> {
    let length = end - found.content;
    if length > LARGEST {
        return Ok(None);
    }
    file.seek(SeekFrom::Start(found.content))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 == length).then_some(bytes))
}

/// The number in the first element with that id among `bytes`.
pub(crate) fn number(bytes: &[u8], id: u64) -> Option<u64> {
    let content = elements(bytes, id).next()?;
    be(content, 0, content.len().min(8))
}

/// The contents of the elements with that id among `bytes`.
pub(crate) fn elements(bytes: &[u8], id: u64) -> impl Iterator<Item = &[u8]> {
    let mut place = 0;
    let next = move || -> Option<(u64, &[u8])> {
        let found = element(&mut Cursor::new(bytes.get(place..)?), place as u64).ok()?;
        let end = usize::try_from(found.content.checked_add(found.size?)?).ok()?;
        place = end;
        Some((u64::from(found.id), bytes.get(found.content as usize..end)?))
    };
    std::iter::from_fn(next)
        .take(MOST)
        .filter_map(move |(found, content)| (found == id).then_some(content))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An element of EBML with a size of two bytes.
    fn ebml(id: &[u8], content: &[u8]) -> Vec<u8> {
        let size = (content.len() as u16 | 0x4000).to_be_bytes();
        [id, &size, content].concat()
    }

    fn track(kind: u8, code: &[u8], tag: &[u8]) -> Vec<u8> {
        let parts = [
            ebml(&[0x83], &[kind]),
            ebml(&[0x22, 0xB5, 0x9C], code),
            ebml(&[0x22, 0xB5, 0x9D], tag),
        ];
        ebml(&[0xAE], &parts.concat())
    }

    #[test]
    fn tags_of_languages_that_say_more_than_codes_are_found() {
        let tracks = [
            track(2, b"ger", b"de"),
            track(2, b"ger", b"de-CH"),
            track(1, b"und", b"und"),
            track(2, b"chi", b"yue"),
            track(2, b"gsw", b"gsw"),
        ];
        let tracks = ebml(&[0x16, 0x54, 0xAE, 0x6B], &tracks.concat());
        // Chapters behind the clusters, where the list of places leads to them.
        let chapter = ebml(&[0xB6], &[ebml(&[0x98], &[1]), ebml(&[0xB6], &[])].concat());
        let chapters = ebml(&[0x10, 0x43, 0xA7, 0x70], &ebml(&[0x45, 0xB9], &chapter));
        let cluster = ebml(&[0x1F, 0x43, 0xB6, 0x75], &[0; 20]);
        let place = |at: u8| {
            let place = [
                ebml(&[0x53, 0xAB], &[0x10, 0x43, 0xA7, 0x70]),
                ebml(&[0x53, 0xAC], &[at]),
            ];
            ebml(&[0x11, 0x4D, 0x9B, 0x74], &ebml(&[0x4D, 0xBB], &place.concat()))
        };
        let before = [place(0), tracks.clone(), cluster.clone()].concat().len() as u8;
        let segment = [place(before), tracks, cluster, chapters].concat();
        let head = ebml(&[0x1A, 0x45, 0xDF, 0xA3], &[1]);
        let file = [head, ebml(&[0x18, 0x53, 0x80, 0x67], &segment)].concat();
        let found = Unread::read(&mut Cursor::new(&file)).unwrap();
        let languages = [0, 1, 2, 3].map(|nth| found.language(2, nth));
        assert_eq!(languages, [None, Some("de-CH"), Some("yue"), None]);
        assert_eq!(found.language(1, 0), None);
        let lost = ["1 nested chapter", "that 1 chapter is hidden"];
        assert_eq!(found.of_chapters(|_| true), lost);
        assert!(found.of_chapters(|_| false).is_empty());
        // Files that break off anywhere are no reason to panic.
        for end in 0..file.len() {
            let _ = Unread::read(&mut Cursor::new(&file[..end]));
        }
    }
}
