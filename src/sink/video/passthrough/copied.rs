//! One stream that is carried over: its packets in the output's time base, in an order that containers take.

use super::sound::{Changes, Gaps};
use crate::frame::Rational;
use crate::media::ffmpeg::{AvError, Demuxer, Medium, Muxer, Packet, StreamFacts};
use crate::sink::video::container::{Container, StreamHandling};
use crate::wording::counted;

/// A packet that goes back by more seconds than this is left out.
const TOO_LATE: f64 = 1.0;

/// Seconds of silence in a packet of it.
const SILENCE: f64 = 1.0;

/// Pictures without a decoding time that wait for one that has it: more than any reordering.
const MOST_UNDATED: usize = 32;

/// One stream that is carried over.
pub(super) struct Copied {
    pub(super) from: usize,
    pub(super) to: usize,
    base: Rational,
    /// Seconds that are added to its times (see [`Container::early_sound`]).
    pub(super) delay: f64,
    /// Decoding time of the last packet, in the output's time base.
    last: Option<i64>,
    /// When it begins and ends, in the output's time base.
    pub(super) begins: Option<i64>,
    pub(super) last_end: Option<i64>,
    /// How much silence follows on that, in the same ticks.
    pub(super) silence: i64,
    medium: Medium,
    /// The gaps of its sound, where the container has what follows a gap come at once.
    pub(super) gaps: Option<Gaps>,
    /// What changes of its sound in mid-stream.
    pub(super) changes: Option<Changes>,
    /// Pictures whose decoding times the input does not say, until a packet says one, in the output's time
    /// base.
    undated: Vec<Packet>,
    /// Packets that came too late to be written.
    late: u64,
    /// Its medium and codec, for messages.
    pub(super) label: String,
    pub(super) handling: StreamHandling,
    pub(super) refusal: Option<Refusal>,
    /// Word of sound that the container leaves out at its end.
    pub(super) cut_tail: Option<String>,
}

/// Packets of a stream that are left out in mid-stream.
pub(super) struct Refusal {
    /// Where the first and the last of them are, in seconds, and why.
    pub(super) from: f64,
    pub(super) to: f64,
    pub(super) reason: String,
    /// How many they are.
    pub(super) packets: u64,
    /// They are all that follows on the first.
    pub(super) is_end: bool,
}

impl Refusal {
    /// Counts packets that are left out `at` so many seconds.
    pub(super) fn add(&mut self, packets: u64, at: f64) {
        self.packets += packets;
        self.to = at;
    }

    /// What to say of the stream that is called `label`.
    pub(super) fn sentence(&self, label: &str) -> String {
        let (from, to, reason) = (self.from, self.to, &self.reason);
        let packets = counted(self.packets, "packet");
        let are = if self.packets == 1 { "is" } else { "are" };
        match self.packets {
            _ if self.is_end => {
                format!("{label} is cut off at {from:.3} s, {packets} {are} left out: {reason}")
            }
            1 => format!("{packets} of {label} at {from:.3} s is left out: {reason}"),
            _ => format!("{packets} of {label} between {from:.3} s and {to:.3} s are left out: {reason}"),
        }
    }
}

impl Copied {
    /// Stream `index` of the input, which is stream `to` of the output.
    pub(super) fn new(
        (index, facts): (usize, &StreamFacts),
        to: usize,
        handling: StreamHandling,
        gaps: Option<Gaps>,
        changes: Option<Changes>,
    ) -> Copied {
        Copied {
            from: index,
            to,
            base: facts.time_base,
            delay: 0.0,
            last: None,
            begins: None,
            last_end: None,
            silence: 0,
            medium: facts.medium,
            gaps,
            changes,
            undated: Vec::new(),
            late: 0,
            label: facts.label(index),
            handling,
            refusal: None,
            cut_tail: None,
        }
    }

    /// True if nothing more of it goes into the output.
    pub(super) fn is_given_up(&self) -> bool {
        self.refusal.as_ref().is_some_and(|refusal| refusal.is_end)
    }

    /// Word of sound that the container has begin with the picture, though it begins `off` seconds after it,
    /// or before.
    pub(super) fn moved(&self, off: f64, container: &Container) -> String {
        format!(
            "{} begins {:.3} s {} the picture, which {} cannot say, so that it is off by that",
            self.label,
            off.abs(),
            if off > 0.0 { "after" } else { "before" },
            container.word()
        )
    }

    /// Word of sound of which the container leaves out `cut` seconds before the picture.
    pub(super) fn cut_head(&self, cut: f64, container: &Container) -> String {
        format!(
            "{} begins {cut:.3} s before the picture, and {} leaves out what comes before it",
            self.label,
            container.name()
        )
    }

    /// Word of packets that came too late to be written, if some did.
    pub(super) fn late_sentence(&self) -> Option<String> {
        (self.late > 0).then(|| {
            let (go, are) = if self.late == 1 {
                ("goes", "is")
            } else {
                ("go", "are")
            };
            format!(
                "{} of {} that {go} back in time by more than {TOO_LATE} s {are} left out",
                counted(self.late, "packet"),
                self.label
            )
        })
    }

    /// Word of sound that is re-encoded and changes its form to one that the output does not hold.
    pub(super) fn change_of_form(&self) -> Option<String> {
        let StreamHandling::Encode(transcoder) = &self.handling else {
            return None;
        };
        let (at, change) = transcoder.change_of_form()?;
        Some(format!(
            "{} has another form from {at:.3} s on than before, and the output keeps the first: {change}",
            self.label
        ))
    }

