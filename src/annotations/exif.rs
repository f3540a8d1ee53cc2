//! Exif blocks, which are TIFF files without a picture: reading directories, changing the first one, copying
//! between blocks and TIFF files.
//!
//! ```text
//!  "II*\0" or "MM\0*" | where IFD0 begins | anything ...
//!  IFD0: count | tag type count value-or-place | ... | where IFD1 begins (its preview), or 0
//!                  +-- 34665 -> the Exif directory -- 40965 -> interoperability
//!                  +-- 34853 -> the GPS directory
//! ```
//!
//! Places count from the block's begin, so nothing is ever moved: [`Editor`] puts what is new at the end, and
//! a directory that grows is written anew there. What it does not know stays whole.
//!
//! A TIFF file has the pixels in between, so [`Editor::copy`] stores values at other places. That is no good
//! for a maker's note whose own offsets count from the begin of the block: it is left out, and to be named.

use std::collections::BTreeMap;

use super::bytes::{Order, array, overwrite, part, text};
use super::{Density, DensityUnit};
use crate::messages::metadata_limit::METADATA_LIMIT;

pub(super) mod tag {
    pub(in super::super) const TITLE: u16 = 269;
    pub(in super::super) const DESCRIPTION: u16 = 270;
    pub(in super::super) const ORIENTATION: u16 = 274;
    pub(in super::super) const X_RESOLUTION: u16 = 282;
    pub(in super::super) const Y_RESOLUTION: u16 = 283;
    pub(in super::super) const RESOLUTION_UNIT: u16 = 296;
    pub(in super::super) const SOFTWARE: u16 = 305;
    pub(in super::super) const DATE_TIME: u16 = 306;
    pub(in super::super) const ARTIST: u16 = 315;
    pub(in super::super) const YCBCR_POSITIONING: u16 = 531;
    pub(in super::super) const COPYRIGHT: u16 = 33432;
    pub(in super::super) const EXIF: u16 = 34665;
    pub(in super::super) const GPS: u16 = 34853;
    pub(in super::super) const MAKER_NOTE: u16 = 37500;
    pub(in super::super) const INTEROPERABILITY: u16 = 40965;
}

const ASCII: u16 = 2;
const SHORT: u16 = 3;
const LONG: u16 = 4;
const RATIONAL: u16 = 5;

/// The texts of IFD0 and their names in PNG.
pub(super) const TEXTS: [(u16, &str); 6] = [
    (tag::TITLE, "Title"),
    (tag::DESCRIPTION, "Description"),
    (tag::SOFTWARE, "Software"),
    (tag::DATE_TIME, "DateTime"),
    (tag::ARTIST, "Author"),
    (tag::COPYRIGHT, "Copyright"),
];

/// Bytes of one value of a type.
pub(super) fn value_size(kind: u16) -> Option<usize> {
    match kind {
        1 | 2 | 6 | 7 => Some(1),
        3 | 8 => Some(2),
        4 | 9 | 11 | 13 => Some(4),
        5 | 10 | 12 | 16..=18 => Some(8),
        _ => None,
    }
}

impl Order {
    /// The order that an Exif block or a TIFF file begins with.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.get(..2)? {
            b"II" => Some(Self::Little),
            b"MM" => Some(Self::Big),
            _ => None,
        }
    }
}

/// An entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    pub(super) tag: u16,
    pub(super) kind: u16,
    pub(super) count: u64,
    /// The values, in the block's order of bytes.
    pub(super) data: &'a [u8],
}

impl Entry<'_> {
    /// The first value, a whole number.
    pub(super) fn number(&self, order: Order) -> Option<u64> {
        match self.kind {
            1 => self.data.first().map(|&b| b.into()),
            SHORT => order.read16(self.data, 0).map(Into::into),
            LONG | 13 => order.read32(self.data, 0).map(Into::into),
            16 | 18 => order.read64(self.data, 0),
            _ => None,
        }
    }

    /// The first value as a number of any kind.
    fn real(&self, order: Order) -> Option<f64> {
        match self.kind {
            RATIONAL => {
                let (n, d) = (order.read32(self.data, 0)?, order.read32(self.data, 4)?);
                (d != 0).then(|| f64::from(n) / f64::from(d))
            }
            11 => order.read32(self.data, 0).map(|b| f32::from_bits(b).into()),
            12 => order.read64(self.data, 0).map(f64::from_bits),
            _ => self.number(order).map(|n| n as f64),
        }
    }
}

/// A directory: its entries that can be made out.
#[derive(Debug, Default)]
pub(super) struct Directory<'a> {
    pub(super) entries: Vec<Entry<'a>>,
}

