//! Loads rows of a picture as lines of 32-bit numbers, with a halo on both sides and, where alpha weights
//! colours, premultiplied.

use super::levels::PlaneLevels;
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::strip::Picture;
use crate::engine::cpu::simd::float::{FloatLoop, Samples};
use crate::engine::cpu::simd::levels::Levels;
use crate::filter::Border;
use half::f16;
use std::ops::Range;

/// The place of the alpha that colours of a plane are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alpha {
    /// This component of the colours' plane.
    Component(usize),
    /// This plane, which has alpha alone.
    Plane(usize),
}

/// Reads the rows of one plane.
pub(super) struct Reader<'a> {
    pub(super) picture: Picture<'a>,
    pub(super) plane: usize,
    pub(super) border: Border,
    /// The border's constant of each component.
    pub(super) outside: Vec<f32>,
    /// The place of alpha, if colours are multiplied by it.
    pub(super) alpha: Option<Alpha>,
    /// The conversion of integer samples; `None` for floating-point samples.
    pub(super) levels: Option<&'a PlaneLevels>,
}

/// Converts stored numbers of 16 or 32 bits.
#[inline(always)]
pub(super) fn numbers<S: Samples>(s: S, from: &[u8], to: &mut [f32]) {
    if from.len() == 4 * to.len() {
        for (to, from) in to.iter_mut().zip(from.as_chunks().0) {
            *to = f32::from_le_bytes(*from);
        }
        return;
    }
    let mut vectors = to.chunks_exact_mut(S::LANES);
    let mut halves = from.chunks_exact(2 * S::LANES);
    for (to, from) in vectors.by_ref().zip(halves.by_ref()) {
        s.store(s.of_halves(from), to);
    }
    let rest = halves.remainder().as_chunks().0;
    for (to, from) in vectors.into_remainder().iter_mut().zip(rest) {
        *to = f16::from_le_bytes(*from).to_f32();
    }
}

/// Multiplies the colours of pixels of `channels` components by alpha, which is component `place`.
#[inline(always)]
fn multiply_pixels(samples: &mut [f32], channels: usize, place: usize) {
    for pixel in samples.chunks_exact_mut(channels) {
        let alpha = pixel[place];
        for sample in pixel.iter_mut() {
            *sample *= alpha;
        }
        pixel[place] = alpha;
    }
}

impl Reader<'_> {
    /// Components of the plane.
    pub(super) fn channels(&self) -> usize {
        self.outside.len()
    }

    /// The stored bytes of pixels `pixels` of row `y` of a plane.
    #[inline(always)]
    pub(super) fn bytes(&self, plane: usize, y: usize, pixels: &Range<usize>) -> &[u8] {
        self.picture.pixels((plane, y), pixels)
    }

    /// Loads row `y`, inside or outside the picture, as a line.
    #[inline(always)]
    pub(super) fn line<S: Levels>(&self, s: S, y: i64, span: &Span, to: &mut [f32], alphas: &mut Vec<f32>) {
        let (channels, height) = (self.channels(), self.picture.layout.planes()[self.plane].height);
        let Some(y) = self.border.index(y, height) else {
            for pixel in to[..span.pixels * channels].chunks_exact_mut(channels) {
                pixel.copy_from_slice(&self.outside);
            }
            return;
        };
        let inside = span.lead * channels..(span.lead + span.inside.len()) * channels;
        s.enter(ReadPixels {
            reader: self,
            y,
            pixels: &span.inside,
            to: &mut to[inside],
            alphas,
        });
        for &(place, from) in &span.outside {
            let at = place * channels;
            match from {
                None => to[at..at + channels].copy_from_slice(&self.outside),
                Some(x) if span.inside.contains(&x) => {
                    let from = (span.lead + x - span.inside.start) * channels;
                    to.copy_within(from..from + channels, at);
                }
                Some(x) => s.enter(ReadPixels {
                    reader: self,
                    y,
                    pixels: &(x..x + 1),
                    to: &mut to[at..at + channels],
                    alphas,
                }),
            }
        }
    }
}

/// The loop that reads pixels of a row of the picture, premultiplied. It is entered by itself, so that it is
/// compiled once.
struct ReadPixels<'a, 'b> {
    reader: &'a Reader<'b>,
    y: usize,
    pixels: &'a Range<usize>,
    to: &'a mut [f32],
    /// Scratch memory.
    alphas: &'a mut Vec<f32>,
}

impl<S: Levels> FloatLoop<S> for ReadPixels<'_, '_> {
    #[inline(always)]
    fn run(self, s: S) {
        let ReadPixels {
            reader,
            y,
            pixels,
            to,
            alphas,
        } = self;
        if let Some(levels) = reader.levels {
            let alpha = match reader.alpha {
                Some(Alpha::Plane(plane)) => Some(reader.bytes(plane, y, pixels)),
                Some(Alpha::Component(_)) | None => None,
            };
            levels.read(s, reader.bytes(reader.plane, y, pixels), alpha, to);
            return;
        }
        numbers(s, reader.bytes(reader.plane, y, pixels), to);
        match (reader.alpha, reader.channels()) {
            (None, _) => {}
            (Some(Alpha::Component(place)), 4) => multiply_pixels(to, 4, place),
            (Some(Alpha::Component(place)), channels) => multiply_pixels(to, channels, place),
            (Some(Alpha::Plane(plane)), _) => {
                alphas.resize(pixels.len(), 0.0);
                numbers(s, reader.bytes(plane, y, pixels), alphas);
                for (colour, alpha) in to.iter_mut().zip(alphas) {
                    *colour *= *alpha;
                }
            }
        }
    }
}
