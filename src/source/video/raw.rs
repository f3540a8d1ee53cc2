//! FFmpeg's raw interface as the source, the converter and the sink's copier need it: demuxer, decoder, packet, picture, scaler.
//!
//! Every type here owns its FFmpeg object and frees it when dropped; nothing outside this file and the sink's own touches a pointer.
#![allow(unsafe_code)]

use crate::frame::{Colour, FieldOrder, Frame, Range, SideData};
use crate::source::Rational;
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr;
use std::sync::Once;

/// Keeps FFmpeg's own messages off the terminal (they lack context and cannot be counted) unless debugging was asked for.
pub(crate) fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let level = if tracing::enabled!(tracing::Level::DEBUG) {
            ffi::AV_LOG_WARNING
        } else {
            ffi::AV_LOG_QUIET
        };
        // SAFETY: both calls only set process-wide state of FFmpeg and are made once.
        unsafe {
            ffi::av_log_set_level(level as c_int);
            ffi::avformat_network_init();
        }
    });
}

/// A negative result of an FFmpeg call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvError(pub(crate) c_int);

impl AvError {
    /// Turns a result code into a `Result`; zero and positive codes are passed on.
    pub(crate) fn check(code: c_int) -> Result<c_int, AvError> {
        if code < 0 { Err(AvError(code)) } else { Ok(code) }
    }

    /// Memory that FFmpeg could not get.
    pub(crate) fn no_memory() -> AvError {
        AvError(ffi::AVERROR(ffi::ENOMEM))
    }

    /// True at the end of the data.
    pub(crate) fn is_eof(self) -> bool {
        self.0 == ffi::AVERROR_EOF
    }

    /// True if the codec wants to be emptied, or fed, first.
    pub(crate) fn is_again(self) -> bool {
        self.0 == ffi::AVERROR(ffi::EAGAIN)
    }

    /// True if bytes in the data make no sense.
    pub(crate) fn is_invalid_data(self) -> bool {
        self.0 == ffi::AVERROR_INVALIDDATA
    }

    /// True if an option of that name does not exist.
    pub(crate) fn is_option_not_found(self) -> bool {
        self.0 == ffi::AVERROR_OPTION_NOT_FOUND
    }

    /// The error as the standard library tells it: the system's own number where there is one.
    pub(crate) fn to_io(self) -> std::io::Error {
        // FFmpeg's own codes are four letters and so far below any errno.
        if (-4096..0).contains(&self.0) {
            std::io::Error::from_raw_os_error(-self.0)
        } else {
            std::io::Error::other(self.to_string())
        }
    }
}

impl fmt::Display for AvError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [0 as c_char; 128];
        // SAFETY: av_strerror writes at most `text.len()` bytes, the closing zero included.
        let text = unsafe {
            ffi::av_strerror(self.0, text.as_mut_ptr(), text.len());
            CStr::from_ptr(text.as_ptr())
        };
        f.write_str(&text.to_string_lossy())
    }
}

impl std::error::Error for AvError {}

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

pub(super) fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: FFmpeg's names are zero-terminated and live as long as the object that they were read from.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn timestamp(value: i64) -> Option<i64> {
    (value != ffi::AV_NOPTS_VALUE).then_some(value)
}

fn rational(value: ffi::AVRational) -> Rational {
    Rational {
        num: value.num,
        den: value.den,
    }
}

/// `value` from one time base to another, to the nearest tick; halves go away from zero.
pub(crate) fn rescale(value: i64, from: Rational, to: Rational) -> i64 {
    let raw = |r: Rational| ffi::AVRational {
        num: r.num,
        den: r.den.max(1),
    };
    if to.num == 0 {
        return value;
    }
    // SAFETY: pure arithmetic; the denominators are not zero.
    unsafe { ffi::av_rescale_q(value, raw(from), raw(to)) }
}

/// A pixel format by FFmpeg's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AvFormat(pub(crate) c_int);

