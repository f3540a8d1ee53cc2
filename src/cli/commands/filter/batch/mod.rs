//! Several inputs, an output each: one job after another, or some side by side.
//!
//! Everything that follows from names is checked before the first job. A job has its own stop, so that one
//! signal ends all of them; engines go from one job to the next; the frame buffers of jobs side by side have
//! one limit together.

mod items;
mod jobs;
mod progress;
mod table;

use super::FilterArguments;
use super::run::{Finished, JobContext, on_disk, show_plans};
use crate::cli::Failure;
use crate::cli::endpoint::Input;
use crate::cli::process::interrupt::{Policy, watch_by};
use crate::cli::process::limits::MemoryBudget;
use crate::cli::show::escape;
use crate::cli::show::progress::{Form, Pace, Watched, show};
use crate::cli::show::summary::{advise, legible};
use framepipe::engine::pool::EnginePool;
use framepipe::frame::Remarks;
use framepipe::pipeline::Stop;
use framepipe::report::Completion;
use framepipe::shortage::thread_error;
use framepipe::sink::atomic_file::remove_left_overs;
use framepipe::wording::counted;
use items::{Item, OptionsByKind};
use jobs::Jobs;
use progress::{BatchJobProgress, BatchProgress};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use table::{End, Figures, Row, table};

/// Filters each of the inputs into a file of its own in `folder`. What was `left` out of them are sentences.
pub(super) fn run(
    arguments: &FilterArguments,
    inputs: Vec<Input>,
    folder: &Path,
    left: Vec<String>,
) -> Result<(), Failure> {
    refuse_options_of_one(arguments)?;
    let options = OptionsByKind::new(arguments);
    let items = options.items(arguments, inputs, folder)?;
    let form = Form::open(arguments.progress, arguments.quiet > 0)?;
    if arguments.reading.untrusted {
        let mut reads = arguments.region.reads()?;
        for item in &items {
            reads.append(&mut item.single.input.reads()?);
        }
        arguments.confine(reads, [folder.to_owned()].into())?;
    }
    arguments.check_card()?;
    let caveats = arguments.accepted_caveats(left)?;
    if arguments.dry_run {
        return plan(arguments, &items, &caveats);
    }
    if items.iter().all(|item| item.is_there) {
        arguments.print(&format!("nothing to do: {} has all of it", folder.display()));
        return Ok(());
    }
    make(folder)?;
    arguments.engine.begin(&arguments.filtering.chain());
    let side_by_side = arguments.at_once.map_or(1, NonZeroUsize::get);
    let progress = BatchProgress::new(items.len(), if arguments.filtering.fields { 2 } else { 1 });
    for (number, _) in items.iter().enumerate().filter(|(_, item)| item.is_there) {
        progress.end(number);
    }
    let batch = Batch {
        arguments,
        progress,
        ends: items.iter().map(|_| Mutex::new(None)).collect(),
        items,
        engines: EnginePool::default(),
        budget: MemoryBudget::new(arguments.max_memory),
        jobs: Arc::default(),
        next: AtomicUsize::new(0),
        is_engine_shown: AtomicBool::new(false),
        // Programs get an object about each job, people one line over all.
        apart: match &form {
            Form::Json(_) => form.clone(),
            _ => Form::Nothing,
        },
    };
    watch_jobs(&batch.jobs, arguments)?;
    remove_left_overs(folder);
    let together = match form {
        Form::Json(_) => Form::Nothing,
        form => form,
    };
    let began = Instant::now();
    show(&batch.progress, together, || batch.work(side_by_side))?;
    batch.conclude(&caveats, began)
}

/// Refuses options that apply to a single output only.
fn refuse_options_of_one(arguments: &FilterArguments) -> Result<(), Failure> {
    let given = [
        (!arguments.reports.is_empty(), "--report"),
        (arguments.trace.trace.is_some(), "--trace"),
        (arguments.start_number.is_some(), "--start-number"),
        (arguments.frame_hashes.is_some(), "--frame-hashes"),
    ];
    match given.into_iter().find(|(is_given, _)| *is_given) {
        Some((_, option)) => Err(Failure::Usage(format!(
            "{option} is about one output, and there are several; leave it out, or filter the inputs one by \
             one"
        ))),
        None => Ok(()),
    }
}

/// Makes the folder if it is missing.
fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|cause| Failure::Failed(format!("cannot make {}: {cause}", folder.display())))
}

/// Makes signals end all jobs.
fn watch_jobs(jobs: &Arc<Jobs>, arguments: &FilterArguments) -> Result<(), Failure> {
    let (gentle, hard) = (jobs.clone(), jobs.clone());
    watch_by(
        arguments.quiet > 0,
        move |signal| gentle.finish(signal),
        move || hard.abandon(true),
    )
}

