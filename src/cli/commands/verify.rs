//! `framepipe verify`: every engine, variant and algorithm against the reference.

use super::Failure;
use crate::cli::options::engine::{CARD_ALIASES, SimdName};
use crate::cli::show::bar::bar;
use clap::{Args, ValueEnum};
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::cuda::{self, Cuda, CudaOptions, MemoryVariant};
use framepipe::engine::verify::{Case, Comparison, cases, compare, float_cases, quick_cases};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Chain};
use framepipe::shortage::thread_error;
use framepipe::wording::counted;
use std::io::{self, Write};
use std::thread::Builder;

/// The engine that is compared.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArguments {
    /// Frames for each engine and algorithm: pixel formats, filters, borders and odd sizes in turn; and a
    /// quarter as many of floating-point samples.
    #[arg(long, value_name = "N", default_value_t = 140, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
    /// Only this engine; without it, every engine that this machine has.
    #[arg(long, value_enum)]
    engine: Option<Checked>,
    /// Only these vector instructions of the CPU engine; without it, all that this machine has.
    #[arg(long, value_enum)]
    simd: Option<SimdName>,
    /// Which CUDA card, counted from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// A few small frames: for a run under a memory checker, which is slow.
    #[arg(long)]
    quick: bool,
}

/// Engines that are held against the reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Checked {
    Cpu,
    #[value(aliases = CARD_ALIASES)]
    Cuda,
}

/// An engine in one of its variants.
#[derive(Clone)]
struct Candidate {
    engine: &'static str,
    variant: String,
    start: Start,
}

/// How a candidate is made.
#[derive(Clone, Copy)]
enum Start {
    Cpu { threads: usize, set: InstructionSet },
    Cuda(CudaOptions),
}

impl Start {
    /// True if it is by tensor cores, which do not take every filter.
    fn is_tensor(self) -> bool {
        matches!(self, Start::Cuda(options) if options.memory == MemoryVariant::Tensor)
    }

    fn engine(self, chain: Chain) -> Result<Box<dyn Engine>, EngineError> {
        Ok(match self {
            Start::Cpu { threads, set } => Box::new(Cpu::with_instruction_set(chain, threads, set)?),
            Start::Cuda(options) => Box::new(Cuda::new(chain, options)?),
        })
    }
}

impl VerifyArguments {
    fn candidates(&self) -> Result<Vec<Candidate>, Failure> {
        let mut candidates = Vec::new();
        if self.engine == Some(Checked::Cuda) && self.simd.is_some() {
            return Err(Failure::Usage(
                "--simd is an option of the cpu engine; leave it out or choose --engine cpu".to_owned(),
            ));
        }
        if self.engine != Some(Checked::Cuda) {
            let sets = match self.simd {
                Some(name) => vec![name.set()],
                None => InstructionSet::available().collect(),
            };
            candidates.extend(sets.into_iter().flat_map(cpu_candidates));
        }
        let has_card = match (self.engine, cuda::available()) {
            (Some(Checked::Cpu), _) => false,
            (_, Ok(())) => true,
            (Some(Checked::Cuda), Err(reason)) => return Err(reason.into()),
            (None, Err(reason)) => {
                eprintln!("cuda is skipped: {reason}");
                false
            }
        };
        if has_card {
            candidates.extend(cuda_candidates(self.device));
        }
        Ok(candidates)
    }
}

fn cpu_candidates(set: InstructionSet) -> impl Iterator<Item = Candidate> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1, 2, 3, cores];
    threads.sort_unstable();
    threads.dedup();
    threads.into_iter().map(move |threads| Candidate {
        engine: "cpu",
        variant: format!("{set}, {}", counted(threads as u64, "thread")),
        start: Start::Cpu { threads, set },
    })
}

fn cuda_candidates(device: usize) -> impl Iterator<Item = Candidate> {
    MemoryVariant::ALL.into_iter().map(move |memory| Candidate {
        engine: "cuda",
        variant: memory.name().to_owned(),
        start: Start::Cuda(CudaOptions {
            device,
            memory,
            ..CudaOptions::default()
        }),
    })
}

