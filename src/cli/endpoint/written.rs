//! The files that a run writes into its output, and what they would replace: a file that the run reads, or
//! another of its own.

use super::files::{Files, options_of};
use super::output::Output;
use super::path::{identity, place};
use crate::cli::Failure;
use framepipe::sink::images::Naming;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

/// The files of an output.
pub(crate) struct WrittenFiles {
    folder: Option<Folder>,
    /// Names that are there already, by device and inode of what they lead to.
    there: HashMap<(u64, u64), PathBuf>,
    /// Names that are links, and a single name, by where the file is that they lead to, there or not.
    places: HashMap<PathBuf, PathBuf>,
}

/// The names in a folder.
struct Folder {
    path: PathBuf,
    /// The same without links; `None` of one that is missing.
    real: Option<PathBuf>,
    naming: Naming,
    /// `None` where frames have no files of their own, so that any number may be a name.
    names: Option<HashSet<OsString>>,
}

impl Folder {
    fn has(&self, name: &OsStr) -> bool {
        match &self.names {
            Some(names) => names.contains(name),
            None => self.naming.is_name(name),
        }
    }

    /// The name of the file at `place`, if it is one in the folder.
    fn name_at<'b>(&self, place: &'b Path) -> Option<&'b OsStr> {
        let name = place.file_name().filter(|name| self.has(name))?;
        (place.parent() == self.real.as_deref()).then_some(name)
    }
}

impl WrittenFiles {
    /// What is written to `output` of `files`, if the input is image files; `start` is the first number if
    /// they have none. An error if two of the names are one file.
    pub(crate) fn new(
        output: &Output,
        files: Option<&Files>,
        start: Option<i64>,
    ) -> Result<WrittenFiles, Failure> {
        let mut written = WrittenFiles {
            folder: folder(output, files, start),
            there: HashMap::new(),
            places: HashMap::new(),
        };
        let Some(folder) = &written.folder else {
            if let (Some(id), Some(path)) = (output.written_identity(), output.path()) {
                written.there.insert(id, path.to_owned());
            }
            let path = output.path().filter(|_| !output.is_stdout());
            let lead = path.and_then(|path| Some((place(path)?, path.to_owned())));
            written.places.extend(lead);
            return Ok(written);
        };
        // A folder that is missing has no names yet.
        for entry in fs::read_dir(&folder.path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            if !folder.has(&name) {
                continue;
            }
            let path = folder.path.join(&name);
            let id = identity(&path);
            written.there.extend(id.map(|id| (id, path.clone())));
            let Some(place) = place(&path).filter(|_| path.is_symlink()) else {
                continue;
            };
            let other = folder.name_at(&place).map(|name| folder.path.join(name));
            if let Some(other) = written.places.insert(place, path.clone()).or(other) {
                return Err(Failure::Usage(format!(
                    "{} and {} are one file, and two frames would be written to it; choose another output",
                    path.display(),
                    other.display()
                )));
            }
        }
        Ok(written)
    }

    /// True if a file is there already under one of the names.
    pub(crate) fn replaces_any(&self) -> bool {
        !self.there.is_empty()
    }

    /// Refuses to replace one of the files that are read, each with what it is.
    pub(crate) fn check_read<'a, 'b>(
        &self,
        read: impl IntoIterator<Item = (&'a str, &'b Path)>,
    ) -> Result<(), Failure> {
        if !self.replaces_any() {
            return Ok(());
        }
        for (noun, file) in read {
            if let Some(name) = identity(file).and_then(|id| self.there.get(&id)) {
                return Err(Failure::Usage(format!(
                    "{} is both {noun} and output; choose another output",
                    name.display()
                )));
            }
        }
        Ok(())
    }

    /// True if `file`, which may be missing, is a file of the output.
    pub(crate) fn has(&self, file: &Path) -> bool {
        if identity(file).is_some_and(|id| self.there.contains_key(&id)) {
            return true;
        }
        let Some(place) = place(file) else { return false };
        let is_name = |folder: &Folder| folder.name_at(&place).is_some();
        self.places.contains_key(&place) || self.folder.as_ref().is_some_and(is_name)
    }
}

/// How the output's files are named in their folder, if it has several.
fn folder(output: &Output, files: Option<&Files>, start: Option<i64>) -> Option<Folder> {
    let Output::Images(target) = output else {
        return None;
    };
    let options = options_of(files, start);
    // The sink has the better error for a bad name.
    let naming = Naming::new(target, &options).ok()?;
    if naming.is_single() {
        return None;
    }
    let name = |(sequence, file): (u64, &PathBuf)| {
        let (path, _) = naming.name(sequence, Some(file));
        path.file_name().map(OsStr::to_owned)
    };
    let path = naming.folder().unwrap_or(Path::new(".")).to_owned();
    Some(Folder {
        real: path.canonicalize().ok(),
        path,
        names: files.map(|files| (0..).zip(files.paths.iter()).filter_map(name).collect()),
        naming,
    })
}
