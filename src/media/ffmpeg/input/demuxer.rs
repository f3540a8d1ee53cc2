//! Media files: their streams, and their packets in the order of the file.
#![allow(unsafe_code)]

use super::access::{self, Access, Gate};
use super::chained::is_chained;
use super::clock::{Clock, ClockKind, Jumps, Times};
use super::{metadata_limit, outline};
use crate::frame::fact::Fact;
use crate::frame::{METADATA_LIMIT, Rational, SideData, open_without_waiting};
use crate::media::ffmpeg::io::memory_io::MemoryFile;
use crate::media::ffmpeg::io::pipe_io::PipeFile;
use crate::media::ffmpeg::pictures::side_data::{STREAM_SIDE_DATA, stream_fact};
use crate::media::ffmpeg::text::{c_string, rational, rescale, text, timestamp};
use crate::media::ffmpeg::{AvError, Packet, Picture, init, log, version};
use crossbeam_channel::Receiver;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr;
use std::time::Duration;

/// Bytes of a path or URL as FFmpeg takes them. A path that exists is marked as a file, so that a colon in it
/// names no protocol.
pub(crate) fn location(path: &Path) -> Result<CString, AvError> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    if path.exists() {
        bytes.extend_from_slice(b"file:");
    }
    bytes.extend_from_slice(path.as_os_str().as_bytes());
    CString::new(bytes).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)))
}

/// The unit of the clock.
const NANOSECOND: Rational = Rational {
    num: 1,
    den: 1_000_000_000,
};

/// How the complaint begins of a demuxer that looks for the end of a file to know its length, and goes on
/// without it.
const OF_SEEKING: &str = "read_timestamp failed";

/// Nanoseconds that a container's milliseconds may be off.
const ROUNDING: i64 = 2_000_000;

/// The most pixels that a picture of `most` has when its sides are rounded up to whole blocks.
fn padded(most: u64) -> u64 {
    // Decoders round up to their largest blocks, and FFmpeg to its widest vectors.
    const BLOCK: u64 = 64;
    // The longest side that codecs have.
    const LONGEST: u64 = 1 << 16;
    let side = most.clamp(1, LONGEST);
    let border = BLOCK * (side + most.div_ceil(side) + BLOCK);
    most.saturating_add(border)
}

/// What kind of data a stream carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    Video,
    Audio,
    Subtitle,
    Data,
    Attachment,
    Other,
}

impl Medium {
    fn of(kind: ffi::AVMediaType) -> Medium {
        match kind {
            ffi::AVMediaType::AVMEDIA_TYPE_VIDEO => Medium::Video,
            ffi::AVMediaType::AVMEDIA_TYPE_AUDIO => Medium::Audio,
            ffi::AVMediaType::AVMEDIA_TYPE_SUBTITLE => Medium::Subtitle,
            ffi::AVMediaType::AVMEDIA_TYPE_DATA => Medium::Data,
            ffi::AVMediaType::AVMEDIA_TYPE_ATTACHMENT => Medium::Attachment,
            _ => Medium::Other,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Medium::Video => "video",
            Medium::Audio => "audio",
            Medium::Subtitle => "subtitle",
            Medium::Data => "data",
            Medium::Attachment => "attachment",
            Medium::Other => "unknown",
        }
    }
}

/// What a demuxer says of one of its streams.
#[derive(Debug, Clone)]
pub(crate) struct StreamFacts {
    /// The container's own number for it, such as that of an MP4 file's track.
    pub(crate) id: i32,
    pub(crate) medium: Medium,
    /// FFmpeg's name of the codec.
    pub(crate) codec: String,
    /// The codec is known: the data is not just bytes without a name.
    pub(crate) has_codec: bool,
    /// The container's four-letter mark for the codec, 0 if none.
    pub(crate) tag: u32,
    /// A still picture such as a cover, not a video.
    pub(crate) is_cover: bool,
    /// The stream that a player would choose.
    pub(crate) is_default: bool,
    pub(crate) time_base: Rational,
    /// Frames according to the container, 0 if it does not say.
    pub(crate) frames: i64,
    pub(crate) duration: Option<i64>,
    pub(crate) start: Option<i64>,
    /// Frames a second as counted, (0, 0) if unknown.
    pub(crate) mean_rate: (i32, i32),
    pub(crate) width: i32,
    pub(crate) height: i32,
    /// Pictures that are decoded ahead of their turn at most, as far as headers say.
    pub(crate) reordered: usize,
    /// Its times tell where the input's clock is.
    leads: bool,
    /// Seconds of sound at its beginning that are decoded to be thrown away.
    pub(crate) priming: f64,
}

impl StreamFacts {
    /// Stream `index`, whose facts these are, in messages.
    pub(crate) fn label(&self, index: usize) -> String {
        format!("stream {index} ({}, {})", self.medium.word(), self.codec)
    }

