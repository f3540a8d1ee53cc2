//! A file that appears under its own name only when it is complete.

use super::{Rules, SinkError};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The longest file name, in bytes, whose stem is repeated in the temporary name; file systems allow 255 in
/// all.
const LONGEST_NAME: usize = 200;

/// Takes what a trial writes to a pipe or device.
pub(super) const NOWHERE: &str = "/dev/null";

/// Output on its way to `target`, written beside it as `.STEM.part-PID.EXT` (the extension stays, because
/// writers choose the format by it). [`AtomicFile::commit`] renames it; dropping it instead removes it.
///
/// A target that is no regular file (a device, a named pipe) is written directly: renaming would replace the
/// device itself.
#[derive(Debug)]
pub struct AtomicFile {
    label: String,
    target: PathBuf,
    part: Option<PathBuf>,
    file: File,
    overwrite: bool,
    is_trial: bool,
}

impl AtomicFile {
    /// Makes the temporary file, empty. An existing target is an error unless `overwrite`.
    pub fn create(target: &Path, overwrite: bool) -> Result<AtomicFile, SinkError> {
        let rules = Rules {
            overwrite,
            ..Rules::default()
        };
        AtomicFile::by_rules(target, rules)
    }

    /// The same by an output's rules: a trial's file is removed by [`AtomicFile::commit`], and its target is
    /// not opened if it is no regular file.
    pub fn by_rules(target: &Path, rules: Rules) -> Result<AtomicFile, SinkError> {
        let overwrite = rules.overwrite;
        let label = target.display().to_string();
        let failed = |cause| SinkError::Io {
            path: label.clone(),
            cause,
        };
        let existing = match fs::metadata(target) {
            Ok(metadata) => Some(metadata),
            Err(e) if e.kind() == io::ErrorKind::NotFound => None,
            Err(e) => return Err(failed(e)),
        };
        if let Some(metadata) = &existing {
            if metadata.is_dir() {
                return Err(SinkError::Unsupported {
                    path: label,
                    problem: "is a directory, and a file is to be written there; add a file name".to_owned(),
                });
            }
            if !metadata.is_file() {
                // To open a pipe is to be seen at its other end.
                let opened = if rules.trial { Path::new(NOWHERE) } else { target };
                let file = OpenOptions::new().write(true).open(opened).map_err(failed)?;
                return Ok(AtomicFile {
                    label,
                    target: opened.to_owned(),
                    part: None,
                    file,
                    overwrite,
                    is_trial: rules.trial,
                });
            }
            if !overwrite {
                return Err(SinkError::Exists { path: label });
            }
        }
        // Through a symbolic link the file that it names is made or replaced, not the link.
        let place = match &existing {
            Some(_) => fs::canonicalize(target).map_err(failed)?,
            None => behind_links(target),
        };
        let Some(name) = place.file_name() else {
            return Err(SinkError::Unsupported {
                path: label,
                problem: "is not the name of a file".to_owned(),
            });
        };
        let mut attempt = 0_u32;
        let (part, file) = loop {
            let part = place.with_file_name(part_name(name, attempt));
            match OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(&part)
            {
                Ok(file) => {
                    // For `remove_left_overs`; file systems without locks have none to ask for either.
                    let _ = file.try_lock();
                    break (part, file);
                }
                // Left by a killed run whose process id has come round again, or another part of this run.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 1000 => attempt += 1,
                Err(e) => return Err(failed(e)),
            }
        };
        let made = AtomicFile {
            label,
            target: place,
            part: Some(part),
            file,
            overwrite,
            is_trial: rules.trial,
        };
        if let Some(metadata) = existing {
            // The replacement is as readable as what it replaces; where that is not allowed the default
            // serves. No bit of a program's survives: the bytes are new.
            let mode = metadata.permissions().mode() & 0o777;
            let _ = made.file.set_permissions(fs::Permissions::from_mode(mode));
        }
        Ok(made)
    }

    /// Where the bytes go until [`AtomicFile::commit`]: for writers that open files by name.
    pub fn path(&self) -> &Path {
        self.part.as_deref().unwrap_or(&self.target)
    }

    /// The open file, at its beginning.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The target's name, for messages.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// An [`SinkError::Io`] that names the target.
    pub fn failed(&self, cause: io::Error) -> SinkError {
        SinkError::Io {
            path: self.label.clone(),
            cause,
        }
    }

