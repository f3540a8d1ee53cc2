//! What stands in a file behind its first picture, which decoders pass over: more pictures, or other data.
//!
//! ```text
//!  PNG   chunks to IEND          BMP   rows, or the size that the file states, and a profile
//!  WebP  the size of RIFF        ICO   the last of its pictures
//!  HDR   packed or plain rows    PCX   packed rows, 256 colours     EXR   the block that lies last
//!  AVIF, JPEG 2000, JPEG XL      boxes, each kind of picture begins with one
//!  QOI   the mark at its end     DPX   the size that the file states
//! ```

use super::formats::hdr::{self, Order};
use super::formats::pnm;
use super::further::Further;
use super::read_budget::{BudgetedReader, ReadBudget};
use crate::media::still::ImageKind;
use ::exr::meta::{BlockDescription, MetaData};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Names of boxes that hold pictures.
const PIXELS: [&[u8; 4]; 4] = [b"mdat", b"jp2c", b"jxlc", b"jxlp"];

/// What follows the first picture of a file that is of this kind by its content; `None` where nothing does,
/// or where that is not known.
pub(super) fn further(kind: ImageKind, path: &Path) -> io::Result<Option<Further>> {
    let mut input = BufReader::new(File::open(path)?);
    let found = match kind {
        ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm | ImageKind::Pbm => return pnm::further(input),
        ImageKind::Png => png_end(&mut input).map(|()| &b"\x89PNG"[..]),
        ImageKind::Bmp => bmp_end(&mut input).map(|()| &b"BM"[..]),
        ImageKind::WebP => riff_end(&mut input).map(|()| &b"RIFF"[..]),
        ImageKind::Ico => ico_end(&mut input).map(|()| &[][..]),
        ImageKind::Hdr => hdr_end(&mut input).map(|()| &b"#?"[..]),
        ImageKind::Pcx => pcx_end(&mut input).map(|()| &[][..]),
        ImageKind::Exr => exr_end(&mut input).map(|()| &b"\x76\x2f\x31\x01"[..]),
        ImageKind::Avif | ImageKind::Jp2 | ImageKind::Jxl => return behind_boxes(&mut input),
        ImageKind::Qoi => qoi_end(&mut input).map(|()| &b"qoif"[..]),
        ImageKind::Dpx => {
            let magic = dpx_end(&mut input);
            let found = magic.and_then(|magic| Further::of(&mut input, &magic));
            // Not every program states the size right.
            return Ok(found
                .ok()
                .flatten()
                .filter(|further| matches!(further, Further::Pictures)));
        }
        _ => return Ok(None),
    };
    match found {
        Ok(magic) => Further::of(&mut input, magic),
        // The decoder reports an early end and damage.
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) => Ok(None),
        Err(e) => Err(e),
    }
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn unknown<T>() -> io::Result<T> {
    Err(ErrorKind::InvalidData.into())
}

/// Goes to behind the mark at the end, which stands nowhere else in a QOI file.
fn qoi_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let head = array::<14>(input)?;
    let side = |at: usize| {
        u64::from(u32::from_be_bytes([
            head[at],
            head[at + 1],
            head[at + 2],
            head[at + 3],
        ]))
    };
    // A pixel takes 5 bytes at most, the mark 8.
    let most = side(4)
        .saturating_mul(side(8))
        .saturating_mul(5)
        .saturating_add(8);
    let mut latest = u64::MAX;
    for byte in input.by_ref().take(most).bytes() {
        latest = latest << 8 | u64::from(byte?);
        if latest == 1 {
            return Ok(());
        }
    }
    Err(ErrorKind::UnexpectedEof.into())
}

/// Goes to the end of a DPX file that its header states, and gives what it begins with.
fn dpx_end(input: &mut (impl BufRead + Seek)) -> io::Result<[u8; 4]> {
    let magic = array::<4>(input)?;
    input.seek(SeekFrom::Start(16))?;
    let size = array::<4>(input)?;
    let size = match &magic {
        b"SDPX" => u32::from_be_bytes(size),
        _ => u32::from_le_bytes(size),
    };
    // The smallest header.
    if size < 1664 {
        return unknown();
    }
    input.seek(SeekFrom::Start(size.into()))?;
    Ok(magic)
}

