//! The progress bar on a terminal.

use framepipe::pipeline::Progress;
use framepipe::report::Stage;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

const EVERY: Duration = Duration::from_millis(200);

/// Runs `work` while a bar on stderr shows how far `progress` is; without a bar if stderr is no terminal or
/// `quiet` is set. `frames` is the number of frames that will come, if that is known; each of them goes
/// through the pipeline in `parts`.
pub(crate) fn show<T: Send>(
    progress: &Progress,
    frames: Option<u64>,
    parts: u64,
    quiet: bool,
    work: impl FnOnce() -> T + Send,
) -> T {
    if quiet || !std::io::stderr().is_terminal() {
        return work();
    }
    let bar = ProgressBar::with_draw_target(frames, ProgressDrawTarget::stderr());
    let template = match frames {
        Some(_) => "{bar:30} {pos}/{len} frames  {per_sec}  {eta} left  {msg}",
        None => "{spinner} {pos} frames  {per_sec}  {elapsed}  {msg}",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    let (done, ended) = channel::<()>();
    std::thread::scope(|scope| {
        let bar = &bar;
        let draw = move || {
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(EVERY) {
                bar.set_position(progress.frames(Stage::Encode) / parts);
                if let Some(stage) = progress.busiest() {
                    bar.set_message(format!("busiest: {stage}"));
                }
            }
            bar.finish_and_clear();
        };
        // A run goes on without a bar where no thread can be had for it.
        let _ = std::thread::Builder::new().spawn_scoped(scope, draw);
        let result = work();
        drop(done);
        result
    })
}
