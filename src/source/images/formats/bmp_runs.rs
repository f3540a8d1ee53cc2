//! Run lengths of BMP files. Pixels that they skip have the first colour of the palette; the image crate
//! makes them black. It gets a palette of numbers instead, of which black is the first.

use crate::source::images::read_budget::{BudgetedReader, ReadBudget};
use image::codecs::bmp::BmpDecoder;
use image::{ColorType, ImageDecoder, ImageResult};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes of both headers as far as they are needed.
const HEADERS: usize = 54;

/// A decoder whose pixels are the numbers of colours.
pub(in crate::source::images) struct Numbered<'a> {
    inner: BmpDecoder<BudgetedReader<'a>>,
    palette: Vec<[u8; 3]>,
}

/// A file of which a part is replaced.
struct Replaced<R> {
    inner: R,
    /// Where the next byte is read.
    at: u64,
    /// Where the part begins.
    place: u64,
    part: Vec<u8>,
}

impl<R: Read> Read for Replaced<R> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(to)?;
        for (at, byte) in (self.at..).zip(&mut to[..count]) {
            let within = at.checked_sub(self.place).and_then(|k| usize::try_from(k).ok());
            if let Some(&other) = within.and_then(|k| self.part.get(k)) {
                *byte = other;
            }
        }
        self.at += count as u64;
        Ok(count)
    }
}

impl<R: Seek> Seek for Replaced<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.inner.seek(to)?;
        Ok(self.at)
    }
}

/// The decoder of a file of run lengths; `None` for another, and for one that the image crate reads right or
/// has words for.
pub(in crate::source::images) fn open(
    path: &Path,
    budget: &ReadBudget,
) -> io::Result<Option<Numbered<'static>>> {
    numbered(File::open(path)?, budget)
}

fn numbered<'a>(mut file: impl Read + Seek + 'a, budget: &ReadBudget) -> io::Result<Option<Numbered<'a>>> {
    let mut head = Vec::new();
    file.by_ref().take(HEADERS as u64).read_to_end(&mut head)?;
    let Some((place, entries)) = palette(&head) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(place as u64))?;
    let mut part = Vec::new();
    file.by_ref().take(4 * entries as u64).read_to_end(&mut part)?;
    file.rewind()?;
    let colours = part.as_chunks_mut::<4>().0;
    let palette = colours.iter().map(|&[b, g, r, _]| [r, g, b]).collect();
    for (number, colour) in (0..=u8::MAX).zip(colours) {
        // With another blue they are not taken for gray.
        *colour = [1, 0, number, 0];
    }
    let replaced = Replaced {
        inner: file,
        at: 0,
        place: place as u64,
        part,
    };
    let input = BudgetedReader::new(BufReader::new(replaced), budget);
    let Ok(inner) = BmpDecoder::new(input) else {
        return Ok(None);
    };
    Ok((inner.color_type() == ColorType::Rgb8).then_some(Numbered { inner, palette }))
}

/// Where the palette begins in a file with these headers, and its entries, if the file has run lengths.
fn palette(head: &[u8]) -> Option<(usize, usize)> {
    let (pixels, bits, _) = runs_of(head)?;
    let entries = match word(head, 46)? as usize {
        0 => 1 << bits,
        used => used.min(256),
    };
    let place = (word(head, 14)? as usize).checked_add(14)?;
    (place.checked_add(4 * entries)? <= pixels as usize).then_some((place, entries))
}

/// A sentence about rows of a file of run lengths that lie behind the end that the run lengths state, if
/// there are any. An end of the file before that is the decoder's to report.
pub(in crate::source::images) fn missing_rows(path: &Path) -> io::Result<Option<String>> {
    let mut file = BufReader::new(File::open(path)?);
    let mut head = Vec::new();
    file.by_ref().take(HEADERS as u64).read_to_end(&mut head)?;
    let Some((pixels, bits, height)) = runs_of(&head) else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(pixels.into()))?;
    let reached = match rows_reached(file, bits) {
        Ok(rows) => rows,
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        Err(e) => return Err(e),
    };
    Ok((reached < height.into()).then(|| {
        format!(
            "its run lengths end early: {} of {height} rows have no pixel and are filled with the palette's \
             first colour",
            u64::from(height) - reached
        )
    }))
}

/// Where run lengths begin in a file with these headers, their bits, and the rows of the picture.
fn runs_of(head: &[u8]) -> Option<(u32, u8, u32)> {
    let bits = *head.get(28)?;
    let is_of_runs = word(head, 14)? >= 40 && matches!((word(head, 30)?, bits), (1, 8) | (2, 4));
    is_of_runs.then_some((
        word(head, 10)?,
        bits,
        word(head, 22)?.cast_signed().unsigned_abs(),
    ))
}

/// The number of 32 bits at a place of the headers.
fn word(head: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*head.get(at..)?.first_chunk()?))
}

