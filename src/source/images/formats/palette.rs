//! Pixels of PNG and BMP files whose number is beyond the palette: decoders make them black and say nothing.

use crate::media::still::ImageKind;
use crate::source::images::read_budget::{BudgetedReader, PngPixels, ReadBudget};
use image::codecs::png::PngDecoder;
use image::{ImageDecoder, ImageResult};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// A sentence about such pixels, if there are any. What ends early or is damaged is the decoder's business.
pub(in crate::source::images) fn beyond(kind: ImageKind, path: &Path) -> io::Result<Option<String>> {
    let mut input = BufReader::new(File::open(path)?);
    let counted = match kind {
        ImageKind::Png => match png_colours(&mut input)? {
            Some((entries, bits)) => in_png(input, entries, bits).ok().map(|count| (count, entries)),
            None => None,
        },
        ImageKind::Bmp => in_bmp(&mut input)?,
        _ => None,
    };
    let found = counted.filter(|(count, _)| *count > 0);
    Ok(found.map(|(count, entries)| {
        format!("{count} pixels have numbers beyond the palette of {entries} colours, and become black")
    }))
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Entries of a PNG file's palette and bits of a pixel, where pixels can have more numbers than there are
/// entries.
fn png_colours(input: &mut (impl BufRead + Seek)) -> io::Result<Option<(usize, u32)>> {
    const PALETTE: u8 = 3;
    let Some(head) = array::<33>(input)? else {
        return Ok(None);
    };
    let (bits, colours) = (u32::from(head[24]), head[25]);
    if !head.starts_with(b"\x89PNG") || colours != PALETTE || !matches!(bits, 1 | 2 | 4 | 8) {
        return Ok(None);
    }
    while let Some([l0, l1, l2, l3, name @ ..]) = array::<8>(input)? {
        let length = u32::from_be_bytes([l0, l1, l2, l3]);
        match &name {
            b"PLTE" => {
                let entries = length as usize / 3;
                return Ok((entries < 1 << bits).then_some((entries, bits)));
            }
            b"IDAT" | b"IEND" => return Ok(None),
            // The checksum follows the data.
            _ => input.seek_relative(i64::from(length) + 4)?,
        }
    }
    Ok(None)
}

/// Counts by the numbers themselves, which a file without its palette gives as gray.
fn in_png(mut input: impl BufRead + Seek, entries: usize, bits: u32) -> ImageResult<u64> {
    input.seek(SeekFrom::Start(0))?;
    let budget = ReadBudget::new();
    let numbers = BudgetedReader::new(PngPixels::numbers(input)?, &budget);
    let decoder = PngDecoder::with_limits(numbers, image::Limits::no_limits())?;
    budget.extend(decoder.total_bytes());
    let mut gray = vec![0; usize::try_from(decoder.total_bytes()).unwrap_or(0)];
    decoder.read_image(&mut gray)?;
    // Fewer bits are scaled to eight.
    let step = 255 / ((1 << bits) - 1);
    let is_beyond = |gray: &&u8| usize::from(**gray) / step >= entries;
    Ok(gray.iter().filter(is_beyond).count() as u64)
}

/// How many pixels of a BMP file have too great a number, and the entries of its palette.
fn in_bmp(input: &mut (impl BufRead + Seek)) -> io::Result<Option<(u64, usize)>> {
    let Some(head) = array::<54>(input)? else {
        return Ok(None);
    };
    let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let (width, height, bits, packing) = (word(18), word(22), word(28) & 0xffff, word(30));
    let entries = word(46);
    if word(14) < 40 || !matches!(bits, 1 | 2 | 4 | 8) || entries == 0 || entries >= 1 << bits {
        return Ok(None);
    }
    input.seek(SeekFrom::Start(word(10).into()))?;
    let is_beyond = |number: u8| u64::from(u32::from(number) >= entries);
    let count = match (packing, bits) {
        (0, _) => {
            let mut count = 0;
            let row = (u64::from(width) * u64::from(bits)).div_ceil(32) * 4;
            for _ in 0..height.cast_signed().unsigned_abs() {
                let mut left = u64::from(width);
                let mut bytes = input.by_ref().take(row);
                while let Some([byte]) = array(&mut bytes)? {
                    for place in (0..8 / bits).rev().take(left.min(8) as usize) {
                        count += is_beyond(byte >> (place * bits) & (0xff >> (8 - bits)));
                        left -= 1;
                    }
                }
                if bytes.limit() > 0 {
                    break;
                }
            }
            count
        }
        (1, 8) | (2, 4) => in_runs(input, bits == 4, is_beyond)?,
        _ => return Ok(None),
    };
    Ok(Some((count, entries as usize)))
}

/// Counts in packed rows, of two pixels a byte where they are `halves`.
fn in_runs(input: &mut impl BufRead, halves: bool, is_beyond: impl Fn(u8) -> u64) -> io::Result<u64> {
    let both = |byte: u8| [byte >> 4, byte & 15];
    let mut count = 0;
    while let Some([pixels, value]) = array(input)? {
        match (pixels, value) {
            (0, 0) => {}
            (0, 1) => break,
            // A step to the right and up.
            (0, 2) => drop(array::<2>(input)?),
            (0, pixels) => {
                let bytes = match halves {
                    true => usize::from(pixels).div_ceil(2),
                    false => usize::from(pixels),
                };
                let mut data = Vec::new();
                input
                    .take(bytes.next_multiple_of(2) as u64)
                    .read_to_end(&mut data)?;
                data.truncate(bytes);
                let numbers: Vec<u8> = match halves {
                    true => data.into_iter().flat_map(both).collect(),
                    false => data,
                };
                let numbers = numbers.into_iter().take(pixels.into());
                count += numbers.map(&is_beyond).sum::<u64>();
            }
            (pixels, value) => {
                let numbers = if halves { both(value) } else { [value; 2] };
                let of = |place: u8| u64::from(pixels).saturating_add(place.into()) / 2;
                count += is_beyond(numbers[0]) * of(1) + is_beyond(numbers[1]) * of(0);
            }
        }
    }
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn said(kind: ImageKind, file: &[u8]) -> String {
        let mut kept = tempfile::NamedTempFile::new().unwrap();
        kept.write_all(file).unwrap();
        beyond(kind, kept.path()).unwrap().unwrap_or_default()
    }

    /// A BMP file of 5x2 pixels and three colours.
    fn bitmap(bits: u8, packing: u8, pixels: &[u8]) -> Vec<u8> {
        let mut head = [0; 54 + 12];
        head[..2].copy_from_slice(b"BM");
        (
            head[10], head[14], head[18], head[22], head[28], head[30], head[46],
        ) = (66, 40, 5, 2, bits, packing, 3);
        [&head[..], pixels].concat()
    }

    #[test]
    fn pixels_beyond_the_palette_are_counted() {
        let four = [0x01, 0x2f, 0x20, 0, 0x31, 0x04, 0x2f, 0];
        assert!(said(ImageKind::Bmp, &bitmap(4, 0, &four)).starts_with("3 pixels"));
        let eight = [0, 1, 2, 2, 2, 9, 9, 9, 0, 1, 2, 2, 3, 9, 9, 9];
        assert!(said(ImageKind::Bmp, &bitmap(8, 0, &eight)).starts_with("1 pixels"));
        let packed = [5, 7, 0, 0, 0, 3, 1, 9, 2, 0, 2, 4, 0, 1, 9, 9];
        assert!(said(ImageKind::Bmp, &bitmap(8, 1, &packed)).starts_with("8 pixels"));
        let packed = [5, 0x17, 0, 0, 0, 5, 0x19, 0x29, 0x0f, 0, 0, 1, 9, 9];
        assert!(said(ImageKind::Bmp, &bitmap(4, 2, &packed)).starts_with("4 pixels"));
        assert_eq!(said(ImageKind::Bmp, &bitmap(8, 0, &[2; 16])), "");
        assert_eq!(said(ImageKind::Bmp, &bitmap(8, 0, &[2; 3])), "");
        assert_eq!(said(ImageKind::Bmp, &bitmap(24, 0, &[99; 32])), "");
    }

    /// A PNG file of 5x2 pixels of a few bits each, and three colours.
    fn palette_png(bits: u8, rows: &[u8]) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut chunk = |name: &[u8], data: &[u8]| {
            let mut checksum = flate2::Crc::new();
            checksum.update(name);
            checksum.update(data);
            let length = (data.len() as u32).to_be_bytes();
            file.extend([&length, name, data, &checksum.sum().to_be_bytes()].concat());
        };
        chunk(b"IHDR", &[0, 0, 0, 5, 0, 0, 0, 2, bits, 3, 0, 0, 0]);
        chunk(b"PLTE", &[9; 9]);
        chunk(b"tRNS", &[128, 255]);
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        for row in rows.chunks(rows.len() / 2) {
            packed.write_all(&[&[0], row].concat()).unwrap();
        }
        chunk(b"IDAT", &packed.finish().unwrap());
        chunk(b"IEND", &[]);
        file
    }

    #[test]
    fn numbers_of_a_png_file_are_read_through_its_palette() {
        for (depth, rows, expected) in [
            (4, &[0x01, 0x20, 0x30, 0xf2, 0x10, 0x20][..], "2 pixels"),
            (8, &[0, 1, 2, 0, 3, 1, 200, 255, 0, 0], "3 pixels"),
            (2, &[0b0001_1011, 0b1100_0000, 0b0001_1010, 0], "2 pixels"),
            (8, &[0, 1, 2, 0, 1, 1, 2, 2, 0, 0], ""),
            (1, &[0b1010_1000, 0], ""),
        ] {
            let said = said(ImageKind::Png, &palette_png(depth, rows));
            assert!(
                said.starts_with(expected) && said.is_empty() == expected.is_empty(),
                "{said}"
            );
        }
    }
}
