//! Masks: their weights, rank and factors, and the masks that have names.

pub(in crate::filter) mod mask;
pub(in crate::filter) mod named;
pub(in crate::filter) mod number;
pub(in crate::filter) mod rank;
