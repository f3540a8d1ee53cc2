//! PNM files (PBM, PGM, PPM, PAM): their samples brought to 8 or 16 bits in integers, and what the decoder
//! says nothing about: data behind the first picture, and samples above the greatest that the head states.
//!
//! ```text
//!   P1 P2 P3       numbers as text; of P1 one digit each
//!   P4             8 pixels a byte, each row begins a byte
//!   P5 P6 P7       bytes, or 16 bits with the high byte first where samples go above 255
//! ```

use crate::source::images::trailing::Trailing;
use image::codecs::pnm::{ArbitraryTuplType, PnmDecoder, PnmHeader, PnmSubtype, SampleEncoding};
use image::{ColorType, ImageDecoder, ImageError};
use std::io::{self, BufRead, Cursor, Read, Seek};

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1 << 16;

/// The decoder of a file. The image crate scales samples in 32-bit floating point, which is off by one for
/// some: here it reads them as they are stored, and they are scaled in integers.
pub(in crate::source::images) fn decoder<'a>(
    input: impl Read + 'a,
) -> Result<Box<dyn ImageDecoder + 'a>, ImageError> {
    let (input, header) = PnmDecoder::new(input)?.into_inner();
    let greatest = header.maximal_sample();
    let is_bilevel =
        greatest == 1 && !matches!(header.subtype(), PnmSubtype::Graymap(_) | PnmSubtype::Pixmap(_));
    // Two levels become 0 and 255 exactly.
    let full = match greatest {
        1 if is_bilevel => 1,
        0..=255 => 255,
        _ => 65_535,
    };
    let decoder = PnmDecoder::new(Cursor::new(head_of(&header, full)).chain(input))?;
    Ok(match full == greatest {
        true => Box::new(decoder),
        false => Box::new(Exact {
            decoder,
            greatest,
            full,
        }),
    })
}

/// The head of a file like one with `header`, whose greatest sample is `full`.
fn head_of(header: &PnmHeader, full: u32) -> Vec<u8> {
    let (width, height) = (header.width(), header.height());
    let magic = match header.subtype() {
        PnmSubtype::Bitmap(SampleEncoding::Ascii) => return format!("P1\n{width} {height}\n").into_bytes(),
        PnmSubtype::Bitmap(SampleEncoding::Binary) => return format!("P4\n{width} {height}\n").into_bytes(),
        PnmSubtype::Graymap(SampleEncoding::Ascii) => "P2",
        PnmSubtype::Pixmap(SampleEncoding::Ascii) => "P3",
        PnmSubtype::Graymap(SampleEncoding::Binary) => "P5",
        PnmSubtype::Pixmap(SampleEncoding::Binary) => "P6",
        PnmSubtype::ArbitraryMap => "P7",
    };
    let Some(arbitrary) = header.as_arbitrary() else {
        return format!("{magic}\n{width} {height}\n{full}\n").into_bytes();
    };
    let kind = match (&arbitrary.tupltype, arbitrary.depth) {
        (Some(ArbitraryTuplType::BlackAndWhite), _) => "BLACKANDWHITE",
        (Some(ArbitraryTuplType::BlackAndWhiteAlpha), _) => "BLACKANDWHITE_ALPHA",
        (Some(ArbitraryTuplType::Grayscale), _) | (None, 1) => "GRAYSCALE",
        (Some(ArbitraryTuplType::GrayscaleAlpha), _) | (None, 2) => "GRAYSCALE_ALPHA",
        (Some(ArbitraryTuplType::RGB), _) | (None, 3) => "RGB",
        _ => "RGB_ALPHA",
    };
    format!(
        "{magic}\nWIDTH {width}\nHEIGHT {height}\nDEPTH {}\nMAXVAL {full}\nTUPLTYPE {kind}\nENDHDR\n",
        arbitrary.depth
    )
    .into_bytes()
}

/// A decoder of samples up to `greatest`, which are brought to the range up to `full`.
struct Exact<R> {
    decoder: PnmDecoder<R>,
    greatest: u32,
    full: u32,
}

impl<R: Read> ImageDecoder for Exact<R> {
    fn dimensions(&self) -> (u32, u32) {
        self.decoder.dimensions()
    }

