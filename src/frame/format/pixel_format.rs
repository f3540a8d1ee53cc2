//! The pixel formats that are filtered natively, described by one static table.
//!
//! A format is known by FFmpeg's name for it. Integer samples of more than 8 bits are little-endian 16-bit
//! words; floating-point samples are little-endian IEEE 754 numbers of 16 or 32 bits, where 1.0 is white.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

/// The component that a sample of a plane belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Channel {
    /// Luma, or the only component of a gray picture.
    Luma,
    /// Blue-difference chroma, centred at half range.
    Cb,
    /// Red-difference chroma, centred at half range.
    Cr,
    /// Red.
    Red,
    /// Green.
    Green,
    /// Blue.
    Blue,
    /// Opacity.
    Alpha,
    /// Any other quantity: a depth, a layer of a grid.
    Data,
}

impl Channel {
    /// True for the two colour-difference components.
    pub fn is_chroma(self) -> bool {
        matches!(self, Channel::Cb | Channel::Cr)
    }
}

/// The family of components that a format stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ColourModel {
    /// One luma component, perhaps with alpha.
    Gray,
    /// Luma and two chroma components.
    Yuv,
    /// Red, green and blue.
    Rgb,
    /// Components that are no colour.
    Data,
}

/// One plane of a format: the components interleaved in it and how it is subsampled.
#[derive(Debug, PartialEq, Eq)]
pub struct PlaneFormat {
    /// The interleaved components, in memory order: one for a planar plane, more otherwise.
    pub channels: &'static [Channel],
    /// log2 of the horizontal subsampling: 1 means that the plane is half as wide as the frame, rounded up.
    pub log2_x: u8,
    /// log2 of the vertical subsampling.
    pub log2_y: u8,
}

/// How a sample is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleKind {
    /// An unsigned integer of `depth` bits.
    Integer,
    /// An IEEE 754 number of `depth` bits, 16 or 32.
    Float,
}

#[derive(Debug)]
struct Descriptor {
    name: &'static str,
    model: ColourModel,
    kind: SampleKind,
    depth: u8,
    /// Unused low bits below each sample in its 16-bit word: 6 for p010, 0 for most.
    shift: u8,
    planes: &'static [PlaneFormat],
}

/// A pixel format that framepipe filters without converting it. Cheap to copy; equal when the names are
/// equal.
#[derive(Clone, Copy)]
pub struct PixelFormat(&'static Descriptor);

const fn plane(channels: &'static [Channel], log2_x: u8, log2_y: u8) -> PlaneFormat {
    PlaneFormat {
        channels,
        log2_x,
        log2_y,
    }
}

const LUMA: PlaneFormat = plane(&[Channel::Luma], 0, 0);
const ALPHA: PlaneFormat = plane(&[Channel::Alpha], 0, 0);
const GRAY: &[PlaneFormat] = &[LUMA];
const GRAY_ALPHA: &[PlaneFormat] = &[plane(&[Channel::Luma, Channel::Alpha], 0, 0)];
const YUV410: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 2, 2), plane(&[Channel::Cr], 2, 2)];
const YUV411: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 2, 0), plane(&[Channel::Cr], 2, 0)];
const YUV420: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 1, 1), plane(&[Channel::Cr], 1, 1)];
const YUV422: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 1, 0), plane(&[Channel::Cr], 1, 0)];
const YUV440: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 0, 1), plane(&[Channel::Cr], 0, 1)];
const YUV444: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb], 0, 0), plane(&[Channel::Cr], 0, 0)];
const YUVA444: &[PlaneFormat] = &[
    LUMA,
    plane(&[Channel::Cb], 0, 0),
    plane(&[Channel::Cr], 0, 0),
    ALPHA,
];
const NV12: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb, Channel::Cr], 1, 1)];
const NV21: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cr, Channel::Cb], 1, 1)];
const NV16: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb, Channel::Cr], 1, 0)];
const NV24: &[PlaneFormat] = &[LUMA, plane(&[Channel::Cb, Channel::Cr], 0, 0)];
const GBR: &[PlaneFormat] = &[
    plane(&[Channel::Green], 0, 0),
    plane(&[Channel::Blue], 0, 0),
    plane(&[Channel::Red], 0, 0),
];
const GBRA: &[PlaneFormat] = &[
    plane(&[Channel::Green], 0, 0),
    plane(&[Channel::Blue], 0, 0),
    plane(&[Channel::Red], 0, 0),
    ALPHA,
];
const RGB: &[PlaneFormat] = &[plane(&[Channel::Red, Channel::Green, Channel::Blue], 0, 0)];
const BGR: &[PlaneFormat] = &[plane(&[Channel::Blue, Channel::Green, Channel::Red], 0, 0)];
const RGBA: &[PlaneFormat] = &[plane(
    &[Channel::Red, Channel::Green, Channel::Blue, Channel::Alpha],
    0,
    0,
)];
const BGRA: &[PlaneFormat] = &[plane(
    &[Channel::Blue, Channel::Green, Channel::Red, Channel::Alpha],
    0,
    0,
)];
const ARGB: &[PlaneFormat] = &[plane(
    &[Channel::Alpha, Channel::Red, Channel::Green, Channel::Blue],
    0,
    0,
)];
const ABGR: &[PlaneFormat] = &[plane(
    &[Channel::Alpha, Channel::Blue, Channel::Green, Channel::Red],
    0,
    0,
)];

