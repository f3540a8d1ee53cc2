//! The losses of a conversion between pixel formats, and the format that loses least.

use crate::frame::PixelFormat;
use crate::media::ffmpeg::{AvFormat, FormatFacts};

/// The damage of a conversion, worst kind first; compare with `<`. The most visible damage counts most: a
/// picture without its alpha is another picture, while RGB as YUV looks the same. A conversion that keeps
/// every sample comes first in any case.
///
/// The fields: alpha, colour or RGB/YUV exactness, bits of depth, chroma resolution, then what is merely
/// wasted: components, bits, chroma samples, and a different arrangement of planes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Loss([u32; 8]);

impl Loss {
    /// True if every sample value survives.
    pub(crate) fn is_lossless(self) -> bool {
        self.0[..4].iter().all(|&part| part == 0)
    }

    /// The losses in words, worst first.
    pub(crate) fn words(self) -> Vec<&'static str> {
        let colour = if self.0[1] >= GRAY_ONLY {
            "colour"
        } else {
            "exact colour"
        };
        ["alpha", colour, "depth", "chroma resolution"]
            .into_iter()
            .zip(self.0)
            .filter_map(|(word, part)| (part > 0).then_some(word))
            .collect()
    }
}

/// The weight of colour that becomes gray.
const GRAY_ONLY: u32 = 8;

/// The family of components, as swscale treats it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Gray,
    Yuv,
    Rgb,
}

fn family(facts: &FormatFacts) -> Family {
    // XYZ bears no flag of its own; swscale reads it as RGB.
    if facts.rgb || facts.palette || facts.name.starts_with("xyz") {
        Family::Rgb
    } else if facts.components <= 2 {
        Family::Gray
    } else {
        Family::Yuv
    }
}

fn depth(facts: &FormatFacts) -> u32 {
    // A palette's entries are 8 bits deep. One-bit pictures and packed ones of few bits count as they are.
    if facts.palette { 8 } else { facts.depth }
}

/// What going from `from` to `to` costs.
pub(crate) fn loss(from: &FormatFacts, to: &FormatFacts) -> Loss {
    let colour = match (family(from), family(to)) {
        (a, b) if a == b => 0,
        (Family::Gray, _) => 0,
        (Family::Yuv, Family::Rgb) => 1,
        (Family::Rgb, Family::Yuv) => 2,
        (_, Family::Gray) => GRAY_ONLY,
        _ => 4,
    };
    let from_alpha = from.alpha || from.palette;
    let (from_depth, to_depth) = (depth(from), depth(to));
    // A floating-point number of 16 bits has 11 significant ones between a half and white.
    let held = match (from.float, to.float) {
        (false, true) if to_depth < 32 => 11,
        _ => to_depth,
    };
    let chroma = |facts: &FormatFacts| match family(facts) {
        Family::Yuv => (facts.log2_x, facts.log2_y),
        _ => (0, 0),
    };
    let ((fx, fy), (tx, ty)) = (chroma(from), chroma(to));
    let gray = family(from) == Family::Gray;
    let chroma_lost = if gray {
        0
    } else {
        tx.saturating_sub(fx) + ty.saturating_sub(fy)
    };
    Loss([
        u32::from(from_alpha && !to.alpha && !to.palette),
        colour,
        from_depth.saturating_sub(held) + u32::from(from.float && !to.float),
        chroma_lost,
        u32::from(family(from) != family(to)) + u32::from((to.alpha || to.palette) && !from_alpha),
        to_depth.saturating_sub(from_depth) + u32::from(to.float && !from.float),
        fx.saturating_sub(tx) + fy.saturating_sub(ty),
        u32::from(from.planes != to.planes),
    ])
}

/// The bits of a sample of `from` and of `to`, if going from one to the other costs depth.
pub(crate) fn lost_depth(from: &FormatFacts, to: &FormatFacts) -> Option<(u32, u32)> {
    let Loss([_, _, lost, ..]) = loss(from, to);
    (lost > 0).then(|| (depth(from), depth(to)))
}

