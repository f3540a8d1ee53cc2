//! `framepipe bench threads`.

use crate::cli::Failure;
use crate::cli::commands::bench::Common;
use crate::cli::commands::bench::axis::{Size, algorithms, filters, powers_of_two_to};
use crate::cli::commands::bench::run::{Axes, Run};
use crate::cli::process::limits::count;
use clap::Args;
use framepipe::filter::{Algorithm, Border, Filter};
use framepipe::frame::PixelFormat;
use framepipe::program::bench::{Scope, Subject};
use std::num::NonZeroUsize;

/// The sweep's axes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ThreadsArguments {
    /// Threads [default: 1, 2, 4 and so on, up to the number of cores].
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count)]
    threads: Vec<NonZeroUsize>,
    /// Masks by their size: a Gaussian of each.
    #[arg(long, value_name = "K", value_delimiter = ',', default_values_t = [3, 7, 15])]
    mask_sizes: Vec<usize>,
    /// Masks by name instead, such as laplacian8; may be given several times.
    #[arg(short, long = "filter", value_name = "SPEC", conflicts_with = "mask_sizes")]
    filters: Vec<Filter>,
    /// direct, separable, auto [default: direct, and separable where the mask is].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    algorithms: Vec<Algorithm>,
    /// Frame sizes [default: 1920x1080].
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
pub(in crate::cli::commands::bench) fn run(arguments: &ThreadsArguments) -> Result<(), Failure> {
    let filters = filters(&arguments.filters, &arguments.mask_sizes)?;
    let mut run = Run::start(&arguments.common)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match &arguments.threads[..] {
        [] => powers_of_two_to(cores),
        asked => asked.iter().map(|t| t.get()).collect(),
    };
    let sizes = match (&arguments.sizes[..], arguments.common.quick) {
        ([], true) => vec![Size {
            width: 640,
            height: 360,
        }],
        ([], false) => vec![Size {
            width: 1920,
            height: 1080,
        }],
        (sizes, _) => sizes.to_vec(),
    };
    let asked = match &arguments.algorithms[..] {
        [] => vec![Algorithm::Direct, Algorithm::Separable],
        asked => asked.to_vec(),
    };
    let subjects = threads.iter().map(|&threads| Subject::Cpu { threads, set: None });
    let subjects: Vec<_> = std::iter::once(Subject::Reference)
        .chain(subjects)
        .map(|subject| (subject, vec![Scope::Kernel]))
        .collect();
    let axes = Axes {
        sizes: &sizes,
        formats: &arguments.formats,
        filters: &filters,
        border: arguments.border,
    };
    let is_asked = !arguments.algorithms.is_empty();
    let jobs = axes.jobs(|filter| algorithms(&asked, filter, is_asked), &subjects);
    let sweep = run.measure("threads", &jobs, |_, _| {})?;
    run.finish(&sweep, &sweep.to_string())
}
