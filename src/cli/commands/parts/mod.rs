//! One job in parts: plan, part, join, status, check, and run, which does all parts on this machine.

pub(super) mod check;
pub(super) mod join;
mod own;
pub(super) mod part;
pub(super) mod plan;
pub(super) mod run;
pub(super) mod status;

use super::Failure;
use super::filter::FilterArguments;
use super::filter::piece::parse;
use crate::cli::show::escape;
use framepipe::frame::Warning;
use framepipe::program::parts::{JobError, JobFolder, Plan, VerifyError, ranges};
use framepipe::source::video::ffmpeg_version;
use framepipe::wording::counted;
use std::borrow::Borrow;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;

/// The version that makes parts and the one that planned them must be the same.
fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}

/// FFmpeg's libraries, by name and version.
fn libraries() -> String {
    format!("FFmpeg {}", ffmpeg_version())
}

/// Opens a job, of this version of framepipe.
fn open(root: &Path) -> Result<(JobFolder, Plan), Failure> {
    let (job, plan) = JobFolder::open(root).map_err(job_failure)?;
    if plan.framepipe != version() {
        return Err(Failure::Usage(format!(
            "{}: framepipe {} made the plan, and this is {}; parts of two versions may differ",
            root.display(),
            plan.framepipe,
            version()
        )));
    }
    Ok((job, plan))
}

/// A transient error may not occur elsewhere or later; all others mean a broken plan.
fn job_failure(error: impl Borrow<JobError>) -> Failure {
    let error = error.borrow();
    match error.is_passing() {
        true => Failure::Passing(error.to_string()),
        false => Failure::Usage(error.to_string()),
    }
}

fn verify_failure(error: VerifyError) -> Failure {
    match error {
        VerifyError::Job(error) => job_failure(error),
        VerifyError::Stopped => Failure::Interrupted,
        error => Failure::Failed(error.to_string()),
    }
}

/// Prints warnings.
fn warn(warnings: &[Warning]) {
    for warning in warnings {
        let _ = writeln!(io::stderr(), "warning: {}", escape::line(warning));
    }
}

/// The plan's job as `framepipe filter` has it, from its input into `output`. It is quiet: what there is to
/// say of the whole job the plan has said.
fn arguments(plan: &Plan, output: &Path) -> Result<FilterArguments, Failure> {
    let ends = [OsString::from(&plan.input), output.as_os_str().to_owned()];
    let options = plan.options.iter().map(OsString::from);
    let mut arguments = parse(options.chain([OsString::from("--")]).chain(ends))?;
    arguments.keep_quiet(true);
    Ok(arguments)
}

/// Part numbers as they are written: 3, or 3-7.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Numbers {
    first: usize,
    last: usize,
}

impl std::str::FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Numbers, String> {
        let number = |text: &str| text.parse::<usize>().ok();
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match number(first).zip(number(last)) {
            Some((first, last)) if first <= last => Ok(Numbers { first, last }),
            Some(_) => Err(format!("{text} ends before it begins")),
            None => Err("write the number of a part, counted from 0, or A-B".to_owned()),
        }
    }
}

impl Numbers {
    /// What to say of numbers behind the plan's last part, if there are such.
    fn beyond(self, plan: &Plan) -> Option<String> {
        let count = plan.parts.len();
        (self.first < count && self.last >= count).then(|| {
            let last = count - 1;
            let parts = counted(count as u64, "part");
            let there = ranges(&(self.first..=last).collect::<Vec<_>>());
            format!("the job has {parts}; of those named there are {there}")
        })
    }

    /// The numbers that the plan has. Numbers after its last part are ignored, since job arrays are often
    /// longer than the plan; a first number after it is an error.
    fn within(self, plan: &Plan) -> Result<std::ops::Range<usize>, Failure> {
        let count = plan.parts.len();
        if self.first >= count {
            return Err(Failure::Usage(format!(
                "the job has {}, {}; there is no part {}",
                counted(count as u64, "part"),
                match count {
                    1 => "number 0".to_owned(),
                    _ => format!("0 to {}", count - 1),
                },
                self.first
            )));
        }
        Ok(self.first..count.min(self.last.saturating_add(1)))
    }
}
