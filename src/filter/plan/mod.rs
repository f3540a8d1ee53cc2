//! Plans: the numbers that engines compute with, integers for integer samples and floats for floating point.
//! docs/arithmetic.md states the same in prose.

pub(in crate::filter) mod error;
pub(in crate::filter) mod float;
pub(in crate::filter) mod integer;
pub(in crate::filter) mod pyramid;
