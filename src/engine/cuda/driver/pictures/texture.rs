//! Texture objects over rows in linear memory: integer texels, point sampling, coordinates clamped by the
//! hardware.
#![allow(unsafe_code)]

use crate::engine::EngineError;
use crate::engine::cuda::driver::device::{Device, DeviceInfo, check};
use crate::frame::PixelFormat;
use cudarc::driver::sys;
use std::sync::Arc;

/// The alignment of a texture's start and rows, in bytes. It covers every card's texture and pitch alignment.
pub(crate) const ALIGNMENT: usize = 512;

/// How a texel is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Texel {
    U8,
    U16,
    I16,
    I32,
}

/// The texel of a format's samples.
pub(crate) fn sample_texel(format: PixelFormat) -> Texel {
    match format.bytes_per_sample() {
        1 => Texel::U8,
        _ => Texel::U16,
    }
}

/// Rows that a texture shows. Each texel is one sample, so that interleaved components are neighbours.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) pointer: sys::CUdeviceptr,
    pub(crate) texel: Texel,
    /// Samples in a row.
    pub(crate) width: usize,
    pub(crate) height: usize,
    /// Bytes from one row to the next.
    pub(crate) pitch: usize,
}

/// A texture object.
pub(crate) struct Texture {
    device: Arc<Device>,
    object: sys::CUtexObject,
}

/// True if a texture can show a plane of this size.
pub(crate) fn fits(info: &DeviceInfo, width: usize, height: usize, pitch: usize) -> bool {
    let (max_width, max_height, max_pitch) = info.max_texture;
    width <= max_width && height <= max_height && pitch <= max_pitch
}

impl Texture {
    pub(crate) fn new(device: &Arc<Device>, rows: Rows) -> Result<Texture, EngineError> {
        use sys::CUarray_format_enum as Format;
        device.bind()?;
        let format = match rows.texel {
            Texel::U8 => Format::CU_AD_FORMAT_UNSIGNED_INT8,
            Texel::U16 => Format::CU_AD_FORMAT_UNSIGNED_INT16,
            Texel::I16 => Format::CU_AD_FORMAT_SIGNED_INT16,
            Texel::I32 => Format::CU_AD_FORMAT_SIGNED_INT32,
        };
        let resource = sys::CUDA_RESOURCE_DESC {
            resType: sys::CUresourcetype_enum::CU_RESOURCE_TYPE_PITCH2D,
            res: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1 {
                pitch2D: sys::CUDA_RESOURCE_DESC_st__bindgen_ty_1__bindgen_ty_4 {
                    devPtr: rows.pointer,
                    format,
                    numChannels: 1,
                    width: rows.width,
                    height: rows.height,
                    pitchInBytes: rows.pitch,
                },
            },
            flags: 0,
        };
        let clamp = sys::CUaddress_mode_enum::CU_TR_ADDRESS_MODE_CLAMP;
        let point = sys::CUfilter_mode_enum::CU_TR_FILTER_MODE_POINT;
        let sampling = sys::CUDA_TEXTURE_DESC {
            addressMode: [clamp; 3],
            filterMode: point,
            flags: sys::CU_TRSF_READ_AS_INTEGER,
            maxAnisotropy: 0,
            mipmapFilterMode: point,
            mipmapLevelBias: 0.0,
            minMipmapLevelClamp: 0.0,
            maxMipmapLevelClamp: 0.0,
            borderColor: [0.0; 4],
            reserved: [0; 12],
        };
        let mut object = 0;
        // SAFETY: both descriptions are complete and live through the call; the memory outlives the texture,
        // since its owner drops the texture first.
        check("making a texture on the CUDA device", unsafe {
            sys::cuTexObjectCreate(
                &raw mut object,
                &raw const resource,
                &raw const sampling,
                std::ptr::null(),
            )
        })?;
        Ok(Texture {
            device: Arc::clone(device),
            object,
        })
    }

    pub(crate) fn object(&self) -> u64 {
        self.object
    }
}

impl Drop for Texture {
    fn drop(&mut self) {
        if self.device.bind().is_ok() {
            // SAFETY: made in `new`, destroyed only here.
            let _ = unsafe { sys::cuTexObjectDestroy(self.object) };
        }
    }
}
