//! Image files: which kinds there are, what each can hold, and how sequences of them are named. What reading
//! and writing have in common lies here.

#[cfg(feature = "images")]
mod kind;
#[cfg(feature = "images")]
pub(crate) mod names;
#[cfg(feature = "images")]
#[doc(hidden)]
pub mod pattern;

#[doc(hidden)]
pub use crate::annotations;
#[cfg(feature = "images")]
#[doc(hidden)]
pub use crate::annotations::exr;
#[cfg(feature = "images")]
pub use kind::{Decoding, Encoding, ImageKind, UnknownImageKind};
