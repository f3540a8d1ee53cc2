//! The memory variants and their names: where a kernel keeps weights and pixels, as `--memory` says it.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where a CUDA kernel keeps weights and pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryVariant {
    /// The fastest for the card, the mask, the format and the size, by a table of times.
    #[default]
    Auto,
    /// Weights in global memory through the read-only path, pixels in global memory.
    Global,
    /// Weights in constant memory, pixels in global memory.
    Constant,
    /// Weights in global memory through the read-only path, pixels in a shared tile with its halo.
    Shared,
    /// Weights in constant memory, pixels in a shared tile with its halo.
    ConstantShared,
    /// Weights in constant memory, pixels through a texture object, clamped by the hardware where the border
    /// allows.
    Texture,
    /// Weights in constant memory or compiled in, pixels in a shared tile, from which each thread keeps what
    /// it read in registers for several rows.
    Registers,
    /// Weights in registers as bands of bytes, pixels in a shared tile, multiplied by tensor cores; where
    /// they cannot, as [`MemoryVariant::Auto`] without them.
    Tensor,
}

impl MemoryVariant {
    /// Every variant, `auto` first.
    pub const ALL: [MemoryVariant; 8] = [
        MemoryVariant::Auto,
        MemoryVariant::Global,
        MemoryVariant::Constant,
        MemoryVariant::Shared,
        MemoryVariant::ConstantShared,
        MemoryVariant::Texture,
        MemoryVariant::Registers,
        MemoryVariant::Tensor,
    ];

    /// The variants that `auto` chooses among, beside tensor cores. Not `texture`, which wants rows aligned
    /// and has never won.
    pub(crate) const SCALAR: [MemoryVariant; 5] = [
        MemoryVariant::Registers,
        MemoryVariant::ConstantShared,
        MemoryVariant::Shared,
        MemoryVariant::Constant,
        MemoryVariant::Global,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryVariant::Auto => "auto",
            MemoryVariant::Global => "global",
            MemoryVariant::Constant => "constant",
            MemoryVariant::Shared => "shared",
            MemoryVariant::ConstantShared => "constant-shared",
            MemoryVariant::Texture => "texture",
            MemoryVariant::Registers => "registers",
            MemoryVariant::Tensor => "tensor",
        }
    }

    /// What it does, in one line.
    pub fn about(self) -> &'static str {
        match self {
            MemoryVariant::Auto => {
                "The fastest by the card's table: measured here (framepipe bench tune), built in, or a rule"
            }
            MemoryVariant::Global => "Weights and pixels in global memory",
            MemoryVariant::Constant => "Weights in constant memory, pixels in global memory",
            MemoryVariant::Shared => "Weights in global memory, pixels in a shared tile",
            MemoryVariant::ConstantShared => "Weights in constant memory, pixels in a shared tile",
            MemoryVariant::Texture => "Weights in constant memory, pixels in a texture",
            MemoryVariant::Registers => {
                "Weights in constant memory, pixels in a shared tile, several rows a thread from registers"
            }
            MemoryVariant::Tensor => {
                "Weights in registers, pixels in a shared tile, multiplied by tensor cores"
            }
        }
    }

    /// True if the weights lie in constant memory.
    pub(crate) fn has_constant_weights(self) -> bool {
        !matches!(self, MemoryVariant::Global | MemoryVariant::Shared)
    }

    pub(crate) fn pixels(self) -> Pixels {
        match self {
            MemoryVariant::Global | MemoryVariant::Constant => Pixels::Global,
            MemoryVariant::Auto
            | MemoryVariant::Shared
            | MemoryVariant::ConstantShared
            | MemoryVariant::Registers
            | MemoryVariant::Tensor => Pixels::Shared,
            MemoryVariant::Texture => Pixels::Texture,
        }
    }

    /// True if the table decides what runs.
    pub(crate) fn is_chosen(self) -> bool {
        matches!(self, MemoryVariant::Auto | MemoryVariant::Tensor)
    }
}

/// The parameter PIXELS, as `kernels/common/enums.cuh` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pixels {
    Global = 0,
    Shared = 1,
    Texture = 2,
}

impl fmt::Display for MemoryVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no memory variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no memory variant; use auto, global, constant, shared, constant-shared, texture, registers or \
     tensor"
)]
pub struct UnknownMemoryVariant(pub String);

impl FromStr for MemoryVariant {
    type Err = UnknownMemoryVariant;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = MemoryVariant::ALL.into_iter();
        all.find(|v| v.name() == word)
            .ok_or_else(|| UnknownMemoryVariant(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for variant in MemoryVariant::ALL {
            assert_eq!(variant.name().parse(), Ok(variant));
        }
        assert!("cached".parse::<MemoryVariant>().is_err());
    }

    #[test]
    fn pixels_have_the_numbers_that_kernels_know_them_by() {
        let text = include_str!("../../../../kernels/common/enums.cuh");
        for (name, pixels) in [
            ("GLOBAL", Pixels::Global),
            ("TILE", Pixels::Shared),
            ("TEXTURE", Pixels::Texture),
        ] {
            let line = format!("#define {name}_PIXELS {} ", pixels as i64);
            assert!(text.contains(&line), "{line}");
        }
    }
}
