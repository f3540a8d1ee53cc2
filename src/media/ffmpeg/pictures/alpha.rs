//! Alpha beside swscale, which writes most of it a level too large, shifts it from one depth to another, so
//! that opaque pixels become transparent, and dithers it.
//!
//! ```text
//!   v * most / most before      rounded to the nearest, as where depths change without swscale
//! ```

use super::picture::Picture;
use super::place::Place;
use crate::media::ffmpeg::{AvError, AvFormat};
use crate::media::rescale::rescaled;

/// The deepest alpha of integers.
const MOST_BITS: u32 = 16;

/// Alpha of pictures of one format for those of another.
pub(super) struct AlphaChange {
    from: Place,
    to: Place,
    /// What becomes of each sample.
    table: Vec<u16>,
}

impl AlphaChange {
    /// `None` unless both formats have alpha of integers.
    pub(super) fn new(from: AvFormat, to: AvFormat) -> Option<AlphaChange> {
        let place = |format: AvFormat| {
            let place = format.alpha_place()?;
            (1..=MOST_BITS).contains(&place.depth).then_some(place)
        };
        let (from, to) = (place(from)?, place(to)?);
        let most = |place: Place| (1_u32 << place.depth) - 1;
        Some(AlphaChange {
            from,
            to,
            table: rescaled(most(from), most(to) as u16),
        })
    }

    /// Fills the alpha of `to` from that of `from`, which has its size.
    pub(super) fn run(&self, from: &Picture, to: &mut Picture) -> Result<(), AvError> {
        let broken = || AvError(ffmpeg_next::ffi::AVERROR_BUG);
        let width = from.width().min(to.width());
        let most = self.table.last().copied().unwrap_or_default();
        for y in 0..from.height().min(to.height()) {
            let read = from
                .row(self.from.plane, y, self.from.row(width))
                .ok_or_else(broken)?;
            let row = to
                .row_mut(self.to.plane, y, self.to.row(width))
                .ok_or_else(broken)?;
            let pixels = row.chunks_mut(self.to.step).zip(read.chunks(self.from.step));
            for (pixel, read) in pixels {
                // Words may have bits above their depth.
                let word = self.table.get(self.from.read(read)).copied().unwrap_or(most);
                self.to.write(pixel, word);
            }
        }
        Ok(())
    }
}
