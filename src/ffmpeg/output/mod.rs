//! Containers that are written: encoders of pictures and sound, and muxing.

pub(in crate::ffmpeg) mod audio;
pub(in crate::ffmpeg) mod encoder;
pub(in crate::ffmpeg) mod muxer;
