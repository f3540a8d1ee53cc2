//! A page of a TIFF file, as gray or RGB samples of 8 or 16 bits, or floating-point ones of 16 or 32.
//!
//! What is not understood is refused by name, because a wrong guess (premultiplied alpha, reversed bits,
//! planes) gives a wrong picture and no error. Of the `tiff` crate only the decompressors are used; the
//! directory and the meaning of the samples are worked out here. A header may lie: opening allocates nothing
//! in proportion to the sizes that it claims, and reading allocates one strip or tile of each plane, or about
//! a megabyte of it if it is uncompressed.
//!
//! ```text
//! file -> directory.rs -> page.rs -> chunks.rs -> samples.rs -> output
//!         tags, IFDs      how it is  strips and   unpacked, scaled,
//!                         stored     tiles        made gray or RGB
//! ```

mod chunks;
mod colour;
mod compression;
mod directory;
mod fax;
#[cfg(test)]
mod fixtures;
mod page;
mod predictor;
mod samples;

use crate::source::images::trailing::several_pictures;
use chunks::Chunks;
pub(in crate::source::images) use colour::divided;
use directory::{Entry, Input};
use page::Page;
use samples::Pixels;
use std::io;
use std::path::Path;

/// Why a file is not read.
#[derive(Debug, thiserror::Error)]
pub(in crate::source::images) enum Problem {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file contradicts itself or ends early.
    #[error("cannot be decoded, and may be damaged: {0}")]
    Damaged(String),
    /// The file holds something that is not read; the text goes on from "it", as in "holds signed samples".
    #[error("{0}, which framepipe does not read; convert it first")]
    Unsupported(String),
}

type Result<T> = std::result::Result<T, Problem>;

fn damaged<T>(what: impl Into<String>) -> Result<T> {
    Err(Problem::Damaged(what.into()))
}

fn unsupported<T>(what: impl Into<String>) -> Result<T> {
    Err(Problem::Unsupported(what.into()))
}

impl Problem {
    /// What is wrong, without what follows from it.
    fn words(&self) -> String {
        match self {
            Problem::Damaged(what) => what.clone(),
            other => other.to_string(),
        }
    }
}

/// Where the directories of a file's pages are, none if it is no TIFF file; and a sentence if there are more
/// than can be read, or if it states so.
pub(in crate::source::images) fn pages(path: &Path) -> (Vec<u64>, Option<String>) {
    let found = || -> Result<_> {
        let (mut input, first) = Input::open(path)?;
        let (directory, next) = input.directory(first)?;
        let (pages, lost) = input.pages(first, next);
        let stated = input
            .stacked(&directory)
            .filter(|&stated| stated > pages.len() as u64);
        let lacking =
            || stated.map(|stated| format!("states {stated} pictures and holds {} pages", pages.len()));
        // Of a single page its reader says so.
        let lost = lost.or_else(lacking).filter(|_| pages.len() > 1);
        Ok((pages, lost))
    };
    found().unwrap_or_default()
}

/// True if the first picture is a reduced copy of another, as in the raw files of cameras.
pub(in crate::source::images) fn begins_with_preview(path: &Path) -> bool {
    Input::open(path).is_ok_and(|(mut input, first)| input.is_reduced(first))
}

/// What the header says of the picture as it is given out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::source::images) struct Facts {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// One colour sample a pixel, not three.
    pub gray: bool,
    /// The last sample is alpha; integer colours are not premultiplied.
    pub alpha: bool,
    /// 16 bits a sample, little-endian; otherwise 8.
    pub deep: bool,
    /// Bits of floating-point samples, 16 or 32, little-endian; `None` for integers.
    pub float: Option<usize>,
    /// Floating-point colours are premultiplied.
    pub associated: bool,
    /// Pages in the file, without thumbnails and masks; counted up to 65535.
    pub pages: u32,
    /// The Exif orientation, where the file has one.
    pub orientation: Option<u8>,
    /// The ICC profile of the samples given out.
    pub icc: Option<Vec<u8>>,
    /// The most bytes of the picture that a byte of the file can stand for, if there is a bound.
    pub most_packed: Option<u64>,
    /// How samples are converted on the way out.
    pub converted: Option<String>,
    /// What of the samples is cut or left out.
    pub lost: Vec<String>,
}

