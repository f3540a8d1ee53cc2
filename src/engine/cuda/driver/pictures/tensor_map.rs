//! Tensor maps (TMA): one instruction copies a whole tile of a plane to shared memory.
//!
//! To TMA a plane is a matrix of elements of 8 bytes, the largest that there are, since a tile has at most
//! 256 of them across: 2048 bytes. What lies outside the plane arrives as zeros; kernels overwrite it by the
//! border.
#![allow(unsafe_code)]

use super::picture::DevicePlane;
use crate::engine::EngineError;
use crate::engine::cuda::driver::device::check;
use cudarc::driver::sys;
use std::mem::MaybeUninit;

/// Bytes of an element of a tensor map.
const ELEMENT: usize = 8;

/// The most elements across and rows of a tile.
const MOST: usize = 256;

/// The tile that TMA copies: bytes across, a multiple of 16, and rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TileSize {
    pub(crate) bytes: usize,
    pub(crate) rows: usize,
}

impl TileSize {
    /// True if one instruction can copy the tile.
    pub(crate) fn fits(self) -> bool {
        self.bytes <= ELEMENT * MOST && self.rows <= MOST
    }
}

/// The driver's description of a plane for TMA. Rows extend to the next multiple of 16 bytes; beyond them TMA
/// fills in zeros.
pub(crate) fn tensor_map(
    place: DevicePlane,
    row_bytes: usize,
    rows: usize,
    tile: TileSize,
) -> Result<sys::CUtensorMap, EngineError> {
    let size = [(row_bytes.next_multiple_of(16) / ELEMENT) as u64, rows as u64];
    let pitch = [place.pitch as u64];
    let tile = [(tile.bytes / ELEMENT) as u32, tile.rows as u32];
    let steps = [1, 1];
    let mut map = MaybeUninit::uninit();
    // SAFETY: the driver reads two sizes, one pitch, two tile sizes and two steps, and writes the map; the
    // plane's memory is not touched.
    check("describing a plane for copies of tiles", unsafe {
        sys::cuTensorMapEncodeTiled(
            map.as_mut_ptr(),
            sys::CUtensorMapDataType_enum::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            2,
            place.pointer as *mut _,
            size.as_ptr(),
            pitch.as_ptr(),
            tile.as_ptr(),
            steps.as_ptr(),
            sys::CUtensorMapInterleave_enum::CU_TENSOR_MAP_INTERLEAVE_NONE,
            sys::CUtensorMapSwizzle_enum::CU_TENSOR_MAP_SWIZZLE_NONE,
            sys::CUtensorMapL2promotion_enum::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            sys::CUtensorMapFloatOOBfill_enum::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    })?;
    // SAFETY: the driver has written the map, or `check` has returned.
    Ok(unsafe { map.assume_init() })
}
