//! Encodes pictures as the bytes of an image file.

use super::ImageOptions;
use super::ffmpeg_encoder;
use super::radiance;
use super::stored::{Stored, cannot_hold, stored};
#[cfg(test)]
use crate::frame::PixelFormat;
use crate::frame::{AlphaKind, Channel, Colour, Frame};
use crate::media::still::{Encoding, ImageKind};
use crate::sink::SinkError;
use half::f16;
use image::codecs::bmp::BmpEncoder;
use image::codecs::hdr::HdrEncoder;
use image::codecs::ico::IcoEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use std::borrow::Cow;
use std::io::{self, BufWriter, Cursor, Seek, Write};
use std::marker::PhantomData;
use std::sync::Arc;
use tiff::encoder::colortype::{
    ColorType, Gray8, Gray16, Gray32Float, RGB8, RGB16, RGB32Float, RGBA8, RGBA16, RGBA32Float,
};
use tiff::encoder::{TiffEncoder, TiffValue};
use tiff::tags::{PhotometricInterpretation, SampleFormat, Tag, Type};

/// `frame` as the bytes of a file of `kind`, without anything beside its pixels.
pub fn encoded(frame: &Frame, kind: ImageKind) -> Result<Vec<u8>, SinkError> {
    let refused = |problem: String| SinkError::Unsupported {
        path: format!("a {kind} file"),
        problem,
    };
    let stored = stored(kind, frame.format()).ok_or_else(|| refused(cannot_hold(kind, frame.format())))?;
    let size =
        |pixels: usize| u32::try_from(pixels).map_err(|_| refused("the picture is too large".to_owned()));
    let picture = Picture {
        pixels: pixels(frame, stored),
        width: size(frame.layout().width())?,
        height: size(frame.layout().height())?,
        stored,
        icc: None,
        orientation: None,
        colour: frame.metadata.colour,
        depth: frame.format().depth(),
        is_bare: false,
    };
    let mut file = Cursor::new(Vec::new());
    let encoding = picture.encode(kind, &ImageOptions::default(), &mut file);
    encoding.map_err(|e| refused(format!("the encoder refused the picture: {e}")))?;
    Ok(file.into_inner())
}

/// Pixels as a file stores them, and what is said about them.
pub(super) struct Picture<'a> {
    pub(super) pixels: Cow<'a, [u8]>,
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) stored: Stored,
    pub(super) icc: Option<Arc<[u8]>>,
    pub(super) orientation: Option<u8>,
    /// The frame's colour facts.
    pub(super) colour: Colour,
    /// Significant bits of a sample, of which 16 or 8 are stored.
    pub(super) depth: u32,
    /// The file is a bare codestream, where its kind has a container too.
    pub(super) is_bare: bool,
}

