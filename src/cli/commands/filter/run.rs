//! One input, from its opening to the end of its output.

use super::own_files::OwnFiles;
use super::single::Single;
use super::{FilterArguments, inputs, trial};
use crate::cli::endpoint::{Files, Input, Output};
use crate::cli::options::region::READ_FROM_THE_BEGINNING;
use crate::cli::process::interrupt::{self, Policy};
use crate::cli::process::limits::MemoryBudget;
use crate::cli::process::origin;
use crate::cli::show::failure::{Failure, to_stdout};
use crate::cli::show::progress::{self, Form, Pace, Snapshot, Watch, Watched};
use crate::cli::show::{escape, summary};
use framepipe::engine::Engine;
use framepipe::engine::pool::EnginePool;
use framepipe::frame::{FieldOrder, Remarks, Warning};
use framepipe::pipeline::{self, Job, Outcome, PipelineError, Progress, Stop};
use framepipe::report::{Completion, Measurements, Origin, Report, Stage, Task};
use framepipe::sink::atomic_file::remove_left_overs;
use framepipe::sink::{self, AnySink, PERHAPS_CLOSED, is_stand_in};
use framepipe::source::images::Failures;
use framepipe::source::{self, AnySource, SourceError, StreamInfo};
use framepipe::wording::counted;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

/// An open input.
pub(super) struct Opened {
    pub(super) source: AnySource,
    /// Of the pictures as they are stored, not of their fields.
    pub(super) info: StreamInfo,
    /// The image files that are read, if any.
    pub(super) files: Option<Files>,
    /// Where image files that are passed over are listed.
    failures: Option<Failures>,
    /// Set if interlaced pictures come although the stream's facts did not say so.
    is_interlaced: Arc<AtomicBool>,
}

/// The surroundings of a job.
pub(super) struct JobContext<'a> {
    pub(super) engines: &'a EnginePool,
    pub(super) budget: &'a MemoryBudget,
    pub(super) stop: &'a Stop,
    pub(super) counters: &'a Progress,
    /// The user has seen which engine filters.
    pub(super) is_engine_shown: &'a AtomicBool,
    /// Where and when the run began, for its report.
    pub(super) origin: Option<Origin>,
}

/// The result of a job.
pub(super) struct Finished {
    pub(super) task: Task,
    pub(super) measured: Measurements,
    pub(super) remarks: Remarks,
    /// Frames that were written.
    pub(super) frames: u64,
    /// Bytes that were written, if the output counts them.
    pub(super) bytes: Option<u64>,
    /// Seconds that the pictures are shown, if they have a rate.
    shown: Option<f64>,
}

impl Finished {
    /// The report of the run, with these remarks before its own.
    pub(super) fn report(&self, mut remarks: Remarks) -> Report {
        remarks.append(self.remarks.clone());
        Report::new(self.task.clone(), &self.measured, remarks)
    }
}

