//! The instruction sets that the inner loops are written for, and which of them this machine has.

#[cfg(target_arch = "x86_64")]
use super::avx2::Avx2;
#[cfg(target_arch = "x86_64")]
use super::avx512::Avx512;
#[cfg(target_arch = "x86_64")]
use super::lanes::{Lanes, Work};
use std::fmt;
use std::str::FromStr;

/// A set of vector instructions. All give the same bits; they differ in speed alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InstructionSet {
    /// Plain Rust, vectorised as far as the compiler sees fit for any machine of this kind.
    Portable,
    /// x86-64 with AVX2: 16 multiply-adds an instruction.
    Avx2,
    /// The same with AVX-VNNI: 16 multiply-adds an instruction, which also adds them to the sums.
    Avx2Vnni,
    /// x86-64 with AVX-512F and BW: 32 multiply-adds an instruction.
    Avx512,
    /// The same with VNNI: 32 multiply-adds an instruction, which also adds them to the sums.
    Avx512Vnni,
}

impl InstructionSet {
    /// All that framepipe knows, slowest first.
    pub const ALL: [InstructionSet; 5] = [
        InstructionSet::Portable,
        InstructionSet::Avx2,
        InstructionSet::Avx2Vnni,
        InstructionSet::Avx512,
        InstructionSet::Avx512Vnni,
    ];

    /// True if this machine can run it.
    pub fn is_available(self) -> bool {
        match self {
            InstructionSet::Portable => true,
            #[cfg(target_arch = "x86_64")]
            vectors => Vectors::of(vectors).is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// Those that this machine can run, slowest first.
    pub fn available() -> impl Iterator<Item = InstructionSet> {
        InstructionSet::ALL.into_iter().filter(|set| set.is_available())
    }

    /// The fastest that this machine can run.
    pub fn detect() -> InstructionSet {
        InstructionSet::available()
            .last()
            .unwrap_or(InstructionSet::Portable)
    }
}

impl fmt::Display for InstructionSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            InstructionSet::Portable => "portable",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx2Vnni => "avx2-vnni",
            InstructionSet::Avx512 => "avx512",
            InstructionSet::Avx512Vnni => "avx512-vnni",
        })
    }
}

/// A word that names no instruction set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no instruction set; use portable, avx2, avx2-vnni, avx512 or avx512-vnni")]
pub struct UnknownInstructionSet(pub String);

impl FromStr for InstructionSet {
    type Err = UnknownInstructionSet;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = InstructionSet::ALL.into_iter();
        all.find(|set| set.to_string() == word)
            .ok_or_else(|| UnknownInstructionSet(word.to_owned()))
    }
}

/// The vector instructions of a set, with the proof that this machine has them.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
pub(super) enum Vectors {
    Avx2(Avx2<false>),
    Avx2Vnni(Avx2<true>),
    Avx512(Avx512<false>),
    Avx512Vnni(Avx512<true>),
}

#[cfg(target_arch = "x86_64")]
impl Vectors {
    /// Those of `set`; `None` if it has none, or if this machine lacks them.
    pub(super) fn of(set: InstructionSet) -> Option<Vectors> {
        match set {
            InstructionSet::Portable => None,
            InstructionSet::Avx2 => Avx2::detect().map(Vectors::Avx2),
            InstructionSet::Avx2Vnni => Avx2::detect().map(Vectors::Avx2Vnni),
            InstructionSet::Avx512 => Avx512::detect().map(Vectors::Avx512),
            InstructionSet::Avx512Vnni => Avx512::detect().map(Vectors::Avx512Vnni),
        }
    }
}

/// What an expression gives that is compiled for each set, with the vectors' own one, by the name that it goes by in there.
#[cfg(target_arch = "x86_64")]
macro_rules! with_lanes {
    ($vectors:expr, $lanes:ident => $work:expr) => {
        match $vectors {
            $crate::engine::cpu::simd::Vectors::Avx2($lanes) => $work,
            $crate::engine::cpu::simd::Vectors::Avx2Vnni($lanes) => $work,
            $crate::engine::cpu::simd::Vectors::Avx512($lanes) => $work,
            $crate::engine::cpu::simd::Vectors::Avx512Vnni($lanes) => $work,
        }
    };
}
#[cfg(target_arch = "x86_64")]
pub(super) use with_lanes;

#[cfg(target_arch = "x86_64")]
impl Vectors {
    /// Numbers that a vector holds.
    pub(super) fn lanes(self) -> usize {
        fn numbers<L: Lanes>(_: L) -> usize {
            L::LANES
        }
        with_lanes!(self, lanes => numbers(lanes))
    }
}

/// A loop in plain Rust that the compiler makes vectors of. `run` is `inline(always)`, and so is what it calls.
pub(super) trait Plain {
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
pub(super) enum Compiled {
    /// What every machine of this kind has.
    Portable,
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2<false>),
    #[cfg(target_arch = "x86_64")]
    Avx512(Avx512<false>),
}

impl Compiled {
    /// For `set`, or, if this machine lacks it, for any machine.
    pub(super) fn of(set: InstructionSet) -> Compiled {
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
    pub(super) fn run(self, plain: impl Plain) {
        match self {
            Compiled::Portable => plain.run(),
            #[cfg(target_arch = "x86_64")]
            Compiled::Avx2(lanes) => lanes.enter(Entered(plain)),
            #[cfg(target_arch = "x86_64")]
            Compiled::Avx512(lanes) => lanes.enter(Entered(plain)),
        }
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
