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

impl Files {
    /// Options of image files that are written from these; `start` numbers the first if they have no numbers.
    pub(crate) fn options(&self, start: Option<i64>) -> ImageOptions {
        ImageOptions {
            sources: Some(self.paths.clone()),
            numbers: self.numbers.clone(),
            start: start.filter(|_| self.numbers.is_none()),
            ..ImageOptions::default()
        }
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
