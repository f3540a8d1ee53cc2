//! JPEG files by libjpeg-turbo: every layout of scans comes out right, and data that are missing or damaged
//! are reported instead of being filled in silently.

use crate::annotations::jpeg::{listed_pictures, walk};
use crate::frame::METADATA_LIMIT;
use crate::source::images::picture::{OpenPicture, PictureNotes, Reason};
use crate::source::images::trailing::{Trailing, is_padding, several_pictures};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use turbojpeg::{Colorspace, Decompressor, Image, PixelFormat};

/// Opens a file.
pub(in crate::source::images) fn open(path: &Path) -> Result<Box<dyn OpenPicture>, Reason> {
    let read = picture(&mut BufReader::new(File::open(path)?))?;
    if read.bits > 8 {
        let words = format!(
            "its samples have {} bits, more than the 8 that are read; convert it first",
            read.bits
        );
        return Err(words.into());
    }
    Ok(Box::new(Jpeg {
        further: read.further,
        unfinished: read.unfinished,
        ..Jpeg::open(read.data)?
    }))
}

/// True if one of the same size follows the first picture, which does not list it: a stream of pictures,
/// which is a video.
pub(in crate::source::images) fn has_second_picture(input: &mut impl BufRead) -> io::Result<bool> {
    Ok(picture(input)?.has_second_picture)
}

/// What is read of a file.
struct Contents {
    /// The picture as a file of its own.
    data: Vec<u8>,
    /// Bits of a sample.
    bits: u8,
    /// What the file holds beside this picture, in words.
    further: Option<String>,
    /// A picture of the same size follows, which the file does not list.
    has_second_picture: bool,
    /// What its scans do not give of the picture though they have an end, in words.
    unfinished: Option<String>,
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
    /// What its scans do not give of the picture, in words.
    unfinished: Option<String>,
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
/// more data than a picture of its size has. The library reads from memory only. A sentence names further
/// pictures in the file.
fn picture(input: &mut impl BufRead) -> io::Result<Contents> {
    let mut data = Vec::new();
    let mut header = Vec::new();
    let (mut samples, mut bits, mut components) = (0, 8, 0);
    let mut transform = None;
    let mut coverage = Coverage::default();
    let mut pictures = None;
    let rest = walk(input, |lead, marker, body| {
        // Adobe's segment and JFIF's tell the colours.
        let is_beside = matches!(marker, 0xe1..=0xed | 0xef | 0xfe) && !is_broken_profile(marker, body);
        pictures = pictures.or_else(|| listed_pictures(marker, body));
        data.extend_from_slice(lead);
        if is_beside {
            data.truncate(data.len().saturating_sub(2));
        } else {
            if marker == ADOBE && body.len() > TRANSFORM && body[2..].starts_with(b"Adobe") {
                transform = Some(data.len() + TRANSFORM);
            }
            data.extend_from_slice(body);
        }
        if let (true, Some(&[_, _, depth, y1, y0, x1, x0, count])) = (is_size(marker), body.first_chunk()) {
            let side = |high, low| u64::from(u16::from_be_bytes([high, low]));
            components = count;
            samples = side(y1, y0) * side(x1, x0) * u64::from(components);
            coverage = Coverage::of(marker, body);
            bits = depth;
            header = body.to_vec();
        }
        data.len() <= METADATA_LIMIT
    })?;
    data.extend_from_slice(&rest);
    if let Some(transform) = transform.and_then(|at| data.get_mut(at)) {
        *transform = known_transform(*transform, components);
    }
    // The marker of the first scan was read with what stands before it.
    let begin = data.len().saturating_sub(2);
    // Of noise at the best quality a sample takes little more than a byte.
    input.take(2 * samples + SLACK).read_to_end(&mut data)?;
    let behind = behind_end(&data[begin..], &mut coverage);
    Ok(Contents {
        bits,
        further: further(pictures, behind.unwrap_or_default()),
        has_second_picture: pictures.is_none()
            && behind
                .and_then(header_behind)
                .is_some_and(|other| other == header),
        unfinished: coverage.gap().filter(|_| behind.is_some()),
        data,
    })
}

/// The marker of Adobe's segment, and the place in it of the number that says how colours were transformed.
const ADOBE: u8 = 0xee;
const TRANSFORM: usize = 13;

/// A number that is known for a picture of so many components. With another one libjpeg itself decodes as
/// with this, and warns, which would be taken for damage.
fn known_transform(stated: u8, components: u8) -> u8 {
    const YCBCR: u8 = 1;
    const YCCK: u8 = 2;
    match (components, stated) {
        (3, 2..) => YCBCR,
        (4, 1 | 3..) => YCCK,
        _ => stated,
    }
}

/// What begins behind a picture and its padding.
fn without_padding(behind: &[u8]) -> &[u8] {
    let padding = behind.iter().take_while(|&&byte| byte == 0).count();
    &behind[padding..]
}

/// The header of the picture that begins behind another one, if one does: its depth, size and components.
fn header_behind(behind: &[u8]) -> Option<Vec<u8>> {
    let mut header = None;
    // Memory has no errors of reading.
    let _ = walk(&mut without_padding(behind), |_, marker, body| {
        if is_size(marker) {
            header = Some(body.to_vec());
        }
        header.is_none()
    });
    header
}

/// True for the marker of a segment that says how large a picture is.
fn is_size(marker: u8) -> bool {
    matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc)
}

