//! A part of a job: the survey of the whole before any part is made, and a single part, which is a run over a
//! range whose frames and cuts are logged.

use super::FilterArguments;
use super::run::JobContext;
use super::single::Single;
use crate::cli::Failure;
use crate::cli::endpoint::{FileChoice, Files, Input, Output, PIPE};
use crate::cli::options::encoding::EncodingArguments;
use crate::cli::options::engine::{EngineArguments, EngineName};
use crate::cli::process::limits::MemoryBudget;
use crate::cli::show::progress::{Form, Watched};
use clap::{Args, FromArgMatches};
use framepipe::engine::pool::EnginePool;
use framepipe::engine::{EngineError, luma};
use framepipe::filter::{FloatPlan, Plan as FilterPlan};
use framepipe::frame::{Point, Rational, Remarks};
use framepipe::pipeline::{Progress, Stop};
use framepipe::program::parts::{Extent, Identity, OutputKind, PinnedFilter, frame_extents};
use framepipe::report::Completion;
use framepipe::sink::hashes::{FrameLog, LoggedFrame};
use framepipe::sink::images::Naming;
use framepipe::sink::video::{FirstFrame, VideoSink};
use framepipe::source::images::listing;
use framepipe::source::range::TimeRange;
use framepipe::source::seam::{SeamLog, Seams};
use framepipe::source::{AnySource, CutRequest, Cuts, StreamInfo};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};

/// The differences of a run over a part from any other run.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct Piece {
    /// The part's frames.
    pub(in crate::cli) range: TimeRange,
    /// The number of its first image file, if framepipe numbers the files.
    pub(in crate::cli) first_number: Option<i64>,
    /// The result of filtering.
    pub(in crate::cli) log: Arc<FrameLog>,
    /// The frames beside its cuts.
    pub(in crate::cli) seams: SeamLog,
}

/// The result of a part.
pub(in crate::cli) struct Made {
    pub(in crate::cli) frames: Vec<LoggedFrame>,
    pub(in crate::cli) seams: Seams,
    pub(in crate::cli) remarks: Remarks,
    pub(in crate::cli) engine: String,
    /// Image files that were written.
    pub(in crate::cli) images: Vec<PathBuf>,
}

/// Facts about a job, needed before it is cut.
pub(in crate::cli) struct Survey {
    pub(in crate::cli) info: StreamInfo,
    /// The input with an absolute path.
    pub(in crate::cli) input: OsString,
    /// The output with an absolute path, as it is written on the command line.
    pub(in crate::cli) output: PathBuf,
    pub(in crate::cli) kind: OutputKind,
    pub(in crate::cli) identity: Identity,
    /// FFmpeg's name of the encoder, if there is one.
    pub(in crate::cli) encoder: Option<String>,
    pub(in crate::cli) filters: Vec<PinnedFilter>,
    /// The number of the first image file, if framepipe numbers the files.
    pub(in crate::cli) first_number: Option<i64>,
    /// Where the job begins and ends, in ticks of the input.
    pub(in crate::cli) span: (Option<i64>, Option<i64>),
    pub(in crate::cli) places: Places,
}

/// Where the input can be cut.
pub(in crate::cli) enum Places {
    /// Anywhere, since frames have numbers: these are the parts.
    Frames(Vec<Extent>),
    /// At these times.
    Times(Cuts),
}

/// The arguments of `framepipe filter` in these words.
pub(in crate::cli) fn parse(words: impl Iterator<Item = OsString>) -> Result<FilterArguments, Failure> {
    let command = FilterArguments::augment_args(clap::Command::new("filter").no_binary_name(true));
    let matches = command.try_get_matches_from(words);
    let parsed = matches.and_then(|matches| FilterArguments::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let text = error.to_string();
        let text = text.trim_start_matches("error: ");
        Failure::Usage(text.split("\n\nUsage").next().unwrap_or(text).trim().to_owned())
    })
}

impl FilterArguments {
    /// Has the run say nothing but warnings and errors, or more.
    pub(in crate::cli) fn keep_quiet(&mut self, quiet: bool) {
        self.quiet = u8::from(quiet);
    }

