//! FFmpeg's raw interface as the sink needs it: encoder, muxer, and pictures whose pixels are a frame's own memory.
#![allow(unsafe_code)]

use crate::frame::{Colour, FieldOrder, Frame, SideData};
use crate::source::Rational;
use crate::source::video::raw::{
    AvError, AvFormat, Demuxer, Packet, Picture, Received, STREAM_SIDE_DATA, init, range_number,
};
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

fn text(pointer: *const c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: FFmpeg's names are static and zero-terminated.
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

fn c_string(bytes: &[u8]) -> Result<CString, AvError> {
    CString::new(bytes).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)))
}

fn raw_rational(value: Rational) -> ffi::AVRational {
    ffi::AVRational {
        num: value.num,
        den: value.den,
    }
}

/// A video encoder that this FFmpeg has.
#[derive(Clone, Copy)]
pub(crate) struct EncoderKind {
    codec: &'static ffi::AVCodec,
}

// SAFETY: codecs are static tables that nobody writes to.
unsafe impl Send for EncoderKind {}

impl EncoderKind {
    /// The video encoder named `name`.
    pub(crate) fn find(name: &str) -> Option<EncoderKind> {
        init();
        let name = CString::new(name).ok()?;
        // SAFETY: codecs are static; null means that there is none.
        let codec = unsafe { ffi::avcodec_find_encoder_by_name(name.as_ptr()).as_ref() }?;
        (codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_VIDEO).then_some(EncoderKind { codec })
    }

    /// Every video encoder, in FFmpeg's order.
    pub(crate) fn all() -> Vec<EncoderKind> {
        init();
        let mut state: *mut c_void = ptr::null_mut();
        let mut found = Vec::new();
        // SAFETY: the iteration's state is FFmpeg's own; codecs are static.
        while let Some(codec) = unsafe { ffi::av_codec_iterate(&mut state).as_ref() } {
            // SAFETY: reads a static codec.
            let encodes = unsafe { ffi::av_codec_is_encoder(codec) } != 0;
            if encodes && codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_VIDEO {
                found.push(EncoderKind { codec });
            }
        }
        found
    }

    /// The encoder's name.
    pub(crate) fn name(self) -> String {
        text(self.codec.name)
    }

    /// The name of the codec that it writes.
    pub(crate) fn codec_name(self) -> String {
        // SAFETY: the name is static.
        text(unsafe { ffi::avcodec_get_name(self.codec.id) })
    }

    /// The pixel formats that it takes; empty if it takes any.
    pub(crate) fn formats(self) -> Vec<AvFormat> {
        let mut formats = Vec::new();
        let mut at = self.codec.pix_fmts;
        if at.is_null() {
            return formats;
        }
        // SAFETY: the list is static and ends with -1; it is read as numbers.
        unsafe {
            while *at.cast::<c_int>() != -1 {
                formats.push(AvFormat(*at.cast::<c_int>()));
                at = at.add(1);
            }
        }
        formats
    }
}

/// Facts that the encoder is told before it is opened.
pub(crate) struct EncoderSetup {
    pub(crate) format: AvFormat,
    pub(crate) width: usize,
    pub(crate) height: usize,
    pub(crate) time_base: Rational,
    pub(crate) frame_rate: Option<Rational>,
    pub(crate) sample_aspect: (i32, i32),
    pub(crate) colour: Colour,
    pub(crate) field_order: FieldOrder,
    /// 0 leaves the number to the encoder.
    pub(crate) threads: usize,
    /// The container wants the codec's headers apart from the packets.
    pub(crate) global_header: bool,
}

/// A video encoder with its settings.
pub(crate) struct Encoder {
    context: *mut ffi::AVCodecContext,
    kind: EncoderKind,
}

// SAFETY: an AVCodecContext is bound to no thread, and only `&mut self` reaches what changes it.
unsafe impl Send for Encoder {}

