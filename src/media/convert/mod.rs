//! Conversions of pixel formats: what each loses, and how it is carried out (by swscale, except for
//! floating-point samples, changes of depth alone, and gray of RGB).

mod depth;
pub mod flatten;
mod float;
mod loss;
mod luma;
mod palette;
mod ycgco;

pub(crate) use depth::{before_scaling, deinterleaved};
pub use float::{CutSamples, integers_for};
pub(crate) use loss::{divides, is_full_range_name, loss, lost_depth, nearest_native};
pub(crate) use palette::{Colour3, Indexed, MAX_COLOURS, indexed};

use depth::DepthConversion;
use float::FloatConversion;

use crate::frame::fact::matrix_name;
use crate::frame::{
    AllocationError, AlphaKind, Buffer, Colour, ColourModel, Frame, Layout, LayoutError, Pageable,
    PixelFormat, Range, UnknownMatrix, YCGCO, luma_of_rgb, usual_matrix,
};
use crate::media::ffmpeg::{AvError, AvFormat, Picture, Scaler, ScalerEnd};

/// A conversion that cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConvertError {
    /// FFmpeg's scaler does not know one of the formats, or failed.
    #[error("swscale cannot convert {from} to {to}: {reason}")]
    Scaler {
        /// The format that the frames have.
        from: String,
        /// The format that was requested.
        to: String,
        /// FFmpeg's message.
        reason: String,
    },
    /// The matrix between RGB and YUV is one whose formula is not known here.
    #[error(transparent)]
    Matrix(#[from] UnknownMatrix),
    /// No formula leads from one format to the other.
    #[error(
        "{from} cannot be converted to {to}: no formula is known for it; OpenEXR (.exr) and raw: hold {from} \
         as it is"
    )]
    NoFloatWay {
        /// The format that the frames have.
        from: String,
        /// The format that was requested.
        to: String,
    },
    /// A frame is not of the format and size that the converter was made for.
    #[error("the converter was made for {expected}, not for {found}")]
    Mismatch {
        /// Size and format that it was made for.
        expected: String,
        /// Size and format of the frame.
        found: String,
    },
    /// The frame's geometry is impossible.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// No memory for a frame.
    #[error(transparent)]
    Allocation(#[from] AllocationError),
}

/// The colour facts of a frame after its format changed from `from` to `to`: range, matrix and alpha follow
/// the new format, the rest stays.
pub fn colour_after(colour: Colour, from: PixelFormat, to: PixelFormat, height: usize) -> Colour {
    let mut after = colour;
    match (from.model(), to.model()) {
        (ColourModel::Rgb, ColourModel::Yuv) => {
            after.matrix = written_matrix(colour.matrix, height);
            after.range = Range::Limited;
        }
        (ColourModel::Rgb, ColourModel::Gray) => {
            // Gray needs none to be read.
            after.matrix = match colour.matrix {
                0 => Colour::default().matrix,
                matrix => matrix,
            };
            after.range = Range::Full;
        }
        (ColourModel::Yuv | ColourModel::Gray, ColourModel::Rgb) => {
            after.matrix = 0;
            after.range = Range::Full;
            after.chroma_location = 0;
        }
        // Said aloud, since the two families differ in what "unspecified" means.
        (ColourModel::Yuv, ColourModel::Gray) | (ColourModel::Gray, ColourModel::Yuv) => {
            after.range = if colour.is_limited(from) {
                Range::Limited
            } else {
                Range::Full
            };
            if to.model() == ColourModel::Gray {
                after.chroma_location = 0;
            } else if colour.matrix == 0 {
                after.matrix = written_matrix(colour.matrix, height);
            }
        }
        _ => {}
    }
    let both_gray = (from.model(), to.model()) == (ColourModel::Gray, ColourModel::Gray);
    if to.is_float() || from.is_float() && both_gray {
        after.range = Range::Full;
    }
    // Integers are straight.
    if !to.is_float() || !to.has_alpha() && to.model() != ColourModel::Data {
        after.alpha = AlphaKind::Straight;
    }
    after
}

/// A matrix that swscale can write: the one given if it is one, else the usual one.
pub(crate) fn written_matrix(matrix: u8, height: usize) -> u8 {
    match matrix {
        1 | 4 | 5 | 6 | 7 | 9 => matrix,
        _ => usual_matrix(height),
    }
}

/// The RGB format that YCgCo pictures of `format` become without loss of depth.
pub(crate) fn rgb_for_ycgco(format: PixelFormat) -> Option<PixelFormat> {
    let depth = match (format.depth(), format.has_alpha()) {
        (8, _) => String::new(),
        (9, true) => "10le".to_owned(),
        (14, true) => "16le".to_owned(),
        (depth, _) => format!("{depth}le"),
    };
    let family = if format.has_alpha() { "gbrap" } else { "gbrp" };
    PixelFormat::from_name(&format!("{family}{depth}"))
}

