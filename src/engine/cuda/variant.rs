//! The memory variants: their names, the shape of their blocks, and the compile-time parameters of their kernels.

use super::device::DeviceInfo;
use super::program::{Recipe, Source};
use super::tensor::{self, TensorKernel, Unfit};
use crate::engine::EngineError;
use crate::filter::{Border, ChannelStep, Kernel, Plan, Step};
use crate::frame::PixelFormat;
use std::fmt;
use std::str::FromStr;

/// Where a CUDA kernel keeps weights and pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MemoryVariant {
    /// The fastest that framepipe knows.
    #[default]
    Auto,
    /// Weights in global memory through the read-only path, pixels in global memory.
    Global,
    /// Weights in constant memory, pixels in global memory.
    Constant,
    /// Weights in global memory through the read-only path, pixels in a shared tile with its halo.
    Shared,
    /// Weights in constant memory, pixels in a shared tile with its halo.
    ConstantShared,
    /// Weights in constant memory, pixels through a texture object, clamped by the hardware where the border allows.
    Texture,
    /// Weights in registers as bands of bytes, pixels in a shared tile, multiplied by tensor cores; where they cannot, as [`MemoryVariant::Auto`]
    /// without them.
    Tensor,
}

impl MemoryVariant {
    /// Every variant, `auto` first.
    pub const ALL: [MemoryVariant; 7] = [
        MemoryVariant::Auto,
        MemoryVariant::Global,
        MemoryVariant::Constant,
        MemoryVariant::Shared,
        MemoryVariant::ConstantShared,
        MemoryVariant::Texture,
        MemoryVariant::Tensor,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            MemoryVariant::Auto => "auto",
            MemoryVariant::Global => "global",
            MemoryVariant::Constant => "constant",
            MemoryVariant::Shared => "shared",
            MemoryVariant::ConstantShared => "constant-shared",
            MemoryVariant::Texture => "texture",
            MemoryVariant::Tensor => "tensor",
        }
    }

    /// True if the weights lie in constant memory.
    pub(super) fn has_constant_weights(self) -> bool {
        !matches!(self, MemoryVariant::Global | MemoryVariant::Shared)
    }

    fn pixels(self) -> Pixels {
        match self {
            MemoryVariant::Global | MemoryVariant::Constant => Pixels::Global,
            MemoryVariant::Auto
            | MemoryVariant::Shared
            | MemoryVariant::ConstantShared
            | MemoryVariant::Tensor => Pixels::Shared,
            MemoryVariant::Texture => Pixels::Texture,
        }
    }
}

/// The value of the parameter PIXELS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pixels {
    Global = 0,
    Shared = 1,
    Texture = 2,
}

impl fmt::Display for MemoryVariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that names no memory variant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no memory variant; use auto, global, constant, shared, constant-shared, texture or tensor")]
pub struct UnknownMemoryVariant(pub String);

impl FromStr for MemoryVariant {
    type Err = UnknownMemoryVariant;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let mut all = MemoryVariant::ALL.into_iter();
        all.find(|v| v.name() == word)
            .ok_or_else(|| UnknownMemoryVariant(word.to_owned()))
    }
}

/// A block's threads, and the rows that each of them computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) block: (u32, u32),
    pub(super) outputs: u32,
}

impl Shape {
    fn threads(self) -> u64 {
        u64::from(self.block.0) * u64::from(self.block.1)
    }

    /// Rows that a block computes.
    pub(super) fn rows(self) -> usize {
        self.block.1 as usize * self.outputs as usize
    }

    /// Bytes of the tile with its halo, as convolve.cuh lays it out.
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

/// What is done to a plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlaneWork {
    /// The whole plane is copied.
    Copy,
    /// Every sample is set to this.
    Fill(u16),
    /// A kernel works on it.
    Kernel(Interleaving),
}

/// How a plane's components are interleaved, and which of them are convolved (a bit each).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interleaving {
    pub(super) channels: usize,
    pub(super) convolved: u32,
}

