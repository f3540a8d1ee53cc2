//! The words for what can be lost.

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
pub(super) const HDR: &str = "HDR mastering data";
pub(super) const SIGNIFICANT_BITS: &str = "significant bits";
pub(super) const ORIENTATION: &str = "orientation";
pub(super) const TIME: &str = "time of change";
pub(super) const RESOURCES: &str = "Photoshop's resources";
pub(super) const LAYERS: &str = "Photoshop's layers";
pub(super) const MAKER_NOTE: &str = "MakerNote (JPEG, PNG and WebP alone keep its offsets right)";
pub(super) const LANGUAGE: &str = "languages and translated names of texts";
