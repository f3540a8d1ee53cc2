//! A plan of floating-point samples with its kernels compiled, loaded and given their weights, and what it
//! enqueues for a frame.
//!
//! ```text
//! for each step, in order, on one stream:
//!   premultiply -> both passes in one launch, or row pass -> column pass, or whole masks -> unpremultiply
//!   source         weighted                     intermediate  convolved                     result
//! ```
//!
//! Without colour under alpha, the convolution reads the source and writes the result. Gaussians that fit no
//! mask are six passes. `parameters` has the kernels' structs as their texts declare them, `weighted` the
//! steps of colour under alpha of integer samples.

mod parameters;
pub(super) mod weighted;

use super::parameters::Grid;
use super::pyramid::for_each_pass;
use super::{Request, StepBuffers, check_threads, plane_list};
use crate::engine::EngineError;
use crate::engine::cuda::driver::memory::DeviceMemory;
use crate::engine::cuda::driver::module::{Function, Module};
use crate::engine::cuda::driver::pictures::picture::{DevicePlane, DevicePlanes};
use crate::engine::cuda::driver::pictures::planes::copy_plane;
use crate::engine::cuda::kernels::float::{FloatTuned, accepts, float_alpha_recipe, float_groups};
use crate::engine::cuda::select::float::{choose_float, float_job};
use crate::filter::{
    FloatAlpha, FloatChannelStep, FloatCombining, FloatConvolve, FloatKernel, FloatPlan, FloatPyramid,
    FloatStep, PyramidGrid,
};
use crate::frame::{Layout, Plane};
use parameters::{
    FloatChannel, FloatPicture, FloatPlane, FloatPlanes, FloatRows, convolve_floats, weight_by_alpha,
};
use std::ffi::CStr;

/// A chain ready to run on frames of one format of floating-point samples.
pub(crate) struct FloatLaunchPlan {
    pub(super) plan: FloatPlan,
    steps: Vec<FloatStepLaunch>,
}

struct FloatStepLaunch {
    groups: Vec<FloatGroup>,
    alpha: Option<AlphaKernels>,
}

/// Planes that are interleaved in the same way.
pub(super) struct FloatGroup {
    planes: Vec<usize>,
    pub(super) tuned: FloatTuned,
    pub(super) passes: Vec<FloatPass>,
    /// True if its launches may begin before earlier ones have ended: they wait for these themselves.
    waits: bool,
    /// Held for the functions and the constant memory.
    _module: Module,
}

/// One launch.
pub(super) struct FloatPass {
    function: Function,
    /// One list of weights, or two; `None` for those in constant memory.
    weights: Vec<Option<DeviceMemory>>,
}

struct AlphaKernels {
    premultiply: Function,
    unpremultiply: Function,
    _module: Module,
}

impl FloatLaunchPlan {
    pub(super) fn new(plan: FloatPlan, request: &Request<'_>) -> Result<FloatLaunchPlan, EngineError> {
        request.device.bind()?;
        if !plan.steps.iter().all(accepts) {
            return Err(EngineError::Unfit(
                "CUDA filters all or none of the components of a plane that interleaves more than four; use \
                 --engine cpu"
                    .to_owned(),
            ));
        }
        let steps = plan.steps.iter().map(|step| {
            let groups = float_groups(step).into_iter().map(|(interleaving, planes)| {
                let job = float_job(step, &plan, interleaving);
                let (tuned, why) = choose_float(&job, &request.context)?;
                let (columns, rows) = step.kernel.size();
                let format = plan.format;
                request.explain(format!(
                    "{format}, {columns}x{rows} mask, {}: {why}",
                    plane_list(&planes)
                ));
                FloatGroup::new(&step.kernel, tuned, planes, request)
            });
            Ok(FloatStepLaunch {
                groups: groups.collect::<Result<_, EngineError>>()?,
                alpha: AlphaKernels::new(step, &plan, request)?,
            })
        });
        let steps = steps.collect::<Result<_, EngineError>>()?;
        Ok(FloatLaunchPlan { plan, steps })
    }

    /// True if some step has an intermediate in device memory.
    pub(super) fn has_intermediate(&self) -> bool {
        let mut groups = self.steps.iter().flat_map(|step| &step.groups);
        groups.any(FloatGroup::has_intermediate)
    }

    /// The steps that are Gaussians which fit no mask.
    pub(super) fn pyramids(&self) -> impl Iterator<Item = PyramidGrid> {
        self.plan.steps.iter().filter_map(|step| step.kernel.grid())
    }

