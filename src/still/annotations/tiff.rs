//! TIFF: what is said lies in the first directory (IFD0), beside the place of the pixels.
//!
//! ```text
//!  "II*\0" | place of IFD0 | pixels ... | old IFD0 | Exif, GPS | XMP, IPTC, texts | IFD0 with all of it
//!               |                                                                   ^
//!               +-------------------------------------------------------------------+
//! ```
//!
//! A file grows at its end only; pixels stay where they are. Exif comes as a directory below IFD0 and as
//! entries in it, so reading makes a block of them and writing takes a block apart.

use super::exif::{Editor, Reader, TEXTS, is_bare, tag};
use super::{Annotations, all_lost, once, photoshop, text, word};

const XMP: u16 = 700;
const IPTC: u16 = 33723;
const PHOTOSHOP: u16 = 34377;
const MAKE: u16 = 271;
const MODEL: u16 = 272;

const BYTE: u16 = 1;
const ASCII: u16 = 2;
const UNDEFINED: u16 = 7;

/// Entries of IFD0 that speak of the shot and not of how pixels are stored. The resolution is held apart.
fn is_of_the_shot(tag: u16) -> bool {
    const HOST_COMPUTER: u16 = 316;
    const RATING: u16 = 18246;
    const RATING_PERCENT: u16 = 18249;
    // Title, comment, author, keywords and subject as Windows keeps them.
    const WINDOWS: std::ops::RangeInclusive<u16> = 40091..=40095;
    matches!(
        tag,
        MAKE | MODEL | HOST_COMPUTER | RATING | RATING_PERCENT | tag::EXIF | tag::GPS
    ) || WINDOWS.contains(&tag)
        || TEXTS.iter().any(|&(t, _)| t == tag)
}

pub(super) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    let Some(reader) = Reader::open(file) else {
        return found;
    };
    let Some(first) = reader.first() else {
        return found;
    };
    found.density = first.density(reader.order);
    let data = |tag| first.get(tag).map(|e| e.data);
    if let Some(packet) = data(XMP) {
        found.take_xmp(packet);
    }
    if let Some(entry) = first.get(IPTC) {
        // Many write it as words of 32 bits, some turned into the file's order of bytes, and padded.
        let turned: Vec<u8>;
        let mut records = entry.data;
        if records.first() != Some(&0x1c) && records.get(3) == Some(&0x1c) && entry.kind == 4 {
            turned = records
                .chunks_exact(4)
                .flat_map(|w| w.iter().rev().copied())
                .collect();
            records = &turned;
        }
        if entry.kind == 4 {
            let end = records
                .iter()
                .rposition(|&b| b != 0)
                .map_or(0, |last| last.saturating_add(1));
            records = records.get(..end).unwrap_or_default();
        }
        found.take_iptc(records);
    }
    if let Some(records) = data(PHOTOSHOP).and_then(photoshop::iptc) {
        found.take_iptc(records);
    }
    for (tag, name) in TEXTS {
        if let Some(entry) = first.get(tag).filter(|e| e.kind == ASCII) {
            found.take_text(name, text(entry.data));
        }
    }
    // Texts alone make no Exif block: they are held as texts.
    let says_more = |t| is_of_the_shot(t) && !TEXTS.iter().any(|&(text, _)| text == t);
    if first.entries.iter().any(|e| says_more(e.tag)) {
        let mut editor = Editor::empty(reader.order);
        let wanted = |t| is_of_the_shot(t) || t == tag::ORIENTATION;
        if editor.copy(&reader, wanted).is_some()
            && let Some(block) = editor.finish()
        {
            found.take_exif(&block);
        }
    } else if let Some(orientation) = first.get(tag::ORIENTATION).and_then(|e| e.number(reader.order))
        && let Some(orientation @ 2..=8) = u8::try_from(orientation).ok()
    {
        let mut editor = Editor::empty(reader.order);
        let set = editor.set_orientation(Some(orientation));
        if let Some(block) = set.and_then(|()| editor.finish()) {
            found.take_exif(&block);
        }
    }
    found
}