/// What there is to say of a file that lists `listed` pictures and has the data `behind` the first one.
fn further(listed: Option<usize>, behind: &[u8]) -> Option<String> {
    // Phones put the seconds around a picture there.
    let has_video = behind.windows(4).any(|name| name == b"ftyp");
    let several = listed.filter(|&count| count > 1);
    if let Some(count) = several {
        Some(match has_video {
            true => several_pictures(count, "pictures and a video", "first picture"),
            false => several_pictures(count, "pictures", "first"),
        })
    } else if has_video {
        Some("a video follows the picture in the file; only the picture is read".to_owned())
    } else if without_padding(behind).starts_with(b"\xff\xd8\xff") {
        // Where a list names this one alone, that is a preview of it.
        listed.is_none().then(|| Trailing::Pictures.sentence().to_owned())
    } else {
        let is_data = behind.iter().any(|&byte| !is_padding(byte));
        is_data.then(|| Trailing::Data.sentence().to_owned())
    }
}

/// What follows the end of a picture whose scans these are, from the marker of the first on; `None` if they
/// have no end. Notes what they give.
fn behind_end<'a>(scans: &'a [u8], coverage: &mut Coverage) -> Option<&'a [u8]> {
    const SCAN: u8 = 0xda;
    const END: u8 = 0xd9;
    let mut rest = scans;
    while let Some(at) = rest.iter().position(|&byte| byte == 0xff) {
        let after = &rest[at + 1..];
        rest = match after {
            [END, behind @ ..] => return Some(behind),
            // Fill bytes, a byte of a scan, and markers without data.
            [] | [0xff, ..] => after,
            [0 | 1 | 0xd0..=0xd8, scan @ ..] => scan,
            [marker, high, low, ..] => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                let (segment, rest) = after.split_at_checked(1 + length)?;
                if *marker == SCAN {
                    coverage.take_scan(segment.get(3..).unwrap_or_default());
                }
                rest
            }
            [..] => return None,
        };
    }
    None
}

/// Coefficients of a block.
const COEFFICIENTS: usize = 64;

/// Which components and which bits of their coefficients the scans of a picture give.
#[derive(Default)]
struct Coverage {
    /// Names of the components, and for each coefficient how many of its lowest bits are still to come;
    /// `None` if all are.
    components: Vec<(u8, [Option<u8>; COEFFICIENTS])>,
    /// Coefficients come in several scans.
    is_progressive: bool,
    /// Scans give samples, and no coefficients.
    is_lossless: bool,
}

impl Coverage {
    /// Of a picture whose header this is: the length, the depth, two sides, and three bytes a component.
    fn of(marker: u8, header: &[u8]) -> Coverage {
        let named = header.get(8..).unwrap_or_default().as_chunks::<3>().0;
        Coverage {
            components: named
                .iter()
                .map(|&[name, ..]| (name, [None; COEFFICIENTS]))
                .collect(),
            is_progressive: matches!(marker, 0xc2 | 0xca),
            is_lossless: matches!(marker, 0xc3 | 0xc7 | 0xcb | 0xcf),
        }
    }

    /// Notes a scan, whose header this is without its length: the count of components, two bytes for each,
    /// the first and the last coefficient, and which bits. Of a lossless picture the first of these is the
    /// predictor.
    fn take_scan(&mut self, header: &[u8]) {
        let Some((&count, rest)) = header.split_first() else {
            return;
        };
        let (named, [first, last, bits]) = match rest.split_at_checked(2 * usize::from(count)) {
            Some((named, &[first, last, bits, ..])) => (named, [first, last, bits]),
            _ => return,
        };
        for &[name, _] in named.as_chunks::<2>().0 {
            let given = self.components.iter_mut().find(|component| component.0 == name);
            let band = match self.is_lossless {
                true => 0..=0,
                false => usize::from(first)..=usize::from(last),
            };
            if let Some(coefficients) = given.and_then(|given| given.1.get_mut(band)) {
                coefficients.fill(Some(bits & 15));
            }
        }
    }

