//! Photoshop's image resources, of which the IPTC records are one. JPEG and old PNG texts pack IPTC so.
//!
//! ```text
//!  "8BIM" | id, 16 bits | name: length, bytes, even together | size, 32 bits | data, padded to even | ...
//! ```

use super::bytes::{be16, be32, part};

const IPTC: u16 = 0x0404;

/// The IPTC records among resources.
pub(super) fn iptc(resources: &[u8]) -> Option<&[u8]> {
    resource(resources, IPTC)
}

/// The data of the first resource of this number.
pub(super) fn resource(resources: &[u8], wanted: u16) -> Option<&[u8]> {
    all(resources).find(|(id, _)| *id == wanted).map(|(_, data)| data)
}

/// True if there is more than records that are carried, and what speaks of these or of the picture as it was:
/// previews, a digest, and the resolution, profile, Exif and XMP that stand elsewhere, too.
pub(super) fn says_more(resources: &[u8]) -> bool {
    const ELSEWHERE: [u16; 9] = [
        IPTC, 0x0425, 0x03ed, 0x0409, 0x040c, 0x040f, 0x0422, 0x0423, 0x0424,
    ];
    all(resources).any(|(id, _)| !ELSEWHERE.contains(&id))
}

/// The resources, as far as they are whole: numbers and data.
fn all(resources: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut at = 0_usize;
    std::iter::from_fn(move || {
        if part(resources, at, 4)? != b"8BIM" {
            return None;
        }
        let id = be16(resources, at.checked_add(4)?)?;
        let name = usize::from(*resources.get(at.checked_add(6)?)?);
        // The byte of the length and the name, padded.
        let name = name.checked_add(2)? & !1;
        let size_at = at.checked_add(6)?.checked_add(name)?;
        let size = usize::try_from(be32(resources, size_at)?).ok()?;
        let data = size_at.checked_add(4)?;
        at = data.checked_add(size)?.checked_add(size & 1)?;
        Some((id, part(resources, data, size)?))
    })
}

/// A resource of nothing but these IPTC records.
pub(super) fn pack(iptc: &[u8]) -> Option<Vec<u8>> {
    let size = u32::try_from(iptc.len()).ok()?;
    let mut out = b"8BIM\x04\x04\0\0".to_vec();
    out.extend_from_slice(&size.to_be_bytes());
    out.extend_from_slice(iptc);
    if !iptc.len().is_multiple_of(2) {
        out.push(0);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iptc_is_found_behind_other_resources() {
        let mut all = b"8BIM\x03\xed\x02ab\0\0\0\0\x03xyz\0".to_vec();
        all.extend(pack(b"\x1c\x02\x50\0\x01a").unwrap());
        assert_eq!(iptc(&all).unwrap(), b"\x1c\x02\x50\0\x01a");
        assert!(!says_more(&all));
        assert!(says_more(&[&all[..], b"8BIM\x07\xd0\0\0\0\0\0\0"].concat()));
        for end in 0..all.len() {
            assert_eq!(iptc(&all[..end]), None);
        }
    }
}
