//! `framepipe filter`: the main job.

use super::encoding::EncodingArguments;
use super::endpoint::{Input, Output, check_distinct, check_files, same_file};
use super::engine::EngineArguments;
use super::trace::TraceArguments;
use super::{Failure, interrupt, progress};
use clap::Args;
use framepipe::filter::{Algorithm, Border, Chain, Filter, Plan, Planes};
use framepipe::frame::{FieldOrder, Rational, parse_rate};
use framepipe::pipeline::{self, Job, PipelineError, PipelineOptions, Progress, Stop};
use framepipe::report::{Ending, Recording, Report, Task, page};
use framepipe::sink::part::PartFile;
use framepipe::source::video::VideoSourceOptions;
use framepipe::{sink, source};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The job as the user wrote it.
#[derive(Debug, Clone, Args)]
pub(crate) struct FilterArguments {
    /// A video file, a directory, frames/%05d.png, a glob, an image, - (YUV4MPEG2 on standard input),
    /// raw:WxH:FORMAT:FPS:PATH or synthetic:WxH:FORMAT:FPS:FRAMES.
    input: Input,
    /// A video file, a directory, frames/%05d.png, an image, - (YUV4MPEG2 on standard output), raw:PATH or null:.
    output: Output,
    /// What is done to each frame, such as gaussian:sigma=2 (`framepipe masks` lists them); several are applied in order.
    #[arg(short, long = "filter", value_name = "SPEC", required = true)]
    filters: Vec<Filter>,
    /// What lies beyond the edges: replicate, zero, constant:V, reflect, mirror or wrap.
    #[arg(long, value_name = "MODE", default_value_t)]
    border: Border,
    /// The components to change: all, all+alpha, luma, gray (luma filtered, chroma neutral), chroma, or a list of y,u,v,r,g,b,a.
    #[arg(long, value_name = "PLANES", default_value_t)]
    planes: Planes,
    /// How masks are applied: auto, direct, or separable (masks of rank 1 only).
    #[arg(long, value_name = "NAME", default_value_t)]
    algorithm: Algorithm,
    /// Turn every mask by 180 degrees: convolution in the mathematical sense instead of correlation.
    #[arg(long)]
    flip: bool,
    /// Filter the two fields of each picture apart, for interlaced video: the even rows as one picture, the odd ones as another.
    #[arg(long)]
    fields: bool,
    /// Frames a second of image files, such as 24 or 30000/1001 [default: 25 where the output needs it].
    #[arg(long, value_name = "RATE", value_parser = parse_rate)]
    fps: Option<Rational>,
    /// Index of the video stream to filter [default: the one that a player would show].
    #[arg(long, value_name = "N")]
    stream: Option<usize>,
    /// Fail at the first damaged packet instead of concealing it, and where a stream or a fact about the pictures cannot be carried
    /// over as it is.
    #[arg(long)]
    strict: bool,
    /// Threads of FFmpeg's decoder [default: as many as there are cores, half of that if a video is encoded; 16 at most].
    #[arg(long, value_name = "N")]
    decoder_threads: Option<NonZeroUsize>,
    #[command(flatten)]
    engine: EngineArguments,
    #[command(flatten)]
    encoding: EncodingArguments,
    /// Say nothing but errors.
    #[arg(short, long)]
    quiet: bool,
    /// Write the report to this file: figures if its name ends in .json, a page to look at with plots if it ends in .html.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Frames that may wait between two stages.
    #[arg(long, value_name = "N", default_value_t = PipelineOptions::default().queue, value_parser = queue)]
    queue: usize,
    /// Threads that read and that write image files [default: as many as there are cores].
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
}

/// A length of queue.
pub(super) fn queue(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|n| (1..=1024).contains(n))
        .ok_or_else(|| "write a number from 1 to 1024".to_owned())
}

