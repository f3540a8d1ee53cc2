//! Lists of files (ffconcat). FFmpeg opens each file when the one before it has ended, by ways of its own,
//! and says what is wrong with it then; here all of them are looked at beforehand.
//!
//! ```text
//!   ffconcat version 1.0
//!   file first.mkv                a word, in which \ and ' ' quote
//!   duration 2.5                  passed over here
//!   file folder/second.mkv
//! ```

use super::access::{FFCONCAT, begins_as_playlist, begins_with};
use crate::waiting::StallTimeout;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// FFmpeg's name of its reader.
pub(super) const DEMUXER: &str = "concat";

/// Bytes of all lists that are read for one, and the files that these name: lists in lists multiply.
const MOST_BYTES: u64 = 64 << 20;
const MOST_FILES: usize = 100_000;

/// Lists within lists, one in another.
const DEEPEST: u32 = 8;

/// True for a list of files.
pub(super) fn is_list(path: &Path) -> bool {
    begins_with(path, FFCONCAT)
}

/// The files that the list at `path` names, those of lists in it instead of these. An error says which of
/// them FFmpeg would not read, or that `patience` is over.
pub(super) fn files(path: &Path, patience: &StallTimeout) -> Result<Vec<PathBuf>, String> {
    files_up_to(MOST_FILES, path, patience)
}

fn files_up_to(most: usize, path: &Path, patience: &StallTimeout) -> Result<Vec<PathBuf>, String> {
    let folder = folder(path).canonicalize();
    let mut walk = Walk {
        own: folder.map_err(|cause| format!("its folder cannot be read: {cause}"))?,
        most,
        patience,
        bytes: 0,
        named: 0,
        found: Vec::new(),
    };
    walk.add(path, DEEPEST)?;
    Ok(walk.found)
}

/// The file that FFmpeg could not open, if its reader of lists says that in `line`.
pub(in crate::media::ffmpeg) fn not_opened(line: &str) -> Option<&str> {
    let file = line.strip_prefix("Impossible to open '")?.strip_suffix('\'')?;
    Some(file.strip_prefix("file:").unwrap_or(file))
}

/// The folder that names in the list at `path` are counted from.
fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The lines of a list or a playlist, as FFmpeg ends them.
pub(super) fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| matches!(byte, b'\n' | b'\r' | 0))
}

/// A walk over a list and the lists in it.
struct Walk<'a> {
    /// The folder in which all files lie.
    own: PathBuf,
    /// Files and lists that may be named.
    most: usize,
    patience: &'a StallTimeout,
    /// Bytes of lists that were read.
    bytes: u64,
    /// Files and lists that were named.
    named: usize,
    found: Vec<PathBuf>,
}

impl Walk<'_> {
    /// Adds the files of the list at `path`.
    fn add(&mut self, path: &Path, deepest: u32) -> Result<(), String> {
        let mut text = Vec::new();
        let left = MOST_BYTES - self.bytes;
        let read = File::open(path).and_then(|file| file.take(left + 1).read_to_end(&mut text));
        read.map_err(|cause| format!("it cannot be read: {cause}"))?;
        if text.len() as u64 > left {
            return Err(format!(
                "it is a list of files of more than {} MiB, with the lists in it",
                MOST_BYTES >> 20
            ));
        }
        self.bytes += text.len() as u64;
        for (number, line) in (1..).zip(lines(&text)) {
            let Some(name) = file_named(line) else {
                continue;
            };
            self.named += 1;
            if self.named > self.most {
                return Err(format!(
                    "it is a list of more than {} files, with those of the lists in it",
                    self.most
                ));
            }
            if self.patience.is_over() {
                return Err("the files that it names could not be looked at in time".to_owned());
            }
            let name = String::from_utf8_lossy(&name).into_owned();
            let named = format!("it names {name} (line {number})");
            if !is_safe(&name) {
                return Err(format!(
                    "{named}, and of a list FFmpeg reads only files in its own folder, in whose names are \
                     no characters but letters, digits, _, -, / and, not at the beginning, a full stop"
                ));
            }
            let file = path.with_file_name("").join(&name);
            look_at(&file, &self.own).map_err(|problem| format!("{named}, {problem}"))?;
            match is_list(&file) {
                true if deepest == 0 => return Err(format!("{named}, and lists are nested too deeply")),
                true => self.add(&file, deepest - 1)?,
                false => self.found.push(file),
            }
        }
        Ok(())
    }
}

