//! Decompression, mostly by the decoders of the `tiff` crate.
//!
//! Each compressed strip or tile is handed to the crate as a small TIFF file of its own, made in memory, in
//! which the samples are gray and need no conversion. JPEG headers are read here first, because the decoder
//! does not report everything that it decodes wrongly.
//!
//! ```text
//! header: II, 42, 8 | directory of 9 entries: size, bits, compression, one strip | the compressed bytes
//! made here ---------------------------------------------------------------------| borrowed, not copied
//! ```

use super::directory::{
    BITS, COMPRESSION, HEIGHT, PHOTOMETRIC, ROWS_PER_STRIP, SAMPLES, STRIP_COUNTS, STRIP_OFFSETS, WIDTH,
};
use super::{Problem, Result, damaged, unsupported};
use crate::source::images::formats::jpeg::is_of_padding;
use crate::source::images::formats::webp_chunks::{self, Missing};
use image::codecs::webp::WebPDecoder;
use image::{ColorType, ImageDecoder};
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use tiff::decoder::{Decoder, Limits};
use tiff::{TiffError, TiffFormatError};
use weezl::{BitOrder, LzwStatus, decode::Decoder as Lzw};

/// The compressions that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packing {
    None,
    /// CCITT run lengths, every row at a whole byte.
    FaxRuns,
    Fax3,
    Fax4,
    Lzw,
    Jpeg,
    Deflate,
    PackBits,
    WebP,
}

impl Packing {
    /// The compression of this code, if it is read.
    pub(super) fn new(code: u64) -> Result<Packing> {
        let name = match code {
            1 => return Ok(Packing::None),
            2 => return Ok(Packing::FaxRuns),
            3 => return Ok(Packing::Fax3),
            4 => return Ok(Packing::Fax4),
            5 => return Ok(Packing::Lzw),
            7 => return Ok(Packing::Jpeg),
            8 | 32_946 => return Ok(Packing::Deflate),
            32_773 => return Ok(Packing::PackBits),
            34_927 | 50_001 => return Ok(Packing::WebP),
            6 => "old-style JPEG",
            9 | 10 | 34_661 => "JBIG",
            32_766 => "NeXT",
            32_809 => "ThunderScan",
            32_908 | 32_909 => "Pixar",
            34_676 | 34_677 => "SGI LogLuv",
            33_003 | 33_004 | 33_005 | 34_712 => "JPEG 2000",
            34_887 => "LERC",
            34_892 => "lossy JPEG of DNG",
            34_925 => "LZMA",
            34_926 | 50_000 => "Zstandard",
            50_002 | 52_546 => "JPEG XL",
            _ => return unsupported(format!("is compressed by an unknown method ({code})")),
        };
        unsupported(format!("is compressed by {name}"))
    }

    /// The code in the Compression tag.
    fn code(self) -> u16 {
        match self {
            Packing::None => 1,
            Packing::FaxRuns => 2,
            Packing::Fax3 => 3,
            Packing::Fax4 => 4,
            Packing::Lzw => 5,
            Packing::Jpeg => 7,
            Packing::Deflate => 8,
            Packing::PackBits => 32_773,
            Packing::WebP => 34_927,
        }
    }

    /// Fax data, which is black and white.
    pub(super) fn is_fax(self) -> bool {
        matches!(self, Packing::FaxRuns | Packing::Fax3 | Packing::Fax4)
    }

    /// The most bytes of samples that a packed byte can stand for; `None` if rows of one colour take a bit,
    /// or nothing.
    pub(super) fn most_packed(self) -> Option<u64> {
        // The number of a colour in a palette has a bit or more, and the colour three samples of 16 bits.
        const PALETTE: u64 = 48;
        match self {
            Packing::None => Some(PALETTE),
            Packing::PackBits => Some(64 * PALETTE),
            Packing::Deflate => Some(1100 * PALETTE),
            // Codes of 12 bits stand for up to 3838 bytes.
            Packing::Lzw => Some(2600 * PALETTE),
            Packing::FaxRuns | Packing::Fax3 | Packing::Fax4 | Packing::Jpeg | Packing::WebP => None,
        }
    }
}

