//! The instruction sets of the inner loops, and the check for those that this machine has.
//!
//! ```text
//! InstructionSet     the name of a set, as `--simd` takes it
//!   | Vectors::of    the proof that this machine has it
//! Vectors            AVX2, AVX-512, each with or without VNNI
//!   | with_simd!     an expression, compiled once for each
//! L: Simd            what a loop is generic over: load, add_dot_i16, ... (vector.rs)
//!   | enter          the loop, compiled with the instructions of the set
//! IntLoop::run
//! ```
//!
//! Loops in plain Rust go through [`run_plain`] instead: the compiler vectorizes them for each set. Only this
//! module depends on the architecture: x86-64 has the folder `x86_64`; for others `no_vectors.rs` has a
//! [`Vectors`] without values. A new architecture needs such a folder, its name in the two `cfg` below, and
//! names in [`InstructionSet`], which have no vectors elsewhere.

pub(super) mod float;
pub(super) mod levels;
pub(super) mod scratch;
pub(super) mod unroll;
pub(super) mod vector;
#[cfg(not(target_arch = "x86_64"))]
#[path = "no_vectors.rs"]
mod vectors;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64/mod.rs"]
mod vectors;

use std::fmt;
use std::str::FromStr;
use vector::{IntLoop, Plain, Simd};
pub(super) use vectors::{Vectors, with_simd};

/// A plain loop, for [`Simd::enter`].
pub(super) struct Entered<P>(pub(super) P);

impl<P: Plain> IntLoop for Entered<P> {
    #[inline(always)]
    fn run<L: Simd>(self, _: L) {
        self.0.run();
    }
}

/// Runs a loop compiled for these vectors; for `None`, compiled for any machine.
pub(super) fn run_plain(vectors: Option<Vectors>, plain: impl Plain) {
    match vectors {
        Some(vectors) => with_simd!(vectors, simd => simd.without_vnni().enter(Entered(plain))),
        None => plain.run(),
    }
}

/// The best vectors of this machine, for conversions of pixels around any engine, whose instruction set
/// nobody chooses.
pub(super) fn best_vectors() -> Option<Vectors> {
    Vectors::of(InstructionSet::detect())
}

/// A set of vector instructions. All give the same bits; they differ only in speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionSet {
    /// Plain Rust, compiled for any machine of this architecture.
    Portable,
    /// x86-64 with AVX2, FMA and F16C: 16 multiply-adds per instruction.
    Avx2,
    /// The same with AVX-VNNI: 16 multiply-adds per instruction, which also adds them to sums.
    Avx2Vnni,
    /// x86-64 with AVX-512F and BW: 32 multiply-adds per instruction.
    Avx512,
    /// The same with VNNI: 32 multiply-adds per instruction, which also adds them to sums.
    Avx512Vnni,
}

impl InstructionSet {
    /// All sets, slowest first.
    pub const ALL: [InstructionSet; 5] = [
        InstructionSet::Portable,
        InstructionSet::Avx2,
        InstructionSet::Avx2Vnni,
        InstructionSet::Avx512,
        InstructionSet::Avx512Vnni,
    ];

    /// Its name, as `--simd` takes it.
    pub const fn name(self) -> &'static str {
        match self {
            InstructionSet::Portable => "portable",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx2Vnni => "avx2-vnni",
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx512Vnni => "avx512-vnni",
        }
    }

    /// The instructions that it needs.
    pub const fn about(self) -> &'static str {
        match self {
            InstructionSet::Portable => "Plain code for any machine",
            InstructionSet::Avx2 => "AVX2, FMA and F16C",
            InstructionSet::Avx2Vnni => "AVX2, FMA, F16C and AVX-VNNI",
            InstructionSet::Avx512 => "AVX-512F and BW",
            InstructionSet::Avx512Vnni => "AVX-512F, BW and VNNI",
        }
    }

    /// True if this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            InstructionSet::Portable => true,
            vectors => Vectors::of(vectors).is_some(),
        }
    }

    /// The sets that this machine can run, slowest first.
    pub fn available() -> impl Iterator<Item = InstructionSet> {
        InstructionSet::ALL.into_iter().filter(|set| set.is_available())
    }

    /// The fastest set that this machine can run.
    pub fn detect() -> InstructionSet {
        InstructionSet::available()
            .last()
            .unwrap_or(InstructionSet::Portable)
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no instruction set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no instruction set; use one of {all}", all = names())]
pub struct UnknownInstructionSet(pub String);

/// The names of all sets.
fn names() -> String {
    InstructionSet::ALL.map(InstructionSet::name).join(", ")
}

impl FromStr for InstructionSet {
    type Err = UnknownInstructionSet;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = InstructionSet::ALL.into_iter();
        all.find(|set| set.name() == word)
            .ok_or_else(|| UnknownInstructionSet(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_others_refused() {
        for set in InstructionSet::ALL {
            assert_eq!(set.to_string().parse(), Ok(set));
        }
        assert_eq!(
            "sse9".parse::<InstructionSet>(),
            Err(UnknownInstructionSet("sse9".into()))
        );
    }

    #[test]
    fn the_portable_set_is_always_there_and_the_best_one_is_available() {
        assert!(InstructionSet::Portable.is_available());
        assert!(InstructionSet::detect().is_available());
    }
}
