//! A second reader of the input, for the streams beside the picture.
//!
//! ```text
//!   demuxer ── packets of wanted streams ──> pending ──> next, in the order of the file
//!      │
//!      ├─ before the range, behind its end, discarded     left out (`joins`: video begins at a key frame)
//!      ├─ of streams that nobody foresaw                  left out, and named (`unforeseen`)
//!      └─ of the filtered stream                          show where the input ends
//! ```
//!
//! `matroska`: what such a file says that its demuxer does not.

mod joins;
mod matroska;
mod unforeseen;

use super::sound::TOO_SHORT_TO_HEAR;
use crate::frame::Rational;
use crate::media::ffmpeg::{Access, AvError, Demuxer, Medium, OpenFailure, Packet, StreamFacts};
use crate::sink::video::container::{Container, PACKETS_TRIED};
use crate::sink::video::passthrough::selection::StreamOptions;
use crate::source::{Origin, ReadRange};
use joins::Join;
use matroska::OfMatroska;
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use unforeseen::Unforeseen;

/// A video that ends this many seconds before its source does was interrupted, and so are the streams beside
/// it.
const INTERRUPTED_AFTER: f64 = 1.0;

/// Seconds before the start of a range that are taken for the start, for containers' rounding.
const SOON_ENOUGH: f64 = 0.0006;

/// Seconds before a range from which on its sound is looked for: it may lie that much earlier in the file.
const INTERLEAVED: f64 = 2.0;

/// Seconds of discarded sound that are kept, because decoders need it to begin.
const PREROLL: f64 = 0.05;

/// Seconds past the video's end after which streams of a file are not mixed any more.
pub(super) const SETTLED_AFTER: f64 = 10.0;

/// Bytes of the input that are read to find a first packet of each stream.
const READ_AHEAD: usize = 32 << 20;

/// A second reader of the input file.
pub(super) struct Reader {
    pub(super) demuxer: Demuxer,
    pub(super) path: PathBuf,
    /// The stream that is filtered, and not read here.
    pub(super) filtered: usize,
    access: Access,
    /// What is read of the input.
    stretch: ReadRange,
    /// The streams whose packets are read.
    wanted: Vec<usize>,
    /// Packets that were read but whose time has not come, with that time in seconds.
    pending: VecDeque<(Packet, f64)>,
    ended: bool,
    /// What to say of other streams if there are no packets, since what the input says was taken from where
    /// it was read.
    unread: Option<String>,
    /// What a Matroska file says beside what its demuxer does.
    pub(super) matroska: Option<OfMatroska>,
    /// Where the filtered video ended, set once the file shows that the input's goes on.
    limit: Option<f64>,
    /// Where copied video streams begin (see `is_after_start`).
    joins: BTreeMap<usize, Join>,
    unforeseen: Unforeseen,
}

/// Why an input cannot be read a second time.
pub(in crate::sink::video) enum Unopened {
    /// A warning of what is lost.
    Lost(String),
    /// The system lacks what opening takes. With the input's name.
    Failed(String, AvError),
}

/// What came of reading one packet.
enum Read {
    /// A packet of a wanted stream, with its time in seconds.
    Wanted(Packet, f64),
    /// So many bytes of something else, none where they come before the part that is read.
    Other(usize),
    End,
}

impl Reader {
    /// Opens the input a second time, or takes what is known of it where it can be read only once.
    pub(super) fn open(origin: &Origin) -> Result<Reader, Unopened> {
        let name = origin.path.display();
        let not_copied = |why: &str| {
            let lost = |what: &str| format!("{name} {why}, so its {what} are not copied");
            let mut reader = outlined(origin)
                .ok_or_else(|| Unopened::Lost(lost("sound, subtitles, other streams, chapters and texts")))?;
            reader.unread = Some(lost("sound, subtitles and other streams"));
            Ok(reader)
        };
        const ONCE: &str = "can be read only once";
        // A pipe under a name would wait for another writer.
        if origin.path.exists() && !origin.path.is_file() {
            return not_copied(ONCE);
        }
        match opened(&origin.path, origin.access, origin.stretch) {
            Ok(demuxer) if !origin.path.is_file() && !demuxer.can_seek() => not_copied(ONCE),
            Ok(demuxer) => {
                let mut reader = Reader::of(demuxer, origin);
                reader.matroska = OfMatroska::read(&mut reader.demuxer, &origin.path);
                Ok(reader)
            }
            Err(OpenFailure::Open(e) | OpenFailure::Streams(e)) if e.is_of_the_system() => {
                Err(Unopened::Failed(name.to_string(), e))
            }
            Err(failure) => not_copied(&format!("cannot be opened a second time ({failure})")),
        }
    }

