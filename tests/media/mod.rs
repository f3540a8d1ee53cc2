//! FFmpeg's program, which makes inputs and judges outputs.

use std::process::Command;

/// What a run of ffmpeg that must succeed writes to its standard output; its files are overwritten.
pub(crate) fn ffmpeg(arguments: &[&str]) -> Vec<u8> {
    let done = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "ffmpeg {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    done.stdout
}
