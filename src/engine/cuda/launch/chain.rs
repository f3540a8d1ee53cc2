//! A chain ready to run on frames of one format, of integer or floating-point samples.

use super::float::FloatLaunchPlan;
use super::scratch::{Intermediates, Scratch, ScratchNeeds};
use super::{LaunchPlan, Request};
use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::Sequence;
use crate::engine::cuda::driver::pictures::picture::DevicePlanes;
use crate::filter::{Chain, FloatPlan, Plan};
use crate::frame::{Colour, Layout, PixelFormat, Plane};

/// A chain with its kernels compiled, loaded and given their weights.
pub(crate) enum ChainLaunch {
    Integer(LaunchPlan),
    Float(FloatLaunchPlan),
}

impl ChainLaunch {
    /// `chain` for frames of this format with these colour facts.
    pub(crate) fn new(
        chain: &Chain,
        format: PixelFormat,
        colour: &Colour,
        request: &Request<'_>,
    ) -> Result<ChainLaunch, EngineError> {
        Ok(match format.is_float() {
            true => {
                let plan = FloatPlan::new(chain, format, colour)?;
                ChainLaunch::Float(FloatLaunchPlan::new(plan, request)?)
            }
            false => ChainLaunch::Integer(LaunchPlan::new(Plan::new(chain, format, colour)?, request)?),
        })
    }

    /// Which intermediate pictures the steps need.
    pub(crate) fn scratch_needs(&self) -> ScratchNeeds {
        match self {
            ChainLaunch::Integer(plan) => ScratchNeeds {
                intermediate: plan.intermediates(),
                pyramids: plan.pyramids().collect(),
                weighted: false,
                sums: plan.has_weighted_sums(),
            },
            ChainLaunch::Float(plan) => ScratchNeeds {
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
            ChainLaunch::Integer(plan) => plan.step_count(),
            ChainLaunch::Float(plan) => plan.step_count(),
        }
    }

    /// Launches, copies and fills of a frame.
    pub(crate) fn launch_count(&self) -> usize {
        match self {
            ChainLaunch::Integer(plan) => plan.launch_count(),
            ChainLaunch::Float(plan) => plan.launch_count(),
        }
    }

    /// Threads of a block of the first kernel, across and down; `None` if no kernel convolves.
    pub(crate) fn block(&self) -> Option<(u32, u32)> {
        match self {
            ChainLaunch::Integer(plan) => plan.block(),
            ChainLaunch::Float(plan) => plan.block(),
        }
    }

    /// Samples of `planes` that all steps together convolve.
    pub(crate) fn convolved_samples(&self, planes: &[Plane]) -> u64 {
        match self {
            ChainLaunch::Integer(plan) => plan.plan.convolved_samples(planes),
            ChainLaunch::Float(plan) => plan.convolved_samples(planes),
        }
    }

    /// Enqueues step `index`: `source` is read, `result` is written, and they are not the same memory.
    pub(crate) fn run(
        &self,
        index: usize,
        layout: &Layout,
        source: &DevicePlanes,
        result: &DevicePlanes,
        scratch: &Scratch,
        sequence: &Sequence,
    ) -> Result<(), EngineError> {
        match self {
            ChainLaunch::Integer(plan) => plan.run(index, layout, source, result, scratch, sequence),
            ChainLaunch::Float(plan) => plan.run(index, layout, (source, result), scratch, sequence),
        }
    }
}
