//! The start of an engine on a thread of its own, while the input is being opened.

use framepipe::engine::{Engine, EngineError};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// An engine, or why it does not start.
pub(crate) type Started = Result<Box<dyn Engine>, EngineError>;

/// An engine that is started once, on a thread of its own. Clones share it; the first to take it gets it.
#[derive(Clone, Default)]
pub(crate) struct Starting(Arc<Mutex<Start>>);

#[derive(Default)]
enum Start {
    #[default]
    NotBegun,
    Running(JoinHandle<Started>),
    Taken,
}

impl Starting {
    /// Starts the thread, unless it was started before. If the system gives no thread, the engine is started
    /// when it is needed.
    pub(crate) fn begin(&self, start: impl FnOnce() -> Started + Send + 'static) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Start::NotBegun = *state
            && let Ok(thread) = thread::Builder::new().name("start".to_owned()).spawn(start)
        {
            *state = Start::Running(thread);
        }
    }

    /// Waits for the engine; `None` if none was begun, or it was taken before.
    pub(crate) fn take(&self) -> Option<Started> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let thread = match std::mem::take(&mut *state) {
            Start::Running(thread) => thread,
            other => {
                *state = other;
                return None;
            }
        };
        *state = Start::Taken;
        drop(state);
        Some(thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    }
}

impl Drop for Starting {
    fn drop(&mut self) {
        // The process must not end while the driver starts.
        if Arc::strong_count(&self.0) == 1 {
            drop(self.take());
        }
    }
}

impl fmt::Debug for Starting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Starting")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framepipe::engine::none::NoFilter;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn an_engine_is_started_once_and_is_there_for_the_first() {
        let started = Arc::new(AtomicUsize::new(0));
        let starting = Starting::default();
        assert!(starting.take().is_none());
        let same = starting.clone();
        for _ in 0..2 {
            let started = started.clone();
            same.begin(move || {
                started.fetch_add(1, Ordering::SeqCst);
                Ok(Box::new(NoFilter::default()))
            });
        }
        drop(same);
        assert_eq!(starting.take().unwrap().unwrap().name(), "none");
        // A later start does nothing.
        starting.begin(|| Err(EngineError::Unavailable("twice".to_owned())));
        assert!(starting.take().is_none());
        assert_eq!(started.load(Ordering::SeqCst), 1);
        let starting = Starting::default();
        starting.begin(|| Err(EngineError::Unavailable("no card".to_owned())));
        let error = starting.take().unwrap().err().unwrap();
        assert_eq!(error.to_string(), "no card");
        // An engine that nobody takes is waited for.
        let starting = Starting::default();
        let ended = started.clone();
        starting.begin(move || {
            thread::sleep(std::time::Duration::from_millis(50));
            ended.fetch_add(1, Ordering::SeqCst);
            Ok(Box::new(NoFilter::default()))
        });
        drop(starting);
        assert_eq!(started.load(Ordering::SeqCst), 2);
    }
}