impl Single<'_> {
    /// Says of interlaced pictures that the mask mixes their fields.
    fn note_fields(&self, whose: &str) {
        if let Some(note) = self.arguments.filtering.note_on_fields(whose) {
            self.say(&note);
        }
    }

    /// Opens the input and checks what it holds. `stop` ends the wait for it, where signals are handled.
    pub(super) fn open(&self, stop: Option<&Stop>) -> Result<Opened, Failure> {
        let rate = self.input.rate_for(&self.output, self.arguments.reading.fps);
        let choice = self.file_choice()?;
        let options = self.reading_options(choice.range, stop);
        let opened = self.input.open(rate, &options, &choice);
        if matches!(opened, Err(Failure::NothingToDo)) {
            self.say(&self.nothing_to_do());
        }
        if stop.is_some_and(Stop::is_abandon_asked) {
            return Err(Failure::Interrupted);
        }
        let mut opened = opened?;
        opened.notes.iter().for_each(|note| self.say(note));
        if self.takes_all(choice.range) && !self.is_of_several() {
            self.arguments.region.check_times(&mut opened.source)?;
        }
        if choice.range.counts_all && matches!(self.input, Input::Video(_)) {
            self.say(READ_FROM_THE_BEGINNING);
        }
        if let Some(note) = self.arguments.range.note_on_place(&self.input) {
            self.say(&note);
        }
        // Of a job in parts the plan says it.
        if let (None, Some(assumed), None) = (self.arguments.reading.fps, rate, &self.arguments.piece) {
            self.say(&format!("no --fps: {} frames/s are assumed", assumed.to_f64()));
        }
        let info = opened.source.info().clone();
        self.arguments.reading.check_size(&self.input.name(), &info)?;
        self.check_written(opened.files.as_ref())?;
        if let Some(saying) = self.arguments.filtering.saying_of_turns() {
            opened.source = source::turns::watched(opened.source, saying);
        }
        let is_interlaced = Arc::new(AtomicBool::new(false));
        let source = if self.arguments.filtering.fields {
            let split = source::fields::split(opened.source);
            split.map_err(|e| Failure::Usage(format!("--fields: {e}")))?
        } else if info.field_order != FieldOrder::Progressive {
            self.note_fields("its");
            opened.source
        } else {
            source::fields::watched(opened.source, is_interlaced.clone())
        };
        Ok(Opened {
            source,
            info,
            files: opened.files,
            failures: opened.failures,
            is_interlaced,
        })
    }

    pub(super) fn nothing_to_do(&self) -> String {
        format!("nothing to do: {} has all of it", self.output)
    }

    /// Frames of the pipeline in one of the output.
    pub(super) fn parts(&self) -> u64 {
        if self.arguments.filtering.fields { 2 } else { 1 }
    }

    /// Creates the output, which fails early if it can.
    fn open_sink(&self, info: &StreamInfo, files: Option<Files>) -> Result<AnySink, Failure> {
        let sink = self.output.open(
            &self.arguments.comparison.output_info(info, &self.output),
            &self.arguments.encoding,
            self.arguments.reading.strict,
            files,
            self.first_written()?,
        )?;
        let sink = match &self.log {
            Some(log) => sink::hashes::logging(sink, log.clone()),
            None => sink,
        };
        let sink = if self.arguments.filtering.fields {
            sink::fields::weaving(sink, self.output.to_string())
        } else {
            sink
        };
        let strict = self.arguments.reading.strict;
        Ok(sink::floats::watched(
            sink,
            self.output.to_string(),
            info,
            self.parts(),
            strict,
        ))
    }

    /// The engine for frames as `info` describes them.
    fn start_engine(
        &self,
        info: &StreamInfo,
        files: Option<&Files>,
        pool: &EnginePool,
        stop: &Stop,
    ) -> Result<Box<dyn Engine>, Failure> {
        let chain = self.arguments.filtering.chain();
        let engine = self.arguments.engine.start_or_reuse(chain.clone(), info, pool)?;
        let engine = self.arguments.region.around(
            engine,
            &chain,
            &self.matte_run(info, files, stop)?,
            self.arguments.engine.threads(),
        )?;
        Ok(self.arguments.comparison.around(engine, info, &self.output))
    }

    /// What a run would do, once all is refused that a run refuses up to its first frame, which is filtered
    /// and encoded. Nothing of the output stays.
    pub(super) fn plan(
        &self,
        opened: Opened,
        pool: &EnginePool,
        budget: &MemoryBudget,
        stop: &Stop,
    ) -> Result<String, Failure> {
        let info = &opened.info;
        let _folders = NewFolders::beside(self)?;
        let exists = self.output.path().is_some_and(Path::is_file);
        let sink = self.open_sink(info, opened.files.clone())?;
        let engine = self.start_engine(info, opened.files.as_ref(), pool, stop)?;
        let mut job = Job {
            source: trial::first(opened.source, self.parts(), stop),
            engine,
            sink,
            options: self.arguments.options(),
        };
        job.share_device();
        let description = job.engine.description();
        let part = budget.enter(&job)?;
        let Outcome { written, remarks, .. } = ended(pipeline::run(job, stop, &Progress::new()))?;
        drop(part);
        let labels: Vec<&str> = self
            .arguments
            .filtering
            .filters()
            .map(|filter| filter.label.as_str())
            .collect();
        let about = if info.frames_are_estimated { "about " } else { "" };
        let frames = info.frames.map_or_else(String::new, |frames| {
            format!(", {about}{}", counted(frames, "frame"))
        });
        let mut output = match &self.output {
            Output::Null => self.output.to_string(),
            _ => written.description,
        };
        if exists {
            output.push_str(", which exists and would be replaced");
        }
        Ok(format!(
            "input   {}{frames}\nfilter  {} ({}, border {}, planes {})\nengine  {}\noutput  {}{}",
            escape::line(&info.description),
            escape::line(&labels.join(", then ")),
            self.arguments.filtering.algorithm,
            self.arguments.filtering.border,
            self.arguments.filtering.planes,
            escape::line(&description),
            escape::line(&output),
            lines(&remarks),
        ))
    }

    /// The outcome of a run; where a broken one of several files ended it, with a hint at what goes on.
    fn with_hint(
        &self,
        mut outcome: Result<Outcome, PipelineError>,
        frames: Option<u64>,
    ) -> Result<Outcome, PipelineError> {
        let are_several = frames.is_some_and(|frames| frames > 1);
        let are_files = self.input.is_images() && self.output.is_images() && are_several;
        if are_files
            && !self.arguments.keep_going
            && let Err(PipelineError::Source(SourceError::Invalid { problem, .. })) = &mut outcome
        {
            problem.push_str("; --keep-going passes over such files");
        }
        outcome
    }

    /// Filters an open input to its end; `form` shows the progress of `shown`. The output is created before
    /// the engine is started, so that its errors come at once.
    pub(super) fn filter(
        &self,
        opened: Opened,
        context: &JobContext<'_>,
        form: Form,
        shown: &impl Watch,
    ) -> Result<Finished, Failure> {
        let info = opened.info;
        self.arguments
            .engine
            .begin_for(&self.arguments.filtering.chain(), &info);
        let sink = self.open_sink(&info, opened.files.clone())?;
        let files = opened.files.as_ref();
        let engine = self.start_engine(&info, files, context.engines, context.stop)?;
        let mut job = Job {
            source: opened.source,
            engine,
            sink,
            options: self.arguments.options(),
        };
        job.share_device();
        let (engine_name, engine_description) = (job.engine.name().to_owned(), job.engine.description());
        if !context.is_engine_shown.swap(true, Ordering::Relaxed) {
            self.arguments.print(&format!("engine: {engine_description}"));
        }
        let _part = context.budget.enter(&job)?;
        let outcome = progress::show(shown, form, || pipeline::run(job, context.stop, context.counters));
        let Outcome {
            written,
            mut remarks,
            mut measurements,
            ..
        } = ended(self.with_hint(outcome, info.frames))?;
        if self.arguments.region.goes_by_number() && remarks.warnings.iter().any(Warning::loses_frames) {
            let displaced = "lost frames are not counted: after them regions in frames and pictures of a \
                             matte are on later frames than they were made for";
            remarks.warn([displaced.to_owned()]);
        }
        if opened.is_interlaced.load(Ordering::Relaxed) {
            self.note_fields("some of its");
        }
        // Of the output, which has two fields in a frame, and none for a file that was passed over.
        let passed_over = opened.failures.as_ref().map_or(0, count_of);
        measurements.frames = measurements.frames.saturating_sub(passed_over) / self.parts();
        if let Some(throughput) = &mut measurements.stages[Stage::Encode as usize].throughput {
            throughput.join_fields(self.parts());
        }
        let shown = Pace::of(&info).map(|pace| pace.shown(context.counters, self.parts()));
        let task = Task {
            input_name: self.input.name(),
            output_name: self.output.to_string(),
            input: if self.arguments.filtering.fields {
                format!("{}, each field filtered by itself", info.description)
            } else {
                info.description
            },
            output: written.description,
            filters: self.arguments.filtering.labels().collect(),
            engine: engine_name,
            engine_description,
            origin: context.origin.clone(),
        };
        Ok(Finished {
            task,
            remarks,
            frames: measurements.frames,
            bytes: written.bytes,
            shown,
            measured: measurements,
        })
    }

    /// Prints the report.
    fn show(&self, report: &Report, finished: &Finished) {
        let report = &summary::legible(report);
        if self.arguments.stats {
            // Asked for, even of a quiet run.
            let text = report.to_string();
            let _ = writeln!(std::io::stderr(), "\n{}", text.trim_end());
        } else {
            let bytes = on_disk(&self.output).or(finished.bytes);
            self.arguments
                .print_lines(&summary::brief(report, finished.shown, bytes));
        }
        if self.arguments.quiet == 1 && !self.arguments.stats {
            for warning in &report.warnings {
                let _ = writeln!(std::io::stderr(), "warning: {warning}");
            }
        }
    }

    /// Refuses an output that its reader cut short, if the run is strict.
    pub(super) fn accept_ending(&self, finished: &Finished) -> Result<(), Failure> {
        if !self.arguments.reading.strict || finished.measured.ending != Completion::Closed {
            return Ok(());
        }
        Err(Failure::Failed(format!(
            "{} is cut short: its reader went away after {}; without --strict that is no error",
            self.output,
            counted(finished.frames, "frame")
        )))
    }

    /// Says how many frames were written before the interrupt.
    fn say_interrupted(&self, frames: u64) {
        let text = match frames {
            0 => "interrupted before the first frame: no output was written".to_owned(),
            1 => format!("interrupted: 1 frame was written to {}", self.output),
            frames => format!("interrupted: {frames} frames were written to {}", self.output),
        };
        if self.arguments.quiet < 2 {
            let _ = writeln!(std::io::stderr(), "{}", escape::line(&text));
        }
    }
}

