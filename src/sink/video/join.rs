//! A video file of parts that were encoded by themselves: their packets one after another, each copied once,
//! with the input's other streams beside them.
//!
//! ```text
//!   parts     I b B b P | I b B b P       packets in the order of decoding
//!   shown     0 2 1 3 4 | 0 2 1 3 4       their places in presentation, from the order of their times
//!   times     frames' own, by the records: what a part's container made of them does not count
//!   decoded   the time of the frame `depth` places before, as encoders give it
//! ```
//!
//! `depth` is the most places by which a packet comes earlier in decoding than its frame is shown.

use super::VideoSink;
use super::container::kept::Finished;
use super::container::{AddVideo, PACKETS_TRIED, Sample, SampleSource, explained, video_of};
use super::encoding::pacing::Pacing;
use super::passthrough::{Passthrough, writes_units};
use super::settings::rehearsal::{trial_step, video_span};
use super::settings::selection;
use crate::frame::{Rational, Remarks, Stopped};
use crate::media::ffmpeg::{Access, AvError, Demuxer, Medium, Muxer, OpenFailure, Packet, rescale};
use crate::sink::constant_rate::{ConstantRate, assumed_rate, irregular};
use crate::sink::{SinkError, Written};
use crate::waiting::is_closed;
use crate::wording::counted;
use crossbeam_channel::Receiver;
use std::path::{Path, PathBuf};

/// A part, as a file and by its record.
#[derive(Debug, Clone)]
pub struct JoinedPart {
    /// The file, whose first video stream counts.
    pub path: PathBuf,
    /// When each frame is shown and how long, in ticks of the source's time base.
    pub frames: Vec<(Option<i64>, Option<i64>)>,
    /// The place in presentation of each packet, as [`packet_order`] gives it.
    pub order: Vec<u32>,
}

/// A file that is open for its packets.
struct PartReader {
    demuxer: Demuxer,
    stream: usize,
    packet: Packet,
}

impl PartReader {
    fn open(path: &Path) -> Result<PartReader, SinkError> {
        let unreadable = |problem: String| SinkError::Unsupported {
            path: path.display().to_string(),
            problem,
        };
        let mut demuxer =
            Demuxer::open(path, Access::default(), None, None).map_err(|failure| match failure {
                OpenFailure::Open(e) => SinkError::Io {
                    path: path.display().to_string(),
                    cause: e.to_io(),
                },
                _ => unreadable("is no video file that framepipe wrote".to_owned()),
            })?;
        let count = demuxer.stream_count();
        let is_video = |&index: &usize| demuxer.stream(index).is_some_and(|s| s.medium == Medium::Video);
        let stream = (0..count).find(is_video);
        let stream = stream.ok_or_else(|| unreadable("has no video stream".to_owned()))?;
        for other in (0..count).filter(|&other| other != stream) {
            demuxer.discard(other);
        }
        let packet = Packet::new().map_err(|e| SinkError::Io {
            path: path.display().to_string(),
            cause: e.to_io(),
        })?;
        Ok(PartReader {
            demuxer,
            stream,
            packet,
        })
    }

    /// True if there is another packet, which is then in `self.packet`.
    fn next(&mut self) -> bool {
        while self.demuxer.read(&mut self.packet).is_ok() {
            if self.packet.stream() == self.stream && self.packet.size() > 0 {
                return true;
            }
        }
        false
    }

    /// The first packets, `count` at most, for trials.
    fn into_sample(mut self, count: usize) -> Option<Sample> {
        let mut packets = Vec::new();
        while packets.len() < count && self.next() {
            packets.push(self.packet.duplicate().ok()?);
        }
        let base = self.demuxer.time_base(self.stream)?;
        let from = SampleSource::Copied(Box::new(self.demuxer), self.stream);
        Some(Sample { from, packets, base })
    }
}

/// The place in presentation of each packet of a video file, in the file's order; a file whose first picture
/// cannot be decoded by itself is refused.
pub fn packet_order(path: &Path) -> Result<Vec<u32>, SinkError> {
    let mut reader = PartReader::open(path)?;
    let mut times = Vec::new();
    while reader.next() {
        if times.is_empty() && !reader.packet.is_key() {
            return Err(SinkError::Unsupported {
                path: path.display().to_string(),
                problem: "does not begin with a key frame, so that it cannot be a part".to_owned(),
            });
        }
        times.push(reader.packet.pts());
    }
    let mut sorted: Vec<usize> = (0..times.len()).collect();
    // Packets without times come in the order in which they are shown.
    if times.iter().all(Option::is_some) {
        sorted.sort_by_key(|&index| times[index]);
    }
    let mut order = vec![0; times.len()];
    for (place, &index) in sorted.iter().enumerate() {
        order[index] = place as u32;
    }
    Ok(order)
}

