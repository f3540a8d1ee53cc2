//! JPEG: segments before the pixels.
//!
//! ```text
//!  SOI | APP0 JFIF: resolution | APP1 Exif | APP1 XMP | APP13 IPTC | ICC, tables .. | COM | SOS pixels
//!  a segment: 0xff marker | length, 16 bits, that counts itself | data
//! ```
//!
//! A segment holds 65533 bytes. What is longer is lost, an Exif block but for the orientation.

use crate::annotations::bytes::{be16, identifier, overwrite, take_exactly, text};
use crate::annotations::excerpt::Excerpt;
use crate::annotations::exif::without_prefix;
use crate::annotations::word::all_lost;
use crate::annotations::{Annotations, Density, DensityUnit, exif, once, photoshop, word};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};

const JFIF: &[u8] = b"JFIF\0";
const EXIF: &[u8] = b"Exif\0\0";
pub(in crate::annotations) const XMP: &[u8] = b"http://ns.adobe.com/xap/1.0/\0";
const EXTENDED_XMP: &[u8] = b"http://ns.adobe.com/xmp/extension/\0";
pub(super) const PHOTOSHOP: &[u8] = b"Photoshop 3.0\0";

const ICC: &[u8] = b"ICC_PROFILE\0";
const MPF: &[u8] = b"MPF\0";

const APP0: u8 = 0xe0;
const APP1: u8 = 0xe1;
const APP2: u8 = 0xe2;
const APP3: u8 = 0xe3;
const APP12: u8 = 0xec;
const APP13: u8 = 0xed;
const APP14: u8 = 0xee;
const APP15: u8 = 0xef;
const COM: u8 = 0xfe;
const SOS: u8 = 0xda;
const EOI: u8 = 0xd9;

/// A segment: its marker, its data, and all of it behind the marker.
#[derive(Clone, Copy)]
struct Segment<'a> {
    marker: u8,
    data: &'a [u8],
    whole: &'a [u8],
    /// Where it ends in the file.
    end: usize,
}

/// The segments before the pixels, as far as they are whole.
fn segments(file: &[u8]) -> impl Iterator<Item = Segment<'_>> {
    let mut rest = file.strip_prefix(b"\xff\xd8").unwrap_or_default();
    std::iter::from_fn(move || {
        loop {
            // Decoders pass over bytes that belong to no segment.
            let at = rest.iter().position(|&b| b == 0xff)?;
            rest = rest.get(at..)?;
            // A marker may stand behind any number of these bytes.
            while let Some(after) = rest.strip_prefix(b"\xff") {
                rest = after;
            }
            let (&marker, after) = rest.split_first()?;
            match marker {
                SOS | EOI => return None,
                // Markers without data.
                0 | 1 | 0xd0..=0xd8 => rest = after,
                _ => {
                    let len = usize::from(be16(after, 0)?);
                    let (whole, next) = after.split_at_checked(len)?;
                    rest = next;
                    return Some(Segment {
                        marker,
                        data: whole.get(2..)?,
                        whole,
                        end: file.len().saturating_sub(rest.len()),
                    });
                }
            }
        }
    })
}

/// Bytes that belong to no segment, after which no further one is looked for.
const MOST_JUNK: usize = 1 << 16;

