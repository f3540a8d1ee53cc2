//! What a caller chooses of image files: their kind, their names, how they are packed, what is replaced.

use crate::media::still::ImageKind;
use crate::sink::Rules;
use std::path::PathBuf;
use std::sync::Arc;

/// How image files are named and encoded.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ImageOptions {
    /// The kind of file; by default what the target's extension says, else what the source's files are, else
    /// PNG.
    pub kind: Option<ImageKind>,
    /// JPEG quality, 1 to 100.
    pub jpeg_quality: u8,
    /// PNG compression, 0 (none) to 9 (smallest); `None` for a fast one that packs well.
    pub png_level: Option<u8>,
    /// The number of the first frame in names that are made from numbers; by default that of the source's
    /// frames, where they have numbers, else 0.
    pub start: Option<i64>,
    /// The numbers of the source's frames, if a pattern names them.
    pub numbers: Option<Arc<[i64]>>,
    /// Replace existing files.
    pub overwrite: bool,
    /// Replace existing files without a byte.
    pub replaces_empty: bool,
    /// Other runs write other files into the same folder meanwhile.
    pub shares_folder: bool,
    /// Fail where a fact about the pictures would be lost.
    pub strict: bool,
    /// Sound and other streams of the input are not wanted: their absence is no loss.
    pub pictures_alone: bool,
    /// Find out only what would be written, and what would be refused: no file gets its name.
    pub trial: bool,
    /// The files that the frames come from, if known: names in a directory follow theirs, and clashes are
    /// found beforehand.
    pub sources: Option<Arc<[PathBuf]>>,
}

impl Default for ImageOptions {
    fn default() -> Self {
        ImageOptions {
            kind: None,
            jpeg_quality: 90,
            png_level: None,
            start: None,
            numbers: None,
            overwrite: false,
            replaces_empty: false,
            shares_folder: false,
            strict: false,
            pictures_alone: false,
            trial: false,
            sources: None,
        }
    }
}

impl ImageOptions {
    pub(super) fn rules(&self) -> Rules {
        Rules {
            overwrite: self.overwrite,
            strict: self.strict,
            pictures_alone: self.pictures_alone,
            trial: self.trial,
        }
    }
}
