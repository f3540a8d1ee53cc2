//! Stills that FFmpeg decodes. Each is opened as a video of one picture, and decoded at once, since only the
//! picture tells its format; what the decoder does not give is searched for in the file's bytes.

use super::Rules;
use super::picture::PictureNotes;
use super::still::{invalid, io_error};
use crate::frame::fact::Fact;
use crate::frame::{Colour, Frame, FramePool, METADATA_LIMIT, Pageable, too_large};
use crate::source::video::{VideoSource, VideoSourceOptions};
use crate::source::{Access, Source, SourceError, Supply};
use crate::still::ImageKind;
use crate::still::annotations::{self, FileMetadata};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Buffers of a decoder of FFmpeg's for one picture.
const BUFFERS: usize = 4;

/// A picture that FFmpeg has decoded.
pub(super) struct FfmpegStill {
    pub(super) frame: Frame,
    notes: Vec<String>,
    metadata: FileMetadata,
}

impl FfmpegStill {
    /// Decodes the first picture.
    pub(super) fn open(path: &Path, kind: ImageKind, rules: Rules) -> Result<FfmpegStill, SourceError> {
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
        let mut metadata = match kind {
            ImageKind::Pcx => pcx_metadata(path),
            _ => File::open(path).and_then(|file| annotations::search(&mut BufReader::new(file))),
        }
        .map_err(|cause| io_error(path, cause))?;
        let is_large = |profile: &mut Vec<u8>| profile.len() > METADATA_LIMIT;
        let mut notes = Vec::new();
        if metadata.icc_profile.take_if(is_large).is_some() {
            notes.push(too_large("ICC profile"));
        }
        if source.next(&supply)?.is_some() {
            notes.push("several pictures are in the file, of which the first is read".to_owned());
        }
        notes.append(&mut source.findings().warnings);
        Ok(FfmpegStill {
            frame,
            notes,
            metadata,
        })
    }

    pub(super) fn colour(&self) -> Colour {
        self.frame.metadata.colour
    }

    pub(super) fn metadata(&self) -> FileMetadata {
        self.metadata.clone()
    }

    /// Copies the picture into `frame`, with what the decoder says of it.
    pub(super) fn read(self, frame: &mut Frame) -> PictureNotes {
        let FfmpegStill {
            frame: decoded,
            notes,
            metadata: described,
        } = self;
        for index in 0..decoded.layout().planes().len() {
            for y in 0..decoded.layout().planes()[index].height {
                frame.row_mut(index, y).copy_from_slice(decoded.row(index, y));
            }
        }
        let mut metadata = decoded.metadata.clone();
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
        let orientation = match described.is_turned_by_decoder {
            true => Some(1),
            false => described.orientation,
        };
        frame.metadata = metadata;
        PictureNotes {
            icc_profile,
            orientation,
            losses: notes,
            ..PictureNotes::default()
        }
    }
}

/// What the header of a PCX file says.
fn pcx_metadata(path: &Path) -> io::Result<FileMetadata> {
    let mut header = Vec::new();
    File::open(path)?.take(128).read_to_end(&mut header)?;
    Ok(annotations::pcx::read(&header))
}
