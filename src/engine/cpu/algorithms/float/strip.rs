//! The rows of a strip: loads the lines that each four output rows read, computes the sums, and requantizes
//! them.

use super::finish::{Row, combine, needs_before};
use super::lines::{Alpha, Reader, numbers};
use super::pyramid::PyramidMemory;
use super::{FloatFilter, FloatLoops, Masks};
use crate::engine::cpu::rows::span::Span;
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::rows::sums::fused::{Lines, Next, ROWS, along_row, sums};
use crate::engine::cpu::simd::float::FloatLoop;
use crate::engine::cpu::simd::levels::Levels;
use crate::engine::cpu::simd::scratch::{aligned, room, spread};
use crate::filter::FloatConvolve;
use crate::frame::{Channel, Layout};
use std::ops::Range;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct FloatScratch {
    ring: Ring,
    /// A line before its row pass.
    line: Vec<f32>,
    /// The start values of sums for a row, and as many zeros.
    pub(super) starts: Vec<f32>,
    sums: Vec<f32>,
    pub(super) work: FinishMemory,
    pub(super) pyramid: PyramidMemory,
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

/// The loaded lines, each in a slot.
#[derive(Default)]
struct Ring {
    memory: Vec<f32>,
    /// The number of the line in each slot, counted from 1; 0 if it is empty.
    held: Vec<usize>,
    /// Indices of the lines of the next output rows.
    places: Vec<usize>,
}

/// The loop that filters the strips of one group (see [`FloatFilter::together`]).
pub(super) struct StripWork<'a> {
    pub(super) filter: &'a FloatFilter,
    pub(super) picture: Picture<'a>,
    /// The layout of the result.
    pub(super) layout: &'a Layout,
    /// Alpha first.
    pub(super) strips: Vec<Strip<'a>>,
    pub(super) memory: &'a mut FloatScratch,
}

impl<S: Levels> FloatLoop<S> for StripWork<'_> {
    #[inline(always)]
    fn run(self, s: S) {
        let StripWork {
            filter,
            picture,
            layout,
            strips,
            memory,
        } = self;
        for mut strip in strips {
            if !filter.is_convolved(strip.plane) {
                strip.each_row(layout, |at, row| {
                    let before = picture.row(at.plane, at.row);
                    match &filter.levels {
                        Some(levels) => levels[at.plane].copy_or_fill(before, row),
                        None => row.copy_from_slice(before),
                    }
                });
                continue;
            }
            let geometry = layout.planes()[strip.plane];
            match &filter.loops {
                FloatLoops::Masks(masks) => {
                    let pixels = masks.band(&geometry);
                    let mut first = 0;
                    while first < geometry.width {
                        let band = first..(first + pixels).min(geometry.width);
                        first = band.end;
                        let part = Part::new(filter, picture, &strip, (band, masks.size.0 / 2));
                        part.make(s, masks, layout, &mut strip, memory);
                    }
                }
                FloatLoops::Pyramid(pyramid) => {
                    let part = Part::new(filter, picture, &strip, (0..geometry.width, 0));
                    part.make_pyramid(s, pyramid, layout, &mut strip, memory);
                }
            }
            if let Some(threshold) = &filter.threshold {
                threshold.apply(picture, layout, &mut strip);
            }
        }
    }
}

/// A band of columns of a strip.
pub(super) struct Part<'a> {
    pub(super) filter: &'a FloatFilter,
    pub(super) reader: Reader<'a>,
    /// The place of the alpha that colours are divided by.
    alpha: Option<Alpha>,
    /// True if this is alpha's own plane, by which the colours of other planes are divided.
    is_alpha: bool,
    band: Range<usize>,
    pub(super) span: Span,
    /// Rows of the plane.
    height: usize,
    /// The first row of the strip.
    pub(super) first_row: usize,
}

