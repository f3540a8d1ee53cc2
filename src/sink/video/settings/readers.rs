//! What readers of an output take for something else: its codec, its samples, or its frame rate.

use super::rehearsal::Back;
use super::stage::Staged;
use crate::frame::{Metadata, Rational};
use crate::media::ffmpeg::{EncoderKind, Packet};
use crate::sink::constant_rate::assumed_rate;
use crate::sink::video::VideoSink;
use crate::sink::video::encoding::GifEncoder;
use crate::wording::tidy;

/// The part of a frame rate by which another one is no other: rates of NTSC are off by a thousandth.
const SAME_RATE: f64 = 0.0005;

/// Pictures of a trial of GIF.
const GIF_TRIED: i64 = 4;

impl VideoSink {
    /// True if the container is for the codec that the encoder writes.
    pub(super) fn is_its_own_codec(&self) -> bool {
        self.output.muxer.video_codec() == Some(self.kind.codec_name())
    }

    /// Says that the output would be no video to any reader.
    pub(super) fn unknown(&self) -> String {
        let container = self.container.word();
        format!(
            "{container} cannot hold {}, which the encoder {} writes: what is written cannot be read again; \
             choose another container, such as matroska, or another encoder",
            self.kind.codec_name(),
            self.kind.name(),
        )
    }

    /// Says that FFmpeg makes no picture of the output.
    pub(in crate::sink::video) fn undecodable(&self, staged: &Staged) -> String {
        format!(
            "FFmpeg itself cannot decode what {} writes as {} into {}, and other programs may not either; \
             choose another container or encoder",
            self.kind.name(),
            staged.choice.format.name(),
            self.output.muxer.name()
        )
    }

    /// Says that readers take the output's samples for others, if they came `back` and do.
    pub(super) fn misreading(&self, staged: &Staged, tried: &Metadata, back: &Back) -> Option<String> {
        let is_misread = self.on_trial(staged, |rehearsal| rehearsal.is_misread(tried, back));
        let (container, codec) = (self.output.muxer.name(), self.kind.codec_name());
        is_misread.then(|| match back.codec == codec {
            true => format!(
                "{container} does not say how {} stores samples of {}: FFmpeg reads them as {}, which shows \
                 another picture; choose another container or encoder, such as ffv1 in .mkv, or another \
                 --pixel-format",
                self.kind.name(),
                staged.choice.format.name(),
                back.format.name()
            ),
            false => format!(
                "{container} does not say that its video is {codec}: FFmpeg reads it as {}, which shows \
                 another picture; choose another container or encoder, such as ffv1 in .mkv",
                back.codec
            ),
        })
    }

    /// True if a file that states this rate is read at another one than is meant. Only streams of several
    /// pictures alone are asked: other containers time their blocks, and pictures of a trial are smaller than
    /// those.
    pub(in crate::sink::video) fn is_other_rate(&self, stated: Option<Rational>) -> bool {
        let meant = assumed_rate(&self.info).to_f64();
        let is_other = |stated: Rational| (stated.to_f64() / meant - 1.0).abs() > SAME_RATE;
        let is_stream =
            self.output.muxer.is_video_only() && !self.container.is_bare() && !self.info.is_single;
        is_stream && stated.is_some_and(is_other)
    }

    /// Says that readers show the frames at the rate `stated` and not at the one that is meant, if it is
    /// another one. For containers that have nothing else to say when frames are shown.
    pub(in crate::sink::video) fn other_rate(&self, stated: Option<Rational>) -> Option<String> {
        let stated = stated.filter(|&stated| self.is_other_rate(Some(stated)))?;
        Some(format!(
            "{} does not say the rate of {} frames/s: FFmpeg reads it at {} frames/s, and other programs may \
             do so, too; choose another container",
            self.output.muxer.name(),
            tidy(assumed_rate(&self.info).to_f64()),
            tidy(stated.to_f64())
        ))
    }

    /// Says that pictures of GIF run into one another in the container, where they do: GIF's own does not let
    /// them.
    pub(in crate::sink::video) fn merged_gif(&self, staged: &Staged) -> Option<String> {
        let own = EncoderKind::find("gif").map(EncoderKind::codec_name);
        if self.container.name() == "gif" || own != Some(self.kind.codec_name()) {
            return None;
        }
        let keeps = self.on_trial(staged, |rehearsal| {
            let packets = gif_pictures(rehearsal.small(), rehearsal.step())?;
            rehearsal.keeps_packets(packets)
        });
        (keeps == Some(false)).then(|| {
            format!(
                "{} does not keep pictures of GIF apart: FFmpeg reads several as one; choose another \
                 encoder, or .gif",
                self.container.name()
            )
        })
    }
}

/// Pictures of GIF, each of other colours than those before.
fn gif_pictures((width, height): (usize, usize), step: i64) -> Option<Vec<Packet>> {
    let mut encoder = GifEncoder::new(width, height, (1, 1));
    let mut ready = Vec::new();
    for at in 0..GIF_TRIED {
        let picture = (0..width * height).flat_map(|pixel| [at as u8, pixel as u8, 0, u8::MAX]);
        ready.extend(encoder.push(picture.collect(), at * step));
    }
    ready.extend(encoder.finish());
    let packets = ready
        .iter()
        .map(|gif| Packet::from_data(&gif.data, gif.pts, gif.is_first).ok());
    packets.collect()
}