    /// Leaves out what is of another codec than the stream in a packet of the input, and what the container
    /// does not take beside it; false if nothing is left.
    pub(super) fn admit(&mut self, packet: &mut Packet) -> Result<bool, AvError> {
        let (Some(changes), Some(at)) = (&mut self.changes, packet.pts().or_else(|| packet.dts())) else {
            return Ok(true);
        };
        let seconds = |ticks: i64| ticks as f64 * self.base.to_f64();
        let begins = seconds(at);
        if let Some(header) = packet.new_header() {
            changes.see_header(header, begins);
            if changes.keeps_first_header() {
                packet.forget_new_header();
            }
        }
        let kept = changes.see(packet.data(), (begins, seconds(at + packet.duration())));
        if (1..packet.size()).contains(&kept) {
            *packet = packet.with_data(&packet.data()[..kept])?;
        }
        Ok(kept > 0 || packet.size() == 0)
    }

    /// Brings a packet of the input, which `demuxer` reads, into the output.
    pub(super) fn pass(
        &mut self,
        muxer: &mut Muxer,
        demuxer: &Demuxer,
        packet: &mut Packet,
    ) -> Result<(), AvError> {
        packet.shift((self.delay / self.base.to_f64()).round() as i64);
        packet.rescale(self.base, muxer.time_base(self.to));
        // Matroska says only when pictures are shown, and FFmpeg finds the decoding times a few pictures on.
        let is_undated = self.medium == Medium::Video && packet.dts().is_none() && packet.pts().is_some();
        if is_undated && self.undated.len() < MOST_UNDATED {
            self.undated.push(std::mem::replace(packet, Packet::new()?));
            return Ok(());
        }
        self.write_undated(muxer, packet)?;
        self.fill_gap(muxer, demuxer, packet)?;
        self.write(muxer, packet)
    }

    /// Writes the pictures that wait for a decoding time, now that `next` follows on them, or, without times,
    /// nothing.
    pub(super) fn write_undated(&mut self, muxer: &mut Muxer, next: &Packet) -> Result<(), AvError> {
        let mut waiting = std::mem::take(&mut self.undated);
        date(&mut waiting, next);
        waiting
            .iter_mut()
            .try_for_each(|packet| self.write(muxer, packet))
    }

    /// Writes silence into a gap before sound where the container would close it, or notes the gap.
    fn fill_gap(&mut self, muxer: &mut Muxer, demuxer: &Demuxer, packet: &Packet) -> Result<(), AvError> {
        let tick = muxer.time_base(self.to).to_f64();
        let (Some(gaps), Some(at)) = (&mut self.gaps, packet.pts().or_else(|| packet.dts())) else {
            return Ok(());
        };
        let exact = demuxer.pcm_seconds(self.from, packet.size());
        let length = exact.unwrap_or(packet.duration() as f64 * tick);
        if length <= 0.0 {
            return Ok(());
        }
        let begins = at as f64 * tick;
        let Some(gap) = gaps.before(begins, length, exact.is_some()) else {
            return Ok(());
        };
        let mut left = gap;
        while let Some(mut silence) = demuxer.silence(self.from, left.min(SILENCE)) {
            let lasts = (left.min(SILENCE) / tick).round() as i64;
            let from = at - (left / tick).round() as i64;
            silence.set_times(from, from, lasts);
            muxer.write(&mut silence, self.to, muxer.time_base(self.to))?;
            left -= SILENCE;
        }
        gaps.close(begins, left < gap);
        Ok(())
    }

    /// Writes a packet that is timed in the output's time base.
    fn write(&mut self, muxer: &mut Muxer, packet: &mut Packet) -> Result<(), AvError> {
        let base = muxer.time_base(self.to);
        // Broken inputs repeat packets or go back, which containers refuse: such a packet follows the last
        // one at the distance of one tick.
        if let (Some(last), Some(at)) = (self.last, packet.dts().or_else(|| packet.pts()))
            && (at < last || at == last && muxer.needs_rising_times(self.to))
        {
            if (last - at) as f64 * base.to_f64() > TOO_LATE {
                self.late += 1;
                return Ok(());
            }
            packet.delay(last + 1);
        }
        // The last packet of a stream must have a length for MP4 not to leave it out.
        if let (Medium::Audio, 0, Some(last), Some(at)) = (
            self.medium,
            packet.duration(),
            self.last,
            packet.dts().or_else(|| packet.pts()),
        ) {
            packet.set_duration(at - last);
        }
        self.last = packet.dts().or_else(|| packet.pts()).or(self.last);
        self.begins = self.begins.or(self.last);
        let ends = self.last.map(|last| last + packet.duration());
        muxer.write(packet, self.to, base)?;
        self.last_end = ends;
        Ok(())
    }
}

/// Gives pictures that have no decoding time one each: a frame apart, up to that of the packet behind them,
/// and none after the picture is shown.
fn date(undated: &mut [Packet], next: &Packet) {
    let mut shown: Vec<i64> = undated.iter().chain([next]).filter_map(Packet::pts).collect();
    shown.sort_unstable();
    let steps = shown.windows(2).map(|pair| pair[1] - pair[0]);
    let lengths = undated.iter().map(Packet::duration);
    let step = steps.chain(lengths).filter(|&step| step > 0).min().unwrap_or(1);
    let behind = shown.last().map_or(0, |last| last + step);
    let mut decoded = next.dts().unwrap_or(behind);
    for packet in undated.iter_mut().rev() {
        let pts = packet.pts().unwrap_or(decoded);
        decoded = pts.min(decoded - step);
        packet.set_times(pts, decoded, packet.duration());
    }
}
