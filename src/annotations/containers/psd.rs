//! Photoshop's own files (PSD, PSB): the mode of colours in the header, and image resources behind it. Read
//! only.
//!
//! ```text
//!  "8BPS", version .. 26 bytes | colour table: length, 32 bits, data | resources: length, 32 bits, data |
//!  layers: length, 32 bits, data | the picture that all layers make
//! ```

use crate::annotations::bytes::{array, be16, be32, part, text};
use crate::annotations::{Annotations, Density, DensityUnit, FileMetadata, photoshop, word};

const HEADER: usize = 26;

/// Where the mode is, and those whose pixels are given otherwise: numbers of colours, CMYK, and gray with
/// inks to print it in.
const MODE: usize = 24;
const GRAY: u16 = 1;
const INDEXED: u16 = 2;
const RGB: u16 = 3;
const CMYK: u16 = 4;
const DUOTONE: u16 = 8;

/// Bytes of a palette: 256 colours.
const PALETTE: u32 = 768;

const RESOLUTION: u16 = 0x03ed;
const IPTC: u16 = 0x0404;
const PROFILE: u16 = 0x040f;
const EXIF: u16 = 0x0422;
const XMP: u16 = 0x0424;
/// The names of channels behind the colours.
const NAMES: u16 = 1006;
/// Whether the picture behind the layers is what they make, behind a version.
const VERSION: u16 = 1057;
/// Where the number of channels is.
const CHANNELS: usize = 12;
/// The number of the colour that is transparent.
const TRANSPARENT: u16 = 0x0417;

/// What a file says beside its pixels. Damaged parts are passed over.
#[must_use]
pub fn read(file: &[u8]) -> FileMetadata {
    let mut found = FileMetadata::default();
    let mode = be16(file, MODE).filter(|_| file.starts_with(b"8BPS"));
    let is_short = mode == Some(INDEXED) && be32(file, HEADER).is_some_and(|length| length < PALETTE);
    if is_short {
        found.damaged.push("colours of a palette that ends early");
    }
    match mode {
        Some(CMYK) => found
            .changes
            .push("colours of four inks (CMYK) become RGB".to_owned()),
        Some(DUOTONE) => found.unknown.push("inks of a duotone".to_owned()),
        _ => {}
    }
    let Some((resources, behind)) = resources(file) else {
        return found;
    };
    let get = |id| photoshop::resource(resources, id);
    let annotations = Annotations {
        density: get(RESOLUTION).and_then(density),
        ..Annotations::default()
    };
    found.annotations = annotations;
    if let Some(block) = get(EXIF) {
        found.annotations.take_exif(block);
    }
    if let Some(packet) = get(XMP) {
        found.annotations.take_xmp(packet);
    }
    if let Some(records) = get(IPTC) {
        found.annotations.take_iptc(records);
    }
    found.icc_profile = get(PROFILE).filter(|p| !p.is_empty()).map(<[u8]>::to_vec);
    found.damaged.append(&mut found.annotations.damaged);
    if mode == Some(INDEXED)
        && let Some(number) = get(TRANSPARENT).and_then(|data| be16(data, 0))
        && u32::from(number) < PALETTE / 3
    {
        found
            .unknown
            .push(format!("the transparency of colour {number} of its palette"));
    }
    if photoshop::says_more(resources) {
        found.unknown.push(word::RESOURCES.to_owned());
    }
    let layers = layers(file, behind).unwrap_or_default();
    if layers != 0 {
        let alone = match get(VERSION).and_then(|data| data.get(4)) {
            Some(0) => ", which alone hold the picture (saved without \"Maximize Compatibility\")",
            _ => "",
        };
        found.unknown.push(format!("{}{alone}", word::LAYERS));
    }
    let colours = match mode {
        Some(RGB) => Some(3),
        Some(GRAY | DUOTONE) => Some(1),
        _ => None,
    };
    let has_extra = colours.is_some_and(|colours| be16(file, CHANNELS) == Some(colours + 1));
    // Of layers a number below 0 says that the channel behind the colours is their transparency.
    if has_extra && layers >= 0 {
        match get(NAMES).map(first_name).filter(|name| !name.is_empty()) {
            Some(name) if name.eq_ignore_ascii_case("transparency") => {}
            Some(name) => found.selection = Some(name),
            None => found.changes.push(
                "the channel behind the colours, whose kind the file does not state, is taken for alpha"
                    .to_owned(),
            ),
        }
    }
    found
}

/// The resources, and where the layers follow.
fn resources(file: &[u8]) -> Option<(&[u8], usize)> {
    if !file.starts_with(b"8BPS") {
        return None;
    }
    let table = usize::try_from(be32(file, HEADER)?).ok()?;
    let at = table.checked_add(HEADER + 4)?.checked_add(4)?;
    let len = usize::try_from(be32(file, at.checked_sub(4)?)?).ok()?;
    Some((part(file, at, len)?, at.checked_add(len)?))
}

