//! `framepipe verify`: every engine and algorithm against the reference.

use super::Failure;
use clap::Args;
use framepipe::engine::cpu::Cpu;
use framepipe::engine::verify::{cases, compare};
use framepipe::engine::{Engine, EngineError};
use framepipe::filter::{Algorithm, Chain};
use std::io::Write;

/// What is compared.
#[derive(Debug, Clone, Args)]
pub(crate) struct VerifyArguments {
    /// Frames for each engine and algorithm: pixel formats, filters, borders and odd sizes in turn.
    #[arg(long, value_name = "N", default_value_t = 140, value_parser = clap::value_parser!(u32).range(1..))]
    frames: u32,
}

type Start = Box<dyn FnMut(Chain) -> Result<Box<dyn Engine>, EngineError>>;

/// An engine in one of its variants.
struct Candidate {
    engine: &'static str,
    variant: String,
    start: Start,
}

fn candidates() -> Vec<Candidate> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut threads = vec![1, 2, 3, cores];
    threads.sort_unstable();
    threads.dedup();
    threads
        .into_iter()
        .map(|threads| Candidate {
            engine: "cpu",
            variant: format!("{threads} thread{}", if threads == 1 { "" } else { "s" }),
            start: Box::new(move |chain| Ok(Box::new(Cpu::new(chain, threads)?))),
        })
        .collect()
}

/// Prints a line for each engine, variant and algorithm; an error if any sample differs.
pub(crate) fn run(arguments: &VerifyArguments, out: &mut impl Write) -> Result<(), Failure> {
    let cases = cases(arguments.frames as usize);
    let mut differences = 0;
    writeln!(
        out,
        "{:<8} {:<16} {:<10} {:>7} {:>12} {:>12}",
        "engine", "variant", "algorithm", "frames", "samples", "differences"
    )?;
    for mut candidate in candidates() {
        for algorithm in [Algorithm::Direct, Algorithm::Separable] {
            let found = compare(&cases, algorithm, &mut candidate.start)?;
            writeln!(
                out,
                "{:<8} {:<16} {:<10} {:>7} {:>12} {:>12}",
                candidate.engine,
                candidate.variant,
                algorithm.to_string(),
                found.frames,
                found.samples,
                found.differences
            )?;
            out.flush()?;
            differences += found.differences;
        }
    }
    if differences > 0 {
        return Err(Failure::Failed(format!(
            "{differences} samples differ from the reference; this is a defect of framepipe or of this machine"
        )));
    }
    writeln!(out, "every sample equals the reference's")?;
    Ok(())
}