impl Facts {
    fn pixel_bytes(&self) -> usize {
        let channels = (if self.gray { 1 } else { 3 }) + usize::from(self.alpha);
        channels
            * match (self.float, self.deep) {
                (Some(bits), _) => bits / 8,
                (None, true) => 2,
                (None, false) => 1,
            }
    }

    /// The bytes that [`Tiff::read`] fills; `None` if no memory can hold them.
    fn output_bytes(&self) -> Option<usize> {
        usize::try_from(self.width)
            .ok()?
            .checked_mul(usize::try_from(self.height).ok()?)?
            .checked_mul(self.pixel_bytes())
    }
}

/// An open file with its header read.
pub(in crate::source::images) struct Tiff {
    input: Input,
    facts: Facts,
    page: Page,
}

impl Tiff {
    /// Reads the header of the first page.
    pub(in crate::source::images) fn open(path: &Path) -> Result<Tiff> {
        let (mut input, first) = Input::open(path)?;
        let (directory, next) = input.directory(first)?;
        let (pages, lost) = input.pages(first, next);
        let pages = pages.len() as u32;
        let stacked = input.stacked(&directory).filter(|_| pages == 1);
        let mut tiff = Tiff::of(input, (&directory, next), pages)?;
        tiff.facts.lost.extend(lost);
        let several = stacked.map(|count| several_pictures(count, "pictures", "first"));
        tiff.facts.lost.extend(several);
        Ok(tiff)
    }

    /// Reads the header of the page whose directory is at `place`, one of [`pages`].
    pub(in crate::source::images) fn open_page(path: &Path, place: u64) -> Result<Tiff> {
        let (mut input, _) = Input::open(path)?;
        let (directory, next) = input.directory(place)?;
        Tiff::of(input, (&directory, next), 1)
    }

    fn of(mut input: Input, (directory, next): (&[Entry], u64), pages: u32) -> Result<Tiff> {
        let page = Page::read(&mut input, directory)?;
        let mut lost = page.losses();
        if input.has_mask(next) {
            lost.push(
                "a transparency mask is in the file as a page of its own, which is left out".to_owned(),
            );
        }
        // A profile that cannot be read does not make the picture unreadable.
        let icc = page.profile(&mut input, directory).unwrap_or_else(|problem| {
            lost.push(format!("its colour (ICC) profile is left out: {problem}"));
            None
        });
        let facts = Facts {
            width: page.width,
            height: page.height,
            gray: page.model.is_gray(),
            alpha: page.alpha,
            deep: page.deep(),
            float: page.given_floats(),
            associated: page.premultiplied && page.given_floats().is_some(),
            pages,
            orientation: page.orientation,
            icc,
            lost,
            most_packed: page.packing.most_packed(),
            converted: page.conversion(),
        };
        Ok(Tiff { input, facts, page })
    }

    /// What the header says.
    pub(in crate::source::images) fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Decodes the picture into `out`, which must have exactly the bytes of the picture. Gives the number of
    /// colour samples that were greater than the alpha that they were divided by.
    pub(in crate::source::images) fn read(self, out: &mut [u8]) -> Result<u64> {
        if self.facts.output_bytes() != Some(out.len()) {
            let cause = io::Error::new(
                io::ErrorKind::InvalidInput,
                "the output has not the picture's size",
            );
            return Err(cause.into());
        }
        let page = &self.page;
        let mut chunks = Chunks::new(self.input, page, out.len())?;
        let mut pixels = Pixels::new(page, self.facts.pixel_bytes());
        let pixel_bytes = self.facts.pixel_bytes();
        let (width, height) = (page.width as usize, page.height as usize);
        let (chunk_width, chunk_height) = (page.chunk_width as usize, page.chunk_height as usize);
        let out_stride = width * pixel_bytes;
        let (across, down) = page.grid();
        for chunk_y in 0..down {
            let y = chunk_y as usize * chunk_height;
            let rows = chunk_height.min(height.saturating_sub(y));
            for chunk_x in 0..across {
                let x = chunk_x as usize * chunk_width;
                let columns = chunk_width.min(width.saturating_sub(x));
                let place = u64::from(chunk_y) * u64::from(across) + u64::from(chunk_x);
                let mut done = 0;
                while done < rows {
                    let band = chunks.read_band(place, done, rows - done)?;
                    for row in 0..band.rows {
                        let start = (y + done + row) * out_stride + x * pixel_bytes;
                        let Some(target) = out.get_mut(start..start + columns * pixel_bytes) else {
                            return damaged("the strips or tiles go beyond the picture");
                        };
                        pixels.row(&band, row, target);
                    }
                    done += band.rows;
                }
            }
        }
        Ok(pixels.cut())
    }
}

