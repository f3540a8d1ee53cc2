//! What all algorithms share: rows of the picture in, rows of the result out.
//!
//! ```text
//! picture   R G B R G B ..            strip.rs        the rows of the result that a thread makes
//!    |                                plane_rows.rs   the rows that it reads, inside the frame and outside
//!    | u8, u16 -> words of 16 bits    words/          sample encodings, conversion loops, deinterleaving
//! words     b b | w w w w .. | b b    border.rs       the apron at both ends
//!    |
//!    | an algorithm
//!    |
//! sums      s s s s ..  (i32)
//!    | bias, shift, round, clamp      requantize.rs
//! picture   R G B R G B ..            plane_rows.rs   channels that are not convolved
//!    | small changes are undone         threshold.rs
//! picture   R G B R G B ..
//! ```
//!
//! `plane_filter.rs` has the trait of all algorithms; `prefetch.rs` prefetches the next rows; `component.rs`
//! loads rows for algorithms in plain Rust; `decimator.rs` makes every D-th row; `fused_sums.rs` makes
//! floating-point sums, and `span.rs` maps a part of a row with its halo to pixels of the row.

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
