//! Truevision TGA files. FFmpeg's decoder takes gray with alpha for colours of 5 bits, drops alpha of one
//! bit, and takes the unused byte of opaque pixels for alpha.
//!
//! ```text
//!  header, 18 bytes | identity | colour map | pixels | .. | footer, 26 bytes
//!  0 length of identity   1 has a map   2 kind   3 map: first, entries, bits   8 origin
//!  12 width   14 height   16 bits of a pixel   17 bits of alpha 0..4, from the right 4, from the top 5
//! ```

use super::tiff::divided;
use crate::annotations::tga::FOOTER;
use crate::annotations::{self, FileMetadata};
use crate::source::images::picture::{OpenPicture, PictureNotes, Reason, cut_sentence, unused_sentence};
use crate::source::images::trailing::Trailing;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Bytes of the header.
const HEADER: usize = 18;

/// The kind of alpha by which the colours are multiplied.
const PREMULTIPLIED: u8 = 4;

/// Bytes of identity, colour map, extension and footer that are read at most.
const MOST_AROUND: u64 = 16 << 20;

/// Opens a file.
pub(in crate::source::images) fn open(path: &Path) -> Result<Box<dyn OpenPicture>, Reason> {
    Ok(Box::new(Tga::open(Tga::file(path)?)?))
}

/// A TGA file in memory, its header read.
struct Tga {
    data: Vec<u8>,
    width: usize,
    height: usize,
    stored: Stored,
    /// The colours that pixels are numbers of, and the number of the first.
    map: Option<(Vec<u8>, usize)>,
    /// Bytes of a pixel, or of its number.
    pixel_bytes: usize,
    is_packed: bool,
    from_right: bool,
    from_top: bool,
    is_premultiplied: bool,
    /// Width over height of a pixel; 0 in the second number if it is not stated.
    sample_aspect: (i32, i32),
    metadata: FileMetadata,
    /// Where the pixels begin.
    start: usize,
}

/// How a pixel or an entry of the map is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stored {
    Gray,
    GrayAlpha,
    /// Five bits a colour, and alpha of one.
    Words {
        alpha: bool,
    },
    Rgb,
    /// With a fourth byte, which is alpha or nothing.
    Rgbx {
        alpha: bool,
    },
}

impl Stored {
    fn has_alpha(self) -> bool {
        matches!(
            self,
            Stored::GrayAlpha | Stored::Words { alpha: true } | Stored::Rgbx { alpha: true }
        )
    }

    fn is_gray(self) -> bool {
        matches!(self, Stored::Gray | Stored::GrayAlpha)
    }

    /// Bytes of a pixel that is given out.
    fn channels(self) -> usize {
        (if self.is_gray() { 1 } else { 3 }) + usize::from(self.has_alpha())
    }

    fn bytes(self) -> usize {
        match self {
            Stored::Gray => 1,
            Stored::GrayAlpha | Stored::Words { .. } => 2,
            Stored::Rgb => 3,
            Stored::Rgbx { .. } => 4,
        }
    }

    /// What a stored pixel has beside its colours, where that is no alpha.
    fn unused(self, pixel: &[u8]) -> Option<u8> {
        match self {
            Stored::Rgbx { alpha: false } => pixel.get(3).copied(),
            Stored::Words { alpha: false } => pixel.get(1).map(|high| high >> 7),
            _ => None,
        }
    }

    /// Puts a stored pixel into `out`, which has [`Stored::channels`] bytes.
    fn put(self, from: &[u8], out: &mut [u8]) {
        match self {
            Stored::Gray | Stored::GrayAlpha => out.copy_from_slice(from),
            Stored::Words { alpha } => {
                let word = u16::from_le_bytes([from[0], from[1]]);
                for (sample, shift) in out.iter_mut().zip([10, 5, 0]) {
                    *sample = (((word >> shift & 31) * 255 + 15) / 31) as u8;
                }
                if alpha {
                    out[3] = if word >> 15 == 1 { 255 } else { 0 };
                }
            }
            Stored::Rgb | Stored::Rgbx { .. } => {
                let pixel = [from[2], from[1], from[0], from.get(3).copied().unwrap_or(255)];
                out.copy_from_slice(&pixel[..out.len()]);
            }
        }
    }
}

