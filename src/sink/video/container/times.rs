//! Whether pictures and sound come back from a container at their times, found out by trying.

use super::{Container, StreamHandling};
use crate::frame::Rational;
use crate::media::ffmpeg::{
    AudioEncoderKind, AudioTranscoder, AvError, Demuxer, EncoderKind, Medium, Muxer, Packet,
};

/// Seconds that a container's milliseconds may be off, on the way in and on the way out.
const ROUNDING: f64 = 0.0016;

/// Seconds by which sound is moved to have a container's ticks round it to where it belongs, the difference
/// that counts, and the error that is small enough.
const FINE: [f64; 4] = [0.0, -0.0005, 0.0005, -0.001];
const EQUAL: f64 = 0.0002;
const FINE_ENOUGH: f64 = 0.000_55;

/// Seconds that a picture and a packet of sound of a trial last.
const PICTURE_LASTS: f64 = 0.04;
pub(super) const SOUND_LASTS: f64 = 0.02;

/// Seconds that a picture may be moved by a container that counts frames instead of time.
const COARSE: f64 = 0.03;

/// Packets of sound below which a trial does not show whether their times are kept, the seconds and the part
/// of its length by which their span may be off, and the seconds of a gap that is tried.
const LEAST_TRIED: usize = 4;
const SLIGHT: f64 = 0.003;
const UNEVEN: f64 = 0.2;
const GAP: f64 = 1.0;

/// Bytes of sound on either side of such a gap, several blocks of MPEG's program stream, and the most
/// packets.
const BLOCKS: usize = 8 << 10;
const MOST_IN_BLOCKS: usize = 64;

/// Bytes of each picture beside such sound: more than a block, so that each has its time.
const PICTURE_BYTES: usize = 4 << 10;

/// Frames of sound after which every encoder has given two packets.
const HELD_BACK: i32 = 8;

/// Seconds of sound that take more than one page of Ogg.
const OGG_PAGES: f64 = 2.0;

/// The option that has a muxer write times before zero as they are.
pub(in crate::sink::video) const KEEP_NEGATIVE: (&str, &str) = ("avoid_negative_ts", "disabled");

/// How sound that begins before it is heard is handed to a muxer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::sink::video) struct EarlySound {
    /// Seconds that are added to its packets' times, where reading takes them off again, or where the
    /// container's ticks round them the wrong way.
    pub(in crate::sink::video) delay: f64,
    /// The muxer must not move all streams to begin at zero.
    pub(in crate::sink::video) keeps_negative: bool,
}

