//! `framepipe plan`: cuts a job into parts, and writes down all that decides the result.

use super::{libraries, version};
use crate::cli::commands::filter::piece::{Places, Survey, parse, survey};
use crate::cli::endpoint::{Input, Output, names_same_file};
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::filtering::FilteringArguments;
use crate::cli::options::reading::{RangeArguments, ReadingArguments};
use crate::cli::show::escape;
use crate::cli::show::failure::{Failure, to_stdout};
use crate::cli::{Arguments, log};
use clap::builder::OsStringValueParser;
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, CommandFactory, ValueHint};
use framepipe::frame::Rational;
use framepipe::program::parts::{Extent, JobFolder, OutputKind, Part, Plan, time_extents};
use framepipe::source::Cuts;
use framepipe::wording::counted;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;

/// Default seconds of a part: long compared with the cost of its start.
const USUAL_SECONDS: f64 = 20.0;

/// Default frames of a part of an input without time.
const USUAL_FRAMES: u64 = 500;

/// The most parts of a plan.
const MOST_PARTS: u64 = 100_000;

/// Default threads of an encoder, whose bits depend on their number.
const MOST_THREADS: usize = 16;

/// What of `framepipe filter` a plan does not have.
const AFTER_HELP: &str = "\
Not in plans: --region, --regions, --matte and --compare, --untrusted, mask files, pipes, and encoder \
options that bound the bits of the whole video. `framepipe filter` has them.";

const START_HELP: &str = "Begin with the first frame that is shown at this time or after it: seconds, or \
                          [HH:]MM:SS.mmm. Sound and subtitles are cut to the same range. Of image files, raw \
                          and synthetic frames also 120f, for the frame after the first 120";

const END_HELP: &str = "\
End before the first frame that is shown at this time, counted from the beginning of the input; of image \
files, raw and synthetic frames also 120f";

const DURATION_HELP: &str = "\
The most time, counted from the start; of image files, raw and synthetic frames also the most frames, such \
as 120f";

const FRAMES_HELP: &str = "\
Not of videos. Of image files and the pages of a TIFF file those to read, by their numbers in a pattern's \
names, else by their place, counted from 0: 7, 1001-1100, 1001- (to the end), -1100 (from the beginning), \
0-99:2 (every second). Of raw and synthetic frames the most frames, as a number";

/// The job as the user wrote it.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = AFTER_HELP,
    mut_arg("start", |option| option.help(START_HELP)),
    mut_arg("end", |option| option.help(END_HELP)),
    mut_arg("duration", |option| option.help(DURATION_HELP)),
    mut_arg("frames", |option| option.help(FRAMES_HELP))
)]
pub(crate) struct PlanArguments {
    /// The input: a video file, a folder of images, frames/%05d.png, raw:WxH:FORMAT:FPS:PATH or synthetic:...
    #[arg(value_name = "INPUT", value_parser = OsStringValueParser::new(), value_hint = ValueHint::AnyPath)]
    input: OsString,
    /// The output: a video file, a folder, or frames/%05d.png.
    #[arg(value_name = "OUTPUT", value_parser = OsStringValueParser::new(), value_hint = ValueHint::AnyPath)]
    output: OsString,
    /// The folder of the job, which all machines must see. It is made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    job: PathBuf,
    /// How many parts, or fewer where there are fewer key frames.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), group = "length")]
    parts: Option<u32>,
    /// About so many frames a part [default: 500 of images].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), group = "length")]
    part_frames: Option<u64>,
    /// About so many seconds a part [default: 20 of a video].
    #[arg(long, value_name = "S", value_parser = seconds, group = "length")]
    part_seconds: Option<f64>,
    /// Cut anywhere, not only at key frames: parts are of equal length, and what lies before a cut in its
    /// group of pictures is decoded twice.
    #[arg(long)]
    cut_anywhere: bool,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    filtering: FilteringArguments,
    /// The number of the first image file: to be read, of a numbered sequence; of other inputs, to be
    /// written.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    start_number: Option<i64>,
    #[command(flatten)]
    range: RangeArguments,
    #[command(flatten)]
    reading: ReadingArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
}

