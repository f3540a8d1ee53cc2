//! What a frame's steps enqueue: launches, and copies and fills of planes that no kernel works on.
#![allow(unsafe_code)]

use super::parameters::{self, Channel, Grid, Plane, Planes, TensorMaps, Tiles, TilesLaunch};
use super::scratch::Scratch;
use super::tensor_pass::TensorPass;
use super::{Group, Kernels, PassKernel, StepLaunch, sizes};
use crate::engine::EngineError;
use crate::engine::cuda::driver::dependency::Sequence;
use crate::engine::cuda::driver::device::check;
use crate::engine::cuda::driver::memory::{DeviceMemory, no_copy};
use crate::engine::cuda::driver::picture::{DevicePlane, DevicePlanes};
use crate::engine::cuda::driver::tensor_map::{TileSize, tensor_map};
use crate::engine::cuda::kernels::plane_group::{PlaneWork, division, is_wide, plane_work};
use crate::engine::cuda::kernels::scalar::{BlockShape, PYRAMID_BLOCK, THRESHOLD_BLOCK};
use crate::engine::cuda::kernels::tensor::{self, Loader};
use crate::filter::{
    ChannelStep, Convolve, Division, Kernel, PyramidGrid, PyramidKernel, SeparableKernel, Step,
};
use crate::frame::{Layout, PixelFormat};
use cudarc::driver::sys;

/// What a pass reads outside the plane, where the border holds a constant.
type Border<'a> = dyn Fn(&Convolve) -> i64 + 'a;

/// One step of one frame, or two.
pub(super) struct StepEnqueuer<'a> {
    pub(super) format: PixelFormat,
    pub(super) step: &'a Step,
    /// The step that shares its launch.
    pub(super) next: Option<&'a Step>,
    pub(super) layout: &'a Layout,
    pub(super) sequence: &'a Sequence,
}

