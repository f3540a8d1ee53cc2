//! Bytes of files, none of which is taken for granted: numbers, parts and texts at a place, and what follows
//! in an input.

use std::io::{self, BufRead, Read, Seek};

/// The order of a number's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Little,
    Big,
}

impl Order {
    /// The 16 bits at `at`; `None` beyond the end.
    pub(crate) fn read16(self, bytes: &[u8], at: usize) -> Option<u16> {
        array(bytes, at).map(|b| match self {
            Self::Little => u16::from_le_bytes(b),
            Self::Big => u16::from_be_bytes(b),
        })
    }

    /// The 32 bits at `at`; `None` beyond the end.
    pub(crate) fn read32(self, bytes: &[u8], at: usize) -> Option<u32> {
        array(bytes, at).map(|b| match self {
            Self::Little => u32::from_le_bytes(b),
            Self::Big => u32::from_be_bytes(b),
        })
    }

    pub(super) fn read64(self, bytes: &[u8], at: usize) -> Option<u64> {
        array(bytes, at).map(|b| match self {
            Self::Little => u64::from_le_bytes(b),
            Self::Big => u64::from_be_bytes(b),
        })
    }

    pub(super) fn write16(self, value: u16) -> [u8; 2] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(super) fn write32(self, value: u32) -> [u8; 4] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }

    pub(super) fn write64(self, value: u64) -> [u8; 8] {
        match self {
            Self::Little => value.to_le_bytes(),
            Self::Big => value.to_be_bytes(),
        }
    }
}

/// Exactly `len` bytes; `None` if the input ends before. Takes no memory for what is not there.
pub(super) fn take_exactly(input: &mut impl BufRead, len: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let read = input.take(len).read_to_end(&mut bytes)?;
    Ok((read as u64 == len).then_some(bytes))
}

/// The next `N` bytes; `None` if the input ends before.
pub(super) fn take_array<const N: usize>(input: &mut impl BufRead) -> io::Result<Option<[u8; N]>> {
    let mut bytes = [0; N];
    match input.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(bytes)),
        Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Passes over `len` bytes, which may go beyond the end.
pub(super) fn pass(input: &mut (impl BufRead + Seek), len: u64) -> io::Result<()> {
    input.seek_relative(i64::try_from(len).unwrap_or(i64::MAX))
}

/// The printable beginning of a block's identifier, which ends in a zero.
pub(super) fn identifier(data: &[u8]) -> String {
    const MOST: usize = 20;
    let is_printable = |byte: &&u8| matches!(byte, b' '..=b'~');
    let word = data.iter().take(MOST).take_while(is_printable);
    word.map(|&byte| char::from(byte))
        .collect::<String>()
        .trim()
        .to_owned()
}

/// `len` bytes from `at` on, if there are so many.
pub(super) fn part(bytes: &[u8], at: usize, len: usize) -> Option<&[u8]> {
    bytes.get(at..at.checked_add(len)?)
}

pub(super) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    part(bytes, at, N)?.try_into().ok()
}

pub(super) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    array(bytes, at).map(u16::from_be_bytes)
}

pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

pub(super) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_le_bytes)
}

/// Puts `new` over the bytes from `at` on, if there are so many.
pub(super) fn overwrite(bytes: &mut [u8], at: usize, new: &[u8]) -> Option<()> {
    bytes
        .get_mut(at..at.checked_add(new.len())?)?
        .copy_from_slice(new);
    Some(())
}

/// Text of a file that does not tell its encoding: UTF-8 if it can be, else Latin-1.
pub(super) fn text(bytes: &[u8]) -> String {
    let end = bytes
        .iter()
        .rposition(|&b| b != 0)
        .map_or(0, |last| last.saturating_add(1));
    let bytes = bytes.get(..end).unwrap_or_default();
    str::from_utf8(bytes).map_or_else(|_| latin1(bytes), str::to_owned)
}

pub(super) fn latin1(bytes: &[u8]) -> String {
    bytes.iter().map(|&b| char::from(b)).collect()
}
