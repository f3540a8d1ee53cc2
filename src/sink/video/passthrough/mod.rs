//! The passthrough streams: sound, subtitles, attachments, data, chapters and texts that come from the input
//! without being filtered.
//!
//! Packets are copied as they are. Sound that the container cannot hold is encoded anew; what else it cannot
//! hold is left out, with a warning. What it holds is found out by trying (see [`Container`]).

mod account;
mod copied;
mod gaps;
mod plan;
mod reading;

use super::container::{AddVideo, Container, KEEP_NEGATIVE, STALE_TEXTS, StreamHandling, explained};
use super::kept;
use super::selection::StreamOptions;
use crate::ffmpeg::{AvError, Medium, Muxer, Packet, StreamFacts, log, rescale};
use crate::source::Origin;
use account::Losses;
use copied::{Copied, Refusal, label};
use gaps::{Gaps, TOO_SHORT_TO_HEAR};
pub(super) use plan::{MapFailure, no_audio_encoder};
use plan::{Planned, Planner};
use reading::{Reader, SETTLED_AFTER};
use std::collections::VecDeque;
use std::ffi::CStr;

/// Texts about the whole file that describe the old container and that the new one writes for itself.
const STALE_FILE_TEXTS: &[&CStr] = &[
    c"encoder",
    c"major_brand",
    c"minor_version",
    c"compatible_brands",
    c"duration",
];

/// Texts about the filtered stream, beside those of each encoded one, that are no longer true of it.
const STALE_VIDEO_TEXTS: &[&CStr] = &[c"rotate", c"alpha_mode"];

/// Seconds by which sound goes on after the last picture of a container that writes units of both, so that
/// none of the units is without sound, wherever the first one begins.
const UNIT: f64 = 0.1;

/// A second reader of the input file, and which of its streams go where.
pub(super) struct Passthrough {
    reader: Reader,
    copied: Vec<Copied>,
    /// Seconds before picture and sound begin that the output leaves out.
    pause: f64,
    /// Sound whose end the container leaves out, a sentence each.
    cut_tails: Vec<String>,
    /// A packet that the container refuses ends the run.
    strict: bool,
    losses: Losses,
}

impl Passthrough {
    /// Opens the input a second time; an error is a warning.
    pub(super) fn open(origin: &Origin, strict: bool) -> Result<Passthrough, String> {
        Ok(Passthrough {
            reader: Reader::open(origin)?,
            copied: Vec::new(),
            pause: 0.0,
            cut_tails: Vec::new(),
            strict,
            losses: Losses::default(),
        })
    }

    /// Adds every stream that is wanted and that `muxer`, which writes `container`, can hold, in the input's
    /// order, with the filtered one where it stands, and takes over chapters and texts. Gives the index of
    /// the filtered stream in the output.
    pub(super) fn map(
        &mut self,
        muxer: &mut Muxer,
        container: &Container,
        add_video: AddVideo<'_>,
        options: &StreamOptions,
        picture: f64,
    ) -> Result<usize, MapFailure> {
        let planner = Planner {
            reader: &mut self.reader,
            losses: &mut self.losses,
            muxer,
            container,
            add_video,
            options,
        };
        let planned = planner.plan()?;
        self.choose_metadata_form(muxer, &planned);
        let mut planned = planned.into_iter().peekable();
        let mut video = None;
        for index in 0..self.reader.demuxer.stream_count() {
            if index == self.reader.filtered {
                let to = add_video(muxer)?;
                muxer.describe(
                    to,
                    &self.reader.demuxer,
                    index,
                    &[STALE_TEXTS, STALE_VIDEO_TEXTS, self.reader.stale_timecode()].concat(),
                )?;
                muxer.unmark_cover(to);
                video = Some(to);
                continue;
            }
            let (Some(Planned { handling, .. }), Some(facts)) = (
                planned.next_if(|p| p.index == index),
                self.reader.demuxer.stream(index),
            ) else {
                self.reader.demuxer.discard(index);
                continue;
            };
            let to = handling.add(muxer, &self.reader.demuxer, index)?;
            self.copied.push(Copied {
                from: index,
                to,
                base: facts.time_base,
                delay: 0.0,
                last: None,
                last_end: None,
                medium: facts.medium,
                gaps: self
                    .counts_sound(muxer, container, &handling, (index, &facts))
                    .then(Gaps::default),
                undated: Vec::new(),
                late: 0,
                label: label(index, &facts),
                handling,
                refusal: None,
            });
        }
        let video = match video {
            Some(video) => video,
            None => add_video(muxer)?,
        };
        self.place_late_sound(container, picture);
        self.place_early_sound(muxer, container, picture - self.pause);
        if writes_units(muxer) {
            self.begin_encoded_sound(picture);
            self.report_moved_sound(container, picture);
        }
        let wanted = self.copied.iter().map(|c| c.from).collect();
        self.reader.settle(wanted, options);
        if !self.reader.stale_timecode().is_empty()
            && self
                .reader
                .demuxer
                .all_texts()
                .iter()
                .any(|(key, _)| key == "timecode")
        {
            self.losses.extend(vec![
                "its time code is left out: it is that of the input's first picture".to_owned(),
            ]);
        }
        let texts = [STALE_FILE_TEXTS, self.reader.stale_timecode()].concat();
        muxer.copy_metadata(&self.reader.demuxer, &texts)?;
        // Of one program, which is the whole file.
        if let [program] = &self.reader.demuxer.program_texts()[..] {
            for (name, value) in kept::service(program) {
                muxer.add_text(name, value)?;
            }
        }
        muxer.copy_chapters(&self.reader.demuxer)?;
        Ok(video)
    }