impl Container {
    /// How stream `index` of `demuxer`, whose sound begins `priming` seconds before it is heard, must be
    /// handed over so that it and the picture come back at their own times; `None` if the container has no
    /// way to say it.
    ///
    /// Some containers hold times before zero, some state the delay and take it off when they are read, and
    /// versions of FFmpeg differ in who adds it. So it is tried, with a picture and a first packet of sound
    /// at the seconds `(picture, sound)` where they begin.
    pub(in crate::sink::video) fn early_sound(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        priming: f64,
        (picture, sound): (f64, f64),
    ) -> Option<EarlySound> {
        let ways = [(false, false), (true, false), (false, true), (true, true)];
        let mut best: Option<(f64, EarlySound)> = None;
        let like = Like::of(handling);
        for fine in FINE {
            for (delayed, keeps_negative) in ways {
                let delay = if delayed { priming } else { 0.0 } + fine;
                let begins = (picture, sound + delay);
                let Some(back) = self.times_back((demuxer, index), (handling, &like), begins, keeps_negative)
                else {
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
    pub(in crate::sink::video) fn keeps_apart(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        (picture, sound): (f64, f64),
    ) -> bool {
        let codec = match handling {
            StreamHandling::Copy { .. } => demuxer.stream(index).map(|facts| facts.codec),
            StreamHandling::Encode(transcoder) => Some(transcoder.codec_name()),
        };
        // Ogg's readers find the times of these by what is in the packets of a page, and a trial's are empty.
        let lasts = demuxer.duration().map_or(0.0, |end| end - sound);
        let is_known = matches!(codec.as_deref(), Some("vorbis" | "opus")) && lasts > OGG_PAGES;
        if self.name.starts_with("og") && is_known || self.is_program_stream() {
            return true;
        }
        // They take a first page of FLAC for one that begins at zero, which a trial is too short to fill.
        if self.name.starts_with("og") && codec.as_deref() == Some("flac") {
            return (sound - picture).abs() < COARSE;
        }
        let like = Like::of(handling);
        let back = self.times_back((demuxer, index), (handling, &like), (picture, sound), false);
        back.is_none_or(|back| ((back.1 - back.0) - (sound - picture)).abs() < COARSE)
    }

    /// True for containers that have no times of sound, or of some kinds of it, and count its packets or
    /// bytes instead.
    pub(in crate::sink::video) fn counts_packets(&self) -> bool {
        matches!(self.name.as_str(), "avi" | "mov")
    }

    /// True if these packets of sound, of stream `index` of `demuxer` as it is handled, come back at their
    /// times, or in others that last as long, or if they are too few to say. Raw samples, which come back in
    /// other packets, always do.
    pub(in crate::sink::video) fn keeps_times(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: &[&Packet],
    ) -> bool {
        let Some(facts) = demuxer.stream(index) else {
            return true;
        };
        if handling.codec(&facts).starts_with("pcm_") {
            return true;
        }
        let base = handling.time_base(&facts);
        // Some encoders end with a packet without sound.
        let packets: Vec<&Packet> = packets
            .iter()
            .copied()
            .filter(|packet| packet.size() > 0)
            .collect();
        let Some(last) = packets.last() else {
            return true;
        };
        let missing = LEAST_TRIED.saturating_sub(packets.len()) as i64;
        // AVI's trial needs the packets' own lengths.
        if missing > 0 && self.name == "avi" {
            return true;
        }
        let lasts = match last.duration() {
            0 => (SOUND_LASTS / base.to_f64()) as i64,
            known => known,
        };
        // Of a short stream, the last packet once more and again.
        let repeated = (1..missing + 1).map(|number| (*last, number * lasts));
        let tried = packets.iter().map(|&packet| (packet, 0)).chain(repeated);
        let times = tried
            .clone()
            .filter_map(|(packet, later)| Some(packet.dts().or_else(|| packet.pts())? + later));
        let times: Vec<f64> = times.map(|at| at as f64 * base.to_f64()).collect();
        let Some(written) = span(&times) else {
            return true;
        };
        let lasts = lasts as f64 * base.to_f64();
        let found = self.sound_back((demuxer, index), handling, tried);
        found.is_none_or(|found| is_as_written(&times, (written, lasts), &found))
    }

    /// True if these packets of sound, of stream `index` of `demuxer`, which is copied, can be decoded once
    /// they are read again, as far as they can be before, or if that cannot be tried.
    pub(in crate::sink::video) fn keeps_sound(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: &[&Packet],
    ) -> bool {
        let tried = packets.iter().map(|&packet| (packet, 0));
        let heard = || {
            let before = heard((demuxer, index), packets.iter().copied())?;
            let mut back = self.written_sound((demuxer, index), handling, tried)?;
            let sound = (0..back.stream_count())
                .find(|&at| back.stream(at).is_some_and(|facts| facts.medium == Medium::Audio))?;
            let mut read = Vec::new();
            let mut packet = Packet::new().ok()?;
            while back.read(&mut packet).is_ok() {
                if packet.stream() == sound {
                    read.push(packet.duplicate().ok()?);
                }
            }
            let after = heard((&back, sound), read.iter())?;
            // What readers keep for a packet that does not come is no loss.
            Some(after.1 <= before.1 && 2 * after.0 >= before.0)
        };
        heard().unwrap_or(true)
    }

    /// True if a gap between packets such as `packet` of sound of stream `index` of `demuxer` comes back, or
    /// if that cannot be found out. There are as many of them as fill the blocks of a container that says
    /// the time of a block.
    pub(in crate::sink::video) fn keeps_gaps(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packet: &Packet,
    ) -> bool {
        let Some(facts) = demuxer.stream(index) else {
            return true;
        };
        let base = handling.time_base(&facts);
        let ticks = |seconds: f64| (seconds / base.to_f64()) as i64;
        // A tick more than stated, so that no two of them round to one tick of the container.
        let lasts = match packet.duration() {
            0 => ticks(SOUND_LASTS),
            known => known + 1,
        };
        let half = BLOCKS.div_ceil(packet.size().max(1)).clamp(1, MOST_IN_BLOCKS) as i64;
        let late = |at: i64| at * lasts + if at < half { 0 } else { ticks(GAP) };
        let packets = (0..2 * half).map(|at| (packet, late(at)));
        let found = self.sound_back((demuxer, index), handling, packets);
        let found = found.and_then(|found| span(&found.iter().map(|(at, _)| *at).collect::<Vec<f64>>()));
        let without = ((2 * half - 1) * lasts) as f64 * base.to_f64();
        found.is_none_or(|found| found - without > GAP / 2.0)
    }

    /// True if the container counts pictures from its beginning, so that a first one which belongs `begins`
    /// seconds after that is shown from there on, with the gap behind it.
    pub(in crate::sink::video) fn moves_first_picture(&self, begins: f64) -> bool {
        let gap = || {
            let (mut muxer, picture, ()) = self.with_picture(|_| Ok(()))?;
            write_two(&mut muxer, picture, begins, &Like::zeros(PICTURE_LASTS))?;
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

    /// When packets of sound come back, and how long they last, in seconds, that were written from the
    /// beginning on, each so many ticks later than it says.
    fn sound_back<'a>(
        &self,
        source: (&Demuxer, usize),
        handling: &StreamHandling,
        packets: impl Iterator<Item = (&'a Packet, i64)>,
    ) -> Option<Vec<(f64, f64)>> {
        let mut back = self.written_sound(source, handling, packets)?;
        let mut times = Vec::new();
        let mut packet = Packet::new().ok()?;
        while back.read(&mut packet).is_ok() {
            let facts = back.stream(packet.stream())?;
            if facts.medium == Medium::Audio {
                let at = packet.pts().or_else(|| packet.dts())?;
                let tick = facts.time_base.to_f64();
                times.push((at as f64 * tick, packet.duration() as f64 * tick));
            }
        }
        (!times.is_empty()).then_some(times)
    }

    /// A file with these packets of sound, from the beginning on, each so many ticks later than it says.
    fn written_sound<'a>(
        &self,
        (demuxer, index): (&Demuxer, usize),
        handling: &StreamHandling,
        packets: impl Iterator<Item = (&'a Packet, i64)>,
    ) -> Option<Demuxer> {
        let base = handling.time_base(&demuxer.stream(index)?);
        let (mut muxer, picture, sound) = self.with_picture(|muxer| handling.add(muxer, demuxer, index))?;
        // Pictures go on all the while: without them, a gap is a jump of the clock.
        let (mut pictures, mut begins) = (0, None);
        let tick = muxer.time_base(picture);
        for (packet, later) in packets {
            let at = packet.dts().or_else(|| packet.pts())?;
            let first = *begins.get_or_insert(at);
            let time = (at + later - first) as f64 * base.to_f64();
            while pictures < 2 || f64::from(pictures) * PICTURE_LASTS <= time {
                let at = f64::from(pictures) * PICTURE_LASTS / tick.to_f64();
                let mut frame = Packet::zeros(PICTURE_BYTES, at.round() as i64).ok()?;
                frame.set_duration((PICTURE_LASTS / tick.to_f64()).round() as i64);
                muxer.write(&mut frame, picture, tick).ok()?;
                pictures += 1;
            }
            let mut packet = packet.duplicate().ok()?;
            packet.shift(later - first);
            muxer.write(&mut packet, sound, base).ok()?;
        }
        Demuxer::from_bytes(muxer.finish_in_memory().ok()?, &self.name).ok()
    }

    /// When picture and sound begin, in seconds, that were written at `begins`, by the second packet of each:
    /// some containers leave a gap behind the first one instead of before it.
    fn times_back(
        &self,
        (demuxer, index): (&Demuxer, usize),
        (handling, like): (&StreamHandling, &Like),
        begins: (f64, f64),
        keeps_negative: bool,
    ) -> Option<(f64, f64)> {
        let (mut muxer, picture, sound) = self.with_picture(|muxer| {
            if keeps_negative {
                muxer.set(KEEP_NEGATIVE.0, KEEP_NEGATIVE.1)?;
            }
            handling.add(muxer, demuxer, index)
        })?;
        let picture_step = write_two(&mut muxer, picture, begins.0, &Like::zeros(PICTURE_LASTS))?;
        let sound_step = write_two(&mut muxer, sound, begins.1, like)?;
        let bytes = muxer.finish_in_memory().ok()?;
        let mut back = Demuxer::from_bytes(bytes, &self.name).ok()?;
        // Zeros are no sound: a reader's parser may make one packet of them.
        let (mut last_picture, mut last_sound, mut sounds) = (None, None, 0);
        let mut packet = Packet::new().ok()?;
        while back.read(&mut packet).is_ok() {
            let facts = back.stream(packet.stream())?;
            let time = packet.pts().or_else(|| packet.dts())? as f64 * facts.time_base.to_f64();
            match facts.medium {
                Medium::Video => last_picture = Some(time - picture_step),
                Medium::Audio => {
                    last_sound = Some(time - if sounds > 0 { sound_step } else { 0.0 });
                    sounds += 1;
                }
                _ => {}
            }
        }
        Some((last_picture?, last_sound?))
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
}

/// Seconds from the earliest of these times to the latest.
fn span(times: &[f64]) -> Option<f64> {
    let first = times.iter().copied().reduce(f64::min)?;
    Some(times.iter().copied().reduce(f64::max)? - first)
}

/// True if packets come back at the `times` at which they were written, each so many seconds after the first;
/// if others come back, that these are `written` seconds long, and a packet that lasts so long.
fn is_as_written(times: &[f64], (written, lasts): (f64, f64), found: &[(f64, f64)]) -> bool {
    let (Some(&first), Some(&(begins, _)), Some(&(at, length))) =
        (times.first(), found.first(), found.last())
    else {
        return true;
    };
    let near = f64::max(COARSE, lasts);
    let is_even = |off: f64| off.abs() < f64::max(SLIGHT, UNEVEN * written);
    if found.len() != times.len() {
        // What lasts as long as its parts is those in one.
        let mut steps = found.windows(2);
        let has_gap = steps.any(|pair| pair[0].1 > 0.0 && pair[1].0 - pair[0].0 > pair[0].1 + near);
        return !has_gap
            && (is_even(at + length - begins - written - lasts) || is_even(at - begins - written));
    }
    let mut pairs = times.iter().zip(found);
    is_even(at - begins - written)
        && pairs.all(|(time, (back, _))| ((back - begins) - (time - first)).abs() < near)
}

/// How much is heard of packets of stream `index` of `demuxer`, in bytes of samples, and how many of them
/// cannot be decoded; `None` if there is no decoder.
fn heard<'a>(
    (demuxer, index): (&Demuxer, usize),
    packets: impl Iterator<Item = &'a Packet>,
) -> Option<(usize, u64)> {
    let kind = AudioEncoderKind::find("pcm_s16le")?;
    let form = *AudioTranscoder::forms(demuxer, index, kind).first()?;
    let mut transcoder = AudioTranscoder::open(demuxer, index, kind, form, false).ok()??;
    let mut bytes = 0;
    for packet in packets.map(Some).chain([None]) {
        let ready = transcoder.feed(packet).ok()?;
        bytes += ready.iter().map(Packet::size).sum::<usize>();
    }
    Some((bytes, transcoder.damaged()))
}

/// What two packets of a trial of times hold.
struct Like {
    /// Sound that the encoder made, in ticks of this length; without it, they hold zeros.
    real: Option<([Packet; 2], Rational)>,
    /// Seconds that the first one lasts.
    lasts: f64,
}

impl Like {
    fn zeros(lasts: f64) -> Like {
        Like { real: None, lasts }
    }

    /// Of a stream of sound that is handled so. Zeros do for copied packets: what these hold is known where
    /// it matters. AVI counts bytes of some codecs.
    fn of(handling: &StreamHandling) -> Like {
        let real = || {
            let StreamHandling::Encode(transcoder) = handling else {
                return None;
            };
            let base = transcoder.time_base();
            let made = transcoder.silence(HELD_BACK).ok()?.into_iter();
            let mut made = made.filter(|packet| packet.size() > 0 && packet.duration() > 0);
            let (first, second) = (made.next()?, made.next()?);
            let lasts = first.duration() as f64 * base.to_f64();
            Some(Like {
                real: Some(([first, second], base)),
                lasts,
            })
        };
        real().unwrap_or_else(|| Like::zeros(SOUND_LASTS))
    }

    /// Packet number `number` at `at`, in ticks of `base`.
    fn packet(&self, number: usize, at: i64, base: Rational) -> Option<Packet> {
        let Some((real, own)) = &self.real else {
            return Packet::zeros(16, at).ok();
        };
        let mut packet = real[number].duplicate().ok()?;
        packet.rescale(*own, base);
        packet.shift(at - packet.pts()?);
        Some(packet)
    }
}

/// Writes two packets into a stream, the first one at `begins` seconds and the other when that has ended,
/// and gives the seconds from one to the other: whole ticks, and one at least, as muxers refuse two packets
/// at one time.
fn write_two(muxer: &mut Muxer, stream: usize, begins: f64, like: &Like) -> Option<f64> {
    let lasts = like.lasts;
    let base = muxer.time_base(stream);
    let ticks = |seconds: f64| (seconds / base.to_f64()).round() as i64;
    let first = ticks(begins);
    let second = ticks(begins + lasts).max(first + 1);
    for (number, at) in [first, second].into_iter().enumerate() {
        let mut packet = like.packet(number, at, base)?;
        packet.set_duration(ticks(lasts));
        muxer.write(&mut packet, stream, base).ok()?;
    }
    Some((second - first) as f64 * base.to_f64())
}
