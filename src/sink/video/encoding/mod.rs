//! doc

pub(super) mod gif;
pub(super) mod pacing;
pub(super) mod webp;
