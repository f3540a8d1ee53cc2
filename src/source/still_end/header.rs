//! Numbers in headers.

use std::io::{self, Read};

pub(super) fn bytes<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut found = [0; N];
    file.read_exact(&mut found)?;
    Ok(found)
}

pub(super) fn be16(header: &[u8], at: usize) -> u64 {
    u64::from(header[at]) << 8 | u64::from(header[at + 1])
}

pub(super) fn le16(header: &[u8], at: usize) -> u64 {
    u64::from(header[at + 1]) << 8 | u64::from(header[at])
}

pub(super) fn be32(header: &[u8], at: usize) -> u64 {
    be16(header, at) << 16 | be16(header, at + 2)
}
