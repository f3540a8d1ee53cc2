//! The kernels with floating-point sums, of floating-point samples or of colour under alpha: their texts, the
//! shapes of their blocks, their parameters.
//!
//! ```text
//! up to four channels, with room for the tile     pixels in a tile           direct, combined, separable
//! anything else                                   pixels in global memory    direct, combined, passes
//! Gaussians that fit no mask                      pixels in global memory    pyramid
//!
//! levels under alpha, interleaved, in a tile      levels from a tile         one launch
//! levels under alpha otherwise                    sums, then levels          and alpha
//! ```

use super::plane_group::{Interleaving, border_number, float_combining_number};
use super::scalar::{BlockShape, PYRAMID_BLOCK, checked};
use super::variant::{MemoryVariant, Pixels};
use crate::engine::EngineError;
use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::filter::{
    Border, ChannelStep, FloatChannelStep, FloatKernel, FloatPyramid, FloatStep, Step, WeightedKernel,
};
use crate::frame::{Channel, PixelFormat};

/// The most components of a pixel of a tile. More of them share one way.
const MOST_CHANNELS: usize = 4;

/// Samples of a row that a thread of a tile computes.
const SAMPLES_A_THREAD: usize = 4;

/// Multiply-adds of a thread up to which a mask is unrolled; a larger one has a loop over its rows, since its
/// code would outgrow the instruction cache.
const MOST_UNROLLED: usize = 2048;

/// The blocks that a multiprocessor shall hold at least, if its shared memory suffices for their tiles.
const BLOCKS_AT_LEAST: u32 = 3;

/// Planes of one interleaving in a step: what one kernel works on.
pub(crate) struct FloatJob<'a> {
    pub(crate) kernel: &'a FloatKernel,
    pub(crate) border: Border,
    pub(crate) samples: Samples,
    /// Of components whose sums are made.
    pub(crate) interleaving: Interleaving,
    /// True if results are compared with what was before, and not by a kernel that divides them by alpha.
    pub(crate) compares: bool,
}

/// The samples that a kernel reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Samples {
    /// Floating-point numbers; holds the bytes of one.
    Floats(usize),
    /// Whole numbers, of which colours are multiplied by alpha.
    Levels(Levels),
}

/// Samples of a format with alpha.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Levels {
    bytes: usize,
    /// Unused low bits.
    shift: u32,
    /// Which of the interleaved components is alpha; `None` where it has a plane of its own.
    alpha: Option<usize>,
    /// A bit for each interleaved component that is filtered.
    filtered: u32,
    /// True if colours are divided by the convolved alpha, not by the result's.
    normalise: bool,
}

impl Samples {
    fn bytes(self) -> usize {
        match self {
            Samples::Floats(bytes) => bytes,
            Samples::Levels(levels) => levels.bytes,
        }
    }
}

/// How the kernels of one job are compiled and launched.
#[derive(Debug, Clone)]
pub(crate) struct FloatTuned {
    pub(crate) recipe: Recipe,
    pub(crate) shape: BlockShape,
    /// Bytes of dynamic shared memory.
    pub(crate) shared: usize,
    /// True if the weights lie in constant memory.
    pub(crate) constant_weights: bool,
    /// True if pixels come from a tile. Such launches may begin before earlier ones have ended.
    pub(crate) is_tiled: bool,
    /// True if the results of levels under alpha are levels, false if they are sums.
    pub(crate) divides: bool,
}

impl FloatTuned {
    /// Samples of a row that a block computes.
    pub(crate) fn samples(&self) -> usize {
        let each = if self.is_tiled { SAMPLES_A_THREAD } else { 1 };
        self.shape.block.0 as usize * each
    }
}

/// Why there is no kernel of floating-point samples in a memory variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FloatUnfit {
    /// Textures show integers.
    #[error("textures show integer samples here")]
    Texture,
    /// More components than a tile's pixel has.
    #[error("a tile has pixels of up to {MOST_CHANNELS} components")]
    Channels,
    /// The tile with its halo is larger than a block's shared memory.
    #[error("the tile and its halo do not fit in shared memory")]
    SharedMemory,
}

/// The interleaving of a plane, with the convolved ones of its first four components.
fn interleaving(channels: &[FloatChannelStep]) -> Interleaving {
    let convolved = channels.iter().take(MOST_CHANNELS).enumerate();
    Interleaving {
        channels: channels.len(),
        convolved: convolved
            .filter(|(_, c)| c.convolved().is_some())
            .map(|(i, _)| 1 << i)
            .sum(),
    }
}