    /// When it begins, in seconds of the container's clock; 0 if that is not known.
    pub(crate) fn begins(&self) -> f64 {
        self.start.map_or(0.0, |at| at as f64 * self.time_base.to_f64())
    }
}

/// A chapter of what is wanted of an input.
#[derive(Debug)]
pub(crate) struct Chapter {
    /// Seconds from the beginning.
    pub(crate) begins: f64,
    /// Seconds of the unit in which the file says that.
    pub(crate) tick: f64,
    pub(crate) texts: Vec<(String, String)>,
}

/// True if a stream's times tell where the input's clock is: sound and video do, covers and subtitles don't.
fn leads(medium: Medium, disposition: c_int) -> bool {
    let is_cover = disposition & ffi::AV_DISPOSITION_ATTACHED_PIC as c_int != 0;
    matches!(medium, Medium::Video | Medium::Audio) && !is_cover
}

/// The stage at which opening an input failed.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// The file could not be opened or is no media file.
    Open(AvError),
    /// It, or a file that it names, may not be opened: a sentence.
    Refused(String),
    /// It gave nothing for so long that the user's patience is over.
    TimedOut,
    /// Its streams could not be understood.
    Streams(AvError),
}

/// An open media file, whose packets come on one clock (see [`Clock`]).
pub(crate) struct Demuxer {
    context: *mut ffi::AVFormatContext,
    clock: Clock,
    /// FFmpeg's name of the format.
    format: String,
    /// What the file, or pipe, is read through; dropped after the context is closed.
    source: Reading,
    /// What the context asks before it opens files, and while it waits; dropped last.
    gate: Option<Box<Gate>>,
    /// Pixels of the largest picture that may be decoded, if not FFmpeg's own limit.
    max_pixels: Option<u64>,
    /// The words for what it says beside its pictures and is too large.
    too_large: Vec<String>,
    /// Entries of each stream's index, as the header of an AVI file leads to it.
    indexed: Vec<u64>,
    /// What was complained of while it was opened.
    complaint: Option<String>,
    /// Where what is wanted of it begins and ends, in nanoseconds of the clock (see [`Demuxer::cut`]).
    wanted: (i64, Option<i64>),
}

/// What a demuxer reads through.
enum Reading {
    /// FFmpeg's own reader of files.
    Own,
    Memory {
        _file: MemoryFile,
    },
    Pipe {
        file: PipeFile,
    },
}

// SAFETY: an AVFormatContext is bound to no thread, and only `&mut self` reaches what changes it.
unsafe impl Send for Demuxer {}

impl Demuxer {
    /// Opens `path` and reads enough of it to know its streams. It may open what `access` allows; `limit` is
    /// how long it may wait for a pipe or a network.
    pub(crate) fn open(path: &Path, access: Access, limit: Option<Duration>) -> Result<Demuxer, OpenFailure> {
        init();
        let name = location(path).map_err(OpenFailure::Open)?;
        let context = allocate()?;
        let gate = Gate::install(context, &name, access, limit);
        let max_pixels = access.max_pixels;
        let mut reading = Reading::Own;
        // A file is sought in; whatever else has a name here is read as it comes.
        if path
            .metadata()
            .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
        {
            let opened = open_without_waiting(path).map_err(|cause| AvError::of_io(&cause));
            match opened.and_then(|file| PipeFile::new(file, &gate.patience)) {
                Ok(file) => {
                    // SAFETY: the context is not open yet. FFmpeg marks the I/O context as not its own.
                    unsafe { (*context).pb = file.as_ptr() };
                    reading = Reading::Pipe { file };
                }
                Err(e) => {
                    // SAFETY: the context is ours and not open.
                    unsafe { ffi::avformat_free_context(context) };
                    return Err(OpenFailure::Open(e));
                }
            }
        }
        let mut format = ptr::null();
        if access::begins_as_playlist(path) {
            if !access.playlists {
                // SAFETY: the context is ours and not open.
                unsafe { ffi::avformat_free_context(context) };
                return Err(OpenFailure::Refused(Access::refusal("hls")));
            }
            // SAFETY: demuxers are static; null leaves the choice to FFmpeg.
            format = unsafe { ffi::av_find_input_format(c"hls".as_ptr()) };
        }
        let mut demuxer = Demuxer::begin(context, &name, format, reading, (Some(gate), max_pixels))?;
        // What cannot be looked through may be so, too.
        let is_matroska = demuxer.format.starts_with("matroska");
        if is_matroska && (!demuxer.can_seek() || is_chained(path)) {
            demuxer.clock = Clock::new(ClockKind::Restarting, demuxer.origin());
        }
        Ok(demuxer)
    }

