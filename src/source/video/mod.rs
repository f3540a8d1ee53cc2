//! Video files, URLs and streams, decoded by FFmpeg.
//!
//! Pictures keep the pixel format that they were coded in where it is native; others go to the native format
//! that loses least. Damage is concealed as FFmpeg does, counted and reported at the end, or ends the run if
//! the source is strict; an input that was cut off never passes for a whole one.

mod damage;
mod floats;
mod known;
mod parallel;
mod seeking;
mod steps;

pub use parallel::{Consent, Decoders, Place, open};

#[doc(hidden)]
pub use crate::ffmpeg::version_name as ffmpeg_version;

use super::decoding_cost::DecodingCost;
use super::excess::Excess;
use super::{
    Access, CutRequest, Cuts, MOST_PIXELS, Origin, ReadRange, Source, SourceError, StreamInfo, Supply,
    check_pixels,
};
use crate::convert::{self, is_full_range_name, nearest_native};
use crate::ffmpeg::{
    AvError, AvFormat, Decoded, Decoder, Demuxer, Medium, OpenFailure, Packet, Picture, Received, Scaler,
    ScalerEnd, decoded, log, picture_facts,
};
use crate::frame::fact::Fact;
use crate::frame::{
    AlphaKind, Buffer, Colour, ColourModel, FieldOrder, Frame, Layout, Metadata, PixelFormat, Range,
    Rational, Remarks, SideData, StallTimeout, too_large,
};
#[cfg(feature = "images")]
use crate::still::{Decoding, ImageKind};
use crate::wording::counted;
use damage::{Damage, jumps_sentence};
use known::extent::Extent;
use known::unfit::{Unfit, unfit};
use known::{crop, dolby, extent, layers};
use seeking::Skip;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use steps::Steps;

/// Read errors in a row after which a damaged input is given up: far more than a gap in a file, far less than
/// forever.
const MAX_READ_ERRORS: u32 = 10_000;

/// Read errors in a row after which an index at the end of a pipe is the cause.
const INDEX_BEHIND: u32 = 8;

/// Decoder threads beyond which a frame's latency and memory grow but its speed does not.
const MAX_DECODER_THREADS: usize = 16;

/// What is wrong with a packet that the demuxer marked.
const MARKED: &str = "a packet is marked as damaged";

/// Advice when a file holds no video.
const NO_VIDEO: &str = "give a video file, an image, a directory of images, or '-' for a pipe";

/// How a video is to be read.
#[derive(Debug, Clone, Default)]
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
    /// Several decoders for one file; `None` has one. For [`open`] alone.
    pub decoders: Option<Decoders>,
}

/// Frames of one video stream of a media file.
pub struct VideoSource {
    name: String,
    path: PathBuf,
    strict: bool,
    access: Access,
    timeout: Option<Duration>,
    info: StreamInfo,
    demuxer: Demuxer,
    stream: usize,
    decoder: Decoder,
    packet: Packet,
    picture: Picture,
    /// The picture was decoded before it was requested: the first one to know the stream's facts, a later one
    /// to know whether there is one.
    held: bool,
    /// When the stream's last picture ends, where the container says it.
    end: Option<f64>,
    input: Input,
    native: AvFormat,
    scaler: Option<Conversion>,
    damage: Damage,
    /// From picture to picture.
    steps: Steps,
    frames: u64,
    skip: Skip,
    /// The last rotation seen in a picture.
    rotation: Option<SideData>,
    /// What shows that the input was cut off.
    cut: Option<String>,
    /// What the decoder does not give of the stream.
    lost: Option<String>,
    /// It has ended, and was a single picture out of a pipe.
    is_lone_picture: bool,
    /// What the conversion to a native format loses.
    inexact: Option<String>,
    /// Metadata left out because it exceeds `METADATA_LIMIT`, in words.
    too_large: BTreeSet<String>,
    /// Samples that do not fit their format, where they are stored as they are and no decoder makes them.
    excess: Option<Excess>,
}

/// FFmpeg's names of kinds of pictures that hold pixels alone.
const BARE_PICTURES: [&str; 8] = ["pam", "pbm", "pfm", "pgm", "pgmyuv", "phm", "ppm", "qoi"];

/// How far the input has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Reading,
    /// The decoder has been given the end: no packets follow.
    Draining,
    Ended,
}

/// swscale's part where the coded format is not native.
struct Conversion {
    scaler: Scaler,
    into: Picture,
}

