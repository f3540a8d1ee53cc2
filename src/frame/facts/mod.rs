//! Facts about a picture: its colours, how it is to be turned, and how facts compare and are named.

mod colour;
pub mod fact;
mod matrix;
mod range;
mod turn;

pub use colour::{AlphaKind, Colour, Range};
#[cfg(feature = "ffmpeg")]
pub(crate) use colour::{CHROMA_CENTRE, CHROMA_LEFT};
pub use matrix::UnknownMatrix;
pub(crate) use matrix::{YCGCO, luma_of_rgb, rgb_of_yuv};
#[cfg(feature = "ffmpeg")]
pub(crate) use matrix::{usual_matrix, yuv_of_rgb};
pub(crate) use range::RangeChange;
#[cfg(feature = "ffmpeg")]
pub(crate) use range::levels;
pub use turn::{Turn, TurnError};