/// Shows `visit` the segments before the pixels: what stands before each, its marker, and the rest of it with
/// the length, until it says that no more are wanted. What was read of the file without being shown is
/// returned; the pixels, or what they were taken for, follow there.
pub(crate) fn walk(
    input: &mut impl BufRead,
    mut visit: impl FnMut(&[u8], u8, &[u8]) -> bool,
) -> io::Result<Vec<u8>> {
    let mut lead = take_exactly(input, 2)?.unwrap_or_default();
    if lead != b"\xff\xd8" {
        return Ok(lead);
    }
    loop {
        // Decoders pass over bytes that belong to no segment.
        while lead.len() < MOST_JUNK {
            let before = lead.len();
            let limit = (MOST_JUNK - before) as u64;
            input.by_ref().take(limit).read_until(0xff, &mut lead)?;
            if lead.len() == before || lead.last() == Some(&0xff) {
                break;
            }
        }
        if lead.last() != Some(&0xff) || lead.len() >= MOST_JUNK {
            return Ok(lead);
        }
        let marker = loop {
            let Some(byte) = take_exactly(input, 1)?.and_then(|bytes| bytes.first().copied()) else {
                return Ok(lead);
            };
            lead.push(byte);
            // A marker may stand behind any number of these bytes.
            if byte != 0xff || lead.len() >= MOST_JUNK {
                break byte;
            }
        };
        match marker {
            SOS | EOI => return Ok(lead),
            // Markers without data.
            0 | 1 | 0xd0..=0xd8 | 0xff => continue,
            _ => {}
        }
        let Some(length) = take_exactly(input, 2)? else {
            return Ok(lead);
        };
        let len = be16(&length, 0).unwrap_or_default();
        let mut body = length;
        let whole = usize::from(len) >= 2 && {
            let wanted = u64::from(len) - 2;
            input.by_ref().take(wanted).read_to_end(&mut body)? as u64 == wanted
        };
        if !whole {
            lead.extend_from_slice(&body);
            return Ok(lead);
        }
        if !visit(&lead, marker, &body) {
            return Ok(Vec::new());
        }
        lead.clear();
    }
}

/// How many pictures a segment lists in CIPA's multi-picture format, as its marker and its data with the
/// length say; `None` for another segment. Previews of the first picture do not count.
#[cfg(feature = "images")]
pub(crate) fn listed_pictures(marker: u8, body: &[u8]) -> Option<usize> {
    const ENTRIES: u16 = 0xb002;
    const ENTRY: usize = 16;
    const PREVIEWS: u32 = 0x01;
    let block = body.get(2..)?.strip_prefix(MPF).filter(|_| marker == APP2)?;
    let reader = exif::Reader::open(block)?;
    let list = reader.first()?.get(ENTRIES)?.data;
    // The class stands in bits 16 to 23.
    let is_preview = |entry: &[u8]| {
        reader
            .order
            .read32(entry, 0)
            .is_some_and(|kind| kind >> 16 & 0xff == PREVIEWS)
    };
    Some(
        list.chunks_exact(ENTRY)
            .filter(|entry| !is_preview(entry))
            .count(),
    )
}

/// The segments that say something.
pub(in crate::annotations) fn excerpt(input: &mut impl BufRead) -> io::Result<Excerpt> {
    let mut found = Excerpt::new(b"\xff\xd8");
    let mut profile = BTreeMap::new();
    let mut pieces = 0;
    walk(input, |_, marker, body| {
        let data = body.get(2..).unwrap_or_default();
        if let (APP2, Some([number, count, piece @ ..])) = (marker, data.strip_prefix(ICC)) {
            pieces = pieces.max(*count);
            profile.entry(*number).or_insert_with(|| piece.to_vec());
        }
        if let Some(name) = unknown(marker, data) {
            found.leave_out(name);
        }
        let word = match marker {
            APP0 => word::RESOLUTION,
            APP1 if data.starts_with(XMP) => word::XMP,
            APP1 if data.starts_with(EXTENDED_XMP) => word::EXTENDED_XMP,
            APP1 => word::EXIF,
            APP13 => word::IPTC,
            COM => word::TEXT,
            _ => return true,
        };
        if found.has_room(body.len() as u64 + 2, word) {
            found.bytes.extend_from_slice(&[0xff, marker]);
            found.bytes.extend_from_slice(body);
        }
        true
    })?;
    // Pieces are counted from 1, and a profile with one missing is none.
    if profile.keys().copied().eq(1..=pieces) {
        found.icc_profile = Some(profile.into_values().flatten().collect());
    } else {
        found.damaged.push(word::PROFILE);
    }
    Ok(found)
}

