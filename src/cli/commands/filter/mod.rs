//! `framepipe filter`: the main job, for one input or for several.
//!
//! ```text
//! mod.rs        the options; one input or several
//! inputs.rs     several inputs, and the names of their outputs
//! batch/        a job for each input, in turn or in parallel, with checks of names
//! single.rs     one input with its output: checks before anything is opened
//! piece.rs      a part of a job, and the survey of the whole before it
//! run.rs        one input, from its opening to the end of its output
//! own_files.rs  the files that a run writes beside its output
//! trial.rs      the first frame alone, for a dry run
//! ```

mod batch;
mod inputs;
mod own_files;
pub(super) mod piece;
mod run;
mod single;
mod trial;

use super::Failure;
use crate::cli::endpoint::{Output, PIPE};
use crate::cli::level_taken_for_name;
use crate::cli::options::comparison::ComparisonArguments;
use crate::cli::options::decoding::DecodingArguments;
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::engine::{EngineArguments, TUNING};
use crate::cli::options::filtering::FilteringArguments;
use crate::cli::options::reading::{RangeArguments, ReadingArguments};
use crate::cli::options::region::RegionArguments;
use crate::cli::options::trace::TraceArguments;
use crate::cli::process::interrupt::OnInterrupt;
use crate::cli::process::limits::{count, queue, size};
use crate::cli::process::{log, untrusted};
use crate::cli::show::{escape, progress};
use clap::builder::OsStringValueParser;
use clap::{Args, ValueHint};
use framepipe::frame::Remarks;
use framepipe::pipeline::PipelineOptions;
use framepipe::report::Recording;
use inputs::{Alone, Gathered};
use piece::Piece;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// How the command is used, since options may stand between the names, too.
const USAGE: &str = "framepipe filter [OPTIONS] --filter <SPEC> <INPUT>... <OUTPUT>";

/// What the inputs and the output may be. One list of arguments holds them all.
pub(super) const ENDS_HELP: &str = "\
\x20 <INPUT>...  A video file, a directory, frames/%05d.png, a glob, an image, -
              (YUV4MPEG2 on standard input), raw:WxH:FORMAT:FPS:PATH or
              synthetic:WxH:FORMAT:FPS:FRAMES (pictures lent in turn, at no cost;
              with :fresh after it each frame is computed again). Several files, or a
              glob or a folder of videos, give one output each
  <OUTPUT>    A video file, a directory, frames/%05d.png, an image, -
              (YUV4MPEG2 on standard output), raw:PATH or null:. For several inputs
              a folder: one that exists, or a name that ends in a slash";