/// Opens `path` with FFmpeg's demuxer for its content.
fn open_demuxer(
    path: &Path,
    name: &str,
    access: Access,
    timeout: Option<Duration>,
) -> Result<Demuxer, SourceError> {
    let name = name.to_owned();
    let invalid = |problem: String| SourceError::Invalid {
        path: name.clone(),
        problem,
    };
    if !access.urls
        && let Err(cause) = path.metadata()
    {
        if cause.kind() == std::io::ErrorKind::NotFound && is_url_like(&name) {
            return Err(invalid(
                "there is no such file; if it is a URL, --allow-urls lets FFmpeg open it".to_owned(),
            ));
        }
        return Err(SourceError::Io { path: name, cause });
    }
    is_within_a_packet(path)?;
    let demuxer = Demuxer::open(path, access, timeout).map_err(|failure| match failure {
        OpenFailure::Refused(problem) => invalid(problem),
        OpenFailure::TimedOut => invalid(StallTimeout::sentence(timeout)),
        OpenFailure::Open(e) if e.is_invalid_data() || ends_early(path, e) => match Extent::of(path, "", "") {
            Extent::Missing(bytes) => invalid(format!(
                "it was cut off: by its own account its last {bytes} bytes are missing, and with them what \
                 tells how to read it"
            )),
            _ if !e.is_invalid_data() => invalid(
                "it ends before any of its streams begins: it was cut off, or nothing was written into it; \
                 get the whole file"
                    .to_owned(),
            ),
            _ => invalid(format!("FFmpeg finds no audio or video in it; {NO_VIDEO}")),
        },
        OpenFailure::Open(e) => SourceError::Io {
            path: name.clone(),
            cause: e.to_io(),
        },
        OpenFailure::Streams(e) => invalid(format!(
            "its streams cannot be understood ({e}); the file may be damaged or cut off at its start"
        )),
    })?;
    if demuxer.format_name() == "tty" {
        // FFmpeg would draw any text's letters as a film.
        return Err(invalid(format!("it is a text file; {NO_VIDEO}")));
    }
    Ok(demuxer)
}

/// True if FFmpeg's error `e` means that the file ends too early. Some demuxers report that as an error of
/// the disk, though the file can be read to its end.
fn ends_early(path: &Path, e: AvError) -> bool {
    const BEGINNING: u64 = 1 << 20;
    let reads = || -> std::io::Result<u64> {
        let mut beginning = File::open(path)?.take(BEGINNING);
        std::io::copy(&mut beginning, &mut std::io::sink())
    };
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    is_file && (e.is_eof() || e.is_of_disk() && reads().is_ok_and(|read| read < BEGINNING))
}

/// Opens the decoder of `stream`; an error is a sentence.
fn open_decoder(
    demuxer: &Demuxer,
    stream: usize,
    codec: &str,
    options: &VideoSourceOptions,
) -> Result<Decoder, String> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // Frame threads add as many frames of latency as there are threads; the pipeline hides it, and drains
    // them at the end.
    let threads = options.threads.unwrap_or(cores.min(MAX_DECODER_THREADS));
    log::forget();
    Decoder::open(demuxer, stream, threads, options.strict)
        .map_err(|e| log::explained(&format!("the {codec} decoder cannot be opened: {e}")))?
        .ok_or_else(|| format!("this FFmpeg has no decoder for {codec}, the codec of stream {stream}"))
}

impl VideoSource {
    /// Opens `path` (a file, a URL, or a device such as /dev/stdin) and decodes its first picture.
    pub fn open(path: &Path, options: &VideoSourceOptions) -> Result<VideoSource, SourceError> {
        let name = path.display().to_string();
        let invalid = |problem: String| SourceError::Invalid {
            path: name.clone(),
            problem,
        };
        let most_pixels = options.access.max_pixels.unwrap_or(MOST_PIXELS);
        let access = Access {
            max_pixels: Some(most_pixels),
            ..options.access
        };
        let demuxer = open_demuxer(path, &name, access, options.timeout)?;
        let stream = choose_stream(&demuxer, options.stream).map_err(invalid)?;
        let facts = demuxer.stream(stream);
        if let Some(facts) = &facts {
            let side = |length: i32| usize::try_from(length).unwrap_or(0);
            check_pixels(&name, side(facts.width), side(facts.height), most_pixels)?;
        }
        let codec = facts.as_ref().map_or_else(String::new, |f| f.codec.clone());
        let decoder = open_decoder(&demuxer, stream, &codec, options).map_err(invalid)?;
        let memory = |e: AvError| SourceError::Io {
            path: name.clone(),
            cause: e.to_io(),
        };
        let (packet, picture) = (Packet::new().map_err(memory)?, Picture::new().map_err(memory)?);
        let mut source = VideoSource {
            strict: options.strict,
            access,
            timeout: options.timeout,
            // Replaced below, when the first picture tells the truth; the container's word is not always it.
            info: StreamInfo {
                frame_rate: demuxer.frame_rate(stream),
                time_base: facts
                    .as_ref()
                    .map_or(Rational { num: 1, den: 1 }, |f| f.time_base),
                side_data: demuxer.stream_side_data(stream),
                ..StreamInfo::new(PixelFormat::GRAY, 0, 0)
            },
            demuxer,
            stream,
            decoder,
            packet,
            picture,
            held: false,
            end: None,
            input: Input::Reading,
            native: AvFormat(-1),
            scaler: None,
            damage: Damage::default(),
            steps: Steps::default(),
            frames: 0,
            skip: Skip::default(),
            rotation: None,
            cut: None,
            lost: None,
            is_lone_picture: false,
            inexact: None,
            too_large: BTreeSet::new(),
            excess: (codec == "rawvideo").then(Excess::default),
            path: path.to_owned(),
            name,
        };
        let unfit = unfit(&source.decoder.codec_name());
        if let Some(Unfit::Wrong(problem)) = unfit {
            return Err(source.invalid(problem.to_owned()));
        }
        if !source.decode(|| false)? {
            return Err(source.nothing_decoded(most_pixels));
        }
        let large = source.demuxer.large_side_data(stream);
        let words = large.iter().map(|fact| fact.word().to_owned());
        source.leave_out(words.chain(source.demuxer.too_large().to_vec()).collect())?;
        source.held = true;
        source.end = source
            .stated_seconds()
            .map(|seconds| seconds + source.demuxer.shift());
        source.learn()?;
        match unfit {
            Some(Unfit::Changed(change)) => source.lose(change.to_owned())?,
            _ => source.find_lost_layers()?,
        }
        source.find_lost_crop()?;
        Ok(source)
    }