    /// Has sound that begins before it is heard come back at its times, where the container has a way.
    /// `picture` is when the picture begins, in seconds.
    fn place_early_sound(&mut self, muxer: &mut Muxer, container: &Container, picture: f64) {
        for copied in &mut self.copied {
            let Some(facts) = self.reader.demuxer.stream(copied.from) else {
                continue;
            };
            let start = self.reader.beginning(copied.from).unwrap_or(0.0) + copied.delay;
            let (priming, begins) = match &copied.handling {
                StreamHandling::Encode(transcoder) => {
                    (transcoder.priming(), start.max(0.0) - transcoder.priming())
                }
                StreamHandling::Copy { .. } => (facts.priming, start.max(-facts.priming)),
            };
            if priming <= 0.0 {
                continue;
            }
            let source = (&self.reader.demuxer, copied.from);
            if let Some(early) = container.early_sound(source, &copied.handling, priming, (picture, begins)) {
                copied.delay += early.delay;
                if early.keeps_negative {
                    // The same option was accepted when it was tried.
                    let _ = muxer.set(KEEP_NEGATIVE.0, KEEP_NEGATIVE.1);
                }
            } else if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.overlay_priming();
            }
        }
    }

    /// Has sound that is encoded begin with the picture, at `picture` seconds.
    fn begin_encoded_sound(&mut self, picture: f64) {
        for copied in &mut self.copied {
            if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.begin_at(picture - copied.delay);
            }
        }
    }

    /// Has sound that is encoded begin on a tick of the container's clock, which is known once its head is
    /// written. To round the times of coarse clocks (WebM's milliseconds) would move the sound.
    pub(super) fn begin_on_ticks(&mut self, muxer: &Muxer) {
        for copied in &mut self.copied {
            if let StreamHandling::Encode(transcoder) = &mut copied.handling {
                transcoder.begin_on_tick(muxer.time_base(copied.to), copied.delay);
            }
        }
    }

    /// Names sound that is copied and does not begin with the picture, at `picture` seconds, in a container
    /// that has both begin at once.
    fn report_moved_sound(&mut self, container: &Container, picture: f64) {
        let moved = self.copied.iter().filter_map(|copied| {
            let facts = self.reader.demuxer.stream(copied.from)?;
            let off = self.reader.beginning(copied.from)? - picture;
            let counts =
                facts.medium == Medium::Audio && matches!(copied.handling, StreamHandling::Copy { .. });
            (counts && off.abs() > TOO_SHORT_TO_HEAR).then(|| copied.moved(off, container))
        });
        self.losses.extend(moved.collect());
    }

    /// Has picture and sound stay together in a container that cannot say that sound begins late. What both
    /// are late by is left out; what remains is a loss. `picture` is when the picture begins, in seconds.
    fn place_late_sound(&mut self, container: &Container, picture: f64) {
        let mut late = Vec::new();
        for copied in &self.copied {
            let Some(facts) = self.reader.demuxer.stream(copied.from) else {
                continue;
            };
            let start = self.reader.beginning(copied.from).unwrap_or(0.0);
            if facts.medium == Medium::Audio && start > TOO_SHORT_TO_HEAR {
                late.push((copied, start));
            }
        }
        let keeps = |copied: &Copied, begins| {
            container.keeps_apart((&self.reader.demuxer, copied.from), &copied.handling, begins)
        };
        if late
            .iter()
            .all(|(copied, start)| keeps(copied, (picture, *start)))
        {
            return;
        }
        let common = late
            .iter()
            .map(|(_, start)| *start)
            .fold(picture, f64::min)
            .max(0.0);
        let mut losses = Vec::new();
        for (copied, start) in &late {
            if !keeps(copied, (picture - common, start - common)) {
                losses.push(copied.moved(start - picture, container));
            }
        }
        self.losses.extend(losses);
        self.pause = common;
        for copied in &mut self.copied {
            copied.delay -= common;
        }
    }

    /// Seconds before picture and sound begin that the output leaves out.
    pub(super) fn pause(&self) -> f64 {
        self.pause
    }

    /// True if sound of stream `index` that is copied is counted by the container, so that what comes after a
    /// gap follows on what came before.
    fn counts_sound(
        &self,
        muxer: &Muxer,
        container: &Container,
        handling: &StreamHandling,
        (index, facts): (usize, &StreamFacts),
    ) -> bool {
        if facts.medium != Medium::Audio || matches!(handling, StreamHandling::Encode(_)) {
            return false;
        }
        let Some(packet) = self.reader.waiting(index).next() else {
            return false;
        };
        writes_units(muxer) || !container.keeps_gaps((&self.reader.demuxer, index), handling, packet)
    }

    /// Has MP4 and MOV write all texts under their names, where some are of the kind that they know no place
    /// for. Not where a cover is kept, which cannot be written beside such texts.
    fn choose_metadata_form(&self, muxer: &mut Muxer, planned: &[Planned]) {
        let has_cover = planned.iter().any(|p| {
            self.reader
                .demuxer
                .stream(p.index)
                .is_some_and(|facts| facts.is_cover)
        });
        let mut texts = self.reader.demuxer.texts().into_iter();
        if !has_cover && texts.any(|(name, _)| kept::is_reverse_domain(&name)) {
            // Other containers have no such option, and need none.
            let _ = muxer.set("movflags", "+use_metadata_tags");
        }
    }

    /// Names sound that goes on after the last picture, at `end` seconds, in a container that then leaves it
    /// out.
    fn report_cut_tails(&mut self, muxer: &Muxer, end: f64) {
        for copied in self.copied.iter().filter(|copied| copied.refusal.is_none()) {
            let sound_end = copied
                .last_end
                .map_or(0.0, |at| at as f64 * muxer.time_base(copied.to).to_f64());
            if sound_end > end + UNIT {
                self.cut_tails.push(format!(
                    "{} goes on for {:.3} s after the last picture, which {} leaves out",
                    copied.label,
                    sound_end - end,
                    muxer.name()
                ));
            }
        }
    }

    /// Writes the packets whose time is up to `until` seconds.
    pub(super) fn copy_until(&mut self, muxer: &mut Muxer, until: f64) -> Result<(), AvError> {
        while !self.copied.is_empty() || self.reader.demuxer.may_grow() {
            let Some((packet, time)) = self.reader.next(None)? else {
                break;
            };
            if time > until {
                self.reader.put_back(packet, time);
                break;
            }
            self.pass(muxer, packet, time)?;
        }
        Ok(())
    }

    /// Writes the rest: all of it, or up to `end` seconds if the file shows that the video was cut short
    /// there. The container shows the video until `shown_end`.
    pub(super) fn copy_rest(&mut self, muxer: &mut Muxer, end: f64, shown_end: f64) -> Result<(), AvError> {
        // Packets past the end wait until it is clear which of the two it is.
        let mut unclear = VecDeque::new();
        while !self.copied.is_empty() || self.reader.demuxer.may_grow() {
            let Some((packet, time)) = self.reader.next(Some(end))? else {
                break;
            };
            if time < end {
                self.pass(muxer, packet, time)?;
                continue;
            }
            match self.reader.limit() {
                Some(_) => unclear.clear(),
                None => unclear.push_back((packet, time)),
            }
            if time > end + SETTLED_AFTER {
                for (packet, time) in unclear.drain(..) {
                    self.pass(muxer, packet, time)?;
                }
            }
        }
        if self.reader.limit().is_none() {
            for (packet, time) in unclear {
                self.pass(muxer, packet, time)?;
            }
        }
        if writes_units(muxer) {
            self.report_cut_tails(muxer, shown_end);
        }
        for position in 0..self.copied.len() {
            let copied = &mut self.copied[position];
            let to = copied.to;
            if let Err(e) = Packet::new().and_then(|none| copied.write_undated(muxer, &none)) {
                self.absorb(muxer, Some(to), e, end)?;
            }
            if writes_units(muxer) {
                self.extend(muxer, position, end + UNIT)?;
            }
            if matches!(self.copied[position].handling, StreamHandling::Encode(_)) {
                self.transcode(muxer, position, None, end)?;
            }
        }
        while let Err(e) = muxer.flush() {
            self.absorb(muxer, None, e, end)?;
        }
        self.report_refusals();
        Ok(())
    }

    /// Adds silence to sound that ends before `end` seconds.
    fn extend(&mut self, muxer: &mut Muxer, position: usize, end: f64) -> Result<(), AvError> {
        let copied = &mut self.copied[position];
        if copied.refusal.is_some() {
            return Ok(());
        }
        let (to, delay) = (copied.to, copied.delay);
        let (packets, base) = match &mut copied.handling {
            StreamHandling::Encode(transcoder) => {
                let mut packets = transcoder.extend(end - delay)?;
                let shift = (delay / transcoder.time_base().to_f64()).round() as i64;
                packets.iter_mut().for_each(|packet| packet.shift(shift));
                (packets, transcoder.time_base())
            }
            StreamHandling::Copy { .. } => {
                let base = muxer.time_base(to);
                let begins = copied.last_end.unwrap_or(0);
                let missing = (end / base.to_f64()).ceil() as i64 - begins;
                let silence = self
                    .reader
                    .demuxer
                    .silence(copied.from, missing as f64 * base.to_f64());
                let mut packets = Vec::new();
                if let Some(mut silence) = silence {
                    silence.shift(begins);
                    silence.set_duration(missing);
                    packets.push(silence);
                }
                (packets, base)
            }
        };
        for mut packet in packets {
            if let Err(e) = muxer.write(&mut packet, to, base) {
                self.absorb(muxer, Some(to), e, end)?;
            }
        }
        Ok(())
    }

    /// Brings a packet into the output, unless its stream was given up. A stream of which the container
    /// refuses a packet is.
    fn pass(&mut self, muxer: &mut Muxer, mut packet: Packet, time: f64) -> Result<(), AvError> {
        let Some(position) = self.copied.iter().position(|c| c.from == packet.stream()) else {
            return Ok(());
        };
        let copied = &mut self.copied[position];
        if let Some(refusal) = &mut copied.refusal {
            refusal.packets += 1;
            return Ok(());
        }
        let to = copied.to;
        if matches!(copied.handling, StreamHandling::Encode(_)) {
            return self.transcode(muxer, position, Some(&packet), time);
        }
        log::forget();
        match copied.pass(muxer, &self.reader.demuxer, &mut packet) {
            Ok(()) => Ok(()),
            Err(e) => self.absorb(muxer, Some(to), e, time),
        }
    }

    /// Decodes a packet, or its stream's end, and writes what the encoder makes of it.
    fn transcode(
        &mut self,
        muxer: &mut Muxer,
        position: usize,
        packet: Option<&Packet>,
        time: f64,
    ) -> Result<(), AvError> {
        let copied = &mut self.copied[position];
        let StreamHandling::Encode(transcoder) = &mut copied.handling else {
            return Ok(());
        };
        let (to, base) = (copied.to, transcoder.time_base());
        let delay = (copied.delay / base.to_f64()).round() as i64;
        match explained(|| transcoder.feed(packet)) {
            Ok(packets) => {
                for mut packet in packets {
                    packet.shift(delay);
                    let ends = packet
                        .pts()
                        .map(|at| rescale(at + packet.duration(), base, muxer.time_base(to)));
                    self.copied[position].last_end = ends.max(self.copied[position].last_end);
                    if let Err(e) = muxer.write(&mut packet, to, base) {
                        self.absorb(muxer, Some(to), e, time)?;
                    }
                }
            }
            Err(reason) => {
                copied.refusal = Some(Refusal {
                    from: time,
                    reason: format!("it cannot be encoded anew: {reason}"),
                    packets: 1,
                });
            }
        }
        Ok(())
    }

    /// Takes a packet that could not be written, perhaps while one of stream `written` was, for the end of
    /// the stream that it is of, if that is a passthrough stream. Else, and if the disk is at fault, the
    /// error is given back.
    pub(super) fn absorb(
        &mut self,
        muxer: &mut Muxer,
        written: Option<usize>,
        e: AvError,
        time: f64,
    ) -> Result<(), AvError> {
        if self.strict || muxer.io_error().is_some() {
            return Err(e);
        }
        let reason = log::explained(&e.to_string());
        let refused = muxer.refused(written);
        let Some(copied) = self.copied.iter_mut().find(|c| Some(c.to) == refused) else {
            return Err(e);
        };
        let refusal = copied.refusal.get_or_insert_with(|| Refusal {
            from: time,
            reason: format!("the container refuses one ({reason})"),
            packets: 0,
        });
        refusal.packets += 1;
        Ok(())
    }
}

/// True if the muxer writes each picture together with its sound, whatever their times are, and leaves out
/// pictures without sound, as those of MXF do.
fn writes_units(muxer: &Muxer) -> bool {
    muxer.name().starts_with("mxf")
}