pub(super) fn plane_work(channels: &[ChannelStep]) -> PlaneWork {
    let first = channels.first().copied().unwrap_or(ChannelStep::Copy);
    if channels.iter().all(|c| *c == first) {
        match first {
            ChannelStep::Copy => return PlaneWork::Copy,
            ChannelStep::Fill(value) => return PlaneWork::Fill(value),
            ChannelStep::Convolve(_) => {}
        }
    }
    let convolved = channels
        .iter()
        .enumerate()
        .filter(|(_, c)| matches!(c, ChannelStep::Convolve(_)))
        .map(|(i, _)| 1 << i)
        .sum();
    PlaneWork::Kernel(Interleaving {
        channels: channels.len(),
        convolved,
    })
}

/// The planes of a step that one launch can work on together.
pub(super) fn groups(step: &Step) -> Vec<(Interleaving, Vec<usize>)> {
    let mut groups: Vec<(Interleaving, Vec<usize>)> = Vec::new();
    for (plane, channels) in step.planes.iter().enumerate() {
        if let PlaneWork::Kernel(interleaving) = plane_work(channels) {
            match groups.iter_mut().find(|(i, _)| *i == interleaving) {
                Some((_, planes)) => planes.push(plane),
                None => groups.push((interleaving, vec![plane])),
            }
        }
    }
    groups
}

/// True if the sums of a step need 64 bits.
pub(super) fn is_wide(step: &Step, format: PixelFormat) -> bool {
    match &step.kernel {
        Kernel::Direct(_) => format.depth() > 12,
        Kernel::Separable(k) => k.wide,
    }
}

/// Bytes of a value of the intermediate between the two passes.
pub(super) fn intermediate_bytes(wide: bool) -> usize {
    if wide { 4 } else { 2 }
}

/// The value of the parameter BORDER.
pub(super) fn border_number(border: Border) -> i64 {
    match border {
        Border::Replicate => 0,
        Border::Zero | Border::Constant(_) => 1,
        Border::Reflect => 2,
        Border::Mirror => 3,
        Border::Wrap => 4,
    }
}

/// How the kernels of one step and one group are compiled and launched.
pub(super) struct Tuned {
    pub(super) recipe: Recipe,
    pub(super) shape: Shape,
    /// Bytes of dynamic shared memory of the first and, for separable steps, the second pass.
    pub(super) shared: [usize; 2],
}

/// The kernel that was chosen for one step and planes of one interleaving.
pub(super) enum Choice {
    /// On tensor cores.
    Tensor(Box<TensorKernel>),
    /// One value at a time; where tensor cores would have been taken, why they were not.
    Plain(Tuned, Option<Unfit>),
}

impl Choice {
    /// What was chosen and why, for people.
    pub(super) fn explanation(&self, memory: MemoryVariant) -> String {
        match (self, memory) {
            (Choice::Tensor(kernel), MemoryVariant::Auto) => format!(
                "{} in tiles of {}x{} bytes, since the card's tensor cores can do it",
                kernel.recipe.source.name(),
                kernel.tile.0,
                kernel.tile.1
            ),
            (Choice::Tensor(kernel), _) => format!(
                "{} in tiles of {}x{} bytes, as asked for",
                kernel.recipe.source.name(),
                kernel.tile.0,
                kernel.tile.1
            ),
            (Choice::Plain(tuned, Some(unfit)), _) => format!(
                "{} in blocks of {}x{} threads without tensor cores, since {unfit}",
                tuned.recipe.source.name(),
                tuned.shape.block.0,
                tuned.shape.block.1
            ),
            (Choice::Plain(tuned, None), memory) => format!(
                "{} in blocks of {}x{} threads, memory variant {memory}, as asked for",
                tuned.recipe.source.name(),
                tuned.shape.block.0,
                tuned.shape.block.1
            ),
        }
    }
}

/// The kernel of one step for planes of one interleaving: tensor cores for `auto` and `tensor` wherever they can do it.
pub(super) fn choose(
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    limits: &DeviceInfo,
) -> Result<Choice, EngineError> {
    let unfit = match memory {
        MemoryVariant::Auto | MemoryVariant::Tensor if block.is_some() => Some(Unfit::Block),
        MemoryVariant::Auto | MemoryVariant::Tensor => match tensor::tune(step, format, planes, limits) {
            Ok(kernel) => return Ok(Choice::Tensor(Box::new(kernel))),
            Err(unfit) => Some(unfit),
        },
        _ => None,
    };
    tune(step, format, planes, memory, block, limits).map(|tuned| Choice::Plain(tuned, unfit))
}

