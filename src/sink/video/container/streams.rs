//! Whether a container holds streams of the input, found out by trying.

use super::sample::{Sample, has_all, write_all};
use super::times::SOUND_LASTS;
use super::{AddVideo, Container, explained};
use crate::frame::Rational;
use crate::media::ffmpeg::{
    AudioTranscoder, AvError, Demuxer, Medium, Muxer, Packet, StreamFacts, copied_taken_for,
    copied_unnamed_taken_for,
};
use std::ffi::CStr;

/// Packets of a stream that a trial writes.
pub(in crate::sink::video) const PACKETS_TRIED: usize = 8;

/// Packets of sound that a trial writes where readers take more to know its codec: of TrueHD a hundred.
const MANY: usize = 160;

/// The mark of private data in transport streams: its stream type.
const PRIVATE_DATA: u32 = 6;

/// Texts about a stream that are not true of it any more once it is re-encoded.
pub(in crate::sink::video) const STALE_TEXTS: &[&CStr] = &[
    c"encoder",
    c"DURATION",
    c"BPS",
    c"NUMBER_OF_FRAMES",
    c"NUMBER_OF_BYTES",
    c"_STATISTICS_TAGS",
    c"_STATISTICS_WRITING_APP",
    c"_STATISTICS_WRITING_DATE_UTC",
];

/// How a stream of the input comes into the output.
pub(in crate::sink::video) enum StreamHandling {
    /// Its packets as they are, under the input's four-letter mark or the container's own.
    Copy { keep_tag: bool },
    /// Its sound re-encoded.
    Encode(Box<AudioTranscoder>),
}

impl StreamHandling {
    /// What its packets are timed in, of a stream with these facts.
    pub(super) fn time_base(&self, facts: &StreamFacts) -> Rational {
        match self {
            StreamHandling::Copy { .. } => facts.time_base,
            StreamHandling::Encode(transcoder) => transcoder.time_base(),
        }
    }

    /// The codec of its packets, of a stream with these facts.
    pub(super) fn codec(&self, facts: &StreamFacts) -> String {
        match self {
            StreamHandling::Copy { .. } => facts.codec.clone(),
            StreamHandling::Encode(transcoder) => transcoder.codec_name(),
        }
    }

    /// Adds stream `index` of `demuxer` to `muxer`.
    pub(in crate::sink::video) fn add(
        &self,
        muxer: &mut Muxer,
        demuxer: &Demuxer,
        index: usize,
    ) -> Result<usize, AvError> {
        match self {
            StreamHandling::Copy { keep_tag } => muxer.add_copied(demuxer, index, *keep_tag),
            StreamHandling::Encode(transcoder) => {
                muxer.add_transcoded(demuxer, index, transcoder, STALE_TEXTS)
            }
        }
    }
}