pub(super) fn insert(
    given: &Annotations,
    orientation: Option<u8>,
    file: Vec<u8>,
    lost: &mut Vec<&'static str>,
) -> Vec<u8> {
    let mut editor = match Editor::open(file) {
        Ok(editor) => editor,
        Err(file) => {
            all_lost(given, orientation, lost);
            return file;
        }
    };
    let mut hold = |held: Option<()>, word| {
        if held.is_none() {
            once(lost, word);
        }
    };
    hold(editor.set_orientation(orientation), word::ORIENTATION);
    if let Some(density) = given.density {
        hold(editor.set_density(density), density.word());
    }
    if let Some(block) = given.exif.as_deref().filter(|b| !is_bare(b)) {
        let copied = Reader::open(block).and_then(|reader| editor.copy(&reader, is_of_the_shot));
        hold(copied, word::EXIF);
    }
    if let Some(packet) = &given.xmp {
        hold(editor.set_bytes(XMP, BYTE, packet), word::XMP);
    }
    if let Some(records) = &given.iptc {
        hold(editor.set_bytes(IPTC, UNDEFINED, records), word::IPTC);
    }
    let rest = editor.set_texts(&given.texts, true);
    hold(rest.is_empty().then_some(()), word::TEXT);
    // Only a file of 4 GiB has no room for its directory; then the old one still stands.
    editor.finish_or_old(|| all_lost(given, orientation, lost))
}

#[cfg(test)]
mod tests {
    use super::super::exif::Order;
    use super::super::exif::tests::sample;
    use super::super::{Density, DensityUnit};
    use super::*;

    /// A directory with a width and a resolution, as our encoder's begin.
    fn file() -> Vec<u8> {
        let mut editor = Editor::empty(Order::Little);
        editor.set_short(256, 7).unwrap();
        editor.set_short(tag::RESOLUTION_UNIT, 1).unwrap();
        editor.finish().unwrap()
    }

    #[test]
    fn all_of_it_comes_back() {
        let given = Annotations {
            exif: Some(sample(Order::Big).into()),
            xmp: Some(b"<x/>"[..].into()),
            iptc: Some(b"\x1c\x02\x50\0\x01a"[..].into()),
            density: Density::new(300.0, 72.5, DensityUnit::Inch),
            texts: vec![
                ("Description".into(), "d\u{e9}j\u{e0} vu".into()),
                ("parameters".into(), "steps".into()),
            ],
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let plain = file();
        let out = insert(&given, Some(6), plain.clone(), &mut lost);
        assert_eq!(lost, ["text"]);
        assert_eq!(out[8..plain.len()], plain[8..]);
        let found = read(&out);
        assert_eq!((found.xmp, found.iptc), (given.xmp, given.iptc));
        assert_eq!(found.density, given.density);
        assert_eq!(found.texts[0], given.texts[0]);
        let block = found.exif.unwrap();
        let reader = Reader::open(&block).unwrap();
        let first = reader.first().unwrap();
        assert_eq!(text(first.get(MAKE).unwrap().data), "Cam");
        assert_eq!(first.get(tag::ORIENTATION).unwrap().number(reader.order), Some(6));
        let exif = reader.below(&first, tag::EXIF).unwrap();
        assert_eq!(exif.get(37500).unwrap().data, b"\x01\x02note");
        // The width is none of the shot's matters.
        assert!(first.get(256).is_none());
    }

    #[test]
    fn what_is_no_tiff_stays_as_it_is() {
        let given = Annotations {
            xmp: Some(b"<x/>"[..].into()),
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        assert_eq!(insert(&given, Some(3), b"II*\0".to_vec(), &mut lost), b"II*\0");
        assert_eq!(lost, ["XMP", "orientation"]);
    }

    #[test]
    fn iptc_as_words_is_put_right() {
        let mut editor = Editor::empty(Order::Big);
        editor
            .set_bytes(IPTC, UNDEFINED, b"\0\x50\x02\x1c\0\0a\x01")
            .unwrap();
        let mut file = editor.finish().unwrap();
        // The same bytes as two numbers of 32 bits.
        let at = file.windows(4).position(|w| w == b"\x83\xbb\0\x07").unwrap();
        file[at + 3] = 4;
        file[at + 7] = 2;
        assert_eq!(read(&file).iptc.unwrap()[..], *b"\x1c\x02\x50\0\x01a");
    }
}