impl<'a> Directory<'a> {
    pub(super) fn get(&self, tag: u16) -> Option<&Entry<'a>> {
        self.entries.iter().find(|e| e.tag == tag)
    }

    /// The density as tags 282, 283 and 296 state it.
    pub(super) fn density(&self, order: Order) -> Option<Density> {
        let x = self.get(tag::X_RESOLUTION)?.real(order)?;
        let y = match self.get(tag::Y_RESOLUTION) {
            Some(entry) => entry.real(order)?,
            None => x,
        };
        match self.get(tag::RESOLUTION_UNIT).and_then(|e| e.number(order)) {
            Some(1) => Density::new(x, y, DensityUnit::None),
            Some(3) => Density::new(x * 100.0, y * 100.0, DensityUnit::Metre),
            _ => Density::new(x, y, DensityUnit::Inch),
        }
    }
}

/// Reads directories of Exif blocks and TIFF files, BigTIFF among them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    pub(super) order: Order,
    is_big: bool,
    first: u64,
}

impl<'a> Reader<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Option<Self> {
        let order = Order::of(bytes)?;
        let is_big = match order.read16(bytes, 2)? {
            42 => false,
            43 => true,
            _ => return None,
        };
        let first = if is_big {
            order.read64(bytes, 8)?
        } else {
            order.read32(bytes, 4)?.into()
        };
        Some(Self {
            bytes,
            order,
            is_big,
            first,
        })
    }

    /// IFD0.
    pub(super) fn first(&self) -> Option<Directory<'a>> {
        self.directory(self.first)
    }

    /// The directory that an entry of another one leads to.
    pub(super) fn below(&self, directory: &Directory<'a>, tag: u16) -> Option<Directory<'a>> {
        self.directory(directory.get(tag)?.number(self.order)?)
    }

    pub(super) fn directory(&self, at: u64) -> Option<Directory<'a>> {
        let at = usize::try_from(at).ok().filter(|&at| at >= 8)?;
        let (bytes, order) = (self.bytes, self.order);
        let (count, head, step) = if self.is_big {
            (usize::try_from(order.read64(bytes, at)?).ok()?, 8, 20)
        } else {
            (usize::from(order.read16(bytes, at)?), 2, 12)
        };
        let records = at.checked_add(head)?;
        let entries = bytes
            .get(records..)?
            .chunks_exact(step)
            .take(count)
            .filter_map(|record| self.entry(record))
            .collect();
        Some(Directory { entries })
    }

    /// True if a directory of a classic block is cut off, or one of its values lies outside of the block.
    fn is_cut_at(&self, at: u64) -> bool {
        const RECORD: usize = 12;
        let (bytes, order) = (self.bytes, self.order);
        let Some(at) = usize::try_from(at).ok().filter(|&at| at >= 8) else {
            return false;
        };
        let records = order
            .read16(bytes, at)
            .and_then(|count| part(bytes, at.checked_add(2)?, usize::from(count).checked_mul(RECORD)?));
        let Some(records) = records else { return true };
        // Some makers have a few entries of types that there are not.
        let is_known = |record: &[u8]| order.read16(record, 2).and_then(value_size).is_some();
        records
            .chunks_exact(RECORD)
            .any(|record| is_known(record) && self.entry(record).is_none())
    }

    fn entry(&self, record: &'a [u8]) -> Option<Entry<'a>> {
        let order = self.order;
        let (tag, kind) = (order.read16(record, 0)?, order.read16(record, 2)?);
        let (count, field_at, field) = if self.is_big {
            (order.read64(record, 4)?, 12, 8)
        } else {
            (order.read32(record, 4)?.into(), 8, 4)
        };
        let len = usize::try_from(count).ok()?.checked_mul(value_size(kind)?)?;
        let data = if len <= field {
            part(record, field_at, len)?
        } else {
            let at = if self.is_big {
                order.read64(record, field_at)?
            } else {
                order.read32(record, field_at)?.into()
            };
            part(self.bytes, usize::try_from(at).ok()?, len)?
        };
        Some(Entry {
            tag,
            kind,
            count,
            data,
        })
    }
}

/// The block can be read as far as IFD0.
pub(super) fn is_sound(block: &[u8]) -> bool {
    Reader::open(block).is_some_and(|r| !r.is_big && r.first().is_some())
}

