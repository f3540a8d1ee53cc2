//! The parameters of kernels, as the kernel texts declare them, and the launches.
//!
//! ```text
//! struct Planes of common/plane.cuh     Planes here: the same fields at the same offsets, as a test asserts
//! kernel(Planes planes, ..)             launch: a pointer to each parameter, in the kernel's order
//! ```
#![allow(unsafe_code)]

use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::{LaunchDependency, TrackedStream};
use crate::engine::cuda::driver::device::check;
use crate::engine::cuda::driver::module::Function;
use cudarc::driver::sys;
use std::ffi::c_void;
use std::ops::Range;

/// The largest number of blocks that a grid has in y. Kernels loop over what is left.
const MAX_GRID_Y: usize = 65535;

/// `struct Channel` of common/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Channel {
    pub(crate) low: i64,
    pub(crate) high: i64,
    pub(crate) border: i32,
    /// -1: copied.
    pub(crate) fill: i32,
}

/// `struct Plane` of common/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Plane {
    pub(crate) source: u64,
    pub(crate) result: u64,
    pub(crate) original: u64,
    pub(crate) texture: u64,
    pub(crate) source_pitch: i64,
    pub(crate) result_pitch: i64,
    pub(crate) original_pitch: i64,
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) channel: [Channel; 4],
}

impl Plane {
    /// The addresses of the rows, of which the first begins at `begin`.
    fn rows(&self, begin: u64, pitch: i64) -> Range<u64> {
        begin..begin + pitch as u64 * self.height as u64
    }
}

/// `struct Planes` of common/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planes {
    pub(crate) at: [Plane; 4],
    pub(crate) shift: i32,
    pub(crate) max_value: i32,
    pub(crate) factor: u32,
    pub(crate) start: i64,
}

impl Planes {
    fn used(&self) -> impl Iterator<Item = &Plane> {
        self.at.iter().filter(|plane| plane.result != 0)
    }

    /// The addresses that a launch reads.
    fn read(&self) -> impl Iterator<Item = Range<u64>> {
        self.used().flat_map(|plane| {
            [
                plane.rows(plane.source, plane.source_pitch),
                plane.rows(plane.original, plane.original_pitch),
            ]
        })
    }

    /// The addresses that a launch writes.
    fn written(&self) -> impl Iterator<Item = Range<u64>> {
        self.used()
            .map(|plane| plane.rows(plane.result, plane.result_pitch))
    }
}

/// `struct Tiles` of tensor/tile/geometry.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tiles {
    pub(crate) fragments: u64,
    pub(crate) planes: i32,
    pub(crate) count: i32,
    pub(crate) row_shift: i32,
    pub(crate) is_ready: i32,
    pub(crate) row_start: i32,
    pub(crate) row_factor: u32,
}

/// `struct Surface` of scalar/surface.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Surface {
    pub(crate) luma: u64,
    pub(crate) chroma: u64,
    pub(crate) luma_pitch: i64,
    pub(crate) chroma_pitch: i64,
    pub(crate) plane: [u64; 3],
    pub(crate) pitch: [i64; 3],
    pub(crate) width: i32,
    pub(crate) height: i32,
}

/// `struct Rgb` of scalar/rgb.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Rgb {
    pub(crate) component: [u64; 3],
    pub(crate) pitch: [i64; 3],
    pub(crate) result: u64,
    pub(crate) result_pitch: i64,
    pub(crate) step: [i32; 3],
    pub(crate) zero: [i32; 3],
    pub(crate) factor: [[i32; 3]; 3],
    pub(crate) origin: [i32; 2],
    pub(crate) shift: i32,
    pub(crate) width: i32,
    pub(crate) height: i32,
}

/// Blocks and threads of a launch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) x: usize,
    /// Rows of blocks; the grid has at most [`MAX_GRID_Y`] of them, and kernels loop over the rest.
    pub(crate) y: usize,
    pub(crate) z: usize,
    pub(crate) block: (u32, u32),
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
}

/// `struct TensorMaps` of tensor/tile/load.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct TensorMaps {
    pub(crate) at: [sys::CUtensorMap; 4],
}

impl Default for TensorMaps {
    fn default() -> TensorMaps {
        TensorMaps {
            at: [sys::CUtensorMap { opaque: [0; 16] }; 4],
        }
    }
}

