//! A row in, a row out: what all algorithms share.
//!
//! ```text
//! picture   R G B R G B ..            strip.rs        which rows a thread makes
//!    |                                plane_rows.rs   of which rows, inside the frame and outside
//!    | u8, u16 -> words of 16 bits    words/          how they are encoded, the loops, components apart
//! words     b b | w w w w .. | b b    border.rs       the apron at both ends
//!    |
//!    | an algorithm
//!    |
//! sums      s s s s ..  (i32)
//!    | bias, shift, round, clamp      requantize.rs
//! picture   R G B R G B ..            plane_rows.rs   channels that are not convolved
//!    | what has changed too little      threshold.rs
//! picture   R G B R G B ..
//! ```
//!
//! `plane_filter.rs` is what an algorithm is; `prefetch.rs` asks for the rows to come; `component.rs` is the
//! way in for algorithms in plain Rust; `decimator.rs` makes fewer rows; `fused_sums.rs` makes sums of
//! floating-point numbers, and `span.rs` says where the pixels of a part of a row come from.

pub(super) mod border;
pub(super) mod component;
pub(super) mod decimator;
pub(super) mod fused_sums;
pub(super) mod plane_filter;
pub(super) mod plane_rows;
pub(super) mod prefetch;
pub(super) mod requantize;
pub(super) mod span;
pub(super) mod strip;
pub(super) mod sum;
pub(super) mod threshold;
pub(super) mod words;