    /// Puts the file in its place. All bytes must have been handed to the system before; they are on the disk
    /// before the name is, so that a power cut leaves the whole file or none.
    pub fn commit(mut self) -> Result<(), SinkError> {
        if self.part.is_none() || self.is_trial {
            return Ok(());
        }
        self.file.sync_all().map_err(|cause| self.failed(cause))?;
        let loss = match self.named() {
            Some(true) => None,
            Some(false) => {
                Some("the unfinished file was replaced by somebody else's; nothing was put in its place")
            }
            None => Some("the unfinished file is gone: it or its folder was removed during the run"),
        };
        if let Some(problem) = loss {
            self.part = None;
            return Err(SinkError::Unsupported {
                path: self.label.clone(),
                problem: problem.to_owned(),
            });
        }
        let Some(part) = self.part.take() else {
            return Ok(());
        };
        if let Err(e) = rename(&part, &self.target, self.overwrite) {
            let _ = fs::remove_file(&part);
            return Err(match e.kind() {
                io::ErrorKind::AlreadyExists if !self.overwrite => SinkError::Exists {
                    path: self.label.clone(),
                },
                _ => self.failed(e),
            });
        }
        // The folder holds the name. Not every file system lets folders be synced.
        let folder = self.target.parent().filter(|p| !p.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            let _ = folder.sync_all();
        }
        Ok(())
    }

    /// Whether the temporary name still stands for the file that was made under it; `None` if it stands for
    /// nothing.
    fn named(&self) -> Option<bool> {
        let named = match fs::symlink_metadata(self.part.as_ref()?) {
            Ok(named) => named,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(_) => return Some(false),
        };
        let made = self.file.metadata().ok();
        Some(made.is_some_and(|made| (named.dev(), named.ino()) == (made.dev(), made.ino())))
    }
}

impl Drop for AtomicFile {
    fn drop(&mut self) {
        if let Some(part) = self.part.take()
            && let Err(e) = fs::remove_file(&part)
        {
            tracing::warn!("cannot remove the unfinished {}: {e}", part.display());
        }
    }
}

/// Renames; without `replace` a file that came into being meanwhile is kept and is an error.
fn rename(from: &Path, to: &Path, replace: bool) -> io::Result<()> {
    if !replace {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
            // Not every file system can: look first, then rename.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                if to.exists() {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
            }
            done => return done.map_err(io::Error::from),
        }
    }
    fs::rename(from, to)
}

fn part_name(name: &OsStr, attempt: u32) -> OsString {
    let path = Path::new(name);
    let mut part = OsString::from(".");
    let is_short = name.len() <= LONGEST_NAME;
    match path.file_stem() {
        Some(stem) if is_short => part.push(stem),
        _ => part.push("long-name"),
    }
    part.push(format!(".part-{}", std::process::id()));
    if attempt > 0 {
        part.push(format!("-{attempt}"));
    }
    // One of such a length is no container's.
    if let Some(extension) = path.extension().filter(|e| is_short || e.len() < 32) {
        part.push(".");
        part.push(extension);
    }
    part
}

