//! All that one file says beside its pixels, and the sentences about what is left out of it.

use super::Annotations;
use crate::messages::metadata_limit::too_large;
use crate::wording::listed;

/// Bytes of the largest file that is read whole to be searched.
pub(super) const MOST_SEARCHED: u64 = 256 << 20;

/// All that a file says beside its pixels.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FileMetadata {
    /// What it says but for the profile.
    pub annotations: Annotations,
    /// The ICC profile, uncompressed; that of a TIFF file is its decoder's business.
    pub icc_profile: Option<Vec<u8>>,
    /// How the pixels are to be turned, 1 to 8, where the file says so outside of Exif and XMP, which then
    /// have no say in that.
    pub orientation: Option<u8>,
    /// The words of what is larger than [`METADATA_LIMIT`](crate::frame::METADATA_LIMIT), alone or with the
    /// rest, and was left out.
    pub too_large: Vec<&'static str>,
    /// The words of what is damaged, and was left out.
    pub damaged: Vec<&'static str>,
    /// Names of what is known to no output, and was left out.
    pub unknown: Vec<String>,
    /// Names of what only advises viewers, and was left out.
    pub hints: Vec<&'static str>,
    /// The file is so large that only its pixels are read.
    pub is_unsearched: bool,
    /// The pictures are a track, and all this speaks of a still that stands for it.
    pub is_sequence: bool,
    /// The picture is made of several that lie side by side.
    pub is_grid: bool,
    /// Decoders of this kind give pictures as they are to be shown, already turned.
    pub is_turned_by_decoder: bool,
    /// How many times an animation is shown, 0 for ever.
    pub plays: Option<u32>,
    /// How many frames an animation states and how many it holds, where these differ.
    pub frames: Option<(u32, u32)>,
    /// A picture that is no frame stands before the frames of an animated PNG, for programs that show stills.
    pub has_default_picture: bool,
    /// A gray other than black of a PNG file of fewer than 8 bits is transparent, which FFmpeg does not find.
    pub has_shallow_key: bool,
    /// The channel behind the colours of a PSD file is a saved selection of this name, and no alpha.
    pub selection: Option<String>,
    /// Colours are multiplied by alpha.
    pub is_premultiplied: bool,
    /// Sentences about what is given otherwise than the file states it.
    pub changes: Vec<String>,
}

/// A sentence about frames of an animation that state no time, or one too short for players: `count` of
/// `frames`. `stated` and `shown` are times in words.
#[must_use]
pub fn instant_frames(count: u64, frames: u64, stated: &str, shown: &str) -> Option<String> {
    let (states, is) = match count {
        0 => return None,
        1 => ("states", "is"),
        _ => ("state", "are"),
    };
    Some(format!(
        "{count} of its {frames} frames {states} a time of {stated}, and {is} shown for {shown}, as in \
         browsers"
    ))
}

impl FileMetadata {
    /// How the picture is to be turned, 1 to 8.
    #[must_use]
    pub fn orientation(&self) -> Option<u8> {
        self.orientation.or_else(|| self.annotations.orientation())
    }

    /// The sentences about what is left out, joined, if something is.
    #[must_use]
    pub fn sentence(&self) -> Option<String> {
        let large = (!self.too_large.is_empty()).then(|| too_large(&self.too_large.join(", ")));
        let damaged = (!self.damaged.is_empty()).then(|| {
            format!(
                "holds damaged parts, which are left out: {}",
                self.damaged.join(", ")
            )
        });
        let unknown = (!self.unknown.is_empty()).then(|| {
            format!(
                "holds what no output is given, which is left out: {}",
                listed(self.unknown.clone())
            )
        });
        let unsearched = self.is_unsearched.then(|| {
            let most = MOST_SEARCHED >> 20;
            format!("is larger than {most} MiB, so that only its pixels are read")
        });
        let overruled = self.overruled_orientation().map(|orientation| {
            format!(
                "states orientation {orientation} in its Exif or XMP, where such files do not state it, and \
                none in its own properties: the pictures are not turned"
            )
        });
        let frames = self
            .frames
            .map(|(stated, held)| format!("states {stated} frames and holds {held}"));
        let sentences: Vec<String> = [large, damaged, unknown, unsearched, overruled, frames]
            .into_iter()
            .flatten()
            .collect();
        (!sentences.is_empty()).then(|| sentences.join("; it "))
    }

    /// The sentences about what is left out and changes no picture, and about what is changed, joined, if
    /// there are any.
    #[must_use]
    pub fn note(&self) -> Option<String> {
        let hints = self.hints.join(", ");
        let hints = (!hints.is_empty()).then(|| format!("advice to viewers is left out: {hints}"));
        let sentences: Vec<String> = hints.into_iter().chain(self.changes.iter().cloned()).collect();
        (!sentences.is_empty()).then(|| sentences.join("; "))
    }

    /// The orientation that Exif or XMP ask for in a file whose own properties turn nothing.
    fn overruled_orientation(&self) -> Option<u8> {
        let asked = self
            .annotations
            .orientation()
            .filter(|&orientation| orientation > 1);
        asked.filter(|_| self.orientation == Some(1))
    }
}
