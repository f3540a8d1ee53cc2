//! Weighted sums of rows, for several algorithms.

pub(in crate::engine::cpu) mod decimator;
pub(in crate::engine::cpu) mod fused;
pub(in crate::engine::cpu) mod integer;