impl FilterArguments {
    /// True if what the engine picks is to be told.
    pub(crate) fn explains(&self) -> bool {
        self.engine.explain
    }

    /// Refuses what cannot be, before anything is opened.
    fn check(&self) -> Result<(), Failure> {
        self.engine.check()?;
        self.output.check(&self.encoding)?;
        check_distinct(&self.input, &self.output)?;
        self.trace.check()?;
        if let Some(report) = &self.report {
            let extension = report.extension().unwrap_or_default();
            if extension != "json" && extension != "html" {
                return Err(Failure::Usage(format!(
                    "--report {}: the name must end in .json or .html",
                    report.display()
                )));
            }
        }
        for (noun, path) in [("report", &self.report), ("trace", &self.trace.trace)] {
            if let Some(path) = path {
                self.check_own(noun, path)?;
            }
        }
        if let (Some(report), Some(trace)) = (&self.report, &self.trace.trace)
            && (report == trace || same_file(report, trace))
        {
            return Err(Failure::Usage(format!(
                "{} is both report and trace; choose another name",
                report.display()
            )));
        }
        Ok(())
    }

    /// Refuses a file to be written that is the input or the output as well.
    fn check_own(&self, noun: &str, path: &Path) -> Result<(), Failure> {
        if self.output.to_string() == path.display().to_string() {
            return Err(Failure::Usage(format!(
                "{} is both output and {noun}; choose another name",
                path.display()
            )));
        }
        if let Input::Video(input) | Input::Images(input) | Input::Raw(_, input) | Input::Y4m(input) =
            &self.input
            && same_file(input, path)
        {
            return Err(Failure::Usage(format!(
                "{} is both input and {noun}; choose another name",
                path.display()
            )));
        }
        Ok(())
    }

    /// True if the report is to be a page.
    fn wants_page(&self) -> bool {
        let extension = self.report.as_ref().and_then(|path| path.extension());
        extension.is_some_and(|e| e == "html")
    }

    fn chain(&self) -> Chain {
        let mut filters = self.filters.clone();
        if self.flip {
            for filter in &mut filters {
                filter.mask = filter.mask.flipped();
            }
        }
        Chain {
            filters,
            border: self.border,
            planes: self.planes.clone(),
            algorithm: self.algorithm,
        }
    }

    /// The filter that mixes the fields of interlaced pictures, if one does.
    fn mixes_fields(&self) -> Option<&Filter> {
        let mut filters = self.filters.iter();
        filters.find(|filter| !self.fields && filter.mask.height() > 1)
    }

    /// Threads of the decoder; `None` leaves the number to it. A video encoder works several times as long on a frame as the decoder, on all cores, so that
    /// a decoder with as many threads only takes turns with it: half of them do.
    fn decoder_threads(&self) -> Option<usize> {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let is_shared = matches!((&self.input, &self.output), (Input::Video(_), Output::Video(_)));
        let half = is_shared.then_some(cores.div_ceil(2).min(16));
        self.decoder_threads.map(NonZeroUsize::get).or(half)
    }

    fn options(&self) -> PipelineOptions {
        let defaults = PipelineOptions::default();
        PipelineOptions {
            queue: self.queue,
            source_workers: self.workers.map_or(defaults.source_workers, NonZeroUsize::get),
            sink_workers: self.workers.map_or(defaults.sink_workers, NonZeroUsize::get),
            recording: Recording {
                frames: self
                    .trace
                    .frames()
                    .max(if self.wants_page() { page::FRAMES } else { 0 }),
                throughput: self.report.is_some(),
            },
        }
    }
}

