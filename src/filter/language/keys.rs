//! The keys and names of filters: common keys, those of the user's own masks, and names of masks.

use crate::filter::masks::named::{NAMED_MASKS, Others, named_mask};

/// The word that begins a filter whose mask the user states.
pub const OWN_MASK: &str = "mask";

/// A key of the grammar that is no parameter of a named mask.
#[derive(Debug)]
pub struct Key {
    /// The word before the equals sign.
    pub name: &'static str,
    /// What follows it, and what that does.
    pub about: &'static str,
}

/// What every filter takes.
pub static COMMON_KEYS: &[Key] = &[
    Key {
        name: "bias",
        about: "added to luma and RGB results, in levels of 8-bit pixels (default 0)",
    },
    Key {
        name: "flip",
        about: "true turns the mask by 180 degrees: convolution instead of correlation (default false)",
    },
    Key {
        name: "scale",
        about: "what results are multiplied by, before the bias is added; from 0.001 to 1000 (default 1)",
    },
    Key {
        name: ABS,
        about: "true takes absolute values, so that edges of either sign are bright (default false); not of \
                filters whose results are never negative",
    },
];

/// The key that takes absolute values, which filters without negative results do not have.
pub(super) const ABS: &str = "abs";

/// Keys that may stand without `=true`.
pub(super) const SWITCHES: [&str; 2] = ["flip", ABS];

/// What [`OWN_MASK`] takes besides.
pub static OWN_MASK_KEYS: &[Key] = &[
    Key {
        name: "file",
        about: "a mask file: rows of numbers, # comments, and perhaps lines 'divisor N' and 'bias N'",
    },
    Key {
        name: "rows",
        about: "or the rows themselves, separated by semicolons: rows=1 2 1;2 4 2;1 2 1",
    },
    Key {
        name: "divisor",
        about: "what the numbers are divided by, or 'sum' for their sum (default 1, or the file's)",
    },
];

/// Names that other programs have for masks with the same values.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("gblur", "gaussian"),
    ("gaussianblur", "gaussian"),
    ("gauss", "gaussian"),
];

/// The name in the table of masks, or [`OWN_MASK`], that a word means, in upper or lower case.
pub(super) fn mask_name(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let other = OTHER_NAMES.iter().find(|(other, _)| *other == word);
    other
        .map(|&(_, name)| name)
        .or_else(|| names().find(|name| *name == word))
}

/// The keys that may be left out before their values, in order.
pub(super) fn places(name: &str) -> Vec<&'static str> {
    match mask_name(name) {
        Some(OWN_MASK) => vec!["rows"],
        known => {
            let parameters = known.and_then(named_mask).map_or(&[][..], |m| m.parameters);
            parameters.iter().map(|p| p.name).collect()
        }
    }
}

/// All keys of the filter `name`.
pub(super) fn known_keys(name: &str) -> Vec<&'static str> {
    let known = mask_name(name);
    let own = if known == Some(OWN_MASK) {
        OWN_MASK_KEYS
    } else {
        &[]
    };
    let named = known.and_then(named_mask);
    let parameters = named.map_or(&[][..], |m| m.parameters);
    let is_signed = named.is_none_or(|m| matches!(m.others, Others::None));
    parameters
        .iter()
        .map(|p| p.name)
        .chain(own.iter().chain(COMMON_KEYS).map(|k| k.name))
        .filter(|&key| is_signed || key != ABS)
        .collect()
}

/// All names of filters.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    NAMED_MASKS
        .iter()
        .flat_map(|m| [Some(m.name), m.alias])
        .flatten()
        .chain([OWN_MASK])
}
