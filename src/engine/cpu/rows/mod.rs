//! A row in, a row out: what all algorithms share.
//!
//! ```text
//! picture   R G B R G B ..            strip.rs        which rows a thread makes, and where they are read
//!    | colours times alpha            alpha/          where the mask averages colours under alpha
//!    | u8, u16 -> words of 16 bits    sample.rs       bytes, words, words less 32768, or two bytes apart
//!    |                                widen.rs        the loops that do so
//!    | R R .. G G .. B B ..           deinterleave.rs where a row filter is faster that way
//! words     b b | w w w w .. | b b    border.rs       what lies beyond the ends
//!    |
//!    | an algorithm
//!    |
//! sums      s s s s ..  (i32)
//!    | bias, shift, round, clamp      requantize.rs
//! picture   R G B R G B ..            complete.rs     channels that are not convolved, colours without alpha
//! ```
//!
//! `plane_filter.rs` is what an algorithm is; `prefetch.rs` asks for the rows to come; `component.rs` is the way
//! in for algorithms in plain Rust.

pub(super) mod alpha;
pub(super) mod border;
pub(super) mod complete;
pub(super) mod component;
pub(super) mod deinterleave;
pub(super) mod plane_filter;
pub(super) mod prefetch;
pub(super) mod requantize;
pub(super) mod sample;
pub(super) mod strip;
pub(super) mod widen;
