//! Alpha and second views that a file holds beside the pictures that its decoder gives: found here, so that
//! they are not lost without a word.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes from a still's beginning that hold the list of its items.
const HEAD: u64 = 64 << 10;

/// What an item of an AVIF or HEIF file calls itself if it is another item's alpha.
const ALPHA_ITEMS: [&[u8]; 2] = [
    b"urn:mpeg:mpegB:cicp:systems:auxiliary:alpha",
    b"urn:mpeg:hevc:2015:auxid:1",
];

/// True if `path` is an AVIF or HEIF file one of whose items is alpha.
pub(in crate::source::video) fn has_alpha_item(path: &Path) -> bool {
    // A pipe cannot be read twice.
    if !path.is_file() {
        return false;
    }
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    if read.is_err() || head.get(4..8) != Some(b"ftyp") {
        return false;
    }
    ALPHA_ITEMS
        .iter()
        .any(|item| head.windows(item.len()).any(|window| window == *item))
}

/// True if HEVC headers (an hvcC box or NAL units between start codes) announce more than one layer: alpha or
/// a second view.
pub(in crate::source::video) fn has_hevc_layers(headers: &[u8]) -> bool {
    parameter_sets(headers)
        .iter()
        .any(|unit| layers(unit).is_some_and(|layers| layers > 1))
}

/// The number of layers that a video parameter set announces; `None` for other units.
fn layers(unit: &[u8]) -> Option<u32> {
    const VIDEO_PARAMETER_SET: u8 = 32;
    if unit.first()? >> 1 & 0x3f != VIDEO_PARAMETER_SET {
        return None;
    }
    // After a header of two bytes: 4 bits of identity, 2 of the base layer, then 6 of the count of layers
    // less one.
    let (high, low) = (u32::from(unit.get(2)? & 3), u32::from(unit.get(3)? >> 4));
    Some((high << 4 | low) + 1)
}

/// The NAL units of HEVC headers.
fn parameter_sets(headers: &[u8]) -> Vec<&[u8]> {
    if headers.first() == Some(&1) {
        return boxed_units(headers).unwrap_or_default();
    }
    let starts: Vec<usize> = headers
        .windows(3)
        .enumerate()
        .filter_map(|(at, window)| (window == [0, 0, 1]).then_some(at + 3))
        .collect();
    starts.iter().map(|&start| &headers[start..]).collect()
}

/// The NAL units in the arrays of an hvcC box.
fn boxed_units(headers: &[u8]) -> Option<Vec<&[u8]>> {
    let mut units = Vec::new();
    let mut at = 23;
    for _ in 0..*headers.get(22)? {
        let count = headers.get(at + 1..at + 3)?;
        let count = u16::from_be_bytes([count[0], count[1]]);
        at += 3;
        for _ in 0..count {
            let size = headers.get(at..at + 2)?;
            let size = usize::from(u16::from_be_bytes([size[0], size[1]]));
            units.push(headers.get(at + 2..at + 2 + size)?);
            at += 2 + size;
        }
    }
    Some(units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_of_hevc_are_counted() {
        let one = [0x40, 0x01, 0x0c, 0x01, 0xff, 0xff];
        let two = [0x40, 0x01, 0x0c, 0x11, 0xff, 0xff];
        let between_codes = |unit: &[u8]| [&[0, 0, 0, 1], unit, &[0, 0, 1, 0x42, 1, 1]].concat();
        assert!(!has_hevc_layers(&between_codes(&one)));
        assert!(has_hevc_layers(&between_codes(&two)));
        let boxed = |unit: &[u8]| [&[1; 22][..], &[1, 0xa0, 0, 1, 0, unit.len() as u8], unit].concat();
        assert!(!has_hevc_layers(&boxed(&one)));
        assert!(has_hevc_layers(&boxed(&two)));
        for end in 0..boxed(&two).len() {
            has_hevc_layers(&boxed(&two)[..end]);
        }
        assert!(!has_hevc_layers(&[]));
    }
}
