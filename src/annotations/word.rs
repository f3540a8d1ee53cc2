//! The words for what outputs lose, and lists of them.

use super::{Annotations, Density};

pub(super) const PROFILE: &str = "colour (ICC) profile";
pub(super) const EXIF: &str = "Exif";
pub(super) const XMP: &str = "XMP";
pub(super) const EXTENDED_XMP: &str = "extended XMP";
pub(super) const IPTC: &str = "IPTC";
pub(super) const RESOLUTION: &str = "resolution (DPI)";
pub(super) const ASPECT: &str = "pixel aspect ratio";
pub(super) const TEXT: &str = "text";
pub(super) const FURTHER_TEXTS: &str = "texts beyond the first 4096";
pub(super) const GAMMA: &str = "gamma";
pub(super) const CHROMATICITIES: &str = "chromaticities";
pub(super) const CICP: &str = "CICP colour";
pub(super) const SRGB: &str = "sRGB rendering intent";
pub(super) const HDR: &str = "HDR mastering data";
pub(super) const SIGNIFICANT_BITS: &str = "significant bits";
pub(super) const ORIENTATION: &str = "orientation";
pub(super) const TIME: &str = "time of change";
pub(super) const RESOURCES: &str = "Photoshop's resources";
pub(super) const LAYERS: &str = "Photoshop's layers";
pub(super) const MAKER_NOTE: &str = "MakerNote (JPEG, PNG and WebP alone keep its offsets right)";
pub(super) const LONG_NAMES: &str = "what of names of texts is beyond 79 letters";
pub(super) const LANGUAGE: &str = "languages and translated names of texts";

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
    let density = annotations.density.map_or(RESOLUTION, Density::word);
    for (there, word) in [
        (annotations.exif.is_some(), EXIF),
        (annotations.xmp.is_some(), XMP),
        (annotations.iptc.is_some(), IPTC),
        (annotations.density.is_some(), density),
        (!annotations.texts.is_empty(), TEXT),
        (annotations.gamma.is_some(), GAMMA),
        (annotations.chromaticities.is_some(), CHROMATICITIES),
        (annotations.cicp.is_some(), CICP),
        (annotations.has_hdr(), HDR),
        (annotations.significant_bits.is_some(), SIGNIFICANT_BITS),
        (annotations.time.is_some(), TIME),
        (orientation.is_some_and(|o| o > 1), ORIENTATION),
    ] {
        if there {
            once(lost, word);
        }
    }
}