/// The outcome of a run that the user did not end at once.
fn ended(outcome: Result<Outcome, PipelineError>) -> Result<Outcome, Failure> {
    match outcome {
        Err(PipelineError::Abandoned) => Err(Failure::Interrupted),
        outcome => Ok(outcome?),
    }
}

/// Notes and warnings in lines, each behind a line break.
fn lines(remarks: &Remarks) -> String {
    let notes = remarks.notes.iter().map(|note| ("note", note));
    let warnings = remarks.warnings.iter().map(|warning| ("warning", &warning.text));
    let lines = notes.chain(warnings);
    lines
        .map(|(word, text)| format!("\n{word}: {}", escape::line(text)))
        .collect()
}

/// Folders that are made for a plan, the deepest first, and removed behind it if they are empty.
struct NewFolders(Vec<PathBuf>);

impl NewFolders {
    /// Those that are missing and that a run makes: for image files, and for the outputs of several inputs.
    fn beside(single: &Single<'_>) -> Result<NewFolders, Failure> {
        let makes = single.output.is_numbered() || single.is_of_several();
        let folder = single.output.folder().filter(|_| makes).unwrap_or_default();
        let missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = NewFolders(
            folder
                .ancestors()
                .take_while(missing)
                .map(Path::to_owned)
                .collect(),
        );
        if !made.0.is_empty() {
            fs::create_dir_all(&folder)
                .map_err(|cause| Failure::Failed(format!("cannot make {}: {cause}", folder.display())))?;
        }
        Ok(made)
    }
}