pub(in crate::annotations) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    // Resources may be spread over several segments.
    let mut resources = Vec::new();
    // So may Exif blocks that are too long for one.
    let mut block: Vec<u8> = Vec::new();
    for Segment { marker, data, .. } in segments(file) {
        match marker {
            APP0 => found.density = found.density.or_else(|| jfif_density(data.strip_prefix(JFIF)?)),
            APP1 if data.starts_with(b"Exif\0") => {
                let piece = without_prefix(data);
                // What begins as a block does is a second one.
                if block.is_empty() || !exif::is_sound(piece) {
                    block.extend_from_slice(piece);
                }
            }
            APP1 if data.starts_with(EXTENDED_XMP) => once(&mut found.left_out, word::EXTENDED_XMP),
            APP1 => {
                if let Some(packet) = data.strip_prefix(XMP) {
                    found.take_xmp(packet);
                }
            }
            APP13 => resources.extend_from_slice(data.strip_prefix(PHOTOSHOP).unwrap_or_default()),
            COM => found.take_text("Comment", text(data)),
            _ => {}
        }
    }
    found.take_exif(&block);
    if photoshop::says_more(&resources) {
        once(&mut found.unknown, word::RESOURCES);
    }
    if let Some(records) = photoshop::iptc(&resources) {
        found.take_iptc(records);
    }
    found
}

/// The name of a segment that nothing is taken from, if it says something.
fn unknown(marker: u8, data: &[u8]) -> Option<String> {
    const NAMES: [(&[u8], &str); 5] = [
        (b"FLIR\0", "FLIR data"),
        (b"FPXR\0", "FlashPix data"),
        (b"_JPSJPS_", "stereo mark (JPS)"),
        (b"JP", "JUMBF boxes"),
        (b"HDR_RI", "HDR residual"),
    ];
    let is_known = match marker {
        // A preview, behind the density or in JFXX, is passed over as those of Exif and MPF. AVI1 says which
        // field of a video's picture it is.
        APP0 => [JFIF, b"JFXX\0", b"AVI1"]
            .iter()
            .any(|&known| data.starts_with(known)),
        APP1 => [&b"Exif\0"[..], XMP, EXTENDED_XMP]
            .iter()
            .any(|&known| data.starts_with(known)),
        // The reader of the picture names further ones.
        APP2 => data.starts_with(ICC) || data.starts_with(MPF),
        // The quality it was stored with, and how colours are stored.
        APP12 => data.starts_with(b"Ducky"),
        APP13 => data.starts_with(PHOTOSHOP) || data.starts_with(b"Adobe_CM"),
        APP14 => data.starts_with(b"Adobe"),
        APP3..=APP15 => false,
        _ => true,
    };
    if is_known || data.iter().all(|&byte| byte == 0) {
        return None;
    }
    let segment = format!("APP{}", marker - APP0);
    let named = NAMES.iter().find(|(start, _)| data.starts_with(start));
    Some(match (named, identifier(data)) {
        (Some((_, words)), _) => format!("{words} ({segment})"),
        (None, word) if word.is_empty() => segment,
        (None, word) => format!("{segment} ({word})"),
    })
}

/// From what follows the word JFIF: version, unit, and two numbers.
fn jfif_density(data: &[u8]) -> Option<Density> {
    let (x, y) = (f64::from(be16(data, 3)?), f64::from(be16(data, 5)?));
    match data.get(2)? {
        0 => Density::new(x, y, DensityUnit::None),
        1 => Density::new(x, y, DensityUnit::Inch),
        2 => Density::new(x * 100.0, y * 100.0, DensityUnit::Metre),
        _ => None,
    }
}

