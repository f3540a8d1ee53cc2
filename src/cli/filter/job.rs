//! One input, from its opening to the end of its output.

use super::FilterArguments;
use crate::cli::endpoint::{Opened, check_files};
use crate::cli::progress::{self, Form, Watched};
use crate::cli::{Failure, escape, interrupt, limits, summary, to_stdout};
use framepipe::frame::{FieldOrder, Rational};
use framepipe::pipeline::{self, Job, Outcome, PipelineError, Progress, Stop};
use framepipe::report::{Ending, Measurements, Report, Task, page};
use framepipe::sink::atomic_file::{AtomicFile, remove_left_overs};
use framepipe::source::StreamInfo;
use framepipe::source::images::Failures;
use framepipe::{sink, source};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};

impl FilterArguments {
    /// Says of interlaced pictures that the mask mixes their fields.
    fn note_fields(&self, times: &str) {
        if let Some(filter) = self.mixes_fields() {
            self.say(&format!(
                "note: {times} pictures are interlaced, and {} mixes their fields; --fields filters them \
                 apart",
                filter.label
            ));
        }
    }

    /// Opens the input and checks what it holds.
    fn open_input(&self) -> Result<Opened, Failure> {
        let rate = self.input.rate_for(&self.output, self.reading.fps);
        let opened = self.input.open(
            rate,
            &self.reading.options(self.decoder_threads()),
            &self.file_choice()?,
        );
        if matches!(opened, Err(Failure::NothingToDo)) {
            self.say(&format!("nothing to do: {} has all of it", self.output));
        }
        let opened = opened?;
        if let (None, Some(assumed)) = (self.reading.fps, rate) {
            self.say(&format!("no --fps: {} frames/s are assumed", assumed.to_f64()));
        }
        let info = opened.source.info();
        source::check_pixels(
            &self.input.name(),
            info.width,
            info.height,
            self.reading.most_pixels(),
        )?;
        if let Some(files) = &opened.files {
            check_files(files, &self.output)?;
        }
        Ok(opened)
    }

    /// Prints what a run would do.
    fn show_plan(&self, info: &StreamInfo, engine: &str) -> Result<(), Failure> {
        let labels: Vec<&str> = self.filters().map(|filter| filter.label.as_str()).collect();
        let frames = info
            .frames
            .map_or_else(String::new, |frames| format!(", {frames} frames"));
        let mut output = self.output.to_string();
        if let Some(encoder) = &self.encoding.encoder {
            output.push_str(&format!(", {encoder}"));
        }
        if self.output.path().is_some_and(Path::is_file) {
            output.push_str(match self.encoding.overwrite {
                true => ", which exists and would be replaced",
                false => ", which exists: --overwrite would replace it",
            });
        }
        to_stdout(|out| {
            let text = format!(
                "input   {}{frames}\nfilter  {} ({}, border {}, planes {})\nengine  {engine}\n\
                 output  {output}\nnothing was done: --dry-run",
                info.description,
                labels.join(", then "),
                self.algorithm,
                self.border,
                self.planes,
            );
            Ok(writeln!(out, "{}", escape::lines(&text))?)
        })
    }

    /// Runs the pipeline, showing its progress.
    fn run_pipeline(&self, job: Job, parts: u64, stop: &Stop, form: Form) -> Result<Outcome, Failure> {
        limits::check_memory(&job, self.max_memory)?;
        let counters = Progress::new();
        let info = job.source.info();
        let watched = Watched {
            counters: &counters,
            stop,
            frames: info.frames,
            parts,
            rate: info.frame_rate.map(Rational::to_f64),
        };
        let outcome = progress::show(&watched, form, || pipeline::run(job, stop, &counters));
        match outcome {
            Err(PipelineError::Abandoned) => {
                self.say("abandoned: no output was written");
                Err(Failure::Interrupted)
            }
            outcome => Ok(outcome?),
        }
    }

    /// Prints the report, and writes it to its file, if there is one.
    fn show(
        &self,
        report: &Report,
        measured: &Measurements,
        rate: Option<f64>,
        file: Option<AtomicFile>,
    ) -> Result<(), Failure> {
        if self.stats {
            self.say(&format!("\n{}", report.to_string().trim_end()));
        } else {
            self.say(summary::brief(report, &self.encoding, rate).trim_end());
        }
        if self.quiet == 1 {
            for warning in &report.warnings {
                let _ = writeln!(std::io::stderr(), "warning: {}", escape::line(warning));
            }
        }
        let Some(file) = file else { return Ok(()) };
        let text = if self.wants_page() {
            page::run(report, measured)?
        } else {
            report.to_json()?
        };
        write_whole(file, &text)
    }

