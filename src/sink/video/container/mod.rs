//! What a container holds, found out by trying: the head is written into memory with the real streams, and
//! what it kept is read back.
//!
//! FFmpeg's own answer (`avformat_query_codec`) is wrong both ways: Matroska denies codecs that it stores
//! under the names of other systems, MPEG-TS takes anything as data without a name, and raw muxers write any
//! packet between the frames.

pub(super) mod kept;

use crate::ffmpeg::{
    AudioTranscoder, AvError, AvFormat, Demuxer, Encoder, EncoderKind, EncoderSetup, Medium, Muxer, Packet,
    log,
};
use crate::frame::Rational;
use std::ffi::CStr;
use std::path::{Path, PathBuf};

/// Packets of a stream that a trial writes.
pub(super) const PACKETS_TRIED: usize = 8;

/// Texts about a stream that are not true of it any more once it is encoded anew.
pub(super) const STALE_TEXTS: &[&CStr] = &[
    c"encoder",
    c"DURATION",
    c"BPS",
    c"NUMBER_OF_FRAMES",
    c"NUMBER_OF_BYTES",
    c"_STATISTICS_TAGS",
    c"_STATISTICS_WRITING_APP",
    c"_STATISTICS_WRITING_DATE_UTC",
];

/// Seconds that a container's milliseconds may be off, on the way in and on the way out.
const ROUNDING: f64 = 0.0016;

/// Seconds by which sound is moved to have a container's ticks round it to where it belongs, the difference
/// that counts, and the error that is small enough.
const FINE: [f64; 4] = [0.0, -0.0005, 0.0005, -0.001];
const EQUAL: f64 = 0.0002;
const FINE_ENOUGH: f64 = 0.000_55;

/// Seconds that a picture and a packet of sound of a trial last.
const PICTURE_LASTS: f64 = 0.04;
const SOUND_LASTS: f64 = 0.02;

/// Seconds that a picture may be moved by a container that counts frames instead of time.
const COARSE: f64 = 0.03;

/// Packets of sound below which a trial does not show whether their times are kept, the seconds and the part
/// of its length by which their span may be off, and the seconds of a gap that is tried.
const LEAST_TRIED: usize = 4;
const SLIGHT: f64 = 0.003;
const UNEVEN: f64 = 0.2;
const GAP: f64 = 1.0;

/// Seconds of sound that take more than one page of Ogg.
const OGG_PAGES: f64 = 2.0;

/// The option that has a muxer write times before zero as they are.
pub(super) const KEEP_NEGATIVE: (&str, &str) = ("avoid_negative_ts", "disabled");

/// How sound that begins before it is heard is handed to a muxer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EarlySound {
    /// Seconds that are added to its packets' times, where reading takes them off again, or where the
    /// container's ticks round them the wrong way.
    pub(super) delay: f64,
    /// The muxer must not move all streams to begin at zero.
    pub(super) keeps_negative: bool,
}

/// Adds the filtered stream to a muxer.
pub(super) type AddVideo<'a> = &'a dyn Fn(&mut Muxer) -> Result<usize, AvError>;

/// Video like the filtered stream, for trials.
pub(super) struct Sample {
    pub(super) from: SampleSource,
    pub(super) packets: Vec<Packet>,
    /// What they are timed in.
    pub(super) base: Rational,
}

/// Where the packets of a sample come from.
pub(super) enum SampleSource {
    /// An encoder, and the mark of its stream, if not the container's own choice.
    Encoded(Encoder, Option<[u8; 4]>),
    /// A stream of a file.
    Copied(Demuxer, usize),
}

impl Sample {
    fn add(&self, muxer: &mut Muxer) -> Result<usize, AvError> {
        match &self.from {
            SampleSource::Encoded(encoder, tag) => muxer.add_encoded(encoder, *tag),
            SampleSource::Copied(demuxer, index) => muxer.add_copied(demuxer, *index, true),
        }
    }
}

/// The first stream of video that is no cover.
pub(super) fn video_of(demuxer: &Demuxer) -> Option<usize> {
    let is_video = |at: &usize| {
        let facts = demuxer.stream(*at);
        facts.is_some_and(|facts| facts.medium == Medium::Video && !facts.is_cover)
    };
    (0..demuxer.stream_count()).find(is_video)
}