/// The planes of a step that one launch can work on together. Planes without a convolved component are in no
/// group.
pub(crate) fn float_groups(step: &FloatStep) -> Vec<(Interleaving, Vec<usize>)> {
    let mut groups: Vec<(Interleaving, Vec<usize>)> = Vec::new();
    for (plane, channels) in step.planes.iter().enumerate() {
        let own = interleaving(channels);
        match groups.iter_mut().find(|(i, _)| *i == own) {
            _ if own.convolved == 0 => {}
            Some((_, planes)) => planes.push(plane),
            None => groups.push((own, vec![plane])),
        }
    }
    groups
}

/// The place of alpha among all components of `format`.
fn alpha_place(format: PixelFormat) -> Option<usize> {
    let mut components = format.planes().iter().flat_map(|plane| plane.channels);
    components.position(|&c| c == Channel::Alpha)
}

/// A bit for each component that is filtered, of those of one plane or of all.
fn filtered<'a>(components: impl IntoIterator<Item = &'a ChannelStep>) -> u32 {
    let components = components.into_iter().enumerate();
    components
        .filter(|(_, c)| c.convolved().is_some())
        .map(|(i, _)| 1 << i)
        .sum()
}

/// The components under alpha whose sums are made, a bit each: those that are filtered, and alpha if the
/// convolved alpha divides them.
fn summed(step: &Step, kernel: &WeightedKernel, format: PixelFormat) -> u32 {
    let alpha = alpha_place(format).filter(|_| kernel.weighting.normalise);
    filtered(step.planes.iter().flatten()) | alpha.map_or(0, |place| 1 << place)
}

/// The jobs of a step of colour under alpha, each with its planes.
pub(crate) fn weighted_jobs<'a>(
    step: &'a Step,
    kernel: &'a WeightedKernel,
    format: PixelFormat,
) -> Vec<(FloatJob<'a>, Vec<usize>)> {
    // One component in each plane, or all of them in the only plane.
    let channels = format.planes()[0].channels.len();
    let summed = summed(step, kernel, format);
    let is_packed = channels > 1;
    let job = FloatJob {
        kernel: &kernel.kernel,
        border: step.border,
        samples: Samples::Levels(Levels {
            bytes: format.bytes_per_sample(),
            shift: format.shift(),
            alpha: alpha_place(format).filter(|_| is_packed),
            filtered: filtered(&step.planes[0]),
            normalise: kernel.weighting.normalise,
        }),
        interleaving: Interleaving {
            channels,
            convolved: if is_packed { summed } else { 1 },
        },
        compares: step.threshold > 0,
    };
    let has_sums = |plane: &usize| is_packed || summed >> plane & 1 == 1;
    vec![(job, (0..format.planes().len()).filter(has_sums).collect())]
}

/// True if kernels can carry out the step: up to four components of a plane may differ in what is done to
/// them, more may not.
pub(crate) fn accepts(step: &FloatStep) -> bool {
    let is_uniform = |plane: &Vec<FloatChannelStep>| plane.iter().all(|c| *c == plane[0]);
    step.planes
        .iter()
        .all(|plane| plane.len() <= MOST_CHANNELS || is_uniform(plane))
}

/// The kernels of a Gaussian that fits no mask, the same for all memory variants.
pub(crate) fn pyramid(kernel: &FloatPyramid, job: &FloatJob<'_>) -> FloatTuned {
    let mut parameters = sample_parameters(job, false, false);
    parameters.extend([
        ("BLOCK_W", i64::from(PYRAMID_BLOCK.0)),
        ("BLOCK_H", i64::from(PYRAMID_BLOCK.1)),
        ("STEP", kernel.grid.step as i64),
        ("RADIUS", kernel.grid.low_radius as i64),
    ]);
    FloatTuned {
        recipe: Recipe {
            source: Source::FloatPyramid,
            parameters,
        },
        shape: BlockShape {
            block: PYRAMID_BLOCK,
            outputs: 1,
        },
        shared: 0,
        constant_weights: true,
        is_tiled: false,
        divides: false,
    }
}