impl Picture<'_> {
    pub(super) fn encode(
        &self,
        kind: ImageKind,
        options: &ImageOptions,
        file: impl Write + Seek,
    ) -> Result<(), ImageError> {
        let mut out = BufWriter::with_capacity(1 << 18, file);
        match kind {
            ImageKind::Png => {
                let compression = match options.png_level {
                    None => CompressionType::Fast,
                    Some(level) => CompressionType::Level(level),
                };
                self.annotated(PngEncoder::new_with_quality(
                    &mut out,
                    compression,
                    FilterType::Adaptive,
                ))?;
            }
            ImageKind::Jpeg => {
                out.write_all(&self.jpeg(options.jpeg_quality).map_err(io::Error::other)?)?;
            }
            ImageKind::WebP => self.annotated(WebPEncoder::new_lossless(&mut out))?,
            ImageKind::Bmp => self.plain(BmpEncoder::new(&mut out))?,
            ImageKind::Ico => self.plain(IcoEncoder::new(&mut out))?,
            ImageKind::Tiff => self.tiff(&mut out).map_err(|e| match e {
                tiff::TiffError::IoError(e) => ImageError::IoError(e),
                e => ImageError::IoError(io::Error::other(e)),
            })?,
            ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm => self.netpbm(&mut out)?,
            ImageKind::Pfm => self.pfm(&mut out)?,
            ImageKind::Hdr => HdrEncoder::new(&mut out).write_image(
                &radiance::nearest(&self.pixels),
                self.width,
                self.height,
                ExtendedColorType::Rgb32F,
            )?,
            kind if matches!(kind.encoding(), Encoding::Ffmpeg(_)) => {
                out.write_all(&ffmpeg_encoder::encode(self, kind)?)?;
            }
            // Nothing is stored as what is only read: see `stored_channels`.
            _ => return Err(ImageError::IoError(io::ErrorKind::Unsupported.into())),
        }
        // Encoders that finish when they are dropped lose the error of their last write; the flush meets it
        // again.
        out.flush()?;
        Ok(())
    }

    fn annotated(&self, mut encoder: impl ImageEncoder) -> Result<(), ImageError> {
        if let Some(profile) = &self.icc {
            encoder
                .set_icc_profile(profile.to_vec())
                .map_err(ImageError::Unsupported)?;
        }
        if let Some(orientation) = self.orientation {
            encoder
                .set_exif_metadata(exif(orientation))
                .map_err(ImageError::Unsupported)?;
        }
        self.plain(encoder)
    }

    fn plain(&self, encoder: impl ImageEncoder) -> Result<(), ImageError> {
        encoder.write_image(&self.pixels, self.width, self.height, self.stored.color_type())
    }

    /// With libjpeg-turbo, colours in full (4:4:4). Profile and orientation follow the header that it writes.
    fn jpeg(&self, quality: u8) -> Result<Vec<u8>, turbojpeg::Error> {
        let (format, sampling) = match self.stored.channels.len() {
            1 => (turbojpeg::PixelFormat::GRAY, turbojpeg::Subsamp::Gray),
            _ => (turbojpeg::PixelFormat::RGB, turbojpeg::Subsamp::None),
        };
        let mut encoder = turbojpeg::Compressor::new()?;
        encoder.set_quality(i32::from(quality))?;
        encoder.set_subsamp(sampling)?;
        let file = encoder.compress_to_vec(turbojpeg::Image {
            pixels: &self.pixels[..],
            width: self.width as usize,
            pitch: self.width as usize * format.size(),
            height: self.height as usize,
            format,
        })?;
        let mut segments = Vec::new();
        if let Some(orientation) = self.orientation {
            let block = [b"Exif\0\0", &exif(orientation)[..]].concat();
            segment(&mut segments, 0xe1, &block);
        }
        if let Some(profile) = &self.icc {
            // Its pieces are numbered from 1; a profile of more than 255 of them does not fit.
            let pieces = profile.chunks(65_519);
            if let Ok(count) = u8::try_from(pieces.len()) {
                for (number, piece) in (1..).zip(pieces) {
                    let block = [&b"ICC_PROFILE\0"[..], &[number, count], piece].concat();
                    segment(&mut segments, 0xe2, &block);
                }
            }
        }
        // Behind the start of the image and the JFIF segment: FF D8 FF E0 and a length of 16 bits.
        let header = match file[..] {
            [_, _, 0xff, 0xe0, high, low, ..] => 4 + usize::from(u16::from_be_bytes([high, low])),
            _ => 2,
        };
        let (head, rest) = file.split_at(header.min(file.len()));
        Ok([head, &segments, rest].concat())
    }

    /// With the crate below the image crate's own encoder, which has no orientation.
    fn tiff(&self, out: &mut (impl Write + Seek)) -> Result<(), tiff::TiffError> {
        let mut encoder = TiffEncoder::new(out)?;
        let floats = || -> Vec<f32> {
            let (numbers, _) = self.pixels.as_chunks::<4>();
            numbers.iter().copied().map(f32::from_le_bytes).collect()
        };
        let samples = || -> Vec<u16> {
            self.pixels
                .chunks_exact(2)
                .map(|b| u16::from_le_bytes([b[0], b[1]]))
                .collect()
        };
        macro_rules! write {
            ($color:ty, $data:expr) => {{
                let mut image = encoder.new_image::<$color>(self.width, self.height)?;
                if let Some(profile) = &self.icc {
                    image
                        .encoder()
                        .write_tag(Tag::IccProfile, Profile(profile))?;
                }
                if self.stored.channels.contains(&Channel::Alpha) {
                    // The last sample is alpha, which is multiplied into the colours or is not.
                    let kind = match self.colour.alpha {
                        AlphaKind::Associated => 1_u16,
                        AlphaKind::Straight => 2,
                    };
                    image.encoder().write_tag(Tag::ExtraSamples, &[kind][..])?;
                }
                if let Some(orientation) = self.orientation {
                    image
                        .encoder()
                        .write_tag(Tag::Orientation, u16::from(orientation))?;
                }
                image.write_data($data)
            }};
        }
        match (self.stored.channels.len(), self.stored.deep) {
            (1, _) if self.stored.float => write!(Gray32Float, &floats()),
            (2, _) if self.stored.float => write!(GrayAlpha<f32>, &floats()),
            (3, _) if self.stored.float => write!(RGB32Float, &floats()),
            (_, _) if self.stored.float => write!(RGBA32Float, &floats()),
            (1, false) => write!(Gray8, &self.pixels),
            (2, false) => write!(GrayAlpha<u8>, &self.pixels),
            (3, false) => write!(RGB8, &self.pixels),
            (_, false) => write!(RGBA8, &self.pixels),
            (1, true) => write!(Gray16, &samples()),
            (2, true) => write!(GrayAlpha<u16>, &samples()),
            (3, true) => write!(RGB16, &samples()),
            (_, true) => write!(RGBA16, &samples()),
        }
    }

    /// Little-endian, as the negative scale says, and the lowest row first.
    fn pfm(&self, out: &mut impl Write) -> io::Result<()> {
        let kind = if self.stored.channels.len() == 1 {
            "Pf"
        } else {
            "PF"
        };
        write!(out, "{kind}\n{} {}\n-1.0\n", self.width, self.height)?;
        let row = self.width as usize * self.stored.channels.len() * 4;
        self.pixels
            .chunks_exact(row)
            .rev()
            .try_for_each(|row| out.write_all(row))
    }

    /// Own code, since the image crate writes 16-bit gray and RGB as PAM only.
    fn netpbm(&self, out: &mut impl Write) -> io::Result<()> {
        let (width, height) = (self.width, self.height);
        let max = if self.stored.deep { 65535 } else { 255 };
        match self.stored.channels.len() {
            1 => write!(out, "P5\n{width} {height}\n{max}\n")?,
            3 => write!(out, "P6\n{width} {height}\n{max}\n")?,
            depth => {
                let kind = if depth == 2 {
                    "GRAYSCALE_ALPHA"
                } else {
                    "RGB_ALPHA"
                };
                write!(
                    out,
                    "P7\nWIDTH {width}\nHEIGHT {height}\nDEPTH {depth}\nMAXVAL {max}\nTUPLTYPE \
                     {kind}\nENDHDR\n"
                )?;
            }
        }
        if !self.stored.deep {
            return out.write_all(&self.pixels);
        }
        let mut swapped = Vec::new();
        for block in self.pixels.chunks(1 << 16) {
            swapped.clear();
            swapped.extend(block.chunks_exact(2).flat_map(|b| [b[1], b[0]]));
            out.write_all(&swapped)?;
        }
        Ok(())
    }
}

