//! When each frame is shown in the output: the source's times in the encoder's time base, which rise.

use crate::frame::Rational;
use crate::media::ffmpeg::{Muxer, Packet, rescale};
use crate::sink::video::settings::selection::counts_frames;
use crate::wording::tidy;

/// The shortest time, in hundredths of a second, that a GIF frame is shown by FFmpeg and by browsers.
const GIF_LEAST: i64 = 2;

/// The longest time, in seconds, that a container of animations shows a frame.
fn longest(container: &str) -> Option<f64> {
    match container {
        "gif" => Some(655.35),
        "apng" => Some(65_535.0),
        "webp" => Some(16_777.215),
        _ => None,
    }
}

/// The times given so far.
pub(in crate::sink::video) struct Pacing {
    /// The source's time base, and the encoder's.
    from: Rational,
    base: Rational,
    /// Seconds before picture and sound begin that are left out.
    pause: f64,
    /// How long a frame lasts that does not say, in the source's ticks.
    step: i64,
    /// How long one does at the frame rate, if that is shorter: the first may be shown for longer.
    usual: i64,
    /// Ticks from one frame to the next at least.
    least: i64,
    first: Option<i64>,
    /// When the source shows the first frame, in its own ticks.
    first_pts: Option<i64>,
    last: Option<i64>,
    /// How long the last frame is shown.
    last_step: i64,
    /// Frames that were shown later than they should be, and by how many seconds at most.
    moved: u64,
    moved_by: f64,
    /// The longest time that a frame can be shown, in seconds, where there is one.
    longest: Option<f64>,
    /// Frames that should be shown longer, and the longest of these times.
    shortened: u64,
    shortened_from: f64,
    /// Frames that are shown at another time than they should be since the encoder's ticks are as long as
    /// frames, and by how many seconds at most.
    rounded: u64,
    rounded_by: f64,
    /// The container's clock, where it is coarser than the encoder's.
    clock: Option<Clock>,
    /// Frames that are shown at the same tick of it as the one before.
    shared: u64,
}

/// A clock that ticks less often than the encoder's.
struct Clock {
    base: Rational,
    /// Each frame must have a later tick than the one before.
    rises: bool,
    last: Option<i64>,
}

impl Pacing {
    /// `pause` is in seconds, `step` in ticks of `from`.
    pub(in crate::sink::video) fn new(from: Rational, base: Rational, pause: f64, step: i64) -> Pacing {
        Pacing {
            from,
            base,
            pause,
            step: step.max(1),
            usual: step.max(1),
            least: 1,
            first: None,
            first_pts: None,
            last: None,
            last_step: 1,
            moved: 0,
            moved_by: 0.0,
            longest: None,
            shortened: 0,
            shortened_from: 0.0,
            rounded: 0,
            rounded_by: 0.0,
            clock: None,
            shared: 0,
        }
    }

    /// The same for frames of which most last `step` ticks of the source's.
    pub(in crate::sink::video) fn at_rate(self, step: i64) -> Pacing {
        Pacing {
            usual: self.usual.min(step.max(1)),
            ..self
        }
    }

    /// Has times suit stream `stream` of `muxer`, whose head is written.
    pub(in crate::sink::video) fn suit(&mut self, muxer: &Muxer, stream: usize) {
        if muxer.name() == "gif" {
            self.least = GIF_LEAST;
        }
        self.longest = longest(&muxer.name());
        let base = muxer.time_base(stream);
        let has_times = muxer.keeps_times() != Some(false);
        if has_times && base.to_f64() > self.base.to_f64() {
            self.clock = Some(Clock {
                base,
                rises: muxer.needs_rising_times(stream),
                last: None,
            });
        }
    }

    /// The encoder's time base.
    pub(in crate::sink::video) fn base(&self) -> Rational {
        self.base
    }

    /// When the next frame is shown and how long, in the encoder's ticks, by what it says in the source's.
    pub(in crate::sink::video) fn place(&mut self, pts: Option<i64>, duration: Option<i64>) -> (i64, i64) {
        let source = pts;
        let pause = (self.pause / self.base.to_f64()).round() as i64;
        let wanted = pts.map(|pts| rescale(pts, self.from, self.base) - pause);
        let step = rescale(duration.unwrap_or(self.step), self.from, self.base).max(self.least);
        let wanted = wanted.unwrap_or_else(|| self.last.map_or(0, |last| last + step));
        let mut pts = self.last.map_or(wanted, |last| wanted.max(last + self.least));
        let mut is_shared = false;
        if let Some(clock) = &mut self.clock {
            let mut tick = rescale(pts, self.base, clock.base);
            match clock.last {
                Some(last) if tick <= last && clock.rises => {
                    tick = last + 1;
                    pts = rescale(tick, clock.base, self.base);
                }
                Some(last) if tick <= last => {
                    // One that is moved further than a tick is counted as moved.
                    is_shared = ((pts - wanted) as f64) * self.base.to_f64() < clock.base.to_f64();
                    self.shared += u64::from(is_shared);
                }
                _ => {}
            }
            clock.last = Some(tick);
        }
        if pts > wanted && !is_shared {
            self.moved += 1;
            self.moved_by = self.moved_by.max((pts - wanted) as f64 * self.base.to_f64());
        }
        let first = *self.first.get_or_insert(wanted);
        if let Some(own) = source {
            let own = own - *self.first_pts.get_or_insert(own);
            let by = ((wanted - first) as f64 * self.base.to_f64() - own as f64 * self.from.to_f64()).abs();
            // A tick of the source's, or a millisecond of what it was made from, is no more than rounding.
            if by > self.from.to_f64().max(1e-3) && self.counts_frames() {
                self.rounded += 1;
                self.rounded_by = self.rounded_by.max(by);
            }
        }
        if let Some(last) = self.last {
            self.see_shown(pts - last);
        }
        self.last = Some(pts);
        self.last_step = step;
        (pts, step)
    }