/// Removes from `folder` the temporary files that runs left which were killed: those whose process is gone
/// and that nobody has locked, here or on another machine that shares the folder. What cannot be removed
/// stays.
pub fn remove_left_overs(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if process_of(&name.to_string_lossy()).is_some_and(|id| !is_running(id)) {
            tracing::debug!(
                "removing {}, which a run left that was killed",
                entry.path().display()
            );
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The process that writes, or wrote, the temporary file of this name.
fn process_of(name: &str) -> Option<u32> {
    let (_, rest) = name.strip_prefix('.')?.rsplit_once(".part-")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let ends = rest[digits..].trim_start_matches(|c: char| c == '-' || c.is_ascii_digit());
    (ends.is_empty() || ends.starts_with('.')).then(|| rest[..digits].parse().ok())?
}

/// True if there is such a process, or if that cannot be known here.
fn is_running(process: u32) -> bool {
    let processes = Path::new("/proc");
    !processes.join("self").exists() || processes.join(process.to_string()).exists()
}

/// True for the facts of a file without a byte, which no run has finished.
pub fn is_empty_file(facts: &fs::Metadata) -> bool {
    facts.is_file() && facts.len() == 0
}

/// The name that is no link behind links, whose file may be missing.
pub fn behind_links(target: &Path) -> PathBuf {
    const MOST_LINKS: usize = 40;
    let mut place = target.to_owned();
    for _ in 0..MOST_LINKS {
        let Ok(named) = fs::read_link(&place) else { break };
        place.set_file_name("");
        place.push(named);
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn what_killed_runs_left_is_removed_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let own = format!(".b.part-{}.png", std::process::id());
        let gone = u32::MAX;
        let kept = [
            own.as_str(),
            "a.part-4294967295.png",
            ".hidden.png",
            ".c.part-x.png",
        ];
        for name in kept {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        for name in [
            format!(".a.part-{gone}.png"),
            format!(".a.part-{gone}-2.png"),
            format!(".a.part-{gone}"),
        ] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_left_overs(folder.path());
        let mut kept: Vec<String> = kept.map(str::to_owned).to_vec();
        kept.sort();
        assert_eq!(names(folder.path()), kept);
    }

    #[test]
    fn a_file_appears_when_committed_and_vanishes_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("clip.mp4");
        let part = AtomicFile::create(&target, false).unwrap();
        part.file().write_all(b"half").unwrap();
        let expected = format!(".clip.part-{}.mp4", std::process::id());
        assert_eq!(names(folder.path()), [expected]);
        assert_eq!(part.path().extension().unwrap(), "mp4");
        drop(part);
        assert!(names(folder.path()).is_empty());

        let part = AtomicFile::create(&target, false).unwrap();
        let second = AtomicFile::create(&target, false).unwrap();
        assert_ne!(part.path(), second.path());
        part.file().write_all(b"whole").unwrap();
        part.commit().unwrap();
        // The loser of a race must not destroy the winner's file.
        assert!(matches!(second.commit(), Err(SinkError::Exists { .. })));
        assert_eq!(names(folder.path()), ["clip.mp4"]);
        assert_eq!(fs::read(&target).unwrap(), b"whole");
    }

    #[test]
    fn an_existing_file_is_replaced_only_on_request() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a.png");
        fs::write(&target, b"old").unwrap();
        assert!(matches!(
            AtomicFile::create(&target, false),
            Err(SinkError::Exists { .. })
        ));
        let part = AtomicFile::create(&target, true).unwrap();
        part.file().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        part.commit().unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
    }

    #[test]
    fn an_unfinished_file_that_is_gone_or_replaced_is_named_so() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("inner");
        fs::create_dir(&inner).unwrap();
        let [removed, replaced] = ["a.png", "b.png"].map(|name| inner.join(name));
        let part = AtomicFile::create(&replaced, false).unwrap();
        fs::remove_file(part.path()).unwrap();
        fs::write(part.path(), b"another").unwrap();
        let said = part.commit().unwrap_err().to_string();
        assert!(said.contains("replaced by somebody else's"), "{said}");
        let part = AtomicFile::create(&removed, false).unwrap();
        fs::remove_dir_all(&inner).unwrap();
        let said = part.commit().unwrap_err().to_string();
        assert!(said.contains("is gone: it or its folder was removed"), "{said}");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_link_keeps_pointing_and_its_file_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("real.bin");
        let link = folder.path().join("link.bin");
        fs::write(&real, b"old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let part = AtomicFile::create(&link, true).unwrap();
        part.file().write_all(b"new").unwrap();
        part.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        let (missing, far) = (folder.path().join("sub/missing"), folder.path().join("far"));
        fs::create_dir(folder.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("sub/missing", &far).unwrap();
        AtomicFile::create(&far, true).unwrap().commit().unwrap();
        assert!(missing.is_file() && fs::symlink_metadata(&far).unwrap().is_symlink());
        assert_eq!(fs::read(&real).unwrap(), b"new");
    }

    #[test]
    fn devices_are_written_directly_and_directories_refused() {
        let part = AtomicFile::create(Path::new("/dev/null"), false).unwrap();
        assert_eq!(part.path(), Path::new("/dev/null"));
        part.commit().unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        let folder = tempfile::tempdir().unwrap();
        assert!(matches!(
            AtomicFile::create(folder.path(), true),
            Err(SinkError::Unsupported { .. })
        ));
        assert!(matches!(
            AtomicFile::create(&folder.path().join("missing/a.png"), true),
            Err(SinkError::Io { .. })
        ));
        let long = folder.path().join(format!("{}.png", "n".repeat(250)));
        AtomicFile::create(&long, false).unwrap().commit().unwrap();
        assert!(long.exists());
    }
}
