//! The bytes of the file: its byte order, its directories (IFDs) and the values of their entries.
//!
//! A directory lists what is known of a page, one entry for each tag. A value that is too large for its entry
//! is elsewhere, and the entry has its offset. BigTIFF has the same layout with the sizes in brackets.
//!
//! ```text
//! header     II or MM | 42 [43, 8, 0] | offset of the first IFD: 4 [8] bytes
//! IFD        number of entries: 2 [8] | entry | entry | ... | offset of the next IFD, or 0: 4 [8]
//! entry      tag: 2 | type: 2 | count: 4 [8] | the value, or its offset: 4 [8]
//! ```

use super::{Result, damaged};
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// Pages are counted up to here.
const MAX_PAGES: u32 = 65_535;

/// Bits of [`SUBFILE`]: a thumbnail, and a transparency mask.
const REDUCED: u64 = 1;
const MASK: u64 = 4;

// The tags that are read.
pub(super) const SUBFILE: u16 = 254;
pub(super) const WIDTH: u16 = 256;
pub(super) const HEIGHT: u16 = 257;
pub(super) const BITS: u16 = 258;
pub(super) const COMPRESSION: u16 = 259;
pub(super) const PHOTOMETRIC: u16 = 262;
pub(super) const FILL_ORDER: u16 = 266;
pub(super) const DESCRIPTION: u16 = 270;
pub(super) const STRIP_OFFSETS: u16 = 273;
pub(super) const ORIENTATION: u16 = 274;
pub(super) const SAMPLES: u16 = 277;
pub(super) const ROWS_PER_STRIP: u16 = 278;
pub(super) const STRIP_COUNTS: u16 = 279;
pub(super) const PLANAR: u16 = 284;
pub(super) const T4_OPTIONS: u16 = 292;
pub(super) const PREDICTOR: u16 = 317;
pub(super) const COLOUR_MAP: u16 = 320;
pub(super) const TILE_WIDTH: u16 = 322;
pub(super) const TILE_HEIGHT: u16 = 323;
pub(super) const TILE_OFFSETS: u16 = 324;
pub(super) const TILE_COUNTS: u16 = 325;
pub(super) const INK_SET: u16 = 332;
pub(super) const EXTRA_SAMPLES: u16 = 338;
pub(super) const SAMPLE_FORMAT: u16 = 339;
pub(super) const JPEG_TABLES: u16 = 347;
pub(super) const YCBCR_LUMA: u16 = 529;
pub(super) const YCBCR_SUBSAMPLING: u16 = 530;
pub(super) const YCBCR_REFERENCE: u16 = 532;
pub(super) const DEPTH: u16 = 32_997;
pub(super) const ICC: u16 = 34_675;

/// An entry of a directory.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    tag: u16,
    /// The type of the values, as 3 for 16 bits and 4 for 32.
    kind: u16,
    pub(super) count: u64,
    /// The value, or its offset.
    value: [u8; 8],
}

impl Entry {
    /// The size of one value of this type; 0 for an unknown type.
    fn item_bytes(&self) -> u64 {
        match self.kind {
            1 | 2 | 6 | 7 => 1,
            3 | 8 => 2,
            4 | 9 | 11 | 13 => 4,
            5 | 10 | 12 | 16..=18 => 8,
            _ => 0,
        }
    }

    /// Bytes of all values; `None` if no file can have so many.
    pub(super) fn bytes(&self) -> Option<u64> {
        self.item_bytes().checked_mul(self.count)
    }
}

/// The file, with the byte order and the size of offsets from its header.
pub(super) struct Input {
    file: BufReader<File>,
    pub(super) len: u64,
    pub(super) big_endian: bool,
    /// BigTIFF: counts and offsets have 64 bits.
    big: bool,
}

