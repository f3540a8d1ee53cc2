//! Chooses the kernel of a job: by what the user asks for, what the card can do and what was measured.
//!
//! ```text
//! --memory VARIANT        that one, or an error that says what the card lacks
//! tensor                  tensor cores wherever they can do it, else as auto; an error for filters of more
//!                         masks than they can do
//! auto                    of the variants that can do it, the fastest by a table of times:
//!                            features    a launch in the numbers that decide: mask, channels, bytes, samples
//!                            table       measured times by features, with a rule where nothing was measured
//!                            hopper      the table that is built in for one generation of cards
//!                            table_file  the table that `framepipe bench tune` measured here
//! --engine auto           a card, where the run is long enough: crossover
//! two filters in a row    one launch, where tensor cores do both and that takes less time
//! ```
//!
//! Every choice is reported with its reason (`--explain`).

pub(crate) mod crossover;
pub(crate) mod features;
pub(crate) mod float;
pub(crate) mod hopper;
pub(crate) mod table;
pub(crate) mod table_file;

use super::compile::Recipe;
use super::driver::device::DeviceInfo;
use super::kernels::plane_group::{PlaneGroup, groups};
use super::kernels::scalar::{BlockShape, Tuned, threshold_recipe, tune};
use super::kernels::tensor::fused::Pair;
use super::kernels::tensor::{self, TensorKernel, Unfit};
use super::kernels::variant::MemoryVariant;
use crate::engine::EngineError;
use crate::filter::{Chain, FloatPlan, Kernel, Plan, Step};
use crate::frame::{Colour, PixelFormat};
use features::LaunchFeatures;
use table::Table;

/// The context of kernel selection, besides the launch's features.
#[derive(Debug, Clone, Copy)]
pub struct SelectContext<'a> {
    /// Where kernels keep weights and pixels.
    pub memory: MemoryVariant,
    /// Threads of a block; `None` for the variant's own.
    pub block: Option<(u32, u32)>,
    /// Whether two steps of a chain may share a launch.
    pub fuse: bool,
    /// Pixels across and rows of a frame.
    pub size: (usize, usize),
    /// The card.
    pub card: &'a DeviceInfo,
    /// The table of times.
    pub table: &'a Table,
}

/// The kernel that was chosen for one job.
pub(crate) enum Choice {
    /// On tensor cores.
    Tensor(Box<TensorKernel>),
    /// A scalar kernel.
    Scalar(Tuned),
}

impl Choice {
    fn shape(&self) -> String {
        match self {
            Choice::Tensor(kernel) => {
                let name = kernel.source().name();
                format!("{name} in tiles of {}x{} bytes", kernel.tile.0, kernel.tile.1)
            }
            Choice::Scalar(tuned) => {
                let name = tuned.recipe.source.name();
                let BlockShape { block, outputs } = tuned.shape;
                let rows = if outputs == 1 { "row" } else { "rows" };
                format!(
                    "{name} in blocks of {}x{} threads, {outputs} {rows} a thread",
                    block.0, block.1
                )
            }
        }
    }
}

