//! Handles of the CUDA driver, each with an owner that frees it when it is dropped.
//!
//! An owner holds the device that its handle belongs to, so that a context outlives everything in it.
//! `memory` is the card's and page-locked memory of the host, and `pictures` lie in the card's. `stream`
//! orders work, `dependency` tells which launches of a stream may overlap, `module` holds compiled kernels,
//! and `nvtx` names ranges of time for NVIDIA's profilers.

pub(crate) mod dependency;
pub(crate) mod device;
pub(crate) mod memory;
pub(crate) mod module;
pub(crate) mod nvtx;
pub(crate) mod pictures;
pub(crate) mod stream;