/// Converts frames of one size from one native format to another, with exact rounding, the right range and
/// the right matrix.
pub struct Converter {
    from: PixelFormat,
    to: PixelFormat,
    width: usize,
    height: usize,
    /// Facts of the frames that it converts.
    read: Colour,
    colour: Colour,
    method: Method,
    cut: CutSamples,
}

/// How a converter works.
enum Method {
    /// Planes that swscale does not read, deinterleaved for what follows.
    Deinterleave(DepthConversion, Box<Converter>),
    /// swscale, between pictures with FFmpeg's own padding.
    Scale {
        scaler: Scaler,
        before: Picture,
        after: Picture,
    },
    /// YCgCo's formula, after a conversion to planar 4:4:4 where the frames are not that already.
    YCgCo {
        first: Option<Box<Converter>>,
        limited: bool,
    },
    /// Floating-point samples.
    Float(FloatConversion),
    /// Samples of another depth, in full range.
    Depth(DepthConversion),
    /// Gray of RGB.
    Luma,
}

impl Converter {
    /// Prepares the conversion of `width` x `height` frames of `format` with the given colour facts.
    pub fn new(
        (format, colour): (PixelFormat, Colour),
        to: PixelFormat,
        width: usize,
        height: usize,
    ) -> Result<Converter, ConvertError> {
        let by = |method: Method, after: Colour| Converter {
            from: format,
            to,
            width,
            height,
            read: colour,
            colour: after,
            method,
            cut: CutSamples::default(),
        };
        if format.is_float() || to.is_float() {
            let conversion = FloatConversion::new((format, colour), to, (width, height))?;
            let after = conversion.colour();
            return Ok(by(Method::Float(conversion), after));
        }
        let after = colour_after(colour, format, to, height);
        if depth::is_direct((format, colour), to) {
            let conversion = DepthConversion::new((format, colour), to);
            return Ok(by(Method::Depth(conversion), after));
        }
        if luma::is_luma(format, to) {
            return Ok(by(Method::Luma, after));
        }
        if let Some(planar) = deinterleaved(format) {
            let conversion = DepthConversion::new((format, colour), planar);
            let method = match planar == to {
                true => Method::Depth(conversion),
                false => {
                    let next = Converter::new((planar, colour), to, width, height)?;
                    Method::Deinterleave(conversion, Box::new(next))
                }
            };
            return Ok(by(method, after));
        }
        let failed = |reason: String| ConvertError::Scaler {
            from: format.to_string(),
            to: to.to_string(),
            reason,
        };
        let known = |format: PixelFormat| {
            AvFormat::from_name(format.name())
                .ok_or_else(|| failed(format!("this FFmpeg does not know {format}")))
        };
        let (av_from, av_to) = (known(format)?, known(to)?);
        if (format.model(), to.model()) == (ColourModel::Yuv, ColourModel::Rgb) {
            if colour.matrix == YCGCO {
                let method = Method::YCgCo {
                    first: planar_444(format, colour, width, height)?.map(Box::new),
                    limited: colour.is_limited(format),
                };
                return Ok(by(method, after));
            }
            // swscale treats any other matrix as one that it knows. YCgCo has a formula of its own.
            colour.read_matrix(height)?;
        }
        let end = |av: AvFormat, format: PixelFormat, colour: Colour| ScalerEnd {
            format: av,
            full_range: !colour.is_limited(format),
            matrix: written_matrix(colour.matrix, height),
            chroma_location: colour.chroma_location,
        };
        let make = || -> Result<_, AvError> {
            Ok((
                Scaler::new(width, height, end(av_from, format, colour), end(av_to, to, after))?,
                Picture::allocate(av_from, width, height)?,
                Picture::allocate(av_to, width, height)?,
            ))
        };
        let (scaler, before_picture, after_picture) = make().map_err(|e| failed(e.to_string()))?;
        let method = Method::Scale {
            scaler,
            before: before_picture,
            after: after_picture,
        };
        Ok(by(method, after))
    }

    /// What frames it converts: format, colour facts, width and height.
    pub fn input(&self) -> (PixelFormat, Colour, usize, usize) {
        (self.from, self.read, self.width, self.height)
    }

    /// The colour facts of converted frames.
    pub fn colour(&self) -> Colour {
        self.colour
    }