/// Launches a kernel. `parameters` has a pointer for each parameter that the kernel's text declares, in that
/// order, to a value of the same layout that the caller owns.
pub(super) fn launch(
    function: Function,
    grid: Grid,
    stream: sys::CUstream,
    parameters: &mut [*mut c_void],
) -> Result<(), EngineError> {
    // SAFETY: the driver reads as many pointers as the kernel declares parameters, and behind each as many
    // bytes as that parameter has. The list has one for each, to a live value of the parameter's own type: a
    // number, or a struct whose size and offsets a test compares with the text. They are copied in the call.
    check("launching a kernel", unsafe {
        sys::cuLaunchKernel(
            function.0,
            grid.x as u32,
            grid.y.clamp(1, MAX_GRID_Y) as u32,
            grid.z as u32,
            grid.block.0,
            grid.block.1,
            1,
            grid.shared as u32,
            stream,
            parameters.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    })
}

/// Launches a kernel that may begin before the launch before it has ended (programmatic dependent launch).
/// The kernel itself waits before it touches what that launch uses. `parameters` as in [`launch`].
pub(super) fn launch_early(
    function: Function,
    grid: Grid,
    stream: sys::CUstream,
    parameters: &mut [*mut c_void],
) -> Result<(), EngineError> {
    let mut attribute = sys::CUlaunchAttribute {
        id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
        pad: [0; 4],
        value: sys::CUlaunchAttributeValue {
            programmaticStreamSerializationAllowed: 1,
        },
    };
    let config = sys::CUlaunchConfig {
        gridDimX: grid.x as u32,
        gridDimY: grid.y.clamp(1, MAX_GRID_Y) as u32,
        gridDimZ: grid.z as u32,
        blockDimX: grid.block.0,
        blockDimY: grid.block.1,
        blockDimZ: 1,
        sharedMemBytes: grid.shared as u32,
        hStream: stream,
        attrs: &raw mut attribute,
        numAttrs: 1,
    };
    // SAFETY: the driver reads as many pointers as the kernel declares parameters, and behind each as many
    // bytes as that parameter has. The list has one for each, to a live value of the parameter's own type: a
    // number, or a struct whose size and offsets a test compares with the text. These, the configuration and
    // its one attribute live through the call, in which they are copied.
    check("launching a kernel", unsafe {
        sys::cuLaunchKernelEx(
            &raw const config,
            function.0,
            parameters.as_mut_ptr(),
            std::ptr::null_mut(),
        )
    })
}

/// Launches a kernel of scalar/direct.cu, scalar/separable.cu or scalar/combined.cu.
pub(crate) fn convolve(
    function: Function,
    grid: Grid,
    stream: sys::CUstream,
    mut planes: Planes,
    mut weights: u64,
) -> Result<(), EngineError> {
    let mut parameters = [(&raw mut planes).cast(), (&raw mut weights).cast()];
    launch(function, grid, stream, &mut parameters)
}

/// Launches the kernel of scalar/threshold.cu.
pub(crate) fn threshold(
    function: Function,
    grid: Grid,
    stream: sys::CUstream,
    mut planes: Planes,
) -> Result<(), EngineError> {
    launch(function, grid, stream, &mut [(&raw mut planes).cast()])
}

/// How a kernel of tensor/direct.cu, tensor/fused.cu or tensor/separable.cu is launched.
pub(crate) struct TilesLaunch {
    pub(crate) function: Function,
    /// Blocks; each takes several tiles if there are fewer blocks than tiles.
    pub(crate) blocks: usize,
    pub(crate) threads: u32,
    /// Bytes of shared memory.
    pub(crate) shared: usize,
    /// The further parameter of kernels that load by TMA.
    pub(crate) maps: Option<TensorMaps>,
    /// True if the card can begin a launch before earlier ones have ended.
    pub(crate) can_begin_early: bool,
}

impl TilesLaunch {
    pub(crate) fn launch(
        mut self,
        stream: &TrackedStream,
        mut planes: Planes,
        mut tiles: Tiles,
    ) -> Result<(), EngineError> {
        let grid = Grid {
            x: self.blocks,
            y: 1,
            z: 1,
            block: (self.threads, 1),
            shared: self.shared,
        };
        let LaunchDependency { is_early, is_ready } =
            stream.next(self.can_begin_early, planes.read(), planes.written());
        // If blocks have several tiles, blocks of the next launch would only take bandwidth from this
        // launch's loads.
        let has_one_tile_a_block = self.blocks == tiles.count as usize;
        tiles.is_ready = i32::from(is_ready && has_one_tile_a_block);
        let mut parameters = vec![(&raw mut planes).cast(), (&raw mut tiles).cast()];
        if let Some(maps) = &mut self.maps {
            parameters.push((&raw mut *maps).cast());
        }
        let launch = if is_early { launch_early } else { launch };
        launch(self.function, grid, stream.handle, &mut parameters)
    }
}

/// Launches `to_planes` of scalar/surface.cu, whose threads take 16 bytes of a row.
pub(crate) fn to_planes(
    function: Function,
    bytes_per_sample: usize,
    stream: sys::CUstream,
    mut surface: Surface,
) -> Result<(), EngineError> {
    let (width, height) = (surface.width as usize, surface.height as usize);
    let grid = Grid {
        x: (width.next_multiple_of(2) * bytes_per_sample).div_ceil(16 * 256),
        y: height.div_ceil(2),
        z: 1,
        block: (256, 1),
        shared: 0,
    };
    launch(function, grid, stream, &mut [(&raw mut surface).cast()])
}

/// Launches `to_rgb` of scalar/rgb.cu, whose threads compute four pixels each.
pub(crate) fn to_rgb(
    function: Function,
    block: (u32, u32),
    stream: sys::CUstream,
    mut rgb: Rgb,
) -> Result<(), EngineError> {
    let grid = Grid {
        x: (rgb.width as usize).div_ceil(4 * block.0 as usize),
        y: (rgb.height as usize).div_ceil(block.1 as usize),
        z: 1,
        block,
        shared: 0,
    };
    launch(function, grid, stream, &mut [(&raw mut rgb).cast()])
}

/// Launches `copy_words` of timing/peak.cu for `words` words of 16 bytes, to which nothing that is
/// enqueued on `stream` writes.
pub(crate) fn copy_words(
    function: Function,
    stream: &TrackedStream,
    can_begin_early: bool,
    (mut from, mut to): (u64, u64),
    words: usize,
) -> Result<(), EngineError> {
    const THREADS: usize = 256;
    /// WORDS of timing/peak.cu.
    const WORDS_A_THREAD: usize = 4;
    let grid = Grid {
        x: words.div_ceil(THREADS * WORDS_A_THREAD).max(1),
        y: 1,
        z: 1,
        block: (THREADS as u32, 1),
        shared: 0,
    };
    let mut count = words as i64;
    let mut parameters = [
        (&raw mut from).cast(),
        (&raw mut to).cast(),
        (&raw mut count).cast(),
    ];
    let rows = |begin: u64| std::iter::once(begin..begin + 16 * words as u64);
    let LaunchDependency { is_early, .. } = stream.next(can_begin_early, rows(from), rows(to));
    let launch = if is_early { launch_early } else { launch };
    launch(function, grid, stream.handle, &mut parameters)
}

/// Launches one of timing/peak.cu's arithmetic kernels; `out` has room for an integer of each thread.
pub(crate) fn bare_arithmetic(
    function: Function,
    stream: sys::CUstream,
    (blocks, threads): (u32, u32),
    mut out: u64,
    mut rounds: i32,
) -> Result<(), EngineError> {
    let grid = Grid {
        x: blocks as usize,
        y: 1,
        z: 1,
        block: (threads, 1),
        shared: 0,
    };
    // Any number; the compiler must not know it.
    let mut factor = 12_345_i32;
    let mut parameters = [
        (&raw mut out).cast(),
        (&raw mut rounds).cast(),
        (&raw mut factor).cast(),
    ];
    launch(function, grid, stream, &mut parameters)
}

/// Asserts the offsets of a struct's fields, and that its twin in the kernel text asserts the same.
#[cfg(test)]
macro_rules! mirrors {
    ($path:literal, $name:ident, $size:literal, $($field:ident: $offset:literal),+) => {
        let text = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/", $path));
        assert_eq!(size_of::<$name>(), $size);
        let line = concat!("static_assert(sizeof(", stringify!($name), ") == ", $size, ");");
        assert!(text.contains(line), "{line}");
        $(
            assert_eq!(std::mem::offset_of!($name, $field), $offset, stringify!($name.$field));
            let place = concat!(stringify!($name), ", ", stringify!($field), ") == ", $offset, ");");
            let line = format!("static_assert(OFFSET({place}");
            assert!(text.contains(&line), "{line}");
        )+
    };
}
#[cfg(test)]
pub(super) use mirrors;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_lie_in_memory_as_kernels_declare_them() {
        mirrors!("common/plane.cuh", Channel, 24, low: 0, high: 8, border: 16, fill: 20);
        mirrors!(
            "common/plane.cuh", Plane, 160, source: 0, result: 8, original: 16, texture: 24, source_pitch: 32,
            result_pitch: 40, original_pitch: 48, width: 56, height: 60, channel: 64
        );
        mirrors!(
            "common/plane.cuh", Planes, 664, at: 0, shift: 640, max_value: 644, factor: 648, start: 656
        );
        mirrors!(
            "tensor/tile/geometry.cuh", Tiles, 32, fragments: 0, planes: 8, count: 12, row_shift: 16,
            is_ready: 20, row_start: 24, row_factor: 28
        );
        mirrors!("tensor/tile/load.cuh", TensorMaps, 512, at: 0);
        mirrors!(
            "scalar/surface.cu", Surface, 88, luma: 0, chroma: 8, luma_pitch: 16, chroma_pitch: 24, plane: 32,
            pitch: 56, width: 80, height: 84
        );
        mirrors!(
            "scalar/rgb.cu", Rgb, 144, component: 0, pitch: 24, result: 48, result_pitch: 56, step: 64,
            zero: 76, factor: 88, origin: 124, shift: 132, width: 136, height: 140
        );
    }
}
