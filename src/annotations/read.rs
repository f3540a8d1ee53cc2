//! Reading: what the excerpt of a file says.

use super::bytes::take_array;
use super::containers::{bmp, boxes, dpx, fits, gif, jpeg, png, pnm, psd, radiance, sgi, tiff, webp};
use super::kind::Container;
use super::metadata::{FileMetadata, MOST_SEARCHED};
use super::{Annotations, once, word};
use std::io::{self, BufRead, Cursor, Read, Seek, SeekFrom};

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
        Container::Radiance => return radiance::read(input),
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

/// What a file says whose pixels FFmpeg decodes, or which is an animation: GIF, PNG, WebP, PSD, DPX, SGI,
/// FITS, AVIF, HEIF, JPEG 2000 and JPEG XL in boxes. Of others nothing is read but the first bytes.
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
        [0x01, 0xda, 0 | 1, 1 | 2, ..] => {
            let mut header = Vec::new();
            input.take(sgi::HEADER).read_to_end(&mut header)?;
            return Ok(sgi::read(&header));
        }
        [b'S', b'I', b'M', b'P', b'L', b'E', b' ', b' ', b'=', ..] => return fits::read(input),
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
    let found = match container {
        Container::Png => png::read(file),
        Container::Jpeg => jpeg::read(file),
        Container::WebP => webp::read(file),
        Container::Tiff => tiff::read(file),
        Container::Bmp => bmp::read(file),
        Container::Pnm | Container::Radiance => Annotations::default(),
    };
    found.with_density_of_exif()
}