impl Tga {
    /// The bytes of a file, as many as one of its size may have: twice its pixels, and what lies around them.
    fn file(path: &Path) -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let mut data = Vec::new();
        Read::by_ref(&mut file)
            .take(HEADER as u64)
            .read_to_end(&mut data)?;
        let word = |at: usize| {
            let bytes = data.get(at..at + 2).and_then(|bytes| bytes.first_chunk());
            u64::from(bytes.map_or(0, |bytes| u16::from_le_bytes(*bytes)))
        };
        let most = MOST_AROUND + 8 * word(12) * word(14);
        file.take(most).read_to_end(&mut data)?;
        Ok(data)
    }

    /// Reads the header; an error is a reason in words.
    fn open(data: Vec<u8>) -> Result<Tga, String> {
        let header: [u8; HEADER] = *data.first_chunk().ok_or("the header ends early")?;
        let word = |at: usize| usize::from(u16::from_le_bytes([header[at], header[at + 1]]));
        let (kind, bits, flags) = (header[2], header[16], header[17]);
        let (width, height) = (word(12), word(14));
        if width == 0 || height == 0 {
            return Err(format!("a picture of {width}x{height} pixels"));
        }
        if flags >> 6 != 0 {
            return Err("its rows are interleaved, which framepipe does not read".to_owned());
        }
        let said = annotations::tga::extension_of(&data);
        // The extension may say that there is none, or that what is there means nothing.
        let alpha = match said.alpha_kind {
            Some(0..=2) => 0,
            _ => flags & 15,
        };
        let colours = |bits: u8| match (bits, alpha) {
            (15, _) => Ok(Stored::Words { alpha: false }),
            // There is one bit, whatever number of them is stated.
            (16, _) => Ok(Stored::Words { alpha: alpha > 0 }),
            (24, _) => Ok(Stored::Rgb),
            (32, _) => Ok(Stored::Rgbx { alpha: alpha == 8 }),
            _ => Err(format!("holds colours of {bits} bits")),
        };
        let (map_entry, pixel_bytes) = (header[7], usize::from(bits.div_ceil(8)));
        let stored = match (kind & !8, bits) {
            (1, 8 | 16) if header[1] == 1 => colours(map_entry)?,
            (2, _) => colours(bits)?,
            (3, 8) => Stored::Gray,
            (3, 16) => Stored::GrayAlpha,
            _ => {
                return Err(format!(
                    "is of kind {kind} with {bits} bits a pixel, which framepipe does not read"
                ));
            }
        };
        let map_start = HEADER + usize::from(header[0]);
        let map_bytes = if header[1] == 1 {
            word(5) * usize::from(map_entry.div_ceil(8))
        } else {
            0
        };
        let map = match kind & !8 {
            1 => {
                let map = data.get(map_start..map_start + map_bytes);
                Some((map.ok_or("the colour map ends early")?.to_vec(), word(3)))
            }
            _ => None,
        };
        Ok(Tga {
            is_premultiplied: stored.has_alpha() && said.alpha_kind == Some(PREMULTIPLIED),
            sample_aspect: said.pixel_aspect,
            metadata: annotations::tga::read(&data),
            data,
            width,
            height,
            stored,
            map,
            pixel_bytes,
            is_packed: kind & 8 != 0,
            from_right: flags & 16 != 0,
            from_top: flags & 32 != 0,
            start: map_start + map_bytes,
        })
    }

    /// Decodes into `out`, which has room for the pixels without padding. Says what is left out of each
    /// pixel, and what is lost of the pixels or follows them, in words.
    fn read(self, out: &mut [u8]) -> Result<(Option<String>, Vec<String>), String> {
        const EARLY: &str = "ends early; it is truncated";
        let stored = self.stored;
        let (channels, bytes) = (stored.channels(), self.pixel_bytes);
        let mut rest = self.data.get(self.start..).ok_or(EARLY)?;
        // Pixels that the packet still gives, and whether they are all the same.
        let (mut left, mut same) = (if self.is_packed { 0 } else { usize::MAX }, false);
        // An unused byte or bit means something if it is not the same everywhere.
        let (mut unused, mut dropped) = (None, false);
        let mut cut = 0;
        for row in 0..self.height {
            let y = if self.from_top { row } else { self.height - 1 - row };
            for column in 0..self.width {
                if left == 0 {
                    let (&[packet], after) = rest.split_first_chunk().ok_or(EARLY)?;
                    (left, same, rest) = (usize::from(packet & 127) + 1, packet & 128 != 0, after);
                }
                let pixel = rest.get(..bytes).ok_or(EARLY)?;
                left -= 1;
                if !same || left == 0 {
                    rest = &rest[bytes..];
                }
                let x = if self.from_right {
                    self.width - 1 - column
                } else {
                    column
                };
                let at = (y * self.width + x) * channels;
                let to = out.get_mut(at..at + channels).ok_or("has another size")?;
                let pixel = self.coloured(pixel)?;
                if let Some(byte) = stored.unused(pixel) {
                    dropped |= *unused.get_or_insert(byte) != byte;
                }
                stored.put(pixel, to);
                if self.is_premultiplied {
                    cut += divide(to);
                }
            }
        }
        let what = match stored {
            Stored::Words { .. } => "highest bit",
            _ => "fourth byte",
        };
        let overrun = self.is_packed && left > 0;
        let damage =
            overrun.then_some("its last packet goes beyond the picture: its packed pixels are damaged");
        let damage = damage.or_else(|| trailing_sentence(rest)).map(str::to_owned);
        Ok((
            dropped.then(|| unused_sentence(what)),
            damage.into_iter().chain(cut_sentence(cut)).collect(),
        ))
    }

    /// What is stored for a pixel, which may be a number of a colour in the map.
    fn coloured<'a>(&'a self, pixel: &'a [u8]) -> Result<&'a [u8], String> {
        let Some((map, first)) = &self.map else {
            return Ok(pixel);
        };
        let number = pixel.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte));
        let bytes = self.stored.bytes();
        number
            .checked_sub(*first)
            .and_then(|entry| map.get(entry * bytes..(entry + 1) * bytes))
            .ok_or_else(|| format!("a pixel has colour {number}, which the colour map does not have"))
    }
}

