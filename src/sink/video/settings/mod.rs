//! The settings of an output, found before anything is written.
//!
//! ```text
//!   selection ──> stage ──> rehearsal ──> read back: what does the file say?
//!                   ^                        │
//!                   └── other range, turn ───┘    samples: undone in the frames;  the ledger: lost
//! ```
//!
//! `encoder` opens one with its options; `alpha` watches what becomes of alpha; `readers` says what
//! readers of the output take for something else.

pub(super) mod alpha;
pub(super) mod encoder;
mod readers;
pub(super) mod rehearsal;
pub(super) mod samples;
pub(super) mod selection;
pub(super) mod stage;