/// When the frames of all parts are shown and how long, and how deep packets are reordered.
struct Times {
    frames: Vec<(i64, i64)>,
    depth: usize,
}

impl Times {
    /// `stated` is how deep packets are reordered as far as the stream's headers say.
    fn of(parts: &[JoinedPart], stated: usize, pacing: &mut Pacing) -> Times {
        let frames = parts.iter().flat_map(|part| &part.frames);
        let depth = |part: &JoinedPart| {
            let places = part.order.iter().enumerate();
            places
                .map(|(index, &place)| index.saturating_sub(place as usize))
                .max()
        };
        Times {
            frames: frames
                .map(|&(pts, duration)| pacing.place(pts, duration))
                .collect(),
            depth: parts.iter().filter_map(depth).max().unwrap_or(0).max(stated),
        }
    }

    /// When the packet is decoded that is the `index`th of all in decoding.
    fn decoded(&self, index: usize) -> i64 {
        match index.checked_sub(self.depth) {
            Some(earlier) => self.frames[earlier].0,
            None => {
                let lead = self.frames[self.depth.min(self.frames.len() - 1)].0 - self.frames[0].0;
                self.frames[index].0 - lead
            }
        }
    }
}

/// What the file is written by.
struct Joining {
    stream: usize,
    passthrough: Option<Passthrough>,
    pacing: Pacing,
}

impl Joining {
    /// Writes a packet, and before it those of other streams whose time has come.
    fn deliver(&mut self, muxer: &mut Muxer, packet: &mut Packet) -> Result<(), AvError> {
        let seconds = packet.dts().unwrap_or(0) as f64 * self.pacing.base().to_f64();
        if let Some(passthrough) = &mut self.passthrough {
            passthrough.copy_until(muxer, seconds)?;
        }
        let tick = muxer.time_base(self.stream);
        self.pacing.stamp(packet, tick);
        if let Err(e) = muxer.write(packet, self.stream, tick) {
            match &mut self.passthrough {
                Some(passthrough) => passthrough.absorb(muxer, Some(self.stream), e, seconds),
                None => Err(e),
            }?;
        }
        muxer.io_error().map_or(Ok(()), Err)
    }
}

