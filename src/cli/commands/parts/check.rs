//! `framepipe check`: compares the parts' data with the records, and makes parts again, by any engine, to
//! compare the frames.

use super::own::Shutdown;
use super::{open, verify_failure};
use crate::cli::options::engine::{EngineArguments, EngineName};
use crate::cli::show::failure::{Failure, to_stdout};
use clap::{Args, ValueHint};
use framepipe::program::parts::{PartState, verify};
use framepipe::wording::counted;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Which job, how much of it, and by which engine.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("engine", |engine| engine.value_parser(EngineName::of_filters())))]
pub(crate) struct CheckArguments {
    /// The folder that `framepipe plan` made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    job: PathBuf,
    /// How many parts are made again, evenly over the job [default: all].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    #[command(flatten)]
    engine: EngineArguments,
}

impl CheckArguments {
    /// True if the engine's choices are shown.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }
}

/// Makes parts again and compares.
pub(crate) fn run(wanted: &CheckArguments) -> Result<(), Failure> {
    let (job, plan) = open(&wanted.job)?;
    super::part::check_input(&plan)?;
    verify(&job, &plan, || false).map_err(verify_failure)?;
    let shutdown = Shutdown::watch()?;
    let count = plan.parts.len();
    let sample = wanted.sample.map_or(count, |n| (n as usize).min(count));
    let mut frames = 0;
    for part in (0..sample).map(|k| k * count / sample) {
        let PartState::Done(record) = job.state(&plan, part).map_err(super::job_failure)? else {
            return Err(Failure::Failed(format!("part {part} is not there")));
        };
        let engine = (&wanted.engine, true);
        let made = super::part::filter(&plan, part, Path::new("null:"), engine, &shutdown.next())?;
        if made.frames.len() != record.frames.len() {
            return Err(Failure::Failed(format!(
                "part {part} has {}, and its record says {}",
                counted(made.frames.len() as u64, "frame"),
                record.frames.len()
            )));
        }
        let pairs = made.frames.iter().zip(&record.frames).enumerate();
        for (index, (made, recorded)) in pairs {
            // Image files have times only where the output has.
            let is_when = made.time.is_none() || made.time == recorded.time;
            if !is_when || made.hash != recorded.hash {
                return Err(Failure::Failed(format!(
                    "frame {index} of part {part} differs from the one that {} made on {}",
                    record.engine, record.host
                )));
            }
        }
        frames += made.frames.len();
    }
    to_stdout(|out| {
        Ok(writeln!(
            out,
            "{sample} of {} made again: {}, all the same",
            counted(count as u64, "part"),
            counted(frames as u64, "frame")
        )?)
    })
}
