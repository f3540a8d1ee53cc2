//! Rows of the result: sums become samples, and small changes are undone; the next rows are prefetched
//! meanwhile.

pub(in crate::engine::cpu) mod prefetch;
pub(in crate::engine::cpu) mod requantize;
pub(in crate::engine::cpu) mod threshold;
