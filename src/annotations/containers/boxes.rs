//! AVIF, JPEG 2000 and JPEG XL: boxes, one within the other. Read only.
//!
//! ```text
//!  a box: length, 32 bits, with itself | name, 4 bytes | data      length 1: 64 bits more; 0: to the end
//!  AVIF   meta  pitm: the picture's item | iinf: kinds of items | iloc: where they are | idat
//!               iprp  ipco: properties (colr, irot, imir) | ipma: which items have which, in order
//!  JP2    jp2h  colr: profile, or number of a colour space | cdef | res  resc or resd
//!         uuid: XMP, Exif, IPTC
//!  JXL    Exif | xml                            brob: one of these, compressed by Brotli
//! ```

use super::jpeg_xl::CodestreamHeader;
use crate::annotations::bytes::{array, be16, be32, part};
use crate::annotations::{Density, DensityUnit, FileMetadata, name_once, once, word};
use crate::messages::metadata_limit::METADATA_LIMIT;
use std::io::Read;

const XMP_UUID: &[u8] = b"\xbe\x7a\xcf\xcb\x97\xa9\x42\xe8\x9c\x71\x99\x94\x91\xe3\xaf\xac";
const EXIF_UUID: &[u8] = b"JpgTiffExif->JP2";
const IPTC_UUID: &[u8] = b"\x33\xc7\xa4\xd2\xb8\x1d\x47\x23\xa0\xba\xf1\xa3\xe0\x97\xad\x38";

/// The most boxes, items and properties that are looked at in one place.
const MOST: usize = 4096;

/// The boxes in `bytes` as far as they are whole: names and data.
fn boxes(bytes: &[u8]) -> impl Iterator<Item = ([u8; 4], &[u8])> {
    let mut rest = bytes;
    let next = move || {
        let name = array(rest, 4)?;
        let (head, len) = match be32(rest, 0)? {
            0 => (8, rest.len()),
            1 => (16, usize::try_from(array(rest, 8).map(u64::from_be_bytes)?).ok()?),
            len => (8, usize::try_from(len).ok()?),
        };
        let data = part(rest, head, len.checked_sub(head)?)?;
        rest = rest.get(len..).unwrap_or_default();
        Some((name, data))
    };
    std::iter::from_fn(next).take(MOST)
}

fn find<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(bytes)
        .find(|(found, _)| found == name)
        .map(|(_, data)| data)
}

/// The data of a box without its version and flags.
fn full<'a>(bytes: &'a [u8], name: &[u8; 4]) -> Option<(u8, u32, &'a [u8])> {
    let data = find(bytes, name)?;
    let head = be32(data, 0)?;
    Some(((head >> 24) as u8, head & 0xff_ffff, data.get(4..)?))
}

/// True for the begin of a picture in boxes: AVIF, HEIF, JPEG 2000, JPEG XL.
pub(in crate::annotations) fn is_known(head: &[u8; 12]) -> bool {
    let [_, _, _, _, name @ .., b0, b1, b2, b3] = head;
    let brand = [*b0, *b1, *b2, *b3];
    match name {
        b"ftyp" => [b"avif", b"avis", b"heic", b"heix", b"hevc", b"mif1", b"msf1"].contains(&&brand),
        b"JXL " | b"jP  " => true,
        _ => false,
    }
}

/// What an AVIF, JPEG 2000 or JPEG XL file says beside its pixels. Damaged parts are passed over.
#[must_use]
pub fn read(file: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    for (name, data) in boxes(file) {
        match &name {
            b"ftyp" => found.is_sequence = data.starts_with(b"avis") || data.starts_with(b"msf1"),
            b"JXL " => found.is_turned_by_decoder = true,
            b"meta" => read_meta(file, data.get(4..).unwrap_or_default(), &mut found),
            b"jp2h" => read_jp2_header(data, &mut found),
            b"uuid" => match (part(data, 0, 16), data.get(16..)) {
                (Some(XMP_UUID), Some(packet)) => found.annotations.take_xmp(packet),
                (Some(EXIF_UUID), Some(block)) => found.annotations.take_exif(block),
                (Some(IPTC_UUID), Some(records)) => found.annotations.take_iptc(records),
                _ => leave_out("UUID box", &mut found),
            },
            b"Exif" => take_exif(data, &mut found),
            b"jxlc" => found.orientation = found.orientation.or(codestream_orientation(data)),
            // The number of the part stands before the first one.
            b"jxlp" if data.starts_with(&[0; 4]) || data.starts_with(&[0x80, 0, 0, 0]) => {
                found.orientation = data.get(4..).and_then(codestream_orientation);
            }
            b"xml " if find(file, b"JXL ").is_some() => found.annotations.take_xmp(data),
            b"xml " => leave_out("XML box", &mut found),
            b"brob" => take_compressed(data, &mut found),
            other => leave_out_unknown(other, &mut found),
        }
    }
    found.damaged = std::mem::take(&mut found.annotations.damaged);
    found.annotations = found.annotations.with_density_of_exif();
    found
}

