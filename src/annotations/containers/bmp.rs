//! BMP: pixels a metre along rows and along columns, and in headers of versions 4 and 5 what the colours are,
//! of which an embedded profile is kept.
//!
//! ```text
//!  0    "BM" size .. offset    14 bytes
//!  14   size of this header    40 or more; the oldest kind has 12 and no resolution
//!  38   pixels a metre, x      38 + 4: y; both signed, little endian
//!  70   kind of colours        from a header of 108 bytes on; 74 and on: primaries, gamma
//!  126  place of the profile   from byte 14 on, then its length; of a header of 124 bytes
//! ```

use crate::annotations::bytes::{latin1, le32, overwrite, part, take_exactly};
use crate::annotations::excerpt::Excerpt;
use crate::annotations::word::all_lost;
use crate::annotations::{Annotations, Density, DensityUnit, once, word};
use std::io::{self, BufRead, Read, Seek, SeekFrom};

const X: usize = 38;
const Y: usize = 42;

fn has_place(file: &[u8]) -> bool {
    file.starts_with(b"BM") && le32(file, 14).is_some_and(|size| size >= 40) && file.len() >= Y + 4
}

/// Where the second header begins.
const INFO: usize = 14;

/// Bytes of the second header from versions 4 and 5 on.
const VERSION_4: u32 = 108;
const VERSION_5: u32 = 124;

/// The headers, and the profile that they lead to.
pub(in crate::annotations) fn excerpt(input: &mut (impl BufRead + Seek)) -> io::Result<Excerpt> {
    let mut header = Vec::new();
    let most = INFO as u64 + u64::from(VERSION_5);
    input.take(most).read_to_end(&mut header)?;
    let mut found = Excerpt::new(part(&header, 0, Y + 4).unwrap_or_default());
    if has_place(&header) {
        take_colours(input, &header, &mut found)?;
    }
    Ok(found)
}

fn take_colours(input: &mut (impl BufRead + Seek), header: &[u8], found: &mut Excerpt) -> io::Result<()> {
    let version = le32(header, INFO).unwrap_or_default();
    let Some(kind) = part(header, 70, 4).filter(|_| version >= VERSION_4) else {
        return Ok(());
    };
    // Letters stand there from the last to the first.
    match kind {
        [0, 0, 0, 0] => {
            let is_said = part(header, 74, 48).is_some_and(|said| said.iter().any(|&byte| byte != 0));
            if is_said {
                found.leave_out("calibrated colours".to_owned());
            }
        }
        b"BGRs" | b" niW" => {}
        b"DEBM" if version >= VERSION_5 => {
            let (Some(place), Some(length)) = (le32(header, 126), le32(header, 130)) else {
                return Ok(());
            };
            if found.has_room(length.into(), word::PROFILE) {
                input.seek(SeekFrom::Start(u64::from(place).saturating_add(INFO as u64)))?;
                found.icc_profile = take_exactly(input, length.into())?;
                if found.icc_profile.is_none() {
                    once(&mut found.damaged, word::PROFILE);
                }
            }
        }
        b"KNIL" => found.leave_out("colour (ICC) profile in another file".to_owned()),
        kind => found.leave_out(format!("colours of kind {}", latin1(kind).escape_default())),
    }
    Ok(())
}

pub(in crate::annotations) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    if has_place(file)
        && let (Some(x), Some(y)) = (le32(file, X), le32(file, Y))
        && let (Ok(x), Ok(y)) = (i32::try_from(x), i32::try_from(y))
    {
        found.density = Density::new(x.into(), y.into(), DensityUnit::Metre);
    }
    found
}

pub(in crate::annotations) fn insert(
    given: &Annotations,
    mut file: Vec<u8>,
    lost: &mut Vec<&'static str>,
) -> Vec<u8> {
    let Some(density) = given.density else {
        return file;
    };
    if !has_place(&file) {
        all_lost(given, None, lost);
        return file;
    }
    let whole = density
        .per_metre()
        .and_then(|both| Density::whole(both, i32::MAX.unsigned_abs()));
    let Some((x, y)) = whole else {
        once(lost, density.word());
        return file;
    };
    overwrite(&mut file, X, &x.to_le_bytes());
    overwrite(&mut file, Y, &y.to_le_bytes());
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn resolution_is_counted_by_the_metre() {
        let mut file = b"BM".to_vec();
        file.resize(60, 0);
        file[14] = 40;
        let given = Annotations {
            density: Density::new(300.0, 150.0, DensityUnit::Inch),
            ..Annotations::default()
        };
        let mut lost = Vec::new();
        let file = insert(&given, file, &mut lost);
        assert!(lost.is_empty());
        assert_eq!(
            read(&file).density,
            Density::new(11811.0, 5906.0, DensityUnit::Metre)
        );
        insert(&given, b"BM".to_vec(), &mut lost);
        assert_eq!(lost, ["resolution (DPI)"]);
    }

    #[test]
    fn colours_of_newer_versions_are_carried_or_named() {
        let excerpt = |size: u8, kind: &[u8; 4], fields: &[(usize, u8)], profile: &[u8]| {
            let mut file = b"BM".to_vec();
            file.resize(14 + 124, 0);
            file[14] = size;
            file[70..74].copy_from_slice(kind);
            for &(at, byte) in fields {
                file[at] = byte;
            }
            file.extend(profile);
            excerpt(&mut Cursor::new(file)).unwrap()
        };
        let place = [(126, 124), (130, 3)];
        let whole = excerpt(124, b"DEBM", &place, b"ICC");
        assert_eq!(whole.icc_profile.as_deref(), Some(&b"ICC"[..]));
        let cut = excerpt(124, b"DEBM", &place, b"IC");
        assert_eq!((cut.icc_profile, cut.damaged), (None, vec![word::PROFILE]));
        assert_eq!(
            excerpt(124, b"DEBM", &[(133, 255)], b"").too_large,
            [word::PROFILE]
        );
        let gamma = [(112, 1)];
        let calibrated = excerpt(108, &[0; 4], &gamma, b"");
        assert_eq!(calibrated.unknown, ["calibrated colours"]);
        let linked = excerpt(124, b"KNIL", &place, b"C:\\");
        assert_eq!(linked.unknown, ["colour (ICC) profile in another file"]);
        for (size, kind) in [(108, b"BGRs"), (124, b" niW"), (40, b"KNIL"), (108, &[0; 4])] {
            assert!(excerpt(size, kind, &[], b"").unknown.is_empty());
        }
    }
}