/// Compares, and prints what was found; a line for each engine, variant and algorithm as well if that is
/// wanted or samples differ. An error if any does.
pub(crate) fn run(
    arguments: &VerifyArguments,
    is_verbose: bool,
    out: &mut impl Write,
) -> Result<(), Failure> {
    let cases = if arguments.quick {
        quick_cases()
    } else {
        let frames = arguments.frames as usize;
        [cases(frames), float_cases(frames.div_ceil(4))].concat()
    };
    let jobs: Vec<Job> = arguments
        .candidates()?
        .into_iter()
        .flat_map(|c| [Algorithm::Direct, Algorithm::Separable].map(|algorithm| (c.clone(), algorithm)))
        .collect();
    let suited: Vec<Case> = cases.iter().filter(|case| case.suits_tensor()).cloned().collect();
    let bar = bar(jobs.len());
    let compared = |(candidate, algorithm): &Job| {
        let start = candidate.start;
        let cases = if start.is_tensor() { &suited } else { &cases };
        let found = compare(cases, *algorithm, &mut |chain| start.engine(chain));
        bar.inc(1);
        found
    };
    let found: Vec<Comparison> = if arguments.quick {
        // One after another: a memory checker slows threads that use the card at once far more than it slows
        // one.
        jobs.iter().map(compared).collect::<Result<_, _>>()?
    } else {
        side_by_side(&jobs, &compared)?
    };
    bar.finish_and_clear();
    let sum = |of: fn(&Comparison) -> u64| found.iter().map(of).sum::<u64>();
    let differences = sum(|found| found.differences);
    if is_verbose || differences > 0 {
        table(&jobs, &found, out)?;
    }
    if differences > 0 {
        return Err(Failure::Failed(format!(
            "{differences} samples differ from the reference; this is a defect of framepipe or of this \
             machine"
        )));
    }
    let (frames, samples) = (sum(|found| found.frames), sum(|found| found.samples));
    let ways = counted(jobs.len() as u64, "combination");
    writeln!(
        out,
        "every sample equals the reference's: {ways} of variant and algorithm, {frames} frames, {samples} \
         samples",
    )?;
    let left_out = sum(|found| found.left_out);
    if left_out > 0 && !is_verbose {
        let frames = counted(left_out, "frame");
        writeln!(
            out,
            "{frames} left out, which not every variant takes; -v shows which"
        )?;
    }
    Ok(())
}

/// An engine in one of its variants, by one of the algorithms.
type Job = (Candidate, Algorithm);

/// Compares all at once, since most of a CUDA variant's time is compilation, which takes one core each.
fn side_by_side(
    jobs: &[Job],
    compared: &(impl Fn(&Job) -> Result<Comparison, EngineError> + Sync),
) -> Result<Vec<Comparison>, Failure> {
    std::thread::scope(|scope| {
        let started = jobs.iter().map(|job| {
            let thread = Builder::new().spawn_scoped(scope, move || compared(job));
            Ok((job, thread.map_err(thread_error)?))
        });
        let started: Vec<_> = started.collect::<io::Result<_>>()?;
        let joined = started.into_iter().map(|((candidate, _), thread)| {
            let found = thread.join().map_err(|_| {
                Failure::Failed(format!("comparing the {} engine broke down", candidate.engine))
            })?;
            Ok(found?)
        });
        joined.collect()
    })
}

/// Prints a line for each engine, variant and algorithm.
fn table(jobs: &[Job], found: &[Comparison], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "{:<8} {:<22} {:<10} {:>7} {:>12} {:>12}",
        "engine", "variant", "algorithm", "frames", "samples", "differences"
    )?;
    for ((candidate, algorithm), found) in jobs.iter().zip(found) {
        writeln!(
            out,
            "{:<8} {:<22} {:<10} {:>7} {:>12} {:>12}",
            candidate.engine,
            candidate.variant,
            algorithm.to_string(),
            found.frames,
            found.samples,
            found.differences
        )?;
        if found.left_out > 0 {
            let (left_out, engine) = (counted(found.left_out, "frame"), candidate.engine);
            writeln!(out, "{left_out} left out, which {engine} does not take so")?;
        }
    }
    Ok(())
}