    /// True if some step weights colour by alpha.
    pub(super) fn uses_alpha(&self) -> bool {
        self.steps.iter().any(|step| step.alpha.is_some())
    }

    pub(super) fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Launches and copies of a frame.
    pub(super) fn launch_count(&self) -> usize {
        let steps = self.steps.iter().zip(&self.plan.steps);
        let of_step = |(launch, step): (&FloatStepLaunch, &FloatStep)| {
            let launches: usize = launch.groups.iter().map(|group| group.passes.len()).sum();
            launches
                + match launch.alpha {
                    Some(_) => 2,
                    None => step.planes.iter().filter(|plane| is_copied(plane)).count(),
                }
        };
        steps.map(of_step).sum()
    }

    /// Threads of a block of the first kernel; `None` if nothing is convolved.
    pub(super) fn block(&self) -> Option<(u32, u32)> {
        let mut groups = self.steps.iter().flat_map(|step| &step.groups);
        groups.next().map(|group| group.tuned.shape.block)
    }

    /// Samples that a frame's kernels convolve.
    pub(super) fn convolved_samples(&self, planes: &[Plane]) -> u64 {
        let of_plane = |(plane, channels): (&Plane, &Vec<FloatChannelStep>)| {
            let convolved = channels.iter().filter(|c| c.convolved().is_some()).count();
            (plane.width * plane.height * convolved) as u64
        };
        let of_step = |step: &FloatStep| planes.iter().zip(&step.planes).map(of_plane).sum::<u64>();
        self.plan.steps.iter().map(of_step).sum()
    }

    /// Enqueues step `index`.
    pub(super) fn run(&self, index: usize, buffers: &StepBuffers<'_>) -> Result<(), EngineError> {
        let StepBuffers {
            layout,
            source,
            result,
            scratch,
            stream,
        } = *buffers;
        let launch = &self.steps[index];
        let step = &self.plan.steps[index];
        let mut enqueuer = FloatStepEnqueuer {
            kernel: &step.kernel,
            constants: FloatPlanes {
                threshold: step.threshold,
                ..FloatPlanes::default()
            },
            channels: &|plane| channels(&step.planes[plane]),
            alpha: &|_| None,
            buffers: *buffers,
        };
        let Some((alpha, kernels)) = step.alpha.as_ref().zip(launch.alpha.as_ref()) else {
            for (plane, channels) in step.planes.iter().enumerate() {
                if is_copied(channels) {
                    let size = (layout.row_bytes(plane), layout.planes()[plane].height);
                    copy_plane(source[plane], result[plane], size, stream.after_all())?;
                }
            }
            return enqueuer.convolve(&launch.groups);
        };
        let (weighted, convolved) = (&scratch.weighted, &scratch.sums);
        let mut picture = picture(layout, alpha, source, convolved, result);
        picture.threshold = step.threshold;
        picture.bias = [alpha.bias; 4];
        for (rows, weighted) in picture.at.iter_mut().zip(weighted) {
            rows.weighted = weighted.pointer;
            rows.weighted_pitch = weighted.pitch as i64;
        }
        weight_by_alpha(kernels.premultiply, stream.after_all(), picture)?;
        enqueuer.buffers.source = weighted;
        enqueuer.buffers.result = convolved;
        enqueuer.convolve(&launch.groups)?;
        weight_by_alpha(kernels.unpremultiply, stream.after_all(), picture)
    }
}

/// The parameters of a plane's components.
fn channels(plane: &[FloatChannelStep]) -> [FloatChannel; 4] {
    let mut channels = [FloatChannel::default(); 4];
    for (entry, what) in channels.iter_mut().zip(plane) {
        if let Some(&FloatConvolve { bias, border, .. }) = what.convolved() {
            *entry = FloatChannel {
                bias,
                border,
                ..FloatChannel::default()
            };
        }
    }
    channels
}

fn is_copied(channels: &[FloatChannelStep]) -> bool {
    channels.iter().all(|c| c.convolved().is_none())
}

impl AlphaKernels {
    /// Those of a step that weights colour by alpha.
    fn new(
        step: &FloatStep,
        plan: &FloatPlan,
        request: &Request<'_>,
    ) -> Result<Option<AlphaKernels>, EngineError> {
        if step.alpha.is_none() {
            return Ok(None);
        }
        let image = float_alpha_recipe(step, plan.format).image(request.device, request.cache)?;
        let module = Module::load(request.device, &image)?;
        Ok(Some(AlphaKernels {
            premultiply: module.function(c"premultiply")?,
            unpremultiply: module.function(c"unpremultiply")?,
            _module: module,
        }))
    }
}