impl OpenPicture for Tga {
    fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    fn format(&self) -> &'static str {
        match self.stored.channels() {
            1 => "gray",
            2 => "ya8",
            3 => "rgb24",
            _ => "rgba",
        }
    }

    fn metadata(&self) -> FileMetadata {
        self.metadata.clone()
    }

    fn most_packed(&self) -> Option<u64> {
        // Two bytes are a run of 128 pixels, of four bytes each.
        Some(256)
    }

    fn decode(self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let sample_aspect = match self.sample_aspect {
            stated @ (1.., 1..) => stated,
            _ => (0, 1),
        };
        let (conversion, losses) = self.read(samples)?;
        Ok(PictureNotes {
            sample_aspect,
            conversion,
            losses,
            ..PictureNotes::default()
        })
    }
}

/// What follows the pixels, in words: the footer ends the file, and what lies before it belongs to it.
fn trailing_sentence(rest: &[u8]) -> Option<&'static str> {
    let footers = rest
        .windows(FOOTER.len())
        .filter(|bytes| *bytes == FOOTER)
        .count();
    let further = match footers {
        0 => Trailing::of(&mut &*rest, &[]).ok().flatten()?,
        1 if rest.ends_with(FOOTER) => return None,
        1 => Trailing::Data,
        _ => Trailing::Pictures,
    };
    Some(further.sentence())
}

