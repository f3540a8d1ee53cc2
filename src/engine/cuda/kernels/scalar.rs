//! The scalar kernels: the shape of their blocks and their compile-time parameters.
//!
//! ```text
//! block (64, 4), 8 outputs       <-- 64 samples -->
//! thread (x, 0)   rows  0 to  7   . . x . . . . . .      a thread's results lie below each other, and share
//! thread (x, 1)   rows  8 to 15   . . x . . . . . .      what it reads
//! ```
//!
//! They do what tensor cores cannot, on every card. [`tune`] takes the variant's own block, or the user's if
//! the card can launch it.

use super::plane_group::{
    Interleaving, PlaneGroup, border_number, combining_number, divides, intermediate_bytes, is_wide,
};
use super::variant::{MemoryVariant, Pixels};
use crate::engine::EngineError;
use crate::engine::cuda::compile::{Recipe, Source};
use crate::engine::cuda::driver::device::DeviceInfo;
use crate::filter::{ChannelStep, CombinedKernel, Combining, Kernel, Plan, PyramidKernel, Scale, Step};
use crate::frame::PixelFormat;

/// A block's threads, and the rows that each of them computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockShape {
    pub(crate) block: (u32, u32),
    pub(crate) outputs: u32,
}

impl BlockShape {
    fn threads(self) -> u64 {
        u64::from(self.block.0) * u64::from(self.block.1)
    }

    /// Rows that a block computes.
    pub(crate) fn rows(self) -> usize {
        self.block.1 as usize * self.outputs as usize
    }

    /// Bytes of the tile with its halo, as scalar/convolve.cuh lays it out.
    fn tile(self, pass: &Pass, channels: usize) -> usize {
        let width = self.block.0 as usize + (pass.mask.0 - 1) * channels;
        width * (self.rows() + pass.mask.1 - 1) * pass.stored
    }
}

/// One launch's mask and the bytes of the values that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pass {
    mask: (usize, usize),
    stored: usize,
}

/// How the kernels of one step and one group are compiled and launched.
pub(crate) struct Tuned {
    pub(crate) recipe: Recipe,
    pub(crate) shape: BlockShape,
    /// Bytes of dynamic shared memory of the first and, for separable steps, the second pass.
    pub(crate) shared: [usize; 2],
    /// True if the weights lie in constant memory.
    pub(crate) constant_weights: bool,
}

/// The kernel of one job in a memory variant, with the user's block if there is one.
pub(crate) fn tune(
    job: &PlaneGroup<'_>,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    limits: &DeviceInfo,
) -> Result<Tuned, EngineError> {
    let &PlaneGroup {
        step,
        format,
        interleaving: planes,
        ..
    } = job;
    let wide = is_wide(step, format);
    let mask = step.kernel.size();
    let sample = format.bytes_per_sample();
    let (source, passes) = match &step.kernel {
        Kernel::Direct(_) => (Source::Direct, vec![Pass { mask, stored: sample }]),
        Kernel::Separable(_) => {
            let row = Pass {
                mask: (mask.0, 1),
                stored: sample,
            };
            let column = Pass {
                mask: (1, mask.1),
                stored: intermediate_bytes(wide),
            };
            (Source::Separable, vec![row, column])
        }
        Kernel::Combined(_) => (Source::Combined, vec![Pass { mask, stored: sample }]),
        Kernel::Pyramid(kernel) => return Ok(pyramid(kernel, job)),
        // `weighted_jobs` of kernels/float.rs has the kernels of these steps.
        Kernel::Weighted(_) => unreachable!("colour under alpha has no group of planes"),
    };
    let pixels = memory.pixels();
    let bytes = |shape: BlockShape, pass: &Pass| match pixels {
        Pixels::Shared => shape.tile(pass, planes.channels),
        Pixels::Global | Pixels::Texture => 0,
    };
    let most = |shape: BlockShape| passes.iter().map(|p| bytes(shape, p)).max().unwrap_or(0);
    let masks = match &step.kernel {
        Kernel::Combined(k) => k.masks.len(),
        _ => 1,
    };
    // A thread has a sum for each mask and row.
    let rows = rows_a_thread(memory, mask.1, wide).min((16 / masks as u32).max(1));
    let shape = match block {
        Some(block) => checked(block, rows, limits, &most)?,
        None => default_shape(memory, rows, limits, &most)?,
    };
    let mut parameters = vec![
        ("PIXELS", pixels as i64),
        ("CONSTANT_WEIGHTS", i64::from(memory.has_constant_weights())),
        ("SAMPLE_BYTES", sample as i64),
        ("SAMPLE_SHIFT", i64::from(format.shift())),
        ("WIDE", i64::from(wide)),
        ("DIVIDES", i64::from(divides(step))),
        ("CHANNELS", planes.channels as i64),
        ("CONVOLVED", i64::from(planes.convolved)),
        ("BORDER", border_number(step.border)),
        ("MASK_W", mask.0 as i64),
        ("MASK_H", mask.1 as i64),
        ("BLOCK_W", i64::from(shape.block.0)),
        ("BLOCK_H", i64::from(shape.block.1)),
        ("OUTPUTS", i64::from(shape.outputs)),
    ];
    if let Kernel::Combined(kernel) = &step.kernel {
        parameters.extend(combining(kernel, step, format)?);
        let total = match kernel.combining {
            Combining::Absolute => -kernel.start(0, 1),
            Combining::Largest | Combining::Magnitude(_) => 0,
        };
        parameters.push(("TOTAL", total));
    }
    let shared = |index: usize| passes.get(index).map_or(0, |pass| bytes(shape, pass));
    Ok(Tuned {
        recipe: Recipe { source, parameters },
        shape,
        shared: [shared(0), shared(1)],
        constant_weights: memory.has_constant_weights(),
    })
}

