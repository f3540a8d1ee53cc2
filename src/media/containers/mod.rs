//! What containers say that FFmpeg does not pass on, read from the files' own bytes, for sources and sinks.
//!
//! | file | what |
//! |---|---|
//! | `bytes.rs` | bytes one after another, heads of boxes |
//! | `mp4.rs` | the box with the facts of an MP4 file's tracks |
//! | `edits.rs` | what of an MP4 file's edit lists is not followed, and the names of its tracks |
//! | `matroska.rs` | chapters, languages and title of a Matroska file |

pub(crate) mod bytes;
pub(crate) mod edits;
pub(crate) mod matroska;
pub(crate) mod mp4;
