//! The rows of one plane, as an algorithm reads them, and what is left to do with rows of the result:
//! channels that are not convolved, and colours under alpha.

use super::alpha::Source;
use super::border::RowBorder;
use super::prefetch::next_source;
use super::strip::Strip;
use crate::filter::ChannelStep;
use crate::frame::PixelFormat;

/// The rows that a strip is made of, counted from the strip's first one: those above it are negative. Rows
/// outside the frame are others of the plane, or a constant one.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct PlaneRows<'a> {
    source: Source<'a>,
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
        source: Source<'a>,
        strip: &Strip<'_>,
        (channels, border): (&'a [ChannelStep], &'a RowBorder),
        outside: &'a mut Vec<u8>,
    ) -> PlaneRows<'a> {
        let place = source.picture.layout.planes()[strip.plane];
        border.store_outside(place.width, outside);
        PlaneRows {
            source,
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

    /// A row as it is convolved; in `room` if it is premultiplied.
    #[inline]
    pub(in crate::engine::cpu) fn row<'b>(&self, row: i64, room: &'b mut Vec<u8>) -> &'b [u8]
    where
        'a: 'b,
    {
        match self.index(row) {
            Some(y) => self.source.row(self.plane, y, room),
            None => self.outside,
        }
    }

    /// A row where it lies in the picture, not premultiplied.
    pub(in crate::engine::cpu) fn in_place(&self, row: i64) -> &'a [u8] {
        match self.index(row) {
            Some(y) => self.source.picture.row(self.plane, y),
            None => self.outside,
        }
    }

    /// The bytes in which such a row lies, with what lies around it, and where it begins in them.
    pub(in crate::engine::cpu) fn place(&self, row: i64) -> (&'a [u8], usize) {
        match self.index(row) {
            Some(y) => self.source.picture.place(self.plane, y),
            None => (self.outside, 0),
        }
    }

    /// The constant row, as rows are stored.
    pub(in crate::engine::cpu) fn outside(&self) -> &'a [u8] {
        self.outside
    }

    /// As many as are there of `count` rows from row `row` on, to be prefetched.
    pub(in crate::engine::cpu) fn ahead(&self, row: i64, count: usize) -> &'a [u8] {
        next_source(self.source, (self.plane, self.first as i64 + row), count)
    }

    /// Makes row `row` of the result from `made`, where what is convolved has been.
    pub(in crate::engine::cpu) fn complete(&self, row: usize, made: &mut [u8]) {
        complete(self.channels, self.source, (self.plane, self.first + row), made);
    }
}

/// Makes row `y` of a plane of the result from `row`, where what is convolved has been: puts in what is not,
/// and unpremultiplies colours. Where there is neither, it has nothing to do.
pub(in crate::engine::cpu) fn complete(
    channels: &[ChannelStep],
    source: Source<'_>,
    (plane, y): (usize, usize),
    row: &mut [u8],
) {
    if source.alpha.is_none() && channels.iter().all(|c| c.convolved().is_some()) {
        return;
    }
    let format = source.picture.layout.format();
    keep(channels, format, source.picture.row(plane, y), row);
    source.finish(plane, y, row);
}

/// Copies or fills the channels of a result row that are not convolved.
fn keep(channels: &[ChannelStep], format: PixelFormat, input: &[u8], out: &mut [u8]) {
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
