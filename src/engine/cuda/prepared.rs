//! A plan with its kernels compiled, loaded and given their weights: what runs on the card for each frame.
#![allow(unsafe_code)]

use super::compile::cache::Cache;
use super::driver::dependency::Sequence;
use super::driver::device::{Device, DeviceInfo, check};
use super::driver::memory::{DeviceMemory, no_copy};
use super::driver::module::{Function, Module};
use super::driver::picture::{Place, Places};
use super::driver::tensor_map::{TileSize, tile_map};
use super::kernels::plane_group::{Interleaving, Job, PlaneWork, groups, is_wide, plane_work};
use super::kernels::scalar::{Shape, Tuned, alpha_recipe};
use super::kernels::tensor::fused::{PLAIN, Pair};
use super::kernels::tensor::{self, Loader, TensorKernel};
use super::launch::{self, Channel, Grid, Picture, Plane, Planes, Rows, TileMaps, Tiles, TilesLaunch};
use super::select::{Choice, Part, Terms, choose, parts};
use super::tensor_pass::TensorPass;
use crate::engine::{EXPLANATION, EngineError};
use crate::filter::{AlphaUse, ChannelStep, Convolve, Kernel, Plan, SeparableKernel, Step};
use crate::frame::{Layout, PixelFormat};
use cudarc::driver::sys;
use std::sync::Arc;

/// Pictures that only the kernels see. They are shared by all slots, since kernels run one after another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Scratch {
    /// Between row pass and column pass, for 16-bit and for 32-bit values.
    pub(super) intermediate: [Places; 2],
    /// Colour multiplied by alpha.
    pub(super) premultiplied: Places,
}

/// A chain ready to run on frames of one format.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    steps: Vec<PreparedStep>,
}

/// A step of the plan, or two that share a launch.
struct PreparedStep {
    /// The first step's place in the plan.
    index: usize,
    is_pair: bool,
    groups: Vec<Group>,
    alpha: Option<AlphaKernels>,
}

struct Group {
    interleaving: Interleaving,
    planes: Vec<usize>,
    kernels: Kernels,
}

enum Kernels {
    /// A launch a pass.
    Passes {
        shape: Shape,
        passes: Vec<PassKernel>,
        /// Held for the functions and the constant memory.
        _module: Module,
    },
    Tensor(Box<TensorPass>),
}

struct PassKernel {
    function: Function,
    shared: usize,
    /// Weights in global memory, for the variants that keep them there.
    weights: Option<DeviceMemory>,
}

struct AlphaKernels {
    premultiply: Function,
    unpremultiply: Function,
    _module: Module,
}

/// How a plan is to be prepared.
pub(super) struct Request<'a> {
    pub(super) device: &'a Arc<Device>,
    pub(super) cache: &'a Cache,
    pub(super) terms: Terms<'a>,
}

impl Prepared {
    pub(super) fn new(plan: Plan, request: &Request<'_>) -> Result<Prepared, EngineError> {
        request.device.bind()?;
        let steps = parts(&plan, &request.terms)
            .into_iter()
            .map(|part| PreparedStep::new(&plan, part, request));
        let steps = steps.collect::<Result<_, _>>()?;
        // Copies from ordinary memory may still be under way when their call returns, and our streams do not wait for them.
        // SAFETY: the context is current.
        check("loading the kernels", unsafe { sys::cuCtxSynchronize() })?;
        Ok(Prepared { plan, steps })
    }

    /// True if some step multiplies colour by alpha in a launch of its own.
    pub(super) fn uses_alpha(&self) -> bool {
        self.steps.iter().any(|step| step.alpha.is_some())
    }

    /// True if some step has an intermediate of 32 bits (`wide`) or of 16.
    pub(super) fn has_intermediate(&self, wide: bool) -> bool {
        self.steps.iter().any(|prepared| {
            let mut groups = prepared.groups.iter();
            matches!(&self.plan.steps[prepared.index].kernel, Kernel::Separable(k) if k.wide == wide)
                && groups.any(|group| matches!(group.kernels, Kernels::Passes { .. }))
        })
    }