    /// The same for a part, by an engine of this machine's.
    pub(in crate::cli) fn for_piece(mut self, piece: Piece, engine: EngineArguments) -> FilterArguments {
        if self.paths.last().is_some_and(|output| output == "null:") {
            // The frames count, and nothing encodes them.
            self.encoding = EncodingArguments {
                pixel_format: self.encoding.floats().map(|floats| floats.name().to_owned()),
                background: self.encoding.background,
                ..EncodingArguments::default()
            };
        }
        self.encoding.is_part = true;
        self.encoding.overwrite = true;
        self.engine = engine;
        self.piece = Some(piece);
        self
    }

    /// The same for a part of a video that is to agree with the first frame of `whole`, the range of all
    /// parts.
    pub(in crate::cli) fn begun_as(mut self, whole: TimeRange) -> Result<FilterArguments, Failure> {
        self.encoding.first = Some(FirstFrame::default());
        let trial = FilterArguments {
            piece: Some(Piece {
                range: whole,
                ..Piece::default()
            }),
            ..self.clone()
        };
        try_output(&trial)?;
        Ok(self)
    }

    /// The single input and the output.
    fn single(&self) -> Result<Single<'_>, Failure> {
        let ([input], output) = self.ends()? else {
            return Err(Failure::Usage("a job has one input and one output".to_owned()));
        };
        let input = Input::from_argument(input.clone()).map_err(|e| Failure::usage(&e))?;
        let output = Output::from_argument(output.clone()).map_err(|e| Failure::usage(&e))?;
        Ok(Single::new(self, input, output))
    }

    /// Opens the whole of what the job reads, for the streams besides the picture.
    pub(in crate::cli) fn open_for_join(&self) -> Result<(StreamInfo, Option<VideoSink>), Failure> {
        let single = self.single()?;
        let opened = single.open(None)?;
        let info = opened.source.info().clone();
        let sink = match &single.output {
            Output::Video(path) => Some(Output::video_behind_conversions(
                path,
                &info,
                &self.encoding,
                self.reading.strict,
            )?),
            _ => None,
        };
        Ok((info, sink))
    }

    /// The filters as every engine computes them for frames as `info` describes them.
    pub(in crate::cli) fn pinned(&self, info: &StreamInfo) -> Result<Vec<PinnedFilter>, Failure> {
        let chain = self.filtering.chain();
        let labels = self.filtering.labels();
        if self.single()?.input.is_images() {
            // Each picture may have its own format; the version of framepipe decides what is made of it.
            return Ok(labels.map(|name| PinnedFilter::new(name, "")).collect());
        }
        let format = luma::filtered_format(info.format, &chain.planes);
        let steps: Vec<String> = if format.is_float() {
            let plan = FloatPlan::new(&chain, format, &info.colour).map_err(EngineError::from)?;
            plan.steps.iter().map(|step| format!("{step:?}")).collect()
        } else {
            let plan = FilterPlan::new(&chain, format, &info.colour).map_err(EngineError::from)?;
            plan.steps.iter().map(|step| format!("{step:?}")).collect()
        };
        Ok(labels
            .zip(steps)
            .map(|(name, text)| PinnedFilter::new(name, &text))
            .collect())
    }
}

