//! DirectDraw Surface files (DDS), textures of games, by the dds crate. FFmpeg's decoder swaps the channels
//! of some kinds, works out a third channel of those with two, and does not know BC6 and BC7.
//!
//! ```text
//!  "DDS " | header | its extension | picture | smaller copies of it | next face, layer or slice | ..
//! ```
//!
//! Samples are given as they are stored: what is meant by the channels of a normal map is up to its user.

mod masks;

use super::tiff::divided;
use crate::annotations::FileMetadata;
use crate::frame::{AlphaKind, Colour, Range};
use crate::source::images::picture::{OpenPicture, PictureNotes, Reason, cut_sentence};
use crate::source::images::trailing::{Trailing, several_pictures};
use dds::header::{AlphaMode, Header, ParseOptions, RawHeader, ResourceDimension};
use dds::{
    Channels, ColorFormat, DataLayout, DataRegion, Decoder, DecodingError, Format, FormatError, HeaderError,
    ImageViewMut, Precision, TextureArrayKind,
};
use std::cmp::Ordering;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

/// PNG's number of the rendering intent "perceptual".
const PERCEPTUAL: u8 = 0;

const COPIES: &str = "its smaller copies (mipmaps) are left out";

const MAGIC: &[u8; 4] = b"DDS ";

/// A DDS file whose header has been read.
struct Dds {
    decoder: Decoder<Box<dyn Read>>,
    /// What is decoded: the kind's own channels and precision, but for alpha alone.
    colour: ColorFormat,
    /// Colours are multiplied by alpha, and the decoder does not divide them.
    is_premultiplied: bool,
    /// What follows all its pictures in the file.
    trailing: Option<Trailing>,
}

/// Opens the first and largest picture of a file.
pub(in crate::source::images) fn open(path: &Path) -> Result<Box<dyn OpenPicture>, Reason> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut input = BufReader::new(file);
    let header = header(&mut input, length)?;
    let format = match (Format::from_header(&header), &header) {
        (known, Header::Dx9(header))
            if masks::is_gray_with_alpha(header)
                || matches!(known, Err(FormatError::UnsupportedPixelFormat)) =>
        {
            let mut masked = masks::open(input, header, length)?;
            masked.said.conversion = (header.mipmap_count.get() > 1).then(|| COPIES.to_owned());
            return Ok(Box::new(masked));
        }
        (format, _) => format.map_err(DecodingError::Format)?,
    };
    let bytes = Decoder::from_header((), header.clone())?
        .surface_info()
        .map_or(0, |first| first.data_len());
    if bytes > length {
        return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
    }
    let end = Decoder::from_header((), header.clone())?.layout().data_len();
    let end = end.saturating_add(input.stream_position()?);
    let trailing = trailing_from(path, end)?;
    let input: Box<dyn Read> = if is_bc3(format) {
        let mut blocks = vec![0; bytes as usize];
        input.read_exact(&mut blocks)?;
        with_four_colours(&mut blocks);
        Box::new(Cursor::new(blocks))
    } else {
        Box::new(input)
    };
    let decoder = Decoder::from_header(input, header)?;
    let alpha = decoder.header().alpha_mode();
    let mut colour = decoder.native_color();
    colour.channels = match (colour.channels, alpha) {
        (Channels::Alpha, _) => Channels::Rgba,
        (Channels::Rgba, AlphaMode::Opaque) => Channels::Rgb,
        (channels, _) => channels,
    };
    let is_divided = matches!(
        decoder.format(),
        Format::BC2_UNORM_PREMULTIPLIED_ALPHA | Format::BC3_UNORM_PREMULTIPLIED_ALPHA
    );
    Ok(Box::new(Dds {
        is_premultiplied: alpha == AlphaMode::Premultiplied
            && colour.channels == Channels::Rgba
            && !is_divided,
        decoder,
        colour,
        trailing,
    }))
}

/// What follows at byte `end` of a file.
fn trailing_from(path: &Path, end: u64) -> io::Result<Option<Trailing>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(end))?;
    Trailing::of(&mut BufReader::new(file), MAGIC)
}

/// Reads the header behind the first four bytes.
fn header(input: &mut impl Read, length: u64) -> Result<Header, Reason> {
    let mut magic = [0; 4];
    input.read_exact(&mut magic)?;
    if magic != *MAGIC {
        return Err("it does not begin as DDS files do".into());
    }
    let mut raw = RawHeader::read(input)?;
    // Some programs leave it out.
    if let Some(extension) = raw
        .dx10
        .as_mut()
        .filter(|extension| extension.resource_dimension == 0)
    {
        extension.resource_dimension = ResourceDimension::Texture2D.into();
    }
    let options = ParseOptions::new_permissive(Some(length));
    Ok(Header::from_raw(&raw, &options).map_err(DecodingError::Header)?)
}