impl Drop for NewFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Filters the only input into the output.
pub(super) fn run(arguments: &FilterArguments, input: Input, output: Output) -> Result<(), Failure> {
    let single = Single::new(arguments, input, output);
    single.check()?;
    // Opened before the process is confined.
    let form = Form::open(arguments.progress, arguments.quiet > 0)?;
    if arguments.reading.untrusted {
        let reads = [single.input.reads()?, arguments.region.reads()?].concat();
        arguments.confine(reads, single.folders())?;
    }
    arguments.check_card()?;
    let mut caveats = inputs::passed_over(&single.input)?;
    if arguments.frame_hashes.is_some()
        && arguments.hashes_file().is_none()
        && is_stand_in(&std::io::stdout())
    {
        caveats.push(format!("--frame-hashes -: standard output {PERHAPS_CLOSED}"));
    }
    let remarks = arguments.accepted_caveats(caveats)?;
    arguments.engine.begin(&arguments.filtering.chain());
    if arguments.dry_run {
        let stop = Stop::new();
        interrupt::watch(&stop, arguments.quiet > 0, Policy::discarding())?;
        let opened = single.open(Some(&stop))?;
        OwnFiles::create(arguments)?;
        let budget = MemoryBudget::new(arguments.max_memory);
        let plan = single.plan(opened, &EnginePool::default(), &budget, &stop)?;
        return show_plans(&[plan], &remarks);
    }
    let result = filter_one(&single, form.clone(), remarks);
    form.ensure_end(Snapshot::default);
    result
}

