//! Waits that end by a stop from outside, or when nothing has come for too long.

use crossbeam_channel::{Receiver, TryRecvError};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a wait for a pipe lasts before it is looked whether it is to end.
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 100_000_000,
};

/// True if `gate`, a channel that never carries anything, is closed.
pub(crate) fn is_closed(gate: &Receiver<()>) -> bool {
    matches!(gate.try_recv(), Err(TryRecvError::Disconnected))
}

/// Opens a file to be read; a named pipe at once, whether or not anybody writes to it yet.
pub(crate) fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    if path.metadata().is_ok_and(|facts| facts.file_type().is_fifo()) {
        options.custom_flags(OFlags::NONBLOCK.bits() as i32);
    }
    options.read(true).open(path)
}

/// Waits until `file` can be read or written (`wanted`), or fails, but no longer than a tick; false if it was
/// a tick in vain.
pub(crate) fn wait_a_tick(file: impl AsFd, wanted: PollFlags) -> io::Result<bool> {
    match poll(&mut [PollFd::new(&file, wanted)], Some(&TICK)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(false),
        // An error is for the read or write to find.
        Ok(_) => Ok(true),
        Err(e) => Err(e.into()),
    }
}

/// What ends the waits for an input that is opened.
#[derive(Debug, Clone, Default)]
pub struct WaitLimit {
    /// How long it may be silent; `None` waits for ever.
    pub timeout: Option<Duration>,
    /// Its closing ends them at once.
    pub stop: Option<Receiver<()>>,
}

/// How long an input may stall: until the run is stopped, or for so long.
#[derive(Debug)]
pub(crate) struct StallTimeout {
    state: Mutex<State>,
    limit: Option<Duration>,
}

#[derive(Debug)]
struct State {
    began: Instant,
    stop: Option<Receiver<()>>,
    ran_out: bool,
}

impl StallTimeout {
    /// Waits that end after `limit`, if there is one.
    pub(crate) fn new(limit: Option<Duration>) -> StallTimeout {
        StallTimeout {
            state: Mutex::new(State {
                began: Instant::now(),
                stop: None,
                ran_out: false,
            }),
            limit,
        }
    }

    /// Waits that end by `limit`.
    pub(crate) fn by(limit: &WaitLimit) -> StallTimeout {
        let timeout = StallTimeout::new(limit.timeout);
        if let Some(stop) = &limit.stop {
            timeout.watch(stop);
        }
        timeout
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A wait begins.
    pub(crate) fn begin(&self) {
        self.state().began = Instant::now();
    }

    /// From now on waits end when `stop` is closed, too.
    pub(crate) fn watch(&self, stop: &Receiver<()>) {
        self.state().stop = Some(stop.clone());
    }

    /// True once a wait took longer than the limit.
    pub(crate) fn ran_out(&self) -> bool {
        self.state().ran_out
    }

    /// True if the wait is to end.
    pub(crate) fn is_over(&self) -> bool {
        let mut state = self.state();
        state.ran_out |= self.limit.is_some_and(|limit| state.began.elapsed() > limit);
        state.ran_out || state.stop.as_ref().is_some_and(is_closed)
    }

    /// The error message for an input that stalled for longer than the limit.
    pub(crate) fn sentence(limit: Option<Duration>) -> String {
        let seconds = limit.unwrap_or_default().as_secs_f64();
        format!("it gave nothing for {seconds} s, the --timeout")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_ends_by_the_clock_and_by_the_stop() {
        let timeout = StallTimeout::new(Some(Duration::from_millis(20)));
        assert!(!timeout.is_over());
        std::thread::sleep(Duration::from_millis(30));
        assert!(timeout.is_over() && timeout.ran_out());
        let timeout = StallTimeout::new(None);
        let (open, stop) = crossbeam_channel::bounded(0);
        timeout.watch(&stop);
        assert!(!timeout.is_over());
        drop(open);
        assert!(timeout.is_over() && !timeout.ran_out());
    }
}