/// Makes a constant of each row, and a list of them.
macro_rules! formats {
    ($list:ident, $kind:ident:
     $($constant:ident, $name:literal, $model:ident, $depth:literal, $shift:literal, $planes:ident;)*) => {
        /// The formats under FFmpeg's names, in capitals and without the ending `le`.
        impl PixelFormat {
            $(
                #[doc = concat!("FFmpeg's `", $name, "`.")]
                pub const $constant: PixelFormat = PixelFormat(&Descriptor {
                    name: $name,
                    model: ColourModel::$model,
                    kind: SampleKind::$kind,
                    depth: $depth,
                    shift: $shift,
                    planes: $planes,
                });
            )*
        }

        const $list: &[PixelFormat] = &[$(PixelFormat::$constant),*];
    };
}

formats! {
    INTEGER_FORMATS, Integer:
    GRAY, "gray", Gray, 8, 0, GRAY;
    GRAY9, "gray9le", Gray, 9, 0, GRAY;
    GRAY10, "gray10le", Gray, 10, 0, GRAY;
    GRAY12, "gray12le", Gray, 12, 0, GRAY;
    GRAY14, "gray14le", Gray, 14, 0, GRAY;
    GRAY16, "gray16le", Gray, 16, 0, GRAY;
    YA8, "ya8", Gray, 8, 0, GRAY_ALPHA;
    YA16, "ya16le", Gray, 16, 0, GRAY_ALPHA;
    YUV410P, "yuv410p", Yuv, 8, 0, YUV410;
    YUV411P, "yuv411p", Yuv, 8, 0, YUV411;
    YUV420P, "yuv420p", Yuv, 8, 0, YUV420;
    YUV420P9, "yuv420p9le", Yuv, 9, 0, YUV420;
    YUV420P10, "yuv420p10le", Yuv, 10, 0, YUV420;
    YUV420P12, "yuv420p12le", Yuv, 12, 0, YUV420;
    YUV420P14, "yuv420p14le", Yuv, 14, 0, YUV420;
    YUV420P16, "yuv420p16le", Yuv, 16, 0, YUV420;
    YUV422P, "yuv422p", Yuv, 8, 0, YUV422;
    YUV422P9, "yuv422p9le", Yuv, 9, 0, YUV422;
    YUV422P10, "yuv422p10le", Yuv, 10, 0, YUV422;
    YUV422P12, "yuv422p12le", Yuv, 12, 0, YUV422;
    YUV422P14, "yuv422p14le", Yuv, 14, 0, YUV422;
    YUV422P16, "yuv422p16le", Yuv, 16, 0, YUV422;
    YUV440P, "yuv440p", Yuv, 8, 0, YUV440;
    YUV440P10, "yuv440p10le", Yuv, 10, 0, YUV440;
    YUV440P12, "yuv440p12le", Yuv, 12, 0, YUV440;
    YUV444P, "yuv444p", Yuv, 8, 0, YUV444;
    YUV444P9, "yuv444p9le", Yuv, 9, 0, YUV444;
    YUV444P10, "yuv444p10le", Yuv, 10, 0, YUV444;
    YUV444P12, "yuv444p12le", Yuv, 12, 0, YUV444;
    YUV444P14, "yuv444p14le", Yuv, 14, 0, YUV444;
    YUV444P16, "yuv444p16le", Yuv, 16, 0, YUV444;
    YUVA444P, "yuva444p", Yuv, 8, 0, YUVA444;
    YUVA444P9, "yuva444p9le", Yuv, 9, 0, YUVA444;
    YUVA444P10, "yuva444p10le", Yuv, 10, 0, YUVA444;
    YUVA444P12, "yuva444p12le", Yuv, 12, 0, YUVA444;
    YUVA444P16, "yuva444p16le", Yuv, 16, 0, YUVA444;
    NV12, "nv12", Yuv, 8, 0, NV12;
    NV21, "nv21", Yuv, 8, 0, NV21;
    NV16, "nv16", Yuv, 8, 0, NV16;
    NV24, "nv24", Yuv, 8, 0, NV24;
    NV20, "nv20le", Yuv, 10, 0, NV16;
    P010, "p010le", Yuv, 10, 6, NV12;
    P016, "p016le", Yuv, 16, 0, NV12;
    P210, "p210le", Yuv, 10, 6, NV16;
    P216, "p216le", Yuv, 16, 0, NV16;
    P410, "p410le", Yuv, 10, 6, NV24;
    P416, "p416le", Yuv, 16, 0, NV24;
    P012, "p012le", Yuv, 12, 4, NV12;
    GBRP, "gbrp", Rgb, 8, 0, GBR;
    GBRP9, "gbrp9le", Rgb, 9, 0, GBR;
    GBRP10, "gbrp10le", Rgb, 10, 0, GBR;
    GBRP12, "gbrp12le", Rgb, 12, 0, GBR;
    GBRP14, "gbrp14le", Rgb, 14, 0, GBR;
    GBRP16, "gbrp16le", Rgb, 16, 0, GBR;
    GBRAP, "gbrap", Rgb, 8, 0, GBRA;
    GBRAP10, "gbrap10le", Rgb, 10, 0, GBRA;
    GBRAP12, "gbrap12le", Rgb, 12, 0, GBRA;
    GBRAP16, "gbrap16le", Rgb, 16, 0, GBRA;
    RGB24, "rgb24", Rgb, 8, 0, RGB;
    BGR24, "bgr24", Rgb, 8, 0, BGR;
    RGBA, "rgba", Rgb, 8, 0, RGBA;
    BGRA, "bgra", Rgb, 8, 0, BGRA;
    ARGB, "argb", Rgb, 8, 0, ARGB;
    ABGR, "abgr", Rgb, 8, 0, ABGR;
    RGB48, "rgb48le", Rgb, 16, 0, RGB;
    BGR48, "bgr48le", Rgb, 16, 0, BGR;
    RGBA64, "rgba64le", Rgb, 16, 0, RGBA;
    BGRA64, "bgra64le", Rgb, 16, 0, BGRA;
}

