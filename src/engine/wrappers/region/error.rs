//! Why a part of a picture could not be filtered.

use std::error::Error;

/// Why a part of a picture could not be filtered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// All frames have one size, and the region lies outside of it.
    #[error("the region {region} lies outside of the picture, which is {width}x{height}")]
    Outside {
        /// The region as the user wrote it.
        region: String,
        /// Width of the picture in pixels.
        width: usize,
        /// Height of the picture in pixels.
        height: usize,
    },
    /// More regions in one frame than [`super::MOST_AT_ONCE`].
    #[error(
        "{0} regions are there at once, and a frame may have {most}; give a matte, which says it of each \
         pixel",
        most = super::MOST_AT_ONCE
    )]
    TooMany(usize),
    /// The input ends before the region is there.
    #[error("the region {0} begins after the last frame of the input")]
    Late(String),
    /// The region has a time, and the input has no times.
    #[error(
        "the input has no times, which the region {0} needs; give a rate with --fps, or write frames such as \
         120f..240f"
    )]
    NoTimes(String),
    /// A region or a matte depends on the number of a frame, and some frames were left out uncounted.
    #[error(
        "{0} depends on the number of a frame in the input, and frames were left out without counting them"
    )]
    Uncounted(String),
    /// The matte could not be read.
    #[error("{0}")]
    Matte(#[source] Box<dyn Error + Send + Sync>),
    /// The matte ends before the input.
    #[error(
        "the matte {name} ends after {frames} of the input's frames; it needs a picture for each, or a \
         single one for all"
    )]
    Ended {
        /// The matte's file.
        name: String,
        /// Number of its pictures.
        frames: u64,
    },
    /// The matte has another size than the picture.
    #[error(
        "the matte {name} is {}x{}, and the picture {}x{}; make it the same size",
        matte.0, matte.1, picture.0, picture.1
    )]
    Size {
        /// The matte's file.
        name: String,
        /// Its width and height in pixels.
        matte: (usize, usize),
        /// The picture's width and height in pixels.
        picture: (usize, usize),
    },
    /// The matte has alpha, so either its luma or its alpha could be meant.
    #[error(
        "the matte {0} has transparent pixels; a matte says by its brightness what is filtered, so flatten \
         it, or make a gray picture of its alpha"
    )]
    Transparent(String),
}