impl VideoSink {
    /// Writes the file of `parts` instead of frames. `stop` is closed when the run is to be abandoned.
    pub fn join(mut self, parts: &[JoinedPart], stop: &Receiver<()>) -> Result<Written, SinkError> {
        let Some(first) = parts.first() else {
            return Err(self.unsupported("there are no parts, and a video needs one".to_owned()));
        };
        let encoder = self.kind.name();
        let mut settings = String::new();
        if !self.options.encoder_options.is_empty() && !self.kind.waits_for_a_picture() {
            let ((_, left), stated) = self.try_encoder()?;
            self.set_container_options(&encoder, left)?;
            settings = stated;
        } else {
            self.set_container_options(&encoder, Vec::new())?;
        }
        // Pictures that the few sounds of a trial do not last for are left out by containers of units.
        let tried = if writes_units(&self.output.muxer) {
            1
        } else {
            PACKETS_TRIED
        };
        self.container
            .set_sample(PartReader::open(&first.path)?.into_sample(tried));
        let reader = PartReader::open(&first.path)?;
        let headers = reader.demuxer.extradata(reader.stream).to_vec();
        let depth = reader
            .demuxer
            .stream(reader.stream)
            .map_or(0, |facts| facts.reordered);
        let tag = self.codec_tag();
        let container = self.output.muxer.name();
        let rate = self.info.frame_rate;
        let base = selection::encoder_time_base(&encoder, &container, self.info.time_base, rate);
        let add_video = |muxer: &mut Muxer| muxer.add_part(&reader.demuxer, reader.stream, tag, (base, rate));
        let begin = first.frames.first().and_then(|&(pts, _)| pts).unwrap_or(0);
        let picture = begin as f64 * self.info.time_base.to_f64();
        let mut regular = ConstantRate::of(&self.info);
        for (before, &(pts, _)) in parts.iter().flat_map(|part| &part.frames).enumerate() {
            regular.see(pts, before as u64);
        }
        let keeps_times = || {
            let known = self.output.muxer.keeps_times();
            known.unwrap_or_else(|| self.keeps_gap(&add_video, first, base).unwrap_or(false))
        };
        let times_are_lost = regular.is_irregular() && !keeps_times();
        let stated = self.trial(&add_video, first, base, 0);
        let stated = stated.and_then(|back| back.frame_rate(video_of(&back)?));
        let other_rate = self.other_rate(stated).filter(|_| !keeps_times());
        if let Some(problem) = other_rate.as_ref().filter(|_| self.options.strict) {
            return Err(self.unsupported(problem.clone()));
        }
        if times_are_lost && self.options.strict {
            return Err(self.unsupported(irregular(&container)));
        }
        let (stream, mut passthrough) = self.map_streams(&add_video, picture)?;
        drop(reader);
        self.warnings.extend(other_rate);
        let pause = passthrough.as_ref().map_or(0.0, Passthrough::pause);
        if let Err(reason) = explained(|| self.output.muxer.begin()) {
            return Err(self.refused_head(&reason));
        }
        if let Some(passthrough) = &mut passthrough {
            passthrough.begin_on_ticks(&self.output.muxer);
        }
        let mut pacing = Pacing::new(self.info.time_base, base, pause, self.ticks_of_a_frame());
        pacing.suit(&self.output.muxer, stream);
        let times = Times::of(parts, depth, &mut pacing);
        let mut joining = Joining {
            stream,
            passthrough,
            pacing,
        };
        let mut before = 0;
        for part in parts {
            self.copy_part(part, &headers, (&times, before), &mut joining, stop)?;
            before += part.frames.len();
        }
        self.warnings
            .extend(joining.pacing.sentences(&encoder, &container));
        let end = times.frames.iter().map(|(pts, step)| pts + step).max();
        let end = end.unwrap_or(0) as f64 * base.to_f64();
        let begin = times.frames.first().map_or(0, |&(pts, _)| pts) as f64 * base.to_f64();
        let mut shown_end = end;
        if times_are_lost {
            self.warnings.push(irregular(&container));
            shown_end = begin + before as f64 / assumed_rate(&self.info).to_f64();
        }
        let encoded = format!(
            "{encoder}{settings} in {container}, {}",
            counted(parts.len() as u64, "part")
        );
        self.end_join(joining, (end, (begin, shown_end)), &encoded)
    }

    /// True if pictures that come after a gap are shown after it; `None` if that cannot be tried.
    fn keeps_gap(&self, add_video: AddVideo<'_>, part: &JoinedPart, base: Rational) -> Option<bool> {
        let gap = 2 * PACKETS_TRIED as i64 * self.trial_ticks(base);
        let back = self.trial(add_video, part, base, gap)?;
        Some(video_span(back)? > gap as f64 * base.to_f64())
    }

    /// Ticks of `base` from picture to picture in a trial.
    fn trial_ticks(&self, base: Rational) -> i64 {
        let step = rescale(self.ticks_of_a_frame(), self.info.time_base, base);
        trial_step(step, base)
    }

    /// The output in memory with the first packet of `part` for some pictures, in the middle of which is a
    /// gap of so many ticks of `base`.
    fn trial(&self, add_video: AddVideo<'_>, part: &JoinedPart, base: Rational, gap: i64) -> Option<Demuxer> {
        let mut muxer = self.container.in_memory().ok()?;
        let stream = add_video(&mut muxer).ok()?;
        muxer.begin().ok()?;
        let mut reader = PartReader::open(&part.path).ok()?;
        reader.next();
        let count = PACKETS_TRIED as i64;
        let step = self.trial_ticks(base);
        for number in 0..count {
            let late = if 2 * number < count { 0 } else { gap };
            let at = number * step + late;
            let mut packet = reader.packet.duplicate().ok()?;
            packet.set_times(at, at, step);
            muxer.write(&mut packet, stream, base).ok()?;
        }
        let bytes = muxer.finish_in_memory().ok()?;
        Demuxer::from_bytes(bytes, self.container.name()).ok()
    }

