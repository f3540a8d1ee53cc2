//! What Matroska stores beside each picture (block additions). Of it FFmpeg's decoders read the alpha of VP8
//! and VP9 alone.

use crate::frame::fact::Fact;
use crate::source::SourceError;
use crate::source::video::VideoSource;
use std::collections::BTreeSet;

/// How ITU-T T.35 marks HDR10+: the country, the provider, its code and the application, ST 2094-40.
const HDR10_PLUS: [u8; 6] = [0xb5, 0, 0x3c, 0, 1, 4];

/// The ID of additions that are the codec's own: alpha, of VP8 and VP9.
const OF_CODEC: u64 = 1;

/// Kinds of additions that are remembered.
const MOST_KINDS: usize = 16;

/// Words for an addition of a stream of `codec`; `None` for alpha, which is accounted for elsewhere.
fn words(codec: &str, (id, data): (u64, &[u8])) -> Option<String> {
    if data.starts_with(&HDR10_PLUS) {
        return Some(Fact::Hdr10Plus.word().to_owned());
    }
    let is_alpha = id == OF_CODEC && matches!(codec, "vp8" | "vp9");
    (!is_alpha).then(|| format!("block additions of ID {id}"))
}

/// A sentence about additions that are not read.
pub(super) fn sentence(additions: &BTreeSet<String>) -> Option<String> {
    let list: Vec<&str> = additions.iter().map(String::as_str).collect();
    (!list.is_empty()).then(|| {
        format!(
            "not kept, since FFmpeg does not read it from Matroska's blocks: {}",
            list.join(", ")
        )
    })
}

impl VideoSource {
    /// Notes what comes beside the packet that was read and is lost, or fails if the source is strict.
    pub(in crate::source::video) fn note_additions(&mut self) -> Result<(), SourceError> {
        let Some(addition) = self.input.packet.block_addition() else {
            return Ok(());
        };
        let Some(words) = words(&self.decoder.codec_name(), addition) else {
            return Ok(());
        };
        let additions = &mut self.findings.additions;
        let is_new = additions.len() < MOST_KINDS && additions.insert(words);
        match sentence(additions).filter(|_| is_new && self.findings.strict) {
            Some(lost) => Err(self
                .file
                .invalid(format!("{lost}; without --strict it is read so"))),
            None => Ok(()),
        }
    }
}
