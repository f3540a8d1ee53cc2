//! Reading: an excerpt of a file, and what it says.

use super::bytes::take_array;
use super::containers::{bmp, boxes, dpx, gif, jpeg, png, pnm, psd, tiff, webp};
use super::kind::Container;
use super::metadata::FileMetadata;
use super::{Annotations, DensityUnit, exif, once, word};
use crate::messages::metadata_limit::METADATA_LIMIT;
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};

/// The most names of what is left out of one file.
const UNKNOWN_LIMIT: usize = 4096;

/// The parts of a file that say something, as a small file of the same kind.
pub(super) struct Excerpt {
    pub(super) bytes: Vec<u8>,
    pub(super) icc_profile: Option<Vec<u8>>,
    pub(super) too_large: Vec<&'static str>,
    pub(super) damaged: Vec<&'static str>,
    pub(super) unknown: Vec<String>,
    pub(super) hints: Vec<&'static str>,
    pub(super) plays: Option<u32>,
    pub(super) frames: Option<(u32, u32)>,
    pub(super) has_default_picture: bool,
    pub(super) has_shallow_key: bool,
    pub(super) changes: Vec<String>,
}

impl Excerpt {
    pub(super) fn new(head: &[u8]) -> Self {
        Self {
            bytes: head.to_vec(),
            icc_profile: None,
            too_large: Vec::new(),
            damaged: Vec::new(),
            unknown: Vec::new(),
            hints: Vec::new(),
            plays: None,
            frames: None,
            has_default_picture: false,
            has_shallow_key: false,
            changes: Vec::new(),
        }
    }

    /// Notes the name of what is left out.
    pub(super) fn leave_out(&mut self, name: String) {
        if !self.unknown.contains(&name) && self.unknown.len() < UNKNOWN_LIMIT {
            self.unknown.push(name);
        }
    }

    /// True if `len` more bytes have room; else what they are is named. A profile stands apart from the rest.
    pub(super) fn has_room(&mut self, len: u64, word: &'static str) -> bool {
        let taken = if word == word::PROFILE {
            0
        } else {
            self.bytes.len()
        };
        let room = METADATA_LIMIT.saturating_sub(taken);
        let fits = usize::try_from(len).is_ok_and(|len| len <= room);
        if !fits {
            once(&mut self.too_large, word);
        }
        fits
    }
}

/// What a file says beside its pixels. Damaged parts are passed over.
#[must_use]
pub fn read(container: Container, file: &[u8]) -> Annotations {
    // Memory has no errors of reading.
    read_from(container, &mut Cursor::new(file), None)
        .unwrap_or_default()
        .annotations
}

/// As [`read`], from a file, of which only the parts are read that say something. Of a TIFF file the first
/// page counts, or the one whose directory is at `page`.
pub fn read_from(
    container: Container,
    input: &mut (impl BufRead + Seek),
    page: Option<u64>,
) -> io::Result<FileMetadata> {
    let len = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let excerpt = match container {
        Container::Png => png::excerpt(input, len)?,
        Container::Jpeg => jpeg::excerpt(input)?,
        Container::WebP => webp::excerpt(input, len)?,
        Container::Tiff => tiff::excerpt(input, len, page)?,
        Container::Bmp => bmp::excerpt(input)?,
        Container::Pnm => return pnm::read(input),
    };
    let mut annotations = understood(container, &excerpt.bytes);
    let mut words = excerpt.too_large;
    let mut damaged = excerpt.damaged;
    for word in std::mem::take(&mut annotations.damaged) {
        once(&mut damaged, word);
    }
    let mut unknown = excerpt.unknown;
    unknown.extend(
        std::mem::take(&mut annotations.unknown)
            .into_iter()
            .map(str::to_owned),
    );
    // What texts unpacked to was too much, if they were not of a kind that is not understood.
    for word in annotations
        .left_out
        .extract_if(.., |word| *word != word::EXTENDED_XMP)
    {
        once(&mut words, word);
    }
    Ok(FileMetadata {
        annotations,
        icc_profile: excerpt.icc_profile.filter(|profile| !profile.is_empty()),
        too_large: words,
        damaged,
        unknown,
        hints: excerpt.hints,
        plays: excerpt.plays,
        frames: excerpt.frames,
        has_default_picture: excerpt.has_default_picture,
        has_shallow_key: excerpt.has_shallow_key,
        changes: excerpt.changes,
        ..FileMetadata::default()
    })
}

/// Bytes of the largest file that is read whole to be searched.
pub(super) const MOST_SEARCHED: u64 = 256 << 20;

/// What a file says whose pixels FFmpeg decodes, or which is an animation: GIF, PNG, WebP, PSD, DPX, AVIF,
/// HEIF, JPEG 2000 and JPEG XL in boxes. Of others nothing is read but the first bytes.
pub fn search(input: &mut (impl BufRead + Seek)) -> io::Result<FileMetadata> {
    let len = input.seek(SeekFrom::End(0))?;
    input.seek(SeekFrom::Start(0))?;
    let head = take_array::<12>(input)?.unwrap_or_default();
    input.seek(SeekFrom::Start(0))?;
    let read: fn(&[u8]) -> FileMetadata = match &head {
        [b'G', b'I', b'F', ..] => return gif::read(input),
        [0x89, b'P', b'N', b'G', ..] => {
            let mut found = read_from(Container::Png, input, None)?;
            if found.has_default_picture {
                found
                    .unknown
                    .push("default picture, which is no frame of the animation".to_owned());
            }
            if found.has_shallow_key {
                found
                    .unknown
                    .push("transparency of gray of fewer than 8 bits, which FFmpeg does not find".to_owned());
            }
            return Ok(found);
        }
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => {
            return read_from(Container::WebP, input, None);
        }
        [b'S', b'D', b'P', b'X', ..] | [b'X', b'P', b'D', b'S', ..] => {
            let mut header = Vec::new();
            input.take(dpx::HEADER).read_to_end(&mut header)?;
            return Ok(dpx::read(&header));
        }
        [b'8', b'B', b'P', b'S', ..] => psd::read,
        head if boxes::is_known(head) => boxes::read,
        _ => return Ok(FileMetadata::default()),
    };
    if len > MOST_SEARCHED {
        return Ok(FileMetadata {
            is_unsearched: true,
            ..FileMetadata::default()
        });
    }
    let mut file = Vec::new();
    input.read_to_end(&mut file)?;
    Ok(read(&file))
}

/// What an excerpt says.
pub(super) fn understood(container: Container, file: &[u8]) -> Annotations {
    with_density_of_exif(match container {
        Container::Png => png::read(file),
        Container::Jpeg => jpeg::read(file),
        Container::WebP => webp::read(file),
        Container::Tiff => tiff::read(file),
        Container::Bmp => bmp::read(file),
        Container::Pnm => Annotations::default(),
    })
}

/// The annotations with the resolution that the Exif block states where the file itself states none.
pub(super) fn with_density_of_exif(mut found: Annotations) -> Annotations {
    let inner = found.exif.as_deref().and_then(exif::density);
    if found.density.is_none_or(|d| d.unit == DensityUnit::None)
        && let Some(inner) = inner
    {
        found.density = Some(inner);
    }
    found
}
