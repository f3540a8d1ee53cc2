//! x86-64: integer vectors of AVX2 and AVX-512, floating-point ones (`float.rs`), and plain loops compiled
//! for either.

mod avx2;
mod avx512;
mod float;
mod levels;

use super::InstructionSet;
use super::vector::Simd;
use avx2::Avx2;
use avx512::Avx512;

/// The vector instructions of a set, with the proof that this machine has them.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) enum Vectors {
    Avx2(Avx2<false>),
    Avx2Vnni(Avx2<true>),
    Avx512(Avx512<false>),
    Avx512Vnni(Avx512<true>),
}

impl Vectors {
    /// The vectors of `set`; `None` if it has none on x86-64, or if this machine lacks them.
    pub(in crate::engine::cpu) fn of(set: InstructionSet) -> Option<Vectors> {
        match set {
            InstructionSet::Avx2 => Avx2::detect().map(Vectors::Avx2),
            InstructionSet::Avx2Vnni => Avx2::detect().map(Vectors::Avx2Vnni),
            InstructionSet::Avx512 => Avx512::detect().map(Vectors::Avx512),
            InstructionSet::Avx512Vnni => Avx512::detect().map(Vectors::Avx512Vnni),
            // Plain Rust, and the sets of other architectures.
            _ => None,
        }
    }

    /// The vectors of `set`, even if this machine lacks them: for tests of plans, which run no loops.
    #[cfg(test)]
    pub(in crate::engine::cpu) fn assume(set: InstructionSet) -> Option<Vectors> {
        Some(match set {
            InstructionSet::Avx2 => Vectors::Avx2(Avx2::assume()),
            InstructionSet::Avx2Vnni => Vectors::Avx2Vnni(Avx2::assume()),
            InstructionSet::Avx512 => Vectors::Avx512(Avx512::assume()),
            InstructionSet::Avx512Vnni => Vectors::Avx512Vnni(Avx512::assume()),
            _ => return None,
        })
    }
}

/// Evaluates an expression, compiled for each set, in which the name stands for the set's [`Simd`] value.
macro_rules! with_simd {
    ($vectors:expr, $simd:ident => $work:expr) => {
        match $vectors {
            $crate::engine::cpu::simd::Vectors::Avx2($simd) => $work,
            $crate::engine::cpu::simd::Vectors::Avx2Vnni($simd) => $work,
            $crate::engine::cpu::simd::Vectors::Avx512($simd) => $work,
            $crate::engine::cpu::simd::Vectors::Avx512Vnni($simd) => $work,
        }
    };
}

pub(in crate::engine::cpu) use with_simd;

impl Vectors {
    /// Numbers that a vector holds.
    pub(in crate::engine::cpu) fn lanes(self) -> usize {
        fn numbers<L: Simd>(_: L) -> usize {
            L::LANES
        }
        with_simd!(self, simd => numbers(simd))
    }
}