    /// Names a part of the picture that the container says is to be shown, where all of it is read.
    fn find_lost_crop(&mut self) -> Result<(), SourceError> {
        let is_video = |index: &usize| {
            let facts = self.demuxer.stream(*index);
            facts.is_some_and(|facts| facts.medium == Medium::Video)
        };
        let nth = (0..self.stream).filter(is_video).count();
        let (width, height) = (self.info.width, self.info.height);
        let Some(shown) = crop::shown(&self.path, nth, (width as u64, height as u64)) else {
            return Ok(());
        };
        let before = self
            .lost
            .take()
            .map_or_else(String::new, |lost| format!("{lost}; "));
        self.lose(format!(
            "{before}its container says that {}x{} of its {width}x{height} pixels are to be shown, and all \
             of them are read",
            shown.0, shown.1
        ))
    }

    /// Why there is no first picture.
    fn nothing_decoded(&mut self, most_pixels: u64) -> SourceError {
        if let Some((width, height)) = log::too_large() {
            if let Err(error) = check_pixels(&self.name, width, height, most_pixels) {
                return error;
            }
            return self.invalid(format!(
                "its pictures are {width}x{height}, which is more than FFmpeg decodes"
            ));
        }
        let signs = [self.damage.sentence(), self.cut.take()];
        let why: String = signs.iter().flatten().map(|s| format!("; {s}")).collect();
        let codec = self.decoder.codec_name();
        let stream = self.stream;
        self.invalid(format!(
            "stream {stream} holds no frame that can be decoded: it is damaged, or of a kind of {codec} that \
             this FFmpeg does not decode{why}"
        ))
    }

    /// Fills in the stream's facts from its first picture.
    fn learn(&mut self) -> Result<(), SourceError> {
        let coded = self.picture.format();
        let (native, exact) = nearest_native(coded).ok_or_else(|| {
            self.invalid(format!(
                "its pictures are {}, which cannot be brought into ordinary memory",
                coded.name()
            ))
        })?;
        let (width, height) = (self.picture.width(), self.picture.height());
        self.info.format = native;
        self.info.width = width;
        self.info.height = height;
        self.native = coded;
        let is_plain = coded.name() == native.name() || is_full_range_name(coded);
        let mut conversion = String::new();
        if floats::are_swapped(coded, native) {
            conversion = format!(", read as {native}");
        } else if !is_plain {
            let from = self.picture.colour();
            let to = self.colour();
            let target = AvFormat::from_name(native.name())
                .ok_or_else(|| self.invalid(format!("this FFmpeg does not know {native}")))?;
            let is_rgb = native.model() == ColourModel::Rgb;
            let make = || -> Result<Conversion, AvError> {
                let matrix = convert::written_matrix(from.matrix, height);
                Ok(Conversion {
                    scaler: Scaler::new(
                        width,
                        height,
                        ScalerEnd {
                            format: coded,
                            // Between two formats of one family the range stays what it is, whatever it is.
                            full_range: from.range == Range::Full || is_rgb,
                            matrix,
                            chroma_location: from.chroma_location,
                        },
                        ScalerEnd {
                            format: target,
                            full_range: to.range == Range::Full || is_rgb,
                            matrix,
                            chroma_location: to.chroma_location,
                        },
                    )?,
                    into: Picture::allocate(target, width, height)?,
                })
            };
            let made = make().map_err(|e| {
                self.invalid(format!("{} cannot be converted to {native}: {e}", coded.name()))
            })?;
            self.scaler = Some(made);
            let (from, mut care) = (coded.name(), "");
            if !exact {
                care = ", which loses precision";
                let inexact = format!("its {from} samples become {native}, which loses precision");
                if self.strict {
                    return Err(self.invalid(format!("{inexact}; without --strict it is read so")));
                }
                self.inexact = Some(inexact);
            }
            conversion = format!(", converted from {from} to {native}{care}");
        }
        self.info.brings_memory = is_plain && self.decoder.takes_memory();
        self.info.colour = self.colour();
        self.info.sample_aspect = self.demuxer.sample_aspect(self.stream, &self.picture);
        let facts = picture_facts(&self.demuxer, self.stream, &self.picture);
        if let Some(problem) = dolby::unfit_base_layer(&self.info.side_data, &facts.side_data) {
            return Err(self.invalid(problem));
        }
        self.info.field_order = facts.field_order;
        self.info.frames = self.expected_frames();
        let length = self.demuxer.length();
        let frames = self.info.frames.filter(|&frames| frames > 0);
        self.info.decoding_cost = length.zip(frames).map(|(bytes, frames)| {
            let pixels = width as f64 * height as f64;
            DecodingCost::new(&self.decoder.codec_name(), pixels, bytes as f64 / frames as f64)
        });
        // Without a second stream there is nothing that a sink could copy from a pipe.
        if self.path.is_file() || self.demuxer.stream_count() > 1 {
            self.info.origin = Some(Origin {
                path: self.path.clone(),
                stream: self.stream,
                access: self.access,
                stretch: ReadRange::default(),
            });
        }
        let rate = self
            .info
            .frame_rate
            .map_or_else(String::new, |r| format!(", {} frames/s", tidy(r.to_f64())));
        self.info.description = format!(
            "stream {} of {} ({}), {width}x{height} {}{rate}{conversion}",
            self.stream,
            self.name,
            self.decoder.codec_name(),
            coded.name(),
        );
        Ok(())
    }

