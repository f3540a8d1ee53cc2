//! JPEG files by libjpeg-turbo: every layout of scans comes out right, and data that are missing or damaged
//! are reported instead of being filled in silently.

use super::picture::{OpenPicture, PictureNotes, Reason};
use crate::frame::METADATA_LIMIT;
use crate::still::annotations::jpeg::{listed_pictures, walk};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat};

/// Opens a file.
pub(super) fn open(path: &Path) -> Result<Box<dyn OpenPicture>, Reason> {
    let (data, further) = picture(&mut BufReader::new(File::open(path)?))?;
    Ok(Box::new(Jpeg {
        further,
        ..Jpeg::open(data)?
    }))
}

/// A JPEG file in memory, its header read.
struct Jpeg {
    data: Vec<u8>,
    /// What is decoded instead, if the header is damaged, and how that is.
    repaired: Option<(Vec<u8>, String)>,
    decoder: Decompressor,
    width: usize,
    height: usize,
    colours: Colours,
    /// What the file holds beside this picture, in words.
    further: Option<String>,
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

/// The picture of a file as a file of its own: without the segments that say something beside it, and with no
/// more data than a picture of its size has. The library reads from memory only. A sentence tells of further
/// pictures in the file.
fn picture(input: &mut impl BufRead) -> io::Result<(Vec<u8>, Option<String>)> {
    let mut data = Vec::new();
    let mut samples = 0;
    let mut pictures = None;
    let rest = walk(input, |lead, marker, body| {
        // Adobe's segment and JFIF's tell the colours.
        let is_beside = matches!(marker, 0xe1..=0xed | 0xef | 0xfe) && !is_broken_profile(marker, body);
        pictures = pictures.or_else(|| listed_pictures(marker, body));
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
    let begin = data.len();
    // Of noise at the best quality a sample takes little more than a byte.
    input.take(2 * samples + SLACK).read_to_end(&mut data)?;
    let further = further(pictures, behind_end(&data[begin..]));
    Ok((data, further))
}

/// What there is to say of a file that lists so many pictures and has these data behind the first one.
fn further(listed: Option<usize>, behind: &[u8]) -> Option<String> {
    let padding = behind.iter().take_while(|&&byte| byte == 0).count();
    // Phones put the seconds around a picture there.
    let has_video = behind.windows(4).any(|name| name == b"ftyp");
    let several = listed.filter(|&count| count > 1);
    if let Some(count) = several {
        let video = if has_video { " and a video" } else { "" };
        Some(format!(
            "{count} pictures{video} are in the file, of which the first picture is read"
        ))
    } else if has_video {
        Some("a video is in the file behind the picture, which alone is read".to_owned())
    } else if behind[padding..].starts_with(b"\xff\xd8\xff") {
        // Where a list names this one alone, that is a preview of it.
        listed
            .is_none()
            .then(|| "several pictures are in the file, of which the first is read".to_owned())
    } else {
        let is_nothing = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, 0 | 0xff);
        (!behind.iter().all(is_nothing))
            .then(|| "data behind the picture in the file are left out".to_owned())
    }
}

/// What follows the end of a picture whose scans these are; empty if it has no end.
fn behind_end(scans: &[u8]) -> &[u8] {
    const END: u8 = 0xd9;
    let mut rest = scans;
    while let Some(at) = rest.iter().position(|&byte| byte == 0xff) {
        let after = &rest[at + 1..];
        rest = match after {
            [END, behind @ ..] => return behind,
            // Fill bytes, a byte of a scan, and markers without data.
            [] | [0xff, ..] => after,
            [0 | 1 | 0xd0..=0xd8, scan @ ..] => scan,
            [_, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                after.get(1 + length..).unwrap_or_default()
            }
            [..] => &[],
        };
    }
    &[]
}

/// True for a part of an ICC profile whose number cannot be; the library names it as damage.
fn is_broken_profile(marker: u8, body: &[u8]) -> bool {
    marker == 0xe2
        && body.get(2..14) == Some(b"ICC_PROFILE\0")
        && !matches!(body.get(14..16), Some(&[part, parts]) if 0 < part && part <= parts)
}

/// What was wrong with a picture that is there all the same.
type Damage = Option<String>;

impl OpenPicture for Jpeg {
    fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn format(&self) -> &'static str {
        if self.is_gray() { "gray" } else { "rgb24" }
    }

    fn decode(mut self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let conversion =
            (self.colours == Colours::Cmyk).then(|| "colours of four inks (CMYK) become RGB".to_owned());
        let further = self.further.take();
        let damage = self.read(samples)?;
        let damage = damage.map(|words| format!("damaged: {words}"));
        Ok(PictureNotes {
            losses: damage.into_iter().chain(further).collect(),
            conversion,
            ..PictureNotes::default()
        })
    }
}

impl Jpeg {
    /// Reads the header; an error is a reason in words.
    fn open(data: Vec<u8>) -> Result<Jpeg, String> {
        let mut decoder = Decompressor::new().map_err(|e| e.to_string())?;
        let mut repaired = None;
        let header = match decoder.read_header(&data) {
            Ok(header) => header,
            // The library takes every warning of a header's for a failure.
            Err(error) => {
                let sound = without_damage(&data).ok_or_else(|| words(&error))?;
                let header = decoder.read_header(&sound).map_err(|_| words(&error))?;
                repaired = Some((sound, words(&error)));
                header
            }
        };
        Ok(Jpeg {
            decoder,
            repaired,
            width: header.width,
            height: header.height,
            colours: match header.colorspace {
                Colorspace::Gray => Colours::Gray,
                Colorspace::CMYK | Colorspace::YCCK => Colours::Cmyk,
                Colorspace::RGB | Colorspace::YCbCr => Colours::Rgb,
            },
            data,
            further: None,
        })
    }

