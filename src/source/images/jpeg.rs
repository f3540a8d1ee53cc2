//! JPEG files by libjpeg-turbo: every layout of scans comes out right, and data that are missing or damaged
//! are reported instead of being filled in silently.

use crate::frame::METADATA_LIMIT;
use crate::still::annotations::jpeg::walk;
use std::io::{self, BufRead, Read};
use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat};

/// A JPEG file in memory, its header read.
pub(super) struct Jpeg {
    data: Vec<u8>,
    decoder: Decompressor,
    pub(super) width: usize,
    pub(super) height: usize,
    colours: Colours,
}

/// What the decoder gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Colours {
    Gray,
    Rgb,
    /// Four inks, brought to RGB here.
    Cmyk,
}

/// Bytes beyond a picture's samples that its data may have.
const SLACK: u64 = 1 << 20;

/// The picture of a file as a file of its own: without the segments that say something beside it, and with no more
/// data than a picture of its size has. The library reads from memory only.
pub(super) fn picture(input: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    let mut samples = 0;
    let rest = walk(input, |lead, marker, body| {
        // Adobe's segment and JFIF's tell the colours.
        let is_beside = matches!(marker, 0xe1..=0xed | 0xef | 0xfe);
        data.extend_from_slice(lead);
        if is_beside {
            data.truncate(data.len().saturating_sub(2));
        } else {
            data.extend_from_slice(body);
        }
        let is_size = matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc);
        if let (true, Some(&[_, _, _, y1, y0, x1, x0, components])) = (is_size, body.first_chunk()) {
            let side = |high, low| u64::from(u16::from_be_bytes([high, low]));
            samples = side(y1, y0) * side(x1, x0) * u64::from(components);
        }
        data.len() <= METADATA_LIMIT
    })?;
    data.extend_from_slice(&rest);
    // Of noise at the best quality a sample takes little more than a byte.
    input.take(2 * samples + SLACK).read_to_end(&mut data)?;
    Ok(data)
}

/// What was wrong with a picture that is there all the same.
pub(super) type Damage = Option<String>;

impl Jpeg {
    /// Reads the header; an error is a reason in words.
    pub(super) fn open(data: Vec<u8>) -> Result<Jpeg, String> {
        let mut decoder = Decompressor::new().map_err(|e| e.to_string())?;
        let header = decoder.read_header(&data).map_err(|e| words(&e))?;
        Ok(Jpeg {
            decoder,
            width: header.width,
            height: header.height,
            colours: match header.colorspace {
                Colorspace::Gray => Colours::Gray,
                Colorspace::CMYK | Colorspace::YCCK => Colours::Cmyk,
                Colorspace::RGB | Colorspace::YCbCr => Colours::Rgb,
            },
            data,
        })
    }

    pub(super) fn is_gray(&self) -> bool {
        self.colours == Colours::Gray
    }

    /// True if the colours of the file are those of four inks.
    pub(super) fn is_cmyk(&self) -> bool {
        self.colours == Colours::Cmyk
    }

    /// Decodes into `out`, which has room for gray or RGB pixels without padding.
    pub(super) fn read(mut self, out: &mut [u8]) -> Result<Damage, String> {
        if self.colours == Colours::Cmyk {
            let mut inks = vec![0; 4 * self.width * self.height];
            let damage = self.decode(&mut inks, PixelFormat::CMYK)?;
            let inverted = is_adobe(&self.data);
            for (pixel, ink) in out.chunks_exact_mut(3).zip(inks.chunks_exact(4)) {
                rgb_of(pixel, ink, inverted);
            }
            return Ok(damage);
        }
        let format = if self.is_gray() {
            PixelFormat::GRAY
        } else {
            PixelFormat::RGB
        };
        self.decode(out, format)
    }