    /// Warns of alpha or a second view that this decoder drops. If the picture has alpha, nothing is lost.
    fn find_lost_layers(&mut self) -> Result<(), SourceError> {
        if self
            .native
            .facts()
            .is_some_and(|facts| facts.alpha || facts.palette)
        {
            return Ok(());
        }
        let codec = self.decoder.codec_name();
        let lost = if self.demuxer.claims_alpha(self.stream) {
            if self.decoder.reads_alpha() {
                tracing::debug!(path = %self.name, "marked as having alpha, which its packets do not hold");
                return Ok(());
            }
            format!("its alpha is lost: this FFmpeg has no decoder that reads the alpha of {codec}")
        } else if codec == "hevc" && layers::has_hevc_layers(self.demuxer.extradata(self.stream)) {
            "its second layer is lost: this FFmpeg does not decode the alpha or second view that HEVC can \
             hold"
                .to_owned()
        } else if self.demuxer.format_name().contains("mp4") && layers::has_alpha_item(&self.path) {
            format!(
                "its alpha is lost: this FFmpeg does not join the alpha of {codec} stills to their pictures"
            )
        } else {
            return Ok(());
        };
        self.lose(lost)
    }

    /// Notes what the decoder does not give, or fails if the source is strict.
    fn lose(&mut self, lost: String) -> Result<(), SourceError> {
        if self.strict {
            return Err(self.invalid(format!("{lost}; without --strict it is read so")));
        }
        self.lost = Some(lost);
        Ok(())
    }

    /// A hint for the progress bar.
    fn expected_frames(&self) -> Option<u64> {
        let facts = self.demuxer.stream(self.stream)?;
        if facts.frames > 0 {
            return u64::try_from(facts.frames).ok();
        }
        let rate = match facts.mean_rate {
            (num, den) if num > 0 && den > 0 => f64::from(num) / f64::from(den),
            _ => self.info.frame_rate?.to_f64(),
        };
        // Matroska's clock runs from zero, not from the first frame.
        let start = facts
            .start
            .map_or(0.0, |at| at as f64 * facts.time_base.to_f64())
            .max(0.0);
        let seconds = match self.stated_seconds() {
            Some(seconds) => seconds - start,
            None => facts
                .duration
                .map(|d| d as f64 * facts.time_base.to_f64())
                .or_else(|| self.demuxer.duration())?,
        };
        let frames = (seconds * rate).round();
        (1.0..1e15).contains(&frames).then_some(frames as u64)
    }

    /// Where the stream ends on the clock by the container's word for it: Matroska's for a stream, Flash
    /// video's for the whole file. Neither says how long the last picture lasts.
    fn stated_seconds(&self) -> Option<f64> {
        match self.demuxer.stream_tag(self.stream, c"DURATION") {
            Some(text) => parse_clock(&text),
            None if self.demuxer.format_name() == "flv" && self.demuxer.stream_count() == 1 => {
                self.demuxer.duration()
            }
            None => None,
        }
    }

    fn invalid(&self, problem: String) -> SourceError {
        SourceError::Invalid {
            path: self.name.clone(),
            problem,
        }
    }

    /// The error for a call below that failed for want of something of the machine's.
    fn lacking(&self, e: AvError) -> SourceError {
        SourceError::Io {
            path: self.name.clone(),
            cause: e.to_io(),
        }
    }

    /// Notes what is left out because it is too large, or fails if the source is strict.
    fn leave_out(&mut self, words: Vec<String>) -> Result<(), SourceError> {
        if self.strict && !words.is_empty() {
            return Err(self.invalid(format!(
                "{}; without --strict it is read without",
                too_large(&words.join(", "))
            )));
        }
        self.too_large.extend(words);
        Ok(())
    }

    /// Where the input is now, for an error's sentence.
    fn place(&self) -> String {
        let base = self.info.time_base;
        let at = self.packet.pts().or_else(|| self.packet.dts());
        match at {
            Some(at) => format!(
                "at {:.3} s (after {})",
                at as f64 * base.to_f64(),
                counted(self.frames, "frame")
            ),
            None => format!("after {}", counted(self.frames, "frame")),
        }
    }

    /// Counts damage, or fails if the source is strict.
    fn damaged(&mut self, what: &str) -> Result<(), SourceError> {
        let place = self.place();
        self.damaged_at(what, &place)
    }

