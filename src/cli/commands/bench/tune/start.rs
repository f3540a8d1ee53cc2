//! Measures the time that a card takes to start and saves afterwards; `--engine auto` uses it.

use crate::cli::Failure;
use framepipe::engine::cpu::{Cpu, InstructionSet};
use framepipe::engine::cuda::{Crossover, duplex};
use framepipe::filter::{Algorithm, Border};
use framepipe::frame::{Colour, Layout, PixelFormat};
use framepipe::program::bench::{Bench, Case, Scope, Subject};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The filter of all runs.
const FILTER: &str = "gaussian:size=7";
/// Runs of one frame with each engine.
const ROUNDS: usize = 3;

/// Measures on card `device`, with frames of this size.
pub(super) fn measure(
    bench: &mut Bench,
    device: usize,
    (width, height): (usize, usize),
) -> Result<Crossover, Failure> {
    let format = PixelFormat::YUV420P;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let case = Case {
        subject: Subject::Cpu {
            threads: cores,
            set: None,
        },
        filter: FILTER
            .parse()
            .map_err(|error| Failure::Failed(format!("{FILTER}: {error}")))?,
        algorithm: Algorithm::Auto,
        border: Border::default(),
        format,
        width,
        height,
    };
    let layout = Layout::new(format, width, height, 1)
        .map_err(|error| Failure::Failed(format!("{width}x{height}: {error}")))?;
    let cost = Cpu::cost(
        &case.chain(),
        &layout,
        &Colour::default(),
        InstructionSet::detect(),
    )?;
    let milliseconds = bench.measure(&case, Scope::Kernel)?.milliseconds.median;
    let link = duplex(device, layout.size(), Duration::from_millis(250))?;
    let one_frame = |engine: &[&str]| run_of_one(&format!("{width}x{height}:{format}"), engine);
    let ordinal = device.to_string();
    let card = ["--engine", "cuda", "--device", &ordinal];
    // The first compiles the kernels.
    one_frame(&card)?;
    let mut starts = Vec::new();
    for _ in 0..ROUNDS {
        let (with, without) = (one_frame(&card)?, one_frame(&["--engine", "cpu"])?);
        starts.push(with.saturating_sub(without).as_secs_f64());
    }
    starts.sort_by(f64::total_cmp);
    Ok(Crossover {
        start_seconds: starts[ROUNDS / 2].max(1e-3),
        term_nanoseconds: milliseconds * 1e6 * cores as f64 / cost,
        link_bytes_per_second: link.rate() * layout.size() as f64,
    })
}

/// From the start of a run of one frame in a process of its own to its end.
fn run_of_one(geometry: &str, engine: &[&str]) -> Result<Duration, Failure> {
    let failed = |why: String| Failure::Failed(format!("measuring what a start takes: {why}"));
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(program);
    command
        .args(["filter", &format!("synthetic:{geometry}:25:1"), "null:", "-q"])
        .args(["--filter", FILTER])
        .args(engine)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let began = Instant::now();
    let done = command.output().map_err(|error| failed(error.to_string()))?;
    let time = began.elapsed();
    match done.status.success() {
        true => Ok(time),
        false => Err(failed(String::from_utf8_lossy(&done.stderr).trim().to_owned())),
    }
}
