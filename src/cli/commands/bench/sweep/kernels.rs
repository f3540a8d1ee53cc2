//! `framepipe bench kernels`.

use super::{FULL_HD, SMALL, WorkArguments};
use crate::cli::Failure;
use crate::cli::commands::bench::Common;
use crate::cli::commands::bench::axis::{BlockChoice, Measured, ScopeName, Size, algorithms};
use crate::cli::commands::bench::run::Run;
use crate::cli::options::engine::{MemoryName, SimdName};
use crate::cli::process::limits::count;
use clap::{Args, ValueEnum};
use framepipe::filter::Algorithm;
use framepipe::program::bench::{Scope, Subject};
use std::num::NonZeroUsize;

/// The sweep's axes.
#[derive(Debug, Clone, Args)]
#[command(
    mut_arg("sizes", |sizes| sizes.help("Frame sizes [default: 1920x1080 and 3840x2160]")),
    mut_arg("formats", |formats| formats.default_value("gray,rgb24"))
)]
pub(crate) struct KernelsArguments {
    /// What is measured: reference, cpu, cuda [default: all that this machine has].
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    engines: Vec<Measured>,
    /// Threads of the CPU engine [default: one, and as many as there are cores].
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = count)]
    threads: Vec<NonZeroUsize>,
    /// Vector instructions of the CPU engine [default: the best that this machine has].
    #[arg(long, value_enum, value_name = "NAME", value_delimiter = ',')]
    simd: Vec<SimdName>,
    /// direct, separable, auto [default: direct, and separable where the mask is].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    algorithms: Vec<Algorithm>,
    /// Memory variants of the card's kernels [default: all].
    #[arg(long, value_enum, value_name = "VARIANT", value_delimiter = ',')]
    memory: Vec<MemoryName>,
    /// Blocks of the card's kernels, such as 32x8; auto is the variant's own.
    #[arg(long, value_name = "WxH", value_delimiter = ',', default_value = "auto")]
    blocks: Vec<BlockChoice>,
    #[command(flatten)]
    work: WorkArguments,
    /// What times cover on a card [default: kernel, and all of them for the first variant and block].
    #[arg(long, value_enum, value_name = "SCOPE", value_delimiter = ',')]
    scopes: Vec<ScopeName>,
    #[command(flatten)]
    common: Common,
}

impl KernelsArguments {
    fn sizes(&self) -> Vec<Size> {
        let ultra_hd = Size {
            width: 3840,
            height: 2160,
        };
        match self.common.quick {
            true => self.work.sizes(&[SMALL]),
            false => self.work.sizes(&[FULL_HD, ultra_hd]),
        }
    }

    /// The card's subjects and the scopes that each is timed in.
    fn on_card(&self) -> Vec<(Subject, Vec<Scope>)> {
        let memory = if self.memory.is_empty() {
            MemoryName::value_variants().to_vec()
        } else {
            self.memory.clone()
        };
        let mut subjects = Vec::new();
        for memory in memory {
            for block in &self.blocks {
                // Transfers take the same time whatever the kernels are.
                let scopes = match &self.scopes[..] {
                    [] if subjects.is_empty() => Scope::ALL.to_vec(),
                    [] => vec![Scope::Kernel],
                    asked => asked.iter().map(|s| s.scope()).collect(),
                };
                let subject = Subject::Cuda {
                    memory: memory.variant(),
                    block: block.0,
                };
                subjects.push((subject, scopes));
            }
        }
        subjects
    }

    fn on_cpu(&self) -> Vec<Subject> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut threads: Vec<usize> = self.threads.iter().map(|t| t.get()).collect();
        if threads.is_empty() {
            threads = vec![1, cores];
            threads.dedup();
        }
        let sets: Vec<_> = match &self.simd[..] {
            [] => vec![None],
            asked => asked.iter().map(|name| Some(name.set())).collect(),
        };
        let all = threads.iter().flat_map(|&threads| {
            let subject = move |&set| Subject::Cpu { threads, set };
            sets.iter().map(subject)
        });
        all.collect()
    }
}

/// Measures the sweep.
pub(in crate::cli::commands::bench) fn run(arguments: &KernelsArguments) -> Result<(), Failure> {
    let filters = arguments.work.filters()?;
    let mut run = Run::start(&arguments.common)?;
    let engines = run.engines(&arguments.engines)?;
    let mut subjects = Vec::new();
    for engine in engines {
        match engine {
            Measured::Reference => subjects.push((Subject::Reference, vec![Scope::Kernel])),
            Measured::Cpu => {
                subjects.extend(arguments.on_cpu().into_iter().map(|s| (s, vec![Scope::Kernel])));
            }
            Measured::Cuda => subjects.extend(arguments.on_card()),
        }
    }
    let asked = match &arguments.algorithms[..] {
        [] => vec![Algorithm::Direct, Algorithm::Separable],
        asked => asked.to_vec(),
    };
    let sizes = arguments.sizes();
    let axes = arguments.work.axes(&filters, &sizes);
    let is_asked = !arguments.algorithms.is_empty();
    let jobs = axes.jobs(|filter| algorithms(&asked, filter, is_asked), &subjects);
    let sweep = run.measure("kernels", &jobs, |_, _| {})?;
    run.finish(&sweep, &sweep.to_string())
}
