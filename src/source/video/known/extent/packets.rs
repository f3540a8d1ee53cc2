//! Where streams end that are packets one behind another, without a container around them: transport and
//! program streams, and AV1 in open bitstream units (OBUs).

use super::Extent;
use crate::media::containers::bytes::byte;
use std::io::{self, BufRead, Read, Seek, SeekFrom};

/// What each packet of a transport stream begins with, behind the time of M2TS.
const SYNC: u8 = 0x47;

/// The last byte of the mark of a pack, which packets of a program stream are in, and the bytes at its end in
/// which one is looked for: more than two of the longest packets.
const PACK: u8 = 0xBA;
const PROGRAM_TAIL: u64 = 160 << 10;

/// Bytes from one packet to the next, of which so many come before the mark: plain ones, those of M2TS, and
/// those with codes for correction.
const TRANSPORT: [(usize, usize); 3] = [(188, 0), (192, 4), (204, 0)];

/// Packets by whose marks their places are known.
const MARKS: usize = 4;

/// Whether a transport stream of `length` bytes ends with a whole packet, by the places of its last ones.
pub(super) fn transport(file: &mut (impl Read + Seek), length: u64) -> io::Result<Extent> {
    const TAIL: u64 = 204 * (MARKS as u64 + 1);
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    // True if the last packet's mark is so many bytes before the end.
    let begins_at = |before_end: usize, size: usize| {
        let mark = |index: usize| tail.len().checked_sub(before_end + index * size);
        (0..MARKS).all(|index| mark(index).and_then(|at| tail.get(at)) == Some(&SYNC))
    };
    if TRANSPORT.iter().any(|&(size, lead)| begins_at(size - lead, size)) {
        return Ok(Extent::Whole);
    }
    let is_cut = TRANSPORT.iter().any(|&(size, lead)| {
        (1..=size).any(|before_end| {
            // Behind the packet, the next one's time may have begun.
            let behind = before_end.saturating_sub(size - lead);
            let is_padding = behind > 0 && tail[tail.len() - behind..].iter().all(|&byte| byte == 0);
            begins_at(before_end, size) && !is_padding
        })
    });
    // What is behind the last packet may be padding, as long as it is short.
    let is_near = || {
        let mut sizes = TRANSPORT.iter().map(|&(size, _)| size);
        sizes.any(|size| (1..=2 * size).any(|before_end| begins_at(before_end, size)))
    };
    Ok(if is_cut {
        Extent::MidPacket
    } else if length < TAIL || is_near() {
        Extent::Unknown
    } else {
        Extent::Broken
    })
}

/// What the last packets of a program stream of `length` bytes say of its end, from one of its last packs on.
pub(super) fn program(file: &mut (impl Read + Seek), length: u64) -> io::Result<Extent> {
    let begin = length.saturating_sub(PROGRAM_TAIL);
    file.seek(SeekFrom::Start(begin))?;
    let mut tail = Vec::new();
    file.take(PROGRAM_TAIL).read_to_end(&mut tail)?;
    let packs = (0..tail.len()).filter(|&at| tail[at..].starts_with(&[0, 0, 1, PACK]));
    let ends = packs.filter_map(|pack| {
        let (mut at, mut packets) = (pack, 0);
        while at < tail.len() {
            at += packet_of_program(&tail[at..])?;
            packets += 1;
        }
        // Bytes of a picture may look like a packet, but not like several.
        (packets > 2).then_some(at - tail.len())
    });
    Ok(match ends.into_iter().next() {
        Some(0) => Extent::Whole,
        Some(missing) => Extent::Missing(missing as u64),
        None => Extent::Unknown,
    })
}

/// The length of the packet of a program stream that `bytes` begin with: a pack's head, the end, or one that
/// states it; `None` if there is none, or it is not stated.
fn packet_of_program(bytes: &[u8]) -> Option<usize> {
    match *bytes {
        // The stuffing of MPEG-2's is in its last byte.
        [0, 0, 1, PACK, first, ..] if first & 0xC0 == 0x40 => {
            Some(14 + usize::from(bytes.get(13).copied().unwrap_or(0) & 7))
        }
        [0, 0, 1, PACK, ..] => Some(12),
        // What comes behind the end is no part of it.
        [0, 0, 1, 0xB9, ..] => Some(bytes.len()),
        // The head of a packet breaks off.
        [0, 0, 1] | [0, 0, 1, _] | [0, 0, 1, _, _] => Some(6),
        [0, 0, 1, 0xBB..=0xFF, high, low, ..] => match u16::from_be_bytes([high, low]) {
            0 => None,
            length => Some(6 + usize::from(length)),
        },
        _ => None,
    }
}

