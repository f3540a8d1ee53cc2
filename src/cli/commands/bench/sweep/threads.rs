//! `framepipe bench threads`.

use super::{FULL_HD, SMALL, WorkArguments};
use crate::cli::Failure;
use crate::cli::commands::bench::Common;
use crate::cli::commands::bench::axis::{algorithms, powers_of_two_to};
use crate::cli::commands::bench::run::Run;
use crate::cli::process::limits::count;
use clap::Args;
use framepipe::filter::Algorithm;
use framepipe::program::bench::{Scope, Subject};
use std::num::NonZeroUsize;

/// The sweep's axes.
#[derive(Debug, Clone, Args)]
pub(crate) struct ThreadsArguments {
    /// Threads [default: 1, 2, 4 and so on, up to the number of cores].
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count)]
    threads: Vec<NonZeroUsize>,
    /// direct, separable, auto [default: direct, and separable where the mask is].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    algorithms: Vec<Algorithm>,
    #[command(flatten)]
    work: WorkArguments,
    #[command(flatten)]
    common: Common,
}

/// Measures the sweep.
pub(in crate::cli::commands::bench) fn run(arguments: &ThreadsArguments) -> Result<(), Failure> {
    let filters = arguments.work.filters()?;
    let mut run = Run::start(&arguments.common)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = match &arguments.threads[..] {
        [] => powers_of_two_to(cores),
        asked => asked.iter().map(|t| t.get()).collect(),
    };
    let usual = if arguments.common.quick { SMALL } else { FULL_HD };
    let sizes = arguments.work.sizes(&[usual]);
    let asked = match &arguments.algorithms[..] {
        [] => vec![Algorithm::Direct, Algorithm::Separable],
        asked => asked.to_vec(),
    };
    let subjects = threads.iter().map(|&threads| Subject::Cpu { threads, set: None });
    let subjects: Vec<_> = std::iter::once(Subject::Reference)
        .chain(subjects)
        .map(|subject| (subject, vec![Scope::Kernel]))
        .collect();
    let axes = arguments.work.axes(&filters, &sizes);
    let is_asked = !arguments.algorithms.is_empty();
    let jobs = axes.jobs(|filter| algorithms(&asked, filter, is_asked), &subjects);
    let sweep = run.measure("threads", &jobs, |_, _| {})?;
    run.finish(&sweep, &sweep.to_string())
}
