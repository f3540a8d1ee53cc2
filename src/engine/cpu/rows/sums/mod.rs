//! Weighted sums of rows, for several algorithms.

pub(in crate::engine::cpu) mod column_filter;
pub(in crate::engine::cpu) mod decimator;
pub(in crate::engine::cpu) mod fused;
pub(in crate::engine::cpu) mod integer;
pub(in crate::engine::cpu) mod taps;
