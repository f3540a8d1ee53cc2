//! RGB of frames: the integers that define it, and the plain loop that the CPU (`cpu/pixels/rgb.rs`) and the
//! kernel (`kernels/scalar/rgb.cu`) must match. It follows docs/arithmetic.md sentence by sentence.

use super::EngineError;
use crate::frame::{Channel, Colour, ColourModel, FieldOrder, Frame, Layout, PixelFormat, YCGCO, rgb_of_yuv};

/// The factors are times two to this power: with it they fit 31 bits whatever the depths.
pub(crate) const FACTOR_BITS: u32 = 22;

/// How the colours of one format with certain facts become RGB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RgbIntegers {
    /// RGB of 8 or 16 bits.
    pub(crate) result: PixelFormat,
    /// How many components colours are made of: luma alone, or three.
    pub(crate) count: usize,
    /// Where each lies: its plane, and its place among those that the plane interleaves.
    pub(crate) places: [(usize, usize); 3],
    /// What is taken away from each.
    pub(crate) zeros: [i32; 3],
    /// What each counts in red, in green and in blue, times `2^FACTOR_BITS`.
    pub(crate) factors: [[i32; 3]; 3],
    /// log2 of how many pixels a sample of the last two stands for, across and down.
    pub(crate) log2: (u32, u32),
    /// Where their first sample lies, in halves of a pixel right of the first pixel and below it.
    pub(crate) origin: (i32, i32),
    /// Rows of chroma count for rows of their own field alone.
    pub(crate) has_fields: bool,
}

impl RgbIntegers {
    /// The integers for frames of `format` with these facts and `height` rows. An error if samples are
    /// floating-point numbers, or if the matrix is not known.
    pub(crate) fn new(
        format: PixelFormat,
        (colour, field_order): (&Colour, FieldOrder),
        height: usize,
    ) -> Result<RgbIntegers, EngineError> {
        let channels = match format.model() {
            _ if format.is_float() => None,
            ColourModel::Data => None,
            ColourModel::Gray => Some([Channel::Luma; 3]),
            ColourModel::Yuv => Some([Channel::Luma, Channel::Cb, Channel::Cr]),
            ColourModel::Rgb => Some([Channel::Red, Channel::Green, Channel::Blue]),
        };
        let channels = channels.ok_or_else(|| {
            EngineError::Unfit(format!(
                "samples of {format} are floating-point numbers, of which no RGB of integers is made"
            ))
        })?;
        let result = match format.bytes_per_sample() {
            1 => PixelFormat::RGB24,
            _ => PixelFormat::RGB48,
        };
        // Every format has its model's components.
        let places = channels.map(|channel| format.place(channel).unwrap_or_default());
        let factor = |weight: f64, channel: Channel| {
            let white = f64::from(result.max_value()) / f64::from(colour.span(format, channel));
            (weight * white * f64::from(1 << FACTOR_BITS)).round() as i32
        };
        let weights = weights(format.model(), colour, height)?;
        let log2 = format.chroma_subsampling();
        Ok(RgbIntegers {
            result,
            count: if format.model() == ColourModel::Gray { 1 } else { 3 },
            places,
            zeros: channels.map(|channel| colour.zero_level(format, channel) as i32),
            factors: weights.map(|row| [0, 1, 2].map(|k| factor(row[k], channels[k]))),
            log2,
            origin: colour.chroma_origin(log2),
            has_fields: field_order.is_interlaced() && log2.1 > 0,
        })
    }

    /// Bits of the places between rows of chroma.
    pub(crate) fn row_bits(&self) -> u32 {
        self.log2.1 + 1 + u32::from(self.has_fields)
    }

    /// The two of `count` rows of chroma between which row `y` of pixels lies, and how far below the first,
    /// in parts of `2^row_bits`. A field without rows takes those of the other.
    pub(crate) fn rows_between(&self, y: usize, count: usize) -> (usize, usize, i64) {
        if !self.has_fields {
            return between(y, self.origin.1, self.log2.1, count);
        }
        // The field's rows of chroma are every other one, from this one on.
        let first = (y & 1).min(count - 1);
        let origin = self.origin.1 + ((first as i32) << (self.log2.1 + 1));
        let (above, below, part) = between(y, origin, self.log2.1 + 1, (count + 1 - first) / 2);
        (2 * above + first, 2 * below + first, part)
    }

    /// Bits that the numbers have below a level, besides those of the factors: those of the places between
    /// chroma samples.
    pub(crate) fn place_bits(&self) -> u32 {
        self.log2.0 + 1 + self.row_bits()
    }

    /// The components of a pixel above their zeros, times `2^place_bits`.
    fn components(&self, frame: &Frame, x: usize, y: usize) -> [i64; 3] {
        let at = |k: usize, x: usize, y: usize| {
            let (plane, channel) = self.places[k];
            i64::from(frame.sample(plane, x, y, channel)) - i64::from(self.zeros[k])
        };
        let chroma = &frame.layout().planes()[self.places[1].0];
        let (left, right, across) = between(x, self.origin.0, self.log2.0, chroma.width);
        let (above, below, down) = self.rows_between(y, chroma.height);
        let (width, height) = (2 << self.log2.0, 1 << self.row_bits());
        let mixed = |k: usize| {
            let row = |y: usize| (width - across) * at(k, left, y) + across * at(k, right, y);
            (height - down) * row(above) + down * row(below)
        };
        match self.count {
            1 => [at(0, x, y) << self.place_bits(), 0, 0],
            _ => [at(0, x, y) << self.place_bits(), mixed(1), mixed(2)],
        }
    }
}

