//! What is done to a frame: masks, borders, planes, and the integer plan that every engine carries out. Pure maths.

mod border;
mod grammar;
mod mask;
mod mask_file;
mod matrix;
mod named;
mod number;
mod plan;
mod planes;
mod quantise;
mod rank;

pub use border::{Border, UnknownBorder};
pub use grammar::{COMMON_KEYS, FilterError, Key, OWN_MASK, OWN_MASK_KEYS};
pub use mask::{Exact, MAX_MASK, Mask, MaskError};
pub use mask_file::{LineProblem, MaskFileError};
pub use named::{NAMED_MASKS, NamedMask, Parameter, Preset, Range as ParameterRange, named_mask};
pub use number::NumberError;
pub use plan::{
    AlphaUse, ChannelStep, Convolve, DirectKernel, Kernel, Pass, Plan, PlanError, SeparableKernel, Step,
};
pub use planes::{NoSuchPlane, Planes, Treatment, UnknownPlanes};
pub use quantise::{QuantiseError, Quantised, quantise};
pub use rank::{Factors, RANK_TOLERANCE, factors, rank};

use std::fmt;
use std::str::FromStr;

/// The largest magnitude of a bias.
pub const MAX_BIAS: f64 = 65535.0;

/// One link of a chain: a mask and what is added to its result.
#[derive(Debug, Clone, PartialEq)]
pub struct Filter {
    /// As the user wrote it.
    pub label: String,
    /// The weights.
    pub mask: Mask,
    /// Added to luma and RGB results (not to chroma or alpha), stated at 8 bits full scale and scaled to the depth.
    pub bias: f64,
    /// Where the mask is not quite what was asked for: a sentence.
    pub caveat: Option<String>,
}

/// How a mask is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// Separable where the mask allows it and it saves work, else direct. The choice depends on the mask and the depth
    /// alone, so that every engine makes the same one.
    #[default]
    Auto,
    /// The whole mask at each pixel, one rounding.
    Direct,
    /// A row pass and a column pass; for masks of rank 1 only.
    Separable,
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Algorithm::Auto => "auto",
            Algorithm::Direct => "direct",
            Algorithm::Separable => "separable",
        })
    }
}

/// A word that names no algorithm.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no algorithm; use auto, direct or separable")]
pub struct UnknownAlgorithm(pub String);

impl FromStr for Algorithm {
    type Err = UnknownAlgorithm;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "auto" => Ok(Algorithm::Auto),
            "direct" => Ok(Algorithm::Direct),
            "separable" => Ok(Algorithm::Separable),
            _ => Err(UnknownAlgorithm(word.to_owned())),
        }
    }
}

/// Filters in the order of their application, and what they share.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// At least one.
    pub filters: Vec<Filter>,
    /// What lies beyond the edges.
    pub border: Border,
    /// The components that are changed.
    pub planes: Planes,
    /// How the masks are applied.
    pub algorithm: Algorithm,
}
