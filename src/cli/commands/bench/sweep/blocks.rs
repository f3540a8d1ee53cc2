//! `framepipe bench blocks`.

use super::{FULL_HD, WorkArguments};
use crate::cli::Failure;
use crate::cli::commands::bench::Common;
use crate::cli::commands::bench::axis::{BlockChoice, algorithms};
use crate::cli::commands::bench::run::Run;
use crate::cli::options::engine::MemoryName;
use clap::Args;
use framepipe::filter::Algorithm;
use framepipe::program::bench::{Scope, Subject};

/// The sweep's axes.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("mask_sizes", |sizes| sizes.default_values(["3", "7"])))]
pub(crate) struct BlocksArguments {
    /// Blocks, such as 32x8; auto is the variant's own.
    #[arg(
        long,
        value_name = "WxH",
        value_delimiter = ',',
        default_value = "auto,8x8,16x16,32x4,32x8,32x16,32x32,64x4,64x8,128x2,256x1"
    )]
    blocks: Vec<BlockChoice>,
    /// direct, separable, auto [default: direct].
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "direct")]
    algorithms: Vec<Algorithm>,
    /// Memory variants.
    #[arg(
        long,
        value_enum,
        value_name = "VARIANT",
        value_delimiter = ',',
        default_value = "global,constant,shared,constant-shared,texture,registers"
    )]
    memory: Vec<MemoryName>,
    #[command(flatten)]
    work: WorkArguments,
    #[command(flatten)]
    common: Common,
}

/// Measures the sweep.
pub(in crate::cli::commands::bench) fn run(arguments: &BlocksArguments) -> Result<(), Failure> {
    let filters = arguments.work.filters()?;
    let mut run = Run::start(&arguments.common)?;
    run.need_card()?;
    let sizes = arguments.work.sizes(&[FULL_HD]);
    let subject = |&memory: &MemoryName| {
        let blocks = arguments.blocks.iter().map(move |block| Subject::Cuda {
            memory: memory.variant(),
            block: block.0,
        });
        blocks.map(|subject| (subject, vec![Scope::Kernel]))
    };
    let subjects: Vec<_> = arguments.memory.iter().flat_map(subject).collect();
    let axes = arguments.work.axes(&filters, &sizes);
    let jobs = axes.jobs(
        |filter| algorithms(&arguments.algorithms, filter, true),
        &subjects,
    );
    let sweep = run.measure("block shapes", &jobs, |_, _| {})?;
    run.finish(&sweep, &sweep.to_string())
}
