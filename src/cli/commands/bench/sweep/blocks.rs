//! `framepipe bench blocks`.

use crate::cli::Failure;
use crate::cli::commands::bench::Common;
use crate::cli::commands::bench::axis::{BlockChoice, Size, algorithms, filters};
use crate::cli::commands::bench::run::{Axes, Run};
use crate::cli::options::engine::MemoryName;
use clap::Args;
use framepipe::filter::{Algorithm, Border, Filter};
use framepipe::frame::PixelFormat;
use framepipe::program::bench::{Scope, Subject};

/// The sweep's axes.
#[derive(Debug, Clone, Args)]
pub(crate) struct BlocksArguments {
    /// Blocks, such as 32x8; auto is the variant's own.
    #[arg(
        long,
        value_name = "WxH",
        value_delimiter = ',',
        default_value = "auto,8x8,16x16,32x4,32x8,32x16,32x32,64x4,64x8,128x2,256x1"
    )]
    blocks: Vec<BlockChoice>,
    /// Masks by their size: a Gaussian of each.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7])]
    mask_sizes: Vec<usize>,
    /// Masks by name instead, such as laplacian8; may be given several times.
    #[arg(short, long = "filter", value_name = "SPEC", conflicts_with = "mask_sizes")]
    filters: Vec<Filter>,
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
    /// Frame size [default: 1920x1080].
    #[arg(long, value_name = "WxH", value_delimiter = ',')]
    sizes: Vec<Size>,
    /// Pixel formats.
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = "gray")]
    formats: Vec<PixelFormat>,
    /// What pixels outside the frame are.
    #[arg(long, value_name = "MODE", default_value_t)]
    border: Border,
    #[command(flatten)]
    common: Common,
}

/// Measures the sweep.
pub(in crate::cli::commands::bench) fn run(arguments: &BlocksArguments) -> Result<(), Failure> {
    let filters = filters(&arguments.filters, &arguments.mask_sizes)?;
    let mut run = Run::start(&arguments.common)?;
    run.need_card()?;
    let sizes = match &arguments.sizes[..] {
        [] => vec![Size {
            width: 1920,
            height: 1080,
        }],
        sizes => sizes.to_vec(),
    };
    let subject = |&memory: &MemoryName| {
        let blocks = arguments.blocks.iter().map(move |block| Subject::Cuda {
            memory: memory.variant(),
            block: block.0,
        });
        blocks.map(|subject| (subject, vec![Scope::Kernel]))
    };
    let subjects: Vec<_> = arguments.memory.iter().flat_map(subject).collect();
    let axes = Axes {
        sizes: &sizes,
        formats: &arguments.formats,
        filters: &filters,
        border: arguments.border,
    };
    let jobs = axes.jobs(
        |filter| algorithms(&arguments.algorithms, filter, true),
        &subjects,
    );
    let sweep = run.measure("block shapes", &jobs, |_, _| {})?;
    run.finish(&sweep, &sweep.to_string())
}