fn is_bc3(format: Format) -> bool {
    matches!(
        format,
        Format::BC3_UNORM
            | Format::BC3_UNORM_PREMULTIPLIED_ALPHA
            | Format::BC3_UNORM_RXGB
            | Format::BC3_UNORM_NORMAL
    )
}

/// Orders the two colours of each block of BC3, so that the decoder mixes them to four: it takes the order
/// for that of BC1, where it chooses between four colours, and three and none.
///
/// ```text
///  a block: alpha, 8 bytes | colour 0, colour 1: 2 bytes each | 16 numbers of 2 bits: 0, 1, mixes 2 and 3
/// ```
fn with_four_colours(blocks: &mut [u8]) {
    for block in blocks.as_chunks_mut::<16>().0 {
        let colour = |at: usize| u16::from_le_bytes([block[at], block[at + 1]]);
        match colour(8).cmp(&colour(10)) {
            Ordering::Greater => {}
            // All four are the same.
            Ordering::Equal => block[12..].fill(0),
            Ordering::Less => {
                block.swap(8, 10);
                block.swap(9, 11);
                // 0 and 1 change places, and so do 2 and 3.
                for numbers in &mut block[12..] {
                    *numbers ^= 0b0101_0101;
                }
            }
        }
    }
}

impl Dds {
    /// What of the file is not given, in words.
    fn losses(&self) -> Vec<String> {
        let (count, what) = match self.decoder.layout() {
            DataLayout::Texture(_) => (1, ""),
            DataLayout::Volume(volume) => (volume.main().depth() as usize, "slices of a volume"),
            DataLayout::TextureArray(array) => (
                array.len(),
                match array.kind() {
                    TextureArrayKind::Textures => "layers",
                    TextureArrayKind::CubeMaps | TextureArrayKind::PartialCubeMap(_) => "faces of a cube",
                },
            ),
        };
        let further = (count > 1).then(|| several_pictures(count, what, "first"));
        let custom = (self.colour.channels == Channels::Rgba
            && self.decoder.header().alpha_mode() == AlphaMode::Custom)
            .then(|| "its fourth channel is no alpha, as the file says, and is read as such".to_owned());
        let trailing = self.trailing.map(|trailing| trailing.sentence().to_owned());
        [further, custom, trailing].into_iter().flatten().collect()
    }

    /// How the picture is given otherwise than it is stored, in words.
    fn conversion(&self) -> Option<String> {
        let header = self.decoder.header();
        let opaque = (header.alpha_mode() == AlphaMode::Opaque
            && self.decoder.native_color().channels == Channels::Rgba)
            .then_some("its fourth channel is left out, since the file says that it is opaque");
        let copies = (header.mipmap_count().get() > 1).then_some(COPIES);
        let is_signed = format!("{:?}", self.decoder.format()).ends_with("SNORM");
        let signed = is_signed
            .then_some("its samples are signed numbers, of which 0 is read as the middle of the range");
        let said: Vec<&str> = [opaque, signed, copies].into_iter().flatten().collect();
        (!said.is_empty()).then(|| said.join("; "))
    }

    fn surface(&mut self, samples: &mut [u8]) -> Result<(), Reason> {
        let view = ImageViewMut::new(samples, self.decoder.main_size(), self.colour);
        Ok(self.decoder.read_surface(view.ok_or("has another size")?)?)
    }
}

impl OpenPicture for Dds {
    fn size(&self) -> (usize, usize) {
        let size = self.decoder.main_size();
        (size.width as usize, size.height as usize)
    }

