//! Loops in plain Rust, compiled once for each instruction set: the compiler makes vectors of them.

use super::InstructionSet;
#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "x86_64")]
use super::vector::{Lanes, Work};

/// A loop in plain Rust that the compiler makes vectors of. `run` is `inline(always)`, and so is what it calls.
pub(in crate::engine::cpu) trait Plain {
    /// The loop.
    fn run(self);
}

/// A plain loop as [`Lanes::enter`] takes it.
#[cfg(target_arch = "x86_64")]
struct Entered<P>(P);

#[cfg(target_arch = "x86_64")]
impl<P: Plain> Work for Entered<P> {
    #[inline(always)]
    fn run<L: Lanes>(self, _: L) {
        self.0.run();
    }
}

/// The set of instructions that a plain loop is compiled for.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) enum Compiled {
    /// What every machine of this kind has.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2<false>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512<false>),
}

impl Compiled {
    /// For `set`, or, if this machine lacks it, for any machine.
    pub(in crate::engine::cpu) fn of(set: InstructionSet) -> Compiled {
        #[cfg(target_arch = "x86_64")]
        let best = match set {
            InstructionSet::Portable => None,
            // What VNNI adds is no use to plain arithmetic.
            InstructionSet::Avx2 | InstructionSet::Avx2Vnni => Avx2::detect().map(Compiled::Avx2),
            InstructionSet::Avx512 | InstructionSet::Avx512Vnni => Avx512::detect().map(Compiled::Avx512),
        };
        #[cfg(not(target_arch = "x86_64"))]
        let (best, _) = (None, set);
        best.unwrap_or(Compiled::Portable)
    }

    /// Runs the loop as compiled for the set.
    pub(in crate::engine::cpu) fn run(self, plain: impl Plain) {
        match self {
            Compiled::Portable => plain.run(),
            #[cfg(target_arch = "x86_64")]
            Compiled::Avx2(lanes) => lanes.enter(Entered(plain)),
            #[cfg(target_arch = "x86_64")]
            Compiled::Avx512(lanes) => lanes.enter(Entered(plain)),
        }
    }
}
