//! Why a chain has no plan.

use super::integer::quantise::QuantiseError;
use crate::filter::NoSuchPlane;
use crate::frame::PixelFormat;

/// The chain cannot be applied to frames of this format.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PlanError {
    /// There is nothing to apply.
    #[error("a chain needs at least one filter")]
    Empty,
    /// The weights are too large.
    #[error("filter '{label}': {cause}")]
    Quantise {
        /// The filter as the user wrote it.
        label: String,
        /// Which limit.
        #[source]
        cause: QuantiseError,
    },
    /// A separable pass was requested, and the mask is not of rank 1.
    #[error(
        "filter '{label}': the mask is not separable (its rank is {rank}); use --algorithm auto or direct"
    )]
    NotSeparable {
        /// The filter as the user wrote it.
        label: String,
        /// The mask's rank.
        rank: usize,
    },
    /// A separable pass was requested of what is no single mask.
    #[error(
        "filter '{label}': separable passes make the sums of one mask, and what this filter makes of sums \
         needs whole masks; use --algorithm auto or direct"
    )]
    WholeMasks {
        /// The filter as the user wrote it.
        label: String,
    },
    /// One way of applying masks was requested for what is made without one.
    #[error(
        "filter '{label}': a Gaussian that wide fits no mask and is made of a smaller picture; use \
         --algorithm auto, or give it a size"
    )]
    NoMask {
        /// The filter as the user wrote it.
        label: String,
    },
    /// A weight is no number of 32 bits.
    #[error(
        "filter '{label}': a weight is beyond 3.4e38, the largest number of the floating-point samples that \
         it is for"
    )]
    BeyondFloat {
        /// The filter as the user wrote it.
        label: String,
    },
    /// Integers cannot describe what is done to floating-point samples.
    #[error("{0} holds floating-point samples, which have a plan of their own")]
    FloatSamples(PixelFormat),
    /// The format lacks a component.
    #[error(transparent)]
    NoSuchPlane(#[from] NoSuchPlane),
}
