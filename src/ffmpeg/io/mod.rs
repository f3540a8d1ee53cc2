//! Reading and writing through callbacks: files in memory, and pipes.

pub(in crate::ffmpeg) mod io_context;
pub(in crate::ffmpeg) mod memory_io;
pub(in crate::ffmpeg) mod pipe_io;
