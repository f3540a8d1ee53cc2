//! Video files, encoded by FFmpeg, with the input's other streams passed through.
//!
//! The encoder and the container's head wait for the first frame, whose own colour facts and HDR blocks have
//! precedence over the stream's. What encoder and container can say of them is found out by a rehearsal; what
//! they cannot is undone in the samples where that is possible, and reported where it is not.
//! Frames go to the encoder without a copy of their pixels where it reads them at once.
//!
//! ```text
//!   opening       before anything is read: container, encoder, temporary file
//!   beginning     the first frame: `settings` (selection, rehearsal), `passthrough` streams, the head
//!   encoding      each frame
//!   ending        the last packets, what was lost, the file in its place
//! ```
//!
//! `container` finds out what one holds. `join` makes a file of parts that were encoded by themselves.

mod beginning;
mod container;
mod encoding;
mod ending;
mod join;
mod opening;
mod passthrough;
mod settings;

#[doc(hidden)]
pub use join::{JoinedPart, packet_order};
pub use passthrough::selection::{AudioEncoding, NoStreams, StreamOptions, Streams};
#[doc(hidden)]
pub use settings::encoder::X26X_PRESETS;
#[doc(hidden)]
pub use settings::selection::usual_encoders;

use super::atomic_file::AtomicFile;
use super::constant_rate::irregular;
use super::significant::with_true_bits;
use super::{Flow, Rules, Sink, SinkError, Written, geometry};
use crate::frame::{AllocationError, Allocator, Buffer, DeviceHandle, Frame, Pageable};
use crate::media::ffmpeg::{AvError, EncoderKind, Muxer, SurfaceError, log};
use crate::source::{Origin, StreamInfo};
use container::Container;
use crossbeam_channel::Receiver;
use encoding::{ENCODER, MAX_BORROWED, PICTURE, Running, SURFACES};
use settings::{alpha, selection};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How a video file is to be written.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct VideoOptions {
    /// The file to write. Its extension chooses the container unless `muxer` does.
    pub path: PathBuf,
    /// Replace an existing file.
    pub overwrite: bool,
    /// FFmpeg's name of the encoder; `None` takes the usual one for the container.
    pub encoder: Option<String>,
    /// The encoder's quality number: crf for x264, x265, VPx and AV1, the quantiser scale for MPEG-like
    /// encoders, cq for NVENC.
    pub quality: Option<f64>,
    /// The encoder's preset (cpu-used for VPx and libaom).
    pub preset: Option<String>,
    /// Further options of the encoder or, where it has none of that name, of the muxer, in FFmpeg's words.
    pub encoder_options: Vec<(String, String)>,
    /// FFmpeg's name of the pixel format to encode; `None` takes the frames' own or the nearest that the
    /// encoder takes.
    pub pixel_format: Option<String>,
    /// FFmpeg's name of the container, or an extension of its files; `None` takes the file's own.
    pub muxer: Option<String>,
    /// Encoder threads; `None` leaves the number to the encoder.
    pub threads: Option<usize>,
    /// Copy sound, subtitles, attachments, chapters and texts from the input.
    pub copy_streams: bool,
    /// Which of the input's streams are copied, and how sound is encoded, if `copy_streams`.
    pub streams: StreamOptions,
    /// Fail where something of the input is lost, before anything is written where that is known then.
    pub strict: bool,
    /// Find out only how frames like the first would be written, and what would be refused: no file gets its
    /// name, and the other streams are not read.
    pub trial: bool,
    /// The first frame of the whole, where a part of it is written.
    pub first: Option<FirstFrame>,
}

impl VideoOptions {
    /// A file without the input's other streams, with the usual encoder of its container.
    pub fn new(path: impl Into<PathBuf>) -> VideoOptions {
        VideoOptions {
            path: path.into(),
            ..VideoOptions::default()
        }
    }
}

/// The first frame of a whole video that is written in parts: a trial notes it, and all parts are begun by
/// it, so that they get the same settings and report what of their frames differs from it.
#[derive(Clone, Default)]
pub struct FirstFrame(Arc<OnceLock<Frame>>);

impl FirstFrame {
    /// The frame that was noted; a copy of `frame` if it is the first.
    fn noted(&self, frame: &Frame) -> Result<&Frame, AllocationError> {
        if let Some(noted) = self.0.get() {
            return Ok(noted);
        }
        let memory = Pageable.allocate(frame.layout().size())?;
        let mut copy = Frame::new(*frame.layout(), Buffer::unpooled(memory))?;
        copy.bytes_mut().copy_from_slice(frame.bytes());
        copy.metadata = frame.metadata.clone();
        Ok(self.0.get_or_init(|| copy))
    }
}

impl fmt::Debug for FirstFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noted = self.0.get().map(|frame| geometry(frame.layout()));
        f.debug_tuple("FirstFrame").field(&noted).finish()
    }
}