/// The kernel of one step for planes of one interleaving that works on one value at a time.
fn tune(
    step: &Step,
    format: PixelFormat,
    planes: Interleaving,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    limits: &DeviceInfo,
) -> Result<Tuned, EngineError> {
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
    };
    let pixels = memory.pixels();
    let bytes = |shape: Shape, pass: &Pass| match pixels {
        Pixels::Shared => shape.tile(pass, planes.channels),
        Pixels::Global | Pixels::Texture => 0,
    };
    let most = |shape: Shape| passes.iter().map(|p| bytes(shape, p)).max().unwrap_or(0);
    let shape = match block {
        Some(block) => checked(block, limits, &most)?,
        None => default_shape(memory, limits, &most)?,
    };
    let parameters = vec![
        ("PIXELS", pixels as i64),
        ("CONSTANT_WEIGHTS", i64::from(memory.has_constant_weights())),
        ("SAMPLE_BYTES", sample as i64),
        ("SAMPLE_SHIFT", i64::from(format.shift())),
        ("WIDE", i64::from(wide)),
        ("CHANNELS", planes.channels as i64),
        ("CONVOLVED", i64::from(planes.convolved)),
        ("BORDER", border_number(step.border)),
        ("MASK_W", mask.0 as i64),
        ("MASK_H", mask.1 as i64),
        ("BLOCK_W", i64::from(shape.block.0)),
        ("BLOCK_H", i64::from(shape.block.1)),
        ("OUTPUTS", i64::from(shape.outputs)),
    ];
    let shared = |index: usize| passes.get(index).map_or(0, |pass| bytes(shape, pass));
    Ok(Tuned {
        recipe: Recipe { source, parameters },
        shape,
        shared: [shared(0), shared(1)],
    })
}

