//! Padded rows: a row with an apron, the samples that the border puts before its first and after its last
//! one.
//!
//! ```text
//! picture      p0 p1 p2 p3 ..
//! padded row   p2 p1 | p0 p1 p2 p3 .. | ..     the apron of a mask of five columns; the border mirrors
//! ```
//!
//! `span.rs` has the same for a part of a row with a halo.

pub(in crate::engine::cpu) mod span;

use super::words::deinterleave;
use crate::filter::{Border, ChannelStep};
use crate::frame::PixelFormat;

/// The samples of an apron: the index of each in the padded row, and its source.
pub(in crate::engine::cpu) type Apron = Vec<(usize, ApronSource)>;

/// The source of an apron's sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum ApronSource {
    /// The sample at this index of the padded row.
    Sample(usize),
    /// The border's constant.
    Constant(u16),
}

/// The form of a plane's padded rows for one mask.
pub(in crate::engine::cpu) struct RowBorder {
    border: Border,
    format: PixelFormat,
    /// The border's constant of each channel.
    outside: Vec<u16>,
    /// Columns of the mask.
    columns: usize,
    /// True if padded rows are deinterleaved: one component after the other.
    planar: bool,
}

impl RowBorder {
    pub(in crate::engine::cpu) fn new(
        border: Border,
        format: PixelFormat,
        channels: &[ChannelStep],
        (columns, planar): (usize, bool),
    ) -> RowBorder {
        let outside = channels.iter().map(|c| match c {
            ChannelStep::Convolve(c) => c.border,
            _ => 0,
        });
        RowBorder {
            border,
            format,
            outside: outside.collect(),
            columns,
            planar,
        }
    }

    /// Samples that a pixel interleaves.
    pub(in crate::engine::cpu) fn channels(&self) -> usize {
        self.outside.len()
    }

    /// Samples from a pixel of a padded row to the next one.
    pub(in crate::engine::cpu) fn pixel_stride(&self) -> usize {
        if self.planar { 1 } else { self.channels() }
    }

    /// Samples from a component of a padded row of `width` pixels to the next one.
    pub(in crate::engine::cpu) fn pitch(&self, width: usize) -> usize {
        if self.planar {
            deinterleave::pitch(width, self.reach())
        } else {
            1
        }
    }

    /// Samples from the first to the last one of a row of `width` pixels. In a deinterleaved row that
    /// includes the aprons between components.
    pub(in crate::engine::cpu) fn samples(&self, width: usize) -> usize {
        (width - 1) * self.pixel_stride() + (self.channels() - 1) * self.pitch(width) + 1
    }

    /// Samples of the apron at each end of a row.
    fn reach(&self) -> usize {
        self.columns / 2 * self.pixel_stride()
    }

    /// Index of the first sample of the row proper. It begins a cache line, so that rows are written in whole
    /// cache lines.
    pub(in crate::engine::cpu) fn origin(&self) -> usize {
        self.reach().next_multiple_of(32)
    }

    /// Index of the first sample of the apron.
    pub(in crate::engine::cpu) fn lead(&self) -> usize {
        self.origin() - self.reach()
    }

    /// Lists the samples of the apron of a row of `width` pixels, and their sources.
    pub(in crate::engine::cpu) fn locate_apron(&self, width: usize, apron: &mut Apron) {
        let (pixel_stride, pitch, origin) = (self.pixel_stride(), self.pitch(width), self.origin());
        apron.clear();
        for k in 1..=self.columns / 2 {
            for (to, at) in [
                (origin - k * pixel_stride, -(k as i64)),
                (origin + (width + k - 1) * pixel_stride, (width + k - 1) as i64),
            ] {
                let from = self.border.index(at, width);
                apron.extend(self.outside.iter().enumerate().map(|(c, &constant)| {
                    let place = |f: usize| ApronSource::Sample(origin + f * pixel_stride + c * pitch);
                    (
                        to + c * pitch,
                        from.map_or(ApronSource::Constant(constant), place),
                    )
                }));
            }
        }
    }

    /// Fills the apron of a padded row. `sample` converts a constant to an element of the row.
    pub(in crate::engine::cpu) fn fill<T: Copy>(apron: &Apron, row: &mut [T], sample: impl Fn(u16) -> T) {
        for &(to, from) in apron {
            row[to] = match from {
                ApronSource::Sample(at) => row[at],
                ApronSource::Constant(value) => sample(value),
            };
        }
    }

    /// The pixels of a row of `width` that the border puts before the first and after the last one; `None`
    /// for the constant.
    pub(in crate::engine::cpu) fn neighbours(&self, width: usize) -> [Option<usize>; 2] {
        [-1, width as i64].map(|x| self.border.index(x, width))
    }

    /// The row that the border puts at row `y`, inside or outside a plane of `height` rows; `None` for the
    /// constant.
    pub(in crate::engine::cpu) fn row_index(&self, y: i64, height: usize) -> Option<usize> {
        self.border.index(y, height)
    }

    /// Stores a row of `width` pixels of the border's constant.
    pub(in crate::engine::cpu) fn store_outside(&self, width: usize, row: &mut Vec<u8>) {
        row.clear();
        let bytes = self.format.bytes_per_sample();
        for _ in 0..width {
            for value in &self.outside {
                row.extend_from_slice(&(value << self.format.shift()).to_le_bytes()[..bytes]);
            }
        }
    }
}
