//! A video decoder of FFmpeg's.
#![allow(unsafe_code)]

pub(in crate::media::ffmpeg) mod jpeg_xl;
pub(in crate::media::ffmpeg) mod memory;

#[cfg(feature = "cuda")]
use super::card::hardware::{self, HardwareDevice};
use crate::annotations::png;
use crate::frame::{FieldOrder, Reserve};
use crate::media::ffmpeg::text::text;
use crate::media::ffmpeg::{AvError, Demuxer, Packet, Picture, Received};
use ffmpeg_next::ffi;
use jpeg_xl::{Codestream, codestream};
use memory::PictureMemory;
use std::collections::BTreeSet;
use std::ffi::{CStr, c_int};
use std::ptr;
use std::sync::{Mutex, PoisonError};

/// The decoder that reads alpha where FFmpeg's own does not: that of VP8 and VP9 is a second picture beside
/// each packet.
fn alpha_decoder(codec: ffi::AVCodecID) -> Option<&'static CStr> {
    match codec {
        ffi::AVCodecID::AV_CODEC_ID_VP8 => Some(c"libvpx"),
        ffi::AVCodecID::AV_CODEC_ID_VP9 => Some(c"libvpx-vp9"),
        _ => None,
    }
}

/// Opens a decoder as on a processor without SSE4.
///
/// FFmpeg's SSE4 code for VC-2 (Dirac) of more than 8 bits writes whole vectors into subbands whose width is
/// no multiple of theirs, and so over the coefficients beside them: pictures come out wrong, and with slice
/// threads in another way each time. Its code in C, which it takes otherwise, is right.
fn without_sse4(open: impl FnOnce() -> c_int) -> c_int {
    static FLAGS: Mutex<()> = Mutex::new(());
    if !cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        return open();
    }
    let _changed = FLAGS.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: the flags are one atomic number of FFmpeg's. Codecs that another thread opens meanwhile take
    // code without SSE4, which any processor has.
    unsafe {
        let flags = ffi::av_get_cpu_flags();
        ffi::av_force_cpu_flags(flags & !ffi::AV_CPU_FLAG_SSE4);
        let opened = open();
        ffi::av_force_cpu_flags(flags);
        opened
    }
}

/// An open video decoder.
pub(crate) struct Decoder {
    context: *mut ffi::AVCodecContext,
    /// Where its pictures lie and its errors are counted. The context points to it.
    pictures: Box<PictureMemory>,
    /// The words for what packets said beside their pictures and was left out, being too large.
    too_large: BTreeSet<&'static str>,
    /// After a flush, until pictures refer to nothing that was passed over.
    joining: Option<Joining>,
}

/// How far decoding is that began in the middle of a stream. Pictures up to the second key picture may refer
/// to leading pictures of the first one.
#[derive(Default)]
struct Joining {
    keys: u32,
    /// When the second key picture is shown.
    until: Option<i64>,
}

// SAFETY: an AVCodecContext is bound to no thread, and only `&mut self` reaches what changes it.
unsafe impl Send for Decoder {}

impl Decoder {
    /// Opens the decoder for stream `index`. `threads` of 0 lets FFmpeg take one a core. A `strict` decoder
    /// looks for damage more closely.
    pub(crate) fn open(
        demuxer: &Demuxer,
        index: usize,
        threads: usize,
        strict: bool,
    ) -> Result<Option<Decoder>, AvError> {
        let Some(stream) = demuxer.stream_ptr(index) else {
            return Ok(None);
        };
        // SAFETY: stream and parameters are valid; the context is owned by `decoder` from its allocation on,
        // so every path frees it.
        unsafe {
            let parameters = (*stream).codecpar;
            let mut codec = ffi::avcodec_find_decoder((*parameters).codec_id);
            if demuxer.claims_alpha(index)
                && let Some(name) = alpha_decoder((*parameters).codec_id)
            {
                let with_alpha = ffi::avcodec_find_decoder_by_name(name.as_ptr());
                if !with_alpha.is_null() {
                    codec = with_alpha;
                }
            }
            if codec.is_null() {
                return Ok(None);
            }
            let mut decoder = Decoder::prepare(demuxer, stream, codec)?;
            let context = decoder.context;
            if (*codec).capabilities & ffi::AV_CODEC_CAP_DR1 as c_int != 0 {
                decoder.pictures.serve(context);
            }
            (*context).thread_count = threads as c_int;
            (*context).thread_type = (ffi::FF_THREAD_FRAME | ffi::FF_THREAD_SLICE) as c_int;
            // Not AV_EF_EXPLODE: with frame threads it makes FFmpeg 5.1 abort on an assertion of its own.
            // Pictures that were patched are marked, and a strict source fails at the mark.
            let mut looked_for = ffi::AV_EF_CRCCHECK;
            if strict {
                looked_for |= ffi::AV_EF_BUFFER;
                // The zeros that fill up MPEG-1/2 streams of constant rate would be errors.
                if !matches!(
                    (*codec).id,
                    ffi::AVCodecID::AV_CODEC_ID_MPEG1VIDEO | ffi::AVCodecID::AV_CODEC_ID_MPEG2VIDEO
                ) {
                    looked_for |= ffi::AV_EF_BITSTREAM;
                }
            }
            (*context).err_recognition |= looked_for as c_int;
            let open = || ffi::avcodec_open2(context, codec, ptr::null_mut());
            AvError::check_opening(|| match (*codec).id {
                ffi::AVCodecID::AV_CODEC_ID_DIRAC => without_sse4(open),
                _ => open(),
            })?;
            Ok(Some(decoder))
        }
    }

