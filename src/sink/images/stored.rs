//! Which samples each kind of file stores for frames of a format, and what must be converted before.

use crate::frame::{Channel, ColourModel, PixelFormat};
use crate::media::convert::flatten::flat_format;
use crate::media::convert::integers_for;
use crate::media::still::ImageKind;
use crate::wording::and_list;
use image::ExtendedColorType;

/// What frames have.
struct Colours {
    gray: bool,
    alpha: bool,
    /// Samples of more than 8 bits.
    deep: bool,
}

/// What is stored for samples of such colours; `None` if the kind cannot hold them.
fn stored_channels(kind: ImageKind, colours: &Colours) -> Option<&'static [Channel]> {
    use ImageKind::{Bmp, Dpx, Hdr, Ico, Jpeg, Pfm, Pgm, Ppm, Qoi, Tga};
    if !kind.is_written() || colours.deep && !kind.is_deep() {
        return None;
    }
    let channels = match (kind, colours.gray, colours.alpha) {
        (Ppm | Qoi | Hdr | Ico, true, false) => RGB,
        (Pgm, false, _) | (Pgm | Ppm | Pfm | Jpeg | Hdr, _, true) => return None,
        // None has gray with alpha: the gray goes to all three.
        (Bmp | Dpx | Tga | Qoi | Ico, true, true) => RGBA,
        (_, true, true) => LA,
        (_, true, false) => L,
        (_, false, false) => RGB,
        (_, false, true) => RGBA,
    };
    Some(channels)
}

const L: &[Channel] = &[Channel::Luma];
const LA: &[Channel] = &[Channel::Luma, Channel::Alpha];
const RGB: &[Channel] = &[Channel::Red, Channel::Green, Channel::Blue];
const RGBA: &[Channel] = &[Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha];

/// The samples of a file: which, in order, and whether of 16 bits, or floating-point numbers of 32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) channels: &'static [Channel],
    pub(super) deep: bool,
    pub(super) float: bool,
}

impl Stored {
    pub(super) fn color_type(self) -> ExtendedColorType {
        match (self.channels.len(), self.deep) {
            (1, false) => ExtendedColorType::L8,
            (2, false) => ExtendedColorType::La8,
            (3, false) => ExtendedColorType::Rgb8,
            (_, false) => ExtendedColorType::Rgba8,
            (1, true) => ExtendedColorType::L16,
            (2, true) => ExtendedColorType::La16,
            (3, true) => ExtendedColorType::Rgb16,
            (_, true) => ExtendedColorType::Rgba16,
        }
    }
}

/// What is stored for frames of `format`; `None` if they must be converted first or cannot be held, and for
/// OpenEXR, which holds whatever channels there are.
pub(super) fn stored(kind: ImageKind, format: PixelFormat) -> Option<Stored> {
    let float = format.is_float();
    let fits = if float {
        kind.holds_floats()
    } else {
        !kind.is_float_only()
    };
    if !fits || kind == ImageKind::Exr || matches!(format.model(), ColourModel::Yuv | ColourModel::Data) {
        return None;
    }
    let deep = format.depth() > 8;
    let colours = Colours {
        gray: format.model() == ColourModel::Gray,
        alpha: format.has_alpha(),
        deep,
    };
    let channels = stored_channels(kind, &colours)?;
    Some(Stored {
        channels,
        deep,
        float,
    })
}

/// True if frames of `format` are written to files of `kind` as they are: components reordered and 9 to 14
/// bits scaled to 16 at most, so that nothing is lost.
pub fn accepts(kind: ImageKind, format: PixelFormat) -> bool {
    stored(kind, format).is_some() || kind == ImageKind::Exr && format.is_float()
}

/// The format that a converter should make of `format` before it is written to files of `kind`: itself if it
/// is accepted, RGB of 8 or 16 bits for YUV, integers for floating-point samples and the other way round,
/// where the kind holds nothing else; `None` if the kind cannot hold it without loss (deep samples or alpha
/// in a JPEG).
pub fn nearest(kind: ImageKind, format: PixelFormat) -> Option<PixelFormat> {
    if accepts(kind, format) {
        return Some(format);
    }
    let gray = format.model() == ColourModel::Gray;
    if format.is_float() {
        let whole = integers_for(format)?;
        let short = match (gray, format.has_alpha()) {
            (true, false) => PixelFormat::GRAY,
            (true, true) => PixelFormat::YA8,
            (false, false) => PixelFormat::RGB24,
            (false, true) => PixelFormat::RGBA,
        };
        return [whole, short].into_iter().find(|&format| accepts(kind, format));
    }
    if kind.is_float_only() {
        let float = match (gray, format.has_alpha()) {
            (true, false) => PixelFormat::GRAYF32,
            (true, true) => PixelFormat::YAF32,
            (false, false) => PixelFormat::RGBF32,
            (false, true) => PixelFormat::RGBAF32,
        };
        return Some(float).filter(|&format| accepts(kind, format));
    }
    if format.model() != ColourModel::Yuv {
        return None;
    }
    let name = match (format.has_alpha(), format.depth() > 8) {
        (false, false) => "rgb24",
        (true, false) => "rgba",
        (false, true) => "rgb48le",
        (true, true) => "rgba64le",
    };
    PixelFormat::from_name(name).filter(|&f| accepts(kind, f))
}

