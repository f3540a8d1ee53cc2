//! Plans: the numbers that engines compute with, integers for integer samples and floats for floating point.
//! docs/arithmetic.md states the same in prose.

pub(in crate::filter) mod compass;
pub(in crate::filter) mod division;
pub(in crate::filter) mod error;
pub(in crate::filter) mod float_plan;
pub(in crate::filter) mod float_pyramid;
pub(in crate::filter) mod integer_plan;
pub(in crate::filter) mod integers;
pub(in crate::filter) mod kernel;
pub(in crate::filter) mod pyramid;
pub(in crate::filter) mod quantise;
