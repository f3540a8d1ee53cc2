//! Results for the card's encoders, which read them in the card's memory.
//!
//! An encoder keeps its surfaces for several frames, and lays them out in its own way. So each result is
//! copied to a surface, on the card:
//!
//! ```text
//! engine             frame 0 | frame 1 | ...     `driver::pictures::card_frame`
//! stream of copies   waits for `ready` of a frame, copies its planes to a surface
//! host               waits for the copy, gives the frame back, hands over the surface
//! encoder's stream   surface 0 | surface 1 | ...
//! ```
//!
//! The encoder has a stream of its own, so that no copy waits for a picture to be encoded.

use super::decode::StreamHandles;
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::pictures::card_frame::CardFrame;
use crate::engine::cuda::driver::pictures::picture::DevicePlane;
use crate::engine::cuda::driver::pictures::planes::copy_plane;
use crate::engine::cuda::driver::stream::Stream;
use crate::frame::{DeviceHandle, Frame};
use std::sync::Arc;

/// A card on which results stay for an encoder.
pub struct EncoderCard {
    device: Arc<Device>,
}

impl EncoderCard {
    pub(in crate::engine::cuda) fn new(device: &Arc<Device>) -> EncoderCard {
        EncoderCard {
            device: Arc::clone(device),
        }
    }

    /// The card behind the handle, if that is one of this engine's.
    pub fn of(handle: &DeviceHandle) -> Option<&EncoderCard> {
        handle.downcast_ref()
    }

    /// Streams for one encoder.
    pub fn streams(&self) -> Result<EncoderStreams, EngineError> {
        Ok(EncoderStreams {
            copies: Stream::new(&self.device)?,
            encoder: Arc::new(Stream::new(&self.device)?),
        })
    }
}

/// Where a plane of an encoder's surface lies on the card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SurfacePlane {
    /// The address of its first byte.
    pub pointer: u64,
    /// Bytes from row to row.
    pub pitch: usize,
}

/// The stream on which results are copied for one encoder, and the encoder's own.
pub struct EncoderStreams {
    copies: Stream,
    encoder: Arc<Stream>,
}

impl EncoderStreams {
    /// The encoder's stream, for the library that encodes.
    pub fn handles(&self) -> StreamHandles {
        StreamHandles {
            context: self.encoder.device().context().cast(),
            stream: self.encoder.handle().cast(),
            owner: Box::new(Arc::clone(&self.encoder)),
        }
    }

    /// Copies a frame's planes to those of a surface, which has its format and size, and waits until they
    /// are there. False if the frame does not lie on this card: then nothing is done.
    pub fn copy(&self, frame: &Frame, planes: &[SurfacePlane]) -> Result<bool, EngineError> {
        let device = self.copies.device();
        let Some(card) = card_frame(frame).filter(|card| card.is_on(device)) else {
            return Ok(false);
        };
        device.bind()?;
        card.ready().hold(&self.copies)?;
        let layout = frame.layout();
        let mut enqueued = Ok(());
        for (index, (plane, to)) in layout.planes().iter().zip(planes).enumerate() {
            let from = DevicePlane {
                pointer: card.pointer() + plane.offset as u64,
                pitch: plane.stride,
                ..DevicePlane::default()
            };
            let to = DevicePlane {
                pointer: to.pointer,
                pitch: to.pitch,
                ..DevicePlane::default()
            };
            let size = (layout.row_bytes(index), plane.height);
            enqueued = enqueued.and_then(|()| copy_plane(from, to, size, self.copies.handle()));
        }
        // After an error, too: the frame may be given back only when nothing reads it any more.
        self.copies.synchronise().and(enqueued).map(|()| true)
    }

    /// Waits for what the library has enqueued on the encoder's stream.
    pub fn wait(&self) -> Result<(), EngineError> {
        self.encoder.device().bind()?;
        self.encoder.synchronise()
    }
}

/// Fetches a frame that lies on a card, so that its bytes can be read without an error.
pub fn fetch(frame: &Frame) -> Result<(), EngineError> {
    card_frame(frame).map_or(Ok(()), CardFrame::prefetch)
}

/// The frame's memory on a card, if it lies on one.
fn card_frame(frame: &Frame) -> Option<&CardFrame> {
    frame.on_device()?.downcast_ref()
}
