//! Where and how a run is made, for its report: the command line, the machine, the versions.

use framepipe::engine::cpu::InstructionSet;
use framepipe::program::bench::{now, processor};
use framepipe::report::Origin;
use framepipe::source::video::ffmpeg_version;
use framepipe::wording::counted;

/// This process's origin.
pub(crate) fn here() -> Origin {
    let words: Vec<String> = std::env::args_os()
        .map(|word| quoted(&word.to_string_lossy()))
        .collect();
    Origin {
        command: words.join(" "),
        machine: machine(),
        date: now(),
        versions: format!(
            "framepipe {}, FFmpeg {}",
            env!("CARGO_PKG_VERSION"),
            ffmpeg_version()
        ),
    }
}

/// Processor, cores that this process may use, and vector instructions.
pub(crate) fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cores = counted(cores as u64, "core");
    format!("{}, {cores}, {}", processor(), InstructionSet::detect())
}

/// A word quoted for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=+./:,%@".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(quoted("gaussian:sigma=2"), "gaussian:sigma=2");
        assert_eq!(quoted("my film.mp4"), "'my film.mp4'");
        assert_eq!(quoted("mask:rows=1 2;3 4"), "'mask:rows=1 2;3 4'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
