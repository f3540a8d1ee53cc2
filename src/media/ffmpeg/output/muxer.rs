//! Writing a container with FFmpeg: its streams and their texts, the head, packets in the order of their
//! times, the end. The file is one that the caller made, or lies in memory, for a rehearsal.
//!
//! Transport streams keep the input's PIDs where these are free (`settle_ids`). Packets of each stream are
//! counted, since a container may refuse them long after it took them (`refused`).
#![allow(unsafe_code)]

use crate::frame::{Rational, SideData};
use crate::media::ffmpeg::input::demuxer::{SamplesOf, copy_chapters};
use crate::media::ffmpeg::io::memory_io::MemoryFile;
use crate::media::ffmpeg::pictures::side_data::STREAM_SIDE_DATA;
use crate::media::ffmpeg::text::{c_string, raw_rational, set_option, text};
use crate::media::ffmpeg::{
    AudioEncoderKind, AudioTranscoder, AvError, Demuxer, Encoder, EncoderKind, Packet, init, version,
};
use ffmpeg_next::ffi;
use std::ffi::{CStr, OsStr, c_int};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

/// PIDs that streams of a transport stream may have: those before are tables, the last is padding.
const STATED_PIDS: Range<c_int> = 0x20..0x1FFF;

/// An output container.
pub(crate) struct Muxer {
    context: *mut ffi::AVFormatContext,
    begun: bool,
    /// Packets of each stream that were handed over, and those of them that are known to be lost.
    given: Vec<(i64, i64)>,
    /// The file, if it is in memory.
    memory: Option<MemoryFile>,
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
        let url = c_string(&[b"file:", part.as_os_str().as_bytes()].concat()).map_err(MuxerFailure::Open)?;
        let muxer = Muxer::allocate(name, target, &url)?;
        // SAFETY: the context is the muxer's own, which closes the file.
        let code = unsafe {
            ffi::avio_open(
                &mut (*muxer.context).pb,
                url.as_ptr(),
                ffi::AVIO_FLAG_WRITE as c_int,
            )
        };
        AvError::check(code).map_err(MuxerFailure::Open)?;
        Ok(muxer)
    }

    /// A muxer that writes into memory, chosen as [`Muxer::create`] does.
    pub(crate) fn in_memory(name: Option<&str>, target: &Path) -> Result<Muxer, MuxerFailure> {
        // Some muxers write another form for another extension, as that of transport streams does for .m2ts.
        let extension = target.extension().unwrap_or_default().as_bytes();
        let url = c_string(&[b"memory:file.", extension].concat()).map_err(MuxerFailure::Open)?;
        let mut muxer = Muxer::allocate(name, target, &url)?;
        let memory = MemoryFile::new(Vec::new(), true).map_err(MuxerFailure::Open)?;
        // SAFETY: the I/O context lives as long as the muxer, which does not close it.
        unsafe {
            (*muxer.context).pb = memory.as_ptr();
            (*muxer.context).flags |= ffi::AVFMT_FLAG_CUSTOM_IO as c_int;
        }
        muxer.memory = Some(memory);
        Ok(muxer)
    }

    fn allocate(name: Option<&str>, target: &Path, url: &CStr) -> Result<Muxer, MuxerFailure> {
        init();
        let name = name
            .map(|n| c_string(n.as_bytes()))
            .transpose()
            .map_err(MuxerFailure::Open)?;
        let shown =
            c_string(target.file_name().unwrap_or(OsStr::new("")).as_bytes()).map_err(MuxerFailure::Open)?;
        // A container may be named by an extension of its files, as mkv is.
        let by_extension = match &name {
            Some(name) => c_string(&[b"file.", name.as_bytes()].concat()).map_err(MuxerFailure::Open)?,
            None => shown,
        };
        // SAFETY: all strings are zero-terminated; the muxer owns the context from its allocation on.
        unsafe {
            let by_name = name.as_ref().map_or(ptr::null(), |name| {
                ffi::av_guess_format(name.as_ptr(), ptr::null(), ptr::null())
            });
            let format = if by_name.is_null() {
                ffi::av_guess_format(ptr::null(), by_extension.as_ptr(), ptr::null())
            } else {
                by_name
            };
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
            // Codecs that the container holds only as an experiment, as MP4 does FLAC: they are copied, too.
            (*context).strict_std_compliance = ffi::FF_COMPLIANCE_EXPERIMENTAL as c_int;
            Ok(Muxer {
                context,
                begun: false,
                given: Vec::new(),
                memory: None,
            })
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

    /// The extensions of its files, with commas between them, the usual one first.
    pub(crate) fn extensions(&self) -> String {
        text(self.format().extensions)
    }

    /// True if codecs must give their headers outside the packets.
    pub(crate) fn wants_global_header(&self) -> bool {
        self.format().flags & ffi::AVFMT_GLOBALHEADER as c_int != 0
    }

    /// The video encoder that FFmpeg itself would choose for this container.
    pub(crate) fn default_encoder(&self) -> Option<EncoderKind> {
        // SAFETY: codecs are static; null means that there is none.
        let codec = unsafe { ffi::avcodec_find_encoder(self.format().video_codec).as_ref() }?;
        (codec.type_ == ffi::AVMediaType::AVMEDIA_TYPE_VIDEO).then_some(EncoderKind { codec })
    }

    /// FFmpeg's name of the video codec that the container is for, if it says one.
    pub(crate) fn video_codec(&self) -> Option<String> {
        let codec = self.format().video_codec;
        // SAFETY: the name is static.
        (codec != ffi::AVCodecID::AV_CODEC_ID_NONE).then(|| text(unsafe { ffi::avcodec_get_name(codec) }))
    }

    /// The audio encoder that FFmpeg itself would choose for this container.
    pub(crate) fn default_audio_encoder(&self) -> Option<AudioEncoderKind> {
        AudioEncoderKind::of_codec(self.format().audio_codec)
    }

    /// True if the container is one of a single video stream: raw video, elementary streams, stills and
    /// animations. Some of their muxers write whatever they are given, one packet after the other.
    pub(crate) fn is_video_only(&self) -> bool {
        let format = self.format();
        let none = ffi::AVCodecID::AV_CODEC_ID_NONE;
        format.audio_codec == none && format.subtitle_codec == none
    }

    /// Whether pictures keep their times, as far as the muxer says: `None` if it wants a constant rate, which
    /// some muxers take for a wish.
    pub(crate) fn keeps_times(&self) -> Option<bool> {
        let flags = self.format().flags;
        if flags & ffi::AVFMT_VARIABLE_FPS as c_int != 0 {
            return Some(true);
        }
        (flags & ffi::AVFMT_NOTIMESTAMPS as c_int != 0).then_some(false)
    }

    /// True if output can go back to change what it wrote.
    pub(crate) fn can_seek(&self) -> bool {
        // SAFETY: the I/O context, where there is one, lives as long as the format context.
        unsafe { (*self.context).pb.as_ref() }.is_some_and(|io| io.seekable != 0)
    }

    /// Has the muxer take its output for one that cannot go back, as it is in a pipe.
    pub(crate) fn forbid_seeking(&mut self) {
        // SAFETY: the I/O context, where there is one, lives as long as the format context, and the muxer
        // alone uses it.
        if let Some(io) = unsafe { (*self.context).pb.as_mut() } {
            io.seekable = 0;
        }
    }

    /// True if the output is a pipe whose reader has gone.
    pub(crate) fn lost_its_reader(&self) -> bool {
        let error = self.io_error();
        error.is_some_and(|e| e.to_io().kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Sets an option of the muxer.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), AvError> {
        // SAFETY: the context is an object with options.
        unsafe { set_option(self.context.cast(), key, value) }
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

    /// The four-letter mark `tag` of a stream of codec `id` if this container knows it for that codec or
    /// knows none for it, else 0, which leaves the choice to the container.
    fn fitting_tag(&self, tag: u32, id: ffi::AVCodecID) -> u32 {
        let known = self.format().codec_tag;
        if known.is_null() {
            return tag;
        }
        let mut own = 0;
        // SAFETY: the container's lists are static and end with null.
        let fits = unsafe {
            ffi::av_codec_get_id(known, tag) == id || ffi::av_codec_get_tag2(known, id, &mut own) == 0
        };
        if fits { tag } else { 0 }
    }

    /// Adds the stream that `encoder`, which is open, writes; `tag` is the four-letter mark to use, if not
    /// the encoder's or the container's own.
    pub(crate) fn add_encoded(&mut self, encoder: &Encoder, tag: Option<[u8; 4]>) -> Result<usize, AvError> {
        let (index, stream) = self.new_stream()?;
        // SAFETY: stream and open encoder are valid.
        unsafe {
            let context = &*encoder.context;
            AvError::check(ffi::avcodec_parameters_from_context((*stream).codecpar, context))?;
            // Some encoders tell the form of their data by the mark alone.
            (*(*stream).codecpar).codec_tag = match tag {
                Some(tag) => u32::from_le_bytes(tag),
                None => self.fitting_tag(context.codec_tag, context.codec_id),
            };
            (*stream).time_base = context.time_base;
            (*stream).sample_aspect_ratio = context.sample_aspect_ratio;
            if context.framerate.num > 0 && context.framerate.den > 0 {
                (*stream).avg_frame_rate = context.framerate;
            } else if self.name().starts_with("mxf") {
                // From FFmpeg 7 on these muxers divide by the rate, known or not.
                (*stream).avg_frame_rate = ffi::AVRational {
                    num: context.time_base.den,
                    den: context.time_base.num,
                };
            }
        }
        Ok(index)
    }

    /// Adds a stream of the codec that `kind` writes, without an open encoder: enough for the head of a
    /// container, if `extradata` is what it expects.
    pub(crate) fn add_presumed(&mut self, kind: EncoderKind, extradata: &[u8]) -> Result<usize, AvError> {
        let (index, stream) = self.new_stream()?;
        let format = kind.formats().first().map_or(0, |format| format.0);
        // SAFETY: the parameters are valid.
        unsafe {
            let parameters = &mut *(*stream).codecpar;
            parameters.codec_type = ffi::AVMediaType::AVMEDIA_TYPE_VIDEO;
            parameters.codec_id = kind.codec.id;
            (parameters.width, parameters.height) = (352, 288);
            parameters.format = format;
            // From FFmpeg 7 on MXF's muxer divides by the rate.
            (*stream).time_base = ffi::AVRational { num: 1, den: 25 };
            (*stream).avg_frame_rate = ffi::AVRational { num: 25, den: 1 };
            if !extradata.is_empty() {
                set_extradata(parameters, extradata)?;
            }
        }
        Ok(index)
    }

    /// Adds the stream that holds stream `index` of `demuxer` as `transcoder` encodes it.
    pub(crate) fn add_transcoded(
        &mut self,
        demuxer: &Demuxer,
        index: usize,
        transcoder: &AudioTranscoder,
        stale: &[&CStr],
    ) -> Result<usize, AvError> {
        let (new, stream) = self.new_stream()?;
        // SAFETY: stream and open encoder are valid.
        unsafe {
            let context = &*transcoder.encoder();
            AvError::check(ffi::avcodec_parameters_from_context((*stream).codecpar, context))?;
            (*(*stream).codecpar).codec_tag = 0;
            (*stream).time_base = context.time_base;
        }
        self.describe(new, demuxer, index, stale)?;
        Ok(new)
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
                let parameters = &mut *(*stream).codecpar;
                parameters.codec_tag = self.fitting_tag(parameters.codec_tag, parameters.codec_id);
            }
            // As FFmpeg's own copy does: AVI takes these for sound of which all packets have that size.
            let parameters = &mut *(*stream).codecpar;
            match (parameters.codec_id, parameters.block_align) {
                (ffi::AVCodecID::AV_CODEC_ID_MP3, 1 | 576 | 1152) | (ffi::AVCodecID::AV_CODEC_ID_AC3, _) => {
                    parameters.block_align = 0;
                }
                _ => {}
            }
            // AVI's muxer counts packets by it, which FFmpeg learns from decoders of some codecs alone.
            let counted = demuxer.samples_of_packet(index);
            match counted.filter(|_| self.name() == "avi") {
                Some(SamplesOf::Block(samples)) if parameters.frame_size == 0 => {
                    parameters.frame_size = samples;
                }
                Some(SamplesOf::Packet(samples)) => {
                    (parameters.frame_size, parameters.block_align) = (samples, 0);
                }
                _ => {}
            }
            (*stream).time_base = (*from).time_base;
            (*stream).avg_frame_rate = (*from).avg_frame_rate;
            (*stream).sample_aspect_ratio = (*from).sample_aspect_ratio;
            // MOV's muxer looks at the parameters, which its demuxer leaves.
            if (*from).sample_aspect_ratio.num > 0 {
                parameters.sample_aspect_ratio = (*from).sample_aspect_ratio;
            }
        }
        self.describe(new, demuxer, index, &[])?;
        if self.name() == "matroska" {
            self.attach_cover(new, demuxer.cover(index))?;
        }
        for block in demuxer.stream_side_data(index) {
            self.add_side_data(new, &block)?;
        }
        Ok(new)
    }

    /// Makes stream `index` a file that is attached, as Matroska has its covers: `picture` is that file.
    fn attach_cover(&mut self, index: usize, picture: Option<&[u8]>) -> Result<(), AvError> {
        let (Some(stream), Some(picture)) = (self.stream_ptr(index), picture) else {
            return Ok(());
        };
        // SAFETY: a stream and its parameters live as long as the context.
        let parameters = unsafe { &mut *(*stream).codecpar };
        // The pictures that FFmpeg reads as covers again.
        let (kind, ending) = match parameters.codec_id {
            ffi::AVCodecID::AV_CODEC_ID_MJPEG => ("image/jpeg", "jpg"),
            ffi::AVCodecID::AV_CODEC_ID_PNG => ("image/png", "png"),
            ffi::AVCodecID::AV_CODEC_ID_GIF => ("image/gif", "gif"),
            ffi::AVCodecID::AV_CODEC_ID_TIFF => ("image/tiff", "tif"),
            _ => return Ok(()),
        };
        parameters.codec_type = ffi::AVMediaType::AVMEDIA_TYPE_ATTACHMENT;
        set_extradata(parameters, picture)?;
        self.set_stream_text(index, "mimetype", kind)?;
        // SAFETY: the stream is valid; FFmpeg copies both strings.
        let code = unsafe {
            let (key, name) = (c"filename", c_string(format!("cover.{ending}").as_bytes())?);
            let flags = ffi::AV_DICT_DONT_OVERWRITE as c_int;
            ffi::av_dict_set(&mut (*stream).metadata, key.as_ptr(), name.as_ptr(), flags)
        };
        AvError::check(code).map(|_| ())
    }

    /// True if stream `index` is a file that the head holds, so that it takes no packets.
    pub(crate) fn is_attachment(&self, index: usize) -> bool {
        // SAFETY: a stream and its parameters live as long as the context.
        self.stream_ptr(index).is_some_and(|stream| unsafe {
            (*(*stream).codecpar).codec_type == ffi::AVMediaType::AVMEDIA_TYPE_ATTACHMENT
        })
    }

    /// Adds the stream of a part that was encoded by itself, under the mark `tag`, else under its own, with
    /// the blocks of data that belong to it and without its texts. Packets will be timed in `base`.
    pub(crate) fn add_part(
        &mut self,
        demuxer: &Demuxer,
        index: usize,
        tag: Option<[u8; 4]>,
        (base, rate): (Rational, Option<Rational>),
    ) -> Result<usize, AvError> {
        let new = self.add_copied(demuxer, index, true)?;
        let Some(stream) = self.stream_ptr(new) else {
            return Err(AvError(ffi::AVERROR(ffi::EINVAL)));
        };
        // SAFETY: the stream and its parameters are valid; freeing a dictionary nulls it.
        unsafe {
            ffi::av_dict_free(&mut (*stream).metadata);
            (*stream).disposition = 0;
            (*stream).time_base = raw_rational(base);
            (*stream).avg_frame_rate = raw_rational(rate.unwrap_or(Rational { num: 0, den: 1 }));
            if let Some(tag) = tag {
                (*(*stream).codecpar).codec_tag = u32::from_le_bytes(tag);
            }
            // By this format Matroska's muxer says that packets have alpha beside them.
            if demuxer.claims_alpha(index) {
                (*(*stream).codecpar).format = ffi::AVPixelFormat::AV_PIX_FMT_YUVA420P as c_int;
            }
        }
        Ok(new)
    }

    /// Gives stream `to` the marks and texts of stream `index` of `demuxer`, without the texts named in
    /// `stale`.
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

    /// True if stream `index` is neither seen, heard nor read.
    fn is_data(&self, index: usize) -> bool {
        // SAFETY: a stream and its parameters live as long as the context.
        self.stream_ptr(index)
            .is_some_and(|s| unsafe { (*(*s).codecpar).codec_type == ffi::AVMediaType::AVMEDIA_TYPE_DATA })
    }

    /// Has stream `index` be a video, even if the one that it was described by is a cover.
    pub(crate) fn unmark_cover(&mut self, index: usize) {
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream belongs to this context, which is borrowed mutably.
            unsafe { (*stream).disposition &= !(ffi::AV_DISPOSITION_ATTACHED_PIC as c_int) };
        }
    }

    /// Marks stream `index` as the default one of its kind, or takes that mark away.
    pub(crate) fn mark_default(&mut self, index: usize, is_default: bool) {
        let mark = ffi::AV_DISPOSITION_DEFAULT as c_int;
        if let Some(stream) = self.stream_ptr(index) {
            // SAFETY: the stream belongs to this context, which is borrowed mutably.
            let disposition = unsafe { &mut (*stream).disposition };
            *disposition = if is_default {
                *disposition | mark
            } else {
                *disposition & !mark
            };
        }
    }

    /// Attaches a block to stream `index`; one of a kind that is not passed on is left out.
    pub(crate) fn add_side_data(&mut self, index: usize, block: &SideData) -> Result<(), AvError> {
        let Some(&kind) = STREAM_SIDE_DATA.iter().find(|&&k| k as u32 == block.kind) else {
            return Ok(());
        };
        let stream = self.stream_ptr(index).ok_or(AvError(ffi::AVERROR(ffi::EINVAL)))?;
        // SAFETY: the new block has room for the bytes that are copied.
        unsafe {
            let new = version::new_stream_side_data(stream, kind, block.data.len());
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

    /// Gives the whole file a text, unless it has one of that name.
    pub(crate) fn add_text(&mut self, name: &str, value: &str) -> Result<(), AvError> {
        let (name, value) = (c_string(name.as_bytes())?, c_string(value.as_bytes())?);
        // SAFETY: the context is valid; FFmpeg copies both strings.
        let code = unsafe {
            let texts = &mut (*self.context).metadata;
            let flags = ffi::AV_DICT_DONT_OVERWRITE as c_int;
            ffi::av_dict_set(texts, name.as_ptr(), value.as_ptr(), flags)
        };
        AvError::check(code).map(|_| ())
    }

    /// Gives stream `index` a text, or another one under that name.
    pub(crate) fn set_stream_text(&mut self, index: usize, name: &str, value: &str) -> Result<(), AvError> {
        let (name, value) = (c_string(name.as_bytes())?, c_string(value.as_bytes())?);
        let stream = self.stream_ptr(index).ok_or(AvError(ffi::AVERROR(ffi::EINVAL)))?;
        // SAFETY: the stream belongs to this context, which is borrowed mutably; FFmpeg copies both strings.
        let code = unsafe { ffi::av_dict_set(&mut (*stream).metadata, name.as_ptr(), value.as_ptr(), 0) };
        AvError::check(code).map(|_| ())
    }

    /// Takes over the chapters.
    pub(crate) fn copy_chapters(&mut self, demuxer: &Demuxer) -> Result<(), AvError> {
        // SAFETY: the context is valid, and borrowed mutably with `self`.
        copy_chapters(demuxer, unsafe { &mut *self.context })
    }

    /// Gives each stream of a transport stream a PID of its own: the input's where that is free, else the
    /// next free one of those that the muxer uses. FFmpeg refuses a head in which two are the same.
    fn settle_ids(&mut self) {
        let streams: Vec<*mut ffi::AVStream> = (0..).map_while(|index| self.stream_ptr(index)).collect();
        // SAFETY: all are streams of this context, which is borrowed mutably.
        let is_stated = |stream: &*mut ffi::AVStream| STATED_PIDS.contains(unsafe { &(**stream).id });
        if self.name() != "mpegts" || !streams.iter().any(is_stated) {
            return;
        }
        let option = |name: &CStr| {
            let mut value = -1;
            // SAFETY: the context is an object with options, its muxer's among them.
            let code = unsafe {
                let search = ffi::AV_OPT_SEARCH_CHILDREN as c_int;
                ffi::av_opt_get_int(self.context.cast(), name.as_ptr(), search, &mut value)
            };
            (code >= 0).then_some(value as c_int)
        };
        // SAFETY: the address of an output context is a string of its own.
        let url = text(unsafe { (*self.context).url });
        let is_disc = match option(c"mpegts_m2ts_mode") {
            Some(-1) | None => url.to_ascii_lowercase().ends_with(".m2ts"),
            Some(mode) => mode != 0,
        };
        let table = match option(c"mpegts_pmt_start_pid").unwrap_or(0x1000) {
            0x1000 if is_disc => 0x100,
            table => table,
        };
        let mut taken = vec![table];
        let mut others = Vec::new();
        for &stream in &streams {
            // SAFETY: the stream is one of this context, which is borrowed mutably, and lives as long.
            let id = unsafe { (*stream).id };
            if is_stated(&stream) && !taken.contains(&id) {
                taken.push(id);
            } else {
                others.push(stream);
            }
        }
        for stream in others {
            // SAFETY: the stream is one of this context, which is borrowed mutably; its parameters live as
            // long, and nothing writes to them here.
            let parameters = unsafe { &*(*stream).codecpar };
            let first = match (parameters.codec_type, parameters.codec_id) {
                _ if !is_disc => option(c"mpegts_start_pid").unwrap_or(0x100),
                // The numbers of Blu-ray discs.
                (ffi::AVMediaType::AVMEDIA_TYPE_VIDEO, _) => 0x1011,
                (ffi::AVMediaType::AVMEDIA_TYPE_AUDIO, _) => 0x1100,
                (_, ffi::AVCodecID::AV_CODEC_ID_HDMV_PGS_SUBTITLE) => 0x1200,
                _ => 0x1800,
            };
            if let Some(free) = (first..STATED_PIDS.end).find(|id| !taken.contains(id)) {
                taken.push(free);
                // SAFETY: the stream is one of this context, which is borrowed mutably, and lives as long; no
                // reference to it is left.
                unsafe { (*stream).id = free };
            }
        }
    }

    /// Writes the container's head. The streams' time bases may change by it.
    pub(crate) fn begin(&mut self) -> Result<(), AvError> {
        self.settle_ids();
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

    /// True if each packet of stream `index` must have a later decoding time than the one before; else it may
    /// be equal.
    pub(crate) fn needs_rising_times(&self, index: usize) -> bool {
        let strict = self.format().flags & ffi::AVFMT_TS_NONSTRICT as c_int == 0;
        // SAFETY: a stream and its parameters live as long as the context.
        let medium = self
            .stream_ptr(index)
            .map(|s| unsafe { (*(*s).codecpar).codec_type });
        strict
            && !matches!(
                medium,
                Some(ffi::AVMediaType::AVMEDIA_TYPE_SUBTITLE | ffi::AVMediaType::AVMEDIA_TYPE_DATA)
            )
    }

    /// Hands a packet of stream `index`, timed in `base`, to the container, which empties it and writes it in
    /// its turn.
    pub(crate) fn write(&mut self, packet: &mut Packet, index: usize, base: Rational) -> Result<(), AvError> {
        let to = self.time_base(index);
        if self.given.len() <= index {
            self.given.resize(index + 1, (0, 0));
        }
        self.given[index].0 += 1;
        if packet.pts().is_some() && self.is_data(index) {
            packet.leave_private_stream();
        }
        // SAFETY: context and packet are valid; av_interleaved_write_frame takes the packet's reference.
        unsafe {
            let raw = packet.as_ptr();
            ffi::av_packet_rescale_ts(raw, raw_rational(base), raw_rational(to));
            (*raw).stream_index = index as c_int;
            (*raw).pos = -1;
            AvError::check(ffi::av_interleaved_write_frame(self.context, raw)).map(|_| ())
        }
    }

    /// Writes what is held back until other streams catch up.
    pub(crate) fn flush(&mut self) -> Result<(), AvError> {
        // SAFETY: the context is valid; null asks for the packets that are held back.
        AvError::check(unsafe { ffi::av_interleaved_write_frame(self.context, ptr::null_mut()) }).map(|_| ())
    }

    /// After a failed [`Muxer::write`] to stream `written`, or a failed flush: the streams whose packets were
    /// refused, with how many of each. It may be another one, as packets wait for those of other streams.
    /// What was held back is written. `None` if that fails for another reason.
    pub(crate) fn refused(&mut self, written: Option<usize>) -> Option<Vec<(usize, u64)>> {
        let mut failures = 1;
        // Each failure takes the refused packet away, so that the end is reached.
        while let Err(e) = self.flush() {
            if self.io_error().is_some() || e.is_again() {
                return None;
            }
            failures += 1;
        }
        let mut refused = Vec::new();
        for (index, &(given, lost)) in self.given.iter().enumerate() {
            // SAFETY: the stream is valid.
            let held = self.stream_ptr(index).map_or(0, |s| unsafe { (*s).nb_frames });
            if given - held > lost {
                refused.push((index, given - held - lost));
            }
        }
        refused.sort_by_key(|(index, _)| Some(*index) != written);
        let mut counted = Vec::new();
        for (index, lost) in refused {
            // FFmpeg may make one packet of several, so that more may seem lost than failed.
            let count = lost.min(failures);
            if count > 0 {
                self.given[index].1 += lost;
                failures -= count;
                counted.push((index, count as u64));
            }
        }
        Some(counted)
    }

    /// Writes what is still held back and the container's tail, closes the file, and tells its size.
    pub(crate) fn end(&mut self) -> Result<Option<u64>, AvError> {
        // SAFETY: the head was written; the I/O context is flushed if it is in memory, else closed once and
        // nulled by FFmpeg.
        unsafe {
            self.begun = false;
            let trailer = AvError::check(ffi::av_write_trailer(self.context));
            let io = (*self.context).pb;
            let earlier = if io.is_null() { 0 } else { (*io).error };
            let size = if io.is_null() { -1 } else { ffi::avio_size(io) };
            let closed = self.close();
            trailer?;
            AvError::check(earlier)?;
            closed?;
            Ok(u64::try_from(size).ok())
        }
    }

    /// Completes a file in memory as [`Muxer::end`] does, and gives its bytes.
    pub(crate) fn finish_in_memory(mut self) -> Result<Vec<u8>, AvError> {
        self.end()?;
        Ok(self.memory.as_mut().map_or_else(Vec::new, MemoryFile::take))
    }

    fn close(&mut self) -> Result<(), AvError> {
        // SAFETY: a file in memory is flushed and freed by its owner; others are closed once and nulled by
        // FFmpeg.
        unsafe {
            if let Some(memory) = &self.memory {
                ffi::avio_flush(memory.as_ptr());
                return Ok(());
            }
            AvError::check(ffi::avio_closep(&mut (*self.context).pb)).map(|_| ())
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
        // SAFETY: a head without a tail has memory that only the tail's call frees; the file is removed by
        // its owner.
        unsafe {
            if self.begun {
                ffi::av_write_trailer(self.context);
            }
            // The error of a file that is given up tells nothing.
            let _ = self.close();
            ffi::avformat_free_context(self.context);
        }
    }
}

/// Gives `parameters` these bytes for what a decoder must know before the first packet.
fn set_extradata(parameters: &mut ffi::AVCodecParameters, bytes: &[u8]) -> Result<(), AvError> {
    let size = c_int::try_from(bytes.len()).map_err(|_| AvError::no_memory())?;
    let padded = bytes.len() + ffi::AV_INPUT_BUFFER_PADDING_SIZE as usize;
    // SAFETY: the block has room for the bytes and the padding that FFmpeg wants; the parameters own the one
    // that they had, and from now on this one.
    unsafe {
        let block = ffi::av_mallocz(padded).cast::<u8>();
        if block.is_null() {
            return Err(AvError::no_memory());
        }
        ptr::copy_nonoverlapping(bytes.as_ptr(), block, bytes.len());
        ffi::av_freep((&raw mut parameters.extradata).cast());
        parameters.extradata = block;
    }
    parameters.extradata_size = size;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::media::ffmpeg::{AvFormat, EncoderSetup, Picture, Received};

    /// Frames of a 16x16 video, by `encoder`, in memory.
    fn written(name: &str, encoder: &str, frames: i64) -> Vec<u8> {
        let base = Rational { num: 1, den: 25 };
        let mut muxer = Muxer::in_memory(None, Path::new(name)).unwrap();
        let format = AvFormat::from_name("yuv420p").unwrap();
        let setup = EncoderSetup {
            global_header: muxer.wants_global_header(),
            ..EncoderSetup::plain(format, 16, 16)
        };
        let mut encoder = Encoder::new(EncoderKind::find(encoder).unwrap(), &setup).unwrap();
        encoder.open().unwrap();
        let stream = muxer.add_encoded(&encoder, None).unwrap();
        muxer.begin().unwrap();
        let mut packet = Packet::new().unwrap();
        for pts in 0..=frames {
            let mut picture = Picture::allocate(format, 16, 16).unwrap();
            picture.set_timing(pts, (1, 1));
            encoder.send((pts < frames).then_some(&picture)).unwrap();
            while encoder.receive(&mut packet).unwrap() == Received::Item {
                packet.set_duration(1);
                muxer.write(&mut packet, stream, base).unwrap();
            }
        }
        muxer.finish_in_memory().unwrap()
    }

    #[test]
    fn a_file_in_memory_is_what_a_file_on_disk_would_be() {
        // MP4 goes back to write its index, Matroska to write the lengths.
        for (name, format) in [("a.mp4", "mov,mp4"), ("a.mkv", "matroska"), ("a.avi", "avi")] {
            let bytes = written(name, "mpeg4", 5);
            let mut demuxer = Demuxer::from_bytes(bytes, name).unwrap();
            assert!(
                demuxer.format_name().starts_with(format),
                "{name}: {}",
                demuxer.format_name()
            );
            let facts = demuxer.stream(0).unwrap();
            assert_eq!((facts.codec.as_str(), facts.width), ("mpeg4", 16), "{name}");
            let mut packet = Packet::new().unwrap();
            let mut frames = 0;
            while demuxer.read(&mut packet).is_ok() {
                frames += 1;
            }
            assert_eq!(frames, 5, "{name}");
        }
    }

    #[test]
    fn bytes_that_are_no_media_file_are_refused() {
        let failure = Demuxer::from_bytes(vec![0; 100], "a.mp4").err().unwrap();
        assert!(matches!(failure, crate::media::ffmpeg::OpenFailure::Open(_)));
    }
}