    /// What the scans do not give, in words.
    fn gap(&self) -> Option<String> {
        let count = self.components.len();
        let given = self
            .components
            .iter()
            .filter(|component| component.1[0].is_some())
            .count();
        if given < count {
            return Some(format!(
                "{count} components make the picture, of which its scans hold {given}"
            ));
        }
        let is_whole = |coefficients: &[Option<u8>]| coefficients.iter().all(|left| *left == Some(0));
        let is_early = self.is_progressive && !self.components.iter().all(|component| is_whole(&component.1));
        is_early.then(|| "its progressive scans end before all bits of its coefficients have come".to_owned())
    }
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

    fn most_packed(&self) -> Option<u64> {
        // Each block of 64 samples takes a bit of Huffman's codes, and of arithmetic ones some 2^-14 where
        // all blocks are equal. Scans may be missing, which is said.
        Some(if is_arithmetic(&self.data) {
            5_000_000
        } else {
            20_000
        })
    }

    fn decode(mut self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let conversion =
            (self.colours == Colours::Cmyk).then(|| "colours of four inks (CMYK) become RGB".to_owned());
        let (further, unfinished) = (self.further.take(), self.unfinished.take());
        let damage = self.read(samples)?.or(unfinished);
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
            unfinished: None,
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
            for (pixel, ink) in out.chunks_exact_mut(3).zip(inks.chunks_exact(4)) {
                rgb_of(pixel, ink);
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
        Ok(damage.or((!is_of_padding(&words, data)).then_some(words)))
    }
}

/// True for the library's words about bytes between the last block of a picture and its end that are nothing
/// but padding. Others are of blocks: a decoder that loses its place in damaged data ends too soon.
pub(super) fn is_of_padding(words: &str, data: &[u8]) -> bool {
    const WORDS: &str = "extraneous bytes before marker 0xd9";
    let count = words.contains(WORDS).then(|| words.split_whitespace());
    let Some(count) = count.and_then(|mut words| words.find_map(|word| word.parse::<usize>().ok())) else {
        return false;
    };
    let behind = behind_end(data, &mut Coverage::default()).map_or(0, <[u8]>::len);
    let scans = data.get(..(data.len() - behind).saturating_sub(2));
    let mut last = scans.unwrap_or_default().iter().rev().take(count);
    last.all(|byte| matches!(byte, 0 | 0xff))
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
        // A size of -1.
        turbojpeg::Error::IntegerOverflow(_) => "it ends before it says how large it is".to_owned(),
        error => error.to_string(),
    }
}

/// One pixel of four inks as RGB. Stored is how much light each ink lets through, as Adobe's programs do it;
/// every reader takes files without Adobe's marker in the same way.
fn rgb_of(pixel: &mut [u8], ink: &[u8]) {
    let light = |at: usize| u16::from(ink[at]);
    for (at, sample) in pixel.iter_mut().enumerate() {
        *sample = ((light(at) * light(3) + 127) / 255) as u8;
    }
}