/// Surveys the job; `parts` computes the number of parts from frame rate and number of frames.
pub(in crate::cli) fn survey(
    arguments: &FilterArguments,
    parts: impl FnOnce(Option<Rational>, Option<u64>) -> Result<u32, Failure>,
    anywhere: bool,
) -> Result<Survey, Failure> {
    let single = arguments.single()?;
    single.check()?;
    refuse_what_no_part_can(arguments, &single)?;
    let rate = single
        .input
        .rate_for(&single.output, single.arguments.reading.fps);
    let choice = FileChoice {
        range: TimeRange::default(),
        ..single.file_choice()?
    };
    let options = single.arguments.reading.options(single.decoder_threads());
    let opened = single.input.open(rate, &options, &choice)?;
    let info = opened.source.info().clone();
    single.arguments.reading.check_size(&single.input.name(), &info)?;
    single.check_written(opened.files.as_ref())?;
    let (kind, encoder) = output_kind(&single, &info, opened.files.clone())?;
    let range = single.arguments.range.times(&single.input)?;
    let wanted = |frames: Option<u64>| match kind {
        OutputKind::File => Ok(1),
        OutputKind::Video | OutputKind::Images => parts(info.frame_rate, frames),
    };
    let mut span = (None, None);
    let counts = matches!(kind, OutputKind::Images);
    let places = match opened.source {
        AnySource::Indexed(source) => {
            let (first, end) = range.numbers(info.frame_rate).ok_or_else(|| {
                Failure::Usage("without a frame rate a range is in frames, such as 120f".to_owned())
            })?;
            let end = end.unwrap_or(u64::MAX).min(source.len());
            let count = end.checked_sub(first).filter(|&count| count > 0);
            let count = count.ok_or_else(|| Failure::Usage("no frame lies in the range".to_owned()))?;
            if end == u64::MAX {
                return Err(Failure::Usage(format!(
                    "{} never ends, and a plan needs an end; give it with --end, --duration or --frames",
                    single.input.name()
                )));
            }
            Places::Frames(frame_extents(first..end, wanted(Some(count))?))
        }
        AnySource::Stream(mut source) => {
            span = ticks_of(&range, info.time_base)?;
            Places::Times(source.cuts(CutRequest {
                parts: wanted(range.count(&info))?,
                start: span.0,
                end: span.1,
                anywhere,
                counts,
            })?)
        }
    };
    try_output(arguments)?;
    Ok(Survey {
        identity: identity(&single.input, opened.files.as_ref())?,
        input: absolute_input(&single)?,
        output: absolute_output(&single)?,
        kind,
        encoder,
        filters: arguments.pinned(&info)?,
        first_number: first_number(&single, opened.files.as_ref()),
        span,
        places,
        info,
    })
}

/// Says what there is to say of the input, and refuses a video that the parts or their join would refuse once
/// the first frame is there.
fn try_output(arguments: &FilterArguments) -> Result<(), Failure> {
    let mut arguments = arguments.clone();
    arguments.encoding.is_trial = true;
    arguments.engine.engine = EngineName::None;
    arguments.engine.is_trial = true;
    let single = arguments.single()?;
    let opened = single.open(None)?;
    if let Output::Video(_) = &single.output {
        let budget = MemoryBudget::new(arguments.max_memory);
        single.plan(opened, &EnginePool::default(), &budget, &Stop::new())?;
    }
    Ok(())
}

/// Refuses anything that a part on another machine could not read or do.
fn refuse_what_no_part_can(arguments: &FilterArguments, single: &Single<'_>) -> Result<(), Failure> {
    let refuse = |text: String| Err(Failure::Usage(text));
    if let Some(filter) = single
        .arguments
        .filtering
        .filters()
        .find(|filter| filter.is_from_file())
    {
        return refuse(format!(
            "a plan carries no mask files; write the mask of {} in rows=",
            filter.label
        ));
    }
    if single.input.path() == Some(Path::new(PIPE)) || single.output.is_stdout() {
        return refuse(
            "parts are read and written by several processes, and a pipe can be read only once".to_owned(),
        );
    }
    if matches!(single.output, Output::Null) {
        return refuse("null: keeps nothing that could be put together; name a file or a folder".to_owned());
    }
    if arguments.reading.untrusted {
        return refuse("--untrusted is not for plans: a join reads the input without confinement".to_owned());
    }
    let rates = [
        "b",
        "bitrate",
        "maxrate",
        "minrate",
        "bufsize",
        "pass",
        "passlogfile",
        "vbv-maxrate",
    ];
    let options = &single.arguments.encoding.encoder_option;
    let bounded = options.iter().find(|(key, value)| {
        let key = key.strip_suffix(":v").unwrap_or(key);
        rates.contains(&key)
            || key.ends_with("-params")
                && ["bitrate", "vbv", "pass="]
                    .iter()
                    .any(|word| value.contains(word))
    });
    match bounded {
        Some((key, _)) => refuse(format!(
            "--encoder-option {key} bounds the bits of the whole video, which no part knows; use --quality"
        )),
        None => Ok(()),
    }
}

