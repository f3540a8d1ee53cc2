//! Fax data of group 3 (T.4), with and without rows that refer to the one above, and of plain run lengths
//! (compression 2). Group 4 is the `tiff` crate's.
//!
//! ```text
//! group 3        EOL [tag] runs | EOL [tag] runs | ..      EOL: 11 zeros or more, then a one
//!                tag: 1 for runs, 0 for a row that refers to the one above
//! run lengths    runs, then zeros to a whole byte | ..
//! runs           white, black, white, .. until the row is full
//! ```

use fax::maps::{Mode, black, mode, white};
use fax::{BitReader, ByteReader};
use std::convert::Infallible;

/// How rows are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// Every row begins at a whole byte.
    Bytes,
    /// By codes; rows may refer to the one above if it is said of the file.
    Codes { may_refer: bool },
}

const DAMAGED: &str = "its fax data is damaged or ends early";

type Reader<'a> = ByteReader<Box<dyn Iterator<Item = Result<u8, Infallible>> + 'a>>;

/// Unpacks rows of `width` pixels into `raw`, 8 pixels a byte, ones for black.
pub(super) fn unpack(rows: Rows, width: u16, data: &[u8], raw: &mut [u8]) -> Result<(), &'static str> {
    // The last code may be shorter than what is looked at to find it.
    let padded = data.iter().copied().chain([0; 2]);
    let bytes: Box<dyn Iterator<Item = Result<u8, Infallible>>> = Box::new(padded.map(Ok));
    let mut reader = ByteReader::new(bytes).map_err(|_| DAMAGED)?;
    let mut above = Vec::new();
    for row in raw.chunks_exact_mut(usize::from(width).div_ceil(8).max(1)) {
        let refers = match rows {
            Rows::Bytes => {
                let rest = reader.bits_to_byte_boundary();
                consume(&mut reader, rest);
                false
            }
            Rows::Codes { may_refer } => begins_with_reference(&mut reader, may_refer)?,
        };
        above = if refers {
            referring(&mut reader, width, &above).ok_or(DAMAGED)?
        } else {
            plain(&mut reader, width).ok_or(DAMAGED)?
        };
        paint(row, &above, width);
    }
    Ok(())
}

fn consume(reader: &mut Reader<'_>, bits: u8) {
    // Its bytes come without errors.
    let _ = reader.consume(bits);
}

