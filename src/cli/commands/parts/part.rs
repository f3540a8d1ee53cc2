//! `framepipe part`: makes one part, or some, and is the only thing that an engine of a cluster runs.
//!
//! It may be run again, by several at a time, and be killed at any moment: the record of a part comes last
//! and the first one counts. Its exit code says what to do: 0, done; 75, try again, elsewhere or later; 1 and
//! 2, no use.

use super::own::Shutdown;
use super::{Numbers, arguments, libraries, open, warn};
use crate::cli::commands::filter::piece::{Made, Piece, identity_now, make, range_of};
use crate::cli::options::engine::{EngineArguments, EngineName};
use crate::cli::show::escape;
use crate::cli::{Failure, log};
use clap::{Args, ValueHint};
use framepipe::frame::Warning;
use framepipe::pipeline::Stop;
use framepipe::program::parts::{
    Data, Digest, ImageFile, JobFolder, OutputKind, PartState, Plan, Published, Record, host,
};
use framepipe::sink::video::packet_order;
use framepipe::wording::counted;
use rayon::prelude::*;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Which part, and by which engine.
#[derive(Debug, Clone, Args)]
#[command(mut_arg("engine", |engine| engine.value_parser(EngineName::of_filters())))]
pub(crate) struct PartArguments {
    /// The folder that `framepipe plan` made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    job: PathBuf,
    /// The number of the part, counted from 0, or A-B for some.
    #[arg(value_name = "PART")]
    numbers: Numbers,
    #[command(flatten)]
    engine: EngineArguments,
    /// End at once when the process that started this one does, so that no orphan keeps a card.
    #[arg(long)]
    die_with_parent: bool,
    /// Decode and encode with other versions of FFmpeg's libraries than those of the plan.
    #[arg(long)]
    allow_mixed: bool,
    /// Make a part again that exists.
    #[arg(long)]
    again: bool,
    /// Leave warnings to the record, from which `framepipe run` prints those of all parts.
    #[arg(long, hide = true)]
    keep_warnings: bool,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    quiet: bool,
}

impl PartArguments {
    /// True if the engine's choices are shown.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }
}

/// Makes the parts.
pub(crate) fn run(wanted: &PartArguments) -> Result<(), Failure> {
    let result = run_all(wanted);
    result.map_err(|failure| match failure {
        Failure::Passing(text) => Failure::Elsewhere(text),
        Failure::Interrupted => Failure::Elsewhere("it was interrupted".to_owned()),
        failure => failure,
    })
}

fn run_all(wanted: &PartArguments) -> Result<(), Failure> {
    if wanted.die_with_parent {
        super::own::die_with_parent()?;
    }
    let shutdown = Shutdown::watch()?;
    let (job, plan) = open(&wanted.job)?;
    log::keep_quiet(
        plan.options
            .iter()
            .find_map(|option| option.strip_prefix("--encoder=")),
    );
    check_libraries(&plan, wanted.allow_mixed)?;
    if let Some(text) = wanted.numbers.beyond(&plan) {
        say(wanted, &text);
    }
    for part in wanted.numbers.within(&plan)? {
        let state = job.state(&plan, part).map_err(super::job_failure)?;
        if !wanted.again && matches!(state, PartState::Done(_)) {
            say(wanted, &format!("part {part} is there"));
            continue;
        }
        // A record whose data were changed makes room for the one of the data that are written now.
        let replaces = wanted.again || matches!(state, PartState::Broken(_));
        check_input(&plan)?;
        let (record, published) = make_one(&job, &plan, part, (wanted, replaces), &shutdown.next())?;
        if !wanted.keep_warnings {
            let named = |warning| Warning::from(format!("part {part}: {warning}"));
            warn(&record.warnings.iter().map(named).collect::<Vec<_>>());
        }
        say(
            wanted,
            &format!(
                "part {part}: {} in {:.1} s{}",
                counted(record.frames.len() as u64, "frame"),
                record.seconds,
                match published {
                    Published::First => "",
                    Published::Late => "; another worker had made it meanwhile",
                }
            ),
        );
    }
    Ok(())
}

fn say(wanted: &PartArguments, text: &str) {
    if !wanted.quiet {
        // A closed stderr is no reason to stop.
        let _ = writeln!(std::io::stderr(), "{}", escape::line(text));
    }
}

/// Refuses other libraries than those of the plan, unless they are allowed.
pub(super) fn check_libraries(plan: &Plan, allow_mixed: bool) -> Result<(), Failure> {
    if plan.libraries == libraries() || allow_mixed {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the plan was made with {}, and this is {}, which may decode and encode differently; --allow-mixed \
         makes the part all the same",
        plan.libraries,
        libraries()
    )))
}

/// Refuses an input that is not the plan's.
pub(super) fn check_input(plan: &Plan) -> Result<(), Failure> {
    let now = identity_now(&arguments(plan, &plan.output)?).map_err(|failure| match failure {
        Failure::Failed(text) => Failure::Passing(text),
        failure => failure,
    })?;
    if now == plan.identity {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{} is not what it was when the plan was made; make a new plan",
        plan.input
    )))
}

