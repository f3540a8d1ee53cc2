//! A plan with its kernels compiled, loaded and given their weights: what runs on the card for each frame.
//!
//! ```text
//! IntegerLaunchPlan once for a format and about a size
//!   StepLaunch        a step of the plan, or two that share a launch
//!     Group             planes that are interleaved in the same way
//!       Passes            one launch a pass, a grid layer a plane; weights in the module's constant memory
//!       TensorPass        one launch for the tiles of all planes; weights dealt out to the lanes of warps
//!
//! for each frame, in order, on one stream (enqueue):
//!   row pass -> column pass -> threshold   where a launch of its own does it
//!   intermediate               result
//! ```
//!
//! `parameters` has the kernels' structs as their texts declare them. `tensor_pass` compiles a kernel for
//! each way of loading tiles when a launch first needs it, `scratch` has the intermediate pictures, and
//! `pyramid` the launches of Gaussians that fit no mask. `float` does the same for floating-point sums: of
//! floating-point samples, and of colour under alpha. `chain` has the plan that engines hold,
//! [`chain::LaunchPlan`]: an integer or a floating-point one, as the format needs it.
#![allow(unsafe_code)]

pub(crate) mod chain;
mod enqueue;
mod float;
pub(crate) mod parameters;
mod pyramid;
pub(crate) mod scratch;
mod tensor_pass;

use super::compile::cache::Cache;
use super::driver::dependency::TrackedStream;
use super::driver::device::{Device, DeviceInfo, check};
use super::driver::memory::DeviceMemory;
use super::driver::module::{Function, Module};
use super::driver::pictures::picture::DevicePlanes;
use super::kernels::plane_group::{Interleaving, PlaneGroup, PlaneWork, groups, plane_work};
use super::kernels::scalar::{BlockShape, Tuned, threshold_recipe};
use super::kernels::tensor::fused::{PLAIN, Pair};
use super::kernels::tensor::{self, TensorKernel};
use super::select::{Choice, Part, SelectContext, choose, parts};
use crate::engine::EngineError;
use crate::filter::{ChannelStep, Kernel, Plan, PyramidGrid, Step};
use crate::frame::{Layout, PixelFormat};
use cudarc::driver::sys;
use enqueue::StepEnqueuer;
use float::weighted::WeightedLaunch;
use scratch::{Intermediates, Scratch};
use std::cell::RefCell;
use std::sync::Arc;
use tensor_pass::TensorPass;

/// A chain ready to run on frames of one format of integer samples.
pub(crate) struct IntegerLaunchPlan {
    pub(crate) plan: Plan,
    steps: Vec<StepLaunch>,
}

/// A step of the plan, or two that share a launch.
struct StepLaunch {
    /// The first step's place in the plan.
    index: usize,
    is_pair: bool,
    groups: Vec<Group>,
    /// A step of colour under alpha has this, and no groups.
    weighted: Option<WeightedLaunch>,
}

struct Group {
    interleaving: Interleaving,
    planes: Vec<usize>,
    kernels: Kernels,
    /// The threshold kernel, which restores samples that changed too little.
    threshold: Option<ThresholdKernel>,
}

struct ThresholdKernel {
    function: Function,
    _module: Module,
}

enum Kernels {
    /// One launch a pass.
    Passes {
        shape: BlockShape,
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

/// What a step of a frame reads and writes, and what its launches are enqueued on.
#[derive(Clone, Copy)]
pub(crate) struct StepBuffers<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) source: &'a DevicePlanes,
    /// Not the same memory as the source.
    pub(crate) result: &'a DevicePlanes,
    pub(crate) scratch: &'a Scratch,
    pub(crate) stream: &'a TrackedStream,
}

/// What a launch plan is made for and with.
pub(crate) struct Request<'a> {
    pub(crate) device: &'a Arc<Device>,
    pub(crate) cache: &'a Cache,
    pub(crate) context: SelectContext<'a>,
    /// The kernels that were picked, and why, a line each.
    pub(crate) explanation: RefCell<Vec<String>>,
}

impl Request<'_> {
    fn explain(&self, line: String) {
        self.explanation.borrow_mut().push(line);
    }
}

impl IntegerLaunchPlan {
    pub(crate) fn new(plan: Plan, request: &Request<'_>) -> Result<IntegerLaunchPlan, EngineError> {
        request.device.bind()?;
        let steps = parts(&plan, &request.context)
            .into_iter()
            .map(|part| StepLaunch::new(&plan, part, request));
        let steps = steps.collect::<Result<_, _>>()?;
        Ok(IntegerLaunchPlan { plan, steps })
    }

