//! Where a video can be cut into parts of about the same length, each of which begins with a picture that
//! needs none before it. Read from the container's index: a seek and some packets for each cut.

use super::key_frame;
use super::key_search::{KeyFrames, KeyKind};
use crate::media::ffmpeg::{Demuxer, Packet};
use crate::source::video::VideoSource;
use crate::source::{CutRequest, Cuts, SourceError};

impl VideoSource {
    /// See [`crate::source::Source::cuts`].
    pub(in crate::source::video) fn find_cuts(&self, request: CutRequest) -> Result<Cuts, SourceError> {
        let mut keys = KeyFrames::new(self, KeyKind::Clean)?;
        let Some(facts) = keys.demuxer.stream(self.input.stream) else {
            return Ok(Cuts::None("has no such stream any more".to_owned()));
        };
        let base = facts.time_base;
        let stated = facts.duration.map(|ticks| ticks as f64 * base.to_f64());
        let Some(seconds) = stated.or(keys.demuxer.duration()).filter(|&s| s > 0.0) else {
            return Ok(Cuts::None("does not say how long it is".to_owned()));
        };
        let length = (seconds / base.to_f64()) as i64;
        // The first part holds the first picture, wherever the container's clock stands then.
        let first = self.picture.timestamp().filter(|_| self.held).unwrap_or(0);
        let start = request.start.map_or(first, |start| start.max(first));
        // Of the stream its length is stated, of the file when it ends.
        let last = if stated.is_some() {
            first.saturating_add(length)
        } else {
            length
        };
        let end = request.end.map_or(last, |end| end.min(last));
        // A range may begin between two pictures, and its first part has one at least.
        let frame = self
            .info
            .frame_rate
            .map_or(0.0, |rate| 1.0 / rate.to_f64() / base.to_f64());
        let least = start.saturating_add(frame.ceil() as i64);
        let parts = request.parts.max(1);
        let place = |k: u32| {
            let through = i128::from(end - start) * i128::from(k) / i128::from(parts);
            start + through as i64
        };
        let mut wanted: Vec<i64> = (1..parts)
            .map(place)
            .filter(|&tick| tick > start && tick < end)
            .collect();
        wanted.dedup();
        if request.anywhere {
            return self.without_gaps(&wanted, request);
        }
        if let Some(reason) = self.obstacle(&keys.demuxer) {
            return Ok(Cuts::None(reason));
        }
        let mut ticks: Vec<i64> = Vec::new();
        for (index, &tick) in wanted.iter().enumerate() {
            let after = ticks.last().map_or(least, |&cut| cut + 1);
            let next = wanted.get(index + 1).copied().unwrap_or(end);
            let found = keys.first_from(tick, (after, next));
            ticks.extend(found.filter(|&found| found < end));
        }
        match ticks.is_empty() && parts > 1 {
            true => Ok(Cuts::None(
                "has no second picture that can be decoded by itself where a part could begin".to_owned(),
            )),
            false => self.counted(ticks, request),
        }
    }

    /// The cuts without those that would make a part of which it is not known that a picture is shown in it.
    fn without_gaps(&self, ticks: &[i64], request: CutRequest) -> Result<Cuts, SourceError> {
        let (counts, is_exact) = self.frames_between(ticks, request)?;
        let mut cuts = Vec::new();
        let mut kept = counts[..1].to_vec();
        for (&tick, &count) in ticks.iter().zip(&counts[1..]) {
            match kept.last_mut() {
                Some(last) if count == 0 || *last == 0 => *last += count,
                _ => {
                    cuts.push(tick);
                    kept.push(count);
                }
            }
        }
        Ok(Cuts::At {
            ticks: cuts,
            counts: (request.counts && is_exact).then_some(kept),
        })
    }

    /// The cuts, with the frames of each part if they are to be counted.
    fn counted(&self, ticks: Vec<i64>, request: CutRequest) -> Result<Cuts, SourceError> {
        if !request.counts {
            return Ok(Cuts::At { ticks, counts: None });
        }
        let (counts, is_exact) = self.frames_between(&ticks, request)?;
        Ok(Cuts::At {
            ticks,
            counts: is_exact.then_some(counts),
        })
    }

    /// The frames of each part, those of packets that are shown; false if packets without a time are left out
    /// of them, as of program streams.
    fn frames_between(&self, ticks: &[i64], request: CutRequest) -> Result<(Vec<u64>, bool), SourceError> {
        let (mut counts, mut is_exact) = (vec![0_u64; ticks.len() + 1], true);
        let mut demuxer = self.file.open()?;
        let mut packet = Packet::new().map_err(|e| self.file.lacking(e))?;
        while demuxer.read(&mut packet).is_ok() {
            if packet.stream() != self.input.stream || packet.size() == 0 || packet.is_discarded() {
                continue;
            }
            let Some(shown) = packet.pts() else {
                is_exact = false;
                continue;
            };
            let is_before = request.start.is_some_and(|start| shown < start);
            let is_behind = request.end.is_some_and(|end| shown >= end);
            if !is_before && !is_behind {
                counts[ticks.partition_point(|&cut| cut <= shown)] += 1;
            }
        }
        Ok((counts, is_exact))
    }

    /// Why a part could not begin with exactly the right picture without reading all that comes before.
    pub(in crate::source::video) fn obstacle(&self, demuxer: &Demuxer) -> Option<String> {
        let codec = self.decoder.codec_name();
        if !self.can_be_read_again() {
            Some("can be read only once".to_owned())
        } else if self.input.packet.pts().is_none() || !demuxer.has_exact_index() {
            Some(format!(
                "is of a container ({}) in which seeking is not exact",
                demuxer.format_name()
            ))
        } else if !key_frame::has_clean_keys(&codec, self.decoder.is_intra_only()) {
            Some(format!(
                "holds {codec}, of which it is not known which pictures can be decoded by themselves"
            ))
        } else {
            None
        }
    }
}
