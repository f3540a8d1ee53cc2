//! Rows of the result: sums become samples, and small changes are undone.
//!
//! ```text
//! sums    s s s s ..   (i32)
//!    | requantize.rs   bias, division, clamp, 8 or 16 bits
//! rows    p p p p ..   two or four at once: row_pointers.rs
//!    | threshold.rs    the picture's own sample where a change is small
//! rows    p p p p ..
//! ```
//!
//! `prefetch.rs` prefetches the rows that are read and written next.

pub(in crate::engine::cpu) mod prefetch;
pub(in crate::engine::cpu) mod requantize;
pub(in crate::engine::cpu) mod row_pointers;
pub(in crate::engine::cpu) mod threshold;