/// How a stream of the input comes into the output.
pub(super) enum StreamHandling {
    /// Its packets as they are, under the input's four-letter mark or the container's own.
    Copy { keep_tag: bool },
    /// Its sound encoded anew.
    Encode(Box<AudioTranscoder>),
}

impl StreamHandling {
    /// Adds stream `index` of `demuxer` to `muxer`.
    pub(super) fn add(&self, muxer: &mut Muxer, demuxer: &Demuxer, index: usize) -> Result<usize, AvError> {
        match self {
            StreamHandling::Copy { keep_tag } => muxer.add_copied(demuxer, index, *keep_tag),
            StreamHandling::Encode(transcoder) => {
                muxer.add_transcoded(demuxer, index, transcoder, STALE_TEXTS)
            }
        }
    }
}

/// A container as the user chose it, of which trials are made in memory.
pub(super) struct Container {
    muxer: Option<String>,
    target: PathBuf,
    /// Options of the muxer that the user gave.
    options: Vec<(String, String)>,
    name: String,
    /// Video that can be read back, once it is known.
    sample: Option<Sample>,
}

impl Container {
    /// The container that `muxer` writes, which was chosen by these two.
    pub(super) fn of(muxer: &Muxer, name: Option<&str>, target: &Path) -> Container {
        Container {
            muxer: name.map(str::to_owned),
            target: target.to_owned(),
            options: Vec::new(),
            name: muxer.name(),
            sample: None,
        }
    }

    /// The muxer's short name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The container as users call it: FFmpeg writes two kinds of transport streams under one name.
    pub(super) fn word(&self) -> &str {
        if self.is_disc() { "m2ts" } else { &self.name }
    }

    /// True for transport streams as they are on Blu-ray discs, which hold less kinds of sound than others.
    pub(super) fn is_disc(&self) -> bool {
        self.name == "mpegts"
            && self
                .target
                .extension()
                .is_some_and(|e| e.eq_ignore_ascii_case("m2ts"))
    }

    /// Notes an option that was set on the muxer.
    pub(super) fn option(&mut self, key: &str, value: &str) {
        self.options.push((key.to_owned(), value.to_owned()));
    }

    /// Has trials write this video beside the other streams, where they cannot be recognised alone.
    pub(super) fn set_sample(&mut self, sample: Option<Sample>) {
        self.sample = sample;
    }

    /// The container in memory.
    pub(super) fn in_memory(&self) -> Result<Muxer, AvError> {
        let mut muxer =
            Muxer::in_memory(self.muxer.as_deref(), &self.target).map_err(|_| AvError::no_memory())?;
        for (key, value) in &self.options {
            muxer.set(key, value)?;
        }
        // The index of a trial stays where it is: to bring it to the front, FFmpeg would open a file of the
        // trial's name. A container that has no such option has no such step.
        let _ = muxer.set("movflags", "-faststart");
        Ok(muxer)
    }