    fn decode(&mut self, pixels: &mut [u8], format: PixelFormat) -> Result<Damage, String> {
        let (width, height, pitch) = (self.width, self.height, self.width * format.size());
        let mut run = |pixels: &mut [u8]| {
            self.decoder.decompress(
                &self.data,
                Image {
                    pixels,
                    width,
                    pitch,
                    height,
                    format,
                },
            )
        };
        let Err(error) = run(pixels) else {
            return Ok(None);
        };
        // The library does not distinguish damage from failure; after a failure nothing is there.
        pixels.fill(0);
        let _ = run(pixels);
        if pixels.iter().all(|&sample| sample == 0) {
            return Err(words(&error));
        }
        let words = words(&error);
        // Padding in front of the end loses nothing.
        let is_harmless = words.contains("extraneous bytes before marker 0xd9");
        Ok((!is_harmless).then_some(words))
    }
}

/// The library's own words.
fn words(error: &turbojpeg::Error) -> String {
    match error {
        turbojpeg::Error::TurboJpegError(words) => words.clone(),
        error => error.to_string(),
    }
}

/// One pixel of four inks as RGB. Adobe's programs store how much light each ink lets through.
fn rgb_of(pixel: &mut [u8], ink: &[u8], inverted: bool) {
    let light = |at: usize| u16::from(if inverted { ink[at] } else { 255 - ink[at] });
    for (at, sample) in pixel.iter_mut().enumerate() {
        *sample = ((light(at) * light(3) + 127) / 255) as u8;
    }
}

/// True if the file has Adobe's marker.
fn is_adobe(data: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = data.get(at..).and_then(<[u8]>::first_chunk) {
        match marker {
            0xee => return data.get(at + 4..).is_some_and(|rest| rest.starts_with(b"Adobe")),
            0xda => return false,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    /// A JPEG of 64x48 pixels with much to code in every block.
    fn picture() -> Vec<u8> {
        let pixels: Vec<u8> = (0..48_usize)
            .flat_map(|y| {
                (0..64_usize).flat_map(move |x| [(x * y) as u8, (y * 37 + x) as u8, (x * 91) as u8])
            })
            .collect();
        let image = Image {
            pixels: pixels.as_slice(),
            width: 64,
            pitch: 192,
            height: 48,
            format: PixelFormat::RGB,
        };
        turbojpeg::compress(image, 90, turbojpeg::Subsamp::Sub2x2)
            .unwrap()
            .to_vec()
    }

    fn read(data: Vec<u8>) -> Result<(Vec<u8>, Damage), String> {
        let jpeg = Jpeg::open(data)?;
        let mut out = vec![7; 3 * jpeg.width * jpeg.height];
        let damage = jpeg.read(&mut out)?;
        Ok((out, damage))
    }

    #[test]
    fn what_is_missing_is_reported_and_what_is_there_is_given() {
        let whole = picture();
        let (pixels, damage) = read(whole.clone()).unwrap();
        assert_eq!(damage, None);
        let mut cut = whole[..whole.len() * 6 / 10].to_vec();
        cut.extend([0xff, 0xd9]);
        let (half, damage) = read(cut).unwrap();
        assert!(damage.is_some());
        assert_eq!(half[..192 * 8], pixels[..192 * 8]);
        let (same, damage) = read(whole[..whole.len() - 2].to_vec()).unwrap();
        assert!(damage.is_some_and(|d| d.contains("end")));
        assert_eq!(same, pixels);
        assert!(read(b"\xff\xd8\xff\xe0 no picture".to_vec()).is_err());
        assert!(read(Vec::new()).is_err());
    }

    #[test]
    fn inks_become_light() {
        let mut pixel = [0; 3];
        rgb_of(&mut pixel, &[255, 128, 0, 255], true);
        assert_eq!(pixel, [255, 128, 0]);
        rgb_of(&mut pixel, &[0, 127, 255, 0], false);
        assert_eq!(pixel, [255, 128, 0]);
        rgb_of(&mut pixel, &[0, 0, 0, 255], false);
        assert_eq!(pixel, [0, 0, 0]);
    }
}