formats! {
    FLOAT_FORMATS, Float:
    GRAYF16, "grayf16le", Gray, 16, 0, GRAY;
    GRAYF32, "grayf32le", Gray, 32, 0, GRAY;
    YAF16, "yaf16le", Gray, 16, 0, GRAY_ALPHA;
    YAF32, "yaf32le", Gray, 32, 0, GRAY_ALPHA;
    GBRPF16, "gbrpf16le", Rgb, 16, 0, GBR;
    GBRPF32, "gbrpf32le", Rgb, 32, 0, GBR;
    GBRAPF16, "gbrapf16le", Rgb, 16, 0, GBRA;
    GBRAPF32, "gbrapf32le", Rgb, 32, 0, GBRA;
    RGBF16, "rgbf16le", Rgb, 16, 0, RGB;
    RGBF32, "rgbf32le", Rgb, 32, 0, RGB;
    RGBAF16, "rgbaf16le", Rgb, 16, 0, RGBA;
    RGBAF32, "rgbaf32le", Rgb, 32, 0, RGBA;
}

/// The most components of [`PixelFormat::float_channels`].
pub const MAX_CHANNELS: usize = 1024;

impl PixelFormat {
    /// Every native format that has a name in FFmpeg: those of integers, then those of floating-point
    /// samples. [`PixelFormat::float_channels`] makes others.
    pub fn all() -> impl Iterator<Item = PixelFormat> {
        PixelFormat::integers().chain(PixelFormat::floats())
    }

