//! Enqueues a frame's steps: launches, and copies and fills of planes that no kernel works on.
//!
//! ```text
//! for each plane of a step    copied, filled, or one of a group's
//! for each group              tiles of all planes in one launch (tensor cores), or one launch a pass
//! at last                     threshold, in place on the result
//! ```
//!
//! Here the structs of `parameters` are filled for a frame: addresses, pitches, sizes, biases, borders.

use super::parameters::{self, Channel, Grid, Plane, Planes, TensorMaps, Tiles, TilesLaunch};
use super::pyramid::for_each_pass;
use super::tensor_pass::TensorPass;
use super::{Group, Kernels, PassKernel, StepBuffers, StepLaunch, sizes};
use crate::engine::EngineError;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::pictures::picture::DevicePlanes;
use crate::engine::cuda::driver::pictures::planes::{copy_plane, fill_plane};
use crate::engine::cuda::driver::pictures::tensor_map::{TileSize, tensor_map};
use crate::engine::cuda::kernels::plane_group::{PlaneWork, division, is_wide, plane_work};
use crate::engine::cuda::kernels::scalar::{BlockShape, THRESHOLD_BLOCK};
use crate::engine::cuda::kernels::tensor::{self, Loader};
use crate::filter::{ChannelStep, Convolve, Division, Kernel, PyramidKernel, SeparableKernel, Step};
use crate::frame::PixelFormat;

/// The value that a pass reads outside the plane, if the border is a constant.
type Border<'a> = dyn Fn(&Convolve) -> i64 + 'a;

/// Enqueues one step of one frame, or two steps that share a launch.
pub(super) struct StepEnqueuer<'a> {
    pub(super) format: PixelFormat,
    pub(super) step: &'a Step,
    /// The step that shares its launch.
    pub(super) next: Option<&'a Step>,
    pub(super) buffers: StepBuffers<'a>,
}

