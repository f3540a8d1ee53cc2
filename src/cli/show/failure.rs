//! How the program ends: exit codes, and errors as sentences.

use super::escape;
use framepipe::engine::EngineError;
use framepipe::error_chain::sentence;
use framepipe::pipeline::PipelineError;
use framepipe::sink::SinkError;
use framepipe::source::SourceError;
use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

/// The exit code of a part that may succeed elsewhere or later: EX_TEMPFAIL of sysexits.h.
pub(crate) const ELSEWHERE: u8 = 75;

/// Why the program does not exit with 0.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line asks for something impossible; exit code 2.
    Usage(String),
    /// An error; exit code 1.
    Failed(String),
    /// An error that may be temporary, or that another machine does not have: a full disk, a lost card, too
    /// little memory, an error of the system; exit code 1.
    Passing(String),
    /// The same for a part of a job; exit code 75, which means: try elsewhere or later.
    Elsewhere(String),
    /// Several errors, a line each; exit code 1.
    Listed(String, Vec<String>),
    /// Two inputs differ, as already printed; exit code 1.
    Different,
    /// Two inputs could not be compared; exit code 2, as with `cmp` and `diff`.
    Incomparable(String),
    /// Everything is there already; exit code 0.
    NothingToDo,
    /// The user stopped it; exit code 130. Everything has been printed.
    Interrupted,
    /// The reader of standard output has gone, as `head` does; no error.
    ReaderGone,
}

impl Failure {
    /// A usage error from a typed one.
    pub(crate) fn usage(error: &dyn Error) -> Failure {
        Failure::Usage(sentence(error))
    }

    /// The reason in words.
    pub(crate) fn reason(&self) -> String {
        match self {
            Failure::Usage(text)
            | Failure::Failed(text)
            | Failure::Passing(text)
            | Failure::Elsewhere(text)
            | Failure::Incomparable(text) => text.clone(),
            Failure::Listed(text, lines) => {
                let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
                format!("{text} {}", lines.join("; "))
            }
            Failure::Different => "they differ".to_owned(),
            Failure::NothingToDo => "there is nothing to do".to_owned(),
            Failure::Interrupted => "it was interrupted".to_owned(),
            Failure::ReaderGone => "whoever read the output has gone".to_owned(),
        }
    }

    /// The reason for one file of several: with its name in front, unless the reason names it.
    pub(crate) fn about(self, name: &str) -> Failure {
        let named = |text: String| match text.contains(name) {
            true => text,
            false => format!("{name}: {text}"),
        };
        match self {
            Failure::Usage(text) => Failure::Usage(named(text)),
            Failure::Failed(text) => Failure::Failed(named(text)),
            Failure::Passing(text) => Failure::Passing(named(text)),
            failure => failure,
        }
    }
}

impl<E: Error + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        let any: &dyn Error = &error;
        match any.downcast_ref::<io::Error>() {
            Some(io) if io.kind() == io::ErrorKind::BrokenPipe => Failure::ReaderGone,
            _ if is_passing(any) => Failure::Passing(sentence(any)),
            _ => Failure::Failed(sentence(any)),
        }
    }
}

/// True if the machine is the cause and not the job, which may succeed elsewhere or later.
fn is_passing(error: &(dyn Error + 'static)) -> bool {
    let of_engine = |error: &EngineError| {
        matches!(
            error,
            EngineError::Allocation(_) | EngineError::Unavailable(_) | EngineError::Device { .. }
        )
    };
    let of_source =
        |error: &SourceError| matches!(error, SourceError::Io { .. } | SourceError::Allocation(_));
    let of_sink = |error: &SinkError| matches!(error, SinkError::Io { .. });
    if let Some(error) = error.downcast_ref::<PipelineError>() {
        return match error {
            PipelineError::Source(error) => of_source(error),
            PipelineError::Sink(error) => of_sink(error),
            PipelineError::Engine { cause, .. } => of_engine(cause),
            PipelineError::Memory(_) | PipelineError::Thread { .. } => true,
            _ => false,
        };
    }
    error.is::<io::Error>()
        || error.downcast_ref().is_some_and(of_engine)
        || error.downcast_ref().is_some_and(of_source)
        || error.downcast_ref().is_some_and(of_sink)
}

/// Prints the error, if there is one, and returns the exit code.
pub(crate) fn exit(result: Result<(), Failure>) -> ExitCode {
    // Nothing can be done if stderr is closed; the exit code remains.
    let say = |text: &str| {
        let _ = writeln!(io::stderr(), "error: {}", escape::line(text));
    };
    match result {
        Ok(()) | Err(Failure::ReaderGone | Failure::NothingToDo) => ExitCode::SUCCESS,
        Err(Failure::Failed(text) | Failure::Passing(text)) => {
            say(&text);
            ExitCode::from(1)
        }
        Err(Failure::Elsewhere(text)) => {
            say(&text);
            ExitCode::from(ELSEWHERE)
        }
        Err(Failure::Listed(text, lines)) => {
            say(&text);
            for line in lines {
                let _ = writeln!(io::stderr(), "{}", escape::line(&line));
            }
            ExitCode::from(1)
        }
        Err(Failure::Different) => ExitCode::from(1),
        Err(Failure::Usage(text) | Failure::Incomparable(text)) => {
            say(&text);
            ExitCode::from(2)
        }
        Err(Failure::Interrupted) => ExitCode::from(130),
    }
}

/// Standard output, whose errors say what it is.
pub(crate) struct NamedStdout(io::StdoutLock<'static>);

impl Write for NamedStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map_err(of_stdout)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().map_err(of_stdout)
    }
}

/// An error of standard output with its name in front, unless the reader has gone or the call is to be
/// repeated.
pub(crate) fn of_stdout(cause: io::Error) -> io::Error {
    match cause.kind() {
        io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted => cause,
        kind => io::Error::new(kind, format!("standard output: {cause}")),
    }
}

/// Lets `write` print to standard output.
pub(crate) fn to_stdout(
    write: impl FnOnce(&mut io::BufWriter<NamedStdout>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut out = io::BufWriter::new(NamedStdout(io::stdout().lock()));
    let result = write(&mut out);
    // Output from before the failure (a table of differences) must appear before the error.
    out.flush()?;
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot read a.mp4: {cause}")]
    struct Quoting {
        #[source]
        cause: io::Error,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the run failed")]
    struct Plain(#[source] Quoting);

    #[test]
    fn every_cause_is_reported_once() {
        let error = Plain(Quoting {
            cause: io::Error::other("disk on fire"),
        });
        assert_eq!(
            sentence(&error),
            "the run failed: cannot read a.mp4: disk on fire"
        );
    }

    #[test]
    fn a_reader_that_goes_away_is_no_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(matches!(failure, Failure::ReaderGone));
        let failure = Failure::from(io::Error::from(io::ErrorKind::NotFound));
        assert!(matches!(failure, Failure::Passing(_)));
    }
}
