//! Planes of floating-point samples as 16 bits: 0 to 1 becomes 0 to 65535, rounded to the nearest. FFmpeg's
//! own conversion changes the lowest bits.

use crate::ffmpeg::{AvError, AvFormat, Picture};
use crate::frame::{Frame, PixelFormat};

/// What becomes of samples that 16 bits do not reach.
pub(super) const CUT: &str = "values outside 0 to 1 are cut";

/// What an image loses whose samples are brought to 16 bits.
#[cfg(feature = "images")]
pub(in crate::source) fn loss() -> String {
    format!("floating-point samples are brought to 16 bits, and {CUT}")
}

/// True if pictures of `from` are brought to `to` here: the same planes.
pub(super) fn are_read(from: AvFormat, to: PixelFormat) -> bool {
    matches!(
        (from.name().as_str(), to.name()),
        ("grayf32le", "gray16le") | ("gbrpf32le", "gbrp16le") | ("gbrapf32le", "gbrap16le")
    )
}

/// Fills `frame` from `picture`, for which [`are_read`] is true.
pub(super) fn read(picture: &Picture, frame: &mut Frame) -> Result<(), AvError> {
    let layout = *frame.layout();
    for (index, plane) in layout.planes().iter().enumerate() {
        let len = layout.row_bytes(index);
        for y in 0..plane.height {
            let row = picture.row(index, y, 2 * len).ok_or(AvError::bug())?;
            let to = frame.row_mut(index, y).chunks_exact_mut(2);
            for (to, from) in to.zip(row.chunks_exact(4)) {
                let value = f32::from_le_bytes([from[0], from[1], from[2], from[3]]);
                to.copy_from_slice(&quantised(value).to_le_bytes());
            }
        }
    }
    Ok(())
}

/// What is no number becomes 0.
pub(in crate::source) fn quantised(value: f32) -> u16 {
    (f64::from(value).clamp(0.0, 1.0) * 65535.0).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_comes_back() {
        for word in 0..=u16::MAX {
            assert_eq!(quantised((f64::from(word) / 65535.0) as f32), word);
        }
        assert_eq!(quantised(f32::NAN), 0);
        assert_eq!(quantised(-1.0), 0);
        assert_eq!(quantised(f32::INFINITY), u16::MAX);
    }
}
