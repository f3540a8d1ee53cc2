//! Video files, encoded by FFmpeg, with the input's other streams passed through.
//!
//! The encoder and the container's head wait for the first frame, whose own colour facts and HDR blocks have
//! precedence over the stream's. What encoder and container can say of them is found out by a rehearsal; what
//! they cannot is undone in the samples where that is possible, and reported where it is not (see `stage`).
//! Frames go to the encoder without a copy of their pixels where it reads them at once.

mod container;
mod encoding;
mod join;
mod passthrough;
mod selection;
mod settings;

use super::atomic_file::AtomicFile;
use super::constant_rate::{ConstantRate, assumed_rate, irregular};
use super::ledger::Ledger;
use super::{Flow, Sink, SinkError, Written, geometry};
use crate::ffmpeg::{
    AudioEncoderKind, AvError, AvFormat, Encoder, EncoderKind, Muxer, MuxerFailure, Packet, Picture,
    Received, Scaler, lend, log, rescale,
};
use crate::frame::{ColourModel, Frame, Layout, PixelFormat, Rational, Remarks, Stopped, is_closed};
use crate::source::range::nanos;
use crate::source::{Origin, StreamInfo};
use crate::wording::counted;
pub use selection::{AudioEncoding, NoStreams, StreamOptions, Streams};
pub use settings::choice::usual_encoders;
#[doc(hidden)]
pub use settings::encoder::X26X_PRESETS;

use container::{AddVideo, Container, explained};
use crossbeam_channel::Receiver;
use encoding::gif::GifEncoder;
use encoding::pacing::Pacing;
use encoding::webp;
pub use join::{JoinedPart, packet_order};
use passthrough::{MapFailure, Passthrough};
use settings::alpha::{self, AlphaWatch};
use settings::choice::{self, FormatChoice};
use settings::samples::{self, SampleSteps};
use settings::stage::Staged;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Frames whose memory an encoder may hold at a time; more are copied, so that a fixed pool of frames never
/// runs dry.
const MAX_BORROWED: usize = 2;

/// Seconds after the output's beginning from which on a first picture is late.
const LATE: f64 = 0.05;

/// Encoders that read a frame's pixels exactly and only while it is handed over.
const READS_AT_ONCE: &[&str] = &[
    "libx264",
    "libx264rgb",
    "libx265",
    "libvpx",
    "libvpx-vp9",
    "libaom-av1",
];

/// How a video file is to be written.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// FFmpeg's name of the container, or an extension of its files; `None` goes by the file's own.
    pub muxer: Option<String>,
    /// Encoder threads; `None` leaves the number to the encoder.
    pub threads: Option<usize>,
    /// Copy sound, subtitles, attachments, chapters and texts from the input.
    pub copy_streams: bool,
    /// Which of the input's streams are copied, and how sound is encoded, if `copy_streams`.
    pub streams: StreamOptions,
    /// Fail where something of the input is lost, before anything is written where that is known then.
    pub strict: bool,
}

/// True if both paths lead to the same existing file.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (a.metadata(), b.metadata()) {
        (Ok(a), Ok(b)) => a.is_file() && (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

/// True if this FFmpeg has a container for files with such a name, in which there is a place for video.
pub fn can_be_written(path: &Path) -> bool {
    Muxer::in_memory(None, path).is_ok_and(|muxer| {
        let container = Container::of(&muxer, None, path);
        choice::default_encoder(&muxer, &container).is_some()
    })
}

/// The extension of files of the container that `format` names: that itself, or the usual one if it is
/// FFmpeg's name of the container. `None` if there is no such container, or it has none.
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
    part: AtomicFile,
    warnings: Vec<String>,
    /// Closed when the run is to be abandoned.
    stop: Option<Receiver<()>>,
}

/// The container, and the encoder once the first frame is known.
struct Output {
    running: Option<Box<Running>>,
    muxer: Muxer,
}