impl Encoder {
    /// An encoder that is not yet open.
    pub(crate) fn new(kind: EncoderKind, setup: &EncoderSetup) -> Result<Encoder, AvError> {
        // SAFETY: allocates; null is refused.
        let context = unsafe { ffi::avcodec_alloc_context3(kind.codec) };
        if context.is_null() {
            return Err(AvError::no_memory());
        }
        let encoder = Encoder { context, kind };
        let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
        let format = setup.format.to_raw().ok_or(AvError(ffi::AVERROR(ffi::EINVAL)))?;
        let known = |v: u8, end: u32, otherwise: u32| {
            let v = u32::from(v);
            if v < end { v } else { otherwise }
        };
        let colour = setup.colour;
        // SAFETY: the context is valid; the numbers written into enumerations are below each one's end.
        unsafe {
            let c = &mut *context;
            c.width = size(setup.width)?;
            c.height = size(setup.height)?;
            c.pix_fmt = format;
            c.time_base = raw_rational(setup.time_base);
            if let Some(rate) = setup.frame_rate {
                c.framerate = raw_rational(rate);
            }
            c.sample_aspect_ratio = ffi::AVRational {
                num: setup.sample_aspect.0,
                den: setup.sample_aspect.1.max(1),
            };
            ptr::addr_of_mut!(c.color_range)
                .cast::<u32>()
                .write(range_number(colour.range));
            ptr::addr_of_mut!(c.color_primaries).cast::<u32>().write(known(
                colour.primaries,
                ffi::AVColorPrimaries::AVCOL_PRI_NB as u32,
                2,
            ));
            ptr::addr_of_mut!(c.color_trc).cast::<u32>().write(known(
                colour.transfer,
                ffi::AVColorTransferCharacteristic::AVCOL_TRC_NB as u32,
                2,
            ));
            ptr::addr_of_mut!(c.colorspace).cast::<u32>().write(known(
                colour.matrix,
                ffi::AVColorSpace::AVCOL_SPC_NB as u32,
                2,
            ));
            ptr::addr_of_mut!(c.chroma_sample_location)
                .cast::<u32>()
                .write(known(
                    colour.chroma_location,
                    ffi::AVChromaLocation::AVCHROMA_LOC_NB as u32,
                    0,
                ));
            c.field_order = match setup.field_order {
                FieldOrder::Progressive => ffi::AVFieldOrder::AV_FIELD_PROGRESSIVE,
                FieldOrder::TopFirst => ffi::AVFieldOrder::AV_FIELD_TT,
                FieldOrder::BottomFirst => ffi::AVFieldOrder::AV_FIELD_BB,
                FieldOrder::Mixed => ffi::AVFieldOrder::AV_FIELD_UNKNOWN,
            };
            if setup.field_order != FieldOrder::Progressive {
                c.flags |= (ffi::AV_CODEC_FLAG_INTERLACED_DCT | ffi::AV_CODEC_FLAG_INTERLACED_ME) as c_int;
            }
            if setup.global_header {
                c.flags |= ffi::AV_CODEC_FLAG_GLOBAL_HEADER as c_int;
            }
            c.thread_count = setup.threads as c_int;
        }
        Ok(encoder)
    }

    /// Sets an option of the encoder's own or one that all encoders share.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), AvError> {
        let (key, value) = (c_string(key.as_bytes())?, c_string(value.as_bytes())?);
        // SAFETY: the context is an object with options; the strings are zero-terminated.
        let code = unsafe {
            ffi::av_opt_set(
                self.context.cast(),
                key.as_ptr(),
                value.as_ptr(),
                ffi::AV_OPT_SEARCH_CHILDREN as c_int,
            )
        };
        AvError::check(code).map(|_| ())
    }

    /// True if the encoder has an option of its own or a shared one of that name.
    pub(crate) fn has(&self, key: &CStr) -> bool {
        // SAFETY: the context is an object with options; the name is zero-terminated.
        let found = unsafe {
            ffi::av_opt_find(
                self.context.cast(),
                key.as_ptr(),
                ptr::null(),
                0,
                ffi::AV_OPT_SEARCH_CHILDREN as c_int,
            )
        };
        !found.is_null()
    }

    /// Constant quantiser scale, as FFmpeg's own encoders of the MPEG kind take it.
    pub(crate) fn set_quantiser(&mut self, value: f64) {
        // SAFETY: the context is valid and not yet open.
        unsafe {
            (*self.context).flags |= ffi::AV_CODEC_FLAG_QSCALE as c_int;
            (*self.context).global_quality = (value * f64::from(ffi::FF_QP2LAMBDA)).round() as c_int;
        }
    }

    /// Allows what the codec's standard does not, as some formats need.
    pub(crate) fn allow_unofficial(&mut self) {
        // SAFETY: the context is valid and not yet open.
        unsafe { (*self.context).strict_std_compliance = ffi::FF_COMPLIANCE_UNOFFICIAL as c_int };
    }

    /// Opens the encoder; settings are final from then on.
    pub(crate) fn open(&mut self) -> Result<(), AvError> {
        // SAFETY: the context was made for this codec.
        AvError::check(unsafe { ffi::avcodec_open2(self.context, self.kind.codec, ptr::null_mut()) })
            .map(|_| ())
    }

    /// Feeds a picture, or the end.
    pub(crate) fn send(&mut self, picture: Option<&Picture>) -> Result<(), AvError> {
        let frame = picture.map_or(ptr::null(), |p| p.as_ptr().cast_const());
        // SAFETY: the context is open and the frame, where there is one, valid.
        AvError::check(unsafe { ffi::avcodec_send_frame(self.context, frame) }).map(|_| ())
    }

    /// Takes the next packet.
    pub(crate) fn receive(&mut self, packet: &mut Packet) -> Result<Received, AvError> {
        // SAFETY: context and packet are valid; FFmpeg empties the packet first.
        Received::from_code(unsafe { ffi::avcodec_receive_packet(self.context, packet.as_ptr()) })
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        // SAFETY: allocated by avcodec_alloc_context3 and freed once.
        unsafe { ffi::avcodec_free_context(&mut self.context) };
    }
}