    /// Opens a decoder for stream `index` that decodes on the card of `device`; `None` if this FFmpeg has
    /// none for the codec.
    #[cfg(feature = "cuda")]
    pub(crate) fn open_on(
        demuxer: &Demuxer,
        index: usize,
        device: &HardwareDevice,
    ) -> Result<Option<Decoder>, AvError> {
        let Some(stream) = demuxer.stream_ptr(index) else {
            return Ok(None);
        };
        // SAFETY: stream and parameters are valid; the context is owned by `decoder` from its allocation on,
        // so every path frees it, and it has a reference to the device of its own.
        unsafe {
            let Some(codec) = hardware::decoder((*(*stream).codecpar).codec_id) else {
                return Ok(None);
            };
            let decoder = Decoder::prepare(demuxer, stream, codec)?;
            let context = decoder.context;
            device.serve(context)?;
            (*context).thread_count = 1;
            AvError::check_opening(|| ffi::avcodec_open2(context, codec, ptr::null_mut()))?;
            Ok(Some(decoder))
        }
    }

    /// A decoder for `stream` that is not open yet.
    ///
    /// # Safety
    /// `stream` must be one of the demuxer's, and `codec` valid.
    unsafe fn prepare(
        demuxer: &Demuxer,
        stream: *mut ffi::AVStream,
        codec: *const ffi::AVCodec,
    ) -> Result<Decoder, AvError> {
        // SAFETY: stream and codec are valid (the function's contract); the context is owned by `decoder`
        // from its allocation on.
        unsafe {
            let context = ffi::avcodec_alloc_context3(codec);
            if context.is_null() {
                return Err(AvError::no_memory());
            }
            let decoder = Decoder {
                context,
                pictures: Box::default(),
                too_large: BTreeSet::new(),
                joining: None,
            };
            decoder.pictures.listen(context);
            AvError::check(ffi::avcodec_parameters_to_context(context, (*stream).codecpar))?;
            (*context).pkt_timebase = (*stream).time_base;
            if let Some(most) = demuxer.max_pixels() {
                (*context).max_pixels = most;
            }
            Ok(decoder)
        }
    }

    /// The codec's short name.
    pub(crate) fn codec_name(&self) -> String {
        // SAFETY: an open context has its codec; the name is static.
        text(unsafe { ffi::avcodec_get_name((*self.context).codec_id) })
    }

    /// True for H.264 of the Baseline profile, constrained or not.
    pub(crate) fn is_baseline(&self) -> bool {
        // SAFETY: an open context has its codec and profile.
        let (codec, profile) = unsafe { ((*self.context).codec_id, (*self.context).profile) };
        let profiles = [
            ffi::FF_PROFILE_H264_BASELINE,
            ffi::FF_PROFILE_H264_CONSTRAINED_BASELINE,
        ];
        codec == ffi::AVCodecID::AV_CODEC_ID_H264 && profiles.iter().any(|&known| profile == known as c_int)
    }

    /// True if this is the decoder that reads the alpha which its codec carries beside the picture.
    pub(crate) fn reads_alpha(&self) -> bool {
        // SAFETY: an open context has its codec, whose name is static.
        unsafe {
            alpha_decoder((*self.context).codec_id)
                .is_some_and(|name| CStr::from_ptr((*(*self.context).codec).name) == name)
        }
    }

    /// True if each picture of the codec is coded by itself.
    pub(crate) fn is_intra_only(&self) -> bool {
        // SAFETY: an open context has its codec; descriptors are static, null for unknown codecs.
        let descriptor = unsafe { ffi::avcodec_descriptor_get((*self.context).codec_id).as_ref() };
        descriptor.is_some_and(|facts| facts.props & ffi::AV_CODEC_PROP_INTRA_ONLY as c_int != 0)
    }

