//! What a job's input and the data of its parts are known by, so that bytes of another file never come into
//! its output.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// The bytes of a file that are hashed.
struct Sampling {
    /// How many at the beginning, and at the end.
    end: u64,
    /// How many in each of the samples between.
    sample: u64,
    /// Samples between.
    samples: u64,
}

/// Of a file that is the input.
const OF_FILE: Sampling = Sampling {
    end: 1 << 20,
    sample: 1 << 16,
    samples: 14,
};

/// Of each of many image files.
const OF_IMAGE: Sampling = Sampling {
    end: 1 << 13,
    sample: 1 << 13,
    samples: 2,
};

impl Sampling {
    /// The length of the file at `path`, and the hash of its samples.
    fn hash(&self, path: &Path) -> Result<(u64, u128), IdentityError> {
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
            take(0, self.end)?;
            for k in 1..=self.samples {
                let place = u128::from(bytes) * u128::from(k) / u128::from(self.samples + 1);
                take(place as u64, self.sample)?;
            }
            take(bytes.saturating_sub(self.end), self.end)?;
            Ok((bytes, hasher.digest128()))
        };
        read().map_err(|cause| IdentityError {
            path: path.display().to_string(),
            cause,
        })
    }
}

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
    /// Image files: how many, and a hash of their names, their lengths, and samples of each.
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
        let (bytes, hash) = OF_FILE.hash(path)?;
        let hash = format!("{hash:032x}");
        Ok(Identity::File { bytes, hash })
    }

    /// That of image files in their order.
    pub fn of_images(files: &[impl AsRef<Path> + Sync]) -> Result<Identity, IdentityError> {
        let sampled = files.par_iter().map(|path| OF_IMAGE.hash(path.as_ref()));
        let sampled: Vec<(u64, u128)> = sampled.collect::<Result<_, _>>()?;
        let mut hasher = Xxh3::new();
        for (path, (length, hash)) in files.iter().zip(sampled) {
            let name = path.as_ref().file_name().unwrap_or_default().as_encoded_bytes();
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name);
            hasher.update(&length.to_le_bytes());
            hasher.update(&hash.to_le_bytes());
        }
        Ok(Identity::Images {
            files: files.len() as u64,
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

    #[test]
    fn an_image_of_the_same_name_and_length_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let files = ["a.bmp", "b.bmp"].map(|name| folder.path().join(name));
        let write = |first: &[u8], second: &[u8]| {
            std::fs::write(&files[0], first).unwrap();
            std::fs::write(&files[1], second).unwrap();
            Identity::of_images(&files).unwrap()
        };
        let (dark, light) = (vec![0; 40_000], vec![9; 40_000]);
        let mut edited = dark.clone();
        edited[39_999] = 1;
        let before = write(&dark, &light);
        assert_eq!(write(&dark, &light), before);
        for (first, second) in [
            (&light, &light),
            (&dark, &dark),
            (&light, &dark),
            (&edited, &light),
        ] {
            assert_ne!(write(first, second), before);
        }
        std::fs::remove_file(&files[1]).unwrap();
        assert!(Identity::of_images(&files).is_err());
    }
}
