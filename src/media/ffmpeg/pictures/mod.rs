//! Decoded pictures: decoders, their memory, pixel formats, conversions and facts.

pub(in crate::media::ffmpeg) mod decoder;
pub(in crate::media::ffmpeg) mod facts;
pub(in crate::media::ffmpeg) mod format;
#[cfg(feature = "cuda")]
pub(in crate::media::ffmpeg) mod hardware;
pub(in crate::media::ffmpeg) mod jpeg_xl;
pub(in crate::media::ffmpeg) mod lend;
pub(in crate::media::ffmpeg) mod memory;
#[cfg(not(feature = "cuda"))]
pub(in crate::media::ffmpeg) mod no_surfaces;
pub(in crate::media::ffmpeg) mod picture;
pub(in crate::media::ffmpeg) mod scaler;
pub(in crate::media::ffmpeg) mod side_data;
#[cfg(feature = "cuda")]
pub(in crate::media::ffmpeg) mod surfaces;
