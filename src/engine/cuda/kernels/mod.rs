//! The kernels: their texts' parameters, and the shapes in which they are launched.
//!
//! ```text
//! a step of the plan      planes that are interleaved in the same way               plane_group
//!                           |
//!            one multiply-add at a time          products of byte matrices
//!                 scalar                              tensor/
//!                           |
//!                  compile::Recipe: a text of kernels/ with its parameters
//! ```
//!
//! `float` has those of floating-point samples. `variant` names where a kernel keeps weights and pixels.
//! `select` decides which of them is taken.

pub(crate) mod float;
pub(crate) mod plane_group;
pub(crate) mod scalar;
pub(crate) mod tensor;
pub(crate) mod variant;