/// Unit and numbers of a density in whole numbers of 16 bits, by the inch or by the centimetre, as it fits
/// better.
fn jfif_numbers(density: Density) -> Option<(u8, u32, u32)> {
    const MAX: u32 = 65535;
    let (Some(inch), Some((x, y))) = (density.per_inch(), density.per_metre()) else {
        return density.ratio(MAX).map(|(x, y)| (0, x, y));
    };
    let centimetre = (x / 100.0, y / 100.0);
    let error = |(x, y): (f64, f64)| ((x.round() - x) / x).abs() + ((y.round() - y) / y).abs();
    let by_inch = Density::whole(inch, MAX).map(|(x, y)| (1, x, y));
    let by_centimetre = Density::whole(centimetre, MAX).map(|(x, y)| (2, x, y));
    // Exact in its own unit goes before all but exact in the other.
    let prefers_inch = match density.unit {
        DensityUnit::Metre => error(centimetre) > 1e-9 && error(inch) < error(centimetre),
        _ => error(inch) <= error(centimetre) + 1e-9,
    };
    if prefers_inch {
        by_inch.or(by_centimetre)
    } else {
        by_centimetre.or(by_inch)
    }
}

/// A segment, if it is not too long for one.
fn segment(marker: u8, pieces: &[&[u8]]) -> Option<Vec<u8>> {
    let len = pieces
        .iter()
        .try_fold(2_usize, |sum, piece| sum.checked_add(piece.len()))?;
    let mut out = vec![0xff, marker];
    out.extend_from_slice(&u16::try_from(len).ok()?.to_be_bytes());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    Some(out)
}

pub(in crate::annotations) fn insert(
    given: &Annotations,
    orientation: Option<u8>,
    file: Vec<u8>,
    lost: &mut Vec<&'static str>,
) -> Vec<u8> {
    if !file.starts_with(b"\xff\xd8\xff") {
        all_lost(given, orientation, lost);
        return file;
    }
    let old: Vec<Segment<'_>> = segments(&file).collect();
    let mut out = Vec::with_capacity(file.len().saturating_add(1 << 12));
    out.extend_from_slice(b"\xff\xd8");
    let is_exif = |s: &Segment<'_>| s.marker == APP1 && s.data.starts_with(b"Exif\0");
    let is_jfif = |s: &Segment<'_>| s.marker == APP0 && s.data.starts_with(JFIF);
    let numbers = given.density.and_then(|density| {
        let numbers = jfif_numbers(density);
        if numbers.is_none() {
            once(lost, density.word());
        }
        numbers
    });
    let mut jfif = match old.iter().find(|s| is_jfif(s)) {
        Some(segment) => [b"\xff\xe0", segment.whole].concat(),
        None if numbers.is_some() => b"\xff\xe0\0\x10JFIF\0\x01\x02\0\0\x01\0\x01\0\0".to_vec(),
        None => Vec::new(),
    };
    if let Some((unit, x, y)) = numbers {
        let [.., x1, x0] = x.to_be_bytes();
        let [.., y1, y0] = y.to_be_bytes();
        // Behind marker, length, word and version.
        if overwrite(&mut jfif, 11, &[unit, x1, x0, y1, y0]).is_none() {
            once(lost, word::RESOLUTION);
        }
    }
    out.extend_from_slice(&jfif);

    let (comments, texts): (Vec<_>, Vec<_>) = given
        .texts
        .iter()
        .cloned()
        .partition(|(name, _)| name == "Comment");
    let (block, mut rest) = exif::compose(given.exif.as_deref(), orientation, None, &texts, false);
    if let Some(block) = block {
        let whole = segment(APP1, &[EXIF, &block]).or_else(|| {
            // Texts are tried in comments below, should they be what is too long.
            rest = texts.iter().collect();
            let (block, _) = exif::compose(given.exif.as_deref(), orientation, None, &[], false);
            segment(APP1, &[EXIF, &block?])
        });
        let whole = whole.or_else(|| {
            if given.exif.is_some() {
                once(lost, word::EXIF);
            }
            let (block, _) = exif::compose(None, orientation, None, &[], false);
            segment(APP1, &[EXIF, &block?])
        });
        out.extend(whole.unwrap_or_default());
    }
    let mut hold = |segment: Option<Vec<u8>>, word| match segment {
        Some(segment) => out.extend(segment),
        None => once(lost, word),
    };
    if let Some(packet) = &given.xmp {
        hold(segment(APP1, &[XMP, packet]), word::XMP);
    }
    if let Some(records) = &given.iptc {
        let packed = photoshop::pack(records);
        hold(packed.and_then(|p| segment(APP13, &[PHOTOSHOP, &p])), word::IPTC);
    }
    let mut jfif_seen = false;
    for s in &old {
        // The first of them is written already.
        let is_first_jfif = is_jfif(s) && !std::mem::replace(&mut jfif_seen, true);
        if !(is_first_jfif || is_exif(s)) {
            hold(Some([&[0xff, s.marker], s.whole].concat()), word::TEXT);
        }
    }
    for (_, comment) in &comments {
        hold(segment(COM, &[comment.as_bytes()]), word::TEXT);
    }
    // A name other than Comment stands in front of the text.
    for (name, text) in rest {
        hold(
            segment(COM, &[name.as_bytes(), b": ", text.as_bytes()]),
            word::TEXT,
        );
    }
    let done = old.last().map_or(2, |s| s.end);
    out.extend_from_slice(file.get(done..).unwrap_or_default());
    out
}

