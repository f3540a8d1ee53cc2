//! Which streams go into the output, and how: as they are, or for sound re-encoded.
//!
//! ```text
//!   wanted by the user ─> feasible ─> begins in the part that is read ─> tried by itself ─> tried together
//! ```
//!
//! A stream that fails on the way is left out, with a warning.

use super::account::Losses;
use super::reading::Reader;
use crate::media::containers::edits::EditLists;
use crate::media::ffmpeg::{
    AudioEncoderKind, AudioTranscoder, AvError, Medium, Muxer, Packet, StreamFacts, is_lossless,
};
use crate::sink::video::container::{AddVideo, Container, PACKETS_TRIED, StreamHandling, explained};
use crate::sink::video::passthrough::selection::{AudioEncoding, StreamOptions, Streams};
use crate::wording::listed;
use std::collections::VecDeque;

/// Audio encoders to try where FFmpeg's own choice for a container does not do.
const AUDIO_ENCODERS: &[&str] = &[
    "libopus",
    "libvorbis",
    "aac",
    "libmp3lame",
    "ac3",
    "mp2",
    "pcm_s16le",
    "pcm_s24le",
];

/// Those to try first for sound that its own codec keeps whole. ALAC is known to more players of MP4.
const LOSSLESS_ENCODERS: &[&str] = &["alac", "flac", "pcm_s16le", "pcm_s24le", "pcm_s32le"];

/// Those to try first for more than two channels: what players of broadcasts and films know.
const SURROUND_ENCODERS: &[&str] = &["ac3", "aac"];

/// Frames of silence that an encoder is given for a trial: more than any holds back; and for one of times,
/// more than the parser of FLAC holds back, too.
const FRAMES_TRIED: i32 = 8;
const FRAMES_TIMED: i32 = 32;

/// Why streams could not be added.
pub(in crate::sink::video) enum MapFailure {
    Memory(AvError),
    /// What the user asked for cannot be: a sentence.
    Refused(String),
}

impl From<AvError> for MapFailure {
    fn from(e: AvError) -> MapFailure {
        MapFailure::Memory(e)
    }
}

/// A stream of the input and how it comes into the output.
pub(super) struct Planned {
    pub(super) index: usize,
    pub(super) handling: StreamHandling,
}

/// What is known of a stream before the container is tried.
enum Feasibility {
    Candidate,
    /// The muxer makes it from other facts.
    Remade,
    /// It is left out, for this reason.
    Hopeless(String),
}

/// Finds out how the streams of an input come into an output.
pub(super) struct Planner<'a> {
    pub(super) reader: &'a mut Reader,
    /// What is left out against the user's wish.
    pub(super) losses: &'a mut Losses,
    pub(super) muxer: &'a Muxer,
    pub(super) container: &'a Container,
    /// Adds the filtered stream.
    pub(super) add_video: AddVideo<'a>,
    pub(super) options: &'a StreamOptions,
}