/// What most people come for.
pub(in crate::cli) const EXAMPLES: &str = "\
\x20 framepipe filter in.mp4 out.mp4 --filter gaussian:sigma=3
  framepipe filter photo.jpg edges.png --filter sobel --planes gray
  framepipe filter frames/ blurred/ --filter box:size=7
  framepipe filter clips/*.mov out/ --format mp4 --filter sharpen";

fn help() -> String {
    format!(
        "{{about-with-newline}}\nExamples:\n{EXAMPLES}\n\n{{usage-heading}} {{usage}}\n\nArguments:\n\
         {ENDS_HELP}\n\n{{all-args}}{{after-help}}"
    )
}

/// The job as the user wrote it.
#[derive(Debug, Clone, Args)]
#[command(override_usage = USAGE, help_template = help())]
pub(crate) struct FilterArguments {
    /// The inputs, and the output last. Their help is in ENDS_HELP.
    #[arg(value_name = "INPUT", required = true, hide = true)]
    #[arg(value_parser = OsStringValueParser::new(), value_hint = ValueHint::AnyPath)]
    paths: Vec<OsString>,
    #[command(flatten)]
    filtering: FilteringArguments,
    #[command(flatten)]
    comparison: ComparisonArguments,
    /// The number of the first image file: to be read, of a numbered sequence [default: the first that there
    /// is]; of other inputs, to be written [default: 0].
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    start_number: Option<i64>,
    /// Go on with an interrupted job: of several inputs, or of image files, those whose output exists are
    /// not filtered again. Files appear under their names only when they are whole; empty ones are no
    /// outputs, and are replaced.
    #[arg(long, conflicts_with = "overwrite")]
    skip_existing: bool,
    /// Pass over inputs that fail, of several, or image files that cannot be read; list them at the end, and
    /// exit with 1.
    #[arg(long)]
    keep_going: bool,
    /// How many of several inputs are filtered side by side [default: 1]. With it, a single input is treated
    /// as several are; so is one with --format and a folder as output, and a video with --skip-existing or
    /// --keep-going and a folder.
    #[arg(long, value_name = "N", value_parser = count)]
    at_once: Option<NonZeroUsize>,
    #[command(flatten)]
    region: RegionArguments,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    decoding: DecodingArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
    #[command(flatten)]
    engine: EngineArguments,
    /// Say nothing but warnings and errors; -qq errors only.
    #[arg(short, long, action = clap::ArgAction::Count)]
    quiet: u8,
    /// What becomes of a run that a signal ends: its output is finished with the frames so far, or nothing is
    /// left of it [default: Ctrl-C keeps the output of a single input, SIGTERM and SIGHUP discard; of several
    /// inputs only whole outputs stay; a file that is there already is never replaced by a short one].
    /// Whole image files of a sequence stay in any case.
    #[arg(long, value_name = "WHAT")]
    on_interrupt: Option<OnInterrupt>,
    /// Refuse a run whose frame buffers would take more, such as 500M or 4G, and have jobs side by side wait
    /// for each other's [default: three quarters of the memory that this machine, or the control group, has].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_memory: Option<u64>,
    /// Print where the time went, stage by stage, instead of three lines; with -q, too. -v does the same.
    #[arg(long)]
    stats: bool,
    /// Print progress for programs, one JSON object a second: json on stderr, or json:FD on an open
    /// file descriptor [default: a line on a terminal, elsewhere one every 30 s]. docs/schemas.md in
    /// framepipe's source has the fields.
    #[arg(long, value_name = "FORM")]
    progress: Option<progress::ProgressFormat>,
    /// Print what would be done, with input, filters, engine and output, and keep nothing of it. The first
    /// frame is read, filtered and encoded, so that what a run refuses up to there is refused, and what it
    /// warns of is said. Not known are faults of later frames and of other streams' packets, and which texts
    /// and chapters the finished file lacks; pipes and devices as output are not opened.
    #[arg(long)]
    dry_run: bool,
    /// Write time and hash of each frame to this file, as it goes to the encoder, a line a frame; - is
    /// standard output. They are
    /// the same on every machine and engine, and in parts, too, but for damaged pictures, of which a
    /// warning tells: several decoder threads may conceal them in another way each time;
    /// --decoder-threads 1 does not.
    #[arg(long, value_name = "FILE")]
    frame_hashes: Option<PathBuf>,
    /// Write the report to this file: figures if its name ends in .json, a page to look at with plots if it
    /// ends in .html; repeat it for both.
    #[arg(long = "report", value_name = "FILE")]
    reports: Vec<PathBuf>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Frames that may wait between two stages.
    #[arg(long, value_name = "N", default_value_t = PipelineOptions::default().queue, value_parser = queue)]
    #[arg(help_heading = TUNING)]
    queue: usize,
    /// Threads that read and that write image files [default: as many as there are cores].
    #[arg(long, value_name = "N", help_heading = TUNING, value_parser = count)]
    workers: Option<NonZeroUsize>,
    /// Set for a part of a job.
    #[arg(skip)]
    piece: Option<Piece>,
}

/// True if a report of this name is a page, and not figures.
fn is_page(report: &Path) -> bool {
    report.extension().is_some_and(|extension| extension == "html")
}

/// How a pipeline runs with this queue and these threads for image files.
pub(super) fn pipeline_options(
    queue: usize,
    workers: Option<NonZeroUsize>,
    recording: Recording,
) -> PipelineOptions {
    let mut options = PipelineOptions::default();
    options.queue = queue;
    options.recording = recording;
    if let Some(workers) = workers {
        options.source_workers = workers.get();
        options.sink_workers = workers.get();
    }
    options
}

impl FilterArguments {
    /// True if the engine's choices are shown.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }

    /// Confines the process as `--untrusted` asks: it may read `reads`, and write in `folders`.
    fn confine(&self, reads: Vec<PathBuf>, folders: BTreeSet<PathBuf>) -> Result<(), Failure> {
        self.filtering.check_untrusted()?;
        let said = untrusted::confine(reads, folders, self.engine.wants_card())?;
        self.print(&format!("confined: {said}"));
        Ok(())
    }

    /// Refuses decoders of a card where there is none.
    fn check_card(&self) -> Result<(), Failure> {
        let is_closed = self.reading.untrusted && !self.engine.wants_card();
        self.decoding.check_card(is_closed)
    }

    /// The file of the frames' hashes, if they go to one and not to standard output.
    fn hashes_file(&self) -> Option<&Path> {
        self.frame_hashes
            .as_deref()
            .filter(|path| *path != Path::new(PIPE))
    }

    /// True if a report is a page.
    fn wants_page(&self) -> bool {
        self.reports.iter().any(|report| is_page(report))
    }

    /// The names in their order: the inputs, and the output.
    fn ends(&self) -> Result<(&[OsString], &OsString), Failure> {
        match self.paths.as_slice() {
            [inputs @ .., output] if !inputs.is_empty() => Ok((inputs, output)),
            _ => Err(Failure::Usage(
                "there is one name only; write the input and then the output, such as framepipe filter \
                 in.mp4 out.mp4 --filter soft"
                    .to_owned(),
            )),
        }
    }

    /// Remarks about the filters, and warnings of what was `left` out of the inputs, which are an error with
    /// `--strict`.
    fn accepted_caveats(&self, left: Vec<String>) -> Result<Remarks, Failure> {
        let mut remarks = self.filtering.caveats();
        remarks.warn(left);
        match remarks.refusal().filter(|_| self.reading.strict) {
            Some(problem) => Err(Failure::Failed(problem)),
            None => Ok(remarks),
        }
    }

    fn options(&self) -> PipelineOptions {
        let recording = self.trace.recording(self.wants_page(), !self.reports.is_empty());
        let mut options = pipeline_options(self.queue, self.workers, recording);
        options.strict = self.reading.strict;
        options
    }

    /// Prints a line to stderr unless the run is quiet.
    fn print(&self, text: &str) {
        if self.quiet == 0 {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", escape::line(text));
        }
    }

    /// Prints lines that hold no others' texts, or these as one line each.
    fn print_lines(&self, text: &str) {
        text.lines().for_each(|line| self.print(line));
    }
}

/// Filters the input into the output, or each of several.
pub(crate) fn run(mut arguments: FilterArguments, is_verbose: bool) -> Result<(), Failure> {
    if !is_verbose {
        log::keep_quiet(arguments.encoding.encoder.as_deref());
    }
    arguments.stats |= is_verbose;
    arguments.encoding.is_trial = arguments.dry_run;
    arguments.encoding.replaces_empty = arguments.skip_existing;
    arguments.engine.samples_times = arguments.trace.trace.is_none() && !arguments.wants_page();
    if arguments.reading.untrusted {
        // A driver adds attack surface, so that it is allowed only on request.
        arguments.engine.without_card();
    }
    // Before the process is confined.
    arguments.region.read()?;
    let (inputs, output) = arguments.ends()?;
    let alone = if arguments.at_once.is_some() {
        Alone::AsSeveral
    } else if arguments.encoding.format.is_some() {
        Alone::IntoFolder
    } else if arguments.skip_existing || arguments.keep_going {
        Alone::VideoIntoFolder
    } else {
        Alone::AsOne
    };
    let gathered = inputs::gather(inputs, output, alone, arguments.reading.untrusted);
    let gathered = gathered.map_err(|failure| level_taken_for_name().map_or(failure, Failure::Usage));
    match gathered? {
        Gathered::One(input) => {
            let output = Output::from_argument(output.clone()).map_err(|e| Failure::usage(&e))?;
            run::run(&arguments, input, output)
        }
        Gathered::Several { inputs, folder, left } => {
            arguments.engine.runs = inputs.len() as u64;
            batch::run(&arguments, inputs, &folder, left)
        }
    }
}