impl Input {
    /// Reads the header; returns the offset of the first directory too.
    pub(super) fn open(path: &Path) -> Result<(Input, u64)> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        let mut input = Input {
            file: BufReader::new(file),
            len,
            big_endian: false,
            big: false,
        };
        input.big_endian = match &input.array::<2>()? {
            b"II" => false,
            b"MM" => true,
            _ => return damaged("it does not begin as a TIFF file"),
        };
        let first = match input.u16()? {
            42 => u64::from(input.u32()?),
            43 => {
                input.big = true;
                if (input.u16()?, input.u16()?) != (8, 0) {
                    return damaged("its offsets have an unknown size");
                }
                input.u64()?
            }
            _ => return damaged("it does not begin as a TIFF file"),
        };
        Ok((input, first))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads exactly `bytes`.
    pub(super) fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        match self.file.read_exact(bytes) {
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => damaged("the file ends early"),
            other => Ok(other?),
        }
    }

    /// The unsigned number that `bytes` hold.
    fn number(&self, bytes: &[u8]) -> u64 {
        let next = |sum: u64, &byte: &u8| sum << 8 | u64::from(byte);
        if self.big_endian {
            bytes.iter().fold(0, next)
        } else {
            bytes.iter().rev().fold(0, next)
        }
    }

    fn u16(&mut self) -> Result<u16> {
        let bytes = self.array::<2>()?;
        Ok(self.number(&bytes) as u16)
    }

    fn u32(&mut self) -> Result<u32> {
        let bytes = self.array::<4>()?;
        Ok(self.number(&bytes) as u32)
    }

    fn u64(&mut self) -> Result<u64> {
        let bytes = self.array::<8>()?;
        Ok(self.number(&bytes))
    }

    /// A number that has 64 bits in BigTIFF, else 32.
    fn wide(&mut self) -> Result<u64> {
        if self.big {
            self.u64()
        } else {
            Ok(self.u32()?.into())
        }
    }

    /// Goes to an offset, which must be inside the file.
    pub(super) fn seek(&mut self, offset: u64) -> Result<()> {
        if offset >= self.len {
            return damaged("the file ends early");
        }
        self.file.seek(SeekFrom::Start(offset))?;
        Ok(())
    }

    /// Goes to the directory at `offset` and reads how many entries it has.
    fn entries(&mut self, offset: u64) -> Result<u64> {
        self.seek(offset)?;
        let entries = if self.big { self.u64()? } else { self.u16()?.into() };
        if !(1..=65_535).contains(&entries) {
            return damaged("its directory has no sensible size");
        }
        Ok(entries)
    }

    fn entry(&mut self) -> Result<Entry> {
        let (tag, kind, count) = (self.u16()?, self.u16()?, self.wide()?);
        let mut value = [0; 8];
        if self.big {
            value = self.array()?;
        } else {
            let short = self.array::<4>()?;
            value.iter_mut().zip(short).for_each(|(to, from)| *to = from);
        }
        Ok(Entry {
            tag,
            kind,
            count,
            value,
        })
    }

    /// The directory at `offset`, and the offset of the next one, 0 if there is none.
    pub(super) fn directory(&mut self, offset: u64) -> Result<(Vec<Entry>, u64)> {
        let mut directory = Vec::new();
        for _ in 0..self.entries(offset)? {
            directory.push(self.entry()?);
        }
        // A file that ends right after its first directory still has a whole picture.
        let next = self.wide().unwrap_or(0);
        Ok((directory, next))
    }

    /// The directories of the pages. Thumbnails (reduced copies of a page) and masks do not count, but for
    /// the first. If one cannot be read, a sentence about that.
    pub(super) fn pages(&mut self, first: u64, mut next: u64) -> (Vec<u64>, Option<String>) {
        let mut pages = vec![first];
        let mut seen = HashSet::from([first]);
        while next != 0 {
            let read = pages.len();
            let lost = |why: &str| Some(format!("what follows its page {read} cannot be read: {why}"));
            if seen.len() >= MAX_PAGES as usize {
                return (pages, lost("it has too many pages"));
            }
            if !seen.insert(next) {
                return (
                    pages,
                    lost("its next page is stated to be an earlier one, in a circle"),
                );
            }
            let (kind, following) = match self.glance(next) {
                Ok(found) => found,
                Err(problem) => return (pages, lost(&problem.words())),
            };
            if kind & (REDUCED | MASK) == 0 {
                pages.push(next);
            }
            next = following;
        }
        (pages, None)
    }

    /// Whether a mask of a page, and not of its thumbnail, lies before the next page; `next` is the directory
    /// behind the page's.
    pub(super) fn has_mask(&mut self, mut next: u64) -> bool {
        let mut seen = HashSet::new();
        while next != 0 && seen.len() < MAX_PAGES as usize && seen.insert(next) {
            match self.glance(next) {
                Ok((kind, following)) if kind & REDUCED != 0 => next = following,
                Ok((kind, _)) => return kind & MASK != 0,
                Err(_) => return false,
            }
        }
        false
    }

    /// True if the directory at `offset` is of a reduced copy of a page.
    pub(super) fn is_reduced(&mut self, offset: u64) -> bool {
        self.glance(offset).is_ok_and(|(kind, _)| kind & REDUCED != 0)
    }

    /// What the directory at `offset` is of, in bits, and the offset of the next one.
    fn glance(&mut self, offset: u64) -> Result<(u64, u64)> {
        let entries = self.entries(offset)?;
        // Entries are sorted, and this tag is the lowest of all that are used.
        let entry = self.entry()?;
        let kind = match entry.tag {
            SUBFILE => self.integers(&entry, 1)?.first().copied().unwrap_or(0),
            _ => 0,
        };
        let skipped = if self.big {
            8 + entries * 20
        } else {
            2 + entries * 12
        };
        self.seek(offset.saturating_add(skipped))?;
        Ok((kind, self.wide()?))
    }

    /// Bytes of the file.
    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// How many pictures one directory stands for, where it says that they are several: slices of a volume,
    /// or a stack of ImageJ's, in whose description stands a line such as "images=3".
    pub(super) fn stacked(&mut self, directory: &[Entry]) -> Option<u64> {
        const LONGEST: u64 = 1 << 16;
        let depth = find(directory, DEPTH).and_then(|entry| self.integers(entry, 1).ok());
        let slices = depth.and_then(|depth| depth.first().copied());
        let mut images = || {
            let text = self.data(find(directory, DESCRIPTION)?, LONGEST).ok()?;
            let text = String::from_utf8_lossy(&text).into_owned();
            let count = text.lines().find_map(|line| line.trim().strip_prefix("images="));
            count.filter(|_| text.starts_with("ImageJ="))?.trim().parse().ok()
        };
        slices
            .filter(|&count| count > 1)
            .or_else(&mut images)
            .filter(|&count| count > 1)
    }

    /// The bytes of an entry's value, at most `most`.
    pub(super) fn data(&mut self, entry: &Entry, most: u64) -> Result<Vec<u8>> {
        let name = entry.tag;
        let Some(size) = entry.bytes() else {
            return damaged(format!("tag {name} is too long"));
        };
        if size > most {
            return damaged(format!("tag {name} is too long"));
        }
        if size <= if self.big { 8 } else { 4 } {
            return Ok(entry.value.iter().copied().take(size as usize).collect());
        }
        let short = entry.value.get(..4).unwrap_or_default();
        let offset = self.number(if self.big { &entry.value } else { short });
        if offset.checked_add(size).is_none_or(|end| end > self.len) {
            return damaged(format!("tag {name} goes beyond the end of the file"));
        }
        self.seek(offset)?;
        let mut bytes = Vec::new();
        (&mut self.file).take(size).read_to_end(&mut bytes)?;
        if bytes.len() as u64 != size {
            return damaged("the file ends early");
        }
        Ok(bytes)
    }

    /// The unsigned numbers of an entry, at most `most`.
    pub(super) fn integers(&mut self, entry: &Entry, most: u64) -> Result<Vec<u64>> {
        if !matches!(entry.kind, 1 | 3 | 4 | 13 | 16 | 18) {
            return damaged(format!("tag {} is no unsigned number", entry.tag));
        }
        let size = entry.item_bytes();
        let bytes = self.data(entry, most.saturating_mul(size))?;
        Ok(bytes
            .chunks_exact(size as usize)
            .map(|item| self.number(item))
            .collect())
    }

    /// The unsigned numbers of an entry, of which there must be at least one.
    pub(super) fn numbers(&mut self, entry: &Entry, most: u64) -> Result<Vec<u64>> {
        match self.integers(entry, most)? {
            numbers if numbers.is_empty() => damaged(format!("tag {} is empty", entry.tag)),
            numbers => Ok(numbers),
        }
    }

    /// The `N` fractions (or integers) of an entry; `None` if it is missing or has another number of them.
    pub(super) fn fractions<const N: usize>(&mut self, entry: Option<&Entry>) -> Option<[f32; N]> {
        let entry = entry.filter(|entry| entry.count == N as u64)?;
        let mut fractions = [0.0; N];
        if entry.kind == 5 {
            let bytes = self.data(entry, 8 * N as u64).ok()?;
            for (fraction, bytes) in fractions.iter_mut().zip(bytes.chunks_exact(8)) {
                let (above, below) = bytes.split_at(4);
                *fraction = self.number(above) as f32 / self.number(below) as f32;
            }
        } else {
            let numbers = self.integers(entry, N as u64).ok()?;
            for (fraction, number) in fractions.iter_mut().zip(numbers) {
                *fraction = number as f32;
            }
        }
        fractions.iter().all(|f| f.is_finite()).then_some(fractions)
    }
}

