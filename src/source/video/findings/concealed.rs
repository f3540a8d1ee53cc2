//! Counts of damage that was concealed: a sentence, and the counts that such a sentence holds.

use crate::wording::counted;
use std::fmt;
use std::ops::AddAssign;

const BY_DECODER: &str = " concealed by the decoder; --strict would fail";
const OR_SKIPPED: &str = " concealed or skipped; --strict would fail";

/// How much damage of an input was concealed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Concealed {
    /// How many packets could not be read, were marked as damaged, or that the decoder refused.
    pub packets: u64,
    /// Frames that the decoder patched.
    pub frames: u64,
}

impl Concealed {
    /// The counts of a sentence that [`Concealed`] wrote; `None` for any other text.
    pub fn parse(text: &str) -> Option<Concealed> {
        let counts = text
            .strip_suffix(BY_DECODER)
            .or_else(|| text.strip_suffix(OR_SKIPPED))?;
        let mut found = Concealed::default();
        for count in counts.split(" and ") {
            let (number, noun) = count.split_once(' ')?;
            let number = number.parse().ok()?;
            match noun {
                "corrupt packet" | "corrupt packets" => found.packets = number,
                "damaged frame" | "damaged frames" => found.frames = number,
                _ => return None,
            }
        }
        Some(found)
    }
}

/// True for a warning that frames of an input were lost, so that those behind them are counted lower.
pub fn tells_of_loss(warning: &str) -> bool {
    let sentence = warning.rsplit(": ").next().unwrap_or(warning);
    Concealed::parse(sentence).is_some_and(|found| found.packets > 0) || sentence.contains(" missing at ")
}

impl fmt::Display for Concealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = counted(self.packets, "corrupt packet");
        let frames = counted(self.frames, "damaged frame");
        match (self.packets, self.frames) {
            (0, _) => write!(f, "{frames}{BY_DECODER}"),
            (_, 0) => write!(f, "{packets}{OR_SKIPPED}"),
            _ => write!(f, "{packets} and {frames}{OR_SKIPPED}"),
        }
    }
}

impl AddAssign for Concealed {
    fn add_assign(&mut self, other: Concealed) {
        self.packets += other.packets;
        self.frames += other.frames;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_are_told_from_patched_ones() {
        for (warning, is_lost) in [
            (
                "a.mkv: 1 corrupt packet concealed or skipped; --strict would fail",
                true,
            ),
            (
                "a.mkv: 1 damaged frame concealed by the decoder; --strict would fail",
                false,
            ),
            ("a.mkv: 2 frames are missing at one place after 1.960 s", true),
            ("f/002.png is missing", false),
        ] {
            assert_eq!(tells_of_loss(warning), is_lost, "{warning}");
        }
    }

    #[test]
    fn counts_are_read_back_from_their_sentence() {
        for (packets, frames, text) in [
            (
                0,
                1,
                "1 damaged frame concealed by the decoder; --strict would fail",
            ),
            (1, 0, "1 corrupt packet concealed or skipped; --strict would fail"),
            (
                2,
                0,
                "2 corrupt packets concealed or skipped; --strict would fail",
            ),
            (
                1,
                12,
                "1 corrupt packet and 12 damaged frames concealed or skipped; --strict would fail",
            ),
        ] {
            let counts = Concealed { packets, frames };
            assert_eq!(counts.to_string(), text);
            assert_eq!(Concealed::parse(text), Some(counts));
        }
        for other in [
            "",
            "1 picture concealed by the decoder; --strict would fail",
            "its end is missing",
        ] {
            assert_eq!(Concealed::parse(other), None, "{other}");
        }
    }
}