/// What FFmpeg's descriptor says of a pixel format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct FormatFacts {
    /// FFmpeg's name.
    pub(crate) name: String,
    /// Components, 1 to 4, alpha included.
    pub(crate) components: u32,
    /// Significant bits of the deepest component.
    pub(crate) depth: u32,
    /// log2 of the chroma subsampling, across.
    pub(crate) log2_x: u32,
    /// log2 of the chroma subsampling, down.
    pub(crate) log2_y: u32,
    /// Planes in memory.
    pub(crate) planes: u32,
    /// Holds red, green and blue.
    pub(crate) rgb: bool,
    /// Holds alpha.
    pub(crate) alpha: bool,
    /// Pixels are indices into a palette.
    pub(crate) palette: bool,
    /// Samples are floating-point numbers.
    pub(crate) float: bool,
    /// A mosaic of single-colour sensors.
    pub(crate) bayer: bool,
    /// Pixels live in a device's own memory.
    pub(crate) hardware: bool,
}

impl AvFormat {
    /// The format of FFmpeg's name `name`, if this FFmpeg knows it.
    pub(crate) fn from_name(name: &str) -> Option<AvFormat> {
        let name = CString::new(name).ok()?;
        // SAFETY: `name` is zero-terminated.
        let format = unsafe { ffi::av_get_pix_fmt(name.as_ptr()) } as c_int;
        (format >= 0).then_some(AvFormat(format))
    }

    /// FFmpeg's own type, if the number is one of its formats.
    pub(crate) fn to_raw(self) -> Option<ffi::AVPixelFormat> {
        let known = 0..ffi::AVPixelFormat::AV_PIX_FMT_NB as c_int;
        // SAFETY: the enumeration holds every number below AV_PIX_FMT_NB.
        known
            .contains(&self.0)
            .then(|| unsafe { std::mem::transmute::<c_int, ffi::AVPixelFormat>(self.0) })
    }

    /// The descriptor's facts; `None` for a number that is no format.
    pub(crate) fn facts(self) -> Option<FormatFacts> {
        let raw = self.to_raw()?;
        // SAFETY: descriptors are static; a null one is refused.
        let descriptor = unsafe { ffi::av_pix_fmt_desc_get(raw).as_ref() }?;
        let flag = |bit: u32| descriptor.flags & u64::from(bit) != 0;
        let components = usize::from(descriptor.nb_components).min(4);
        let parts = &descriptor.comp[..components];
        Some(FormatFacts {
            name: text(descriptor.name),
            components: components as u32,
            depth: parts.iter().map(|c| c.depth.max(0) as u32).max().unwrap_or(0),
            log2_x: u32::from(descriptor.log2_chroma_w),
            log2_y: u32::from(descriptor.log2_chroma_h),
            planes: parts.iter().map(|c| c.plane.max(0) as u32 + 1).max().unwrap_or(0),
            rgb: flag(ffi::AV_PIX_FMT_FLAG_RGB as u32),
            alpha: flag(ffi::AV_PIX_FMT_FLAG_ALPHA as u32),
            palette: flag(ffi::AV_PIX_FMT_FLAG_PAL as u32),
            float: flag(ffi::AV_PIX_FMT_FLAG_FLOAT as u32),
            bayer: flag(ffi::AV_PIX_FMT_FLAG_BAYER as u32),
            hardware: flag(ffi::AV_PIX_FMT_FLAG_HWACCEL as u32),
        })
    }

    /// log2 of the subsampling of planes 1 and 2, down; asked for each row, so without the other facts.
    fn log2_chroma_height(self) -> u32 {
        // SAFETY: descriptors are static; a null one is refused.
        self.to_raw()
            .and_then(|raw| unsafe { ffi::av_pix_fmt_desc_get(raw).as_ref() })
            .filter(|d| d.flags & u64::from(ffi::AV_PIX_FMT_FLAG_RGB as u32) == 0)
            .map_or(0, |d| u32::from(d.log2_chroma_h))
    }

    /// FFmpeg's name, or the number if it has none.
    pub(crate) fn name(self) -> String {
        self.facts()
            .map_or_else(|| format!("format {}", self.0), |facts| facts.name)
    }
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
        let aspect = unsafe { ffi::av_guess_sample_aspect_ratio(self.context, stream, picture.frame) };
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
        AvError::check(unsafe { ffi::av_read_frame(self.context, packet.packet) }).map(|_| ())
    }
}

impl Drop for Demuxer {
    fn drop(&mut self) {
        // SAFETY: the context was opened by avformat_open_input and is closed once.
        unsafe { ffi::avformat_close_input(&mut self.context) };
    }
}

