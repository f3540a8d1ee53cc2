//! The end of sound beside that of the picture, in containers that write units of both.

use super::Gaps;
use crate::media::ffmpeg::{AvError, Muxer};
use crate::sink::video::container::StreamHandling;
use crate::sink::video::passthrough::Passthrough;
use crate::sink::video::passthrough::copied::Copied;

/// Seconds by which sound that is filled up goes on after the last picture of a container that writes units
/// of both, so that none of the units is without sound, wherever the first one begins.
const UNIT: f64 = 0.1;

/// Seconds that are less than a sample.
const SAMPLE: f64 = 1e-6;

/// Seconds of sound behind the last picture that are not missed: about a picture, or a packet of sound.
const SHORT: f64 = 0.05;

impl Passthrough {
    /// Names sound that goes on after the last picture, at `end` seconds, in a container that then leaves it
    /// out.
    pub(in crate::sink::video) fn report_cut_tails(&mut self, muxer: &Muxer, end: f64) {
        let held = |copied: &&mut Copied| copied.refusal.is_none();
        for copied in self.copied.iter_mut().filter(held) {
            let sound_end = copied
                .last_end
                .map_or(0.0, |at| at as f64 * muxer.time_base(copied.to).to_f64());
            if sound_end > end + SHORT {
                copied.cut_tail = Some(format!(
                    "{} goes on for {:.3} s after the last picture, which {} leaves out",
                    copied.label,
                    sound_end - end,
                    muxer.name()
                ));
            }
        }
    }

    /// Has silence follow on sound that has ended, so that the picture at `until` seconds has its part of it.
    pub(in crate::sink::video) fn extend_all(
        &mut self,
        muxer: &mut Muxer,
        until: f64,
    ) -> Result<(), AvError> {
        (0..self.copied.len())
            .try_for_each(|position| self.extend_sound(muxer, position, (self.picture, until)))
    }

    /// Has silence follow on sound. Pictures are shown from `begins` to `end`, in seconds, and the container
    /// has both begin at once and leaves out sound behind the last picture.
    pub(in crate::sink::video) fn extend_sound(
        &mut self,
        muxer: &mut Muxer,
        position: usize,
        (begins, end): (f64, f64),
    ) -> Result<(), AvError> {
        let copied = &mut self.copied[position];
        if copied.refusal.is_some() {
            return Ok(());
        }
        let (to, delay) = (copied.to, copied.delay);
        let (packets, base) = match &mut copied.handling {
            StreamHandling::Encode(transcoder) => {
                let mut packets = transcoder.extend(end + UNIT - delay)?;
                let shift = (delay / transcoder.time_base().to_f64()).round() as i64;
                packets.iter_mut().for_each(|packet| packet.shift(shift));
                (packets, transcoder.time_base())
            }
            StreamHandling::Copy { .. } => {
                let base = muxer.time_base(to);
                let behind = copied.last_end.unwrap_or(0) + copied.silence;
                let by_times = || (behind - copied.begins.unwrap_or(behind)) as f64 * base.to_f64();
                let there = copied.gaps.as_ref().map_or_else(by_times, Gaps::total);
                let short = end - begins - there;
                let missing = ((short + UNIT) / base.to_f64()).ceil() as i64;
                let length = if short > SAMPLE {
                    missing as f64 * base.to_f64()
                } else {
                    0.0
                };
                let silence = self.reader.demuxer.silence(copied.from, length);
                let mut packets = Vec::new();
                if let Some(mut silence) = silence {
                    silence.shift(behind);
                    silence.set_duration(missing);
                    copied.silence += missing;
                    copied.gaps.iter_mut().for_each(|gaps| gaps.add(length));
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
}