/// An output container.
pub(crate) struct Muxer {
    context: *mut ffi::AVFormatContext,
    begun: bool,
}

// SAFETY: an AVFormatContext is bound to no thread, and only `&mut self` reaches what changes it.
unsafe impl Send for Muxer {}

/// Why a muxer could not be made.
#[derive(Debug)]
pub(crate) enum MuxerFailure {
    /// No muxer of that name, or for that file name.
    Unknown,
    /// The muxer writes no file of its own, or many.
    NoFile(String),
    /// The file could not be opened, or there is no memory.
    Open(AvError),
}

impl Muxer {
    /// A muxer that writes to the existing file `part`, chosen by `name` or else by the name of `target`.
    pub(crate) fn create(name: Option<&str>, target: &Path, part: &Path) -> Result<Muxer, MuxerFailure> {
        init();
        let name = name
            .map(|n| c_string(n.as_bytes()))
            .transpose()
            .map_err(MuxerFailure::Open)?;
        let shown =
            c_string(target.file_name().unwrap_or(OsStr::new("")).as_bytes()).map_err(MuxerFailure::Open)?;
        let url = c_string(&[b"file:", part.as_os_str().as_bytes()].concat()).map_err(MuxerFailure::Open)?;
        // SAFETY: all strings are zero-terminated; the muxer owns the context from its allocation on.
        unsafe {
            let format = ffi::av_guess_format(
                name.as_ref().map_or(ptr::null(), |n| n.as_ptr()),
                if name.is_some() {
                    ptr::null()
                } else {
                    shown.as_ptr()
                },
                ptr::null(),
            );
            if format.is_null() {
                return Err(MuxerFailure::Unknown);
            }
            if (*format).flags & ffi::AVFMT_NOFILE as c_int != 0 {
                return Err(MuxerFailure::NoFile(text((*format).name)));
            }
            let mut context = ptr::null_mut();
            let code = ffi::avformat_alloc_output_context2(
                &mut context,
                format.cast_mut(),
                ptr::null(),
                url.as_ptr(),
            );
            AvError::check(code).map_err(MuxerFailure::Open)?;
            let muxer = Muxer {
                context,
                begun: false,
            };
            // FLAC in MP4 and the like: streams are copied wherever they can be.
            (*context).strict_std_compliance = ffi::FF_COMPLIANCE_EXPERIMENTAL as c_int;
            let code = ffi::avio_open(&mut (*context).pb, url.as_ptr(), ffi::AVIO_FLAG_WRITE as c_int);
            AvError::check(code).map_err(MuxerFailure::Open)?;
            Ok(muxer)
        }
    }

    fn format(&self) -> &ffi::AVOutputFormat {
        // SAFETY: an output context has its format, which is static.
        unsafe { &*(*self.context).oformat }
    }

    /// The muxer's short name.
    pub(crate) fn name(&self) -> String {
        text(self.format().name)
    }

    /// True if codecs must give their headers apart.
    pub(crate) fn wants_global_header(&self) -> bool {
        self.format().flags & ffi::AVFMT_GLOBALHEADER as c_int != 0
    }

    /// The video encoder that FFmpeg itself would choose for this container.
    pub(crate) fn default_encoder(&self) -> Option<EncoderKind> {
        // SAFETY: codecs are static; null means that there is none.
        let codec = unsafe { ffi::avcodec_find_encoder(self.format().video_codec).as_ref() }?;
        (codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_VIDEO).then_some(EncoderKind { codec })
    }