    /// Converts `frame` into memory of its own.
    pub fn convert(&mut self, frame: &Frame) -> Result<Frame, ConvertError> {
        self.convert_into(frame, Buffer::unpooled(Box::new(Vec::new())), 64)
    }

    /// Converts `frame` into `buffer`, which is grown if it is too small, with rows aligned to `alignment`
    /// bytes.
    pub fn convert_into(
        &mut self,
        frame: &Frame,
        buffer: Buffer,
        alignment: usize,
    ) -> Result<Frame, ConvertError> {
        let mut converted = Frame::new(Layout::new(self.to, self.width, self.height, alignment)?, buffer)?;
        self.fill(frame, &mut converted)?;
        converted.sequence = frame.sequence;
        converted.born = frame.born;
        converted.metadata = frame.metadata.clone();
        converted.metadata.colour = self.colour;
        Ok(converted)
    }

    /// How many samples were cut since the last call, on the way from floating point to integers.
    pub fn take_cut(&mut self) -> CutSamples {
        std::mem::take(&mut self.cut)
    }

    /// Fills `converted`, a frame of the size and format that is wanted, from `frame`.
    fn fill(&mut self, frame: &Frame, converted: &mut Frame) -> Result<(), ConvertError> {
        let layout = frame.layout();
        if (layout.format(), layout.width(), layout.height()) != (self.from, self.width, self.height) {
            return Err(ConvertError::Mismatch {
                expected: format!("{}x{} {}", self.width, self.height, self.from),
                found: format!("{}x{} {}", layout.width(), layout.height(), layout.format()),
            });
        }
        match &mut self.method {
            Method::Scale {
                scaler,
                before,
                after,
            } => {
                let mut run = || -> Result<(), AvError> {
                    before.copy_from(frame)?;
                    scaler.run(before, after)?;
                    after.copy_to(converted)
                };
                run().map_err(|e| ConvertError::Scaler {
                    from: self.from.to_string(),
                    to: self.to.to_string(),
                    reason: e.to_string(),
                })?;
            }
            Method::YCgCo { first, limited } => match first {
                Some(first) => ycgco::to_rgb(&first.convert(frame)?, *limited, converted),
                None => ycgco::to_rgb(frame, *limited, converted),
            },
            Method::Float(conversion) => self.cut += conversion.run(frame, converted)?,
            Method::Depth(conversion) => conversion.run(frame, converted),
            Method::Deinterleave(conversion, next) => {
                let layout = Layout::new(next.from, self.width, self.height, 64)?;
                let mut planes = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new())))?;
                conversion.run(frame, &mut planes);
                planes.metadata = frame.metadata.clone();
                next.fill(&planes, converted)?;
            }
            Method::Luma => {
                let primaries = match self.read.primaries {
                    2 => frame.metadata.primaries(),
                    stated => stated,
                };
                luma::fill(frame, luma_of_rgb(self.read.matrix, primaries), converted);
            }
        }
        Ok(())
    }
}

/// A converter to planar 4:4:4 of the same family, depth and range, which uses no matrix; `None` if the
/// frames are that already.
fn planar_444(
    format: PixelFormat,
    colour: Colour,
    width: usize,
    height: usize,
) -> Result<Option<Converter>, ConvertError> {
    let depth = match format.depth() {
        8 => String::new(),
        depth => format!("{depth}le"),
    };
    let family = if format.has_alpha() { "yuva444p" } else { "yuv444p" };
    match PixelFormat::from_name(&format!("{family}{depth}")) {
        Some(planar) if planar == format => Ok(None),
        Some(planar) => Converter::new((format, colour), planar, width, height).map(Some),
        None => Err(UnknownMatrix(matrix_name(YCGCO)).into()),
    }
}