/// The entry of a tag.
pub(super) fn find(directory: &[Entry], tag: u16) -> Option<&Entry> {
    directory.iter().find(|entry| entry.tag == tag)
}

#[cfg(test)]
mod tests {
    use super::super::Problem;
    use super::super::directory::{BITS, PHOTOMETRIC};
    use super::super::fixtures::{file, read};

    #[test]
    fn a_cut_file_is_damaged_wherever_it_is_cut() {
        let whole = file(4, 4, &[(BITS, &[8]), (PHOTOMETRIC, &[1])], &[&[9; 16]]);
        assert_eq!(read(&whole).unwrap().1, [9; 16]);
        for length in 0..whole.len() - 4 {
            let problem = read(&whole[..length]).unwrap_err();
            assert!(matches!(problem, Problem::Damaged(_)), "{length}: {problem}");
        }
    }

    /// The page, and behind it directories of these kinds.
    fn followed(kinds: &[u32]) -> Vec<u8> {
        let mut bytes = file(1, 1, &[(BITS, &[8]), (PHOTOMETRIC, &[1])], &[&[9]]);
        for &kind in kinds {
            let end = bytes.len() - 4;
            let place = (bytes.len() as u32).to_le_bytes();
            bytes[end..].copy_from_slice(&place);
            bytes.extend([1, 0, 254, 0, 4, 0, 1, 0, 0, 0]);
            bytes.extend(kind.to_le_bytes());
            bytes.extend([0; 4]);
        }
        bytes
    }

