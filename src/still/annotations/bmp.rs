//! BMP: two numbers of its header, pixels a metre along rows and along columns.
//!
//! ```text
//!  0    "BM" size .. offset    14 bytes
//!  14   size of this header    40 or more; the oldest kind has 12 and no resolution
//!  38   pixels a metre, x      38 + 4: y; both signed, little endian
//! ```

use super::{Annotations, Density, DensityUnit, Excerpt, all_lost, le32, once, overwrite};
use std::io::{self, BufRead, Read};

const X: usize = 38;
const Y: usize = 42;

fn has_place(file: &[u8]) -> bool {
    file.starts_with(b"BM") && le32(file, 14).is_some_and(|size| size >= 40) && file.len() >= Y + 4
}

/// The headers.
pub(super) fn excerpt(input: &mut impl BufRead) -> io::Result<Excerpt> {
    let mut found = Excerpt::new(&[]);
    input.take(Y as u64 + 4).read_to_end(&mut found.bytes)?;
    Ok(found)
}

pub(super) fn read(file: &[u8]) -> Annotations {
    let mut found = Annotations::default();
    if has_place(file)
        && let (Some(x), Some(y)) = (le32(file, X), le32(file, Y))
        && let (Ok(x), Ok(y)) = (i32::try_from(x), i32::try_from(y))
    {
        found.density = Density::new(x.into(), y.into(), DensityUnit::Metre);
    }
    found
}

pub(super) fn insert(given: &Annotations, mut file: Vec<u8>, lost: &mut Vec<&'static str>) -> Vec<u8> {
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
}
