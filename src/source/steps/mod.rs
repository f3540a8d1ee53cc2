//! Steps that frames go through behind a source.
//!
//! ```text
//! source -> range.rs    frames of a part of the input; seam.rs: those on either side of its cuts
//!           floats.rs   floating-point samples, and a watch for what is no number
//!           turns.rs    a watch for pictures that are shown turned
//!           fields.rs   two fields of a frame as frames        each is a source in front of another
//!        -> frames      in_order.rs: read by one thread
//! ```

pub mod fields;
#[cfg(feature = "ffmpeg")]
pub mod floats;
mod in_order;
pub mod range;
pub mod seam;
pub mod turns;
