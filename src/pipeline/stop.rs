//! Ends a run before its input ends: gracefully, at once, or because something failed.

use crate::waiting::is_closed;
use crossbeam_channel::{Receiver, Sender, bounded};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A handle to end a run from outside, such as from a signal handler's thread. Clones end the same run.
#[derive(Clone)]
pub struct Stop(Arc<State>);

struct State {
    /// Closed: no new frames; those in flight are written.
    finish: Gate,
    /// Closed: every stage stops at once.
    abandon: Gate,
    user_finished: AtomicBool,
    user_abandoned: AtomicBool,
    reader_gone: AtomicBool,
    input_ended: AtomicBool,
}

/// A channel without messages: closing it wakes every thread that waits on it.
struct Gate {
    open: Mutex<Option<Sender<()>>>,
    closed: Receiver<()>,
}

impl Gate {
    fn new() -> Gate {
        let (open, closed) = bounded(0);
        Gate {
            open: Mutex::new(Some(open)),
            closed,
        }
    }

    fn close(&self) {
        // The lock guards the drop alone, so that a poisoned one can be used.
        self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn is_closed(&self) -> bool {
        is_closed(&self.closed)
    }
}

impl Default for Stop {
    fn default() -> Self {
        Stop::new()
    }
}

impl Stop {
    /// A handle for one run.
    pub fn new() -> Stop {
        Stop(Arc::new(State {
            finish: Gate::new(),
            abandon: Gate::new(),
            user_finished: AtomicBool::new(false),
            user_abandoned: AtomicBool::new(false),
            reader_gone: AtomicBool::new(false),
            input_ended: AtomicBool::new(false),
        }))
    }

    /// Ends the run gracefully: no further frames are read, those in flight are written, and the output is
    /// finished.
    pub fn finish(&self) {
        self.0.user_finished.store(true, Ordering::Relaxed);
        self.0.finish.close();
    }

    /// Ends the run at once; the output is not finished and nothing is left under its name.
    pub fn abandon(&self) {
        self.0.user_abandoned.store(true, Ordering::Relaxed);
        self.fail();
    }

    /// True once [`Stop::finish`] was called.
    pub fn is_finish_asked(&self) -> bool {
        self.0.user_finished.load(Ordering::Relaxed)
    }

    /// True once [`Stop::abandon`] was called.
    pub fn is_abandon_asked(&self) -> bool {
        self.0.user_abandoned.load(Ordering::Relaxed)
    }

    /// A stage has failed: the others stop at once.
    pub(super) fn fail(&self) {
        self.0.abandon.close();
        self.0.finish.close();
    }

    /// The output's reader has gone: no more frames are needed.
    pub(super) fn reader_gone(&self) {
        self.0.reader_gone.store(true, Ordering::Relaxed);
        self.0.finish.close();
    }

    /// True if the output's reader has gone.
    pub(super) fn is_reader_gone(&self) -> bool {
        self.0.reader_gone.load(Ordering::Relaxed)
    }

    /// The source has delivered its last frame.
    pub(super) fn input_ended(&self) {
        self.0.input_ended.store(true, Ordering::Relaxed);
    }

    /// True once the source has delivered its last frame.
    pub fn has_input_ended(&self) -> bool {
        self.0.input_ended.load(Ordering::Relaxed)
    }

    /// True if no new frames are wanted, for any reason.
    pub(super) fn is_ending(&self) -> bool {
        self.0.finish.is_closed()
    }

    /// True if every stage is to stop at once.
    pub(super) fn is_abandoned(&self) -> bool {
        self.0.abandon.is_closed()
    }

    /// Closed when no new frames are wanted.
    pub(super) fn ending(&self) -> &Receiver<()> {
        &self.0.finish.closed
    }

    /// Closed when every stage is to stop at once.
    pub fn abandoned(&self) -> &Receiver<()> {
        &self.0.abandon.closed
    }
}
