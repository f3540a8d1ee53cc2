//! Messages that explain what a run chose.

/// The target of log messages that say what was chosen for a run (engine, kernels, decoders), and why.
pub const EXPLAIN_TARGET: &str = "framepipe::explanation";
