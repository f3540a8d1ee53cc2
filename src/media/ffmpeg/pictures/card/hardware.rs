//! Decoding on a card: FFmpeg's decoders in a CUDA context and on a stream of somebody else's, which its
//! encoders use, too (`surfaces`).
#![allow(unsafe_code)]

use crate::engine::cuda::decode::StreamHandles;
use crate::media::ffmpeg::{AvError, AvFormat, Picture};
use ffmpeg_next::ffi;
use std::ffi::{CStr, c_int, c_void};

/// Surfaces that a decoder has beside those that its codec needs: as many frames as the card reads at a time,
/// and some that are on their way.
const MORE_SURFACES: c_int = 6;

/// `AVCUDADeviceContext` of libavutil/hwcontext_cuda.h.
#[repr(C)]
struct CudaDevice {
    context: *mut c_void,
    stream: *mut c_void,
    internal: *mut c_void,
}

/// A card as FFmpeg knows it, and a stream on it.
pub(crate) struct HardwareDevice {
    reference: *mut ffi::AVBufferRef,
}

// SAFETY: the device's context may be used from any thread; reference counts are atomic.
unsafe impl Send for HardwareDevice {}

impl HardwareDevice {
    /// A device whose decoders and encoders work on `stream` and in its context.
    pub(crate) fn cuda(stream: StreamHandles) -> Result<HardwareDevice, AvError> {
        // SAFETY: the reference is ours from its allocation on; its hardware context is of the type that
        // FFmpeg's header states for CUDA. The stream and its context live as long as their owner, which the
        // device has until its last reference goes: those of decoders and pictures among them.
        unsafe {
            let reference = ffi::av_hwdevice_ctx_alloc(ffi::AVHWDeviceType::AV_HWDEVICE_TYPE_CUDA);
            if reference.is_null() {
                return Err(AvError(ffi::AVERROR(ffi::ENOSYS)));
            }
            let device = HardwareDevice { reference };
            let general = &mut *(*reference).data.cast::<ffi::AVHWDeviceContext>();
            let cuda = &mut *general.hwctx.cast::<CudaDevice>();
            (cuda.context, cuda.stream) = (stream.context, stream.stream);
            general.user_opaque = Box::into_raw(Box::new(stream.owner)).cast();
            general.free = Some(release);
            AvError::check(ffi::av_hwdevice_ctx_init(reference))?;
            Ok(device)
        }
    }

    /// FFmpeg's reference, which is valid as long as `self`.
    pub(super) fn reference(&self) -> *mut ffi::AVBufferRef {
        self.reference
    }

    /// Has `context`, which is not open yet, decode on the card.
    ///
    /// # Safety
    /// `context` must be valid.
    pub(in crate::media::ffmpeg) unsafe fn serve(
        &self,
        context: *mut ffi::AVCodecContext,
    ) -> Result<(), AvError> {
        // SAFETY: context (the function's contract) and device are valid; the context owns its reference.
        unsafe {
            let reference = ffi::av_buffer_ref(self.reference);
            if reference.is_null() {
                return Err(AvError::no_memory());
            }
            (*context).hw_device_ctx = reference;
            (*context).get_format = Some(choose_cuda);
            (*context).extra_hw_frames = MORE_SURFACES;
        }
        Ok(())
    }
}

impl Drop for HardwareDevice {
    fn drop(&mut self) {
        // SAFETY: allocated in `cuda`, and unreferenced only here.
        unsafe { ffi::av_buffer_unref(&raw mut self.reference) };
    }
}

/// FFmpeg's callback at the end of a device.
unsafe extern "C" fn release(device: *mut ffi::AVHWDeviceContext) {
    // SAFETY: the box was made in `HardwareDevice::cuda` and handed over once.
    drop(unsafe { Box::from_raw((*device).user_opaque.cast::<Box<dyn Send>>()) });
}

/// FFmpeg's callback: takes the card's surfaces or fails, so that no decoder falls back to the CPU unseen.
unsafe extern "C" fn choose_cuda(
    _context: *mut ffi::AVCodecContext,
    mut formats: *const ffi::AVPixelFormat,
) -> ffi::AVPixelFormat {
    // SAFETY: FFmpeg passes a list that ends with AV_PIX_FMT_NONE; its entries are read as numbers, since a
    // newer library may know more.
    unsafe {
        while formats.cast::<c_int>().read() != ffi::AVPixelFormat::AV_PIX_FMT_NONE as c_int {
            if formats.cast::<c_int>().read() == ffi::AVPixelFormat::AV_PIX_FMT_CUDA as c_int {
                return ffi::AVPixelFormat::AV_PIX_FMT_CUDA;
            }
            formats = formats.add(1);
        }
    }
    ffi::AVPixelFormat::AV_PIX_FMT_NONE
}

/// FFmpeg's own decoder of a codec, which can use a card; other libraries' cannot.
pub(in crate::media::ffmpeg) fn decoder(codec: ffi::AVCodecID) -> Option<*const ffi::AVCodec> {
    let own: Option<&CStr> = match codec {
        ffi::AVCodecID::AV_CODEC_ID_H264 => Some(c"h264"),
        ffi::AVCodecID::AV_CODEC_ID_HEVC => Some(c"hevc"),
        ffi::AVCodecID::AV_CODEC_ID_VP9 => Some(c"vp9"),
        ffi::AVCodecID::AV_CODEC_ID_AV1 => Some(c"av1"),
        _ => None,
    };
    // SAFETY: the name is ended by a zero; codecs are static, null for unknown names.
    let found = unsafe { ffi::avcodec_find_decoder_by_name(own?.as_ptr()) };
    (!found.is_null()).then_some(found)
}

/// A picture on a card.
pub(crate) struct OnCard {
    /// The format of its samples, such as nv12.
    pub(crate) format: AvFormat,
    /// Addresses on the card of luma and of both chroma components.
    pub(crate) planes: [u64; 2],
    /// Bytes from row to row of either.
    pub(crate) pitches: [usize; 2],
}

impl Picture {
    /// Where the picture lies on a card; `None` for one in the host's memory, and for one of which pixels at
    /// the top or on the left are to be cut off.
    pub(crate) fn on_card(&self) -> Option<OnCard> {
        let raw = self.raw();
        if raw.hw_frames_ctx.is_null() || raw.crop_left != 0 || raw.crop_top != 0 {
            return None;
        }
        // SAFETY: the reference holds a frames' context; the format is read as its number, since a newer
        // library may know more values than our headers.
        let format = unsafe {
            let frames = (*raw.hw_frames_ctx).data.cast::<ffi::AVHWFramesContext>();
            std::ptr::addr_of!((*frames).sw_format).cast::<c_int>().read()
        };
        let pitch = |plane: usize| usize::try_from(raw.linesize[plane]).ok();
        Some(OnCard {
            format: AvFormat(format),
            planes: [raw.data[0].addr() as u64, raw.data[1].addr() as u64],
            pitches: [pitch(0)?, pitch(1)?],
        })
    }
}
