//! Strips of 3x3 masks on bytes that mirror themselves both ways: Gaussians, sharpening, Laplacians, disks.
//!
//! The first and the last sample of a row weigh the same, and so do the first row and the last one. So a row of the picture counts with two numbers for each
//! result, the sum of the outer samples and the middle one, and these with two pairs of weights, as an outer row and as the middle one.
//! Bytes are taken where they lie in the picture: no row is copied, and none is kept.

use super::mirrored_loops::{self, Ends, MOST_CHANNELS, Mask, ROWS};
use super::simd::{Vectors, with_lanes};
use super::tap_places::pack;
use crate::engine::cpu::rows::alpha::Source;
use crate::engine::cpu::rows::border::Edges;
use crate::engine::cpu::rows::complete::{complete, is_partial};
use crate::engine::cpu::rows::prefetch::worth_asking;
use crate::engine::cpu::rows::strip::{OutputRows, Strip};
use crate::engine::cpu::simd::scratch::room;
use crate::engine::cpu::simd::vector::Lanes;
use crate::filter::{ChannelStep, DirectKernel, Kernel, Step};
use crate::frame::{Layout, PixelFormat};

/// One plane's part of a step with such a mask.
pub(super) struct Mirrored {
    vectors: Vectors,
    format: PixelFormat,
    edges: Edges,
    channels: Vec<ChannelStep>,
    mask: Mask,
}

/// The memory that a thread works in.
#[derive(Default)]
pub(super) struct Scratch {
    /// A row outside the frame.
    outside: Vec<u8>,
    /// The last of the output rows, where the strip has no such rows.
    spare: Vec<u8>,
}

/// The weights, if they mirror themselves both ways and if sums are rounded half up and nothing else.
fn mask(kernel: &DirectKernel, channels: &[ChannelStep]) -> Option<Mask> {
    let q = <[i32; 9]>::try_from(&kernel.weights[..]).ok()?;
    let [corner, above, _, left, middle, ..] = q;
    let is_mirrored = kernel.width == 3 && [q[2], q[6], q[8]] == [corner; 3] && (q[7], q[5]) == (above, left);
    let half = (1 << kernel.shift) >> 1;
    let rounds = |c: &ChannelStep| c.convolved().is_none_or(|c| (c.low, c.high) == (half, 0));
    // Halves take a shift of one at least.
    let more = u32::from(kernel.shift == 0);
    let weights = [corner, above, left, middle].map(|q| q << more);
    let fits = weights.iter().all(|&q| i16::try_from(q).is_ok());
    (is_mirrored && fits && channels.iter().all(rounds)).then(|| Mask {
        outer: pack(weights[0], weights[1]),
        middle: pack(weights[2], weights[3]),
        shift: kernel.shift + more,
    })
}

impl Mirrored {
    /// The plane's part of `step`; `None` if nothing is convolved in it, or if the mask or the samples are others.
    pub(super) fn new(vectors: Vectors, step: &Step, plane: usize, format: PixelFormat) -> Option<Mirrored> {
        let channels = &step.planes[plane];
        let Kernel::Direct(kernel) = &step.kernel else {
            return None;
        };
        let is_convolved = channels.iter().any(|c| c.convolved().is_some());
        if format.depth() != 8 || !is_convolved || channels.len() > MOST_CHANNELS {
            return None;
        }
        Some(Mirrored {
            vectors,
            format,
            edges: Edges::new(step.border, format, channels, (kernel.width, false)),
            mask: mask(kernel, channels)?,
            channels: channels.clone(),
        })
    }

    /// Makes the strip's rows from the picture.
    pub(super) fn convolve(
        &self,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        with_lanes!(self.vectors, lanes => self.convolve_with(lanes, source, layout, strip, scratch));
    }

    fn convolve_with<L: Lanes>(
        &self,
        lanes: L,
        source: Source<'_>,
        layout: &Layout,
        strip: &mut Strip<'_>,
        scratch: &mut Scratch,
    ) {
        let plane = layout.planes()[strip.plane];
        let samples = plane.width * plane.channels;
        self.edges.store_outside(plane.width, &mut scratch.outside);
        let ends = Ends {
            pixels: self.edges.neighbours(plane.width),
            constant: &scratch.outside,
        };
        room(&mut scratch.spare, (ROWS - 1) * samples);
        let partial = is_partial(&self.channels, source);
        for first in (0..strip.rows).step_by(ROWS) {
            let made = ROWS.min(strip.rows - first);
            let y = strip.first_row + first;
            let rows = std::array::from_fn(|k| {
                // What only rows beyond the strip would need may be any row.
                let y = (y + k.min(made + 1)) as i64 - 1;
                match self.edges.row_index(y, plane.height) {
                    Some(y) => source.picture.row(strip.plane, y),
                    None => &scratch.outside[..],
                }
            });
            let place = |k: usize| (first + k) * plane.stride;
            let out = OutputRows {
                bytes: &mut strip.bytes[place(0)..place(made - 1) + samples],
                stride: plane.stride,
                row_bytes: samples,
                spare: &mut scratch.spare,
            };
            let next = worth_asking(source, strip.plane, (y + ROWS + 1) as i64, ROWS);
            mirrored_loops::make(lanes, self.mask, plane.channels, (rows, next), ends, out.split());
            if partial {
                for k in 0..made {
                    let row = &mut strip.bytes[place(k)..place(k) + samples];
                    complete(&self.channels, self.format, source, (strip.plane, y + k), row);
                }
            }
        }
    }
}