/// What the sizes of the units say of a stream of AV1 of `length` bytes. `is_annex_b` is true where groups of
/// them, a picture's each, have a size in front; else each unit has its own.
pub(super) fn av1(file: &mut (impl BufRead + Seek), length: u64, is_annex_b: bool) -> io::Result<Extent> {
    const IS_WRONG: u8 = 0x80;
    const HAS_EXTENSION: u8 = 4;
    const HAS_SIZE: u8 = 2;
    file.rewind()?;
    let mut at = 0;
    while at < length {
        let mut units = || -> io::Result<Option<u64>> {
            let mut head = 0;
            if !is_annex_b {
                let first = byte(file)?;
                if first & IS_WRONG != 0 || first & HAS_SIZE == 0 {
                    return Ok(None);
                }
                head = 1;
                if first & HAS_EXTENSION != 0 {
                    byte(file)?;
                    head = 2;
                }
            }
            Ok(leb128(file)?.map(|(size, bytes)| head + bytes + size))
        };
        match units() {
            Ok(Some(size)) if at + size > length => return Ok(Extent::Missing(at + size - length)),
            Ok(Some(size)) => at += size,
            Ok(None) => {
                let mut rest = Vec::new();
                file.read_to_end(&mut rest)?;
                let is_padding = rest.iter().all(|&byte| byte == 0);
                return Ok(if is_padding { Extent::Whole } else { Extent::Broken });
            }
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(Extent::Cut),
            Err(e) => return Err(e),
        }
        file.seek(SeekFrom::Start(at))?;
    }
    Ok(Extent::Whole)
}

/// A number of 7 bits a byte, the lowest first, and how many bytes it takes; `None` for one that has no end,
/// or does not fit 32 bits.
fn leb128(file: &mut impl Read) -> io::Result<Option<(u64, u64)>> {
    let mut value = 0;
    for index in 0..8 {
        let next = byte(file)?;
        value |= u64::from(next & 0x7f) << (7 * index);
        if next & 0x80 == 0 {
            return Ok((value <= u64::from(u32::MAX)).then_some((value, index + 1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn transport_streams_end_with_whole_packets_or_not() {
        for (size, lead) in TRANSPORT {
            let mut packet = vec![9; size];
            packet[lead] = SYNC;
            let whole = packet.repeat(6);
            let ask = |bytes: &[u8]| transport(&mut Cursor::new(bytes), bytes.len() as u64).ok();
            assert_eq!(ask(&whole), Some(Extent::Whole));
            for missing in 1..size {
                let cut = &whole[..whole.len() - missing];
                assert_eq!(ask(cut), Some(Extent::MidPacket), "{missing} of {size}");
            }
            // Padding of any length is no packet.
            for zeros in [3, 100, 1000] {
                let padded = [&whole[..], &vec![0; zeros]].concat();
                assert_ne!(ask(&padded), Some(Extent::MidPacket), "{zeros} behind {size}");
                assert_eq!(
                    ask(&padded) == Some(Extent::Broken),
                    zeros > 2 * size,
                    "{zeros} behind {size}"
                );
            }
            assert_eq!(ask(&whole[..2 * size - 1]), Some(Extent::Unknown));
        }
    }

    #[test]
    fn program_streams_end_with_whole_packets_or_not() {
        let pack = [0, 0, 1, PACK, 0x44, 0, 4, 0, 4, 1, 1, 0x89, 0xC3, 0xF9, 7];
        let packet = [&[0, 0, 1, 0xE0, 0, 40][..], &[7; 40]].concat();
        let whole = [&pack[..], &packet, &packet, &pack, &packet, &[0, 0, 1, 0xB9]].concat();
        let ask = |bytes: &[u8]| program(&mut Cursor::new(bytes), bytes.len() as u64).ok();
        assert_eq!(ask(&whole), Some(Extent::Whole));
        let end = whole.len() - 4;
        assert_eq!(ask(&whole[..end]), Some(Extent::Whole));
        for missing in 1..packet.len() {
            let expected = match packet.len() - missing {
                // So few bytes may be padding; of a head, less than its length is there.
                1 | 2 => Extent::Unknown,
                there @ ..6 => Extent::Missing(6 - there as u64),
                _ => Extent::Missing(missing as u64),
            };
            assert_eq!(ask(&whole[..end - missing]), Some(expected), "{missing}");
        }
        assert_eq!(ask(&[7; 100]), Some(Extent::Unknown));
    }

    #[test]
    fn units_of_av1_are_walked_by_their_sizes() {
        let ask =
            |bytes: &[u8], is_annex_b| av1(&mut Cursor::new(bytes), bytes.len() as u64, is_annex_b).ok();
        // A delimiter, and units with a size of one byte and of two, one of them with an extension.
        let long = [&[0x32, 0x82, 0x01][..], &[7; 130]].concat();
        let bare = [&[0x12, 0, 0x36, 0, 3, 1, 2, 3][..], &long].concat();
        let in_front = [&[4, 1, 2, 3, 4, 0x82, 0x01][..], &[7; 130]].concat();
        for (whole, is_annex_b) in [(bare, false), (in_front, true)] {
            assert_eq!(ask(&whole, is_annex_b), Some(Extent::Whole));
            assert_eq!(
                ask(&whole[..whole.len() - 5], is_annex_b),
                Some(Extent::Missing(5))
            );
            assert_eq!(ask(&whole[..whole.len() - 131], is_annex_b), Some(Extent::Cut));
        }
        assert_eq!(ask(&[0x12, 0, 0x80, 1], false), Some(Extent::Broken));
        assert_eq!(ask(&[0x12, 0, 0, 0, 0], false), Some(Extent::Whole));
    }
}
