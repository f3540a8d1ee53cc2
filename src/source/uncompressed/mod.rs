//! Video without compression, from a file or a pipe: raw frames, and YUV4MPEG2 with headers.
//!
//! ```text
//! a file, a named pipe or standard input -> byte_reader.rs -> raw.rs, y4m.rs -> frames
//!                                                 excess.rs: bits above the stated depth
//! ```

mod byte_reader;
pub(super) mod excess;
pub mod raw;
pub mod y4m;