/// The picture as which a strip or tile is handed to the `tiff` crate.
pub(super) struct Shape {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) bits: u16,
    pub(super) samples: usize,
}

/// Decompresses `data` into `raw`, as the only strip of a gray TIFF file.
pub(super) fn unpack(
    packing: Packing,
    shape: &Shape,
    data: &[u8],
    raw: &mut [u8],
) -> std::result::Result<(), TiffError> {
    const ENTRIES: u32 = 9;
    const START: u32 = 8 + 2 + 12 * ENTRIES + 4;
    let word = |value: usize| u32::try_from(value).map_err(|_| TiffError::IntSizeError);
    let mut head = Vec::with_capacity(START as usize);
    head.extend_from_slice(b"II\x2a\0\x08\0\0\0");
    head.extend_from_slice(&(ENTRIES as u16).to_le_bytes());
    for (tag, value) in [
        (WIDTH, word(shape.width)?),
        (HEIGHT, word(shape.height)?),
        (BITS, shape.bits.into()),
        (COMPRESSION, packing.code().into()),
        (PHOTOMETRIC, 1),
        (STRIP_OFFSETS, START),
        (SAMPLES, word(shape.samples)?),
        (ROWS_PER_STRIP, word(shape.height)?),
        (STRIP_COUNTS, word(data.len())?),
    ] {
        head.extend_from_slice(&tag.to_le_bytes());
        head.extend_from_slice(&4_u16.to_le_bytes());
        head.extend_from_slice(&1_u32.to_le_bytes());
        head.extend_from_slice(&value.to_le_bytes());
    }
    head.extend_from_slice(&[0; 4]);
    let mut limits = Limits::default();
    limits.decoding_buffer_size = raw.len();
    limits.intermediate_buffer_size = data.len();
    let mut decoder = Decoder::new(Joined::new(&head, data))?.with_limits(limits);
    // The crate fills the front of a longer buffer and leaves the rest as it was.
    if decoder.image_chunk_buffer_layout(0)?.complete_len != raw.len() {
        return Err(TiffError::FormatError(
            TiffFormatError::InconsistentSizesEncountered,
        ));
    }
    decoder.read_chunk_bytes(0, raw)
}

/// Decompresses LZW as it was before TIFF 5.0: the lowest bits come first, and codes grow as in GIF.
pub(super) fn unpack_old_lzw(data: &[u8], raw: &mut [u8]) -> Result<()> {
    let mut decoder = Lzw::new(BitOrder::Lsb, 8);
    let (mut from, mut to) = (data, raw);
    while !to.is_empty() {
        let done = decoder.decode_bytes(from, to);
        from = &from[done.consumed_in..];
        to = &mut std::mem::take(&mut to)[done.consumed_out..];
        match done.status {
            Ok(LzwStatus::Ok) if done.consumed_in + done.consumed_out > 0 => {}
            Ok(LzwStatus::Done) if to.is_empty() => {}
            _ => return damaged("its LZW data is damaged or ends early"),
        }
    }
    Ok(())
}