    /// Steps, of which two that share a launch are one: how often a picture is written.
    pub(super) fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Launches, copies and fills of a frame.
    pub(super) fn launch_count(&self) -> usize {
        let of_group = |group: &Group| match &group.kernels {
            Kernels::Passes { passes, .. } => passes.len(),
            Kernels::Tensor(_) => 1,
        };
        let is_plain = |channels: &&Vec<ChannelStep>| !matches!(plane_work(channels), PlaneWork::Kernel(_));
        let of_step = |prepared: &PreparedStep| {
            let alpha = if prepared.alpha.is_some() { 2 } else { 0 };
            let kernels: usize = prepared.groups.iter().map(of_group).sum();
            let planes = &self.plan.steps[prepared.index].planes;
            alpha + kernels + planes.iter().filter(is_plain).count()
        };
        self.steps.iter().map(of_step).sum()
    }

    /// Threads of a block of the first kernel, across and down; `None` if no kernel convolves.
    pub(super) fn block(&self) -> Option<(u32, u32)> {
        let mut groups = self.steps.iter().flat_map(|step| &step.groups);
        groups.next().map(|group| match &group.kernels {
            Kernels::Passes { shape, .. } => shape.block,
            Kernels::Tensor(pass) => (pass.kernel.threads, 1),
        })
    }

    /// Enqueues step `index`: `source` is read, `result` is written, and they are not the same memory.
    pub(super) fn run(
        &self,
        index: usize,
        layout: &Layout,
        source: &Places,
        result: &Places,
        scratch: &Scratch,
        sequence: &Sequence,
    ) -> Result<(), EngineError> {
        let prepared = &self.steps[index];
        let work = Work {
            format: self.plan.format,
            step: &self.plan.steps[prepared.index],
            next: prepared.is_pair.then(|| &self.plan.steps[prepared.index + 1]),
            layout,
            sequence,
        };
        let Some((alpha, kernels)) = work.step.alpha.as_ref().zip(prepared.alpha.as_ref()) else {
            return work.convolve(prepared, source, result, scratch);
        };
        let weighted = &scratch.premultiplied;
        work.weight_by_alpha(kernels.premultiply, alpha, source, weighted)?;
        work.convolve(prepared, weighted, result, scratch)?;
        work.weight_by_alpha(kernels.unpremultiply, alpha, source, result)
    }
}

impl PreparedStep {
    fn new(plan: &Plan, part: Part<'_>, request: &Request<'_>) -> Result<PreparedStep, EngineError> {
        let (index, step, format) = (part.index, &plan.steps[part.index], plan.format);
        if let Some((pair, kernel)) = part.pair {
            return Ok(PreparedStep {
                index,
                is_pair: true,
                groups: vec![Group::of_pair(&pair, &kernel, (step, format), request)?],
                alpha: None,
            });
        }
        let groups = groups(step)
            .into_iter()
            .map(|(interleaving, planes)| Group::new(step, format, interleaving, planes, request));
        let groups = groups.collect::<Result<Vec<_>, _>>()?;
        let alpha = match step.alpha {
            Some(_) if !groups.iter().all(Group::weighs) => {
                let image = alpha_recipe(format).image(request.device, request.cache)?;
                let module = Module::load(request.device, &image)?;
                Some(AlphaKernels {
                    premultiply: module.function(c"premultiply")?,
                    unpremultiply: module.function(c"unpremultiply")?,
                    _module: module,
                })
            }
            _ => None,
        };
        Ok(PreparedStep {
            index,
            is_pair: false,
            groups,
            alpha,
        })
    }
}

impl Group {
    fn new(
        step: &Step,
        format: PixelFormat,
        interleaving: Interleaving,
        planes: Vec<usize>,
        request: &Request<'_>,
    ) -> Result<Group, EngineError> {
        let limits = &request.device.info;
        let job = Job {
            step,
            format,
            interleaving,
            planes: &planes,
        };
        let (choice, why) = choose(&job, &request.terms)?;
        tracing::info!(
            target: EXPLANATION,
            "{format}, {}x{} mask, {}: {why}",
            step.kernel.size().0,
            step.kernel.size().1,
            plane_list(&planes)
        );
        let kernels = match choice {
            Choice::Tensor(kernel) => {
                let work = (step, format, interleaving);
                let fitted = |sizes: &[_]| tensor::tile_size::fitted(&kernel, work, sizes, limits);
                Kernels::Tensor(Box::new(tensor_pass(
                    &kernel,
                    fitted,
                    (format, &planes),
                    request,
                )?))
            }
            Choice::Plain(tuned) => {
                // One module a step and group: constant memory belongs to the module, and two steps' weights must not share it.
                let image = tuned.recipe.image(request.device, request.cache)?;
                let module = Module::load(request.device, &image)?;
                Kernels::Passes {
                    shape: tuned.shape,
                    passes: passes(step, &tuned, &module, limits)?,
                    _module: module,
                }
            }
        };
        Ok(Group {
            interleaving,
            planes,
            kernels,
        })
    }