#[cfg(test)]
pub(in crate::annotations) mod tests {
    use super::*;
    use crate::annotations::bytes::Order;
    use crate::annotations::exif::tests::sample;
    use crate::annotations::{Container, read_from};

    /// Segments of a file without a picture.
    pub(in crate::annotations) fn file() -> Vec<u8> {
        let jfif = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x02\0\0\x01\0\x01\0\0";
        [&jfif[..], b"\xff\xff\xdb\0\x03q\xff\xda\0\x02pixels\xff\xd9"].concat()
    }

    #[test]
    fn all_of_it_comes_back() {
        let given = Annotations {
            exif: Some(sample(Order::Little).into()),
            xmp: Some(b"<x>packet</x>"[..].into()),
            iptc: Some(b"\x1c\x02\x50\0\x01a"[..].into()),
            density: Density::new(300.0, 150.0, DensityUnit::Inch),
            texts: vec![
                ("Comment".into(), "caf\u{e9}".into()),
                ("Copyright".into(), "me".into()),
                ("key".into(), "value".into()),
            ],
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let out = insert(&given, Some(6), file(), &mut lost);
        assert!(lost.is_empty());
        assert!(out.ends_with(b"\xff\xda\0\x02pixels\xff\xd9"));
        let found = read(&out);
        assert_eq!(
            (&found.xmp, &found.iptc, found.density),
            (&given.xmp, &given.iptc, given.density)
        );
        assert_eq!(found.orientation(), Some(6));
        let words: Vec<&str> = found.texts.iter().map(|(_, text)| text.as_str()).collect();
        assert_eq!(words, ["caf\u{e9}", "key: value"]);
        assert!(found.exif.unwrap().windows(3).any(|w| w == b"me\0"));
        assert!(segments(&out).any(|s| s.marker == 0xdb && s.data == b"q"));
    }

    #[test]
    fn blocks_in_pieces_are_put_together() {
        let block = sample(Order::Little);
        let (a, b) = block.split_at(40);
        let pieces = [
            &b"\xff\xd8"[..],
            &segment(APP1, &[EXIF, a]).unwrap(),
            b"stray bytes",
            &segment(APP1, &[EXIF, b]).unwrap(),
            b"\xff\xda",
        ];
        assert_eq!(read(&pieces.concat()).exif.as_deref(), Some(&block[..]));
    }

    #[test]
    fn what_is_too_long_is_named_and_the_orientation_stays() {
        let mut block = sample(Order::Little);
        block.resize(70_000, 0);
        let given = Annotations {
            exif: Some(block.into()),
            xmp: Some(vec![b' '; 65_600].into()),
            iptc: Some([&b"\x1c\x02\x50\0\x01a"[..], &[0; 65_600]].concat().into()),
            texts: vec![("Comment".into(), " ".repeat(65_534))],
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let out = insert(&given, Some(6), file(), &mut lost);
        assert_eq!(lost, ["Exif", "XMP", "IPTC", "text"]);
        assert_eq!(read(&out).orientation(), Some(6));
    }

    /// The names of what is not carried of a file with these segments.
    fn left_out(segments: &[(u8, &[u8])]) -> Vec<String> {
        let segments = segments
            .iter()
            .map(|(marker, data)| segment(*marker, &[data]).unwrap());
        let bytes = [
            &b"\xff\xd8"[..],
            &segments.collect::<Vec<_>>().concat(),
            b"\xff\xda",
        ]
        .concat();
        let found = read_from(Container::Jpeg, &mut io::Cursor::new(bytes), None);
        found.unwrap().unknown
    }

    #[test]
    fn segments_that_are_not_carried_are_named() {
        let packed = photoshop::pack(b"\x1c\x02\x50\0\x01a").unwrap();
        let harmless = [PHOTOSHOP, &packed, b"8BIM\x04\x25\0\0\0\0\0\0"].concat();
        let more = [&harmless[..], b"8BIM\x07\xd0\0\0\0\0\0\0"].concat();
        assert!(
            left_out(&[
                (APP0, b"JFIF\0\x01\x02\0\0\x01\0\x01\0\0"),
                (APP0, b"AVI1\0\0\0\0"),
                (APP0, b"JFIF\0\x01\x02\0\0\x01\0\x01\x01\x01rgb"),
                (APP0, b"JFXX\0\x10"),
                (APP2, b"MPF\0"),
                (APP12, b"Ducky\0"),
                (APP13, &harmless),
                (APP14, b"Adobe"),
                (APP15, b"\0\0"),
                (COM, b"text"),
            ])
            .is_empty()
        );
        assert_eq!(
            left_out(&[
                (APP1, b"FLIR\0\x01"),
                (APP3, b"_JPSJPS_\0"),
                (0xeb, b"JP\0\x01"),
                (APP15, b"Maker's own\0data"),
                (APP13, &more),
            ]),
            [
                "FLIR data (APP1)",
                "stereo mark (JPS) (APP3)",
                "JUMBF boxes (APP11)",
                "APP15 (Maker's own)",
                "Photoshop's resources",
            ]
        );
    }

    #[test]
    fn density_takes_the_unit_that_fits() {
        let numbers = |x: f64, unit| jfif_numbers(Density::new(x, x, unit).unwrap());
        assert_eq!(numbers(300.0, DensityUnit::Inch), Some((1, 300, 300)));
        assert_eq!(numbers(11811.0, DensityUnit::Metre), Some((1, 300, 300)));
        assert_eq!(numbers(11800.0, DensityUnit::Metre), Some((2, 118, 118)));
        assert_eq!(numbers(2835.0, DensityUnit::Metre), Some((1, 72, 72)));
        assert_eq!(numbers(1e9, DensityUnit::Inch), None);
        let wide = Density::new(40.0, 33.0, DensityUnit::None).unwrap();
        assert_eq!(jfif_numbers(wide), Some((0, 40, 33)));
        assert_eq!(jfif_density(b"\x01\x02\0\0\x01\0\x01"), None);
    }

    #[test]
    fn the_orientation_of_the_encoder_is_replaced() {
        let mut lost = Vec::new();
        let none = Annotations::default();
        let turned = insert(&none, Some(6), file(), &mut lost);
        assert_eq!(read(&turned).orientation(), Some(6));
        let other = insert(&none, Some(3), turned, &mut lost);
        assert_eq!(read(&other).orientation(), Some(3));
        assert_eq!(segments(&other).filter(|s| s.marker == APP1).count(), 1);
    }

    #[test]
    fn without_jfif_one_is_made_for_the_resolution() {
        let given = Annotations {
            density: Density::new(72.0, 72.0, DensityUnit::Inch),
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let out = insert(
            &given,
            None,
            b"\xff\xd8\xff\xdb\0\x03q\xff\xda\0\x02".to_vec(),
            &mut lost,
        );
        assert_eq!(read(&out).density, given.density);
        assert!(out.ends_with(b"\xff\xdb\0\x03q\xff\xda\0\x02"));
    }
}
