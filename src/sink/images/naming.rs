//! How image files are named: one file, numbers in a pattern, or in a directory the names of the files that
//! the frames come from.

use super::ImageOptions;
use crate::media::still::ImageKind;
use crate::media::still::names::as_text;
use crate::media::still::pattern::{Pattern, unescaped};
use crate::sink::SinkError;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// True if `target` is to be written as images: a numbered pattern, a name with an image's extension, an
/// existing directory, or a name that ends in a slash or has no extension.
pub fn is_target(target: &Path) -> bool {
    target.is_dir()
        || target.as_os_str().as_encoded_bytes().ends_with(b"/")
        || ImageKind::of(target).is_some()
        || target.extension().is_none() && !target.exists()
}

/// The kind of file that [`super::create`] would write to `target`, so that frames can be converted for it.
pub fn kind_for(target: &Path, options: &ImageOptions) -> ImageKind {
    let by_source = || {
        let first = options.sources.as_ref().and_then(|s| s.first())?;
        ImageKind::of(first)
    };
    let by_target = || ImageKind::of(target).filter(|_| !target.is_dir());
    options
        .kind
        .or_else(by_target)
        .or_else(by_source)
        .unwrap_or(ImageKind::Png)
}

/// The largest number of a first file, behind which there are numbers for as many frames as a run can have.
const LAST_START: i64 = i64::MAX / 2;

#[derive(Debug, Clone)]
pub(super) enum Target {
    Single(PathBuf),
    Numbered(Pattern),
    Directory(PathBuf),
}

/// The names of an output's files.
#[derive(Debug, Clone)]
pub struct Naming {
    pub(super) place: Target,
    /// The kind of every file, if the user chose it; else each follows its frame's own file.
    fixed: Option<ImageKind>,
    pub(super) kind: ImageKind,
    start: Option<i64>,
    numbers: Option<Arc<[i64]>>,
}

impl Naming {
    /// How the files are named that are written to `target`.
    pub fn new(target: &Path, options: &ImageOptions) -> Result<Naming, SinkError> {
        let refuse = |problem: String| SinkError::Unsupported {
            path: target.display().to_string(),
            problem,
        };
        let pattern = Pattern::parse(target).map_err(|e| refuse(e.to_string()))?;
        let is_directory = target.is_dir() || target.as_os_str().as_encoded_bytes().ends_with(b"/");
        let place = match pattern {
            Some(pattern) if !is_directory => Target::Numbered(pattern),
            _ if is_directory || target.extension().is_none() && !target.exists() => {
                Target::Directory(target.to_owned())
            }
            _ => Target::Single(unescaped(target)),
        };
        if let Some(start) = options.start.filter(|&start| start > LAST_START) {
            return Err(refuse(format!(
                "files cannot be numbered from {start} on; begin with a number up to {LAST_START}"
            )));
        }
        let has_kind = options.kind.is_some() || ImageKind::of(target).is_some();
        if !matches!(place, Target::Directory(_)) && !has_kind {
            return Err(refuse(format!(
                "has no extension of an image that framepipe writes ({}); give one, or --format",
                ImageKind::written()
            )));
        }
        Ok(Naming {
            place,
            fixed: options
                .kind
                .or_else(|| ImageKind::of(target).filter(|_| !is_directory)),
            kind: kind_for(target, options),
            start: options.start,
            numbers: options.numbers.clone(),
        })
    }

    /// The number of frame `sequence` in names that are made from numbers.
    pub fn number(&self, sequence: u64) -> i64 {
        let place = i64::try_from(sequence).unwrap_or(i64::MAX);
        let of_source = || {
            let numbers = self.numbers.as_ref()?;
            numbers.get(usize::try_from(sequence).ok()?).copied()
        };
        match self.start {
            Some(start) => start.saturating_add(place),
            None => of_source().unwrap_or(place),
        }
    }

    /// The frame without a file of its own that a file of this name, in the output's folder, is written for.
    pub(super) fn sequence(&self, file_name: &OsStr) -> Option<u64> {
        let number: i64 = match &self.place {
            Target::Single(_) => return None,
            Target::Numbered(pattern) => pattern.number(file_name)?,
            Target::Directory(_) => as_text(file_name).split('.').next()?.parse().ok()?,
        };
        let sequence = u64::try_from(number.checked_sub(self.start.unwrap_or(0))?).ok()?;
        let (path, _) = self.name(sequence, None);
        (path.file_name()? == file_name).then_some(sequence)
    }

    /// True for the name, in the output's folder, of a frame without a file of its own.
    pub fn is_name(&self, file_name: &OsStr) -> bool {
        self.sequence(file_name).is_some()
    }

    /// True if there is one file, whose name is given.
    pub fn is_single(&self) -> bool {
        matches!(self.place, Target::Single(_))
    }

    /// True if a pattern gives the names.
    pub fn is_numbered(&self) -> bool {
        matches!(self.place, Target::Numbered(_))
    }

    /// The folder that the files are in, if it may have to be made.
    pub fn folder(&self) -> Option<&Path> {
        let folder = match &self.place {
            Target::Directory(folder) => folder.as_path(),
            Target::Numbered(pattern) => pattern.folder(),
            Target::Single(_) => return None,
        };
        (!folder.as_os_str().is_empty()).then_some(folder)
    }

    fn kind_of(&self, source: Option<&Path>) -> ImageKind {
        match (self.fixed, source) {
            (Some(kind), _) => kind,
            // A bitmap's gray needs the next larger kind.
            (None, Some(file)) if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("pbm")) => {
                ImageKind::Pgm
            }
            (None, Some(file)) => ImageKind::of(file).unwrap_or(self.kind),
            (None, None) => self.kind,
        }
    }

    /// The name and kind of frame `sequence`'s file, where `source` is the file that it comes from.
    pub fn name(&self, sequence: u64, source: Option<&Path>) -> (PathBuf, ImageKind) {
        let number = self.number(sequence);
        match &self.place {
            Target::Single(path) => (path.clone(), self.kind),
            Target::Numbered(pattern) => (pattern.name(number), self.kind),
            Target::Directory(folder) => {
                let kind = self.kind_of(source);
                let path = match source.and_then(|file| Some((file, file.file_stem()?))) {
                    Some((file, stem)) => {
                        let mut name = stem.to_owned();
                        name.push(".");
                        // The file's own way of writing the extension stays where the kind does.
                        match file.extension() {
                            Some(own) if ImageKind::of(file) == Some(kind) => name.push(own),
                            _ => name.push(kind.extension()),
                        }
                        folder.join(name)
                    }
                    None => folder.join(format!("{number:06}.{}", kind.extension())),
                };
                (path, kind)
            }
        }
    }
}