impl<'a> Part<'a> {
    /// The part of the strip in `band`, which reads `halo` pixels more on both sides.
    fn new(
        filter: &'a FloatFilter,
        picture: Picture<'a>,
        strip: &Strip<'_>,
        (band, halo): (Range<usize>, usize),
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
            span: Span::around(&band, halo, geometry.width, border),
            reader: Reader {
                picture,
                plane: strip.plane,
                border,
                outside: outside.collect(),
                alpha,
                levels: filter.levels.as_ref().map(|levels| &levels[strip.plane]),
            },
            band,
            height: geometry.height,
            first_row: strip.first_row,
        }
    }

    /// Stores the biases of the band's samples, the start values of single sums.
    pub(super) fn starts(&self, to: &mut [f32]) {
        let channels = &self.filter.step.planes[self.reader.plane];
        for pixel in to.chunks_mut(channels.len()) {
            for (start, what) in pixel.iter_mut().zip(channels) {
                *start = what.convolved().map_or(0.0, |c: &FloatConvolve| c.bias);
            }
        }
    }

    /// Makes this band in all rows of the strip.
    #[inline(always)]
    fn make<S: Levels>(
        &self,
        s: S,
        kernel: &Masks,
        layout: &Layout,
        strip: &mut Strip<'_>,
        memory: &mut FloatScratch,
    ) {
        let channels = self.reader.channels();
        let samples = self.band.len() * channels;
        let len = samples.next_multiple_of(S::LANES);
        let halo = 2 * (kernel.size.0 / 2) * channels;
        let starts = room(&mut memory.starts, 2 * len);
        self.starts(&mut starts[..samples]);
        starts[samples..].fill(0.0);
        let (biases, zeros) = starts.split_at(len);
        let all_sums = aligned(&mut memory.sums, kernel.masks.len() * ROWS * len);
        let line = aligned(&mut memory.line, len + halo);
        let pitch = spread(if kernel.row.is_some() { len } else { len + halo });
        // If the picture has fewer rows than the mask, the ring holds all of them, and each is read once.
        let is_whole = self.height + 1 < kernel.lines();
        let slots = if is_whole { self.height + 1 } else { kernel.lines() };
        let ring = &mut memory.ring;
        let lines = aligned(&mut ring.memory, slots * pitch);
        ring.held.clear();
        ring.held.resize(slots, 0);
        let top = self.first_row as i64 - (kernel.size.1 / 2) as i64;
        for k in (0..strip.rows).step_by(ROWS) {
            ring.places.clear();
            for j in k..k + kernel.lines() {
                let y = top + j as i64;
                let number = if is_whole {
                    self.reader.border.index(y, self.height).unwrap_or(self.height)
                } else {
                    j
                };
                let slot = number % slots;
                ring.places.push(slot * pitch);
                if ring.held[slot] == number + 1 {
                    continue;
                }
                ring.held[slot] = number + 1;
                let to = &mut lines[slot * pitch..][..pitch];
                match &kernel.row {
                    None => self.reader.line(s, y, &self.span, to, &mut memory.work.alphas),
                    Some(row) => {
                        self.reader.line(s, y, &self.span, line, &mut memory.work.alphas);
                        along_row(s, (row, 0.0), line, channels, &mut to[..len], |sums| sums);
                    }
                }
            }
            let read = Lines {
                memory: lines,
                places: &ring.places,
                step: channels,
            };
            let starts = if kernel.combining.is_some() { zeros } else { biases };
            let mut next = Next::of(
                self.reader.picture,
                (layout, strip),
                (k + ROWS, kernel.size.1 / 2),
                &self.band,
            );
            for (taps, sums_of) in kernel.masks.iter().zip(all_sums.chunks_exact_mut(ROWS * len)) {
                sums(s, taps, read, (starts, next), sums_of);
                next.rows = [&[]; 2 * ROWS];
            }
            if let Some(combining) = kernel.combining {
                combine(combining, all_sums, ROWS * len, biases);
            }
            let made = (&mut all_sums[..ROWS * len], samples);
            self.finish(s, layout, strip, k, made, &mut memory.work);
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
        let stored = part.reader.bytes(plane, y, &part.band);
        let bytes = part.filter.format.bytes_per_sample();
        let start = k * geometry.stride + part.band.start * geometry.channels * bytes;
        let to = &mut strip.bytes[start..start + stored.len()];
        let sums = &mut all_sums[..samples];
        let own = k * geometry.width + part.band.start..k * geometry.width + part.band.end;
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
                let stored = part.reader.bytes(alpha, y, &part.band);
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