impl Planner<'_> {
    /// How each stream comes into the output, without those that do not; what is left out against the user's
    /// wish is reported.
    pub(super) fn plan(mut self) -> Result<Vec<Planned>, MapFailure> {
        let mut candidates = self.candidates()?;
        self.report_unread();
        let wanted = candidates
            .iter()
            .filter(|(_, facts)| facts.medium != Medium::Attachment)
            .map(|(index, _)| *index)
            .collect();
        self.reader.read_ahead(wanted, self.container)?;
        candidates.retain(|(index, facts)| self.joins_in(*index, facts));
        for (index, facts) in &mut candidates {
            self.reader.shorten_priming(*index, facts);
        }
        let mut planned = Vec::new();
        for (index, facts) in candidates {
            match self.handling((index, &facts))? {
                Ok(handling) => planned.push(Planned { index, handling }),
                Err(reason) => self.leave_out(index, &facts, &reason),
            }
        }
        let held = self.those_together(planned);
        self.report_encoded(&held);
        self.report_layouts(&held);
        self.report_edits(&held);
        Ok(held)
    }

    /// The streams that are wanted, and of which nothing is known that speaks against them.
    fn candidates(&mut self) -> Result<Vec<(usize, StreamFacts)>, MapFailure> {
        let count = self.reader.demuxer.stream_count();
        if let Streams::List(list) = &self.options.streams
            && let Some(missing) = list.iter().find(|&&index| index >= count)
        {
            return Err(MapFailure::Refused(format!(
                "--streams names stream {missing}, but the input has only streams 0 to {}",
                count.saturating_sub(1)
            )));
        }
        let mut candidates = Vec::new();
        let filtered = self.reader.filtered;
        for index in (0..count).filter(|&index| index != filtered) {
            let Some(facts) = self.reader.demuxer.stream(index) else {
                continue;
            };
            if let Some(problem) = self.options.contradiction(index, facts.medium) {
                return Err(MapFailure::Refused(problem));
            }
            if !self.options.wants(index, facts.medium) {
                continue;
            }
            match self.feasibility(index, &facts) {
                Feasibility::Candidate => candidates.push((index, facts)),
                Feasibility::Remade => {}
                Feasibility::Hopeless(reason) => self.leave_out(index, &facts, &reason),
            }
        }
        Ok(candidates)
    }

    /// Names subtitles of an HLS playlist, which FFmpeg does not read.
    fn report_unread(&mut self) {
        let names = self.reader.demuxer.unread_subtitles();
        if names.is_empty() || !self.options.wants_unread(Medium::Subtitle) {
            return;
        }
        self.losses.add(
            format!(
                "subtitles of playlists are left out, since FFmpeg does not read them: {}",
                listed(names.to_vec())
            ),
            "leave them out with --no-subtitles",
        );
    }

    /// True if a stream begins in the part that is read. Tells what is left out of a video stream, as far as
    /// that is known.
    fn joins_in(&mut self, index: usize, facts: &StreamFacts) -> bool {
        let Some(join) = self.reader.known_join(index) else {
            return true;
        };
        if let Some(sentence) = join.sentence(&facts.label(index)) {
            join.is_reported = true;
            self.losses.add(
                sentence,
                "begin at one of its key frames with --start, or leave it out with --streams",
            );
        }
        join.has_begun()
    }

    /// Tells what sound is re-encoded, though it was not requested, and what its form loses.
    fn report_encoded(&mut self, planned: &[Planned]) {
        let is_requested = self.options.audio != AudioEncoding::WhereNeeded;
        for Planned { index, handling } in planned {
            let (StreamHandling::Encode(transcoder), Some(facts)) =
                (handling, self.reader.demuxer.stream(*index))
            else {
                continue;
            };
            let (label, encoder) = (facts.label(*index), transcoder.encoder_name());
            let losses = transcoder.form_losses(!is_requested).join(", ");
            if is_requested && !losses.is_empty() {
                let sentence = format!("{label} is encoded by {encoder} in a lesser form: {losses}");
                self.losses.add(sentence, "choose another --audio-encoder");
            } else if !is_requested && transcoder.is_lossy() {
                let mut sentence = format!(
                    "{label} is re-encoded by {encoder}, because {} cannot hold it as it is",
                    self.container.word()
                );
                if !losses.is_empty() {
                    sentence += &format!(": {losses}");
                }
                self.losses.add(
                    sentence,
                    "choose the encoder with --audio-encoder, or leave the sound out with --no-audio",
                );
            }
        }
    }

    /// Names sound whose channels readers of the output take for others, since it does not say which they
    /// are. Up to two are what they are.
    fn report_layouts(&mut self, planned: &[Planned]) {
        for Planned { index, handling } in planned {
            let demuxer = &self.reader.demuxer;
            let facts = demuxer.stream(*index);
            let Some(facts) = facts.filter(|facts| facts.medium == Medium::Audio && facts.channels > 2)
            else {
                continue;
            };
            let silence = silence(handling, FRAMES_TRIED);
            let packets: Vec<&Packet> = match handling {
                StreamHandling::Copy { .. } => self.reader.waiting(*index).take(PACKETS_TRIED).collect(),
                StreamHandling::Encode(_) => silence.iter().collect(),
            };
            let changed = self
                .container
                .changed_layout((demuxer, *index), handling, &packets);
            if let Some((own, other)) = changed {
                let sentence = format!(
                    "the channels of {}, {own}, are taken for {other}, since {} does not say which they are",
                    facts.label(*index),
                    self.container.word()
                );
                self.losses
                    .add(sentence, "choose another --audio-encoder or container");
            }
        }
    }

    /// Names streams whose edit lists FFmpeg does not follow.
    fn report_edits(&mut self, planned: &[Planned]) {
        let demuxer = &self.reader.demuxer;
        if planned.is_empty() || !demuxer.format_name().contains("mp4") {
            return;
        }
        let Some(lists) = EditLists::read(&self.reader.path) else {
            return;
        };
        for Planned { index, .. } in planned {
            let (Some(facts), Some(words)) = (demuxer.stream(*index), lists.unfollowed(*index)) else {
                continue;
            };
            let sentence = format!(
                "the edit list of {} has {words}, which FFmpeg does not follow: parts of it may be \
                 repeated, missing or at other times",
                facts.label(*index)
            );
            self.losses.add(sentence, "leave it out with --streams");
        }
    }

    /// What can be said of a stream before the container is tried.
    fn feasibility(&self, index: usize, facts: &StreamFacts) -> Feasibility {
        let container = self.muxer.name();
        let is_mov = matches!(
            container.as_str(),
            "mov" | "mp4" | "ipod" | "3gp" | "3g2" | "psp" | "ismv" | "f4v"
        );
        let tag = facts.tag.to_le_bytes();
        match facts.medium {
            _ if self.reader.demuxer.is_of_chapters(facts) => Feasibility::Remade,
            // A time code, which the muxer writes anew from the text of that name. Whether the container
            // holds that text is found out at the end.
            Medium::Data if &tag == b"tmcd" && (is_mov || self.is_stated_by_picture(index)) => {
                Feasibility::Remade
            }
            _ if self.muxer.is_video_only() => {
                Feasibility::Hopeless(format!("{container} holds one video stream and nothing else"))
            }
            // Telemetry of action cameras: the one kind of plain data that the container's tag gives a
            // meaning.
            Medium::Data if is_mov && &tag != b"gpmd" => {
                Feasibility::Hopeless(format!("{container} cannot hold it"))
            }
            Medium::Other => Feasibility::Hopeless("what it holds is unknown".to_owned()),
            _ => Feasibility::Candidate,
        }
    }

    /// True if the filtered stream or the file states the time code of stream `index`.
    fn is_stated_by_picture(&self, index: usize) -> bool {
        let demuxer = &self.reader.demuxer;
        let code = |texts: Vec<(String, String)>| {
            let mut texts = texts.into_iter();
            texts
                .find(|(name, _)| name.eq_ignore_ascii_case("timecode"))
                .map(|(_, code)| code)
        };
        let own = code(demuxer.stream_texts(index));
        let picture = code(demuxer.stream_texts(self.reader.filtered)).or_else(|| code(demuxer.texts()));
        own.is_some() && own == picture
    }

    /// How a stream can come into the output, or the reason why it cannot.
    fn handling(
        &self,
        (index, facts): (usize, &StreamFacts),
    ) -> Result<Result<StreamHandling, String>, MapFailure> {
        let (container, audio) = (self.container, &self.options.audio);
        let is_audio = facts.medium == Medium::Audio;
        if let (true, AudioEncoding::By(name)) = (is_audio, audio) {
            let kind =
                AudioEncoderKind::find(name).ok_or_else(|| MapFailure::Refused(no_audio_encoder(name)))?;
            let encoded = self.encoded(index, kind).map(StreamHandling::Encode);
            return encoded.map(Ok).map_err(|reason| {
                MapFailure::Refused(format!(
                    "{} cannot be encoded with {name}: {reason}; choose another --audio-encoder",
                    facts.label(index)
                ))
            });
        }
        let packets: Vec<&Packet> = self.reader.waiting(index).take(PACKETS_TRIED).collect();
        let mut reason = String::new();
        let mut first_choice = None;
        let is_data = facts.medium == Medium::Data;
        // A container's own mark is known to more players than one that came with the input, but it may have
        // none.
        for keep_tag in if is_data { [true, false] } else { [false, true] } {
            let handling = StreamHandling::Copy { keep_tag };
            let tried = container.try_stream(
                self.add_video,
                (&self.reader.demuxer, self.reader.filtered),
                (index, &handling),
                &packets,
            );
            let source = (&self.reader.demuxer, index);
            match tried {
                Ok(()) if is_audio && !container.keeps_times(source, &handling, &packets) => {
                    reason = format!("{} cannot say its times", container.name());
                    break;
                }
                Ok(()) if is_audio && !container.keeps_sound(source, &handling, &packets) => {
                    reason = format!("{} has no place for what its decoder must know", container.name());
                    break;
                }
                Ok(()) if self.states_other_length(facts) => {
                    reason = format!("{} cannot say how many samples it has", container.name());
                    first_choice = AudioEncoderKind::find("flac");
                    break;
                }
                Ok(()) => return Ok(Ok(handling)),
                Err(why) if reason.is_empty() => reason = why,
                Err(_) => {}
            }
        }
        if !is_audio || *audio == AudioEncoding::Never {
            return Ok(Err(reason));
        }
        Ok(self.encoded_anew(index, first_choice).map_err(|why| match why {
            Some(why) => format!("{reason}, and it cannot be re-encoded: {why}"),
            None => reason,
        }))
    }

    /// True for sound whose decoder must know how many samples there are, to tell the last packet from the
    /// others, where it would learn of another number: FFmpeg takes TTA's from Matroska's duration, which is
    /// that of the longest stream, and a copied header counts what comes before the part that is read.
    fn states_other_length(&self, facts: &StreamFacts) -> bool {
        facts.codec == "tta" && (self.container.name() == "matroska" || self.reader.demuxer.begins_later())
    }

    /// Sound of stream `index` by the first encoder that the container holds and that keeps its channels and
    /// bits, or else by the one that keeps most of them; if there is none, the reason, where one is known.
    /// `first_choice` is tried before the usual ones; without it, those that lose nothing are, if the
    /// codec of the source loses nothing.
    fn encoded_anew(
        &self,
        index: usize,
        first_choice: Option<AudioEncoderKind>,
    ) -> Result<StreamHandling, Option<String>> {
        let is_disc = self.container.is_disc();
        if first_choice.is_none()
            && !is_disc
            && let Some(whole) = self.kept_whole(index)
        {
            return Ok(StreamHandling::Encode(whole));
        }
        let of_discs = is_disc.then(|| AudioEncoderKind::find("ac3")).flatten();
        let mut kinds: VecDeque<AudioEncoderKind> = AUDIO_ENCODERS
            .iter()
            .filter_map(|name| AudioEncoderKind::find(name))
            .collect();
        if let Some(usual) = of_discs.or_else(|| self.muxer.default_audio_encoder()) {
            kinds.push_front(usual);
        }
        if let Some(first) = first_choice {
            kinds.push_front(first);
        }
        let mut unencoded = None;
        let mut best: Option<(_, StreamHandling)> = None;
        while let Some(kind) = kinds.pop_front() {
            match self.encoded(index, kind) {
                Ok(transcoder) => {
                    let lost = transcoder.shortfall();
                    let handling = StreamHandling::Encode(transcoder);
                    // Players of discs know no other.
                    if lost == (0, 0) || is_disc {
                        return Ok(handling);
                    }
                    if best.is_none() && lost.0 > 0 {
                        let surround = SURROUND_ENCODERS.iter().rev();
                        for kind in surround.filter_map(|name| AudioEncoderKind::find(name)) {
                            kinds.push_front(kind);
                        }
                    }
                    if best.as_ref().is_none_or(|(least, _)| lost < *least) {
                        best = Some((lost, handling));
                    }
                }
                Err(why) => unencoded = unencoded.or(Some(why)),
            }
        }
        best.map(|(_, handling)| handling).ok_or(unencoded)
    }

    /// Sound of stream `index`, if its codec loses nothing, by an encoder of this container that loses
    /// nothing, either.
    fn kept_whole(&self, index: usize) -> Option<Box<AudioTranscoder>> {
        let facts = self.reader.demuxer.stream(index)?;
        if !is_lossless(&facts.codec) {
            return None;
        }
        // AVI counts packets, and those of ALAC and FLAC may be of any length.
        let fits = |name: &&&str| self.container.name() != "avi" || name.starts_with("pcm_");
        let named = LOSSLESS_ENCODERS.iter().filter(fits);
        let named = named.filter_map(|name| AudioEncoderKind::find(name));
        let usual = self.muxer.default_audio_encoder().filter(|kind| !kind.is_lossy());
        let mut encoded = usual
            .into_iter()
            .chain(named)
            .filter_map(|kind| self.encoded(index, kind).ok());
        encoded.find(|transcoder| !transcoder.is_lossy())
    }

    /// Sound of stream `index` by an encoder of `kind`, in the form nearest to the source that encoder and
    /// container take.
    fn encoded(&self, index: usize, kind: AudioEncoderKind) -> Result<Box<AudioTranscoder>, String> {
        let channels = self
            .reader
            .demuxer
            .stream(index)
            .map_or(0, |facts| facts.channels);
        let mut reason = match channels {
            ..=2 => "the form of its samples is unknown".to_owned(),
            n => format!("{} has no form for its {n} channels", kind.name()),
        };
        for form in AudioTranscoder::forms(&self.reader.demuxer, index, kind) {
            let opened = explained(|| {
                AudioTranscoder::open(
                    &self.reader.demuxer,
                    index,
                    kind,
                    form,
                    self.muxer.wants_global_header(),
                )
            });
            match opened {
                Ok(Some(transcoder)) => {
                    let handling = StreamHandling::Encode(Box::new(transcoder));
                    let source = (&self.reader.demuxer, self.reader.filtered);
                    let try_with = |packets: &[&Packet]| {
                        self.container
                            .try_stream(self.add_video, source, (index, &handling), packets)
                    };
                    // Some muxers look into the packets.
                    let tried = try_with(&[]).or_else(|why| {
                        let silence = silence(&handling, FRAMES_TRIED);
                        let packets: Vec<&Packet> = silence.iter().collect();
                        match packets[..] {
                            [] => Err(why),
                            _ => try_with(&packets).map_err(|_| why),
                        }
                    });
                    let timed = tried.and_then(|()| {
                        let silence = silence(&handling, FRAMES_TIMED);
                        let packets: Vec<&Packet> = silence.iter().collect();
                        match self.container.keeps_times((source.0, index), &handling, &packets) {
                            true => Ok(()),
                            false => Err(format!("{} cannot say its times", self.container.name())),
                        }
                    });
                    match (timed, handling) {
                        (Ok(()), StreamHandling::Encode(transcoder)) => return Ok(transcoder),
                        (Ok(()), StreamHandling::Copy { .. }) => {}
                        (Err(why), _) => reason = why,
                    }
                }
                Ok(None) => return Err("this FFmpeg has no decoder for it".to_owned()),
                Err(why) => reason = why,
            }
        }
        Err(reason)
    }

    /// The streams that the container holds at one time: all of them, or as many as can be had in their
    /// order.
    fn those_together(&mut self, planned: Vec<Planned>) -> Vec<Planned> {
        fn streams(planned: &[Planned]) -> impl Iterator<Item = (usize, &StreamHandling)> {
            planned.iter().map(|p| (p.index, &p.handling))
        }
        let (container, filtered) = (self.container, self.reader.filtered);
        let all = container.try_head(
            self.add_video,
            (&self.reader.demuxer, filtered),
            streams(&planned),
        );
        let mut held = Vec::new();
        for next in planned {
            let index = next.index;
            held.push(next);
            if all.is_err() {
                let tried =
                    container.try_head(self.add_video, (&self.reader.demuxer, filtered), streams(&held));
                if let (Err(reason), Some(facts)) = (tried, self.reader.demuxer.stream(index)) {
                    held.pop();
                    let reason = format!("{} cannot hold it beside the others: {reason}", container.name());
                    self.leave_out(index, &facts, &reason);
                }
            }
        }
        held
    }

    /// Tells that a stream is left out.
    fn leave_out(&mut self, index: usize, facts: &StreamFacts, reason: &str) {
        let sentence = format!("{} is left out: {reason}", facts.label(index));
        let advice = match facts.medium {
            Medium::Audio => "--no-audio",
            Medium::Subtitle => "--no-subtitles",
            _ => "--streams",
        };
        let is_matroska = self.container.name() == "matroska";
        let other = match facts.medium {
            // Matroska holds no data.
            Medium::Data | Medium::Other => "",
            _ if is_matroska => "",
            _ => "choose another container, such as .mkv, or ",
        };
        self.losses
            .add(sentence, &format!("{other}leave it out with {advice}"));
    }
}

/// Packets of so many frames for a trial of sound that is encoded.
fn silence(handling: &StreamHandling, frames: i32) -> Vec<Packet> {
    match handling {
        StreamHandling::Copy { .. } => Vec::new(),
        // Without them, the trial shows less.
        StreamHandling::Encode(transcoder) => transcoder.silence(frames).unwrap_or_default(),
    }
}

/// What to say of an audio encoder that does not exist.
pub(in crate::sink::video) fn no_audio_encoder(name: &str) -> String {
    format!("this FFmpeg has no audio encoder '{name}'; `ffmpeg -encoders` lists those that it has")
}