    /// Those of integer samples, in the table's order.
    pub fn integers() -> impl Iterator<Item = PixelFormat> {
        INTEGER_FORMATS.iter().copied()
    }

    /// Those of floating-point samples, in the table's order.
    pub fn floats() -> impl Iterator<Item = PixelFormat> {
        FLOAT_FORMATS.iter().copied()
    }

    /// One plane that interleaves `count` components of any meaning, each a floating-point number of `bits`
    /// bits: `f32x5`, `f16x12`. FFmpeg has no such format. `None` unless `bits` is 16 or 32 and `count` 1 to
    /// [`MAX_CHANNELS`].
    pub fn float_channels(bits: u32, count: usize) -> Option<PixelFormat> {
        // A format is a reference to its description, of which each is made once.
        static MADE: Mutex<Vec<PixelFormat>> = Mutex::new(Vec::new());
        if !matches!(bits, 16 | 32) || !(1..=MAX_CHANNELS).contains(&count) {
            return None;
        }
        let name = format!("f{bits}x{count}");
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&format) = made.iter().find(|format| format.name() == name) {
            return Some(format);
        }
        let channels: &'static [Channel] = Vec::leak(vec![Channel::Data; count]);
        let planes: &'static [PlaneFormat] = Vec::leak(vec![plane(channels, 0, 0)]);
        let format = PixelFormat(Box::leak(Box::new(Descriptor {
            name: String::leak(name),
            model: ColourModel::Data,
            kind: SampleKind::Float,
            depth: bits as u8,
            shift: 0,
            planes,
        })));
        made.push(format);
        Some(format)
    }

    /// The format of FFmpeg's name `name`, or of one such as `f32x5`; a name without its `le` ending is
    /// accepted too. `None` if it is not native.
    pub fn from_name(name: &str) -> Option<PixelFormat> {
        let mut named = PixelFormat::all();
        let found = named.find(|format| {
            let own = format.name();
            own == name || (format.depth() > 8 && own.strip_suffix("le") == Some(name))
        });
        found.or_else(|| {
            let (bits, count) = name.strip_prefix('f')?.split_once('x')?;
            let format = PixelFormat::float_channels(bits.parse().ok()?, count.parse().ok()?)?;
            (format.name() == name).then_some(format)
        })
    }

    /// FFmpeg's name.
    pub fn name(self) -> &'static str {
        self.0.name
    }

    /// The family of components.
    pub fn model(self) -> ColourModel {
        self.0.model
    }

    /// True if samples are floating-point numbers.
    pub fn is_float(self) -> bool {
        self.0.kind == SampleKind::Float
    }

    /// Significant bits of a sample: 8 to 16 of integers, 16 or 32 of floating-point numbers.
    pub fn depth(self) -> u32 {
        u32::from(self.0.depth)
    }

    /// Unused low bits below a sample in its word: a stored word is `sample << shift`.
    pub fn shift(self) -> u32 {
        u32::from(self.0.shift)
    }

    /// The largest value of an integer sample, `2^depth - 1`.
    pub fn max_value(self) -> u32 {
        u32::MAX >> (32 - self.depth())
    }

    /// Bytes that one sample takes: 1 up to 8 bits, 2 up to 16, else 4.
    pub fn bytes_per_sample(self) -> usize {
        match self.0.depth {
            0..=8 => 1,
            9..=16 => 2,
            _ => 4,
        }
    }

    /// The planes in memory order, one to four.
    pub fn planes(self) -> &'static [PlaneFormat] {
        self.0.planes
    }

    /// Where a component lies: its plane, and its place among those that the plane interleaves.
    pub fn place(self, channel: Channel) -> Option<(usize, usize)> {
        let mut planes = self.planes().iter().enumerate();
        planes.find_map(|(index, plane)| {
            let at = plane.channels.iter().position(|&c| c == channel)?;
            Some((index, at))
        })
    }

    /// log2 of how many pixels a sample of chroma stands for, across and down; 0 without chroma.
    pub(crate) fn chroma_subsampling(self) -> (u32, u32) {
        let plane = self.place(Channel::Cb).map(|(plane, _)| &self.planes()[plane]);
        plane.map_or((0, 0), |plane| (plane.log2_x.into(), plane.log2_y.into()))
    }

    /// True if some plane holds alpha.
    pub fn has_alpha(self) -> bool {
        self.0.planes.iter().any(|p| p.channels.contains(&Channel::Alpha))
    }
}