/// Why a file in a list cannot be read, as the end of a sentence. It must lie in the folder `own`.
fn look_at(file: &Path, own: &Path) -> Result<(), String> {
    let unreadable = |cause: std::io::Error| match cause.kind() {
        std::io::ErrorKind::NotFound => "and there is no such file".to_owned(),
        _ => format!("which cannot be read: {cause}"),
    };
    let facts = file.metadata().map_err(unreadable)?;
    let place = file.canonicalize().map_err(unreadable)?;
    if !place.starts_with(own) {
        return Err("a link to a file that does not lie in the list's own folder".to_owned());
    }
    if facts.is_dir() {
        return Err("which is a folder".to_owned());
    }
    if facts.is_file() {
        File::open(file).map_err(unreadable)?;
        if facts.len() == 0 {
            return Err("which is empty".to_owned());
        }
    }
    match begins_as_playlist(file) {
        true => Err("a playlist (HLS), and such are not read within a list".to_owned()),
        false => Ok(()),
    }
}

/// The name in a line that names a file, as FFmpeg reads it.
fn file_named(line: &[u8]) -> Option<Vec<u8>> {
    let line = line.trim_ascii_start();
    let end = line.iter().position(|&byte| is_space(byte)).unwrap_or(line.len());
    let (keyword, rest) = line.split_at(end);
    if keyword != b"file" {
        return None;
    }
    let (mut name, mut is_quoted) = (Vec::new(), false);
    let mut bytes = rest.iter().copied().skip_while(|&byte| is_space(byte));
    while let Some(byte) = bytes.next() {
        match byte {
            b'\'' => is_quoted = !is_quoted,
            b'\\' if !is_quoted => name.extend(bytes.next()),
            byte if is_space(byte) && !is_quoted => break,
            byte => name.push(byte),
        }
    }
    Some(name)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// True for names that FFmpeg takes in lists: they lead into no other folder, and to no protocol.
fn is_safe(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.split('/')
        .all(|part| part.starts_with(is_plain) && part.chars().all(|c| is_plain(c) || c == '.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn names_are_read_as_ffmpeg_reads_them() {
        let name =
            |line: &str| file_named(line.as_bytes()).map(|name| String::from_utf8_lossy(&name).into_owned());
        for (line, expected) in [
            ("file a.mkv", "a.mkv"),
            ("  file\t'a b'c.mkv  # more", "a bc.mkv"),
            ("file a\\ b.mkv", "a b.mkv"),
            ("file 'it'\\''s.mkv'", "it's.mkv"),
            ("file ''", ""),
        ] {
            assert_eq!(name(line).as_deref(), Some(expected), "{line}");
        }
        for line in [
            "",
            "# file a.mkv",
            "duration 3",
            "files a",
            "file_packet_meta a b",
        ] {
            assert_eq!(name(line), None, "{line}");
        }
    }

    #[test]
    fn lists_that_multiply_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| std::fs::write(folder.path().join(name), content).unwrap();
        let list = |names: &str| format!("ffconcat version 1.0\n{names}");
        write("a.mkv", "x");
        for level in 0..DEEPEST {
            let next = match level {
                0 => "a.mkv".to_owned(),
                _ => format!("{}.ffconcat", level - 1),
            };
            write(
                &format!("{level}.ffconcat"),
                &list(&format!("file {next}\n").repeat(20)),
            );
        }
        let ask = |name: &str, limit: Option<Duration>| {
            files_up_to(1000, &folder.path().join(name), &StallTimeout::new(limit))
        };
        assert_eq!(ask("1.ffconcat", None).unwrap().len(), 400);
        let refused = ask("7.ffconcat", None).unwrap_err();
        assert!(refused.contains("more than 1000 files"), "{refused}");
        assert!(
            ask("7.ffconcat", Some(Duration::ZERO))
                .unwrap_err()
                .contains("in time")
        );
        // Few files, and many bytes.
        write("long.ffconcat", &list(&"# a remark\n".repeat(1 << 20)));
        write("twice.ffconcat", &list(&"file long.ffconcat\n".repeat(6)));
        let refused = ask("twice.ffconcat", None).unwrap_err();
        assert!(refused.contains("more than 64 MiB"), "{refused}");
    }

    #[test]
    fn names_that_lead_elsewhere_are_not_safe() {
        for name in ["a.mkv", "b/a-1_2.mkv", "a..b", "0/1.2.3"] {
            assert!(is_safe(name), "{name}");
        }
        for name in [
            "../a", "/a", "a/../b", ".a", "a b", "file:a", "http://a", "", "a//b",
        ] {
            assert!(!is_safe(name), "{name}");
        }
    }
}
