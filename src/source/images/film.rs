//! Stills that FFmpeg decodes. Each is opened as a video of one picture, and decoded at once, since only the
//! picture tells its format; what the decoder does not give is searched for in the file's bytes.

use super::Rules;
use super::picture::Said;
use super::still::{invalid, io_error};
use crate::frame::fact::Fact;
use crate::frame::{Colour, Frame, FramePool, METADATA_LIMIT, Pageable, too_large};
use crate::source::video::{VideoSource, VideoSourceOptions};
use crate::source::{Access, Source, SourceError, Supply};
use crate::still::ImageKind;
use crate::still::annotations::{self, Annotations, Described};
use std::path::Path;
use std::sync::Arc;

/// Bytes of the largest file that is searched for what FFmpeg's decoders do not give.
const MOST_SEARCHED: u64 = 256 << 20;

/// Buffers of a decoder of FFmpeg's for one picture.
const BUFFERS: usize = 4;

/// A picture that FFmpeg has decoded.
pub(super) struct Film {
    pub(super) frame: Frame,
    notes: Vec<String>,
    described: Described,
}

impl Film {
    /// Decodes the first picture.
    pub(super) fn open(path: &Path, kind: ImageKind, rules: Rules) -> Result<Film, SourceError> {
        let options = VideoSourceOptions {
            strict: rules.strict,
            threads: Some(1),
            access: Access {
                max_pixels: Some(rules.max_pixels),
                ..Access::default()
            },
            ..VideoSourceOptions::default()
        };
        let mut source = VideoSource::open(path, &options)?;
        let (_keep, stop) = crossbeam_channel::bounded(0);
        let supply = Supply {
            pool: FramePool::new(BUFFERS, Arc::new(Pageable)),
            stop,
        };
        let Some(frame) = source.next(&supply)? else {
            return Err(invalid(path, "holds no picture"));
        };
        let mut notes = Vec::new();
        let mut searched = || {
            let (data, left_out) = searched(path)?;
            notes.extend(left_out);
            Ok::<_, SourceError>(data)
        };
        let mut described = match kind {
            ImageKind::Avif | ImageKind::Jp2 | ImageKind::Jxl => annotations::boxes::read(&searched()?),
            ImageKind::Psd => annotations::psd::read(&searched()?),
            ImageKind::Pcx => annotations::pcx::read(&searched()?),
            _ => Described::default(),
        };
        let is_large = |profile: &mut Vec<u8>| profile.len() > METADATA_LIMIT;
        if described.icc_profile.take_if(is_large).is_some() {
            notes.push(too_large("ICC profile"));
        }
        if source.next(&supply)?.is_some() {
            notes.push("several pictures are in the file, of which the first is read".to_owned());
        }
        notes.append(&mut source.findings().warnings);
        Ok(Film {
            frame,
            notes,
            described,
        })
    }

    pub(super) fn colour(&self) -> Colour {
        self.frame.metadata.colour
    }

    pub(super) fn annotations(&self) -> Annotations {
        self.described.annotations.clone()
    }

    /// Copies the picture into `frame`, with what the decoder tells of it.
    pub(super) fn read(self, kind: ImageKind, frame: &mut Frame) -> Said {
        let Film {
            frame: film,
            notes,
            described,
        } = self;
        for index in 0..film.layout().planes().len() {
            for y in 0..film.layout().planes()[index].height {
                frame.row_mut(index, y).copy_from_slice(film.row(index, y));
            }
        }
        let mut metadata = film.metadata.clone();
        metadata.pts = None;
        metadata.duration = None;
        let mut icc_profile = described.icc_profile;
        metadata.side_data.retain(|block| match block.fact {
            Fact::IccProfile => {
                icc_profile.get_or_insert_with(|| block.data.to_vec());
                false
            }
            // Newer versions of FFmpeg tell it, too.
            Fact::Rotation => described.orientation.is_none(),
            _ => true,
        });
        // The decoder of JPEG XL has turned the picture already, whatever its Exif block says.
        let is_turned = kind == ImageKind::Jxl;
        frame.metadata = metadata;
        Said {
            icc_profile,
            orientation: described.orientation.or(is_turned.then_some(1)),
            losses: notes,
            ..Said::default()
        }
    }
}

/// A file's bytes, to be searched for annotations; none and a sentence if they are too many.
fn searched(path: &Path) -> Result<(Vec<u8>, Option<String>), SourceError> {
    let io = |cause| io_error(path, cause);
    let length = std::fs::metadata(path).map_err(io)?.len();
    if length > MOST_SEARCHED {
        let sentence = format!(
            "larger than {} MiB, so that only its pixels are read",
            MOST_SEARCHED >> 20
        );
        return Ok((Vec::new(), Some(sentence)));
    }
    Ok((std::fs::read(path).map_err(io)?, None))
}
