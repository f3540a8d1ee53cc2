//! TIFF: what is said lies in the first directory (IFD0), beside the place of the pixels.
//!
//! ```text
//!  "II*\0" | place of IFD0 | pixels ... | old IFD0 | Exif, GPS | XMP, IPTC, texts | IFD0 with all of it
//!               |                                                                   ^
//!               +-------------------------------------------------------------------+
//! ```
//!
//! A file grows at its end only; pixels stay where they are. Exif comes as a directory below IFD0 and as
//! entries in it, so reading makes a block of them and writing parses a block.

use crate::annotations::bytes::{Order, overwrite, take_array, take_exactly, text};
use crate::annotations::excerpt::Excerpt;
use crate::annotations::exif::{Editor, Reader, TEXTS, has_fixed_note, is_bare, is_fixed, tag, value_size};
use crate::annotations::word::all_lost;
use crate::annotations::{Annotations, once, photoshop, structure, word};
use std::io::{self, BufRead, Seek, SeekFrom};

const XMP: u16 = 700;
const IPTC: u16 = 33723;
const PHOTOSHOP: u16 = 34377;
const MAKE: u16 = 271;
const MODEL: u16 = 272;

const BYTE: u16 = 1;
const ASCII: u16 = 2;
const SHORT: u16 = 3;
const UNDEFINED: u16 = 7;

/// Entries of IFD0 that speak of the shot and not of how pixels are stored. The resolution is kept elsewhere.
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

const ICC: u16 = 34675;
const PAGE_NUMBER: u16 = 297;
const WHITE_POINT: u16 = 318;
const PRIMARIES: u16 = 319;
const SUB_DIRECTORIES: u16 = 330;
const SUBFILE: u16 = 254;
const OLD_SUBFILE: u16 = 255;
const HALFTONE: u16 = 321;
/// What the least and the greatest sample of a picture are, by which viewers of science stretch contrast. A
/// filter changes both.
const SAMPLE_RANGE: [u16; 4] = [280, 281, 340, 341];

/// Tags that say how pixels are stored, which their decoder knows, those of fax machines and printers' dots
/// among them.
fn is_storage(tag: u16) -> bool {
    matches!(
        tag,
        SUBFILE..=259
            | 262..=266
            | 273
            | 277..=279
            | 284
            | 288
            | 289
            | 292
            | 293
            | 317
            | 320
            | 322..=328
            | 332..=334
            | 336
            | 338
            | 339
            | 347
            | 512..=521
            | 529..=532
            | 559
            | 32995..=32998
            | 50674
    )
}

/// What a tag is about that nothing is taken from.
fn name(tag: u16) -> String {
    match tag {
        33550 | 33922 | 34264 | 34735..=34737 => "GeoTIFF's georeference",
        42112 | 42113 => "GDAL's metadata",
        285 => "name of the page",
        286 | 287 => "place on the page",
        PAGE_NUMBER => "number of the page",
        290 | 291 | 301 => "transfer function",
        WHITE_POINT | PRIMARIES => "white point and primaries",
        SUB_DIRECTORIES => "pictures below the page",
        PHOTOSHOP => word::RESOURCES,
        37724 => word::LAYERS,
        tag => return format!("tag {tag}"),
    }
    .to_owned()
}

/// The first directory of a file of `len` bytes, or the one at `page`, with what it says of the shot, and the
/// directories below it.
pub(in crate::annotations) fn excerpt(
    input: &mut (impl BufRead + Seek),
    len: u64,
    page: Option<u64>,
) -> io::Result<Excerpt> {
    let nothing = Excerpt::new(&[]);
    let Some(head) = take_array::<8>(input)? else {
        return Ok(nothing);
    };
    let Some(order) = Order::of(&head) else {
        return Ok(nothing);
    };
    let is_big = order.read16(&head, 2) == Some(43);
    let first = if is_big {
        let Some(first) = take_array::<8>(input)? else {
            return Ok(nothing);
        };
        order.read64(&first, 0)
    } else {
        order.read32(&head, 4).map(u64::from)
    };
    let mut found = Excerpt::new(&head);
    if is_big {
        found.bytes.extend_from_slice(&[0; 8]);
    }
    let mut copier = Copier {
        input,
        len,
        order,
        is_big,
        is_one_of_several: page.is_some(),
        found,
    };
    let place = copier.directory(page.or(first).unwrap_or_default(), 0)?;
    let mut found = copier.found;
    let (at, place) = if is_big {
        (8, order.write64(place).to_vec())
    } else {
        (
            4,
            order.write32(u32::try_from(place).unwrap_or_default()).to_vec(),
        )
    };
    overwrite(&mut found.bytes, at, &place);
    Ok(found)
}

