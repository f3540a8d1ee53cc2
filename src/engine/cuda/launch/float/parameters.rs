//! The parameters of kernels with floating-point sums, as their texts declare them, and the launches.

use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::{LaunchDependency, TrackedStream};
use crate::engine::cuda::driver::module::Function;
use crate::engine::cuda::launch::parameters::{Grid, launch, launch_early};
use cudarc::driver::sys;
use std::ops::Range;

/// `struct FloatChannel` of float/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatChannel {
    pub(crate) bias: f32,
    pub(crate) border: f32,
    pub(crate) level: f32,
    pub(crate) fill: i32,
}

/// `struct FloatPlane` of float/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatPlane {
    pub(crate) source: u64,
    pub(crate) result: u64,
    pub(crate) original: u64,
    pub(crate) alpha: u64,
    pub(crate) source_pitch: i64,
    pub(crate) result_pitch: i64,
    pub(crate) original_pitch: i64,
    pub(crate) alpha_pitch: i64,
    pub(crate) texture: u64,
    pub(crate) alpha_texture: u64,
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) channel: [FloatChannel; 4],
}

impl FloatPlane {
    /// The addresses of the rows, of which the first begins at `begin`.
    fn rows(&self, begin: u64, pitch: i64) -> Range<u64> {
        begin..begin + pitch as u64 * self.height as u64
    }
}

/// `struct FloatPlanes` of float/plane.cuh.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatPlanes {
    pub(crate) at: [FloatPlane; 4],
    pub(crate) threshold: f32,
    pub(crate) scale: f32,
    pub(crate) gain: f32,
    pub(crate) most: f32,
    pub(crate) aligned: i32,
    pub(crate) is_ready: i32,
}

impl FloatPlanes {
    /// The planes that a launch works on.
    fn used(&self) -> impl Iterator<Item = &FloatPlane> {
        self.at.iter().filter(|plane| plane.result != 0)
    }

    /// The addresses that a launch reads.
    fn read(&self) -> impl Iterator<Item = Range<u64>> {
        self.used().flat_map(|plane| {
            [
                plane.rows(plane.source, plane.source_pitch),
                plane.rows(plane.original, plane.original_pitch),
                plane.rows(plane.alpha, plane.alpha_pitch),
            ]
        })
    }

    /// The addresses that a launch writes.
    fn written(&self) -> impl Iterator<Item = Range<u64>> {
        self.used()
            .map(|plane| plane.rows(plane.result, plane.result_pitch))
    }
}

/// `struct FloatRows` of float/alpha.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatRows {
    pub(crate) before: u64,
    pub(crate) weighted: u64,
    pub(crate) convolved: u64,
    pub(crate) after: u64,
    pub(crate) before_pitch: i64,
    pub(crate) weighted_pitch: i64,
    pub(crate) convolved_pitch: i64,
    pub(crate) after_pitch: i64,
}

/// `struct FloatPicture` of float/alpha.cu.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FloatPicture {
    pub(crate) at: [FloatRows; 4],
    pub(crate) bias: [f32; 4],
    pub(crate) fill: [i32; 4],
    pub(crate) gain: f32,
    pub(crate) threshold: f32,
    pub(crate) most: f32,
    pub(crate) width: i32,
    pub(crate) height: i32,
    pub(crate) normalise: i32,
    pub(crate) filter_alpha: i32,
    pub(crate) unused: i32,
}

/// Launches a convolution kernel of kernels/float with the addresses of one or two lists of weights. `waits`:
/// it may begin before earlier launches have ended, for which it waits itself.
pub(super) fn convolve_floats(
    function: Function,
    grid: Grid,
    stream: &TrackedStream,
    waits: bool,
    mut planes: FloatPlanes,
    weights: &mut [u64],
) -> Result<(), EngineError> {
    let dependency = match waits {
        true => stream.next(true, planes.read(), planes.written()),
        false => {
            stream.after_all();
            LaunchDependency {
                is_early: false,
                is_ready: false,
            }
        }
    };
    planes.is_ready = i32::from(dependency.is_ready);
    let mut parameters = vec![(&raw mut planes).cast()];
    parameters.extend(
        weights
            .iter_mut()
            .map(|address| std::ptr::from_mut(address).cast()),
    );
    let launch = if dependency.is_early { launch_early } else { launch };
    launch(function, grid, stream.handle, &mut parameters)
}

/// Launches a kernel of float/alpha.cu, whose threads take a pixel each.
pub(super) fn weight_by_alpha(
    function: Function,
    stream: sys::CUstream,
    mut picture: FloatPicture,
) -> Result<(), EngineError> {
    let grid = Grid {
        x: (picture.width as usize).div_ceil(256),
        y: picture.height as usize,
        z: 1,
        block: (256, 1),
        shared: 0,
    };
    launch(function, grid, stream, &mut [(&raw mut picture).cast()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cuda::launch::parameters::mirrors;

    #[test]
    fn structs_lie_in_memory_as_kernels_declare_them() {
        mirrors!("float/plane.cuh", FloatChannel, 16, bias: 0, border: 4, level: 8, fill: 12);
        mirrors!(
            "float/plane.cuh", FloatPlane, 152, source: 0, result: 8, original: 16, alpha: 24, source_pitch:
            32, result_pitch: 40, original_pitch: 48, alpha_pitch: 56, texture: 64, alpha_texture: 72, width:
            80, height: 84, channel: 88
        );
        mirrors!(
            "float/plane.cuh", FloatPlanes, 632, at: 0, threshold: 608, scale: 612, gain: 616, most: 620,
            aligned: 624, is_ready: 628
        );
        mirrors!(
            "float/alpha.cu", FloatRows, 64, before: 0, weighted: 8, convolved: 16, after: 24, before_pitch:
            32, weighted_pitch: 40, convolved_pitch: 48, after_pitch: 56
        );
        mirrors!(
            "float/alpha.cu", FloatPicture, 320, at: 0, bias: 256, fill: 272, gain: 288, threshold: 292,
            most: 296, width: 300, height: 304, normalise: 308, filter_alpha: 312
        );
    }
}
