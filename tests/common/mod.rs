//! What the tests of the program share: runs of it, and FFmpeg's programs, which make inputs and judge
//! outputs.
#![allow(dead_code, clippy::unwrap_used)]

mod whole_matrix;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;

#[allow(unused_imports)]
pub(crate) use whole_matrix::is_whole_matrix;

/// The program that is tested.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_framepipe");

/// A run of the program that reads nothing from standard input, and whose output is kept.
pub(crate) fn framepipe(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env_remove("RUST_LOG");
    command
}

/// Bytes as text, whatever they are.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a run wrote to standard error.
pub(crate) fn said(done: &Output) -> String {
    text(&done.stderr)
}

/// Sends a signal, such as INT, to a run.
pub(crate) fn send(signal: &str, child: &Child) {
    let command = format!("kill -{signal} {}", child.id());
    let status = Command::new("sh").args(["-c", &command]).status().unwrap();
    assert!(status.success());
}

/// The names in a folder, in order.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// What a run of ffmpeg that must succeed writes to its standard output; its files are overwritten.
pub(crate) fn ffmpeg(arguments: &[&str]) -> Vec<u8> {
    let done = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "ffmpeg {arguments:?}: {}", said(&done));
    done.stdout
}

/// A run of ffprobe. It takes a tenth of a second to start, so that the same is asked of the same bytes once.
pub(crate) fn ffprobe(path: &Path, arguments: &[&str]) -> Output {
    static KNOWN: Mutex<BTreeMap<(u64, String), Output>> = Mutex::new(BTreeMap::new());
    let mut hash = DefaultHasher::new();
    fs::read(path).ok().hash(&mut hash);
    let key = (hash.finish(), format!("{arguments:?} {}", path.display()));
    if let Some(known) = KNOWN.lock().unwrap().get(&key).filter(|_| path.is_file()) {
        return known.clone();
    }
    let done = Command::new("ffprobe")
        .args(arguments)
        .arg(path)
        .output()
        .unwrap();
    KNOWN.lock().unwrap().insert(key, done.clone());
    done
}

/// What ffprobe says of a file.
pub(crate) fn probe(path: &Path, arguments: &[&str]) -> Value {
    let done = ffprobe(path, &[&["-v", "error", "-of", "json"], arguments].concat());
    assert!(done.status.success(), "{}: {}", path.display(), said(&done));
    serde_json::from_slice(&done.stdout).unwrap()
}