    /// Whether the head can be written with the filtered stream and these others, each where it stands in the
    /// input; if not, the reason.
    pub(super) fn try_head<'a>(
        &self,
        add_video: AddVideo<'_>,
        (demuxer, filtered): (&Demuxer, usize),
        others: impl Iterator<Item = (usize, &'a StreamHandling)>,
    ) -> Result<(), String> {
        let run = || -> Result<(), AvError> {
            let mut muxer = self.in_memory()?;
            let mut has_video = false;
            for (index, handling) in others {
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
        explained(run)
    }

    /// Whether the container holds stream `index` of `demuxer`, of which `packets` are some, beside the
    /// filtered one; if not, the reason.
    pub(super) fn try_stream(
        &self,
        add_video: AddVideo<'_>,
        (demuxer, filtered): (&Demuxer, usize),
        (index, handling): (usize, &StreamHandling),
        packets: &[&Packet],
    ) -> Result<(), String> {
        let others = std::iter::once((index, handling));
        self.try_head(add_video, (demuxer, filtered), others)
            .map_err(|reason| format!("{} cannot hold it: {reason}", self.name))?;
        let medium = demuxer.stream(index).map_or(Medium::Other, |facts| facts.medium);
        // An attachment comes beside the video, other streams are recognised more safely if they are alone.
        let alone = match medium {
            Medium::Attachment => None,
            _ => self.comes_back(None, demuxer, (index, handling), packets),
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
        let written = match handling {
            StreamHandling::Copy { .. } => facts.codec.clone(),
            StreamHandling::Encode(transcoder) => transcoder.codec_name(),
        };
        let mut muxer = self.in_memory().ok()?;
        let beside = match video {
            Some(sample) => Some((sample, sample.add(&mut muxer).ok()?)),
            None => None,
        };
        let to = handling.add(&mut muxer, demuxer, index).ok()?;
        muxer.begin().ok()?;
        if facts.medium != Medium::Attachment {
            match (handling, packets) {
                (StreamHandling::Copy { .. }, [_, ..]) => {
                    write_all(&mut muxer, to, facts.time_base, packets.iter().copied())?;
                }
                // Containers that list their streams in passing do so when a packet comes, whatever is in it.
                _ => {
                    let base = muxer.time_base(to);
                    muxer.write(&mut Packet::zeros(8, 0).ok()?, to, base).ok()?;
                }
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
                // Whatever has no name of its own is data.
                Medium::Data => found.medium == Medium::Data && found.codec == facts.codec && found.has_codec,
                Medium::Attachment => found.medium == Medium::Attachment,
                // A lone video's codec may take more of it to be recognised.
                Medium::Video => found.medium == Medium::Video && found.has_codec,
                medium => found.medium == medium && is_same_kind(&found.codec, &written) && decodes(at),
            });
        Some(found && video.is_none_or(|sample| has_all(back, sample)))
    }

    /// How stream `index` of `demuxer`, whose sound begins `priming` seconds before it is heard, must be
    /// handed over so that it and the picture come back at their own times; `None` if the container has no
    /// way to say it.
    ///
    /// Some containers hold times before zero, some state the delay and take it off when they are read, and
    /// versions of FFmpeg differ in who adds it. So it is tried, with a picture and a first packet of sound
    /// at the seconds `(picture, sound)` where they begin.
    pub(super) fn early_sound(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        priming: f64,
        (picture, sound): (f64, f64),
    ) -> Option<EarlySound> {
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        let mut best: Option<(f64, EarlySound)> = None;
        for fine in FINE {
            for (delayed, keeps_negative) in ways {
                let delay = if delayed { priming } else { 0.0 } + fine;
                let begins = (picture, sound + delay);
                let Some(back) = self.times_back((demuxer, index), handling, begins, keeps_negative) else {
                    continue;
                };
                let error = ((back.1 - back.0) - (sound - picture)).abs();
                let is_right = (back.0 - picture).abs() < ROUNDING && error < ROUNDING;
                if is_right && best.as_ref().is_none_or(|(least, _)| error + EQUAL < *least) {
                    best = Some((
                        error,
                        EarlySound {
                            delay,
                            keeps_negative,
                        },
                    ));
                }
            }
            // A shift of less than the container's ticks only helps against their rounding.
            if best.as_ref().is_none_or(|(error, _)| *error < FINE_ENOUGH) {
                break;
            }
        }
        best.map(|(_, way)| way)
    }

    /// True if a picture and sound of stream `index` of `demuxer` come back with the same offset, when
    /// they begin at these seconds, or if that cannot be found out.
    pub(super) fn keeps_apart(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        (picture, sound): (f64, f64),
    ) -> bool {
        let codec = match handling {
            StreamHandling::Copy { .. } => demuxer.stream(index).map(|facts| facts.codec),
            StreamHandling::Encode(transcoder) => Some(transcoder.codec_name()),
        };
        // Ogg's readers find these times by what is in the packets of a page, and a trial's are empty.
        let lasts = demuxer.duration().map_or(0.0, |end| end - sound);
        let is_known = matches!(codec.as_deref(), Some("vorbis" | "opus")) && lasts > OGG_PAGES;
        if self.name.starts_with("og") && is_known {
            return true;
        }
        let back = self.times_back((demuxer, index), handling, (picture, sound), false);
        back.is_none_or(|back| ((back.1 - back.0) - (sound - picture)).abs() < COARSE)
    }

    /// True for containers that have no times of sound, and count its packets or bytes instead.
    pub(super) fn counts_packets(&self) -> bool {
        self.name == "avi"
    }

    /// True if these packets of sound, written and read again, are as far apart as in stream `index` of
    /// `demuxer`, or if they are too few to say. Raw samples, which come back in other packets, always are.
    pub(super) fn keeps_times(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: &[&Packet],
    ) -> bool {
        let Some(facts) = demuxer.stream(index) else {
            return true;
        };
        let times = packets.iter().filter_map(|p| p.dts().or_else(|| p.pts()));
        let (Some(first), Some(last)) = (times.clone().min(), times.max()) else {
            return true;
        };
        let expected = (last - first) as f64 * facts.time_base.to_f64();
        if packets.len() < LEAST_TRIED || facts.codec.starts_with("pcm_") {
            return true;
        }
        let found = self.sound_back((demuxer, index), handling, packets, 0);
        found.is_none_or(|found| (found - expected).abs() < f64::max(SLIGHT, UNEVEN * expected))
    }

    /// True if a gap between two packets such as `packet` of sound of stream `index` of `demuxer` comes back,
    /// or if that cannot be found out.
    pub(super) fn keeps_gaps(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packet: &Packet,
    ) -> bool {
        let Some(base) = demuxer.time_base(index) else {
            return true;
        };
        let gap = (GAP / base.to_f64()) as i64;
        let found = self.sound_back((demuxer, index), handling, &[packet, packet], gap);
        found.is_none_or(|found| found > GAP / 2.0)
    }

    /// Seconds from the first packet of sound to the last one, written from the beginning on, each `later`
    /// ticks after the one before, and read again.
    fn sound_back(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: &[&Packet],
        later: i64,
    ) -> Option<f64> {
        let base = demuxer.time_base(index)?;
        let (mut muxer, picture, sound) = self.with_picture(|muxer| handling.add(muxer, demuxer, index))?;
        write_two(&mut muxer, picture, 0.0, PICTURE_LASTS)?;
        let first = packets.first()?;
        let mut shift = -first.dts().or_else(|| first.pts())?;
        for packet in packets {
            let mut packet = packet.duplicate().ok()?;
            packet.shift(shift);
            muxer.write(&mut packet, sound, base).ok()?;
            shift += later;
        }
        let mut back = Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name).ok()?;
        let mut times = Vec::new();
        let mut packet = Packet::new().ok()?;
        while back.read(&mut packet).is_ok() {
            let facts = back.stream(packet.stream())?;
            if facts.medium == Medium::Audio {
                let at = packet.pts().or_else(|| packet.dts())?;
                times.push(at as f64 * facts.time_base.to_f64());
            }
        }
        Some(times.last()? - times.first()?)
    }

    /// True if the container counts pictures from its beginning, so that a first one which belongs `begins`
    /// seconds after that is shown from there on, with the gap behind it.
    pub(super) fn moves_first_picture(&self, begins: f64) -> bool {
        let gap = || {
            let (mut muxer, picture, ()) = self.with_picture(|_| Ok(()))?;
            write_two(&mut muxer, picture, begins, PICTURE_LASTS)?;
            let mut back = Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name).ok()?;
            let mut packet = Packet::new().ok()?;
            let mut next = || {
                back.read(&mut packet).ok()?;
                let time = packet.pts().or_else(|| packet.dts())? as f64;
                Some(time * back.time_base(packet.stream())?.to_f64())
            };
            let first = next()?;
            Some(next()? - first)
        };
        gap().is_some_and(|gap| gap > PICTURE_LASTS + COARSE)
    }

    /// A container in memory with its head written: with a picture that needs no headers of its own, and what
    /// `add` adds behind it.
    fn with_picture<T>(&self, add: impl Fn(&mut Muxer) -> Result<T, AvError>) -> Option<(Muxer, usize, T)> {
        let kinds = ["libvpx", "mpeg4", "mjpeg"]
            .into_iter()
            .filter_map(EncoderKind::find);
        kinds.into_iter().find_map(|kind| {
            let mut muxer = self.in_memory().ok()?;
            let picture = muxer.add_presumed(kind, &[]).ok()?;
            let added = add(&mut muxer).ok()?;
            muxer.begin().ok()?;
            Some((muxer, picture, added))
        })
    }

    /// When picture and sound begin, in seconds, that were written at `begins`, by the second packet of each:
    /// some containers leave a gap behind the first one instead of before it.
    fn times_back(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        begins: (f64, f64),
        keeps_negative: bool,
    ) -> Option<(f64, f64)> {
        let (mut muxer, picture, sound) = self.with_picture(|muxer| {
            if keeps_negative {
                muxer.set(KEEP_NEGATIVE.0, KEEP_NEGATIVE.1)?;
            }
            handling.add(muxer, demuxer, index)
        })?;
        write_two(&mut muxer, picture, begins.0, PICTURE_LASTS)?;
        write_two(&mut muxer, sound, begins.1, SOUND_LASTS)?;
        let bytes = muxer.finish_in_memory().ok()?;
        let mut back = Demuxer::from_bytes(bytes, &self.name).ok()?;
        let (mut last_picture, mut last_sound) = (None, None);
        let mut packet = Packet::new().ok()?;
        while back.read(&mut packet).is_ok() {
            let facts = back.stream(packet.stream())?;
            let time = packet.pts().or_else(|| packet.dts())? as f64 * facts.time_base.to_f64();
            match facts.medium {
                Medium::Video => last_picture = Some(time - PICTURE_LASTS),
                Medium::Audio => last_sound = Some(time - SOUND_LASTS),
                _ => {}
            }
        }
        Some((last_picture?, last_sound?))
    }

    /// True if the head can be written for the codec of `kind`, as far as that shows without an open encoder.
    pub(super) fn holds(&self, kind: EncoderKind) -> bool {
        // The muxers of some codecs look into their headers: H.264 and HEVC as MP4 has them, and the three of
        // Xiph's.
        let mut start = [0_u8; 64];
        start[..6].copy_from_slice(&[1, 100, 0, 31, 255, 225]);
        let mut xiph = vec![0, 42];
        xiph.extend([0; 42]);
        xiph.extend([0, 1, 0, 0, 1, 0]);
        [&[], &start[..], &xiph].into_iter().any(|extradata| {
            let run = || -> Result<(), AvError> {
                let mut muxer = self.in_memory()?;
                muxer.add_presumed(kind, extradata)?;
                muxer.begin()
            };
            run().is_ok()
        })
    }

    /// True if the container surely cannot hold what `kind` writes: not even an open encoder makes a head
    /// possible.
    pub(super) fn refuses(&self, kind: EncoderKind) -> bool {
        if self.holds(kind) {
            return false;
        }
        let run = || -> Result<bool, AvError> {
            let mut muxer = self.in_memory()?;
            let format = kind.formats().first().copied();
            let format = format.or_else(|| AvFormat::from_name("yuv420p"));
            let setup = EncoderSetup {
                global_header: muxer.wants_global_header(),
                ..EncoderSetup::plain(format.ok_or(AvError::no_memory())?, 352, 288)
            };
            let mut encoder = Encoder::new(kind, &setup)?;
            encoder.open()?;
            muxer.add_encoded(&encoder, None)?;
            Ok(muxer.begin().is_err())
        };
        // An encoder that does not open here may open for the real frames, which then show it.
        run().unwrap_or(false)
    }
}

/// Writes two packets of `lasts` seconds into a stream, the first one at `begins` seconds.
fn write_two(muxer: &mut Muxer, stream: usize, begins: f64, lasts: f64) -> Option<()> {
    let base = muxer.time_base(stream);
    let ticks = |seconds: f64| (seconds / base.to_f64()).round() as i64;
    for step in 0..2 {
        let mut packet = Packet::zeros(16, ticks(begins + f64::from(step) * lasts)).ok()?;
        packet.set_duration(ticks(lasts));
        muxer.write(&mut packet, stream, base).ok()?;
    }
    Some(())
}

/// Writes packets, timed in `base`, into stream `to`.
fn write_all<'a>(
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
fn has_all(mut file: Demuxer, sample: &Sample) -> bool {
    let (Some(stream), Ok(mut packet)) = (video_of(&file), Packet::new()) else {
        return false;
    };
    let mut found = 0;
    while file.read(&mut packet).is_ok() {
        found += usize::from(packet.stream() == stream);
    }
    found + 1 >= sample.packets.len()
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

/// The result of a call of FFmpeg's, with its own words for a failure.
pub(super) fn explained<T>(run: impl FnOnce() -> Result<T, AvError>) -> Result<T, String> {
    log::forget();
    run().map_err(|e| log::explained(&e.to_string()))
}