    fn format(&self) -> &'static str {
        match (self.colour.channels, self.colour.precision) {
            (Channels::Grayscale | Channels::Alpha, Precision::U8) => "gray",
            (Channels::Grayscale | Channels::Alpha, Precision::U16) => "gray16le",
            (Channels::Grayscale | Channels::Alpha, Precision::F32) => "grayf32le",
            (Channels::Rgb, Precision::U8) => "rgb24",
            (Channels::Rgb, Precision::U16) => "rgb48le",
            (Channels::Rgb, Precision::F32) => "rgbf32le",
            (Channels::Rgba, Precision::U8) => "rgba",
            (Channels::Rgba, Precision::U16) => "rgba64le",
            (Channels::Rgba, Precision::F32) => "rgbaf32le",
        }
    }

    fn colour(&self) -> Colour {
        let is_associated = self.is_premultiplied && self.colour.precision == Precision::F32;
        Colour {
            range: Range::Full,
            alpha: match is_associated {
                true => AlphaKind::Associated,
                false => AlphaKind::Straight,
            },
            ..Colour::default()
        }
    }

    fn metadata(&self) -> FileMetadata {
        let mut found = FileMetadata::default();
        found.annotations.srgb_intent = self.decoder.header().is_srgb().then_some(PERCEPTUAL);
        found
    }

    fn most_packed(&self) -> Option<u64> {
        // Blocks of 8 bytes hold 16 pixels, of 16 bytes each.
        Some(100)
    }

    fn decode(mut self: Box<Self>, samples: &mut [u8]) -> Result<PictureNotes, Reason> {
        let mut cut = 0;
        let mut said = PictureNotes {
            losses: self.losses(),
            conversion: self.conversion(),
            ..PictureNotes::default()
        };
        match self.colour.precision {
            Precision::U8 => {
                self.surface(samples)?;
                if self.is_premultiplied {
                    for [r, g, b, a] in samples.as_chunks_mut::<4>().0 {
                        for colour in [r, g, b] {
                            cut += u64::from(*colour > *a);
                            *colour = divided(u16::from(*colour), u16::from(*a), 255) as u8;
                        }
                    }
                }
            }
            Precision::U16 => {
                self.surface(samples)?;
                for sample in samples.as_chunks_mut::<2>().0 {
                    *sample = u16::from_ne_bytes(*sample).to_le_bytes();
                }
                if self.is_premultiplied {
                    for [r, g, b, a] in samples.as_chunks_mut::<2>().0.as_chunks_mut::<4>().0 {
                        for colour in [r, g, b] {
                            let (stored, alpha) = (u16::from_le_bytes(*colour), u16::from_le_bytes(*a));
                            cut += u64::from(stored > alpha);
                            *colour = divided(stored, alpha, u16::MAX).to_le_bytes();
                        }
                    }
                }
            }
            Precision::F32 => {
                self.surface(samples)?;
                for sample in samples.as_chunks_mut::<4>().0 {
                    *sample = f32::from_ne_bytes(*sample).to_le_bytes();
                }
            }
        }
        said.losses.extend(cut_sentence(cut));
        Ok(said)
    }
}

impl From<DecodingError> for Reason {
    fn from(error: DecodingError) -> Reason {
        match error {
            DecodingError::Io(cause) => Reason::Io(cause),
            DecodingError::Header(HeaderError::Io(cause)) => Reason::Io(cause),
            error => Reason::Words(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a block, worked out as the format says: mixes by thirds, whatever the order.
    fn mixed(block: &[u8; 16]) -> Vec<[i32; 3]> {
        let word = |at: usize| i32::from(u16::from_le_bytes([block[at], block[at + 1]]));
        let colour = |w: i32| {
            [
                (w >> 11) * 255 / 31,
                (w >> 5 & 63) * 255 / 63,
                (w & 31) * 255 / 31,
            ]
        };
        let (a, b) = (colour(word(8)), colour(word(10)));
        let mix = |x: i32, y: i32| [0, 1, 2].map(|at| (x * a[at] + y * b[at]) / 3);
        let colours = [a, b, mix(2, 1), mix(1, 2)];
        let numbers = u32::from_le_bytes([block[12], block[13], block[14], block[15]]);
        (0..16)
            .map(|at| colours[(numbers >> (2 * at) & 3) as usize])
            .collect()
    }

    #[test]
    fn blocks_of_bc3_mean_the_same_in_the_other_order() {
        for (a, b) in [(0x1234_u16, 0xfedc_u16), (0xfedc, 0x1234), (0x4321, 0x4321)] {
            let mut block = [7; 16];
            block[8..10].copy_from_slice(&a.to_le_bytes());
            block[10..12].copy_from_slice(&b.to_le_bytes());
            block[12..].copy_from_slice(&[0b1110_0100, 0b0001_1011, 0xff, 0xaa]);
            let before = mixed(&block);
            with_four_colours(&mut block);
            assert_eq!(mixed(&block), before);
            let first = u16::from_le_bytes([block[8], block[9]]);
            assert!(first >= u16::from_le_bytes([block[10], block[11]]));
            assert_eq!(block[..8], [7; 8]);
        }
    }
}