    /// Opens a file that lies in memory. `name` is FFmpeg's name of its format, or helps to tell it as the
    /// name of a file would.
    pub(crate) fn from_bytes(bytes: Vec<u8>, name: &str) -> Result<Demuxer, OpenFailure> {
        init();
        let name = c_string(name.as_bytes()).map_err(OpenFailure::Open)?;
        // SAFETY: demuxers are static; null means that none has that name, and leaves it to the bytes to
        // tell.
        let format = unsafe { ffi::av_find_input_format(name.as_ptr()) };
        let file = MemoryFile::new(bytes, false).map_err(OpenFailure::Open)?;
        let context = allocate()?;
        // SAFETY: the context is not open yet. FFmpeg marks the I/O context as not its own and leaves it
        // open.
        unsafe { (*context).pb = file.as_ptr() };
        Demuxer::begin(
            context,
            &name,
            format,
            Reading::Memory { _file: file },
            (None, None),
        )
    }

    /// The bytes of a GIF file in a pipe that were read so far; empty for other inputs.
    pub(super) fn kept(&self) -> &[u8] {
        match &self.source {
            Reading::Pipe { file } => file.kept(),
            Reading::Own | Reading::Memory { .. } => &[],
        }
    }

    /// What is known of the input by now, as a demuxer that has no packets and must not be read.
    pub(super) fn outline(&self) -> Result<Demuxer, AvError> {
        let outline = Demuxer {
            context: allocate().map_err(|_| AvError::no_memory())?,
            clock: Clock::new(ClockKind::Steady, None),
            format: self.format.clone(),
            source: Reading::Own,
            gate: None,
            max_pixels: None,
            too_large: Vec::new(),
            indexed: Vec::new(),
            complaint: None,
            wanted: (0, None),
        };
        // SAFETY: the context was just made, and nothing else has it.
        outline::copy(self, unsafe { &mut *outline.context })?;
        Ok(outline)
    }

    /// Opens `name` with `context` and reads enough of it to know its streams.
    fn begin(
        mut context: *mut ffi::AVFormatContext,
        name: &CStr,
        format: *const ffi::AVInputFormat,
        reading: Reading,
        (gate, max_pixels): (Option<Box<Gate>>, Option<u64>),
    ) -> Result<Demuxer, OpenFailure> {
        log::forget();
        // SAFETY: on success `context` is ours; on failure FFmpeg frees it and leaves null.
        let code = unsafe { ffi::avformat_open_input(&mut context, name.as_ptr(), format, ptr::null_mut()) };
        AvError::check(code).map_err(|e| refusal(gate.as_deref()).unwrap_or(OpenFailure::Open(e)))?;
        let mut demuxer = Demuxer {
            context,
            clock: Clock::new(ClockKind::Steady, None),
            indexed: Vec::new(),
            complaint: None,
            format: String::new(),
            source: reading,
            gate,
            max_pixels,
            too_large: Vec::new(),
            wanted: (0, None),
        };
        // SAFETY: an open input has its format.
        demuxer.format = text(unsafe { (*demuxer.context().iformat).name });
        if demuxer.format == "avi" {
            demuxer.indexed = (0..demuxer.stream_count())
                .map(|index| demuxer.index_entries(index).unwrap_or(0))
                .collect();
        }
        let code = demuxer.probe();
        let gate = demuxer.gate.as_deref();
        AvError::check(code).map_err(|e| refusal(gate).unwrap_or(OpenFailure::Streams(e)))?;
        if let Some(failure) = refusal(gate) {
            return Err(failure);
        }
        let complaint = log::error_of(&demuxer.format);
        demuxer.complaint = complaint.filter(|line| !line.starts_with(OF_SEEKING));
        demuxer.clock = Clock::new(demuxer.clock_kind(), demuxer.origin());
        Ok(demuxer)
    }

    /// Has FFmpeg look into the streams, whose pictures it may decode to know them.
    fn probe(&mut self) -> c_int {
        // Taken by the streams that the header shows; the limit of those that appear later is our decoder's.
        let mut options = vec![ptr::null_mut(); self.stream_count()];
        let limit = self
            .max_pixels()
            .and_then(|most| CString::new(most.to_string()).ok());
        // SAFETY: the context is open and this thread's own, and there is a dictionary, null at first, for
        // each of its streams; they are freed here.
        unsafe {
            if let Some(limit) = &limit {
                for dictionary in &mut options {
                    ffi::av_dict_set(dictionary, c"max_pixels".as_ptr(), limit.as_ptr(), 0);
                }
            }
            if self.gate.is_some() {
                self.too_large = metadata_limit::shorten_headers(self.context);
                (*self.context).codec_whitelist = ffi::av_strdup(metadata_limit::probing_decoders());
            }
            let code = ffi::avformat_find_stream_info(self.context, options.as_mut_ptr());
            metadata_limit::size_covers(self.context);
            self.too_large.extend(metadata_limit::shorten_texts(self.context));
            for dictionary in &mut options {
                ffi::av_dict_free(dictionary);
            }
            code
        }
    }

    /// The words for what the file says beside its pictures and what was left out, being too large.
    pub(crate) fn too_large(&self) -> &[String] {
        &self.too_large
    }