/// Passes the end of the row above, if there is one. True if the row refers to it.
fn begins_with_reference(reader: &mut Reader<'_>, may_refer: bool) -> Result<bool, &'static str> {
    let mut refers = false;
    // Six of them in a row end the page.
    for _ in 0..6 {
        if reader.peek(11) != Some(0) {
            return Ok(refers);
        }
        while reader.peek(1) == Some(0) {
            consume(reader, 1);
        }
        consume(reader, 1);
        if may_refer {
            refers = reader.peek(1) == Some(0);
            consume(reader, 1);
        }
    }
    Err(DAMAGED)
}

/// Where colours change in a row, in order; it begins white, and changes at the same place cancel out.
struct Changes {
    places: Vec<u16>,
    width: u16,
}

impl Changes {
    fn push(&mut self, place: u32) -> Option<()> {
        let place = u16::try_from(place).ok().filter(|place| *place <= self.width)?;
        if self.places.last() == Some(&place) {
            self.places.pop();
        } else if place < self.width {
            self.places.push(place);
        }
        Some(())
    }
}

/// The length of a run: any number of codes for multiples of 64, and one for the rest.
fn run(reader: &mut Reader<'_>, is_black: bool) -> Option<u32> {
    let mut length = 0_u32;
    loop {
        let part = if is_black {
            black::decode(reader)
        } else {
            white::decode(reader)
        };
        let part = u32::from(part?);
        length = length.checked_add(part)?;
        if part < 64 {
            return Some(length);
        }
    }
}

fn plain(reader: &mut Reader<'_>, width: u16) -> Option<Vec<u16>> {
    let places = Vec::new();
    let mut changes = Changes { places, width };
    let (mut at, mut is_black) = (0_u32, false);
    while at < u32::from(width) {
        at = at.checked_add(run(reader, is_black)?)?;
        changes.push(at)?;
        is_black = !is_black;
    }
    Some(changes.places)
}

fn referring(reader: &mut Reader<'_>, width: u16, above: &[u16]) -> Option<Vec<u16>> {
    let places = Vec::new();
    let mut changes = Changes { places, width };
    // The place before the row's first pixel, which is white.
    let (mut at, mut is_black) = (-1_i64, false);
    let mut first = 0;
    let end = i64::from(width);
    while at < end {
        while above.get(first).is_some_and(|&place| i64::from(place) <= at) {
            first += 1;
        }
        // The row above turns black at the first, third .. of its places.
        let next = first + usize::from((first % 2 == 1) != is_black);
        let place = |index: usize| above.get(index).map_or(end, |&place| i64::from(place));
        match mode::decode(reader)? {
            Mode::Pass => at = place(next + 1),
            Mode::Vertical(by) => {
                let change = place(next) + i64::from(by);
                if change < at {
                    return None;
                }
                changes.push(u32::try_from(change).ok()?)?;
                (at, is_black) = (change, !is_black);
            }
            Mode::Horizontal => {
                let start = u32::try_from(at.max(0)).ok()?;
                let middle = start.checked_add(run(reader, is_black)?)?;
                changes.push(middle)?;
                let stop = middle.checked_add(run(reader, !is_black)?)?;
                changes.push(stop)?;
                at = stop.into();
            }
            Mode::Extension | Mode::EOF => return None,
        }
    }
    Some(changes.places)
}

fn paint(row: &mut [u8], changes: &[u16], width: u16) {
    row.fill(0);
    for pair in changes.chunks(2) {
        let stop = pair.get(1).copied().unwrap_or(width);
        for x in usize::from(pair[0])..usize::from(stop) {
            if let Some(byte) = row.get_mut(x / 8) {
                *byte |= 0x80 >> (x % 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits, written as text; spaces mean nothing.
    fn bits(text: &str) -> Vec<u8> {
        let bits: Vec<u8> = text.bytes().filter(|b| *b != b' ').map(|b| b - b'0').collect();
        let byte = |bits: &[u8]| (0..8).fold(0, |byte, at| byte << 1 | bits.get(at).copied().unwrap_or(0));
        bits.chunks(8).map(byte).collect()
    }

    const EOL: &str = "000000000001";

    #[test]
    fn rows_of_every_kind_are_unpacked() {
        // White 2, black 3, white 5; all white; white 0 and black 10.
        let (a, b, c) = ("0111 10 1100", "00111", "00110101 0000100");
        let mut raw = [0xff; 6];
        let codes = Rows::Codes { may_refer: false };
        let ends = format!("{EOL}{a}{EOL}{b} 0000{EOL}{c}");
        unpack(codes, 10, &bits(&ends), &mut raw).unwrap();
        assert_eq!(raw, [0b0011_1000, 0, 0, 0, 0xff, 0xc0]);
        // Without a word of where rows end.
        raw.fill(0xff);
        unpack(codes, 10, &bits(&[a, b, c].concat()), &mut raw).unwrap();
        assert_eq!(raw, [0b0011_1000, 0, 0, 0, 0xff, 0xc0]);
        raw.fill(0xff);
        let whole = [bits(a), bits(b), bits(c)].concat();
        unpack(Rows::Bytes, 10, &whole, &mut raw).unwrap();
        assert_eq!(raw, [0b0011_1000, 0, 0, 0, 0xff, 0xc0]);
    }

    #[test]
    fn rows_refer_to_the_one_above() {
        let may = Rows::Codes { may_refer: true };
        // Black at 2 to 5. Then: one earlier, one later, the end. Then: passed, and black at 9.
        let first = format!("{EOL}1 0111 10 1100");
        let second = format!("{EOL}0 010 011 1");
        let third = format!("{EOL}0 0001 001 1000 010");
        let mut raw = [0xff; 6];
        unpack(may, 10, &bits(&[&first[..], &second, &third].concat()), &mut raw).unwrap();
        // The pass ends at 6, from where white 3 and black 1 are counted.
        assert_eq!(raw[..4], [0b0011_1000, 0, 0b0111_1100, 0]);
        assert_eq!(raw[4..], [0, 0b0100_0000]);
    }

    #[test]
    fn damage_is_an_error() {
        let rows = Rows::Codes { may_refer: true };
        let whole = bits(&format!("{EOL}1 0111 10 1100{EOL}0 1 1 1"));
        assert!(unpack(rows, 10, &whole, &mut [0; 4]).is_ok());
        for end in 0..whole.len() - 1 {
            assert!(unpack(rows, 10, &whole[..end], &mut [0; 4]).is_err(), "{end}");
        }
        for byte in 0..=u8::MAX {
            let _ = unpack(rows, 10, &[byte; 9], &mut [0; 64]);
            let _ = unpack(Rows::Bytes, 65_535, &[byte; 9], &mut [0; 8192]);
        }
        assert!(unpack(rows, 10, &bits(&EOL.repeat(7)), &mut [0; 4]).is_err());
    }
}
