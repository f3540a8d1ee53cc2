//! Which names a run may write: those that are taken, and frames that want the same one, are refused before
//! the first frame as far as the frames are known.

use super::naming::Target;
use super::{Images, ffmpeg_encoder};
use crate::media::still::ImageKind;
use crate::sink::SinkError;
use crate::sink::atomic_file::{is_empty_file, remove_left_overs};
use crate::source::StreamInfo;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

impl Images {
    /// The error of a second frame for one file.
    pub(super) fn several(&self) -> SinkError {
        let animation = ImageKind::of(Path::new(&self.label)).and_then(ImageKind::animation);
        SinkError::Unsupported {
            path: self.label.clone(),
            problem: format!(
                "is one image file, and there is more than one frame; write to a directory or to a numbered \
                 pattern such as out-%05d.{}{}{}",
                self.naming.kind.extension(),
                animation.map_or_else(String::new, |extension| {
                    format!(", or an animation to a file that ends in .{extension}")
                }),
                match self.options.sources {
                    Some(_) => "; --frames chooses a single one of the input's, such as 0-0",
                    None => "",
                }
            ),
        }
    }

    /// The error of a second frame for the name `path`.
    pub(super) fn clash(&self, path: &Path) -> SinkError {
        SinkError::Unsupported {
            path: path.display().to_string(),
            problem:
                "two frames' files would get this name; write to a numbered pattern such as out-%05d.png"
                    .to_owned(),
        }
    }

    /// True if a file of this name that is there may be replaced.
    pub(super) fn replaces(&self, path: &Path) -> bool {
        let is_empty = || path.metadata().is_ok_and(|facts| is_empty_file(&facts));
        self.options.overwrite || self.options.replaces_empty && is_empty()
    }

    /// Refuses what can be known to fail before the first frame.
    pub(super) fn look_ahead(&self, info: &StreamInfo) -> Result<(), SinkError> {
        let sources = self.options.sources.as_deref();
        let count = sources.map(|s| s.len() as u64).or(info.frames);
        if self.naming.is_single() {
            if count.is_some_and(|c| c > 1) {
                return Err(self.several());
            }
            return match &self.naming.place {
                Target::Single(path) => self.look_at(path),
                _ => Ok(()),
            };
        }
        if let Some(folder) = self.naming.folder() {
            remove_left_overs(folder);
        }
        let Some(sources) = sources else {
            return match self.taken(count.unwrap_or(1)) {
                Some(path) if !self.options.overwrite => Err(SinkError::Exists {
                    path: path.display().to_string(),
                }),
                _ => Ok(()),
            };
        };
        let mut names = HashSet::new();
        let mut kinds = HashSet::new();
        for (sequence, source) in (0..).zip(sources) {
            let (path, kind) = self.naming.name(sequence, Some(source));
            if kinds.insert(kind)
                && let Some(problem) = ffmpeg_encoder::missing(kind)
            {
                return Err(SinkError::Unsupported {
                    path: path.display().to_string(),
                    problem,
                });
            }
            if path.exists() && !self.replaces(&path) {
                return Err(SinkError::Exists {
                    path: path.display().to_string(),
                });
            }
            if matches!(self.naming.place, Target::Directory(_)) && !names.insert(path.clone()) {
                return Err(self.clash(&path));
            }
        }
        Ok(())
    }

    /// Refuses a single file that is there, or whose folder is not.
    fn look_at(&self, path: &Path) -> Result<(), SinkError> {
        let label = || self.label.clone();
        // A device, such as /dev/null, is written whatever is there.
        if path.is_file() && !self.replaces(path) {
            return Err(SinkError::Exists { path: label() });
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = folder.map_or(Ok(()), |folder| folder.metadata().map(|_| ()));
        found.map_err(|cause| SinkError::Io { path: label(), cause })
    }

    /// The first file that is there already of those that `count` frames without files of their own go to.
    /// The folder is listed, since a header may state any number of frames.
    fn taken(&self, count: u64) -> Option<PathBuf> {
        let folder = self.naming.folder().unwrap_or(Path::new("."));
        fs::read_dir(folder)
            .ok()?
            .flatten()
            .filter_map(|entry| self.naming.sequence(&entry.file_name()))
            .filter(|&sequence| sequence < count && self.naming.name(sequence, None).0.exists())
            .min()
            .map(|sequence| self.naming.name(sequence, None).0)
    }
}
