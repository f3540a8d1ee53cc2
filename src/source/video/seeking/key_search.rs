//! A search for key frames by a container's index.

use super::key_frame;
use crate::media::ffmpeg::{Demuxer, Packet};
use crate::source::SourceError;
use crate::source::video::VideoSource;

/// Which pictures a part may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) enum KeyKind {
    /// All that need none before them.
    Clean,
    /// IDR pictures of H.264, beyond which no later picture refers either.
    Idr,
}

/// Finds key frames by the container's index, with a demuxer of its own.
pub(in crate::source::video) struct KeyFrames {
    pub(super) demuxer: Demuxer,
    packet: Packet,
    stream: usize,
    codec: String,
    kind: KeyKind,
}

impl KeyFrames {
    /// Those of `kind` in the source's stream.
    pub(in crate::source::video) fn new(
        source: &VideoSource,
        kind: KeyKind,
    ) -> Result<KeyFrames, SourceError> {
        let mut demuxer = source.file.open()?;
        for other in (0..demuxer.stream_count()).filter(|&other| other != source.input.stream) {
            demuxer.discard(other);
        }
        Ok(KeyFrames {
            demuxer,
            packet: Packet::new().map_err(|e| source.file.lacking(e))?,
            stream: source.input.stream,
            codec: source.decoder.codec_name(),
            kind,
        })
    }

    /// When the first key frame is shown that seeking to `tick` leads to and that is shown from `least` to
    /// `most`. A container that cannot seek there has none: parts get longer, and none gets wrong.
    pub(in crate::source::video) fn first_from(
        &mut self,
        tick: i64,
        (least, most): (i64, i64),
    ) -> Option<i64> {
        self.demuxer.seek(self.stream, tick).ok()?;
        while let Some(shown) = self.read() {
            if shown >= least && self.is_key() {
                return (shown <= most).then_some(shown);
            }
            if shown > most {
                break;
            }
        }
        None
    }

    /// When the last key frame is shown that is shown at `tick` or before; `step` ticks further back are
    /// tried at first where seeking leads to another packet.
    pub(in crate::source::video) fn last_to(&mut self, tick: i64, step: i64) -> Option<i64> {
        let mut back = 0;
        loop {
            let aim = (tick - back).max(0);
            self.demuxer.seek(self.stream, aim).ok()?;
            match self.read() {
                Some(shown) if shown <= tick && self.is_key() => return Some(shown),
                _ if aim == 0 => return None,
                _ => back = (4 * back).max(step.max(1)),
            }
        }
    }

    /// Reads the next packet of the stream that says when it is shown.
    fn read(&mut self) -> Option<i64> {
        while self.demuxer.read(&mut self.packet).is_ok() {
            let is_ours = self.packet.stream() == self.stream && !self.packet.is_discarded();
            if let Some(shown) = self.packet.pts().filter(|_| is_ours) {
                return Some(shown);
            }
        }
        None
    }

    /// True if a part can begin with the packet.
    fn is_key(&self) -> bool {
        let (headers, data) = (self.demuxer.extradata(self.stream), self.packet.data());
        self.packet.is_key()
            && match self.kind {
                KeyKind::Clean => key_frame::is_clean(&self.codec, headers, data),
                KeyKind::Idr => key_frame::is_idr(headers, data),
            }
    }
}