    /// Pixels of the largest picture that FFmpeg may make, if not its own limit. It counts them with the rows
    /// and columns that are there for the decoder alone; of what comes out, the source counts them.
    pub(in crate::media::ffmpeg) fn max_pixels(&self) -> Option<i64> {
        let most = self.max_pixels?;
        Some(i64::try_from(padded(most)).unwrap_or(i64::MAX))
    }

    /// From now on waits for input end when `stop` is closed.
    pub(crate) fn watch(&self, stop: &Receiver<()>) {
        if let Some(gate) = &self.gate {
            gate.patience.watch(stop);
        }
    }

    /// True if a wait for input took longer than it may.
    pub(crate) fn timed_out(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| gate.patience.ran_out())
    }

    /// The file that the input wanted to open and was not allowed to.
    pub(crate) fn refused(&self) -> Option<String> {
        self.gate.as_ref().and_then(|gate| gate.refused())
    }

    /// How the container counts time.
    fn clock_kind(&self) -> ClockKind {
        // SAFETY: an open input has its format, which is static.
        let is_marked = unsafe { (*self.context().iformat).flags & ffi::AVFMT_TS_DISCONT as c_int != 0 };
        // Flash video holds the clock of a live stream, though FFmpeg does not mark it so.
        match is_marked || self.format_name().contains("flv") {
            true => ClockKind::Jumping,
            false => ClockKind::Steady,
        }
    }

    /// True if the input can be read from anywhere, and so a second time: a file, or what a server gives
    /// ranges of.
    pub(crate) fn can_seek(&self) -> bool {
        // SAFETY: the I/O context, where there is one, lives as long as the format context.
        let io = unsafe { self.context().pb.as_ref() };
        io.is_some_and(|io| io.seekable & ffi::AVIO_SEEKABLE_NORMAL as c_int != 0)
    }

    /// True if streams may appear that the beginning of the input does not show.
    pub(crate) fn may_grow(&self) -> bool {
        self.context().ctx_flags & ffi::AVFMTCTX_NOHEADER as c_int != 0
    }

    /// When the earliest sound or picture is shown, in nanoseconds of the container's clock.
    fn origin(&self) -> Option<i64> {
        let starts = (0..self.stream_count()).filter_map(|index| {
            let facts = self.stream(index).filter(|facts| facts.leads)?;
            let start = rescale(facts.start?, facts.time_base, NANOSECOND);
            // What is decoded before zero to be thrown away is not heard. Containers round its length.
            let heard = start + (facts.priming * 1e9).round() as i64;
            Some(match start {
                0.. => start,
                _ if heard.abs() < ROUNDING => 0,
                _ => heard.min(0),
            })
        });
        starts.min()
    }

    /// Seconds that are added to the container's times, before its first jump.
    pub(crate) fn shift(&self) -> f64 {
        (self.clock.first_offset() - self.wanted.0) as f64 / 1e9
    }

    /// Where the container's clock begins, in seconds, if that is far from zero and counted as zero.
    pub(crate) fn late_start(&self) -> Option<f64> {
        self.clock.late_start().map(|nanos| nanos as f64 / 1e9)
    }

    /// True for containers whose clock begins anywhere: transport and program streams, and Flash video.
    pub(crate) fn begins_anywhere(&self) -> bool {
        self.clock.begins_anywhere()
    }

    /// The jumps of the container's clock so far.
    pub(crate) fn jumps(&self) -> Jumps {
        self.clock.jumps()
    }

    /// How many jumps of the clock stream `index` has gone over.
    pub(crate) fn epoch(&self, index: usize) -> usize {
        self.clock.epoch(index)
    }

    /// The context, for the sink's muxer to copy parameters from.
    pub(crate) fn as_ptr(&self) -> *mut ffi::AVFormatContext {
        self.context
    }

    fn context(&self) -> &ffi::AVFormatContext {
        // SAFETY: the context is open as long as `self` lives.
        unsafe { &*self.context }
    }

    /// Pointer to stream `index`.
    pub(crate) fn stream_ptr(&self, index: usize) -> Option<*mut ffi::AVStream> {
        // SAFETY: `streams` holds `nb_streams` valid pointers.
        (index < self.stream_count()).then(|| unsafe { *self.context().streams.add(index) })
    }

    /// How many streams there are now; some containers show more while they are read.
    pub(crate) fn stream_count(&self) -> usize {
        self.context().nb_streams as usize
    }

    /// Seconds that a tick of stream `index` lasts; asked for each packet, so without the other facts.
    pub(crate) fn time_base(&self, index: usize) -> Option<Rational> {
        // SAFETY: a stream lives as long as the context.
        self.stream_ptr(index)
            .map(|stream| rational(unsafe { (*stream).time_base }))
    }

    /// What is known of stream `index`.
    pub(crate) fn stream(&self, index: usize) -> Option<StreamFacts> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context.
        let (stream, parameters) = unsafe { (&*stream, &*(*stream).codecpar) };
        // SAFETY: the name is static.
        let codec = text(unsafe { ffi::avcodec_get_name(parameters.codec_id) });
        Some(StreamFacts {
            id: stream.id,
            medium: Medium::of(parameters.codec_type),
            codec,
            has_codec: !matches!(
                parameters.codec_id,
                ffi::AVCodecID::AV_CODEC_ID_NONE | ffi::AVCodecID::AV_CODEC_ID_BIN_DATA
            ),
            tag: parameters.codec_tag,
            is_cover: stream.disposition & ffi::AV_DISPOSITION_ATTACHED_PIC as c_int != 0,
            is_default: stream.disposition & ffi::AV_DISPOSITION_DEFAULT as c_int != 0,
            time_base: rational(stream.time_base),
            frames: stream.nb_frames,
            duration: timestamp(stream.duration),
            start: timestamp(stream.start_time),
            mean_rate: (stream.avg_frame_rate.num, stream.avg_frame_rate.den),
            width: parameters.width,
            height: parameters.height,
            reordered: parameters.video_delay.max(0) as usize,
            leads: leads(Medium::of(parameters.codec_type), stream.disposition),
            priming: match parameters.sample_rate {
                rate if rate > 0 => f64::from(parameters.initial_padding) / f64::from(rate),
                _ => 0.0,
            },
        })
    }

    /// True if packets are found by an index only, which may lie behind them, and the input cannot go back.
    pub(crate) fn needs_index(&self) -> bool {
        self.format_name().contains("mp4") && !self.can_seek()
    }

    /// How many packets of stream `index` an MP4 or QuickTime file lists, less those that its edit list
    /// leaves out; `None` for other containers, and for fragments, which are listed one by one.
    pub(crate) fn listed_packets(&self, index: usize) -> Option<u64> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the stream belongs to the open context.
        let stored = u64::try_from(unsafe { (*stream).nb_frames }).ok()?;
        let listed = self.index_entries(index)?;
        (self.format_name().contains("mp4") && stored > 0 && listed > 0 && listed <= stored).then_some(listed)
    }

    /// How many packets of stream `index` the index of an AVI file leads to: all that hold something. `None`
    /// where it has none, and for other containers.
    pub(crate) fn indexed_packets(&self, index: usize) -> Option<u64> {
        self.indexed.get(index).copied().filter(|&entries| entries > 0)
    }

    /// Entries of the index of stream `index` that FFmpeg has so far.
    fn index_entries(&self, index: usize) -> Option<u64> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the stream belongs to the open context.
        u64::try_from(unsafe { ffi::avformat_index_get_entries_count(stream) }).ok()
    }

    /// The container's short name, such as "mov,mp4,m4a,3gp,3g2,mj2".
    pub(crate) fn format_name(&self) -> &str {
        &self.format
    }

    /// Seconds that the container says it lasts; `None` if it does not say and they are only estimated.
    pub(crate) fn duration(&self) -> Option<f64> {
        let context = self.context();
        let guessed =
            context.duration_estimation_method != ffi::AVDurationEstimationMethod::AVFMT_DURATION_FROM_STREAM;
        timestamp(context.duration)
            .filter(|&d| d > 0 && !guessed)
            .map(|d| d as f64 / f64::from(ffi::AV_TIME_BASE))
    }

    /// True if a decoder can be opened by what is known of stream `index`.
    pub(crate) fn opens_decoder(&self, index: usize) -> bool {
        let Some(stream) = self.stream_ptr(index) else {
            return false;
        };
        // SAFETY: a stream and its parameters live as long as the context; the decoder's context is made and
        // freed here.
        unsafe {
            let parameters = (*stream).codecpar;
            let codec = ffi::avcodec_find_decoder((*parameters).codec_id);
            if codec.is_null() {
                return false;
            }
            let mut context = ffi::avcodec_alloc_context3(codec);
            if context.is_null() {
                return false;
            }
            let opened = ffi::avcodec_parameters_to_context(context, parameters) >= 0
                && ffi::avcodec_open2(context, codec, ptr::null_mut()) >= 0;
            ffi::avcodec_free_context(&mut context);
            opened
        }
    }

    /// A packet at time 0 of that many seconds of silence for stream `index`, if its codec is PCM.
    pub(crate) fn silence(&self, index: usize, seconds: f64) -> Option<Packet> {
        let (codec, rate, frame) = self.pcm(index)?;
        let silent = match codec.as_str() {
            "pcm_u8" => 0x80,
            "pcm_alaw" => 0xD5,
            "pcm_mulaw" => 0xFF,
            codec if codec.starts_with("pcm_s") || codec.starts_with("pcm_f") => 0,
            _ => return None,
        };
        // Rounding makes no further one.
        let frames = (seconds * rate - 1e-3).ceil();
        if frames < 1.0 {
            return None;
        }
        let mut packet = Packet::from_data(&vec![silent; frames as usize * frame], 0, true).ok()?;
        packet.set_duration(1);
        Some(packet)
    }

    /// Seconds of that many bytes of stream `index`, if its codec is PCM.
    pub(crate) fn pcm_seconds(&self, index: usize, bytes: usize) -> Option<f64> {
        let (_, rate, frame) = self.pcm(index)?;
        Some((bytes / frame) as f64 / rate)
    }

    /// The codec of stream `index`, its samples a second, and the bytes of one of all channels, if it is PCM.
    fn pcm(&self, index: usize) -> Option<(String, f64, usize)> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context.
        let parameters = unsafe { &*(*stream).codecpar };
        // SAFETY: a pure function of the codec, 0 for what is no PCM.
        let bits = unsafe { ffi::av_get_bits_per_sample(parameters.codec_id) };
        let frame = match parameters.block_align {
            0 => bits * parameters.ch_layout.nb_channels / 8,
            stated => stated,
        };
        let frame = usize::try_from(frame).ok().filter(|&bytes| bytes > 0)?;
        let codec = self.stream(index)?.codec;
        let is_pcm = codec.starts_with("pcm_") && parameters.sample_rate > 0;
        is_pcm.then_some((codec, f64::from(parameters.sample_rate), frame))
    }

    /// How many chapters there are in what is wanted of it.
    pub(crate) fn chapter_count(&self) -> usize {
        self.chapters().len()
    }

    /// True for the text track of an MP4 file's chapters, which a muxer writes anew from the chapters.
    pub(crate) fn is_of_chapters(&self, facts: &StreamFacts) -> bool {
        facts.medium == Medium::Data && &facts.tag.to_le_bytes() == b"text" && self.chapter_count() > 0
    }

    /// The chapters in what is wanted of it.
    pub(crate) fn chapters(&self) -> Vec<Chapter> {
        let context = self.context();
        let wanted = |index: usize| {
            // SAFETY: `chapters` holds `nb_chapters` valid pointers.
            let chapter = unsafe { &**context.chapters.add(index) };
            let base = rational(chapter.time_base);
            let (begin, _) = self.chapter((chapter.start, chapter.end), base)?;
            Some(Chapter {
                begins: begin as f64 * base.to_f64(),
                tick: base.to_f64(),
                texts: entries(chapter.metadata),
            })
        };
        (0..context.nb_chapters as usize).filter_map(wanted).collect()
    }

    /// The texts that belong to the whole file, as names and values.
    pub(crate) fn texts(&self) -> Vec<(String, String)> {
        entries(self.context().metadata)
    }

    /// The texts of stream `index`.
    pub(crate) fn stream_texts(&self, index: usize) -> Vec<(String, String)> {
        // SAFETY: the stream is valid.
        self.stream_ptr(index)
            .map_or_else(Vec::new, |stream| entries(unsafe { (*stream).metadata }))
    }

    /// The texts of each program.
    pub(crate) fn program_texts(&self) -> Vec<Vec<(String, String)>> {
        let context = self.context();
        (0..context.nb_programs as usize)
            // SAFETY: `programs` holds `nb_programs` valid pointers.
            .map(|index| entries(unsafe { (**context.programs.add(index)).metadata }))
            .collect()
    }

    /// The texts of the file, of its streams and of its programs.
    pub(crate) fn all_texts(&self) -> Vec<(String, String)> {
        let streams = (0..self.stream_count()).flat_map(|index| self.stream_texts(index));
        let programs = self.program_texts().into_iter().flatten();
        self.texts().into_iter().chain(streams).chain(programs).collect()
    }

    /// FFmpeg's names of what stream `index` is marked as, such as "comment" or "forced".
    pub(crate) fn marks(&self, index: usize) -> Vec<String> {
        // SAFETY: the stream is valid.
        let set = self.stream_ptr(index).map_or(0, |s| unsafe { (*s).disposition });
        let bits = (0..31).map(|bit| set & (1 << bit)).filter(|&bit| bit != 0);
        // SAFETY: the names are static; null means that a bit has none.
        bits.map(|bit| text(unsafe { ffi::av_disposition_to_string(bit) }))
            .filter(|name| !name.is_empty())
            .collect()
    }

    /// What the demuxer has complained of while it read the last packet, though it went on; at first also of
    /// what was read to know the streams.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        let before = self.complaint.take();
        log::error_of(&self.format).or(before)
    }

    /// The error that stopped reading, where FFmpeg reports it as a mere end of file.
    pub(crate) fn io_error(&self) -> Option<AvError> {
        // SAFETY: the I/O context, where there is one, lives as long as the format context.
        let io = unsafe { self.context().pb.as_ref() }?;
        (io.error < 0 && io.error != ffi::AVERROR_EOF).then_some(AvError(io.error))
    }

    /// Bytes of a file; `None` for what has no end that is known.
    pub(crate) fn length(&self) -> Option<u64> {
        // SAFETY: the I/O context, where there is one, is open as long as the format context.
        let size = unsafe { self.context().pb.as_mut().map(|io| ffi::avio_size(io)) };
        size.and_then(|size| u64::try_from(size).ok())
    }

    /// Nominal frames a second of stream `index`.
    pub(crate) fn frame_rate(&self, index: usize) -> Option<Rational> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: context and stream are open; a null frame is allowed.
        let rate = unsafe { ffi::av_guess_frame_rate(self.context, stream, ptr::null_mut()) };
        (rate.num > 0 && rate.den > 0).then(|| rational(rate))
    }

    /// Width over height of a pixel of `picture`; (0, 1) if unknown.
    pub(crate) fn sample_aspect(&self, index: usize, picture: &Picture) -> (i32, i32) {
        let Some(stream) = self.stream_ptr(index) else {
            return (0, 1);
        };
        // SAFETY: context, stream and frame are valid.
        let aspect = unsafe { ffi::av_guess_sample_aspect_ratio(self.context, stream, picture.as_ptr()) };
        if aspect.num > 0 && aspect.den > 0 {
            (aspect.num, aspect.den)
        } else {
            (0, 1)
        }
    }

    /// A text that the container attaches to stream `index`.
    pub(crate) fn stream_tag(&self, index: usize, key: &CStr) -> Option<String> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: the dictionary belongs to the stream; null means empty.
        unsafe {
            let entry = ffi::av_dict_get((*stream).metadata, key.as_ptr(), ptr::null(), 0);
            entry.as_ref().map(|entry| text(entry.value))
        }
    }

    /// True if the container says that stream `index` carries alpha beside its pictures.
    pub(crate) fn claims_alpha(&self, index: usize) -> bool {
        // Keys are compared without regard to case.
        self.stream_tag(index, c"alpha_mode")
            .is_some_and(|value| value.trim().parse::<i64>().is_ok_and(|mode| mode != 0))
    }

    /// The codec's headers of stream `index`, as the container stores them; empty if there are none.
    pub(crate) fn extradata(&self, index: usize) -> &[u8] {
        let Some(stream) = self.stream_ptr(index) else {
            return &[];
        };
        // SAFETY: the block, where there is one, holds `extradata_size` bytes and lives as long as the
        // stream.
        unsafe {
            let parameters = &*(*stream).codecpar;
            if parameters.extradata.is_null() || parameters.extradata_size <= 0 {
                return &[];
            }
            std::slice::from_raw_parts(parameters.extradata, parameters.extradata_size as usize)
        }
    }

    /// The blocks of stream `index` that describe its pictures; `kind` is a number of AVPacketSideDataType.
    pub(crate) fn stream_side_data(&self, index: usize) -> Vec<SideData> {
        let Some(stream) = self.stream_ptr(index) else {
            return Vec::new();
        };
        let mut found = Vec::new();
        for &kind in STREAM_SIDE_DATA {
            // SAFETY: the stream lives as long as the context, and its blocks are copied at once.
            let data = unsafe { version::stream_side_data(stream, kind) };
            if let Some(data) = data.filter(|data| data.len() <= METADATA_LIMIT) {
                found.push(SideData {
                    kind: kind as u32,
                    fact: stream_fact(kind as u32),
                    name: None,
                    data: data.into(),
                });
            }
        }
        found
    }

    /// What the blocks of stream `index` are about that are too large to be carried.
    pub(crate) fn large_side_data(&self, index: usize) -> Vec<Fact> {
        let Some(stream) = self.stream_ptr(index) else {
            return Vec::new();
        };
        let is_large = |kind: &&ffi::AVPacketSideDataType| {
            // SAFETY: the stream lives as long as the context.
            let data = unsafe { version::stream_side_data(stream, **kind) };
            data.is_some_and(|data| data.len() > METADATA_LIMIT)
        };
        let large = STREAM_SIDE_DATA.iter().filter(is_large);
        large.map(|&kind| stream_fact(kind as u32)).collect()
    }

    /// States that the sound of stream `index` begins that many seconds before it is heard.
    pub(crate) fn set_priming(&mut self, index: usize, seconds: f64) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream and its parameters belong to this context, which is borrowed mutably.
            unsafe {
                let parameters = &mut *(*stream).codecpar;
                parameters.initial_padding = (seconds * f64::from(parameters.sample_rate)).round() as c_int;
            }
        }
    }

    /// Tells the demuxer that stream `index` will not be read.
    pub(crate) fn discard(&mut self, index: usize) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream belongs to this context, which is borrowed mutably.
            unsafe { (*stream).discard = ffi::AVDiscard::AVDISCARD_ALL };
        }
    }

    /// Reads the next packet of any stream into `packet`, which is emptied first. Its times are those of the
    /// clock.
    pub(crate) fn read(&mut self, packet: &mut Packet) -> Result<(), AvError> {
        packet.clear();
        log::forget();
        if let Some(gate) = &self.gate {
            gate.patience.begin();
        }
        // SAFETY: context and packet are valid, and the packet is empty.
        AvError::check(unsafe { ffi::av_read_frame(self.context, packet.as_ptr()) })?;
        let index = packet.stream();
        let Some(time) = packet.dts().or_else(|| packet.pts()) else {
            return Ok(());
        };
        let Some(stream) = self.stream_ptr(index) else {
            return Ok(());
        };
        // SAFETY: a stream and its parameters live as long as the context.
        let (stream, medium) = unsafe { (&*stream, (*(*stream).codecpar).codec_type) };
        let (base, leads) = (
            rational(stream.time_base),
            leads(Medium::of(medium), stream.disposition),
        );
        let nanos = |ticks| rescale(ticks, base, NANOSECOND);
        let times = Times {
            dts: nanos(time),
            pts: nanos(packet.pts().unwrap_or(time)),
            duration: nanos(packet.duration()),
            is_key: packet.is_key(),
        };
        let offset = self.clock.offset(index, leads, times);
        packet.shift(rescale(offset - self.wanted.0, NANOSECOND, base));
        Ok(())
    }

    /// Goes to a packet that is decoded at `tick` of stream `index` or before, on its clock, where decoding
    /// may begin. Only for containers whose clock does not jump.
    pub(crate) fn seek(&mut self, index: usize, tick: i64) -> Result<(), AvError> {
        let base = self.time_base(index).unwrap_or(NANOSECOND);
        let offset = rescale(self.clock.first_offset() - self.wanted.0, NANOSECOND, base);
        // SAFETY: the context is open, and this thread's own.
        let code = unsafe {
            ffi::av_seek_frame(
                self.context,
                index as c_int,
                tick - offset,
                ffi::AVSEEK_FLAG_BACKWARD as c_int,
            )
        };
        AvError::check(code).map(|_| ())
    }

    /// Has the clock begin `start` nanoseconds later: what comes before that has times below zero. `end` is
    /// where the wanted part of the input ends, on the clock as it was.
    pub(crate) fn cut(&mut self, start: i64, end: Option<i64>) {
        self.wanted = (start, end);
    }

    /// True if its clock begins later than the input does.
    pub(crate) fn begins_later(&self) -> bool {
        self.wanted.0 != 0
    }

    /// The part of a chapter from `start` to `end`, in ticks of `base`, that is wanted, on the clock; `None`
    /// if it is outside.
    pub(in crate::media::ffmpeg) fn chapter(
        &self,
        (start, end): (i64, i64),
        base: Rational,
    ) -> Option<(i64, i64)> {
        let ticks = |nanos| rescale(nanos, NANOSECOND, base);
        let (from, to) = (ticks(self.wanted.0), self.wanted.1.map(ticks));
        if from > 0 && end <= from || to.is_some_and(|to| start >= to) {
            return None;
        }
        let start = if from > 0 { start.max(from) } else { start };
        Some((start - from, to.map_or(end, |to| end.min(to)) - from))
    }

    /// True for containers whose index leads to packets with their true times.
    pub(crate) fn has_exact_index(&self) -> bool {
        let named = |name: &&str| self.format_name().starts_with(*name);
        ["mov,mp4", "matroska", "avi"].iter().any(named) && !self.clock.may_restart()
    }
}