    #[test]
    fn a_mask_of_the_page_is_named() {
        for (kinds, pages, named) in [
            (&[4][..], 1, true),
            (&[1, 5, 4], 1, true),
            (&[1, 5], 1, false),
            (&[0, 4], 2, false),
        ] {
            let facts = read(&followed(kinds)).unwrap().0;
            assert_eq!(facts.pages, pages, "{kinds:?}");
            let masks = facts.lost.iter().filter(|words| words.contains("mask")).count();
            assert_eq!(masks == 1, named, "{kinds:?}");
        }
    }

    #[test]
    fn pages_that_cannot_be_read_are_named() {
        let whole = followed(&[0, 0, 0]);
        let sentence = |bytes: &[u8]| {
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), bytes).unwrap();
            let (pages, lost) = super::super::pages(file.path());
            let alone = read(bytes).unwrap().0.lost.join("");
            (pages.len(), lost.unwrap_or(alone))
        };
        assert_eq!(sentence(&whole), (4, String::new()));
        // A directory has 18 bytes.
        for (lacking, pages) in [(1, 3), (18, 3), (19, 2), (37, 1), (53, 1)] {
            let (found, words) = sentence(&whole[..whole.len() - lacking]);
            assert_eq!(found, pages, "{lacking}");
            let read = format!("what follows its page {pages} cannot be read: the file ends early");
            assert_eq!(words, read, "{lacking}");
        }
        let mut zeros = whole.clone();
        let end = zeros.len();
        zeros[end - 18..].fill(0);
        assert!(sentence(&zeros).1.contains("its directory has no sensible size"));
    }

    #[test]
    fn pages_in_a_circle_end() {
        let mut bytes = file(1, 1, &[(BITS, &[8]), (PHOTOMETRIC, &[1])], &[&[9]]);
        let end = bytes.len() - 4;
        let first = [bytes[4], bytes[5], bytes[6], bytes[7]];
        bytes[end..].copy_from_slice(&first);
        assert_eq!(read(&bytes).unwrap().0.pages, 1);
    }
}
