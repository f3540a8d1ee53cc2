//! PCX files. Read only.
//!
//! ```text
//!  0: 10, version, packing, bits | 4: left, top, right, bottom | 12: pixels an inch across, down | .. 128
//! ```

use crate::annotations::bytes::array;
use crate::annotations::{Annotations, Density, DensityUnit, FileMetadata};

/// What a file says beside its pixels: its resolution.
#[must_use]
pub fn read(file: &[u8]) -> FileMetadata {
    let number = |at| array(file, at).map(u16::from_le_bytes);
    let density = || {
        let (x, y) = (number(12)?, number(14)?);
        // Some programs store the size of a screen here.
        let is_size = [(320, 200), (640, 350), (640, 480), (800, 600)].contains(&(x, y));
        (!is_size).then(|| Density::new(f64::from(x), f64::from(y), DensityUnit::Inch))?
    };
    FileMetadata {
        annotations: Annotations {
            density: density(),
            ..Annotations::default()
        },
        ..FileMetadata::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_stands_behind_the_borders() {
        let file = |x: u16, y: u16| {
            let mut file = vec![10, 5, 1, 8, 0, 0, 0, 0, 7, 0, 7, 0];
            file.extend([x.to_le_bytes(), y.to_le_bytes()].concat());
            read(&file).annotations.density
        };
        assert_eq!(file(300, 150), Density::new(300.0, 150.0, DensityUnit::Inch));
        assert_eq!(file(0, 0), None);
        assert_eq!(file(640, 480), None);
        assert_eq!(read(&[10, 5, 1]), FileMetadata::default());
    }
}
