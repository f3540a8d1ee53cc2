//! Facts about a picture: everything besides its samples that a reader needs to show it correctly.
//!
//! [`said`] lists all that a frame says, field by field, so that a new field of [`Metadata`] cannot be
//! forgotten here. A sink accounts for each fact: carried, converted in the samples, or reported as lost.
//! Alpha and palettes are not facts in this sense: they are part of the pixel format.

use super::colour::meant_location;
use super::matrix::name_in;
use crate::frame::{
    AlphaKind, Colour, ColourModel, FieldOrder, Metadata, PixelFormat, Range, SideData, Turn,
};
use std::collections::BTreeMap;

pub use super::matrix::matrix_name;

/// One kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fact {
    /// Which sample values stand for black and white.
    Range,
    /// Coefficients between RGB and YUV.
    Matrix,
    /// Colour primaries.
    Primaries,
    /// Transfer characteristics.
    Transfer,
    /// Where chroma samples lie between luma samples.
    ChromaLocation,
    /// Progressive, or which field comes first.
    FieldOrder,
    /// Width over height of a pixel.
    PixelAspect,
    /// How the picture is turned or mirrored when it is shown.
    Rotation,
    /// The display that the pictures were graded on (SMPTE ST 2086).
    MasteringDisplay,
    /// Brightest pixel and brightest mean (CTA-861.3).
    ContentLight,
    /// Dynamic metadata of SMPTE ST 2094-40.
    Hdr10Plus,
    /// Dolby Vision's dynamic metadata.
    DolbyVision,
    /// Dynamic metadata of CUVA 005.1.
    HdrVivid,
    /// Closed captions of ATSC A/53.
    Captions,
    /// Active format description.
    ActiveFormat,
    /// Pan-and-scan offsets.
    PanScan,
    /// SMPTE ST 12 time code.
    Timecode,
    /// Time code of MPEG's groups of pictures.
    GopTimecode,
    /// Two views in one picture.
    Stereo,
    /// A projection of a sphere.
    Spherical,
    /// An ICC colour profile.
    IccProfile,
    /// Metadata of an image file: Exif, XMP, resolution, texts.
    Annotations,
    /// Windows, attributes and names of an OpenEXR file.
    Exr,
    /// Colour is multiplied by its alpha.
    AssociatedAlpha,
    /// A block of FFmpeg's that this list does not know, by FFmpeg's number.
    Other(u32),
}

