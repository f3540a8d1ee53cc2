//! Which image files an input names: one file, a directory, a numbered pattern or a glob, in the order of the
//! frames.

use super::SourceError;
use super::animation::is_animated;
use super::pattern::Pattern;
use image::ImageFormat;
use std::cmp::Ordering;
use std::fs;
use std::path::{Path, PathBuf};

/// The image format that a file name's extension stands for, if it is one that framepipe reads.
pub fn image_format(path: &Path) -> Option<ImageFormat> {
    use ImageFormat::{Bmp, Jpeg, Png, Pnm, Tiff, WebP};
    ImageFormat::from_path(path)
        .ok()
        .filter(|f| matches!(f, Bmp | Jpeg | Png | Pnm | Tiff | WebP))
}

/// True if `input` is to be read as images: a directory, a pattern, a glob, or a file with an image's
/// extension that is no animation.
pub fn names_images(input: &Path) -> bool {
    if input.is_dir() {
        return true;
    }
    if input.is_file() {
        return image_format(input).is_some() && !is_animated(input);
    }
    image_format(input).is_some() || is_glob(input) || matches!(Pattern::parse(input), Ok(Some(_)))
}

fn is_glob(input: &Path) -> bool {
    input
        .to_str()
        .is_some_and(|t| t.contains(['*', '?']) || t.contains('[') && t.contains(']'))
}

/// The image files that `input` names, in order; at least one.
///
/// A directory gives its files with a known image extension, in natural order (2 before 10), hidden ones left out. A pattern
/// (`frames/%05d.png`) begins at 0 or 1 and ends before the first missing number. A glob gives what it matches, in natural order.
/// A name that exists is taken as it is, whatever characters it has.
pub fn list(input: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let invalid = |problem: String| SourceError::Invalid {
        path: input.display().to_string(),
        problem,
    };
    if input.is_dir() {
        let files = directory(input)?;
        if files.is_empty() {
            return Err(invalid(
                "is a directory without images (files ending in png, jpg, jpeg, tif, tiff, bmp, webp, pnm, pgm, ppm, pbm or pam)"
                    .to_owned(),
            ));
        }
        return Ok(files);
    }
    if input.exists() {
        return Ok(vec![input.to_owned()]);
    }
    if let Some(pattern) = Pattern::parse(input).map_err(|e| invalid(e.to_string()))? {
        return numbered(&pattern).ok_or_else(|| {
            invalid(format!(
                "names no file: neither {} nor {} exists (numbers begin at 0 or 1)",
                pattern.name(0).display(),
                pattern.name(1).display()
            ))
        });
    }
    if is_glob(input) {
        let text = input.to_str().unwrap_or_default();
        let options = glob::MatchOptions {
            require_literal_leading_dot: true,
            require_literal_separator: true,
            ..glob::MatchOptions::default()
        };
        let matches =
            glob::glob_with(text, options).map_err(|e| invalid(format!("is no valid file pattern: {e}")))?;
        let mut files = Vec::new();
        for found in matches {
            let path = found.map_err(|e| SourceError::Io {
                path: e.path().display().to_string(),
                cause: e.into(),
            })?;
            if path.is_file() {
                files.push(path);
            }
        }
        if files.is_empty() {
            return Err(invalid("matches no file".to_owned()));
        }
        files.sort_by(|a, b| natural(a, b));
        return Ok(files);
    }
    Err(SourceError::Io {
        path: input.display().to_string(),
        cause: std::io::ErrorKind::NotFound.into(),
    })
}

fn directory(folder: &Path) -> Result<Vec<PathBuf>, SourceError> {
    let failed = |cause| SourceError::Io {
        path: folder.display().to_string(),
        cause,
    };
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // Hidden files may be output that a run has not finished.
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        if !hidden && image_format(&path).is_some() && path.is_file() {
            files.push(path);
        }
    }
    files.sort_by(|a, b| natural(a, b));
    Ok(files)
}

fn numbered(pattern: &Pattern) -> Option<Vec<PathBuf>> {
    let first = (0..=1).find(|&n| pattern.name(n).is_file())?;
    Some(
        (first..)
            .map(|n| pattern.name(n))
            .take_while(|name| name.is_file())
            .collect(),
    )
}

/// Numbers within names compare as numbers; names that are then equal compare byte by byte, so that the order
/// is one.
fn natural(a: &Path, b: &Path) -> Ordering {
    natord::compare(&a.to_string_lossy(), &b.to_string_lossy()).then_with(|| a.cmp(b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        folder
    }

    fn found(input: &Path) -> Vec<String> {
        list(input)
            .unwrap()
            .iter()
            .map(|p| p.file_name().unwrap().to_str().unwrap().to_owned())
            .collect()
    }

    fn problem(input: &Path) -> String {
        list(input).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_is_read_in_natural_order_without_strangers() {
        let folder = folder(&[
            "f10.png",
            "f2.png",
            "f1.PNG",
            "notes.txt",
            ".f3.part-7.png",
            "f02.png",
            "g.jpeg",
            "noext",
            "x.gif",
        ]);
        fs::create_dir(folder.path().join("sub.png")).unwrap();
        let names = found(folder.path());
        assert_eq!(names.len(), 5);
        let at = |name: &str| names.iter().position(|n| n == name).unwrap();
        assert!(at("f1.PNG") < at("f2.png") && at("f2.png") < at("f10.png") && at("f10.png") < at("g.jpeg"));
        assert!(names_images(folder.path()));
    }

    #[test]
    fn patterns_begin_at_0_or_1_and_end_at_a_gap() {
        let from_one = folder(&["f-001.png", "f-002.png", "f-004.png"]);
        let pattern = from_one.path().join("f-%03d.png");
        assert_eq!(found(&pattern), ["f-001.png", "f-002.png"]);
        assert!(names_images(&pattern));
        fs::write(from_one.path().join("f-000.png"), b"").unwrap();
        assert_eq!(found(&pattern), ["f-000.png", "f-001.png", "f-002.png"]);
        assert!(problem(&from_one.path().join("g%d.png")).contains("g0.png nor"));
        assert!(problem(&from_one.path().join("g%s.png")).contains("begins no number"));
    }

    #[test]
    fn globs_match_files_and_existing_names_are_literal() {
        let folder = folder(&["a10.png", "a9.png", "b.png", "odd[1]*.png", ".a.png"]);
        assert_eq!(found(&folder.path().join("a*.png")), ["a9.png", "a10.png"]);
        assert_eq!(found(&folder.path().join("odd[1]*.png")), ["odd[1]*.png"]);
        assert!(problem(&folder.path().join("c*.png")).contains("matches no file"));
        assert!(problem(&folder.path().join("c[.png*")).contains("no valid file pattern"));
    }

    #[test]
    fn nothing_to_read_is_said_clearly() {
        let empty = folder(&["notes.txt"]);
        assert!(problem(empty.path()).contains("directory without images"));
        assert!(problem(&empty.path().join("missing.png")).contains("missing.png"));
        assert!(!names_images(&empty.path().join("clip.mp4")));
    }
}
