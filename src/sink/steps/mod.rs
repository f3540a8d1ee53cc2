//! Steps that frames go through before a sink.
//!
//! ```text
//! frames -> flatten.rs   alpha over a colour
//!           convert.rs   another pixel format
//!           floats.rs    a watch for results that are no numbers
//!           hashes.rs    a log of hashes               each is a sink in front of another (step.rs)
//!           fields.rs    two fields woven into a frame
//!        -> sink
//! ```

#[cfg(feature = "ffmpeg")]
pub mod convert;
pub mod fields;
#[cfg(feature = "ffmpeg")]
pub mod flatten;
pub mod floats;
pub mod hashes;
mod step;
