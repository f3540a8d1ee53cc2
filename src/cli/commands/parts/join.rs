//! `framepipe join`: proves that the parts are the whole, and puts them together.

use super::{arguments, open, verify_failure, warn};
use crate::cli::Failure;
use crate::cli::process::interrupt;
use crate::cli::show::escape;
use clap::{Args, ValueEnum, ValueHint};
use framepipe::frame::Warning;
use framepipe::pipeline::Stop;
use framepipe::program::parts::{
    Data, JobFolder, JoinState, Joining, OutputKind, Plan, Record, Verified, merged, verify,
};
use framepipe::sink::atomic_file::AtomicFile;
use framepipe::sink::video::JoinedPart;
use framepipe::wording::counted;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// From one look at a join by another process to the next.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// What the parts are put together to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Layout {
    /// The output, each part's bytes copied once.
    #[default]
    File,
    /// A list of the parts next to the output, NAME.ffconcat, that players read as one video, without sound.
    List,
}

/// Which job, and how.
#[derive(Debug, Clone, Args)]
pub(crate) struct JoinArguments {
    /// The folder that `framepipe plan` made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    pub(super) job: PathBuf,
    /// Keep the parts once the output is complete.
    #[arg(long)]
    pub(super) keep_parts: bool,
    /// What is made of the parts.
    #[arg(long, value_enum, default_value_t)]
    pub(super) layout: Layout,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    pub(super) quiet: bool,
}

/// Joins a job's parts.
pub(crate) fn run(wanted: &JoinArguments) -> Result<(), Failure> {
    let stop = Stop::new();
    interrupt::watch(&stop, false, interrupt::Policy::discarding())?;
    join(wanted, &stop)
}

/// Joins a job's parts, unless `stop` ends it or another process has joined them.
pub(super) fn join(wanted: &JoinArguments, stop: &Stop) -> Result<(), Failure> {
    let (job, plan) = open(&wanted.job)?;
    let state = || match wanted.layout {
        Layout::File => job.join_state(&plan).map_err(super::job_failure),
        Layout::List => Ok(JoinState::Unjoined),
    };
    let _right = right_to_join(&job, stop)?;
    let gone = match state()? {
        JoinState::Whole => {
            say_joined(&plan, wanted);
            return Ok(());
        }
        JoinState::Changed(problem) => return Err(changed(&problem)),
        JoinState::Gone(problem) => Some(problem),
        JoinState::Unjoined => None,
    };
    check_output(&plan, wanted.layout)?;
    match put_together(&job, &plan, wanted, stop) {
        Err(Failure::Interrupted) => Err(Failure::Interrupted),
        // Without locks another process may have joined the parts, and removed them, at the same time.
        Err(_) if state()? == JoinState::Whole => {
            say_joined(&plan, wanted);
            Ok(())
        }
        Err(Failure::Failed(text)) => Err(Failure::Failed(match gone {
            Some(problem) => format!(
                "{problem}; `framepipe run {}` makes it again ({text})",
                wanted.job.display()
            ),
            None => text,
        })),
        result => result,
    }
}

/// The error of an output that somebody changed.
pub(super) fn changed(problem: &str) -> Failure {
    Failure::Failed(format!(
        "{problem}: it was changed after the parts were joined; remove it, and `framepipe run` makes it again"
    ))
}

