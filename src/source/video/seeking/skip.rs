//! Seeking: the way to a later picture without decoding all that comes before it.
//!
//! Packets are read but not decoded; those since the last key frame at or before the wanted time are kept.
//! When a packet comes that is shown later, decoding begins with the kept ones:
//!
//! ```text
//!   packets  K p p p K p p p K b b p p      K key frame, b leading picture
//!   wanted                           ^
//!   decoded                  K     p p ..   leading pictures are shown before K, and are left out
//! ```
//!
//! So the picture at the wanted time is exact in every container, through pipes, and where the clock jumps.
//! Seeking, where a container's index is to be trusted, only saves the reading: if it leads to a packet
//! behind the wanted time, it is repeated further back.

use super::{REORDERED, key_frame};
use crate::media::ffmpeg::Packet;
use crate::source::SourceError;
use crate::source::video::{ReadState, VideoSource};
use std::collections::VecDeque;

/// Bytes of packets that are kept; with more between two key frames, all of them are decoded.
const MOST_KEPT: usize = 64 << 20;

/// Seconds that must lie ahead for seeking to be tried, and that it goes back at first.
const WORTH_SEEKING: f64 = 2.0;

/// A picture that is wanted, and the packets on the way to it.
#[derive(Default)]
pub(in crate::source::video) struct Skip {
    /// Ticks of the stream's time base.
    target: Option<i64>,
    /// Packets that were read and are still to be decoded.
    kept: VecDeque<Packet>,
    has_sought: bool,
    /// True if decoding begins one key frame further back than it must.
    from_further_back: bool,
    /// True if seeking would have been worth it, and could not be trusted.
    reads_all: bool,
}

impl Skip {
    /// A way to the first picture that is shown at `tick` or later.
    pub(in crate::source::video) fn to(tick: i64) -> Skip {
        Skip {
            target: Some(tick),
            ..Skip::default()
        }
    }

    /// The same, decoded from one key frame further back: damaged pictures, key frames, too, are concealed by
    /// those before them.
    pub(in crate::source::video) fn from_further_back(tick: i64) -> Skip {
        Skip {
            from_further_back: true,
            ..Skip::to(tick)
        }
    }

    /// Of a reader that begins anywhere: packets were passed over.
    pub(in crate::source::video) fn of_stretch() -> Skip {
        Skip {
            has_sought: true,
            ..Skip::default()
        }
    }

    /// Where to go, once.
    pub(in crate::source::video) fn target(&mut self) -> Option<i64> {
        self.target.take()
    }

    /// The next packet that was read already.
    pub(in crate::source::video) fn next(&mut self) -> Option<Packet> {
        self.kept.pop_front()
    }

    /// True if packets were passed over without being read.
    pub(in crate::source::video) fn has_sought(&self) -> bool {
        self.has_sought
    }

    /// What there is to say of the way.
    pub(in crate::source::video) fn note(&self) -> Option<String> {
        self.reads_all.then(|| {
            "the range was reached by reading from the beginning, since this format is not one to seek in \
             exactly"
                .to_owned()
        })
    }
}

impl VideoSource {
    /// Goes to the last packet from which the picture at `tick` can be decoded.
    pub(in crate::source::video) fn skip_to(
        &mut self,
        tick: i64,
        stopped: &impl Fn() -> bool,
    ) -> Result<(), SourceError> {
        let first = self.picture.timestamp();
        let codec = self.decoder.codec_name();
        // Bare streams have no times, and all of them is decoded.
        if first.is_none() || !key_frame::has_clean_keys(&codec, self.decoder.is_intra_only()) {
            self.skip.reads_all = self.is_worth_seeking(first.unwrap_or(0), tick);
            return Ok(());
        }
        if first.is_some_and(|first| first >= tick) {
            return Ok(());
        }
        let mut came_back = self.seek_before(tick, stopped)?;
        let (mut aim, mut key) = (tick, None);
        loop {
            let before = key;
            let ended = self.gather(aim, came_back, &mut key, stopped)?;
            // Behind a recovery point FFmpeg's H.264 decoder loses the last pictures of a stream that ends
            // before it has given the first one, so that decoding begins further back.
            let short = ended && codec == "h264" && self.skip.has_sought && self.skip.kept.len() < REORDERED;
            let goes_back = short || std::mem::take(&mut self.skip.from_further_back);
            match key {
                Some(found) if goes_back && key != before && first.is_some_and(|first| first < found) => {
                    aim = found - 1;
                    came_back = self.seek_back(aim, stopped)?;
                }
                _ => break,
            }
        }
        if key.is_some() || self.skip.has_sought {
            self.decoder.flush();
            self.picture.clear();
            self.held = false;
            self.findings.begin_anew(self.decoder.patched());
        }
        Ok(())
    }

