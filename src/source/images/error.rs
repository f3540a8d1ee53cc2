//! Errors of decoders, each with the path of the image file.

use super::formats::tiff::Problem;
use super::picture::Reason;
use crate::source::SourceError;
use crate::wording::shortened_to;
use image::ImageError;
use std::io;
use std::path::Path;

/// Characters of a decoder's error that are passed on.
const MOST_WORDS: usize = 100;

/// What is wrong with a file, in words that follow its path.
pub(super) fn invalid(path: &Path, problem: &str) -> SourceError {
    SourceError::Invalid {
        path: path.display().to_string(),
        problem: problem.to_owned(),
    }
}

/// A failed read.
pub(super) fn io_error(path: &Path, cause: io::Error) -> SourceError {
    if cause.kind() == io::ErrorKind::UnexpectedEof {
        return invalid(path, "is an image file that ends early; it is truncated");
    }
    SourceError::Io {
        path: path.display().to_string(),
        cause,
    }
}

/// Why a module of ours gives no picture.
pub(super) fn reason_error(path: &Path, reason: Reason) -> SourceError {
    match reason {
        Reason::Io(cause) => io_error(path, cause),
        Reason::Words(words) => invalid(path, &format!("cannot be decoded: {words}")),
    }
}

/// What the reader of TIFF met.
pub(super) fn tiff_error(path: &Path, problem: Problem) -> SourceError {
    match problem {
        Problem::Io(cause) => io_error(path, cause),
        problem => invalid(path, &problem.to_string()),
    }
}

/// An error of the image crate's decoders.
pub(super) fn failed(path: &Path, error: ImageError) -> SourceError {
    match error {
        ImageError::IoError(cause) => io_error(path, cause),
        ImageError::Unsupported(e) => invalid(
            path,
            &format!(
                "is an image of a kind that framepipe does not read: {}",
                brief(&e)
            ),
        ),
        e => invalid(
            path,
            &format!("cannot be decoded, and may be damaged: {}", brief(&e)),
        ),
    }
}

/// A decoder's words, which may quote the file, without what is beyond [`MOST_WORDS`] characters.
fn brief(error: &dyn std::error::Error) -> String {
    shortened_to(MOST_WORDS, &error.to_string())
}