    /// Says how many frames were written before the interrupt.
    fn say_interrupted(&self, frames: u64) {
        let text = match frames {
            0 => "interrupted before the first frame: no output was written".to_owned(),
            frames => format!("interrupted: {frames} frames were written to {}", self.output),
        };
        if self.quiet < 2 {
            let _ = writeln!(std::io::stderr(), "{}", escape::line(&text));
        }
    }
}

/// Filters the input into the output.
pub(crate) fn run(mut arguments: FilterArguments, is_verbose: bool) -> Result<(), Failure> {
    arguments.stats |= is_verbose;
    arguments.output = arguments
        .output
        .with_container(arguments.encoding.format.as_deref())
        .for_input(&arguments.input);
    arguments.check()?;
    // Opened before the process is confined.
    let form = Form::open(arguments.progress, arguments.quiet > 0)?;
    if arguments.reading.untrusted {
        arguments.confine()?;
    }
    let mut remarks = arguments.caveats();
    if let Some(problem) = remarks.refusal().filter(|_| arguments.reading.strict) {
        return Err(Failure::Failed(problem));
    }
    let opened = arguments.open_input()?;
    let failures = opened.failures.clone();
    let info = opened.source.info().clone();
    let is_interlaced = Arc::new(AtomicBool::new(false));
    let begins_interlaced = info.field_order != FieldOrder::Progressive;
    let source = if arguments.fields {
        let split = source::fields::split(opened.source);
        split.map_err(|e| Failure::Usage(format!("--fields: {e}")))?
    } else if begins_interlaced {
        arguments.note_fields("its");
        opened.source
    } else {
        source::fields::watched(opened.source, is_interlaced.clone())
    };
    let engine = arguments.engine.start(arguments.chain(), &info)?;
    let (engine_name, engine_description) = (engine.name().to_owned(), engine.description());
    arguments.say(&format!("engine: {engine_description}"));
    if arguments.dry_run {
        return arguments.show_plan(&info, &engine_description);
    }
    let stop = Stop::new();
    // Before the first file is made, so that none is left behind.
    interrupt::watch(&stop, arguments.quiet > 0, arguments.interrupt_policy())?;
    // The sink of image files looks after its own.
    let of_images = arguments.output.folder().filter(|_| arguments.output.is_images());
    for folder in arguments.folders().difference(&of_images.into_iter().collect()) {
        remove_left_overs(folder);
    }
    let overwrite = arguments.encoding.overwrite;
    let report_file = arguments
        .report
        .as_deref()
        .map(|path| AtomicFile::create(path, overwrite))
        .transpose()?;
    let trace_file = arguments.trace.open(overwrite)?;
    let first_written = arguments.first_written()?;
    let mut sink = arguments.output.open(
        &info,
        &arguments.encoding,
        arguments.reading.strict,
        opened.files,
        first_written,
    )?;
    // Frames of the pipeline in one of the output.
    let parts = if arguments.fields {
        sink = sink::fields::weaving(sink, arguments.output.to_string());
        2
    } else {
        1
    };
    let job = Job {
        source,
        engine,
        sink,
        options: arguments.options(),
    };
    let outcome = arguments.run_pipeline(job, parts, &stop, form)?;
    if is_interlaced.load(Ordering::Relaxed) {
        arguments.note_fields("some of its");
    }
    let task = Task {
        input: if arguments.fields {
            format!("{}, each field filtered and counted as a frame", info.description)
        } else {
            info.description
        },
        output: outcome.written.description,
        filters: arguments.filters().map(|f| f.label.clone()).collect(),
        engine: engine_name,
        engine_description,
    };
    let measured = &outcome.measurements;
    let trace = arguments.trace.write(trace_file, &task, measured);
    remarks.append(outcome.remarks);
    let rate = info.frame_rate.map(Rational::to_f64);
    arguments.show(&Report::new(task, measured, remarks), measured, rate, report_file)?;
    // A trace that cannot be written does not take the report with it.
    trace?;
    if measured.ending == Ending::Interrupted {
        arguments.say_interrupted(measured.frames / parts);
        return Err(Failure::Interrupted);
    }
    passed_over(failures)
}

/// Writes all of a file and gives it its name.
fn write_whole(file: AtomicFile, text: &str) -> Result<(), Failure> {
    file.file()
        .write_all(text.as_bytes())
        .map_err(|cause| file.failed(cause))?;
    Ok(file.commit()?)
}

/// An error that lists the files that were passed over, if there are any.
fn passed_over(failures: Option<Failures>) -> Result<(), Failure> {
    let Some(failures) = failures else { return Ok(()) };
    let mut failures = failures.lock().unwrap_or_else(PoisonError::into_inner);
    failures.sort();
    let lines: Vec<String> = failures.iter().map(|(_, reason)| format!("  {reason}")).collect();
    match lines.len() {
        0 => Ok(()),
        1 => Err(Failure::Listed("1 file was passed over:".to_owned(), lines)),
        n => Err(Failure::Listed(format!("{n} files were passed over:"), lines)),
    }
}
