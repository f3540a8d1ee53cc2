//! `framepipe status`: how far a job is.

use super::open;
use crate::cli::show::escape;
use crate::cli::show::failure::{Failure, to_stdout};
use clap::{Args, ValueHint};
use framepipe::program::parts::{JoinState, PartState, ranges};
use framepipe::wording::counted;
use serde_json::json;
use std::io::Write;
use std::path::PathBuf;

/// Which job, and in which form.
#[derive(Debug, Clone, Args)]
pub(crate) struct StatusArguments {
    /// The folder that `framepipe plan` made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    job: PathBuf,
    /// Print an object for programs.
    #[arg(long, conflicts_with = "missing")]
    json: bool,
    /// Print the numbers of the parts that are to be made, as arrays of jobs take them: 3,7-9. Nothing is
    /// printed where there are none.
    #[arg(long)]
    missing: bool,
    /// With --missing, a number a line.
    #[arg(long, requires = "missing")]
    lines: bool,
    /// Remove temporary files that nobody has touched for a day, such as those of killed workers.
    #[arg(long)]
    clean: bool,
}

/// Prints how far a job is.
pub(crate) fn run(wanted: &StatusArguments) -> Result<(), Failure> {
    let (job, plan) = open(&wanted.job)?;
    let (mut missing, mut broken, mut records) = (Vec::new(), Vec::new(), Vec::new());
    for part in 0..plan.parts.len() {
        match job.state(&plan, part).map_err(super::job_failure)? {
            PartState::Done(record) => records.push(record),
            PartState::Missing => missing.push(part),
            PartState::Broken(problem) => {
                missing.push(part);
                broken.push((part, problem));
            }
        }
    }
    let removed = match wanted.clean {
        true => job.clean(&plan).map_err(super::job_failure)?,
        false => Vec::new(),
    };
    let frames: usize = records.iter().map(|record| record.frames.len()).sum();
    // The sum of an empty list is -0.
    let seconds = records.iter().map(|record| record.seconds).sum::<f64>() + 0.0;
    let join = job.join_state(&plan).map_err(super::job_failure)?;
    let is_joined = join == JoinState::Whole;
    to_stdout(|out| {
        if wanted.missing {
            if wanted.lines {
                for part in &missing {
                    writeln!(out, "{part}")?;
                }
            } else if !missing.is_empty() {
                writeln!(out, "{}", ranges(&missing))?;
            }
            return Ok(());
        }
        if wanted.json {
            let broken: Vec<_> = broken
                .iter()
                .map(|(part, problem)| json!({ "part": part, "problem": problem }))
                .collect();
            let object = json!({
                "schema": "framepipe-status", "version": 1,
                "plan": plan.id, "parts": plan.parts.len(), "done": records.len(), "missing": missing,
                "broken": broken, "frames": frames, "seconds": seconds,
                "joined": is_joined, "removed": removed.len(),
            });
            return Ok(writeln!(out, "{object}")?);
        }
        writeln!(
            out,
            "{} of {}, {}, {seconds:.1} s of work{}",
            records.len(),
            counted(plan.parts.len() as u64, "part"),
            counted(frames as u64, "frame"),
            if is_joined { "; joined" } else { "" }
        )?;
        if !missing.is_empty() {
            writeln!(out, "to be made: {}", ranges(&missing))?;
        }
        if let JoinState::Gone(problem) | JoinState::Changed(problem) = &join {
            writeln!(out, "joined before: {}", escape::line(problem))?;
        }
        for (part, problem) in &broken {
            writeln!(out, "part {part}: {}", escape::line(problem))?;
        }
        for path in &removed {
            writeln!(out, "removed {}", escape::line(&path.display().to_string()))?;
        }
        Ok(())
    })
}
