//! The end of a BMP file, whose header states where rows begin: rows of whole 32-bit words, or packed ones.

use super::header::le16;
use std::io::{self, BufRead, ErrorKind, Read, Seek};

/// Bytes of the header before version 3, without the packing.
const OLD: u64 = 12;

/// Bytes of the header of version 5, which may name a colour profile.
const WITH_PROFILE: u64 = 124;

/// The least that a header has.
const LEAST: [usize; 2] = [26, 34];

/// What a header says.
#[cfg_attr(not(feature = "images"), allow(dead_code))]
struct Header {
    /// Bytes of the whole file.
    stated: u64,
    rows_at: u64,
    /// Bytes of all rows; `None` if they are packed.
    plain_rows: Option<u64>,
    /// Bytes of packed rows, as stated.
    packed_rows: u64,
    /// Where the colour profile ends, or 0.
    profile_end: u64,
}

impl Header {
    /// `None` if the file is of another kind.
    fn read(file: &mut impl BufRead) -> io::Result<Option<Header>> {
        const PLAIN: [u64; 3] = [0, 3, 6];
        let mut head = Vec::new();
        file.take(138).read_to_end(&mut head)?;
        let length = head.len();
        head.resize(138, 0);
        if !head.starts_with(b"BM") {
            return Ok(None);
        }
        let word = |at: usize| le16(&head, at + 2) << 16 | le16(&head, at);
        let is_old = word(14) == OLD;
        if length < LEAST[usize::from(!is_old)] {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let (width, height, bits, packing) = if is_old {
            (le16(&head, 18), le16(&head, 20), le16(&head, 24), 0)
        } else {
            let height = (word(22) as u32).cast_signed().unsigned_abs();
            (word(18), height.into(), le16(&head, 28), word(30))
        };
        let row = (width * bits).div_ceil(32) * 4;
        Ok(Some(Header {
            stated: word(2),
            rows_at: word(10),
            plain_rows: PLAIN.contains(&packing).then(|| row.saturating_mul(height)),
            packed_rows: word(34),
            profile_end: match word(14) {
                WITH_PROFILE => 14 + word(126) + word(130),
                _ => 0,
            },
        }))
    }
}

/// The end of the rows, without which a picture is cut off. Packed rows have no length that the size tells.
pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let header = Header::read(file)?;
    Ok(header.and_then(|header| Some(header.plain_rows?.saturating_add(header.rows_at))))
}

/// The end of all that the header claims for the file, which may be more than there is: rows, a profile, the
/// length that it states.
#[cfg(feature = "images")]
pub(in crate::source) fn claimed_end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    let Some(header) = Header::read(file)? else {
        return Ok(None);
    };
    let rows = header.plain_rows.unwrap_or(header.packed_rows);
    let end = rows
        .saturating_add(header.rows_at)
        .max(header.profile_end)
        .max(header.stated);
    Ok((rows > 0).then_some(end))
}
