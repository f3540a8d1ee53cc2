//! The names of what outputs lose.

use super::{Annotations, Density, word};

/// Adds a name that is not there yet.
pub(super) fn once(words: &mut Vec<&'static str>, word: &'static str) {
    if !words.contains(&word) {
        words.push(word);
    }
}

/// Adds a name of what is left out, unless it is there already, or `most` names are.
pub(super) fn name_once(names: &mut Vec<String>, name: String, most: usize) {
    if names.len() < most && !names.contains(&name) {
        names.push(name);
    }
}

/// Names all of the annotations: the file is none that they could be put into.
pub(super) fn all_lost(annotations: &Annotations, orientation: Option<u8>, lost: &mut Vec<&'static str>) {
    let density = annotations.density.map_or(word::RESOLUTION, Density::word);
    for (there, word) in [
        (annotations.exif.is_some(), word::EXIF),
        (annotations.xmp.is_some(), word::XMP),
        (annotations.iptc.is_some(), word::IPTC),
        (annotations.density.is_some(), density),
        (!annotations.texts.is_empty(), word::TEXT),
        (annotations.gamma.is_some(), word::GAMMA),
        (annotations.chromaticities.is_some(), word::CHROMATICITIES),
        (annotations.cicp.is_some(), word::CICP),
        (annotations.has_hdr(), word::HDR),
        (annotations.significant_bits.is_some(), word::SIGNIFICANT_BITS),
        (annotations.time.is_some(), word::TIME),
        (orientation.is_some_and(|o| o > 1), word::ORIENTATION),
    ] {
        if there {
            once(lost, word);
        }
    }
}
