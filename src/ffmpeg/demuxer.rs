//! Media files: their streams, and their packets in the order of the file.
#![allow(unsafe_code)]

use super::side_data::STREAM_SIDE_DATA;
use super::text::{rational, text, timestamp};
use super::{AvError, Packet, Picture, init};
use crate::frame::{Rational, SideData};
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_int};
use std::path::Path;
use std::ptr;

/// Bytes of a path or URL as FFmpeg takes them. A path that exists is marked as a file, so that a colon in it names no protocol.
pub(crate) fn location(path: &Path) -> Result<CString, AvError> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = Vec::new();
    if path.exists() {
        bytes.extend_from_slice(b"file:");
    }
    bytes.extend_from_slice(path.as_os_str().as_bytes());
    CString::new(bytes).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)))
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
    pub(crate) medium: Medium,
    /// FFmpeg's name of the codec.
    pub(crate) codec: String,
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
}

/// The stage at which opening an input failed.
#[derive(Debug)]
pub(crate) enum OpenFailure {
    /// The file could not be opened or is no media file.
    Open(AvError),
    /// Its streams could not be understood.
    Streams(AvError),
}

/// An open media file.
pub(crate) struct Demuxer {
    context: *mut ffi::AVFormatContext,
}

// SAFETY: an AVFormatContext is bound to no thread, and only `&mut self` reaches what changes it.
unsafe impl Send for Demuxer {}

impl Demuxer {
    /// Opens `path` and reads enough of it to know its streams.
    pub(crate) fn open(path: &Path) -> Result<Demuxer, OpenFailure> {
        init();
        let name = location(path).map_err(OpenFailure::Open)?;
        let mut context = ptr::null_mut();
        // SAFETY: on success `context` is ours; on failure FFmpeg frees it and leaves null.
        let code = unsafe {
            ffi::avformat_open_input(&mut context, name.as_ptr(), ptr::null_mut(), ptr::null_mut())
        };
        AvError::check(code).map_err(OpenFailure::Open)?;
        let demuxer = Demuxer { context };
        // SAFETY: the context is open.
        let code = unsafe { ffi::avformat_find_stream_info(demuxer.context, ptr::null_mut()) };
        AvError::check(code).map_err(OpenFailure::Streams)?;
        Ok(demuxer)
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

    /// What is known of stream `index`.
    pub(crate) fn stream(&self, index: usize) -> Option<StreamFacts> {
        let stream = self.stream_ptr(index)?;
        // SAFETY: a stream and its parameters live as long as the context.
        let (stream, parameters) = unsafe { (&*stream, &*(*stream).codecpar) };
        // Read as a number: FFmpeg's negative "unknown" is a medium too.
        let medium = match parameters.codec_type {
            ffi::AVMediaType::AVMEDIA_TYPE_VIDEO => Medium::Video,
            ffi::AVMediaType::AVMEDIA_TYPE_AUDIO => Medium::Audio,
            ffi::AVMediaType::AVMEDIA_TYPE_SUBTITLE => Medium::Subtitle,
            ffi::AVMediaType::AVMEDIA_TYPE_DATA => Medium::Data,
            ffi::AVMediaType::AVMEDIA_TYPE_ATTACHMENT => Medium::Attachment,
            _ => Medium::Other,
        };
        // SAFETY: the name is static.
        let codec = text(unsafe { ffi::avcodec_get_name(parameters.codec_id) });
        Some(StreamFacts {
            medium,
            codec,
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
        })
    }

    /// The container's short name, such as "mov,mp4,m4a,3gp,3g2,mj2".
    pub(crate) fn format_name(&self) -> String {
        // SAFETY: an open input has its format.
        text(unsafe { (*self.context().iformat).name })
    }

    /// Seconds that the container says it lasts; `None` if it does not say or only the bit rate tells.
    pub(crate) fn duration(&self) -> Option<f64> {
        let context = self.context();
        let guessed = context.duration_estimation_method
            == ffi::AVDurationEstimationMethod::AVFMT_DURATION_FROM_BITRATE;
        timestamp(context.duration)
            .filter(|&d| d > 0 && !guessed)
            .map(|d| d as f64 / f64::from(ffi::AV_TIME_BASE))
    }

    /// True if there are chapters.
    pub(crate) fn has_chapters(&self) -> bool {
        self.context().nb_chapters > 0
    }

    /// The error that stopped reading, where FFmpeg reports it as a mere end of file.
    pub(crate) fn io_error(&self) -> Option<AvError> {
        // SAFETY: the I/O context, where there is one, lives as long as the format context.
        let io = unsafe { self.context().pb.as_ref() }?;
        (io.error < 0 && io.error != ffi::AVERROR_EOF).then_some(AvError(io.error))
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
        // SAFETY: the block, where there is one, holds `extradata_size` bytes and lives as long as the stream.
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
            let mut size = 0;
            // SAFETY: the block, where there is one, holds `size` bytes and lives as long as the stream.
            let data = unsafe {
                let data = ffi::av_stream_get_side_data(stream, kind, &mut size);
                if data.is_null() {
                    continue;
                }
                std::slice::from_raw_parts(data, size)
            };
            found.push(SideData {
                kind: kind as u32,
                data: data.into(),
            });
        }
        found
    }

    /// Tells the demuxer that stream `index` will not be read.
    pub(crate) fn discard(&mut self, index: usize) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream belongs to this context, which is borrowed mutably.
            unsafe { (*stream).discard = ffi::AVDiscard::AVDISCARD_ALL };
        }
    }

    /// Reads the next packet of any stream into `packet`, which is emptied first.
    pub(crate) fn read(&mut self, packet: &mut Packet) -> Result<(), AvError> {
        packet.clear();
        // SAFETY: context and packet are valid, and the packet is empty.
        AvError::check(unsafe { ffi::av_read_frame(self.context, packet.as_ptr()) }).map(|_| ())
    }
}

impl Drop for Demuxer {
    fn drop(&mut self) {
        // SAFETY: the context was opened by avformat_open_input and is closed once.
        unsafe { ffi::avformat_close_input(&mut self.context) };
    }
}
