//! Rows with an apron: samples before the first and after the last, as the border says.

use super::words::deinterleave;
use crate::filter::{Border, ChannelStep};
use crate::frame::PixelFormat;

/// The samples of an apron: where they belong in a padded row, and where they come from.
pub(in crate::engine::cpu) type Apron = Vec<(usize, From)>;

/// Where a sample of an apron comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine::cpu) enum From {
    /// A place in the padded row.
    Place(usize),
    /// The border, which holds a constant.
    Constant(u16),
}

/// The aprons of a plane's rows, for a mask.
pub(in crate::engine::cpu) struct RowBorder {
    border: Border,
    format: PixelFormat,
    /// The value outside the plane of each channel, where the border holds a constant.
    outside: Vec<u16>,
    /// Columns of the mask.
    columns: usize,
    /// True if the components of padded rows lie one after the other (see `deinterleave`).
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

    /// From a pixel of a padded row to the next one.
    pub(in crate::engine::cpu) fn step(&self) -> usize {
        if self.planar { 1 } else { self.channels() }
    }

    /// From a component of a padded row of so many pixels to the next one.
    pub(in crate::engine::cpu) fn pitch(&self, width: usize) -> usize {
        if self.planar {
            deinterleave::pitch(width, self.reach())
        } else {
            1
        }
    }

    /// Samples of a padded row of so many pixels, from the first to the last one: with components one after
    /// the other, what lies between these, too.
    pub(in crate::engine::cpu) fn samples(&self, width: usize) -> usize {
        (width - 1) * self.step() + (self.channels() - 1) * self.pitch(width) + 1
    }

    /// Samples of the apron at each end of a row.
    fn reach(&self) -> usize {
        self.columns / 2 * self.step()
    }

    /// Where a padded row's first sample lies: at the start of a cache line, so that rows are written in
    /// whole ones.
    pub(in crate::engine::cpu) fn origin(&self) -> usize {
        self.reach().next_multiple_of(32)
    }

    /// Where a padded row begins in its memory.
    pub(in crate::engine::cpu) fn lead(&self) -> usize {
        self.origin() - self.reach()
    }

    /// Where the samples of a row's apron come from, as positions in the padded row.
    pub(in crate::engine::cpu) fn find(&self, width: usize, places: &mut Apron) {
        let (step, pitch, origin) = (self.step(), self.pitch(width), self.origin());
        places.clear();
        for k in 1..=self.columns / 2 {
            for (to, at) in [
                (origin - k * step, -(k as i64)),
                (origin + (width + k - 1) * step, (width + k - 1) as i64),
            ] {
                let from = self.border.index(at, width);
                places.extend(self.outside.iter().enumerate().map(|(c, &constant)| {
                    let place = |f: usize| From::Place(origin + f * step + c * pitch);
                    (to + c * pitch, from.map_or(From::Constant(constant), place))
                }));
            }
        }
    }

    /// Fills in the apron of a padded row, where `sample` makes an element of a constant.
    pub(in crate::engine::cpu) fn fill<T: Copy>(places: &Apron, row: &mut [T], sample: impl Fn(u16) -> T) {
        for &(to, from) in places {
            row[to] = match from {
                From::Place(from) => row[from],
                From::Constant(value) => sample(value),
            };
        }
    }

    /// The pixels that lie before the first and after the last pixel of a row of `width`; `None` where the
    /// border holds a constant.
    pub(in crate::engine::cpu) fn neighbours(&self, width: usize) -> [Option<usize>; 2] {
        [-1, width as i64].map(|x| self.border.index(x, width))
    }

    /// Where row `y` of a plane of so many rows is found, which may lie outside it; `None` where the border
    /// holds a constant.
    pub(in crate::engine::cpu) fn row_index(&self, y: i64, height: usize) -> Option<usize> {
        self.border.index(y, height)
    }

    /// A row outside the frame, as rows are stored.
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
