//! Containers that are written: encoders of pictures and sound, and muxing.

pub(in crate::media::ffmpeg) mod audio;
pub(in crate::media::ffmpeg) mod channels;
pub(in crate::media::ffmpeg) mod encoder;
pub(in crate::media::ffmpeg) mod muxer;