/// Ordinary memory for one converted frame; for callers without a pool.
pub fn unpooled(layout: &Layout) -> Result<Buffer, AllocationError> {
    use crate::frame::Allocator;
    Ok(Buffer::unpooled(Pageable.allocate(layout.size())?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn frame(name: &str, width: usize, height: usize, fill: impl Fn(usize) -> u8) -> Frame {
        let layout = Layout::new(PixelFormat::from_name(name).unwrap(), width, height, 1).unwrap();
        let mut frame = Frame::new(layout, unpooled(&layout).unwrap()).unwrap();
        for (at, byte) in frame.bytes_mut().iter_mut().enumerate() {
            *byte = fill(at);
        }
        frame
    }

    fn convert(from: &Frame, colour: Colour, to: &str) -> Frame {
        let to = PixelFormat::from_name(to).unwrap();
        let (width, height) = (from.layout().width(), from.layout().height());
        Converter::new((from.format(), colour), to, width, height)
            .unwrap()
            .convert(from)
            .unwrap()
    }

    #[test]
    fn rgb_survives_a_change_of_arrangement() {
        let before = frame("rgb24", 17, 5, |at| (at * 37 % 251) as u8);
        let planar = convert(&before, Colour::default(), "gbrp");
        for y in 0..5 {
            for x in 0..17 {
                assert_eq!(planar.sample(2, x, y, 0), before.sample(0, x, y, 0));
                assert_eq!(planar.sample(0, x, y, 0), before.sample(0, x, y, 1));
                assert_eq!(planar.sample(1, x, y, 0), before.sample(0, x, y, 2));
            }
        }
    }

    #[test]
    fn range_decides_what_white_is() {
        let limited = frame("yuv444p", 8, 4, |at| if at < 32 { 235 } else { 128 });
        let colour = Colour::default();
        let rgb = convert(&limited, colour, "rgb24");
        assert!(rgb.row(0, 2).iter().all(|&v| v >= 254), "{:?}", rgb.row(0, 2));
        let full = Colour {
            range: Range::Full,
            ..colour
        };
        let rgb = convert(&limited, full, "rgb24");
        assert!(
            rgb.row(0, 2).iter().all(|&v| (234..=236).contains(&v)),
            "{:?}",
            rgb.row(0, 2)
        );
        let after = convert(&rgb, rgb.metadata.colour, "yuv444p");
        assert!(
            after.row(0, 1).iter().all(|&v| v.abs_diff(218) <= 1),
            "{:?}",
            after.row(0, 1)
        );
        assert_eq!(after.metadata.colour.range, Range::Limited);
        assert_eq!(after.metadata.colour.matrix, 6);
    }

    #[test]
    fn the_matrix_is_the_tagged_one() {
        let green = frame("rgb24", 8, 4, |at| if at % 3 == 1 { 255 } else { 0 });
        let luma = |matrix| {
            let colour = Colour {
                matrix,
                ..Colour::default()
            };
            convert(&green, colour, "yuv444p").sample(0, 3, 2, 0)
        };
        assert!(
            luma(1).abs_diff(173) <= 1 && luma(6).abs_diff(145) <= 1,
            "{} {}",
            luma(1),
            luma(6)
        );
    }

    #[test]
    fn ycgco_is_four_additions() {
        let colour = Colour {
            matrix: YCGCO,
            range: Range::Full,
            ..Colour::default()
        };
        let planes = |y: u8, cg: u8, co: u8| frame("yuv444p", 4, 1, move |at| [y, cg, co][at / 4]);
        for (y, cg, co, rgb) in [
            (128, 255, 128, [1, 255, 1]),
            (128, 128, 128, [128, 128, 128]),
            (100, 90, 150, [160, 62, 116]),
            (250, 200, 60, [110, 255, 246]),
        ] {
            let mut before = planes(y, cg, co);
            before.metadata.colour = colour;
            assert_eq!(
                &convert(&before, colour, "rgb24").row(0, 0)[..3],
                &rgb,
                "{y} {cg} {co}"
            );
        }
        let limited = Colour {
            range: Range::Limited,
            ..colour
        };
        let mut before = planes(235, 128, 128);
        before.metadata.colour = limited;
        assert_eq!(&convert(&before, limited, "rgb48le").row(0, 0)[..6], &[255; 6]);
        let mut subsampled = frame("yuv420p", 4, 4, |at| if at < 16 { 128 } else { 140 });
        subsampled.metadata.colour = colour;
        assert_eq!(
            &convert(&subsampled, colour, "rgb24").row(0, 0)[..3],
            &[128, 140, 104]
        );
    }

    #[test]
    fn matrices_without_a_formula_are_refused() {
        let before = PixelFormat::from_name("yuv444p").unwrap();
        let rgb = PixelFormat::from_name("rgb24").unwrap();
        for matrix in [0, 10, 11, 12, 13, 14, 15, 16, 17] {
            let colour = Colour {
                matrix,
                ..Colour::default()
            };
            assert!(matches!(
                Converter::new((before, colour), rgb, 4, 4),
                Err(ConvertError::Matrix { .. })
            ));
        }
    }

    #[test]
    fn a_frame_of_another_size_is_refused() {
        let gray = PixelFormat::from_name("gray").unwrap();
        let rgb = PixelFormat::from_name("rgb24").unwrap();
        let mut converter = Converter::new((gray, Colour::default()), rgb, 4, 4).unwrap();
        assert!(matches!(
            converter.convert(&frame("gray", 5, 4, |_| 0)),
            Err(ConvertError::Mismatch { .. })
        ));
    }
}
