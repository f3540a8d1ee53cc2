//! `framepipe run`: all parts of a job on this machine, and the join.
//!
//! A part is made by a process of its own, one for each card or for each place, so that a card that fails
//! takes one part with it. Parts that fail for a passing reason are tried again; the others are listed at the
//! end, once all that can be made is made.

use super::join::{JoinArguments, Layout, join};
use super::part::{check_input, check_libraries};
use super::{open, warn};
use crate::cli::Failure;
use crate::cli::options::engine::Cards;
use crate::cli::process::interrupt;
use crate::cli::process::limits::count;
use crate::cli::show::escape;
use crate::cli::show::failure::ELSEWHERE;
use clap::{Args, ValueHint};
use framepipe::frame::Warning;
use framepipe::pipeline::Stop;
use framepipe::program::parts::{JobFolder, JoinState, PartState, Plan, merged, ranges};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How often a part is tried that fails for a passing reason.
const TRIES: u32 = 3;

/// The exit code of a part that says that none of the job can be made: changed input, another version.
const REFUSED: u8 = 2;

/// How long a part that is asked to end may take, before it is killed.
const GRACE: Duration = Duration::from_secs(10);

/// From one look at a child to the next.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Which job, and on what.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArguments {
    /// The folder that `framepipe plan` made.
    #[arg(value_name = "JOB", value_hint = ValueHint::DirPath)]
    job: PathBuf,
    /// The cards, each of which makes a part at a time: all, or numbers such as 0,1 [default: what --engine
    /// auto takes, one part at a time].
    #[arg(long, value_name = "LIST")]
    devices: Option<Cards>,
    /// How many parts are made at a time, or on each card, with the cores shared out [default: 1].
    #[arg(long, value_name = "N", value_parser = count)]
    at_once: Option<NonZeroUsize>,
    /// Only make the parts.
    #[arg(long, conflicts_with_all = ["keep_parts", "layout"])]
    no_join: bool,
    /// Keep the parts once the output is complete.
    #[arg(long)]
    keep_parts: bool,
    /// What is made of the parts.
    #[arg(long, value_enum, default_value_t)]
    layout: Layout,
    /// Decode and encode with other versions of FFmpeg's libraries than those of the plan.
    #[arg(long)]
    allow_mixed: bool,
    /// Say nothing but warnings and errors.
    #[arg(short, long)]
    quiet: bool,
}

/// Makes all parts, and joins them; each part logs as much as `verbosity` says.
pub(crate) fn run(wanted: &RunArguments, verbosity: u8) -> Result<(), Failure> {
    let (job, plan) = open(&wanted.job)?;
    if !wanted.no_join {
        check_joined(&job, &plan, wanted)?;
    }
    let stop = Stop::new();
    interrupt::watch(&stop, true, interrupt::Policy::discarding())?;
    let mut made = Vec::new();
    let result =
        make_all(&job, &plan, (wanted, verbosity), &stop, &mut made).and_then(|()| match wanted.no_join {
            true => Ok(()),
            false => {
                let arguments = JoinArguments {
                    job: wanted.job.clone(),
                    keep_parts: wanted.keep_parts,
                    layout: wanted.layout,
                    quiet: wanted.quiet,
                };
                join(&arguments, &stop)
            }
        });
    // A join gives the warnings of all parts.
    if wanted.no_join || result.is_err() {
        warn(&warnings_of(&job, &plan, &made));
    }
    result
}

/// Refuses an output that is not this job's, or not any more, before any work. One that is gone is to be made
/// again.
fn check_joined(job: &JobFolder, plan: &Plan, wanted: &RunArguments) -> Result<(), Failure> {
    if wanted.layout == Layout::File {
        match job.join_state(plan).map_err(super::job_failure)? {
            JoinState::Whole => return Ok(()),
            JoinState::Changed(problem) => return Err(super::join::changed(&problem)),
            JoinState::Gone(problem) => {
                if !wanted.quiet {
                    let text = format!("{problem}; the parts that it needs are made again");
                    let _ = writeln!(std::io::stderr(), "{}", escape::line(&text));
                }
                job.forget_joined().map_err(super::job_failure)?;
            }
            JoinState::Unjoined => {}
        }
    }
    super::join::check_output(plan, wanted.layout)
}

/// The warnings of these parts.
fn warnings_of(job: &JobFolder, plan: &Plan, parts: &[usize]) -> Vec<Warning> {
    let records = parts.iter().filter_map(|&part| match job.state(plan, part) {
        Ok(PartState::Done(record)) => Some(record.warnings),
        _ => None,
    });
    let warnings: Vec<Warning> = records.flatten().collect();
    merged(&warnings)
}

/// The state that workers share.
struct Work<'a> {
    root: &'a Path,
    job: &'a JobFolder,
    quiet: bool,
    total: usize,
    stop: &'a Stop,
    state: Mutex<State>,
}

/// Parts still to be made, with the number of tries of each, and the results of the others.
struct State {
    queue: VecDeque<(usize, u32)>,
    /// Parts that are there, and those of them that this run made.
    done: usize,
    made: Vec<usize>,
    failed: Vec<usize>,
    /// The job is not for this program.
    is_refused: bool,
}

impl Work<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            // A closed stderr is no reason to stop.
            let _ = writeln!(std::io::stderr(), "{}", escape::line(text));
        }
    }
}

