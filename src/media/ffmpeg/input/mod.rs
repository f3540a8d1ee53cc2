//! Containers that are read: demuxing, what an input may open, times, and limits on metadata.

pub(in crate::media::ffmpeg) mod access;
mod chained;
pub(in crate::media::ffmpeg) mod clock;
pub(in crate::media::ffmpeg) mod demuxer;
pub(crate) mod ebml;
mod hls;
mod list;
pub(in crate::media::ffmpeg) mod metadata_limit;