    /// Counts a failure as damage of the input, unless it is the machine that lacks something.
    fn failed(&mut self, what: &str, e: AvError) -> Result<(), SourceError> {
        if e.shortage().is_some() {
            return Err(self.lacking(e));
        }
        self.damaged(&format!("{what} ({e})"))
    }

    /// Counts damage at `place`, or fails if the source is strict.
    fn damaged_at(&mut self, what: &str, place: &str) -> Result<(), SourceError> {
        if self.strict {
            return Err(self.invalid(format!(
                "{what} {place}; without --strict the damage is concealed and counted"
            )));
        }
        tracing::debug!(path = %self.name, "{what} {place}");
        self.damage.packets += 1;
        Ok(())
    }

    /// Decodes the next picture into `self.picture`; false at the end. `stopped` ends a long search.
    fn decode(&mut self, stopped: impl Fn() -> bool) -> Result<bool, SourceError> {
        loop {
            match self.decoder.receive(&mut self.picture) {
                Ok(Received::Item) => {
                    self.note_picture()?;
                    return Ok(true);
                }
                Ok(Received::Again) if self.input == Input::Reading => self.feed(&stopped)?,
                Ok(Received::Again | Received::End) => {
                    if self.input != Input::Ended {
                        self.input = Input::Ended;
                        self.check_end()?;
                    }
                    return Ok(false);
                }
                // Frame threads report a packet's damage when its picture's turn comes.
                Err(e) => self.failed("a packet cannot be decoded", e)?,
            }
            if stopped() {
                return Err(crate::frame::Stopped.into());
            }
        }
    }

    /// Counts the picture that was decoded, and what is wrong with it.
    fn note_picture(&mut self) -> Result<(), SourceError> {
        let mut words: Vec<String> = self
            .decoder
            .too_large()
            .iter()
            .map(|&word| word.to_owned())
            .collect();
        let large = self.picture.large_side_data();
        words.extend(large.iter().map(|fact| fact.word().to_owned()));
        self.leave_out(words)?;
        let interlaced = self.picture.field_order() != FieldOrder::Progressive;
        self.damage.note_picture(self.picture.timestamp(), interlaced);
        let epoch = self.demuxer.epoch(self.stream);
        self.steps
            .note(self.picture.timestamp(), self.picture.duration(), epoch);
        let is_patched = self.damage.note_patched(self.decoder.patched());
        let is_corrupt = self.picture.is_corrupt();
        if self.strict && (is_corrupt || is_patched) {
            let at = self.picture.timestamp().unwrap_or(0) as f64 * self.info.time_base.to_f64();
            let which = if is_corrupt { "" } else { "or one soon after it " };
            return Err(self.invalid(format!(
                "frame {} at {at:.3} s {which}is damaged; without --strict the damage is concealed \
                 and counted",
                self.frames
            )));
        }
        self.damage.pictures += u64::from(is_corrupt);
        Ok(())
    }

    /// Gives the next packet, or the end, to the decoder.
    fn feed(&mut self, stopped: &impl Fn() -> bool) -> Result<(), SourceError> {
        match self.skip.next() {
            Some(packet) => self.packet = packet,
            None if self.read_packet(stopped)? => {}
            None => return self.send_end(),
        }
        self.send_packet()
    }

    /// Gives the packet to the decoder.
    fn send_packet(&mut self) -> Result<(), SourceError> {
        if !self.packet.is_discarded() {
            self.damage.note_packet(self.packet.pts());
        }
        match self.decoder.send(Some(&self.packet)) {
            Ok(()) => Ok(()),
            Err(e) => self.failed("a packet cannot be decoded", e),
        }
    }

    /// Reads the next packet of the stream; false at the end.
    fn read_packet(&mut self, stopped: &impl Fn() -> bool) -> Result<bool, SourceError> {
        loop {
            let read = self.demuxer.read(&mut self.packet);
            if self.demuxer.timed_out() {
                return Err(self.invalid(StallTimeout::sentence(self.timeout)));
            }
            if let Some(file) = self.demuxer.refused() {
                return Err(self.invalid(format!(
                    "it names another file, {file}, which it may not open; see --allow-playlists"
                )));
            }
            if stopped() {
                return Err(crate::frame::Stopped.into());
            }
            match read {
                Ok(()) => {
                    self.damage.errors_in_a_row = 0;
                    if let Some(complaint) = self.demuxer.complaint() {
                        self.damaged(&format!("bytes make no sense ({complaint})"))?;
                    }
                }
                Err(e) if e.is_eof() => {
                    self.damage.stopped = self.demuxer.io_error().map(|e| e.to_string());
                    self.damage.complained = self.demuxer.complaint().is_some();
                    return Ok(false);
                }
                Err(e) if e.is_again() => {
                    std::thread::yield_now();
                    continue;
                }
                Err(e) => {
                    if self.damage.errors_in_a_row + 1 == INDEX_BEHIND && self.demuxer.needs_index() {
                        return Err(self.invalid(
                            "its index lies at its end, and what comes through a pipe cannot be read a \
                             second time; give the file itself, or make it with its index in front (ffmpeg \
                             -movflags +faststart)"
                                .to_owned(),
                        ));
                    }
                    if !e.is_invalid_data() && self.is_at_end() {
                        // Some demuxers call the end of a whole file a failure.
                        return Ok(false);
                    }
                    self.failed("a packet cannot be read", e)?;
                    self.damage.errors_in_a_row += 1;
                    if !e.is_invalid_data() || self.damage.errors_in_a_row >= MAX_READ_ERRORS {
                        self.damage.stopped = Some(e.to_string());
                        return Ok(false);
                    }
                    continue;
                }
            }
            self.note_end();
            if self.packet.stream() != self.stream {
                continue;
            }
            self.damage.read += 1;
            let epoch = self.demuxer.epoch(self.stream);
            self.settle_mark(Some(epoch))?;
            if self.packet.is_corrupt()
                && let Some(before) = self.damage.mark(epoch, self.place())
            {
                self.damaged_at(MARKED, &before)?;
            }
            if self.packet.size() == 0 {
                continue;
            }
            if self.packet.is_encrypted() {
                return Err(self.invalid(format!(
                    "stream {} is encrypted; decrypt the file with its key first (ffmpeg -decryption_key KEY \
                     -i IN -c copy OUT)",
                    self.stream
                )));
            }
            return Ok(true);
        }
    }