impl PartialEq for PixelFormat {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for PixelFormat {}

impl std::hash::Hash for PixelFormat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

impl fmt::Debug for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for PixelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A pixel format's name that framepipe does not filter natively.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a pixel format that framepipe filters natively (such as gray, yuv420p, yuv422p10le, nv12, \
     p010le, gbrp, rgb24, rgba)"
)]
pub struct UnknownPixelFormat(pub String);

impl FromStr for PixelFormat {
    type Err = UnknownPixelFormat;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        PixelFormat::from_name(name).ok_or_else(|| UnknownPixelFormat(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_found_again() {
        for format in PixelFormat::all() {
            assert_eq!(PixelFormat::from_name(format.name()), Some(format));
            assert_eq!(
                PixelFormat::all().filter(|f| f.name() == format.name()).count(),
                1
            );
        }
        assert_eq!(
            PixelFormat::from_name("yuv420p10"),
            PixelFormat::from_name("yuv420p10le")
        );
        assert_eq!(PixelFormat::from_name("pal8"), None);
        for name in ["f32x0", "f32x1025", "f24x3", "f32x03", "f32x", "fx", "f32x-1"] {
            assert_eq!(PixelFormat::from_name(name), None, "{name}");
        }
        let five = PixelFormat::float_channels(32, 5).unwrap();
        assert_eq!(five.name(), "f32x5");
        assert_eq!(PixelFormat::from_name("f32x5"), Some(five));
        assert_eq!((five.bytes_per_sample(), five.planes()[0].channels.len()), (4, 5));
        assert_ne!(PixelFormat::float_channels(16, 5), Some(five));
        assert_eq!(PixelFormat::from_name("rgbf32"), Some(PixelFormat::RGBF32));
        assert_eq!(PixelFormat::from_name("yuv420p10"), Some(PixelFormat::YUV420P10));
    }

    #[test]
    fn a_sample_and_its_padding_fit_its_word() {
        for format in PixelFormat::all() {
            assert!(
                format.depth() + format.shift() <= 8 * format.bytes_per_sample() as u32,
                "{format}"
            );
        }
    }
}
