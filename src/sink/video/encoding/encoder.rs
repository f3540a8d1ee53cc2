//! The encoder at work: pictures go in, packets come out.

use super::gif::{GifEncoder, GifPacket};
use crate::media::ffmpeg::{AvError, Encoder, Packet, Picture, Received};
use crossbeam_channel::Receiver;

/// An open encoder and the packet that it gave last.
pub(in crate::sink::video) struct FrameEncoder {
    encoder: Encoder,
    /// Ours for GIF: FFmpeg's only says to the container what to write.
    pub(in crate::sink::video) gif: Option<Box<GifEncoder>>,
    /// All frames come in one packet, at the end.
    pub(super) is_webp: bool,
    pub(super) packet: Packet,
    /// Frames that have come out.
    encoded: u64,
    /// Those of them that came out as nothing, since they repeat the one before.
    empty: u64,
    /// The latest time of a frame that has come out.
    latest: Option<i64>,
    /// Frames come out in another order than they are shown in.
    reorders: bool,
    /// What ends its last work early, once no frame follows.
    pub(in crate::sink::video) stop: Option<Receiver<()>>,
    /// What was set, for the summary.
    pub(in crate::sink::video) settings: String,
}

impl FrameEncoder {
    /// For `encoder`, which FFmpeg calls `name`.
    pub(in crate::sink::video) fn new(
        encoder: Encoder,
        name: &str,
        settings: String,
        gif: Option<GifEncoder>,
    ) -> Result<FrameEncoder, AvError> {
        Ok(FrameEncoder {
            encoder,
            gif: gif.map(Box::new),
            is_webp: name == "libwebp_anim",
            packet: Packet::new()?,
            encoded: 0,
            empty: 0,
            latest: None,
            reorders: false,
            stop: None,
            settings,
        })
    }

    /// Frames that have come out.
    pub(in crate::sink::video) fn encoded(&self) -> u64 {
        self.encoded
    }

    /// Frames that have come out as nothing, since they repeat the one before: no container keeps them.
    pub(in crate::sink::video) fn empty(&self) -> u64 {
        self.empty
    }

    /// True if frames came out in another order than they are shown in.
    pub(in crate::sink::video) fn reorders(&self) -> bool {
        self.reorders
    }

    /// Feeds it a picture or the end; false if it must give packets first.
    pub(super) fn send(&mut self, picture: Option<&Picture>) -> Result<bool, AvError> {
        match self.encoder.send(picture) {
            Ok(()) => Ok(true),
            Err(e) if e.is_again() => Ok(false),
            Err(e) if e.is_eof() && picture.is_none() => Ok(true),
            Err(e) => Err(e),
        }
    }

    /// Fetches the next packet.
    pub(super) fn receive(&mut self) -> Result<Received, AvError> {
        let received = self.encoder.receive(&mut self.packet)?;
        if matches!(received, Received::Item) {
            self.encoded += 1;
            self.empty += u64::from(self.packet.size() == 0);
            let shown = self.packet.pts();
            self.reorders |= shown.is_some() && shown < self.latest;
            self.latest = self.latest.max(shown);
        }
        Ok(received)
    }

    /// Makes the packet of a frame of GIF.
    pub(super) fn put(&mut self, frame: &GifPacket) -> Result<(), AvError> {
        self.packet = Packet::from_data(&frame.data, frame.pts, frame.is_first)?;
        Ok(())
    }
}