    /// Forgets all that it was fed, and pictures that are still to come; it may be at the end.
    pub(crate) fn flush(&mut self) {
        // SAFETY: the context is open.
        unsafe { ffi::avcodec_flush_buffers(self.context) };
        self.joining = Some(Joining::default());
        self.pictures.join(true);
    }

    /// From now on pictures are decoded into memory of `reserve`, if the codec can do that.
    pub(crate) fn decode_into(&self, reserve: Reserve) {
        self.pictures.begin(reserve);
    }

    /// How many pictures it said it patched, or reported errors of, those included that are not out yet.
    pub(crate) fn patched(&self) -> u64 {
        self.pictures.patched()
    }

    /// True if the codec can decode into memory that is not FFmpeg's.
    pub(crate) fn takes_memory(&self) -> bool {
        self.pictures.is_served()
    }

    /// Feeds a packet, or the end of the data.
    pub(crate) fn send(&mut self, packet: Option<&Packet>) -> Result<(), AvError> {
        // SAFETY: the context is open.
        let codec = unsafe { (*self.context).codec_id };
        let other = match (codec, packet) {
            (ffi::AVCodecID::AV_CODEC_ID_PNG, Some(packet)) => match png::within_limit(packet.data()) {
                Some((data, words)) => {
                    self.too_large.extend(words);
                    Some(packet.with_data(&data)?)
                }
                None => None,
            },
            (ffi::AVCodecID::AV_CODEC_ID_JPEGXL, Some(packet)) => match codestream(packet.data()) {
                Codestream::Bare => None,
                Codestream::Boxed(data) => Some(packet.with_data(&data)?),
                Codestream::Missing => return Err(AvError(ffi::AVERROR_INVALIDDATA)),
            },
            _ => None,
        };
        let packet = other.as_ref().or(packet);
        if let (Some(joining), Some(packet)) = (&mut self.joining, packet)
            && packet.is_key()
        {
            joining.keys += 1;
            if joining.keys == 2 {
                joining.until = packet.pts();
            }
        }
        let packet = packet.map_or(ptr::null(), |p| p.as_ptr().cast_const());
        self.pictures.note_packet();
        // SAFETY: the context is open and the packet, where there is one, valid.
        let sent = AvError::check_working(|| unsafe { ffi::avcodec_send_packet(self.context, packet) });
        self.pictures.lacking().map_or(sent, Err).map(|_| ())
    }

    /// The words for what packets said beside their pictures and was left out, being too large.
    pub(crate) fn too_large(&self) -> &BTreeSet<&'static str> {
        &self.too_large
    }

    /// Takes the next picture, in the order of presentation.
    pub(crate) fn receive(&mut self, picture: &mut Picture) -> Result<Received, AvError> {
        // SAFETY: the context is open and the picture valid; FFmpeg empties it first.
        let received =
            AvError::check_working(|| unsafe { ffi::avcodec_receive_frame(self.context, picture.as_ptr()) });
        let until = self.joining.as_ref().and_then(|joining| joining.until);
        if received.is_ok() && until.is_some_and(|until| picture.timestamp().is_some_and(|at| at >= until)) {
            self.joining = None;
            self.pictures.join(false);
        }
        let received = Received::of(self.pictures.lacking().map_or(received, Err))?;
        // SAFETY: the context is open.
        let codec = unsafe { (*self.context).codec_id };
        // In ProRes 0 says that the matrix is not known.
        if received == Received::Item && codec != ffi::AVCodecID::AV_CODEC_ID_PRORES {
            picture.name_green_blue_red();
        }
        if received == Received::Item && is_png(codec) {
            picture.set_field_order(FieldOrder::Progressive);
        }
        Ok(received)
    }
}

/// True for pictures of PNG. FFmpeg calls those interlaced whose pixels are stored in Adam7's passes, which
/// has nothing to do with fields; of fields only their container can speak.
pub(in crate::media::ffmpeg) fn is_png(codec: ffi::AVCodecID) -> bool {
    matches!(
        codec,
        ffi::AVCodecID::AV_CODEC_ID_PNG | ffi::AVCodecID::AV_CODEC_ID_APNG
    )
}

impl Drop for Decoder {
    fn drop(&mut self) {
        // SAFETY: allocated by avcodec_alloc_context3 and freed once.
        unsafe { ffi::avcodec_free_context(&mut self.context) };
    }
}
