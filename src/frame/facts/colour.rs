//! Facts about a picture's colour that pass through a run unchanged.

use super::matrix::{UnknownMatrix, matrix_name, usual_matrix};
use crate::frame::{Channel, ColourModel, PixelFormat};

/// FFmpeg's numbers of the places of chroma: left, where it is taken to be if nothing is said, and centre.
#[cfg(feature = "ffmpeg")]
pub(crate) const CHROMA_LEFT: u8 = 1;
pub(crate) const CHROMA_CENTRE: u8 = 2;

/// Which sample values stand for black and white.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Range {
    /// Not stated: limited for YUV, full for the rest, as FFmpeg assumes.
    #[default]
    Unspecified,
    /// Limited ("video", "TV", "MPEG") range: black is 16 at 8 bits.
    Limited,
    /// Full ("PC", "JPEG") range: black is 0.
    Full,
}

/// How colour is stored under alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum AlphaKind {
    /// Straight, independent of alpha: PNG, video.
    #[default]
    Straight,
    /// Premultiplied: EXR, TIFF's associated alpha.
    Associated,
}

/// Where black lies, how colour goes with alpha, and the colour tags by their numbers in ITU-T H.273 (which
/// FFmpeg shares; 2 is "unspecified").
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Colour {
    /// Sample range.
    pub range: Range,
    /// Colour primaries, by the numbers of H.273 table 2; 2 is unspecified.
    pub primaries: u8,
    /// Transfer characteristics, by the numbers of H.273 table 3; 2 is unspecified.
    pub transfer: u8,
    /// Matrix coefficients, by the numbers of H.273 table 4; 2 is unspecified.
    pub matrix: u8,
    /// Chroma sample location as FFmpeg numbers it: 0 unspecified, 1 left, 2 centre, 3 top-left, 4 top, 5
    /// bottom-left, 6 bottom.
    pub chroma_location: u8,
    /// How colour is stored under alpha; engines heed it in formats of floating-point samples, and all others
    /// are straight.
    pub alpha: AlphaKind,
}

impl Default for Colour {
    fn default() -> Self {
        Colour {
            range: Range::Unspecified,
            primaries: 2,
            transfer: 2,
            matrix: 2,
            chroma_location: 0,
            alpha: AlphaKind::Straight,
        }
    }
}

impl Colour {
    /// The matrix that converts YUV pictures of this height to RGB: the stated one, or else the usual one.
    /// Matrices without luma weights are refused: `YCGCO`, which has a formula of its own, and 0, which
    /// says that the components are green, blue and red, though YUV formats are only called so where chroma
    /// is subsampled.
    pub(crate) fn read_matrix(&self, height: usize) -> Result<u8, UnknownMatrix> {
        match self.matrix {
            2 | 3 => Ok(usual_matrix(height)),
            matrix @ (1 | 4..=7 | 9) => Ok(matrix),
            matrix => Err(UnknownMatrix(matrix_name(matrix))),
        }
    }

    /// The sample value that stands for "no signal" in `channel`: black for luma, the centre for chroma, 0
    /// for the rest, floating-point samples among them. Scaled to the format's depth.
    pub fn zero_level(&self, format: PixelFormat, channel: Channel) -> u32 {
        match channel {
            _ if format.is_float() => 0,
            Channel::Cb | Channel::Cr => 1 << (format.depth() - 1),
            Channel::Luma if self.is_limited(format) => 16 << (format.depth() - 8),
            _ => 0,
        }
    }

    /// How far it is from the zero level of `channel` to its greatest value: to white for luma, from one end
    /// to the other for chroma. Of formats of integers, scaled to their depth.
    pub(crate) fn span(&self, format: PixelFormat, channel: Channel) -> u32 {
        let unit = 1 << (format.depth() - 8);
        match channel {
            Channel::Luma if self.is_limited(format) => 219 * unit,
            Channel::Cb | Channel::Cr if self.is_limited(format) => 224 * unit,
            _ => format.max_value(),
        }
    }

    /// Where the first chroma sample lies, in halves of a pixel right of the first pixel and below it, if
    /// samples stand for so many pixels (log2, across and down). Left is what is taken where nothing is said.
    pub(crate) fn chroma_origin(&self, (log2_x, log2_y): (u32, u32)) -> (i32, i32) {
        let [centre_x, centre_y] = [log2_x, log2_y].map(|log2| (1 << log2) - 1);
        match self.chroma_location {
            CHROMA_CENTRE => (centre_x, centre_y),
            3 => (0, 0),
            4 => (centre_x, 0),
            5 => (0, 2 * centre_y),
            6 => (centre_x, 2 * centre_y),
            _ => (0, centre_y),
        }
    }

    /// The same where chroma stands for so many pixels (log2, across and down): of places that differ in a
    /// direction in which there is a sample for each pixel, the first in FFmpeg's list.
    #[cfg(feature = "ffmpeg")]
    pub(crate) fn at_meant_location(self, log2: (u32, u32)) -> Colour {
        Colour {
            chroma_location: meant_location(self.chroma_location, log2),
            ..self
        }
    }

    /// The range that is stated, or else the one that it is taken for in `format`.
    #[cfg(feature = "ffmpeg")]
    pub(crate) fn assumed_range(&self, format: PixelFormat) -> Range {
        match self.is_limited(format) {
            true => Range::Limited,
            false => Range::Full,
        }
    }

    /// True if `format`'s luma uses limited range under these facts.
    pub fn is_limited(&self, format: PixelFormat) -> bool {
        match self.range {
            Range::Limited => format.model() != ColourModel::Rgb,
            Range::Full => false,
            Range::Unspecified => format.model() == ColourModel::Yuv,
        }
    }
}

/// The place of chroma that `location` means where a sample stands for so many pixels (log2, across and
/// down).
pub(super) fn meant_location(location: u8, log2: (u32, u32)) -> u8 {
    match (log2, location) {
        // DV and HEVC say "top left" of 4:1:1 and 4:2:2, which have a sample in every row.
        ((1.., 0), 3 | 5) => 1,
        ((1.., 0), 4 | 6) => CHROMA_CENTRE,
        ((0, 1..), CHROMA_CENTRE) => 1,
        ((0, 1..), 4) => 3,
        ((0, 1..), 6) => 5,
        _ => location,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chroma_lies_where_its_location_says() {
        let origin = |chroma_location: u8, log2: (u32, u32)| {
            let colour = Colour {
                chroma_location,
                ..Colour::default()
            };
            colour.chroma_origin(log2)
        };
        assert_eq!(origin(0, (1, 1)), (0, 1));
        assert_eq!(origin(2, (1, 0)), (1, 0));
        assert_eq!(origin(2, (2, 2)), (3, 3));
        assert_eq!(origin(6, (1, 1)), (1, 2));
        // Locations that mean the same have the same origin, and others another one.
        for log2 in [(1, 0), (2, 0), (0, 1), (1, 1), (2, 2)] {
            for (a, b) in (1..7).flat_map(|a| (1..7).map(move |b| (a, b))) {
                let is_same = meant_location(a, log2) == meant_location(b, log2);
                assert_eq!(is_same, origin(a, log2) == origin(b, log2), "{log2:?} {a} {b}");
            }
        }
    }
}
