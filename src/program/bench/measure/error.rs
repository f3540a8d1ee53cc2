//! Why a cell has no figures: it cannot be, or what was timed is wrong.

use crate::engine::EngineError;
use crate::filter::PlanError;
use crate::frame::{AllocationError, LayoutError};

/// Why a cell has no figures.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The engine refused or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The frames cannot be.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// There is no memory for them.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
    /// The timed engine computes something else.
    #[error(
        "{case}: {differences} of {samples} samples differ from the {other} engine's; what is timed must be \
         right, and this is a defect of framepipe or of this machine"
    )]
    Differs {
        /// The configuration.
        case: String,
        /// How many samples differ.
        differences: u64,
        /// How many were compared.
        samples: u64,
        /// The engine that it was compared with.
        other: &'static str,
    },
    /// The times are no numbers.
    #[error("{0}: the clock gave no times")]
    NoTimes(String),
}

impl From<PlanError> for BenchError {
    fn from(error: PlanError) -> Self {
        BenchError::Engine(error.into())
    }
}

impl BenchError {
    /// True if this one configuration cannot be (a block that the card cannot launch, a mask that is not
    /// separable), so that a sweep goes on.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            BenchError::Engine(EngineError::Unavailable(_) | EngineError::Unfit(_) | EngineError::Plan(_))
        )
    }
}
