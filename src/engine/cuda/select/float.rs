//! Chooses the kernel of a job with floating-point sums: by what the user asks for and what is possible. No
//! times are needed, since a tile is faster wherever it is possible.

use super::SelectContext;
use crate::engine::EngineError;
use crate::engine::cuda::compile::Recipe;
use crate::engine::cuda::kernels::float::{
    FloatJob, FloatTuned, FloatUnfit, Samples, float_alpha_recipe, float_groups, pyramid, tune,
    weighted_alpha_recipe, weighted_jobs,
};
use crate::engine::cuda::kernels::plane_group::Interleaving;
use crate::engine::cuda::kernels::variant::MemoryVariant;
use crate::filter::{FloatKernel, FloatPlan, FloatStep, Step, WeightedKernel};
use crate::frame::PixelFormat;

/// The job of a group of planes of `step`.
pub(crate) fn float_job<'a>(
    step: &'a FloatStep,
    plan: &FloatPlan,
    interleaving: Interleaving,
) -> FloatJob<'a> {
    FloatJob {
        kernel: &step.kernel,
        border: step.border,
        // Colour times alpha, and its sums, are not rounded to samples.
        samples: Samples::Floats(match step.alpha {
            Some(_) => size_of::<f32>(),
            None => plan.format.bytes_per_sample(),
        }),
        interleaving,
        compares: step.alpha.is_none() && step.threshold > 0.0,
    }
}

/// The kernel of one job, and why it was chosen, in words.
pub(crate) fn choose_float(
    job: &FloatJob<'_>,
    context: &SelectContext<'_>,
) -> Result<(FloatTuned, String), EngineError> {
    let memory = context.memory;
    if let FloatKernel::Pyramid(kernel) = job.kernel {
        let tuned = pyramid(kernel, job);
        let (shape, step) = (shape(&tuned), kernel.grid.step);
        let why = format!("{shape}, of a picture {step} times smaller along each side: there is one way");
        return Ok((tuned, why));
    }
    let tune = |memory| tune(job, memory, context.block, context.card);
    if !memory.is_chosen() {
        let tuned = tune(memory)?.map_err(|unfit| {
            EngineError::Unfit(format!(
                "--memory {memory} is not available for this filter of floating-point sums: {unfit}; use \
                 --memory auto"
            ))
        })?;
        let why = format!("{}: memory variant {memory}, as requested", shape(&tuned));
        return Ok((tuned, why));
    }
    let without = match memory {
        MemoryVariant::Tensor => "without tensor cores, since they multiply integers; ",
        _ => "",
    };
    let (tuned, variant, why) = match tune(MemoryVariant::Registers)? {
        Ok(tuned) => (
            tuned,
            MemoryVariant::Registers,
            "as a tile is read least".to_owned(),
        ),
        Err(unfit) => (
            plain(tune(MemoryVariant::Constant)?)?,
            MemoryVariant::Constant,
            format!("since {unfit}"),
        ),
    };
    let why = format!("{}: {without}memory variant {variant}, {why}", shape(&tuned));
    Ok((tuned, why))
}

fn plain(tuned: Result<FloatTuned, FloatUnfit>) -> Result<FloatTuned, EngineError> {
    tuned.map_err(|unfit| EngineError::Unfit(format!("{unfit}; use --engine cpu")))
}

fn shape(tuned: &FloatTuned) -> String {
    let (across, down) = tuned.shape.block;
    let each = match (tuned.is_tiled, tuned.shape.outputs) {
        (true, 1) => "4 samples a thread".to_owned(),
        (true, rows) => format!("4 samples in {rows} rows a thread"),
        (false, 1) => "1 row a thread".to_owned(),
        (false, rows) => format!("{rows} rows a thread"),
    };
    format!(
        "{} in blocks of {across}x{down} threads, {each}",
        tuned.recipe.source.name()
    )
}

