//! Image files that FFmpeg's encoders write: one picture, one packet, one file.

use super::picture::Picture;
use crate::annotations::exr::chromaticities;
use crate::frame::{Colour, Range};
use crate::media::ffmpeg::{self, AvError, AvFormat, Encoder, EncoderKind, EncoderSetup, Packet, Received};
use crate::media::still::{Encoding, ImageKind};
use image::ImageError;
use image::error::{EncodingError, ImageFormatHint};

/// H.273's number of linear light.
const LINEAR: u8 = 8;

/// The encoder of JPEG 2000.
const OPENJPEG: &str = "libopenjpeg";

/// The layout of samples that an encoder takes, and the encoder's options.
struct Recipe {
    /// FFmpeg's name of the pixel format.
    format: &'static str,
    samples: Samples,
    options: &'static [(&'static str, &'static str)],
}

/// How the stored samples, which are interleaved, are rearranged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Samples {
    /// They stay.
    Same,
    /// Red and blue change places.
    Swapped,
    /// A plane for each of 10 or 12 bits: green, blue and red.
    Bits(u32),
}

impl Recipe {
    /// The recipe for a picture in a file of `kind`.
    fn of(picture: &Picture<'_>, kind: ImageKind) -> Recipe {
        let (channels, deep) = (picture.stored.channels.len(), picture.stored.deep);
        match kind {
            ImageKind::Dpx if deep && channels == 3 => match picture.depth {
                10 => plain("gbrp10le", Samples::Bits(10), &[]),
                12 => plain("gbrp12le", Samples::Bits(12), &[]),
                _ => packed(channels, deep, &[]),
            },
            ImageKind::Tga => match channels {
                1 => plain("gray", Samples::Same, &[]),
                3 => plain("bgr24", Samples::Swapped, &[]),
                _ => plain("bgra", Samples::Swapped, &[]),
            },
            ImageKind::Jxl => packed(channels, deep, &[("distance", "0")]),
            ImageKind::Jp2 if picture.is_bare => packed(channels, deep, &[("format", "j2k")]),
            ImageKind::Jp2 => packed(channels, deep, &[("format", "jp2")]),
            _ => packed(channels, deep, &[]),
        }
    }
}

fn plain(format: &'static str, samples: Samples, options: &'static [(&'static str, &'static str)]) -> Recipe {
    Recipe {
        format,
        samples,
        options,
    }
}

fn packed(channels: usize, deep: bool, options: &'static [(&'static str, &'static str)]) -> Recipe {
    let format = match (channels, deep) {
        (1, false) => "gray",
        (2, false) => "ya8",
        (3, false) => "rgb24",
        (_, false) => "rgba",
        (1, true) => "gray16le",
        (2, true) => "ya16le",
        (3, true) => "rgb48le",
        (_, true) => "rgba64le",
    };
    plain(format, Samples::Same, options)
}

/// Why files of `kind` cannot be written, if FFmpeg is to encode them and lacks the encoder.
pub(super) fn missing(kind: ImageKind) -> Option<String> {
    lacking(kind, |name| EncoderKind::find(name).is_some())
}

fn lacking(kind: ImageKind, has: impl Fn(&str) -> bool) -> Option<String> {
    match kind.encoding() {
        Encoding::Ffmpeg(name) if !has(name) => Some(format!(
            "this FFmpeg has no encoder of {kind} ({name}); write PNG or TIFF, or use an FFmpeg that was \
             built with it"
        )),
        _ => None,
    }
}

/// What other readers take the samples of a file for, where that may be wrong.
pub(super) fn assumed(colour: Colour, kind: ImageKind) -> Option<String> {
    let is_linear = colour.transfer == LINEAR;
    (kind.is_float_only() && !is_linear)
        .then(|| format!("most programs take {kind} for linear light; samples were written as they are"))
}

/// True if files of `kind` say of themselves, or are understood, that their transfer is H.273's `transfer`.
pub(super) fn tells_transfer(kind: ImageKind, transfer: u8) -> bool {
    match kind {
        kind if kind.is_float_only() => transfer == LINEAR,
        ImageKind::Dpx => dpx_transfer(transfer).is_some(),
        _ => false,
    }
}

/// True if files of `kind` say that their primaries are H.273's `primaries`.
pub(super) fn tells_primaries(kind: ImageKind, primaries: u8) -> bool {
    match kind {
        ImageKind::Dpx => dpx_primaries(primaries).is_some(),
        ImageKind::Exr => chromaticities(primaries).is_some(),
        _ => false,
    }
}

/// DPX's number (SMPTE ST 268) of a transfer of H.273's.
fn dpx_transfer(transfer: u8) -> Option<u8> {
    match transfer {
        1 => Some(6),
        5 => Some(10),
        6 => Some(8),
        LINEAR => Some(2),
        _ => None,
    }
}

/// DPX's number of primaries of H.273's.
fn dpx_primaries(primaries: u8) -> Option<u8> {
    match primaries {
        1 => Some(6),
        5 => Some(10),
        6 => Some(8),
        _ => None,
    }
}

/// The offsets at which DPX states transfer and primaries of its first element, and its word for none.
const DPX_TRANSFER: usize = 801;
const DPX_PRIMARIES: usize = 802;
const DPX_UNSPECIFIED: u8 = 4;