impl StepEnqueuer<'_> {
    pub(super) fn convolve(
        &self,
        prepared: &StepLaunch,
        source: &DevicePlanes,
        result: &DevicePlanes,
        scratch: &Scratch,
    ) -> Result<(), EngineError> {
        for (plane, channels) in self.step.planes.iter().enumerate() {
            match plane_work(channels) {
                PlaneWork::Copy => {
                    copy_plane(self.layout, plane, source[plane], result[plane], self.sequence)?;
                }
                PlaneWork::Fill(value) => self.fill(plane, value, result[plane])?,
                PlaneWork::Kernel(_) => {}
            }
        }
        for group in &prepared.groups {
            let (shape, passes) = match &group.kernels {
                Kernels::Tensor(pass) => {
                    self.tiles(group, pass, source, result)?;
                    continue;
                }
                Kernels::Passes { shape, passes, .. } => (*shape, passes),
            };
            let last = division(&self.step.kernel);
            let pass = |index: usize, (division, start), (source, result, original), border: &Border<'_>| {
                let mut planes = self.planes(group, division, source, result, original, &|c| {
                    self.channel(c, border)
                });
                planes.start = start;
                self.pass(group, shape, &passes[index], planes)
            };
            let kept: &Border<'_> = &|c| i64::from(c.border);
            match &self.step.kernel {
                Kernel::Direct(_) | Kernel::Combined(_) => {
                    pass(0, (last, 0), (source, result, source), kept)?;
                }
                Kernel::Separable(kernel) => {
                    let between = &scratch.intermediate[usize::from(kernel.wide)];
                    let first = Division::by_power_of_two(kernel.row.shift);
                    let start = kernel.row.start();
                    pass(0, (first, start), (source, between, source), kept)?;
                    pass(1, (last, 0), (between, result, source), &|c| {
                        outside_after_rows(kernel, c)
                    })?;
                }
                Kernel::Pyramid(kernel) => {
                    self.pyramid(group, (kernel, passes), (source, result), scratch)?;
                }
                // Has no groups here: `WeightedLaunch` enqueues it.
                Kernel::Weighted(_) => {}
            }
        }
        Ok(())
    }

    /// The passes of a pyramid.
    fn pyramid(
        &self,
        group: &Group,
        (kernel, passes): (&PyramidKernel, &[PassKernel]),
        (source, result): (&DevicePlanes, &DevicePlanes),
        scratch: &Scratch,
    ) -> Result<(), EngineError> {
        let planes = || group.planes.iter().map(|&plane| &self.layout.planes()[plane]);
        let ways = pyramid_ways(source, &scratch.numbers, result);
        for (index, (pass, (from, to))) in passes.iter().zip(ways).enumerate() {
            let grid = pyramid_grid(kernel.grid, index, planes());
            let division = Division::by_power_of_two(kernel.last_shift());
            let planes = self.planes(group, division, from, to, source, &|c| {
                self.channel(c, &|c| i64::from(c.border))
            });
            parameters::convolve(pass.function, grid, self.sequence.after_all(), planes, 0)?;
        }
        Ok(())
    }

    /// One launch for both passes, for the whole mask, or for two masks.
    fn tiles(
        &self,
        group: &Group,
        pass: &TensorPass,
        source: &DevicePlanes,
        result: &DevicePlanes,
    ) -> Result<(), EngineError> {
        // What makes the result; of two steps the first one's division is the pass's.
        let last = division(&self.next.unwrap_or(self.step).kernel);
        let channel = |what: &ChannelStep| match what {
            // The whole bias is one number here, which is added to the sum or to what is made of it.
            ChannelStep::Convolve(c) => {
                let bias = tensor::bias(&self.step.kernel, c);
                let (low, high) = match &self.step.kernel {
                    Kernel::Combined(kernel) => (kernel.start(0, c.level), bias),
                    _ => (bias, 0),
                };
                Channel {
                    low,
                    high,
                    border: i32::from(c.border),
                    fill: -1,
                }
            }
            other => self.channel(other, &|_| 0),
        };
        let mut planes = self.planes(group, last, source, result, source, &channel);
        if let Some(next) = self.next {
            for (entry, &plane) in planes.at.iter_mut().zip(&group.planes) {
                if let Some(c) = next.planes[plane][0].convolved() {
                    entry.channel[0].high = tensor::bias(&next.kernel, c);
                }
            }
        }
        let count = pass.kernel.tiles(sizes(self.layout, &group.planes));
        let aligned =
            (group.planes.iter()).all(|&plane| source[plane].is_aligned() && result[plane].is_aligned());
        let loader = pass.loader(aligned, count);
        let maps = match (loader, pass.kernel.streamed) {
            (Loader::Tma, Some(tile)) => Some(self.maps(group, source, tile)?),
            _ => None,
        };
        let function = pass.function(loader)?;
        let tiles = Tiles {
            fragments: pass.fragments.pointer(),
            planes: group.planes.len() as i32,
            count: count as i32,
            row_shift: pass.kernel.between.shift as i32,
            is_ready: 0,
            row_start: pass.kernel.between.start,
            row_factor: pass.kernel.between.factor.unwrap_or(0),
        };
        let launch = TilesLaunch {
            function: function.function,
            blocks: count.min(function.resident),
            threads: pass.kernel.threads,
            shared: pass.kernel.shared,
            maps,
            can_begin_early: pass.can_begin_early,
        };
        launch.launch(self.sequence, planes, tiles)
    }

    /// The tensor maps of the group's planes.
    fn maps(&self, group: &Group, source: &DevicePlanes, tile: TileSize) -> Result<TensorMaps, EngineError> {
        let mut maps = TensorMaps::default();
        let planes = group.planes.iter().zip(sizes(self.layout, &group.planes));
        for (map, (&plane, (row_bytes, rows))) in maps.at.iter_mut().zip(planes) {
            *map = tensor_map(source[plane], row_bytes, rows, tile)?;
        }
        Ok(maps)
    }

    /// The parameters of a launch for the planes of `group`.
    fn planes(
        &self,
        group: &Group,
        division: Division,
        source: &DevicePlanes,
        result: &DevicePlanes,
        original: &DevicePlanes,
        channel: &dyn Fn(&ChannelStep) -> Channel,
    ) -> Planes {
        let mut planes = Planes {
            shift: division.shift() as i32,
            factor: division.factor().unwrap_or(0),
            max_value: self.format.max_value() as i32,
            ..Planes::default()
        };
        for (entry, &plane) in planes.at.iter_mut().zip(&group.planes) {
            let geometry = &self.layout.planes()[plane];
            let mut channels = [Channel::default(); 4];
            for (c, what) in channels.iter_mut().zip(&self.step.planes[plane]) {
                *c = channel(what);
            }
            *entry = Plane {
                source: source[plane].pointer,
                result: result[plane].pointer,
                original: original[plane].pointer,
                texture: source[plane].texture,
                source_pitch: source[plane].pitch as i64,
                result_pitch: result[plane].pitch as i64,
                original_pitch: original[plane].pitch as i64,
                width: geometry.width as i32,
                height: geometry.height as i32,
                channel: channels,
            };
        }
        planes
    }

    /// One launch of a scalar kernel.
    fn pass(
        &self,
        group: &Group,
        shape: BlockShape,
        pass: &PassKernel,
        planes: Planes,
    ) -> Result<(), EngineError> {
        let grid = self.grid(group, shape, pass.shared);
        let weights = pass.weights.as_ref().map_or(0, DeviceMemory::pointer);
        parameters::convolve(pass.function, grid, self.sequence.after_all(), planes, weights)
    }

    /// Blocks for every sample of the group's planes.
    fn grid(&self, group: &Group, shape: BlockShape, shared: usize) -> Grid {
        let sizes = group.planes.iter().map(|&plane| &self.layout.planes()[plane]);
        let samples = sizes.clone().map(|g| g.width * group.interleaving.channels).max();
        let rows = sizes.map(|g| g.height).max();
        Grid {
            x: samples.unwrap_or(0).div_ceil(shape.block.0 as usize),
            y: rows.unwrap_or(0).div_ceil(shape.rows()),
            z: group.planes.len(),
            block: shape.block,
            shared,
        }
    }

    /// Sets samples of `result` that differ too little from `original` to what they were.
    pub(super) fn keep_small_differences(
        &self,
        prepared: &StepLaunch,
        original: &DevicePlanes,
        result: &DevicePlanes,
    ) -> Result<(), EngineError> {
        let shape = BlockShape {
            block: THRESHOLD_BLOCK,
            outputs: 1,
        };
        for group in &prepared.groups {
            if let Some(kernel) = &group.threshold {
                let none = Division::by_power_of_two(0);
                let planes = self.planes(group, none, result, result, original, &|_| Channel::default());
                let grid = self.grid(group, shape, 0);
                parameters::threshold(kernel.function, grid, self.sequence.after_all(), planes)?;
            }
        }
        Ok(())
    }

    fn channel(&self, what: &ChannelStep, border: &dyn Fn(&Convolve) -> i64) -> Channel {
        match what {
            ChannelStep::Copy => Channel {
                fill: -1,
                ..Channel::default()
            },
            ChannelStep::Fill(value) => Channel {
                fill: i32::from(*value),
                ..Channel::default()
            },
            ChannelStep::Convolve(c) => {
                // A shifted 32-bit sum lies within 2^30, so a bias beyond this saturates every pixel whatever
                // it is exactly.
                let most = (1 << 30) + (1 << 17);
                let high = if is_wide(self.step, self.format) {
                    c.high
                } else {
                    c.high.clamp(-most, most)
                };
                Channel {
                    low: c.low,
                    high,
                    border: border(c) as i32,
                    fill: match &self.step.kernel {
                        Kernel::Combined(_) => i32::from(c.level),
                        _ => -1,
                    },
                }
            }
        }
    }

    fn fill(&self, plane: usize, value: u16, result: DevicePlane) -> Result<(), EngineError> {
        let geometry = &self.layout.planes()[plane];
        let samples = geometry.width * geometry.channels;
        // SAFETY: the plane holds `height` rows of `samples` samples at its pitch.
        check("filling a plane on the CUDA device", unsafe {
            match self.format.bytes_per_sample() {
                1 => sys::cuMemsetD2D8Async(
                    result.pointer,
                    result.pitch,
                    value as u8,
                    samples,
                    geometry.height,
                    self.sequence.after_all(),
                ),
                _ => sys::cuMemsetD2D16Async(
                    result.pointer,
                    result.pitch,
                    value << self.format.shift(),
                    samples,
                    geometry.height,
                    self.sequence.after_all(),
                ),
            }
        })
    }
}

