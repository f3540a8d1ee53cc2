//! Blocks of Windows Media and packets of RealMedia files that are not where the file's head says, and pages
//! of Ogg files that are missing by their numbers: FFmpeg looks for the next one and says nothing.

use super::sizes::{ASF, ASF_PROPERTIES, asf_properties};
use crate::media::containers::bytes::MAX_ELEMENTS;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// What a block of Windows Media begins with, where blocks have codes for correction.
const BLOCK: [u8; 3] = [0x82, 0, 0];

/// Bytes of the head of a data object of Windows Media; where its count of blocks is.
const DATA_HEAD: u64 = 50;

/// How RealMedia files begin, and the part of them that is wanted.
const REAL: &[u8; 4] = b".RMF";
const DATA: &[u8; 4] = b"DATA";

/// How pages of Ogg files begin, the bytes of their heads without the sizes of their parts, and the most
/// streams whose pages are counted.
const PAGE: &[u8; 4] = b"OggS";
const PAGE_HEAD: usize = 27;
const MOST_STREAMS: usize = 256;

/// Blocks or packets that are not there in the file at `path`, which FFmpeg's `demuxer` reads, as a sentence.
pub(in crate::source::video) fn lost(path: &Path, demuxer: &str) -> Option<String> {
    let ask = || -> io::Result<Option<String>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        match demuxer {
            "asf" => blocks(&mut file, length),
            "rm" => packets(&mut file),
            "ogg" => pages(&mut BufReader::new(file)),
            _ => Ok(None),
        }
    };
    let is_known = matches!(demuxer, "asf" | "rm" | "ogg") && path.is_file();
    is_known.then(|| ask().ok().flatten()).flatten()
}

/// Blocks of Windows Media have one size, and begin with the same bytes.
fn blocks(file: &mut (impl Read + Seek), length: u64) -> io::Result<Option<String>> {
    const BROADCAST: u32 = 1;
    let Some(properties) = asf_properties(file)? else {
        return Ok(None);
    };
    let number = |at: usize| {
        properties
            .get(at..at + 4)?
            .try_into()
            .ok()
            .map(u32::from_le_bytes)
    };
    // Behind the object's name and size there are six numbers of 64 bits and the file's name.
    let at = ASF_PROPERTIES.len() + 8 + 16 + 6 * 8;
    let (flags, least, most) = (number(at), number(at + 4), number(at + 8));
    let Some(size) =
        least.filter(|&size| size > 0 && least == most && flags.is_some_and(|f| f & BROADCAST == 0))
    else {
        return Ok(None);
    };
    // The head's length is behind its name.
    let mut head = [0; 8];
    file.seek(SeekFrom::Start(ASF.len() as u64))?;
    file.read_exact(&mut head)?;
    let data = u64::from_le_bytes(head);
    let Some(first) = data.checked_add(DATA_HEAD) else {
        return Ok(None);
    };
    let mut count = [0; 8];
    file.seek(SeekFrom::Start(first - 10))?;
    file.read_exact(&mut count)?;
    let count = u64::from_le_bytes(count);
    let there = length.saturating_sub(first) / u64::from(size);
    let mut lost = 0;
    for block in 0..count.min(there).min(MAX_ELEMENTS.into()) {
        let mut begin = [0; BLOCK.len()];
        file.seek(SeekFrom::Start(first + block * u64::from(size)))?;
        file.read_exact(&mut begin)?;
        match begin == BLOCK {
            true => {}
            false if block == 0 => return Ok(None),
            false => lost += 1,
        }
    }
    Ok((lost > 0).then(|| format!("{lost} of its {count} blocks are no blocks of Windows Media any more")))
}

/// Packets of RealMedia state their lengths, and the head of the data how many there are.
fn packets(file: &mut (impl Read + Seek)) -> io::Result<Option<String>> {
    const PACKET_HEAD: u64 = 12;
    const NEWEST: u16 = 1;
    let mut at = 0;
    // A list of parts, each with its name and its length, up to the data.
    for _ in 0..MAX_ELEMENTS {
        let (mut name, mut size) = ([0; 4], [0; 4]);
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut name)?;
        file.read_exact(&mut size)?;
        if &name == DATA {
            break;
        }
        let size = u64::from(u32::from_be_bytes(size));
        if size < 8 || (at == 0) != (&name == REAL) {
            return Ok(None);
        }
        at += size;
    }
    let mut count = [0; 4];
    file.seek(SeekFrom::Start(at + 10))?;
    file.read_exact(&mut count)?;
    let count = u32::from_be_bytes(count);
    at += 18;
    for packet in 0..count.min(MAX_ELEMENTS) {
        let mut head = [0; 4];
        file.seek(SeekFrom::Start(at))?;
        file.read_exact(&mut head)?;
        let version = u16::from_be_bytes([head[0], head[1]]);
        let size = u64::from(u16::from_be_bytes([head[2], head[3]]));
        if version > NEWEST || size < PACKET_HEAD {
            return Ok(Some(format!("its packets break off after {packet} of {count}")));
        }
        at += size;
    }
    Ok(None)
}