    /// True if nothing went wrong in reading, and the packets so far reach to the end of the input.
    fn is_at_end(&self) -> bool {
        let length = self.demuxer.length();
        self.demuxer.io_error().is_none() && length.is_some_and(|length| self.damage.reached >= length)
    }

    /// Counts a packet that was marked as damaged, if it is by what is known now.
    fn settle_mark(&mut self, epoch: Option<usize>) -> Result<(), SourceError> {
        match self.damage.settle_mark(epoch) {
            Some(place) => self.damaged_at(MARKED, &place),
            None => Ok(()),
        }
    }

    fn send_end(&mut self) -> Result<(), SourceError> {
        self.settle_mark(None)?;
        self.input = Input::Draining;
        match self.decoder.send(None) {
            Ok(()) => Ok(()),
            Err(e) if e.is_eof() => Ok(()),
            Err(e) => self.failed("the decoder failed at the end", e),
        }
    }

    /// Remembers how far the packets reach.
    fn note_end(&mut self) {
        let end = self.packet.end_in_input().unwrap_or(0);
        self.damage.reached = self.damage.reached.max(end);
        let Some(base) = self.demuxer.time_base(self.packet.stream()) else {
            return;
        };
        if let Some(at) = self.packet.pts().or_else(|| self.packet.dts()) {
            let end = (at + self.packet.duration()) as f64 * base.to_f64();
            self.damage.end = self.damage.end.max(end);
            if self.packet.stream() == self.stream {
                self.damage.stream_end = self.damage.stream_end.max(end);
            }
        }
    }

    /// Looks, at the end, for signs that the input was cut off.
    fn check_end(&mut self) -> Result<(), SourceError> {
        let format = self.demuxer.format_name();
        let mut extent = Extent::of(&self.path, format, &self.decoder.codec_name());
        // Where Matroska is damaged, FFmpeg may pass over the rest of a cluster, or of the file.
        let mut has_left = false;
        if extent == Extent::Whole && format.starts_with("matroska") {
            has_left = extent::has_blocks_behind(&self.path, self.damage.reached);
            if has_left || self.damage.complained {
                extent = Extent::Unknown;
            }
        }
        let (rate, stream) = (self.info.frame_rate, self.stream);
        self.cut = self.damage.missing_end(
            &self.demuxer,
            stream,
            extent,
            rate,
            self.end,
            self.skip.has_sought(),
        );
        if self.cut.is_none() && has_left && self.damage.complained {
            self.damaged("bytes make no sense")?;
        }
        // Behind a seek, leading pictures belong to what comes before.
        let head = self.damage.missing_head(&self.decoder.codec_name(), true);
        let head = head.filter(|_| !self.skip.has_sought());
        let hole = self.steps.sentence(self.info.time_base);
        // The last picture may have been marked after it came out.
        let is_patched = self.damage.note_patched(self.decoder.patched());
        if self.strict && is_patched {
            return Err(self.invalid(
                "one of its last frames is damaged; without --strict the damage is concealed and counted"
                    .to_owned(),
            ));
        }
        match self.cut.as_ref().or(head.as_ref()).or(hole.as_ref()) {
            Some(problem) if self.strict => Err(self.invalid(format!(
                "{problem}; the input is incomplete; without --strict what is there is used"
            ))),
            _ => Ok(()),
        }
    }

    /// True if the container says that pictures go on after `frame`: either further ones come, or it lasts
    /// until then.
    fn may_be_last(&self, frame: &Frame) -> bool {
        let Some(pts) = frame.metadata.pts else {
            return false;
        };
        let own = (pts + frame.metadata.duration.unwrap_or(0)) as f64 * self.info.time_base.to_f64();
        self.end.is_some_and(|end| own < end)
    }

    /// Lets the last frame last until the end that the container states.
    fn stretch(&self, frame: &mut Frame) {
        if let (Some(end), Some(pts)) = (self.end, frame.metadata.pts) {
            let ticks = (end / self.info.time_base.to_f64()).round() as i64 - pts;
            frame.metadata.duration = Some(ticks).filter(|&ticks| ticks > 0);
        }
    }

