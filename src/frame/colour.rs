//! Facts about a picture's colour that pass through a run unchanged.

use super::{Channel, ColourModel, PixelFormat};

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
    /// As it is, whatever the alpha: PNG, video.
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

    /// True if `format`'s luma uses limited range under these facts.
    pub fn is_limited(&self, format: PixelFormat) -> bool {
        match self.range {
            Range::Limited => format.model() != ColourModel::Rgb,
            Range::Full => false,
            Range::Unspecified => format.model() == ColourModel::Yuv,
        }
    }
}