/// The kind of the output, and the encoder's name if it is a video.
fn output_kind(
    single: &Single<'_>,
    info: &StreamInfo,
    files: Option<Files>,
) -> Result<(OutputKind, Option<String>), Failure> {
    match &single.output {
        Output::Video(path) => {
            let (encoding, strict) = (&single.arguments.encoding, single.arguments.reading.strict);
            let sink = Output::video_behind_conversions(path, info, encoding, strict)?;
            let kind = match sink.is_joinable() {
                true => OutputKind::Video,
                false => OutputKind::File,
            };
            Ok((kind, Some(sink.encoder_name())))
        }
        output => {
            // Created only to find out whether it is refused.
            output.open(
                info,
                &single.arguments.encoding,
                single.arguments.reading.strict,
                files,
                single.first_written()?,
            )?;
            let kind = match output.is_numbered() {
                true => OutputKind::Images,
                false => OutputKind::File,
            };
            Ok((kind, None))
        }
    }
}

/// The number of the first image file, if neither numbers nor names of the input's files are theirs.
fn first_number(single: &Single<'_>, files: Option<&Files>) -> Option<i64> {
    let is_pattern = single.output.is_pattern();
    let follows = match files {
        Some(files) => files.numbers.is_some() || !is_pattern,
        None => false,
    };
    let start = single
        .arguments
        .start_number
        .filter(|_| !single.input.is_pattern());
    (single.output.is_numbered() && !follows).then(|| start.unwrap_or(0))
}

/// Start and end in ticks.
fn ticks_of(range: &TimeRange, base: Rational) -> Result<(Option<i64>, Option<i64>), Failure> {
    let in_frames = || {
        Failure::Usage(
            "the range of a job is in times, such as --start 1:30 --end 2:00: frames of a video have numbers \
             only once all before them have been decoded"
                .to_owned(),
        )
    };
    let time = |point: Option<Point>| match point {
        None => Ok(None),
        Some(Point::Time(nanos)) => Ok(Some(nanos)),
        Some(Point::Frame(_)) => Err(in_frames()),
    };
    if range.frames.is_some() {
        return Err(in_frames());
    }
    let start = time(range.start)?;
    let length = time(range.duration)?;
    let end = match (time(range.end)?, length) {
        (None, Some(length)) => Some(start.unwrap_or(0).saturating_add(length)),
        (end, _) => end,
    };
    let tick = |nanos| base.tick_at(nanos);
    Ok((start.map(tick), end.map(tick)))
}

/// The range of a part.
pub(in crate::cli) fn range_of(extent: Extent, base: Rational) -> TimeRange {
    let mut range = TimeRange::default();
    (range.start, range.end) = match extent {
        Extent::Ticks { begin, end } => {
            let time = |tick| Point::Time(base.nanos(tick));
            (begin.map(time), end.map(time))
        }
        Extent::Frames { begin, end } => (Some(Point::Frame(begin)), Some(Point::Frame(end))),
    };
    range
}

/// The identity of the input.
pub(in crate::cli) fn identity(input: &Input, files: Option<&Files>) -> Result<Identity, Failure> {
    match (input, files) {
        (Input::Synthetic(_), _) => Ok(Identity::Synthetic),
        (_, Some(files)) => Ok(Identity::of_images(&files.read)?),
        (input, None) => match input.path() {
            Some(path) if path.is_file() => Ok(Identity::of_file(path)?),
            Some(path) if path.exists() => Err(Failure::Usage(format!(
                "{} is no file; parts are read by several processes, which need one",
                path.display()
            ))),
            Some(path) if path.to_string_lossy().contains("://") => Ok(Identity::Url),
            path => {
                let path = path.unwrap_or(Path::new("")).display();
                Err(Failure::Passing(format!(
                    "cannot read {path}: there is no such file here"
                )))
            }
        },
    }
}