    /// How long the last frame is shown in seconds, and the longest that it can be, if a next frame at `pts`
    /// leaves it there too long.
    pub(in crate::sink::video) fn too_long(&self, pts: Option<i64>) -> Option<(f64, f64)> {
        let pause = (self.pause / self.base.to_f64()).round() as i64;
        let next = rescale(pts?, self.from, self.base) - pause;
        let shown = (next - self.last?) as f64 * self.base.to_f64();
        self.longest
            .filter(|&longest| shown > longest)
            .map(|longest| (shown, longest))
    }

    /// Notes how long the last frame is shown, which is written at the end.
    pub(in crate::sink::video) fn see_end(&mut self) {
        if self.last.is_some() {
            self.see_shown(self.last_step);
        }
    }

    /// Looks at how long a frame is to be shown, in the encoder's ticks.
    fn see_shown(&mut self, ticks: i64) {
        let shown = ticks as f64 * self.base.to_f64();
        if self.longest.is_some_and(|longest| shown > longest) {
            self.shortened += 1;
            self.shortened_from = self.shortened_from.max(shown);
        }
    }

    /// True if the encoder's ticks are as long as frames.
    fn counts_frames(&self) -> bool {
        rescale(self.usual, self.from, self.base) <= 1
    }

    /// Brings an encoder's packet into ticks of the container's, `tick` seconds each. Where the encoder
    /// counts frames and the container does not, the first frame is shown when the source shows it, between
    /// two of the encoder's ticks, and the others as far from it as the encoder has them.
    pub(in crate::sink::video) fn stamp(&self, packet: &mut Packet, tick: Rational) {
        packet.rescale(self.base, tick);
        if let (Some(first), Some(pts), true) = (self.first, self.first_pts, self.counts_frames())
            && tick.to_f64() < self.base.to_f64()
        {
            let begins = pts as f64 * self.from.to_f64() - self.pause;
            let late = begins - first as f64 * self.base.to_f64();
            packet.shift((late / tick.to_f64()).round() as i64);
        }
    }

    /// When the first frame and the last one are shown, and the end of the last one; `None` without frames.
    pub(in crate::sink::video) fn span(&self) -> Option<(i64, i64, i64)> {
        let (first, last) = self.first.zip(self.last)?;
        Some((first, last, last + self.last_step))
    }

    /// Word of frames that are not shown when the source shows them, if there are any: the encoder counts
    /// their times, or the container.
    pub(in crate::sink::video) fn sentences(&self, encoder: &str, container: &str) -> Vec<String> {
        let counting = match counts_frames(container) || container == "gif" {
            true => container,
            false => encoder,
        };
        let frames = |count: u64, one: &str, more: &str| match count {
            1 => format!("1 frame {one}"),
            n => format!("{n} frames {more}"),
        };
        let steps = self.clock.as_ref().map_or(0.0, |clock| clock.base.to_f64());
        let mut sentences = Vec::new();
        if self.rounded > 0 {
            sentences.push(format!(
                "{} shown up to {} s earlier or later, because {counting} counts time in steps of {} s, \
                 a frame each",
                frames(self.rounded, "is", "are"),
                seconds(self.rounded_by),
                seconds(self.base.to_f64())
            ));
        }
        if self.moved > 0 && self.least > 1 {
            sentences.push(format!(
                "{} shown up to {} s later, because viewers of {container} show none for less than {} s: \
                 they take a shorter time for 0.1 s",
                frames(self.moved, "is", "are"),
                seconds(self.moved_by),
                seconds(self.least as f64 * self.base.to_f64())
            ));
        } else if self.moved > 0 {
            let counts = match steps > 0.0 {
                true => format!(", and counts time in steps of {} s", seconds(steps)),
                false => String::new(),
            };
            sentences.push(format!(
                "{} shown up to {} s later, because {container} cannot show two frames at one time or one \
                 before the last{counts}",
                frames(self.moved, "is", "are"),
                seconds(self.moved_by)
            ));
        }
        if let (Some(longest), true) = (self.longest, self.shortened > 0) {
            sentences.push(format!(
                "{} shown for {} s instead of up to {} s, because {container} has no room for more: a video \
                 such as .mkv has",
                frames(self.shortened, "is", "are"),
                tidy(longest),
                tidy(self.shortened_from)
            ));
        }
        if self.shared > 0 {
            sentences.push(format!(
                "{} the same time as the one before, because {container} counts time in steps of {} s",
                frames(self.shared, "gets", "get"),
                seconds(steps)
            ));
        }
        sentences
    }
}

