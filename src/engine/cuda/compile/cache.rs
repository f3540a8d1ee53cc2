//! Files that are kept from run to run: compiled kernels, and measured tables.
//!
//! The driver runs what lies here, so that the folder must be the user's own and nobody else may write to it;
//! the same holds for each file. Folder and files are opened first and looked at then, never by name twice.
//! Any fault of folder or files costs a compilation and nothing else, and is reported once.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat};
use rustix::io::Errno;
use rustix::process::geteuid;
use sha2::{Digest as _, Sha256};
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// The most bytes of a file: many times those of the largest kernel.
const LARGEST: u64 = 64 << 20;

/// The start of each file's last line; the SHA-256 of all bytes before that line follows it.
const SEAL: &[u8] = b"\nsha256 ";

/// Bytes of the last line: its start, 64 digits, a line break.
const SEAL_LENGTH: usize = SEAL.len() + 65;

/// A SHA-256, displayed in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 32]);

impl Digest {
    /// The digest of parts, each with its length, so that different lists of parts give different bytes.
    pub(crate) fn of_parts(parts: &[&str]) -> Digest {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        Digest(hash.finalize().into())
    }

    fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Why a file is not read or not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CacheError {
    /// There is no folder for it.
    #[error("there is no folder for it; set HOME or XDG_CACHE_HOME to an absolute path")]
    NoFolder,
    /// Somebody else could have put something there.
    #[error("the cache folder {} is not used: it {problem}", .path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// The file is not one that this program has written.
    #[error("{} is not used: it {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The file has other bytes than those that were written.
    #[error("{} is damaged", .0.display())]
    Damaged(PathBuf),
    /// The system refused it.
    #[error("{}: {reason}; set XDG_CACHE_HOME to a folder that can be written", .path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
}

/// The folder.
#[derive(Clone)]
pub(crate) struct Cache {
    folder: Option<PathBuf>,
    /// It was reported that the folder is not used.
    has_warned: Arc<AtomicBool>,
}

impl Cache {
    /// The user's: `$XDG_CACHE_HOME/framepipe`, else `~/.cache/framepipe`.
    pub(crate) fn of_user() -> Cache {
        let absolute = |name: &str| {
            std::env::var_os(name)
                .map(PathBuf::from)
                .filter(|p| p.is_absolute())
        };
        let base = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
        Cache {
            folder: base.map(|b| b.join("framepipe")),
            has_warned: Arc::default(),
        }
    }

    #[cfg(test)]
    pub(crate) fn in_folder(folder: PathBuf) -> Cache {
        Cache {
            folder: Some(folder),
            has_warned: Arc::default(),
        }
    }

    /// The path of the file of this name.
    pub(crate) fn path(&self, name: &str) -> Result<PathBuf, CacheError> {
        let folder = self.folder.as_deref().ok_or(CacheError::NoFolder)?;
        Ok(folder.join(name))
    }

    /// The content of a file as it was handed to [`Cache::put`]; `None` if there is no such file.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>, CacheError> {
        let Some(folder) = &self.folder else {
            return Ok(None);
        };
        let Some(opened) = open_folder(folder)? else {
            return Ok(None);
        };
        let path = folder.join(name);
        let refused = |problem: String| CacheError::File {
            path: path.clone(),
            problem,
        };
        // A named pipe would let the opening wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match openat(&opened, name, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(refused("is a symbolic link".to_owned())),
            Err(error) => return Err(system(&path, &error.into())),
        };
        let metadata = file.metadata().map_err(|error| system(&path, &error))?;
        if !metadata.is_file() {
            return Err(refused("is no regular file".to_owned()));
        }
        if let Some(problem) = writable_by_others(&metadata) {
            return Err(refused(problem));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| system(&path, &error))?;
        if bytes.len() as u64 > LARGEST {
            return Err(refused(format!("has more than {LARGEST} bytes")));
        }
        unsealed(bytes).ok_or(CacheError::Damaged(path)).map(Some)
    }

    /// Writes a file with its checksum under another name and renames it, so that no reader sees half of it.
    pub(crate) fn put(&self, name: &str, content: &[u8]) -> Result<(), CacheError> {
        static COUNTER: AtomicU32 = AtomicU32::new(0);
        let folder = self.folder.as_deref().ok_or(CacheError::NoFolder)?;
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .or_else(|error| match error.kind() {
                // What is there instead is reported below.
                io::ErrorKind::AlreadyExists => Ok(()),
                _ => Err(system(folder, &error)),
            })?;
        let path = folder.join(name);
        let failed = |error: io::Error| system(&path, &error);
        let opened = open_folder(folder)?.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let count = COUNTER.fetch_add(1, Ordering::Relaxed);
        let part = format!("{name}.{}.{count}.part", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&opened, &*part, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(file.map_err(|error| failed(error.into()))?);
        let written = file
            .write_all(content)
            .and_then(|()| file.write_all(&seal(content)))
            .and_then(|()| Ok(renameat(&opened, &*part, &opened, name)?));
        if written.is_err() {
            let _ = unlinkat(&opened, &*part, AtFlags::empty());
        }
        written.map_err(failed)
    }

    /// Removes the file of this name, of any kind, if that is possible.
    pub(crate) fn remove(&self, name: &str) {
        if let Some(folder) = &self.folder
            && let Ok(Some(opened)) = open_folder(folder)
        {
            let _ = unlinkat(&opened, name, AtFlags::empty());
        }
    }

    /// Reports why a file is not read. That the whole folder is not used is reported once.
    pub(crate) fn warn(&self, error: &CacheError) {
        match error {
            CacheError::Folder { .. } if self.has_warned.swap(true, Ordering::Relaxed) => {}
            error => tracing::warn!("{error}"),
        }
    }
}