/// True if a directory of a block that [`is_sound`] is cut off, or leads outside of the block.
pub(super) fn is_cut(block: &[u8]) -> bool {
    let Some(reader) = Reader::open(block) else {
        return false;
    };
    let below = |at: u64, tag| reader.directory(at)?.get(tag)?.number(reader.order);
    let exif = below(reader.first, tag::EXIF);
    let places = [
        Some(reader.first),
        below(reader.first, tag::GPS),
        exif,
        exif.and_then(|at| below(at, tag::INTEROPERABILITY)),
    ];
    places.into_iter().flatten().any(|at| reader.is_cut_at(at))
}

/// What can be read of a block that [`is_cut`], as a block; `None` if that is nothing.
pub(super) fn rescued(block: &[u8]) -> Option<Vec<u8>> {
    let reader = Reader::open(block)?;
    let mut editor = Editor::empty(reader.order);
    editor.copy(&reader, |_| true)?;
    if editor.records.is_empty() {
        return None;
    }
    editor.finish()
}

/// The orientation that a block states, 1 to 8.
pub(super) fn orientation(block: &[u8]) -> Option<u8> {
    let reader = Reader::open(block)?;
    let number = reader.first()?.get(tag::ORIENTATION)?.number(reader.order)?;
    u8::try_from(number).ok().filter(|o| (1..=8).contains(o))
}

/// The resolution that a block states.
pub(super) fn density(block: &[u8]) -> Option<Density> {
    let reader = Reader::open(block)?;
    reader.first()?.density(reader.order)
}

/// The block says no more than an orientation and a resolution, which have other places too.
pub(super) fn is_bare(block: &[u8]) -> bool {
    const BARE: [u16; 5] = [
        tag::ORIENTATION,
        tag::X_RESOLUTION,
        tag::Y_RESOLUTION,
        tag::RESOLUTION_UNIT,
        tag::YCBCR_POSITIONING,
    ];
    let directory = Reader::open(block).and_then(|r| r.first());
    directory.is_none_or(|d| d.entries.iter().all(|e| BARE.contains(&e.tag)))
}

/// True if the maker's note of a block cannot be copied to another place.
pub(super) fn has_fixed_note(block: &[u8]) -> bool {
    let note = Reader::open(block).and_then(|reader| {
        let exif = reader.below(&reader.first()?, tag::EXIF)?;
        exif.get(tag::MAKER_NOTE).map(|note| note.data)
    });
    note.is_some_and(is_fixed)
}

/// True if a maker's note leads to places that count from the begin of its block, as far as that is known.
pub(super) fn is_fixed(note: &[u8]) -> bool {
    // Their places count from the begin of the note, or of a TIFF head in it.
    const FREE: [&[u8]; 10] = [
        b"Nikon\0\x02",
        b"FUJIFILM",
        b"GENERALE",
        b"OLYMPUS\0",
        b"OM SYSTEM",
        b"Apple iOS\0",
        b"PENTAX \0",
        b"RICOH\0II",
        b"RICOH\0MM",
        b"MOT\0",
    ];
    // Words of the maker may stand before the directory.
    const LONGEST_HEAD: usize = 32;
    // What is longer is none, but read at the wrong place.
    const LONGEST_VALUE: usize = 1 << 16;
    let leads = |order: Order, at: usize| {
        let count = usize::from(order.read16(note, at)?);
        let records = part(note, at.checked_add(2)?, count.checked_mul(12)?)?;
        let len = |record: &[u8]| {
            let size = value_size(order.read16(record, 2)?)?;
            usize::try_from(order.read32(record, 4)?).ok()?.checked_mul(size)
        };
        // Some makers have a few entries of types that there are not.
        let sound: Vec<usize> = records.chunks_exact(12).filter_map(len).collect();
        let leads = sound.iter().any(|len| (5..=LONGEST_VALUE).contains(len));
        Some(leads && sound.len() * 2 > count)
    };
    let is_free = FREE.iter().any(|start| note.starts_with(start));
    let mut places = (0..=LONGEST_HEAD).flat_map(|at| [(Order::Little, at), (Order::Big, at)]);
    !is_free && places.any(|(order, at)| leads(order, at) == Some(true))
}

/// Changes IFD0 of a block or a TIFF file.
#[derive(Debug)]
pub(super) struct Editor {
    bytes: Vec<u8>,
    pub(super) order: Order,
    /// Entries by tag, as they lie in the file.
    records: BTreeMap<u16, [u8; 12]>,
    /// Where the entries lie and how many they are; none in a new block.
    place: Option<(usize, usize)>,
    /// What stands behind the entries.
    next: [u8; 4],
}