    fn of(demuxer: Demuxer, origin: &Origin) -> Reader {
        Reader {
            demuxer,
            path: origin.path.clone(),
            filtered: origin.stream,
            access: origin.access,
            stretch: origin.stretch,
            wanted: Vec::new(),
            pending: VecDeque::new(),
            ended: false,
            unread: None,
            matroska: None,
            limit: None,
            joins: BTreeMap::new(),
            unforeseen: Unforeseen::none(),
        }
    }

    /// True if it has no packets: what the input says was taken from where it was read.
    pub(super) fn is_outline(&self) -> bool {
        self.unread.is_some()
    }

    /// Word of streams that are wanted by `options` and not copied, since there are no packets.
    pub(super) fn unread(&self, options: &StreamOptions) -> Option<&str> {
        let is_lost = |index: usize| {
            let facts = self.demuxer.stream(index)?;
            let is_of_chapters = self.demuxer.is_of_chapters(&facts);
            Some(index != self.filtered && !is_of_chapters && options.wants(index, facts.medium))
        };
        let mut indices = 0..self.demuxer.stream_count();
        let is_any = indices.any(|index| is_lost(index).unwrap_or(false))
            || !self.demuxer.unread_subtitles().is_empty() && options.wants_unread(Medium::Subtitle);
        self.unread.as_deref().filter(|_| is_any)
    }

    /// Reads until each of the `wanted` streams has shown a packet, or as many as a trial of its times takes,
    /// or enough of the file is read.
    pub(super) fn read_ahead(&mut self, wanted: Vec<usize>, container: &Container) -> Result<(), AvError> {
        self.wanted = wanted;
        self.approach()?;
        let is_audio =
            |index: usize| self.demuxer.stream(index).map(|facts| facts.medium) == Some(Medium::Audio);
        let mut missing = self.wanted.clone();
        if container.counts_packets() {
            let sound = self.wanted.iter().filter(|&&index| is_audio(index));
            missing.extend(sound.flat_map(|&index| [index; PACKETS_TRIED - 1]));
        }
        let mut read = 0;
        while !missing.is_empty() && read < READ_AHEAD {
            match self.step(None)? {
                Read::Wanted(packet, time) => {
                    if let Some(place) = missing.iter().position(|&index| index == packet.stream()) {
                        missing.swap_remove(place);
                    }
                    read += packet.size();
                    self.pending.push_back((packet, time));
                }
                Read::Other(bytes) => read += bytes,
                Read::End => break,
            }
        }
        Ok(())
    }

    /// Goes to a place somewhat before the wanted part of the input, if all that is wanted comes behind it.
    fn approach(&mut self) -> Result<(), AvError> {
        let is_far = self.stretch.start as f64 / 1e9 > INTERLEAVED;
        if self.is_outline() || !is_far || !self.demuxer.has_exact_index() {
            return Ok(());
        }
        // Where streams are not sought one by one, a subtitle that is still shown may have begun anywhere.
        let is_subtitle = |&index: &usize| {
            let facts = self.demuxer.stream(index);
            facts.is_some_and(|facts| facts.medium == Medium::Subtitle)
        };
        if !self.demuxer.seeks_each_stream() && self.wanted.iter().any(is_subtitle) {
            return Ok(());
        }
        // A demuxer that failed to seek has dropped the packets that streams were known from.
        if let Ok(mut scout) = opened(&self.path, self.access, self.stretch)
            && go_near(&mut scout, self.filtered).is_ok()
            && self.shows_all(&mut scout)?
        {
            go_near(&mut self.demuxer, self.filtered)?;
        }
        Ok(())
    }

    /// True if `scout` reads, of all sound and video that is wanted, something that comes before the wanted
    /// part, or if the stream begins in that. A picture that is found may lie behind the place that was
    /// sought, where there is none before.
    fn shows_all(&self, scout: &mut Demuxer) -> Result<bool, AvError> {
        let begins_before = |&index: &usize| {
            let facts = scout.stream(index).filter(|facts| facts.leads);
            facts.is_some_and(|facts| facts.begins() + scout.shift() < 0.0)
        };
        let mut missing: Vec<usize> = self.wanted.iter().copied().filter(begins_before).collect();
        let mut packet = Packet::new()?;
        while !missing.is_empty() && scout.read(&mut packet).is_ok() {
            let (index, at) = (packet.stream(), packet.dts().or_else(|| packet.pts()));
            let Some((at, base)) = at.zip(scout.time_base(index)) else {
                continue;
            };
            let time = at as f64 * base.to_f64();
            let is_behind = match missing.iter().position(|&other| other == index) {
                Some(place) => {
                    missing.swap_remove(place);
                    time > 0.0
                }
                None => index == self.filtered && time > INTERLEAVED,
            };
            if is_behind {
                return Ok(false);
            }
        }
        Ok(missing.is_empty())
    }

