//! Where a video can be cut into parts of about the same length, each of which begins with a picture that
//! needs none before it. Read from the container's index: a seek and some packets for each cut.

use super::{VideoSource, key_frame, open_demuxer};
use crate::ffmpeg::{Demuxer, Packet};
use crate::source::{CutRequest, Cuts, SourceError};

impl VideoSource {
    /// See [`crate::source::Source::cuts`].
    pub(super) fn find_cuts(&self, request: CutRequest) -> Result<Cuts, SourceError> {
        let mut keys = KeyFrames::new(self, KeyKind::Clean)?;
        let Some(facts) = keys.demuxer.stream(self.stream) else {
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
        let end = request.end.map_or(length, |end| end.min(length));
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
            return self.without_gaps(wanted, request);
        }
        if let Some(reason) = self.obstacle(&keys.demuxer) {
            return Ok(Cuts::None(reason));
        }
        let mut ticks: Vec<i64> = Vec::new();
        for (index, &tick) in wanted.iter().enumerate() {
            let after = *ticks.last().unwrap_or(&start);
            let next = wanted.get(index + 1).copied().unwrap_or(end);
            let found = keys.first_from(tick, (after + 1, next));
            ticks.extend(found.filter(|&found| found < end));
        }
        match ticks.is_empty() && parts > 1 {
            true => Ok(Cuts::None(
                "has no second picture that can be decoded by itself where a part could begin".to_owned(),
            )),
            false => self.counted(ticks, request),
        }
    }

    /// The cuts without those that would make a part in which no picture is shown.
    fn without_gaps(&self, ticks: Vec<i64>, request: CutRequest) -> Result<Cuts, SourceError> {
        let counting = CutRequest {
            counts: true,
            ..request
        };
        let (ticks, counts) = match self.counted(ticks, counting)? {
            Cuts::At {
                ticks,
                counts: Some(counts),
            } => (ticks, counts),
            uncounted => return Ok(uncounted),
        };
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
            counts: request.counts.then_some(kept),
        })
    }

    /// The cuts, with the frames of each part if they are to be counted: those of packets that are shown.
    fn counted(&self, ticks: Vec<i64>, request: CutRequest) -> Result<Cuts, SourceError> {
        let mut counts = vec![0_u64; ticks.len() + 1];
        if !request.counts {
            return Ok(Cuts::At { ticks, counts: None });
        }
        let mut demuxer = open_demuxer(&self.path, &self.name, self.access, self.timeout)?;
        let mut packet = Packet::new().map_err(|e| self.lacking(e))?;
        while demuxer.read(&mut packet).is_ok() {
            if packet.stream() != self.stream || packet.size() == 0 || packet.is_discarded() {
                continue;
            }
            let Some(shown) = packet.pts() else {
                return Ok(Cuts::At { ticks, counts: None });
            };
            let is_before = request.start.is_some_and(|start| shown < start);
            let is_behind = request.end.is_some_and(|end| shown >= end);
            if !is_before && !is_behind {
                counts[ticks.partition_point(|&cut| cut <= shown)] += 1;
            }
        }
        Ok(Cuts::At {
            ticks,
            counts: Some(counts),
        })
    }

    /// Why a part could not begin with exactly the right picture without reading all that comes before.
    pub(super) fn obstacle(&self, demuxer: &Demuxer) -> Option<String> {
        let codec = self.decoder.codec_name();
        if !self.can_be_read_again() {
            Some("can be read only once".to_owned())
        } else if self.packet.pts().is_none() || !demuxer.has_exact_index() {
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

/// Which pictures a part may begin with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyKind {
    /// All that need none before them.
    Clean,
    /// IDR pictures of H.264, beyond which no later picture refers either.
    Idr,
}

/// Finds key frames by the container's index, with a demuxer of its own.
pub(super) struct KeyFrames {
    demuxer: Demuxer,
    packet: Packet,
    stream: usize,
    codec: String,
    kind: KeyKind,
}

impl KeyFrames {
    /// Those of `kind` in the source's stream.
    pub(super) fn new(source: &VideoSource, kind: KeyKind) -> Result<KeyFrames, SourceError> {
        let mut demuxer = open_demuxer(&source.path, &source.name, source.access, source.timeout)?;
        for other in (0..demuxer.stream_count()).filter(|&other| other != source.stream) {
            demuxer.discard(other);
        }
        Ok(KeyFrames {
            demuxer,
            packet: Packet::new().map_err(|e| source.lacking(e))?,
            stream: source.stream,
            codec: source.decoder.codec_name(),
            kind,
        })
    }

    /// When the first key frame is shown that seeking to `tick` leads to and that is shown from `least` to
    /// `most`. A container that cannot seek there has none: parts get longer, and none gets wrong.
    pub(super) fn first_from(&mut self, tick: i64, (least, most): (i64, i64)) -> Option<i64> {
        self.demuxer.seek(self.stream, tick).ok()?;
        while let Some(shown) = self.read() {
            if shown >= least && self.is_key() {
                return (shown <= most).then_some(shown);
            }
            if shown > most {
                break;
            }
        }
        None
    }

    /// When the last key frame is shown that is shown at `tick` or before; `step` ticks further back are
    /// tried at first where seeking leads to another packet.
    pub(super) fn last_to(&mut self, tick: i64, step: i64) -> Option<i64> {
        let mut back = 0;
        loop {
            let aim = (tick - back).max(0);
            self.demuxer.seek(self.stream, aim).ok()?;
            match self.read() {
                Some(shown) if shown <= tick && self.is_key() => return Some(shown),
                _ if aim == 0 => return None,
                _ => back = (4 * back).max(step.max(1)),
            }
        }
    }

    /// Reads the next packet of the stream that says when it is shown.
    fn read(&mut self) -> Option<i64> {
        while self.demuxer.read(&mut self.packet).is_ok() {
            let is_ours = self.packet.stream() == self.stream && !self.packet.is_discarded();
            if let Some(shown) = self.packet.pts().filter(|_| is_ours) {
                return Some(shown);
            }
        }
        None
    }

    /// True if a part can begin with the packet.
    fn is_key(&self) -> bool {
        let (headers, data) = (self.demuxer.extradata(self.stream), self.packet.data());
        self.packet.is_key()
            && match self.kind {
                KeyKind::Clean => key_frame::is_clean(&self.codec, headers, data),
                KeyKind::Idr => key_frame::is_idr(headers, data),
            }
    }
}
