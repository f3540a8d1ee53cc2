//! In place of `surfaces` in builds without CUDA: there is no card.

use crate::frame::{DeviceHandle, Frame};
use crate::media::ffmpeg::{AvError, AvFormat, Encoder, Picture, SurfaceError};

/// Does nothing: no frame lies on a card.
pub(crate) fn fetch(_: &Frame) -> Result<(), SurfaceError> {
    Ok(())
}

/// There are none.
pub(crate) enum CardSurfaces {}

impl CardSurfaces {
    /// An error.
    pub(crate) fn new(
        _: &DeviceHandle,
        _: AvFormat,
        _: (usize, usize),
    ) -> Result<CardSurfaces, SurfaceError> {
        Err(SurfaceError::Card(
            "this framepipe was built without CUDA".to_owned(),
        ))
    }

    /// Never called.
    pub(crate) fn serve(&self, _: &mut Encoder) -> Result<(), AvError> {
        match *self {}
    }

    /// Never called.
    pub(crate) fn picture(&self, _: &Frame) -> Result<Picture, SurfaceError> {
        match *self {}
    }
}
