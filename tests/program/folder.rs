//! A folder for a test's files, which goes when the test ends.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) struct Folder(tempfile::TempDir);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn name(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        fs::write(self.at(name), content).unwrap();
        self.name(name)
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Names of the files that a run has left unfinished.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let names = names.map(|name| name.to_string_lossy().into_owned());
        names.filter(|name| name.contains(".part-")).collect()
    }
}
