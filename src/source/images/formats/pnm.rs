//! What the decoder of PNM files (PBM, PGM, PPM, PAM) says nothing about: data behind the first picture, and
//! samples above the greatest that the head states.
//!
//! ```text
//!   P1 P2 P3       numbers as text; of P1 one digit each
//!   P4             8 pixels a byte, each row begins a byte
//!   P5 P6 P7       bytes, or 16 bits with the high byte first where samples go above 255
//! ```

use crate::source::images::behind::Further;
use std::io::{self, BufRead, Read, Seek};

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1 << 16;

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
    losses.extend(behind(&mut input)?.map(|further| {
        match further {
            Further::Pictures => further.sentence(),
            Further::Data => "data follow the picture, which are left out",
        }
        .to_owned()
    }));
    Ok(losses)
}

/// What follows the first picture of a file whose samples are bytes.
pub(in crate::source::images) fn further(mut input: impl BufRead + Seek) -> io::Result<Option<Further>> {
    let Some(head) = head(&mut (&mut input).take(LONGEST_HEAD))? else {
        return Ok(None);
    };
    if head.is_text {
        return Ok(None);
    }
    head.pass_bytes(&mut input)?;
    behind(&mut input)
}

/// What follows a picture, if something does.
fn behind(input: &mut impl BufRead) -> io::Result<Option<Further>> {
    loop {
        let bytes = input.fill_buf()?;
        let Some(&first) = bytes.first() else {
            return Ok(None);
        };
        if !first.is_ascii_whitespace() {
            let is_picture = matches!(bytes, [b'P', b'1'..=b'7', ..] | [b'P']);
            return Ok(Some(match is_picture {
                true => Further::Pictures,
                false => Further::Data,
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
                // The decoder tells of it.
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
        losses(io::Cursor::new(file)).unwrap().join("; ")
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
            assert!(twice.starts_with("several pictures"), "{name}: {twice}");
            let more = said(&[picture, b"\n", b"else"].concat());
            assert!(more.starts_with("data follow"), "{name}: {more}");
        }
        assert_eq!(said(b"P5 3 2 255\nab"), "");
        assert_eq!(said(b"no picture"), "");
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
