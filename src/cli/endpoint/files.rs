//! The image files of an input.

use framepipe::sink::images::ImageOptions;
use framepipe::source::images::ImageFiles;
use std::path::PathBuf;
use std::sync::Arc;

/// The image files that a source reads, and their numbers if a pattern names them.
#[derive(Clone)]
pub(crate) struct Files {
    /// The files that are read.
    pub(crate) read: Arc<[PathBuf]>,
    /// The names that outputs are named after: the same, except for pages of one file.
    pub(crate) paths: Arc<[PathBuf]>,
    pub(crate) numbers: Option<Arc<[i64]>>,
    /// The place of each among all files of the input.
    pub(crate) places: Arc<[u64]>,
}

/// Options of image files that are written from `files`, or of frames without files that are numbered from
/// `start`.
pub(super) fn options_of(files: Option<&Files>, start: Option<i64>) -> ImageOptions {
    if let Some(files) = files {
        return files.options(start);
    }
    let mut options = ImageOptions::default();
    options.start = start;
    options
}

impl Files {
    /// Options of image files that are written from these; `start` numbers the first if they have no numbers.
    pub(crate) fn options(&self, start: Option<i64>) -> ImageOptions {
        let mut options = ImageOptions::default();
        options.sources = Some(self.paths.clone());
        options.numbers = self.numbers.clone();
        options.start = start.filter(|_| self.numbers.is_none());
        options
    }

    pub(super) fn of(images: &ImageFiles) -> Files {
        Files {
            read: images.files().clone(),
            paths: images.names().clone(),
            numbers: images.numbers().cloned(),
            places: images.places().clone(),
        }
    }
}