/// How pictures come to a palette, if they do.
enum Palette {
    /// The encoder takes others.
    None,
    /// FFmpeg's encoder takes indices and palette.
    Encoder,
    /// FFmpeg's encoder only tells the container what to write.
    Gif(Box<GifEncoder>),
}

/// What exists from the first frame on.
struct Running {
    encoder: Encoder,
    layout: Layout,
    choice: FormatChoice,
    scaler: Option<(Scaler, Picture)>,
    palette: Palette,
    /// All frames come in one packet, at the end.
    is_webp: bool,
    /// The user said how long the last frame of an animation is shown.
    ends_by_option: bool,
    alpha: AlphaWatch,
    passthrough: Option<Passthrough>,
    stream: usize,
    pacing: Pacing,
    /// Whether frames come at the frame rate.
    rate: ConstantRate,
    /// They do not, and the container shows them as if they did.
    times_are_lost: bool,
    packet: Packet,
    borrowed: Arc<AtomicUsize>,
    borrows: bool,
    /// Durations of frames that are inside the encoder, by time.
    durations: HashMap<i64, i64>,
    /// End of the last frame, in seconds.
    end: f64,
    frames: u64,
    /// Frames that have come out of the encoder.
    encoded: u64,
    /// What ends the encoder's last work early, once no frame follows.
    stop: Option<Receiver<()>>,
    settings: String,
    /// What becomes of the frames before they are brought to the encoder's format.
    samples: SampleSteps,
    ledger: Ledger,
    /// What a later rehearsal needs.
    staged: Staged,
}

impl VideoSink {
    /// Prepares the output: container, encoder and temporary file. What can be known to fail before the first
    /// frame fails here.
    pub fn create(info: &StreamInfo, options: VideoOptions) -> Result<VideoSink, SinkError> {
        let name = options.path.display().to_string();
        let unsupported = |problem: String| SinkError::Unsupported {
            path: name.clone(),
            problem,
        };
        if let Some(origin) = &info.origin
            && is_same_file(&origin.path, &options.path)
        {
            return Err(unsupported(
                "is the input itself; write to another file, and rename it afterwards".to_owned(),
            ));
        }
        let part = AtomicFile::create(&options.path, options.overwrite)?;
        let muxer =
            Muxer::create(options.muxer.as_deref(), &options.path, part.path()).map_err(|failure| {
                match failure {
                    MuxerFailure::Unknown => unsupported(match &options.muxer {
                        Some(muxer) => format!(
                            "this FFmpeg has no container '{muxer}' to write; try mp4, mov, \
                        matroska, webm or avi"
                        ),
                        None => "its name does not tell the container; end it in .mp4, .mov, .mkv, .webm or \
                        .avi, or name one with --format; pictures are .png, .jpg or .tif"
                            .to_owned(),
                    }),
                    MuxerFailure::NoFile(muxer) if muxer.starts_with("image2") => unsupported(
                        "is the name of a single picture, and a video is written here; stills go to .png, \
                         .jpg or .tif, without --format"
                            .to_owned(),
                    ),
                    MuxerFailure::NoFile(muxer) => unsupported(format!(
                        "{muxer} does not write into one file; choose another container"
                    )),
                    MuxerFailure::Open(e) => SinkError::Io {
                        path: name.clone(),
                        cause: e.to_io(),
                    },
                }
            })?;
        let container = Container::of(&muxer, options.muxer.as_deref(), &options.path);
        let encoder = options.encoder.as_deref();
        let kind =
            choice::choose_encoder(&muxer, &container, encoder, info.format, false).map_err(unsupported)?;
        if let AudioEncoding::By(name) = &options.streams.audio
            && AudioEncoderKind::find(name).is_none()
        {
            return Err(unsupported(passthrough::no_audio_encoder(name)));
        }
        let sink = VideoSink {
            name,
            kind,
            origin: info.origin.clone().filter(|_| options.copy_streams),
            info: info.clone(),
            output: Output { running: None, muxer },
            container,
            part,
            warnings: Vec::new(),
            stop: None,
            options,
        };
        if sink.is_encoder_settled() {
            sink.try_encoder()?;
        }
        Ok(sink)
    }