impl Editor {
    /// A block that says nothing yet.
    pub(super) fn empty(order: Order) -> Self {
        let mut bytes = match order {
            Order::Little => b"II*\0".to_vec(),
            Order::Big => b"MM\0*".to_vec(),
        };
        bytes.extend_from_slice(&[0; 4]);
        Self {
            bytes,
            order,
            records: BTreeMap::new(),
            place: None,
            next: [0; 4],
        }
    }

    /// Gives the bytes back where they are no classic TIFF structure.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, Vec<u8>> {
        match Self::parse(&bytes) {
            Some((order, at, records, count, next)) => Ok(Self {
                bytes,
                order,
                records,
                place: Some((at, count)),
                next,
            }),
            None => Err(bytes),
        }
    }

    #[expect(
        clippy::type_complexity,
        reason = "the parts of an editor, named where it is made of them"
    )]
    fn parse(bytes: &[u8]) -> Option<(Order, usize, BTreeMap<u16, [u8; 12]>, usize, [u8; 4])> {
        let reader = Reader::open(bytes).filter(|r| !r.is_big)?;
        let order = reader.order;
        let at = usize::try_from(reader.first).ok().filter(|&at| at >= 8)?;
        let count = usize::from(order.read16(bytes, at)?);
        let at = at.checked_add(2)?;
        let there = bytes.get(at..)?.chunks_exact(12);
        // Directories that are cut off are read as far as they go.
        let count = count.min(there.len());
        let mut records = BTreeMap::new();
        for record in there.take(count) {
            // Of entries with one tag, readers take the first.
            records
                .entry(order.read16(record, 0)?)
                .or_insert(record.try_into().ok()?);
        }
        let next = array(bytes, at.checked_add(count.checked_mul(12)?)?).unwrap_or_default();
        Some((order, at, records, count, next))
    }

    pub(super) fn has(&self, tag: u16) -> bool {
        self.records.contains_key(&tag)
    }

    /// Puts bytes at the end, at an even place as the structure asks for.
    fn append(&mut self, data: &[u8]) -> Option<u32> {
        if !self.bytes.len().is_multiple_of(2) {
            self.bytes.push(0);
        }
        let at = u32::try_from(self.bytes.len()).ok()?;
        // All of it must be within reach.
        u32::try_from(self.bytes.len().checked_add(data.len())?).ok()?;
        self.bytes.extend_from_slice(data);
        Some(at)
    }

    fn record(&mut self, tag: u16, kind: u16, count: u32, data: &[u8]) -> Option<[u8; 12]> {
        let order = self.order;
        let mut field = [0; 4];
        match field.get_mut(..data.len()) {
            Some(inside) => inside.copy_from_slice(data),
            None => field = order.write32(self.append(data)?),
        }
        let mut record = [0; 12];
        overwrite(&mut record, 0, &order.write16(tag))?;
        overwrite(&mut record, 2, &order.write16(kind))?;
        overwrite(&mut record, 4, &order.write32(count))?;
        overwrite(&mut record, 8, &field)?;
        Some(record)
    }

    /// Sets an entry; `data` are in this block's order. None where the block would grow beyond 4 GiB.
    fn set(&mut self, tag: u16, kind: u16, count: usize, data: &[u8]) -> Option<()> {
        let record = self.record(tag, kind, u32::try_from(count).ok()?, data)?;
        self.records.insert(tag, record);
        Some(())
    }

    pub(super) fn set_short(&mut self, tag: u16, value: u16) -> Option<()> {
        self.set(tag, SHORT, 1, &self.order.write16(value))
    }

    /// Bytes, of a type whose values are bytes.
    pub(super) fn set_bytes(&mut self, tag: u16, kind: u16, value: &[u8]) -> Option<()> {
        self.set(tag, kind, value.len(), value)
    }

    fn set_text(&mut self, tag: u16, value: &str) -> Option<()> {
        let mut value = value.as_bytes().to_vec();
        value.push(0);
        self.set_bytes(tag, ASCII, &value)
    }

    fn set_rational(&mut self, tag: u16, value: f64) -> Option<()> {
        // Few decimals, as long as they do, so that 300 stays 300/1.
        let (n, d) = [1_u32, 10, 100, 1000, 10_000, 100_000, 1_000_000]
            .into_iter()
            .map(|d| ((value * f64::from(d)).round(), d))
            .filter(|&(n, _)| n >= 1.0 && n <= f64::from(u32::MAX))
            .min_by(|a, b| {
                let error = |&(n, d): &(f64, u32)| (n / f64::from(d) - value).abs();
                error(a).total_cmp(&error(b))
            })?;
        let data = [self.order.write32(n as u32), self.order.write32(d)].concat();
        self.set(tag, RATIONAL, 1, &data)
    }

    pub(super) fn set_density(&mut self, density: Density) -> Option<()> {
        let (scale, unit) = match density.unit {
            DensityUnit::None => (1.0, 1),
            DensityUnit::Inch => (1.0, 2),
            DensityUnit::Metre => (0.01, 3),
        };
        self.set_rational(tag::X_RESOLUTION, density.x * scale)?;
        self.set_rational(tag::Y_RESOLUTION, density.y * scale)?;
        self.set_short(tag::RESOLUTION_UNIT, unit)
    }

    /// Writes this orientation; without one, an orientation tag that is there becomes "upright".
    pub(super) fn set_orientation(&mut self, orientation: Option<u8>) -> Option<()> {
        match orientation {
            None if !self.has(tag::ORIENTATION) => Some(()),
            _ => self.set_short(tag::ORIENTATION, orientation.unwrap_or(1).into()),
        }
    }

    /// Takes the texts that have a tag of their own here, and gives back the others. Where `comments`, a
    /// comment serves for a description that is not there.
    pub(super) fn set_texts<'t>(
        &mut self,
        texts: &'t [(String, String)],
        comments: bool,
    ) -> Vec<&'t (String, String)> {
        let mut rest: Vec<_> = texts
            .iter()
            .filter(|(name, text)| !self.holds_text(name, text))
            .collect();
        if comments
            && !self.has(tag::DESCRIPTION)
            && let Some(place) = rest
                .iter()
                .position(|(name, _)| name.eq_ignore_ascii_case("comment"))
            && let Some((_, text)) = rest.get(place)
            && !text.contains('\0')
            && self.set_text(tag::DESCRIPTION, text).is_some()
        {
            rest.remove(place);
        }
        rest
    }

    fn holds_text(&mut self, name: &str, value: &str) -> bool {
        let name = match name {
            "Artist" => "Author",
            "ImageDescription" => "Description",
            "DocumentName" => "Title",
            name => name,
        };
        let found = TEXTS.iter().find(|(_, known)| known.eq_ignore_ascii_case(name));
        let Some(&(tag, _)) = found else {
            return false;
        };
        // A moment is "2024:12:31 23:59:59" and nothing else.
        if value.contains('\0') || (tag == tag::DATE_TIME && value.len() != 19) {
            return false;
        }
        if self.has(tag) {
            let there = Reader::open(&self.bytes)
                .zip(self.records.get(&tag))
                .and_then(|(reader, record)| Some(text(reader.entry(record)?.data)));
            return there.is_some_and(|there| there == value);
        }
        self.set_text(tag, value).is_some()
    }

    /// Copies the entries that `wanted` names from IFD0 of another block, with the directories below, but for
    /// a maker's note that [`is_fixed`].
    pub(super) fn copy(&mut self, from: &Reader<'_>, wanted: impl Fn(u16) -> bool) -> Option<()> {
        let directory = from.first()?;
        // Entries of a hostile file may all have one and the same long value.
        let mut budget = from.bytes.len().min(METADATA_LIMIT);
        for entry in directory.entries.iter().filter(|e| wanted(e.tag)) {
            if matches!(entry.tag, tag::EXIF | tag::GPS) {
                let Some(below) = from.below(&directory, entry.tag) else {
                    continue;
                };
                let mut records = self.copies(from, &below, &mut budget);
                if let Some(deeper) = from.below(&below, tag::INTEROPERABILITY) {
                    let deeper = self.copies(from, &deeper, &mut budget);
                    self.link(&mut records, tag::INTEROPERABILITY, &deeper)?;
                }
                let mut records_here = std::mem::take(&mut self.records);
                let linked = self.link(&mut records_here, entry.tag, &records);
                self.records = records_here;
                linked?;
            } else if let Some(record) = self.copied(from, entry, &mut budget) {
                self.records.entry(entry.tag).or_insert(record);
            }
        }
        Some(())
    }

    /// The values are stored here; records of them, without those of directories below.
    fn copies(
        &mut self,
        from: &Reader<'_>,
        directory: &Directory<'_>,
        budget: &mut usize,
    ) -> BTreeMap<u16, [u8; 12]> {
        let is_fixed = |e: &Entry<'_>| e.tag == tag::MAKER_NOTE && is_fixed(e.data);
        let plain = directory
            .entries
            .iter()
            .filter(|e| e.tag != tag::INTEROPERABILITY && !is_fixed(e));
        plain
            .filter_map(|entry| Some((entry.tag, self.copied(from, entry, budget)?)))
            .collect()
    }

    fn copied(&mut self, from: &Reader<'_>, entry: &Entry<'_>, budget: &mut usize) -> Option<[u8; 12]> {
        // BigTIFF has three types of its own.
        if entry.kind >= 16 {
            return None;
        }
        *budget = budget.checked_sub(entry.data.len())?;
        let mut data = entry.data.to_vec();
        if from.order != self.order {
            // A fraction is two numbers.
            let size = match entry.kind {
                RATIONAL | 10 => 4,
                kind => value_size(kind)?,
            };
            for value in data.chunks_exact_mut(size) {
                value.reverse();
            }
        }
        self.record(entry.tag, entry.kind, u32::try_from(entry.count).ok()?, &data)
    }

    /// Stores a directory and enters its place among `records`.
    fn link(
        &mut self,
        records: &mut BTreeMap<u16, [u8; 12]>,
        tag: u16,
        directory: &BTreeMap<u16, [u8; 12]>,
    ) -> Option<()> {
        if directory.is_empty() {
            return Some(());
        }
        let bytes = serialized(self.order, directory, [0; 4])?;
        let at = self.append(&bytes)?;
        let record = self.record(tag, LONG, 1, &self.order.write32(at))?;
        records.insert(tag, record);
        Some(())
    }

    /// Takes out the directory behind IFD0, which in Exif blocks is a small preview.
    pub(super) fn drop_preview(&mut self) {
        let Some(next) = self.order.read32(&self.next, 0).filter(|&next| next != 0) else {
            return;
        };
        self.next = [0; 4];
        // In a block, not to leave the old picture for anyone who looks closely.
        let range = Reader::open(&self.bytes).and_then(|reader| {
            let directory = reader.directory(next.into())?;
            let number = |tag| {
                let number = directory.get(tag)?.number(reader.order)?;
                usize::try_from(number).ok()
            };
            // As a JPEG file, or as samples.
            let at = number(513).or_else(|| number(273))?;
            Some(at..at.checked_add(number(514).or_else(|| number(279))?)?)
        });
        let kept = self.place.map_or(0..0, |(at, count)| {
            at.saturating_sub(2)..at.saturating_add(count.saturating_mul(12)).saturating_add(4)
        });
        if let Some(range) = range
            && range.start >= 8
            && (range.end <= kept.start || range.start >= kept.end)
            && let Some(preview) = self.bytes.get_mut(range.clone())
        {
            preview.fill(0);
            if range.end == self.bytes.len() {
                self.bytes.truncate(range.start);
            }
        }
    }

    /// The block with all changes.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        self.close()?;
        Some(self.bytes)
    }

    /// The same, or with the directory as it was where there is no room for another.
    pub(super) fn finish_or_old(mut self, failed: impl FnOnce()) -> Vec<u8> {
        if self.close().is_none() {
            failed();
        }
        self.bytes
    }

    fn close(&mut self) -> Option<()> {
        let directory = serialized(self.order, &self.records, self.next)?;
        let place = self.place.filter(|&(_, count)| count == self.records.len());
        if let Some((at, _)) = place {
            let at = at.checked_sub(2)?;
            // Without the last word where the block ends before it.
            let room = self.bytes.len().saturating_sub(at).min(directory.len());
            overwrite(&mut self.bytes, at, directory.get(..room)?)
        } else {
            let at = self.append(&directory)?;
            overwrite(&mut self.bytes, 4, &self.order.write32(at))
        }
    }
}

