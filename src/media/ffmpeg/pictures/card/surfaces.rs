//! Pictures on a card for an encoder that reads them there. Frames on the card are copied to FFmpeg's
//! surfaces on the card, and others are uploaded to them.
#![allow(unsafe_code)]

use super::hardware::HardwareDevice;
use crate::engine::EngineError;
use crate::engine::cuda::encode::{self, EncoderCard, EncoderStreams, SurfacePlane};
use crate::frame::{DeviceHandle, Frame};
use crate::media::ffmpeg::{AvError, AvFormat, Encoder, Picture, SurfaceError};
use ffmpeg_next::ffi;
use std::ffi::c_int;

impl From<EngineError> for SurfaceError {
    fn from(error: EngineError) -> SurfaceError {
        SurfaceError::Card(error.to_string())
    }
}

/// Fetches a frame that lies on a card into the host's memory, where it is to be read.
pub(crate) fn fetch(frame: &Frame) -> Result<(), SurfaceError> {
    Ok(encode::fetch(frame)?)
}

/// Surfaces of one size and format on a card. FFmpeg makes as many as the encoder holds at a time.
pub(crate) struct CardSurfaces {
    /// The surfaces' context, which holds their device.
    frames: *mut ffi::AVBufferRef,
    format: AvFormat,
    streams: EncoderStreams,
}

// SAFETY: the surfaces' context may be used from any thread; reference counts are atomic.
unsafe impl Send for CardSurfaces {}

impl CardSurfaces {
    /// Surfaces on `device` whose samples are of `format`, of so many pixels across and rows.
    pub(crate) fn new(
        device: &DeviceHandle,
        format: AvFormat,
        (width, height): (usize, usize),
    ) -> Result<CardSurfaces, SurfaceError> {
        let card = EncoderCard::of(device).ok_or_else(AvError::bug)?;
        let streams = card.streams()?;
        let device = HardwareDevice::cuda(streams.handles())?;
        let size = |v: usize| c_int::try_from(v).map_err(|_| AvError(ffi::AVERROR(ffi::EINVAL)));
        let samples = format.to_raw().ok_or_else(AvError::bug)?;
        // SAFETY: the device's reference is valid, and the new context holds one of its own; it is ours
        // from its allocation on, and its fields are set before it is initialised.
        unsafe {
            let frames = ffi::av_hwframe_ctx_alloc(device.reference());
            if frames.is_null() {
                return Err(AvError::no_memory().into());
            }
            let surfaces = CardSurfaces {
                frames,
                format,
                streams,
            };
            let context = &mut *(*frames).data.cast::<ffi::AVHWFramesContext>();
            context.format = ffi::AVPixelFormat::AV_PIX_FMT_CUDA;
            context.sw_format = samples;
            context.width = size(width)?;
            context.height = size(height)?;
            AvError::check(ffi::av_hwframe_ctx_init(frames))?;
            Ok(surfaces)
        }
    }

    /// Has `encoder`, which is not open yet, read pictures on the card.
    pub(crate) fn serve(&self, encoder: &mut Encoder) -> Result<(), AvError> {
        let context = encoder.context;
        // SAFETY: the encoder's context and the surfaces' are valid; the encoder's owns its reference.
        unsafe {
            let reference = ffi::av_buffer_ref(self.frames);
            if reference.is_null() {
                return Err(AvError::no_memory());
            }
            (*context).hw_frames_ctx = reference;
            (*context).sw_pix_fmt = (*context).pix_fmt;
            (*context).pix_fmt = ffi::AVPixelFormat::AV_PIX_FMT_CUDA;
        }
        Ok(())
    }

    /// A picture on the card with the pixels of `frame`, which has the surfaces' format and size. The frame
    /// may be given back then.
    pub(crate) fn picture(&self, frame: &Frame) -> Result<Picture, SurfaceError> {
        let picture = Picture::new()?;
        // SAFETY: the surfaces' context is valid, and the picture is empty.
        AvError::check(unsafe { ffi::av_hwframe_get_buffer(self.frames, picture.as_ptr(), 0) })?;
        let raw = picture.raw();
        let places = raw.data.iter().zip(raw.linesize);
        let planes: Vec<SurfacePlane> = places
            .take(frame.layout().planes().len())
            .map(|(data, pitch)| SurfacePlane {
                pointer: data.addr() as u64,
                pitch: pitch.max(0) as usize,
            })
            .collect();
        if self.streams.copy(frame, &planes)? {
            return Ok(picture);
        }
        let (width, height) = (frame.layout().width(), frame.layout().height());
        let mut host = Picture::allocate(self.format, width, height)?;
        host.copy_from(frame)?;
        // SAFETY: both pictures are valid, and of one size and format.
        AvError::check(unsafe { ffi::av_hwframe_transfer_data(picture.as_ptr(), host.as_ptr(), 0) })?;
        self.streams.wait()?;
        Ok(picture)
    }
}

impl Drop for CardSurfaces {
    fn drop(&mut self) {
        // SAFETY: allocated in `new`, and unreferenced only here. Surfaces and encoders hold references of
        // their own.
        unsafe { ffi::av_buffer_unref(&raw mut self.frames) };
    }
}
