//! Media files: opened, and their packets in the order of the file. `streams` and `texts` is what they say,
//! `outline` keeps that when a pipe has been read.
#![allow(unsafe_code)]

mod outline;
mod streams;
mod texts;

pub(crate) use outline::Outline;
pub(in crate::media::ffmpeg) use outline::copy_chapters;
pub(in crate::media::ffmpeg) use streams::SamplesOf;
pub(crate) use streams::{Medium, StreamFacts};
pub(crate) use texts::Chapter;

use super::access::{self, Access, Gate};
use super::chained::is_chained;
use super::clock::{Clock, ClockKind, Jumps, Times};
use super::metadata_limit;
use super::{hls, list};
use crate::frame::Rational;
use crate::media::ffmpeg::io::memory_io::MemoryFile;
use crate::media::ffmpeg::io::pipe_io::PipeFile;
use crate::media::ffmpeg::log::TransportFault;
use crate::media::ffmpeg::text::{c_string, rational, rescale, text, timestamp};
use crate::media::ffmpeg::{AvError, Packet, init, log};
use crate::waiting::{StallTimeout, WaitLimit, open_without_waiting};
use crossbeam_channel::Receiver;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_int};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::ptr;
use streams::leads;

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

/// How the complaint begins of the reader of MXF behind the last frame that the index knows, where it has not
/// seen the end of the file: the frame's own length says how long it is.
const OF_LAST_FRAME: &str = "unable to compute the size of the last packet";

/// The option by which the reader of APNG shows frames that state no delay for 0.1 s, as browsers do, and
/// FFmpeg's readers of GIF and WebP; no other reader has it.
const NO_DELAY: (&CStr, &CStr) = (c"default_fps", c"10");

/// Bare streams of which FFmpeg makes up wrong times: it numbers the pictures of Dirac, in ticks, and gives
/// the first of H.261 and H.263 the length of one at 25 frames a second, whatever the stream's rate.
const BY_RATE: [&str; 3] = ["dirac", "h261", "h263"];

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

/// Bytes of a file that FFmpeg looks at to know its format, at most.
const PROBED: u64 = 1 << 20;

/// The format of a file whose name holds a percent sign: by that FFmpeg would take it for a pattern of other
/// files' names.
fn format_of(path: &Path) -> Result<*const ffi::AVInputFormat, AvError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(PROBED).read_to_end(&mut bytes));
    let length = read.map_err(|cause| AvError::of_io(&cause))?;
    bytes.resize(length + ffi::AVPROBE_PADDING_SIZE as usize, 0);
    let name = c_string(path.to_string_lossy().replace('%', "_").as_bytes())?;
    let probed = ffi::AVProbeData {
        filename: name.as_ptr(),
        buf: bytes.as_mut_ptr(),
        buf_size: length as c_int,
        mime_type: ptr::null(),
    };
    let mut score = 0;
    // SAFETY: name and bytes outlive the call, and behind the bytes there is the room that is asked for.
    let format = unsafe { ffi::av_probe_input_format3(&probed, 1, &mut score) };
    match format.is_null() {
        true => Err(AvError(ffi::AVERROR_INVALIDDATA)),
        false => Ok(format),
    }
}

