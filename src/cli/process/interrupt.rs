//! Signals: the first ends the run, gracefully or at once, the second abandons it, the third ends the program
//! immediately, as half a minute without an end does. The limit of a file's size is an error of the write.

use crate::cli::Failure;
use clap::ValueEnum;
use framepipe::pipeline::Stop;
use framepipe::shortage::thread_error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

/// The exit code where a stage hangs in a system call, such as the opening of a pipe that nobody reads.
/// Temporary files remain; nothing has a final name.
const HANGS: i32 = 130;

/// How long an abandoned run may take to end: longer than any frame.
const PATIENCE: Duration = Duration::from_secs(30);

/// The fate of the output when the run is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// What was filtered so far is finished and stays.
    Keep,
    /// Nothing is left under the output's name.
    Discard,
}

/// The effect of the first signal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// The user's choice; by default Ctrl-C keeps, while SIGTERM and SIGHUP discard, since nobody would
    /// notice that the output is short.
    pub(crate) wanted: Option<OnInterrupt>,
    /// The output replaces a complete file; a short one must not.
    pub(crate) replaces: bool,
}

impl Policy {
    /// Leaves nothing behind after any signal: for outputs that are useless unless complete.
    pub(crate) fn discarding() -> Policy {
        Policy {
            wanted: Some(OnInterrupt::Discard),
            replaces: false,
        }
    }

    /// Ends gracefully after any signal: for runs that only measure.
    pub(crate) fn keeping() -> Policy {
        Policy {
            wanted: Some(OnInterrupt::Keep),
            replaces: false,
        }
    }

    /// True if `signal`, the first one, ends the run gracefully.
    pub(crate) fn keeps(self, signal: i32) -> bool {
        let keeps = match self.wanted {
            Some(wanted) => wanted == OnInterrupt::Keep,
            None => signal == SIGINT,
        };
        keeps && !self.replaces
    }
}

/// Makes SIGINT, SIGTERM and SIGHUP end the run through `stop`.
pub(crate) fn watch(stop: &Stop, quiet: bool, policy: Policy) -> Result<(), Failure> {
    let (gentle, hard) = (stop.clone(), stop.clone());
    let finish = move |signal| {
        let keeps = policy.keeps(signal);
        if keeps {
            gentle.finish();
        }
        keeps
    };
    watch_by(quiet, finish, move || hard.abandon())
}

/// The same with functions: `finish` is called for the first signal and returns whether it ends the run
/// gracefully; `abandon` is called for the second, or for a first that does not.
pub(crate) fn watch_by(
    quiet: bool,
    finish: impl Fn(i32) -> bool + Send + 'static,
    abandon: impl Fn() + Send + 'static,
) -> Result<(), Failure> {
    let say = move |text: &str| {
        if !quiet {
            let _ = writeln!(std::io::stderr(), "\n{text}");
        }
    };
    // nohup starts programs with SIGHUP ignored; it stays ignored.
    let hang_up = (!ignores_hang_up()).then_some(SIGHUP);
    let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(hang_up))?;
    let handle = move || {
        for (count, signal) in signals.forever().enumerate() {
            match count {
                0 if finish(signal) => {
                    let again = if signal == SIGINT {
                        "Ctrl-C again"
                    } else {
                        "a second signal"
                    };
                    say(&format!(
                        "stopping: what is in flight is being finished; {again} abandons it"
                    ));
                }
                0 | 1 => {
                    say("abandoning the run");
                    abandon();
                    end_after(PATIENCE);
                }
                _ => std::process::exit(HANGS),
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(handle)
        .map_err(thread_error)?;
    Ok(())
}

/// Ends the program if it is still there after `patience`: whoever sends one signal sends no third one.
fn end_after(patience: Duration) {
    let wait = move || {
        std::thread::sleep(patience);
        std::process::exit(HANGS)
    };
    // Without memory for a thread a third signal ends it all the same.
    let _ = std::thread::Builder::new()
        .name("patience".to_owned())
        .spawn(wait);
}

/// Lets a write beyond the limit of a file's size (`ulimit -f`) fail as on a full disk, where SIGXFSZ would
/// end the process.
pub(crate) fn outlive_size_limit() {
    // A handler of any kind is enough; without one the limit still holds.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Makes a signal end the program at once, for commands that leave nothing unfinished.
pub(crate) fn end_at_once() -> Result<(), Failure> {
    let finish = |_| {
        // A closed stderr is no reason to stay.
        let _ = writeln!(std::io::stderr(), "\ninterrupted");
        std::process::exit(130)
    };
    watch_by(true, finish, || {})
}

/// True if the program was started with SIGHUP ignored.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & (1 << (SIGHUP - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supervisors_discard_people_keep_and_a_whole_file_is_never_replaced() {
        let policy = |wanted, replaces| Policy { wanted, replaces };
        assert!(policy(None, false).keeps(SIGINT));
        assert!(!policy(None, false).keeps(SIGTERM) && !policy(None, false).keeps(SIGHUP));
        assert!(!policy(None, true).keeps(SIGINT));
        assert!(policy(Some(OnInterrupt::Keep), false).keeps(SIGTERM));
        assert!(!policy(Some(OnInterrupt::Keep), true).keeps(SIGTERM));
        assert!(!policy(Some(OnInterrupt::Discard), false).keeps(SIGINT));
    }
}
