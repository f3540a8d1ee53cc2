//! A chain ready to run on frames of one format, of integer or floating-point samples: what engines hold, so
//! that they need not know which of both it is.

use super::float::FloatLaunchPlan;
use super::scratch::{Intermediates, ScratchNeeds};
use super::{IntegerLaunchPlan, Request, StepBuffers};
use crate::engine::EngineError;
use crate::filter::{Chain, FloatPlan, Plan};
use crate::frame::{Colour, PixelFormat, Plane};

/// A chain with its kernels compiled, loaded and given their weights.
pub(crate) enum LaunchPlan {
    Integer(IntegerLaunchPlan),
    Float(FloatLaunchPlan),
}

impl LaunchPlan {
    /// `chain` for frames of this format with these colour facts.
    pub(crate) fn new(
        chain: &Chain,
        format: PixelFormat,
        colour: &Colour,
        request: &Request<'_>,
    ) -> Result<LaunchPlan, EngineError> {
        Ok(match format.is_float() {
            true => {
                let plan = FloatPlan::new(chain, format, colour)?;
                LaunchPlan::Float(FloatLaunchPlan::new(plan, request)?)
            }
            false => LaunchPlan::Integer(IntegerLaunchPlan::new(
                Plan::new(chain, format, colour)?,
                request,
            )?),
        })
    }

    /// Which intermediate pictures the steps need.
    pub(crate) fn scratch_needs(&self) -> ScratchNeeds {
        match self {
            LaunchPlan::Integer(plan) => ScratchNeeds {
                intermediate: plan.intermediates(),
                pyramids: plan.pyramids().collect(),
                weighted: false,
                sums: plan.has_weighted_sums(),
            },
            LaunchPlan::Float(plan) => ScratchNeeds {
                intermediate: Intermediates {
                    narrow: false,
                    wide: plan.has_intermediate(),
                },
                pyramids: plan.pyramids().collect(),
                weighted: plan.uses_alpha(),
                sums: plan.uses_alpha(),
            },
        }
    }

    /// How often a picture is written.
    pub(crate) fn step_count(&self) -> usize {
        match self {
            LaunchPlan::Integer(plan) => plan.step_count(),
            LaunchPlan::Float(plan) => plan.step_count(),
        }
    }

    /// Launches, copies and fills of a frame.
    pub(crate) fn launch_count(&self) -> usize {
        match self {
            LaunchPlan::Integer(plan) => plan.launch_count(),
            LaunchPlan::Float(plan) => plan.launch_count(),
        }
    }

    /// Threads of a block of the first kernel, across and down; `None` if no kernel convolves.
    pub(crate) fn block(&self) -> Option<(u32, u32)> {
        match self {
            LaunchPlan::Integer(plan) => plan.block(),
            LaunchPlan::Float(plan) => plan.block(),
        }
    }

    /// Samples of `planes` that all steps together convolve.
    pub(crate) fn convolved_samples(&self, planes: &[Plane]) -> u64 {
        match self {
            LaunchPlan::Integer(plan) => plan.plan.convolved_samples(planes),
            LaunchPlan::Float(plan) => plan.convolved_samples(planes),
        }
    }

    /// Enqueues step `index`.
    pub(crate) fn run(&self, index: usize, buffers: &StepBuffers<'_>) -> Result<(), EngineError> {
        match self {
            LaunchPlan::Integer(plan) => plan.run(index, buffers),
            LaunchPlan::Float(plan) => plan.run(index, buffers),
        }
    }
}