/// A colour profile as a TIFF tag of the type that its specification asks for.
struct Profile<'a>(&'a [u8]);

impl TiffValue for Profile<'_> {
    const BYTE_LEN: u8 = 1;
    const FIELD_TYPE: Type = Type::UNDEFINED;

    fn count(&self) -> usize {
        self.0.len()
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(self.0)
    }
}

/// Gray with alpha, which the encoder's own kinds of samples lack.
struct GrayAlpha<T>(PhantomData<T>);

macro_rules! gray_alpha {
    ($sample:ty, $bits:literal, $format:ident) => {
        impl ColorType for GrayAlpha<$sample> {
            type Inner = $sample;
            const TIFF_VALUE: PhotometricInterpretation = PhotometricInterpretation::BlackIsZero;
            const BITS_PER_SAMPLE: &'static [u16] = &[$bits; 2];
            const SAMPLE_FORMAT: &'static [SampleFormat] = &[SampleFormat::$format; 2];

            // No predictor is asked for.
            fn horizontal_predict(row: &[$sample], result: &mut Vec<$sample>) {
                result.extend_from_slice(row);
            }
        }
    };
}

gray_alpha!(u8, 8, Uint);
gray_alpha!(u16, 16, Uint);
gray_alpha!(f32, 32, IEEEFP);

