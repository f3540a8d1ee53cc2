//! Why a part of a picture could not be filtered.

use std::error::Error;

/// Why a part of a picture could not be filtered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegionError {
    /// Every frame is of one size, and the region is never in it.
    #[error("the region {region} lies outside of the picture, which is {width}x{height}")]
    Outside {
        /// As it was written.
        region: String,
        /// Pixels across the picture.
        width: usize,
        /// Its rows.
        height: usize,
    },
    /// A time, and an input without times.
    #[error(
        "the input has no times, which the region {0} needs; give a rate with --fps, or write frames such as \
         120f..240f"
    )]
    NoTimes(String),
    /// A number of frames behind a range that was reached without counting.
    #[error(
        "the region {0} counts frames from the input's beginning, and --start went over some without \
         counting; write times, or give --start in frames such as 120f"
    )]
    Uncounted(String),
    /// The matte could not be read.
    #[error("{0}")]
    Matte(#[source] Box<dyn Error + Send + Sync>),
    /// The matte is over before the input is.
    #[error(
        "the matte {name} ends after {frames} of the input's frames; it needs a picture for each, or a \
         single one for all"
    )]
    Ended {
        /// The matte's file.
        name: String,
        /// Pictures that it has.
        frames: u64,
    },
    /// The matte is of another size.
    #[error(
        "the matte {name} is {}x{}, and the picture {}x{}; make it the same size",
        matte.0, matte.1, picture.0, picture.1
    )]
    Size {
        /// The matte's file.
        name: String,
        /// Its width and height.
        matte: (usize, usize),
        /// The picture's.
        picture: (usize, usize),
    },
    /// The matte has alpha, and it is not clear which of both is meant.
    #[error(
        "the matte {0} has transparent pixels; a matte says by its brightness what is filtered, so flatten \
         it, or make a gray picture of its alpha"
    )]
    Transparent(String),
}