/// Makes the parts that are missing, and notes in `made` which these are.
fn make_all(
    job: &JobFolder,
    plan: &Plan,
    (wanted, verbosity): (&RunArguments, u8),
    stop: &Stop,
    made: &mut Vec<usize>,
) -> Result<(), Failure> {
    let mut queue = VecDeque::new();
    for part in 0..plan.parts.len() {
        if !matches!(
            job.state(plan, part).map_err(super::job_failure)?,
            PartState::Done(_)
        ) {
            queue.push_back((part, 0));
        }
    }
    if !queue.is_empty() {
        check_libraries(plan, wanted.allow_mixed)?;
        check_input(plan)?;
    }
    let places = places(wanted, verbosity)?;
    let work = Work {
        root: &wanted.job,
        job,
        quiet: wanted.quiet,
        total: plan.parts.len(),
        stop,
        state: Mutex::new(State {
            done: plan.parts.len() - queue.len(),
            queue,
            made: Vec::new(),
            failed: Vec::new(),
            is_refused: false,
        }),
    };
    std::thread::scope(|scope| {
        for place in &places {
            scope.spawn(|| serve(&work, place));
        }
    });
    made.append(&mut work.state().made);
    if work.stop.is_abandon_asked() {
        work.say("stopped; the same command goes on with the parts that are missing");
        return Err(Failure::Interrupted);
    }
    let mut state = work.state();
    state.failed.sort_unstable();
    let text = match (state.is_refused, state.failed.as_slice()) {
        (_, []) => return Ok(()),
        (true, _) => return Err(Failure::Usage("the parts cannot be made of this plan".to_owned())),
        (false, _) if state.done == 0 => "no part could be made".to_owned(),
        (false, failed) => format!(
            "these parts could not be made: {}; the others are done",
            ranges(failed)
        ),
    };
    Err(Failure::Failed(text))
}

/// The options of the processes in each place: of the engine, and those that all have.
fn places(wanted: &RunArguments, verbosity: u8) -> Result<Vec<Vec<String>>, Failure> {
    let each = wanted.at_once.map_or(1, NonZeroUsize::get);
    let mixed = wanted.allow_mixed.then(|| "--allow-mixed".to_owned());
    let verbose = std::iter::repeat_n("--verbose".to_owned(), usize::from(verbosity));
    let common: Vec<String> = mixed.into_iter().chain(verbose).collect();
    let Some(devices) = &wanted.devices else {
        let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let shared = (each > 1).then(|| {
            let threads = format!("--threads={}", cores.div_ceil(each));
            vec!["--engine=cpu".to_owned(), threads]
        });
        let options: Vec<String> = shared.unwrap_or_default().into_iter().chain(common).collect();
        return Ok(vec![options; each]);
    };
    let options = devices.numbers()?.into_iter().flat_map(|device| {
        let options = vec!["--engine=cuda".to_owned(), format!("--device={device}")];
        vec![options.into_iter().chain(common.clone()).collect(); each]
    });
    Ok(options.collect())
}

/// Makes one part after another until none is left.
fn serve(work: &Work<'_>, options: &[String]) {
    while !work.stop.is_abandon_asked() {
        let Some((part, tried)) = work.state().queue.pop_front() else {
            break;
        };
        let began = Instant::now();
        let result = start(work, part, options).and_then(|child| {
            let process = child.id();
            let ended = wait(child, work.stop);
            // One that was killed could remove nothing.
            work.job.remove_work(part, process);
            ended
        });
        let code = match result {
            Ok(status) => status.and_then(|status| status.code()),
            Err(cause) => {
                work.say(&format!("part {part}: cannot start a process: {cause}"));
                None
            }
        };
        let mut state = work.state();
        match code.map(u8::try_from) {
            Some(Ok(0)) => {
                state.done += 1;
                state.made.push(part);
                let (done, total, seconds) = (state.done, work.total, began.elapsed().as_secs_f64());
                drop(state);
                work.say(&format!("{done}/{total} parts: part {part} in {seconds:.1} s"));
            }
            // Killed from outside counts as passing, too.
            None | Some(Ok(ELSEWHERE)) if tried + 1 < TRIES && !work.stop.is_abandon_asked() => {
                state.queue.push_back((part, tried + 1));
            }
            Some(Ok(REFUSED)) => {
                state.is_refused = true;
                state.failed.push(part);
                state.queue.clear();
            }
            _ => state.failed.push(part),
        }
    }
}

/// Starts the process that makes a part.
fn start(work: &Work<'_>, part: usize, options: &[String]) -> std::io::Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    let words = ["part", "--quiet", "--keep-warnings", "--die-with-parent"].map(OsString::from);
    command
        .args(words)
        .args(options)
        .arg("--")
        .arg(work.root)
        .arg(part.to_string());
    command.stdin(std::process::Stdio::null()).spawn()
}

/// Waits for it to end; none if the run was stopped, which ends it: it removes its temporary files first.
fn wait(mut child: Child, stop: &Stop) -> std::io::Result<Option<ExitStatus>> {
    let mut asked: Option<Instant> = None;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(asked.is_none().then_some(status));
        }
        match asked {
            None if stop.is_abandon_asked() => {
                asked = Some(Instant::now());
                let _ = kill_process(Pid::from_child(&child), Signal::TERM);
            }
            Some(since) if since.elapsed() > GRACE => {
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            _ => {}
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}
