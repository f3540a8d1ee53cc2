//! Pictures of a transport stream that go on in another stream.
//!
//! A new table of the program (PMT) may name other packet identifiers, of which FFmpeg makes further streams.

use crate::media::ffmpeg::Medium;
use crate::source::SourceError;
use crate::source::video::VideoSource;
use std::collections::BTreeSet;

/// What is known of streams.
#[derive(Default)]
pub(in crate::source::video) struct Succession {
    /// Streams of which packets were read.
    seen: BTreeSet<usize>,
}

impl VideoSource {
    /// Notes a packet of another stream that goes on with the pictures, or fails if the source is strict.
    pub(in crate::source::video) fn note_successor(&mut self) -> Result<(), SourceError> {
        let (own, other) = (self.input.stream, self.input.packet.stream());
        let seen = &mut self.findings.succession.seen;
        if !seen.insert(other) || other == own || !seen.contains(&own) {
            return Ok(());
        }
        let demuxer = &self.input.demuxer;
        let is_video = demuxer.stream(other).map(|facts| facts.medium) == Some(Medium::Video);
        if !is_video || !demuxer.is_replaced(own, other) {
            return Ok(());
        }
        let at = self.seconds();
        self.findings.lose(
            &self.file,
            format!(
                "from {at:.3} s on the pictures of its program are in stream {other}, and what follows is \
                 not read; --stream {other} filters that"
            ),
        )
    }

    /// When the packet that was read is shown, in seconds.
    fn seconds(&self) -> f64 {
        let packet = &self.input.packet;
        let base = self.input.demuxer.time_base(packet.stream());
        let at = packet.pts().or_else(|| packet.dts()).zip(base);
        at.map_or(0.0, |(at, base)| at as f64 * base.to_f64())
    }
}
