//! Texts and chapters: those of the whole file, and those of the filtered stream.

use super::reading::Reader;
use crate::media::ffmpeg::{AvError, Muxer};
use crate::sink::video::container::STALE_TEXTS;
use crate::sink::video::container::kept;
use std::ffi::CStr;

/// Texts about the whole file that describe the old container and that the new one writes for itself.
const STALE_FILE_TEXTS: &[&CStr] = &[
    c"encoder",
    c"major_brand",
    c"minor_version",
    c"compatible_brands",
    c"duration",
];

/// Texts about the filtered stream, beside those of each encoded one, that are no longer true of it.
const STALE_VIDEO_TEXTS: &[&CStr] = &[c"rotate", c"alpha_mode"];

/// Has MP4 and MOV write all texts under their names, where some are of the kind that they know no place
/// for. Not where a cover is among the `streams` of the input that go in: it cannot be written beside such
/// texts.
pub(super) fn choose_form(reader: &Reader, muxer: &mut Muxer, mut streams: impl Iterator<Item = usize>) {
    let is_cover = |index| reader.demuxer.stream(index).is_some_and(|facts| facts.is_cover);
    let has_cover = streams.any(is_cover);
    let mut texts = reader.demuxer.texts().into_iter();
    if !has_cover && texts.any(|(name, _)| kept::is_reverse_domain(&name)) {
        // Other containers have no such option, and need none.
        let _ = muxer.set("movflags", "+use_metadata_tags");
    }
}

/// Gives the encoded stream `to` what the filtered one says of itself.
pub(super) fn describe_video(reader: &Reader, muxer: &mut Muxer, to: usize) -> Result<(), AvError> {
    let stale = [STALE_TEXTS, STALE_VIDEO_TEXTS, stale_timecode(reader)].concat();
    muxer.describe(to, &reader.demuxer, reader.filtered, &stale)?;
    muxer.unmark_cover(to);
    Ok(())
}

/// Has stream `to` name the language of stream `from` of the input by the code that the container knows.
pub(super) fn name_language(
    reader: &Reader,
    muxer: &mut Muxer,
    (from, to): (usize, usize),
) -> Result<(), AvError> {
    match kept::code_in(&muxer.name(), &reader.demuxer.stream_texts(from)) {
        Some(code) => muxer.set_stream_text(to, "language", code),
        None => Ok(()),
    }
}

/// Takes over the file's texts and chapters, for an output with these `streams` of the input.
pub(super) fn copy(reader: &Reader, muxer: &mut Muxer, streams: &[usize]) -> Result<(), AvError> {
    let stale = [STALE_FILE_TEXTS, stale_timecode(reader)].concat();
    muxer.copy_metadata(&reader.demuxer, &stale)?;
    // Of one program, which is the whole output.
    if let [program] = &reader.demuxer.program_texts_of(streams)[..] {
        for (name, value) in kept::service(program) {
            muxer.add_text(name, value)?;
        }
    }
    muxer.copy_chapters(&reader.demuxer)
}

/// The text with the time code, where what is read does not begin with the input.
pub(super) fn stale_timecode(reader: &Reader) -> &'static [&'static CStr] {
    if reader.demuxer.begins_later() {
        &[c"timecode"]
    } else {
        &[]
    }
}

/// True if the input has a time code, and it is left out.
pub(super) fn loses_timecode(reader: &Reader) -> bool {
    let has_timecode = || {
        reader
            .demuxer
            .all_texts()
            .iter()
            .any(|(key, _)| key.eq_ignore_ascii_case("timecode"))
    };
    !stale_timecode(reader).is_empty() && has_timecode()
}
