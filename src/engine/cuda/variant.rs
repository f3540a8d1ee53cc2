//! The memory variants: their names, the shape of their blocks, and the compile-time parameters of their kernels.

use super::device::DeviceInfo;
use super::program::{Recipe, Source};
use super::table::Table;
use super::tensor::{self, TensorKernel, Unfit};
use super::work::Work;
use crate::engine::EngineError;
use crate::filter::{Border, ChannelStep, Kernel, Plan, Step};
use crate::frame::PixelFormat;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Where a CUDA kernel keeps weights and pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryVariant {
    /// The fastest for the card, the mask, the format and the size, by a table of times.
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
    /// Weights in constant memory or compiled in, pixels in a shared tile, from which each thread keeps what it read in registers for several rows.
    Registers,
    /// Weights in registers as bands of bytes, pixels in a shared tile, multiplied by tensor cores; where they cannot, as [`MemoryVariant::Auto`]
    /// without them.
    Tensor,
}

impl MemoryVariant {
    /// Every variant, `auto` first.
    pub const ALL: [MemoryVariant; 8] = [
        MemoryVariant::Auto,
        MemoryVariant::Global,
        MemoryVariant::Constant,
        MemoryVariant::Shared,
        MemoryVariant::ConstantShared,
        MemoryVariant::Texture,
        MemoryVariant::Registers,
        MemoryVariant::Tensor,
    ];

    /// The variants that `auto` chooses among, beside tensor cores. Not `texture`, which wants rows aligned and has never won.
    const PLAIN: [MemoryVariant; 5] = [
        MemoryVariant::Registers,
        MemoryVariant::ConstantShared,
        MemoryVariant::Shared,
        MemoryVariant::Constant,
        MemoryVariant::Global,
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
            MemoryVariant::Registers => "registers",
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
            | MemoryVariant::Registers
            | MemoryVariant::Tensor => Pixels::Shared,
            MemoryVariant::Texture => Pixels::Texture,
        }
    }

    /// True if the table decides what runs.
    pub(super) fn is_chosen(self) -> bool {
        matches!(self, MemoryVariant::Auto | MemoryVariant::Tensor)
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
#[error(
    "'{0}' is no memory variant; use auto, global, constant, shared, constant-shared, texture, registers or tensor"
)]
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
    /// True if the weights lie in constant memory.
    pub(super) constant_weights: bool,
}

/// What a kernel is chosen by, beside its work.
#[derive(Debug, Clone, Copy)]
pub struct Terms<'a> {
    /// Where kernels keep weights and pixels.
    pub memory: MemoryVariant,
    /// Threads of a block; `None` for the variant's own.
    pub block: Option<(u32, u32)>,
    /// Pixels across and rows of a frame.
    pub size: (usize, usize),
    /// The card.
    pub card: &'a DeviceInfo,
    /// What was measured.
    pub table: &'a Table,
}

/// Planes of one interleaving in a step: what one kernel works on.
pub(super) struct Job<'a> {
    pub(super) step: &'a Step,
    pub(super) format: PixelFormat,
    pub(super) interleaving: Interleaving,
    pub(super) planes: &'a [usize],
}

/// The kernel that was chosen for one job.
pub(super) enum Choice {
    /// On tensor cores.
    Tensor(Box<TensorKernel>),
    /// One value at a time.
    Plain(Tuned),
}

impl Choice {
    pub(super) fn recipe(&self) -> &Recipe {
        match self {
            Choice::Tensor(kernel) => &kernel.recipe,
            Choice::Plain(tuned) => &tuned.recipe,
        }
    }

    fn into_recipe(self) -> Recipe {
        match self {
            Choice::Tensor(kernel) => kernel.recipe,
            Choice::Plain(tuned) => tuned.recipe,
        }
    }

    fn shape(&self) -> String {
        let name = self.recipe().source.name();
        match self {
            Choice::Tensor(kernel) => {
                format!("{name} in tiles of {}x{} bytes", kernel.tile.0, kernel.tile.1)
            }
            Choice::Plain(tuned) => {
                let Shape { block, outputs } = tuned.shape;
                let rows = if outputs == 1 { "row" } else { "rows" };
                format!(
                    "{name} in blocks of {}x{} threads, {outputs} {rows} a thread",
                    block.0, block.1
                )
            }
        }
    }
}