/// Divides the colours of a pixel by its alpha, which is the last sample. Gives the number of those that were
/// greater.
fn divide(pixel: &mut [u8]) -> u64 {
    let mut cut = 0;
    if let Some((&mut alpha @ 1.., colours)) = pixel.split_last_mut() {
        for sample in colours {
            cut += u64::from(*sample > alpha);
            *sample = divided(u16::from(*sample), u16::from(alpha), 255) as u8;
        }
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of 2x2 pixels.
    fn file(kind: u8, bits: u8, flags: u8, map: (u8, &[u8]), pixels: &[u8]) -> Vec<u8> {
        let (entry, map) = map;
        let entries = (map.len() / usize::from(entry / 8).max(1)) as u8;
        let head = [
            3,
            u8::from(entry > 0),
            kind,
            5,
            0,
            entries,
            0,
            entry,
            0,
            0,
            0,
            0,
            2,
            0,
            2,
            0,
            bits,
            flags,
        ];
        [&head[..], b"abc", map, pixels].concat()
    }

    fn read(data: Vec<u8>) -> Result<(&'static str, Vec<u8>, bool), String> {
        let tga = Tga::open(data)?;
        let format = tga.format();
        let mut out = vec![77; 4 * tga.stored.channels()];
        let said = tga.read(&mut out)?;
        Ok((format, out, said.0.is_some()))
    }

    const TOP: u8 = 32;

    #[test]
    fn what_follows_the_pixels_is_found() {
        let footer = [&[0; 8], FOOTER].concat();
        let said = |rest: &[&[u8]]| trailing_sentence(&rest.concat()).unwrap_or_default();
        assert_eq!(said(&[]), "");
        assert_eq!(said(&[b"\0\0"]), "");
        assert_eq!(said(&[b"extension", &footer]), "");
        assert!(said(&[b"another picture"]).starts_with("bytes after the picture"));
        assert!(said(&[&footer, b"more"]).starts_with("bytes after the picture"));
        assert!(said(&[&footer, b"picture", &footer]).starts_with("the file holds several pictures"));
        let file = file(3, 8, TOP, (0, &[]), &[1, 2, 3, 4, 5]);
        let mut out = [0; 4];
        assert!(Tga::open(file).unwrap().read(&mut out).unwrap().1.len() == 1);
    }

    #[test]
    fn every_kind_of_pixel_is_read() {
        let none = (0, &[][..]);
        let (format, out, _) = read(file(3, 8, 0, none, &[1, 2, 3, 4])).unwrap();
        assert_eq!((format, &out[..]), ("gray", &[3, 4, 1, 2][..]));
        let (_, out, _) = read(file(3, 8, TOP | 16, none, &[1, 2, 3, 4])).unwrap();
        assert_eq!(out, [2, 1, 4, 3]);
        let pixels = [1, 255, 2, 128, 3, 0, 4, 9];
        let (format, out, _) = read(file(3, 16, TOP | 8, none, &pixels)).unwrap();
        assert_eq!((format, &out[..]), ("ya8", &pixels[..]));
        // Red 31, green 16, blue 0 with the bit of alpha, then without it.
        let words = [0x00, 0xfe, 0x00, 0x7e, 0, 0, 0, 0x80];
        let expected = [255, 132, 0, 255, 255, 132, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255];
        let (format, out, _) = read(file(2, 16, TOP | 1, none, &words)).unwrap();
        assert_eq!((format, &out[..]), ("rgba", &expected[..]));
        let (format, out, _) = read(file(2, 16, TOP, none, &words)).unwrap();
        assert_eq!((format, &out[..3]), ("rgb24", &[255, 132, 0][..]));
        // A run of three blue pixels, and a red one by itself.
        let packed = [0x82, 255, 0, 0, 0x00, 0, 0, 255];
        let (_, out, _) = read(file(10, 24, TOP, none, &packed)).unwrap();
        assert_eq!(out, [0, 0, 255, 0, 0, 255, 0, 0, 255, 255, 0, 0]);
        for (packet, is_damaged) in [(0x83, false), (0x84, true), (0x04, true)] {
            let data = [&[packet][..], &[7; 15]].concat();
            let tga = Tga::open(file(10, 24, TOP, none, &data)).unwrap();
            let said = tga.read(&mut [0; 12]).unwrap().1.concat();
            assert_eq!(said.contains("goes beyond"), is_damaged, "{packet}");
        }
        // Numbers of colours, counted from 5.
        let map = (24, &[10, 20, 30, 40, 50, 60][..]);
        let (_, out, _) = read(file(1, 8, TOP, map, &[5, 6, 6, 5])).unwrap();
        assert_eq!(out, [30, 20, 10, 60, 50, 40, 60, 50, 40, 30, 20, 10]);
        assert!(read(file(1, 8, TOP, map, &[5, 6, 7, 5])).is_err());
    }

    #[test]
    fn a_fourth_byte_is_alpha_only_where_the_header_says_so() {
        let none = (0, &[][..]);
        let pixels = [1, 2, 3, 9, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0];
        let (format, out, _) = read(file(2, 32, TOP | 8, none, &pixels)).unwrap();
        assert_eq!((format, &out[..4]), ("rgba", &[3, 2, 1, 9][..]));
        let (format, out, said) = read(file(2, 32, TOP, none, &pixels)).unwrap();
        assert_eq!((format, &out[..3], said), ("rgb24", &[3, 2, 1][..], true));
        let (_, _, said) = read(file(2, 32, TOP, none, &[1; 16])).unwrap();
        assert!(!said);
        // With an extension that says that the colours are multiplied by alpha.
        let mut whole = file(2, 32, TOP | 8, none, &[50, 100, 0, 128].repeat(4));
        let extension = whole.len() as u32;
        whole.extend([0; 494]);
        whole.push(PREMULTIPLIED);
        whole.extend([&extension.to_le_bytes()[..], b"\0\0\0\0TRUEVISION-XFILE.\0"].concat());
        let (_, out, _) = read(whole.clone()).unwrap();
        assert_eq!(out[..4], [0, 199, 100, 128]);
        // Or that what is there is undefined.
        whole[extension as usize + 494] = 2;
        assert_eq!(read(whole).unwrap().0, "rgb24");
    }

    #[test]
    fn damaged_files_are_refused() {
        let whole = file(10, 24, TOP, (0, &[]), &[0x82, 255, 0, 0, 0x00, 0, 0, 255]);
        for end in 0..whole.len() {
            assert!(read(whole[..end].to_vec()).is_err(), "{end}");
        }
        assert!(read(file(2, 24, 64, (0, &[]), &[0; 12])).is_err_and(|e| e.contains("interleaved")));
        assert!(read(file(32, 24, 0, (0, &[]), &[0; 12])).is_err());
    }
}
