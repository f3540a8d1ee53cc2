//! Threads of stages: their start, and a panic inside one as a failure.

use crate::pipeline::error::{Halt, PipelineError};
use crate::pipeline::stop::Stop;
use crate::report::Stage;
use crate::shortage::thread_error;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Starts a thread that has its stage's name.
pub(in crate::pipeline) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    stage: Stage,
    body: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, PipelineError> {
    Builder::new()
        .name(stage.name().to_owned())
        .spawn_scoped(scope, body)
        .map_err(|cause| PipelineError::Thread {
            stage,
            cause: thread_error(cause),
        })
}

/// Runs a stage's body; if it fails or panics, closes the gate before anything that the caller owns is
/// dropped.
pub(in crate::pipeline) fn guarded<T>(
    stage: Stage,
    stop: &Stop,
    body: impl FnOnce() -> Result<T, Halt>,
) -> Result<T, Halt> {
    let result =
        catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(panicked(stage, payload.as_ref())));
    if result.is_err() {
        stop.fail();
    }
    result
}

/// A thread's panic as a failure of its stage.
pub(in crate::pipeline) fn panicked(stage: Stage, payload: &(dyn Any + Send)) -> Halt {
    let message = payload
        .downcast_ref::<&str>()
        .map(|&text| text.to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it gave no reason".to_owned());
    PipelineError::Panicked { stage, message }.into()
}
