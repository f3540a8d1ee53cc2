//! The log on stderr.

use crate::cli::show::escape;
use framepipe::engine::EXPLAIN_TARGET;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use tracing_subscriber::EnvFilter;

/// The environment variable that has precedence over `-v`.
const VARIABLE: &str = EnvFilter::DEFAULT_ENV;

/// Starts the log: errors only, more with `-v`, the choices of engines with `explain`; the environment
/// variable RUST_LOG has precedence.
pub(crate) fn start(verbosity: u8, explain: bool) {
    let level = match verbosity {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let of_environment = std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let parsed = of_environment
        .as_deref()
        .map(|text| EnvFilter::builder().parse(text));
    let mut filter = match parsed {
        Some(Ok(filter)) => filter,
        unusable => {
            if let Some(Err(problem)) = unusable {
                let text = format!("warning: {VARIABLE} is not understood, and has no effect: {problem}");
                // A closed stderr is no reason to stop.
                let _ = writeln!(std::io::stderr(), "{}", escape::line(&text));
            }
            EnvFilter::new(level)
        }
    };
    if explain && let Ok(directive) = format!("{EXPLAIN_TARGET}=info").parse() {
        filter = filter.add_directive(directive);
    }
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// Names of the encoder that writes a log of its own, 32 lines before the first frame.
const LOUD: [&str; 2] = ["libsvtav1", "av1"];

/// What that encoder takes the level of its log from; 1 is errors.
const LOUD_LEVEL: (&str, &str) = ("SVT_LOG", "1");

/// Starts the program once more where `encoder` would fill the terminal, with a level for its log in the
/// environment, which a process cannot change safely for itself. Where that fails the log is shown.
pub(crate) fn keep_quiet(encoder: Option<&str>) {
    let (name, level) = LOUD_LEVEL;
    let is_loud = |encoder: &str| LOUD.iter().any(|loud| loud.eq_ignore_ascii_case(encoder));
    if !encoder.is_some_and(is_loud) || std::env::var_os(name).is_some() {
        return;
    }
    let mut words = std::env::args_os();
    let (Some(called), Ok(program)) = (words.next(), std::env::current_exe()) else {
        return;
    };
    let problem = Command::new(program)
        .arg0(called)
        .args(words)
        .env(name, level)
        .exec();
    tracing::debug!("the encoder's log is shown: {problem}");
}