    /// Reads only the `wanted` streams from now on. `options` say which streams that come later would have
    /// been wanted.
    pub(super) fn settle(&mut self, wanted: Vec<usize>, options: &StreamOptions) {
        self.unforeseen = Unforeseen::after(self.demuxer.stream_count(), options.clone());
        self.wanted = wanted;
        self.pending
            .retain(|(packet, _)| self.wanted.contains(&packet.stream()));
    }

    /// The packets of a stream that were read but not given out.
    pub(super) fn waiting(&self, index: usize) -> impl Iterator<Item = &Packet> {
        let packets = self.pending.iter().map(|(packet, _)| packet);
        packets.filter(move |packet| packet.stream() == index)
    }

    /// When the first of them begins, in seconds.
    fn first_waiting(&self, index: usize) -> Option<f64> {
        let mut packets = self.pending.iter();
        let first = packets.find(|(packet, _)| packet.stream() == index);
        first.map(|&(_, time)| time)
    }

    /// When a stream begins, in seconds: as its container says, or where the clock begins later than the
    /// input, with the first packet that is kept.
    pub(super) fn beginning(&self, index: usize) -> Option<f64> {
        if self.demuxer.begins_later() {
            return Some(self.first_waiting(index).unwrap_or(0.0));
        }
        let facts = self.demuxer.stream(index)?;
        Some(facts.begins() + self.demuxer.shift())
    }

    /// Has sound whose discarded head is left out begin that much less early than its container says.
    pub(super) fn shorten_priming(&mut self, index: usize, facts: &mut StreamFacts) {
        if let Some(time) = self.first_waiting(index)
            && time <= 0.0
            && time + TOO_SHORT_TO_HEAR > -facts.priming
            && facts.priming > PREROLL
        {
            self.demuxer.set_priming(index, -time);
            facts.priming = -time;
        }
    }

    /// Where a copied video stream begins, if that is not the beginning of the file.
    pub(super) fn join(&self, index: usize) -> Option<&Join> {
        self.joins.get(&index)
    }

    /// The same of a stream of which enough was read to say whether it begins in the part that is read.
    pub(super) fn known_join(&mut self, index: usize) -> Option<&mut Join> {
        let ended = self.ended;
        let join = self.joins.get_mut(&index);
        join.filter(|join| join.has_begun() || ended)
    }

    /// Word of each stream that begins when those of the output are fixed already.
    pub(super) fn unforeseen(&self) -> impl Iterator<Item = String> {
        self.unforeseen.sentences()
    }

    /// Where the filtered video ended, once the file shows that the input's goes on.
    pub(super) fn limit(&self) -> Option<f64> {
        self.limit
    }

    /// The next packet of a wanted stream with its time in seconds. With `end`, the end of the filtered
    /// video, a later packet of that video sets the limit, and reading stops well past it.
    pub(super) fn next(&mut self, end: Option<f64>) -> Result<Option<(Packet, f64)>, AvError> {
        if let Some(read) = self.pending.pop_front() {
            return Ok(Some(read));
        }
        loop {
            match self.step(end)? {
                Read::Wanted(packet, time) => return Ok(Some((packet, time))),
                Read::Other(_) => {}
                Read::End => return Ok(None),
            }
        }
    }

    /// Takes back a packet whose time has not come.
    pub(super) fn put_back(&mut self, packet: Packet, time: f64) {
        self.pending.push_front((packet, time));
    }