    /// Colour facts of the frame that is made of the picture.
    fn colour(&self) -> Colour {
        let mut colour = self.picture.colour();
        let facts = self.picture.format().facts();
        let was_rgb = facts.is_some_and(|f| f.rgb || f.palette);
        if self.info.format.model() == ColourModel::Rgb && !was_rgb {
            colour.matrix = 0;
            colour.range = Range::Full;
        }
        if self.decoder.codec_name() == "exr" {
            colour.alpha = AlphaKind::Associated;
        }
        colour
    }

    /// Notes that a single picture came through a pipe: FFmpeg gives its pixels, and it cannot be read again
    /// for the rest. Kinds that say nothing else lose nothing.
    fn note_lone_picture(&mut self) -> Result<(), SourceError> {
        let demuxer = self.demuxer.format_name();
        let is_picture = match demuxer.strip_suffix("_pipe") {
            Some(kind) => !BARE_PICTURES.contains(&kind),
            None => demuxer == "mjpeg",
        };
        if !is_picture || self.frames != 1 || self.path.is_file() || self.is_lone_picture {
            return Ok(());
        }
        self.is_lone_picture = true;
        let before = self
            .lost
            .take()
            .map_or_else(String::new, |lost| format!("{lost}; "));
        self.lose(format!(
            "{before}it is one picture out of a pipe, of which FFmpeg gives the pixels alone: what it says \
             beside them (orientation, Exif, resolution, texts) and its further pages, layers and parts are \
             left out; give it as a file"
        ))
    }

    /// The frame that the decoded picture holds, in a buffer of the pool.
    fn frame(&mut self, supply: &Supply) -> Result<Frame, SourceError> {
        self.check_geometry(self.picture.format())?;
        let born = std::time::Instant::now();
        let metadata = self.metadata();
        let mut buffer = supply.take()?;
        let mut frame = match self.take_picture() {
            Some((layout, decoded)) => {
                buffer.host(Box::new(decoded));
                Frame::new(layout, buffer)?
            }
            None => self.copy(buffer)?,
        };
        if let Some(excess) = &self.excess {
            excess.remove(&mut frame);
        }
        frame.born = born;
        frame.sequence = self.frames;
        frame.metadata = metadata;
        self.picture.clear();
        self.frames += 1;
        Ok(frame)
    }

    /// Refuses a picture that is not as the first one was, whose samples are `format`.
    fn check_geometry(&self, format: AvFormat) -> Result<(), SourceError> {
        let (width, height) = (self.picture.width(), self.picture.height());
        if (format, width, height) == (self.native, self.info.width, self.info.height) {
            return Ok(());
        }
        Err(self.invalid(format!(
            "frame {} is {width}x{height} {}, but the video began as {}x{} {}; split it there, or bring it \
             to one size and format first",
            self.frames,
            format.name(),
            self.info.width,
            self.info.height,
            self.native.name()
        )))
    }

    /// What travels with the frame that is made of the picture.
    fn metadata(&mut self) -> Metadata {
        let mut metadata = Metadata {
            colour: self.colour(),
            ..picture_facts(&self.demuxer, self.stream, &self.picture)
        };
        self.carry_rotation(&mut metadata);
        metadata
    }

    /// SEI messages say now and then how a picture is rotated, and it holds until they say something else.
    fn carry_rotation(&mut self, metadata: &mut Metadata) {
        match metadata.side_data.iter().find(|b| b.fact == Fact::Rotation) {
            Some(block) => self.rotation = Some(block.clone()),
            None => metadata.side_data.extend(self.rotation.clone()),
        }
    }

    /// The picture itself as a frame's memory, if it was decoded into memory of the run's and needs no
    /// conversion.
    fn take_picture(&mut self) -> Option<(Layout, Decoded)> {
        if self.scaler.is_some() || floats::are_swapped(self.native, self.info.format) {
            return None;
        }
        let picture = std::mem::replace(&mut self.picture, Picture::new().ok()?);
        decoded(picture, self.info.format)
            .map_err(|picture| self.picture = picture)
            .ok()
    }

    /// The picture copied, and converted where needed, into `buffer`.
    fn copy(&mut self, buffer: Buffer) -> Result<Frame, SourceError> {
        let (width, height) = (self.info.width, self.info.height);
        let layout =
            Layout::new(self.info.format, width, height, 64).map_err(|cause| SourceError::Layout {
                path: self.name.clone(),
                cause,
            })?;
        let mut frame = Frame::new(layout, buffer)?;
        let copied = match &mut self.scaler {
            None if floats::are_swapped(self.native, self.info.format) => {
                floats::read(&self.picture, &mut frame)
            }
            None => self.picture.copy_to(&mut frame),
            Some(conversion) => conversion
                .scaler
                .run(&self.picture, &mut conversion.into)
                .and_then(|()| conversion.into.copy_to(&mut frame)),
        };
        copied.map_err(|e| self.invalid(format!("frame {} cannot be converted: {e}", self.frames)))?;
        Ok(frame)
    }