/// True if the coefficients have arithmetic codes.
fn is_arithmetic(data: &[u8]) -> bool {
    let mut at = 2;
    while let Some(&[0xff, marker, high, low]) = data.get(at..).and_then(<[u8]>::first_chunk) {
        match marker {
            0xc9..=0xcf => return true,
            0xda => return false,
            0xff => at += 1,
            _ => at += 2 + usize::from(u16::from_be_bytes([high, low])),
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_the_end_is_found_whatever_the_scans_hold() {
        let table = [0xff, 0xc4, 0, 6, 1, 0xff, 0xd9, 2];
        let scan = [7, 0xff, 0, 0xd9, 0xff, 0xd3, 8, 0xff, 0xff];
        let scans = [&scan[..], &table, &scan, &[0xff, 0xd9]].concat();
        let behind = |scans: &[u8]| behind_end(scans, &mut Coverage::default()).map(<[u8]>::to_vec);
        assert_eq!(behind(&scans), Some(Vec::new()));
        assert_eq!(behind(&[&scans[..], b"more"].concat()), Some(b"more".to_vec()));
        assert_eq!(behind(&scans[..scans.len() - 2]), None);
        assert_eq!(behind(&[0xff, 0xc4, 9, 9, 1]), None);
        assert_eq!(behind(&[0xff, 0xc4, 9]), None);
        assert_eq!(behind(&[0xff]), None);
    }

    #[test]
    fn what_the_scans_do_not_give_is_found() {
        let header = |marker: u8| Coverage::of(marker, b"..8hhwwn1sq2sq3sq");
        let gap = |marker: u8, scans: &[&[u8]]| {
            let mut coverage = header(marker);
            scans.iter().for_each(|scan| coverage.take_scan(scan));
            coverage.gap().unwrap_or_default()
        };
        let all = [3, b'1', 0, b'2', 0, b'3', 0, 0, 63, 0];
        assert_eq!(gap(0xc0, &[&all]), "");
        let one = |name| [1, name, 0, 0, 63, 0];
        assert_eq!(gap(0xc1, &[&one(b'1'), &one(b'2'), &one(b'3')]), "");
        assert!(
            gap(0xc0, &[&one(b'1'), &one(b'3')])
                .contains("3 components make the picture, of which its scans hold 2")
        );
        assert!(gap(0xc0, &[&[1, b'1']]).contains("hold 0"));
        let predicted = |name| [1, name, 0, 1, 0, 0];
        for marker in [0xc3, 0xc7, 0xcb, 0xcf] {
            assert_eq!(gap(marker, &[&[3, b'1', 0, b'2', 0, b'3', 0, 7, 0, 0]]), "");
            assert!(gap(marker, &[&predicted(b'1'), &predicted(b'2')]).contains("hold 2"));
        }
        let coarse = [3, b'1', 0, b'2', 0, b'3', 0, 0, 0, 1];
        let fine = [3, b'1', 0, b'2', 0, b'3', 0, 0, 0, 0x10];
        let rest = |name| [1, name, 0, 1, 63, 0];
        let bands = [rest(b'1'), rest(b'2'), rest(b'3')];
        let [y, cb, cr] = bands.each_ref().map(|band| &band[..]);
        assert_eq!(gap(0xc2, &[&coarse, y, cb, cr, &fine]), "");
        assert!(gap(0xc2, &[&coarse, y, cb, cr]).contains("end before"));
        assert!(gap(0xc2, &[&coarse, &fine, y, cr]).contains("end before"));
        assert!(!gap(0xc2, &[&coarse]).is_empty());
    }

    #[test]
    fn deep_samples_are_refused_with_advice() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut deep = picture();
        let begin = deep.windows(2).position(|marker| marker == [0xff, 0xc0]).unwrap();
        (deep[begin + 1], deep[begin + 4]) = (0xc1, 12);
        std::fs::write(file.path(), deep).unwrap();
        let Err(Reason::Words(words)) = open(file.path()) else {
            panic!("is read");
        };
        assert!(
            words.contains("12 bits") && words.contains("convert it first"),
            "{words}"
        );
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
    fn bytes_before_the_end_are_damage_unless_they_are_padding() {
        let whole = picture();
        let (pixels, _) = read(whole.clone()).unwrap();
        let with = |at: usize, bytes: &[u8]| [&whole[..at], bytes, &whole[at..]].concat();
        let end = whole.len() - 2;
        for padding in [&[0; 30][..], &[0xff; 5], &[0; 1]] {
            let (same, damage) = read(with(end, padding)).unwrap();
            assert_eq!((same == pixels, damage), (true, None), "{padding:?}");
        }
        let (same, damage) = read(with(end, b"some words more")).unwrap();
        assert_eq!(same, pixels);
        assert!(damage.is_some_and(|words| words.contains("extraneous")));
        // Here and there a decoder finds its place again, and nothing shows that.
        let places: Vec<usize> = (end / 2..end - 40).filter(|&at| whole[at - 1] != 0xff).collect();
        let silent = places.iter().filter(|&&at| {
            let (other, damage) = read(with(at, &[0x5a, 0x31, 0x07, 0x99, 0x42])).unwrap();
            other != pixels && damage.is_none()
        });
        assert!(silent.count() < places.len() / 10);
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
        rgb_of(&mut pixel, &[255, 128, 0, 255]);
        assert_eq!(pixel, [255, 128, 0]);
        rgb_of(&mut pixel, &[255, 128, 3, 127]);
        assert_eq!(pixel, [127, 64, 1]);
        rgb_of(&mut pixel, &[255, 255, 255, 0]);
        assert_eq!(pixel, [0, 0, 0]);
    }
}