/// All kernels of `plan`.
pub(crate) fn float_recipes(
    plan: &FloatPlan,
    context: &SelectContext<'_>,
) -> Result<Vec<Recipe>, EngineError> {
    let mut recipes = Vec::new();
    for step in &plan.steps {
        for (interleaving, _) in float_groups(step) {
            recipes.push(
                choose_float(&float_job(step, plan, interleaving), context)?
                    .0
                    .recipe,
            );
        }
        if step.alpha.is_some() {
            recipes.push(float_alpha_recipe(step, plan.format));
        }
    }
    Ok(recipes)
}

/// All kernels of a step of colour under alpha.
pub(crate) fn weighted_recipes(
    step: &Step,
    kernel: &WeightedKernel,
    format: PixelFormat,
    context: &SelectContext<'_>,
) -> Result<Vec<Recipe>, EngineError> {
    let mut recipes = Vec::new();
    let mut divides = true;
    for (job, _) in weighted_jobs(step, kernel, format) {
        let (tuned, _) = choose_float(&job, context)?;
        divides &= tuned.divides;
        recipes.push(tuned.recipe);
    }
    if !divides {
        recipes.push(weighted_alpha_recipe(step, kernel, format));
    }
    Ok(recipes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cuda::driver::device::DeviceInfo;
    use crate::engine::cuda::select::table::Table;
    use crate::filter::Chain;
    use crate::frame::{Colour, PixelFormat};

    fn chosen(filter: &str, format: &str, memory: MemoryVariant) -> Result<String, EngineError> {
        let card = DeviceInfo {
            shared_per_block: 48 << 10,
            shared_per_block_optin: 227 << 10,
            shared_per_multiprocessor: 228 << 10,
            max_threads_per_block: 1024,
            max_block: (1024, 1024),
            ..DeviceInfo::default()
        };
        let table = Table::rule();
        let context = SelectContext {
            memory,
            block: None,
            fuse: true,
            size: (640, 360),
            card: &card,
            table: &table,
        };
        let format: PixelFormat = format.parse().unwrap();
        let plan = FloatPlan::new(&Chain::parse(filter).unwrap(), format, &Colour::default()).unwrap();
        let (interleaving, _) = float_groups(&plan.steps[0]).remove(0);
        choose_float(&float_job(&plan.steps[0], &plan, interleaving), &context).map(|(_, why)| why)
    }

    #[test]
    fn auto_takes_a_tile_where_there_can_be_one_and_says_why_not_elsewhere() {
        let auto = |filter, format| chosen(filter, format, MemoryVariant::Auto).unwrap();
        let tiled = auto("gaussian:sigma=2", "rgbf32");
        assert!(
            tiled.contains("float/separable.cu in blocks of 32x8 threads, 4 samples in 4 rows")
                && tiled.contains("memory variant registers"),
            "{tiled}"
        );
        let many = auto("gaussian:sigma=2", "f32x5");
        assert!(
            many.contains("float/passes.cu")
                && many.contains("memory variant constant, since")
                && many.contains("up to 4 components"),
            "{many}"
        );
        for memory in MemoryVariant::ALL {
            let wide = chosen("gaussian:sigma=30", "grayf16", memory).unwrap();
            assert!(
                wide.contains("float/pyramid.cu in blocks of 64x4 threads, 1 row a thread")
                    && wide.contains("8 times smaller along each side: there is one way"),
                "{wide}"
            );
        }
        let tensor = chosen("box:size=3", "grayf32", MemoryVariant::Tensor).unwrap();
        assert!(
            tensor.contains("without tensor cores, since they multiply integers"),
            "{tensor}"
        );
    }

    #[test]
    fn variants_that_cannot_do_it_say_so() {
        for (filter, format, memory, reason) in [
            (
                "box:size=3",
                "grayf32",
                MemoryVariant::Texture,
                "--memory texture is not available",
            ),
            ("box:size=3", "f16x5", MemoryVariant::Registers, "4 components"),
        ] {
            let error = chosen(filter, format, memory).unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("use --memory auto"),
                "{error}"
            );
        }
    }
}
