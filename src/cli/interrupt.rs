//! Ctrl-C: the first ends the run gently, the second abandons it, the third ends the program where it stands.

use super::Failure;
use framepipe::pipeline::Stop;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Ties SIGINT, SIGTERM and SIGHUP to `stop`.
pub(crate) fn watch(stop: &Stop, quiet: bool) -> Result<(), Failure> {
    let stop = stop.clone();
    let count = AtomicUsize::new(0);
    let say = move |text: &str| {
        if !quiet {
            let _ = writeln!(std::io::stderr(), "\n{text}");
        }
    };
    ctrlc::set_handler(move || match count.fetch_add(1, Ordering::Relaxed) {
        0 => {
            say("stopping: what is in flight is being finished; Ctrl-C again abandons it");
            stop.finish();
        }
        1 => {
            say("abandoning the run");
            stop.abandon();
        }
        // Some stage hangs in a system call. Temporary files stay behind, nothing lies under a final name.
        _ => std::process::exit(130),
    })?;
    Ok(())
}
