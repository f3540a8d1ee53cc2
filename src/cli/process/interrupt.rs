//! Signals: the first ends the run, gently or at once, the second abandons it, the third ends the program
//! where it stands.

use crate::cli::Failure;
use clap::ValueEnum;
use framepipe::pipeline::Stop;
use framepipe::shortage::thread_error;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io::Write;

/// What becomes of the output when the run is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// What was filtered so far is finished and stays.
    Keep,
    /// Nothing is left under the output's name.
    Discard,
}

/// What the first signal does.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// The user's choice; by default Ctrl-C keeps, SIGTERM and SIGHUP discard, since nobody is there to see
    /// that the output is short.
    pub(crate) wanted: Option<OnInterrupt>,
    /// The output takes the place of a whole file, which a short one must not.
    pub(crate) replaces: bool,
}

impl Policy {
    /// Leaves nothing behind whatever the signal: for outputs that are of no use unless complete.
    pub(crate) fn discarding() -> Policy {
        Policy {
            wanted: Some(OnInterrupt::Discard),
            replaces: false,
        }
    }

    /// Ends gently whatever the signal: for runs that only measure.
    pub(crate) fn keeping() -> Policy {
        Policy {
            wanted: Some(OnInterrupt::Keep),
            replaces: false,
        }
    }

    /// True if the first signal, which is this one, ends the run gently.
    pub(crate) fn keeps(self, signal: i32) -> bool {
        let keeps = match self.wanted {
            Some(wanted) => wanted == OnInterrupt::Keep,
            None => signal == SIGINT,
        };
        keeps && !self.replaces
    }
}

/// Ties SIGINT, SIGTERM and SIGHUP to `stop`.
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

/// The same for whatever ends in these ways: `finish` is for the first signal and says whether it ends
/// anything gently, `abandon` is for the second, and for a first that does not.
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
    // nohup has SIGHUP ignored, and it stays so.
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
                }
                // Some stage hangs in a system call. Temporary files stay behind, nothing lies under a final
                // name.
                _ => std::process::exit(130),
            }
        }
    };
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(handle)
        .map_err(thread_error)?;
    Ok(())
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