    /// Keeps the packets since the last key frame that is shown at `aim` or before, until one comes that is
    /// shown later; true if none comes. `key` is when that key frame is shown. A packet that the way back led
    /// to is there already if it `came_back`.
    fn gather(
        &mut self,
        aim: i64,
        mut came_back: bool,
        key: &mut Option<i64>,
        stopped: &impl Fn() -> bool,
    ) -> Result<bool, SourceError> {
        let mut bytes = 0;
        while self.input.state == ReadState::Reading && (came_back || self.read_packet(stopped)?) {
            came_back = false;
            let shown = self.input.packet.pts();
            if let Some(shown) = shown.filter(|&shown| shown <= aim && self.is_key()) {
                self.skip.kept.clear();
                (bytes, *key) = (0, Some(shown));
            } else if let (Some(key), Some(shown)) = (*key, shown)
                && shown < key
            {
                continue;
            }
            let is_past = shown
                .or_else(|| self.input.packet.dts())
                .is_some_and(|shown| shown > aim);
            bytes += self.input.packet.size();
            let fresh = Packet::new().map_err(|e| self.file.lacking(e))?;
            self.skip
                .kept
                .push_back(std::mem::replace(&mut self.input.packet, fresh));
            let kept = self.skip.kept.len();
            let shows_the_end = self.decoder.codec_name() != "h264" || kept >= REORDERED;
            if is_past && shows_the_end || bytes > MOST_KEPT || kept > MOST_KEPT / 1024 {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// True if decoding can begin at the packet.
    pub(in crate::source::video) fn is_key(&self) -> bool {
        self.input.packet.is_key()
            && key_frame::is_clean(
                &self.decoder.codec_name(),
                self.input.demuxer.extradata(self.input.stream),
                self.input.packet.data(),
            )
    }

    /// True for a file, and for a URL whose server gives ranges: not for a pipe under a name.
    pub(in crate::source::video) fn can_be_read_again(&self) -> bool {
        self.file.path.is_file() || !self.file.path.exists() && self.input.demuxer.can_seek()
    }

    /// Ticks of a second, rounded up.
    pub(super) fn second(&self) -> i64 {
        (1.0 / self.info.time_base.to_f64()).ceil() as i64
    }

    /// True if reading up to there would take longer than seeking.
    fn is_worth_seeking(&self, here: i64, tick: i64) -> bool {
        tick - here >= (WORTH_SEEKING * self.second() as f64) as i64
    }

    /// Seeks to a key frame that is shown at `tick` or before, which is then in `self.input`, where the
    /// container is one to seek in and it is worth it.
    fn seek_before(&mut self, tick: i64, stopped: &impl Fn() -> bool) -> Result<bool, SourceError> {
        let here = self.input.packet.pts().or_else(|| self.input.packet.dts());
        if here.is_none_or(|here| !self.is_worth_seeking(here, tick)) {
            return Ok(false);
        }
        // A container with times of decoding alone says of no packet when it is shown.
        if !self.input.demuxer.has_exact_index()
            || !self.can_be_read_again()
            || self.input.packet.pts().is_none()
        {
            self.skip.reads_all = true;
            return Ok(false);
        }
        self.seek_back(tick, stopped)
    }

    /// Seeks to a key frame that is shown at `tick` or before.
    fn seek_back(&mut self, tick: i64, stopped: &impl Fn() -> bool) -> Result<bool, SourceError> {
        let second = self.second();
        let mut back = 0;
        loop {
            let aim = (tick - back).max(0);
            self.input
                .demuxer
                .seek(self.input.stream, aim)
                .map_err(|e| self.file.lacking(e))?;
            self.skip.has_sought = true;
            let found = self.read_packet(stopped)?;
            if aim == 0 || found && self.input.packet.pts().is_some_and(|at| at <= tick) && self.is_key() {
                return Ok(found);
            }
            back = (4 * back).max(second);
        }
    }
}