/// The current identity of a plan's input.
pub(in crate::cli) fn identity_now(arguments: &FilterArguments) -> Result<Identity, Failure> {
    let single = arguments.single()?;
    match single.input.path() {
        Some(path) if single.input.is_images() => {
            let files = listing::list(path, &single.selection())?.files;
            Ok(Identity::of_images(&files)?)
        }
        _ => identity(&single.input, None),
    }
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    let mut whole = std::path::absolute(path)?;
    if path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        whole.push("");
    }
    Ok(whole)
}

/// The input's argument with an absolute path, if it has a path.
fn absolute_input(single: &Single<'_>) -> Result<OsString, Failure> {
    let ([argument], _) = single.arguments.ends()? else {
        return Err(Failure::Usage("a job has one input".to_owned()));
    };
    match single.input.path() {
        Some(path) if path.exists() || single.input.is_images() => with_absolute(argument, path),
        _ => Ok(argument.clone()),
    }
}

/// The same of the output.
fn absolute_output(single: &Single<'_>) -> Result<PathBuf, Failure> {
    let (_, argument) = single.arguments.ends()?;
    let path = single.output.path().unwrap_or(Path::new(""));
    Ok(PathBuf::from(with_absolute(argument, path)?))
}

/// An argument that ends in this path, with its prefix, such as raw:, and the absolute path.
fn with_absolute(argument: &OsString, path: &Path) -> Result<OsString, Failure> {
    let prefix = argument.as_bytes().strip_suffix(path.as_os_str().as_bytes());
    let mut whole = OsStr::from_bytes(prefix.unwrap_or_default()).to_owned();
    whole.push(absolute(path)?);
    Ok(whole)
}

/// Makes a part with these filters, unless `stop` ends it.
pub(in crate::cli) fn make(
    arguments: &FilterArguments,
    filters: &[PinnedFilter],
    stop: &Stop,
) -> Result<Made, Failure> {
    let Some(piece) = &arguments.piece else {
        return Err(Failure::Failed("this run is no part".to_owned()));
    };
    let single = arguments.single()?;
    single.check()?;
    arguments.check_card()?;
    let caveats = arguments.accepted_caveats(Vec::new())?;
    arguments.engine.begin(&arguments.filtering.chain());
    let opened = single.open(Some(stop))?;
    if arguments.pinned(&opened.info)? != filters {
        return Err(Failure::Usage(
            "the filters have other integers than in the plan: another version of framepipe made it, or the \
             input has changed"
                .to_owned(),
        ));
    }
    let files = opened.files.clone();
    let (engines, counters) = (EnginePool::default(), Progress::new());
    let watched = Watched {
        counters: &counters,
        stop,
        frames: opened.source.info().frames,
        parts: single.parts(),
        pace: None,
    };
    let context = JobContext {
        engines: &engines,
        budget: &MemoryBudget::new(arguments.max_memory),
        stop,
        counters: &counters,
        is_engine_shown: &AtomicBool::new(true),
        origin: None,
    };
    let finished = single.filter(opened, &context, Form::Nothing, &watched)?;
    if finished.measured.ending == Completion::Interrupted {
        return Err(Failure::Interrupted);
    }
    let frames = piece.log.take();
    let images = match single.output.is_numbered() {
        true => names(&single, files.as_ref(), frames.len())?,
        false => Vec::new(),
    };
    let mut remarks = caveats;
    remarks.append(finished.remarks);
    Ok(Made {
        frames,
        seams: *piece.seams.lock().unwrap_or_else(PoisonError::into_inner),
        remarks,
        engine: finished.task.engine_description,
        images,
    })
}

/// The image files of a part.
fn names(single: &Single<'_>, files: Option<&Files>, frames: usize) -> Result<Vec<PathBuf>, Failure> {
    let Output::Images(target) = &single.output else {
        return Ok(Vec::new());
    };
    let start = single.first_written()?;
    let mut options = files.map(|files| files.options(start)).unwrap_or_default();
    options.start = start;
    let naming = Naming::new(target, &options)?;
    let source = |index: usize| {
        files
            .and_then(|files| files.paths.get(index))
            .map(PathBuf::as_path)
    };
    Ok((0..frames)
        .map(|index| naming.name(index as u64, source(index)).0)
        .collect())
}