impl Fact {
    /// The word for it in a message.
    pub fn word(self) -> &'static str {
        match self {
            Fact::Range => "range",
            Fact::Matrix => "matrix",
            Fact::Primaries => "primaries",
            Fact::Transfer => "transfer",
            Fact::ChromaLocation => "chroma location",
            Fact::FieldOrder => "field order",
            Fact::PixelAspect => "pixel aspect",
            Fact::Rotation => "rotation",
            Fact::MasteringDisplay => "mastering display",
            Fact::ContentLight => "content light level",
            Fact::Hdr10Plus => "HDR10+ dynamic metadata",
            Fact::DolbyVision => "Dolby Vision dynamic metadata",
            Fact::HdrVivid => "HDR Vivid dynamic metadata",
            Fact::Captions => "A/53 closed captions",
            Fact::ActiveFormat => "active format description",
            Fact::PanScan => "pan and scan",
            Fact::Timecode => "SMPTE time code",
            Fact::GopTimecode => "GOP time code",
            Fact::Stereo => "stereo 3D mark",
            Fact::Spherical => "spherical video mark",
            Fact::IccProfile => "ICC profile",
            Fact::Annotations => "annotations of stills",
            Fact::Exr => "attributes of OpenEXR",
            Fact::AssociatedAlpha => "that colours are multiplied by alpha",
            Fact::Other(_) => "other side data",
        }
    }

    /// True for a fact whose value counts, not only that it is there.
    fn has_value(self) -> bool {
        match self {
            Fact::Range
            | Fact::Matrix
            | Fact::Primaries
            | Fact::Transfer
            | Fact::ChromaLocation
            | Fact::FieldOrder
            | Fact::PixelAspect
            | Fact::Rotation
            | Fact::ActiveFormat
            | Fact::Timecode
            | Fact::GopTimecode => true,
            Fact::MasteringDisplay
            | Fact::ContentLight
            | Fact::Hdr10Plus
            | Fact::DolbyVision
            | Fact::HdrVivid
            | Fact::Captions
            | Fact::PanScan
            | Fact::Stereo
            | Fact::Spherical
            | Fact::IccProfile
            | Fact::Annotations
            | Fact::Exr
            | Fact::AssociatedAlpha
            | Fact::Other(_) => false,
        }
    }

    /// True for a fact that says which colours samples are, or how a display is to show them.
    #[cfg(feature = "images")]
    pub(crate) fn is_of_colours(self) -> bool {
        matches!(
            self,
            Fact::Range
                | Fact::Matrix
                | Fact::Primaries
                | Fact::Transfer
                | Fact::IccProfile
                | Fact::MasteringDisplay
                | Fact::ContentLight
                | Fact::Hdr10Plus
                | Fact::DolbyVision
                | Fact::HdrVivid
        )
    }

    /// True for what pictures may have beside the fields that all have: a block of side data, or a mark. The
    /// fields are stated by each frame again, so that a frame without one is another one.
    pub fn is_side_block(self) -> bool {
        match self {
            Fact::Range
            | Fact::Matrix
            | Fact::Primaries
            | Fact::Transfer
            | Fact::ChromaLocation
            | Fact::FieldOrder
            | Fact::PixelAspect => false,
            Fact::Rotation
            | Fact::MasteringDisplay
            | Fact::ContentLight
            | Fact::Hdr10Plus
            | Fact::DolbyVision
            | Fact::HdrVivid
            | Fact::Captions
            | Fact::ActiveFormat
            | Fact::PanScan
            | Fact::Timecode
            | Fact::GopTimecode
            | Fact::Stereo
            | Fact::Spherical
            | Fact::IccProfile
            | Fact::Annotations
            | Fact::Exr
            | Fact::AssociatedAlpha
            | Fact::Other(_) => true,
        }
    }

    /// True for a fact that outputs state once for all frames, so that its change in mid-stream is lost.
    pub fn is_constant(self) -> bool {
        match self {
            Fact::Rotation
            | Fact::MasteringDisplay
            | Fact::ContentLight
            | Fact::Stereo
            | Fact::Spherical
            | Fact::AssociatedAlpha
            | Fact::IccProfile => true,
            _ => !self.is_side_block(),
        }
    }
}

/// Facts with their values in words; empty if only the presence of the fact matters.
pub type Facts = BTreeMap<Fact, String>;

/// The pictures that facts are about: kind of samples and height. The usual values depend on them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Samples {
    /// The family of components.
    pub model: ColourModel,
    /// log2 of how many pixels a sample of chroma stands for, across and down.
    pub subsampling: (u32, u32),
    /// Rows of the picture.
    pub height: usize,
}

impl Samples {
    /// Samples of a native format.
    pub fn of(format: PixelFormat, height: usize) -> Samples {
        Samples {
            model: format.model(),
            subsampling: format.chroma_subsampling(),
            height,
        }
    }

    /// True if black is above zero under these facts.
    pub fn is_limited(self, range: Range) -> bool {
        match range {
            Range::Limited => self.model != ColourModel::Rgb,
            Range::Full => false,
            Range::Unspecified => self.model == ColourModel::Yuv,
        }
    }
}