/// The largest magnitude that common/combining.cuh rounds, for any scale.
const MOST_ROOT: i64 = 131_000;

/// An error if the plan has a step for which there is no kernel.
pub(crate) fn check(plan: &Plan) -> Result<(), EngineError> {
    for step in &plan.steps {
        if let Kernel::Combined(kernel) = &step.kernel {
            combining(kernel, step, plan.format)?;
        }
    }
    Ok(())
}

/// Threads of a block of the kernels of a pyramid.
pub(crate) const PYRAMID_BLOCK: (u32, u32) = (64, 4);

/// The kernels of a Gaussian that fits no mask, the same for all memory variants.
fn pyramid(kernel: &PyramidKernel, job: &PlaneGroup<'_>) -> Tuned {
    let &PlaneGroup {
        step,
        format,
        interleaving: planes,
        ..
    } = job;
    let parameters = vec![
        ("PIXELS", Pixels::Global as i64),
        ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
        ("SAMPLE_SHIFT", i64::from(format.shift())),
        ("WIDE", i64::from(kernel.is_wide())),
        ("DIVIDES", 0),
        ("CHANNELS", planes.channels as i64),
        ("CONVOLVED", i64::from(planes.convolved)),
        ("BORDER", border_number(step.border)),
        ("BLOCK_W", i64::from(PYRAMID_BLOCK.0)),
        ("BLOCK_H", i64::from(PYRAMID_BLOCK.1)),
        ("OUTPUTS", 1),
        ("STEP", kernel.grid.step as i64),
        ("RADIUS", kernel.grid.low_radius as i64),
        ("ROWS_SHIFT", i64::from(kernel.rows.shift)),
        ("NUMBER_SHIFT", i64::from(kernel.interpolate_bits)),
        ("FRACTION", i64::from(kernel.fraction_bits)),
    ];
    Tuned {
        recipe: Recipe {
            source: Source::Pyramid,
            parameters,
        },
        shape: BlockShape {
            block: PYRAMID_BLOCK,
            outputs: 1,
        },
        shared: [0, 0],
        constant_weights: true,
    }
}

/// The parameters of common/combining.cuh.
pub(super) fn combining(
    kernel: &CombinedKernel,
    step: &Step,
    format: PixelFormat,
) -> Result<Vec<(&'static str, i64)>, EngineError> {
    let scale = match kernel.combining {
        Combining::Absolute | Combining::Largest => Scale::ONE,
        Combining::Magnitude(scale) => scale,
    };
    let convolved = step.planes.iter().flatten().filter_map(ChannelStep::convolved);
    let least = convolved.map(|c| c.high).min().unwrap_or(0);
    // Larger numbers are clamped.
    let most = (i64::from(format.max_value()) - least).max(0);
    if matches!(kernel.combining, Combining::Magnitude(_)) && most > MOST_ROOT {
        return Err(EngineError::Unfit(
            "the bias is too negative for gradient magnitudes on CUDA; use --engine cpu".to_owned(),
        ));
    }
    // At least 1, since the compiler warns of comparisons with 0.
    let most = most.clamp(1, MOST_ROOT);
    Ok(vec![
        ("COMBINING", combining_number(kernel.combining)),
        ("MASKS", kernel.masks.len() as i64),
        ("SCALE_N", i64::from(scale.numerator())),
        ("SCALE_D", i64::from(scale.denominator())),
        ("MOST", most),
        ("MOST_SQUARES", scale.least_squares(most as u32) as i64),
        ("MOST_SUM", kernel.most_sum(format.max_value())),
    ])
}

/// Threads of a block of the threshold kernel.
pub(crate) const THRESHOLD_BLOCK: (u32, u32) = (64, 4);

