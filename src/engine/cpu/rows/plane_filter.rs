//! The interface of all algorithms: a filter that is ready for one plane of a step, states its cost, and
//! makes strips of the plane.

use super::strip::{Picture, Strip};
use crate::engine::cpu::simd::Vectors;
use crate::engine::cpu::simd::scratch::Scratch;
use crate::filter::{ChannelStep, Step};
use crate::frame::{Layout, PixelFormat, Plane};

/// One plane's part of a step, and what may make it.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct PlanePart<'a> {
    pub(in crate::engine::cpu) step: &'a Step,
    pub(in crate::engine::cpu) plane: usize,
    pub(in crate::engine::cpu) format: PixelFormat,
    /// The vectors of the instruction set, if it has any.
    pub(in crate::engine::cpu) vectors: Option<Vectors>,
}

impl<'a> PlanePart<'a> {
    /// What happens to each component of the plane.
    pub(in crate::engine::cpu) fn channels(&self) -> &'a [ChannelStep] {
        &self.step.planes[self.plane]
    }
}

/// An algorithm, ready for one plane of a step.
pub(in crate::engine::cpu) trait PlaneFilter: Send + Sync {
    /// Ready for `part`; `None` if the algorithm cannot make it. `before` is what it is for a plane before
    /// this one of the same step, whose tables may serve both.
    fn new(part: &PlanePart<'_>, before: Option<&Self>) -> Option<Self>
    where
        Self: Sized;

    /// What a plane of this size takes, in multiply-adds of two samples and two weights each.
    fn cost(&self, plane: &Plane) -> f64;

    /// Rows of the result that are made at once.
    fn rows_at_once(&self, _: &Plane) -> usize {
        2
    }

    /// How a plane of this size is made, in one line.
    fn plan(&self, plane: &Plane) -> String;

    /// Makes the strip's rows from the picture; `layout` is that of the result.
    fn filter(&self, picture: Picture<'_>, layout: &Layout, strip: &mut Strip<'_>, scratch: &mut Scratch);
}

/// Samples of a plane.
pub(in crate::engine::cpu) fn samples(plane: &Plane) -> f64 {
    (plane.width * plane.height * plane.channels) as f64
}

/// How a step makes its planes, a line for all that are made in the same way.
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
