//! What a module that decodes a kind of image file gives: a picture whose header has been read, or the reason
//! why there is none. A new kind is a variant and a row in `media/still/kind.rs`, and such a module.

use crate::annotations::FileMetadata;
use crate::annotations::exr::ExrPart;
use crate::frame::{Colour, Range};
use std::io;
use std::sync::Arc;

/// A picture of a kind that a module here decodes, its header read.
pub(super) trait OpenPicture {
    /// Pixels across and down.
    fn size(&self) -> (usize, usize);

    /// FFmpeg's name of the format that it is given in.
    fn format(&self) -> &'static str;

    /// The colour facts of the pixels.
    fn colour(&self) -> Colour {
        Colour {
            range: Range::Full,
            ..Colour::default()
        }
    }

    /// What it says beside its pixels, if the file's kind has no [`crate::annotations::Container`].
    fn metadata(&self) -> FileMetadata {
        FileMetadata::default()
    }

    /// The most bytes of the picture that a byte of the file can stand for; `None` if one of a single colour
    /// takes next to nothing, however large it is.
    fn most_packed(&self) -> Option<u64>;

    /// Bytes that the frame keeps beside its samples.
    fn kept_bytes(&self) -> u64 {
        0
    }

    /// Decodes into `samples`, which has room for the pixels without padding.
    fn decode(self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason>;
}

/// Why a picture cannot be decoded.
pub(super) enum Reason {
    Io(io::Error),
    Words(String),
}

impl From<io::Error> for Reason {
    fn from(cause: io::Error) -> Reason {
        Reason::Io(cause)
    }
}

impl From<String> for Reason {
    fn from(words: String) -> Reason {
        Reason::Words(words)
    }
}

impl From<&str> for Reason {
    fn from(words: &str) -> Reason {
        Reason::Words(words.to_owned())
    }
}

/// What is said of a picture beside its pixels.
#[derive(Default)]
pub(super) struct PictureNotes {
    pub(super) icc_profile: Option<Vec<u8>>,
    pub(super) orientation: Option<u8>,
    /// Width over height of a pixel, if both are above 0.
    pub(super) sample_aspect: (i32, i32),
    /// What an OpenEXR file says beside the samples.
    pub(super) exr: Option<Arc<ExrPart>>,
    /// What of the picture is missing, damaged or cut.
    pub(super) losses: Vec<String>,
    /// How samples were converted.
    pub(super) conversion: Option<String>,
}

/// A sentence about `what` stands in each pixel beside its colours, which is no alpha by the file's account.
pub(super) fn unused_sentence(what: &str) -> String {
    format!("the {what} of each pixel is left out, since the file does not call it alpha")
}

/// A sentence about `samples` of colours that were multiplied by alpha and are greater than it, if there are
/// any.
pub(super) fn cut_sentence(samples: u64) -> Option<String> {
    (samples > 0).then(|| {
        format!(
            "{} greater than their alpha, by which they are divided, and are cut; in floating point they are \
             kept",
            match samples {
                1 => "1 sample is".to_owned(),
                samples => format!("{samples} samples are"),
            }
        )
    })
}
