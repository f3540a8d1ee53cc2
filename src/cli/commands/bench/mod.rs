//! `framepipe bench`: sweeps of single configurations, the reports' tables, and steady runs of the pipeline.

mod axis;
mod output;
mod pipeline;
mod report;
mod run;
mod sweep;
mod tune;

use super::Failure;
use clap::{Args, Subcommand};
use std::num::NonZeroU32;

/// What is measured.
#[derive(Debug, Clone, Subcommand)]
pub(crate) enum BenchCommand {
    /// Masks x memory variants x algorithms x blocks x sizes x formats on the card, engines x threads on the
    /// CPU.
    Kernels(Box<sweep::kernels::KernelsArguments>),
    /// Block shapes of a card's kernels.
    Blocks(Box<sweep::blocks::BlocksArguments>),
    /// Threads of the CPU engine.
    Threads(Box<sweep::threads::ThreadsArguments>),
    /// Which memory variant is the fastest for which mask, format and size on this card, and from how many
    /// frames on the card is worth its start; `--memory auto` and `--engine auto` use it from then on.
    Tune(tune::TuneArguments),
    /// The whole pipeline in its steady state: throughput over time, drift, latencies.
    Pipeline(Box<pipeline::PipelineArguments>),
    /// The tables of the reports that this project grew out of, measured here beside their own figures.
    Report(report::ReportArguments),
}

/// What every sweep takes.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Measuring")]
pub(crate) struct Common {
    /// Which CUDA card, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Short times, few of them, small frames: a first look, and nothing to publish.
    #[arg(long)]
    quick: bool,
    /// MiB of the processor's last-level cache, four times of which pictures that take turns have together
    /// [default: what the system says].
    #[arg(long, value_name = "N")]
    cache_mib: Option<NonZeroU32>,
    #[command(flatten)]
    output: output::OutputArguments,
    /// Replace files that exist.
    #[arg(short = 'y', long)]
    overwrite: bool,
}

impl BenchCommand {
    /// True if the engine's choices are shown.
    pub(crate) fn explains(&self) -> bool {
        matches!(self, BenchCommand::Pipeline(arguments) if arguments.explains())
    }
}

/// Measures, and prints what was found.
pub(crate) fn run(command: BenchCommand) -> Result<(), Failure> {
    match command {
        BenchCommand::Kernels(arguments) => sweep::kernels::run(&arguments),
        BenchCommand::Blocks(arguments) => sweep::blocks::run(&arguments),
        BenchCommand::Threads(arguments) => sweep::threads::run(&arguments),
        BenchCommand::Tune(arguments) => tune::run(&arguments),
        BenchCommand::Pipeline(arguments) => pipeline::run(*arguments),
        BenchCommand::Report(arguments) => report::run(&arguments),
    }
}
