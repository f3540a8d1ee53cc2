//! The pictures that go to the encoder: frames as they are, copied, or converted by swscale and to a palette.

use crate::frame::{Colour, Frame};
use crate::media::convert::indexed;
use crate::media::ffmpeg::{AvError, AvFormat, CardSurfaces, Picture, Scaler, SurfaceError, fetch, lend};
use crate::sink::video::settings::samples::{SampleSteps, scaled_format};
use crate::sink::video::settings::selection::FormatChoice;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames whose memory an encoder may hold at a time; more are copied, so that a fixed pool of frames never
/// runs dry.
pub(in crate::sink::video) const MAX_BORROWED: usize = 2;

/// Encoders that read a frame's pixels exactly and only while it is handed over.
const READS_AT_ONCE: &[&str] = &[
    "libx264",
    "libx264rgb",
    "libx265",
    "libvpx",
    "libvpx-vp9",
    "libaom-av1",
];

/// Makes pictures of frames.
pub(in crate::sink::video) struct PictureMaker {
    format: AvFormat,
    colour: Colour,
    /// What becomes of the frames before they are brought to the encoder's format.
    samples: SampleSteps,
    /// swscale, and the picture that it reads.
    scaler: Option<(Scaler, Picture)>,
    /// What it makes.
    scaled: AvFormat,
    /// The surfaces that the encoder reads, if it reads pictures on a card.
    surfaces: Option<CardSurfaces>,
    /// The encoder takes indices and a palette.
    is_indexed: bool,
    /// Frames that had more colours than a palette.
    inexact: u64,
    /// Frames whose memory the encoder holds, and whether it is lent any.
    borrowed: Arc<AtomicUsize>,
    borrows: bool,
}

impl PictureMaker {
    /// For the encoder that FFmpeg calls `encoder`.
    pub(in crate::sink::video) fn new(
        encoder: &str,
        choice: &FormatChoice,
        is_indexed: bool,
        (scaler, samples): (Option<(Scaler, Picture)>, SampleSteps),
        surfaces: Option<CardSurfaces>,
    ) -> PictureMaker {
        PictureMaker {
            format: choice.format,
            colour: choice.colour,
            samples,
            borrows: scaler.is_none() && READS_AT_ONCE.contains(&encoder),
            scaler,
            scaled: scaled_format(choice),
            surfaces,
            is_indexed,
            inexact: 0,
            borrowed: Arc::default(),
        }
    }

    /// True if the encoder reads pictures on a card.
    pub(in crate::sink::video) fn are_on_card(&self) -> bool {
        self.surfaces.is_some()
    }

    /// How many frames had straight colours that were multiplied by their alpha.
    pub(in crate::sink::video) fn associated(&self) -> u64 {
        self.samples.associated()
    }

    /// How many frames had more colours than a palette.
    pub(super) fn inexact(&self) -> u64 {
        self.inexact
    }

    /// The picture that goes to the encoder, with the frame's facts but not yet its time, and the pixel
    /// aspect.
    pub(super) fn make(&mut self, frame: Frame) -> Result<(Picture, (i32, i32)), SurfaceError> {
        if self.surfaces.is_none() || self.samples.changes(&frame) {
            fetch(&frame)?;
        }
        let frame = self.samples.run(frame)?;
        let metadata = frame.metadata.clone();
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let mut picture = match (&mut self.scaler, &self.surfaces) {
            (_, Some(surfaces)) => surfaces.picture(&frame)?,
            (Some((scaler, before)), _) => {
                before.copy_from(&frame)?;
                // A new picture each time, since the encoder may still read the one before.
                let mut after = Picture::allocate(self.scaled, width, height)?;
                scaler.run(before, &mut after)?;
                if self.is_indexed {
                    let (picture, is_exact) = to_palette(&after, self.format)?;
                    self.inexact += u64::from(!is_exact);
                    picture
                } else {
                    after
                }
            }
            (None, _) if self.borrows && self.borrowed.load(Ordering::Acquire) < MAX_BORROWED => {
                lend(frame, self.format, &self.borrowed)?
            }
            (None, _) => {
                let mut copy = Picture::allocate(self.format, width, height)?;
                copy.copy_from(&frame)?;
                copy
            }
        };
        picture.set_colour(self.colour);
        picture.set_field_order(metadata.field_order);
        for block in &metadata.side_data {
            picture.add_side_data(block)?;
        }
        Ok((picture, metadata.sample_aspect))
    }
}

/// The indices of `after`, which the scaler made, and their palette; and whether that has all its colours.
fn to_palette(after: &Picture, format: AvFormat) -> Result<(Picture, bool), AvError> {
    let (width, height) = (after.width(), after.height());
    let indexed = indexed(&rgba_bytes(after)?, width, false);
    let mut picture = Picture::allocate(format, width, height)?;
    for (y, row) in indexed.indices.chunks_exact(width).enumerate() {
        let to = picture.row_mut(0, y, width).ok_or_else(AvError::bug)?;
        to.copy_from_slice(row);
    }
    let mut colours: Vec<[u8; 4]> = indexed.palette.iter().map(|&[r, g, b]| [r, g, b, 255]).collect();
    if let (true, Some(first)) = (indexed.transparent, colours.first_mut()) {
        *first = [0; 4];
    }
    picture.set_palette(&colours)?;
    Ok((picture, indexed.exact))
}

/// The bytes of a picture of four-byte pixels, without padding.
pub(super) fn rgba_bytes(picture: &Picture) -> Result<Vec<u8>, AvError> {
    let len = 4 * picture.width();
    let mut bytes = Vec::with_capacity(len * picture.height());
    for y in 0..picture.height() {
        bytes.extend_from_slice(picture.row(0, y, len).ok_or_else(AvError::bug)?);
    }
    Ok(bytes)
}
