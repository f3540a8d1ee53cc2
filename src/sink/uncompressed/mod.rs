//! Video without compression, to a file or a pipe: raw frames, and YUV4MPEG2 with headers.
//!
//! ```text
//! frames -> raw.rs, y4m.rs -> byte_writer.rs -> a file that is not yet in its place, or standard output
//! ```

mod byte_writer;
pub mod raw;
pub mod y4m;

pub use byte_writer::{PERHAPS_CLOSED, is_stand_in};