/// True for a format that files of `kind` hold but for its alpha: they hold the frames that are opaque.
pub fn holds_opaque(kind: ImageKind, format: PixelFormat) -> bool {
    format.has_alpha() && nearest(kind, format).is_none() && nearest(kind, flat_format(format)).is_some()
}

/// True if files of `kind` hold alpha beside some colours.
fn holds_alpha(kind: ImageKind) -> bool {
    let holds = |gray| {
        let colours = Colours {
            gray,
            alpha: true,
            deep: false,
        };
        stored_channels(kind, &colours).is_some()
    };
    holds(true) || holds(false)
}

/// Why frames of `format` cannot be written as `kind`, and what would do.
pub(super) fn cannot_hold(kind: ImageKind, format: PixelFormat) -> String {
    match nearest(kind, format) {
        Some(near) => format!(
            "{kind} cannot hold {format} frames; convert them to {near} first (--pixel-format {near})"
        ),
        None if format.model() == ColourModel::Data => {
            format!(
                "{kind} cannot hold {format} frames, whose channels are not colours; write OpenEXR (.exr), \
                 or have R, G, B and A alone filtered by --pixel-format rgbaf32"
            )
        }
        None => {
            let lost = [
                (
                    kind == ImageKind::Pgm && format.model() != ColourModel::Gray,
                    "colour",
                ),
                (format.depth() > 8 && !kind.is_deep(), "depth"),
                (format.has_alpha() && !holds_alpha(kind), "alpha"),
            ];
            let lost = lost
                .into_iter()
                .filter_map(|(is_lost, word)| is_lost.then_some(word));
            let lost: Vec<&str> = lost.collect();
            let or = match lost[..] {
                ["alpha"] => ", or blend the picture with a colour by --background white",
                _ => "",
            };
            format!(
                "{kind} cannot hold {format} frames without losing {}; write PNG or TIFF{or}",
                and_list(&lost)
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str) -> PixelFormat {
        PixelFormat::from_name(name).unwrap()
    }

    #[test]
    fn the_nearest_format_is_one_that_the_kind_holds() {
        use ImageKind::{Bmp, Dpx, Exr, Hdr, Jp2, Jpeg, Jxl, Pfm, Pgm, Png, Pnm, Ppm, Qoi, Tga, Tiff, WebP};
        for kind in [
            Png, Jpeg, Tiff, Bmp, WebP, Pnm, Pgm, Ppm, Exr, Dpx, Tga, Pfm, Jxl, Jp2, Qoi, Hdr,
        ] {
            for f in PixelFormat::integers() {
                if let Some(near) = nearest(kind, f) {
                    assert!(accepts(kind, near), "{kind} {f} -> {near}");
                    assert!(near.depth() >= f.depth() && near.has_alpha() == f.has_alpha());
                }
            }
            assert_eq!(kind.extension().parse::<ImageKind>().unwrap(), kind);
        }
        let near = |kind, name: &str| nearest(kind, format(name)).map(PixelFormat::name);
        assert_eq!(near(Png, "yuv420p10le"), Some("rgb48le"));
        assert_eq!(near(Jpeg, "nv12"), Some("rgb24"));
        assert_eq!(near(Jpeg, "rgba"), None);
        assert_eq!(near(Jpeg, "gray16le"), None);
        assert_eq!(near(WebP, "yuv420p10le"), None);
        assert_eq!(near(Pgm, "rgb24"), None);
        assert_eq!(near(Ppm, "gray"), Some("gray"));
        assert_eq!(near(Tiff, "gbrp12le"), Some("gbrp12le"));
        assert_eq!(near(Exr, "yuva444p"), Some("rgbaf32le"));
        assert_eq!(near(Exr, "gray10le"), Some("grayf32le"));
        assert_eq!(near(Exr, "f16x7"), Some("f16x7"));
        assert_eq!(near(Hdr, "gray"), Some("grayf32le"));
        assert_eq!(near(Png, "gbrapf16le"), Some("rgba64le"));
        assert_eq!(near(Jpeg, "rgbf32le"), Some("rgb24"));
        assert_eq!(near(Jpeg, "rgbaf32le"), None);
        assert_eq!(near(Tiff, "rgbaf32le"), Some("rgbaf32le"));
        assert_eq!(near(Png, "f32x3"), None);
        assert_eq!(near(Tga, "gray10le"), None);
        assert_eq!(near(Pfm, "ya8"), None);
        for kind in [Jpeg, Tga, Qoi, Bmp, WebP, Pgm, Ppm, Pfm, Hdr] {
            for f in PixelFormat::integers().filter(|&f| nearest(kind, f).is_none()) {
                let said = cannot_hold(kind, f);
                let names_none = said.contains("losing ;");
                assert!(!names_none, "{said}");
            }
        }
        assert!(cannot_hold(Pgm, format("rgb48le")).contains("without losing colour;"));
        assert!(cannot_hold(Tga, format("rgb48le")).contains("without losing depth;"));
        assert!(holds_opaque(Pfm, format("ya8")) && !holds_opaque(Png, format("rgba")));
        assert!(!holds_opaque(Jpeg, format("rgba64le")) && !holds_opaque(Jpeg, format("rgb48le")));
        assert!(cannot_hold(Jpeg, format("rgba64le")).contains("depth and alpha; write PNG or TIFF"));
    }
}