/// A packet of compressed data.
pub(crate) struct Packet {
    packet: *mut ffi::AVPacket,
}

// SAFETY: a packet is plain memory and reference counts that are atomic.
unsafe impl Send for Packet {}

impl Packet {
    /// An empty packet.
    pub(crate) fn new() -> Result<Packet, AvError> {
        // SAFETY: allocates; null is refused.
        let packet = unsafe { ffi::av_packet_alloc() };
        if packet.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Packet { packet })
    }

    /// The raw packet, for encoder and muxer.
    pub(crate) fn as_ptr(&self) -> *mut ffi::AVPacket {
        self.packet
    }

    /// Gives up the data.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the packet is valid.
        unsafe { ffi::av_packet_unref(self.packet) };
    }

    fn raw(&self) -> &ffi::AVPacket {
        // SAFETY: the packet is valid as long as `self` lives.
        unsafe { &*self.packet }
    }

    /// Index of the packet's stream.
    pub(crate) fn stream(&self) -> usize {
        self.raw().stream_index.max(0) as usize
    }

    /// Presentation time in the stream's time base.
    pub(crate) fn pts(&self) -> Option<i64> {
        timestamp(self.raw().pts)
    }

    /// Decoding time in the stream's time base.
    pub(crate) fn dts(&self) -> Option<i64> {
        timestamp(self.raw().dts)
    }

    /// How long it lasts in the stream's time base, 0 if unknown.
    pub(crate) fn duration(&self) -> i64 {
        self.raw().duration
    }

    /// Bytes of data.
    pub(crate) fn size(&self) -> usize {
        self.raw().size.max(0) as usize
    }

    /// True if the demuxer knows that the data is damaged or cut.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.raw().flags & ffi::AV_PKT_FLAG_CORRUPT as c_int != 0
    }
}

impl Drop for Packet {
    fn drop(&mut self) {
        // SAFETY: allocated by av_packet_alloc and freed once.
        unsafe { ffi::av_packet_free(&mut self.packet) };
    }
}

/// What a codec had to give.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Received {
    /// The picture or packet is filled.
    Item,
    /// More input is needed.
    Again,
    /// Nothing more will come.
    End,
}

impl Received {
    /// Tells what a receive call's code means.
    pub(crate) fn from_code(code: c_int) -> Result<Received, AvError> {
        match AvError::check(code) {
            Ok(_) => Ok(Received::Item),
            Err(e) if e.is_again() => Ok(Received::Again),
            Err(e) if e.is_eof() => Ok(Received::End),
            Err(e) => Err(e),
        }
    }
}

/// The blocks of a stream that describe its pictures and that a muxer can take over.
pub(crate) const STREAM_SIDE_DATA: &[ffi::AVPacketSideDataType] = {
    use ffi::AVPacketSideDataType as Kind;
    &[
        Kind::AV_PKT_DATA_DISPLAYMATRIX,
        Kind::AV_PKT_DATA_STEREO3D,
        Kind::AV_PKT_DATA_MASTERING_DISPLAY_METADATA,
        Kind::AV_PKT_DATA_SPHERICAL,
        Kind::AV_PKT_DATA_CONTENT_LIGHT_LEVEL,
        Kind::AV_PKT_DATA_ICC_PROFILE,
    ]
};

/// The blocks of a frame that stay true after its pixels were filtered.
pub(crate) const FRAME_SIDE_DATA: &[ffi::AVFrameSideDataType] = {
    use ffi::AVFrameSideDataType as Kind;
    &[
        Kind::AV_FRAME_DATA_A53_CC,
        Kind::AV_FRAME_DATA_STEREO3D,
        Kind::AV_FRAME_DATA_DISPLAYMATRIX,
        Kind::AV_FRAME_DATA_AFD,
        Kind::AV_FRAME_DATA_MASTERING_DISPLAY_METADATA,
        Kind::AV_FRAME_DATA_GOP_TIMECODE,
        Kind::AV_FRAME_DATA_SPHERICAL,
        Kind::AV_FRAME_DATA_CONTENT_LIGHT_LEVEL,
        Kind::AV_FRAME_DATA_ICC_PROFILE,
        Kind::AV_FRAME_DATA_S12M_TIMECODE,
        Kind::AV_FRAME_DATA_DYNAMIC_HDR_PLUS,
        Kind::AV_FRAME_DATA_DOVI_RPU_BUFFER,
        Kind::AV_FRAME_DATA_DOVI_METADATA,
        Kind::AV_FRAME_DATA_DYNAMIC_HDR_VIVID,
    ]
};

