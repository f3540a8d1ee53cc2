//! Errors of the library as exceptions of Python: its own sentences, in the class that a caller would catch.
//!
//! | what is wrong | exception |
//! |---|---|
//! | a filter, border, format, range or size | `ValueError` |
//! | a file that the system refuses | `OSError`, such as `FileNotFoundError` |
//! | too little memory | `MemoryError` |
//! | anything else: damaged files, encoders, cards | `framepipe.Error` |

use framepipe::engine::EngineError;
use framepipe::error_chain::sentence;
use framepipe::filter::{FilterError, NoSuchPlane, UnknownBorder, UnknownPlanes};
use framepipe::frame::{AllocationError, InvalidPoint, LayoutError, UnknownPixelFormat};
use framepipe::pipeline::PipelineError;
use framepipe::sink::SinkError;
use framepipe::source::SourceError;
use framepipe::source::range::InvalidRange;
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, create_exception};
use std::io;

create_exception!(
    framepipe,
    Error,
    PyRuntimeError,
    "What went wrong with a file, an encoder or a card, in the program's own sentence."
);

/// An exception to be raised.
#[derive(Debug)]
pub(crate) struct Failure(PyErr);

impl Failure {
    /// A value that cannot be.
    pub(crate) fn value(sentence: impl Into<String>) -> Failure {
        Failure(PyValueError::new_err(sentence.into()))
    }

    /// Something that did not work.
    pub(crate) fn error(sentence: impl Into<String>) -> Failure {
        Failure(Error::new_err(sentence.into()))
    }

    /// An error of the system with a sentence that names the file.
    fn system(cause: &io::Error, sentence: String) -> Failure {
        Failure(io::Error::new(cause.kind(), sentence).into())
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        failure.0
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Failure {
        Failure(error)
    }
}

/// Errors that are always about a value.
macro_rules! values {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(error: $error) -> Failure {
                Failure::value(sentence(&error))
            }
        })*
    };
}

values!(
    FilterError,
    NoSuchPlane,
    UnknownBorder,
    UnknownPlanes,
    UnknownPixelFormat,
    LayoutError,
    InvalidPoint,
    InvalidRange
);

impl From<AllocationError> for Failure {
    fn from(error: AllocationError) -> Failure {
        Failure(PyMemoryError::new_err(error.to_string()))
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Failure {
        match error {
            EngineError::Allocation(error) => error.into(),
            EngineError::Plan(_)
            | EngineError::Layout(_)
            | EngineError::Mismatch { .. }
            | EngineError::Region(_) => Failure::value(sentence(&error)),
            // Sentences about a missing card name an option of the command line.
            error => Failure::error(sentence(&error).replace("--engine cpu", "engine='cpu'")),
        }
    }
}

impl From<SourceError> for Failure {
    fn from(error: SourceError) -> Failure {
        match &error {
            SourceError::Io { cause, .. } => Failure::system(cause, sentence(&error)),
            _ => Failure::error(sentence(&error)),
        }
    }
}

impl From<SinkError> for Failure {
    fn from(error: SinkError) -> Failure {
        match &error {
            SinkError::Io { cause, .. } => Failure::system(cause, sentence(&error)),
            // The program's sentence names an option of the command line.
            SinkError::Exists { path } => {
                let kind = io::ErrorKind::AlreadyExists;
                Failure::system(&kind.into(), format!("{path} exists; overwrite=True replaces it"))
            }
            _ => Failure::error(sentence(&error)),
        }
    }
}

impl From<PipelineError> for Failure {
    fn from(error: PipelineError) -> Failure {
        match error {
            PipelineError::Source(error) => error.into(),
            PipelineError::Sink(error) => error.into(),
            PipelineError::Memory(error) => error.into(),
            error => Failure::error(sentence(&error)),
        }
    }
}
