//! Some columns of a strip: where its lines come from, and how its sums become rows of the result.

use super::FloatFilter;
use super::finish::{Row, needs_before};
use super::lines::{Alpha, Reader, numbers};
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sums::fused::ROWS;
use crate::engine::cpu::simd::float::FloatLoop;
use crate::engine::cpu::simd::levels::Levels;
use crate::engine::cpu::simd::scratch::room;
use crate::filter::FloatConvolve;
use crate::frame::{Channel, Layout};
use std::ops::Range;

/// Scratch memory of a thread, whatever the sums are made from.
#[derive(Default)]
pub(super) struct PartMemory {
    /// The start values of sums for a row, and as many zeros.
    pub(super) starts: Vec<f32>,
    pub(super) work: FinishMemory,
}

/// Scratch memory for requantizing sums.
#[derive(Default)]
pub(super) struct FinishMemory {
    /// The samples of a row before the step.
    before: Vec<f32>,
    /// The alphas of a row.
    pub(super) alphas: Vec<f32>,
    /// The convolved alpha of a strip's rows, if it has a plane of its own.
    convolved: Vec<f32>,
}

/// Scratch memory for rows that are read and stored in place.
#[derive(Default)]
pub(super) struct InPlaceMemory {
    /// The start values of sums.
    pub(super) starts: Vec<f32>,
    /// A row of the border's constant.
    pub(super) outside: Vec<f32>,
    /// The lines of a separable mask.
    pub(super) ring: Vec<f32>,
    /// Output rows that the strip does not have.
    pub(super) spare: Vec<f32>,
    pub(super) edges: EdgeMemory,
}

/// Scratch memory for columns at the sides of the middle.
#[derive(Default)]
pub(super) struct EdgeMemory {
    /// The lines of the columns at one side.
    pub(super) lines: Vec<f32>,
    /// What a line becomes, or a vector of each output row.
    pub(super) sums: Vec<f32>,
}

/// Some columns of a strip.
pub(super) struct Part<'a> {
    pub(super) filter: &'a FloatFilter,
    pub(super) reader: Reader<'a>,
    /// The place of the alpha that colours are divided by.
    alpha: Option<Alpha>,
    /// True if this is alpha's own plane, by which the colours of other planes are divided.
    is_alpha: bool,
    pub(super) columns: Range<usize>,
    pub(super) span: Span,
    /// Rows of the plane.
    pub(super) height: usize,
    /// The first row of the strip.
    pub(super) first_row: usize,
}

impl<'a> Part<'a> {
    /// The part of the strip in `columns`, which reads `halo` pixels more on both sides.
    pub(super) fn new(
        filter: &'a FloatFilter,
        picture: Picture<'a>,
        strip: &Strip<'_>,
        (columns, halo): (Range<usize>, usize),
    ) -> Part<'a> {
        let geometry = picture.layout.planes()[strip.plane];
        let channels = &filter.step.planes[strip.plane];
        let alpha_plane = filter.alpha_plane();
        let is_alpha = alpha_plane == Some(strip.plane);
        let alpha = filter.step.alpha.and(filter.format.place(Channel::Alpha));
        let alpha = alpha
            .filter(|_| !is_alpha)
            .map(|(plane, component)| match alpha_plane {
                Some(_) => Alpha::Plane(plane),
                None => Alpha::Component(component),
            });
        let outside = channels.iter().map(|c| c.convolved().map_or(0.0, |c| c.border));
        let border = filter.step.border;
        Part {
            filter,
            alpha,
            is_alpha,
            span: Span::around(&columns, halo, geometry.width, border),
            reader: Reader {
                picture,
                plane: strip.plane,
                border,
                outside: outside.collect(),
                alpha,
                levels: filter.levels.as_ref().map(|levels| &levels[strip.plane]),
            },
            columns,
            height: geometry.height,
            first_row: strip.first_row,
        }
    }

    /// Stores the biases of the samples of a row, the start values of single sums.
    pub(super) fn starts(&self, to: &mut [f32]) {
        let channels = &self.filter.step.planes[self.reader.plane];
        for pixel in to.chunks_mut(channels.len()) {
            for (start, what) in pixel.iter_mut().zip(channels) {
                *start = what.convolved().map_or(0.0, |c: &FloatConvolve| c.bias);
            }
        }
    }

    /// Requantizes and writes the rows of the strip from row `k` on, at most [`ROWS`]. `made` has their sums,
    /// of which `samples` of each row are used.
    #[inline(always)]
    pub(super) fn finish<S: Levels>(
        &self,
        s: S,
        layout: &Layout,
        strip: &mut Strip<'_>,
        k: usize,
        (made, samples): (&mut [f32], usize),
        memory: &mut FinishMemory,
    ) {
        let rows = made.chunks_exact_mut(made.len() / ROWS);
        for (r, sums) in rows.take(strip.rows - k).enumerate() {
            s.enter(FinishRow {
                part: self,
                layout,
                strip,
                k: k + r,
                sums: (sums, samples),
                memory,
            });
        }
    }
}

