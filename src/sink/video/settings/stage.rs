//! The settings of an output and what becomes of its frames' facts, settled before anything is written.
//!
//! A rehearsal tells what encoder and container can say. What they cannot say of range, rotation and YCgCo is
//! undone in the samples; the rest is entered into the ledger as lost.

use super::alpha;
use super::encoder::Hdr;
use super::rehearsal::{Opened, Read, Rehearsal, read_back};
use super::selection::{self, FormatChoice};
use crate::frame::fact::{self, Fact, Facts, Samples};
use crate::frame::{AlphaKind, ColourModel, FieldOrder, Frame, Metadata, SideData, Turn};
use crate::media::convert::written_matrix;
use crate::media::ffmpeg::{Access, Demuxer, EncoderSetup, for_stream};
use crate::sink::SinkError;
use crate::sink::ledger::{Ledger, Outcome, stated};
use crate::sink::video::VideoSink;
use crate::sink::video::container::Sample;
use crate::source::StreamInfo;
use std::borrow::Cow;
use std::sync::Arc;

/// H.273's number for a matrix that is not stated.
const UNSPECIFIED: u8 = 2;

/// Frames of which readers know the rate, if the file says it.
const RATE_FRAMES: usize = 25;

/// Pictures that follow on one with a time code in a trial: more than are reordered.
const GOP: usize = 4;

/// The settings of the output and the facts that it is meant to say.
#[derive(Clone)]
pub(in crate::sink::video) struct Staged {
    pub(in crate::sink::video) choice: FormatChoice,
    pub(in crate::sink::video) setup: EncoderSetup,
    pub(in crate::sink::video) hdr: Hdr,
    /// The first frame, with the stream's facts.
    pub(super) first: Metadata,
    /// Blocks for the stream.
    pub(in crate::sink::video) blocks: Vec<SideData>,
    pub(super) turn: Option<Turn>,
    /// Where chroma lies after the turn cannot be said.
    chroma_moves: bool,
    /// What the input's facts, and what the output's are about.
    input: Samples,
    pub(super) output: Samples,
    /// The rehearsal could not be held: the file itself must be read when it is complete.
    unverified: bool,
    /// FFmpeg's own decoder made no picture of the rehearsal.
    pub(in crate::sink::video) undecodable: bool,
    /// What readers take for something else: the output's samples, or its rate.
    pub(in crate::sink::video) misreadings: Vec<String>,
}

