//! When frames are shown, and how long.

use super::pacing::Pacing;
use crate::frame::{Metadata, Rational};
use crate::media::ffmpeg::{AvError, Muxer, rescale};
use crate::sink::constant_rate::{ConstantRate, assumed_rate};
use crate::source::StreamInfo;
use crate::wording::tidy;
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

    /// Why a next frame at `pts` cannot be given to an encoder of animated WebP, which fails at such a time.
    pub(in crate::sink::video) fn refusal(&self, muxer: &Muxer, pts: Option<i64>) -> Option<String> {
        let (shown, longest) = self.pacing.too_long(pts).filter(|_| muxer.name() == "webp")?;
        Some(format!(
            "frame {} is shown for {} s, and WebP has room for {} s at most; APNG (.apng) shows a frame for \
             up to 65535 s, and a video such as .mkv for longer",
            self.frames.saturating_sub(1),
            tidy(shown),
            tidy(longest)
        ))
    }

    /// Says to the containers of animations how long the last frame is shown, unless the user has: they count
    /// frames' times from one to the next.
    pub(in crate::sink::video) fn end_last_frame(&mut self, muxer: &mut Muxer) -> Result<(), AvError> {
        if self.ends_by_option {
            return Ok(());
        }
        self.pacing.see_end();
        let base = self.pacing.base();
        let Some((_, last, end)) = self.pacing.span() else {
            return Ok(());
        };
        match muxer.name().as_str() {
            "gif" => {
                let ticks = |pts: i64| rescale(pts, base, Rational { num: 1, den: 100 });
                muxer.set(
                    "final_delay",
                    &(ticks(end) - ticks(last)).clamp(0, 65_535).to_string(),
                )
            }
            "apng" => {
                let (num, den) = in_16_bits((end - last).saturating_mul(base.num.into()), base.den.into());
                muxer.set("final_delay", &format!("{num}/{den}"))
            }
            _ => Ok(()),
        }
    }
}

/// A positive fraction in terms of 16 bits: the same if they hold it, else about the same.
fn in_16_bits(num: i64, den: i64) -> (i64, i64) {
    const MOST: i64 = 65_535;
    if num / den.max(1) >= MOST {
        return (MOST, 1);
    }
    // Convergents of its continued fraction, up to the last that fits.
    let ((mut num, mut den), mut before, mut last) = ((num, den), (0, 1), (1, 0));
    while den > 0 {
        let whole = num / den;
        let next = (whole * last.0 + before.0, whole * last.1 + before.1);
        if next.0 > MOST || next.1 > MOST {
            break;
        }
        (before, last) = (last, next);
        (num, den) = (den, num % den);
    }
    match last {
        (0, _) => (1, MOST),
        fits => fits,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_of_16_bits_are_exact_where_they_can_be() {
        for (given, fits) in [
            ((1, 60), (1, 60)),
            ((10_000, 100), (100, 1)),
            ((3003, 90_000), (1001, 30_000)),
            ((7_000_000, 100), (65_535, 1)),
            ((1, 1_000_000), (1, 65_535)),
        ] {
            assert_eq!(in_16_bits(given.0, given.1), fits, "{given:?}");
        }
        let (num, den) = in_16_bits(123_457, 1_000_000);
        assert!(den <= 65_535 && (num as f64 / den as f64 - 0.123_457).abs() < 1e-9);
    }
}