/// Boxes that say nothing beside the picture: signatures, the picture itself and where its parts are, what it
/// takes to read them, room, and where the meaning of UUID boxes is explained.
const SILENT: [&[u8; 4]; 18] = [
    b"jP  ", b"jp2c", b"rreq", b"uinf", b"jxlc", b"jxlp", b"jxll", b"jxli", b"jbrd", b"mdat", b"moov",
    b"moof", b"mfra", b"sidx", b"free", b"skip", b"wide", b"JXL ",
];

/// Notes the name of a box that is not known, if it is one that says something.
fn leave_out_unknown(name: &[u8; 4], found: &mut FileMetadata) {
    if SILENT.contains(&name) || !name.iter().all(u8::is_ascii_graphic) {
        return;
    }
    match name {
        b"jumb" => leave_out("JUMBF box", found),
        name => leave_out(&format!("{} box", name.escape_ascii()), found),
    }
}

/// Notes the name of what is left out.
fn leave_out(name: &str, found: &mut FileMetadata) {
    name_once(&mut found.unknown, name.to_owned(), MOST);
}

/// An Exif block behind the distance to its first byte.
fn take_exif(data: &[u8], found: &mut FileMetadata) {
    let skipped = be32(data, 0).and_then(|skipped| usize::try_from(skipped).ok()?.checked_add(4));
    match skipped.and_then(|skipped| data.get(skipped..)) {
        Some(block) => found.annotations.take_exif(block),
        None => once(&mut found.annotations.damaged, word::EXIF),
    }
}

/// A box that is compressed by Brotli, behind its name.
fn take_compressed(data: &[u8], found: &mut FileMetadata) {
    let Some((name, packed)) = data.split_first_chunk::<4>() else {
        return;
    };
    let kind = match name {
        b"Exif" => word::EXIF,
        b"xml " => word::XMP,
        other => return leave_out_unknown(other, found),
    };
    let mut plain = Vec::new();
    let most = METADATA_LIMIT as u64;
    let unpacked = brotli_decompressor::Decompressor::new(packed, 1 << 12)
        .take(most + 1)
        .read_to_end(&mut plain);
    match (unpacked, name) {
        (Err(_), _) => once(&mut found.annotations.damaged, kind),
        (Ok(length), _) if length as u64 > most => once(&mut found.annotations.left_out, kind),
        (Ok(_), b"Exif") => take_exif(&plain, found),
        (Ok(_), _) => found.annotations.take_xmp(&plain),
    }
}

/// The orientation in the header of a JPEG XL codestream.
fn codestream_orientation(codestream: &[u8]) -> Option<u8> {
    Some(CodestreamHeader::begin(codestream)?.orientation())
}

/// The profile in a box of colours; others number what they mean.
fn profile(colours: &[u8]) -> Option<Vec<u8>> {
    let profile = colours.strip_prefix(b"prof").or(colours.strip_prefix(b"rICC"))?;
    (!profile.is_empty()).then(|| profile.to_vec())
}

fn read_jp2_header(header: &[u8], found: &mut FileMetadata) {
    for (name, data) in boxes(header) {
        match &name {
            // Method, precedence, approximation, profile.
            b"colr" if matches!(data, [2 | 3, _, _, _, ..]) && found.icc_profile.is_none() => {
                found.icc_profile = data.get(3..).map(<[u8]>::to_vec);
            }
            b"colr" if data.first() == Some(&1) => {
                if let Some(space) = be32(data, 3).and_then(unread_space) {
                    leave_out(&space, found);
                }
            }
            // A count, then channel, type and association of each; type 2 is premultiplied opacity.
            b"cdef" => {
                let channels = data.get(2..).unwrap_or_default().chunks_exact(6);
                found.is_premultiplied = channels
                    .into_iter()
                    .any(|channel| channel.get(2..4) == Some(&[0, 2]));
            }
            b"res " => {
                let density = |name| find(data, name).and_then(jp2_density);
                found.annotations.density = density(b"resc").or_else(|| density(b"resd"));
            }
            _ => {}
        }
    }
}

