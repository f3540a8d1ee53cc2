//! Errors of the library as exceptions of Python: its own sentences, in the class that a caller would catch.
//!
//! | what is wrong | exception |
//! |---|---|
//! | a filter, border, format, range or size | `ValueError` |
//! | a file that the system refuses | `OSError`, such as `FileNotFoundError` |
//! | too little memory | `MemoryError` |
//! | anything else: damaged files, encoders, cards | `framepipe.Error` |

use framepipe::engine::EngineError;
use framepipe::error_chain;
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

/// Options of the command line that a function here has, and its name for them.
const OWN: [(&str, &str); 14] = [
    ("border", "border"),
    ("encoder", "encoder"),
    ("encoder-option", "encoder_options"),
    ("end", "end"),
    ("engine", "engine"),
    ("filter", "filters"),
    ("overwrite", "overwrite=True"),
    ("pixel-format", "pixel_format"),
    ("planes", "planes"),
    ("preset", "preset"),
    ("quality", "quality"),
    ("start", "start"),
    ("strict", "strict=True"),
    ("threads", "threads"),
];

/// The library's sentence about an error.
fn sentence(error: &(dyn std::error::Error + 'static)) -> String {
    in_python(&error_chain::sentence(error))
}

/// A sentence of the library, which names options of the command line, with the arguments that functions
/// here have for them. Options that none has are those of `framepipe.run`.
pub(crate) fn in_python(sentence: &str) -> String {
    let sentence = sentence.replace("--engine cpu", "engine='cpu'");
    let (mut text, mut rest) = (String::new(), sentence.as_str());
    let mut others: Vec<String> = Vec::new();
    while let Some(at) = rest.find("--") {
        let (before, option) = rest.split_at(at);
        let name = option[2..]
            .split(|c: char| !c.is_ascii_lowercase() && c != '-')
            .next();
        let name = name.unwrap_or_default().trim_end_matches('-');
        let is_alone = !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '/'));
        text.push_str(before);
        rest = &option[2 + name.len()..];
        if name.is_empty() || !is_alone {
            text.push_str(&option[..2 + name.len()]);
        } else if let Some((_, own)) = OWN.iter().find(|(known, _)| *known == name) {
            text.push_str(own);
        } else {
            let argument = name.replace('-', "_");
            text.push_str(&argument);
            if !others.contains(&argument) {
                others.push(argument);
            }
        }
    }
    text.push_str(rest);
    match others.as_slice() {
        [] => {}
        [one] => text.push_str(&format!(" ({one} is an option of framepipe.run)")),
        several => text.push_str(&format!(" ({} are options of framepipe.run)", several.join(", "))),
    }
    text
}

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
            error => Failure::error(sentence(&error)),
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