/// Goes to behind IEND.
fn png_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    input.seek(SeekFrom::Start(8))?;
    loop {
        let [l0, l1, l2, l3, name @ ..] = array::<8>(input)?;
        let length = i64::from(u32::from_be_bytes([l0, l1, l2, l3]));
        // The checksum follows the data.
        input.seek_relative(length + 4)?;
        if &name == b"IEND" {
            return Ok(());
        }
        if !name.iter().all(u8::is_ascii_alphabetic) {
            return unknown();
        }
    }
}

/// Goes to behind the rows and the profile, or to where the file says that it ends.
fn bmp_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    const PLAIN: [u32; 3] = [0, 3, 6];
    let mut head = Vec::new();
    input.by_ref().take(138).read_to_end(&mut head)?;
    let word = |at: usize| {
        let bytes = head.get(at..).and_then(<[u8]>::first_chunk);
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let half = |at: usize| word(at) & 0xffff;
    let (width, height, bits, packing) = match word(14) {
        12 => (half(18), half(20), half(24), 0),
        _ => (
            word(18),
            word(22).cast_signed().unsigned_abs(),
            half(28),
            word(30),
        ),
    };
    let row = (u64::from(width) * u64::from(bits)).div_ceil(32) * 4;
    let stated = u64::from(word(2));
    let rows = match PLAIN.contains(&packing) {
        true => row.saturating_mul(height.into()),
        // Packed rows have a length of their own.
        false => word(34).into(),
    };
    let pixels = u64::from(word(10)).saturating_add(rows);
    let profile = match word(14) {
        124 => 14 + u64::from(word(126)) + u64::from(word(130)),
        _ => 0,
    };
    let end = pixels.max(profile).max(stated);
    if rows == 0 {
        return unknown();
    }
    input.seek(SeekFrom::Start(end))?;
    Ok(())
}

/// Goes to behind the chunks.
fn riff_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let [_, _, _, _, size @ ..] = array::<8>(input)?;
    let size = u64::from(u32::from_le_bytes(size));
    input.seek(SeekFrom::Start(8 + size + size % 2))?;
    Ok(())
}

/// Goes to behind the last of the pictures.
fn ico_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let [_, _, _, _, count @ ..] = array::<6>(input)?;
    let mut end = 0;
    for _ in 0..u16::from_le_bytes(count) {
        let [_, _, _, _, _, _, _, _, l0, l1, l2, l3, place @ ..] = array::<16>(input)?;
        let length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        end = end.max(u64::from(u32::from_le_bytes(place)) + length);
    }
    input.seek(SeekFrom::Start(end))?;
    Ok(())
}

/// Goes to behind the rows.
fn hdr_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let Order { rows, columns, .. } = hdr::read(input.by_ref())?.order().map_or_else(unknown, Ok)?;
    for _ in 0..rows {
        let first = array::<4>(input)?;
        let is_packed = first[..2] == [2, 2] && first[2] < 128 && (8..32_768).contains(&columns);
        if !is_packed {
            pass_old_row(input, first, columns)?;
            continue;
        }
        // Red, green, blue and the exponent, each in runs.
        for _ in 0..4 {
            let mut left = i64::from(columns);
            while left > 0 {
                let [count] = array(input)?;
                let (pixels, bytes) = match count {
                    0 => return unknown(),
                    1..=128 => (i64::from(count), i64::from(count)),
                    _ => (i64::from(count) - 128, 1),
                };
                input.seek_relative(bytes)?;
                left -= pixels;
            }
        }
    }
    Ok(())
}

