//! Reading and writing through callbacks: files in memory, and pipes.

pub(in crate::media::ffmpeg) mod io_context;
pub(in crate::media::ffmpeg) mod memory_io;
pub(in crate::media::ffmpeg) mod pipe_io;
