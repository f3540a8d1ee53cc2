//! Decoded pictures: decoders, their memory, pixel formats, conversions and facts.

pub(in crate::ffmpeg) mod decoder;
pub(in crate::ffmpeg) mod facts;
pub(in crate::ffmpeg) mod format;
#[cfg(feature = "cuda")]
pub(in crate::ffmpeg) mod hardware;
pub(in crate::ffmpeg) mod jpeg_xl;
pub(in crate::ffmpeg) mod lend;
pub(in crate::ffmpeg) mod memory;
#[cfg(not(feature = "cuda"))]
pub(in crate::ffmpeg) mod no_surfaces;
pub(in crate::ffmpeg) mod picture;
pub(in crate::ffmpeg) mod scaler;
pub(in crate::ffmpeg) mod side_data;
#[cfg(feature = "cuda")]
pub(in crate::ffmpeg) mod surfaces;