/// All facts that a frame states, and the range even if it follows from the format alone.
pub fn said(metadata: &Metadata, samples: Samples) -> Facts {
    // Without `..`, so that a field that is added must be looked at here.
    let Metadata {
        pts: _,
        duration: _,
        skipped: _,
        #[cfg(feature = "ffmpeg")]
        annotations,
        #[cfg(feature = "images")]
        exr,
        stands_in: _,
        has_no_numbers: _,
        colour:
            Colour {
                range,
                primaries,
                transfer,
                matrix,
                chroma_location,
                alpha,
            },
        sample_aspect,
        field_order,
        file: _,
        icc_profile,
        orientation,
        side_data,
    } = metadata;
    let mut facts = Facts::new();
    if samples.model != ColourModel::Rgb {
        let word = if samples.is_limited(*range) {
            "limited"
        } else {
            "full"
        };
        facts.insert(Fact::Range, word.to_owned());
    }
    if samples.model == ColourModel::Yuv && *matrix != 2 {
        facts.insert(Fact::Matrix, matrix_name(*matrix));
    }
    if *primaries != 2 {
        facts.insert(Fact::Primaries, name_in(PRIMARIES, *primaries));
    }
    if *transfer != 2 {
        facts.insert(Fact::Transfer, name_in(TRANSFERS, *transfer));
    }
    if samples.subsampling != (0, 0) && *chroma_location != 0 {
        let meant = meant_location(*chroma_location, samples.subsampling);
        facts.insert(Fact::ChromaLocation, name_in(LOCATIONS, meant));
    }
    if *field_order != FieldOrder::Progressive {
        facts.insert(Fact::FieldOrder, order_word(*field_order).to_owned());
    }
    if let (num @ 1.., den @ 1..) = *sample_aspect {
        facts.insert(Fact::PixelAspect, format!("{num}:{den}"));
    }
    if icc_profile.is_some() {
        facts.insert(Fact::IccProfile, String::new());
    }
    #[cfg(feature = "ffmpeg")]
    if let Some(words) = annotations.as_ref().map(|a| a.words()).filter(|w| !w.is_empty()) {
        facts.insert(Fact::Annotations, words);
    }
    #[cfg(feature = "images")]
    if let Some(words) = exr.as_ref().map(|part| part.words()).filter(|w| !w.is_empty()) {
        facts.insert(Fact::Exr, words.to_owned());
    }
    if *alpha == AlphaKind::Associated {
        facts.insert(Fact::AssociatedAlpha, String::new());
    }
    if let Some(turn) = orientation.and_then(Turn::from_exif).filter(|t| !t.is_upright()) {
        facts.insert(Fact::Rotation, turn.word().to_owned());
    }
    for block in side_data {
        if let Some(value) = block_value(block) {
            facts.insert(block.fact, value);
        }
    }
    facts
}

/// The value of a block in words; `None` if it is the usual one.
pub(crate) fn block_value(block: &SideData) -> Option<String> {
    let number = |index: usize| -> Option<i32> {
        let bytes = block.data.get(4 * index..4 * index + 4)?;
        Some(i32::from_ne_bytes(bytes.try_into().ok()?))
    };
    let fraction = |index: usize| Some(f64::from(number(index)?) / f64::from(number(index + 1)?.max(1)));
    match block.fact {
        Fact::Rotation => match Turn::from_matrix(&block.data) {
            Some(turn) => (!turn.is_upright()).then(|| turn.word().to_owned()),
            None => {
                let angle = f64::from(number(1)?).atan2(f64::from(number(0)?)).to_degrees();
                Some(format!("{angle:.1} degrees clockwise, or scaled or sheared"))
            }
        },
        Fact::MasteringDisplay => Some(match (number(21), fraction(16), fraction(18)) {
            (Some(1..), Some(least), Some(most)) => format!("{least} to {most} cd/m2"),
            _ => String::new(),
        }),
        Fact::ContentLight => match (number(0)?, number(1)?) {
            (0, 0) => None,
            (most, mean) => Some(format!("{most} at most, {mean} in the mean")),
        },
        Fact::ActiveFormat => block.data.first().map(u8::to_string),
        Fact::PanScan => {
            // Number, width and height, then three pairs of 16 bits: the offsets.
            let offsets = block.data.get(12..24)?;
            offsets.iter().any(|&b| b != 0).then(String::new)
        }
        Fact::Stereo => (number(0)? != 0).then(String::new),
        Fact::Timecode => {
            // How many there are, then up to three of 32 bits. 0 is a header's field that nobody filled in,
            // or the first of a stream's, whose others are missed; each byte has a decimal digit below, which
            // a field that says nothing has not (all bits, in DPX).
            let code = number(1)?;
            let is_time = code != 0 && (0..4).all(|byte| code >> (8 * byte) & 15 < 10);
            is_time.then(|| format!("{code:#010x}"))
        }
        Fact::GopTimecode => {
            let bits = i64::from_ne_bytes(block.data.get(..8)?.try_into().ok()?);
            // A bit for dropped numbers, hours, minutes, seconds and pictures, with a marker bit in between.
            // Nearly every stream counts from zero, and a part of one from where it was cut; only a time of
            // day was set on purpose.
            let part = |shift: u32, mask: i64| (bits >> shift) & mask;
            let (hours, minutes) = (part(19, 0x1f), part(13, 0x3f));
            let (seconds, pictures) = (part(6, 0x3f), part(0, 0x3f));
            let dot = if part(24, 1) == 1 { ';' } else { ':' };
            let text = format!("{hours:02}:{minutes:02}:{seconds:02}{dot}{pictures:02}");
            (hours > 0).then_some(text)
        }
        Fact::Other(_) => Some(block.name.clone().unwrap_or_default()),
        Fact::Hdr10Plus
        | Fact::DolbyVision
        | Fact::HdrVivid
        | Fact::Captions
        | Fact::Spherical
        | Fact::IccProfile
        | Fact::Annotations
        | Fact::Exr
        | Fact::AssociatedAlpha
        | Fact::Range
        | Fact::Matrix
        | Fact::Primaries
        | Fact::Transfer
        | Fact::ChromaLocation
        | Fact::FieldOrder
        | Fact::PixelAspect => Some(String::new()),
    }
}