/// An encoder and a container, the facts that they keep, and both in words.
type Example = ((&'static str, &'static str), fn(Fact) -> bool, &'static str);

/// Outputs that are named where another one loses something.
const EXAMPLES: &[Example] = &[
    (("libx265", "matroska"), is_of_hevc, "libx265 in .mkv"),
    (
        ("libx264", "matroska"),
        |fact| is_of_hevc(fact) || is_of_h264(fact),
        "libx264 in .mkv",
    ),
    (("libx265", "mp4"), is_of_mp4, "libx265 in .mp4"),
    (
        ("libx264", "mp4"),
        |fact| is_of_mp4(fact) || is_of_h264(fact),
        "libx264 in .mp4",
    ),
    (
        ("mpeg2video", "mxf"),
        |fact| matches!(fact, Fact::GopTimecode | Fact::FieldOrder),
        "mpeg2video in .mxf",
    ),
];

/// True for facts that H.264 states and HEVC does not.
fn is_of_h264(fact: Fact) -> bool {
    matches!(fact, Fact::FieldOrder | Fact::Captions)
}

/// True for facts that MP4 states with either, whatever the version of its muxer.
fn is_of_mp4(fact: Fact) -> bool {
    is_of_hevc(fact) && !matches!(fact, Fact::Stereo | Fact::Spherical) || fact == Fact::Rotation
}

/// True for facts that HEVC and Matroska state, whatever the version of the encoder.
fn is_of_hevc(fact: Fact) -> bool {
    match fact {
        Fact::MasteringDisplay | Fact::ContentLight | Fact::Stereo | Fact::Spherical => true,
        Fact::FieldOrder => false,
        _ => !fact.is_side_block(),
    }
}

/// Settings, what the file is meant to say with them, and what was read back.
struct Rehearsed {
    staged: Staged,
    meant: Facts,
    read: Read,
}

impl VideoSink {
    /// Settings for frames like `frame`, and the account of its facts: what the output can say is found out
    /// by a rehearsal, whose packets are given, too.
    pub(in crate::sink::video) fn stage(
        &self,
        frame: &Frame,
    ) -> Result<(Staged, Ledger, Option<Sample>), SinkError> {
        let staged = self.planned(frame)?;
        let rules = self.options.rules();
        let place = self.place();
        let advice = "another encoder or container may hold it";
        let loss_of_depth = VideoSink::loss_of_depth(&staged.choice, &place);
        let mut ledger = Ledger::new(place, advice, rules, self.info.time_base);
        // Those of this encoder first, but for what has just failed.
        let (encoder, container) = (self.kind.name(), self.container.name());
        let (own, others): (Vec<&Example>, Vec<&Example>) =
            EXAMPLES.iter().partition(|((name, _), ..)| encoder == *name);
        for ((name, place), is_held, example) in own.into_iter().chain(others) {
            if (encoder.as_str(), container) != (*name, *place) {
                ledger.give_example(*is_held, example);
            }
        }
        if let Some(loss) = loss_of_depth {
            ledger.lose_of_samples(loss);
        }
        let said = ledger.see(&staged.first, staged.input).facts;
        let Rehearsed {
            mut staged,
            meant,
            read,
        } = self.rehearsed(staged, frame);
        if matches!(read, Read::Unknown) && !self.is_its_own_codec() {
            return Err(self.unsupported(self.unknown()));
        }
        staged.undecodable = matches!(read, Read::Undecodable | Read::Unknown);
        staged.unverified = staged.undecodable || matches!(read, Read::Untried);
        for (fact, value) in &said {
            let mut outcome = staged.outcome(*fact, &meant, &read, &self.kind.name());
            // What becomes of such a text is found out at the end.
            if *fact == Fact::GopTimecode && outcome == Outcome::Lost && self.is_time_code_of_input(value) {
                outcome = Outcome::Carried;
            }
            ledger.account(*fact, &with_another_aspect(*fact, value, &read), outcome);
        }
        if let (Some(assumed), None) = (meant.get(&Fact::Matrix), said.get(&Fact::Matrix))
            && staged.input.model == ColourModel::Yuv
            && !staged.keeps(Fact::Matrix, &meant, &read)
        {
            ledger.account(Fact::Matrix, assumed, Outcome::Lost);
        }
        let mut sample = None;
        if let Read::Back(back) = read {
            let tried = staged.tried(&frame.metadata, &staged.first);
            staged.misreadings.extend(self.misreading(&staged, &tried, &back));
            if self.is_other_rate(back.rate) && !self.keeps_times(&staged) {
                // A single frame may be too little to know the rate.
                let more = self.rehearse(&staged, &[&tried; RATE_FRAMES]);
                let rate = match &more {
                    Read::Back(more) => more.rate,
                    _ => back.rate,
                };
                staged.misreadings.extend(self.other_rate(rate));
            }
            sample = back.sample;
        }
        if let Some(problem) = staged.misreadings.first().filter(|_| self.options.strict) {
            return Err(self.unsupported(problem.clone()));
        }
        match ledger.refusal() {
            Some(problem) => Err(self.unsupported(problem)),
            None => Ok((staged, ledger, sample)),
        }
    }

    /// True if the input has a text with this time code, which is carried over as such.
    fn is_time_code_of_input(&self, code: &str) -> bool {
        let demuxer = self.origin.as_ref().and_then(|origin| match &origin.outline {
            _ if origin.path.is_file() => Demuxer::open(&origin.path, origin.access, None, None).ok(),
            Some(outline) => outline.demuxer().ok(),
            None => None,
        });
        let texts = demuxer.map_or_else(Vec::new, |demuxer| demuxer.all_texts());
        let is_code = |(key, value): &(String, String)| key.eq_ignore_ascii_case("timecode") && value == code;
        texts.iter().any(is_code)
    }

    /// The output and what holds it, for a sentence about what is not kept there.
    pub(in crate::sink::video) fn place(&self) -> String {
        let (encoder, container) = (self.kind.name(), self.output.muxer.name());
        format!("{} ({encoder} in {container})", self.name)
    }

    /// Says that samples become shallower at `place`, if the user has not asked for it.
    fn loss_of_depth(choice: &FormatChoice, place: &str) -> Option<String> {
        let (from, to) = choice.lost_depth?;
        let format = choice.format.name();
        let advice = match from {
            ..=16 => "PNG, TIFF and ffv1 in .mkv keep it",
            _ => "TIFF and OpenEXR keep it",
        };
        Some(format!(
            "not kept in {place}: depth (samples of {from} bits become samples of {to} bits in {format}); \
             {advice}, and --pixel-format {format} accepts the loss"
        ))
    }

    /// What a frame says with its stream, as it goes to the encoder: for OpenEXR its colours are multiplied
    /// by their alpha if they are not yet.
    fn stated_of(&self, frame: &Frame) -> Metadata {
        let mut metadata = stated_beside_container(&frame.metadata, &self.info);
        if self.has_associated_alpha() && frame.format().has_alpha() {
            metadata.colour.alpha = AlphaKind::Associated;
        }
        metadata
    }

    /// True if the colours of what is written are multiplied by their alpha, where it has any.
    pub(super) fn has_associated_alpha(&self) -> bool {
        self.kind.codec_name() == "exr"
    }

    /// Settings as they are before any rehearsal.
    fn planned(&self, frame: &Frame) -> Result<Staged, SinkError> {
        let layout = *frame.layout();
        let (width, height) = (layout.width(), layout.height());
        let mut first = self.stated_of(frame);
        // Full range is what gray has if nothing is said; decoders take gray of H.264 for YUV, of which they
        // assume limited range.
        if layout.format().model() == ColourModel::Gray {
            first.colour.range = first.colour.assumed_range(layout.format());
        }
        let choice = selection::choose_format(
            (self.kind, self.container.name()),
            (layout.format(), first.colour, self.info.stored_chroma),
            (width, height),
            self.options.pixel_format.as_deref(),
            alpha::is_held(&self.container, self.kind),
        )
        .map_err(|problem| self.unsupported(problem))?;
        let setup = EncoderSetup {
            format: choice.format,
            width,
            height,
            time_base: selection::encoder_time_base(
                &self.kind.name(),
                &self.output.muxer.name(),
                self.info.time_base,
                self.info.frame_rate,
            ),
            frame_rate: self.info.frame_rate,
            sample_aspect: first.sample_aspect,
            colour: choice.colour,
            field_order: match self.info.field_order {
                FieldOrder::Mixed => FieldOrder::Mixed,
                _ => first.field_order,
            },
            threads: self.options.threads.unwrap_or(0),
            global_header: self.output.muxer.wants_global_header(),
        };
        let mut blocks: Vec<SideData> = Vec::new();
        for block in first.side_data.iter().filter_map(for_stream) {
            if blocks.iter().all(|b| b.fact != block.fact) {
                blocks.push(block);
            }
        }
        Ok(Staged {
            input: Samples::of(layout.format(), height),
            output: choice.samples(height),
            hdr: Hdr::from_blocks(&self.info.side_data, &frame.metadata.side_data),
            choice,
            setup,
            first,
            blocks,
            turn: None,
            chroma_moves: false,
            unverified: false,
            undecodable: false,
            misreadings: Vec::new(),
        })
    }

    /// Rehearses the settings, and others where the file would not say what is meant: without fields, in the
    /// other range, with the picture turned.
    fn rehearsed(&self, mut staged: Staged, frame: &Frame) -> Rehearsed {
        let mut meant = staged.meant(&staged.first);
        let mut tried = staged.tried(&frame.metadata, &staged.first);
        let mut read = self.rehearse(&staged, &[&tried]);
        if matches!(read, Read::Untried | Read::Undecodable | Read::Unknown)
            && staged.setup.field_order != FieldOrder::Progressive
        {
            // Some encoders refuse an interlaced setting.
            let mut plain = staged.clone();
            plain.setup.field_order = FieldOrder::Progressive;
            let again = self.rehearse(&plain, &[&tried]);
            if matches!(again, Read::Back(_) | Read::Nothing) {
                (staged, read) = (plain, again);
            }
        }
        if !staged.keeps(Fact::Range, &meant, &read) {
            // The only other range there is.
            let mut other = Staged {
                choice: staged.choice.with_other_range(frame.layout().height()),
                ..staged.clone()
            };
            other.setup.colour = other.choice.colour;
            let now = other.meant(&other.first);
            let again = self.rehearse(&other, &[&tried]);
            if other.keeps(Fact::Range, &now, &again) {
                (staged, meant, read) = (other, now, again);
            }
        }
        if staged.states_another_matrix(&read) {
            // What is assumed of the frames is said, where that can be.
            let mut other = staged.clone();
            other.choice.colour.matrix = written_matrix(staged.first.colour.matrix, staged.output.height);
            other.setup.colour = other.choice.colour;
            let again = self.rehearse(&other, &[&tried]);
            if matches!(again, Read::Back(_)) {
                meant = other.meant(&other.first);
                (staged, read) = (other, again);
            }
        }
        let turn = staged.rotation().filter(|turn| {
            turn.fits(frame.layout().format()) && staged.first.field_order == FieldOrder::Progressive
        });
        if let Some(turn) = turn
            && !staged.keeps(Fact::Rotation, &meant, &read)
        {
            let mut turned = staged.clone();
            turned.apply(turn);
            let mut now = turned.meant(&turned.first);
            tried = turned.tried(&frame.metadata, &turned.first);
            let again = self.rehearse(&turned, &[&tried]);
            if !turned.keeps(Fact::ChromaLocation, &now, &again) {
                turned.chroma_moves = true;
                turned.choice.colour.chroma_location = 0;
                turned.setup.colour.chroma_location = 0;
                now = turned.meant(&turned.first);
            }
            if matches!(again, Read::Back(_) | Read::Nothing) {
                (staged, meant, read) = (turned, now, again);
            }
        }
        Rehearsed { staged, meant, read }
    }

    /// Encodes and reads back a frame without content for each of `frames`.
    fn rehearse(&self, staged: &Staged, frames: &[&Metadata]) -> Read {
        // FFmpeg's decoder gives the time code with a picture that others follow on.
        let is_gop = |frame: &&Metadata| frame.side_data.iter().any(|b| b.fact == Fact::GopTimecode);
        let followers = if frames.iter().any(is_gop) { GOP } else { 0 };
        let followers = frames.last().into_iter().cycle().take(followers);
        let all: Vec<&Metadata> = frames.iter().chain(followers).copied().collect();
        let mut read = self.on_trial(staged, |rehearsal| rehearsal.run(&all));
        // Containers of units want sound for each picture of the sample.
        if let Read::Back(back) = &mut read
            && let Some(sample) = &mut back.sample
            && all.len() > frames.len()
        {
            sample.packets.truncate(frames.len());
        }
        read
    }

    /// True if frames keep their times in the container, however irregular: as its muxer says, or else as a
    /// rehearsal shows.
    pub(in crate::sink::video) fn keeps_times(&self, staged: &Staged) -> bool {
        let known = self.output.muxer.keeps_times();
        known.unwrap_or_else(|| {
            let kept = self.on_trial(staged, |rehearsal| rehearsal.keeps_gap(&staged.first));
            kept.unwrap_or(false)
        })
    }

    /// Gives `run` the settings to try.
    pub(in crate::sink::video) fn on_trial<T>(
        &self,
        staged: &Staged,
        run: impl FnOnce(&Rehearsal<'_>) -> T,
    ) -> T {
        let open = |setup: &EncoderSetup| -> Option<Opened> {
            self.open_on_trial(setup, &staged.hdr, None)
                .ok()
                .map(|(opened, _)| opened)
        };
        let codec = self.kind.codec_name();
        run(&Rehearsal {
            open: &open,
            setup: staged.setup.clone(),
            muxer: self.options.muxer.as_deref(),
            path: &self.options.path,
            frame_rate: self.info.frame_rate,
            tag: self.codec_tag(),
            blocks: &staged.blocks,
            codec: &codec,
            is_bare: self.container.is_bare(),
        })
    }

    /// Accounts for what a frame after the first says.
    pub(in crate::sink::video) fn account(
        &self,
        staged: &Staged,
        ledger: &mut Ledger,
        frame: &Frame,
    ) -> Result<(), SinkError> {
        let metadata = self.stated_of(frame);
        let news = ledger.see(&metadata, staged.input);
        if news.facts.is_empty() && news.changes.is_empty() {
            return Ok(());
        }
        if !news.facts.is_empty() {
            let read = self.rehearse(staged, &[&staged.tried(&frame.metadata, &metadata)]);
            let meant = staged.meant(&metadata);
            for (fact, value) in &news.facts {
                let outcome = staged.outcome(*fact, &meant, &read, &self.kind.name());
                ledger.account(*fact, value, outcome);
            }
        }
        if news.changes.contains(&Fact::Range) {
            ledger.settle_change(Fact::Range);
        }
        if news.changes.contains(&Fact::FieldOrder) {
            // Encoders that know of fields from the start may mark each frame for itself.
            let said = |m: &Metadata| fact::said(m, staged.output).get(&Fact::FieldOrder).cloned();
            if let Read::Back(read) = self.rehearse(staged, &[&staged.first, &metadata])
                && read.facts.first().map(&said) == Some(said(&staged.first))
                && read.facts.get(1).map(&said) == Some(said(&metadata))
            {
                ledger.settle_change(Fact::FieldOrder);
            }
        }
        match ledger.refusal() {
            Some(problem) => Err(self.unsupported(problem)),
            None => Ok(()),
        }
    }

    /// Looks into the finished file for what it says, where no rehearsal found out. Gives a sentence if
    /// FFmpeg cannot decode it.
    pub(in crate::sink::video) fn check_kept(&self, staged: &Staged, ledger: &mut Ledger) -> Option<String> {
        if !staged.unverified || self.file.path() == self.options.path {
            return None;
        }
        let file = Demuxer::open(self.file.path(), Access::default(), None, None);
        let read = file.map_or(Read::Unknown, |demuxer| read_back(demuxer, 1));
        let meant = staged.meant(&staged.first);
        for (fact, value) in &meant {
            let outcome = staged.outcome(*fact, &meant, &read, &self.kind.name());
            ledger.account(*fact, value, outcome);
        }
        matches!(read, Read::Undecodable | Read::Unknown).then(|| self.undecodable(staged))
    }
}

/// What a frame says together with its stream, but for texts that are carried with the container's metadata.
fn stated_beside_container(frame: &Metadata, info: &StreamInfo) -> Metadata {
    let mut metadata = stated(frame, info);
    if let Some(annotations) = metadata.annotations.as_mut()
        && annotations.texts_are_in_container
    {
        *annotations = Arc::new(annotations.without_container_texts());
    }
    metadata
}

/// The words for a fact's value, with the pixel aspect that comes back, where it is lost: some containers
/// state the whole size at which pictures are shown, which rounds it.
fn with_another_aspect<'a>(fact: Fact, value: &'a str, read: &Read) -> Cow<'a, str> {
    let Read::Back(back) = read else {
        return value.into();
    };
    match back.facts.first().map(|metadata| metadata.sample_aspect) {
        Some((num @ 1.., den @ 1..)) if fact == Fact::PixelAspect => {
            format!("{value}, which becomes {num}:{den}").into()
        }
        _ => value.into(),
    }
}