impl Container {
    /// The channels of sound, and those for which readers of the container take them, in words, if they are
    /// others. `packets` are some of stream `index` of `demuxer`, as it is handled.
    pub(in crate::sink::video) fn changed_layout(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: &[&Packet],
    ) -> Option<(String, String)> {
        // A trial takes a picture, and what is written then names no channels.
        if self.wants_video_first() {
            return match handling {
                StreamHandling::Copy { .. } => copied_unnamed_taken_for(demuxer, index),
                StreamHandling::Encode(transcoder) => transcoder.unnamed_taken_for(),
            };
        }
        let base = handling.time_base(&demuxer.stream(index)?);
        let mut muxer = self.in_memory().ok()?;
        let to = handling.add(&mut muxer, demuxer, index).ok()?;
        muxer.begin().ok()?;
        write_all(&mut muxer, to, base, packets.iter().copied())?;
        let back = Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name).ok()?;
        match handling {
            StreamHandling::Copy { .. } => copied_taken_for((demuxer, index), &back),
            StreamHandling::Encode(transcoder) => transcoder.taken_for(&back),
        }
    }

    /// True for containers that refuse other streams before the video.
    pub(in crate::sink::video) fn wants_video_first(&self) -> bool {
        self.name.starts_with("mxf")
    }

    /// Whether the head can be written with the filtered stream and these others, each where it stands in the
    /// input, or behind the filtered one where that must be the first; if not, the reason.
    pub(in crate::sink::video) fn try_head<'a>(
        &self,
        add_video: AddVideo<'_>,
        (demuxer, filtered): (&Demuxer, usize),
        others: impl Iterator<Item = (usize, &'a StreamHandling)>,
    ) -> Result<(), String> {
        let others: Vec<_> = others.collect();
        let run = |others: &[(usize, &StreamHandling)], can_seek: bool| -> Result<(), AvError> {
            let mut muxer = self.in_memory()?;
            if !can_seek {
                muxer.forbid_seeking();
            }
            let mut has_video = self.wants_video_first();
            if has_video {
                add_video(&mut muxer)?;
            }
            for &(index, handling) in others {
                if index > filtered && !has_video {
                    add_video(&mut muxer)?;
                    has_video = true;
                }
                handling.add(&mut muxer, demuxer, index)?;
            }
            if !has_video {
                add_video(&mut muxer)?;
            }
            muxer.begin()
        };
        explained(|| run(&others, true))?;
        // A head that cannot be written to a pipe even for the video alone is not refused for the others.
        if self.can_seek || run(&[], false).is_err() {
            return Ok(());
        }
        explained(|| run(&others, false))
    }

    /// Whether the container holds stream `index` of `demuxer`, of which `packets` are some, beside the
    /// filtered one; if not, the reason.
    pub(in crate::sink::video) fn try_stream(
        &self,
        add_video: AddVideo<'_>,
        (demuxer, filtered): (&Demuxer, usize),
        (index, handling): (usize, &StreamHandling),
        packets: &[&Packet],
    ) -> Result<(), String> {
        let others = std::iter::once((index, handling));
        self.try_head(add_video, (demuxer, filtered), others)
            .map_err(|reason| self.refused(demuxer, index, &reason))?;
        let facts = demuxer.stream(index);
        let medium = facts.as_ref().map_or(Medium::Other, |facts| facts.medium);
        // An attachment comes beside the video, other streams are recognised more safely if they are alone.
        let alone = match medium {
            Medium::Attachment => None,
            _ => self.comes_back(None, demuxer, (index, handling), packets),
        };
        // A codec that is still looked for may be found in more sound: what there is, again and again.
        // Players of discs look for none.
        let alone = match (alone, facts, packets) {
            (Some(false), Some(facts), [_, ..]) if medium == Medium::Audio && !self.is_disc() => {
                let many = repeated(packets, handling.time_base(&facts));
                let many = many.iter().collect::<Vec<&Packet>>();
                self.comes_back(None, demuxer, (index, handling), &many)
            }
            (known, ..) => known,
        };
        let comes_back = alone.or_else(|| {
            // What cannot be read without the stream, either, shows nothing.
            let sample = self.sample.as_ref().filter(|sample| self.keeps(sample))?;
            let beside = self.comes_back(Some(sample), demuxer, (index, handling), packets);
            Some(beside.unwrap_or(false))
        });
        match (comes_back, medium) {
            (Some(true) | None, _) => Ok(()),
            (Some(false), Medium::Audio | Medium::Subtitle | Medium::Data) => Err(format!(
                "{} has no name for its codec, or no place for what its decoder must know",
                self.name
            )),
            _ => Err(format!("{} does not keep it", self.name)),
        }
    }

    /// What to say of stream `index` of `demuxer` if the head cannot be written with it for `reason`. FFmpeg
    /// counts the streams of the trial, and calls missing what a container is not made for.
    fn refused(&self, demuxer: &Demuxer, index: usize, reason: &str) -> String {
        const OF_CODEC: &[&str] = &[
            "Could not find tag for codec",
            "patches welcome",
            "are supported for WebM",
            "Subtitle codec",
        ];
        let facts = demuxer.stream(index);
        let kind = facts.as_ref().and_then(|facts| match facts.medium {
            Medium::Subtitle => Some("subtitles"),
            Medium::Attachment => Some("attachments"),
            _ => None,
        });
        let is_video = |facts: &StreamFacts| facts.medium == Medium::Video;
        if facts
            .as_ref()
            .is_some_and(|facts| is_video(facts) && facts.width <= 0)
        {
            return "FFmpeg finds no size of its pictures".to_owned();
        }
        let is_of_codec = OF_CODEC.iter().any(|words| reason.contains(words));
        match facts.zip(kind) {
            Some((facts, kind)) if is_of_codec && facts.codec != "none" => {
                format!("{} holds no {kind} as {}", self.name, facts.codec)
            }
            _ => format!("{} cannot hold it: {reason}", self.name),
        }
    }

    /// Whether a file with the video alone gives that back.
    fn keeps(&self, sample: &Sample) -> bool {
        let written = || {
            let mut muxer = self.in_memory().ok()?;
            let to = sample.add(&mut muxer).ok()?;
            muxer.begin().ok()?;
            write_all(&mut muxer, to, sample.base, &sample.packets)?;
            Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name).ok()
        };
        written().is_some_and(|back| has_all(back, sample))
    }

    /// Whether a file with the stream, beside the video if that is given, gives it back as what it is, and
    /// all of the video; `None` if a file so short does not show that.
    fn comes_back(
        &self,
        video: Option<&Sample>,
        demuxer: &Demuxer,
        (index, handling): (usize, &StreamHandling),
        packets: &[&Packet],
    ) -> Option<bool> {
        let facts = demuxer.stream(index)?;
        let written = handling.codec(&facts);
        let is_private = facts.tag == PRIVATE_DATA && demuxer.format_name() == self.name;
        let mut muxer = self.in_memory().ok()?;
        let beside = match video {
            Some(sample) => Some((sample, sample.add(&mut muxer).ok()?)),
            None => None,
        };
        let to = handling.add(&mut muxer, demuxer, index).ok()?;
        muxer.begin().ok()?;
        if !muxer.is_attachment(to) {
            if packets.is_empty() {
                // Containers that list their streams in passing do so when a packet comes, whatever is in it.
                let base = muxer.time_base(to);
                muxer.write(&mut Packet::zeros(8, 0).ok()?, to, base).ok()?;
            } else {
                let base = handling.time_base(&facts);
                write_all(&mut muxer, to, base, packets.iter().copied())?;
            }
        }
        if let Some((sample, to)) = beside {
            write_all(&mut muxer, to, sample.base, &sample.packets)?;
        }
        let bytes = muxer.finish_in_memory().ok()?;
        let back = Demuxer::from_bytes(bytes, &self.name).ok()?;
        // Some containers know a codec's name and have no place for its decoder's configuration.
        let decodes = |at: usize| back.opens_decoder(at) || !demuxer.opens_decoder(index);
        let found = (0..back.stream_count())
            .filter_map(|at| Some((at, back.stream(at)?)))
            .any(|(at, found)| match facts.medium {
                // Whatever has no name of its own is data, in transport streams private data.
                Medium::Data => {
                    let is_named = found.has_codec || is_private && found.tag == PRIVATE_DATA;
                    found.medium == Medium::Data && found.codec == facts.codec && is_named
                }
                Medium::Attachment => found.medium == Medium::Attachment,
                // A lone video's codec may take more of it to be recognised.
                Medium::Video => found.medium == Medium::Video && found.has_codec,
                medium => found.medium == medium && is_same_kind(&found.codec, &written) && decodes(at),
            });
        Some(found && video.is_none_or(|sample| has_all(back, sample)))
    }
}