/// Seconds in thousandths, or in the next finer parts of a thousand that do not make them zero.
fn seconds(seconds: f64) -> String {
    let shows = |&digits: &usize| seconds * 10_f64.powi(digits as i32) >= 0.5;
    let digits = [3, 6, 9].into_iter().find(shows).unwrap_or(9);
    format!("{seconds:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_rise_and_what_moves_is_counted() {
        let base = |den| Rational { num: 1, den };
        let mut pacing = Pacing::new(base(1000), base(25), 0.08, 40);
        assert_eq!(pacing.place(Some(80), None), (0, 1));
        assert_eq!(pacing.place(None, Some(80)), (2, 2));
        assert!(pacing.sentences("x", "x").is_empty());
        assert_eq!(pacing.place(Some(120), Some(40)), (3, 1));
        assert_eq!(pacing.span(), Some((0, 3, 4)));
        let said = pacing.sentences("x", "x");
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].starts_with("1 frame is shown up to 0.080 s"), "{said:?}");
    }

    #[test]
    fn a_frame_is_in_one_sentence_with_a_figure_that_is_not_zero() {
        let base = |den| Rational { num: 1, den };
        let said = |clock: Option<i32>, times: [i64; 3]| {
            let mut pacing = Pacing::new(base(90_000), base(90_000), 0.0, 3600);
            pacing.clock = clock.map(|den| Clock {
                base: base(den),
                rises: false,
                last: None,
            });
            for time in times {
                pacing.place(Some(time), None);
            }
            pacing.sentences("x", "x").join("; ")
        };
        let twice = [0, 3600, 3600];
        assert_eq!(
            said(Some(1000), twice),
            "1 frame gets the same time as the one before, because x counts time in steps of 0.001 s"
        );
        assert!(said(None, twice).starts_with("1 frame is shown up to 0.000011 s later, because x cannot"));
        let back = said(Some(1000), [0, 3600, 1800]);
        assert!(back.starts_with("1 frame is shown up to 0.020 s later") && !back.contains("; "));
    }

    #[test]
    fn times_between_frame_long_ticks_are_named() {
        let base = |den| Rational { num: 1, den };
        let said = |den: i32, step: i64, times: &[i64]| {
            let mut pacing = Pacing::new(base(1000), base(den), 0.0, step);
            for &time in times {
                pacing.place(Some(time), None);
            }
            pacing.sentences("x", "avi")
        };
        let moved = said(50, 20, &[0, 40, 127, 180]);
        assert!(
            moved[0].starts_with("1 frame is shown up to 0.007 s earlier or later, because avi"),
            "{moved:?}"
        );
        // The first frame is shown for three fields, and others for two, as fields are repeated for
        // television.
        let mut pacing = Pacing::new(base(600), base(30), 0.0, 30).at_rate(20);
        for time in [0, 30, 50, 80, 100] {
            pacing.place(Some(time), None);
        }
        assert!(
            pacing.sentences("x", "ts")[0].starts_with("2 frames are shown up to 0.017 s earlier or later"),
            "{:?}",
            pacing.sentences("x", "ts")
        );
        // Milliseconds of a regular clock are brought to its own ticks.
        assert!(said(30, 33, &[0, 33, 67, 100, 133]).is_empty());
    }

    #[test]
    fn ticks_of_a_coarse_clock_rise_or_what_they_share_is_counted() {
        let base = |den| Rational { num: 1, den };
        for (rises, placed, said) in [
            (true, [0, 2, 5, 6, 10], "4 frames are shown up to 0.025 s later"),
            (
                false,
                [0, 1, 2, 3, 4],
                "2 frames get the same time as the one before",
            ),
        ] {
            let mut pacing = Pacing::new(base(240), base(240), 0.0, 1);
            pacing.clock = Some(Clock {
                base: base(100),
                rises,
                last: None,
            });
            let times: Vec<i64> = (0..5).map(|at| pacing.place(Some(at), None).0).collect();
            assert_eq!(times, placed);
            assert!(
                pacing.sentences("x", "x")[0].starts_with(said),
                "{:?}",
                pacing.sentences("x", "x")
            );
        }
    }
}