/// The bytes of the file.
pub(super) fn encode(picture: &Picture<'_>, kind: ImageKind) -> Result<Vec<u8>, ImageError> {
    let failed = |e: AvError| {
        let hint = ImageFormatHint::Name(kind.to_string());
        ImageError::Encoding(EncodingError::new(hint, e))
    };
    let Encoding::Ffmpeg(name) = kind.encoding() else {
        return Err(failed(AvError::bug()));
    };
    let recipe = Recipe::of(picture, kind);
    let mut file = packets(picture, name, &recipe).map_err(failed)?;
    if kind == ImageKind::Dpx && file.len() > DPX_PRIMARIES {
        // FFmpeg's encoder says linear light of everything.
        let colour = picture.colour;
        file[DPX_TRANSFER] = dpx_transfer(colour.transfer).unwrap_or(DPX_UNSPECIFIED);
        file[DPX_PRIMARIES] = dpx_primaries(colour.primaries).unwrap_or(DPX_UNSPECIFIED);
    }
    Ok(file)
}

fn packets(picture: &Picture<'_>, name: &str, recipe: &Recipe) -> Result<Vec<u8>, AvError> {
    let (width, height) = (picture.width as usize, picture.height as usize);
    let codec = EncoderKind::find(name).ok_or(AvError::bug())?;
    let format = AvFormat::from_name(recipe.format).ok_or(AvError::bug())?;
    let colour = Colour {
        range: Range::Full,
        matrix: if picture.stored.channels.len() < 3 { 2 } else { 0 },
        ..Colour::default()
    };
    let setup = EncoderSetup {
        colour,
        ..EncoderSetup::plain(format, width, height)
    };
    let mut encoder = Encoder::new(codec, &setup)?;
    for (key, value) in recipe.options {
        encoder.set(key, value)?;
    }
    if name == OPENJPEG {
        // Each of its resolutions halves the picture; the smallest must have a pixel.
        let levels = 1 + width.min(height).max(1).ilog2().min(5);
        encoder.set("numresolution", &levels.to_string())?;
    }
    encoder.allow_unofficial();
    encoder.open()?;
    let mut target = ffmpeg::Picture::allocate(format, width, height)?;
    fill(&mut target, picture, recipe.samples)?;
    target.set_colour(colour);
    target.set_timing(0, (1, 1));
    encoder.send(Some(&target))?;
    encoder.send(None)?;
    let mut file = Vec::new();
    let mut packet = Packet::new()?;
    while encoder.receive(&mut packet)? == Received::Item {
        file.extend_from_slice(packet.data_mut()?);
    }
    if file.is_empty() {
        return Err(AvError::bug());
    }
    Ok(file)
}

/// Gives the encoder's picture the samples.
fn fill(target: &mut ffmpeg::Picture, picture: &Picture<'_>, samples: Samples) -> Result<(), AvError> {
    let channels = picture.stored.channels.len();
    let bytes = if picture.stored.deep { 2 } else { 1 };
    let row_bytes = picture.width as usize * channels * bytes;
    let mut words: Vec<u16> = Vec::new();
    for (y, row) in picture.pixels.chunks_exact(row_bytes).enumerate() {
        match samples {
            Samples::Same => line(target, 0, y, row_bytes)?.copy_from_slice(row),
            Samples::Swapped => {
                let to = line(target, 0, y, row_bytes)?.chunks_exact_mut(channels);
                for (to, from) in to.zip(row.chunks_exact(channels)) {
                    to.copy_from_slice(from);
                    to.swap(0, 2);
                }
            }
            Samples::Bits(depth) => {
                words.clear();
                match bytes {
                    1 => words.extend(row.iter().copied().map(u16::from)),
                    _ => words.extend(row.chunks_exact(2).map(|b| u16::from_le_bytes([b[0], b[1]]))),
                }
                for channel in 0..channels {
                    // Planes come as green, blue, red.
                    let plane = if channels == 1 { 0 } else { [2, 0, 1, 3][channel] };
                    let from = words.iter().skip(channel).step_by(channels);
                    plane_line(target, (plane, y), picture.width as usize, from, depth)?;
                }
            }
        }
    }
    Ok(())
}

/// One row of a plane of `depth` bits from samples of 16.
fn plane_line<'a>(
    target: &mut ffmpeg::Picture,
    (plane, y): (usize, usize),
    width: usize,
    from: impl Iterator<Item = &'a u16>,
    depth: u32,
) -> Result<(), AvError> {
    let highest = (1_u32 << depth) - 1;
    for (to, &word) in line(target, plane, y, 2 * width)?.chunks_exact_mut(2).zip(from) {
        // The inverse of how they were brought to 16 bits.
        let narrow = (u32::from(word) * highest + 32767) / 65535;
        to.copy_from_slice(&(narrow as u16).to_le_bytes());
    }
    Ok(())
}

fn line(target: &mut ffmpeg::Picture, plane: usize, y: usize, len: usize) -> Result<&mut [u8], AvError> {
    target.row_mut(plane, y, len).ok_or(AvError::bug())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_encoder_that_is_not_there_is_named() {
        let sentence = lacking(ImageKind::Jxl, |_| false).unwrap_or_default();
        assert!(sentence.contains("JPEG XL (libjxl); write PNG"), "{sentence}");
        assert_eq!(lacking(ImageKind::Jxl, |name| name == "libjxl"), None);
        assert_eq!(lacking(ImageKind::Png, |_| false), None);
    }
}