    fn color_type(&self) -> ColorType {
        self.decoder.color_type()
    }

    fn read_image(self, pixels: &mut [u8]) -> Result<(), ImageError> {
        let Exact {
            decoder,
            greatest,
            full,
        } = self;
        decoder.read_image(pixels)?;
        // The product is below 2 to the power of 32. Samples above the greatest are counted elsewhere.
        let scaled = |sample: u32| (sample.min(greatest) * full + greatest / 2) / greatest;
        if full == 255 {
            let table: Vec<u8> = (0..=full).map(|sample| scaled(sample) as u8).collect();
            for sample in pixels {
                *sample = table[usize::from(*sample)];
            }
        } else {
            let table: Vec<u16> = (0..=full).map(|sample| scaled(sample) as u16).collect();
            for sample in pixels.as_chunks_mut::<2>().0 {
                *sample = table[usize::from(u16::from_ne_bytes(*sample))].to_ne_bytes();
            }
        }
        Ok(())
    }

    fn read_image_boxed(self: Box<Self>, pixels: &mut [u8]) -> Result<(), ImageError> {
        (*self).read_image(pixels)
    }
}

/// What of the file is left out or is not as it should be, a sentence each. A head that is not understood is
/// the decoder's business.
pub(in crate::source::images) fn losses(mut input: impl BufRead + Seek) -> io::Result<Vec<String>> {
    let Some(head) = head(&mut (&mut input).take(LONGEST_HEAD))? else {
        return Ok(Vec::new());
    };
    let above = match head.is_text {
        true => head.pass_text(&mut input)?,
        false => head.pass_bytes(&mut input)?,
    };
    let mut losses = Vec::new();
    if above > 0 {
        losses.push(format!(
            "{above} samples are above {}, the greatest that its head allows",
            head.greatest
        ));
    }
    losses.extend(classify_rest(&mut input)?.map(|further| further.sentence().to_owned()));
    Ok(losses)
}

/// What follows the first picture of a file whose samples are bytes.
pub(in crate::source::images) fn trailing(mut input: impl BufRead + Seek) -> io::Result<Option<Trailing>> {
    let Some(head) = head(&mut (&mut input).take(LONGEST_HEAD))? else {
        return Ok(None);
    };
    if head.is_text {
        return Ok(None);
    }
    head.pass_bytes(&mut input)?;
    classify_rest(&mut input)
}

/// What follows a picture, if something does.
fn classify_rest(input: &mut impl BufRead) -> io::Result<Option<Trailing>> {
    loop {
        let bytes = input.fill_buf()?;
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        if !first.is_ascii_whitespace() {
            let is_picture = matches!(bytes, [b'P', b'1'..=b'7', ..] | [b'P']);
            return Ok(Some(match is_picture {
                true => Trailing::Pictures,
                false => Trailing::Data,
            }));
        }
        input.consume(1);
    }
}

/// What the head says of the samples.
struct Head {
    is_text: bool,
    /// Samples are digits or bits, without space between.
    is_bilevel: bool,
    /// Samples in a row, and rows.
    samples: u64,
    rows: u64,
    greatest: u32,
}

fn head(input: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut magic = [0; 2];
    if input.read_exact(&mut magic).is_err() || magic[0] != b'P' {
        return Ok(None);
    }
    if magic[1] == b'7' {
        return pam_head(input);
    }
    if !matches!(magic[1], b'1'..=b'6') {
        return Ok(None);
    }
    let is_bilevel = matches!(magic[1], b'1' | b'4');
    let channels = if matches!(magic[1], b'3' | b'6') { 3 } else { 1 };
    let (Some(width), Some(rows)) = (number(input)?, number(input)?) else {
        return Ok(None);
    };
    let greatest = match is_bilevel {
        true => Some(1),
        false => number(input)?,
    };
    Ok(greatest.map(|greatest| Head {
        is_text: magic[1] < b'4',
        is_bilevel,
        samples: u64::from(width) * channels,
        rows: rows.into(),
        greatest,
    }))
}

