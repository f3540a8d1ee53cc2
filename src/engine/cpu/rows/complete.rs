//! Rows of the result completed: channels that are not convolved, and colours under alpha.

use super::alpha::Source;
use crate::filter::ChannelStep;
use crate::frame::PixelFormat;

/// True if rows of what is convolved are not yet rows of the result, but have to be [`complete`]d.
pub(in crate::engine::cpu) fn is_partial(channels: &[ChannelStep], source: Source<'_>) -> bool {
    source.alpha.is_some() || channels.iter().any(|c| c.convolved().is_none())
}

/// Makes row `y` of a plane of the result from `row`, where what is convolved has been: puts in what is not,
/// and makes colours straight.
pub(in crate::engine::cpu) fn complete(
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