/// Makes a part's data and its record, which may be one that `replaces` another.
fn make_one(
    job: &JobFolder,
    plan: &Plan,
    part: usize,
    (wanted, replaces): (&PartArguments, bool),
    stop: &Stop,
) -> Result<(Record, Published), Failure> {
    let began = Instant::now();
    job.make_parts().map_err(super::job_failure)?;
    let extension = plan.output.extension().unwrap_or_default().to_string_lossy();
    let work = match plan.output_kind {
        OutputKind::Images => plan.output.clone(),
        OutputKind::Video | OutputKind::File => job.work_path(part, &extension),
    };
    let own = work.display().to_string();
    let output = plan.output.display().to_string();
    // Sentences are about the user's output, not about the temporary file.
    let public = |text: &str| text.replace(&own, &output);
    let engine = (&wanted.engine, wanted.quiet);
    let made = filter(plan, part, &output_argument(plan, &work), engine, stop);
    let made = made.map_err(|failure| match failure {
        Failure::Failed(text) => Failure::Failed(public(&text)),
        Failure::Usage(text) => Failure::Usage(public(&text)),
        failure => failure,
    })?;
    let planned = plan.parts[part].frames;
    if let Some(planned) = planned.filter(|&planned| planned != made.frames.len() as u64) {
        remove(plan, &work);
        return Err(Failure::Failed(format!(
            "part {part} has {}, and {planned} were planned: packets were lost or cannot be decoded, so that \
             no part is sure of its place; filter the input in one run",
            counted(made.frames.len() as u64, "frame")
        )));
    }
    let (data, order) = match plan.output_kind {
        OutputKind::Images => (images(&made)?, Vec::new()),
        kind => {
            let order = match kind {
                OutputKind::Video => packet_order(&work)?,
                _ => Vec::new(),
            };
            if kind == OutputKind::Video && order.len() != made.frames.len() {
                remove(plan, &work);
                return Err(Failure::Failed(format!(
                    "part {part}: the encoder made {} of {}, which cannot be put together; choose another \
                     encoder, or filter the input in one run",
                    counted(order.len() as u64, "packet"),
                    counted(made.frames.len() as u64, "frame")
                )));
            }
            (job.keep_data(part, &work).map_err(super::job_failure)?, order)
        }
    };
    let record = Record {
        plan: plan.id.clone(),
        part,
        data,
        order,
        frames: made.frames,
        seam: made.seams,
        warnings: (made.remarks.warnings.iter())
            .map(|warning| warning.changed(public))
            .collect(),
        notes: made.remarks.notes.iter().map(|note| public(note)).collect(),
        engine: made.engine,
        host: host(),
        seconds: began.elapsed().as_secs_f64(),
    };
    let published = match replaces {
        true => job.replace_record(&record).map(|()| Published::First),
        false => job.record(plan, &record),
    };
    Ok((record, published.map_err(super::job_failure)?))
}

/// A raw output needs its word before the path.
fn output_argument(plan: &Plan, work: &Path) -> PathBuf {
    let text = plan.output.to_string_lossy();
    match text.strip_prefix("raw:") {
        Some(_) => PathBuf::from(format!("raw:{}", work.display())),
        None => work.to_owned(),
    }
}

/// Runs the filter over a part into `output`; a quiet one says nothing of its input.
pub(super) fn filter(
    plan: &Plan,
    part: usize,
    output: &Path,
    (engine, quiet): (&EngineArguments, bool),
    stop: &Stop,
) -> Result<Made, Failure> {
    let mut arguments = arguments(plan, output)?;
    arguments.keep_quiet(quiet);
    let planned = plan.parts[part];
    let first_number = plan.first_number.zip(planned.before);
    let piece = Piece {
        range: range_of(planned.extent, plan.base()),
        first_number: first_number.map(|(first, before)| first.saturating_add_unsigned(before)),
        ..Piece::default()
    };
    let mut arguments = arguments.for_piece(piece, engine.clone());
    if part > 0 && plan.output_kind == OutputKind::Video {
        let mut whole = range_of(plan.parts[0].extent, plan.base());
        whole.end = range_of(plan.parts[plan.parts.len() - 1].extent, plan.base()).end;
        arguments = arguments.begun_as(whole)?;
    }
    make(&arguments, &plan.filters, stop)
}

/// The image files of a part, with what their bytes are known by.
fn images(made: &Made) -> Result<Data, Failure> {
    let file = |path: &PathBuf| {
        Ok(ImageFile {
            path: path.clone(),
            digest: Digest::of_file(path)?,
        })
    };
    let files: Result<_, std::io::Error> = made.images.par_iter().map(file).collect();
    Ok(Data::Images(files?))
}

/// Removes the output of a part that is not needed.
fn remove(plan: &Plan, work: &Path) {
    if plan.output_kind != OutputKind::Images {
        let _ = std::fs::remove_file(work);
    }
}
