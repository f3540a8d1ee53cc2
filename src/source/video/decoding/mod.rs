//! From packets to frames.
//!
//! ```text
//!   packets                                        frames
//!   demuxer ──> packet ──> decoder ──> picture ──> frame
//!                 └────> findings <───────┘
//! ```
//!
//! A frame takes over its picture's memory where it can; else it is a copy, by `conversion` where the coded
//! format is not native, and by `floats` for big-endian floating-point samples. `depths` sees to samples of
//! JPEG 2000 that FFmpeg does not bring to their format's depth.

mod conversion;
mod depths;
mod floats;
mod frames;
mod packets;

pub(super) use conversion::Conversion;
pub(super) use depths::Depths;
pub(super) use floats::are_swapped;
pub(super) use frames::FrameMaker;
pub(super) use packets::InputStream;

use super::{ReadState, VideoSource};
use crate::frame::FieldOrder;
use crate::media::ffmpeg::Received;
use crate::source::SourceError;

impl VideoSource {
    /// Decodes the next picture into `self.picture`; false at the end. `stopped` ends a long search.
    pub(super) fn decode(&mut self, stopped: impl Fn() -> bool) -> Result<bool, SourceError> {
        loop {
            match self.decoder.receive(&mut self.picture) {
                Ok(Received::Item) => {
                    self.note_picture()?;
                    return Ok(true);
                }
                Ok(Received::Again) if self.input.state == ReadState::Reading => self.feed(&stopped)?,
                Ok(Received::Again | Received::End) => {
                    if self.input.state != ReadState::Ended {
                        self.input.state = ReadState::Ended;
                        self.check_end()?;
                    }
                    return Ok(false);
                }
                // Frame threads report a packet's damage when its picture's turn comes.
                Err(e) => self.refused(e)?,
            }
            if stopped() {
                return Err(crate::frame::Stopped.into());
            }
        }
    }

    /// Counts the picture that was decoded, and what is wrong with it.
    pub(super) fn note_picture(&mut self) -> Result<(), SourceError> {
        let mut words: Vec<String> = self
            .decoder
            .too_large()
            .iter()
            .map(|&word| word.to_owned())
            .collect();
        let large = self.picture.large_side_data();
        words.extend(large.iter().map(|fact| fact.word().to_owned()));
        self.findings.leave_out(&self.file, words)?;
        let interlaced = self.picture.field_order() != FieldOrder::Progressive;
        self.findings
            .damage
            .note_picture(self.picture.timestamp(), interlaced);
        self.findings
            .steps
            .note(self.picture.timestamp(), self.picture.duration());
        let is_patched = self.findings.damage.note_patched(self.decoder.patched());
        let is_corrupt = self.picture.is_corrupt();
        if self.findings.strict && (is_corrupt || is_patched) {
            let at = self.picture.timestamp().unwrap_or(0) as f64 * self.info.time_base.to_f64();
            let which = if is_corrupt { "" } else { "or one soon after it " };
            return Err(self.file.invalid(format!(
                "frame {} at {at:.3} s {which}is damaged; without --strict the damage is concealed \
                 and counted",
                self.maker.made
            )));
        }
        self.findings.damage.pictures += u64::from(is_corrupt);
        Ok(())
    }
}