    /// FFmpeg's name of the encoder, as far as it is known before the first frame.
    pub fn encoder_name(&self) -> String {
        self.kind.name()
    }

    /// The format of floating-point samples that the encoder takes and that holds all of `format`'s; `None`
    /// if there is none.
    pub fn nearest_floats(&self, format: PixelFormat) -> Option<PixelFormat> {
        // Raw video takes all, but no container tells of floating-point samples in it.
        let taken = self.kind.formats();
        let knows = |name: &str| AvFormat::from_name(name).is_some_and(|f| taken.contains(&f));
        let holds = |other: PixelFormat| {
            (other.model(), other.has_alpha()) == (format.model(), format.has_alpha())
                && other.depth() >= format.depth()
                && knows(other.name())
        };
        let found = PixelFormat::floats().filter(|&other| holds(other));
        // Its own, or else the smallest.
        found.min_by_key(|&other| (other != format, other.depth()))
    }

    /// True if streams that were encoded in parts can be put together in the container: not so for pictures
    /// that build on one palette or canvas.
    pub fn is_joinable(&self) -> bool {
        !matches!(self.output.muxer.name().as_str(), "gif" | "webp" | "apng")
    }

    /// True if the user said something about the encoder, and no frame can change which one it is.
    fn is_encoder_settled(&self) -> bool {
        let options = &self.options;
        let has_options = options.quality.is_some()
            || options.preset.is_some()
            || !options.encoder_options.is_empty()
            || options.pixel_format.is_some();
        let is_named = options.encoder.is_some();
        let can_be_tried = self.info.uniform && !self.kind.waits_for_a_picture();
        can_be_tried && (is_named || has_options && !self.info.format.has_alpha())
    }

    fn unsupported(&self, problem: String) -> SinkError {
        SinkError::Unsupported {
            path: self.name.clone(),
            problem,
        }
    }

    /// Opens the encoder for frames like `frame` and writes the container's head.
    fn begin(&mut self, frame: &Frame) -> Result<Box<Running>, SinkError> {
        let layout = *frame.layout();
        if is_seen_through(frame) {
            self.kind = choice::choose_encoder(
                &self.output.muxer,
                &self.container,
                self.options.encoder.as_deref(),
                layout.format(),
                true,
            )
            .map_err(|problem| self.unsupported(problem))?;
        }
        let (staged, ledger, sample) = self.stage(frame)?;
        self.container.set_sample(sample);
        self.warnings.extend(staged.misreading.clone());
        let name = self.name.clone();
        let failed = |e: AvError| SinkError::Io {
            path: name.clone(),
            cause: e.to_io(),
        };
        let encoder_name = self.kind.name();
        let ((encoder, left), settings) = self.open_encoder(&staged.setup, &staged.hdr)?;
        self.set_container_options(&encoder_name, left)?;
        let base = staged.setup.time_base;
        let choice = staged.choice.clone();
        let (scaler, samples) = self.sample_steps(&layout, &staged)?;
        let picture = frame.metadata.pts.unwrap_or(0) as f64 * self.info.time_base.to_f64();
        let tag = self.codec_tag();
        let add_video = |muxer: &mut Muxer| {
            let index = muxer.add_encoded(&encoder, tag)?;
            for block in &staged.blocks {
                muxer.add_side_data(index, block)?;
            }
            Ok(index)
        };
        if let Some(origin) = self.origin.as_mut().filter(|origin| origin.stretch.start == 0) {
            origin.stretch.start = nanos(frame.metadata.skipped.ticks, self.info.time_base);
        }
        let (stream, mut passthrough) = self.map_streams(&add_video, picture)?;
        let pause = passthrough.as_ref().map_or(0.0, Passthrough::pause);
        if let Err(reason) = explained(|| self.output.muxer.begin()) {
            return Err(self.refused_head(&reason));
        }
        if let Some(passthrough) = &mut passthrough {
            passthrough.begin_on_ticks(&self.output.muxer);
        }
        let step = frame.metadata.duration.unwrap_or_else(|| self.ticks_of_a_frame());
        let mut pacing = Pacing::new(self.info.time_base, base, pause, step);
        pacing.suit(&self.output.muxer, stream);
        let has_palette = choice.format.facts().is_some_and(|facts| facts.palette);
        let palette = match (has_palette, encoder_name.as_str()) {
            (false, _) => Palette::None,
            // Of the size behind a turn.
            (true, "gif") => Palette::Gif(Box::new(GifEncoder::new(
                staged.setup.width,
                staged.setup.height,
                staged.setup.sample_aspect,
            ))),
            (true, _) => Palette::Encoder,
        };
        let alpha = AlphaWatch::new(
            &self.container,
            self.kind,
            choice.format,
            layout.format().has_alpha(),
        );
        Ok(Box::new(Running {
            palette,
            is_webp: encoder_name == "libwebp_anim",
            ends_by_option: self
                .options
                .encoder_options
                .iter()
                .any(|(key, _)| key.strip_suffix(":v").unwrap_or(key) == "final_delay"),
            alpha,
            encoder,
            layout,
            borrows: scaler.is_none() && READS_AT_ONCE.contains(&encoder_name.as_str()),
            choice,
            scaler,
            passthrough,
            stream,
            pacing,
            rate: ConstantRate::of(&self.info),
            times_are_lost: false,
            packet: Packet::new().map_err(failed)?,
            borrowed: Arc::default(),
            durations: HashMap::new(),
            end: 0.0,
            frames: 0,
            encoded: 0,
            stop: None,
            settings,
            samples,
            ledger,
            staged,
        }))
    }