/// Options that are the plan's own and not the filter's.
const OWN: [&str; 8] = [
    "input",
    "output",
    "job",
    "parts",
    "part_frames",
    "part_seconds",
    "cut_anywhere",
    "quiet",
];

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: Option<f64> = text.parse().ok().filter(|&s| s > 0.0 && s < 1e9);
    seconds.ok_or_else(|| "write a number of seconds above 0, such as 20".to_owned())
}

impl PlanArguments {
    /// The number of parts.
    fn count(&self, rate: Option<Rational>, frames: Option<u64>) -> Result<u32, Failure> {
        if let Some(parts) = self.parts {
            return Ok(parts);
        }
        let rate = rate.map(Rational::to_f64).filter(|&rate| rate > 0.0);
        let frames_each = match (self.part_frames, self.part_seconds, rate) {
            (Some(frames), ..) => frames,
            (None, seconds, Some(rate)) => (seconds.unwrap_or(USUAL_SECONDS) * rate).round().max(1.0) as u64,
            (None, Some(_), None) => {
                return Err(Failure::Usage(
                    "the input has no frame rate; give the length of parts by --part-frames".to_owned(),
                ));
            }
            (None, None, None) => USUAL_FRAMES,
        };
        let frames = frames.ok_or_else(|| {
            Failure::Usage("the input does not say how many frames it has; say --parts N".to_owned())
        })?;
        Ok(frames.div_ceil(frames_each.max(1)).clamp(1, MOST_PARTS) as u32)
    }
}

/// The filter's options of the command line, as the user wrote them.
fn options(matches: &ArgMatches) -> Result<Vec<String>, Failure> {
    let command = Arguments::command();
    let command = command.find_subcommand("plan").cloned().unwrap_or_default();
    let mut words = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        let is_given = matches.try_contains_id(id).unwrap_or(false)
            && matches.value_source(id) == Some(ValueSource::CommandLine);
        let Some(long) = argument.get_long().filter(|_| is_given && !OWN.contains(&id)) else {
            continue;
        };
        if !argument.get_action().takes_values() {
            words.push(format!("--{long}"));
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = value
                .to_str()
                .ok_or_else(|| Failure::Usage(format!("--{long}: a plan is text, and this is not UTF-8")))?;
            words.push(format!("--{long}={value}"));
        }
    }
    Ok(words)
}

/// Makes a plan.
pub(crate) fn run(wanted: &PlanArguments) -> Result<(), Failure> {
    log::keep_quiet(wanted.encoding.encoder.as_deref());
    refuse_one_path_twice(wanted)?;
    let matches = Arguments::command().get_matches();
    let matches = matches.subcommand_matches("plan").cloned().unwrap_or_default();
    let plan = make(wanted, options(&matches)?)?;
    JobFolder::create(&wanted.job, &plan).map_err(super::job_failure)?;
    if wanted.quiet {
        return Ok(());
    }
    to_stdout(|out| {
        for line in account(&plan, wanted) {
            writeln!(out, "{}", escape::line(&line))?;
        }
        Ok(())
    })
}

/// Refuses a job folder that is also the input or the output.
fn refuse_one_path_twice(wanted: &PlanArguments) -> Result<(), Failure> {
    let input = Input::from_argument(wanted.input.clone()).map_err(|e| Failure::usage(&e))?;
    let output = Output::from_argument(wanted.output.clone()).map_err(|e| Failure::usage(&e))?;
    for (path, what) in [(input.path(), "input"), (output.path(), "output")] {
        if path.is_some_and(|path| names_same_file(path, &wanted.job)) {
            return Err(Failure::Usage(format!(
                "{} is both the {what} and the folder of the job; choose another folder",
                wanted.job.display()
            )));
        }
    }
    Ok(())
}