/// The kernel of one job, and why it was chosen, in words. `auto` takes the variant that is the fastest by
/// the table; `tensor` takes tensor cores wherever they can do it, else what `auto` takes.
pub(crate) fn choose(
    job: &PlaneGroup<'_>,
    context: &SelectContext<'_>,
) -> Result<(Choice, String), EngineError> {
    let memory = context.memory;
    if let Kernel::Pyramid(kernel) = &job.step.kernel {
        let choice = Choice::Scalar(tune(job, MemoryVariant::Constant, context.block, context.card)?);
        let (shape, step) = (choice.shape(), kernel.grid.step);
        let why = format!("{shape}, of a picture {step} times smaller along each side: there is one way");
        return Ok((choice, why));
    }
    if !memory.is_chosen() {
        let choice = Choice::Scalar(tune(job, memory, context.block, context.card)?);
        let why = format!("{}: memory variant {memory}, as requested", choice.shape());
        return Ok((choice, why));
    }
    let tensor = tensor_kernel(job, context);
    let unfit = tensor.as_ref().err().copied();
    if let (MemoryVariant::Tensor, Some(unfit @ Unfit::Response)) = (memory, unfit) {
        return Err(EngineError::Unfit(format!(
            "--memory tensor is not available for this filter: {unfit}; use --memory auto"
        )));
    }
    let tensor = match tensor {
        Ok(kernel) if memory == MemoryVariant::Tensor => {
            let choice = Choice::Tensor(Box::new(kernel));
            let why = format!("{}: memory variant {memory}, as requested", choice.shape());
            return Ok((choice, why));
        }
        other => other.ok(),
    };
    let work = LaunchFeatures::of(job.step, job.format, job.interleaving, job.planes, context.size)?;
    let able = able(job, context, tensor.is_some());
    let Some(pick) = context.table.pick(&work, &able) else {
        // No variant can do it: report the error of the one with the fewest needs.
        return tune(job, MemoryVariant::Constant, context.block, context.card)
            .map(|tuned| (Choice::Scalar(tuned), String::new()));
    };
    let choice = match (pick.variant, tensor) {
        (MemoryVariant::Tensor, Some(kernel)) => Choice::Tensor(Box::new(kernel)),
        (variant, _) => Choice::Scalar(tune(job, variant, context.block, context.card)?),
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
fn tensor_kernel(job: &PlaneGroup<'_>, context: &SelectContext<'_>) -> Result<TensorKernel, Unfit> {
    match context.block {
        Some(_) => Err(Unfit::Block),
        None => tensor::tune(job.step, job.format, job.interleaving, context.card),
    }
}

/// A part of a plan: one step, or two that share a launch.
pub(crate) struct Part<'a> {
    /// The first step's place in the plan.
    pub(crate) index: usize,
    /// If two steps share a launch, both and their kernel.
    pub(crate) pair: Option<(Pair<'a>, TensorKernel)>,
}

/// The parts of a plan. From the first step on, two steps share a launch if tensor cores would do each of
/// them and one launch takes less time.
pub(crate) fn parts<'a>(plan: &'a Plan, context: &SelectContext<'_>) -> Vec<Part<'a>> {
    let mut parts = Vec::new();
    let mut index = 0;
    while index < plan.steps.len() {
        let pair = pair(plan, index, context);
        let steps = if pair.is_some() { 2 } else { 1 };
        parts.push(Part { index, pair });
        index += steps;
    }
    parts
}

/// The step at `index` and the next one in one launch, if that pays.
fn pair<'a>(plan: &'a Plan, index: usize, context: &SelectContext<'_>) -> Option<(Pair<'a>, TensorKernel)> {
    let (first, next) = (plan.steps.get(index)?, plan.steps.get(index + 1)?);
    let pair = Pair::new(first, next, plan.format).filter(Pair::pays)?;
    let is_tensor = |step: &Step| {
        groups(step).into_iter().all(|(interleaving, planes)| {
            let job = PlaneGroup {
                step,
                format: plan.format,
                interleaving,
                planes: &planes,
            };
            matches!(choose(&job, context), Ok((Choice::Tensor(_), _)))
        })
    };
    let allowed = context.fuse && is_tensor(first) && is_tensor(next);
    let kernel = allowed.then(|| pair.tune(context.card))?.ok()?;
    Some((pair, kernel))
}

/// The variants that can do a job and that `auto` chooses among; `tensor` says whether tensor cores can.
fn able(job: &PlaneGroup<'_>, context: &SelectContext<'_>, tensor: bool) -> Vec<MemoryVariant> {
    let plain = MemoryVariant::SCALAR
        .into_iter()
        .filter(|&v| tune(job, v, context.block, context.card).is_ok());
    tensor
        .then_some(MemoryVariant::Tensor)
        .into_iter()
        .chain(plain)
        .collect()
}

/// The features of each job of `plan`, with the variants that can do it and that `auto` chooses among. Colour
/// under alpha has no choice and is left out. `context.memory` and `context.table` do not matter.
pub fn contest(
    plan: &Plan,
    context: &SelectContext<'_>,
) -> Result<Vec<(LaunchFeatures, Vec<MemoryVariant>)>, EngineError> {
    let mut list = Vec::new();
    let is_chosen = |step: &&Step| !matches!(step.kernel, Kernel::Weighted(_));
    for step in plan.steps.iter().filter(is_chosen) {
        for (interleaving, planes) in groups(step) {
            let job = PlaneGroup {
                step,
                format: plan.format,
                interleaving,
                planes: &planes,
            };
            let able = able(&job, context, tensor_kernel(&job, context).is_ok());
            let work = LaunchFeatures::of(step, plan.format, interleaving, &planes, context.size)?;
            list.push((work, able));
        }
    }
    Ok(list)
}

/// All kernels of `chain` for frames of `format`.
pub fn chain_recipes(
    chain: &Chain,
    format: PixelFormat,
    context: &SelectContext<'_>,
) -> Result<Vec<Recipe>, EngineError> {
    let colour = Colour::default();
    match format.is_float() {
        true => float::float_recipes(&FloatPlan::new(chain, format, &colour)?, context),
        false => recipes(&Plan::new(chain, format, &colour)?, context),
    }
}

/// All kernels of `plan`.
pub fn recipes(plan: &Plan, context: &SelectContext<'_>) -> Result<Vec<Recipe>, EngineError> {
    let mut recipes = Vec::new();
    for part in parts(plan, context) {
        if let Some((_, kernel)) = part.pair {
            recipes.extend(kernel.recipes());
            continue;
        }
        let step = &plan.steps[part.index];
        if let Kernel::Weighted(kernel) = &step.kernel {
            recipes.extend(float::weighted_recipes(step, kernel, plan.format, context)?);
            continue;
        }
        for (interleaving, planes) in groups(step) {
            recipes.extend(threshold_recipe(step, plan.format, interleaving));
            let job = PlaneGroup {
                step,
                format: plan.format,
                interleaving,
                planes: &planes,
            };
            match choose(&job, context)?.0 {
                Choice::Tensor(kernel) => recipes.extend(kernel.recipes()),
                Choice::Scalar(tuned) => recipes.push(tuned.recipe),
            }
        }
    }
    Ok(recipes)
}

#[cfg(test)]
mod tests {
    use super::table::{Origin, TableCell, VariantTime};
    use super::*;
    use crate::filter::{Algorithm, AlphaWeighting, Border, Chain, Filter, Mask, Planes};
    use crate::frame::{Colour, PixelFormat};

    fn limits() -> DeviceInfo {
        DeviceInfo {
            shared_per_block: 48 * 1024,
            shared_per_block_optin: 64 * 1024,
            max_threads_per_block: 1024,
            max_block: (1024, 1024),
            ..DeviceInfo::default()
        }
    }

    fn context<'a>(
        memory: MemoryVariant,
        block: Option<(u32, u32)>,
        card: &'a DeviceInfo,
        table: &'a Table,
    ) -> SelectContext<'a> {
        SelectContext {
            memory,
            block,
            fuse: true,
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
            filters: vec![Filter::of_mask("box", Mask::new(size, size, weights).unwrap())],
            border: Border::Replicate,
            planes,
            algorithm,
            // Colour under alpha has kernels of its own.
            alpha: AlphaWeighting::Straight,
        };
        Plan::new(
            &chain,
            PixelFormat::from_name(format).unwrap(),
            &Colour::default(),
        )
        .unwrap()
    }

    #[test]
    fn blocks_that_cannot_launch_are_refused_with_the_limit() {
        let plan = plan("rgba64le", 63, Planes::All);
        let (card, table) = (limits(), Table::rule());
        let refusal = |block, memory| {
            recipes(&plan, &context(memory, Some(block), &card, &table))
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
        let tile = context(MemoryVariant::Shared, Some((32, 32)), &small, &table);
        let tile = recipes(&plan, &tile).unwrap_err();
        assert!(tile.to_string().contains("allows 49152"), "{tile}");
        let global = context(MemoryVariant::Global, Some((32, 32)), &card, &table);
        assert!(recipes(&plan, &global).is_ok());
    }

    #[test]
    fn the_largest_mask_fits_every_variant_without_a_block_from_the_user() {
        for format in ["gray", "rgba", "rgba64le"] {
            let plan = plan(format, 63, Planes::AllWithAlpha);
            for memory in MemoryVariant::ALL {
                assert!(
                    recipes(&plan, &context(memory, None, &limits(), &Table::rule())).is_ok(),
                    "{format} {memory}"
                );
            }
        }
    }

    /// The choice for a plan's first job.
    fn chosen(plan: &Plan, context: &SelectContext<'_>) -> (Choice, String) {
        let (interleaving, planes) = groups(&plan.steps[0]).remove(0);
        let job = PlaneGroup {
            step: &plan.steps[0],
            format: plan.format,
            interleaving,
            planes: &planes,
        };
        choose(&job, context).unwrap()
    }

    fn shape(plan: &Plan, context: &SelectContext<'_>) -> BlockShape {
        match chosen(plan, context).0 {
            Choice::Scalar(tuned) => tuned.shape,
            Choice::Tensor(_) => panic!("tensor cores were taken"),
        }
    }

    #[test]
    fn registers_compute_fewer_rows_a_thread_where_a_mask_is_too_large_for_more() {
        let (card, table) = (limits(), Table::rule());
        let rows = |format: &str, size, block| {
            let context = context(MemoryVariant::Registers, block, &card, &table);
            shape(&plan(format, size, Planes::All), &context).outputs
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
        let other = context(MemoryVariant::ConstantShared, None, &card, &table);
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
    fn auto_goes_by_the_table_and_says_so() {
        let h200 = card("NVIDIA H200", (9, 0));
        let table = hopper::table(&h200).unwrap();
        let auto = context(MemoryVariant::Auto, None, &h200, &table);
        let (choice, why) = chosen(&plan("gray", 9, Planes::All), &auto);
        assert!(matches!(choice, Choice::Tensor(_)), "{why}");
        assert!(
            why.contains("variant tensor by the built-in table of Hopper cards (measured on an NVIDIA H200)")
                && why.contains("nearest cell direct 9x9"),
            "{why}"
        );
        // Three bytes between the passes are tensor cores' work too.
        let deep = plan_with("gray16le", 15, Planes::All, Algorithm::Separable);
        let (choice, why) = chosen(&deep, &auto);
        assert!(matches!(choice, Choice::Tensor(_)), "{why}");
        assert!(why.contains("nearest cell separable 15x15"), "{why}");
        let blocks = context(MemoryVariant::Auto, Some((32, 8)), &h200, &table);
        let (choice, why) = chosen(&plan("gray", 7, Planes::All), &blocks);
        let Choice::Scalar(tuned) = choice else {
            panic!("{why}")
        };
        assert_eq!(tuned.shape.outputs, 8);
        assert!(
            why.contains("since --block was given; memory variant registers by")
                && why.contains("registers 0.0150 ms, constant-shared 0.0241 ms"),
            "{why}"
        );
        let (_, why) = chosen(&plan("gray", 15, Planes::All), &blocks);
        assert!(why.contains("variant registers by"), "{why}");
        let asked = context(MemoryVariant::Registers, None, &h200, &table);
        let (_, why) = chosen(&plan("gray", 15, Planes::All), &asked);
        assert!(why.ends_with("memory variant registers, as requested"), "{why}");
    }

    #[test]
    fn a_measured_table_may_prefer_another_variant_to_tensor_cores() {
        let ampere = card("a card", (8, 0));
        let plan = plan("gray", 3, Planes::All);
        let of = |table: &Table, memory| {
            let (choice, why) = chosen(&plan, &context(memory, None, &ampere, table));
            (matches!(choice, Choice::Tensor(_)), why)
        };
        let (tensor, why) = of(&Table::rule(), MemoryVariant::Auto);
        assert!(tensor && why.contains("rule for cards"), "{why}");
        let rule = Table::rule();
        let contest = contest(&plan, &context(MemoryVariant::Auto, None, &ampere, &rule)).unwrap();
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
    fn steps_share_a_launch_two_by_two_where_tensor_cores_do_both() {
        let h200 = DeviceInfo {
            shared_per_multiprocessor: 228 << 10,
            ..card("NVIDIA H200", (9, 0))
        };
        let table = Table::rule();
        let plan = |specs: &[&str]| {
            let chain = Chain {
                filters: specs.iter().map(|spec| spec.parse().unwrap()).collect(),
                border: Border::Replicate,
                planes: Planes::All,
                algorithm: Algorithm::Auto,
                alpha: Default::default(),
            };
            let gray = PixelFormat::from_name("gray").unwrap();
            Plan::new(&chain, gray, &Colour::default()).unwrap()
        };
        let shared = |specs: &[&str], context: &SelectContext<'_>| {
            let plan = plan(specs);
            let parts = parts(&plan, context).into_iter();
            parts
                .map(|part| (part.index, part.pair.is_some()))
                .collect::<Vec<_>>()
        };
        let auto = context(MemoryVariant::Auto, None, &h200, &table);
        let (two, three) = (["sharpen", "box:size=3"], ["sharpen", "box:size=3", "laplacian8"]);
        assert_eq!(shared(&two, &auto), [(0, true)]);
        assert_eq!(shared(&three, &auto), [(0, true), (2, false)]);
        // The first two are not both whole masks, the last two are.
        let late = ["gaussian:size=7", "sharpen", "box:size=3"];
        assert_eq!(shared(&late, &auto), [(0, false), (1, true)]);
        let apart = [(0, false), (1, false)];
        assert_eq!(shared(&two, &SelectContext { fuse: false, ..auto }), apart);
        for (memory, block) in [
            (MemoryVariant::Shared, None),
            (MemoryVariant::Auto, Some((32, 8))),
        ] {
            assert_eq!(shared(&two, &context(memory, block, &h200, &table)), apart);
        }
        let sources = recipes(&plan(&three), &auto).unwrap();
        let names: Vec<_> = sources.iter().map(|recipe| recipe.source.name()).collect();
        assert_eq!(names[..3], ["tensor/fused.cu"; 3]);
        assert_eq!(names[3..], ["tensor/direct.cu"; 3]);
    }

    #[test]
    fn where_tensor_cores_cannot_the_others_compete() {
        let turing = card("an older card", (7, 5));
        let table = Table::rule();
        let context = context(MemoryVariant::Tensor, None, &turing, &table);
        for (size, algorithm) in [(11, Algorithm::Direct), (63, Algorithm::Separable)] {
            let plan = plan_with("gray", size, Planes::All, algorithm);
            let (_, why) = chosen(&plan, &context);
            assert!(
                why.contains("capability is below 8.0; memory variant registers"),
                "{why}"
            );
        }
    }
}
