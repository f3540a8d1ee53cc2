//! Planes of big-endian floating-point samples, whose bytes change places. swscale's own conversion goes by
//! way of integers.

use crate::frame::{Frame, PixelFormat};
use crate::media::ffmpeg::{AvError, AvFormat, Picture};

/// True if pictures of `from` are brought to `to` here: the same planes.
pub(in crate::source::video) fn are_swapped(from: AvFormat, to: PixelFormat) -> bool {
    let name = from.name();
    to.is_float()
        && name
            .strip_suffix("be")
            .is_some_and(|name| to.name().strip_suffix("le") == Some(name))
}

/// Fills `frame` from `picture`, for which [`are_swapped`] is true.
pub(super) fn read(picture: &Picture, frame: &mut Frame) -> Result<(), AvError> {
    let layout = *frame.layout();
    let bytes = layout.format().bytes_per_sample();
    for (index, plane) in layout.planes().iter().enumerate() {
        let len = layout.row_bytes(index);
        for y in 0..plane.height {
            let row = picture.row(index, y, len).ok_or(AvError::bug())?;
            let to = frame.row_mut(index, y);
            to.copy_from_slice(row);
            to.chunks_exact_mut(bytes).for_each(<[u8]>::reverse);
        }
    }
    Ok(())
}