    /// Gives the container the options that the encoder has `left`.
    fn set_container_options(
        &mut self,
        encoder_name: &str,
        left: impl IntoIterator<Item = (String, String)>,
    ) -> Result<(), SinkError> {
        let repeat = repeated(&self.output.muxer.name(), self.info.plays);
        let repeat = repeat.map(|(key, value)| (key.to_owned(), value.to_string()));
        for (key, value) in repeat.into_iter().chain(left) {
            let container = self.output.muxer.name();
            self.container.option(&key, &value);
            self.output.muxer.set(&key, &value).map_err(|e| {
                self.unsupported(if e.is_option_not_found() {
                    format!(
                        "neither the encoder {encoder_name} nor the container {container} has an option \
                         '{key}'; `ffmpeg -h encoder={encoder_name}` lists them"
                    )
                } else {
                    format!("the container {container} refuses {key}={value}: {e}")
                })
            })?;
        }
        Ok(())
    }

    /// How long a frame lasts at the input's frame rate, in ticks of its clock; 1 without a rate.
    fn ticks_of_a_frame(&self) -> i64 {
        self.info.frame_rate.map_or(1, |rate| {
            let one = Rational {
                num: rate.den,
                den: rate.num,
            };
            rescale(1, one, self.info.time_base)
        })
    }

