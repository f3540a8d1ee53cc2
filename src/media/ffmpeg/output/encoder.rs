//! Video encoders.
#![allow(unsafe_code)]

use crate::frame::{Colour, FieldOrder, Rational};
use crate::media::ffmpeg::pictures::decoder::is_png;
use crate::media::ffmpeg::pictures::format::range_number;
use crate::media::ffmpeg::text::{raw_rational, set_option, text};
use crate::media::ffmpeg::{AvError, AvFormat, Packet, Picture, Received, init, version};
use ffmpeg_next::ffi;
use std::ffi::{CStr, CString, c_int, c_void};
use std::ptr;

/// A video encoder that this FFmpeg has.
#[derive(Clone, Copy)]
pub(crate) struct EncoderKind {
    pub(in crate::media::ffmpeg) codec: &'static ffi::AVCodec,
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

    /// True if a device does the work, such as a graphics card or a chip for video, which may not be there.
    pub(crate) fn is_of_device(self) -> bool {
        let by_capability = ffi::AV_CODEC_CAP_HARDWARE | ffi::AV_CODEC_CAP_HYBRID;
        // FFmpeg does not mark OpenMAX.
        self.codec.capabilities & by_capability as c_int != 0 || self.name().ends_with("_omx")
    }

    /// The pixel formats that it takes; empty if it takes any.
    pub(crate) fn formats(self) -> Vec<AvFormat> {
        version::pixel_formats(self.codec)
            .into_iter()
            .map(AvFormat)
            .collect()
    }

    /// True if the encoder cannot be closed before it was fed: SVT-AV1 waits for the end of pictures that
    /// never came. It is left as it is then, which costs memory, and its trials are left out.
    pub(crate) fn waits_for_a_picture(self) -> bool {
        self.name() == "libsvtav1"
    }

    /// True if the encoder can read pictures in a CUDA card's memory.
    pub(crate) fn reads_on_card(self) -> bool {
        let on_card = AvFormat(ffi::AVPixelFormat::AV_PIX_FMT_CUDA as c_int);
        self.formats().contains(&on_card)
    }

    /// Whether the encoder opens for pictures of `format` without options. It may name formats that it takes
    /// only where experiments are allowed, such as libvpx-vp9 of FFmpeg 8.1 and newer those with alpha but
    /// for yuva420p.
    pub(crate) fn opens(self, format: AvFormat) -> bool {
        if self.waits_for_a_picture() {
            return self.formats().contains(&format);
        }
        self.try_open(format).is_ok()
    }

    /// Opens the encoder for pictures of `format` and closes it again.
    pub(crate) fn try_open(self, format: AvFormat) -> Result<(), AvError> {
        // Large enough for encoders of devices, small enough to cost nothing.
        let setup = EncoderSetup::plain(format, 256, 256);
        let mut encoder = Encoder::new(self, &setup)?;
        encoder.allow_unofficial();
        encoder.allow_alpha(format);
        encoder.open()
    }
}

/// Facts that an encoder must have before it is opened.
#[derive(Debug, Clone)]
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
    /// The container wants the codec's headers outside the packets.
    pub(crate) global_header: bool,
}

impl EncoderSetup {
    /// Progressive pictures of square pixels at 25 frames/s without colour facts, for trials.
    pub(crate) fn plain(format: AvFormat, width: usize, height: usize) -> EncoderSetup {
        EncoderSetup {
            format,
            width,
            height,
            time_base: Rational { num: 1, den: 25 },
            frame_rate: Some(Rational { num: 25, den: 1 }),
            sample_aspect: (1, 1),
            colour: Colour::default(),
            field_order: FieldOrder::Progressive,
            threads: 1,
            global_header: false,
        }
    }
}