impl PartialEq for FirstFrame {
    fn eq(&self, other: &FirstFrame) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// True if both paths lead to the same existing file.
#[doc(hidden)]
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// True if this FFmpeg has a container for files with such a name, in which there is a place for video.
#[doc(hidden)]
pub fn can_be_written(path: &Path) -> bool {
    Muxer::in_memory(None, path).is_ok_and(|muxer| {
        let container = Container::of(&muxer, None, path);
        selection::default_encoder(&muxer, &container).is_some()
    })
}

/// The extension of files of the container that `format` names: that itself, or the usual one if it is
/// FFmpeg's name of the container. `None` if there is no such container, or it has none.
#[doc(hidden)]
pub fn extension_of(format: &str) -> Option<String> {
    let muxer = Muxer::in_memory(Some(format), Path::new("")).ok()?;
    let extensions = muxer.extensions();
    let mut known = extensions.split(',').filter(|extension| !extension.is_empty());
    let usual = known.clone().next()?;
    Some(known.find(|known| *known == format).unwrap_or(usual).to_owned())
}

/// Writes frames into one stream of a media file.
pub struct VideoSink {
    options: VideoOptions,
    name: String,
    kind: EncoderKind,
    origin: Option<Origin>,
    info: StreamInfo,
    /// Fields are dropped in this order: the muxer closes its file before the file is removed.
    output: Output,
    container: Container,
    file: AtomicFile,
    warnings: Vec<String>,
    /// The device in whose memory the encoder reads frames.
    device: Option<DeviceHandle>,
    /// Closed when the run is to be abandoned.
    stop: Option<Receiver<()>>,
    /// The reader of a pipe has gone.
    is_closed: bool,
}

/// The container, and the encoder once the first frame is known.
struct Output {
    running: Option<Box<Running>>,
    muxer: Muxer,
}

impl VideoOptions {
    fn rules(&self) -> Rules {
        Rules {
            overwrite: self.overwrite,
            strict: self.strict,
            pictures_alone: false,
            trial: self.trial,
        }
    }
}

impl VideoSink {
    fn unsupported(&self, problem: String) -> SinkError {
        SinkError::Unsupported {
            path: self.name.clone(),
            problem,
        }
    }

    /// The error of a pipe whose reader has gone.
    fn reader_gone(&self) -> SinkError {
        self.file.failed(std::io::ErrorKind::BrokenPipe.into())
    }

    /// A failed call of FFmpeg, as the error that it most likely is.
    fn failure(&self, what: &str, e: AvError) -> SinkError {
        let io = self.output.muxer.io_error();
        let is_of_file = || {
            let is_of_encoder = [ENCODER, PICTURE, SURFACES].contains(&what);
            !is_of_encoder && e.to_io().raw_os_error().is_some() && !e.is_refusal()
        };
        match io {
            Some(io) => self.file.failed(io.to_io()),
            None if is_of_file() => self.file.failed(e.to_io()),
            None => self.unsupported(log::explained(&format!("{what}: {e}"))),
        }
    }

    /// Finds out, with the first frame that comes at another time than the frame rate has it, whether the
    /// container keeps such times.
    fn check_times(&self, running: &mut Running, frame: &Frame) -> Result<(), SinkError> {
        if !running.timing.turns_irregular(frame.metadata.pts) {
            return Ok(());
        }
        running.timing.is_lost = !self.keeps_times(&running.staged);
        if running.timing.is_lost && self.options.strict {
            return Err(self.unsupported(irregular(self.container.name())));
        }
        Ok(())
    }
}

impl Sink for VideoSink {
    fn held_buffers(&self) -> usize {
        MAX_BORROWED
    }

    fn delayed_frames(&self) -> u64 {
        let running = self.output.running.as_ref();
        running.map_or(0, |running| {
            running.timing.frames.saturating_sub(running.encoder.encoded())
        })
    }

    fn bytes(&self) -> Option<u64> {
        let facts = self.file.file().metadata().ok()?;
        facts.is_file().then_some(facts.len())
    }

    fn read_on_device(&mut self, device: Result<DeviceHandle, &'static str>) -> bool {
        self.settle_on_card(device)
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.stop = Some(stop.clone());
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        match self.write_frame(frame) {
            Err(_) if self.output.muxer.lost_its_reader() => {
                self.is_closed = true;
                Ok(Flow::Closed)
            }
            Err(error) => Err(error),
            Ok(()) => Ok(Flow::More),
        }
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        match self.options.trial {
            true => self.end_trial(),
            false => self.end(),
        }
    }
}

impl VideoSink {
    /// Encodes a frame, for which the encoder is opened if it is the first.
    fn write_frame(&mut self, frame: Frame) -> Result<(), SinkError> {
        let frame = with_true_bits(frame);
        let (mut running, is_first) = match self.output.running.take() {
            Some(running) => (running, false),
            None => (self.begin(&frame)?, true),
        };
        let (found, expected) = (frame.layout(), &running.layout);
        if (found.format(), found.width(), found.height())
            != (expected.format(), expected.width(), expected.height())
        {
            let file = frame.metadata.file.as_ref();
            return Err(SinkError::Mismatch {
                path: self.name.clone(),
                sequence: frame.sequence + frame.metadata.skipped.frames.unwrap_or(0),
                from: file.map_or_else(String::new, |f| format!(" ({})", f.display())),
                found: geometry(found),
                expected: geometry(expected),
            });
        }
        if let Some(lost) = running.alpha.look(&frame)
            && self.options.strict
        {
            return Err(alpha::refused(&self.name, &lost));
        }
        if !is_first || self.options.first.is_some() {
            self.account(&running.staged, &mut running.ledger, &frame)?;
        }
        self.check_times(&mut running, &frame)?;
        if let Some(problem) = running.timing.refusal(&self.output.muxer, frame.metadata.pts) {
            return Err(self.unsupported(problem));
        }
        let written = running.write(&mut self.output.muxer, frame);
        if written.is_err() && self.output.muxer.lost_its_reader() {
            // What was written until then is described at the end.
            self.output.running = Some(running);
            return Err(self.reader_gone());
        }
        written.map_err(|(what, e)| match e {
            SurfaceError::Ffmpeg(e) => self.failure(what, e),
            SurfaceError::Card(problem) => self.unsupported(problem),
        })?;
        self.check_colours(&mut running)?;
        self.output.running = Some(running);
        Ok(())
    }
}