/// The two samples between which place `at` lies along one side, and how far behind the first, in parts of
/// `2^(log2 + 1)`. Beyond the ends the last sample stands for those that there are not.
pub(crate) fn between(at: usize, origin: i32, log2: u32, count: usize) -> (usize, usize, i64) {
    let place = 2 * at as i64 - i64::from(origin);
    let first = place >> (log2 + 1);
    let within = |index: i64| index.clamp(0, count as i64 - 1) as usize;
    let part = place - (first << (log2 + 1));
    (within(first), within(first + 1), part)
}

/// What the components, each from 0 to 1 or -1/2 to 1/2, count in red, in green and in blue.
fn weights(model: ColourModel, colour: &Colour, height: usize) -> Result<[[f64; 3]; 3], EngineError> {
    Ok(match model {
        ColourModel::Rgb => [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        ColourModel::Gray | ColourModel::Data => [[1.0, 0.0, 0.0]; 3],
        ColourModel::Yuv => {
            let matrix = match colour.matrix {
                YCGCO => YCGCO,
                _ => colour.read_matrix(height)?,
            };
            // Each that is read has one.
            rgb_of_yuv(matrix).unwrap_or_default()
        }
    })
}

/// Red, green and blue of each pixel of a frame, row by row, of 8 bits for samples of 8 and of 16 for all
/// others. An error if samples are floating-point numbers, or if the matrix is not known.
pub fn to_rgb(frame: &Frame) -> Result<Vec<u16>, EngineError> {
    let layout: &Layout = frame.layout();
    let facts = (&frame.metadata.colour, frame.metadata.field_order);
    let integers = RgbIntegers::new(layout.format(), facts, layout.height())?;
    let bits = FACTOR_BITS + integers.place_bits();
    let most = i64::from(integers.result.max_value());
    let mut rgb = Vec::with_capacity(3 * layout.width() * layout.height());
    for y in 0..layout.height() {
        for x in 0..layout.width() {
            let components = integers.components(frame, x, y);
            for factors in &integers.factors {
                let terms = factors.iter().zip(components).map(|(&f, c)| i64::from(f) * c);
                let sum: i64 = terms.sum();
                let level = (sum + (1 << (bits - 1))) >> bits;
                rgb.push(level.clamp(0, most) as u16);
            }
        }
    }
    Ok(rgb)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Range;

    fn facts(colour: &Colour) -> (&Colour, FieldOrder) {
        (colour, FieldOrder::TopFirst)
    }

    /// Sums fit the numbers that the kernel makes them in.
    #[test]
    fn factors_fit_31_bits_and_grays_have_no_colour() {
        for format in PixelFormat::integers() {
            for range in [Range::Limited, Range::Full] {
                for matrix in [1, 4, 5, 6, 7, 8, 9] {
                    let colour = Colour {
                        range,
                        matrix,
                        ..Colour::default()
                    };
                    let integers = RgbIntegers::new(format, facts(&colour), 480).unwrap();
                    for row in integers.factors {
                        assert!(
                            row.iter().all(|&f| f.unsigned_abs() < 1 << 31),
                            "{format} {row:?}"
                        );
                    }
                    if format.model() != ColourModel::Rgb {
                        let luma = integers.factors.map(|row| row[0]);
                        assert_eq!(luma, [luma[0]; 3], "{format}");
                    }
                }
            }
        }
    }

    #[test]
    fn places_between_samples_follow_the_location() {
        // Pixels of 4:2:0, whose chroma lies left: on every other pixel, and half-way between two.
        assert_eq!(between(0, 0, 1, 3), (0, 1, 0));
        assert_eq!(between(1, 0, 1, 3), (0, 1, 2));
        assert_eq!(between(5, 0, 1, 3), (2, 2, 2));
        // In the centre: a quarter and three quarters.
        assert_eq!(between(0, 1, 1, 3), (0, 0, 3));
        assert_eq!(between(1, 1, 1, 3), (0, 1, 1));
        assert_eq!(between(2, 1, 1, 3), (0, 1, 3));
        // Of 4:1:1 in eighths.
        assert_eq!(between(0, 3, 2, 2), (0, 0, 5));
        assert_eq!(between(2, 3, 2, 2), (0, 1, 1));
        assert_eq!(between(3, 0, 0, 9), (3, 4, 0));
    }

    #[test]
    fn a_matrix_without_a_formula_is_refused() {
        for matrix in (10..=17).chain([200]) {
            let colour = Colour {
                matrix,
                ..Colour::default()
            };
            let error = RgbIntegers::new(PixelFormat::YUV420P, facts(&colour), 720).unwrap_err();
            assert!(
                error.to_string().contains("cannot be converted to RGB"),
                "{error}"
            );
            // RGB and gray need none.
            assert!(RgbIntegers::new(PixelFormat::GBRP, facts(&colour), 720).is_ok());
            assert!(RgbIntegers::new(PixelFormat::GRAY, facts(&colour), 720).is_ok());
        }
        let floats = RgbIntegers::new(PixelFormat::RGBF32, facts(&Colour::default()), 720);
        assert!(floats.is_err());
    }
}