    /// Which intermediates in device memory the steps have.
    pub(crate) fn intermediates(&self) -> Intermediates<bool> {
        let mut has = Intermediates::default();
        for launch in &self.steps {
            if let Some(weighted) = &launch.weighted {
                has.wide |= weighted.has_intermediate();
            } else if let Kernel::Separable(kernel) = &self.plan.steps[launch.index].kernel {
                let mut groups = launch.groups.iter();
                let is_needed = groups.any(|group| matches!(group.kernels, Kernels::Passes { .. }));
                match kernel.wide {
                    true => has.wide |= is_needed,
                    false => has.narrow |= is_needed,
                }
            }
        }
        has
    }

    /// The steps that are Gaussians which fit no mask.
    pub(crate) fn pyramids(&self) -> impl Iterator<Item = PyramidGrid> {
        self.plan.steps.iter().filter_map(|step| match &step.kernel {
            Kernel::Pyramid(kernel) => Some(kernel.grid),
            Kernel::Weighted(kernel) => kernel.kernel.grid(),
            _ => None,
        })
    }

    /// True if some step makes sums of colour under alpha that a later launch divides.
    pub(crate) fn has_weighted_sums(&self) -> bool {
        let mut weighted = self.steps.iter().flat_map(|step| &step.weighted);
        weighted.any(WeightedLaunch::has_sums)
    }

    /// Steps, of which two that share a launch are one: how often a picture is written.
    pub(crate) fn step_count(&self) -> usize {
        self.steps.len()
    }

    /// Launches, copies and fills of a frame.
    pub(crate) fn launch_count(&self) -> usize {
        let of_group = |group: &Group| {
            let convolving = match &group.kernels {
                Kernels::Passes { passes, .. } => passes.len(),
                Kernels::Tensor(_) => 1,
            };
            convolving + usize::from(group.threshold.is_some())
        };
        let is_plain = |channels: &&Vec<ChannelStep>| !matches!(plane_work(channels), PlaneWork::Kernel(_));
        let of_step = |launch: &StepLaunch| {
            if let Some(weighted) = &launch.weighted {
                return weighted.launch_count();
            }
            let kernels: usize = launch.groups.iter().map(of_group).sum();
            let planes = &self.plan.steps[launch.index].planes;
            kernels + planes.iter().filter(is_plain).count()
        };
        self.steps.iter().map(of_step).sum()
    }

    /// Threads of a block of the first kernel, across and down; `None` if no kernel convolves.
    pub(crate) fn block(&self) -> Option<(u32, u32)> {
        let of_group = |group: &Group| match &group.kernels {
            Kernels::Passes { shape, .. } => shape.block,
            Kernels::Tensor(pass) => (pass.kernel.threads, 1),
        };
        self.steps.iter().find_map(|step| match &step.weighted {
            Some(weighted) => weighted.block(),
            None => step.groups.first().map(of_group),
        })
    }

    /// Enqueues step `index`.
    pub(crate) fn run(&self, index: usize, buffers: &StepBuffers<'_>) -> Result<(), EngineError> {
        let launch = &self.steps[index];
        let step = &self.plan.steps[launch.index];
        if let (Some(weighted), Kernel::Weighted(kernel)) = (&launch.weighted, &step.kernel) {
            return weighted.run((step, kernel), buffers);
        }
        let enqueuer = StepEnqueuer {
            format: self.plan.format,
            step,
            next: launch.is_pair.then(|| &self.plan.steps[launch.index + 1]),
            buffers: *buffers,
        };
        enqueuer.convolve(launch)?;
        enqueuer.restore_small_differences(launch)
    }
}

