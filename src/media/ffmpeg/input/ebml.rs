//! Elements of EBML, which Matroska is made of.

use std::io::{self, Read};

/// The header of a file.
pub(crate) const EBML: u32 = 0x1A45_DFA3;

/// What holds all else.
pub(crate) const SEGMENT: u32 = 0x1853_8067;

/// An element: where its content begins, and its size if it states one.
pub(crate) struct Element {
    pub(crate) id: u32,
    pub(crate) content: u64,
    pub(crate) size: Option<u64>,
}

/// Reads an EBML element's id and size at `at`.
pub(crate) fn element(file: &mut impl Read, at: u64) -> io::Result<Element> {
    let (id, id_bytes) = number(file, 4)?;
    let (size, size_bytes) = number(file, 8)?;
    // The id keeps its length marker; the size drops it, and all ones mean "unknown".
    let value_bits = 7 * size_bytes;
    let value = size & ((1 << value_bits) - 1);
    Ok(Element {
        id: u32::try_from(id).map_err(io::Error::other)?,
        content: at + u64::from(id_bytes) + u64::from(size_bytes),
        size: (value != (1 << value_bits) - 1).then_some(value),
    })
}

/// An EBML number with its length marker, and how many bytes it took.
fn number(file: &mut impl Read, longest: u32) -> io::Result<(u64, u32)> {
    let mut first = [0];
    file.read_exact(&mut first)?;
    let bytes = first[0].leading_zeros() + 1;
    if bytes > longest {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut value = u64::from(first[0]);
    for _ in 1..bytes {
        file.read_exact(&mut first)?;
        value = value << 8 | u64::from(first[0]);
    }
    Ok((value, bytes))
}
