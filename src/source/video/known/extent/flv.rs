//! Where an FLV file ends, by its tags and by the length that its metadata state.

use super::Extent;
use crate::media::containers::bytes::{MAX_ELEMENTS, byte};
use std::io::{self, Read, Seek, SeekFrom};

/// The name of the file's length in the metadata, and the bytes in which it is looked for.
const SIZE: &[u8] = b"filesize";
const SEARCHED: u64 = 4096;

/// Bytes of a tag's head, and of its length behind it.
const HEAD: u64 = 11;
const BEHIND: u64 = 4;

/// Kinds of tags: sound, video, metadata, and metadata in another form.
const TAGS: [u8; 4] = [8, 9, 18, 15];

/// What a file of `length` bytes says of its end. One that ends behind a whole tag may lack the rest all the
/// same, unless it states its length.
pub(super) fn extent(file: &mut (impl Read + Seek), length: u64) -> io::Result<Extent> {
    let stated = stated(file)?;
    let whole = match stated == Some(length) {
        true => Extent::Whole,
        false => Extent::Unknown,
    };
    if ends_with_tag(file, length).unwrap_or(false) {
        return Ok(whole);
    }
    file.seek(SeekFrom::Start(5))?;
    let mut head = [0; 4];
    file.read_exact(&mut head)?;
    let mut at = u64::from(u32::from_be_bytes(head)) + BEHIND;
    for _ in 0..MAX_ELEMENTS {
        // Some writers leave out the length of the last tag, or its end.
        if at >= length {
            return Ok(whole);
        }
        file.seek(SeekFrom::Start(at))?;
        let missing = match tag(file) {
            Ok(Some(size)) if at + size <= length + BEHIND => {
                at += size;
                continue;
            }
            Ok(Some(size)) => Extent::Missing(at + size - length),
            Ok(None) => Extent::Broken,
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => Extent::Cut,
            Err(e) => return Err(e),
        };
        return Ok(match stated {
            Some(stated) if stated > length => Extent::Missing(stated - length),
            // What comes behind is padding.
            Some(stated) if stated == at => Extent::Whole,
            _ => missing,
        });
    }
    Ok(whole)
}

/// The length of the tag whose head comes next, with the length behind it; `None` if there is no tag.
fn tag(file: &mut impl Read) -> io::Result<Option<u64>> {
    const KIND: u8 = 0x1F;
    let mut head = [0; HEAD as usize];
    file.read_exact(&mut head)?;
    let size = u64::from(u32::from_be_bytes([0, head[1], head[2], head[3]]));
    Ok(TAGS.contains(&(head[0] & KIND)).then_some(HEAD + size + BEHIND))
}

/// True if the last bytes are the length of a tag that lies in front of them.
fn ends_with_tag(file: &mut (impl Read + Seek), length: u64) -> io::Result<bool> {
    let Some(end) = length.checked_sub(BEHIND) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(end))?;
    let mut size = 0;
    for _ in 0..BEHIND {
        size = size << 8 | u64::from(byte(file)?);
    }
    let Some(begin) = end.checked_sub(size).filter(|_| size >= HEAD) else {
        return Ok(false);
    };
    file.seek(SeekFrom::Start(begin))?;
    Ok(tag(file)? == Some(size + BEHIND))
}

/// The length that the metadata state.
fn stated(file: &mut (impl Read + Seek)) -> io::Result<Option<u64>> {
    let mut head = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    file.take(SEARCHED).read_to_end(&mut head)?;
    // A name, and behind it a number of 64 bits, which is marked by a zero.
    let named = head.windows(SIZE.len()).position(|name| name == SIZE);
    let number = named.and_then(|at| head.get(at + SIZE.len()..)?.first_chunk::<9>());
    let stated = number.filter(|number| number[0] == 0).map(|number| {
        let [_, number @ ..] = *number;
        f64::from_be_bytes(number)
    });
    Ok(stated.filter(|&bytes| bytes > 0.0).map(|bytes| bytes as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn file(stated: Option<u64>) -> Vec<u8> {
        let tag = |kind: u8, content: &[u8]| {
            let size = content.len() as u32;
            let head = [&[kind], &size.to_be_bytes()[1..], &[0; 7]].concat();
            [&head[..], content, &(size + 11).to_be_bytes()].concat()
        };
        let number = stated.map(|bytes| [&[0], &(bytes as f64).to_be_bytes()[..]].concat());
        let metadata = [SIZE, &number.unwrap_or_default()].concat();
        let tags = [
            tag(18, &metadata),
            tag(9, &[7; 50]),
            tag(8, &[7; 20]),
            tag(9, &[7; 50]),
        ];
        [&b"FLV\x01\x05\0\0\0\x09\0\0\0\0"[..], &tags.concat()].concat()
    }

    #[test]
    fn tags_are_whole_or_not() {
        let ask = |bytes: &[u8]| extent(&mut Cursor::new(bytes), bytes.len() as u64).ok();
        let (bare, length) = (file(None), file(Some(0)).len() as u64);
        let counted = file(Some(length));
        assert_eq!(ask(&bare), Some(Extent::Unknown));
        assert_eq!(ask(&counted), Some(Extent::Whole));
        // Behind a whole tag.
        assert_eq!(ask(&bare[..bare.len() - 65]), Some(Extent::Unknown));
        for missing in 5..54 {
            assert_eq!(
                ask(&bare[..bare.len() - missing]),
                Some(Extent::Missing(missing as u64))
            );
            assert_eq!(
                ask(&counted[..counted.len() - missing]),
                Some(Extent::Missing(missing as u64))
            );
        }
        for missing in 1..5 {
            assert_eq!(
                ask(&bare[..bare.len() - missing]),
                Some(Extent::Unknown),
                "{missing}"
            );
        }
        assert_eq!(ask(&bare[..bare.len() - 60]), Some(Extent::Cut));
        let padded = |bytes: &[u8]| [bytes, &[0; 100]].concat();
        assert_eq!(ask(&padded(&bare)), Some(Extent::Broken));
        assert_eq!(ask(&padded(&counted)), Some(Extent::Whole));
        let mut zeros = counted;
        let third = zeros.len() / 3;
        zeros[2 * third..].fill(0);
        assert_eq!(ask(&zeros), Some(Extent::Broken));
    }
}
