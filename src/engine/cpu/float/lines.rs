//! Rows of a picture as lines of 32-bit numbers: with a halo on both sides, as the border says, and colours
//! times alpha where a step has it.

use super::levels::PlaneLevels;
use crate::engine::cpu::rows::span::Span;
use crate::engine::cpu::rows::strip::Picture;
use crate::engine::cpu::simd::float::{Samples, Work};
use crate::engine::cpu::simd::levels::Levels;
use crate::filter::Border;
use half::f16;
use std::ops::Range;

/// Where the alpha lies that colours of a plane are multiplied by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alpha {
    /// Among the plane's components.
    Component(usize),
    /// In a plane of its own.
    Plane(usize),
}

/// Reads the rows of one plane.
pub(super) struct Reader<'a> {
    pub(super) picture: Picture<'a>,
    pub(super) plane: usize,
    pub(super) border: Border,
    /// What lies outside of each component, where the border holds a constant.
    pub(super) outside: Vec<f32>,
    /// What colours are multiplied by.
    pub(super) alpha: Option<Alpha>,
    /// How levels become numbers, where samples are integers.
    pub(super) levels: Option<&'a PlaneLevels>,
}

/// Numbers of 16 or 32 bits, as they are stored.
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

/// Colours of pixels of so many components times alpha, which is one of them.
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
    pub(super) fn channels(&self) -> usize {
        self.outside.len()
    }

    /// The bytes of some pixels of a row of a plane.
    #[inline(always)]
    pub(super) fn bytes(&self, plane: usize, y: usize, pixels: &Range<usize>) -> &[u8] {
        self.picture.pixels((plane, y), pixels)
    }

    /// The line of row `y`, which may lie outside of the picture.
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

/// Reads some pixels of a row of the picture, colours times alpha. Entered by itself, so that it is compiled
/// once.
struct ReadPixels<'a, 'b> {
    reader: &'a Reader<'b>,
    y: usize,
    pixels: &'a Range<usize>,
    to: &'a mut [f32],
    /// To work in.
    alphas: &'a mut Vec<f32>,
}

impl<S: Levels> Work<S> for ReadPixels<'_, '_> {
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
