//! Pictures on a card: decoded there, and read there by an encoder.

#[cfg(feature = "cuda")]
pub(in crate::media::ffmpeg) mod hardware;
#[cfg(not(feature = "cuda"))]
pub(in crate::media::ffmpeg) mod no_surfaces;
#[cfg(feature = "cuda")]
pub(in crate::media::ffmpeg) mod surfaces;
