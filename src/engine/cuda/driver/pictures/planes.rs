//! Copies and fills of planes in the card's memory, for planes that no kernel works on. They are enqueued on
//! the stream of the kernels, and leave the bytes between rows as they are.
#![allow(unsafe_code)]

use super::picture::DevicePlane;
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::check;
use crate::engine::cuda::driver::memory::no_copy;
use cudarc::driver::sys;

/// Enqueues a copy of `rows` rows of `row_bytes` bytes.
pub(crate) fn copy_plane(
    source: DevicePlane,
    result: DevicePlane,
    (row_bytes, rows): (usize, usize),
    stream: sys::CUstream,
) -> Result<(), EngineError> {
    let copy = sys::CUDA_MEMCPY2D {
        srcMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
        srcDevice: source.pointer,
        srcPitch: source.pitch,
        dstMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
        dstDevice: result.pointer,
        dstPitch: result.pitch,
        WidthInBytes: row_bytes,
        Height: rows,
        ..no_copy()
    };
    // SAFETY: both planes hold `rows` rows of `row_bytes` bytes at their pitches.
    check("copying a plane on the CUDA device", unsafe {
        sys::cuMemcpy2DAsync_v2(&raw const copy, stream)
    })
}

/// Enqueues a fill: sets `samples` samples of each of `rows` rows to `value`, a stored sample of
/// `sample_bytes` bytes.
pub(crate) fn fill_plane(
    result: DevicePlane,
    (samples, rows): (usize, usize),
    (value, sample_bytes): (u16, usize),
    stream: sys::CUstream,
) -> Result<(), EngineError> {
    // SAFETY: the plane holds `rows` rows of `samples` samples at its pitch.
    check("filling a plane on the CUDA device", unsafe {
        match sample_bytes {
            1 => sys::cuMemsetD2D8Async(result.pointer, result.pitch, value as u8, samples, rows, stream),
            _ => sys::cuMemsetD2D16Async(result.pointer, result.pitch, value, samples, rows, stream),
        }
    })
}