impl FloatGroup {
    /// True if its passes have an intermediate in device memory.
    pub(super) fn has_intermediate(&self) -> bool {
        self.passes.len() == 2
    }

    pub(super) fn new(
        kernel: &FloatKernel,
        tuned: FloatTuned,
        planes: Vec<usize>,
        request: &Request<'_>,
    ) -> Result<FloatGroup, EngineError> {
        // One module a step and group: constant memory belongs to the module, and two steps' weights must not
        // share it.
        let image = tuned.recipe.image(request.device, request.cache)?;
        let module = Module::load(request.device, &image)?;
        let pass = |name: &CStr, lists: &[(&CStr, &[f32])]| {
            let function = module.function(name)?;
            function.allow_shared(tuned.shared, &request.device.info)?;
            check_threads(function, tuned.shape)?;
            let weights = lists.iter().map(|&(array, weights)| {
                module.set_weights(tuned.constant_weights.then_some(array), weights)
            });
            Ok::<_, EngineError>(FloatPass {
                function,
                weights: weights.collect::<Result<_, _>>()?,
            })
        };
        let passes = match kernel {
            FloatKernel::Direct(mask) => vec![pass(c"direct", &[(c"mask_weights", &mask.weights)])?],
            FloatKernel::Combined { masks, .. } => {
                let all: Vec<f32> = masks.iter().flat_map(|mask| &mask.weights).copied().collect();
                vec![pass(c"combined", &[(c"mask_weights", &all)])?]
            }
            FloatKernel::Separable { row, column } => {
                let (row, column) = ((c"row_weights", &row[..]), (c"column_weights", &column[..]));
                match tuned.is_tiled {
                    true => vec![pass(c"separable", &[row, column])?],
                    false => vec![pass(c"row_pass", &[row])?, pass(c"column_pass", &[column])?],
                }
            }
            FloatKernel::Pyramid(kernel) => {
                let decimation = [(c"decimation", &kernel.decimate[..])];
                let low = [(c"low_weights", &kernel.low[..])];
                let interpolation = [(c"interpolation", kernel.interpolate.as_flattened())];
                vec![
                    pass(c"decimate_rows", &decimation)?,
                    pass(c"decimate_columns", &decimation)?,
                    pass(c"filter_rows", &low)?,
                    pass(c"filter_columns", &low)?,
                    pass(c"interpolate_columns", &interpolation)?,
                    pass(c"interpolate_rows", &interpolation)?,
                ]
            }
        };
        Ok(FloatGroup {
            planes,
            passes,
            waits: tuned.is_tiled && request.device.begins_launches_early()?,
            tuned,
            _module: module,
        })
    }
}

/// Enqueues one step of one frame.
pub(super) struct FloatStepEnqueuer<'a> {
    pub(super) kernel: &'a FloatKernel,
    /// The parameters of every launch, without the planes.
    pub(super) constants: FloatPlanes,
    /// The parameters of a plane's components.
    pub(super) channels: &'a dyn Fn(usize) -> [FloatChannel; 4],
    /// The plane with the alpha by which the samples of a plane are multiplied while they are loaded.
    pub(super) alpha: &'a dyn Fn(usize) -> Option<usize>,
    pub(super) buffers: StepBuffers<'a>,
}