fn serialized(order: Order, records: &BTreeMap<u16, [u8; 12]>, next: [u8; 4]) -> Option<Vec<u8>> {
    let mut bytes = order.write16(u16::try_from(records.len()).ok()?).to_vec();
    bytes.extend(records.values().flatten());
    bytes.extend(next);
    Some(bytes)
}

/// The Exif block for a PNG, JPEG or WebP file: `block` or a new one, with the orientation, and where they
/// are to be held there, with the density and the texts. Gives the texts that have no place.
pub(super) fn compose<'t>(
    block: Option<&[u8]>,
    orientation: Option<u8>,
    new_density: Option<Density>,
    texts: &'t [(String, String)],
    comments: bool,
) -> (Option<Vec<u8>>, Vec<&'t (String, String)>) {
    let old = block.and_then(|block| Editor::open(block.to_vec()).ok());
    let is_new = old.is_none();
    let mut editor = old.unwrap_or_else(|| Editor::empty(Order::Little));
    editor.drop_preview();
    // Blocks end within 16 MiB and some: there is always room.
    let _ = editor.set_orientation(orientation);
    if let Some(new) = new_density
        && !block.and_then(density).is_some_and(|old| old.is_near(new))
    {
        let _ = editor.set_density(new);
    }
    let rest = editor.set_texts(texts, comments);
    if is_new && editor.records.is_empty() {
        return (None, rest);
    }
    (editor.finish(), rest)
}