fn system(path: &Path, error: &io::Error) -> CacheError {
    CacheError::System {
        path: path.to_owned(),
        reason: error.to_string(),
    }
}

/// The folder, if it is the user's own; `None` if it does not exist.
fn open_folder(folder: &Path) -> Result<Option<File>, CacheError> {
    let refused = |problem: String| CacheError::Folder {
        path: folder.to_owned(),
        problem: format!("{problem}; or set XDG_CACHE_HOME to a folder of your own"),
    };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(CWD, folder, flags, Mode::empty()) {
        Ok(opened) => File::from(opened),
        Err(Errno::NOENT) => return Ok(None),
        // Systems differ in which of these they report for a link.
        Err(Errno::NOTDIR | Errno::LOOP) => {
            let Ok(there) = fs::symlink_metadata(folder) else {
                return Ok(None);
            };
            let what = if there.is_symlink() {
                "is a symbolic link"
            } else {
                "is no folder"
            };
            return Err(refused(format!("{what}; remove it")));
        }
        Err(error) => return Err(system(folder, &error.into())),
    };
    let metadata = opened.metadata().map_err(|error| system(folder, &error))?;
    match writable_by_others(&metadata) {
        Some(problem) => Err(refused(format!(
            "{problem}; see that nothing in it is of others, and `chmod 700 {}`",
            folder.display()
        ))),
        None => Ok(Some(opened)),
    }
}

/// A reason why somebody else than the user who runs the program could change it.
fn writable_by_others(metadata: &Metadata) -> Option<String> {
    let user = geteuid().as_raw();
    let mode = metadata.mode() & 0o7777;
    if metadata.uid() != user {
        let owner = metadata.uid();
        Some(format!(
            "belongs to user {owner}, and the program is run by user {user}"
        ))
    } else if mode & 0o022 != 0 {
        Some(format!("can be written by others (mode {mode:04o})"))
    } else {
        None
    }
}

/// The last line of a file.
fn seal(content: &[u8]) -> Vec<u8> {
    let mut line = SEAL.to_vec();
    line.extend(format!("{}\n", Digest::of(content)).bytes());
    line
}