impl FloatStepEnqueuer<'_> {
    pub(super) fn convolve(&self, groups: &[FloatGroup]) -> Result<(), EngineError> {
        let StepBuffers { source, result, .. } = self.buffers;
        let kept: &dyn Fn(f32) -> f32 = &|border| border;
        for group in groups {
            let launch = |pass, planes, border| self.launch(group, pass, self.grid(group), planes, border);
            match (self.kernel, &group.passes[..]) {
                (FloatKernel::Separable { row, .. }, [row_pass, column_pass]) => {
                    let between = &self.buffers.scratch.intermediate.wide;
                    launch(row_pass, (source, between), kept)?;
                    launch(column_pass, (between, result), &|border| {
                        outside_after_rows(row, border)
                    })?;
                }
                (FloatKernel::Pyramid(kernel), passes) => {
                    self.pyramid(group, kernel, passes)?;
                }
                (_, passes) => {
                    for pass in passes {
                        launch(pass, (source, result), kept)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The passes of a pyramid.
    fn pyramid(
        &self,
        group: &FloatGroup,
        kernel: &FloatPyramid,
        passes: &[FloatPass],
    ) -> Result<(), EngineError> {
        for_each_pass(
            passes,
            kernel.grid,
            &group.planes,
            &self.buffers,
            |kernel_of_pass, pass| {
                let border: &dyn Fn(f32) -> f32 = match pass.index {
                    1 => &|border| kernel.decimated_constant(border),
                    _ => &|border| border,
                };
                self.launch(group, kernel_of_pass, pass.grid, (pass.from, pass.to), border)
            },
        )
    }

    fn launch(
        &self,
        group: &FloatGroup,
        pass: &FloatPass,
        grid: Grid,
        (source, result): (&DevicePlanes, &DevicePlanes),
        border: &dyn Fn(f32) -> f32,
    ) -> Result<(), EngineError> {
        let mut planes = FloatPlanes {
            scale: match self.kernel {
                FloatKernel::Combined {
                    combining: FloatCombining::Magnitude(scale),
                    ..
                } => *scale,
                _ => 1.0,
            },
            ..self.constants
        };
        let original = self.buffers.source;
        let mut is_aligned = true;
        for (entry, &plane) in planes.at.iter_mut().zip(&group.planes) {
            let geometry = &self.buffers.layout.planes()[plane];
            let mut channel = (self.channels)(plane);
            for entry in &mut channel {
                entry.border = border(entry.border);
            }
            let alpha = (self.alpha)(plane).map(|plane| source[plane]).unwrap_or_default();
            is_aligned &= [source[plane], result[plane], alpha]
                .iter()
                .all(DevicePlane::is_aligned);
            *entry = FloatPlane {
                source: source[plane].pointer,
                result: result[plane].pointer,
                original: original[plane].pointer,
                alpha: alpha.pointer,
                source_pitch: source[plane].pitch as i64,
                result_pitch: result[plane].pitch as i64,
                original_pitch: original[plane].pitch as i64,
                alpha_pitch: alpha.pitch as i64,
                texture: source[plane].texture,
                alpha_texture: alpha.texture,
                width: geometry.width as i32,
                height: geometry.height as i32,
                channel,
            };
        }
        planes.aligned = i32::from(is_aligned);
        let mut weights: Vec<u64> = pass
            .weights
            .iter()
            .map(|memory| memory.as_ref().map_or(0, DeviceMemory::pointer))
            .collect();
        convolve_floats(
            pass.function,
            grid,
            self.buffers.stream,
            group.waits,
            planes,
            &mut weights,
        )
    }

    /// Blocks for every sample of the group's planes.
    fn grid(&self, group: &FloatGroup) -> Grid {
        let planes = group
            .planes
            .iter()
            .map(|&plane| &self.buffers.layout.planes()[plane]);
        let samples = planes.clone().map(|plane| plane.width * plane.channels).max();
        let rows = planes.map(|plane| plane.height).max();
        let shape = group.tuned.shape;
        Grid {
            x: samples.unwrap_or(0).div_ceil(group.tuned.samples()),
            y: rows.unwrap_or(0).div_ceil(shape.rows()),
            z: group.planes.len(),
            block: shape.block,
            shared: group.tuned.shared,
        }
    }
}

/// The parameters of the kernels that weight colour by alpha, without thresholds and biases.
pub(super) fn picture(
    layout: &Layout,
    alpha: &FloatAlpha,
    before: &DevicePlanes,
    convolved: &DevicePlanes,
    after: &DevicePlanes,
) -> FloatPicture {
    let mut picture = FloatPicture {
        gain: alpha.gain,
        // Formats with alpha have no subsampled planes.
        width: layout.width() as i32,
        height: layout.height() as i32,
        normalise: i32::from(alpha.normalise),
        filter_alpha: i32::from(alpha.filter_alpha),
        ..FloatPicture::default()
    };
    let planes = layout.planes().len();
    for (plane, rows) in picture.at.iter_mut().enumerate().take(planes) {
        *rows = FloatRows {
            before: before[plane].pointer,
            convolved: convolved[plane].pointer,
            after: after[plane].pointer,
            before_pitch: before[plane].pitch as i64,
            convolved_pitch: convolved[plane].pitch as i64,
            after_pitch: after[plane].pitch as i64,
            ..FloatRows::default()
        };
    }
    picture
}

/// The row pass's result for pixels that all hold the border's value.
fn outside_after_rows(row: &[f32], border: f32) -> f32 {
    row.iter().fold(0.0, |sum, weight| weight.mul_add(border, sum))
}
