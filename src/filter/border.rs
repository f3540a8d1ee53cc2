//! Borders: what is assumed outside the frame.

use crate::messages::suggest::suggestion;
use std::fmt;
use std::str::FromStr;

/// How pixels outside the frame are made. The same words and the same pixels on every engine.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub enum Border {
    /// The edge pixel, repeated: `aaa|abcd|ddd`.
    #[default]
    Replicate,
    /// No signal: black (limited-range luma included), neutral chroma, transparent alpha.
    Zero,
    /// A gray of this level, stated at 8 bits full scale and scaled to the depth: neutral chroma, opaque
    /// alpha.
    Constant(f64),
    /// The picture mirrored with its edge pixel doubled: `dcba|abcd|dcba`.
    Reflect,
    /// The picture mirrored at its edge pixel: `dcb|abcd|cba` (OpenCV's reflect101).
    Mirror,
    /// The picture repeated: `abcd|abcd|abcd`.
    Wrap,
}

impl Border {
    /// Every border; the constant one of some level between black and white.
    pub const ALL: [Border; 6] = [
        Border::Replicate,
        Border::Zero,
        Border::Constant(90.0),
        Border::Reflect,
        Border::Mirror,
        Border::Wrap,
    ];

    /// The border's name; that of the constant one without its level.
    pub const fn name(self) -> &'static str {
        match self {
            Border::Replicate => "replicate",
            Border::Zero => "zero",
            Border::Constant(_) => "constant",
            Border::Reflect => "reflect",
            Border::Mirror => "mirror",
            Border::Wrap => "wrap",
        }
    }

    /// Where position `at` of a row or column of `len` pixels is found inside it; `None` if the border holds
    /// a constant there. Any distance from the frame is allowed. `len` must not be 0.
    pub fn index(self, at: i64, len: usize) -> Option<usize> {
        let n = len as i64;
        if (0..n).contains(&at) {
            return Some(at as usize);
        }
        let inside = match self {
            Border::Zero | Border::Constant(_) => return None,
            Border::Replicate => at.clamp(0, n - 1),
            Border::Wrap => at.rem_euclid(n),
            Border::Reflect => {
                let m = at.rem_euclid(2 * n);
                if m < n { m } else { 2 * n - 1 - m }
            }
            Border::Mirror if n == 1 => 0,
            Border::Mirror => {
                let m = at.rem_euclid(2 * n - 2);
                if m < n { m } else { 2 * n - 2 - m }
            }
        };
        Some(inside as usize)
    }
}

impl fmt::Display for Border {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Border::Constant(level) => write!(f, "{}:{level}", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}

/// Other names of the borders, in small letters: what OpenCV, NumPy, SciPy, FFmpeg, NPP and graphics
/// libraries call them. SciPy's `reflect` is ours; NumPy's `reflect` is our `mirror`, so that `symmetric` and
/// `reflect101` are the names that mean one thing everywhere.
const OTHER_NAMES: &[(&str, Border)] = &[
    ("clamp", Border::Replicate),
    ("edge", Border::Replicate),
    ("nearest", Border::Replicate),
    ("repeat-edge", Border::Replicate),
    ("smear", Border::Replicate),
    ("black", Border::Zero),
    ("zeros", Border::Zero),
    ("symmetric", Border::Reflect),
    ("grid-mirror", Border::Reflect),
    ("reflect101", Border::Mirror),
    ("reflect-101", Border::Mirror),
    ("circular", Border::Wrap),
    ("grid-wrap", Border::Wrap),
    ("periodic", Border::Wrap),
    ("tile", Border::Wrap),
];

/// A word that names no border.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no border mode{near}; use replicate (aaa|abcd|ddd), zero, constant:V (V from 0 to 255), \
     reflect (cba|abcd|dcb), mirror (dcb|abcd|cba) or wrap (bcd|abcd|abc)",
    near = near(.0)
)]
pub struct UnknownBorder(pub String);

/// A question about what may have been meant, as the end of a clause.
fn near(word: &str) -> String {
    match word.to_lowercase().trim_end_matches(':').ends_with("constant") {
        true => "; did you mean 'zero', or a level such as 'constant:0'?".to_owned(),
        false => {
            let has_level = |border: &Border| matches!(border, Border::Constant(_));
            let others = Border::ALL.into_iter().filter(|border| !has_level(border));
            suggestion(word, &others.map(Border::name).collect::<Vec<_>>())
        }
    }
}

