//! The interface of all algorithms: a filter is prepared for one plane of a step, estimates its cost, and
//! filters strips of the plane.

use super::strip::{Picture, Strip};
use crate::engine::cpu::simd::Vectors;
use crate::engine::cpu::simd::scratch::Scratch;
use crate::filter::{ChannelStep, Step};
use crate::frame::{Layout, PixelFormat, Plane};
use std::fmt;

/// One plane's part of a step, and the vectors that may compute it.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct PlanePart<'a> {
    pub(in crate::engine::cpu) step: &'a Step,
    pub(in crate::engine::cpu) plane: usize,
    pub(in crate::engine::cpu) format: PixelFormat,
    /// The vectors of the instruction set; `None` for plain Rust.
    pub(in crate::engine::cpu) vectors: Option<Vectors>,
}

impl<'a> PlanePart<'a> {
    /// The step of each component of the plane.
    pub(in crate::engine::cpu) fn channels(&self) -> &'a [ChannelStep] {
        &self.step.planes[self.plane]
    }
}

/// An algorithm, prepared for one plane of a step.
pub(in crate::engine::cpu) trait PlaneFilter: Send + Sync {
    /// Prepares the algorithm for `part`; `None` if it cannot filter it. `before` is the same algorithm for
    /// an earlier plane of the step, whose tables may be shared.
    fn new(part: &PlanePart<'_>, before: Option<&Self>) -> Option<Self>
    where
        Self: Sized;

    /// Estimated cost of a plane of this size, in multiply-adds of two samples and two weights.
    fn cost(&self, plane: &Plane) -> f64;

    /// Rows of the result that the algorithm makes at once.
    fn rows_at_once(&self, _: &Plane) -> usize {
        2
    }

    /// How a plane of this size is filtered.
    fn plan(&self, plane: &Plane) -> AlgorithmPlan;

    /// Makes the rows of `strip` from the picture. `layout` is the layout of the result.
    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch);
}

/// How a plane is filtered, which `--explain` prints.
#[derive(PartialEq)]
pub(in crate::engine::cpu) struct AlgorithmPlan {
    /// The name of the algorithm.
    pub(in crate::engine::cpu) algorithm: &'static str,
    /// Its loops, in words.
    loops: String,
}

impl AlgorithmPlan {
    /// Nothing is convolved in the plane.
    pub(in crate::engine::cpu) const UNFILTERED: AlgorithmPlan = AlgorithmPlan {
        algorithm: "copied or filled",
        loops: String::new(),
    };

    pub(in crate::engine::cpu) fn new(algorithm: &'static str, loops: impl fmt::Display) -> AlgorithmPlan {
        AlgorithmPlan {
            algorithm,
            loops: loops.to_string(),
        }
    }
}

impl fmt::Display for AlgorithmPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.loops[..] {
            "" => f.write_str(self.algorithm),
            loops => write!(f, "{}: {loops}", self.algorithm),
        }
    }
}

/// Number of samples of a plane.
pub(in crate::engine::cpu) fn samples(plane: &Plane) -> f64 {
    (plane.width * plane.height * plane.channels) as f64
}

/// Explains a step, one line for all planes with the same plan; `planes` has the plan of each.
pub(in crate::engine::cpu) fn explained(
    format: PixelFormat,
    (columns, rows): (usize, usize),
    planes: impl Iterator<Item = AlgorithmPlan>,
) -> Vec<String> {
    let mut plans: Vec<(AlgorithmPlan, Vec<String>)> = Vec::new();
    for (plane, plan) in planes.enumerate() {
        let plane = plane.to_string();
        match plans.iter_mut().find(|(known, _)| *known == plan) {
            Some((_, planes)) => planes.push(plane),
            None => plans.push((plan, vec![plane])),
        }
    }
    let line = |(plan, planes): (AlgorithmPlan, Vec<String>)| {
        let noun = if planes.len() == 1 { "plane" } else { "planes" };
        let planes = planes.join(", ");
        format!("{format}, {columns}x{rows} mask, {noun} {planes}: {plan}")
    };
    plans.into_iter().map(line).collect()
}
