//! What an OpenEXR file says beside the samples that are filtered, so that it can be said again: windows,
//! attributes, the names and kinds of channels, and the channels that are not filtered.
//!
//! ```text
//!   channels of the file    A  B  G  R  Z  id        (sorted by name)
//!   samples of the frame    |  |  |  |  |  .-> kept as it is
//!                           f32x5
//! ```

use crate::wording::listed;
use exr::meta::attribute::{Chromaticities, SampleType, Text};
use exr::meta::header::Header;
use exr::prelude::Vec2;
use half::f16;

/// Attributes that say how samples are stored, and those that have facts of their own.
pub(crate) const STRUCTURE: [&str; 15] = [
    "channels",
    "chunkCount",
    "compression",
    "dataWindow",
    "displayWindow",
    "dwaCompressionLevel",
    "lineOrder",
    "maxSamplesPerPixel",
    "name",
    "pixelAspectRatio",
    "screenWindowCenter",
    "screenWindowWidth",
    "tiles",
    "type",
    "version",
];

/// Red, green, blue and white of primaries, as x and y, by their number in H.273 table 2.
const PRIMARIES: [(u8, [(f32, f32); 4]); 6] = {
    const D65: (f32, f32) = (0.3127, 0.329);
    [
        (1, [(0.64, 0.33), (0.3, 0.6), (0.15, 0.06), D65]),
        (5, [(0.64, 0.33), (0.29, 0.6), (0.15, 0.06), D65]),
        (6, [(0.63, 0.34), (0.31, 0.595), (0.155, 0.07), D65]),
        (9, [(0.708, 0.292), (0.17, 0.797), (0.131, 0.046), D65]),
        (11, [(0.68, 0.32), (0.265, 0.69), (0.15, 0.06), (0.314, 0.351)]),
        (12, [(0.68, 0.32), (0.265, 0.69), (0.15, 0.06), D65]),
    ]
};

/// A part of an OpenEXR file without the samples that are filtered.
#[derive(Debug, Clone)]
pub struct ExrPart {
    header: Header,
    samples: Vec<usize>,
    unfiltered: Vec<(usize, Vec<u8>)>,
    words: String,
}

impl ExrPart {
    /// The part of `header`. `samples` are the channels that the frame's samples come from, in the order of
    /// the frame; `unfiltered` are others with their samples, row by row, 32 bits each in the machine's
    /// order.
    pub(crate) fn new(header: Header, samples: Vec<usize>, unfiltered: Vec<(usize, Vec<u8>)>) -> ExrPart {
        let mut part = ExrPart {
            header,
            samples,
            unfiltered,
            words: String::new(),
        };
        part.words = part.described();
        part
    }

    /// The header that the file has.
    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The channels that the frame's samples come from, as places in the header's list.
    pub(crate) fn samples(&self) -> &[usize] {
        &self.samples
    }

    /// The samples of channel `index` of the header, if it is not filtered.
    pub(crate) fn unfiltered(&self, index: usize) -> Option<&[u8]> {
        let found = self.unfiltered.iter().find(|(channel, _)| *channel == index);
        found.map(|(_, samples)| &samples[..])
    }

    /// True if a channel named A is among those that are filtered.
    pub(crate) fn has_alpha(&self) -> bool {
        self.samples.iter().any(|&index| self.name(index) == "A")
    }

    /// What is lost where only the samples are kept, in words; empty if nothing is.
    pub(crate) fn words(&self) -> &str {
        &self.words
    }

    /// The names of the filtered channels, unless they are those of a picture.
    pub(crate) fn unusual_names(&self) -> Option<String> {
        let names: Vec<String> = self.samples.iter().map(|&index| self.name(index)).collect();
        let is_usual = |name: &String| ["R", "G", "B", "A", "Y"].contains(&&name[..]);
        let are_usual = matches!(names.len(), 1..=4) && names.iter().all(is_usual);
        (!are_usual).then(|| listed(names))
    }