/// The user's block, if the card can launch it; the error names the limit that it breaks.
fn checked(
    block: (u32, u32),
    limits: &DeviceInfo,
    shared: &dyn Fn(Shape) -> usize,
) -> Result<Shape, EngineError> {
    let shape = Shape { block, outputs: 1 };
    let refused = |why: String| EngineError::Unavailable(format!("--block {}x{} {why}", block.0, block.1));
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

/// The shape that a variant has when the user names none: smaller where the halo is so large that the tile would not fit.
fn default_shape(
    memory: MemoryVariant,
    limits: &DeviceInfo,
    shared: &dyn Fn(Shape) -> usize,
) -> Result<Shape, EngineError> {
    let candidates: &[((u32, u32), u32)] = match memory {
        // Eight rows a thread: each value read from the tile is used up to eight times from a register.
        MemoryVariant::Auto | MemoryVariant::Tensor => &[
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
        .map(|&(block, outputs)| Shape { block, outputs });
    // What fits without asking leaves room for several blocks on a multiprocessor.
    for limit in [limits.shared_per_block, limits.shared_per_block_optin] {
        if let Some(shape) = shapes.clone().find(|&s| shared(s) <= limit as usize) {
            return Ok(shape);
        }
    }
    Err(EngineError::Unavailable(format!(
        "the mask's halo does not fit in the {} bytes of shared memory that this card allows a block; use --memory constant",
        limits.shared_per_block_optin
    )))
}

/// The recipe of the kernels that weight colour by alpha.
pub(super) fn alpha_recipe(format: PixelFormat) -> Recipe {
    Recipe {
        source: Source::Alpha,
        parameters: vec![
            ("SAMPLE_BYTES", format.bytes_per_sample() as i64),
            ("SAMPLE_SHIFT", i64::from(format.shift())),
            ("MAX_VALUE", i64::from(format.max_value())),
        ],
    }
}

/// Every kernel that `plan` is carried out with under `memory` on a card with these limits. `block` is the user's choice of threads.
pub fn recipes(
    plan: &Plan,
    memory: MemoryVariant,
    block: Option<(u32, u32)>,
    limits: &DeviceInfo,
) -> Result<Vec<Recipe>, EngineError> {
    let mut recipes = Vec::new();
    for step in &plan.steps {
        for (planes, _) in groups(step) {
            recipes.push(match choose(step, plan.format, planes, memory, block, limits)? {
                Choice::Tensor(kernel) => kernel.recipe,
                Choice::Plain(tuned, _) => tuned.recipe,
            });
        }
        if step.alpha.is_some() {
            recipes.push(alpha_recipe(plan.format));
        }
    }
    Ok(recipes)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::filter::{Algorithm, Chain, Filter, Mask, Planes};
    use crate::frame::Colour;

    fn limits() -> DeviceInfo {
        DeviceInfo {
            shared_per_block: 48 * 1024,
            shared_per_block_optin: 64 * 1024,
            max_threads_per_block: 1024,
            max_block: (1024, 1024),
            ..DeviceInfo::default()
        }
    }

    fn plan(format: &str, size: usize, planes: Planes) -> Plan {
        let weights = vec![1.0 / (size * size) as f64; size * size];
        let chain = Chain {
            filters: vec![Filter {
                label: "box".to_owned(),
                mask: Mask::new(size, size, weights).unwrap(),
                bias: 0.0,
            }],
            border: Border::Replicate,
            planes,
            algorithm: Algorithm::Direct,
        };
        Plan::new(
            &chain,
            PixelFormat::from_name(format).unwrap(),
            &Colour::default(),
        )
        .unwrap()
    }

    #[test]
    fn names_are_read_back() {
        for variant in MemoryVariant::ALL {
            assert_eq!(variant.name().parse(), Ok(variant));
        }
        assert!("cached".parse::<MemoryVariant>().is_err());
    }

    #[test]
    fn planes_of_one_interleaving_share_a_launch() {
        let yuv = plan("yuv420p", 3, Planes::All);
        assert_eq!(groups(&yuv.steps[0]).len(), 1);
        assert_eq!(groups(&yuv.steps[0])[0].1, [0, 1, 2]);
        let nv12 = plan("nv12", 3, Planes::All);
        assert_eq!(groups(&nv12.steps[0]).len(), 2);
        let luma = plan("nv12", 3, Planes::Luma);
        assert_eq!(groups(&luma.steps[0]).len(), 1);
        assert_eq!(plane_work(&luma.steps[0].planes[1]), PlaneWork::Copy);
        let gray = plan("nv12", 3, Planes::Gray);
        assert_eq!(plane_work(&gray.steps[0].planes[1]), PlaneWork::Fill(128));
    }

    #[test]
    fn blocks_that_cannot_launch_are_refused_with_the_limit() {
        let plan = plan("rgba64le", 63, Planes::All);
        let refusal = |block, memory| {
            recipes(&plan, memory, Some(block), &limits())
                .unwrap_err()
                .to_string()
        };
        let many = refusal((64, 32), MemoryVariant::Global);
        assert!(many.contains("2048") && many.contains("1024"), "{many}");
        assert!(refusal((0, 8), MemoryVariant::Global).contains("at least 1"));
        let small = DeviceInfo {
            shared_per_block_optin: 48 * 1024,
            ..limits()
        };
        let tile = recipes(&plan, MemoryVariant::Shared, Some((32, 32)), &small).unwrap_err();
        assert!(tile.to_string().contains("allows 49152"), "{tile}");
        assert!(recipes(&plan, MemoryVariant::Global, Some((32, 32)), &limits()).is_ok());
    }

    #[test]
    fn the_largest_mask_fits_every_variant_without_a_block_from_the_user() {
        for format in ["gray", "rgba", "rgba64le"] {
            let plan = plan(format, 63, Planes::AllWithAlpha);
            for memory in MemoryVariant::ALL {
                assert!(
                    recipes(&plan, memory, None, &limits()).is_ok(),
                    "{format} {memory}"
                );
            }
        }
    }
}