/// The name of a colour space that decoders take for RGB or gray, which it is not.
fn unread_space(number: u32) -> Option<String> {
    let name = match number {
        // sRGB, gray and sYCC.
        16..=18 => return None,
        1 => "YCbCr of BT.709",
        3 | 4 => "YCbCr of BT.601",
        11 => "CMY",
        12 => "CMYK",
        13 => "YCCK",
        14 => "CIELab",
        20 => "e-sRGB",
        21 => "ROMM RGB",
        24 => "e-sYCC",
        _ => return Some(format!("colour space {number}")),
    };
    Some(format!("colour space {name}"))
}

/// Pixels a metre: two fractions, down and across, then their powers of ten.
fn jp2_density(data: &[u8]) -> Option<Density> {
    let number = |at: usize, exponent: usize| {
        let (num, den) = (be16(data, at)?, be16(data, at + 2)?);
        let exponent = array(data, exponent).map(i8::from_be_bytes)?;
        (den > 0).then(|| f64::from(num) / f64::from(den) * 10_f64.powi(exponent.into()))
    };
    Density::new(number(4, 9)?, number(0, 8)?, DensityUnit::Metre)
}

fn read_meta(file: &[u8], meta: &[u8], found: &mut FileMetadata) {
    let primary = full(meta, b"pitm").and_then(|(version, _, data)| item_number(data, 0, version > 0));
    if let Some(primary) = primary {
        read_properties(meta, primary.0, found);
    }
    for (kind, item) in described_items(meta) {
        match (kind, item_data(file, meta, item)) {
            (Item::Grid, _) => found.is_grid |= primary.is_some_and(|(primary, _)| primary == item),
            (Item::Exif, Some(data)) => take_exif(&data, found),
            (Item::Xmp, Some(data)) => found.annotations.take_xmp(&data),
            (Item::Exif, None) => once(&mut found.annotations.left_out, word::EXIF),
            (Item::Xmp, None) => once(&mut found.annotations.left_out, word::XMP),
        }
    }
}

/// The number of an item, and where the bytes after it begin.
fn item_number(data: &[u8], at: usize, wide: bool) -> Option<(u32, usize)> {
    if wide {
        Some((be32(data, at)?, at + 4))
    } else {
        Some((be16(data, at)?.into(), at + 2))
    }
}

fn read_properties(meta: &[u8], primary: u32, found: &mut FileMetadata) {
    let Some(properties) = find(meta, b"iprp") else {
        return;
    };
    let all: Vec<_> = find(properties, b"ipco")
        .map(|data| boxes(data).collect())
        .unwrap_or_default();
    let mut orientation = 1;
    for index in associated(properties, primary).unwrap_or_default() {
        let property = usize::from(index).checked_sub(1).and_then(|at| all.get(at));
        let property = property.map(|(name, data)| (name, *data));
        match property {
            Some((b"irot", [turns, ..])) => {
                // Quarters of a turn against the clock.
                orientation = after(orientation, [1, 8, 3, 6][usize::from(turns & 3)]);
            }
            Some((b"imir", [axis, ..])) => {
                // 0: the upper half becomes the lower one.
                orientation = after(orientation, [4, 2][usize::from(axis & 1)]);
            }
            // The shape of a pixel: its width over its height.
            Some((b"pasp", data)) => match be32(data, 0).zip(be32(data, 4)) {
                Some((wide, high)) if wide != high && wide > 0 && high > 0 => {
                    found.annotations.density = Some(Density {
                        x: high.into(),
                        y: wide.into(),
                        unit: DensityUnit::None,
                    });
                }
                _ => {}
            },
            Some((b"clap", _)) => leave_out("clean aperture", found),
            Some((b"colr", data)) if found.icc_profile.is_none() => {
                found.icc_profile = profile(data);
            }
            _ => {}
        }
    }
    found.orientation = Some(orientation);
}

