//! When frames are shown, and how long.

use super::pacing::Pacing;
use crate::frame::{Metadata, Rational};
use crate::media::ffmpeg::{AvError, Muxer, rescale};
use crate::sink::constant_rate::{ConstantRate, assumed_rate};
use crate::source::StreamInfo;
use std::collections::HashMap;

/// The times of all frames so far.
pub(in crate::sink::video) struct Timing {
    pub(in crate::sink::video) pacing: Pacing,
    /// Durations of frames that are inside the encoder, by time.
    durations: HashMap<i64, i64>,
    /// End of the last frame, in seconds.
    pub(in crate::sink::video) end: f64,
    /// Frames so far.
    pub(in crate::sink::video) frames: u64,
    /// Whether frames come at the frame rate.
    rate: ConstantRate,
    /// They do not, and the container shows them as if they did.
    pub(in crate::sink::video) is_lost: bool,
    /// The user said how long the last frame of an animation is shown.
    ends_by_option: bool,
}

impl Timing {
    /// For frames of `info`. `options` are the user's.
    pub(in crate::sink::video) fn new(
        info: &StreamInfo,
        pacing: Pacing,
        options: &[(String, String)],
    ) -> Timing {
        Timing {
            pacing,
            durations: HashMap::new(),
            end: 0.0,
            frames: 0,
            rate: ConstantRate::of(info),
            is_lost: false,
            ends_by_option: options
                .iter()
                .any(|(key, _)| key.strip_suffix(":v").unwrap_or(key) == "final_delay"),
        }
    }

    /// Looks at the time of the next frame; true for the first that comes at another time than the frame rate
    /// has it.
    pub(in crate::sink::video) fn turns_irregular(&mut self, pts: Option<i64>) -> bool {
        let before = self.rate.is_irregular();
        self.rate.see(pts, self.frames);
        !before && self.rate.is_irregular()
    }

    /// The time of the next frame for the encoder.
    pub(super) fn place(&mut self, frame: &Metadata) -> i64 {
        let (pts, step) = self.pacing.place(frame.pts, frame.duration);
        self.frames += 1;
        self.durations.insert(pts, step);
        self.end = self.end.max((pts + step) as f64 * self.pacing.base().to_f64());
        pts
    }

    /// How long the frame at `pts` lasts, once.
    pub(super) fn take_duration(&mut self, pts: i64) -> Option<i64> {
        self.durations.remove(&pts)
    }

    /// How long all frames so far last, in milliseconds.
    pub(super) fn milliseconds(&self) -> Option<i64> {
        let (first, _, end) = self.pacing.span()?;
        let milliseconds = |ticks: i64| rescale(ticks, self.pacing.base(), Rational { num: 1, den: 1000 });
        Some(milliseconds(end) - milliseconds(first))
    }

    /// When the output's frames are shown, from the first to the end of the last one, in seconds, as its
    /// container has it.
    pub(in crate::sink::video) fn shown(&self, info: &StreamInfo) -> (f64, f64) {
        let first = self.pacing.span().map_or(0, |(first, ..)| first);
        let begins = first as f64 * self.pacing.base().to_f64();
        let ends = match self.is_lost {
            true => begins + self.frames as f64 / assumed_rate(info).to_f64(),
            false => self.end,
        };
        (begins, ends)
    }

    /// Says to the containers of animations how long the last frame is shown, unless the user has: they count
    /// frames' times from one to the next.
    pub(in crate::sink::video) fn end_last_frame(&self, muxer: &mut Muxer) -> Result<(), AvError> {
        let Some((_, last, end)) = self.pacing.span().filter(|_| !self.ends_by_option) else {
            return Ok(());
        };
        let ticks = |pts: i64, den: i32| rescale(pts, self.pacing.base(), Rational { num: 1, den });
        let shown = |den: i32| ticks(end, den) - ticks(last, den);
        match muxer.name().as_str() {
            "gif" => muxer.set("final_delay", &shown(100).clamp(0, 65_535).to_string()),
            "apng" => muxer.set("final_delay", &format!("{}/1000", shown(1000).clamp(0, 65_535))),
            _ => Ok(()),
        }
    }
}