/// The recipe of the threshold kernel for one group of planes; `None` for a step without a threshold.
pub(crate) fn threshold_recipe(
    step: &Step,
    format: PixelFormat,
    interleaving: Interleaving,
) -> Option<Recipe> {
    (step.threshold > 0).then(|| Recipe {
        source: Source::Threshold,
        parameters: vec![
            ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
            ("CHANNELS", interleaving.channels as i64),
            ("CONVOLVED", i64::from(interleaving.convolved)),
            ("BLOCK_W", i64::from(THRESHOLD_BLOCK.0)),
            ("BLOCK_H", i64::from(THRESHOLD_BLOCK.1)),
            ("LEAST", i64::from(step.threshold) << format.shift()),
        ],
    })
}

/// The most multiply-adds of one column of a mask for all of a thread's rows, which scalar/convolve.cuh
/// unrolls for a large mask. A 64-bit multiply-add counts twice.
const MOST_IN_A_COLUMN: usize = 512;

/// Rows that a thread of a variant computes, if the tile fits. The rows share values and weights in
/// registers, but the unrolled code of a column of the mask must fit the instruction cache.
fn rows_a_thread(memory: MemoryVariant, mask_rows: usize, wide: bool) -> u32 {
    if memory != MemoryVariant::Registers {
        return 1;
    }
    let each = mask_rows * if wide { 2 } else { 1 };
    if each * 8 <= MOST_IN_A_COLUMN { 8 } else { 4 }
}

/// The user's block, if the card can launch it; the error names the limit that it breaks. Each thread
/// computes as many rows, up to `rows`, as the tile has room for.
pub(super) fn checked(
    block: (u32, u32),
    rows: u32,
    limits: &DeviceInfo,
    shared: &dyn Fn(BlockShape) -> usize,
) -> Result<BlockShape, EngineError> {
    let fits = |outputs: &u32| {
        shared(BlockShape {
            block,
            outputs: *outputs,
        }) <= limits.shared_per_block as usize
    };
    let outputs = [8, 4, 2].into_iter().filter(|&o| o <= rows).find(fits);
    let shape = BlockShape {
        block,
        outputs: outputs.unwrap_or(1),
    };
    let refused = |why: String| EngineError::Unfit(format!("--block {}x{} {why}", block.0, block.1));
    if shape.threads() == 0 {
        return Err(refused(
            "has no threads; both numbers must be at least 1".to_owned(),
        ));
    }
    if shape.threads() > u64::from(limits.max_threads_per_block) {
        return Err(refused(format!(
            "has {} threads; this card allows {} in a block",
            shape.threads(),
            limits.max_threads_per_block
        )));
    }
    if block.0 > limits.max_block.0 || block.1 > limits.max_block.1 {
        return Err(refused(format!(
            "is too long on one side; this card allows {}x{}",
            limits.max_block.0, limits.max_block.1
        )));
    }
    let bytes = shared(shape);
    if bytes > limits.shared_per_block_optin as usize {
        return Err(refused(format!(
            "needs {bytes} bytes of shared memory for its tile and halo; this card allows {} in a block",
            limits.shared_per_block_optin
        )));
    }
    Ok(shape)
}

/// A variant's shape if the user names no block: smaller if the tile would not fit because of its halo.
fn default_shape(
    memory: MemoryVariant,
    rows: u32,
    limits: &DeviceInfo,
    shared: &dyn Fn(BlockShape) -> usize,
) -> Result<BlockShape, EngineError> {
    let candidates: &[((u32, u32), u32)] = match memory {
        MemoryVariant::Auto | MemoryVariant::Registers | MemoryVariant::Tensor => &[
            ((64, 4), 8),
            ((64, 4), 4),
            ((64, 4), 2),
            ((64, 4), 1),
            ((32, 4), 1),
            ((32, 1), 1),
        ],
        MemoryVariant::Shared | MemoryVariant::ConstantShared => {
            &[((32, 16), 1), ((32, 8), 1), ((32, 4), 1), ((32, 1), 1)]
        }
        MemoryVariant::Global | MemoryVariant::Constant | MemoryVariant::Texture => &[((32, 8), 1)],
    };
    let shapes = candidates
        .iter()
        .map(|&(block, outputs)| BlockShape { block, outputs })
        .filter(|shape| shape.outputs <= rows);
    // Tiles within the default limit leave room for several blocks on a multiprocessor.
    for limit in [limits.shared_per_block, limits.shared_per_block_optin] {
        if let Some(shape) = shapes.clone().find(|&s| shared(s) <= limit as usize) {
            return Ok(shape);
        }
    }
    Err(EngineError::Unfit(format!(
        "the mask's halo does not fit in the {} bytes of shared memory that this card allows a block; use \
         --memory constant",
        limits.shared_per_block_optin
    )))
}
