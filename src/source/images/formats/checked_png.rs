//! PNG files whose compressed pixels must have the checksum that stands behind them (Adler-32), which the
//! image crate does not look at: the png crate below it, in the same way but for that.

use image::error::{DecodingError, ImageFormatHint};
use image::{ColorType, ImageDecoder, ImageError, ImageFormat, ImageResult};
use png::{BitDepth, DecodeOptions, Limits, Transformations};
use std::io::{BufRead, Seek};

/// A file whose header has been read.
pub(in crate::source::images) struct CheckedPng<R: BufRead + Seek> {
    reader: png::Reader<R>,
    colour: ColorType,
}

impl<R: BufRead + Seek> CheckedPng<R> {
    /// Reads the header; `None` where the image crate has words for what is wrong with it.
    pub(in crate::source::images) fn open(input: R) -> Option<CheckedPng<R>> {
        let mut options = DecodeOptions::default();
        options.set_ignore_adler32(false);
        let mut decoder = png::Decoder::new_with_options(input, options);
        decoder.set_limits(Limits { bytes: usize::MAX });
        decoder.set_transformations(Transformations::EXPAND);
        let reader = decoder.read_info().ok()?;
        let colour = match reader.output_color_type() {
            (png::ColorType::Grayscale, BitDepth::Eight) => ColorType::L8,
            (png::ColorType::Grayscale, BitDepth::Sixteen) => ColorType::L16,
            (png::ColorType::GrayscaleAlpha, BitDepth::Eight) => ColorType::La8,
            (png::ColorType::GrayscaleAlpha, BitDepth::Sixteen) => ColorType::La16,
            (png::ColorType::Rgb, BitDepth::Eight) => ColorType::Rgb8,
            (png::ColorType::Rgb, BitDepth::Sixteen) => ColorType::Rgb16,
            (png::ColorType::Rgba, BitDepth::Eight) => ColorType::Rgba8,
            (png::ColorType::Rgba, BitDepth::Sixteen) => ColorType::Rgba16,
            _ => return None,
        };
        Some(CheckedPng { reader, colour })
    }
}

impl<R: BufRead + Seek> ImageDecoder for CheckedPng<R> {
    fn dimensions(&self) -> (u32, u32) {
        self.reader.info().size()
    }

    fn color_type(&self) -> ColorType {
        self.colour
    }

    fn read_image(mut self, into: &mut [u8]) -> ImageResult<()> {
        let failed =
            |e| ImageError::Decoding(DecodingError::new(ImageFormatHint::Exact(ImageFormat::Png), e));
        self.reader.next_frame(into).map_err(failed)?;
        if self.colour.bytes_per_pixel() / self.colour.channel_count() == 2 {
            for sample in into.as_chunks_mut::<2>().0 {
                *sample = u16::from_be_bytes(*sample).to_ne_bytes();
            }
        }
        Ok(())
    }

    fn read_image_boxed(self: Box<Self>, into: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(into)
    }
}