/// Filters the input into the output.
pub(crate) fn run(mut arguments: FilterArguments) -> Result<(), Failure> {
    arguments.output = arguments
        .output
        .with_container(arguments.encoding.format.as_deref())
        .for_input(&arguments.input);
    arguments.check()?;
    let quiet = arguments.quiet;
    let say = |text: &str| {
        if !quiet {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{text}");
        }
    };

    let rate = arguments.input.rate_for(&arguments.output, arguments.fps);
    let reading = VideoSourceOptions {
        stream: arguments.stream,
        strict: arguments.strict,
        threads: arguments.decoder_threads(),
    };
    let opened = arguments.input.open(rate, &reading)?;
    if let (None, Some(assumed)) = (arguments.fps, rate) {
        say(&format!("no --fps: {} frames/s are assumed", assumed.to_f64()));
    }
    let info = opened.source.info().clone();
    if let Some(files) = &opened.files {
        check_files(files, &arguments.output)?;
    }
    let note_fields = |times: &str| {
        if let Some(filter) = arguments.mixes_fields() {
            say(&format!(
                "note: {times} pictures are interlaced, and {} mixes their fields; --fields filters them apart",
                filter.label
            ));
        }
    };
    let is_interlaced = Arc::new(AtomicBool::new(false));
    let begins_interlaced = info.field_order != FieldOrder::Progressive;
    let source = if arguments.fields {
        let split = source::fields::split(opened.source);
        split.map_err(|e| Failure::Usage(format!("--fields: {e}")))?
    } else if begins_interlaced {
        note_fields("its");
        opened.source
    } else {
        source::fields::watched(opened.source, is_interlaced.clone())
    };
    let chain = arguments.chain();
    // Tells before anything is written what the engine would tell at the first frame.
    Plan::new(&chain, info.format, &info.colour)?;
    let engine = arguments.engine.start(chain)?;
    let (engine_name, engine_description) = (engine.name().to_owned(), engine.description());
    say(&format!("engine: {engine_description}"));
    let report_file = arguments
        .report
        .as_deref()
        .map(|path| PartFile::create(path, true))
        .transpose()?;
    let trace_file = arguments.trace.open()?;
    let mut sink = arguments
        .output
        .open(&info, &arguments.encoding, arguments.strict, opened.files)?;
    // Frames of the pipeline in one of the output.
    let parts = if arguments.fields {
        sink = sink::fields::weaving(sink, arguments.output.to_string());
        2
    } else {
        1
    };

    let stop = Stop::new();
    interrupt::watch(&stop, quiet)?;
    let counters = Progress::new();
    let job = Job {
        source,
        engine,
        sink,
        options: arguments.options(),
    };
    let outcome = progress::show(&counters, info.frames, parts, quiet, || {
        pipeline::run(job, &stop, &counters)
    });
    let outcome = match outcome {
        Err(PipelineError::Abandoned) => {
            say("abandoned: no output was written");
            return Err(Failure::Interrupted);
        }
        outcome => outcome?,
    };

    if is_interlaced.load(Ordering::Relaxed) {
        note_fields("some of its");
    }
    let measured = &outcome.measurements;
    let task = Task {
        input: if arguments.fields {
            format!("{}, each field filtered and counted as a frame", info.description)
        } else {
            info.description
        },
        output: outcome.written.description,
        filters: arguments.filters.iter().map(|f| f.label.clone()).collect(),
        engine: engine_name,
        engine_description,
    };
    arguments.trace.write(trace_file, &task, measured)?;
    let report = Report::new(task, measured, outcome.warnings);
    say(&format!("\n{}", report.to_string().trim_end()));
    if let Some(file) = report_file {
        let text = if arguments.wants_page() {
            page::run(&report, measured)?
        } else {
            report.to_json()?
        };
        file.file()
            .write_all(text.as_bytes())
            .map_err(|cause| file.failed(cause))?;
        file.commit()?;
    }
    if measured.ending == Ending::Interrupted {
        say(&match measured.frames / parts {
            0 => "interrupted before the first frame: no output was written".to_owned(),
            frames => format!(
                "interrupted: {frames} frames were written to {}",
                arguments.output
            ),
        });
        return Err(Failure::Interrupted);
    }
    Ok(())
}
