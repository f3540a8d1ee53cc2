//! When each frame is shown in the output: the source's times in the encoder's time base, which rise.

use crate::ffmpeg::rescale;
use crate::frame::Rational;

/// The times given so far.
pub(super) struct Pacing {
    /// The source's time base, and the encoder's.
    from: Rational,
    base: Rational,
    /// Ticks of the encoder's before picture and sound begin that are left out.
    pause: i64,
    /// How long a frame lasts that does not say, in the source's ticks.
    step: i64,
    first: Option<i64>,
    last: Option<i64>,
    /// How long the last frame is shown.
    last_step: i64,
    /// Frames that were shown later than they should be, and by how many seconds at most.
    moved: u64,
    moved_by: f64,
}

impl Pacing {
    /// `pause` is in seconds, `step` in ticks of `from`.
    pub(super) fn new(from: Rational, base: Rational, pause: f64, step: i64) -> Pacing {
        Pacing {
            from,
            base,
            pause: (pause / base.to_f64()).round() as i64,
            step: step.max(1),
            first: None,
            last: None,
            last_step: 1,
            moved: 0,
            moved_by: 0.0,
        }
    }

    /// The encoder's time base.
    pub(super) fn base(&self) -> Rational {
        self.base
    }

    /// When the next frame is shown and how long, in the encoder's ticks, by what it says in the source's.
    pub(super) fn place(&mut self, pts: Option<i64>, duration: Option<i64>) -> (i64, i64) {
        let wanted = pts.map(|pts| rescale(pts, self.from, self.base) - self.pause);
        let step = rescale(duration.unwrap_or(self.step), self.from, self.base).max(1);
        let mut pts = wanted.unwrap_or_else(|| self.last.map_or(0, |last| last + step));
        if let Some(last) = self.last
            && pts <= last
        {
            self.moved += 1;
            self.moved_by = self.moved_by.max((last + 1 - pts) as f64 * self.base.to_f64());
            pts = last + 1;
        }
        self.first.get_or_insert(pts);
        self.last = Some(pts);
        self.last_step = step;
        (pts, step)
    }

    /// When the first frame and the last one are shown, and the end of the last one; `None` without frames.
    pub(super) fn span(&self) -> Option<(i64, i64, i64)> {
        let (first, last) = self.first.zip(self.last)?;
        Some((first, last, last + self.last_step))
    }

    /// Word of frames that are shown later than in the source, if there are any.
    pub(super) fn moved_sentence(&self, container: &str) -> Option<String> {
        let frames = match self.moved {
            0 => return None,
            1 => "1 frame is".to_owned(),
            n => format!("{n} frames are"),
        };
        Some(format!(
            "{frames} shown up to {:.3} s later, because {container} cannot show two frames at one time or \
             one before the last",
            self.moved_by
        ))
    }
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
        assert_eq!(pacing.moved_sentence("x"), None);
        assert_eq!(pacing.place(Some(120), Some(40)), (3, 1));
        assert_eq!(pacing.span(), Some((0, 3, 4)));
        assert!(
            pacing
                .moved_sentence("x")
                .is_some_and(|s| s.starts_with("1 frame is shown up to 0.080 s"))
        );
    }
}
