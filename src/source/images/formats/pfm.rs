//! PFM: a head in three words' lines and floating-point numbers, the lowest row first.
//!
//! ```text
//!   PF              RGB; Pf: gray
//!   640 480         columns and rows
//!   -1.0            below 0: little-endian; its size says how bright 1 is, and is not looked at
//!   numbers of 32 bits
//! ```

use crate::frame::PixelFormat;
use crate::source::images::picture::{OpenPicture, PictureNotes, Reason};
use crate::source::images::trailing::Trailing;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

/// Bytes in which the head ends.
const LONGEST_HEAD: u64 = 1024;

struct Pfm {
    input: BufReader<File>,
    format: PixelFormat,
    width: usize,
    height: usize,
    scale: f64,
}

/// Opens a file and reads its head.
pub(in crate::source::images) fn open(path: &Path) -> Result<Box<dyn OpenPicture>, Reason> {
    let mut input = BufReader::new(File::open(path)?);
    let mut head = (&mut input).take(LONGEST_HEAD);
    let format = match &word(&mut head)?[..] {
        "PF" => PixelFormat::RGBF32,
        "Pf" => PixelFormat::GRAYF32,
        other => return Err(format!("it begins with '{other}', and PFM files with PF or Pf").into()),
    };
    let mut size = || -> Result<usize, Reason> {
        let word = word(&mut head)?;
        let number = word.parse::<u32>().ok().filter(|&number| number > 0);
        number
            .map(|number| number as usize)
            .ok_or_else(|| format!("'{word}' is no width or height").into())
    };
    let (width, height) = (size()?, size()?);
    let (scale, space) = word_and_space(&mut head)?;
    let number = scale
        .parse::<f64>()
        .ok()
        .filter(|scale| scale.is_finite() && *scale != 0.0);
    let scale = number.ok_or_else(|| format!("'{scale}' is no scale"))?;
    // Lines may end in two bytes; where the numbers take all the rest, the second is one of theirs.
    if space == b'\r' && input.fill_buf()?.first() == Some(&b'\n') {
        let pixel_bytes = format.planes()[0].channels.len() * format.bytes_per_sample();
        let length = input.get_ref().metadata()?.len();
        let numbers = (width as u64 * height as u64).saturating_mul(pixel_bytes as u64);
        if length.saturating_sub(input.stream_position()?) > numbers {
            input.consume(1);
        }
    }
    Ok(Box::new(Pfm {
        input,
        format,
        width,
        height,
        scale,
    }))
}

/// A word of the head; the one byte of white space behind it is read, too.
fn word(head: &mut impl BufRead) -> Result<String, Reason> {
    Ok(word_and_space(head)?.0)
}

/// A word of the head, and the byte of white space behind it.
fn word_and_space(head: &mut impl BufRead) -> Result<(String, u8), Reason> {
    let mut word = String::new();
    loop {
        let mut byte = [0];
        head.read_exact(&mut byte)?;
        match byte[0] {
            space if space.is_ascii_whitespace() && word.is_empty() => {}
            space if space.is_ascii_whitespace() => return Ok((word, space)),
            byte if byte.is_ascii_graphic() => word.push(char::from(byte)),
            _ => return Err("its head is no text".into()),
        }
    }
}

impl OpenPicture for Pfm {
    fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn format(&self) -> &'static str {
        self.format.name()
    }

    fn most_packed(&self) -> Option<u64> {
        Some(1)
    }

    fn decode(mut self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let row = samples.len() / self.height;
        for row in samples.chunks_exact_mut(row).rev() {
            self.input.read_exact(row)?;
            if self.scale > 0.0 {
                row.as_chunks_mut::<4>()
                    .0
                    .iter_mut()
                    .for_each(|number| number.reverse());
            }
        }
        let size = self.scale.abs();
        let scale =
            (size != 1.0).then(|| format!("its scale of {size} is not kept; numbers are read as they are"));
        // Pictures of either kind begin so.
        let further = Trailing::of(&mut self.input, b"P")?;
        let further = further.map(|further| further.sentence().to_owned());
        Ok(PictureNotes {
            losses: scale.into_iter().chain(further).collect(),
            ..PictureNotes::default()
        })
    }
}