/// The content of a file, if its last line is right.
fn unsealed(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let length = bytes.len().checked_sub(SEAL_LENGTH)?;
    let (content, line) = bytes.split_at(length);
    (line == seal(content)).then_some(())?;
    bytes.truncate(length);
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::process::Command;

    fn folder() -> (tempfile::TempDir, Cache) {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::in_folder(folder.path().join("a/framepipe"));
        (folder, cache)
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_file_comes_back_and_ends_with_its_sha256() {
        let (_folder, cache) = folder();
        assert_eq!(cache.read("a"), Ok(None));
        for content in [&b"machine code"[..], b"", b"\n", &[0xff; 100_000]] {
            cache.put("a", content).unwrap();
            assert_eq!(cache.read("a").unwrap().unwrap(), content);
        }
        let path = cache.path("a").unwrap();
        assert_eq!(mode(path.parent().unwrap()), 0o700);
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        // Judged by another program.
        cache.put("a", b"machine code").unwrap();
        let bytes = fs::read(&path).unwrap();
        let (content, line) = bytes.split_at(bytes.len() - SEAL_LENGTH);
        let alone = path.with_file_name("alone");
        fs::write(&alone, content).unwrap();
        let sum = Command::new("sha256sum").arg(&alone).output().unwrap();
        let expected = String::from_utf8(sum.stdout).unwrap();
        let expected = expected.split(' ').next().unwrap();
        assert_eq!(line, format!("\nsha256 {expected}\n").as_bytes());
    }

    #[test]
    fn any_other_byte_and_any_other_length_is_noticed() {
        let (_folder, cache) = folder();
        cache.put("a", b"machine code").unwrap();
        let path = cache.path("a").unwrap();
        let good = fs::read(&path).unwrap();
        let damaged = Err(CacheError::Damaged(path.clone()));
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1;
            fs::write(&path, &flipped).unwrap();
            assert_eq!(cache.read("a"), damaged, "byte {at}");
            fs::write(&path, &good[..at]).unwrap();
            assert_eq!(cache.read("a"), damaged, "cut to {at}");
        }
        fs::write(&path, [&good[..], b"\n"].concat()).unwrap();
        assert_eq!(cache.read("a"), damaged);
        cache.put("a", b"machine code").unwrap();
        assert_eq!(cache.read("a").unwrap().unwrap(), b"machine code");
    }

    /// Asserts that the folder is neither read nor written, and gives the sentence.
    fn refused(cache: &Cache) -> String {
        let error = cache.read("a").unwrap_err();
        assert!(matches!(error, CacheError::Folder { .. }), "{error}");
        assert_eq!(cache.put("b", b""), Err(error.clone()));
        assert!(!cache.path("b").unwrap().exists());
        cache.remove("a");
        let sentence = error.to_string();
        assert!(sentence.contains("XDG_CACHE_HOME"), "{sentence}");
        sentence
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let (_folder, cache) = folder();
        cache.put("a", b"machine code").unwrap();
        let file = cache.path("a").unwrap();
        let path = file.parent().unwrap();
        for bits in [0o777, 0o770, 0o720, 0o702, 0o1777] {
            set_mode(path, bits);
            let sentence = refused(&cache);
            assert!(
                sentence.contains(&format!("mode {bits:04o}")) && sentence.contains("chmod 700"),
                "{sentence}"
            );
            assert!(file.exists());
        }
        set_mode(path, 0o755);
        assert!(cache.read("a").unwrap().is_some());
        set_mode(&file, 0o666);
        let error = cache.read("a").unwrap_err();
        assert!(matches!(error, CacheError::File { .. }), "{error}");
    }

    #[test]
    fn what_belongs_to_others_is_not_used() {
        if !geteuid().is_root() {
            println!("SKIPPED: only root can give files away");
            return;
        }
        let (_folder, cache) = folder();
        cache.put("a", b"machine code").unwrap();
        let file = cache.path("a").unwrap();
        let path = file.parent().unwrap();
        chown(&file, Some(65534), None).unwrap();
        let error = cache.read("a").unwrap_err();
        assert!(matches!(error, CacheError::File { .. }), "{error}");
        assert!(error.to_string().contains("belongs to user 65534"), "{error}");
        chown(&file, Some(0), None).unwrap();
        assert!(cache.read("a").unwrap().is_some());
        chown(path, Some(65534), None).unwrap();
        let sentence = refused(&cache);
        assert!(sentence.contains("belongs to user 65534"), "{sentence}");
        assert!(file.exists());
    }

    #[test]
    fn links_pipes_folders_and_huge_files_are_not_read() {
        let (outside, cache) = folder();
        cache.put("real", b"machine code").unwrap();
        let (real, a) = (cache.path("real").unwrap(), cache.path("a").unwrap());
        let problem = || match cache.read("a") {
            Err(CacheError::File { problem, .. }) => problem,
            other => panic!("{other:?}"),
        };
        symlink(&real, &a).unwrap();
        assert_eq!(problem(), "is a symbolic link");
        // What is written takes the place of the link, and what the link names stays as it is.
        cache.put("a", b"other").unwrap();
        assert_eq!(cache.read("real").unwrap().unwrap(), b"machine code");
        assert_eq!(cache.read("a").unwrap().unwrap(), b"other");
        cache.remove("a");
        assert_eq!(cache.read("a"), Ok(None));
        fs::create_dir(&a).unwrap();
        assert_eq!(problem(), "is no regular file");
        fs::remove_dir(&a).unwrap();
        let made = Command::new("mkfifo").arg("-m").arg("600").arg(&a).status();
        assert!(made.unwrap().success());
        assert_eq!(problem(), "is no regular file");
        cache.remove("a");
        File::create(&a).unwrap().set_len(LARGEST + 1).unwrap();
        assert!(problem().contains("more than"));
        // The folder itself is no link either, and no file.
        let link = outside.path().join("link");
        symlink(real.parent().unwrap(), &link).unwrap();
        assert!(refused(&Cache::in_folder(link)).contains("is a symbolic link"));
        assert!(refused(&Cache::in_folder(real)).contains("is no folder"));
    }

    #[test]
    fn no_folder_is_no_error_for_readers() {
        let (outside, _) = folder();
        let file = outside.path().join("file");
        fs::write(&file, b"").unwrap();
        let cache = Cache::in_folder(file.join("below a file"));
        assert_eq!(cache.read("a"), Ok(None));
        let error = cache.put("a", b"").unwrap_err().to_string();
        assert!(error.contains("XDG_CACHE_HOME"), "{error}");
        let none = Cache {
            folder: None,
            has_warned: Arc::default(),
        };
        assert_eq!(none.read("a"), Ok(None));
        assert_eq!(none.put("a", b""), Err(CacheError::NoFolder));
    }

    #[test]
    fn digests_tell_where_a_part_ends() {
        assert_ne!(Digest::of_parts(&["ab", "c"]), Digest::of_parts(&["a", "bc"]));
        assert_eq!(Digest::of_parts(&["ab", "c"]), Digest::of_parts(&["ab", "c"]));
        // FIPS 180-4's example.
        assert!(Digest::of(b"abc").to_string().starts_with("ba7816bf8f01cfea"));
    }
}
