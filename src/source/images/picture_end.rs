//! Where the first picture of a file ends, and so what follows it.
//!
//! ```text
//!  PNG   chunks to IEND          BMP   rows, or the size that the file states, and a profile
//!  WebP  the size of RIFF        ICO   the last of its pictures
//!  HDR   packed or plain rows    EXR   the block that lies last
//!  AVIF, JPEG 2000, JPEG XL      boxes, each kind of picture begins with one
//!  QOI, DPX, BMP, PCX, SGI, Sun  by `source/still_end`
//!  GIF   blocks to the one of its end
//! ```

use super::formats::hdr::{self, Order};
use super::formats::pnm;
use super::read_budget::{BudgetedReader, ReadBudget};
use super::trailing::Trailing;
use crate::media::still::ImageKind;
use crate::source::still_end::{StillEnd, bmp, still_end};
use ::exr::meta::{BlockDescription, MetaData};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Names of boxes that hold pictures.
const PIXELS: [&[u8; 4]; 4] = [b"mdat", b"jp2c", b"jxlc", b"jxlp"];

/// What follows the first picture of a file that is of this kind by its content; `None` where nothing does,
/// or where that is not known.
pub(super) fn trailing(kind: ImageKind, path: &Path) -> io::Result<Option<Trailing>> {
    let mut input = BufReader::new(File::open(path)?);
    let found = match kind {
        ImageKind::Pnm | ImageKind::Pgm | ImageKind::Ppm | ImageKind::Pbm => return pnm::trailing(input),
        ImageKind::Png => png_end(&mut input).map(|()| &b"\x89PNG"[..]),
        ImageKind::Bmp => seek_to(&mut input, bmp::claimed_end).map(|()| &b"BM"[..]),
        ImageKind::WebP => riff_end(&mut input).map(|()| &b"RIFF"[..]),
        ImageKind::Ico => ico_end(&mut input).map(|()| &[][..]),
        ImageKind::Hdr => hdr_end(&mut input).map(|()| &b"#?"[..]),
        ImageKind::Pcx => seek_to_end(&mut input, "pcx").map(|()| &[][..]),
        ImageKind::Exr => exr_end(&mut input).map(|()| &b"\x76\x2f\x31\x01"[..]),
        ImageKind::Avif | ImageKind::Jp2 | ImageKind::Jxl => return after_boxes(&mut input),
        ImageKind::Qoi => seek_to_end(&mut input, "qoi").map(|()| &b"qoif"[..]),
        ImageKind::Dpx => {
            let magic = array::<4>(&mut input);
            let found = seek_to_end(&mut input, "dpx").and(magic);
            let found = found.and_then(|magic| Trailing::of(&mut input, &magic));
            // Not every program states the size right.
            return Ok(found
                .ok()
                .flatten()
                .filter(|trailing| matches!(trailing, Trailing::Pictures)));
        }
        _ => return Ok(None),
    };
    match found {
        Ok(magic) => Trailing::of(&mut input, magic),
        // The decoder reports an early end and damage.
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) => Ok(None),
        Err(e) => Err(e),
    }
}

