//! Counts of damage that was concealed, and their sentence.

use crate::wording::counted;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::AddAssign;

/// How much damage of an input was concealed.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concealed {
    /// How many packets could not be read, were marked as damaged, or that the decoder refused.
    pub packets: u64,
    /// Frames that the decoder patched.
    pub frames: u64,
}

impl fmt::Display for Concealed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packets = counted(self.packets, "corrupt packet");
        let frames = counted(self.frames, "damaged frame");
        match (self.packets, self.frames) {
            (0, _) => write!(f, "{frames} concealed by the decoder"),
            (_, 0) => write!(f, "{packets} concealed or skipped"),
            _ => write!(f, "{packets} and {frames} concealed or skipped"),
        }?;
        f.write_str("; --strict would fail")
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
    fn counts_are_a_sentence() {
        for (packets, frames, text) in [
            (0, 1, "1 damaged frame concealed by the decoder"),
            (1, 0, "1 corrupt packet concealed or skipped"),
            (2, 0, "2 corrupt packets concealed or skipped"),
            (
                1,
                12,
                "1 corrupt packet and 12 damaged frames concealed or skipped",
            ),
        ] {
            let counts = Concealed { packets, frames };
            assert_eq!(counts.to_string(), format!("{text}; --strict would fail"));
        }
    }
}