/// The places in the list of properties that an item has, counted from 1, in the order in which they apply.
fn associated(properties: &[u8], primary: u32) -> Option<Vec<u16>> {
    let (version, flags, data) = full(properties, b"ipma")?;
    let mut at = 4;
    for _ in 0..be32(data, 0)?.min(MOST as u32) {
        let (item, next) = item_number(data, at, version > 0)?;
        let [count] = array(data, next)?;
        at = next + 1;
        let mut places = Vec::new();
        for _ in 0..count {
            // The highest bit tells that the property must be understood.
            if flags & 1 == 1 {
                places.push(be16(data, at)? & 0x7fff);
                at += 2;
            } else {
                let [place] = array::<1>(data, at)?;
                places.push(u16::from(place & 0x7f));
                at += 1;
            }
        }
        if item == primary {
            return Some(places);
        }
    }
    None
}

/// The orientation of what is turned by `first` and then by `second`, of which the latter turns by quarters
/// or mirrors.
fn after(first: u8, second: u8) -> u8 {
    // Where the corners are in what is shown: 0 and 1 above, 3 and 2 below.
    let shown = |orientation: u8| match orientation {
        2 => [1, 0, 3, 2],
        3 => [2, 3, 0, 1],
        4 => [3, 2, 1, 0],
        5 => [0, 3, 2, 1],
        6 => [3, 0, 1, 2],
        7 => [2, 1, 0, 3],
        8 => [1, 2, 3, 0],
        _ => [0, 1, 2, 3_usize],
    };
    let (first, second) = (shown(first), shown(second));
    let both = second.map(|corner| first[corner]);
    (1..=8).find(|&o| shown(o) == both).unwrap_or(1)
}

/// What an item is that is no coded picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Item {
    Exif,
    Xmp,
    /// Pictures side by side.
    Grid,
}

fn described_items(meta: &[u8]) -> Vec<(Item, u32)> {
    let Some((version, _, data)) = full(meta, b"iinf") else {
        return Vec::new();
    };
    let entries = data.get(if version == 0 { 2 } else { 4 }..).unwrap_or_default();
    let entry = |(name, data): ([u8; 4], &[u8])| {
        let version = *data.first().filter(|_| &name == b"infe")?;
        let (number, at) = item_number(data, 4, version > 2)?;
        // Two bytes of protection; then the kind, a name, and the type of the content.
        let kind = match part(data, at + 2, 4)? {
            b"Exif" => Item::Exif,
            b"grid" => Item::Grid,
            b"mime" => {
                let mut texts = data.get(at + 6..)?.split(|&byte| byte == 0);
                (texts.nth(1)? == b"application/rdf+xml").then_some(Item::Xmp)?
            }
            _ => return None,
        };
        (version >= 2).then_some((kind, number))
    };
    boxes(entries).filter_map(entry).collect()
}

