//! How a worker's own process ends.

use crate::cli::Failure;
use crate::cli::process::interrupt::watch_by;
use framepipe::pipeline::Stop;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};
use std::sync::{Arc, Mutex, PoisonError};

/// The end of a worker that makes one part after another: a signal abandons the one that is being made, and
/// no other is begun.
#[derive(Clone, Default)]
pub(super) struct Shutdown(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    has_come: bool,
    current: Option<Stop>,
}

impl Shutdown {
    /// Ties signals to it. To be called before any work, so that none ends the process without its exit code.
    pub(super) fn watch() -> Result<Shutdown, Failure> {
        let shutdown = Shutdown::default();
        let other = shutdown.clone();
        let abandon = move || {
            let mut state = other.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.has_come = true;
            if let Some(stop) = &state.current {
                stop.abandon();
            }
        };
        watch_by(true, |_| false, abandon)?;
        Ok(shutdown)
    }

    /// The end of the next part.
    pub(super) fn next(&self) -> Stop {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let stop = Stop::new();
        if state.has_come {
            stop.abandon();
        }
        state.current = Some(stop.clone());
        stop
    }
}

/// Has the system end this process when its parent ends.
pub(super) fn die_with_parent() -> Result<(), Failure> {
    let parent = getppid();
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from)?;
    // It may have ended before that.
    match getppid() == parent {
        true => Ok(()),
        false => Err(Failure::Passing(
            "the process that started this one has ended".to_owned(),
        )),
    }
}
