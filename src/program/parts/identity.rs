//! What a job's input and the data of its parts are known by, so that bytes of another file never come into
//! its output.

use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Bytes at the beginning and at the end of a file that are hashed, and of each of the samples between.
const END: u64 = 1 << 20;
const SAMPLE: u64 = 1 << 16;
const SAMPLES: u64 = 14;

/// What an input is known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Identity {
    /// A file: its length, and a hash of its beginning, its end and samples between, so that terabytes need
    /// not be read to tell that it was edited or rewritten.
    File {
        /// Its length.
        bytes: u64,
        /// The hash, in hexadecimal digits.
        hash: String,
    },
    /// Image files: how many, and a hash of their names and lengths.
    Images {
        /// How many.
        files: u64,
        /// The hash, in hexadecimal digits.
        hash: String,
    },
    /// Frames that are made up.
    Synthetic,
    /// What is behind a URL, of which nothing is known.
    Url,
}

/// Why an input has no identity.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}: {cause}")]
pub struct IdentityError {
    path: String,
    #[source]
    cause: io::Error,
}

impl Identity {
    /// That of the file at `path`.
    pub fn of_file(path: &Path) -> Result<Identity, IdentityError> {
        let read = || {
            let mut file = File::open(path)?;
            let bytes = file.metadata()?.len();
            let mut hasher = Xxh3::new();
            let mut take = |from: u64, length: u64| -> io::Result<()> {
                file.seek(SeekFrom::Start(from))?;
                let mut block = Vec::new();
                (&mut file).take(length).read_to_end(&mut block)?;
                hasher.update(&block);
                Ok(())
            };
            take(0, END)?;
            for k in 1..=SAMPLES {
                take(
                    (u128::from(bytes) * u128::from(k) / u128::from(SAMPLES + 1)) as u64,
                    SAMPLE,
                )?;
            }
            take(bytes.saturating_sub(END), END)?;
            let hash = format!("{:032x}", hasher.digest128());
            Ok(Identity::File { bytes, hash })
        };
        read().map_err(|cause| IdentityError {
            path: path.display().to_string(),
            cause,
        })
    }

    /// That of image files in their order.
    pub fn of_images<'a>(files: impl Iterator<Item = &'a Path>) -> Result<Identity, IdentityError> {
        let mut hasher = Xxh3::new();
        let mut count = 0;
        for path in files {
            let length = path.metadata().map(|facts| facts.len());
            let length = length.map_err(|cause| IdentityError {
                path: path.display().to_string(),
                cause,
            })?;
            let name = path.file_name().unwrap_or_default().as_encoded_bytes();
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name);
            hasher.update(&length.to_le_bytes());
            count += 1;
        }
        Ok(Identity::Images {
            files: count,
            hash: format!("{:032x}", hasher.digest128()),
        })
    }
}

/// What the bytes of a file are known by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Its length in bytes.
    pub bytes: u64,
    /// The hash of all of it, in hexadecimal digits.
    pub hash: String,
    /// When it was last written, by its file system: nanoseconds since 1970.
    pub written: i64,
}

impl Digest {
    /// That of the file at `path`, all of which is read.
    pub fn of_file(path: &Path) -> io::Result<Digest> {
        let mut file = File::open(path)?;
        // Before it is read, so that what is written meanwhile is later.
        let written = written_at(&file.metadata()?);
        let mut hasher = Xxh3::new();
        let mut block = vec![0; 1 << 20];
        let mut bytes = 0;
        loop {
            match file.read(&mut block)? {
                0 => break,
                n => {
                    hasher.update(&block[..n]);
                    bytes += n as u64;
                }
            }
        }
        Ok(Digest {
            bytes,
            hash: format!("{:032x}", hasher.digest128()),
            written,
        })
    }

    /// True if both are of the same bytes, whenever these were written.
    pub fn is_of_same_bytes(&self, other: &Digest) -> bool {
        (self.bytes, &self.hash) == (other.bytes, &other.hash)
    }
}

/// When a file was last written, in nanoseconds since 1970.
pub(super) fn written_at(facts: &Metadata) -> i64 {
    let whole = facts.mtime().saturating_mul(1_000_000_000);
    whole.saturating_add(facts.mtime_nsec())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_file_that_was_edited_or_cut_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for length in [0_usize, 1, 1000, 3 << 20] {
            let bytes: Vec<u8> = (0..length).map(|k| (k * 7 % 251) as u8).collect();
            std::fs::write(&path, &bytes).unwrap();
            let before = Identity::of_file(&path).unwrap();
            assert_eq!(Identity::of_file(&path).unwrap(), before);
            let digest = Digest::of_file(&path).unwrap();
            assert_eq!(digest.bytes, length as u64);
            for at in [0, length / 2, length.saturating_sub(1)] {
                let mut other = bytes.clone();
                let Some(byte) = other.get_mut(at) else { continue };
                *byte ^= 1;
                std::fs::write(&path, &other).unwrap();
                assert!(!Digest::of_file(&path).unwrap().is_of_same_bytes(&digest));
                // The middle of a large file may lie between two samples.
                if at != length / 2 || length < 1 << 20 {
                    assert_ne!(Identity::of_file(&path).unwrap(), before, "{length} {at}");
                }
            }
            std::fs::write(&path, [&bytes[..], b"x"].concat()).unwrap();
            assert_ne!(Identity::of_file(&path).unwrap(), before, "{length}");
        }
        assert!(Identity::of_file(&folder.path().join("none")).is_err());
    }
}
