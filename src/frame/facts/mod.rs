//! Facts about a picture: its colours, how it is to be turned, and how facts compare and are named.

mod colour;
pub mod fact;
mod range;
mod turn;

#[cfg(feature = "ffmpeg")]
pub(crate) use colour::usual_matrix;
pub use colour::{AlphaKind, Colour, Range, UnknownMatrix};
pub(crate) use colour::{YCGCO, luma_of_rgb, luma_weights};
pub(crate) use range::RangeChange;
pub use turn::{Turn, TurnError};
