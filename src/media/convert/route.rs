//! How frames of one format of integers become frames of another.

use crate::frame::{Colour, ColourModel, PixelFormat, UnknownMatrix, YCGCO};
use crate::media::convert::written_matrix;
use crate::media::ffmpeg::AvFormat;

/// What is done to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Route {
    /// A change of depth, range or place.
    Levels,
    /// The formulas with this matrix, or another subsampling, for which it does not count.
    Matrix(u8),
    /// Gray of RGB.
    Luma,
    /// swscale, which puts bytes elsewhere faster.
    Scale,
}

/// How frames of `from` become frames of `to`, with these colour facts and `height` rows. An error if the
/// matrix has no formula.
pub(super) fn route(
    (from, before): (PixelFormat, Colour),
    (to, after): (PixelFormat, Colour),
    height: usize,
) -> Result<Route, UnknownMatrix> {
    let is_of_bytes = || {
        let is_known = |format: PixelFormat| AvFormat::from_name(format.name()).is_some();
        (from.depth(), to.depth()) == (8, 8) && is_known(from) && is_known(to)
    };
    Ok(match (from.model(), to.model()) {
        (ColourModel::Rgb, ColourModel::Gray) => Route::Luma,
        (ColourModel::Rgb, ColourModel::Rgb) if is_of_bytes() => Route::Scale,
        (ColourModel::Rgb, ColourModel::Yuv) => Route::Matrix(written_matrix(after.matrix, height)),
        (ColourModel::Yuv, ColourModel::Rgb) => Route::Matrix(match before.matrix {
            YCGCO => YCGCO,
            _ => before.read_matrix(height)?,
        }),
        (ColourModel::Yuv, ColourModel::Yuv) if from.chroma_subsampling() != to.chroma_subsampling() => {
            Route::Matrix(after.matrix)
        }
        _ => Route::Levels,
    })
}