/// An Exif block without the words that go before it in a JPEG segment, and in some WebP and PNG files.
pub(super) fn without_prefix(block: &[u8]) -> &[u8] {
    match block.strip_prefix(b"Exif\0") {
        Some([_, block @ ..]) => block,
        _ => block,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A block with Make, Orientation 6, Artist, an Exif directory with a maker's note, a GPS directory and a
    /// preview, in either order.
    pub(in super::super) fn sample(order: Order) -> Vec<u8> {
        let mut editor = Editor::empty(order);
        editor.set_text(271, "Cam").unwrap();
        editor.set_short(tag::ORIENTATION, 6).unwrap();
        editor.set_text(tag::ARTIST, "Someone with a long name").unwrap();
        let mut exif = BTreeMap::new();
        exif.insert(37500, editor.record(37500, 7, 6, b"\x01\x02note").unwrap());
        let exposure = [order.write32(1), order.write32(250)].concat();
        exif.insert(33434, editor.record(33434, RATIONAL, 1, &exposure).unwrap());
        let mut gps = BTreeMap::new();
        gps.insert(1, editor.record(1, ASCII, 2, b"N\0").unwrap());
        let mut records = std::mem::take(&mut editor.records);
        editor.link(&mut records, tag::EXIF, &exif).unwrap();
        editor.link(&mut records, tag::GPS, &gps).unwrap();
        editor.records = records;
        let mut preview = BTreeMap::new();
        let at = editor.append(b"\xff\xd8PREVIEW\xff\xd9").unwrap();
        let place = order.write32(at);
        preview.insert(513, editor.record(513, LONG, 1, &place).unwrap());
        let len = order.write32(11);
        preview.insert(514, editor.record(514, LONG, 1, &len).unwrap());
        let bytes = serialized(order, &preview, [0; 4]).unwrap();
        let next = editor.append(&bytes).unwrap();
        editor.next = order.write32(next);
        editor.finish().unwrap()
    }

    #[test]
    fn a_tag_that_is_there_is_changed_in_place() {
        for order in [Order::Little, Order::Big] {
            let block = sample(order);
            assert!(is_sound(&block));
            assert_eq!(orientation(&block), Some(6));
            let (turned, _) = compose(Some(&block), Some(3), None, &[], false);
            let turned = turned.unwrap();
            assert_eq!(orientation(&turned), Some(3));
            assert_eq!(turned.len(), block.len());
            assert_eq!(
                orientation(&compose(Some(&block), None, None, &[], false).0.unwrap()),
                Some(1)
            );
        }
    }

    #[test]
    fn the_preview_is_gone() {
        let block = sample(Order::Big);
        let has_it = |b: &[u8]| b.windows(7).any(|w| w == b"PREVIEW");
        assert!(has_it(&block));
        let after = compose(Some(&block), None, None, &[], false).0.unwrap();
        assert!(!has_it(&after));
        assert_eq!(Editor::open(after).unwrap().next, [0; 4]);
    }

    #[test]
    fn new_tags_go_to_the_end() {
        let density = Density::new(11811.0, 11811.0, DensityUnit::Metre).unwrap();
        let texts = [
            ("Copyright".to_owned(), "me, 2024".to_owned()),
            ("Author".to_owned(), "another".to_owned()),
            ("Author".to_owned(), "Someone with a long name".to_owned()),
            ("Comment".to_owned(), "hm".to_owned()),
        ];
        for order in [Order::Little, Order::Big] {
            let block = sample(order);
            let (after, rest) = compose(Some(&block), Some(8), Some(density), &texts, true);
            let after = after.unwrap();
            assert_eq!(rest, [&texts[1]]);
            assert_eq!(orientation(&after), Some(8));
            assert!(super::density(&after).unwrap().is_near(density));
            let reader = Reader::open(&after).unwrap();
            let first = reader.first().unwrap();
            assert_eq!(text(first.get(tag::COPYRIGHT).unwrap().data), "me, 2024");
            assert_eq!(text(first.get(tag::DESCRIPTION).unwrap().data), "hm");
            let exif = reader.below(&first, tag::EXIF).unwrap();
            assert_eq!(exif.get(37500).unwrap().data, b"\x01\x02note");
        }
    }

    #[test]
    fn without_anything_to_say_there_is_no_block() {
        assert_eq!(compose(None, None, None, &[], true).0, None);
        let (block, _) = compose(None, Some(5), None, &[], true);
        let block = block.unwrap();
        assert_eq!(orientation(&block), Some(5));
        assert!(is_bare(&block));
        assert!(!is_bare(&sample(Order::Little)));
    }

    #[test]
    fn notes_that_lead_elsewhere_are_known() {
        for order in [Order::Little, Order::Big] {
            let text = |len: u32| [&order.write16(2)[..], &order.write32(len), &order.write32(900)].concat();
            let note = |head: &[u8], len: u32| {
                let entry = [&order.write16(6)[..], &text(len)].concat();
                [head, &order.write16(1), &entry, &[0; 4], b"owner"].concat()
            };
            for head in [&b""[..], b"AOC\0II", b"Panasonic\0\0\0", b"SONY DSC \0\0\0"] {
                assert!(is_fixed(&note(head, 9)) && !is_fixed(&note(head, 4)), "{head:?}");
            }
            for head in [&b"Nikon\0\x02\x10\0\0II*\0\x08\0\0\0"[..], b"Apple iOS\0\0\x01MM"] {
                assert!(!is_fixed(&note(head, 9)), "{head:?}");
            }
        }
        assert!(!is_fixed(
            b"a maker's note of nothing but words, longer than any head is"
        ));
    }

    #[test]
    fn copies_change_the_order_of_bytes() {
        let block = sample(Order::Big);
        let mut editor = Editor::empty(Order::Little);
        editor.copy(&Reader::open(&block).unwrap(), |_| true).unwrap();
        let copy = editor.finish().unwrap();
        let reader = Reader::open(&copy).unwrap();
        assert_eq!(orientation(&copy), Some(6));
        let exif = reader.below(&reader.first().unwrap(), tag::EXIF).unwrap();
        assert_eq!(exif.get(33434).unwrap().real(Order::Little), Some(1.0 / 250.0));
        assert_eq!(exif.get(37500).unwrap().data, b"\x01\x02note");
    }

    #[test]
    fn of_a_block_that_is_cut_the_rest_stays() {
        for order in [Order::Little, Order::Big] {
            let block = sample(order);
            assert!(!is_cut(&block));
            let first = order.read32(&block, 4).unwrap() as usize;
            let mut cut = block.clone();
            cut[first] = 0xff;
            assert!(is_cut(&cut));
            let mut outside = block.clone();
            let artist = (0..5).map(|n| first + 2 + 12 * n);
            let mut artist = artist.filter(|&at| order.read16(&block, at) == Some(tag::ARTIST));
            let artist = artist.next().unwrap();
            outside[artist + 8..artist + 12].copy_from_slice(&order.write32(1 << 20));
            let mut below = block.clone();
            below[artist + 14..artist + 16].copy_from_slice(&order.write16(LONG));
            below[artist + 20..artist + 24].copy_from_slice(&order.write32(1 << 20));
            for (damaged, has_exif) in [(outside, true), (below, false)] {
                assert!(is_cut(&damaged) && is_sound(&damaged));
                let left = rescued(&damaged).unwrap();
                assert!(!is_cut(&left));
                assert_eq!(orientation(&left), Some(6));
                let reader = Reader::open(&left).unwrap();
                let found = reader.first().unwrap();
                assert_eq!(found.get(tag::ARTIST).is_some(), !has_exif);
                assert_eq!(reader.below(&found, tag::EXIF).is_some(), has_exif);
                assert!(reader.below(&found, tag::GPS).is_some());
            }
        }
        assert_eq!(rescued(b"II*\0\x08\0\0\0\x01\0"), None);
    }

    #[test]
    fn values_shared_by_many_entries_are_not_multiplied() {
        // 1000 entries whose value is the whole block.
        let mut block = b"II*\0\x08\0\0\0".to_vec();
        block.extend(1000_u16.to_le_bytes());
        let len = 8 + 2 + 12_000 + 4_u32;
        for tag in 0..1000_u16 {
            block.extend(tag.to_le_bytes());
            block.extend(7_u16.to_le_bytes());
            block.extend(len.to_le_bytes());
            block.extend(0_u32.to_le_bytes());
        }
        block.extend([0; 4]);
        let mut editor = Editor::empty(Order::Little);
        editor.copy(&Reader::open(&block).unwrap(), |_| true).unwrap();
        assert!(editor.finish().unwrap().len() < 2 * block.len());
    }
}
