//! Measures a list of cells, one after another, until it ends or Ctrl-C.

use super::Common;
use super::axis::{Measured, Size};
use super::output::Outputs;
use crate::cli::Failure;
use crate::cli::process::interrupt::{self, Policy};
use crate::cli::show::bar::bar;
use framepipe::filter::{Algorithm, Border, Filter};
use framepipe::frame::PixelFormat;
use framepipe::pipeline::Stop;
use framepipe::program::bench::{Bench, Case, Cell, Effort, Published, Scope, Subject, Sweep, figure};
use framepipe::report::Completion;
use framepipe::wording::counted;

/// A cell to be measured.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) case: Case,
    pub(super) scope: Scope,
    /// A report's figures for the same cell.
    pub(super) published: Published,
}

/// A sweep's axes besides subjects: every combination is measured.
pub(super) struct Axes<'a> {
    pub(super) sizes: &'a [Size],
    pub(super) formats: &'a [PixelFormat],
    pub(super) filters: &'a [Filter],
    pub(super) border: Border,
}

impl Axes<'_> {
    /// The cells of the sweep: for each size, format, filter and algorithm the subjects, each in its scopes.
    /// `algorithms` gives the algorithms of a filter.
    pub(super) fn jobs(
        &self,
        algorithms: impl Fn(&Filter) -> Vec<Algorithm>,
        subjects: &[(Subject, Vec<Scope>)],
    ) -> Vec<Job> {
        let mut jobs = Vec::new();
        for size in self.sizes {
            for &format in self.formats {
                for filter in self.filters {
                    for algorithm in algorithms(filter) {
                        let case = |subject: Subject| Case {
                            subject,
                            filter: filter.clone(),
                            algorithm,
                            border: self.border,
                            format,
                            width: size.width,
                            height: size.height,
                        };
                        for (subject, scopes) in subjects {
                            jobs.extend(scopes.iter().map(|&scope| Job {
                                case: case(*subject),
                                scope,
                                published: Published::default(),
                            }));
                        }
                    }
                }
            }
        }
        jobs
    }
}

/// A bench, the signals that end it, and the files that it fills.
pub(super) struct Run {
    pub(super) bench: Bench,
    outputs: Outputs,
    why_no_card: Option<String>,
    notes: Vec<String>,
    stop: Stop,
}

impl Run {
    /// Inspects the machine and creates the output files.
    pub(super) fn start(common: &Common) -> Result<Run, Failure> {
        let outputs = common.output.open(common.overwrite)?;
        let effort = if common.quick { Effort::QUICK } else { Effort::FULL };
        let (mut bench, why_no_card) = Bench::new(common.device, effort);
        if let Some(mib) = common.cache_mib {
            bench = bench.with_cache(u64::from(mib.get()) << 20);
        }
        let stop = Stop::new();
        interrupt::watch(&stop, false, Policy::keeping())?;
        Ok(Run {
            bench,
            outputs,
            why_no_card: why_no_card.map(|error| error.to_string()),
            notes: Vec::new(),
            stop,
        })
    }

    /// Why there is no card.
    pub(super) fn why_no_card(&self) -> &str {
        self.why_no_card.as_deref().unwrap_or_default()
    }

    /// The engines to measure: the requested ones, which must be available, or else all available ones.
    pub(super) fn engines(&mut self, asked: &[Measured]) -> Result<Vec<Measured>, Failure> {
        if asked.contains(&Measured::Cuda) {
            self.need_card()?;
        }
        if !asked.is_empty() {
            return Ok(asked.to_vec());
        }
        let mut engines = vec![Measured::Reference, Measured::Cpu];
        if self.bench.has_card() {
            engines.push(Measured::Cuda);
        } else {
            self.notes.push(self.no_card());
        }
        Ok(engines)
    }

    fn no_card(&self) -> String {
        format!("nothing was measured on a card: {}", self.why_no_card())
    }

    /// Fails if there is no card.
    pub(super) fn need_card(&self) -> Result<(), Failure> {
        if self.bench.has_card() {
            return Ok(());
        }
        Err(Failure::Failed(self.why_no_card().to_owned()))
    }

    /// Measures the jobs; `each` gets every cell and the number of its job.
    pub(super) fn measure(
        &mut self,
        title: &str,
        jobs: &[Job],
        mut each: impl FnMut(usize, &Cell),
    ) -> Result<Sweep, Failure> {
        let mut sweep = self.bench.sweep(title);
        sweep.notes.append(&mut self.notes);
        let needs_card = jobs.iter().any(|job| job.case.subject.needs_card());
        if needs_card && !self.bench.has_card() {
            sweep.note(self.no_card());
        }
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let shares = |job: &Job| matches!(job.case.subject, Subject::Cpu { threads, .. } if threads > cores);
        if jobs.iter().any(shares) {
            sweep.note(format!(
                "this process may use {}; more threads take turns on them",
                counted(cores as u64, "core")
            ));
        }
        let bar = bar(jobs.len());
        bar.set_message("compiling kernels");
        let cases: Vec<Case> = jobs.iter().map(|job| job.case.clone()).collect();
        self.bench.compile(&cases);
        // Kernels alone come first: at 1280x720 they were seen to take up to 1.16 times as long after
        // transfers of the same process.
        let mut order: Vec<usize> = (0..jobs.len()).collect();
        order.sort_by_key(|&index| jobs[index].scope != Scope::Kernel);
        let mut cells: Vec<Option<Cell>> = jobs.iter().map(|_| None).collect();
        for (position, index) in order.into_iter().enumerate() {
            let job = &jobs[index];
            if self.stop.is_finish_asked() {
                sweep.ending = Completion::Interrupted;
                break;
            }
            bar.set_position(position as u64);
            bar.set_message(format!("{}, {}", job.case, job.scope));
            if job.case.subject.needs_card() && !self.bench.has_card() {
                continue;
            }
            match self.bench.measure(&job.case, job.scope) {
                Ok(mut cell) => {
                    cell.published_milliseconds = job.published.milliseconds;
                    cell.published_speed_up = job.published.speed_up;
                    tracing::info!(
                        "{}, {}: {} ms",
                        job.case,
                        job.scope,
                        figure(cell.milliseconds.median)
                    );
                    each(index, &cell);
                    cells[index] = Some(cell);
                }
                Err(error) if error.is_refusal() => sweep.note(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        bar.finish_and_clear();
        sweep.cells = cells.into_iter().flatten().collect();
        sweep.peaks = self.bench.peaks().to_vec();
        if sweep.cells.is_empty() && sweep.ending == Completion::Complete {
            return Err(Failure::Failed(format!(
                "nothing could be measured: {}",
                sweep.notes.join("; ")
            )));
        }
        Ok(sweep)
    }

    /// Writes the sweep; an interrupted one ends the program with that exit code.
    pub(super) fn finish(self, sweep: &Sweep, table: &str) -> Result<(), Failure> {
        self.outputs.write(sweep, table)?;
        match sweep.ending {
            Completion::Interrupted => Err(Failure::Interrupted),
            Completion::Complete | Completion::Closed => Ok(()),
        }
    }
}