/// An uncompressed picture in FFmpeg's hands.
pub(crate) struct Picture {
    frame: *mut ffi::AVFrame,
}

// SAFETY: a frame is plain memory and reference counts that are atomic.
unsafe impl Send for Picture {}

impl Picture {
    /// A picture without pixels.
    pub(crate) fn new() -> Result<Picture, AvError> {
        // SAFETY: allocates; null is refused.
        let frame = unsafe { ffi::av_frame_alloc() };
        if frame.is_null() {
            return Err(AvError::no_memory());
        }
        Ok(Picture { frame })
    }

    /// A picture with room for its pixels, padded as FFmpeg's fast loops need it.
    pub(crate) fn allocate(format: AvFormat, width: usize, height: usize) -> Result<Picture, AvError> {
        let picture = Picture::new()?;
        let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
        // SAFETY: the frame is valid and empty.
        unsafe {
            (*picture.frame).format = format.0;
            (*picture.frame).width = size(width)?;
            (*picture.frame).height = size(height)?;
            AvError::check(ffi::av_frame_get_buffer(picture.frame, 0))?;
        }
        Ok(picture)
    }

    /// The raw frame, for the encoder.
    pub(crate) fn as_ptr(&self) -> *mut ffi::AVFrame {
        self.frame
    }

    fn raw(&self) -> &ffi::AVFrame {
        // SAFETY: the frame is valid as long as `self` lives.
        unsafe { &*self.frame }
    }

