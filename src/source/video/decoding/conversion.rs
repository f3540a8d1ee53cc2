//! The conversion of pictures whose coded format is not native.

use crate::frame::{Colour, ColourModel, Frame, PixelFormat, Range};
use crate::media::convert;
use crate::media::ffmpeg::{AvError, AvFormat, Picture, Scaler, ScalerEnd};

/// swscale, and the picture that it fills.
pub(in crate::source::video) struct Conversion {
    scaler: Scaler,
    into: Picture,
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
        let is_rgb = native.model() == ColourModel::Rgb;
        let matrix = convert::written_matrix(from.matrix, height);
        Ok(Conversion {
            scaler: Scaler::new(
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
            )?,
            into: Picture::allocate(target, width, height)?,
        })
    }

    /// Fills `frame` from `picture`.
    pub(super) fn run(&mut self, picture: &Picture, frame: &mut Frame) -> Result<(), AvError> {
        self.scaler.run(picture, &mut self.into)?;
        self.into.copy_to(frame)
    }
}
