//! Containers that are read: demuxing, what an input may open, times, and limits on metadata.

pub(in crate::ffmpeg) mod access;
mod chained;
pub(in crate::ffmpeg) mod clock;
pub(in crate::ffmpeg) mod demuxer;
pub(crate) mod ebml;
pub(in crate::ffmpeg) mod metadata_limit;