/// The kernel of one job, and what was chosen and why, for people. `auto` takes the variant that the table says is the fastest, `tensor` tensor cores
/// wherever they can do it and else what `auto` takes.
pub(super) fn choose(job: &Job<'_>, terms: &Terms<'_>) -> Result<(Choice, String), EngineError> {
    let memory = terms.memory;
    if !memory.is_chosen() {
        let choice = Choice::Plain(tune(job, memory, terms)?);
        let why = format!("{}: memory variant {memory}, as asked for", choice.shape());
        return Ok((choice, why));
    }
    let tensor = tensor_kernel(job, terms);
    let unfit = tensor.as_ref().err().copied();
    let tensor = match tensor {
        Ok(kernel) if memory == MemoryVariant::Tensor => {
            let choice = Choice::Tensor(Box::new(kernel));
            let why = format!("{}: memory variant {memory}, as asked for", choice.shape());
            return Ok((choice, why));
        }
        other => other.ok(),
    };
    let work = Work::of(job.step, job.format, job.interleaving, job.planes, terms.size)?;
    let able = able(job, terms, tensor.is_some());
    let Some(pick) = terms.table.pick(&work, &able) else {
        // Nothing can do it: the error of the one that takes the least says why.
        return tune(job, MemoryVariant::Constant, terms).map(|tuned| (Choice::Plain(tuned), String::new()));
    };
    let choice = match (pick.variant, tensor) {
        (MemoryVariant::Tensor, Some(kernel)) => Choice::Tensor(Box::new(kernel)),
        (variant, _) => Choice::Plain(tune(job, variant, terms)?),
    };
    let without = unfit.map_or_else(String::new, |unfit| {
        format!("without tensor cores, since {unfit}; ")
    });
    let why = format!(
        "{}: {without}memory variant {} {}",
        choice.shape(),
        pick.variant,
        pick.why
    );
    Ok((choice, why))
}

/// The kernel of one job on tensor cores, or why they cannot do it.
fn tensor_kernel(job: &Job<'_>, terms: &Terms<'_>) -> Result<TensorKernel, Unfit> {
    match terms.block {
        Some(_) => Err(Unfit::Block),
        None => tensor::tune(job.step, job.format, job.interleaving, terms.card),
    }
}

/// The variants that can do a job and that `auto` chooses among; `tensor` says whether tensor cores can.
fn able(job: &Job<'_>, terms: &Terms<'_>, tensor: bool) -> Vec<MemoryVariant> {
    let plain = MemoryVariant::PLAIN
        .into_iter()
        .filter(|&v| tune(job, v, terms).is_ok());
    tensor
        .then_some(MemoryVariant::Tensor)
        .into_iter()
        .chain(plain)
        .collect()
}

/// The work of each job of `plan`, with the variants that can do it and that `auto` chooses among. `terms.memory` and `terms.table` have no say.
pub fn contest(plan: &Plan, terms: &Terms<'_>) -> Result<Vec<(Work, Vec<MemoryVariant>)>, EngineError> {
    let mut list = Vec::new();
    for step in &plan.steps {
        for (interleaving, planes) in groups(step) {
            let job = Job {
                step,
                format: plan.format,
                interleaving,
                planes: &planes,
            };
            let able = able(&job, terms, tensor_kernel(&job, terms).is_ok());
            let work = Work::of(step, plan.format, interleaving, &planes, terms.size)?;
            list.push((work, able));
        }
    }
    Ok(list)
}

/// The kernel of one step for planes of one interleaving that works on one value at a time.
fn tune(job: &Job<'_>, memory: MemoryVariant, terms: &Terms<'_>) -> Result<Tuned, EngineError> {
    let &Job {
        step,
        format,
        interleaving: planes,
        ..
    } = job;
    let limits = terms.card;
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
    let rows = rows_a_thread(memory, mask.1, wide);
    let shape = match terms.block {
        Some(block) => checked(block, rows, limits, &most)?,
        None => default_shape(memory, rows, limits, &most)?,
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
        constant_weights: memory.has_constant_weights(),
    })
}

/// Multiply-adds down one column of a mask for all of a thread's rows, at most: what convolve.cuh unrolls for a large mask. A sum of 64 bits takes
/// two instructions.
const MOST_IN_A_COLUMN: usize = 512;

/// Rows that a thread of a variant computes, where the tile fits. A value is used for as many rows from a register, and a weight too; what a column
/// of the mask takes must stay code that is fetched fast.
fn rows_a_thread(memory: MemoryVariant, mask_rows: usize, wide: bool) -> u32 {
    if memory != MemoryVariant::Registers {
        return 1;
    }
    let each = mask_rows * if wide { 2 } else { 1 };
    if each * 8 <= MOST_IN_A_COLUMN { 8 } else { 4 }
}

