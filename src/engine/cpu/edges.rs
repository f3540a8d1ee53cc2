//! Rows with what lies beyond their ends.

use super::alpha::Source;
use crate::filter::{Border, ChannelStep};
use crate::frame::PixelFormat;

/// Samples beyond the edges: where they belong in a padded row, and where they come from; `None` for the border's constant.
pub(super) type Places = Vec<(usize, Option<usize>)>;

/// How the rows of a plane go on beyond their ends, for a mask.
pub(super) struct Edges {
    border: Border,
    format: PixelFormat,
    /// The value beyond the edges of each channel, where the border holds a constant.
    outside: Vec<u16>,
    /// Columns of the mask.
    columns: usize,
}

impl Edges {
    pub(super) fn new(
        border: Border,
        format: PixelFormat,
        channels: &[ChannelStep],
        columns: usize,
    ) -> Edges {
        let outside = channels.iter().map(|c| match c {
            ChannelStep::Convolve(c) => c.border,
            _ => 0,
        });
        Edges {
            border,
            format,
            outside: outside.collect(),
            columns,
        }
    }

    /// Samples that a pixel interleaves.
    pub(super) fn channels(&self) -> usize {
        self.outside.len()
    }

    /// Samples that lie beyond each end of a row.
    fn reach(&self) -> usize {
        self.columns / 2 * self.channels()
    }

    /// Where a padded row's first sample lies: at the begin of a cache line, so that rows are written in whole ones.
    pub(super) fn origin(&self) -> usize {
        self.reach().next_multiple_of(32)
    }

    /// Where a padded row begins in its memory.
    pub(super) fn lead(&self) -> usize {
        self.origin() - self.reach()
    }

    /// Where the samples beyond the ends of a row come from, as positions in the padded row.
    pub(super) fn find(&self, width: usize, places: &mut Places) {
        let (n, origin) = (self.channels(), self.origin());
        places.clear();
        for k in 1..=self.columns / 2 {
            for (to, at) in [
                (origin - k * n, -(k as i64)),
                (origin + (width + k - 1) * n, (width + k - 1) as i64),
            ] {
                let from = self.border.index(at, width);
                places.extend((0..n).map(|c| (to + c, from.map(|f| origin + f * n + c))));
            }
        }
    }

    /// Fills in what lies beyond the ends of a padded row, where `sample` makes an element of a constant.
    pub(super) fn fill<T: Copy>(&self, places: &Places, row: &mut [T], sample: impl Fn(u16) -> T) {
        for &(to, from) in places {
            row[to] = from.map_or_else(|| sample(self.constant(to)), |from| row[from]);
        }
    }

    /// The border's constant at a place of a padded row.
    pub(super) fn constant(&self, place: usize) -> u16 {
        let (n, origin) = (self.channels(), self.origin());
        // Counted from the origin, before which it may lie.
        self.outside[(place + n * origin - origin) % n]
    }

    /// The pixels that lie before the first and after the last pixel of a row of `width`; `None` where the border holds a constant.
    pub(super) fn neighbours(&self, width: usize) -> [Option<usize>; 2] {
        [-1, width as i64].map(|x| self.border.index(x, width))
    }

    /// Where row `y` of a plane of so many rows is found, which may lie outside it; `None` where the border holds a constant.
    pub(super) fn row_index(&self, y: i64, height: usize) -> Option<usize> {
        self.border.index(y, height)
    }

    /// A row outside the frame, as rows are stored.
    pub(super) fn store_outside(&self, width: usize, row: &mut Vec<u8>) {
        row.clear();
        let bytes = self.format.bytes_per_sample();
        for _ in 0..width {
            for value in &self.outside {
                row.extend_from_slice(&(value << self.format.shift()).to_le_bytes()[..bytes]);
            }
        }
    }

    /// Row `y` of a plane, which may lie outside the frame, where it is `outside` if the border holds a constant; perhaps in `room`.
    #[inline]
    pub(super) fn row<'a>(
        &self,
        source: Source<'a>,
        plane: usize,
        y: i64,
        outside: &'a [u8],
        room: &'a mut Vec<u8>,
    ) -> &'a [u8] {
        match self.row_index(y, source.picture.layout.planes()[plane].height) {
            None => outside,
            Some(y) => source.row(plane, y, room),
        }
    }
}

/// True if rows of what is convolved are not yet rows of the result, but have to be [`complete`]d.
pub(super) fn is_partial(channels: &[ChannelStep], source: Source<'_>) -> bool {
    source.alpha.is_some() || channels.iter().any(|c| c.convolved().is_none())
}

/// Makes row `y` of a plane of the result from `row`, where what is convolved has been: puts in what is not, and makes colours straight.
pub(super) fn complete(
    channels: &[ChannelStep],
    format: PixelFormat,
    source: Source<'_>,
    (plane, y): (usize, usize),
    row: &mut [u8],
) {
    keep(channels, format, source.picture.row(plane, y), row);
    source.finish(plane, y, row);
}

/// Puts the channels that are not convolved into a row of the result.
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