    /// Reads one packet.
    fn step(&mut self, end: Option<f64>) -> Result<Read, AvError> {
        if self.ended {
            return Ok(Read::End);
        }
        let mut packet = Packet::new()?;
        let mut errors = 0;
        while let Err(e) = self.demuxer.read(&mut packet) {
            errors += 1;
            if !e.is_invalid_data() || errors >= 10_000 {
                // The source has read the same bytes and warned of what was wrong with them.
                self.ended = true;
                return Ok(Read::End);
            }
        }
        let index = packet.stream();
        let Some(base) = self.demuxer.time_base(index) else {
            return Ok(Read::Other(packet.size()));
        };
        let seconds = |ticks: i64| ticks as f64 * base.to_f64();
        let shown = packet.pts().or_else(|| packet.dts()).map(seconds);
        let is_before = self.demuxer.begins_later() && shown.is_some_and(|shown| shown < 0.0);
        let bytes = if is_before { 0 } else { packet.size() };
        if index == self.filtered {
            if let (Some(end), Some(shown)) = (end, shown) {
                let is_cut = self.stretch.is_limited && shown >= end;
                if is_cut || shown > end + INTERRUPTED_AFTER {
                    self.limit = Some(end);
                }
                if shown > end + SETTLED_AFTER {
                    self.ended = true;
                    return Ok(Read::End);
                }
            }
        } else if self.unforeseen.concerns(index)
            && let Some(facts) = self.demuxer.stream(index)
        {
            self.unforeseen.note(index, &facts, shown.unwrap_or(0.0));
        } else if self.wanted.contains(&index) && packet.size() > 0 {
            if self.demuxer.begins_later() && !self.is_after_start(&mut packet, base) {
                return Ok(Read::Other(bytes));
            }
            let time = packet.dts().or_else(|| packet.pts()).map(seconds);
            if let Some((time, length)) = time.zip(self.length()) {
                if time >= length && !self.stretch.is_counted {
                    return Ok(Read::Other(bytes));
                }
                let left = ((length - time) / base.to_f64()).round() as i64;
                if (1..packet.duration()).contains(&left)
                    && let Some(facts) = self.demuxer.stream(index)
                    && facts.medium == Medium::Subtitle
                {
                    packet.set_duration(left);
                }
            }
            // An edit list leaves it out, and other containers would play it.
            let end = time.map_or(0.0, |time| time + seconds(packet.duration()));
            if packet.is_discarded() && end < -PREROLL {
                return Ok(Read::Other(bytes));
            }
            return Ok(Read::Wanted(packet, time.unwrap_or(f64::NEG_INFINITY)));
        }
        Ok(Read::Other(bytes))
    }

    /// Seconds that what is read lasts, if that is known.
    fn length(&self) -> Option<f64> {
        let end = self.stretch.end?;
        Some((end - self.stretch.start) as f64 / 1e9)
    }

    /// The same, where it is no estimate.
    pub(super) fn exact_length(&self) -> Option<f64> {
        self.length().filter(|_| !self.stretch.is_counted)
    }

    /// True for a packet of the wanted part of an input whose clock begins later than the input does: sound
    /// from its start on (in long packets, from the one that holds the start), subtitles that are still shown
    /// then, which begin there, and video from its next key frame on.
    fn is_after_start(&mut self, packet: &mut Packet, base: Rational) -> bool {
        let index = packet.stream();
        let Some(facts) = self.demuxer.stream(index) else {
            return false;
        };
        let Some(at) = packet.pts().or_else(|| packet.dts()) else {
            return true;
        };
        let time = at as f64 * base.to_f64();
        let is_after = time > -SOON_ENOUGH;
        match facts.medium {
            _ if facts.is_cover => {
                packet.shift(-at);
                true
            }
            Medium::Subtitle if !is_after => {
                let left = at + packet.duration();
                packet.shift(-at);
                packet.set_duration(left);
                left > 0
            }
            Medium::Video if !self.joins.get(&index).is_some_and(Join::has_begun) => {
                is_after
                    && self.length().is_none_or(|length| time < length)
                    && self
                        .joins
                        .entry(index)
                        .or_default()
                        .begins_with(time, packet.is_key())
            }
            Medium::Audio if has_long_packets(&facts) => {
                is_after || time + packet.duration() as f64 * base.to_f64() > 0.0
            }
            _ => is_after,
        }
    }
}

/// True for sound of which a packet may last for a second, so that it must be cut to begin and end where the
/// part does that is read.
pub(super) fn has_long_packets(facts: &StreamFacts) -> bool {
    facts.codec == "tta"
}

/// What is known of an input that can be read only once.
fn outlined(origin: &Origin) -> Option<Reader> {
    let mut demuxer = origin.outline.as_ref()?.demuxer().ok()?;
    demuxer.cut(origin.stretch.start, origin.stretch.end);
    Some(Reader {
        ended: true,
        ..Reader::of(demuxer, origin)
    })
}

/// Opens an input whose clock begins where the stretch of it does that is wanted.
fn opened(path: &Path, access: Access, stretch: ReadRange) -> Result<Demuxer, OpenFailure> {
    let mut demuxer = Demuxer::open(path, access, None, None)?;
    demuxer.cut(stretch.start, stretch.end);
    Ok(demuxer)
}

/// Has the demuxer of an input go to where sound may lie that belongs beside the first wanted picture of
/// stream `filtered`.
fn go_near(demuxer: &mut Demuxer, filtered: usize) -> Result<(), AvError> {
    let base = demuxer.time_base(filtered).map_or(1.0, Rational::to_f64);
    demuxer.seek(filtered, -(INTERLEAVED / base) as i64)
}
