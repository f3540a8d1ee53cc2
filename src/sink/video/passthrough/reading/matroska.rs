//! What a Matroska file says that FFmpeg's demuxer does not pass on: its own title is made right, and the
//! rest is lost.

use super::Reader;
use crate::media::containers::matroska::Unread;
use crate::media::ffmpeg::{Demuxer, Medium};
use std::path::Path;

/// What is not carried over.
pub(in crate::sink::video::passthrough) struct OfMatroska {
    unread: Unread,
    /// A title in the tags that is not the file's.
    other_title: Option<String>,
}

impl OfMatroska {
    /// Reads it from the file at `path`, which `demuxer` reads, too. FFmpeg takes a title in the tags, such
    /// as that of a series, for the file's; `demuxer` then says the file's own.
    pub(super) fn read(demuxer: &mut Demuxer, path: &Path) -> Option<OfMatroska> {
        if !demuxer.format_name().starts_with("matroska") {
            return None;
        }
        let unread = Unread::of(path)?;
        let mut texts = demuxer.texts().into_iter();
        let taken = texts.find(|(name, _)| name.eq_ignore_ascii_case("title"));
        let mut other_title = None;
        if let (Some(title), Some((_, taken))) = (&unread.title, taken)
            && taken.trim() != title.trim()
        {
            demuxer.set_text("title", title).ok()?;
            other_title = Some(taken);
        }
        Some(OfMatroska { unread, other_title })
    }
}

impl Reader {
    /// What of a Matroska file is lost because FFmpeg does not read it, as a sentence; `carried` are the
    /// streams in the output.
    pub(in crate::sink::video::passthrough) fn unread_of_matroska(
        &self,
        carried: impl Iterator<Item = usize>,
    ) -> Option<String> {
        let matroska = self.matroska.as_ref()?;
        let mut lost = matroska
            .unread
            .of_chapters(|span| self.demuxer.wants_chapter(span));
        for index in carried {
            let language = self.language_of_matroska(index);
            let label = || self.demuxer.stream(index).map(|facts| facts.label(index));
            lost.extend(
                language
                    .zip(label())
                    .map(|(tag, label)| format!("language {tag} of {label}")),
            );
        }
        let title = matroska.other_title.as_ref();
        lost.extend(title.map(|title| format!("title '{title}' of its tags")));
        let list = lost.join(", ");
        (!list.is_empty()).then(|| format!("not kept, since FFmpeg does not read it from Matroska: {list}"))
    }

    /// The tag for the language of stream `index`, where it says more than the code that FFmpeg gives.
    fn language_of_matroska(&self, index: usize) -> Option<&str> {
        let track = |index: usize| self.demuxer.stream(index).filter(|facts| !facts.is_cover);
        let medium = track(index)?.medium;
        let kind = match medium {
            Medium::Video => 1,
            Medium::Audio => 2,
            Medium::Subtitle => 17,
            Medium::Data | Medium::Attachment | Medium::Other => return None,
        };
        let others = (0..index).filter(|&other| track(other).is_some_and(|facts| facts.medium == medium));
        let tag = self.matroska.as_ref()?.unread.language(kind, others.count())?;
        let mut texts = self.demuxer.stream_texts(index).into_iter();
        (!texts.any(|(_, value)| value == tag)).then_some(tag)
    }
}
