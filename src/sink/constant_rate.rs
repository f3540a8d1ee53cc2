//! Outputs that hold no times, so that their readers show frames at a constant rate.

use crate::frame::Rational;
use crate::source::StreamInfo;

/// The frame rate that such an output gets.
pub(super) fn assumed_rate(info: &StreamInfo) -> Rational {
    info.frame_rate.unwrap_or(Rational { num: 25, den: 1 })
}

/// What is lost of times that a constant rate cannot express.
pub(super) fn irregular(container: &str) -> String {
    format!(
        "the timestamps are irregular (a variable frame rate), which {container} cannot hold: its reader \
         will show the frames at a constant rate"
    )
}

/// Notices times that a constant frame rate cannot express.
pub(super) struct ConstantRate {
    ticks_per_frame: f64,
    first: Option<i64>,
    irregular: bool,
}

impl ConstantRate {
    pub(super) fn of(info: &StreamInfo) -> ConstantRate {
        ConstantRate {
            ticks_per_frame: 1.0 / (assumed_rate(info).to_f64() * info.time_base.to_f64()),
            first: None,
            irregular: false,
        }
    }

    /// Looks at when a frame is shown, in ticks of the source's.
    pub(super) fn see(&mut self, pts: Option<i64>, frames_before: u64) {
        let Some(pts) = pts else { return };
        let first = *self.first.get_or_insert(pts);
        let expected = frames_before as f64 * self.ticks_per_frame;
        if ((pts - first) as f64 - expected).abs() > self.ticks_per_frame / 2.0 + 1.0 {
            self.irregular = true;
        }
    }

    /// True once a frame was shown at another time than the rate has it.
    pub(super) fn is_irregular(&self) -> bool {
        self.irregular
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_rate_is_told_from_rounding() {
        let run = |pts: &[i64]| {
            let mut clock = ConstantRate {
                ticks_per_frame: 1000.0 / 30.0,
                first: None,
                irregular: false,
            };
            for (k, &p) in pts.iter().enumerate() {
                clock.see(Some(p), k as u64);
            }
            clock.is_irregular()
        };
        assert!(!run(&[5, 38, 72, 105, 138]));
        assert!(run(&[0, 33, 100, 133]));
    }
}