#[cfg(test)]
mod tests {
    use super::directory::{BITS, COMPRESSION, PHOTOMETRIC, ROWS_PER_STRIP, TILE_HEIGHT, TILE_WIDTH};
    use super::fixtures::{Temporary, file, read};
    use super::*;
    use std::io::Cursor;
    use tiff::encoder::{TiffEncoder, colortype};

    #[test]
    fn the_encoder_of_the_crate_is_understood() {
        let picture: Vec<u16> = (0..5 * 3 * 3).map(|i| i * 1_457).collect();
        let mut bytes = Vec::new();
        let mut encoder = TiffEncoder::new(Cursor::new(&mut bytes)).unwrap();
        encoder.write_image::<colortype::RGB16>(5, 3, &picture).unwrap();
        encoder.write_image::<colortype::Gray8>(1, 1, &[7]).unwrap();
        let (facts, out) = read(&bytes).unwrap();
        assert_eq!((facts.width, facts.height, facts.pages), (5, 3, 2));
        assert!(
            facts.deep && !facts.gray && !facts.alpha && facts.converted.is_none() && facts.lost.is_empty()
        );
        assert_eq!(
            out,
            picture.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<_>>()
        );
    }

    #[test]
    fn pictures_that_one_directory_stands_for_are_counted() {
        use super::directory::{DEPTH, DESCRIPTION};
        let text: Vec<u32> = b"ImageJ=1.53\nimages=3 \nloop=false\0"
            .iter()
            .map(|&byte| byte.into())
            .collect();
        let other: Vec<u32> = text[1..].to_vec();
        let said = |entries: &[(u16, &[u32])]| {
            let entries = [&[(PHOTOMETRIC, &[1][..])], entries].concat();
            // Numbers of 32 bits become bytes.
            let mut bytes = file(1, 1, &entries, &[&[9]]);
            let place = bytes.windows(4).position(|entry| *entry == [14, 1, 4, 0]);
            if let Some(place) = place {
                bytes[place + 2] = 2;
                let (begin, count) = (read_word(&bytes, place + 8), read_word(&bytes, place + 4));
                for at in 0..count {
                    bytes[begin + at] = bytes[begin + 4 * at];
                }
            }
            read(&bytes).unwrap().0.lost.join("")
        };
        assert_eq!(said(&[]), "");
        assert!(said(&[(DEPTH, &[5])]).starts_with("the file holds 5 pictures"));
        assert_eq!(said(&[(DEPTH, &[1])]), "");
        assert!(said(&[(DESCRIPTION, &text)]).starts_with("the file holds 3 pictures"));
        assert_eq!(said(&[(DESCRIPTION, &other)]), "");
    }

    fn read_word(bytes: &[u8], at: usize) -> usize {
        u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize
    }

    #[test]
    fn headers_that_lie_allocate_nothing() {
        // A tile of 2^62 bytes, packed and not.
        for packing in [1, 5, 8, 32_773] {
            let entries: &[(u16, &[u32])] = &[
                (BITS, &[8]),
                (PHOTOMETRIC, &[1]),
                (COMPRESSION, &[packing]),
                (TILE_WIDTH, &[u32::MAX]),
                (TILE_HEIGHT, &[u32::MAX]),
            ];
            let problem = read(&file(2, 2, entries, &[&[0; 8]])).unwrap_err();
            assert!(matches!(problem, Problem::Damaged(_)), "{problem}");
        }
        // A picture of which there is one strip.
        let lie = file(
            u32::MAX,
            u32::MAX,
            &[(PHOTOMETRIC, &[1]), (ROWS_PER_STRIP, &[1])],
            &[&[0; 8]],
        );
        assert!(matches!(
            Tiff::open(&Temporary::new(&lie).0),
            Err(Problem::Damaged(_))
        ));
    }
}