/// Appends a segment of a JPEG file: a marker, and its length with the data.
fn segment(to: &mut Vec<u8>, marker: u8, data: &[u8]) {
    to.extend_from_slice(&[0xff, marker]);
    // No block here is longer than the 65533 bytes that a segment holds.
    to.extend_from_slice(&(data.len() as u16 + 2).to_be_bytes());
    to.extend_from_slice(data);
}

/// The smallest Exif block: one directory with one entry, the orientation.
fn exif(orientation: u8) -> Vec<u8> {
    let mut block = b"II*\0\x08\0\0\0\x01\0".to_vec();
    // Tag 0x0112, type 3 (16 bits), one value, the value, padding; then no further directory.
    block.extend_from_slice(&[0x12, 0x01, 3, 0, 1, 0, 0, 0, orientation, 0, 0, 0, 0, 0, 0, 0]);
    block
}

/// The frame's samples, interleaved and ordered as the file stores them; borrowed where they lie so already.
pub(super) fn pixels(frame: &Frame, stored: Stored) -> Cow<'_, [u8]> {
    let (layout, format) = (frame.layout(), frame.format());
    let planes = format.planes();
    if planes.len() == 1
        && planes[0].channels == stored.channels
        && (matches!(format.depth(), 8 | 16) && !stored.float || format.depth() == 32)
        && layout.is_tight()
    {
        return Cow::Borrowed(frame.bytes());
    }
    if stored.float {
        return Cow::Owned(floats(frame, stored));
    }
    let bytes = format.bytes_per_sample();
    let row_bytes = layout.width() * stored.channels.len() * bytes;
    let mut pixels = vec![0_u8; row_bytes * layout.height()];
    let max = format.max_value();
    // Exact at both ends and invertible in between.
    let scale: Vec<u16> = match format.depth() {
        8 | 16 => Vec::new(),
        _ => (0..=max).map(|v| ((v * 65535 + max / 2) / max) as u16).collect(),
    };
    for (slot, &channel) in stored.channels.iter().enumerate() {
        // Gray goes to every colour.
        let gray = (channel != Channel::Alpha)
            .then(|| format.place(Channel::Luma))
            .flatten();
        let Some((plane, offset)) = format.place(channel).or(gray) else {
            continue;
        };
        let step = planes[plane].channels.len();
        for y in 0..layout.height() {
            let source = frame.row(plane, y);
            let target = &mut pixels[y * row_bytes..(y + 1) * row_bytes];
            if bytes == 1 {
                let samples = source[offset..].iter().step_by(step);
                for (to, from) in target[slot..]
                    .iter_mut()
                    .step_by(stored.channels.len())
                    .zip(samples)
                {
                    *to = *from;
                }
            } else {
                let samples = source[2 * offset..].chunks(2 * step);
                for (to, from) in target[2 * slot..]
                    .chunks_mut(2 * stored.channels.len())
                    .zip(samples)
                {
                    let word = u16::from_le_bytes([from[0], from[1]]);
                    let word = scale.get(usize::from(word)).copied().unwrap_or(word);
                    to[..2].copy_from_slice(&word.to_le_bytes());
                }
            }
        }
    }
    Cow::Owned(pixels)
}

