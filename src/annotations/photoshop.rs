//! Photoshop's image resources, of which the IPTC records are one. JPEG and old PNG texts pack IPTC so.
//!
//! ```text
//!  "8BIM" | id, 16 bits | name: length, bytes, even together | size, 32 bits | data, padded to even | ...
//! ```

use super::bytes::{array, be16, be32, part};

const IPTC: u16 = 0x0404;

/// The IPTC records among resources.
pub(super) fn iptc(resources: &[u8]) -> Option<&[u8]> {
    resource(resources, IPTC)
}

/// The data of the first resource of this number.
pub(super) fn resource(resources: &[u8], wanted: u16) -> Option<&[u8]> {
    all(resources).find(|(id, _)| *id == wanted).map(|(_, data)| data)
}

/// True if there is more than what is carried, and what Photoshop writes into every file.
pub(super) fn says_more(resources: &[u8]) -> bool {
    all(resources).any(|(id, data)| !is_usual(id, data))
}

/// True for a resource whose loss is not worth a word.
fn is_usual(id: u16, data: &[u8]) -> bool {
    const WHITE: [u8; 10] = [0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0];
    let is_zero = data.iter().all(|&byte| byte == 0);
    match id {
        // What stands elsewhere, too: resolution, IPTC, profile, Exif, XMP, and the digest of IPTC.
        1005 | 1028 | 1039 | 1058..=1061
        // Previews, which show the picture as it was.
        | 1033 | 1036
        // How it is printed: pages, flags, screens, scale, printers.
        | 1001 | 1002 | 1011..=1013 | 1062 | 1071 | 1082..=1085 | 10_000
        // How the file was stored: quality, version, whether a profile was wanted.
        | 1030 | 1041 | 1057
        // The state of the program: lighting, the next number, what is chosen and shown, saving by itself.
        | 1024 | 1026 | 1037 | 1042 | 1044 | 1049 | 1069 | 1072 | 1076 | 1078 | 1086..=1088
        // About channels, palettes and spot colours, which are named themselves where they are lost.
        | 1006 | 1007 | 1045..=1047 | 1053 | 1067 | 1077 => true,
        // Caption, border, copyright flag, address, watermark, address of a workflow.
        1008 | 1009 | 1034 | 1035 | 1040 | 1051 => is_zero || id == 1009 && be32(data, 0) == Some(0),
        // Colour behind the picture.
        1010 => data == WHITE,
        // Curves of printers of 13 points and a flag: no points but the ends, 0 and 1000.
        1015 | 1016 => data.chunks(28).all(
            |curve| matches!(curve, [0, 0, between @ .., 3, 0xe8, 0, 0] if *between == [0xff; 22]),
        ),
        // Guides, slices, addresses, points whose colours are shown: how many.
        1032 => be32(data, 12) == Some(0),
        1050 => slices(data) <= 1,
        1054 => be32(data, 0) == Some(0),
        1073 => be32(data, 4) == Some(0),
        // Width over height of a pixel, behind a version.
        1064 => array(data, 4).map(f64::from_be_bytes) == Some(1.0),
        _ => false,
    }
}

/// How many slices a picture is cut into: by the old form's number, behind its version, bounds and name, or
/// by the descriptors of each.
fn slices(data: &[u8]) -> usize {
    const NAME: usize = 20;
    let old = || {
        let name = usize::try_from(be32(data, NAME)?).ok()?.checked_mul(2)?;
        usize::try_from(be32(data, name.checked_add(NAME + 4)?)?).ok()
    };
    let number = (be32(data, 0) == Some(6)).then(old).flatten();
    let described = data.windows(7).filter(|word| word == b"sliceID").count();
    described.max(number.unwrap_or_default())
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

    fn packed(id: u16, data: &[u8]) -> Vec<u8> {
        let size = (data.len() as u32).to_be_bytes();
        let padding = vec![0; data.len() % 2];
        [b"8BIM", &id.to_be_bytes()[..], &[0, 0], &size, data, &padding].concat()
    }

    /// Of each kind what Photoshop writes by itself, and what someone chose.
    #[test]
    fn what_every_file_has_is_not_worth_a_word() {
        let aspect = |ratio: f64| [&[0, 0, 0, 1][..], &ratio.to_be_bytes()].concat();
        let guides =
            |count: u8| [&[0, 0, 0, 1, 0, 0, 2, 0x40, 0, 0, 2, 0x40, 0, 0, 0][..], &[count]].concat();
        let curve = |middle: u8| [&[0, 0][..], &[middle; 22], b"\x03\xe8\0\0"].concat().repeat(4);
        let cut = |count: u8| {
            [
                &[0, 0, 0, 6][..],
                &[0; 16],
                &[0, 0, 0, 1, 0, b'a', 0, 0, 0, count],
            ]
            .concat()
        };
        let described = |count: usize| [&[0, 0, 0, 7][..], &b"sliceIDlong".repeat(count)].concat();
        let white = b"\0\0\xff\xff\xff\xff\xff\xff\0\0".to_vec();
        for (id, usual, other) in [
            (1008, vec![0], b"\x03cap".to_vec()),
            (1010, white, vec![0; 10]),
            (1016, curve(0xff), curve(1)),
            (1032, guides(0), guides(1)),
            (1034, vec![0], vec![1]),
            (1035, vec![], b"http://x".to_vec()),
            (1050, cut(1), cut(4)),
            (1050, described(1), described(2)),
            (1054, vec![0; 4], vec![0, 0, 0, 1]),
            (1064, aspect(1.0), aspect(2.0)),
        ] {
            assert!(!says_more(&packed(id, &usual)), "{id}");
            assert!(says_more(&packed(id, &other)), "{id}");
        }
        for id in [1011, 1030, 1037, 1049, 1057, 1062, 1082, 10_000] {
            assert!(!says_more(&packed(id, &[1, 2, 3, 4])), "{id}");
        }
        for id in [1025, 1065, 2000, 2999, 4000, 7000] {
            assert!(says_more(&packed(id, &[0; 26])), "{id}");
        }
    }

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