/// The parameters of every kernel that convolves. Of levels under alpha: whether it divides, so that results
/// are levels, and whether it reads through textures.
fn sample_parameters(job: &FloatJob<'_>, divides: bool, texture: bool) -> Vec<(&'static str, i64)> {
    let mut parameters = vec![
        ("LEVELS", i64::from(matches!(job.samples, Samples::Levels(_)))),
        ("SAMPLE_BYTES", job.samples.bytes() as i64),
        ("CHANNELS", job.interleaving.channels as i64),
        ("CONVOLVED", i64::from(job.interleaving.convolved)),
        ("BORDER", border_number(job.border)),
        ("THRESHOLD", i64::from(job.compares)),
    ];
    if let Samples::Levels(levels) = job.samples {
        parameters.extend([
            ("SAMPLE_SHIFT", i64::from(levels.shift)),
            ("ALPHA", levels.alpha.map_or(-1, |place| place as i64)),
            ("DIVIDED", i64::from(divides)),
            ("TEXTURE", i64::from(texture)),
        ]);
        if divides {
            parameters.extend([
                ("FILTERED", i64::from(levels.filtered)),
                ("NORMALISE", i64::from(levels.normalise)),
            ]);
        }
    }
    parameters
}

/// The kernel of one job in a memory variant, with the user's block if there is one.
pub(crate) fn tune(
    job: &FloatJob<'_>,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    limits: &DeviceInfo,
) -> Result<Result<FloatTuned, FloatUnfit>, EngineError> {
    let is_tiled = match (memory.pixels(), job.samples) {
        (Pixels::Texture, Samples::Floats(_)) => return Ok(Err(FloatUnfit::Texture)),
        (Pixels::Shared, _) => true,
        (Pixels::Global | Pixels::Texture, _) => false,
    };
    if is_tiled && job.interleaving.channels > MOST_CHANNELS {
        return Ok(Err(FloatUnfit::Channels));
    }
    let rows = rows_a_thread(job, memory, is_tiled);
    let shared = |shape: BlockShape| if is_tiled { shared_bytes(job, shape) } else { 0 };
    let shape = match block {
        Some(block) => checked(block, rows, limits, &shared)?,
        None => {
            let shapes = [8, 4, 2, 1].map(|across| BlockShape {
                block: (32, across),
                outputs: rows,
            });
            // Several blocks on a multiprocessor, so that one loads its tile while another computes.
            let several = limits
                .shared_per_block
                .max(limits.shared_per_multiprocessor / BLOCKS_AT_LEAST);
            let most = limits.shared_per_block_optin;
            let fits = |limit: u32| shapes.into_iter().find(|&s| shared(s) <= limit as usize);
            match fits(several.min(most)).or_else(|| fits(most)) {
                Some(shape) => shape,
                None => return Ok(Err(FloatUnfit::SharedMemory)),
            }
        }
    };
    Ok(Ok(tuned(job, memory, is_tiled, shape)))
}

fn tuned(job: &FloatJob<'_>, memory: MemoryVariant, is_tiled: bool, shape: BlockShape) -> FloatTuned {
    let (width, height) = job.kernel.size();
    let is_rolled = is_tiled && is_rolled(job.kernel, shape.outputs);
    let constant_weights = memory.has_constant_weights() && !is_rolled;
    let divides = is_tiled && matches!(job.samples, Samples::Levels(levels) if levels.alpha.is_some());
    let mut parameters = sample_parameters(job, divides, memory.pixels() == Pixels::Texture);
    parameters.extend([
        ("CONSTANT_WEIGHTS", i64::from(constant_weights)),
        ("MASK_W", width as i64),
        ("MASK_H", height as i64),
        ("BLOCK_W", i64::from(shape.block.0)),
        ("BLOCK_H", i64::from(shape.block.1)),
        ("OUTPUTS", i64::from(shape.outputs)),
    ]);
    let source = match job.kernel {
        FloatKernel::Pyramid(kernel) => return pyramid(kernel, job),
        FloatKernel::Direct(_) => Source::FloatDirect,
        FloatKernel::Separable { .. } if is_tiled => Source::FloatSeparable,
        FloatKernel::Separable { .. } => Source::FloatPasses,
        FloatKernel::Combined { masks, combining } => {
            parameters.extend([
                ("MASKS", masks.len() as i64),
                ("COMBINING", float_combining_number(combining)),
            ]);
            Source::FloatCombined
        }
    };
    if source != Source::FloatPasses {
        parameters.push(("ROLLED", i64::from(is_rolled)));
    }
    if matches!(source, Source::FloatDirect | Source::FloatCombined) {
        parameters.push(("TILED", i64::from(is_tiled)));
    }
    FloatTuned {
        recipe: Recipe { source, parameters },
        shape,
        shared: if is_tiled { shared_bytes(job, shape) } else { 0 },
        constant_weights,
        is_tiled,
        divides,
    }
}