/// The same of floating-point samples, as numbers of 32 bits.
fn floats(frame: &Frame, stored: Stored) -> Vec<u8> {
    let (layout, format) = (frame.layout(), frame.format());
    let count = stored.channels.len();
    let row_bytes = 4 * layout.width() * count;
    let mut pixels = vec![0_u8; row_bytes * layout.height()];
    for (slot, &channel) in stored.channels.iter().enumerate() {
        // Gray goes to every colour.
        let luma = (channel != Channel::Alpha).then_some(Channel::Luma);
        let Some((plane, at)) = format.place(channel).or_else(|| format.place(luma?)) else {
            continue;
        };
        let step = format.planes()[plane].channels.len();
        for (y, target) in pixels.chunks_exact_mut(row_bytes).enumerate() {
            let places = target.as_chunks_mut::<4>().0.iter_mut().skip(slot).step_by(count);
            let row = frame.row(plane, y);
            if format.depth() == 16 {
                let samples = row.as_chunks::<2>().0.iter().skip(at).step_by(step);
                let wide = samples.map(|&half| f16::from_le_bytes(half).to_f32().to_le_bytes());
                places.zip(wide).for_each(|(to, from)| *to = from);
            } else {
                let samples = row.as_chunks::<4>().0.iter().skip(at).step_by(step);
                places.zip(samples).for_each(|(to, from)| *to = *from);
            }
        }
    }
    pixels
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::frame::{Buffer, Layout};
    use crate::media::still::ImageKind;
    use crate::sink::images::stored::stored;

    fn format(name: &str) -> PixelFormat {
        PixelFormat::from_name(name).unwrap()
    }

    #[test]
    fn components_are_put_in_order_and_scaled() {
        let gather = |name: &str, samples: &[u16], kind: ImageKind| {
            let layout = Layout::new(format(name), 2, 1, 16).unwrap();
            let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
            let mut samples = samples.iter();
            for index in 0..layout.planes().len() {
                for place in frame
                    .row_mut(index, 0)
                    .chunks_mut(format(name).bytes_per_sample())
                {
                    let sample = samples.next().unwrap().to_le_bytes();
                    let len = place.len();
                    place.copy_from_slice(&sample[..len]);
                }
            }
            pixels(&frame, stored(kind, format(name)).unwrap()).into_owned()
        };
        assert_eq!(
            gather("bgr24", &[3, 2, 1, 6, 5, 4], ImageKind::Png),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("abgr", &[4, 3, 2, 1, 8, 7, 6, 5], ImageKind::Tiff),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("gbrp", &[2, 5, 3, 6, 1, 4], ImageKind::Jpeg),
            [1, 2, 3, 4, 5, 6]
        );
        assert_eq!(
            gather("gbrap", &[2, 6, 3, 7, 1, 5, 4, 8], ImageKind::Png),
            [1, 2, 3, 4, 5, 6, 7, 8]
        );
        assert_eq!(
            gather("ya8", &[9, 1, 8, 2], ImageKind::Bmp),
            [9, 9, 9, 1, 8, 8, 8, 2]
        );
        assert_eq!(gather("gray10le", &[0, 1023], ImageKind::Png), [0, 0, 255, 255]);
        assert_eq!(gather("gray10le", &[1, 512], ImageKind::Png), [64, 0, 32, 128]);
        assert_eq!(
            gather("bgr48le", &[3, 2, 1, 6, 5, 0x104], ImageKind::Pnm),
            [1, 0, 2, 0, 3, 0, 4, 1, 5, 0, 6, 0]
        );
    }
}
