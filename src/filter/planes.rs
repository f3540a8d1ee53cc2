//! Which components of a frame a filter changes.

use crate::frame::{Channel, ColourModel, PixelFormat};
use crate::messages::suggest::suggestion;
use std::fmt;
use std::str::FromStr;

/// The user's choice of components.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Planes {
    /// Every component but alpha.
    #[default]
    All,
    /// Every component, alpha too.
    AllWithAlpha,
    /// Luma only; chroma and alpha are copied. For RGB see `engine::luma`.
    Luma,
    /// Luma only, and chroma is set to neutral: a gray picture.
    Gray,
    /// Chroma only.
    Chroma,
    /// These components only; the others are copied.
    Only(Vec<Channel>),
}

/// What happens to one component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChannelPolicy {
    /// Convolved.
    Filter,
    /// Copied.
    Copy,
    /// Set to its zero level.
    Neutral,
}

/// The choice names a component that the format lacks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "--planes {planes} names a component that {format} does not have{}",
    advice(planes, *format)
)]
pub struct NoSuchPlane {
    /// The choice.
    pub planes: String,
    /// The pixel format.
    pub format: PixelFormat,
}

/// What to do about planes that `format` lacks.
fn advice(planes: &str, format: PixelFormat) -> String {
    let has = |channel: Channel| {
        format
            .planes()
            .iter()
            .any(|plane| plane.channels.contains(&channel))
    };
    match format.is_float() {
        true if format.model() == ColourModel::Data => {
            "; channels that are not all of one colour picture are filtered together: leave --planes out"
                .to_owned()
        }
        true if ["luma", "gray", "y"].contains(&planes) => {
            "; no luma is made of floating-point RGB: leave --planes out, or name r, g and b".to_owned()
        }
        false if planes == "y" && format.model() == ColourModel::Rgb => {
            "; the luma of RGB is --planes luma".to_owned()
        }
        _ => {
            let there = WORDS.iter().filter(|(_, channel)| has(*channel));
            let there: Vec<&str> = there.map(|&(word, _)| word).collect();
            match there[..] {
                [] => String::new(),
                _ => format!("; it has {}", there.join(", ")),
            }
        }
    }
}

impl Planes {
    /// Checks that `format` has what the choice names.
    pub fn check(&self, format: PixelFormat) -> Result<(), NoSuchPlane> {
        let has = |c: Channel| format.planes().iter().any(|p| p.channels.contains(&c));
        let present = match self {
            Planes::All => true,
            Planes::AllWithAlpha => true,
            Planes::Luma | Planes::Gray => matches!(format.model(), ColourModel::Gray | ColourModel::Yuv),
            Planes::Chroma => format.model() == ColourModel::Yuv,
            Planes::Only(list) => list.iter().all(|&c| has(c)),
        };
        if present {
            Ok(())
        } else {
            Err(NoSuchPlane {
                planes: self.to_string(),
                format,
            })
        }
    }

    /// What happens to `channel` under this choice.
    pub fn policy(&self, channel: Channel) -> ChannelPolicy {
        let filtered = match self {
            Planes::All => channel != Channel::Alpha,
            Planes::AllWithAlpha => true,
            Planes::Luma => channel == Channel::Luma,
            Planes::Gray if channel.is_chroma() => return ChannelPolicy::Neutral,
            Planes::Gray => channel == Channel::Luma,
            Planes::Chroma => channel.is_chroma(),
            Planes::Only(list) => list.contains(&channel),
        };
        if filtered {
            ChannelPolicy::Filter
        } else {
            ChannelPolicy::Copy
        }
    }
}

const WORDS: &[(&str, Channel)] = &[
    ("y", Channel::Luma),
    ("u", Channel::Cb),
    ("v", Channel::Cr),
    ("r", Channel::Red),
    ("g", Channel::Green),
    ("b", Channel::Blue),
    ("a", Channel::Alpha),
];

impl fmt::Display for Planes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Planes::All => f.write_str("all"),
            Planes::AllWithAlpha => f.write_str("all+alpha"),
            Planes::Luma => f.write_str("luma"),
            Planes::Gray => f.write_str("gray"),
            Planes::Chroma => f.write_str("chroma"),
            Planes::Only(list) => {
                let words: Vec<&str> = WORDS
                    .iter()
                    .filter(|(_, c)| list.contains(c))
                    .map(|&(word, _)| word)
                    .collect();
                f.write_str(&words.join(","))
            }
        }
    }
}

/// A word that names no choice of components.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is no choice of planes{near}; use all, all+alpha, luma, gray (luma filtered, colour dropped), \
     chroma, or letters of y, u, v, r, g, b, a such as rgb or y,u",
    near = suggestion(.0, &NAMES)
)]
pub struct UnknownPlanes(pub String);

const NAMES: [&str; 5] = ["all", "all+alpha", "luma", "gray", "chroma"];

impl FromStr for Planes {
    type Err = UnknownPlanes;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let small = text.trim().to_lowercase();
        Ok(match &*small {
            "all" => Planes::All,
            "all+alpha" => Planes::AllWithAlpha,
            "luma" => Planes::Luma,
            "gray" | "grey" => Planes::Gray,
            "chroma" => Planes::Chroma,
            list => components(list).ok_or_else(|| UnknownPlanes(text.to_owned()))?,
        })
    }
}

/// The components of a list of letters, with commas or without (`rgb`); no letter comes twice.
fn components(list: &str) -> Option<Planes> {
    let mut found = Vec::new();
    for word in list.split(',') {
        let word = word.trim();
        let word = match word {
            "alpha" => "a",
            "cb" => "u",
            "cr" => "v",
            letters => letters,
        };
        let mut letters = word
            .char_indices()
            .map(|(at, c)| &word[at..at + c.len_utf8()])
            .peekable();
        letters.peek()?;
        for letter in letters {
            let &(_, channel) = WORDS.iter().find(|(name, _)| *name == letter)?;
            if found.contains(&channel) {
                return None;
            }
            found.push(channel);
        }
    }
    Some(Planes::Only(found))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_components_are_words_or_letters() {
        let rgb = Planes::Only(vec![Channel::Red, Channel::Green, Channel::Blue]);
        for word in ["r,g,b", "rgb", "RGB", "r, g, b", "rg,b"] {
            assert_eq!(word.parse(), Ok(rgb.clone()), "{word}");
        }
        assert_eq!("Y".parse(), Ok(Planes::Only(vec![Channel::Luma])));
        for word in ["Cb,Cr", "cb,v", "U,CR", "uv"] {
            let chroma = Planes::Only(vec![Channel::Cb, Channel::Cr]);
            assert_eq!(word.parse(), Ok(chroma), "{word}");
        }
        assert_eq!("alpha".parse(), Ok(Planes::Only(vec![Channel::Alpha])));
        assert_eq!("Grey".parse(), Ok(Planes::Gray));
        for word in ["", ",", "y,", "yy", "y,y", "x", "rgbx", "red", "cbcr", "cb,u"] {
            assert_eq!(
                word.parse::<Planes>(),
                Err(UnknownPlanes(word.to_owned())),
                "{word}"
            );
        }
    }
}