/// Decompresses a WebP picture of `width` pixels and at least `rows` rows, 3 or 4 samples each.
pub(super) fn unpack_webp(
    data: &[u8],
    (width, rows, samples): (usize, usize, usize),
    limit: usize,
    raw: &mut [u8],
) -> Result<()> {
    let lacks = webp_chunks::missing(&mut Cursor::new(data)).map_err(Problem::Io)?;
    if lacks == Some(Missing::Pixels) {
        return damaged("its WebP data ends early");
    }
    let broken = |cause: image::ImageError| Problem::Damaged(format!("its WebP data: {cause}"));
    let decoder = WebPDecoder::new(Cursor::new(data)).map_err(broken)?;
    let (w, h) = decoder.dimensions();
    let given = match decoder.color_type() {
        ColorType::Rgb8 => 3,
        ColorType::Rgba8 => 4,
        other => return unsupported(format!("holds WebP data of {other:?} samples")),
    };
    if w as usize != width || (h as usize) < rows || !matches!(samples, 3 | 4) {
        return damaged("its WebP data has another size");
    }
    let size = given * width * h as usize;
    if size > limit {
        return damaged("its WebP data is too large for the picture");
    }
    let mut pixels = vec![0; size];
    decoder.read_image(&mut pixels).map_err(broken)?;
    for (to, from) in raw.chunks_exact_mut(samples).zip(pixels.chunks_exact(given)) {
        // Pixels without alpha are opaque.
        let pixel = [from[0], from[1], from[2], from.get(3).copied().unwrap_or(255)];
        to.copy_from_slice(&pixel[..samples]);
    }
    Ok(())
}

/// Decompresses JPEG data, the components as they are stored and those of fewer samples interpolated, as
/// libtiff does: what they mean is for the page to say.
pub(super) fn unpack_jpeg(data: &[u8], shape: &Shape, raw: &mut [u8]) -> Result<()> {
    let broken = |e: turbojpeg::Error| Problem::Damaged(format!("its JPEG data: {e}"));
    let Some(plain) = without_colour_transform(data) else {
        return damaged("its JPEG data ends early");
    };
    let mut decoder = turbojpeg::Decompressor::new().map_err(broken)?;
    let header = decoder.read_header(&plain).map_err(broken)?;
    let (pitch, height) = (shape.width * shape.samples, header.height);
    if header.width != shape.width || height < shape.height {
        return damaged("its JPEG data has another size");
    }
    // A strip may have more rows than the page takes of it.
    let mut all = vec![0; if height > shape.height { pitch * height } else { 0 }];
    let decoded = decoder.decompress(
        &plain,
        turbojpeg::Image {
            pixels: if all.is_empty() { &mut *raw } else { &mut all[..] },
            width: shape.width,
            pitch,
            height,
            format: match shape.samples {
                1 => turbojpeg::PixelFormat::GRAY,
                3 => turbojpeg::PixelFormat::RGB,
                _ => turbojpeg::PixelFormat::CMYK,
            },
        },
    );
    match decoded {
        Err(e) if !is_of_padding(&e.to_string(), &plain) => return Err(broken(e)),
        _ => {}
    }
    if !all.is_empty() {
        let rows = raw.len();
        raw.copy_from_slice(&all[..rows]);
    }
    Ok(())
}

/// JPEG data whose header says, in place of all that it says of colours, that components are not to be
/// converted (Adobe's segment with a transform of 0); `None` if its first scan is not found.
fn without_colour_transform(data: &[u8]) -> Option<Vec<u8>> {
    const NO_TRANSFORM: &[u8] = b"\xff\xee\x00\x0eAdobe\x00\x64\x00\x00\x00\x00\x00";
    let mut plain = data.get(..2)?.to_vec();
    let mut rest = data.get(2..)?;
    loop {
        let &[0xff, marker] = rest.first_chunk()? else {
            return None;
        };
        let length = match marker {
            0xff => 1,
            0x01 | 0xd0..=0xd8 => 2,
            0xda => {
                plain.extend_from_slice(NO_TRANSFORM);
                plain.extend_from_slice(rest);
                return Some(plain);
            }
            _ => 2 + usize::from(u16::from_be_bytes(*rest.get(2..)?.first_chunk()?)).max(2),
        };
        let segment = rest.get(..length)?;
        if !matches!(marker, 0xe0..=0xef | 0xff) {
            plain.extend_from_slice(segment);
        }
        rest = &rest[length..];
    }
}

/// Two slices read as one file, so that neither is copied.
struct Joined<'a> {
    parts: [Cursor<&'a [u8]>; 2],
}

