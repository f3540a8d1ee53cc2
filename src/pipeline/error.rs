//! Why a run failed, and which of several failures is reported.

use crate::engine::EngineError;
use crate::frame::AllocationError;
use crate::report::Stage;
use crate::sink::SinkError;
use crate::source::SourceError;
use std::time::Instant;

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PipelineError {
    /// The input could not be read.
    #[error(transparent)]
    Source(SourceError),
    /// The filter could not be applied.
    #[error("cannot filter frame {sequence}: {cause}")]
    Engine {
        /// The frame's number, counted from 0.
        sequence: u64,
        /// Why.
        #[source]
        cause: EngineError,
    },
    /// The output could not be written.
    #[error(transparent)]
    Sink(SinkError),
    /// No memory for the frame buffers.
    #[error(transparent)]
    Memory(#[from] AllocationError),
    /// The run is strict, and source or engine warn of something.
    #[error("{problem}")]
    Strict {
        /// The warnings.
        problem: String,
    },
    /// The input holds no frame.
    #[error("the input has no frames ({input})")]
    NoFrames {
        /// The source's description.
        input: String,
    },
    /// A stage lost or made up frames: a defect of framepipe.
    #[error(
        "{decoded} frames were read, {filtered} filtered and {written} written; the output is discarded. \
         This is a defect of framepipe; please report it"
    )]
    FrameCount {
        /// Frames that the source gave.
        decoded: u64,
        /// Frames that the engine gave back.
        filtered: u64,
        /// Frames that the sink took.
        written: u64,
    },
    /// A stage gave frames out of order: a defect of framepipe.
    #[error(
        "the {stage} stage gave frame {found} where frame {expected} was due; the output is discarded. This \
         is a defect of framepipe; please report it"
    )]
    Order {
        /// The stage.
        stage: Stage,
        /// The number that was due.
        expected: u64,
        /// The number that came.
        found: u64,
    },
    /// A stage's thread panicked: a defect of framepipe or of a library.
    #[error(
        "the {stage} stage broke down: {message}; the output is discarded. This is a defect; please report it"
    )]
    Panicked {
        /// The stage.
        stage: Stage,
        /// The panic's message.
        message: String,
    },
    /// The system gave no thread.
    #[error("cannot start a thread for the {stage} stage: {cause}")]
    Thread {
        /// The stage.
        stage: Stage,
        /// What the system said.
        #[source]
        cause: std::io::Error,
    },
    /// The user ended the run at once.
    #[error("the run was abandoned; of its output nothing stays but whole image files")]
    Abandoned,
}

/// Why one stage's thread ended early.
#[derive(Debug)]
pub(super) enum Halt {
    /// Another stage failed, or the user abandoned the run.
    Stopped,
    /// The stage's own failure, and when it was noticed.
    Failed(Instant, PipelineError),
}

impl Halt {
    /// True if warnings are the cause.
    pub(super) fn is_strict(&self) -> bool {
        matches!(self, Halt::Failed(_, PipelineError::Strict { .. }))
    }
}

impl From<PipelineError> for Halt {
    fn from(error: PipelineError) -> Self {
        Halt::Failed(Instant::now(), error)
    }
}

impl From<SourceError> for Halt {
    fn from(error: SourceError) -> Self {
        match error {
            SourceError::Stopped(_) => Halt::Stopped,
            error => PipelineError::Source(error).into(),
        }
    }
}

impl From<SinkError> for Halt {
    fn from(error: SinkError) -> Self {
        match error {
            SinkError::Stopped(_) => Halt::Stopped,
            error => PipelineError::Sink(error).into(),
        }
    }
}

/// Picks the error to report: an abandon first, else the earliest failure. `Halt::Stopped` is a consequence,
/// never the cause.
pub(super) fn first_cause(halts: Vec<Halt>, user_abandoned: bool) -> Option<PipelineError> {
    if halts.is_empty() {
        return None;
    }
    if user_abandoned {
        return Some(PipelineError::Abandoned);
    }
    halts
        .into_iter()
        .filter_map(|halt| match halt {
            Halt::Stopped => None,
            Halt::Failed(at, error) => Some((at, error)),
        })
        .min_by_key(|&(at, _)| at)
        .map(|(_, error)| error)
        .or(Some(PipelineError::Abandoned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_earliest_real_cause_is_reported() {
        let now = Instant::now();
        let failure = |ms: u64, sequence: u64| {
            Halt::Failed(
                now + Duration::from_millis(ms),
                PipelineError::Order {
                    stage: Stage::Engine,
                    expected: 0,
                    found: sequence,
                },
            )
        };
        let reported = first_cause(
            vec![Halt::Stopped, failure(5, 1), failure(2, 2), Halt::Stopped],
            false,
        );
        assert!(
            matches!(reported, Some(PipelineError::Order { found: 2, .. })),
            "{reported:?}"
        );
        assert!(first_cause(Vec::new(), false).is_none());
        let reported = first_cause(vec![failure(1, 1)], true);
        assert!(matches!(reported, Some(PipelineError::Abandoned)));
    }
}