impl Staged {
    /// True if samples change on their way to the encoder.
    pub(in crate::sink::video) fn changes_samples(&self) -> bool {
        self.choice.converts || self.choice.range_is_changed || self.turn.is_some()
    }

    /// What the output is meant to say of a frame that says `metadata`.
    fn meant(&self, metadata: &Metadata) -> Facts {
        let metadata = Metadata {
            colour: self.choice.colour,
            ..metadata.clone()
        };
        fact::said(&metadata, self.output)
    }

    /// A frame of a rehearsal, with the blocks of its own that the run hands to the encoder, and else what it
    /// says with its stream.
    fn tried(&self, own: &Metadata, stated: &Metadata) -> Metadata {
        let mut tried = Metadata {
            side_data: own.side_data.clone(),
            ..stated.clone()
        };
        if self.turn.is_some() {
            tried.side_data.retain(|b| b.fact != Fact::Rotation);
        }
        tried
    }

    /// True if what was read back says of a fact what was meant.
    fn keeps(&self, fact: Fact, meant: &Facts, read: &Read) -> bool {
        let Some(value) = meant.get(&fact) else {
            return true;
        };
        let found = match read {
            Read::Back(back) => back.facts.first().map(|m| fact::said(m, self.output)),
            Read::Nothing => None,
            // No encoder writes what stills say beside their pixels.
            Read::Untried | Read::Undecodable | Read::Unknown => {
                return !matches!(fact, Fact::Annotations | Fact::Exr);
            }
        };
        let found = found.unwrap_or_default();
        fact::survives(fact, value, found.get(&fact).map(String::as_str), self.output)
    }

