//! Words that shells complete, for options that also take other values: the parser keeps its rules and
//! errors, and only adds the words.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};
use framepipe::filter::{Border, NAMED_MASKS, OWN_MASK};
use framepipe::frame::PixelFormat;
use framepipe::sink::video::{X26X_PRESETS, usual_encoders};
use std::ffi::OsStr;

/// The usual choices of `--planes`.
const PLANES: &[&str] = &[
    "all",
    "all+alpha",
    "luma",
    "gray",
    "chroma",
    "y",
    "u",
    "v",
    "r",
    "g",
    "b",
    "a",
];

/// Containers that most people want, by the extensions of their files.
const CONTAINERS: &[&str] = &[
    "mp4", "mov", "mkv", "webm", "avi", "gif", "apng", "webp", "ts", "mxf", "nut", "ogv",
];

/// A parser whose words are known to shells.
#[derive(Clone)]
pub(crate) struct Completing<P> {
    parser: P,
    words: fn() -> Vec<&'static str>,
}

impl<P: TypedValueParser> TypedValueParser for Completing<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.words)().into_iter().map(PossibleValue::new)))
    }
}

/// `parser`, with the names of all filters.
pub(crate) fn filters<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || {
        let names = NAMED_MASKS.iter().map(|named| named.name);
        names.chain([OWN_MASK]).collect()
    };
    Completing { parser, words }
}

/// `parser`, with the modes of borders.
pub(crate) fn borders<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || {
        let word = |border: Border| match border {
            // Its level follows.
            Border::Constant(_) => "constant:",
            border => border.name(),
        };
        Border::ALL.map(word).to_vec()
    };
    Completing { parser, words }
}

/// `parser`, with the choices of planes.
pub(crate) fn planes<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || PLANES.to_vec();
    Completing { parser, words }
}

/// `parser`, with the ways of filtering colour under alpha.
pub(crate) fn alpha<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || vec!["weighted", "straight"];
    Completing { parser, words }
}

/// `parser`, with the default encoders of containers.
pub(crate) fn encoders<P: TypedValueParser>(parser: P) -> Completing<P> {
    Completing {
        parser,
        words: usual_encoders,
    }
}

/// `parser`, with the pixel formats that framepipe filters.
pub(crate) fn pixel_formats<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || PixelFormat::all().map(PixelFormat::name).collect();
    Completing { parser, words }
}

/// `parser`, with containers.
pub(crate) fn containers<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || CONTAINERS.to_vec();
    Completing { parser, words }
}

/// `parser`, with presets.
pub(crate) fn presets<P: TypedValueParser>(parser: P) -> Completing<P> {
    let words = || X26X_PRESETS.to_vec();
    Completing { parser, words }
}

#[cfg(test)]
mod tests {
    use super::*;
    use framepipe::filter::{Chain, Planes};

    #[test]
    fn every_word_is_understood() {
        for word in PLANES {
            assert!(word.parse::<Planes>().is_ok(), "{word}");
        }
        for named in NAMED_MASKS {
            assert!(Chain::parse(named.name).is_ok(), "{}", named.name);
        }
        assert!(usual_encoders().contains(&"ffv1"));
        for word in CONTAINERS {
            assert!(framepipe::sink::video::extension_of(word).is_some(), "{word}");
        }
    }
}