/// The loop that writes row `k` of the strip. It is entered by itself, so that it is compiled once.
struct FinishRow<'a, 'b, 'c> {
    part: &'a Part<'b>,
    layout: &'a Layout,
    strip: &'a mut Strip<'c>,
    k: usize,
    /// The row's sums, up to a multiple of a vector, and the number of samples.
    sums: (&'a mut [f32], usize),
    memory: &'a mut FinishMemory,
}

impl<S: Levels> FloatLoop<S> for FinishRow<'_, '_, '_> {
    #[inline(always)]
    fn run(self, s: S) {
        let FinishRow {
            part,
            layout,
            strip,
            k,
            sums: (all_sums, samples),
            memory,
        } = self;
        let FinishMemory {
            before,
            alphas,
            convolved,
        } = memory;
        let (step, plane, y) = (&part.filter.step, part.reader.plane, part.first_row + k);
        let geometry = layout.planes()[plane];
        let stored = part.reader.bytes(plane, y, &part.columns);
        let bytes = part.filter.format.bytes_per_sample();
        let start = k * geometry.stride + part.columns.start * geometry.channels * bytes;
        let to = &mut strip.bytes[start..start + stored.len()];
        let sums = &mut all_sums[..samples];
        let own = k * geometry.width + part.columns.start..k * geometry.width + part.columns.end;
        if part.is_alpha {
            let divisors = &mut room(convolved, own.end)[own.clone()];
            divisors.copy_from_slice(sums);
            if let Some(levels) = part.reader.levels {
                levels.divisors(divisors);
            }
        }
        let by: Option<&[f32]> = match part.alpha {
            Some(Alpha::Plane(alpha)) if part.filter.is_convolved(alpha) => Some(&convolved[own]),
            Some(Alpha::Plane(alpha)) => {
                let stored = part.reader.bytes(alpha, y, &part.columns);
                let alphas = room(alphas, samples);
                match &part.filter.levels {
                    Some(levels) => levels[alpha].read(s, stored, None, alphas),
                    None => numbers(s, stored, alphas),
                }
                Some(alphas)
            }
            Some(Alpha::Component(_)) | None => None,
        };
        if let Some(levels) = part.reader.levels {
            levels.finish(s, all_sums, by, (stored, to));
            return;
        }
        let before = room(before, samples);
        if needs_before(step) {
            numbers(s, stored, before);
        }
        let filters_alpha = step.alpha.is_some_and(|alpha| alpha.filter_alpha);
        if part.is_alpha && !filters_alpha {
            sums.copy_from_slice(before);
        }
        let row = Row {
            step,
            channels: &step.planes[plane],
            bytes,
            alpha: part.alpha,
            stored,
            before,
            by: by.unwrap_or_default(),
        };
        row.finish(s, sums, to);
    }
}