    /// True if frames that say nothing of their matrix came back with another one than is assumed of them.
    fn states_another_matrix(&self, read: &Read) -> bool {
        let Read::Back(back) = read else {
            return false;
        };
        let matrix = self.choice.colour.matrix;
        let is_unsaid = matrix == UNSPECIFIED && self.input.model == ColourModel::Yuv;
        let found = back.facts.first().map(|m| fact::said(m, self.output));
        let found = found.and_then(|facts| facts.get(&Fact::Matrix).cloned());
        let mut assumed = self.first.clone();
        assumed.colour.matrix = written_matrix(matrix, self.output.height);
        let assumed = fact::said(&assumed, self.output);
        is_unsaid
            && assumed
                .get(&Fact::Matrix)
                .zip(found)
                .is_some_and(|(assumed, found)| {
                    !fact::survives(Fact::Matrix, assumed, Some(&found), self.output)
                })
    }

    /// What becomes of a fact of the input.
    fn outcome(&self, fact: Fact, meant: &Facts, read: &Read, encoder: &str) -> Outcome {
        if fact == Fact::Rotation
            && let Some(turn) = self.turn
        {
            let chroma = if self.chroma_moves {
                ", chroma off by up to a sample of luma"
            } else {
                ""
            };
            return Outcome::Converted(format!("pictures turned: {}{chroma}", turn.word()));
        }
        if fact == Fact::Range && self.choice.range_is_changed {
            let range = meant.get(&fact).map_or("", String::as_str);
            return Outcome::Converted(format!(
                "samples brought to {range} range, all that {encoder} says here"
            ));
        }
        // WebP has no other colours than those of sRGB, and no word for them.
        let value = meant.get(&fact).map_or("", String::as_str);
        let is_srgb = matches!(
            (fact, value),
            (Fact::Primaries, "bt709") | (Fact::Transfer, "iec61966-2-1")
        );
        if is_srgb && encoder.starts_with("libwebp") || self.keeps(fact, meant, read) {
            Outcome::Carried
        } else {
            Outcome::Lost
        }
    }

    /// The turn that the stream's block states.
    fn rotation(&self) -> Option<Turn> {
        let block = self.first.side_data.iter().find(|b| b.fact == Fact::Rotation)?;
        Turn::from_matrix(&block.data).filter(|turn| !turn.is_upright())
    }

    /// Settings for frames that are turned before they are encoded.
    fn apply(&mut self, turn: Turn) {
        self.turn = Some(turn);
        self.first.side_data.retain(|b| b.fact != Fact::Rotation);
        self.blocks.retain(|b| b.fact != Fact::Rotation);
        let before = self.choice.colour.chroma_location;
        let location = turn.chroma_location(before);
        self.chroma_moves = before != 0 && location == 0;
        self.choice.colour.chroma_location = location;
        self.first.colour.chroma_location = turn.chroma_location(self.first.colour.chroma_location);
        self.setup.colour = self.choice.colour;
        if turn.swaps_axes() {
            std::mem::swap(&mut self.setup.width, &mut self.setup.height);
            let (num, den) = self.setup.sample_aspect;
            if num > 0 {
                self.setup.sample_aspect = (den, num);
                self.first.sample_aspect = (den, num);
            }
        }
    }
}