fn masks(kernel: &FloatKernel) -> usize {
    match kernel {
        FloatKernel::Combined { masks, .. } => masks.len(),
        FloatKernel::Direct(_) | FloatKernel::Separable { .. } | FloatKernel::Pyramid(_) => 1,
    }
}

/// True if the rows of a mask are a loop.
fn is_rolled(kernel: &FloatKernel, rows: u32) -> bool {
    let (width, height) = kernel.size();
    let is_whole = !matches!(kernel, FloatKernel::Separable { .. });
    is_whole && width * height * masks(kernel) * rows as usize * SAMPLES_A_THREAD > MOST_UNROLLED
}

/// Rows that a thread computes. A row takes a register for each mask, and with a tile for each of four
/// samples. Small masks take few rows: more blocks, in different phases, keep memory busier. Large separable
/// ones take many, since both passes go over the halo. With interleaved components a thread reads more
/// samples of a tile than it uses, and more rows make up for it.
fn rows_a_thread(job: &FloatJob<'_>, memory: MemoryVariant, is_tiled: bool) -> u32 {
    let few = if job.interleaving.channels > 1 { 4 } else { 2 };
    let height = job.kernel.size().1;
    let most = match job.kernel {
        _ if matches!(memory, MemoryVariant::Shared | MemoryVariant::ConstantShared) => 1,
        _ if !is_tiled => 4,
        FloatKernel::Separable { .. } if height < 11 => few,
        FloatKernel::Separable { .. } if (15..33).contains(&height) => 8,
        FloatKernel::Direct(_) if height < 9 => few,
        FloatKernel::Direct(_) if is_rolled(job.kernel, 2) => 2 * few,
        // As few rows as spare the loop over those of the mask.
        FloatKernel::Direct(_) if is_rolled(job.kernel, 4) => 2,
        _ => 4,
    };
    let sums = if is_tiled { 8 } else { 16 };
    most.min((sums / masks(job.kernel) as u32).max(1))
}

/// Bytes of the tile with its halo and of the weights behind it, as float/tile.cuh lays them out.
fn shared_bytes(job: &FloatJob<'_>, shape: BlockShape) -> usize {
    let kernel = job.kernel;
    let (width, height) = kernel.size();
    let pad = (width / 2 * job.interleaving.channels).next_multiple_of(4);
    let across = shape.block.0 as usize * SAMPLES_A_THREAD + 2 * pad;
    let tile = across * (shape.rows() + height - 1);
    let weights = match is_rolled(kernel, shape.outputs) {
        true => masks(kernel) * height * width.next_multiple_of(4),
        false => 0,
    };
    4 * (tile + weights)
}

/// The recipe of the kernels that weight floating-point colour by alpha.
pub(crate) fn float_alpha_recipe(step: &FloatStep, format: PixelFormat) -> Recipe {
    let what = step.planes.iter().flatten().enumerate();
    let convolved = what
        .filter(|(_, c)| c.convolved().is_some())
        .map(|(i, _)| 1 << i)
        .sum();
    alpha_recipe(format, step.threshold > 0.0, convolved, convolved)
}

/// The recipe of the kernel that divides sums of levels by alpha.
pub(crate) fn weighted_alpha_recipe(step: &Step, kernel: &WeightedKernel, format: PixelFormat) -> Recipe {
    let filtered = filtered(step.planes.iter().flatten());
    let summed = summed(step, kernel, format);
    alpha_recipe(format, step.threshold > 0, summed, filtered)
}

