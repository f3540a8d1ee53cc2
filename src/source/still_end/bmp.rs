//! The end of a BMP file, whose header states where rows begin: rows of whole 32-bit words, or packed ones.

use super::header::le16;
use std::io::{self, BufRead, ErrorKind, Read, Seek};

/// Bytes of the header before version 3, without the packing.
const OLD: u64 = 12;

/// Bytes of the header of version 5, which may name a colour profile.
const WITH_PROFILE: u64 = 124;

/// The least that a header has.
const LEAST: [usize; 2] = [26, 34];

/// Where the rows end that a header describes, if they are not packed: packed ones have no length that the
/// size gives. And where all ends that it claims for the file, which may be more than there is: rows, a
/// profile, the length that it states. Neither if the file is of another kind.
fn ends(file: &mut impl BufRead) -> io::Result<[Option<u64>; 2]> {
    const PLAIN: [u64; 3] = [0, 3, 6];
    let mut head = Vec::new();
    file.take(138).read_to_end(&mut head)?;
    let length = head.len();
    head.resize(138, 0);
    if !head.starts_with(b"BM") {
        return Ok([None, None]);
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
    let (stated, rows_at, packed_rows) = (word(2), word(10), word(34));
    let row = (width * bits).div_ceil(32) * 4;
    let plain_rows = PLAIN.contains(&packing).then(|| row.saturating_mul(height));
    let profile_end = match word(14) {
        WITH_PROFILE => 14 + word(126) + word(130),
        _ => 0,
    };
    let rows = plain_rows.unwrap_or(packed_rows);
    let claimed = rows.saturating_add(rows_at).max(profile_end).max(stated);
    Ok([
        plain_rows.map(|rows| rows.saturating_add(rows_at)),
        (rows > 0).then_some(claimed),
    ])
}

/// The end of the rows, without which a picture is cut off.
pub(super) fn end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    Ok(ends(file)?[0])
}

/// The end of all that the header claims for the file.
#[cfg(feature = "images")]
pub(in crate::source) fn claimed_end<R: BufRead + Seek>(file: &mut R) -> io::Result<Option<u64>> {
    Ok(ends(file)?[1])
}
