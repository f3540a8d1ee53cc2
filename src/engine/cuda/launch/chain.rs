//! A chain ready to run on frames of one format, whatever its samples are.

use super::float::FloatLaunchPlan;
use super::scratch::Scratch;
use super::{LaunchPlan, Request};
use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::Sequence;
use crate::engine::cuda::driver::picture::DevicePlanes;
use crate::filter::{Chain, FloatPlan, Plan, PyramidGrid};
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

    /// True if some step has an intermediate of 32 bits (`wide`) or of 16.
    pub(crate) fn has_intermediate(&self, wide: bool) -> bool {
        match self {
            ChainLaunch::Integer(plan) => plan.has_intermediate(wide),
            ChainLaunch::Float(plan) => wide && plan.has_intermediate(),
        }
    }

    /// True if some step multiplies floating-point colour by alpha into numbers of 32 bits.
    pub(crate) fn weights_numbers(&self) -> bool {
        match self {
            ChainLaunch::Integer(_) => false,
            ChainLaunch::Float(plan) => plan.uses_alpha(),
        }
    }

    /// True if some step makes sums of colour under alpha that a later launch divides.
    pub(crate) fn has_weighted_sums(&self) -> bool {
        match self {
            ChainLaunch::Integer(plan) => plan.has_weighted_sums(),
            ChainLaunch::Float(plan) => plan.uses_alpha(),
        }
    }

    /// Numbers of 32 bits in a row, and rows, that hold what any pass of a Gaussian that fits no mask makes
    /// of a plane; `None` if no step is one.
    pub(crate) fn numbers(&self, plane: &Plane) -> Option<(usize, usize)> {
        let size = |grid: PyramidGrid| {
            let pixels = plane.width.max(grid.decimated(plane.width));
            (pixels * plane.channels, grid.decimated(plane.height))
        };
        let larger = |a: (usize, usize), b: (usize, usize)| (a.0.max(b.0), a.1.max(b.1));
        match self {
            ChainLaunch::Integer(plan) => plan.pyramids().map(size).reduce(larger),
            ChainLaunch::Float(plan) => plan.pyramids().map(size).reduce(larger),
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

    /// Samples of such planes that all steps together convolve.
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
