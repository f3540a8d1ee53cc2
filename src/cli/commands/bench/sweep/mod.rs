//! Sweeps: every combination of some choices, measured one after another.

pub(super) mod blocks;
pub(super) mod kernels;
pub(super) mod threads;