/// The bytes of an item.
fn item_data(file: &[u8], meta: &[u8], item: u32) -> Option<Vec<u8>> {
    let (version, _, data) = full(meta, b"iloc")?;
    let sizes = be16(data, 0)?;
    let size = |shift: u16| usize::from(sizes >> shift & 15);
    let (offset_size, length_size, base_size) = (size(12), size(8), size(4));
    let index_size = if version > 0 { size(0) } else { 0 };
    let number = |at: &mut usize, size: usize| {
        let bytes = part(data, *at, size)?;
        *at += size;
        let number = bytes.iter().fold(0_u64, |number, &b| number << 8 | u64::from(b));
        usize::try_from(number).ok()
    };
    let (count, mut at) = item_number(data, 2, version > 1)?;
    for _ in 0..count.min(MOST as u32) {
        let found;
        (found, at) = item_number(data, at, version > 1)?;
        let method = if version > 0 { number(&mut at, 2)? & 15 } else { 0 };
        let other_file = number(&mut at, 2)?;
        let base = number(&mut at, base_size)?;
        let extents = number(&mut at, 2)?;
        let within = match (other_file, method) {
            (0, 0) => Some(file),
            (0, 1) => find(meta, b"idat"),
            _ => None,
        };
        let mut bytes = Vec::new();
        for _ in 0..extents {
            number(&mut at, index_size)?;
            let place = base.checked_add(number(&mut at, offset_size)?)?;
            let length = number(&mut at, length_size)?;
            if found == item {
                let whole = within?.get(place..)?;
                let length = if length == 0 { whole.len() } else { length };
                bytes.extend_from_slice(whole.get(..length)?);
                if bytes.len() > METADATA_LIMIT {
                    return None;
                }
            }
        }
        if found == item {
            return Some(bytes);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boxed(name: &[u8; 4], data: &[u8]) -> Vec<u8> {
        [&(data.len() as u32 + 8).to_be_bytes(), &name[..], data].concat()
    }

    const EXIF: &[u8] = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";

    /// An AVIF file whose first item has these properties, in order, and whose second is an Exif block.
    fn avif(properties: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let all: Vec<u8> = properties.iter().flat_map(|(n, d)| boxed(n, d)).collect();
        let places: Vec<u8> = (1..=properties.len() as u8).collect();
        let ipma = [&[0, 0, 0, 0, 0, 0, 0, 1, 0, 1, places.len() as u8], &places[..]].concat();
        let iprp = [boxed(b"ipco", &all), boxed(b"ipma", &ipma)].concat();
        let infe = [&[2, 0, 0, 0, 0, 2, 0, 0], &b"Exif\0"[..]].concat();
        let iinf = [&[0, 0, 0, 0, 0, 1], &boxed(b"infe", &infe)[..]].concat();
        let len = EXIF.len() as u8 + 4;
        let iloc = [
            1, 0, 0, 0, 0x44, 0, 0, 1, 0, 2, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, len,
        ];
        let meta = [
            vec![0; 4],
            boxed(b"pitm", &[0, 0, 0, 0, 0, 1]),
            boxed(b"iinf", &iinf),
            boxed(b"iloc", &iloc),
            boxed(b"iprp", &iprp),
            boxed(b"idat", &[&[0; 4], EXIF].concat()),
        ]
        .concat();
        [boxed(b"ftyp", b"avif\0\0\0\0"), boxed(b"meta", &meta)].concat()
    }

    #[test]
    fn boxes_that_are_not_known_are_named() {
        let file = |more: &[(&[u8; 4], &[u8])]| {
            let more = more.iter().map(|(name, data)| boxed(name, data));
            let begin = [boxed(b"JXL ", b"\r\n\x87\n"), boxed(b"ftyp", b"jxl \0\0\0\0jxl ")];
            let all: Vec<Vec<u8>> = begin
                .into_iter()
                .chain(more)
                .chain([boxed(b"jxlc", b"\xff\x0a")])
                .collect();
            read(&all.concat()).unknown
        };
        assert_eq!(
            file(&[
                (b"jxll", b"\x05"),
                (b"free", b""),
                (b"jbrd", b"x"),
                (b"\0\x01\0\0", b"")
            ]),
            [""; 0]
        );
        assert_eq!(
            file(&[
                (b"jumb", b"x"),
                (b"jp2i", b"x"),
                (b"jumb", b"y"),
                (b"brob", b"jhgmx")
            ]),
            ["JUMBF box", "jp2i box", "jhgm box"]
        );
    }

    #[test]
    fn properties_of_the_picture_turn_it() {
        for (properties, orientation) in [
            (&[][..], 1),
            (&[(b"irot", &[1][..])][..], 8),
            (&[(b"irot", &[3])], 6),
            (&[(b"imir", &[0])], 4),
            (&[(b"imir", &[1])], 2),
            // A quarter against the clock, then top and bottom change places: transposed.
            (&[(b"irot", &[1]), (b"imir", &[0])], 5),
            (&[(b"irot", &[1]), (b"imir", &[1])], 7),
            (&[(b"irot", &[2]), (b"imir", &[1])], 4),
        ] {
            let found = read(&avif(properties));
            assert_eq!(found.orientation, Some(orientation), "{properties:?}");
            assert_eq!(found.annotations.exif.as_deref(), Some(EXIF));
        }
        let found = read(&avif(&[(b"colr", b"nclx\0\x01"), (b"colr", b"profICC")]));
        assert_eq!(found.icc_profile.as_deref(), Some(&b"ICC"[..]));
        // Pixels twice as wide as high; a square one is worth no word.
        let shape = read(&avif(&[(b"pasp", &[0, 0, 0, 2, 0, 0, 0, 1])]))
            .annotations
            .density
            .unwrap();
        assert_eq!((shape.x, shape.y, shape.unit), (1.0, 2.0, DensityUnit::None));
        assert!(
            read(&avif(&[(b"pasp", &[0, 0, 0, 1, 0, 0, 0, 1])]))
                .annotations
                .density
                .is_none()
        );
        assert_eq!(read(&avif(&[(b"clap", &[0; 32])])).unknown, ["clean aperture"]);
        let whole = avif(&[(b"irot", &[1]), (b"colr", b"profICC")]);
        for end in 0..whole.len() {
            let _ = read(&whole[..end]);
        }
    }

    #[test]
    fn headers_of_jpeg_2000_tell_profile_and_resolution() {
        // 254/100 x 10^2 pixels a metre across, 1/2 x 10^3 down.
        let res = boxed(b"resc", &[0, 1, 0, 2, 0, 254, 0, 100, 3, 2]);
        let opacity = |kind| boxed(b"cdef", &[0, 2, 0, 0, 0, 0, 0, 1, 0, 1, 0, kind, 0, 0]);
        let header = [boxed(b"colr", b"\x02\0\0ICC"), boxed(b"res ", &res), opacity(2)].concat();
        let more = [
            boxed(b"xml ", b"<a/>"),
            boxed(b"uuid", &[7; 20]),
            boxed(b"uuid", &[8; 20]),
        ]
        .concat();
        let signature = boxed(b"jP  ", b"\r\n\x87\n");
        let found = read(&[&signature[..], &boxed(b"jp2h", &header), &more].concat());
        assert!(found.is_premultiplied);
        assert!(!read(&[&signature[..], &boxed(b"jp2h", &opacity(1))].concat()).is_premultiplied);
        assert_eq!(found.unknown, ["XML box", "UUID box"]);
        assert_eq!(found.icc_profile.as_deref(), Some(&b"ICC"[..]));
        assert_eq!(found.orientation, None);
        let spaces = |number: u8| {
            let header = boxed(b"colr", &[1, 0, 0, 0, 0, 0, number]);
            read(&[&signature[..], &boxed(b"jp2h", &header)].concat()).unknown
        };
        assert!((16..=18).all(|known| spaces(known).is_empty()));
        assert_eq!(
            (spaces(24), spaces(99)),
            (
                vec!["colour space e-sYCC".to_owned()],
                vec!["colour space 99".to_owned()]
            )
        );
        let density = found.annotations.density.unwrap();
        assert!((density.x - 254.0).abs() < 1e-9 && (density.y - 500.0).abs() < 1e-9);
    }

    #[test]
    fn boxes_of_jpeg_xl_are_read_compressed_ones_too() {
        const PACKET: &[u8] = b"<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"/>";
        // As the reference encoder of Brotli makes them.
        const PACKED: &[u8] = b"\x0b\x12\x80<x:xmpmeta xmlns:x=\x22adobe:ns:meta/\x22/>\x03";
        const PACKED_EXIF: &[u8] =
            b"\x1b\x1d\0\xf8\x8f\xd4Q\x8d\xcb\xdd\x107\xb6#\x88\xd9\xda\x1f*1Q ph\xe1$o\x10\x0b";
        // 64 MiB of zeros, more than a file may say.
        const LARGE: &[u8] = b"\
            \xcb\xff\xff?\xf8'\0\xe2\xb1@ \xf7\xfe\x8f\xff\xff\x7f\xf0O\0\xc4a\x11\x80\xee\xfd\x1f\
            \xff\xff\xff\xe0\x9f\0\x88\xc3\x02\0\xdd\xfb?\xfe\xff\xff\xc1?\x01\x10\x87\x05\0\xba\xf7\
            \x7f\xfc\xff\xff\x83\x7f\x02 \x0e\x0b\0t\xef\xff\xf8\xff\xff\x07\xff\x04@\x1c\x16\0\xe8\
            \xde\xff\xf1\xff\xff\x0f\xfe\x09\x808,\0\xd0\xbd\xff\xe3\xff\xff\x1f\xfc\x13\0qX\0\xa0{\
            \xff7";
        let signature = boxed(b"JXL ", b"\r\n\x87\n");
        let packed = |name: &[u8; 4], data: &[u8]| boxed(b"brob", &[name, data].concat());
        let plain = boxed(b"Exif", &[&[0; 4], EXIF].concat());
        for exif in [plain, packed(b"Exif", PACKED_EXIF)] {
            let found = read(&[&signature[..], &exif, &packed(b"xml ", PACKED)].concat());
            assert_eq!(found.annotations.exif.as_deref(), Some(EXIF));
            assert_eq!(found.annotations.xmp.as_deref(), Some(PACKET));
            assert!(found.is_turned_by_decoder);
        }
        let broken = read(&[&signature[..], &packed(b"xml ", &PACKED[..9])].concat());
        assert_eq!(broken.damaged, [word::XMP]);
        let large = packed(b"Exif", LARGE);
        let found = read(&[&signature[..], &large].concat());
        assert!(found.annotations.exif.is_none() && found.annotations.left_out == [word::EXIF]);
    }
}
