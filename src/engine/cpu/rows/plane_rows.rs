//! The rows of one plane, as an algorithm reads them, and what is left to do with rows of the result:
//! channels that are not convolved.

use super::border::RowBorder;
use super::strip::{Picture, Strip};
use crate::filter::ChannelStep;
use crate::frame::PixelFormat;

/// The rows that a strip is made of, counted from the strip's first one: those above it are negative. Rows
/// outside the frame are others of the plane, or a constant one.
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
    /// Those of `strip`; `outside` is memory for the constant row.
    pub(in crate::engine::cpu) fn new(
        picture: Picture<'a>,
        strip: &Strip<'_>,
        (channels, border): (&'a [ChannelStep], &'a RowBorder),
        outside: &'a mut Vec<u8>,
    ) -> PlaneRows<'a> {
        let place = picture.layout.planes()[strip.plane];
        border.store_outside(place.width, outside);
        PlaneRows {
            picture,
            channels,
            border,
            plane: strip.plane,
            height: place.height,
            first: strip.first_row,
            outside,
        }
    }

    /// Which row of the plane row `row` is; `None` for the constant one.
    fn index(&self, row: i64) -> Option<usize> {
        self.border.row_index(self.first as i64 + row, self.height)
    }

    /// A row where it lies in the picture.
    #[inline]
    pub(in crate::engine::cpu) fn row(&self, row: i64) -> &'a [u8] {
        match self.index(row) {
            Some(y) => self.picture.row(self.plane, y),
            None => self.outside,
        }
    }

    /// The bytes in which such a row lies, with what lies around it, and where it begins in them.
    pub(in crate::engine::cpu) fn place(&self, row: i64) -> (&'a [u8], usize) {
        match self.index(row) {
            Some(y) => self.picture.place(self.plane, y),
            None => (self.outside, 0),
        }
    }

    /// The constant row, as rows are stored.
    pub(in crate::engine::cpu) fn outside(&self) -> &'a [u8] {
        self.outside
    }

    /// As many as are there of `count` rows from row `row` on, to be prefetched.
    pub(in crate::engine::cpu) fn ahead(&self, row: i64, count: usize) -> &'a [u8] {
        self.picture.rows(self.plane, self.first as i64 + row, count)
    }

    /// Makes row `row` of the result from `made`, where what is convolved has been.
    pub(in crate::engine::cpu) fn complete(&self, row: usize, made: &mut [u8]) {
        complete(self.channels, self.picture, (self.plane, self.first + row), made);
    }
}

/// Makes row `y` of a plane of the result from `row`, where what is convolved has been: puts in what is not.
pub(in crate::engine::cpu) fn complete(
    channels: &[ChannelStep],
    picture: Picture<'_>,
    (plane, y): (usize, usize),
    row: &mut [u8],
) {
    if channels.iter().any(|c| c.convolved().is_none()) {
        keep(channels, picture.layout.format(), picture.row(plane, y), row);
    }
}

/// Copies or fills the channels of a result row that are not convolved.
pub(in crate::engine::cpu) fn keep(
    channels: &[ChannelStep],
    format: PixelFormat,
    input: &[u8],
    out: &mut [u8],
) {
    if format.bytes_per_sample() == 1 {
        keep_samples::<1>(channels, format, input, out);
    } else {
        keep_samples::<2>(channels, format, input, out);
    }
}

/// [`keep`] for samples of `BYTES` bytes.
fn keep_samples<const BYTES: usize>(
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