    /// Gives up the pixels.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the frame is valid.
        unsafe { ffi::av_frame_unref(self.frame) };
    }

    /// The pixel format.
    pub(crate) fn format(&self) -> AvFormat {
        AvFormat(self.raw().format)
    }

    /// Pixels across.
    pub(crate) fn width(&self) -> usize {
        self.raw().width.max(0) as usize
    }

    /// Rows.
    pub(crate) fn height(&self) -> usize {
        self.raw().height.max(0) as usize
    }

    /// FFmpeg's best knowledge of the time at which the picture is shown, in the stream's time base.
    pub(crate) fn timestamp(&self) -> Option<i64> {
        timestamp(self.raw().best_effort_timestamp)
    }

    /// How long it is shown, in the stream's time base, if that is known.
    pub(crate) fn duration(&self) -> Option<i64> {
        // Wrapped, because the field's name changed between FFmpeg's versions; never dropped, because that would free the frame.
        // SAFETY: the frame is valid as long as `self` lives.
        let wrapped = ManuallyDrop::new(unsafe { ffmpeg_next::frame::Frame::wrap(self.frame) });
        let duration = wrapped.packet().duration;
        Some(duration).filter(|&d| d > 0)
    }

    /// True if the decoder patched or could not mend damage in it.
    pub(crate) fn is_corrupt(&self) -> bool {
        self.raw().flags & ffi::AV_FRAME_FLAG_CORRUPT as c_int != 0 || self.raw().decode_error_flags != 0
    }

    /// Colour facts, as the decoder tagged them.
    pub(crate) fn colour(&self) -> Colour {
        // SAFETY: the fields are C enumerations read as their numbers, since a newer library may know more values than our headers.
        let (range, primaries, transfer, matrix, location) = unsafe {
            (
                ptr::addr_of!((*self.frame).color_range).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).color_primaries).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).color_trc).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).colorspace).cast::<u32>().read(),
                ptr::addr_of!((*self.frame).chroma_location).cast::<u32>().read(),
            )
        };
        let tag = |v: u32| u8::try_from(v).unwrap_or(2);
        Colour {
            range: match range {
                1 => Range::Limited,
                2 => Range::Full,
                _ => Range::Unspecified,
            },
            primaries: tag(primaries),
            transfer: tag(transfer),
            matrix: tag(matrix),
            chroma_location: u8::try_from(location).unwrap_or(0),
        }
    }

    /// Tags the picture. Numbers that this FFmpeg does not know become "unspecified".
    pub(crate) fn set_colour(&mut self, colour: Colour) {
        let known = |v: u8, end: u32, otherwise: u32| {
            let v = u32::from(v);
            if v < end { v } else { otherwise }
        };
        let primaries = known(colour.primaries, ffi::AVColorPrimaries::AVCOL_PRI_NB as u32, 2);
        let transfer = known(
            colour.transfer,
            ffi::AVColorTransferCharacteristic::AVCOL_TRC_NB as u32,
            2,
        );
        let matrix = known(colour.matrix, ffi::AVColorSpace::AVCOL_SPC_NB as u32, 2);
        let location = known(
            colour.chroma_location,
            ffi::AVChromaLocation::AVCHROMA_LOC_NB as u32,
            0,
        );
        // SAFETY: the numbers written are below each enumeration's end, so they are values of it.
        unsafe {
            ptr::addr_of_mut!((*self.frame).color_range)
                .cast::<u32>()
                .write(range_number(colour.range));
            ptr::addr_of_mut!((*self.frame).color_primaries)
                .cast::<u32>()
                .write(primaries);
            ptr::addr_of_mut!((*self.frame).color_trc)
                .cast::<u32>()
                .write(transfer);
            ptr::addr_of_mut!((*self.frame).colorspace)
                .cast::<u32>()
                .write(matrix);
            ptr::addr_of_mut!((*self.frame).chroma_location)
                .cast::<u32>()
                .write(location);
        }
    }

    /// Field order, as the decoder marked it.
    pub(crate) fn field_order(&self) -> FieldOrder {
        match (self.raw().interlaced_frame, self.raw().top_field_first) {
            (0, _) => FieldOrder::Progressive,
            (_, 0) => FieldOrder::BottomFirst,
            _ => FieldOrder::TopFirst,
        }
    }

    /// Marks the picture as progressive or interlaced.
    pub(crate) fn set_field_order(&mut self, order: FieldOrder) {
        // SAFETY: the frame is valid.
        unsafe {
            let interlaced = matches!(order, FieldOrder::TopFirst | FieldOrder::BottomFirst);
            (*self.frame).interlaced_frame = c_int::from(interlaced);
            (*self.frame).top_field_first = c_int::from(order == FieldOrder::TopFirst);
        }
    }

    /// Sets the time in the encoder's time base, the pixel aspect, and that the encoder chooses the picture's type.
    pub(crate) fn set_timing(&mut self, pts: i64, sample_aspect: (i32, i32)) {
        // SAFETY: the frame is valid.
        unsafe {
            (*self.frame).pts = pts;
            (*self.frame).sample_aspect_ratio = ffi::AVRational {
                num: sample_aspect.0,
                den: sample_aspect.1.max(1),
            };
            (*self.frame).pict_type = ffi::AVPictureType::AV_PICTURE_TYPE_NONE;
        }
    }

    /// The blocks attached to the picture that stay true after filtering; `kind` is a number of AVFrameSideDataType.
    pub(crate) fn side_data(&self) -> Vec<SideData> {
        let mut found = Vec::new();
        for index in 0..self.raw().nb_side_data.max(0) as usize {
            // SAFETY: the frame holds `nb_side_data` pointers; the kind is read as a number, the block has `size` bytes.
            let (kind, data) = unsafe {
                let block = *self.raw().side_data.add(index);
                let kind = ptr::addr_of!((*block).type_).cast::<u32>().read();
                if (*block).data.is_null() {
                    continue;
                }
                (kind, std::slice::from_raw_parts((*block).data, (*block).size))
            };
            if FRAME_SIDE_DATA.iter().any(|&k| k as u32 == kind) {
                found.push(SideData {
                    kind,
                    data: data.into(),
                });
            }
        }
        found
    }

    /// Attaches a block; one of a kind that is not passed on is left out.
    pub(crate) fn add_side_data(&mut self, block: &SideData) -> Result<(), AvError> {
        let Some(&kind) = FRAME_SIDE_DATA.iter().find(|&&k| k as u32 == block.kind) else {
            return Ok(());
        };
        // SAFETY: the new block has room for the bytes that are copied.
        unsafe {
            let new = ffi::av_frame_new_side_data(self.frame, kind, block.data.len());
            if new.is_null() {
                return Err(AvError::no_memory());
            }
            ptr::copy_nonoverlapping(block.data.as_ptr(), (*new).data, block.data.len());
        }
        Ok(())
    }

    /// Row `y` of plane `plane`, `len` bytes of it; `None` if the picture holds no such row.
    pub(crate) fn row(&self, plane: usize, y: usize, len: usize) -> Option<&[u8]> {
        let start = self.row_start(plane, y, len)?;
        // SAFETY: row_start has checked that the row exists and is at least `len` bytes long.
        Some(unsafe { std::slice::from_raw_parts(start, len) })
    }

    /// Row `y` of plane `plane` to write into.
    pub(crate) fn row_mut(&mut self, plane: usize, y: usize, len: usize) -> Option<&mut [u8]> {
        let start = self.row_start(plane, y, len)?;
        // SAFETY: as in `row`; the picture is borrowed mutably and was made by `allocate`, so nobody else reads it.
        Some(unsafe { std::slice::from_raw_parts_mut(start, len) })
    }

    fn row_start(&self, plane: usize, y: usize, len: usize) -> Option<*mut u8> {
        let raw = self.raw();
        let stride = *raw.linesize.get(plane)? as isize;
        let data = raw.data[plane];
        let rows = match plane {
            1 | 2 => self.height().div_ceil(1 << self.format().log2_chroma_height()),
            _ => self.height(),
        };
        if data.is_null() || y >= rows || len > stride.unsigned_abs() {
            return None;
        }
        // SAFETY: the row lies inside the plane; a negative stride walks up from the bottom row, as FFmpeg means it.
        Some(unsafe { data.offset(y as isize * stride) })
    }

    /// Copies the pixels into `frame`, which has the same format and size.
    pub(crate) fn copy_to(&self, frame: &mut Frame) -> Result<(), AvError> {
        let layout = *frame.layout();
        for (index, plane) in layout.planes().iter().enumerate() {
            let len = layout.row_bytes(index);
            for y in 0..plane.height {
                let row = self.row(index, y, len).ok_or(AvError(ffi::AVERROR_BUG))?;
                frame.row_mut(index, y).copy_from_slice(row);
            }
        }
        Ok(())
    }

    /// Copies the pixels of `frame`, which has the same format and size, into this picture.
    pub(crate) fn copy_from(&mut self, frame: &Frame) -> Result<(), AvError> {
        let layout = frame.layout();
        for (index, plane) in layout.planes().iter().enumerate() {
            let len = layout.row_bytes(index);
            for y in 0..plane.height {
                let row = self.row_mut(index, y, len).ok_or(AvError(ffi::AVERROR_BUG))?;
                row.copy_from_slice(frame.row(index, y));
            }
        }
        Ok(())
    }
}