/// Filters the only input of an accepted run.
fn filter_one(single: &Single<'_>, form: Form, remarks: Remarks) -> Result<(), Failure> {
    let arguments = single.arguments;
    let is_wanted = !arguments.reports.is_empty() || arguments.trace.trace.is_some();
    let origin = is_wanted.then(origin::here);
    let opened = match single.open(None) {
        Err(Failure::NothingToDo) => return single.write_of_nothing(remarks, origin),
        opened => opened?,
    };
    let (engines, counters, stop) = (EnginePool::default(), Progress::new(), Stop::new());
    // Before the first file is created, so that none remains.
    interrupt::watch(&stop, arguments.quiet > 0, single.interrupt_policy())?;
    // The sink of image files looks after its own.
    let of_images = single.output.folder().filter(|_| single.output.is_images());
    for folder in single.folders().difference(&of_images.into_iter().collect()) {
        remove_left_overs(folder);
    }
    let own = OwnFiles::create(arguments)?;
    let time_base = opened.info.time_base;
    let failures = opened.failures.clone();
    let watched = Watched {
        counters: &counters,
        stop: &stop,
        frames: opened.source.info().frames,
        parts: single.parts(),
        pace: Pace::of(opened.source.info()),
    };
    let context = JobContext {
        engines: &engines,
        budget: &MemoryBudget::new(arguments.max_memory),
        stop: &stop,
        counters: &counters,
        is_engine_shown: &AtomicBool::new(false),
        origin,
    };
    let finished = single
        .filter(opened, &context, form, &watched)
        .inspect_err(|failure| {
            if matches!(failure, Failure::Interrupted) {
                let passed_over = failures.as_ref().map_or(0, count_of);
                let written = counters.frames(Stage::Encode).saturating_sub(passed_over) / single.parts();
                single.say(&single.output.abandoned_after(written));
            }
        })?;
    let measured = &finished.measured;
    let trace = arguments.trace.write(own.trace, &finished.task, measured);
    let mut report = finished.report(remarks);
    summary::advise(&mut report, &arguments.encoding);
    single.show(&report, &finished);
    // Shown as the error that the run ends with.
    let reasons = reasons(failures.as_ref());
    report.warnings.extend(reasons.iter().cloned());
    single.write_reports(&report, measured, own.reports)?;
    single.write_hashes(own.hashes, time_base)?;
    // A trace that cannot be written does not take the report with it.
    trace?;
    if measured.ending == Completion::Interrupted {
        single.say_interrupted(finished.frames);
        return Err(Failure::Interrupted);
    }
    single.accept_ending(&finished)?;
    passed_over(&reasons)
}

/// Prints the plans of runs, in lines, the `caveats` of all of them, and that nothing was done.
pub(super) fn show_plans(plans: &[String], caveats: &Remarks) -> Result<(), Failure> {
    to_stdout(|out| {
        let text = plans.join("\n\n") + &lines(caveats);
        Ok(writeln!(out, "{text}\nnothing was done: --dry-run")?)
    })
}

/// How many files were passed over.
fn count_of(failures: &Failures) -> u64 {
    failures.lock().unwrap_or_else(PoisonError::into_inner).len() as u64
}

/// Bytes of an output that is one file, now that it is complete.
pub(super) fn on_disk(output: &Output) -> Option<u64> {
    let path = output.path().filter(|_| !output.is_stdout())?;
    let facts = path.metadata().ok()?;
    facts.is_file().then_some(facts.len())
}

/// Why files were passed over, in their order.
fn reasons(failures: Option<&Failures>) -> Vec<String> {
    let Some(failures) = failures else {
        return Vec::new();
    };
    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    failures.iter().map(|(_, reason)| reason.clone()).collect()
}

/// An error that lists why files were passed over, if some were.
fn passed_over(reasons: &[String]) -> Result<(), Failure> {
    let lines: Vec<String> = reasons.iter().map(|reason| format!("  {reason}")).collect();
    match lines.len() {
        0 => Ok(()),
        1 => Err(Failure::Listed("1 file was passed over:".to_owned(), lines)),
        n => Err(Failure::Listed(format!("{n} files were passed over:"), lines)),
    }
}