impl<'a> Joined<'a> {
    fn new(head: &'a [u8], data: &'a [u8]) -> Joined<'a> {
        Joined {
            parts: [Cursor::new(head), Cursor::new(data)],
        }
    }
}

impl Read for Joined<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let [head, data] = &mut self.parts;
        match head.read(buffer)? {
            0 => data.read(buffer),
            read => Ok(read),
        }
    }
}

impl Seek for Joined<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let [head, data] = &mut self.parts;
        let length = head.get_ref().len() as u64;
        let place = match to {
            SeekFrom::Start(place) => Some(place),
            SeekFrom::End(by) => (length + data.get_ref().len() as u64).checked_add_signed(by),
            SeekFrom::Current(by) => (head.position() + data.position()).checked_add_signed(by),
        };
        let place = place.ok_or(io::ErrorKind::InvalidInput)?;
        head.set_position(place.min(length));
        data.set_position(place.saturating_sub(length));
        Ok(place)
    }
}

/// The JPEG data of a strip or tile, with the tables that all of them share put before it.
pub(super) fn with_tables(tables: &[u8], data: Vec<u8>) -> Vec<u8> {
    let Some(body) = tables.strip_prefix(b"\xff\xd8") else {
        return data;
    };
    let body = body.strip_suffix(b"\xff\xd9").unwrap_or(body);
    let Some(rest) = data.strip_prefix(b"\xff\xd8") else {
        return data;
    };
    [b"\xff\xd8", body, rest].concat()
}

