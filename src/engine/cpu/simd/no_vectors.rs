//! Machines whose vector instructions no loop is written for: plain loops are all there is.

use super::InstructionSet;
use super::vector::Plain;

/// The vector instructions of a set: there are none.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) enum Vectors {}

impl Vectors {
    /// None, whatever the set.
    pub(in crate::engine::cpu) fn of(_: InstructionSet) -> Option<Vectors> {
        None
    }

    /// Numbers that a vector holds.
    pub(in crate::engine::cpu) fn lanes(self) -> usize {
        match self {}
    }
}

/// What an expression gives for no set at all.
macro_rules! with_simd {
    ($vectors:expr, $lanes:ident => $work:expr) => {
        match $vectors {}
    };
}
pub(in crate::engine::cpu) use with_simd;

/// The set of instructions that a plain loop is compiled for.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct Compiled;

impl Compiled {
    /// For any machine, whatever the set.
    pub(in crate::engine::cpu) fn of(_: InstructionSet) -> Compiled {
        Compiled
    }

    /// Runs the loop.
    pub(in crate::engine::cpu) fn run(self, plain: impl Plain) {
        plain.run();
    }
}
