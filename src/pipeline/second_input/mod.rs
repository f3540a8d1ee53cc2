//! A second input, read on a thread of its own beside the first.
//!
//! ```text
//! in_step.rs   two sources -> a picture of each pair -> sink
//! matte.rs     a source of mattes -> the engine, which mixes by them
//! ```

mod in_step;
mod matte;

pub use in_step::{InStep, Verdict, in_step};
pub use matte::MatteReader;