/// Prints the plan of each job, or why it would fail.
fn plan(arguments: &FilterArguments, items: &[Item<'_>], caveats: &Remarks) -> Result<(), Failure> {
    let (engines, budget) = (EnginePool::default(), MemoryBudget::new(arguments.max_memory));
    let jobs = Arc::default();
    watch_jobs(&jobs, arguments)?;
    let (mut plans, mut failures) = (Vec::new(), Vec::new());
    for (number, item) in items.iter().enumerate() {
        if item.is_there {
            plans.push(format!(
                "input   {}\noutput  {}, which exists and is passed over",
                escape::line(&item.name),
                escape::line(&item.single.output.to_string())
            ));
            continue;
        }
        let stop = jobs
            .begin(number, Policy::discarding())
            .ok_or(Failure::Interrupted)?;
        let opened = item.single.open(Some(&stop));
        let planned = opened.and_then(|opened| item.single.plan(opened, &engines, &budget, &stop));
        jobs.end(number);
        match planned {
            Ok(plan) => plans.push(plan),
            Err(failure @ Failure::Interrupted) => return Err(failure),
            Err(failure) if arguments.keep_going => {
                let failure = failure.about(&item.name);
                plans.push(format!(
                    "input   {}\nfails   {}",
                    escape::line(&item.name),
                    escape::line(&failure.reason())
                ));
                failures.push((item.name.clone(), failure));
            }
            Err(failure) => return Err(failure.about(&item.name)),
        }
    }
    show_plans(&plans, caveats)?;
    verdict(failures, items.len(), arguments)
}

/// The result of a job.
struct Ended {
    end: Result<End, Failure>,
    /// Remarks about it, in lines.
    said: Vec<String>,
    warnings: Vec<String>,
    /// Where the time went, if that was asked for.
    stats: Option<String>,
}

/// All jobs.
struct Batch<'a> {
    arguments: &'a FilterArguments,
    items: Vec<Item<'a>>,
    /// The result of each; `None` for jobs that were not begun.
    ends: Vec<Mutex<Option<Ended>>>,
    engines: EnginePool,
    budget: MemoryBudget,
    progress: BatchProgress,
    jobs: Arc<Jobs>,
    next: AtomicUsize,
    is_engine_shown: AtomicBool,
    /// How progress is shown of each job.
    apart: Form,
}

