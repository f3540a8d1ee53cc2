//! Frames with what their file says beside them, which decoders of video leave out: Exif, XMP, a profile,
//! texts, and how they are to be turned.
//!
//! ```text
//!  a.webp, a.apng, a.gif, a.jxl --decoder--> frames --> frames with Exif, XMP, ..
//!        |                                     ^
//!        +--- read once, at the beginning -----+
//! ```

use crate::annotations::{self, Annotations, FileMetadata};
use crate::frame::fact::Fact;
use crate::frame::{Frame, Remarks, SideData, Turn};
use crate::media::ffmpeg::{Outline, for_frame};
use crate::source::images::data_behind;
use crate::source::{Source, SourceError, StreamInfo, Supply};
use std::fs::File;
use std::io::{BufReader, Cursor};
use std::path::Path;
use std::sync::Arc;

/// What a GIF file ends with.
const GIF_END: u8 = b';';

/// A source whose frames say what their file does.
struct Described {
    source: Box<dyn Source>,
    info: StreamInfo,
    annotations: Option<Arc<Annotations>>,
    /// As FFmpeg's frames have it, so that encoders find it.
    profile: Option<SideData>,
    orientation: Option<u8>,
    warning: Option<String>,
    note: Option<String>,
}

/// `source`, which reads `path`, with what that file says if it is a picture or an animation, or a GIF file
/// in a pipe; else as it is. A `strict` one fails where some of that is left out.
pub(super) fn described(
    source: Box<dyn Source>,
    path: &Path,
    strict: bool,
) -> Result<Box<dyn Source>, SourceError> {
    let name = path.display().to_string();
    let failed = |cause| SourceError::Io {
        path: name.clone(),
        cause,
    };
    let (metadata, behind) = if path.is_file() {
        let read = File::open(path).and_then(|file| annotations::search(&mut BufReader::new(file)));
        let metadata = read.map_err(failed)?;
        (metadata, data_behind(path).map_err(failed)?.map(str::to_owned))
    } else {
        // A pipe cannot be read twice.
        (of_pipe(source.info()), None)
    };
    let said: Vec<String> = metadata.sentence().into_iter().chain(behind).collect();
    let sentence = (!said.is_empty()).then(|| said.join("; "));
    if let (true, Some(sentence)) = (strict, &sentence) {
        return Err(SourceError::Invalid {
            path: name,
            problem: format!("{sentence}; without --strict it is read all the same"),
        });
    }
    if metadata == FileMetadata::default() && sentence.is_none() {
        return Ok(source);
    }
    let orientation = metadata.orientation().filter(|o| (2..=8).contains(o));
    // What turns a sequence stands in its track, and a decoder of JPEG XL turns the picture itself.
    let is_turned = metadata.is_sequence || metadata.is_turned_by_decoder;
    let orientation = orientation.filter(|_| !is_turned);
    let info = StreamInfo {
        plays: metadata.plays,
        turn: source.info().turn.or_else(|| Turn::from_exif(orientation?)),
        ..source.info().clone()
    };
    let note = metadata.note().map(|note| format!("{name}: {note}"));
    Ok(Box::new(Described {
        source,
        info,
        profile: metadata.icc_profile.and_then(profile_block),
        orientation,
        note,
        warning: sentence.map(|sentence| format!("{name}: {sentence}")),
        annotations: (metadata.annotations != Annotations::default()).then(|| Arc::new(metadata.annotations)),
    }))
}

/// What a GIF file in a pipe says as far as it was read to open it, which is all of it with FFmpeg 5.1, and
/// how often it is shown in any case.
fn of_pipe(info: &StreamInfo) -> FileMetadata {
    let outline = info.origin.as_ref().and_then(|origin| origin.outline.as_ref());
    let head = outline.map_or(&[][..], Outline::head);
    let mut metadata = annotations::search(&mut Cursor::new(head)).unwrap_or_default();
    if head.last() != Some(&GIF_END) {
        // They count all frames.
        metadata.changes.clear();
    }
    metadata
}

fn profile_block(profile: Vec<u8>) -> Option<SideData> {
    for_frame(&SideData {
        kind: 0,
        fact: Fact::IccProfile,
        name: None,
        data: profile.into(),
    })
}

impl Source for Described {
    fn inner(&self) -> Option<&dyn Source> {
        Some(&*self.source)
    }

    fn inner_mut(&mut self) -> Option<&mut dyn Source> {
        Some(&mut *self.source)
    }

    fn info(&self) -> &StreamInfo {
        &self.info
    }

    fn next(&mut self, supply: &Supply) -> Result<Option<Frame>, SourceError> {
        let Some(mut frame) = self.source.next(supply)? else {
            return Ok(None);
        };
        let stream = &self.info.side_data;
        let metadata = &mut frame.metadata;
        let says = |fact| {
            metadata
                .side_data
                .iter()
                .chain(stream)
                .any(|block| block.fact == fact)
        };
        let (has_profile, has_turn) = (says(Fact::IccProfile), says(Fact::Rotation));
        metadata.annotations.clone_from(&self.annotations);
        if !has_profile {
            metadata.side_data.extend(self.profile.clone());
        }
        if !has_turn {
            metadata.orientation = metadata.orientation.or(self.orientation);
        }
        Ok(Some(frame))
    }

    fn remarks(&mut self) -> Remarks {
        let mut remarks = self.source.remarks();
        remarks.warn(self.warning.take());
        remarks.notes.extend(self.note.take());
        remarks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::tests::{Answering, check_forwarding};

    #[test]
    fn every_method_is_forwarded() {
        let source = Answering::source();
        let mut described = Described {
            info: source.info().clone(),
            source,
            annotations: None,
            profile: None,
            orientation: None,
            warning: None,
            note: None,
        };
        check_forwarding("described", &mut described);
    }
}