/// The border of the level that is written so.
fn constant(level: &str) -> Option<Border> {
    let level = level.parse().ok()?;
    (0.0..=255.0).contains(&level).then_some(Border::Constant(level))
}

impl FromStr for Border {
    type Err = UnknownBorder;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        let small = word.trim().to_lowercase().replace('_', "-");
        // OpenCV's own default is not ours: the word alone would be ambiguous.
        if small == "border-default" {
            return Ok(Border::Mirror);
        }
        let small = small.strip_prefix("border-").unwrap_or(&small);
        if let Some(&(_, border)) = OTHER_NAMES.iter().find(|(name, _)| *name == small) {
            return Ok(border);
        }
        let (name, level) = match small.split_once(':') {
            Some((name, level)) => (name, Some(level)),
            None => (small, None),
        };
        let border = Border::ALL.into_iter().find(|border| border.name() == name);
        let border = match (border, level) {
            (Some(Border::Constant(_)), level) => level.and_then(constant),
            (border, None) => border,
            (_, Some(_)) => None,
        };
        border.ok_or_else(|| UnknownBorder(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spell(border: Border, len: usize, reach: i64) -> String {
        (-reach..len as i64 + reach)
            .map(|at| border.index(at, len).map_or('.', |i| char::from(b'a' + i as u8)))
            .collect()
    }

    #[test]
    fn borders_spell_what_the_documentation_says() {
        assert_eq!(spell(Border::Replicate, 4, 3), "aaaabcdddd");
        assert_eq!(spell(Border::Zero, 4, 3), "...abcd...");
        assert_eq!(spell(Border::Reflect, 4, 4), "dcbaabcddcba");
        assert_eq!(spell(Border::Mirror, 4, 3), "dcbabcdcba");
        assert_eq!(spell(Border::Wrap, 4, 4), "abcdabcdabcd");
    }

    #[test]
    fn all_holds_every_border_once() {
        for (at, border) in Border::ALL.into_iter().enumerate() {
            // A new border does not compile here before it has a place in the list.
            let place = match border {
                Border::Replicate => 0,
                Border::Zero => 1,
                Border::Constant(_) => 2,
                Border::Reflect => 3,
                Border::Mirror => 4,
                Border::Wrap => 5,
            };
            assert_eq!(at, place, "{border}");
            assert_eq!(border.to_string().parse::<Border>(), Ok(border));
        }
    }

    #[test]
    fn borders_have_the_names_of_other_libraries() {
        for (word, border) in [
            ("Replicate", Border::Replicate),
            ("BORDER_REPLICATE", Border::Replicate),
            ("clamp", Border::Replicate),
            ("BORDER_REFLECT_101", Border::Mirror),
            ("reflect101", Border::Mirror),
            ("symmetric", Border::Reflect),
            ("BORDER_DEFAULT", Border::Mirror),
            ("border-default", Border::Mirror),
            ("BORDER_WRAP", Border::Wrap),
            ("CONSTANT:12.5", Border::Constant(12.5)),
        ] {
            assert_eq!(word.parse(), Ok(border), "{word}");
        }
        for word in [
            "",
            "constant",
            "constant:256",
            "reflect102x",
            "edges of",
            "default",
            "zero:",
            "zero:1",
        ] {
            assert!(word.parse::<Border>().is_err(), "{word}");
        }
        let error = "replicat".parse::<Border>().unwrap_err().to_string();
        assert!(error.contains("did you mean 'replicate'?"), "{error}");
        for word in ["BORDER_CONSTANT", "constant", "grid-constant"] {
            let error = word.parse::<Border>().unwrap_err().to_string();
            assert!(
                error.contains("'zero', or a level such as 'constant:0'"),
                "{error}"
            );
        }
    }

    #[test]
    fn borders_reach_further_than_the_frame() {
        assert_eq!(spell(Border::Reflect, 2, 5), "aabbaabbaabb");
        assert_eq!(spell(Border::Mirror, 2, 4), "ababababab");
        assert_eq!(spell(Border::Mirror, 1, 3), "aaaaaaa");
        assert_eq!(spell(Border::Wrap, 3, 5), "bcabcabcabcab");
    }
}