/// From where to where each pass of a pyramid goes.
pub(super) fn pyramid_ways<'a>(
    source: &'a DevicePlanes,
    [one, other]: &'a [DevicePlanes; 2],
    result: &'a DevicePlanes,
) -> [(&'a DevicePlanes, &'a DevicePlanes); 6] {
    [
        (source, one),
        (one, other),
        (other, one),
        (one, other),
        (other, one),
        (one, result),
    ]
}

/// The blocks of pass `index` of a pyramid of these planes, as common/pyramid.cuh has it.
pub(super) fn pyramid_grid<'a>(
    grid: PyramidGrid,
    index: usize,
    planes: impl Iterator<Item = &'a crate::frame::Plane>,
) -> Grid {
    let (mut numbers, mut rows, mut layers) = (0, 0, 0);
    for plane in planes {
        let (width, height) = (plane.width, plane.height);
        let size = match index {
            0 => (width, grid.decimated(height)),
            1 => (grid.decimated(width), grid.decimated(height)),
            2 => (grid.low_pixels(width), grid.decimated(height)),
            3 => (grid.low_pixels(width), grid.low_pixels(height)),
            4 => (width, grid.low_pixels(height)),
            _ => (width, height),
        };
        (numbers, rows) = (numbers.max(size.0 * plane.channels), rows.max(size.1));
        layers += 1;
    }
    let (across, down) = PYRAMID_BLOCK;
    Grid {
        x: numbers.div_ceil(across as usize),
        y: rows.div_ceil(down as usize),
        z: layers,
        block: PYRAMID_BLOCK,
        shared: 0,
    }
}

/// Enqueues a copy of a plane.
pub(super) fn copy_plane(
    layout: &Layout,
    plane: usize,
    source: DevicePlane,
    result: DevicePlane,
    sequence: &Sequence,
) -> Result<(), EngineError> {
    let copy = sys::CUDA_MEMCPY2D {
        srcMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
        srcDevice: source.pointer,
        srcPitch: source.pitch,
        dstMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
        dstDevice: result.pointer,
        dstPitch: result.pitch,
        WidthInBytes: layout.row_bytes(plane),
        Height: layout.planes()[plane].height,
        ..no_copy()
    };
    // SAFETY: both planes hold as many rows of as many bytes at their pitches.
    check("copying a plane on the CUDA device", unsafe {
        sys::cuMemcpy2DAsync_v2(&raw const copy, sequence.after_all())
    })
}

/// The row pass's result for pixels that all hold the border's value.
fn outside_after_rows(kernel: &SeparableKernel, c: &Convolve) -> i64 {
    let sum: i64 = kernel.row.weights.iter().map(|&q| i64::from(q)).sum();
    (i64::from(c.border) * sum + kernel.row.start()) >> kernel.row.shift
}