/// Copies directories of a file into an excerpt of the same kind.
struct Copier<'a, R> {
    input: &'a mut R,
    len: u64,
    order: Order,
    is_big: bool,
    /// The page is one of several that are read.
    is_one_of_several: bool,
    found: Excerpt,
}

impl<R: BufRead + Seek> Copier<'_, R> {
    /// Copies the directory at `at`, which is `depth` directories below the first, and tells where it lies
    /// then; 0 if it cannot be read.
    fn directory(&mut self, at: u64, depth: usize) -> io::Result<u64> {
        let (head, step) = if self.is_big { (8, 20) } else { (2, 12) };
        let Some(count) = self.bytes(at, head)? else {
            return Ok(0);
        };
        let count = if self.is_big {
            self.order.read64(&count, 0)
        } else {
            self.order.read16(&count, 0).map(u64::from)
        };
        let count = count.unwrap_or_default();
        // A directory that goes beyond the end is read as far as it goes.
        let there = self.len.saturating_sub(at.saturating_add(head)) / step;
        let count = count.min(there).min(u64::from(u16::MAX));
        let Some(records) = self.bytes(at.saturating_add(head), count * step)? else {
            return Ok(0);
        };
        let mut copies = Vec::new();
        let mut copied = 0_u16;
        for record in records.chunks_exact(step as usize) {
            let mut record = record.to_vec();
            if self.entry(&mut record, depth)?.is_some() {
                copies.extend_from_slice(&record);
                copied = copied.saturating_add(1);
            }
        }
        if !self.found.has_room(copies.len() as u64 + 24, word::EXIF) {
            return Ok(0);
        }
        let place = self.align();
        let count = if self.is_big {
            self.order.write64(copied.into()).to_vec()
        } else {
            self.order.write16(copied).to_vec()
        };
        // No directory follows.
        let end = [0; 8];
        for part in [&count[..], &copies, &end] {
            self.found.bytes.extend_from_slice(part);
        }
        Ok(place)
    }

    /// Copies what an entry leads to, and has its record lead there; `None` if it is not wanted or cannot be
    /// read.
    fn entry(&mut self, record: &mut [u8], depth: usize) -> io::Result<Option<()>> {
        let order = self.order;
        let (Some(tag), Some(kind)) = (order.read16(record, 0), order.read16(record, 2)) else {
            return Ok(None);
        };
        let (count, field_at, field) = if self.is_big {
            (order.read64(record, 4), 12, 8)
        } else {
            (order.read32(record, 4).map(u64::from), 8, 4)
        };
        let size = value_size(kind).and_then(|size| count?.checked_mul(size as u64));
        let Some(size) = size else { return Ok(None) };
        let word = match tag {
            ICC if depth == 0 => word::PROFILE,
            XMP => word::XMP,
            IPTC | PHOTOSHOP => word::IPTC,
            tag if TEXTS.iter().any(|&(text, _)| text == tag) => word::TEXT,
            tag::X_RESOLUTION | tag::Y_RESOLUTION | tag::RESOLUTION_UNIT => word::RESOLUTION,
            _ => word::EXIF,
        };
        let is_wanted = depth > 0
            || is_of_the_shot(tag)
            || matches!(tag, XMP | IPTC | PHOTOSHOP | tag::ORIENTATION)
            || matches!(tag, tag::X_RESOLUTION | tag::Y_RESOLUTION | tag::RESOLUTION_UNIT);
        if word == word::PROFILE && size < self.len {
            // Only to be named if it is too large: the pixels' decoder reads it.
            self.found.has_room(size, word);
        }
        if !is_wanted {
            let is_said = match tag {
                ICC => false,
                PAGE_NUMBER | WHITE_POINT | PRIMARIES | SUB_DIRECTORIES => {
                    self.says_more(tag, record, size)?
                }
                tag if SAMPLE_RANGE.contains(&tag) => {
                    once(&mut self.found.hints, "least and greatest sample value");
                    false
                }
                HALFTONE => {
                    once(&mut self.found.hints, "tones that a printer's screen shall keep");
                    false
                }
                SUBFILE | OLD_SUBFILE => {
                    let value = match kind {
                        SHORT => order.read16(record, field_at).map(u32::from),
                        _ => order.read32(record, field_at),
                    };
                    if matches!((tag, value), (SUBFILE, Some(1)) | (OLD_SUBFILE, Some(2))) {
                        once(
                            &mut self.found.hints,
                            "that it is a smaller copy of another picture",
                        );
                    }
                    false
                }
                tag => !is_storage(tag),
            };
            if is_said {
                self.found.leave_out(name(tag));
            }
            return Ok(None);
        }
        let is_directory = matches!(
            (depth, tag),
            (0, tag::EXIF | tag::GPS) | (1, tag::INTEROPERABILITY)
        );
        if size <= field && !is_directory {
            return Ok(Some(()));
        }
        let wide = field == 8 && (size > field || matches!(kind, 16 | 18));
        let value = if wide {
            order.read64(record, field_at)
        } else {
            order.read32(record, field_at).map(u64::from)
        };
        let Some(from) = value else { return Ok(None) };
        let place = if is_directory {
            // Their places are numbers of 32 or 64 bits, whatever else a file may claim.
            if !matches!(kind, 4 | 13 | 16 | 18) || count != Some(1) {
                once(&mut self.found.damaged, word);
                return Ok(None);
            }
            let place = self.directory(from, depth.saturating_add(1))?;
            if place == 0 && self.found.too_large.is_empty() {
                once(&mut self.found.damaged, word);
            }
            place
        } else {
            if from.checked_add(size).is_none_or(|end| end > self.len) {
                once(&mut self.found.damaged, word);
                return Ok(None);
            }
            if !self.found.has_room(size, word) {
                return Ok(None);
            }
            let Some(data) = self.bytes(from, size)? else {
                return Ok(None);
            };
            if (depth, tag) == (1, tag::MAKER_NOTE) && is_fixed(&data) {
                self.found
                    .leave_out("MakerNote, whose offsets are those of the whole file".to_owned());
                return Ok(None);
            }
            let place = self.align();
            self.found.bytes.extend_from_slice(&data);
            place
        };
        let value = if wide {
            order.write64(place).to_vec()
        } else {
            order.write32(u32::try_from(place).unwrap_or_default()).to_vec()
        };
        Ok((place > 0)
            .then_some(())
            .and_then(|()| overwrite(record, field_at, &value)))
    }

    /// True unless an entry says what goes without saying: the only page, the colours of sRGB, thumbnails.
    fn says_more(&mut self, tag: u16, record: &[u8], size: u64) -> io::Result<bool> {
        const MOST: u64 = 64;
        const SRGB: [f64; 8] = [0.3127, 0.329, 0.64, 0.33, 0.3, 0.6, 0.15, 0.06];
        let order = self.order;
        let (at, field) = if self.is_big { (12, 8) } else { (8, 4) };
        let data = if size <= field {
            record.get(at..).unwrap_or_default().to_vec()
        } else {
            let place = if self.is_big {
                order.read64(record, at)
            } else {
                order.read32(record, at).map(u64::from)
            };
            let len = size.min(MOST);
            self.bytes(place.unwrap_or_default(), len)?.unwrap_or_default()
        };
        let near = |expected: &[f64]| {
            let mut parts = data.chunks_exact(8).map(|pair| {
                let (n, d) = (order.read32(pair, 0)?, order.read32(pair, 4)?);
                (d > 0).then(|| f64::from(n) / f64::from(d))
            });
            expected
                .iter()
                .all(|&e| parts.next().flatten().is_some_and(|p| (p - e).abs() <= 0.001))
        };
        Ok(match tag {
            // Of a page among several the place in the output tells it.
            PAGE_NUMBER => !self.is_one_of_several && order.read16(&data, 2).is_some_and(|count| count > 1),
            WHITE_POINT => !near(&SRGB[..2]),
            PRIMARIES => !near(&SRGB[2..]),
            _ => {
                let step = if order
                    .read16(record, 2)
                    .is_some_and(|kind| matches!(kind, 16 | 18))
                {
                    8
                } else {
                    4
                };
                let mut is_more = size > MOST;
                for place in data
                    .get(..size.min(MOST) as usize)
                    .unwrap_or_default()
                    .chunks_exact(step)
                {
                    let place = match step {
                        8 => order.read64(place, 0),
                        _ => order.read32(place, 0).map(u64::from),
                    };
                    is_more |= !self.is_thumbnail(place.unwrap_or_default())?;
                }
                is_more
            }
        })
    }

    /// True if the first entry of the directory at `at` says that it is of a smaller copy.
    fn is_thumbnail(&mut self, at: u64) -> io::Result<bool> {
        let (head, step, value) = if self.is_big { (8, 20, 12) } else { (2, 12, 8) };
        let entry = self.bytes(at.saturating_add(head), step)?.unwrap_or_default();
        let kind = self.order.read16(&entry, value);
        let low = match self.order {
            Order::Little => kind,
            Order::Big => self.order.read16(&entry, value + 2),
        };
        Ok(self.order.read16(&entry, 0) == Some(SUBFILE) && low.is_some_and(|kind| kind & 1 == 1))
    }

    /// Where the next part of the excerpt begins: at an even place.
    fn align(&mut self) -> u64 {
        if !self.found.bytes.len().is_multiple_of(2) {
            self.found.bytes.push(0);
        }
        self.found.bytes.len() as u64
    }

    /// `len` bytes of the file from `at` on, if there are so many.
    fn bytes(&mut self, at: u64, len: u64) -> io::Result<Option<Vec<u8>>> {
        if at.checked_add(len).is_none_or(|end| end > self.len) {
            return Ok(None);
        }
        self.input.seek(SeekFrom::Start(at))?;
        take_exactly(self.input, len)
    }
}