/// True if `value` is the one that readers assume if the fact is missing.
pub fn is_usual(fact: Fact, value: &str, samples: Samples) -> bool {
    let high = samples.height >= 720;
    match fact {
        Fact::Range => (value == "limited") == samples.is_limited(Range::Unspecified),
        Fact::Matrix | Fact::Primaries => match value {
            "bt709" => high || !samples.is_yuv() && fact == Fact::Primaries,
            "bt470bg" | "smpte170m" => !high,
            _ => false,
        },
        Fact::Transfer => canonical(fact, value) == "bt709" || value == "iec61966-2-1" && !samples.is_yuv(),
        Fact::ChromaLocation => value == "left",
        Fact::FieldOrder => value == "progressive",
        Fact::PixelAspect => ratio(value).is_some_and(|r| (r - 1.0).abs() < 1e-9),
        // Nobody assumes what pictures may have beside these.
        _ => false,
    }
}

/// True if a reader that finds `read` takes it for `value`.
pub fn survives(fact: Fact, value: &str, read: Option<&str>, samples: Samples) -> bool {
    match read {
        None => is_usual(fact, value, samples),
        // Primaries alone are not what was said of the luminance.
        Some(read) if fact == Fact::MasteringDisplay => value.is_empty() || !read.is_empty(),
        Some(_) if !fact.has_value() => true,
        // No picture has so many pixels a row that this makes one of them.
        Some(read) if fact == Fact::PixelAspect => match (ratio(read), ratio(value)) {
            (Some(a), Some(b)) => (a / b - 1.0).abs() < 1e-6,
            _ => false,
        },
        Some(read) => canonical(fact, read) == canonical(fact, value),
    }
}

impl Samples {
    fn is_yuv(self) -> bool {
        self.model == ColourModel::Yuv
    }
}

/// One name for values that mean the same.
fn canonical(fact: Fact, value: &str) -> &str {
    match (fact, value) {
        (Fact::Matrix, "bt470bg") => "smpte170m",
        (Fact::Transfer, "smpte170m" | "bt2020-10" | "bt2020-12") => "bt709",
        _ => value,
    }
}

fn ratio(text: &str) -> Option<f64> {
    let (num, den) = text.split_once(':')?;
    Some(num.parse::<f64>().ok()? / den.parse::<f64>().ok()?)
}

/// A field order in words. How the lines of the fields are stored is the container's own affair: the pictures
/// are the same, and codecs that state the order themselves have no word for it.
pub fn order_word(order: FieldOrder) -> &'static str {
    match order {
        FieldOrder::Progressive => "progressive",
        FieldOrder::TopFirst | FieldOrder::TopFirstInterleaved => "top field first",
        FieldOrder::BottomFirst | FieldOrder::BottomFirstInterleaved => "bottom field first",
        FieldOrder::Mixed => "mixed",
    }
}

/// The value that readers assume if the fact is missing, in words.
pub fn unsaid(fact: Fact) -> &'static str {
    match fact {
        Fact::FieldOrder => "progressive",
        Fact::PixelAspect => "1:1",
        Fact::Rotation => "upright",
        _ => "unspecified",
    }
}