/// The plan of a job with these options of the filter.
fn make(wanted: &PlanArguments, mut options: Vec<String>) -> Result<Plan, Failure> {
    let words = || options.iter().map(OsString::from);
    let ends = || [OsString::from("--"), wanted.input.clone(), wanted.output.clone()];
    let mut arguments = parse(words().chain(ends()))?;
    arguments.keep_quiet(wanted.quiet);
    let found = survey(
        &arguments,
        |rate, frames| wanted.count(rate, frames),
        wanted.cut_anywhere,
    )?;
    if let (Some(encoder), None) = (&found.encoder, &wanted.encoding.encoder) {
        options.push(format!("--encoder={encoder}"));
    }
    let encoding = &wanted.encoding;
    let names_threads = encoding.encoder_threads.is_some()
        || encoding
            .encoder_option
            .iter()
            .any(|(key, _)| key.trim_end_matches(":v") == "threads");
    if found.encoder.is_some() && !names_threads {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        options.push(format!("--encoder-threads={}", cores.min(MOST_THREADS)));
    }
    let (parts, uncut) = parts(&found);
    let input = found.input.into_string().map_err(|_| {
        Failure::Usage("a plan is text, and the input's name is not UTF-8; rename it".to_owned())
    })?;
    let base = found.info.time_base;
    let plan = Plan {
        format: 0,
        id: String::new(),
        framepipe: version(),
        libraries: libraries(),
        input,
        identity: found.identity,
        output: found.output,
        output_kind: found.kind,
        options,
        filters: found.filters,
        time_base: (base.num, base.den),
        start: found.span.0.unwrap_or(0),
        first_number: found.first_number,
        parts,
        uncut,
    };
    Ok(plan.sealed())
}

/// The parts, and why there is one only.
fn parts(found: &Survey) -> (Vec<Part>, Option<String>) {
    let (start, end) = found.span;
    let whole = || vec![Extent::Ticks { begin: start, end }];
    let input = found.input.display();
    let (mut extents, counts, mut uncut) = match &found.places {
        Places::Frames(extents) => {
            let counts = extents.iter().copied().map(Extent::frames).collect();
            (extents.clone(), counts, None)
        }
        Places::Times(Cuts::At { ticks, counts }) => (time_extents(start, ticks, end), counts.clone(), None),
        Places::Times(Cuts::None(reason)) => (whole(), None, Some(format!("{input} {reason}"))),
    };
    let needs_numbers = found.kind == OutputKind::Images && found.first_number.is_some();
    if needs_numbers && counts.is_none() && extents.len() > 1 {
        extents = whole();
        uncut = Some(
            "its frames cannot be counted without decoding, and the numbers of image files need that"
                .to_owned(),
        );
    }
    if found.kind == OutputKind::File {
        let output = found.output.display();
        uncut = Some(format!("{output} is a file that is written in one piece"));
    }
    let mut before = 0;
    let mut parts = Vec::new();
    for (index, &extent) in extents.iter().enumerate() {
        let frames = counts.as_ref().and_then(|counts| counts.get(index).copied());
        // A range without a frame is no part.
        if frames == Some(0) && extents.len() > 1 {
            continue;
        }
        parts.push(Part {
            extent,
            frames,
            before: (index == 0 || counts.is_some()).then_some(before),
        });
        before += frames.unwrap_or(0);
    }
    (parts, uncut)
}

/// The plan as text.
fn account(plan: &Plan, wanted: &PlanArguments) -> Vec<String> {
    let job = wanted.job.display();
    let parts = plan.parts.len();
    let mut lines = vec![format!(
        "{} into {}: {} in {job}",
        plan.input,
        plan.output.display(),
        counted(parts as u64, "part")
    )];
    if let Some(reason) = &plan.uncut {
        lines.push(format!("one part only: {reason}"));
    }
    if let framepipe::program::parts::Identity::File { bytes, .. } = &plan.identity {
        let whole = *bytes as f64;
        lines.push(format!(
            "reads {}, some {} a part; further workers help until all together read and write as many \
             bytes a second as the storage can",
            megabytes(whole),
            megabytes(whole / parts as f64)
        ));
    }
    let numbers = match parts {
        1 => format!("`framepipe part {job} 0`"),
        _ => format!("`framepipe part {job} N` for N from 0 to {}", parts - 1),
    };
    lines.push(format!(
        "next: `framepipe run {job}` here, or {numbers} anywhere, then `framepipe join {job}`"
    ));
    lines
}

/// Bytes for people, none of them as 0.
fn megabytes(bytes: f64) -> String {
    match bytes / 1e6 {
        mega if mega < 0.1 => format!("{:.1} kB", bytes / 1e3),
        mega => format!("{mega:.1} MB"),
    }
}
