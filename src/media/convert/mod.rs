//! Conversions of pixel formats: what each loses, and how it is carried out (`route`).

mod associated;
mod component;
pub mod flatten;
mod float;
mod grid;
mod levels;
mod loss;
mod luma;
mod matrix;
mod packed;
mod palette;
mod route;

pub(crate) use associated::associate;
pub use float::{CutSamples, integers_for};
pub(crate) use loss::{divides, is_full_range_name, loss, lost_depth, nearest_native};
pub(crate) use packed::PackedConversion;
pub(crate) use palette::{Colour3, MAX_COLOURS};
pub use palette::{Indexed, indexed};

use float::FloatConversion;
use levels::{AlphaConversion, LevelConversion};
use matrix::MatrixConversion;
use route::Route;

use crate::frame::fact::matrix_name;
use crate::frame::{
    AllocationError, AlphaKind, Buffer, CHROMA_LEFT, Colour, ColourModel, Frame, Layout, LayoutError,
    Pageable, PixelFormat, Range, UnknownMatrix, luma_of_rgb, usual_matrix,
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
         as it is{}", way_out(.from)
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

/// What else there is to do with channels that are no colours.
fn way_out(from: &str) -> &'static str {
    match PixelFormat::from_name(from).map(PixelFormat::model) {
        Some(ColourModel::Data) => {
            ", and of OpenEXR's channels --pixel-format rgbaf32 takes R, G, B and A alone, if there are such"
        }
        _ => "",
    }
}

/// The colour facts of a frame after its format changed from `from` to `to`: range, matrix and alpha follow
/// the new format, the rest stays.
pub fn colour_after(colour: Colour, from: PixelFormat, to: PixelFormat, height: usize) -> Colour {
    let mut after = colour;
    match (from.model(), to.model()) {
        (ColourModel::Rgb, ColourModel::Yuv) => {
            after.matrix = written_matrix(colour.matrix, height);
            after.range = Range::Limited;
            if to.chroma_subsampling() != (0, 0) && colour.chroma_location == 0 {
                after.chroma_location = CHROMA_LEFT;
            }
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
            after.range = colour.assumed_range(from);
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

/// True if nothing is to be done to frames before swscale puts their samples elsewhere.
pub(crate) fn is_rearranged(
    (from, before): (PixelFormat, Colour),
    (to, after): (PixelFormat, Colour),
    height: usize,
) -> Result<bool, UnknownMatrix> {
    let is_same = from == to && before.is_limited(from) == after.is_limited(to);
    Ok(is_same || route::route((from, before), (to, after), height)? == Route::Scale)
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
    /// swscale, between pictures with FFmpeg's own padding.
    Scale {
        scaler: Scaler,
        before: Picture,
        after: Picture,
    },
    /// Floating-point samples.
    Float(FloatConversion),
    /// A change of depth, range or place.
    Levels(LevelConversion),
    /// The formulas between RGB and YUV.
    Matrix(MatrixConversion),
    /// Gray of RGB, and its alpha.
    Luma(AlphaConversion),
}

impl Converter {
    /// Prepares the conversion of `width` x `height` frames of `format` with the given colour facts.
    pub fn new(
        (format, colour): (PixelFormat, Colour),
        to: PixelFormat,
        width: usize,
        height: usize,
    ) -> Result<Converter, ConvertError> {
        let after = colour_after(colour, format, to, height);
        Converter::between((format, colour), (to, after), width, height)
    }

    /// Prepares the conversion of `width` x `height` frames between formats with these colour facts. Results
    /// have the range, the matrix and the place of chroma of the second; floating-point samples have their
    /// own range.
    pub fn between(
        (from, read): (PixelFormat, Colour),
        (to, written): (PixelFormat, Colour),
        width: usize,
        height: usize,
    ) -> Result<Converter, ConvertError> {
        let (method, colour) = if from.is_float() || to.is_float() {
            let conversion = FloatConversion::new((from, read), to, (width, height))?;
            let colour = conversion.colour();
            (Method::Float(conversion), colour)
        } else {
            (of_integers((from, read), (to, written), width, height)?, written)
        };
        Ok(Converter {
            from,
            to,
            width,
            height,
            read,
            colour,
            method,
            cut: CutSamples::default(),
        })
    }

    /// The same conversion of frames of another range.
    pub(crate) fn of_range(&self, range: Range) -> Result<Converter, ConvertError> {
        let read = Colour { range, ..self.read };
        Converter::between((self.from, read), (self.to, self.colour), self.width, self.height)
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
            Method::Float(conversion) => self.cut += conversion.run(frame, converted)?,
            Method::Levels(conversion) => conversion.run(frame, converted),
            Method::Matrix(conversion) => conversion.run(frame, converted),
            Method::Luma(alpha) => {
                let primaries = match self.read.primaries {
                    2 => frame.metadata.primaries(),
                    stated => stated,
                };
                // What is stated of the gray is true of it.
                let matrix = match self.colour.matrix {
                    0 | 2 | 3 => self.read.matrix,
                    stated => stated,
                };
                let weights = luma_of_rgb(matrix, primaries);
                luma::fill(frame, weights, (converted, self.colour));
                alpha.run(frame, converted);
            }
        }
        Ok(())
    }
}

/// How integers are converted between formats with these colour facts.
fn of_integers(
    from: (PixelFormat, Colour),
    to: (PixelFormat, Colour),
    width: usize,
    height: usize,
) -> Result<Method, ConvertError> {
    Ok(match route::route(from, to, height)? {
        Route::Levels => Method::Levels(LevelConversion::new(from, to)),
        Route::Luma => Method::Luma(AlphaConversion::new(from, to)),
        Route::Matrix(matrix) => {
            let conversion = MatrixConversion::new(from, to, matrix, (width, height));
            Method::Matrix(conversion.ok_or_else(|| UnknownMatrix(matrix_name(matrix)))?)
        }
        Route::Scale => scaling(from, to, width, height)?,
    })
}

/// swscale between formats with these colour facts.
fn scaling(
    (from, read): (PixelFormat, Colour),
    (to, written): (PixelFormat, Colour),
    width: usize,
    height: usize,
) -> Result<Method, ConvertError> {
    let failed = |reason: String| ConvertError::Scaler {
        from: from.to_string(),
        to: to.to_string(),
        reason,
    };
    let known = |format: PixelFormat| {
        AvFormat::from_name(format.name())
            .ok_or_else(|| failed(format!("this FFmpeg does not know {format}")))
    };
    let (av_from, av_to) = (known(from)?, known(to)?);
    let end = |av: AvFormat, format: PixelFormat, colour: Colour| ScalerEnd {
        format: av,
        full_range: !colour.is_limited(format),
        matrix: written_matrix(colour.matrix, height),
        chroma_location: colour.chroma_location,
    };
    let make = || -> Result<_, AvError> {
        Ok(Method::Scale {
            scaler: Scaler::new(width, height, end(av_from, from, read), end(av_to, to, written))?,
            before: Picture::allocate(av_from, width, height)?,
            after: Picture::allocate(av_to, width, height)?,
        })
    };
    make().map_err(|e| failed(e.to_string()))
}

/// Ordinary memory for one converted frame; for callers without a pool.
pub fn unpooled(layout: &Layout) -> Result<Buffer, AllocationError> {
    use crate::frame::Allocator;
    Ok(Buffer::unpooled(Pageable.allocate(layout.size())?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