    /// Adds the encoded stream, by `add_video`, and the passthrough streams to the container. The first
    /// picture is shown at `picture` seconds.
    fn map_streams(
        &mut self,
        add_video: AddVideo<'_>,
        picture: f64,
    ) -> Result<(usize, Option<Passthrough>), SinkError> {
        let strict = self.options.strict;
        let opened = self
            .origin
            .as_ref()
            .map(|origin| Passthrough::open(origin, strict));
        let mut passthrough = match opened {
            Some(Ok(passthrough)) => Some(passthrough),
            Some(Err(_)) if self.options.streams.streams == Streams::Video => None,
            Some(Err(warning)) if strict => {
                return Err(self.unsupported(format!(
                    "{warning}; give a file, or leave the other streams out with --streams video"
                )));
            }
            Some(Err(warning)) => {
                self.warnings.push(warning);
                None
            }
            None => None,
        };
        let muxer = &mut self.output.muxer;
        let mapped = match &mut passthrough {
            Some(passthrough) => {
                passthrough.map(muxer, &self.container, add_video, &self.options.streams, picture)
            }
            None => add_video(muxer).map_err(MapFailure::Memory),
        };
        let stream = mapped.map_err(|failure| match failure {
            MapFailure::Memory(e) => SinkError::Io {
                path: self.name.clone(),
                cause: e.to_io(),
            },
            MapFailure::Refused(problem) => self.unsupported(problem),
        })?;
        if let Some(passthrough) = &passthrough
            && strict
            && let Some(problem) = passthrough.refusal()
        {
            return Err(self.unsupported(problem));
        }
        let begins = picture - passthrough.as_ref().map_or(0.0, Passthrough::pause);
        if begins > LATE && self.container.moves_first_picture(begins) {
            let early = format!(
                "{} cannot begin without a picture: the first one, which belongs {begins:.3} s after the \
                 beginning, is shown from the beginning on",
                self.container.name()
            );
            if strict {
                return Err(self.unsupported(early));
            }
            self.warnings.push(early);
        }
        if let Some(plays @ 2..) = self.info.plays
            && repeated(self.container.name(), None).is_none()
        {
            let lost = format!(
                "{} cannot say that the input is shown {plays} times; GIF, APNG and WebP can",
                self.container.name()
            );
            if strict {
                return Err(self.unsupported(lost));
            }
            self.warnings.push(lost);
        }
        Ok((stream, passthrough))
    }

    /// What to say if the container's head cannot be written for `reason`. The other streams were tried
    /// before, so that it is the encoder's or the file's.
    fn refused_head(&self, reason: &str) -> SinkError {
        if let Some(io) = self.output.muxer.io_error() {
            return SinkError::Io {
                path: self.name.clone(),
                cause: io.to_io(),
            };
        }
        let container = self.container.name();
        if !self.output.muxer.can_seek() {
            return self.unsupported(format!(
                "{container} cannot be written to it ({reason}); some containers have to go back in what \
                 they wrote: choose another one, such as matroska, a file, or for MP4 and MOV \
                 --encoder-option movflags=frag_keyframe+empty_moov"
            ));
        }
        self.unsupported(format!(
            "{container} cannot hold {}, which the encoder {} writes: {reason}; {}",
            self.kind.codec_name(),
            self.kind.name(),
            choice::offer(&self.output.muxer, &self.container, Some(self.kind))
        ))
    }

    /// A failed call of FFmpeg, as the error that it most likely is.
    fn failure(&self, what: &str, e: AvError) -> SinkError {
        let io = self.output.muxer.io_error();
        match io {
            Some(io) => self.part.failed(io.to_io()),
            None if e.to_io().raw_os_error().is_some() && !e.is_refusal() => self.part.failed(e.to_io()),
            None => self.unsupported(log::explained(&format!("{what}: {e}"))),
        }
    }
}

impl VideoSink {
    /// Finds out, with the first frame that comes at another time than the frame rate has it, whether the
    /// container keeps such times.
    fn check_times(&self, running: &mut Running, frame: &Frame) -> Result<(), SinkError> {
        let before = running.rate.is_irregular();
        running.rate.see(frame.metadata.pts, running.frames);
        if before || !running.rate.is_irregular() {
            return Ok(());
        }
        running.times_are_lost = !self.keeps_times(&running.staged);
        if running.times_are_lost && self.options.strict {
            return Err(self.unsupported(irregular(self.container.name())));
        }
        Ok(())
    }

    /// When the output's last frame ends, in seconds, as its container has it.
    fn shown_end(&self, running: &Running) -> f64 {
        match running.pacing.span() {
            Some((first, ..)) if running.times_are_lost => {
                let length = running.frames as f64 / assumed_rate(&self.info).to_f64();
                first as f64 * running.pacing.base().to_f64() + length
            }
            _ => running.end,
        }
    }

