//! Video files, URLs and streams, decoded by FFmpeg.
//!
//! Pictures keep the pixel format that they were coded in where it is native; others go to the native format
//! that loses least. Damage is concealed as FFmpeg does, counted and reported at the end, or ends the run if
//! the source is strict; an input that was cut off never passes for a whole one.
//!
//! ```text
//!   opening   file ──> choice of a stream ──> first picture ──> learning: the stream's facts, what is lost
//!   frames    seeking ──> decoding: packets ──> pictures ──> frames        (`parallel`: by several decoders)
//!                            └──> findings: damage, holes, an end that is missing
//! ```
//!
//! `known` is what files say of themselves and FFmpeg does not pass on.

mod decoding;
mod file;
mod findings;
mod known;
mod learning;
mod opening;
mod parallel;
mod seeking;
mod selection;

pub use file::is_url_like;
#[doc(hidden)]
pub use parallel::{Consent, Decoders, Place, open};

#[doc(hidden)]
pub use crate::media::ffmpeg::version_name as ffmpeg_version;

use super::{Access, CutRequest, Cuts, Source, SourceError, StreamInfo, Supply};
use crate::frame::{Frame, Remarks};
use crate::media::ffmpeg::{Decoder, Picture};
use crate::waiting::WaitLimit;
use crossbeam_channel::Receiver;
use decoding::{FrameMaker, InputStream};
use file::InputFile;
use findings::Findings;
use seeking::Skip;
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;

/// How a video is to be read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct VideoSourceOptions {
    /// Index of the stream to filter; `None` takes the one that a player would show.
    pub stream: Option<usize>,
    /// Fail at the first damaged packet instead of concealing it.
    pub strict: bool,
    /// Decoder threads; `None` takes one a core, 16 at most.
    pub threads: Option<usize>,
    /// The files and protocols that may be opened for it.
    pub access: Access,
    /// How long the input may be silent; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// Ends the wait for its beginning when it is closed.
    pub stop: Option<Receiver<()>>,
    /// The pipe that the path names, if it is open already.
    pub pipe: Option<Arc<File>>,
    /// Several decoders for one file; `None` has one. For [`open`] alone.
    pub decoders: Option<Decoders>,
}

impl VideoSourceOptions {
    /// What ends the waits for it.
    pub fn limit(&self) -> WaitLimit {
        WaitLimit {
            timeout: self.timeout,
            stop: self.stop.clone(),
        }
    }
}

/// How far an input has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadState {
    Reading,
    /// The decoder has been given the end: no packets follow.
    Draining,
    Ended,
}

/// Frames of one video stream of a media file.
pub struct VideoSource {
    file: InputFile,
    info: StreamInfo,
    input: InputStream,
    decoder: Decoder,
    picture: Picture,
    /// The picture was decoded before it was requested: the first one to know the stream's facts, a later one
    /// to know whether there is one.
    held: bool,
    /// When the stream's last picture ends, where the container says it.
    end: Option<f64>,
    skip: Skip,
    maker: FrameMaker,
    findings: Findings,
}

impl Source for VideoSource {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.maker.made == 0 {
            self.input.demuxer.watch(&supply.stop);
            if self.info.brings_memory {
                // The pictures that were decoded to open the input lie in ordinary memory.
                self.decoder.decode_into(supply.pool.reserve());
            }
        }
        if let Some(tick) = self.skip.target() {
            self.skip_to(tick, &|| supply.is_stopped())?;
        }
        let is_over = self.input.state == ReadState::Ended
            || !std::mem::take(&mut self.held) && !self.decode(|| supply.is_stopped())?;
        if is_over {
            self.lose_annotations()?;
            return Ok(None);
        }
        let mut frame = self.frame(supply)?;
        if self.may_be_last(&frame) {
            self.held = self.decode(|| supply.is_stopped())?;
            if !self.held {
                self.stretch(&mut frame);
            }
        }
        Ok(Some(frame))
    }

    fn pass_over(&mut self, tick: i64) {
        self.skip = Skip::to(tick);
    }

    fn time_of(&mut self, from: i64, number: u64) -> Result<Option<i64>, SourceError> {
        self.packet_time(from, number)
    }

    fn cuts(&mut self, request: CutRequest) -> Result<Cuts, SourceError> {
        self.find_cuts(request)
    }

    fn remarks(&mut self) -> Remarks {
        let name = &self.file.name.clone();
        let Remarks { notes, warnings } = self.take_remarks();
        let warnings = warnings.into_iter().map(|warning| warning.of_input(name));
        Remarks {
            notes: notes.iter().map(|note| format!("{name}: {note}")).collect(),
            warnings: warnings.collect(),
        }
    }
}