/// The head of a PAM file: lines of a word and a number.
fn pam_head(input: &mut impl BufRead) -> io::Result<Option<Head>> {
    let (mut width, mut rows, mut depth, mut greatest) = (None, None, None, None);
    loop {
        let mut line = Vec::new();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(None);
        }
        let line = String::from_utf8_lossy(&line);
        let mut words = line.split_ascii_whitespace();
        let word = words.next();
        let value = words.next().and_then(|value| value.parse::<u32>().ok());
        match word {
            Some("WIDTH") => width = value,
            Some("HEIGHT") => rows = value,
            Some("DEPTH") => depth = value,
            Some("MAXVAL") => greatest = value,
            Some("ENDHDR") => break,
            _ => {}
        }
    }
    let (Some(width), Some(rows), Some(depth), Some(greatest)) = (width, rows, depth, greatest) else {
        return Ok(None);
    };
    Ok(Some(Head {
        is_text: false,
        is_bilevel: false,
        samples: u64::from(width).saturating_mul(depth.into()),
        rows: rows.into(),
        greatest,
    }))
}

/// The next number, with the byte behind it; comments are passed over.
fn number(input: &mut impl BufRead) -> io::Result<Option<u32>> {
    let mut digits = String::new();
    while let Some(byte) = byte(input)? {
        match byte {
            b'#' => {
                input.skip_until(b'\n')?;
                if !digits.is_empty() {
                    break;
                }
            }
            b'0'..=b'9' => digits.push(char::from(byte)),
            byte if byte.is_ascii_whitespace() && digits.is_empty() => {}
            byte if byte.is_ascii_whitespace() => break,
            _ => return Ok(None),
        }
    }
    Ok(digits.parse().ok())
}

fn byte(input: &mut impl BufRead) -> io::Result<Option<u8>> {
    let byte = input.fill_buf()?.first().copied();
    input.consume(usize::from(byte.is_some()));
    Ok(byte)
}

impl Head {
    /// Passes over the picture, and counts samples that are too great.
    fn pass_text(&self, input: &mut impl BufRead) -> io::Result<u64> {
        let mut above = 0;
        for _ in 0..self.samples.saturating_mul(self.rows) {
            if self.is_bilevel {
                while byte(input)?.is_some_and(|digit| !digit.is_ascii_digit()) {}
                continue;
            }
            match number(input)? {
                Some(sample) => above += u64::from(sample > self.greatest),
                // The decoder reports it.
                None => break,
            }
        }
        Ok(above)
    }