/// True if other data follow a picture of a kind that FFmpeg reads as a video: GIF, SGI, Sun raster.
pub(super) fn holds_trailing_data(path: &Path) -> io::Result<bool> {
    let mut input = BufReader::new(File::open(path)?);
    let head: Vec<u8> = input.fill_buf()?.iter().take(4).copied().collect();
    let found = match head[..] {
        // A second animation is named by what reads the first.
        [b'G', b'I', b'F', ..] => gif_end(&mut input).map(|()| &b"GIF8"[..]),
        [0x01, 0xda, 0 | 1, ..] => seek_to_end(&mut input, "sgi").map(|()| &[][..]),
        [0x59, 0xa6, 0x6a, 0x95, ..] => seek_to_end(&mut input, "sunrast").map(|()| &[][..]),
        _ => return Ok(false),
    };
    match found {
        Ok(magic) => Ok(Trailing::of(&mut input, magic)? == Some(Trailing::Data)),
        // The decoder reports an early end and damage.
        Err(e) if matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::InvalidData) => Ok(false),
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

/// Goes to where a picture of FFmpeg's `codec` ends.
fn seek_to_end(input: &mut (impl BufRead + Seek), codec: &str) -> io::Result<()> {
    seek_to(input, |input| match still_end(codec, input)? {
        Some(StillEnd::At(end)) => Ok(Some(end)),
        Some(StillEnd::Beyond) => Err(ErrorKind::UnexpectedEof.into()),
        None => Ok(None),
    })
}

/// Goes to the end that `find` finds.
fn seek_to<R: BufRead + Seek>(
    input: &mut R,
    find: impl FnOnce(&mut R) -> io::Result<Option<u64>>,
) -> io::Result<()> {
    let end = find(input)?.map_or_else(unknown, Ok)?;
    input.seek(SeekFrom::Start(end))?;
    Ok(())
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

/// Goes to behind the block that ends an animation.
fn gif_end(input: &mut (impl BufRead + Seek)) -> io::Result<()> {
    let colours = |flags: u8| match flags & 0x80 {
        0 => 0,
        _ => 3 << ((flags & 7) + 1),
    };
    let [.., flags, _, _] = array::<13>(input)?;
    input.seek_relative(colours(flags))?;
    loop {
        match array(input)? {
            [b';'] => return Ok(()),
            [b','] => {
                let [.., flags] = array::<9>(input)?;
                // The bits of the first code follow.
                input.seek_relative(colours(flags) + 1)?;
            }
            [b'!'] => drop(array::<1>(input)?),
            _ => return unknown(),
        }
        loop {
            match array(input)? {
                [0] => break,
                [length] => input.seek_relative(length.into())?,
            }
        }
    }
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
fn after_boxes(input: &mut (impl BufRead + Seek)) -> io::Result<Option<Trailing>> {
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
            Some(first) if first == name => return Ok(Some(Trailing::Pictures)),
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
    Trailing::of(input, &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use ::exr::prelude::{SpecificChannels, WritableImage};
    use image::{DynamicImage, ImageFormat, Rgb, Rgb32FImage, RgbImage};
    use std::io::Cursor;

    fn said(kind: ImageKind, file: &[u8]) -> Option<Trailing> {
        let mut kept = tempfile::NamedTempFile::new().unwrap();
        io::Write::write_all(&mut kept, file).unwrap();
        trailing(kind, kept.path()).unwrap()
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
                ImageKind::Avif | ImageKind::Pcx => Trailing::Data,
                _ => Trailing::Pictures,
            };
            assert_eq!(said(kind, &twice), Some(expected), "{kind}");
            let expected = match kind {
                ImageKind::Pcx => Trailing::Data,
                _ => Trailing::Pictures,
            };
            assert_eq!(said(kind, &[&file[..], &file].concat()), Some(expected), "{kind}");
            assert_eq!(
                said(kind, &[&file[..], b"more, and more"].concat()),
                Some(Trailing::Data),
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
            Some(Trailing::Data)
        );
        assert_eq!(said(ImageKind::Png, &icon), None);
    }

    #[test]
    fn data_behind_what_ffmpeg_reads_as_a_video_are_found() {
        let found = |file: &[u8]| {
            let mut kept = tempfile::NamedTempFile::new().unwrap();
            io::Write::write_all(&mut kept, file).unwrap();
            holds_trailing_data(kept.path()).unwrap()
        };
        let gif = [
            &b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xfe\x02;;\0"[..],
            b",\0\0\0\0\x01\0\x01\0\0\x02\x02\x44\x01\0;",
        ]
        .concat();
        let mut sgi = [&[1, 0xda, 0, 1, 0, 2, 0, 9, 0, 2, 0, 1][..], &[0; 500]].concat();
        sgi.extend([9; 18]);
        let sun = [0x59a6_6a95_u32, 3, 2, 8, 8, 1, 0, 0]
            .map(u32::to_be_bytes)
            .concat();
        let sun = [&sun[..], &[7; 8]].concat();
        for file in [&gif[..], &sgi, &sun] {
            assert!(!found(file));
            assert!(!found(&[file, b"\0\n"].concat()));
            assert!(found(&[file, b"more"].concat()));
            assert!((0..file.len()).all(|end| !found(&file[..end])));
        }
        assert!(!found(b"") && !found(b"other") && !found(&gif.repeat(2)));
    }

    /// Where these kinds end is found by `source/still_end`.
    #[test]
    fn what_stands_behind_ends_that_videos_are_asked_for_too_is_found() {
        let with_mark = |codes: &[u8]| {
            let mut file = b"qoif\0\0\0\x06\0\0\0\x01\x04\0".to_vec();
            file.extend(codes);
            file.extend([0, 0, 0, 0, 0, 0, 0, 1]);
            file
        };
        let paintbrush = |is_packed: u8, rows: &[u8]| {
            let mut file = vec![0; 128];
            file[..12].copy_from_slice(&[10, 5, is_packed, 1, 0, 0, 0, 0, 15, 0, 1, 0]);
            (file[65], file[66]) = (1, 2);
            file.extend(rows);
            file
        };
        for (kind, file, twice) in [
            (
                ImageKind::Qoi,
                with_mark(&[0xfe, 9, 8, 7, 0xc4]),
                Trailing::Pictures,
            ),
            // Transparent black, the same by its index, and another pixel: the bytes of the mark.
            (
                ImageKind::Qoi,
                with_mark(&[0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0xfe, 9, 8, 7]),
                Trailing::Pictures,
            ),
            (ImageKind::Pcx, paintbrush(0, &[1, 2, 3, 4]), Trailing::Data),
            // A run ends with its row.
            (ImageKind::Pcx, paintbrush(1, &[0xc3, 7, 1, 2]), Trailing::Data),
        ] {
            assert_eq!(said(kind, &file), None, "{kind}");
            assert_eq!(said(kind, &[&file[..], b"\0\n"].concat()), None, "{kind}");
            assert_eq!(said(kind, &[&file[..], &file].concat()), Some(twice), "{kind}");
            assert_eq!(said(kind, &[&file[..], b"more"].concat()), Some(Trailing::Data));
            for end in 0..file.len() {
                assert_eq!(said(kind, &file[..end]), None, "{kind} {end}");
            }
        }
        // Two rows of three bytes, padded to four or not.
        for length in [2056, 2054_u16] {
            let mut file = b"SDPX\0\0\x08\0".to_vec();
            file.resize(length.into(), 0);
            file[18..20].copy_from_slice(&length.to_be_bytes());
            file[772..780].copy_from_slice(&[0, 0, 0, 1, 0, 0, 0, 2]);
            (file[800], file[803]) = (50, 8);
            assert_eq!(said(ImageKind::Dpx, &file), None);
            assert_eq!(said(ImageKind::Dpx, &[&file[..], b"more"].concat()), None);
            let twice = [&file[..], &file].concat();
            assert_eq!(said(ImageKind::Dpx, &twice), Some(Trailing::Pictures), "{length}");
        }
    }
}