    /// The remarks without the input's name.
    pub(super) fn findings(&mut self) -> Remarks {
        let cut = self
            .cut
            .take()
            .map(|cut| format!("{cut}; the input is incomplete, and so is the output"));
        let codec = self.decoder.codec_name();
        let words: Vec<String> = std::mem::take(&mut self.too_large).into_iter().collect();
        let signs = [
            self.lost.take(),
            self.inexact.take(),
            (!words.is_empty()).then(|| too_large(&words.join(", "))),
            self.damage.missing_head(&codec, self.input == Input::Ended),
            self.damage.sentence(),
            self.steps.sentence(self.info.time_base),
            cut,
        ];
        Remarks {
            notes: jumps_sentence(self.demuxer.jumps())
                .into_iter()
                .chain(self.skip.note())
                .collect(),
            warnings: signs
                .into_iter()
                .flatten()
                .chain(
                    self.excess
                        .iter()
                        .flat_map(|excess| excess.sentence(self.info.format)),
                )
                .collect(),
        }
    }
}

impl Source for VideoSource {
    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        if self.frames == 0 {
            self.demuxer.watch(&supply.stop);
            if self.info.brings_memory {
                // The pictures that were decoded to open the input lie in ordinary memory.
                self.decoder.decode_into(supply.pool.reserve());
            }
        }
        if let Some(tick) = self.skip.target() {
            self.skip_to(tick, &|| supply.is_stopped())?;
        }
        let is_over = self.input == Input::Ended
            || !std::mem::take(&mut self.held) && !self.decode(|| supply.is_stopped())?;
        if is_over {
            self.note_lone_picture()?;
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
        let name = &self.name.clone();
        let named = |sentences: Vec<String>| sentences.into_iter().map(|s| format!("{name}: {s}")).collect();
        let Remarks { notes, warnings } = self.findings();
        Remarks {
            notes: named(notes),
            warnings: named(warnings),
        }
    }
}

/// The stream to filter: the wanted one, or among those that move the default one, then the largest, then the
/// first.
fn choose_stream(demuxer: &Demuxer, wanted: Option<usize>) -> Result<usize, String> {
    let streams: Vec<_> = (0..demuxer.stream_count())
        .filter_map(|i| Some((i, demuxer.stream(i)?)))
        .collect();
    let list = || {
        let words: Vec<String> = streams
            .iter()
            .map(|(i, s)| format!("{i}: {} ({})", s.medium.word(), s.codec))
            .collect();
        if words.is_empty() {
            "it has no streams at all".to_owned()
        } else {
            format!("its streams are {}", words.join(", "))
        }
    };
    if let Some(wanted) = wanted {
        return match streams.iter().find(|(i, _)| *i == wanted) {
            Some((_, s)) if s.medium == Medium::Video => Ok(wanted),
            Some((_, s)) => Err(format!(
                "stream {wanted} is {}, not video; {}",
                s.medium.word(),
                list()
            )),
            None => Err(format!("there is no stream {wanted}; {}", list())),
        };
    }
    let best = streams
        .iter()
        .filter(|(_, s)| s.medium == Medium::Video && !s.is_cover)
        .max_by_key(|(i, s)| {
            let area = i64::from(s.width) * i64::from(s.height);
            (s.is_default, area, std::cmp::Reverse(*i))
        });
    match best {
        Some((index, _)) => Ok(*index),
        None if streams.iter().any(|(_, s)| s.is_cover) => Err(
            "it holds no video, only sound with a cover picture (--stream N would filter that picture)"
                .to_owned(),
        ),
        None => Err(format!("it holds no video; {}", list())),
    }
}

/// Refuses a picture that is larger than FFmpeg's packets get, before two gigabytes of it are read for
/// nothing.
fn is_within_a_packet(path: &Path) -> Result<(), SourceError> {
    #[cfg(feature = "images")]
    let is_picture = ImageKind::read(path).is_some_and(|kind| kind.decoding() == Decoding::Ffmpeg);
    #[cfg(not(feature = "images"))]
    let is_picture = false;
    let bytes = path.metadata().map_or(0, |file| file.len());
    if is_picture && bytes > i32::MAX as u64 {
        return Err(SourceError::Invalid {
            path: path.display().to_string(),
            problem: format!("is a picture of {bytes} bytes, and FFmpeg reads pictures of up to 2 GiB"),
        });
    }
    Ok(())
}

/// True for what looks like the name of a protocol and what it is to open.
pub fn is_url_like(name: &str) -> bool {
    name.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1
            && scheme
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "+-.,".contains(c))
    })
}

/// Seconds of a clock such as "00:01:02.5".
fn parse_clock(text: &str) -> Option<f64> {
    text.trim().split(':').try_fold(0.0, |seconds, part| {
        let part: f64 = part.parse().ok()?;
        (part.is_finite() && part >= 0.0).then_some(seconds * 60.0 + part)
    })
}

/// A number with at most three decimals and no idle zeros.
fn tidy(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_and_rates_are_read_and_written() {
        assert_eq!(parse_clock("00:01:02.500000000"), Some(62.5));
        assert_eq!(parse_clock("nonsense"), None);
        assert_eq!(tidy(25.0), "25");
        assert_eq!(tidy(30000.0 / 1001.0), "29.97");
    }
}