/// The user's block, if the card can launch it; the error names the limit that it breaks. Each thread has as many of `rows` as the tile has room for.
fn checked(
    block: (u32, u32),
    rows: u32,
    limits: &DeviceInfo,
    shared: &dyn Fn(Shape) -> usize,
) -> Result<Shape, EngineError> {
    let fits = |outputs: &u32| {
        shared(Shape {
            block,
            outputs: *outputs,
        }) <= limits.shared_per_block as usize
    };
    let outputs = [8, 4, 2].into_iter().filter(|&o| o <= rows).find(fits);
    let shape = Shape {
        block,
        outputs: outputs.unwrap_or(1),
    };
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
    rows: u32,
    limits: &DeviceInfo,
    shared: &dyn Fn(Shape) -> usize,
) -> Result<Shape, EngineError> {
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
        .map(|&(block, outputs)| Shape { block, outputs })
        .filter(|shape| shape.outputs <= rows);
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

/// Every kernel that `plan` is carried out with.
pub fn recipes(plan: &Plan, terms: &Terms<'_>) -> Result<Vec<Recipe>, EngineError> {
    let mut recipes = Vec::new();
    for step in &plan.steps {
        for (interleaving, planes) in groups(step) {
            let job = Job {
                step,
                format: plan.format,
                interleaving,
                planes: &planes,
            };
            recipes.push(choose(&job, terms)?.0.into_recipe());
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
    use super::super::table::{Origin, TableCell, VariantTime};
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

    fn terms<'a>(
        memory: MemoryVariant,
        block: Option<(u32, u32)>,
        card: &'a DeviceInfo,
        table: &'a Table,
    ) -> Terms<'a> {
        Terms {
            memory,
            block,
            size: (1920, 1080),
            card,
            table,
        }
    }

    fn plan(format: &str, size: usize, planes: Planes) -> Plan {
        plan_with(format, size, planes, Algorithm::Direct)
    }

    fn plan_with(format: &str, size: usize, planes: Planes, algorithm: Algorithm) -> Plan {
        let weights = vec![1.0 / (size * size) as f64; size * size];
        let chain = Chain {
            filters: vec![Filter {
                label: "box".to_owned(),
                mask: Mask::new(size, size, weights).unwrap(),
                bias: 0.0,
            }],
            border: Border::Replicate,
            planes,
            algorithm,
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
        let (card, table) = (limits(), Table::rule());
        let refusal = |block, memory| {
            recipes(&plan, &terms(memory, Some(block), &card, &table))
                .unwrap_err()
                .to_string()
        };
        let many = refusal((64, 32), MemoryVariant::Global);
        assert!(many.contains("2048") && many.contains("1024"), "{many}");
        assert!(refusal((0, 8), MemoryVariant::Global).contains("at least 1"));
        assert!(refusal((64, 32), MemoryVariant::Auto).contains("2048"));
        let small = DeviceInfo {
            shared_per_block_optin: 48 * 1024,
            ..limits()
        };
        let tile = terms(MemoryVariant::Shared, Some((32, 32)), &small, &table);
        let tile = recipes(&plan, &tile).unwrap_err();
        assert!(tile.to_string().contains("allows 49152"), "{tile}");
        let global = terms(MemoryVariant::Global, Some((32, 32)), &card, &table);
        assert!(recipes(&plan, &global).is_ok());
    }

    #[test]
    fn the_largest_mask_fits_every_variant_without_a_block_from_the_user() {
        for format in ["gray", "rgba", "rgba64le"] {
            let plan = plan(format, 63, Planes::AllWithAlpha);
            for memory in MemoryVariant::ALL {
                assert!(
                    recipes(&plan, &terms(memory, None, &limits(), &Table::rule())).is_ok(),
                    "{format} {memory}"
                );
            }
        }
    }

    /// The choice for a plan's first job.
    fn chosen(plan: &Plan, terms: &Terms<'_>) -> (Choice, String) {
        let (interleaving, planes) = groups(&plan.steps[0]).remove(0);
        let job = Job {
            step: &plan.steps[0],
            format: plan.format,
            interleaving,
            planes: &planes,
        };
        choose(&job, terms).unwrap()
    }

    fn shape(plan: &Plan, terms: &Terms<'_>) -> Shape {
        match chosen(plan, terms).0 {
            Choice::Plain(tuned) => tuned.shape,
            Choice::Tensor(_) => panic!("tensor cores were taken"),
        }
    }

    #[test]
    fn registers_compute_fewer_rows_a_thread_where_a_mask_is_too_large_for_more() {
        let (card, table) = (limits(), Table::rule());
        let rows = |format: &str, size, block| {
            let terms = terms(MemoryVariant::Registers, block, &card, &table);
            shape(&plan(format, size, Planes::All), &terms).outputs
        };
        assert_eq!(rows("gray", 3, None), 8);
        assert_eq!(rows("gray", 63, None), 8);
        // Sums of 64 bits take twice the instructions.
        assert_eq!(rows("gray16le", 31, None), 8);
        assert_eq!(rows("gray16le", 33, None), 4);
        // The user's block too has several rows a thread.
        assert_eq!(rows("gray", 15, Some((32, 8))), 8);
        // Tiles of long pixels leave less room.
        assert_eq!(rows("rgba64le", 63, Some((64, 8))), 2);
        let other = terms(MemoryVariant::ConstantShared, None, &card, &table);
        assert_eq!(shape(&plan("gray", 3, Planes::All), &other).outputs, 1);
    }

    fn card(name: &str, compute_capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: name.to_owned(),
            compute_capability,
            shared_per_block_optin: 227 << 10,
            ..limits()
        }
    }

    #[test]
    fn auto_goes_by_the_table_and_tells_it() {
        let h200 = card("NVIDIA H200", (9, 0));
        let table = super::super::h200::table(&h200).unwrap();
        let auto = terms(MemoryVariant::Auto, None, &h200, &table);
        let (choice, why) = chosen(&plan("gray", 9, Planes::All), &auto);
        assert!(matches!(choice, Choice::Tensor(_)), "{why}");
        assert!(
            why.contains("variant tensor by the built-in table of the NVIDIA H200")
                && why.contains("nearest cell direct 9x9"),
            "{why}"
        );
        let blocks = terms(MemoryVariant::Auto, Some((32, 8)), &h200, &table);
        let (choice, why) = chosen(&plan("gray", 7, Planes::All), &blocks);
        let Choice::Plain(tuned) = choice else {
            panic!("{why}")
        };
        assert_eq!(tuned.shape.outputs, 8);
        assert!(
            why.contains("since --block was given; memory variant registers by")
                && why.contains("registers 0.0150 ms, constant-shared 0.0241 ms"),
            "{why}"
        );
        let (_, why) = chosen(&plan("gray", 15, Planes::All), &blocks);
        assert!(why.contains("variant constant-shared by"), "{why}");
        let asked = terms(MemoryVariant::Registers, None, &h200, &table);
        let (_, why) = chosen(&plan("gray", 15, Planes::All), &asked);
        assert!(why.ends_with("memory variant registers, as asked for"), "{why}");
    }

    #[test]
    fn a_measured_table_may_prefer_another_variant_to_tensor_cores() {
        let ampere = card("a card", (8, 0));
        let plan = plan("gray", 3, Planes::All);
        let of = |table: &Table, memory| {
            let (choice, why) = chosen(&plan, &terms(memory, None, &ampere, table));
            (matches!(choice, Choice::Tensor(_)), why)
        };
        let (tensor, why) = of(&Table::rule(), MemoryVariant::Auto);
        assert!(tensor && why.contains("rule for cards"), "{why}");
        let rule = Table::rule();
        let contest = contest(&plan, &terms(MemoryVariant::Auto, None, &ampere, &rule)).unwrap();
        let (work, able) = &contest[0];
        assert_eq!(able[..2], [MemoryVariant::Tensor, MemoryVariant::Registers]);
        assert_eq!(work.samples, 1920 * 1080);
        let times = able.iter().zip(1..).map(|(&variant, place)| VariantTime {
            variant,
            milliseconds: 1.0 / f64::from(place),
        });
        let measured = Table {
            origin: Origin::Measured("a date".to_owned()),
            cells: vec![TableCell {
                work: *work,
                times: times.collect(),
            }],
            ignored: None,
        };
        // The last of the list has the least time.
        let (tensor, why) = of(&measured, MemoryVariant::Auto);
        assert!(
            !tensor && why.contains("variant global by the table measured here on a date, cell direct 3x3"),
            "{why}"
        );
        // Who asks for tensor cores gets them.
        assert!(of(&measured, MemoryVariant::Tensor).0);
    }

    #[test]
    fn where_tensor_cores_cannot_the_others_compete() {
        let turing = card("an older card", (7, 5));
        let table = Table::rule();
        let terms = terms(MemoryVariant::Tensor, None, &turing, &table);
        for (size, algorithm, expected) in [
            (9, Algorithm::Direct, "registers"),
            (11, Algorithm::Direct, "constant-shared"),
            (63, Algorithm::Separable, "registers"),
        ] {
            let plan = plan_with("gray", size, Planes::All, algorithm);
            let (_, why) = chosen(&plan, &terms);
            assert!(
                why.contains("capability is below 8.0; memory variant") && why.contains(expected),
                "{why}"
            );
        }
    }
}
