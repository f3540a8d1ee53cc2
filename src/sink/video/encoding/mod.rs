//! Encoding, from the first frame on.
//!
//! ```text
//!   frame ──> pictures ──> picture ──> encoder ──> packet ──> muxer
//!     └─────> timing ───── its time ────┘            └── before it, those of other streams (`passthrough`)
//! ```
//!
//! `on_card` leaves frames in the card's memory where its encoder reads them there.

mod encoder;
mod gif;
mod on_card;
pub(super) mod pacing;
mod pictures;
mod timing;
mod webp;

pub(super) use encoder::FrameEncoder;
pub(super) use gif::GifEncoder;
pub(super) use pictures::{MAX_BORROWED, PictureMaker};
pub(super) use timing::Timing;

use super::VideoSink;
use super::passthrough::Passthrough;
use super::settings::alpha::AlphaWatch;
use super::settings::stage::Staged;
use crate::frame::{Frame, Layout};
use crate::media::ffmpeg::{AvError, Muxer, Picture, Received, SurfaceError, log};
use crate::sink::SinkError;
use crate::sink::ledger::Ledger;
use crate::waiting::is_closed;
use pictures::rgba_bytes;

/// What failed, and FFmpeg's error.
pub(super) type Failure = (&'static str, AvError);

/// What fails before or in the encoder, so that no error of it is the file's.
pub(super) const ENCODER: &str = "the encoder failed";
pub(super) const PICTURE: &str = "a frame cannot be brought to the encoder";
pub(super) const SURFACES: &str = "the encoder's surfaces cannot be made";

const MUXER: &str = "a packet cannot be written";

/// What exists from the first frame on.
pub(super) struct Running {
    /// Of all frames.
    pub(super) layout: Layout,
    pub(super) pictures: PictureMaker,
    pub(super) encoder: FrameEncoder,
    pub(super) timing: Timing,
    /// The encoded stream in the output.
    pub(super) stream: usize,
    pub(super) passthrough: Option<Passthrough>,
    pub(super) alpha: AlphaWatch,
    pub(super) ledger: Ledger,
    /// Colours that a palette has no room for are in the ledger.
    pub(super) colours_are_lost: bool,
    /// What a later rehearsal needs.
    pub(super) staged: Staged,
}

impl VideoSink {
    /// Says that a frame has more colours than its palette, if the user has not asked for one; an error if
    /// the output is to be strict.
    pub(super) fn check_colours(&self, running: &mut Running) -> Result<(), SinkError> {
        let choice = &running.staged.choice;
        if running.colours_are_lost || !choice.is_reduced || running.reduced() == 0 {
            return Ok(());
        }
        running.colours_are_lost = true;
        running.ledger.lose_of_samples(format!(
            "not kept in {}: colours (a palette holds 256, transparency among them, and others become the \
             nearest); PNG, APNG and ffv1 in .mkv keep them, and --pixel-format {} accepts the loss",
            self.place(),
            choice.format.name()
        ));
        match running.ledger.refusal() {
            Some(problem) => Err(self.unsupported(problem)),
            None => Ok(()),
        }
    }
}

impl Running {
    /// How many frames had more colours than a palette, if the encoder takes one.
    pub(super) fn reduced(&self) -> u64 {
        self.pictures.inexact() + self.encoder.gif.as_deref().map_or(0, GifEncoder::inexact)
    }

    /// Encodes one frame and writes what comes out.
    pub(super) fn write(
        &mut self,
        muxer: &mut Muxer,
        frame: Frame,
    ) -> Result<(), (&'static str, SurfaceError)> {
        let pts = self.timing.place(&frame.metadata);
        let (mut picture, sample_aspect) = self.pictures.make(frame).map_err(|e| (PICTURE, e))?;
        picture.set_timing(pts, sample_aspect);
        self.encode(muxer, Some(&picture))
            .map_err(|(what, e)| (what, e.into()))
    }

    /// Feeds the encoder a picture or the end, and writes every packet that it has ready.
    pub(super) fn encode(&mut self, muxer: &mut Muxer, picture: Option<&Picture>) -> Result<(), Failure> {
        if self.encoder.gif.is_some() {
            return self.encode_gif(muxer, picture);
        }
        log::forget();
        loop {
            let taken = self.encoder.send(picture).map_err(|e| (ENCODER, e))?;
            loop {
                // An encoder that looks ahead far may have minutes of work left.
                if self.encoder.stop.as_ref().is_some_and(is_closed) {
                    return Err((ENCODER, AvError::stopped()));
                }
                match self.encoder.receive().map_err(|e| (ENCODER, e))? {
                    Received::Item => {}
                    Received::Again if picture.is_none() && taken => return Ok(()),
                    Received::Again => break,
                    Received::End => return Ok(()),
                }
                self.deliver(muxer).map_err(|e| (MUXER, e))?;
            }
            if taken {
                return Ok(());
            }
        }
    }

    /// The same where FFmpeg's encoder only says to the container what to write.
    fn encode_gif(&mut self, muxer: &mut Muxer, picture: Option<&Picture>) -> Result<(), Failure> {
        let Some(gif) = &mut self.encoder.gif else {
            return Ok(());
        };
        let ready = match (picture, self.timing.pacing.span()) {
            (Some(picture), Some((_, pts, _))) => {
                let rgba = rgba_bytes(picture).map_err(|e| (ENCODER, e))?;
                gif.push(rgba, pts)
            }
            _ => gif.finish(),
        };
        if let Some(frame) = ready {
            self.encoder.put(&frame).map_err(|e| (ENCODER, e))?;
            self.deliver(muxer).map_err(|e| (MUXER, e))?;
        }
        Ok(())
    }

    /// Writes the packet, and before it those of other streams whose time has come.
    fn deliver(&mut self, muxer: &mut Muxer) -> Result<(), AvError> {
        let packet = &mut self.encoder.packet;
        let pts = packet.pts();
        let base = self.timing.pacing.base();
        if self.encoder.is_webp
            && let Some(total) = self.timing.milliseconds()
        {
            webp::set_total(packet.data_mut()?, total);
        }
        if let Some(duration) = pts.and_then(|pts| self.timing.take_duration(pts)) {
            packet.set_duration(duration);
        }
        let seconds = packet.dts().or(pts).map(|at| at as f64 * base.to_f64());
        if let (Some(passthrough), Some(seconds)) = (&mut self.passthrough, seconds) {
            passthrough.copy_until(muxer, seconds)?;
        }
        log::forget();
        let tick = muxer.time_base(self.stream);
        self.timing.pacing.stamp(packet, tick);
        if let Err(e) = muxer.write(packet, self.stream, tick) {
            match &mut self.passthrough {
                Some(passthrough) => {
                    passthrough.absorb(muxer, Some(self.stream), e, seconds.unwrap_or_default())
                }
                None => Err(e),
            }?;
        }
        muxer.io_error().map_or(Ok(()), Err)
    }
}