    fn is_gray(&self) -> bool {
        self.colours == Colours::Gray
    }

    /// Decodes into `out`, which has room for gray or RGB pixels without padding.
    fn read(mut self, out: &mut [u8]) -> Result<Damage, String> {
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
        let (data, damage) = match &self.repaired {
            Some((sound, damage)) => (sound, Some(damage.clone())),
            None => (&self.data, None),
        };
        let decoder = &mut self.decoder;
        let mut run = |pixels: &mut [u8]| {
            decoder.decompress(
                data,
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
            return Ok(damage);
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
        Ok(damage.or((!is_harmless).then_some(words)))
    }
}

/// The file without what stands between the segments of its header, and without those that decoding does not
/// need; none if its scans are not found.
fn without_damage(data: &[u8]) -> Option<Vec<u8>> {
    let mut rest = data.strip_prefix(b"\xff\xd8")?;
    let mut sound = vec![0xff, 0xd8];
    loop {
        let at = rest
            .windows(2)
            .position(|pair| pair[0] == 0xff && matches!(pair[1], 0xc0..=0xcf | 0xda..=0xfe))?;
        rest = &rest[at..];
        let marker = rest[1];
        if marker == 0xda {
            sound.extend_from_slice(rest);
            return Some(sound);
        }
        let &[high, low] = rest.get(2..)?.first_chunk()?;
        let segment = rest.get(..2 + usize::from(u16::from_be_bytes([high, low])));
        let is_needed = match (marker, segment) {
            (0xe0, Some(segment)) => segment.len() >= 18 && segment[4..].starts_with(b"JFIF\0"),
            (0xee, Some(segment)) => segment.len() >= 16 && segment[4..].starts_with(b"Adobe"),
            (0xc0..=0xcf | 0xdb | 0xdd, Some(_)) => true,
            _ => false,
        };
        match segment {
            Some(segment) if segment.len() >= 4 => {
                if is_needed {
                    sound.extend_from_slice(segment);
                }
                rest = &rest[segment.len()..];
            }
            _ => rest = &rest[2..],
        }
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

    #[test]
    fn what_is_behind_the_end_is_found_whatever_the_scans_hold() {
        let table = [0xff, 0xc4, 0, 6, 1, 0xff, 0xd9, 2];
        let scan = [7, 0xff, 0, 0xd9, 0xff, 0xd3, 8, 0xff, 0xff];
        let scans = [&scan[..], &table, &scan, &[0xff, 0xd9]].concat();
        assert_eq!(behind_end(&scans), b"");
        assert_eq!(behind_end(&[&scans[..], b"more"].concat()), b"more");
        assert_eq!(behind_end(&scans[..scans.len() - 2]), b"");
        assert_eq!(behind_end(&[0xff, 0xc4, 9, 9, 1]), b"");
        assert_eq!(behind_end(&[0xff, 0xc4, 9]), b"");
        assert_eq!(behind_end(&[0xff]), b"");
    }

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
    fn damage_between_segments_of_a_header_is_passed_over_and_reported() {
        let whole = picture();
        let (pixels, damage) = read(whole.clone()).unwrap();
        assert_eq!(damage, None);
        let first = 2 + 2 + usize::from(u16::from_be_bytes([whole[4], whole[5]]));
        let inserted = |junk: &[u8]| [&whole[..first], junk, &whole[first..]].concat();
        for junk in [
            &b"junk"[..],
            b"\xff\0",
            // Adobe's marker, cut short, and a profile that is none.
            b"\xff\xee\0\x0cAdobe\0\x64\0\0\0\0",
            b"\xff\xe2\0\x10ICC_PROFILE\0\0\0\0",
        ] {
            let (same, damage) = read(inserted(junk)).unwrap();
            assert!(damage.is_some_and(|d| d.contains("Corrupt")), "{junk:?}");
            assert_eq!(same, pixels);
        }
        for end in 0..whole.len() {
            let _ = without_damage(&inserted(b"junk")[..end]);
        }
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