impl Drop for Picture {
    fn drop(&mut self) {
        // SAFETY: allocated by av_frame_alloc and freed once.
        unsafe { ffi::av_frame_free(&mut self.frame) };
    }
}

/// FFmpeg's number for a sample range.
pub(crate) fn range_number(range: Range) -> u32 {
    match range {
        Range::Unspecified => 0,
        Range::Limited => 1,
        Range::Full => 2,
    }
}

/// One end of a conversion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScalerEnd {
    /// Pixel format.
    pub(crate) format: AvFormat,
    /// Samples use full range (of YUV; RGB always does).
    pub(crate) full_range: bool,
    /// H.273 number of the matrix between RGB and YUV.
    pub(crate) matrix: u8,
    /// Chroma location as FFmpeg numbers it, 0 if unknown.
    pub(crate) chroma_location: u8,
}

/// swscale, for changes of pixel format at one size.
pub(crate) struct Scaler {
    context: *mut ffi::SwsContext,
    height: c_int,
}

// SAFETY: an SwsContext is bound to no thread, and only `&mut self` uses it.
unsafe impl Send for Scaler {}

impl Scaler {
    /// Prepares the conversion of pictures of `width` x `height`, with exact rounding and full chroma.
    pub(crate) fn new(
        width: usize,
        height: usize,
        from: ScalerEnd,
        to: ScalerEnd,
    ) -> Result<Scaler, AvError> {
        // SAFETY: allocates; null is refused.
        let context = unsafe { ffi::sws_alloc_context() };
        if context.is_null() {
            return Err(AvError::no_memory());
        }
        let scaler = Scaler {
            context,
            height: height as c_int,
        };
        let flags = ffi::SWS_BICUBIC as i64
            | ffi::SWS_ACCURATE_RND as i64
            | ffi::SWS_FULL_CHR_H_INT as i64
            | ffi::SWS_FULL_CHR_H_INP as i64
            | ffi::SWS_BITEXACT as i64;
        let mut options = vec![
            (c"srcw", width as i64),
            (c"srch", height as i64),
            (c"dstw", width as i64),
            (c"dsth", height as i64),
            (c"src_format", i64::from(from.format.0)),
            (c"dst_format", i64::from(to.format.0)),
            (c"src_range", i64::from(from.full_range)),
            (c"dst_range", i64::from(to.full_range)),
            (c"sws_flags", flags),
        ];
        let (from_facts, to_facts) = (from.format.facts(), to.format.facts());
        let subsampled = |facts: &Option<FormatFacts>| {
            facts
                .as_ref()
                .map_or((0, 0), |f| if f.rgb { (0, 0) } else { (f.log2_x, f.log2_y) })
        };
        if subsampled(&from_facts) != subsampled(&to_facts) {
            if let Some((x, y)) = chroma_position(from.chroma_location, subsampled(&from_facts)) {
                options.extend([(c"src_h_chr_pos", x), (c"src_v_chr_pos", y)]);
            }
            if let Some((x, y)) = chroma_position(to.chroma_location, subsampled(&to_facts)) {
                options.extend([(c"dst_h_chr_pos", x), (c"dst_v_chr_pos", y)]);
            }
        }
        // SAFETY: the context is valid, the names are its options; the coefficient tables are static.
        unsafe {
            for (name, value) in options {
                AvError::check(ffi::av_opt_set_int(context.cast(), name.as_ptr(), value, 0))?;
            }
            AvError::check(ffi::sws_init_context(context, ptr::null_mut(), ptr::null_mut()))?;
            let table = |matrix: u8| {
                // swscale numbers its tables like H.273; RGB (0) and unknown ones mean BT.601 to it.
                ffi::sws_getCoefficients(match matrix {
                    1 | 4 | 5 | 6 | 7 | 9 | 10 => c_int::from(matrix),
                    _ => ffi::SWS_CS_DEFAULT as c_int,
                })
            };
            // Refused where neither side is YUV, which needs no tables.
            ffi::sws_setColorspaceDetails(
                context,
                table(from.matrix),
                c_int::from(from.full_range),
                table(to.matrix),
                c_int::from(to.full_range),
                0,
                1 << 16,
                1 << 16,
            );
        }
        Ok(scaler)
    }