fn alpha_recipe(format: PixelFormat, compares: bool, convolved: u32, filtered: u32) -> Recipe {
    let planes = format.planes();
    let mut parameters = vec![
        ("LEVELS", i64::from(!format.is_float())),
        ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
        ("THRESHOLD", i64::from(compares)),
        // Components lie interleaved in one plane, or each in its own.
        ("CHANNELS", planes[0].channels.len() as i64),
        (
            "COMPONENTS",
            planes.iter().map(|plane| plane.channels.len() as i64).sum(),
        ),
        ("ALPHA", alpha_place(format).unwrap_or(0) as i64),
        ("CONVOLVED", i64::from(convolved)),
        ("FILTERED", i64::from(filtered)),
    ];
    if !format.is_float() {
        parameters.extend([("SAMPLE_SHIFT", i64::from(format.shift())), ("TEXTURE", 0)]);
    }
    Recipe {
        source: Source::FloatAlpha,
        parameters,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Algorithm, Chain, FloatPlan};
    use crate::frame::Colour;

    fn plan(filter: &str, format: PixelFormat) -> FloatPlan {
        plan_with(filter, format, Algorithm::Auto)
    }

    fn plan_with(filter: &str, format: PixelFormat, algorithm: Algorithm) -> FloatPlan {
        let chain = Chain {
            algorithm,
            ..Chain::parse(filter).unwrap()
        };
        FloatPlan::new(&chain, format, &Colour::default()).unwrap()
    }

    fn limits(shared_per_block_optin: u32) -> DeviceInfo {
        DeviceInfo {
            shared_per_block: 48 << 10,
            shared_per_block_optin,
            max_threads_per_block: 1024,
            max_block: (1024, 1024),
            ..DeviceInfo::default()
        }
    }

    fn tuned(plan: &FloatPlan, memory: MemoryVariant, shared: u32) -> Result<FloatTuned, FloatUnfit> {
        let step = &plan.steps[0];
        let (interleaving, _) = float_groups(step).remove(0);
        let job = FloatJob {
            kernel: &step.kernel,
            border: step.border,
            samples: Samples::Floats(plan.format.bytes_per_sample()),
            interleaving,
            compares: step.threshold > 0.0,
        };
        tune(&job, memory, None, &limits(shared)).unwrap()
    }

    #[test]
    fn tiles_take_the_largest_masks_where_shared_memory_has_room() {
        for format in [PixelFormat::GRAYF32, PixelFormat::RGBF16, PixelFormat::RGBAF32] {
            for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                let plan = plan_with("gaussian:size=63", format, algorithm);
                let large = tuned(&plan, MemoryVariant::Registers, 227 << 10).unwrap();
                assert!(
                    large.is_tiled && large.shared <= 227 << 10,
                    "{format} {algorithm}"
                );
            }
        }
        let wide = plan_with("gaussian:size=63", PixelFormat::RGBAF32, Algorithm::Direct);
        let small = tuned(&wide, MemoryVariant::Registers, 48 << 10);
        assert_eq!(small.unwrap_err(), FloatUnfit::SharedMemory);
    }

    #[test]
    fn many_channels_and_textures_have_no_tile() {
        let unfit = |filter: &str, format: &str, memory| {
            let plan = plan(filter, format.parse().unwrap());
            tuned(&plan, memory, 227 << 10).err()
        };
        let registers = MemoryVariant::Registers;
        assert_eq!(
            unfit("box:size=3", "f32x5", registers),
            Some(FloatUnfit::Channels)
        );
        assert_eq!(unfit("box:size=3", "f32x4", registers), None);
        let texture = unfit("box:size=3", "grayf32", MemoryVariant::Texture);
        assert_eq!(texture, Some(FloatUnfit::Texture));
        for memory in [MemoryVariant::Global, MemoryVariant::Constant] {
            assert_eq!(unfit("gaussian:size=63", "f32x1024", memory), None);
        }
    }

    #[test]
    fn large_masks_are_loops_with_their_weights_behind_the_tile() {
        let parameter = |tuned: &FloatTuned, name: &str| {
            let mut parameters = tuned.recipe.parameters.iter();
            parameters.find(|(n, _)| *n == name).unwrap().1
        };
        let registers = |filter: &str| {
            tuned(
                &plan(filter, PixelFormat::GRAYF32),
                MemoryVariant::Registers,
                227 << 10,
            )
            .unwrap()
        };
        let small = registers("laplacian8");
        assert_eq!((parameter(&small, "ROLLED"), small.constant_weights), (0, true));
        // 128 samples and a halo of one quad on either side, 16 rows and two.
        assert_eq!(small.shared, 4 * 136 * 18);
        let large = registers("log:size=25:abs");
        assert_eq!((parameter(&large, "ROLLED"), large.constant_weights), (1, false));
        assert_eq!(large.shared, 4 * (152 * 56 + 25 * 28));
    }
}
