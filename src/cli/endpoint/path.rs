//! Paths that may lead to one file.

use framepipe::sink::atomic_file::behind_links;
use std::fs::{File, Metadata};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// The folder of a file.
pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

/// Device and inode of a file or directory, behind links. `None` for pipes and devices, which nothing
/// overwrites.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    let facts = std::fs::metadata(path).ok()?;
    (facts.is_file() || facts.is_dir()).then(|| (facts.dev(), facts.ino()))
}

/// The same of a file that is open.
pub(crate) fn open_identity(file: impl AsFd) -> Option<(u64, u64)> {
    let facts = facts_of_open(file)?;
    facts.is_file().then(|| (facts.dev(), facts.ino()))
}

/// Device and inode of what is written to at `path`: a file, a pipe or a socket, behind links. `None` for
/// terminals and other devices, where nothing written together is lost.
pub(crate) fn written_identity(path: &Path) -> Option<(u64, u64)> {
    written(&std::fs::metadata(path).ok()?)
}

/// The same of a stream that is open.
pub(crate) fn open_written_identity(stream: impl AsFd) -> Option<(u64, u64)> {
    written(&facts_of_open(stream)?)
}

fn facts_of_open(file: impl AsFd) -> Option<Metadata> {
    let copy = file.as_fd().try_clone_to_owned().ok()?;
    File::from(copy).metadata().ok()
}

fn written(facts: &Metadata) -> Option<(u64, u64)> {
    let kind = facts.file_type();
    let keeps = kind.is_file() || kind.is_fifo() || kind.is_socket();
    keeps.then(|| (facts.dev(), facts.ino()))
}

/// Where the file is, or will be, that a name leads to behind links; `None` where there is no such folder.
pub(crate) fn place(path: &Path) -> Option<PathBuf> {
    let end = behind_links(path);
    Some(parent(&end).canonicalize().ok()?.join(end.file_name()?))
}

/// True if both names are, or will be, names of one file: they lead to the same one, or to the same last part
/// in the same folder.
pub(crate) fn names_same_file(a: &Path, b: &Path) -> bool {
    let in_one_folder = || place(a).is_some_and(|end| place(b) == Some(end));
    a == b || same_file(a, b) || in_one_folder()
}

/// True if both paths lead to the same existing file or directory.
pub(crate) fn same_file(a: &Path, b: &Path) -> bool {
    identity(a).is_some_and(|id| identity(b) == Some(id))
}
