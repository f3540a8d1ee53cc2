//! The strips of one group: copied, or filtered some columns at a time by masks or by a pyramid.

use super::masks::MaskMemory;
use super::part::{Part, PartMemory};
use super::pyramid::PyramidMemory;
use super::{FloatFilter, FloatLoops};
use crate::engine::cpu::rows::strip::{Picture, Strip};
use crate::engine::cpu::simd::float::FloatLoop;
use crate::engine::cpu::simd::levels::Levels;
use crate::frame::Layout;

/// Scratch memory of a thread.
#[derive(Default)]
pub(super) struct FloatScratch {
    part: PartMemory,
    masks: MaskMemory,
    pyramid: PyramidMemory,
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
                    let pixels = masks.part_width(&geometry);
                    let mut first = 0;
                    while first < geometry.width {
                        let columns = first..(first + pixels).min(geometry.width);
                        first = columns.end;
                        let part = Part::new(filter, picture, &strip, (columns, masks.size.0 / 2));
                        part.make_masks(s, masks, layout, &mut strip, &mut memory.masks, &mut memory.part);
                    }
                }
                FloatLoops::Pyramid(pyramid) => {
                    let part = Part::new(filter, picture, &strip, (0..geometry.width, 0));
                    part.make_pyramid(
                        s,
                        pyramid,
                        layout,
                        &mut strip,
                        &mut memory.pyramid,
                        &mut memory.part,
                    );
                }
            }
            if let Some(threshold) = &filter.threshold {
                threshold.apply(picture, layout, &mut strip);
            }
        }
    }
}