impl StepEnqueuer<'_> {
    pub(super) fn convolve(&self, launch: &StepLaunch) -> Result<(), EngineError> {
        let StepBuffers {
            layout,
            source,
            result,
            scratch,
            stream,
        } = self.buffers;
        for (plane, channels) in self.step.planes.iter().enumerate() {
            match plane_work(channels) {
                PlaneWork::Copy => {
                    let size = (layout.row_bytes(plane), layout.planes()[plane].height);
                    copy_plane(source[plane], result[plane], size, stream.after_all())?;
                }
                PlaneWork::Fill(value) => {
                    let geometry = &layout.planes()[plane];
                    let size = (geometry.width * geometry.channels, geometry.height);
                    let stored = (value << self.format.shift(), self.format.bytes_per_sample());
                    fill_plane(result[plane], size, stored, stream.after_all())?;
                }
                PlaneWork::Kernel(_) => {}
            }
        }
        for group in &launch.groups {
            let (shape, passes) = match &group.kernels {
                Kernels::Tensor(pass) => {
                    self.tiles(group, pass)?;
                    continue;
                }
                Kernels::Passes { shape, passes, .. } => (*shape, passes),
            };
            let last = division(&self.step.kernel);
            let pass = |index: usize, (division, start), (from, to), border: &Border<'_>| {
                let mut planes = self.planes(group, division, from, to, &|c| self.channel(c, border));
                planes.start = start;
                self.pass(group, shape, &passes[index], planes)
            };
            let kept: &Border<'_> = &|c| i64::from(c.border);
            match &self.step.kernel {
                Kernel::Direct(_) | Kernel::Combined(_) => {
                    pass(0, (last, 0), (source, result), kept)?;
                }
                Kernel::Separable(kernel) => {
                    let between = match kernel.wide {
                        true => &scratch.intermediate.wide,
                        false => &scratch.intermediate.narrow,
                    };
                    let first = Division::by_power_of_two(kernel.row.shift);
                    let start = kernel.row.start();
                    pass(0, (first, start), (source, between), kept)?;
                    pass(1, (last, 0), (between, result), &|c| {
                        outside_after_rows(kernel, c)
                    })?;
                }
                Kernel::Pyramid(kernel) => {
                    self.pyramid(group, kernel, passes)?;
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
        kernel: &PyramidKernel,
        passes: &[PassKernel],
    ) -> Result<(), EngineError> {
        for_each_pass(
            passes,
            kernel.grid,
            &group.planes,
            &self.buffers,
            |kernel_of_pass, pass| {
                let division = Division::by_power_of_two(kernel.last_shift());
                let planes = self.planes(group, division, pass.from, pass.to, &|c| {
                    self.channel(c, &|c| i64::from(c.border))
                });
                let stream = self.buffers.stream.after_all();
                parameters::convolve(kernel_of_pass.function, pass.grid, stream, planes, 0)
            },
        )
    }

    /// One launch for both passes, for the whole mask, or for two masks.
    fn tiles(&self, group: &Group, pass: &TensorPass) -> Result<(), EngineError> {
        let StepBuffers {
            layout,
            source,
            result,
            ..
        } = self.buffers;
        // The division that gives the result; that of the first of two steps is part of `pass.kernel`.
        let last = division(&self.next.unwrap_or(self.step).kernel);
        let channel = |what: &ChannelStep| match what {
            // Here the whole bias is one number, which is added to the sum or to the number that sums are
            // combined to.
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
        let mut planes = self.planes(group, last, source, result, &channel);
        if let Some(next) = self.next {
            for (entry, &plane) in planes.at.iter_mut().zip(&group.planes) {
                if let Some(c) = next.planes[plane][0].convolved() {
                    entry.channel[0].high = tensor::bias(&next.kernel, c);
                }
            }
        }
        let count = pass.kernel.tiles(sizes(layout, &group.planes));
        let aligned =
            (group.planes.iter()).all(|&plane| source[plane].is_aligned() && result[plane].is_aligned());
        let loader = pass.loader(aligned, count);
        let maps = match (loader, pass.kernel.streamed) {
            (Loader::Tma, Some(tile)) => Some(self.maps(group, tile)?),
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
        launch.launch(self.buffers.stream, planes, tiles)
    }

    /// The tensor maps of the group's planes.
    fn maps(&self, group: &Group, tile: TileSize) -> Result<TensorMaps, EngineError> {
        let mut maps = TensorMaps::default();
        let planes = group.planes.iter().zip(sizes(self.buffers.layout, &group.planes));
        for (map, (&plane, (row_bytes, rows))) in maps.at.iter_mut().zip(planes) {
            *map = tensor_map(self.buffers.source[plane], row_bytes, rows, tile)?;
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
        channel: &dyn Fn(&ChannelStep) -> Channel,
    ) -> Planes {
        let mut planes = Planes {
            shift: division.shift() as i32,
            factor: division.factor().unwrap_or(0),
            max_value: self.format.max_value() as i32,
            ..Planes::default()
        };
        let original = self.buffers.source;
        for (entry, &plane) in planes.at.iter_mut().zip(&group.planes) {
            let geometry = &self.buffers.layout.planes()[plane];
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
        parameters::convolve(
            pass.function,
            grid,
            self.buffers.stream.after_all(),
            planes,
            weights,
        )
    }

    /// Blocks for every sample of the group's planes.
    fn grid(&self, group: &Group, shape: BlockShape, shared: usize) -> Grid {
        let sizes = group
            .planes
            .iter()
            .map(|&plane| &self.buffers.layout.planes()[plane]);
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

    /// Restores samples of the result that differ too little from the source.
    pub(super) fn restore_small_differences(&self, launch: &StepLaunch) -> Result<(), EngineError> {
        let StepBuffers { result, stream, .. } = self.buffers;
        let shape = BlockShape {
            block: THRESHOLD_BLOCK,
            outputs: 1,
        };
        for group in &launch.groups {
            if let Some(kernel) = &group.threshold {
                let none = Division::by_power_of_two(0);
                let planes = self.planes(group, none, result, result, &|_| Channel::default());
                let grid = self.grid(group, shape, 0);
                parameters::threshold(kernel.function, grid, stream.after_all(), planes)?;
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
                // A shifted 32-bit sum lies within 2^30, so that any bias beyond `most` saturates every
                // pixel.
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
}

/// The row pass's result for pixels that all hold the border's value.
fn outside_after_rows(kernel: &SeparableKernel, c: &Convolve) -> i64 {
    let sum: i64 = kernel.row.weights.iter().map(|&q| i64::from(q)).sum();
    (i64::from(c.border) * sum + kernel.row.start()) >> kernel.row.shift
}