/// Passes over a row of whole pixels, the first of which was read, where a pixel of ones says how often the
/// one before comes again.
fn pass_old_row(input: &mut impl BufRead, mut pixel: [u8; 4], width: u32) -> io::Result<()> {
    let (mut done, mut shift) = (0_u64, 0);
    loop {
        match pixel {
            [1, 1, 1, count] => {
                done = done.saturating_add(u64::from(count) << shift);
                shift = (shift + 8).min(24);
            }
            _ => {
                done += 1;
                shift = 0;
            }
        }
        if done >= u64::from(width) {
            return Ok(());
        }
        pixel = array(input)?;
    }
}

/// Goes to behind the rows, in runs, and the colours.
fn pcx_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    const COLOURS: i64 = 1 + 3 * 256;
    let head = array::<128>(input)?;
    let half = |at: usize| u64::from(u16::from_le_bytes([head[at], head[at + 1]]));
    let (bits, planes) = (head[3], head[65]);
    let rows = (half(10) + 1).saturating_sub(half(6));
    let mut left = rows.saturating_mul(u64::from(planes) * half(66));
    while left > 0 {
        let [byte] = array(input)?;
        let mut pixels = 1;
        if byte >= 0xc0 {
            pixels = u64::from(byte & 0x3f);
            array::<1>(input)?;
        }
        left = left.saturating_sub(pixels);
    }
    if (bits, planes) == (8, 1) && input.fill_buf()?.first() == Some(&12) {
        input.seek_relative(COLOURS)?;
    }
    Ok(())
}

/// Goes to behind the block that lies last.
fn exr_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let budget = ReadBudget::new();
    budget.extend(0);
    let meta = MetaData::read_from_buffered(BudgetedReader::new(&mut *input, &budget), false);
    let Ok(meta) = meta else {
        return unknown();
    };
    let mut last = 0;
    let blocks: u64 = meta.headers.iter().map(|header| header.chunk_count as u64).sum();
    for _ in 0..blocks {
        let place = u64::from_le_bytes(array(input)?);
        // A file that was not finished.
        if place == 0 {
            return unknown();
        }
        last = last.max(place);
    }
    input.seek(SeekFrom::Start(last))?;
    let part = match meta.requirements.has_multiple_layers {
        true => u32::from_le_bytes(array(input)?) as usize,
        false => 0,
    };
    match meta.headers.get(part) {
        Some(header) if !header.deep => match header.blocks {
            BlockDescription::ScanLines => drop(array::<4>(input)?),
            BlockDescription::Tiles(_) => drop(array::<16>(input)?),
        },
        _ => return unknown(),
    }
    let size = u32::from_le_bytes(array(input)?);
    input.seek_relative(size.into())
}