/// FFmpeg's names of H.273's colour primaries.
const PRIMARIES: &[&str] = &[
    "",
    "bt709",
    "",
    "",
    "bt470m",
    "bt470bg",
    "smpte170m",
    "smpte240m",
    "film",
    "bt2020",
    "smpte428",
    "smpte431",
    "smpte432",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "",
    "ebu3213",
];

/// FFmpeg's names of H.273's transfer characteristics.
const TRANSFERS: &[&str] = &[
    "",
    "bt709",
    "",
    "",
    "bt470m",
    "bt470bg",
    "smpte170m",
    "smpte240m",
    "linear",
    "log100",
    "log316",
    "iec61966-2-4",
    "bt1361e",
    "iec61966-2-1",
    "bt2020-10",
    "bt2020-12",
    "smpte2084",
    "smpte428",
    "arib-std-b67",
];

/// FFmpeg's names of chroma locations.
const LOCATIONS: &[&str] = &["", "left", "center", "topleft", "top", "bottomleft", "bottom"];

/// FFmpeg's name of a chroma location, or its number.
pub fn location_name(location: u8) -> String {
    name_in(LOCATIONS, location)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SD: Samples = Samples {
        model: ColourModel::Yuv,
        subsampling: (1, 1),
        height: 576,
    };

    #[test]
    fn a_frame_says_what_is_not_left_open() {
        let mut metadata = Metadata::default();
        let facts = said(&metadata, SD);
        assert_eq!(
            facts.into_iter().collect::<Vec<_>>(),
            [(Fact::Range, "limited".to_owned())]
        );
        metadata.colour.transfer = 16;
        metadata.colour.chroma_location = 3;
        metadata.sample_aspect = (16, 11);
        metadata.orientation = Some(6);
        let facts = said(&metadata, SD);
        assert_eq!(facts[&Fact::Transfer], "smpte2084");
        assert_eq!(facts[&Fact::ChromaLocation], "topleft");
        // With a sample in every row, as in DV, that is no more than the left.
        let of_dv = Samples {
            subsampling: (2, 0),
            ..SD
        };
        let value = &said(&metadata, of_dv)[&Fact::ChromaLocation];
        assert!(is_usual(Fact::ChromaLocation, value, of_dv), "{value}");
        assert_eq!(facts[&Fact::PixelAspect], "16:11");
        assert_eq!(facts[&Fact::Rotation], "90 degrees clockwise");
    }

    #[test]
    fn a_time_code_is_decimal_digits() {
        let said = |code: u32| {
            let mut metadata = Metadata::default();
            metadata.side_data.push(SideData {
                kind: 0,
                fact: Fact::Timecode,
                name: None,
                data: [1_u32, code].map(u32::to_ne_bytes).concat().into(),
            });
            said(&metadata, SD).get(&Fact::Timecode).cloned()
        };
        assert_eq!(said(0x2459_5923), Some("0x24595923".to_owned()));
        // The marks of fields and of dropped frames are in the upper digits.
        assert_eq!(said(0xe4d9_d9e3), Some("0xe4d9d9e3".to_owned()));
        for nothing in [0, u32::MAX, 0x0a00_0000, 0x0000_0f00] {
            assert_eq!(said(nothing), None, "{nothing:#x}");
        }
    }

    #[test]
    fn what_everybody_assumes_need_not_be_said() {
        let hd = Samples { height: 1080, ..SD };
        assert!(survives(Fact::Matrix, "bt709", None, hd));
        assert!(!survives(Fact::Matrix, "bt709", None, SD));
        let gray = Samples {
            model: ColourModel::Gray,
            ..SD
        };
        assert!(survives(Fact::Primaries, "bt709", None, gray));
        assert!(
            !survives(Fact::Primaries, "bt709", None, SD) && !survives(Fact::Primaries, "bt2020", None, gray)
        );
        assert!(survives(Fact::Matrix, "bt470bg", Some("smpte170m"), SD));
        assert!(!survives(Fact::Matrix, "bt709", Some("smpte170m"), hd));
        assert!(!survives(Fact::Range, "full", None, SD));
        assert!(survives(Fact::PixelAspect, "1:1", None, SD));
        assert!(survives(Fact::PixelAspect, "64:45", Some("128:90"), SD));
        assert!(!survives(Fact::PixelAspect, "16:11", Some("93:64"), SD));
        assert!(!survives(Fact::Rotation, "180 degrees", None, SD));
    }
}
