//! The interface of all algorithms: a filter is prepared for one plane of a step, estimates its cost, and
//! filters strips of the plane.

use super::strip::{Picture, Strip};
use crate::engine::cpu::simd::Vectors;
use crate::engine::cpu::simd::scratch::Scratch;
use crate::filter::{ChannelStep, Step};
use crate::frame::{Layout, PixelFormat, Plane};

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

    /// Describes in one line how a plane of this size is filtered.
    fn plan(&self, plane: &Plane) -> String;

    /// Makes the rows of `strip` from the picture. `layout` is the layout of the result.
    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch);
}

/// Number of samples of a plane.
pub(in crate::engine::cpu) fn samples(plane: &Plane) -> f64 {
    (plane.width * plane.height * plane.channels) as f64
}

/// Explains a step, one line for all planes with the same plan; `planes` has the plan of each.
pub(in crate::engine::cpu) fn explained(
    format: PixelFormat,
    (columns, rows): (usize, usize),
    planes: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut ways: Vec<(String, Vec<String>)> = Vec::new();
    for (plane, way) in planes.enumerate() {
        let plane = plane.to_string();
        match ways.iter_mut().find(|(known, _)| *known == way) {
            Some((_, planes)) => planes.push(plane),
            None => ways.push((way, vec![plane])),
        }
    }
    let line = |(way, planes): (String, Vec<String>)| {
        let noun = if planes.len() == 1 { "plane" } else { "planes" };
        let planes = planes.join(", ");
        format!("{format}, {columns}x{rows} mask, {noun} {planes}: {way}")
    };
    ways.into_iter().map(line).collect()
}
