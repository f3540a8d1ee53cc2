//! The rows of one plane that an algorithm reads, and the channels of result rows that are not convolved.

use super::border::RowBorder;
use super::store::prefetch::skipped;
use super::strip::{Picture, Strip};
use crate::filter::ChannelStep;
use crate::frame::PixelFormat;

/// The input rows of a strip, counted from the strip's first row; rows above it have negative numbers. A row
/// outside the frame is the row of the plane that the border names, or a row of the border's constant.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct PlaneRows<'a> {
    picture: Picture<'a>,
    channels: &'a [ChannelStep],
    border: &'a RowBorder,
    plane: usize,
    height: usize,
    /// The strip's first row.
    first: usize,
    /// A row of the constant, as rows are stored.
    outside: &'a [u8],
}

impl<'a> PlaneRows<'a> {
    /// The input rows of `strip`; `outside` is memory for the constant row.
    pub(in crate::engine::cpu) fn new(
        picture: Picture<'a>,
        strip: &Strip<'_>,
        (channels, border): (&'a [ChannelStep], &'a RowBorder),
        outside: &'a mut Vec<u8>,
    ) -> PlaneRows<'a> {
        let geometry = picture.layout.planes()[strip.plane];
        border.store_outside(geometry.width, outside);
        PlaneRows {
            picture,
            channels,
            border,
            plane: strip.plane,
            height: geometry.height,
            first: strip.first_row,
            outside,
        }
    }

    /// The row of the plane that row `row` of the strip reads; `None` for the constant row.
    fn index(&self, row: i64) -> Option<usize> {
        self.border.row_index(self.first as i64 + row, self.height)
    }

    /// Row `row`, in place in the picture.
    #[inline]
    pub(in crate::engine::cpu) fn row(&self, row: i64) -> &'a [u8] {
        match self.index(row) {
            Some(y) => self.picture.row(self.plane, y),
            None => self.outside,
        }
    }

    /// The bytes of the picture, and where row `row` begins in them.
    pub(in crate::engine::cpu) fn place(&self, row: i64) -> (&'a [u8], usize) {
        match self.index(row) {
            Some(y) => self.picture.place(self.plane, y),
            None => (self.outside, 0),
        }
    }

    /// The stored row of the border's constant.
    pub(in crate::engine::cpu) fn outside(&self) -> &'a [u8] {
        self.outside
    }

    /// `count` rows to prefetch while as many are made, if row `row` is the next one to read; fewer at the
    /// plane's end.
    pub(in crate::engine::cpu) fn ahead(&self, row: i64, count: usize) -> &'a [u8] {
        let first = self.first as i64 + row + skipped(count) as i64;
        self.picture.rows(self.plane, first, count)
    }

    /// Finishes result row `row` of the strip: `made` holds the convolved channels; the others are copied
    /// from the picture or filled.
    pub(in crate::engine::cpu) fn fill_unconvolved_channels(&self, row: usize, made: &mut [u8]) {
        fill_unconvolved_channels(self.channels, self.picture, (self.plane, self.first + row), made);
    }
}

/// Finishes a result row of a plane, row `y`: `row` holds the convolved channels; the others are copied from
/// the picture or filled.
pub(in crate::engine::cpu) fn fill_unconvolved_channels(
    channels: &[ChannelStep],
    picture: Picture<'_>,
    (plane, y): (usize, usize),
    row: &mut [u8],
) {
    if channels.iter().any(|c| c.convolved().is_none()) {
        copy_or_fill(channels, picture.layout.format(), picture.row(plane, y), row);
    }
}

/// Copies or fills the channels of the result row `out` that are not convolved.
pub(in crate::engine::cpu) fn copy_or_fill(
    channels: &[ChannelStep],
    format: PixelFormat,
    input: &[u8],
    out: &mut [u8],
) {
    if format.bytes_per_sample() == 1 {
        copy_or_fill_samples::<1>(channels, format, input, out);
    } else {
        copy_or_fill_samples::<2>(channels, format, input, out);
    }
}

/// [`copy_or_fill`] for samples of `BYTES` bytes.
fn copy_or_fill_samples<const BYTES: usize>(
    channels: &[ChannelStep],
    format: PixelFormat,
    input: &[u8],
    out: &mut [u8],
) {
    let (input, out) = (input.as_chunks::<BYTES>().0, out.as_chunks_mut::<BYTES>().0);
    for (c, what) in channels.iter().enumerate() {
        let to = out.iter_mut().skip(c).step_by(channels.len());
        match what {
            ChannelStep::Convolve(_) => {}
            ChannelStep::Copy => {
                let from = input.iter().skip(c).step_by(channels.len());
                to.zip(from).for_each(|(o, i)| *o = *i);
            }
            ChannelStep::Fill(value) => {
                let word = (value << format.shift()).to_le_bytes();
                to.for_each(|o| o.copy_from_slice(&word[..BYTES]));
            }
        }
    }
}
