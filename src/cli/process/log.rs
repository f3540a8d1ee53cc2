//! The log on stderr.

use framepipe::engine::EXPLAIN_TARGET;
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;

/// Starts the log: errors only, more with `-v`, the choices of engines with `explain`; the environment
/// variable RUST_LOG has precedence.
pub(crate) fn start(verbosity: u8, explain: bool) {
    let level = match verbosity {
        0 => "error",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let explanation = if explain {
        format!(",{EXPLAIN_TARGET}=info")
    } else {
        String::new()
    };
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("{level}{explanation}")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