pub(in crate::annotations) fn read(file: &[u8]) -> Annotations {
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
    if let Some(resources) = data(PHOTOSHOP) {
        if let Some(records) = photoshop::iptc(resources) {
            found.take_iptc(records);
        }
        if photoshop::says_more(resources) || !resources.starts_with(b"8BIM") {
            once(&mut found.unknown, word::RESOURCES);
        }
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
        // A description of the structure is a text alone, which is left out where it is not true.
        let description = data(tag::DESCRIPTION).and_then(|bytes| structure::kind(&text(bytes)));
        let is_structure = |t| t == tag::DESCRIPTION && description.is_some();
        let wanted = |t| (is_of_the_shot(t) || t == tag::ORIENTATION) && !is_structure(t);
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

pub(in crate::annotations) fn insert(
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
        hold((!has_fixed_note(block)).then_some(()), word::MAKER_NOTE);
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
    use super::*;
    use crate::annotations::exif::tests::sample;
    use crate::annotations::{Container, Density, DensityUnit, read_from};

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

    /// The names of what is not carried of a file with these entries: tag, type, count, value or bytes.
    fn left_out(order: Order, entries: &[(u16, u16, &[u8])], page: Option<u64>) -> Vec<String> {
        let mut editor = Editor::empty(order);
        for (tag, kind, value) in entries {
            editor.set_bytes(*tag, *kind, value).unwrap();
        }
        let mut file = editor.finish().unwrap();
        // Counts are those of the bytes.
        let first = order.read32(&file, 4).unwrap() as usize;
        for (at, (_, kind, value)) in entries.iter().enumerate() {
            let count = value.len() / value_size(*kind).unwrap();
            let count = order.write32(count as u32);
            overwrite(&mut file, first + 2 + 12 * at + 4, &count).unwrap();
        }
        let page = page.map(|_| first as u64);
        let found = read_from(Container::Tiff, &mut io::Cursor::new(file), page);
        found.unwrap().unknown
    }

    #[test]
    fn the_range_of_samples_is_a_hint_that_a_filter_makes_untrue() {
        let range = SAMPLE_RANGE.map(|tag| (tag, 7, "least and greatest sample value"));
        let others = [
            (HALFTONE, 1, "tones that a printer's screen shall keep"),
            (SUBFILE, 1, "that it is a smaller copy of another picture"),
            (OLD_SUBFILE, 2, "that it is a smaller copy of another picture"),
            (SUBFILE, 0, ""),
            (SUBFILE, 2, ""),
            (OLD_SUBFILE, 1, ""),
        ];
        for (tag, value, hint) in range.into_iter().chain(others) {
            for order in [Order::Little, Order::Big] {
                let mut editor = Editor::empty(order);
                editor.set_short(tag, value).unwrap();
                let file = editor.finish().unwrap();
                let found = read_from(Container::Tiff, &mut io::Cursor::new(file), None).unwrap();
                assert_eq!(found.hints.join(""), hint, "{tag}");
                assert!(found.unknown.is_empty());
            }
        }
        let mut editor = Editor::empty(Order::Big);
        editor.set_bytes(SUBFILE, 4, &[0, 0, 0, 1]).unwrap();
        let mut file = editor.finish().unwrap();
        // Four bytes are one number, which stands in the entry.
        let entry = Order::Big.read32(&file, 4).unwrap() as usize + 2;
        overwrite(&mut file, entry + 4, &[0, 0, 0, 1, 0, 0, 0, 1]).unwrap();
        let found = read_from(Container::Tiff, &mut io::Cursor::new(file), None).unwrap();
        assert_eq!(found.hints, ["that it is a smaller copy of another picture"]);
    }

    fn fractions(order: Order, values: &[u32]) -> Vec<u8> {
        let parts = values
            .iter()
            .flat_map(|&value| [order.write32(value), order.write32(10_000)]);
        parts.flatten().collect()
    }

    #[test]
    fn tags_that_are_not_carried_are_named() {
        for order in [Order::Little, Order::Big] {
            let short = |value: u16| order.write16(value);
            let number = |count: u16| [short(0), short(count)].concat();
            let one = short(1);
            let usual: [(u16, u16, &[u8]); 7] = [
                (256, 3, &one),
                (259, 3, &one),
                (PAGE_NUMBER, 3, &number(1)),
                (317, 3, &one),
                (WHITE_POINT, 5, &fractions(order, &[3127, 3290])),
                (
                    PRIMARIES,
                    5,
                    &fractions(order, &[6400, 3300, 3000, 6000, 1500, 600]),
                ),
                (PHOTOSHOP, 7, b"8BIM\x04\x25\0\0\0\0\0\0"),
            ];
            assert!(left_out(order, &usual, None).is_empty());
            let pages: [(u16, u16, &[u8]); 1] = [(PAGE_NUMBER, 3, &number(3))];
            assert!(left_out(order, &pages, Some(0)).is_empty());
            let others: [(u16, u16, &[u8]); 9] = [
                (285, ASCII, b"one\0"),
                (286, 5, &fractions(order, &[1])),
                (287, 5, &fractions(order, &[1])),
                (PAGE_NUMBER, 3, &number(3)),
                (WHITE_POINT, 5, &fractions(order, &[3333, 3333])),
                (33550, 12, &[0; 24]),
                (PHOTOSHOP, 7, b"8BIM\x07\xd0\0\0\0\0\0\0"),
                (42113, ASCII, b"-9999\0"),
                (65000, 3, &one),
            ];
            assert_eq!(
                left_out(order, &others, None),
                [
                    "name of the page",
                    "place on the page",
                    "number of the page",
                    "white point and primaries",
                    "GeoTIFF's georeference",
                    "GDAL's metadata",
                    "tag 65000",
                    "Photoshop's resources",
                ]
            );
        }
    }

    /// A directory below the page, in front of the page's own.
    #[test]
    fn pictures_below_the_page_are_named_unless_they_are_thumbnails() {
        for (kind, is_named) in [(1, false), (0, true), (5, false)] {
            let mut file = b"II*\0\x1e\0\0\0\x01\0\xfe\0\x04\0\x01\0\0\0".to_vec();
            file.extend([kind, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
            file.truncate(30);
            file.extend(b"\x01\0\x4a\x01\x04\0\x01\0\0\0\x08\0\0\0\0\0\0\0");
            let found = read_from(Container::Tiff, &mut io::Cursor::new(file), None);
            assert_eq!(
                found.unwrap().unknown == ["pictures below the page"],
                is_named,
                "{kind}"
            );
        }
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