/// Pages of Ogg files are numbered, in each stream by itself:
///
/// ```text
///   OggS | version, flags | granule position (8) | serial number (4) | number (4) | CRC (4) | parts | sizes
/// ```
///
/// The numbers may jump behind a stream's headers, whose granule position is 0: broadcasts are recorded so.
fn pages(file: &mut (impl BufRead + Seek)) -> io::Result<Option<String>> {
    const BEGINS: u8 = 2;
    // Of each stream the next page's number, and whether samples came.
    let mut streams = BTreeMap::<[u8; 4], (u32, bool)>::new();
    let (mut count, mut lost) = (0_u64, 0_u64);
    while count < MAX_ELEMENTS.into() {
        let mut head = [0; PAGE_HEAD];
        if file.read_exact(&mut head).is_err() {
            break;
        }
        if !head.starts_with(PAGE) {
            file.seek_relative(1 - PAGE_HEAD as i64)?;
            if !find_page(file)? {
                break;
            }
            continue;
        }
        let mut sizes = vec![0; usize::from(head[26])];
        file.read_exact(&mut sizes)?;
        let size: i64 = sizes.iter().map(|&size| i64::from(size)).sum();
        file.seek_relative(size)?;
        let [.., n0, n1, n2, n3, _, _, _, _, _] = head;
        let number = u32::from_le_bytes([n0, n1, n2, n3]);
        let serial = [head[14], head[15], head[16], head[17]];
        let has_samples = head[6..14] != [0; 8];
        count += 1;
        if streams.len() >= MOST_STREAMS && !streams.contains_key(&serial) {
            continue;
        }
        let (next, had_samples) = streams.entry(serial).or_insert((number, false));
        if *had_samples && head[5] & BEGINS == 0 && number > *next {
            lost += u64::from(number - *next);
        }
        *next = number.wrapping_add(1);
        *had_samples |= has_samples;
    }
    let pages = if lost == 1 {
        "1 page is".to_owned()
    } else {
        format!("{lost} pages are")
    };
    Ok((lost > 0).then(|| format!("{pages} missing in the midst of it, by their numbers")))
}

/// Reads up to where a page begins; false if none comes.
fn find_page(file: &mut (impl BufRead + Seek)) -> io::Result<bool> {
    let mut matched = 0;
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let end = bytes.iter().position(|byte| {
            // Its first letter comes once.
            matched = match *byte {
                byte if byte == PAGE[matched] => matched + 1,
                byte => usize::from(byte == PAGE[0]),
            };
            matched == PAGE.len()
        });
        let length = bytes.len();
        match end {
            Some(end) => {
                file.consume(end + 1);
                file.seek_relative(-(PAGE.len() as i64))?;
                return Ok(true);
            }
            None => file.consume(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn blocks_that_are_none_are_counted() {
        let numbers = |numbers: &[u64]| -> Vec<u8> { numbers.iter().flat_map(|n| n.to_le_bytes()).collect() };
        let sizes: Vec<u8> = [0_u32, 100, 100, 0]
            .iter()
            .flat_map(|n| n.to_le_bytes())
            .collect();
        let properties = [&ASF_PROPERTIES[..], &[0; 24], &numbers(&[0; 6]), &sizes].concat();
        let head = [
            &ASF[..],
            &numbers(&[30 + properties.len() as u64]),
            &[0; 6],
            &properties,
        ]
        .concat();
        let data = [&[0; 40][..], &numbers(&[5]), &[0; 2]].concat();
        let block = [&BLOCK[..], &[7; 97]].concat();
        let mut file = [&head[..], &data, &block.repeat(5)].concat();
        let ask = |file: &[u8]| blocks(&mut Cursor::new(file), file.len() as u64).unwrap();
        assert_eq!(ask(&file), None);
        let length = file.len();
        file[length - 250..length - 100].fill(0);
        assert!(ask(&file).is_some_and(|said| said.starts_with("1 of its 5 blocks")));
        assert_eq!(ask(&file[..length - 250]), None);
    }

    #[test]
    fn packets_of_real_media_are_walked() {
        let part =
            |name: &[u8], content: &[u8]| [name, &(content.len() as u32 + 8).to_be_bytes(), content].concat();
        let packet = [&[0, 0, 0, 20][..], &[7; 16]].concat();
        let data = [&[0, 0, 0, 0, 0, 3, 0, 0, 0, 0][..], &packet.repeat(3)].concat();
        let mut file = [part(REAL, &[0; 10]), part(b"PROP", &[0; 42]), part(DATA, &data)].concat();
        let ask = |file: &[u8]| packets(&mut Cursor::new(file)).ok().flatten();
        assert_eq!(ask(&file), None);
        let length = file.len();
        file[length - 30..length - 10].fill(0);
        assert_eq!(ask(&file).as_deref(), Some("its packets break off after 2 of 3"));
    }

    #[test]
    fn pages_that_are_missing_are_counted() {
        let page = |serial: u8, number: u8, granule: u8, size: u8| {
            let head = [
                &PAGE[..],
                &[0, u8::from(number == 0) * 2, granule],
                &[0; 7],
                &[serial, 0, 0, 0],
            ];
            let numbers = [number, 0, 0, 0, 1, 2, 3, 4, 1, size];
            [&head.concat()[..], &numbers, &vec![b'O'; usize::from(size)]].concat()
        };
        // The second stream's number jumps behind its headers.
        let whole: Vec<Vec<u8>> = vec![
            page(1, 0, 0, 30),
            page(2, 0, 0, 7),
            page(1, 1, 1, 200),
            page(2, 9, 1, 255),
            page(1, 2, 2, 0),
            page(1, 3, 3, 90),
            page(2, 10, 2, 90),
            page(1, 4, 4, 90),
        ];
        let ask = |file: &[u8]| pages(&mut BufReader::with_capacity(3, Cursor::new(file))).unwrap();
        assert_eq!(ask(&whole.concat()), None);
        for lost in [2, 4, 5] {
            let mut left = whole.clone();
            left.remove(lost);
            let found = ask(&left.concat());
            // What is before the first samples may be missing.
            assert_eq!(found.is_some(), lost != 2, "{lost}");
            let mut broken = whole.clone();
            broken[lost][..6].fill(0);
            assert_eq!(ask(&broken.concat()), found, "{lost}");
        }
    }
}
