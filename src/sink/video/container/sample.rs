//! Video like the filtered stream, for trials.

use crate::frame::Rational;
use crate::media::ffmpeg::{AvError, Demuxer, Encoder, Medium, Muxer, Packet};

/// Video like the filtered stream, for trials.
pub(in crate::sink::video) struct Sample {
    pub(in crate::sink::video) from: SampleSource,
    pub(in crate::sink::video) packets: Vec<Packet>,
    /// What they are timed in.
    pub(in crate::sink::video) base: Rational,
}

/// Where the packets of a sample come from.
pub(in crate::sink::video) enum SampleSource {
    /// An encoder, and the mark of its stream, if not the container's own choice.
    Encoded(Encoder, Option<[u8; 4]>),
    /// A stream of a file.
    Copied(Box<Demuxer>, usize),
}

impl Sample {
    pub(super) fn add(&self, muxer: &mut Muxer) -> Result<usize, AvError> {
        match &self.from {
            SampleSource::Encoded(encoder, tag) => muxer.add_encoded(encoder, *tag),
            SampleSource::Copied(demuxer, index) => muxer.add_copied(demuxer, *index, true),
        }
    }
}

/// The first stream of video that is no cover.
pub(in crate::sink::video) fn video_of(demuxer: &Demuxer) -> Option<usize> {
    let is_video = |at: &usize| {
        let facts = demuxer.stream(*at);
        facts.is_some_and(|facts| facts.medium == Medium::Video && !facts.is_cover)
    };
    (0..demuxer.stream_count()).find(is_video)
}

/// Writes packets, timed in `base`, into stream `to`.
pub(super) fn write_all<'a>(
    muxer: &mut Muxer,
    to: usize,
    base: Rational,
    packets: impl IntoIterator<Item = &'a Packet>,
) -> Option<()> {
    for packet in packets {
        muxer.write(&mut packet.duplicate().ok()?, to, base).ok()?;
    }
    Some(())
}

/// True if a file gives back every packet of the video, but for a last one that could not be completed.
pub(super) fn has_all(mut file: Demuxer, sample: &Sample) -> bool {
    let (Some(stream), Ok(mut packet)) = (video_of(&file), Packet::new()) else {
        return false;
    };
    let mut found = 0;
    while file.read(&mut packet).is_ok() {
        found += usize::from(packet.stream() == stream);
    }
    found + 1 >= sample.packets.len()
}