    /// Tells what became of alpha.
    fn check_alpha(&mut self, running: &Running) -> Result<(), SinkError> {
        self.warnings.extend(running.alpha.warning());
        if self.part.path() == self.options.path {
            return Ok(());
        }
        if let Some(lost) = running.alpha.missing(self.part.path(), running.stream) {
            if self.options.strict {
                return Err(alpha::refused(&self.name, &lost));
            }
            self.warnings.push(lost);
        }
        Ok(())
    }
}

impl Running {
    /// Encodes one frame and writes what comes out.
    fn write(&mut self, muxer: &mut Muxer, frame: Frame) -> Result<(), (&'static str, AvError)> {
        let (pts, step) = self.pacing.place(frame.metadata.pts, frame.metadata.duration);
        self.frames += 1;
        self.durations.insert(pts, step);
        self.end = self.end.max((pts + step) as f64 * self.pacing.base().to_f64());
        let mut picture = self
            .picture(frame)
            .map_err(|e| ("a frame cannot be brought to the encoder", e))?;
        let sample_aspect = picture.1;
        picture.0.set_timing(pts, sample_aspect);
        self.encode(muxer, Some(&picture.0))
    }

    /// The picture of `after`, which the scaler made, as the encoder takes it.
    fn to_palette(&self, after: Picture) -> Result<Picture, AvError> {
        if !matches!(self.palette, Palette::Encoder) {
            return Ok(after);
        }
        let (width, height) = (after.width(), after.height());
        let indexed = crate::convert::indexed(&rgba_bytes(&after)?, width, false);
        let mut picture = Picture::allocate(self.choice.format, width, height)?;
        for (y, row) in indexed.indices.chunks_exact(width).enumerate() {
            let to = picture.row_mut(0, y, width).ok_or_else(AvError::bug)?;
            to.copy_from_slice(row);
        }
        let mut colours: Vec<[u8; 4]> = indexed.palette.iter().map(|&[r, g, b]| [r, g, b, 255]).collect();
        if let (true, Some(first)) = (indexed.transparent, colours.first_mut()) {
            *first = [0; 4];
        }
        picture.set_palette(&colours)?;
        Ok(picture)
    }

    /// The picture that goes to the encoder, with the frame's facts but not yet its time, and the pixel
    /// aspect.
    fn picture(&mut self, frame: Frame) -> Result<(Picture, (i32, i32)), AvError> {
        let frame = self.samples.run(frame)?;
        let metadata = frame.metadata.clone();
        let mut picture = match &mut self.scaler {
            Some((scaler, before)) => {
                before.copy_from(&frame)?;
                // A new picture each time, since the encoder may still read the one before.
                let mut after = Picture::allocate(
                    samples::scaled_format(&self.choice),
                    frame.layout().width(),
                    frame.layout().height(),
                )?;
                scaler.run(before, &mut after)?;
                self.to_palette(after)?
            }
            None if self.borrows && self.borrowed.load(Ordering::Acquire) < MAX_BORROWED => {
                lend(frame, self.choice.format, &self.borrowed)?
            }
            None => {
                let (width, height) = (frame.layout().width(), frame.layout().height());
                let mut copy = Picture::allocate(self.choice.format, width, height)?;
                copy.copy_from(&frame)?;
                copy
            }
        };
        picture.set_colour(self.choice.colour);
        picture.set_field_order(metadata.field_order);
        for block in &metadata.side_data {
            picture.add_side_data(block)?;
        }
        Ok((picture, metadata.sample_aspect))
    }

