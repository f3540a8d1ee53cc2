//! What a sink's threads gather beside the files: names, remarks, the kinds of the files.

use crate::media::still::ImageKind;
use crate::sink::atomic_file::AtomicFile;
use crate::wording::and_list;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;

/// What the threads of a sink write together.
#[derive(Default)]
pub(super) struct Shared {
    /// Names given so far in a directory, where two source files may want the same.
    pub(super) names: HashSet<PathBuf>,
    /// Sentences, each once.
    pub(super) notes: BTreeSet<String>,
    pub(super) warnings: BTreeSet<String>,
    /// The kinds of the files, each once.
    pub(super) kinds: Vec<ImageKind>,
    /// The only file of a single-file target: put in its place at the end, when it is known to be the only
    /// one.
    pub(super) single: Option<AtomicFile>,
}

impl Shared {
    pub(super) fn note_kind(&mut self, kind: ImageKind) {
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    /// The names of the kinds, in the order of the alphabet, since threads write in any.
    pub(super) fn kinds(&self) -> String {
        let mut names: Vec<String> = self.kinds.iter().map(ToString::to_string).collect();
        names.sort_unstable();
        and_list(&names)
    }
}