/// Width, height and components of JPEG data; refuses what the decoder would decode wrongly without an error.
pub(super) fn jpeg_size(data: &[u8]) -> Result<(usize, usize, usize)> {
    let early = || Problem::Damaged("its JPEG data ends early".into());
    if !data.starts_with(b"\xff\xd8") {
        return damaged("its JPEG data does not begin as such");
    }
    let end = data
        .windows(2)
        .rposition(|pair| pair == b"\xff\xd9")
        .ok_or_else(early)?;
    let mut frame: Option<(u8, usize, usize, usize)> = None;
    let mut at = 2;
    while at < end {
        let &[mark, marker] = data
            .get(at..at + 2)
            .and_then(|pair| pair.first_chunk())
            .ok_or_else(early)?;
        if mark != 0xff {
            return damaged("its JPEG data has no marker where one should be");
        }
        if marker == 0xff {
            at += 1;
            continue;
        }
        if matches!(marker, 0x01 | 0xd0..=0xd8) {
            at += 2;
            continue;
        }
        let length = data
            .get(at + 2..at + 4)
            .and_then(|pair| pair.first_chunk())
            .ok_or_else(early)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let segment = data.get(at + 4..at + 2 + length.max(2)).ok_or_else(early)?;
        match (marker, segment) {
            (0xc0..=0xc2, &[8, h1, h0, w1, w0, components, ..]) => {
                let height = usize::from(u16::from_be_bytes([h1, h0]));
                let width = usize::from(u16::from_be_bytes([w1, w0]));
                frame = Some((marker, width, height, components.into()));
            }
            (0xc0..=0xc2, &[bits, ..]) if bits != 8 => {
                return unsupported(format!("holds JPEG data of {bits}-bit samples"));
            }
            (0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf, _) => {
                return unsupported("holds JPEG data that is lossless, hierarchical or arithmetic");
            }
            (0xda, &[components, ..]) => {
                let Some((kind, width, height, all)) = frame else {
                    return damaged("its JPEG data has no size");
                };
                if kind != 0xc2 && usize::from(components) != all {
                    return unsupported("holds JPEG data of several scans");
                }
                // Of others it decodes a part of the rows.
                if !matches!(all, 1 | 3 | 4) {
                    return unsupported(format!("holds JPEG data of {all} components"));
                }
                return Ok((width, height, all));
            }
            _ => {}
        }
        at += 2 + length.max(2);
    }
    Err(early())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jpeg_data_is_decoded_as_libjpeg_decodes_it() {
        use super::super::fixtures::{file, read};
        let (width, height) = (37, 21);
        let samples: Vec<u8> = (0..3 * width * height)
            .map(|at| (at * at / 7 % 251) as u8)
            .collect();
        let image = turbojpeg::Image {
            pixels: &samples[..],
            width,
            pitch: 3 * width,
            height,
            format: turbojpeg::PixelFormat::RGB,
        };
        for sampling in [
            turbojpeg::Subsamp::Sub2x2,
            turbojpeg::Subsamp::Sub2x1,
            turbojpeg::Subsamp::None,
        ] {
            let jpeg = turbojpeg::compress(image, 90, sampling).unwrap().to_vec();
            let expected = turbojpeg::decompress(&jpeg, turbojpeg::PixelFormat::RGB).unwrap();
            let entries: &[(u16, &[u32])] = &[
                (BITS, &[8; 3]),
                (COMPRESSION, &[7]),
                (PHOTOMETRIC, &[6]),
                (SAMPLES, &[3]),
            ];
            let bytes = file(width as u32, height as u32, entries, &[&jpeg]);
            let (facts, out) = read(&bytes).unwrap();
            assert!(!facts.gray && out.len() == samples.len());
            // The colours are converted here without its tables of 16 bits.
            let off = out.iter().zip(&expected.pixels).map(|(a, b)| a.abs_diff(*b));
            assert!(off.max() <= Some(1), "{sampling:?}");
            // The same components as colours of their own.
            let colours: &[(u16, &[u32])] = &[
                (BITS, &[8; 3]),
                (COMPRESSION, &[7]),
                (PHOTOMETRIC, &[2]),
                (SAMPLES, &[3]),
            ];
            let (_, plain) = read(&file(width as u32, height as u32, colours, &[&jpeg])).unwrap();
            let luma = |pixel: &[u8]| {
                (299 * u32::from(pixel[0]) + 587 * u32::from(pixel[1]) + 114 * u32::from(pixel[2])) / 1000
            };
            let (pixels, _) = expected.pixels.as_chunks::<3>();
            let mut both = plain.chunks_exact(3).zip(pixels);
            assert!(
                both.all(|(raw, rgb)| rgb.iter().any(|&c| c == 0 || c == 255)
                    || luma(rgb).abs_diff(raw[0].into()) <= 2),
                "{sampling:?}"
            );
            // And with what ends it cut off.
            assert!(
                read(&file(
                    width as u32,
                    height as u32,
                    entries,
                    &[&jpeg[..jpeg.len() / 2]]
                ))
                .is_err()
            );
        }
    }

    #[test]
    fn jpeg_of_other_components_than_the_decoder_takes_is_refused() {
        let of = |components: u8| {
            let frame = [
                &[8, 0, 16, 0, 24, components][..],
                &[1, 0x11, 0].repeat(components.into()),
            ]
            .concat();
            let scan = [&[components][..], &[1, 0].repeat(components.into()), &[0, 63, 0]].concat();
            let segment = |marker: u8, body: &[u8]| [&[0xff, marker, 0, body.len() as u8 + 2], body].concat();
            let parts = [
                &b"\xff\xd8"[..],
                &segment(0xc0, &frame),
                &segment(0xda, &scan),
                b"\0\xff\xd9",
            ];
            jpeg_size(&parts.concat())
        };
        for components in [1, 3, 4] {
            assert_eq!(of(components).unwrap(), (24, 16, components.into()));
        }
        for components in [2, 5] {
            assert!(
                matches!(of(components), Err(Problem::Unsupported(_))),
                "{components}"
            );
        }
        // More room than the strip has bytes.
        let shape = Shape {
            width: 2,
            height: 1,
            bits: 8,
            samples: 1,
        };
        assert!(unpack(Packing::PackBits, &shape, &[3, 1, 2, 3, 4], &mut [0; 2]).is_ok());
        assert!(unpack(Packing::PackBits, &shape, &[3, 1, 2, 3, 4], &mut [0; 4]).is_err());
    }
}