    /// True if the convolution itself weighs colours by alpha.
    fn weighs(&self) -> bool {
        matches!(&self.kernels, Kernels::Tensor(pass) if pass.kernel.weighs)
    }

    /// Both steps of `pair`, of which `step` is the first.
    fn of_pair(
        pair: &Pair<'_>,
        kernel: &TensorKernel,
        (step, format): (&Step, PixelFormat),
        request: &Request<'_>,
    ) -> Result<Group, EngineError> {
        let planes: Vec<usize> = (0..step.planes.len()).collect();
        let [(first_width, first_height), (width, height)] = pair.sizes();
        tracing::info!(
            target: EXPLANATION,
            "{format}, {first_width}x{first_height} mask and {width}x{height} mask, {}: {} in tiles of {}x{} bytes: both filters in one launch, whose products are \
             few enough (--no-fuse keeps them apart)",
            plane_list(&planes),
            kernel.source().name(),
            kernel.tile.0,
            kernel.tile.1,
        );
        let fitted = |sizes: &[_]| pair.fitted(kernel, sizes, &request.device.info);
        let pass = tensor_pass(kernel, fitted, (format, &planes), request)?;
        Ok(Group {
            interleaving: PLAIN,
            planes,
            kernels: Kernels::Tensor(Box::new(pass)),
        })
    }
}

/// Bytes across and rows of each of these planes.
fn sizes<'a>(layout: &'a Layout, planes: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let size = |&plane: &usize| (layout.row_bytes(plane), layout.planes()[plane].height);
    planes.iter().map(size)
}

/// The pass with tiles for frames of the size that `request` names, as `fitted` makes them for planes of such sizes, and with the code that such frames need.
fn tensor_pass(
    kernel: &TensorKernel,
    fitted: impl FnOnce(&[(usize, usize)]) -> Option<TensorKernel>,
    (format, planes): (PixelFormat, &[usize]),
    request: &Request<'_>,
) -> Result<TensorPass, EngineError> {
    let (width, height) = request.terms.size;
    let layout = Layout::new(format, width, height, 1)?;
    let sizes: Vec<_> = sizes(&layout, planes).collect();
    let kernel = match fitted(&sizes) {
        Some(fitted) => {
            tracing::info!(
                target: EXPLANATION,
                "tiles of {}x{} bytes, for frames of {width}x{height} pixels to keep more of the card busy",
                fitted.tile.0,
                fitted.tile.1,
            );
            fitted
        }
        None => kernel.clone(),
    };
    let tiles = kernel.tiles(sizes);
    let pass = TensorPass::new(kernel, request.device, request.cache)?;
    pass.function(pass.loader(true, tiles))?;
    Ok(pass)
}

fn plane_list(planes: &[usize]) -> String {
    let numbers: Vec<String> = planes.iter().map(usize::to_string).collect();
    let noun = if planes.len() == 1 { "plane" } else { "planes" };
    format!("{noun} {}", numbers.join(", "))
}

/// The launches of kernels that work on one value at a time.
fn passes(
    step: &Step,
    tuned: &Tuned,
    module: &Module,
    limits: &DeviceInfo,
) -> Result<Vec<PassKernel>, EngineError> {
    let pass = |name, array, weights: &[i32], shared| {
        let function = module.function(name)?;
        function.allow_shared(shared, limits)?;
        check_threads(function, tuned.shape)?;
        Ok::<_, EngineError>(PassKernel {
            function,
            shared,
            weights: module.set_weights(tuned.constant_weights.then_some(array), weights)?,
        })
    };
    Ok(match &step.kernel {
        Kernel::Direct(k) => vec![pass(c"direct", c"mask_weights", &k.weights, tuned.shared[0])?],
        Kernel::Separable(k) => vec![
            pass(c"row_pass", c"row_weights", &k.row.weights, tuned.shared[0])?,
            pass(
                c"column_pass",
                c"column_weights",
                &k.column.weights,
                tuned.shared[1],
            )?,
        ],
    })
}

