//! The part of the picture that a container says is to be shown: MP4's and QuickTime's clean aperture, and
//! Matroska's cropping of pixels.
//!
//! FFmpeg's demuxers say nothing of it before version 7.1, and its decoders apply it from then on, so that it
//! is read from the file, and counts where pictures come whole.

use crate::media::containers::matroska::{TRACK_ENTRY, TRACK_TYPE, TRACKS, elements, master, number};
use crate::media::containers::mp4::{be, boxes, movie};
use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::path::Path;

/// Bytes of what comes before the entries of `stsd`, and of an entry before its own boxes.
const BEFORE_ENTRIES: usize = 8;
const ENTRY: usize = 86;

/// Elements of a track's entry: its facts of video, and of those the sizes and what is cut off at the bottom,
/// the top, the left and the right.
const VIDEO: u64 = 0xE0;
const PIXEL_WIDTH: u64 = 0xB0;
const PIXEL_HEIGHT: u64 = 0xBA;
const CROP: [u64; 4] = [0x54AA, 0x54BB, 0x54CC, 0x54DD];

/// Width and height in pixels.
type Size = (u64, u64);

/// The size of what is to be shown of the pictures of the `nth` video track, which come `whole`; `None` where
/// that is all of it, or the file does not say.
pub(in crate::source::video) fn shown(path: &Path, nth: usize, whole: Size) -> Option<Size> {
    if !path.is_file() {
        return None;
    }
    let ask = || -> io::Result<Option<(Size, Size)>> {
        let mut file = BufReader::new(File::open(path)?);
        let mut start = [0; 8];
        file.read_exact(&mut start)?;
        Ok(match start {
            [0x1A, 0x45, 0xDF, 0xA3, ..] => matroska(&mut file, nth)?,
            [_, _, _, _, b'f', b't', b'y', b'p'] | [_, _, _, _, b'm' | b'w' | b'f', ..] => {
                quicktime(&mut file, nth)?
            }
            _ => None,
        })
    };
    let (coded, shown) = ask().ok()??;
    (coded == whole && shown != coded && shown.0 > 0 && shown.1 > 0).then_some(shown)
}

/// Coded and shown size by the sample entry of a track.
fn quicktime(file: &mut (impl Read + Seek), nth: usize) -> io::Result<Option<(Size, Size)>> {
    Ok(movie(file)?.and_then(|movie| of_movie(&movie, nth)))
}

fn of_movie(movie: &[u8], nth: usize) -> Option<(Size, Size)> {
    let is_video = |media: &&[u8]| {
        let handler = boxes(media, b"hdlr").next();
        handler.and_then(|handler| handler.get(8..12)) == Some(b"vide")
    };
    let mut tracks = boxes(movie, b"trak").filter_map(|track| boxes(track, b"mdia").next());
    let media = tracks.by_ref().filter(is_video).nth(nth)?;
    let table = boxes(boxes(media, b"minf").next()?, b"stbl").next()?;
    let entry = boxes(table, b"stsd").next()?.get(BEFORE_ENTRIES..)?;
    let coded = (be(entry, 32, 2)?, be(entry, 34, 2)?);
    let length = be(entry, 0, 4)? as usize;
    let aperture = boxes(entry.get(ENTRY..length)?, b"clap").next()?;
    let side = |at: usize| be(aperture, at, 4)?.checked_div(be(aperture, at + 4, 4)?);
    Some((coded, (side(0)?, side(8)?)))
}

/// Coded and shown size by the entry of a track.
fn matroska(file: &mut (impl Read + Seek), nth: usize) -> io::Result<Option<(Size, Size)>> {
    Ok(master(file, TRACKS)?.and_then(|tracks| of_tracks(&tracks, nth)))
}

fn of_tracks(tracks: &[u8], nth: usize) -> Option<(Size, Size)> {
    let is_video = |entry: &&[u8]| number(entry, TRACK_TYPE) == Some(1);
    let entry = elements(tracks, TRACK_ENTRY).filter(is_video).nth(nth)?;
    let video = elements(entry, VIDEO).next()?;
    let (width, height) = (number(video, PIXEL_WIDTH)?, number(video, PIXEL_HEIGHT)?);
    let [bottom, top, left, right] = CROP.map(|id| number(video, id).unwrap_or(0));
    let less = |side: u64, a: u64, b: u64| side.saturating_sub(a.saturating_add(b));
    let shown = (less(width, left, right), less(height, top, bottom));
    Some(((width, height), shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// An element of EBML with a size of two bytes.
    fn ebml(id: &[u8], content: &[u8]) -> Vec<u8> {
        let size = (content.len() as u16 | 0x4000).to_be_bytes();
        [id, &size, content].concat()
    }

    fn atom(name: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = (content.len() as u32 + 8).to_be_bytes();
        [&size, &name[..], content].concat()
    }

    #[test]
    fn what_is_cut_off_of_matroska_is_found_by_the_track() {
        let video = |crop: &[u8]| {
            let sizes = [ebml(&[0xB0], &[96]), ebml(&[0xBA], &[64])].concat();
            let video = ebml(&[0xE0], &[&sizes, crop].concat());
            ebml(&[0xAE], &[ebml(&[0x83], &[1]), video].concat())
        };
        let crop = [ebml(&[0x54, 0xAA], &[8]), ebml(&[0x54, 0xCC], &[4])].concat();
        let sound = ebml(&[0xAE], &ebml(&[0x83], &[2]));
        let tracks = [sound, video(&[]), video(&crop)].concat();
        let tracks = ebml(&[0x16, 0x54, 0xAE, 0x6B], &tracks);
        let segment = [ebml(&[0xEC], &[0; 9]), tracks].concat();
        let head = ebml(&[0x1A, 0x45, 0xDF, 0xA3], &[1]);
        let file = [head, ebml(&[0x18, 0x53, 0x80, 0x67], &segment)].concat();
        let found = |nth| matroska(&mut Cursor::new(&file), nth).unwrap();
        assert_eq!(found(0), Some(((96, 64), (96, 64))));
        assert_eq!(found(1), Some(((96, 64), (92, 56))));
        assert_eq!(found(2), None);
        // Files that break off anywhere are no reason to panic.
        for end in 0..file.len() {
            let _ = matroska(&mut Cursor::new(&file[..end]), 1);
        }
    }

    #[test]
    fn a_clean_aperture_is_found_in_the_sample_entry() {
        let mut entry = vec![0; ENTRY - 8];
        entry[24..28].copy_from_slice(&[0, 96, 0, 64]);
        let halves: Vec<u8> = [160, 2, 48, 1, 0, 1, 0, 1]
            .iter()
            .flat_map(|n: &u32| n.to_be_bytes())
            .collect();
        entry.extend(atom(b"clap", &halves));
        let table = atom(b"stsd", &[&[0; 8], &atom(b"avc1", &entry)[..]].concat());
        let table = atom(b"minf", &atom(b"stbl", &table));
        let media = [atom(b"hdlr", b"\0\0\0\0\0\0\0\0vide"), table].concat();
        let movie = atom(b"moov", &atom(b"trak", &atom(b"mdia", &media)));
        let file = [atom(b"ftyp", b"isom"), atom(b"mdat", &[0; 20]), movie].concat();
        let found = |file: &[u8]| quicktime(&mut Cursor::new(file), 0);
        assert_eq!(found(&file).unwrap(), Some(((96, 64), (80, 48))));
        for end in 0..file.len() {
            let _ = found(&file[..end]);
        }
    }
}
