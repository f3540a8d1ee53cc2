//! What a worker knows of its own process and machine.

use crate::cli::Failure;
use rustix::process::{Signal, getppid, set_parent_process_death_signal};

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

/// This machine's name.
pub(super) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
