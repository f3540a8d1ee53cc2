//! Decoded pictures: decoders, their memory, pixel formats, conversions and facts.

mod alpha;
pub(in crate::media::ffmpeg) mod bits;
pub(in crate::media::ffmpeg) mod card;
pub(in crate::media::ffmpeg) mod decoder;
pub(in crate::media::ffmpeg) mod facts;
pub(in crate::media::ffmpeg) mod format;
pub(in crate::media::ffmpeg) mod lend;
pub(in crate::media::ffmpeg) mod picture;
mod place;
pub(in crate::media::ffmpeg) mod scaler;
pub(in crate::media::ffmpeg) mod side_data;