impl Batch<'_> {
    /// Runs the jobs, `side_by_side` of them in parallel.
    fn work(&self, side_by_side: usize) -> Result<(), Failure> {
        std::thread::scope(|scope| {
            for number in 1..side_by_side.min(self.items.len()) {
                let builder = std::thread::Builder::new().name(format!("job {number}"));
                if let Err(cause) = builder.spawn_scoped(scope, || self.take_jobs()) {
                    self.jobs.abandon(false);
                    return Err(thread_error(cause).into());
                }
            }
            self.take_jobs();
            Ok(())
        })
    }

    /// Runs one job after another until none is left, or none may begin.
    fn take_jobs(&self) {
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = self.items.get(number) else {
                return;
            };
            let ended = if item.is_there {
                Ended {
                    end: Ok(End::There),
                    said: Vec::new(),
                    warnings: Vec::new(),
                    stats: None,
                }
            } else {
                let policy = item.single.interrupt_policy();
                let Some(stop) = self.jobs.begin(number, policy) else {
                    return;
                };
                let form = self.apart.for_another();
                let ended = self.one(number, item, &stop, form.clone());
                form.ensure_end(|| self.progress.without_frames(number, &item.name));
                self.jobs.end(number);
                ended
            };
            if matches!(&ended.end, Err(failure) if !matches!(failure, Failure::Interrupted))
                && !self.arguments.keep_going
            {
                self.jobs.abandon(false);
            }
            *self.ends[number].lock().unwrap_or_else(PoisonError::into_inner) = Some(ended);
            self.progress.end(number);
        }
    }

    fn one(&self, number: usize, item: &Item<'_>, stop: &Stop, form: Form) -> Ended {
        let filtered = self.filter(number, item, stop, form);
        let said = item.single.said();
        match filtered {
            Ok(finished) => {
                let mut report = finished.report(Remarks::default());
                advise(&mut report, &self.arguments.encoding);
                let warnings = std::mem::take(&mut report.warnings);
                let notes = std::mem::take(&mut report.notes);
                let accepted = item.single.accept_ending(&finished);
                Ended {
                    end: accepted.map(|()| end_of(item, &finished)),
                    said: said
                        .into_iter()
                        .chain(notes.into_iter().map(|note| format!("note: {note}")))
                        .collect(),
                    warnings,
                    stats: self.arguments.stats.then(|| legible(&report).to_string()),
                }
            }
            Err(failure) => Ended {
                end: Err(failure),
                said,
                warnings: Vec::new(),
                stats: None,
            },
        }
    }

    fn filter(&self, number: usize, item: &Item<'_>, stop: &Stop, form: Form) -> Result<Finished, Failure> {
        let opened = item.single.open(Some(stop))?;
        let counters = self.progress.begin(number);
        let info = opened.source.info();
        let shown = BatchJobProgress {
            watched: Watched {
                counters: &counters,
                stop,
                frames: info.frames,
                parts: item.single.parts(),
                pace: Pace::of(info),
            },
            number,
            name: item.name.clone(),
            progress: &self.progress,
        };
        let context = JobContext {
            engines: &self.engines,
            budget: &self.budget,
            stop,
            counters: &counters,
            is_engine_shown: &self.is_engine_shown,
            origin: None,
        };
        item.single.filter(opened, &context, form, &shown)
    }

    /// Prints the results, and returns the error if a job failed.
    fn conclude(self, caveats: &Remarks, began: Instant) -> Result<(), Failure> {
        let quiet = self.arguments.quiet;
        let warn = |text: &str| {
            if quiet < 2 {
                // A closed stderr is no reason to stop.
                let _ = writeln!(std::io::stderr(), "{}", escape::line(text));
            }
        };
        for note in &caveats.notes {
            self.arguments.print(&format!("note: {note}"));
        }
        for warning in &caveats.warnings {
            warn(&format!("warning: {warning}"));
        }
        let (mut rows, mut failures) = (Vec::new(), Vec::new());
        for (item, ended) in self.items.iter().zip(self.ends) {
            let name = escape::line(&item.name).into_owned();
            let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
            let end = match ended {
                None => End::NotBegun,
                Some(ended) => {
                    if let Some(stats) = &ended.stats {
                        // Asked for, even of a quiet run.
                        let text = format!("\n{name}\n{}", stats.trim_end());
                        let _ = writeln!(std::io::stderr(), "{text}");
                    }
                    for text in &ended.said {
                        self.arguments.print(&format!("{name}: {text}"));
                    }
                    for warning in &ended.warnings {
                        warn(&format!("{name}: warning: {warning}"));
                    }
                    match ended.end {
                        Ok(end) => end,
                        Err(Failure::Interrupted) => End::Stopped,
                        Err(failure) => {
                            let reason = failure.reason();
                            let reason = reason
                                .strip_prefix(&format!("{}: ", item.name))
                                .unwrap_or(&reason);
                            let reason = escape::line(reason).into_owned();
                            failures.push((item.name.clone(), failure));
                            End::Failed(reason)
                        }
                    }
                }
            };
            rows.push(Row { name, end });
        }
        self.arguments.print_lines(&table(&rows, began.elapsed()));
        let is_whole = |row: &Row| !matches!(row.end, End::Short(_) | End::Stopped | End::NotBegun);
        if self.jobs.is_interrupted() && !rows.iter().all(is_whole) {
            return Err(Failure::Interrupted);
        }
        verdict(failures, rows.len(), self.arguments)
    }
}

/// The error that the program ends with.
fn verdict(
    mut failures: Vec<(String, Failure)>,
    count: usize,
    arguments: &FilterArguments,
) -> Result<(), Failure> {
    if failures.is_empty() {
        return Ok(());
    }
    if !arguments.keep_going {
        let (name, failure) = failures.swap_remove(0);
        return Err(failure.about(&name));
    }
    let text = format!("{} of {} failed", failures.len(), counted(count as u64, "file"));
    if arguments.quiet == 0 {
        // The table has the reasons.
        return Err(Failure::Failed(text));
    }
    let lines = failures
        .into_iter()
        .map(|(name, failure)| format!("  {}", failure.about(&name).reason()));
    Err(Failure::Listed(format!("{text}:"), lines.collect()))
}

fn end_of(item: &Item<'_>, finished: &Finished) -> End {
    let figures = Figures {
        frames: finished.frames,
        time: finished.measured.wall,
        bytes: on_disk(&item.single.output).or(finished.bytes).unwrap_or(0),
    };
    match finished.measured.ending {
        Completion::Interrupted if figures.frames == 0 => End::Stopped,
        Completion::Interrupted => End::Short(figures),
        Completion::Complete | Completion::Closed => End::Done(figures),
    }
}