/// How many layers the part at `at` has. Those of 16 and 32 bits stand behind an empty list and masks, in a
/// block of their own.
fn layers(file: &[u8], at: usize) -> Option<i16> {
    let part = part(file, at.checked_add(4)?, usize::try_from(be32(file, at)?).ok()?)?;
    let count = |at: usize| array(part, at).map(i16::from_be_bytes);
    let list = usize::try_from(be32(part, 0)?).ok()?;
    if list >= 2 {
        return count(4);
    }
    let masks = list.checked_add(4)?;
    let mut at = usize::try_from(be32(part, masks)?)
        .ok()?
        .checked_add(masks)?
        .checked_add(4)?;
    while part.get(at..at.checked_add(4)?)? == b"8BIM" {
        let data = at.checked_add(12)?;
        let len = usize::try_from(be32(part, at.checked_add(8)?)?).ok()?;
        if matches!(
            part.get(at.checked_add(4)?..at.checked_add(8)?)?,
            b"Lr16" | b"Lr32"
        ) {
            return count(data).filter(|_| len >= 2);
        }
        at = data.checked_add(len.checked_next_multiple_of(4)?)?;
    }
    None
}

/// The first of names that each have their length in front.
fn first_name(names: &[u8]) -> String {
    let name = names
        .split_first()
        .and_then(|(&len, rest)| rest.get(..len.into()));
    text(name.unwrap_or_default())
}

/// Pixels an inch, with 16 bits behind the point: across and down, each with two units of display behind it.
fn density(resource: &[u8]) -> Option<Density> {
    let number = |at| be32(resource, at).map(|fixed| f64::from(fixed) / 65_536.0);
    Density::new(number(0)?, number(8)?, DensityUnit::Inch)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_read() {
        let resolution = b"\0\x48\x80\0\0\x01\0\x01\0\x90\0\0\0\x01\0\x01";
        let resource = |id: u16, data: &[u8]| {
            let size = (data.len() as u32).to_be_bytes();
            let padding = vec![0; data.len() % 2];
            [b"8BIM", &id.to_be_bytes()[..], &[0, 0], &size, data, &padding].concat()
        };
        let resources = [
            resource(RESOLUTION, resolution),
            resource(XMP, b"<xmp/>!"),
            resource(PROFILE, b"ICC"),
        ]
        .concat();
        let len = (resources.len() as u32).to_be_bytes();
        let file = [b"8BPS", &[0; 22][..], &[0, 0, 0, 2, 9, 9], &len, &resources].concat();
        let found = read(&file);
        assert_eq!(found.icc_profile.as_deref(), Some(&b"ICC"[..]));
        assert_eq!(found.annotations.xmp.as_deref(), Some(&b"<xmp/>!"[..]));
        assert_eq!(
            found.annotations.density,
            Density::new(72.5, 144.0, DensityUnit::Inch)
        );
        for end in 0..file.len() {
            assert!(read(&file[..end]).icc_profile.is_none());
        }
        // None, and what ImageMagick writes for none.
        for number in [0, 1] {
            let resolution = [0, 0, 0, number, 0, 1, 0, 1, 0, 0, 0, number, 0, 1, 0, 1];
            assert_eq!(density(&resolution), None);
        }
    }

    #[test]
    fn modes_that_are_given_otherwise_are_named() {
        let said = |mode: u8| {
            let found = read(&[b"8BPS", &[0; 21][..], &[mode]].concat());
            (found.changes.concat(), found.unknown.concat())
        };
        assert_eq!(said(3), (String::new(), String::new()));
        assert!(said(4).0.contains("CMYK"));
        assert_eq!(said(8).1, "inks of a duotone");
    }

    #[test]
    fn palettes_that_are_short_or_transparent_are_named() {
        let said = |mode: u8, colours: u32, number: [u8; 2]| {
            let palette = [&colours.to_be_bytes()[..], &vec![1; colours as usize]].concat();
            let resource = [b"8BIM\x04\x17\0\0\0\0\0\x02", &number[..]].concat();
            let resources = [&[0, 0, 0, 14][..], &resource].concat();
            let head = [b"8BPS", &[0; 21][..], &[mode]].concat();
            let found = read(&[head, palette, resources].concat());
            (found.damaged.concat(), found.unknown.concat())
        };
        let none = String::new();
        let transparent = "the transparency of colour 5 of its palette".to_owned();
        let early = "colours of a palette that ends early".to_owned();
        assert_eq!(said(2, 768, [0, 5]), (none.clone(), transparent.clone()));
        assert_eq!(said(2, 60, [0, 5]), (early, transparent));
        assert_eq!(said(2, 768, [0xff, 0xff]), (none.clone(), none.clone()));
        assert_eq!(said(3, 0, [0, 5]), (none.clone(), none));
    }
}