    /// Whether the container can hold what `encoder` writes; `None` if it does not say.
    pub(crate) fn holds(&self, encoder: EncoderKind) -> Option<bool> {
        self.query(encoder.codec.id)
    }

    /// Whether the container can hold stream `index` of `demuxer`; `None` if it does not say.
    pub(crate) fn holds_stream(&self, demuxer: &Demuxer, index: usize) -> Option<bool> {
        let stream = demuxer.stream_ptr(index)?;
        // SAFETY: the stream and its parameters live as long as the demuxer.
        self.query(unsafe { (*(*stream).codecpar).codec_id })
    }

    fn query(&self, id: ffi::AVCodecID) -> Option<bool> {
        // SAFETY: reads static tables.
        match unsafe { ffi::avformat_query_codec(self.format(), id, ffi::FF_COMPLIANCE_NORMAL as c_int) } {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    /// Sets an option of the muxer.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), AvError> {
        let (key, value) = (c_string(key.as_bytes())?, c_string(value.as_bytes())?);
        // SAFETY: the context is an object with options; the strings are zero-terminated.
        let code = unsafe {
            ffi::av_opt_set(
                self.context.cast(),
                key.as_ptr(),
                value.as_ptr(),
                ffi::AV_OPT_SEARCH_CHILDREN as c_int,
            )
        };
        AvError::check(code).map(|_| ())
    }

    fn stream_ptr(&self, index: usize) -> Option<*mut ffi::AVStream> {
        // SAFETY: `streams` holds `nb_streams` valid pointers.
        unsafe {
            let context = &*self.context;
            (index < context.nb_streams as usize).then(|| *context.streams.add(index))
        }
    }

    fn new_stream(&mut self) -> Result<(usize, *mut ffi::AVStream), AvError> {
        // SAFETY: the context is valid; null is refused.
        let stream = unsafe { ffi::avformat_new_stream(self.context, ptr::null()) };
        if stream.is_null() {
            return Err(AvError::no_memory());
        }
        // SAFETY: the stream was just made.
        Ok((unsafe { (*stream).index } as usize, stream))
    }

    /// Adds the stream that `encoder`, which is open, writes; `tag` is the four-letter mark to use, if not the container's own choice.
    pub(crate) fn add_encoded(&mut self, encoder: &Encoder, tag: Option<[u8; 4]>) -> Result<usize, AvError> {
        let (index, stream) = self.new_stream()?;
        // SAFETY: stream and open encoder are valid.
        unsafe {
            let context = &*encoder.context;
            AvError::check(ffi::avcodec_parameters_from_context((*stream).codecpar, context))?;
            (*(*stream).codecpar).codec_tag = tag.map_or(0, u32::from_le_bytes);
            (*stream).time_base = context.time_base;
            (*stream).sample_aspect_ratio = context.sample_aspect_ratio;
            if context.framerate.num > 0 && context.framerate.den > 0 {
                (*stream).avg_frame_rate = context.framerate;
            }
        }
        Ok(index)
    }

    /// Adds a stream that holds the packets of stream `index` of `demuxer` as they are.
    pub(crate) fn add_copied(
        &mut self,
        demuxer: &Demuxer,
        index: usize,
        keep_tag: bool,
    ) -> Result<usize, AvError> {
        let from = demuxer
            .stream_ptr(index)
            .ok_or(AvError(ffi::AVERROR(ffi::EINVAL)))?;
        let (new, stream) = self.new_stream()?;
        // SAFETY: both streams and their parameters are valid.
        unsafe {
            AvError::check(ffi::avcodec_parameters_copy((*stream).codecpar, (*from).codecpar))?;
            if !keep_tag {
                (*(*stream).codecpar).codec_tag = 0;
            }
            (*stream).time_base = (*from).time_base;
            (*stream).avg_frame_rate = (*from).avg_frame_rate;
            (*stream).sample_aspect_ratio = (*from).sample_aspect_ratio;
        }
        self.describe(new, demuxer, index, &[])?;
        for block in demuxer.stream_side_data(index) {
            self.add_side_data(new, &block)?;
        }
        Ok(new)
    }

    /// Gives stream `to` the marks and texts of stream `index` of `demuxer`, without the texts named in `stale`.
    pub(crate) fn describe(
        &mut self,
        to: usize,
        demuxer: &Demuxer,
        index: usize,
        stale: &[&CStr],
    ) -> Result<(), AvError> {
        let (Some(from), Some(to)) = (demuxer.stream_ptr(index), self.stream_ptr(to)) else {
            return Err(AvError(ffi::AVERROR(ffi::EINVAL)));
        };
        // SAFETY: both streams are valid; setting a null value removes an entry.
        unsafe {
            (*to).disposition = (*from).disposition;
            (*to).id = (*from).id;
            AvError::check(ffi::av_dict_copy(&mut (*to).metadata, (*from).metadata, 0))?;
            for key in stale {
                AvError::check(ffi::av_dict_set(
                    &mut (*to).metadata,
                    key.as_ptr(),
                    ptr::null(),
                    0,
                ))?;
            }
        }
        Ok(())
    }

    /// Attaches a block to stream `index`; one of a kind that is not passed on is left out.
    pub(crate) fn add_side_data(&mut self, index: usize, block: &SideData) -> Result<(), AvError> {
        let Some(&kind) = STREAM_SIDE_DATA.iter().find(|&&k| k as u32 == block.kind) else {
            return Ok(());
        };
        let stream = self.stream_ptr(index).ok_or(AvError(ffi::AVERROR(ffi::EINVAL)))?;
        // SAFETY: the new block has room for the bytes that are copied.
        unsafe {
            let new = ffi::av_stream_new_side_data(stream, kind, block.data.len());
            if new.is_null() {
                return Err(AvError::no_memory());
            }
            ptr::copy_nonoverlapping(block.data.as_ptr(), new, block.data.len());
        }
        Ok(())
    }

    /// Takes over the texts that belong to the whole file, without those named in `stale`.
    pub(crate) fn copy_metadata(&mut self, demuxer: &Demuxer, stale: &[&CStr]) -> Result<(), AvError> {
        // SAFETY: both contexts are valid; setting a null value removes an entry.
        unsafe {
            let from = (*demuxer.as_ptr()).metadata;
            let to = &mut (*self.context).metadata;
            AvError::check(ffi::av_dict_copy(to, from, 0))?;
            for key in stale {
                AvError::check(ffi::av_dict_set(to, key.as_ptr(), ptr::null(), 0))?;
            }
        }
        Ok(())
    }

    /// Takes over the chapters.
    pub(crate) fn copy_chapters(&mut self, demuxer: &Demuxer) -> Result<(), AvError> {
        // SAFETY: FFmpeg frees array, chapters and texts with the context, so all are allocated by FFmpeg; the count grows only
        // after its entry is in place.
        unsafe {
            let from = &*demuxer.as_ptr();
            let count = from.nb_chapters as usize;
            if count == 0 {
                return Ok(());
            }
            let array = ffi::av_calloc(count, size_of::<*mut ffi::AVChapter>()).cast::<*mut ffi::AVChapter>();
            if array.is_null() {
                return Err(AvError::no_memory());
            }
            (*self.context).chapters = array;
            for index in 0..count {
                let source = &**from.chapters.add(index);
                let chapter = ffi::av_mallocz(size_of::<ffi::AVChapter>()).cast::<ffi::AVChapter>();
                if chapter.is_null() {
                    return Err(AvError::no_memory());
                }
                *array.add(index) = chapter;
                (*self.context).nb_chapters = index as u32 + 1;
                (*chapter).id = source.id;
                (*chapter).time_base = source.time_base;
                (*chapter).start = source.start;
                (*chapter).end = source.end;
                AvError::check(ffi::av_dict_copy(&mut (*chapter).metadata, source.metadata, 0))?;
            }
        }
        Ok(())
    }

    /// Writes the container's head. The streams' time bases may change by it.
    pub(crate) fn begin(&mut self) -> Result<(), AvError> {
        // SAFETY: the context is complete.
        AvError::check(unsafe { ffi::avformat_write_header(self.context, ptr::null_mut()) })?;
        self.begun = true;
        Ok(())
    }

    /// The time base that packets of stream `index` must have.
    pub(crate) fn time_base(&self, index: usize) -> Rational {
        let base = self
            .stream_ptr(index)
            // SAFETY: the stream is valid.
            .map_or(ffi::AVRational { num: 1, den: 1 }, |s| unsafe { (*s).time_base });
        Rational {
            num: base.num,
            den: base.den,
        }
    }

    /// Hands a packet of stream `index`, timed in `base`, to the container, which empties it and writes it in its turn.
    pub(crate) fn write(&mut self, packet: &mut Packet, index: usize, base: Rational) -> Result<(), AvError> {
        let to = self.time_base(index);
        // SAFETY: context and packet are valid; av_interleaved_write_frame takes the packet's reference.
        unsafe {
            let raw = packet.as_ptr();
            ffi::av_packet_rescale_ts(raw, raw_rational(base), raw_rational(to));
            (*raw).stream_index = index as c_int;
            (*raw).pos = -1;
            AvError::check(ffi::av_interleaved_write_frame(self.context, raw)).map(|_| ())
        }
    }

    /// Writes what is still held back and the container's tail, closes the file, and tells its size.
    pub(crate) fn end(&mut self) -> Result<Option<u64>, AvError> {
        // SAFETY: the head was written; the I/O context is closed once and nulled by FFmpeg.
        unsafe {
            self.begun = false;
            let trailer = AvError::check(ffi::av_write_trailer(self.context));
            let io = (*self.context).pb;
            let earlier = if io.is_null() { 0 } else { (*io).error };
            let size = if io.is_null() { -1 } else { ffi::avio_size(io) };
            let closed = AvError::check(ffi::avio_closep(&mut (*self.context).pb));
            trailer?;
            AvError::check(earlier)?;
            closed?;
            Ok(u64::try_from(size).ok())
        }
    }

    /// What went wrong below the container, such as a full disk, which it may report late.
    pub(crate) fn io_error(&self) -> Option<AvError> {
        // SAFETY: the I/O context, where there is one, lives as long as the format context.
        let error = unsafe { (*self.context).pb.as_ref() }?.error;
        (error < 0).then_some(AvError(error))
    }
}

impl Drop for Muxer {
    fn drop(&mut self) {
        // SAFETY: a head without a tail has memory that only the tail's call frees; the file is removed by its owner.
        unsafe {
            if self.begun {
                ffi::av_write_trailer(self.context);
            }
            ffi::avio_closep(&mut (*self.context).pb);
            ffi::avformat_free_context(self.context);
        }
    }
}

/// Timing of a packet that only the sink changes.
pub(crate) trait PacketTiming {
    /// Sets how long it lasts, in its time base.
    fn set_duration(&mut self, duration: i64);
}

impl PacketTiming for Packet {
    fn set_duration(&mut self, duration: i64) {
        // SAFETY: the packet is valid and borrowed mutably.
        unsafe { (*self.as_ptr()).duration = duration };
    }
}

/// A frame that FFmpeg holds, and the count of those.
struct Lent {
    frame: Frame,
    count: Arc<AtomicUsize>,
}

unsafe extern "C" fn give_back(opaque: *mut c_void, _data: *mut u8) {
    // SAFETY: `opaque` is the box made in `lend`, handed over once to the buffer whose last reference has just gone.
    let lent = unsafe { Box::from_raw(opaque.cast::<Lent>()) };
    let Lent { frame, count } = *lent;
    drop(frame);
    count.fetch_sub(1, Ordering::Release);
}

/// A picture whose pixels are those of `frame`, which lives on until FFmpeg gives up its last reference; `count` tells how many do.
pub(crate) fn lend(frame: Frame, format: AvFormat, count: &Arc<AtomicUsize>) -> Result<Picture, AvError> {
    let layout = *frame.layout();
    let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
    let (width, height) = (size(layout.width())?, size(layout.height())?);
    let mut strides = [0; 8];
    for (stride, plane) in strides.iter_mut().zip(layout.planes()) {
        *stride = size(plane.stride)?;
    }
    let picture = Picture::new()?;
    count.fetch_add(1, Ordering::Acquire);
    let lent = Box::into_raw(Box::new(Lent {
        frame,
        count: Arc::clone(count),
    }));
    // SAFETY: the box stays where it is until `give_back`, and the frame's memory with it; FFmpeg only reads it (the buffer is
    // marked read-only); on failure the box is taken back.
    unsafe {
        let bytes = (*lent).frame.bytes();
        let data = bytes.as_ptr().cast_mut();
        let buffer = ffi::av_buffer_create(
            data,
            bytes.len(),
            Some(give_back),
            lent.cast(),
            ffi::AV_BUFFER_FLAG_READONLY as c_int,
        );
        if buffer.is_null() {
            give_back(lent.cast(), data);
            return Err(AvError::no_memory());
        }
        let raw = &mut *picture.as_ptr();
        raw.buf[0] = buffer;
        raw.format = format.0;
        raw.width = width;
        raw.height = height;
        raw.linesize = strides;
        for (place, plane) in raw.data.iter_mut().zip(layout.planes()) {
            *place = data.add(plane.offset);
        }
        raw.extended_data = raw.data.as_mut_ptr();
    }
    Ok(picture)
}