    fn pass_bytes(&self, input: &mut (impl BufRead + Seek)) -> io::Result<u64> {
        let wide = self.greatest > 255;
        let row = match self.is_bilevel {
            true => self.samples.div_ceil(8),
            false => self.samples.saturating_mul(1 + u64::from(wide)),
        };
        let mut rest = row.saturating_mul(self.rows);
        if self.is_bilevel || matches!(self.greatest, 255 | 65_535) {
            input.seek_relative(i64::try_from(rest).unwrap_or(i64::MAX))?;
            return Ok(0);
        }
        let mut high = None;
        let mut above = 0;
        while rest > 0 {
            let bytes = input.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            let count = rest.min(bytes.len() as u64) as usize;
            for &byte in &bytes[..count] {
                let sample = match (wide, high.take()) {
                    (true, None) => {
                        high = Some(byte);
                        continue;
                    }
                    (_, before) => u32::from(before.unwrap_or(0)) << 8 | u32::from(byte),
                };
                above += u64::from(sample > self.greatest);
            }
            input.consume(count);
            rest -= count as u64;
        }
        Ok(above)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(file: &[u8]) -> String {
        losses(Cursor::new(file)).unwrap().join("; ")
    }

    #[test]
    fn what_follows_a_picture_is_named() {
        for picture in [
            &b"P1 3 1\n101"[..],
            b"P1 3 1 1 0\n1",
            b"P2 3 1 # three\n255 1 2 3",
            b"P3\n1 1 9 1 2 3\n",
            b"P4 9 1\nab",
            b"P5 3 1 255\nabc",
            b"P5 # no 1\n3 1\n1000\n\x01a\x01b\x01c",
            b"P6 1 1 255\nabc",
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\nabcd",
        ] {
            let name = String::from_utf8_lossy(picture);
            assert_eq!(said(picture), "", "{name}");
            assert_eq!(said(&[picture, b"\n"].concat()), "", "{name}");
            let twice = said(&[picture, b" ", picture].concat());
            assert!(
                twice.starts_with("the file holds several pictures"),
                "{name}: {twice}"
            );
            let more = said(&[picture, b"\n", b"else"].concat());
            assert!(more.starts_with("bytes after the picture"), "{name}: {more}");
        }
        assert_eq!(said(b"P5 3 2 255\nab"), "");
        assert_eq!(said(b"no picture"), "");
    }

    #[test]
    fn samples_are_scaled_in_integers() {
        let read = |file: &[u8]| -> Vec<u32> {
            let decoder = decoder(Cursor::new(file.to_vec())).unwrap();
            let is_deep = decoder.color_type().bytes_per_pixel() / decoder.color_type().channel_count() == 2;
            let mut pixels = vec![0; decoder.total_bytes() as usize];
            decoder.read_image(&mut pixels).unwrap();
            match is_deep {
                true => pixels
                    .as_chunks()
                    .0
                    .iter()
                    .map(|&b| u16::from_ne_bytes(b).into())
                    .collect(),
                false => pixels.into_iter().map(u32::from).collect(),
            }
        };
        let deep = [256, 511, 1000, 1023, 8191, 16_383, 32_767, 65_534, 65_535];
        for greatest in (1..=255_u32).chain(deep) {
            let full: u64 = if greatest > 255 { 65_535 } else { 255 };
            // Halves go up.
            let wanted: Vec<u32> = (0..=u64::from(greatest))
                .map(|v| ((2 * v * full + u64::from(greatest)) / (2 * u64::from(greatest))) as u32)
                .collect();
            let size = format!("{} 1", greatest + 1);
            let bytes: Vec<u8> = (0..=greatest)
                .flat_map(|v| {
                    (v as u16)
                        .to_be_bytes()
                        .into_iter()
                        .skip(usize::from(full == 255))
                })
                .collect();
            let pgm = [format!("P5 {size} {greatest}\n").as_bytes(), &bytes].concat();
            assert_eq!(read(&pgm), wanted, "{greatest}");
            for kind in ["", "TUPLTYPE GRAYSCALE\n"] {
                let head = format!(
                    "P7\nWIDTH {}\nHEIGHT 1\nDEPTH 1\nMAXVAL {greatest}\n{kind}ENDHDR\n",
                    greatest + 1
                );
                assert_eq!(
                    read(&[head.as_bytes(), &bytes].concat()),
                    wanted,
                    "{greatest} {kind}"
                );
            }
            let words: String = (0..=greatest).map(|v| format!("{v}\n")).collect();
            assert_eq!(
                read(format!("P2 {size} {greatest}\n{words}").as_bytes()),
                wanted,
                "{greatest}"
            );
        }
        assert_eq!(read(b"P3 1 1 511 171 340 511\n"), [21_930, 43_605, 65_535]);
        assert_eq!(read(b"P6 1 1 1 \x01\x00\x07"), [255, 0, 255]);
        assert_eq!(read(b"P1 2 1\n1 0"), [0, 255]);
        assert_eq!(read(b"P4 2 1\n\x40"), [255, 0]);
        let bilevel =
            b"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 1\nTUPLTYPE BLACKANDWHITE_ALPHA\nENDHDR\n\x01\x00";
        assert_eq!(read(bilevel), [255, 0]);
        assert!(decoder(&b"P5 1 1 0 1"[..]).is_err());
    }

    #[test]
    fn samples_above_the_greatest_are_counted() {
        assert!(said(b"P5 3 1 97\nabc").starts_with("2 samples are above 97"));
        assert!(said(b"P5 2 1 257\n\x01\x01\x01\x02").starts_with("1 samples"));
        assert!(said(b"P2 3 1 9 1 10 11").starts_with("2 samples"));
        assert_eq!(said(b"P5 3 1 99\nabc"), "");
        assert_eq!(said(b"P4 3 1 \xff"), "");
    }
}