/// Waits until no other process joins.
fn right_to_join(job: &JobFolder, stop: &Stop) -> Result<Joining, Failure> {
    loop {
        if let Some(right) = job.try_joining().map_err(super::job_failure)? {
            return Ok(right);
        }
        if stop.is_abandon_asked() {
            return Err(Failure::Interrupted);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Proves the parts to be the whole, and makes the output of them.
fn put_together(job: &JobFolder, plan: &Plan, wanted: &JoinArguments, stop: &Stop) -> Result<(), Failure> {
    let verified = verify(job, plan, || stop.is_abandon_asked()).map_err(verify_failure)?;
    let (said, warnings) = match (plan.output_kind, wanted.layout) {
        (OutputKind::Images, _) => {
            let files = counted(verified.frames, "image file");
            (format!("{files} in {}", plan.output.display()), Vec::new())
        }
        (OutputKind::Video, Layout::List) => (list(job, plan, &verified)?, Vec::new()),
        (OutputKind::File, Layout::List) => {
            return Err(Failure::Usage(
                "a list is of parts of a video, and this is one file".to_owned(),
            ));
        }
        (OutputKind::Video, Layout::File) => video(job, plan, &verified, stop)?,
        (OutputKind::File, Layout::File) => (copy(job, plan, &verified.records)?, Vec::new()),
    };
    let of_parts = verified.records.iter().flat_map(|record| &record.warnings);
    warn(&merged(of_parts.chain(&warnings)));
    if wanted.layout == Layout::File {
        let target = target(plan);
        let output = (plan.output_kind != OutputKind::Images).then_some(target.as_path());
        job.set_joined(plan, output).map_err(super::job_failure)?;
        if !wanted.keep_parts {
            job.remove_data(&verified.records);
        }
    }
    if !wanted.quiet {
        let _ = writeln!(
            io::stderr(),
            "joined {}: {}",
            escape::line(&said),
            counted(verified.frames, "frame")
        );
    }
    Ok(())
}

/// Says that there is nothing to do.
fn say_joined(plan: &Plan, wanted: &JoinArguments) {
    if !wanted.quiet {
        let text = format!("{} is there already", plan.output.display());
        let _ = writeln!(io::stderr(), "{}", escape::line(&text));
    }
}

/// The file that the output is.
fn target(plan: &Plan) -> PathBuf {
    let text = plan.output.to_string_lossy();
    text.strip_prefix("raw:")
        .map_or_else(|| plan.output.clone(), PathBuf::from)
}

/// Refuses an output that is there and not to be replaced, before any work.
pub(super) fn check_output(plan: &Plan, layout: Layout) -> Result<(), Failure> {
    let target = match layout {
        Layout::File => target(plan),
        Layout::List => plan.output.with_extension("ffconcat"),
    };
    if plan.output_kind != OutputKind::Images && target.exists() && !overwrites(plan) {
        return Err(Failure::Usage(format!(
            "{} exists; --overwrite given to `framepipe plan` has it replaced",
            target.display()
        )));
    }
    Ok(())
}

fn overwrites(plan: &Plan) -> bool {
    plan.options.iter().any(|option| option == "--overwrite")
}

/// The file of a part.
fn file_of(job: &JobFolder, record: &Record) -> Result<PathBuf, Failure> {
    match &record.data {
        Data::File { name, .. } => Ok(job.parts().join(name)),
        Data::Images(_) => Err(Failure::Failed(format!(
            "part {}: its record names no file",
            record.part
        ))),
    }
}

/// Writes the video; gives what was written, and warnings.
fn video(
    job: &JobFolder,
    plan: &Plan,
    verified: &Verified,
    stop: &Stop,
) -> Result<(String, Vec<Warning>), Failure> {
    super::part::check_input(plan)?;
    let parts: Vec<JoinedPart> = verified
        .records
        .iter()
        .map(|record| {
            Ok(JoinedPart {
                path: file_of(job, record)?,
                frames: record
                    .frames
                    .iter()
                    .map(|f| (f.time.map(|t| t - plan.start), f.duration))
                    .collect(),
                order: record.order.clone(),
            })
        })
        .collect::<Result<_, Failure>>()?;
    let (_, sink) = arguments(plan, &plan.output)?.open_for_join()?;
    let Some(sink) = sink else {
        return Err(Failure::Failed(format!("{} is no video", plan.output.display())));
    };
    let written = sink.join(&parts, stop.abandoned())?;
    Ok((written.description, written.remarks.warnings))
}

/// Puts a file that was made in one piece in its place.
fn copy(job: &JobFolder, plan: &Plan, records: &[Record]) -> Result<String, Failure> {
    let [record] = records else {
        return Err(Failure::Failed(
            "the plan of a file that is one piece has several parts".to_owned(),
        ));
    };
    let from = file_of(job, record)?;
    let target = target(plan);
    let file = AtomicFile::create(&target, overwrites(plan))?;
    let mut to = file.file();
    File::open(&from)
        .and_then(|mut from| io::copy(&mut from, &mut to))
        .map_err(|cause| file.failed(cause))?;
    file.commit()?;
    Ok(target.display().to_string())
}

/// Writes the list of parts, with how long each is shown.
fn list(job: &JobFolder, plan: &Plan, verified: &Verified) -> Result<String, Failure> {
    let target = plan.output.with_extension("ffconcat");
    let folder = target.parent().unwrap_or(Path::new(".")).canonicalize()?;
    let base = plan.base();
    let mut text = String::from("ffconcat version 1.0\n");
    for (index, record) in verified.records.iter().enumerate() {
        let path = file_of(job, record)?.canonicalize()?;
        let path = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        let _ = writeln!(text, "file '{}'", path.replace('\'', "'\\''"));
        let next = verified
            .records
            .get(index + 1)
            .and_then(|next| next.frames.first()?.time);
        let first = record.frames.first().and_then(|frame| frame.time);
        let last = record
            .frames
            .last()
            .and_then(|frame| Some(frame.time? + frame.duration.unwrap_or(0)));
        if let (Some(first), Some(end)) = (first, next.or(last)) {
            let _ = writeln!(text, "duration {:.9}", (end - first) as f64 * base.to_f64());
        }
    }
    let file = AtomicFile::create(&target, overwrites(plan))?;
    file.file()
        .write_all(text.as_bytes())
        .map_err(|cause| file.failed(cause))?;
    file.commit()?;
    Ok(format!(
        "{}, a list of {}",
        target.display(),
        counted(verified.records.len() as u64, "part")
    ))
}
