//! Encodes pictures as the bytes of an image file.

use super::ImageOptions;
use super::ffmpeg_encoder;
use super::picture::{Picture, pixels};
use super::radiance;
use super::stored::{cannot_hold, stored};
use crate::frame::{AlphaKind, Channel, Frame};
use crate::media::still::{Encoding, ImageKind};
use crate::sink::SinkError;
use image::codecs::bmp::BmpEncoder;
use image::codecs::ico::IcoEncoder;
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::codecs::webp::WebPEncoder;
use image::{ImageEncoder, ImageError};
use std::borrow::Cow;
use std::io::{self, BufWriter, Cursor, Seek, Write};
use std::marker::PhantomData;
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
            // The caller has brought them to their nearest numbers.
            ImageKind::Hdr => radiance::write(&self.pixels, self.width, self.height, &mut out)?,
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