/// A video encoder with its settings.
pub(crate) struct Encoder {
    pub(in crate::media::ffmpeg) context: *mut ffi::AVCodecContext,
    kind: EncoderKind,
    /// Opened, and fed nothing so far.
    is_hungry: bool,
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
        let mut encoder = Encoder {
            context,
            kind,
            is_hungry: false,
        };
        if kind.name() == "libx265" {
            // Else it prints what it is and has.
            encoder.set("x265-params", "log-level=error")?;
        }
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
                FieldOrder::TopFirstInterleaved => ffi::AVFieldOrder::AV_FIELD_TB,
                FieldOrder::BottomFirstInterleaved => ffi::AVFieldOrder::AV_FIELD_BT,
                FieldOrder::Mixed => ffi::AVFieldOrder::AV_FIELD_UNKNOWN,
            };
            // PNG's encoder would store its pixels in passes.
            if setup.field_order != FieldOrder::Progressive && !is_png(c.codec_id) {
                c.flags |= (ffi::AV_CODEC_FLAG_INTERLACED_DCT | ffi::AV_CODEC_FLAG_INTERLACED_ME) as c_int;
            }
            if setup.global_header {
                c.flags |= ffi::AV_CODEC_FLAG_GLOBAL_HEADER as c_int;
            }
            c.thread_count = setup.threads as c_int;
        }
        Ok(encoder)
    }

    /// Sets an option of the encoder's own or one that all encoders share. Flags without a sign are added to
    /// those that are set, such as that of headers outside the packets, and do not replace them.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), AvError> {
        let added = format!("+{value}");
        let value = match key {
            "flags" if !value.starts_with(['+', '-']) => added.as_str(),
            _ => value,
        };
        // SAFETY: the context is an object with options.
        unsafe { set_option(self.context.cast(), key, value) }
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

    /// Makes room for alpha: with it libvpx's encoder of VP8 refuses alternate reference frames, which are
    /// its default.
    pub(crate) fn allow_alpha(&mut self, format: AvFormat) {
        if self.kind.name() == "libvpx" && format.facts().is_some_and(|facts| facts.alpha) {
            // An encoder without the option has nothing to be switched off.
            let _ = self.set("auto-alt-ref", "0");
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
        let open = || unsafe { ffi::avcodec_open2(self.context, self.kind.codec, ptr::null_mut()) };
        AvError::check_opening(open)?;
        self.is_hungry = true;
        Ok(())
    }

    /// Feeds a picture, or the end.
    pub(crate) fn send(&mut self, picture: Option<&Picture>) -> Result<(), AvError> {
        self.is_hungry &= picture.is_none();
        let frame = picture.map_or(ptr::null(), |p| p.as_ptr().cast_const());
        // SAFETY: the context is open and the frame, where there is one, valid.
        AvError::check_working(|| unsafe { ffi::avcodec_send_frame(self.context, frame) }).map(|_| ())
    }

    /// Takes the next packet.
    pub(crate) fn receive(&mut self, packet: &mut Packet) -> Result<Received, AvError> {
        // SAFETY: context and packet are valid; FFmpeg empties the packet first.
        Received::of(AvError::check_working(|| unsafe {
            ffi::avcodec_receive_packet(self.context, packet.as_ptr())
        }))
    }
}

impl Drop for Encoder {
    fn drop(&mut self) {
        if self.is_hungry && self.kind.waits_for_a_picture() {
            return;
        }
        // SAFETY: allocated by avcodec_alloc_context3 and freed once.
        unsafe { ffi::avcodec_free_context(&mut self.context) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoders_open_for_formats_that_they_take_and_for_no_others() {
        let opens = |encoder: &str, format: &str| {
            EncoderKind::find(encoder)
                .expect("FFmpeg's own encoder")
                .opens(AvFormat::from_name(format).expect("a format of all versions"))
        };
        for (encoder, format, expected) in [
            ("ffv1", "yuv420p", true),
            ("ffv1", "gbrp16le", true),
            ("mpeg4", "yuv420p", true),
            ("mpeg4", "rgb24", false),
            ("mjpeg", "yuv420p", true),
            ("mjpeg", "gray16le", false),
        ] {
            assert_eq!(opens(encoder, format), expected, "{encoder} {format}");
        }
    }
}
