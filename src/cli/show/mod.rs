//! What the user sees of a run: progress, summaries, lists of hashes, and errors.

pub(crate) mod bar;
pub(crate) mod escape;
pub(crate) mod failure;
pub(crate) mod hashes;
pub(crate) mod progress;
pub(crate) mod summary;