/// What is no box of the picture that the first one begins.
fn behind_boxes(input: &mut (impl BufRead + Seek)) -> io::Result<Option<Further>> {
    let len = input.seek(SeekFrom::End(0))?;
    let mut at = 0;
    let (mut first, mut has_pixels) = (None, false);
    while at + 8 <= len {
        input.seek(SeekFrom::Start(at))?;
        let [l0, l1, l2, l3, name @ ..] = array::<8>(input)?;
        let size = match u32::from_be_bytes([l0, l1, l2, l3]) {
            0 => len - at,
            1 if at + 16 <= len => u64::from_be_bytes(array(input)?),
            size => size.into(),
        };
        // Boxes of pictures that go beyond the end were cut off, of which the decoder tells.
        let fits = size <= len - at || PIXELS.contains(&&name);
        let is_box = size >= 8 && fits && name.iter().all(|byte| byte.is_ascii_graphic() || *byte == b' ');
        match first {
            // A codestream without boxes.
            None if !is_box => return Ok(None),
            None => first = Some(name),
            Some(first) if first == name => return Ok(Some(Further::Pictures)),
            Some(_) if !is_box => break,
            Some(_) => {}
        }
        has_pixels |= PIXELS.contains(&&name);
        at = at.saturating_add(size);
    }
    if !has_pixels {
        return Ok(None);
    }
    input.seek(SeekFrom::Start(at))?;
    Further::of(input, &[])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use ::exr::prelude::{SpecificChannels, WritableImage};
    use image::{DynamicImage, ImageFormat, Rgb, Rgb32FImage, RgbImage};
    use std::io::Cursor;

    fn said(kind: ImageKind, file: &[u8]) -> Option<Further> {
        let mut kept = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut kept, file).unwrap();
        further(kind, kept.path()).unwrap()
    }

    fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
        let mut file = Cursor::new(Vec::new());
        picture.write_to(&mut file, format).unwrap();
        file.into_inner()
    }

    #[test]
    fn pictures_and_data_behind_the_first_picture_are_found() {
        let colours = RgbImage::from_fn(9, 3, |x, y| Rgb([(x * y) as u8, 7, (x % 2) as u8]));
        let floats = Rgb32FImage::from_fn(9, 3, |x, _| Rgb([x as f32, 0.5, 1.0]));
        let (colours, floats) = (DynamicImage::from(colours), DynamicImage::from(floats));
        let plain_rows = [
            &b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 3\n"[..],
            &[9, 8, 7, 128, 1, 1, 1, 2, 9, 8, 7, 128, 3, 3, 3, 128, 4, 4, 4, 128],
        ]
        .concat();
        let packed_bitmap = [
            &b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x08\0\x01\0\0\0\x08\0\0\0"
                [..],
            &[0; 16],
            &[2, 1, 0, 0, 0, 1, 0, 0],
        ]
        .concat();
        let mut paintbrush = vec![0; 128];
        paintbrush[..14].copy_from_slice(&[10, 5, 1, 8, 0, 0, 0, 0, 2, 0, 1, 0, 72, 0]);
        (paintbrush[65], paintbrush[66]) = (1, 4);
        paintbrush.extend([0xc4, 7, 1, 2, 0xc2, 200, 12]);
        paintbrush.extend([9; 768]);
        let mut layers = Cursor::new(Vec::new());
        let pixels = |_| (0.5_f32, 1.0_f32, 2.0_f32);
        let layer = ::exr::image::Image::from_channels((9, 40), SpecificChannels::rgb(pixels));
        layer.write().to_buffered(&mut layers).unwrap();
        let layers = layers.into_inner();
        let boxes = b"\0\0\0\x10ftypavif\0\0\0\0\0\0\0\x0cmdatabcd".to_vec();
        for (kind, file) in [
            (ImageKind::Png, encoded(&colours, ImageFormat::Png)),
            (ImageKind::Bmp, encoded(&colours, ImageFormat::Bmp)),
            (ImageKind::WebP, encoded(&colours, ImageFormat::WebP)),
            (ImageKind::Hdr, encoded(&floats, ImageFormat::Hdr)),
            (ImageKind::Hdr, plain_rows),
            (ImageKind::Bmp, packed_bitmap),
            (ImageKind::Pcx, paintbrush),
            (ImageKind::Exr, layers),
            (ImageKind::Avif, boxes),
        ] {
            assert_eq!(said(kind, &file), None, "{kind}");
            assert_eq!(said(kind, &[&file[..], b"\0\n\xff"].concat()), None, "{kind}");
            let twice = [&file[..], b"\0\0", &file].concat();
            let expected = match kind {
                // Boxes have no padding between them.
                ImageKind::Avif | ImageKind::Pcx => Further::Data,
                _ => Further::Pictures,
            };
            assert_eq!(said(kind, &twice), Some(expected), "{kind}");
            let expected = match kind {
                ImageKind::Pcx => Further::Data,
                _ => Further::Pictures,
            };
            assert_eq!(said(kind, &[&file[..], &file].concat()), Some(expected), "{kind}");
            assert_eq!(
                said(kind, &[&file[..], b"more, and more"].concat()),
                Some(Further::Data),
                "{kind}"
            );
            for end in 0..file.len() {
                assert_eq!(said(kind, &file[..end]), None, "{kind} {end}");
            }
        }
        let icon = encoded(&colours, ImageFormat::Ico);
        assert_eq!(said(ImageKind::Ico, &icon), None);
        assert_eq!(
            said(ImageKind::Ico, &[&icon[..], &icon].concat()),
            Some(Further::Data)
        );
        assert_eq!(said(ImageKind::Png, &icon), None);
    }
}