/// How many rows run lengths come to, or pass over, before the end that they state.
fn rows_reached(mut input: impl BufRead, bits: u8) -> io::Result<u64> {
    let mut two = |bytes: &mut [u8; 2]| input.read_exact(bytes);
    // The row where the next pixel is put, and the rows that are done or begun.
    let (mut row, mut reached) = (0_u64, 0_u64);
    loop {
        let mut code = [0; 2];
        two(&mut code)?;
        match code {
            [0, 0] => {
                row += 1;
                reached = row;
            }
            [0, 1] => return Ok(reached),
            [0, 2] => {
                let mut step = [0; 2];
                two(&mut step)?;
                row += u64::from(step[1]);
                reached = reached.max(row);
            }
            [0, count] => {
                // Padded to pairs of bytes.
                let bytes = (usize::from(count) * usize::from(bits)).div_ceil(8);
                for _ in 0..bytes.div_ceil(2) {
                    two(&mut [0; 2])?;
                }
                reached = row + 1;
            }
            _ => reached = row + 1,
        }
    }
}

impl ImageDecoder for Numbered<'_> {
    fn dimensions(&self) -> (u32, u32) {
        self.inner.dimensions()
    }

    fn color_type(&self) -> ColorType {
        self.inner.color_type()
    }

    fn read_image(self, into: &mut [u8]) -> ImageResult<()> {
        self.inner.read_image(into)?;
        for pixel in into.as_chunks_mut::<3>().0 {
            *pixel = self
                .palette
                .get(usize::from(pixel[0]))
                .copied()
                .unwrap_or_default();
        }
        Ok(())
    }

    fn read_image_boxed(self: Box<Self>, into: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with a palette that begins with two colours and these run lengths.
    fn file(bits: u8, (width, height): (u8, u8), runs: &[u8]) -> Vec<u8> {
        let entries = 1 << bits;
        let mut file = b"BM".to_vec();
        file.resize(54 + 4 * entries, 0);
        file[10..12].copy_from_slice(&(54 + 4 * entries as u16).to_le_bytes());
        (file[14], file[18], file[22], file[26], file[28]) = (40, width, height, 1, bits);
        file[30] = if bits == 8 { 1 } else { 2 };
        file[54..62].copy_from_slice(&[10, 20, 30, 0, 0, 0, 255, 0]);
        file.extend(runs);
        file
    }

    #[test]
    fn skipped_pixels_have_the_first_colour() {
        let pixels = |file: Vec<u8>| {
            let budget = ReadBudget::new();
            let decoder = numbered(io::Cursor::new(file), &budget).unwrap().unwrap();
            let mut pixels = vec![9; decoder.total_bytes() as usize];
            decoder.read_image(&mut pixels).unwrap();
            pixels
        };
        // As FFmpeg, Pillow and OpenCV have them: 1 is red, 0 and what is skipped is 30, 20, 10, and the
        // colours behind both are black. From the lowest row: a short one, a step of 3 and 1, the end.
        let rows = |rows: [&[u8]; 3]| {
            let colour = |&number: &u8| [[30, 20, 10], [255, 0, 0], [0, 0, 0]][usize::from(number)];
            rows.concat().iter().flat_map(colour).collect::<Vec<u8>>()
        };
        let runs = b"\x02\x01\0\0\0\x02\x03\x01\x01\x02\0\x01";
        let expected = rows([&[0, 0, 0, 2, 0], &[0; 5], &[1, 1, 0, 0, 0]]);
        assert_eq!(pixels(file(8, (5, 3), runs)), expected);
        let runs = b"\x02\x11\0\0\0\x02\x03\x01\x01\x20\0\x01";
        assert_eq!(pixels(file(4, (5, 3), runs)), expected);
        // The rows that runs, literal pixels, ends of rows and steps come to.
        for (bits, runs, reached) in [
            (8, &b"\0\x01"[..], 0),
            (8, b"\x05\x01\0\x01", 1),
            (8, b"\x05\x01\0\0\0\x01", 1),
            (8, b"\0\x03\x01\x01\x01\0\0\0\x02\x01\0\x01", 2),
            (4, b"\0\x05\x11\x11\x10\0\0\0\0\x01", 1),
            (8, b"\0\x02\x03\x02\0\x01", 2),
            (8, b"\0\x02\x03\x02\x01\x01\0\x01", 3),
        ] {
            assert_eq!(rows_reached(runs, bits).unwrap(), reached, "{runs:?}");
        }
        assert!(rows_reached(&b"\x05\x01"[..], 8).is_err());
        // Files without run lengths, or with a palette that runs into them, are none of these.
        let mut plain = file(8, (5, 3), &[]);
        plain[30] = 0;
        assert_eq!(palette(&plain), None);
        let mut short = file(8, (5, 3), &[]);
        short[10..12].copy_from_slice(&100_u16.to_le_bytes());
        assert_eq!((palette(&short), palette(b"BM")), (None, None));
    }
}
