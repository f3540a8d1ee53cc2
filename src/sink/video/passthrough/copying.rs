//! Packets of the other streams, written beside those of the picture.
//!
//! ```text
//!   picture            0.00 s        0.04 s     0.08 s       the last, until 9.96 s
//!   others    up to 0.00 s   up to 0.04 s   ...         ...  the rest
//! ```
//!
//! The rest is all that follows, or what comes before 9.96 s if the file shows that its video goes on: then
//! the run was interrupted.

use super::Passthrough;
use super::copied::Refusal;
use super::reading::SETTLED_AFTER;
use super::sound::writes_units;
use crate::media::ffmpeg::{AvError, Muxer, Packet, log, rescale};
use crate::sink::video::container::{StreamHandling, explained};
use std::collections::VecDeque;

impl Passthrough {
    /// Writes the packets whose time is up to `until` seconds.
    pub(in crate::sink::video) fn copy_until(
        &mut self,
        muxer: &mut Muxer,
        until: f64,
    ) -> Result<(), AvError> {
        while !self.copied.is_empty() || self.reader.demuxer.may_grow() {
            let Some((packet, time)) = self.reader.next(None)? else {
                // A picture must not come before its sound where both are written together.
                if writes_units(muxer) {
                    self.extend_all(muxer, until)?;
                }
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
    /// there. The container shows the video from the first of `shown` to the second.
    pub(in crate::sink::video) fn copy_rest(
        &mut self,
        muxer: &mut Muxer,
        end: f64,
        shown: (f64, f64),
    ) -> Result<(), AvError> {
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
            self.report_cut_tails(muxer, shown.1);
        }
        for position in 0..self.copied.len() {
            let copied = &mut self.copied[position];
            let to = copied.to;
            if let Err(e) = Packet::new().and_then(|none| copied.write_undated(muxer, &none)) {
                self.absorb(muxer, Some(to), e, end)?;
            }
            if writes_units(muxer) {
                self.extend_sound(muxer, position, shown)?;
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

    /// Brings a packet into the output, unless its stream was given up or the container refuses it.
    fn pass(&mut self, muxer: &mut Muxer, mut packet: Packet, time: f64) -> Result<(), AvError> {
        let Some(position) = self.copied.iter().position(|c| c.from == packet.stream()) else {
            return Ok(());
        };
        let copied = &mut self.copied[position];
        if let Some(refusal) = copied.refusal.as_mut().filter(|refusal| refusal.is_end) {
            refusal.add(1, time);
            return Ok(());
        }
        let to = copied.to;
        // A cover that the head holds.
        if muxer.is_attachment(to) {
            return Ok(());
        }
        if !copied.admit(&mut packet)? {
            return Ok(());
        }
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
                    to: time,
                    reason: format!("it cannot be re-encoded: {reason}"),
                    packets: 1,
                    is_end: true,
                });
            }
        }
        Ok(())
    }

    /// Leaves out a packet that could not be written, perhaps while one of stream `written` was, if it is of
    /// a passthrough stream, with all that follows on it where it is re-encoded or would not stay at its
    /// times. Else, and if the disk is at fault, the error is given back.
    pub(in crate::sink::video) fn absorb(
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
        let refused = muxer.refused(written).unwrap_or_default();
        if refused.is_empty() {
            return Err(e);
        }
        for (to, packets) in refused {
            let Some(copied) = self.copied.iter_mut().find(|c| c.to == to) else {
                return Err(e);
            };
            let is_end = copied.gaps.is_some() || matches!(copied.handling, StreamHandling::Encode(_));
            let what = match is_end {
                true => "the container refuses one",
                false => "refused by the container",
            };
            let refusal = copied.refusal.get_or_insert_with(|| Refusal {
                from: time,
                to: time,
                reason: format!("{what} ({reason})"),
                packets: 0,
                is_end,
            });
            refusal.add(packets, time);
        }
        Ok(())
    }
}