/// The native format that loses least of `format`, and whether nothing is lost; `None` for pixels in a
/// device's memory or of an unknown kind.
pub(crate) fn nearest_native(format: AvFormat) -> Option<(PixelFormat, bool)> {
    let facts = format.facts().filter(|facts| !facts.hardware)?;
    if let Some(native) = PixelFormat::all().find(|native| native.name() == facts.name) {
        return Some((native, true));
    }
    // FFmpeg's old names for full range; the range itself is stated separately.
    if let Some(plain) = facts.name.strip_prefix("yuvj")
        && let Some(native) = PixelFormat::from_name(&format!("yuv{plain}"))
    {
        return Some((native, true));
    }
    PixelFormat::all()
        .filter_map(|native| {
            Some((
                native,
                loss(&facts, &AvFormat::from_name(native.name())?.facts()?),
            ))
        })
        .min_by_key(|&(_, loss)| loss)
        .map(|(native, loss)| {
            (
                native,
                loss.is_lossless() && !facts.bayer && !facts.name.starts_with("xyz"),
            )
        })
}

/// True for FFmpeg's old formats whose name says full range.
pub(crate) fn is_full_range_name(format: AvFormat) -> bool {
    format.name().starts_with("yuvj")
}

/// True if a picture of this size fills whole chroma samples, as some encoders demand.
pub(crate) fn divides(facts: &FormatFacts, width: usize, height: usize) -> bool {
    let (x, y) = if facts.rgb {
        (0, 0)
    } else {
        (facts.log2_x, facts.log2_y)
    };
    width.is_multiple_of(1 << x) && height.is_multiple_of(1 << y)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(name: &str) -> (String, bool) {
        let (format, exact) = nearest_native(AvFormat::from_name(name).unwrap()).unwrap();
        (format.name().to_owned(), exact)
    }

    #[test]
    fn foreign_formats_go_where_nothing_is_lost() {
        for (from, to) in [
            ("yuv420p", "yuv420p"),
            ("yuvj422p", "yuv422p"),
            ("yuva420p", "yuva444p"),
            ("yuyv422", "yuv422p"),
            ("rgb0", "rgb24"),
            ("0bgr", "rgb24"),
            ("pal8", "rgba"),
            ("yuv420p10be", "yuv420p10le"),
            ("gray16be", "gray16le"),
            ("rgb48be", "rgb48le"),
            ("gbrp12be", "gbrp12le"),
            ("monow", "gray"),
            ("rgb565le", "rgb24"),
            ("x2rgb10le", "gbrp10le"),
            ("y210le", "yuv422p10le"),
            ("ayuv64le", "yuva444p16le"),
            ("gbrpf32le", "gbrpf32le"),
            ("grayf32be", "grayf32le"),
            ("gbrapf32be", "gbrapf32le"),
        ] {
            assert_eq!(nearest(from), (to.to_owned(), true), "{from}");
        }
    }

    #[test]
    fn what_cannot_be_kept_is_said() {
        assert_eq!(nearest("xyz12le"), ("gbrp12le".to_owned(), false));
        assert_eq!(
            nearest_native(AvFormat::from_name("vaapi").unwrap()),
            None,
            "pixels in a device's memory"
        );
        assert_eq!(nearest_native(AvFormat(-1)), None);
        assert_eq!(nearest_native(AvFormat(100_000)), None);
    }

    #[test]
    fn alpha_weighs_more_than_exact_colour() {
        let facts = |name| AvFormat::from_name(name).unwrap().facts().unwrap();
        let of_vp9 = ["yuv420p", "yuva420p", "yuv444p", "gbrp"].map(facts);
        let best = |from| {
            let from = facts(from);
            let best = of_vp9.iter().min_by_key(|to| loss(&from, to)).unwrap();
            (best.name.clone(), loss(&from, best).words())
        };
        let seen = vec!["exact colour", "chroma resolution"];
        assert_eq!(best("rgba"), ("yuva420p".to_owned(), seen));
        assert_eq!(best("rgb24"), ("gbrp".to_owned(), vec![]));
        assert_eq!(loss(&facts("rgba"), &facts("yuv420p")).words()[0], "alpha");
        assert_eq!(loss(&facts("ya8"), &facts("gray")).words(), ["alpha"]);
        // What loses nothing comes before all else.
        assert!(loss(&facts("rgba"), &facts("gbrap")).is_lossless());
        assert!(loss(&facts("rgba"), &facts("gbrap")) < loss(&facts("rgba"), &facts("yuva444p")));
    }

    #[test]
    fn depth_weighs_more_than_chroma() {
        let facts = |name| AvFormat::from_name(name).unwrap().facts().unwrap();
        let from = facts("yuv422p10le");
        assert!(loss(&from, &facts("yuv420p10le")) < loss(&from, &facts("yuv444p")));
        assert!(loss(&from, &facts("yuv444p12le")) < loss(&from, &facts("yuv420p10le")));
        assert!(!divides(&facts("yuv420p"), 321, 242) && divides(&facts("yuv422p"), 320, 243));
    }
}