    /// Converts `from` into `to`; both were made for the formats and the size given to `new`.
    pub(crate) fn run(&mut self, from: &Picture, to: &mut Picture) -> Result<(), AvError> {
        if from.height() != self.height as usize || to.height() != self.height as usize {
            return Err(AvError(ffi::AVERROR(ffi::EINVAL)));
        }
        // SAFETY: both frames hold `height` rows of the formats that the context was made for, with FFmpeg's own padding.
        let rows = unsafe {
            ffi::sws_scale(
                self.context,
                from.raw().data.as_ptr().cast(),
                from.raw().linesize.as_ptr(),
                0,
                self.height,
                to.raw().data.as_ptr(),
                to.raw().linesize.as_ptr(),
            )
        };
        if AvError::check(rows)? == self.height {
            Ok(())
        } else {
            Err(AvError(ffi::AVERROR_BUG))
        }
    }
}

impl Drop for Scaler {
    fn drop(&mut self) {
        // SAFETY: allocated by sws_alloc_context and freed once.
        unsafe { ffi::sws_freeContext(self.context) };
    }
}

/// swscale's chroma offsets (1/256 of a luma sample) for a location; `None` where there is no subsampling or no knowledge.
fn chroma_position(location: u8, (log2_x, log2_y): (u32, u32)) -> Option<(i64, i64)> {
    let (x, y) = match location {
        1 => (0, 128),
        2 => (128, 128),
        3 => (0, 0),
        4 => (128, 0),
        5 => (0, 256),
        6 => (128, 256),
        _ => return None,
    };
    match (log2_x, log2_y) {
        (0, 0) => None,
        (0, _) => Some((-513, y)),
        (_, 0) => Some((x, -513)),
        _ => Some((x, y)),
    }
}