    fn described(&self) -> String {
        let header = &self.header;
        let mut words = Vec::new();
        words.extend(
            self.unusual_names()
                .map(|names| format!("channel names ({names})")),
        );
        if !self.unfiltered.is_empty() {
            let names = self.unfiltered.iter().map(|(index, _)| self.name(*index));
            words.push(format!(
                "channels that are not filtered ({})",
                listed(names.collect())
            ));
        }
        if header.data_window() != header.shared_attributes.display_window
            || header.own_attributes.layer_position != Vec2(0, 0)
        {
            words.push("data window".to_owned());
        }
        let mut attributes: Vec<String> = header
            .all_named_attributes()
            .map(|(name, _)| Text::from_slice_unchecked(name).to_string())
            .filter(|name| !STRUCTURE.contains(&&name[..]))
            .collect();
        attributes.sort_unstable();
        if !attributes.is_empty() {
            words.push(listed(attributes));
        }
        words.join(", ")
    }

    fn name(&self, index: usize) -> String {
        self.header.channels.list[index].name.to_string()
    }
}

/// H.273's number of these primaries, if it has one.
pub(crate) fn primaries(of: &Chromaticities) -> Option<u8> {
    let near = |a: Vec2<f32>, b: (f32, f32)| (a.0 - b.0).abs() < 2e-4 && (a.1 - b.1).abs() < 2e-4;
    let is_same = |points: &[(f32, f32); 4]| {
        let of = [of.red, of.green, of.blue, of.white];
        of.iter().zip(points).all(|(&a, &b)| near(a, b))
    };
    let found = PRIMARIES.iter().find(|(_, points)| is_same(points));
    found.map(|(number, _)| *number)
}

/// H.273's number of primaries by x and y of white, red, green and blue, if it has one.
pub(crate) fn primaries_of(points: &[f32; 8]) -> Option<u8> {
    let [wx, wy, rx, ry, gx, gy, bx, by] = *points;
    primaries(&Chromaticities {
        red: Vec2(rx, ry),
        green: Vec2(gx, gy),
        blue: Vec2(bx, by),
        white: Vec2(wx, wy),
    })
}

/// The primaries of H.273's number, as OpenEXR states them.
pub(crate) fn chromaticities(number: u8) -> Option<Chromaticities> {
    let (_, points) = PRIMARIES.iter().find(|(known, _)| *known == number)?;
    let [red, green, blue, white] = points.map(|(x, y)| Vec2(x, y));
    Some(Chromaticities {
        red,
        green,
        blue,
        white,
    })
}

/// True for widths over heights of a pixel that OpenEXR reads.
pub(crate) fn is_aspect(ratio: f32) -> bool {
    (1e-6..=1e6).contains(&ratio)
}

/// True for channels of floating-point numbers.
pub(crate) fn is_float(kind: SampleType) -> bool {
    kind != SampleType::U32
}

/// The same number in 32 bits; one that is no number keeps its bits, too.
pub(crate) fn widened(half: f16) -> f32 {
    let bits = u32::from(half.to_bits());
    match half.is_nan() {
        true => f32::from_bits((bits & 0x8000) << 16 | 0x7f80_0000 | (bits & 0x3ff) << 13),
        false => half.to_f32(),
    }
}

/// The nearest number of 16 bits. One that is no number keeps the bits that there is room for.
pub(crate) fn narrowed(value: f32) -> f16 {
    let bits = value.to_bits();
    match (bits >> 13 & 0x3ff) as u16 {
        payload @ 1.. if value.is_nan() => f16::from_bits((bits >> 16) as u16 & 0x8000 | 0x7c00 | payload),
        _ => f16::from_f32(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_numbers_of_16_bits_come_back() {
        for bits in 0..=u16::MAX {
            let half = f16::from_bits(bits);
            assert_eq!(narrowed(widened(half)).to_bits(), bits);
            assert!(half.is_nan() || widened(half) == half.to_f32());
        }
        for bits in [0x7f80_0001, 0xff80_1fff] {
            assert!(narrowed(f32::from_bits(bits)).is_nan());
        }
    }

    #[test]
    fn primaries_are_known_by_their_points() {
        for (number, _) in PRIMARIES {
            assert_eq!(chromaticities(number).as_ref().and_then(primaries), Some(number));
        }
        assert_eq!(chromaticities(2), None);
        let aces = Chromaticities {
            red: Vec2(0.7347, 0.2653),
            green: Vec2(0.0, 1.0),
            blue: Vec2(0.0001, -0.077),
            white: Vec2(0.32168, 0.33767),
        };
        assert_eq!(primaries(&aces), None);
    }
}