    /// Feeds the encoder a picture or the end, and writes every packet that it has ready.
    fn encode(
        &mut self,
        muxer: &mut Muxer,
        picture: Option<&Picture>,
    ) -> Result<(), (&'static str, AvError)> {
        const ENCODER: &str = "the encoder failed";
        const MUXER: &str = "a packet cannot be written";
        if let Palette::Gif(gif) = &mut self.palette {
            let ready = match (picture, self.pacing.span()) {
                (Some(picture), Some((_, pts, _))) => {
                    let rgba = rgba_bytes(picture).map_err(|e| (ENCODER, e))?;
                    gif.push(rgba, pts)
                }
                _ => gif.finish(),
            };
            if let Some(frame) = ready {
                self.packet =
                    Packet::from_data(&frame.data, frame.pts, frame.is_first).map_err(|e| (ENCODER, e))?;
                self.deliver(muxer).map_err(|e| (MUXER, e))?;
            }
            return Ok(());
        }
        log::forget();
        loop {
            let taken = match self.encoder.send(picture) {
                Ok(()) => true,
                Err(e) if e.is_again() => false,
                Err(e) if e.is_eof() && picture.is_none() => true,
                Err(e) => return Err((ENCODER, e)),
            };
            loop {
                // An encoder that looks ahead far may have minutes of work left.
                if self.stop.as_ref().is_some_and(is_closed) {
                    return Err((ENCODER, AvError::stopped()));
                }
                match self.encoder.receive(&mut self.packet).map_err(|e| (ENCODER, e))? {
                    Received::Item => self.encoded += 1,
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

    /// Tells the containers of animations how long the last frame is shown: they count frames' times from one
    /// to the next.
    fn end_last_frame(&self, muxer: &mut Muxer) -> Result<(), AvError> {
        let Some((_, last, end)) = self.pacing.span() else {
            return Ok(());
        };
        let ticks = |pts: i64, den: i32| rescale(pts, self.pacing.base(), Rational { num: 1, den });
        let shown = |den: i32| ticks(end, den) - ticks(last, den);
        match muxer.name().as_str() {
            "gif" => muxer.set("final_delay", &shown(100).clamp(0, 65_535).to_string()),
            "apng" => muxer.set("final_delay", &format!("{}/1000", shown(1000).clamp(0, 65_535))),
            _ => Ok(()),
        }
    }

    /// Writes the packet, and before it those of other streams whose time has come.
    fn deliver(&mut self, muxer: &mut Muxer) -> Result<(), AvError> {
        let pts = self.packet.pts();
        let base = self.pacing.base();
        if let (Some((first, _, end)), true) = (self.pacing.span(), self.is_webp) {
            let milliseconds = Rational { num: 1, den: 1000 };
            let total = rescale(end, base, milliseconds) - rescale(first, base, milliseconds);
            webp::set_total(self.packet.data_mut()?, total);
        }
        if let Some(duration) = pts.and_then(|pts| self.durations.remove(&pts)) {
            self.packet.set_duration(duration);
        }
        let seconds = self.packet.dts().or(pts).map(|at| at as f64 * base.to_f64());
        if let (Some(passthrough), Some(seconds)) = (&mut self.passthrough, seconds) {
            passthrough.copy_until(muxer, seconds)?;
        }
        log::forget();
        if let Err(e) = muxer.write(&mut self.packet, self.stream, base) {
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

impl Sink for VideoSink {
    fn held_buffers(&self) -> usize {
        MAX_BORROWED
    }

    fn delayed_frames(&self) -> u64 {
        let running = self.output.running.as_ref();
        running.map_or(0, |running| running.frames.saturating_sub(running.encoded))
    }

    fn bytes(&self) -> Option<u64> {
        let facts = self.part.file().metadata().ok()?;
        facts.is_file().then_some(facts.len())
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.stop = Some(stop.clone());
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
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
                sequence: frame.sequence,
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
        if !is_first {
            self.account(&mut running, &frame)?;
        }
        self.check_times(&mut running, &frame)?;
        running
            .write(&mut self.output.muxer, frame)
            .map_err(|(what, e)| self.failure(what, e))?;
        self.output.running = Some(running);
        Ok(Flow::More)
    }

    fn finish(mut self: Box<Self>) -> Result<Written, SinkError> {
        let Some(mut running) = self.output.running.take() else {
            return Err(self.unsupported("no frame was written, and a video needs one".to_owned()));
        };
        let shown_end = self.shown_end(&running);
        let muxer = &mut self.output.muxer;
        running.stop = self.stop.take();
        let mut result = running.encode(muxer, None);
        if result.is_err() && running.stop.as_ref().is_some_and(is_closed) {
            return Err(Stopped.into());
        }
        if result.is_ok()
            && let Some(passthrough) = &mut running.passthrough
        {
            let rest = passthrough.copy_rest(muxer, running.end, shown_end);
            result = rest.map_err(|e| ("a packet of a copied stream cannot be written", e));
        }
        if result.is_ok() && !running.ends_by_option {
            let timed = running.end_last_frame(muxer);
            result = timed.map_err(|e| ("the last frame's time cannot be set", e));
        }
        if result.is_ok() {
            log::forget();
        }
        let ended = match result {
            Ok(()) => muxer.end().map_err(|e| ("the file cannot be completed", e)),
            Err(e) => Err(e),
        };
        let bytes = ended.map_err(|(what, e)| self.failure(what, e))?;
        let mut losses: Vec<String> = self.check_kept(&mut running).into_iter().collect();
        losses.append(&mut running.ledger.sentences());
        self.check_alpha(&running)?;
        losses.extend(running.times_are_lost.then(|| irregular(self.container.name())));
        losses.extend(running.pacing.sentences(&self.output.muxer.name()));
        self.warnings.append(&mut losses);
        let copied = running.passthrough.as_mut();
        let copied = copied.map_or_else(String::new, |passthrough| self.account_of_streams(passthrough));
        let remarks = Remarks::warnings(std::mem::take(&mut self.warnings));
        if let Some(problem) = remarks.refusal().filter(|_| self.options.strict) {
            return Err(self.unsupported(problem));
        }
        let mut converted = running
            .choice
            .note
            .as_ref()
            .map_or_else(String::new, |n| format!(", {n}"));
        if let Palette::Gif(gif) = &running.palette
            && gif.inexact() > 0
        {
            converted.push_str(&format!(
                ", {} reduced to 256 colours",
                counted(gif.inexact(), "frame")
            ));
        }
        let undone = running.ledger.notes();
        let description = format!(
            "{}, {}{}, {} in {}{converted}{undone}{copied}",
            self.name,
            self.kind.name(),
            running.settings,
            running.choice.format.name(),
            self.output.muxer.name(),
        );
        let this = *self;
        this.part.commit()?;
        Ok(Written {
            description,
            bytes,
            remarks,
            closed_early: false,
        })
    }
}

/// True if the encoder is to be chosen for alpha: the format has it, and it is used. Graphics of 8 bits have
/// it by habit (all GIFs do), so that their first frame tells; others have it on purpose.
fn is_seen_through(frame: &Frame) -> bool {
    let format = frame.format();
    let by_habit = format.depth() <= 8 && format.model() != ColourModel::Yuv;
    format.has_alpha() && !(by_habit && frame.is_opaque())
}

/// The bytes of a picture of four-byte pixels, without padding.
fn rgba_bytes(picture: &Picture) -> Result<Vec<u8>, AvError> {
    let len = 4 * picture.width();
    let mut bytes = Vec::with_capacity(len * picture.height());
    for y in 0..picture.height() {
        bytes.extend_from_slice(picture.row(0, y, len).ok_or_else(AvError::bug)?);
    }
    Ok(bytes)
}

/// The option of a container's that says how often an animation is shown, and its value; as often as the
/// input `plays`, else for ever.
fn repeated(container: &str, plays: Option<u32>) -> Option<(&'static str, i64)> {
    let plays = i64::from(plays.unwrap_or(0));
    let sixteen_bits = i64::from(u16::MAX);
    match container {
        // How often it is repeated after the first time; -1 for never.
        "gif" => Some((
            "loop",
            match plays {
                0 => 0,
                1 => -1,
                _ => (plays - 1).min(sixteen_bits),
            },
        )),
        "apng" => Some(("plays", plays)),
        "webp" => Some(("loop", plays.min(sixteen_bits))),
        _ => None,
    }
}