    /// Copies the packets of one part, `before` whose frames so many others come.
    fn copy_part(
        &mut self,
        part: &JoinedPart,
        headers: &[u8],
        (times, before): (&Times, usize),
        joining: &mut Joining,
        stop: &Receiver<()>,
    ) -> Result<(), SinkError> {
        let name = part.path.display().to_string();
        let unlike = |problem: &str| SinkError::Unsupported {
            path: name.clone(),
            problem: problem.to_owned(),
        };
        if part.order.len() != part.frames.len() {
            return Err(unlike("has another number of packets than of frames"));
        }
        let mut reader = PartReader::open(&part.path)?;
        if reader.demuxer.extradata(reader.stream) != headers {
            return Err(unlike(
                "was encoded with other parameters than the first part, so that no file can hold both; its \
                 pictures may differ in what they say of colour or size",
            ));
        }
        let mut index = 0;
        while reader.next() {
            if is_closed(stop) {
                return Err(Stopped.into());
            }
            let Some(&place) = part.order.get(index) else {
                return Err(unlike("has more packets than its record says"));
            };
            let (pts, duration) = times.frames[before + place as usize];
            reader
                .packet
                .set_times(pts, times.decoded(before + index), duration);
            joining
                .deliver(&mut self.output.muxer, &mut reader.packet)
                .map_err(|e| self.failure("a packet cannot be written", e))?;
            index += 1;
        }
        match index == part.order.len() {
            true => Ok(()),
            false => Err(unlike("has fewer packets than its record says")),
        }
    }

    /// Writes what comes behind the last packet, which ends at `end` seconds; the container shows the
    /// video from the first of `shown` to the second. Then puts the file in its place.
    fn end_join(
        mut self,
        mut joining: Joining,
        (end, shown): (f64, (f64, f64)),
        encoded: &str,
    ) -> Result<Written, SinkError> {
        let muxer = &mut self.output.muxer;
        let rest = match &mut joining.passthrough {
            Some(passthrough) => passthrough.copy_rest(muxer, end, shown),
            None => Ok(()),
        };
        let ended = rest.and_then(|()| muxer.end());
        let bytes = ended.map_err(|e| self.failure("the file cannot be completed", e))?;
        let mut copied = String::new();
        if let Some(mut passthrough) = joining.passthrough {
            copied = self.account_of_streams(&mut passthrough);
        }
        let remarks = Remarks::warnings(std::mem::take(&mut self.warnings));
        if let Some(problem) = remarks.refusal().filter(|_| self.options.strict) {
            return Err(self.unsupported(problem));
        }
        let description = format!("{}, {encoded}{copied}", self.name);
        self.file.commit()?;
        Ok(Written {
            description,
            bytes,
            remarks,
            closed_early: false,
        })
    }

    /// What became of the streams beside the picture, for the summary; what was lost is a warning.
    pub(super) fn account_of_streams(&mut self, passthrough: &mut Passthrough) -> String {
        let container = self.container.name();
        self.warnings.append(&mut passthrough.lost(container));
        if self.file.path() != self.options.path {
            let open = || Finished::open(self.file.path());
            self.warnings.append(&mut passthrough.not_kept(open, container));
        }
        self.warnings.append(&mut passthrough.take_warnings());
        passthrough.summary(container)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_times_rise_and_come_before_presentation() {
        let base = Rational { num: 1, den: 25 };
        let part = |begin: i64, order: &[u32]| JoinedPart {
            path: PathBuf::new(),
            frames: (0..order.len())
                .map(|k| (Some(begin + k as i64), Some(1)))
                .collect(),
            order: order.to_vec(),
        };
        for parts in [
            vec![part(0, &[0, 2, 1, 3, 4]), part(5, &[0, 1])],
            vec![part(3, &[0, 1, 2])],
            vec![part(0, &[0]), part(1, &[0, 4, 2, 1, 3]), part(6, &[0, 2, 1])],
        ] {
            let times = Times::of(&parts, 0, &mut Pacing::new(base, base, 0.0, 1));
            let mut last = i64::MIN;
            let mut before = 0;
            for part in &parts {
                for (index, &place) in part.order.iter().enumerate() {
                    let decoded = times.decoded(before + index);
                    assert!(decoded > last && decoded <= times.frames[before + place as usize].0);
                    last = decoded;
                }
                before += part.frames.len();
            }
        }
    }
}
