//! The conversion of pictures whose coded format is not native.

use crate::frame::{Colour, ColourModel, Frame, PixelFormat, Range};
use crate::media::convert::{self, PackedConversion};
use crate::media::ffmpeg::{AvError, AvFormat, Picture, Scaler, ScalerEnd};

/// How pictures of another format become frames.
pub(in crate::source::video) enum Conversion {
    /// swscale, and the picture that it fills.
    Scaler { scaler: Scaler, into: Picture },
    /// Packed RGB of few bits.
    Packed(PackedConversion),
}

impl Conversion {
    /// For pictures of the size `width` x `height` between formats with these colour facts; the second format
    /// is FFmpeg's for `native`.
    pub(in crate::source::video) fn new(
        (coded, from): (AvFormat, Colour),
        (target, to): (AvFormat, Colour),
        native: PixelFormat,
        (width, height): (usize, usize),
    ) -> Result<Conversion, AvError> {
        if let Some(packed) = PackedConversion::new(coded, native) {
            return Ok(Conversion::Packed(packed));
        }
        let is_rgb = native.model() == ColourModel::Rgb;
        let matrix = convert::written_matrix(from.matrix, height);
        let scaler = Scaler::new(
            width,
            height,
            ScalerEnd {
                format: coded,
                // Between two formats of one family the range stays what it is, whatever it is.
                full_range: from.range == Range::Full || is_rgb,
                matrix,
                chroma_location: from.chroma_location,
            },
            ScalerEnd {
                format: target,
                full_range: to.range == Range::Full || is_rgb,
                matrix,
                chroma_location: to.chroma_location,
            },
        )?;
        let into = Picture::allocate(target, width, height)?;
        Ok(Conversion::Scaler { scaler, into })
    }

    /// Fills `frame` from `picture`.
    pub(super) fn run(&mut self, picture: &Picture, frame: &mut Frame) -> Result<(), AvError> {
        match self {
            Conversion::Scaler { scaler, into } => {
                scaler.run(picture, into)?;
                into.copy_to(frame)
            }
            Conversion::Packed(packed) => packed.run(picture, frame),
        }
    }
}