/// The stage at which opening an input failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenFailure {
    /// The file could not be opened or is no media file.
    #[error("{0}")]
    Open(AvError),
    /// It, or a file that it names, may not be opened: a sentence.
    #[error("{0}")]
    Refused(String),
    /// It gave nothing for so long that the user's patience is over.
    #[error("it gave nothing")]
    TimedOut,
    /// Its streams could not be understood.
    #[error("{0}")]
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
    /// The files of a list (ffconcat).
    listed: Vec<PathBuf>,
    /// Files that the input names and that were passed over while it was opened.
    passed_over: Vec<String>,
    /// Playlists of subtitles that an HLS master names and FFmpeg does not read.
    unread_subtitles: Vec<String>,
    /// What was said of packets of a transport stream that were read while it was opened, and are not again.
    faults: Vec<TransportFault>,
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
    /// Opens `path` and reads enough of it to know its streams. It may open what `access` allows; `limit`
    /// ends its waits for a pipe or a network. `pipe` is what `path` names, where that is open already.
    pub(crate) fn open(
        path: &Path,
        access: Access,
        limit: Option<&WaitLimit>,
        pipe: Option<&File>,
    ) -> Result<Demuxer, OpenFailure> {
        init();
        let name = location(path).map_err(OpenFailure::Open)?;
        let is_playlist = access::begins_as_playlist(path);
        if is_playlist {
            if !access.playlists {
                return Err(OpenFailure::Refused(Access::refusal("hls")));
            }
            hls::check(path).map_err(OpenFailure::Refused)?;
        }
        let patience = limit.map_or_else(|| StallTimeout::new(None), StallTimeout::by);
        let listed = match access.playlists && list::is_list(path) {
            true => list::files(path, &patience).map_err(|why| match patience.ran_out() {
                true => OpenFailure::TimedOut,
                false => OpenFailure::Refused(why),
            })?,
            false => Vec::new(),
        };
        let context = allocate()?;
        let gate = Gate::install(context, (path, &name), access, patience);
        let max_pixels = access.max_pixels;
        let mut reading = Reading::Own;
        // A file is sought in; whatever else has a name here is read as it comes.
        if path
            .metadata()
            .is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
        {
            let opened = match pipe {
                Some(file) => file.try_clone(),
                None => open_without_waiting(path),
            };
            let opened = opened.map_err(|cause| AvError::of_io(&cause));
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
        if is_playlist {
            // SAFETY: demuxers are static; null leaves the choice to FFmpeg.
            format = unsafe { ffi::av_find_input_format(c"hls".as_ptr()) };
        } else if path.is_file() && name.to_bytes().contains(&b'%') {
            format = format_of(path).map_err(OpenFailure::Open)?;
        }
        let mut demuxer = Demuxer::begin(context, &name, format, reading, (Some(gate), max_pixels))?;
        demuxer.listed = listed;
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
    pub(crate) fn kept(&self) -> &[u8] {
        match &self.source {
            Reading::Pipe { file } => file.kept(),
            Reading::Own | Reading::Memory { .. } => &[],
        }
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
        let mut options = ptr::null_mut();
        // SAFETY: on success `context` is ours; on failure FFmpeg frees it and leaves null. The dictionary,
        // null at first, is freed with the options that no demuxer took.
        let code = unsafe {
            ffi::av_dict_set(&mut options, NO_DELAY.0.as_ptr(), NO_DELAY.1.as_ptr(), 0);
            if !format.is_null() {
                ffi::av_dict_set(&mut options, c"pattern_type".as_ptr(), c"none".as_ptr(), 0);
            }
            let code = ffi::avformat_open_input(&mut context, name.as_ptr(), format, &mut options);
            ffi::av_dict_free(&mut options);
            code
        };
        AvError::check(code).map_err(|e| {
            let why = refusal(gate.as_deref()).or_else(|| of_list(e));
            why.unwrap_or(OpenFailure::Open(e))
        })?;
        if let Some(gate) = &gate {
            gate.has_begun();
        }
        let mut demuxer = Demuxer {
            context,
            clock: Clock::new(ClockKind::Steady, None),
            indexed: Vec::new(),
            complaint: None,
            listed: Vec::new(),
            passed_over: Vec::new(),
            unread_subtitles: log::take_unread_subtitles(),
            faults: Vec::new(),
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
        log::take_faults(demuxer.context);
        let code = demuxer.probe();
        // FFmpeg goes back to the beginning, where it can.
        let faults = log::take_faults(demuxer.context);
        if !demuxer.can_seek() {
            demuxer.faults = faults;
        }
        let gate = demuxer.gate.as_deref();
        AvError::check(code).map_err(|e| refusal(gate).unwrap_or(OpenFailure::Streams(e)))?;
        if let Some(failure) = refusal(gate) {
            return Err(failure);
        }
        demuxer.passed_over = log::take_passed_over();
        let complaint = demuxer.said();
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

    /// Why a file was not opened that the input names, in a sentence.
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

    /// What the demuxer has complained of while it read the last packet, though it went on; at first also of
    /// what was read to know the streams.
    pub(crate) fn complaint(&mut self) -> Option<String> {
        let before = self.complaint.take();
        self.said().or(before)
    }

    /// What the demuxer complained of last, but for what is true of any pipe.
    fn said(&self) -> Option<String> {
        let line = log::error_of(&self.format)?;
        (self.can_seek() || !line.starts_with(OF_LAST_FRAME)).then_some(line)
    }

    /// True if the input is a list of files, or a playlist: its own bytes are no pictures.
    pub(crate) fn is_list(&self) -> bool {
        access::is_of_list(&self.format)
    }

    /// The files that a list (ffconcat) names.
    pub(crate) fn listed(&self) -> &[PathBuf] {
        &self.listed
    }

    /// The file of a list (ffconcat) that could not be opened when the next packet was to be read.
    pub(crate) fn file_not_opened(&self) -> Option<String> {
        let line = log::error_of(list::DEMUXER)?;
        list::not_opened(&line).map(str::to_owned)
    }

    /// The files that the input names and that were passed over while the last packet was read, because they
    /// could not be opened; at first also those before it.
    pub(crate) fn passed_over(&mut self) -> Vec<String> {
        let mut files = std::mem::take(&mut self.passed_over);
        files.append(&mut log::take_passed_over());
        files
    }

    /// The playlists of subtitles that an HLS master names and FFmpeg does not read.
    pub(crate) fn unread_subtitles(&self) -> &[String] {
        &self.unread_subtitles
    }

    /// What the demuxer said of the packets of a transport stream while it read the last packet; at first
    /// also of what was read to know the streams.
    pub(crate) fn transport_faults(&mut self) -> Vec<TransportFault> {
        let mut faults = std::mem::take(&mut self.faults);
        if self.format == "mpegts" {
            faults.extend(log::take_faults(self.context));
        }
        faults
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
        if BY_RATE.contains(&self.format.as_str()) {
            packet.set_times(ffi::AV_NOPTS_VALUE, ffi::AV_NOPTS_VALUE, 0);
        }
        if self.is_shown_too_soon(packet) {
            packet.forget_pts();
        }
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

    /// True for the first packet of bare MPEG-1 where pictures are reordered. FFmpeg does not know that yet
    /// when it makes up the packet's times, and has it shown at once, a frame too soon.
    fn is_shown_too_soon(&self, packet: &Packet) -> bool {
        let is_first = packet.pts() == Some(0) && packet.dts() == Some(0);
        is_first
            && self.format == "mpegvideo"
            && (self.stream(packet.stream())).is_some_and(|facts| facts.reordered > 0)
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

    /// True for containers in which a seek leads to the packet of each stream that is shown then.
    pub(crate) fn seeks_each_stream(&self) -> bool {
        self.format_name().starts_with("mov,mp4")
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

/// Why opening failed, if it was for want of permission or of time, or for a file that the input names.
fn refusal(gate: Option<&Gate>) -> Option<OpenFailure> {
    let gate = gate?;
    if gate.patience.ran_out() {
        return Some(OpenFailure::TimedOut);
    }
    if let Some(format) = log::refused_format() {
        return Some(OpenFailure::Refused(Access::refusal(&format)));
    }
    gate.refused().map(OpenFailure::Refused)
}

/// Why a list of files was not opened, if it was one: `e` is of a file that it names.
fn of_list(e: AvError) -> Option<OpenFailure> {
    if let Some(line) = log::error_of(list::DEMUXER) {
        return Some(OpenFailure::Refused(match list::not_opened(&line) {
            Some(file) => format!("it names {file}, which cannot be read as a video: {e}"),
            None => format!("it is a list of files that FFmpeg does not understand: {line}"),
        }));
    }
    let file = log::take_passed_over().into_iter().next()?;
    Some(OpenFailure::Refused(format!(
        "it names {file}, which cannot be opened: {e}"
    )))
}

impl Drop for Demuxer {
    fn drop(&mut self) {
        // SAFETY: the context was opened by avformat_open_input and is closed once.
        unsafe { ffi::avformat_close_input(&mut self.context) };
    }
}
