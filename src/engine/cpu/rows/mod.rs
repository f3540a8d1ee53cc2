//! What all algorithms share: rows of the picture in, rows of the result out.
//!
//! ```text
//! picture   R G B R G B ..            strip.rs        the rows of the result that a thread makes
//!    |                                plane_rows.rs   the rows that it reads, inside the frame and outside
//!    | u8, u16 -> words of 16 bits    words/          sample encodings, conversion loops, deinterleaving
//! words     b b | w w w w .. | b b    border/         the apron at both ends
//!    |
//!    | an algorithm
//!    |
//! sums      s s s s ..  (i32)         sums/           loops and types that several algorithms have
//!    | bias, shift, round, clamp      store/          requantization; prefetches the next rows, too
//! picture   R G B R G B ..            plane_rows.rs   channels that are not convolved
//!    | small changes are undone       store/          threshold
//! picture   R G B R G B ..
//! ```
//!
//! `plane_filter.rs` has the trait of all algorithms.

pub(super) mod border;
pub(super) mod plane_filter;
pub(super) mod plane_rows;
pub(super) mod store;
pub(super) mod strip;
pub(super) mod sums;
pub(super) mod words;