/// As many packets as readers take to know a codec, of these, whose times are in ticks of `base`.
fn repeated(packets: &[&Packet], base: Rational) -> Vec<Packet> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else {
        return Vec::new();
    };
    let time = |packet: &Packet| packet.dts().or_else(|| packet.pts()).unwrap_or(0);
    let lasts = match last.duration() {
        0 => (SOUND_LASTS / base.to_f64()) as i64,
        known => known,
    };
    let round = time(last) + lasts.max(1) - time(first);
    let all = (0..).flat_map(|turn| packets.iter().map(move |packet| (packet, turn * round)));
    let late = |(packet, later): (&&Packet, i64)| {
        let mut packet = packet.duplicate().ok()?;
        packet.shift(later);
        Some(packet)
    };
    all.take(MANY).map_while(late).collect()
}

/// True if a stream of codec `a` may be taken for one of codec `b` where there is little of it, or where the
/// container has one name for both.
fn is_same_kind(a: &str, b: &str) -> bool {
    let family = |codec: &str| match codec {
        "mp1" | "mp2" | "mp3" => "MPEG audio".to_owned(),
        "ass" | "ssa" => "ass".to_owned(),
        "subrip" | "srt" | "text" => "text".to_owned(),
        codec if codec.starts_with("pcm_") => "pcm".to_owned(),
        codec => codec.to_owned(),
    };
    family(a) == family(b)
}