impl StepLaunch {
    fn new(plan: &Plan, part: Part<'_>, request: &Request<'_>) -> Result<StepLaunch, EngineError> {
        let (index, step, format) = (part.index, &plan.steps[part.index], plan.format);
        if let Some((pair, kernel)) = part.pair {
            return Ok(StepLaunch {
                index,
                is_pair: true,
                groups: vec![Group::of_pair(&pair, &kernel, (step, format), request)?],
                weighted: None,
            });
        }
        let weighted = match &step.kernel {
            Kernel::Weighted(kernel) => Some(WeightedLaunch::new(step, kernel, format, request)?),
            _ => None,
        };
        let groups = match weighted {
            Some(_) => Vec::new(),
            None => groups(step)
                .into_iter()
                .map(|(interleaving, planes)| Group::new(step, format, interleaving, planes, request))
                .collect::<Result<_, _>>()?,
        };
        Ok(StepLaunch {
            index,
            is_pair: false,
            groups,
            weighted,
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
        let job = PlaneGroup {
            step,
            format,
            interleaving,
            planes: &planes,
        };
        let (choice, why) = choose(&job, &request.context)?;
        let (columns, rows) = step.kernel.size();
        request.explain(format!(
            "{format}, {columns}x{rows} mask, {}: {why}",
            plane_list(&planes)
        ));
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
            Choice::Scalar(tuned) => {
                // One module a step and group: constant memory belongs to the module, and two steps' weights
                // must not share it.
                let image = tuned.recipe.image(request.device, request.cache)?;
                let module = Module::load(request.device, &image)?;
                Kernels::Passes {
                    shape: tuned.shape,
                    passes: passes(step, &tuned, &module, limits)?,
                    _module: module,
                }
            }
        };
        let threshold = threshold_recipe(step, format, interleaving).map(|recipe| {
            let image = recipe.image(request.device, request.cache)?;
            let module = Module::load(request.device, &image)?;
            Ok::<_, EngineError>(ThresholdKernel {
                function: module.function(c"threshold")?,
                _module: module,
            })
        });
        Ok(Group {
            interleaving,
            planes,
            kernels,
            threshold: threshold.transpose()?,
        })
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
        request.explain(format!(
            "{format}, {first_width}x{first_height} mask and {width}x{height} mask, {}: {} in tiles of {}x{} \
             bytes: both filters in one launch, whose products are few enough (--no-fuse gives each its own)",
            plane_list(&planes),
            kernel.source().name(),
            kernel.tile.0,
            kernel.tile.1,
        ));
        let fitted = |sizes: &[_]| pair.fitted(kernel, sizes, &request.device.info);
        let pass = tensor_pass(kernel, fitted, (format, &planes), request)?;
        Ok(Group {
            interleaving: PLAIN,
            planes,
            kernels: Kernels::Tensor(Box::new(pass)),
            threshold: None,
        })
    }
}

/// Bytes across and rows of each of these planes.
fn sizes<'a>(layout: &'a Layout, planes: &'a [usize]) -> impl Iterator<Item = (usize, usize)> + 'a {
    let size = |&plane: &usize| (layout.row_bytes(plane), layout.planes()[plane].height);
    planes.iter().map(size)
}

/// The pass for frames of the size that `request` names: `fitted` may choose other tiles for planes of such
/// sizes, and the loader that such frames need is compiled.
fn tensor_pass(
    kernel: &TensorKernel,
    fitted: impl FnOnce(&[(usize, usize)]) -> Option<TensorKernel>,
    (format, planes): (PixelFormat, &[usize]),
    request: &Request<'_>,
) -> Result<TensorPass, EngineError> {
    let (width, height) = request.context.size;
    let layout = Layout::new(format, width, height, 1)?;
    let sizes: Vec<_> = sizes(&layout, planes).collect();
    let kernel = match fitted(&sizes) {
        Some(fitted) => {
            request.explain(format!(
                "tiles of {}x{} bytes, for frames of {width}x{height} pixels to keep more of the card busy",
                fitted.tile.0, fitted.tile.1,
            ));
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

/// The launches of scalar kernels.
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
        Kernel::Combined(k) => vec![pass(
            c"combined",
            c"mask_weights",
            &k.masks.concat(),
            tuned.shared[0],
        )?],
        Kernel::Weighted(_) => Vec::new(),
        Kernel::Pyramid(k) => {
            let taps = k.interpolate.as_flattened();
            vec![
                pass(c"decimate_rows", c"row_weights", &k.rows.weights, 0)?,
                pass(c"decimate_columns", c"column_weights", &k.columns.weights, 0)?,
                pass(c"filter_rows", c"low_weights", &k.low.weights, 0)?,
                pass(c"filter_columns", c"low_weights", &k.low.weights, 0)?,
                pass(c"interpolate_columns", c"interpolation", taps, 0)?,
                pass(c"interpolate_rows", c"interpolation", taps, 0)?,
            ]
        }
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
fn check_threads(function: Function, shape: BlockShape) -> Result<(), EngineError> {
    let mut most = 0;
    let attribute = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    // SAFETY: the function belongs to a live module and the pointer is to a live integer.
    check("asking for the limits of a kernel", unsafe {
        sys::cuFuncGetAttribute(&raw mut most, attribute, function.0)
    })?;
    let threads = shape.block.0 * shape.block.1;
    if threads > most.max(0) as u32 {
        return Err(EngineError::Unfit(format!(
            "--block {}x{} has {threads} threads; the kernel's registers allow {most} in a block",
            shape.block.0, shape.block.1
        )));
    }
    Ok(())
}