/// A new context.
fn allocate() -> Result<*mut ffi::AVFormatContext, OpenFailure> {
    // SAFETY: allocates; null is refused.
    let context = unsafe { ffi::avformat_alloc_context() };
    if context.is_null() {
        return Err(OpenFailure::Open(AvError::no_memory()));
    }
    Ok(context)
}

/// Why opening failed, if it was for want of permission or of time.
fn refusal(gate: Option<&Gate>) -> Option<OpenFailure> {
    let gate = gate?;
    if gate.patience.ran_out() {
        return Some(OpenFailure::TimedOut);
    }
    if let Some(format) = log::refused_format() {
        return Some(OpenFailure::Refused(Access::refusal(&format)));
    }
    let file = gate.refused()?;
    Some(OpenFailure::Refused(format!(
        "it names another file, {file}, and one input is one file; --allow-playlists reads what lies in its \
         own folder"
    )))
}

/// What a dictionary holds.
fn entries(dictionary: *const ffi::AVDictionary) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut entry: *const ffi::AVDictionaryEntry = ptr::null();
    loop {
        // SAFETY: null is an empty dictionary; an empty name with this flag steps from one entry to the next.
        entry = unsafe {
            ffi::av_dict_get(
                dictionary,
                c"".as_ptr(),
                entry,
                ffi::AV_DICT_IGNORE_SUFFIX as c_int,
            )
        };
        // SAFETY: an entry is valid as long as its dictionary is not changed.
        let Some(found_entry) = (unsafe { entry.as_ref() }) else {
            return found;
        };
        found.push((text(found_entry.key), text(found_entry.value)));
    }
}

impl Drop for Demuxer {
    fn drop(&mut self) {
        // SAFETY: the context was opened by avformat_open_input and is closed once.
        unsafe { ffi::avformat_close_input(&mut self.context) };
    }
}