/// Refuses a block with more threads than the compiled kernel's registers allow.
fn check_threads(function: Function, shape: Shape) -> Result<(), EngineError> {
    let mut most = 0;
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    // SAFETY: the function belongs to a live module and the pointer is to a live integer.
    check("asking for the limits of a kernel", unsafe {
        sys::cuFuncGetAttribute(&raw mut most, attribute, function.0)
    })?;
    let threads = shape.block.0 * shape.block.1;
    if threads > most.max(0) as u32 {
        return Err(EngineError::Unavailable(format!(
            "--block {}x{} has {threads} threads; the kernel's registers allow {most} in a block",
            shape.block.0, shape.block.1
        )));
    }
    Ok(())
}

/// One step of one frame, or two.
struct Work<'a> {
    format: PixelFormat,
    step: &'a Step,
    /// The step that shares its launch.
    next: Option<&'a Step>,
    layout: &'a Layout,
    sequence: &'a Sequence,
}

impl Work<'_> {
    fn convolve(
        &self,
        prepared: &PreparedStep,
        source: &Places,
        result: &Places,
        scratch: &Scratch,
    ) -> Result<(), EngineError> {
        for (plane, channels) in self.step.planes.iter().enumerate() {
            match plane_work(channels) {
                PlaneWork::Copy => self.copy(plane, source[plane], result[plane])?,
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
            let pass = |index: usize, shift, source, result, original, border: &dyn Fn(&Convolve) -> i64| {
                let planes = self.planes(group, shift, source, result, original, &|c| {
                    self.channel(c, border)
                });
                self.pass(group, shape, &passes[index], planes)
            };
            match &self.step.kernel {
                Kernel::Direct(kernel) => {
                    pass(0, kernel.shift, source, result, source, &|c| i64::from(c.border))?;
                }
                Kernel::Separable(kernel) => {
                    let between = &scratch.intermediate[usize::from(kernel.wide)];
                    pass(0, kernel.row.shift, source, between, source, &|c| {
                        i64::from(c.border)
                    })?;
                    pass(1, kernel.column.shift, between, result, source, &|c| {
                        outside_after_rows(kernel, c)
                    })?;
                }
            }
        }
        Ok(())
    }

    /// One launch for both passes, for the whole mask, or for two masks.
    fn tiles(
        &self,
        group: &Group,
        pass: &TensorPass,
        source: &Places,
        result: &Places,
    ) -> Result<(), EngineError> {
        // What makes the result; of two steps the first one's shift is the pass's.
        let last = self.next.unwrap_or(self.step);
        let shift = match &last.kernel {
            Kernel::Direct(kernel) => kernel.shift,
            Kernel::Separable(kernel) => kernel.column.shift,
        };
        let channel = |what: &ChannelStep| match what {
            // The whole bias is one number here.
            ChannelStep::Convolve(c) => Channel {
                low: tensor::bias(&self.step.kernel, c),
                high: 0,
                border: i32::from(c.border),
                fill: -1,
            },
            // Colours beyond the edges are opaque where alpha is weighed with.
            ChannelStep::Copy if pass.kernel.weighs => Channel {
                border: self.format.max_value() as i32,
                ..self.channel(what, &|_| 0)
            },
            other => self.channel(other, &|_| 0),
        };
        let mut planes = self.planes(group, shift, source, result, source, &channel);
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
            (Loader::Streamed, Some(tile)) => Some(self.maps(group, source, tile)?),
            _ => None,
        };
        let function = pass.function(loader)?;
        let tiles = Tiles {
            fragments: pass.fragments.pointer(),
            planes: group.planes.len() as i32,
            count: count as i32,
            row_shift: pass.kernel.row_shift as i32,
            is_ready: 0,
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

    /// The group's planes as the card's copies of whole tiles take them.
    fn maps(&self, group: &Group, source: &Places, tile: TileSize) -> Result<TileMaps, EngineError> {
        let mut maps = TileMaps::default();
        let planes = group.planes.iter().zip(sizes(self.layout, &group.planes));
        for (map, (&plane, (row_bytes, rows))) in maps.at.iter_mut().zip(planes) {
            *map = tile_map(source[plane], row_bytes, rows, tile)?;
        }
        Ok(maps)
    }

    /// The parameters of a launch for the planes of `group`.
    fn planes(
        &self,
        group: &Group,
        shift: u32,
        source: &Places,
        result: &Places,
        original: &Places,
        channel: &dyn Fn(&ChannelStep) -> Channel,
    ) -> Planes {
        let mut planes = Planes {
            shift: shift as i32,
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

    /// One launch of a kernel that works on one value at a time.
    fn pass(
        &self,
        group: &Group,
        shape: Shape,
        pass: &PassKernel,
        planes: Planes,
    ) -> Result<(), EngineError> {
        let sizes = group.planes.iter().map(|&plane| &self.layout.planes()[plane]);
        let samples = sizes.clone().map(|g| g.width * group.interleaving.channels).max();
        let rows = sizes.map(|g| g.height).max();
        let grid = Grid {
            x: samples.unwrap_or(0).div_ceil(shape.block.0 as usize),
            y: rows.unwrap_or(0).div_ceil(shape.rows()),
            z: group.planes.len(),
            block: shape.block,
            shared: pass.shared,
        };
        let weights = pass.weights.as_ref().map_or(0, DeviceMemory::pointer);
        launch::convolve(pass.function, grid, self.sequence.after_all(), planes, weights)
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
                // A shifted 32-bit sum lies within 2^30, so a bias beyond this saturates every pixel whatever it is exactly.
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
                    fill: -1,
                }
            }
        }
    }

    fn copy(&self, plane: usize, source: Place, result: Place) -> Result<(), EngineError> {
        let rows = self.layout.planes()[plane].height;
        let copy = sys::CUDA_MEMCPY2D {
            srcMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
            srcDevice: source.pointer,
            srcPitch: source.pitch,
            dstMemoryType: sys::CUmemorytype_enum::CU_MEMORYTYPE_DEVICE,
            dstDevice: result.pointer,
            dstPitch: result.pitch,
            WidthInBytes: self.layout.row_bytes(plane),
            Height: rows,
            ..no_copy()
        };
        // SAFETY: both planes hold `rows` rows of that many bytes at their pitches.
        check("copying a plane on the CUDA device", unsafe {
            sys::cuMemcpy2DAsync_v2(&raw const copy, self.sequence.after_all())
        })
    }

    fn fill(&self, plane: usize, value: u16, result: Place) -> Result<(), EngineError> {
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

    /// Launches one of the alpha kernels, from `before` to `after`.
    fn weight_by_alpha(
        &self,
        function: Function,
        alpha: &AlphaUse,
        before: &Places,
        after: &Places,
    ) -> Result<(), EngineError> {
        let planes = self.format.planes();
        let aligned =
            (before.iter().zip(after).take(planes.len())).all(|(b, a)| b.is_aligned() && a.is_aligned());
        let mut picture = Picture {
            gain: i64::from(alpha.gain),
            offset: alpha.offset,
            normalise: i32::from(alpha.normalise),
            filter_alpha: i32::from(alpha.filter_alpha),
            // Formats with alpha have no subsampled planes.
            width: self.layout.width() as i32,
            height: self.layout.height() as i32,
            aligned: i32::from(aligned),
            ..Picture::default()
        };
        for (rows, (before, after)) in picture.at.iter_mut().zip(before.iter().zip(after)) {
            *rows = Rows {
                before: before.pointer,
                after: after.pointer,
                before_pitch: before.pitch as i64,
                after_pitch: after.pitch as i64,
            };
        }
        let components = self.step.planes.iter().flatten();
        let entries = picture.level.iter_mut().zip(&mut picture.convolved);
        for ((level, convolved), what) in entries.zip(components) {
            if let Some(c) = what.convolved() {
                (*level, *convolved) = (i32::from(c.level), i32::from(!c.is_alpha));
            }
        }
        let pixels = 4 / self.format.bytes_per_sample();
        launch::weight_by_alpha(function, pixels, self.sequence.after_all(), picture)
    }
}

/// What the row pass makes of pixels that all hold the border's value.
fn outside_after_rows(kernel: &SeparableKernel, c: &Convolve) -> i64 {
    let sum: i64 = kernel.row.weights.iter().map(|&q| i64::from(q)).sum();
    (i64::from(c.border) * sum + kernel.row.rounding()) >> kernel.row.shift
}
