//! Facts about a picture's colour that pass through a run unchanged.

use super::fact::matrix_name;
use crate::frame::{Channel, ColourModel, PixelFormat};

/// H.273's number of YCgCo.
pub(crate) const YCGCO: u8 = 8;

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

/// A matrix between RGB and YUV, by FFmpeg's name of it, whose formula is not known here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "pictures with the matrix {0} cannot be converted to RGB here, and another matrix would give wrong \
     colours; keep them in YUV (such as ffv1 in .mkv), or bring them to bt709 or bt2020nc first"
)]
pub struct UnknownMatrix(pub String);

/// The matrix between RGB and YUV that untagged pictures of this height use: BT.709 from 720 rows on, else
/// BT.601.
pub(crate) fn usual_matrix(height: usize) -> u8 {
    if height >= 720 { 1 } else { 6 }
}

/// The luma weights of red and blue, KR and KB in H.273; `None` for a matrix without them.
pub(crate) fn luma_weights(matrix: u8) -> Option<(f64, f64)> {
    Some(match matrix {
        1 => (0.2126, 0.0722),
        4 => (0.30, 0.11),
        5 | 6 => (0.299, 0.114),
        7 => (0.212, 0.087),
        9 | 10 => (0.2627, 0.0593),
        _ => return None,
    })
}

/// The weights of red, green and blue in the luma of RGB, times 2^16, whose sum is 2^16: those of the matrix,
/// else of the primaries' matrix, else of BT.709 (H.273, tables 2 and 4).
pub(crate) fn luma_of_rgb(matrix: u8, primaries: u8) -> [u32; 3] {
    let of_primaries = match primaries {
        5 | 6 => luma_weights(6),
        7 | 9 => luma_weights(primaries),
        // As the matrix 12 derives them from DCI-P3's points, with its own white and with D65.
        11 => Some((0.209_492, 0.068_913)),
        12 => Some((0.228_975, 0.079_287)),
        _ => None,
    };
    // BT.709's are always known.
    let (red, blue) = luma_weights(matrix)
        .or(of_primaries)
        .or(luma_weights(1))
        .unwrap_or_default();
    let whole = |weight: f64| (weight * 65536.0).round() as u32;
    let (red, blue) = (whole(red), whole(blue));
    [red, 65536 - red - blue, blue]
}

impl Colour {
    /// The matrix that converts YUV pictures of this height to RGB: the stated one, or else the usual one.
    /// Matrices without luma weights are refused: [`YCGCO`], which has a formula of its own, and 0, which
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

    /// True if `format`'s luma uses limited range under these facts.
    pub fn is_limited(&self, format: PixelFormat) -> bool {
        match self.range {
            Range::Limited => format.model() != ColourModel::Rgb,
            Range::Full => false,
            Range::Unspecified => format.model() == ColourModel::Yuv,
        }
    }
}
