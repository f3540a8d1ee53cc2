//! Where the pixels of a part of a row, with a halo on both sides, come from.
//!
//! ```text
//! row                   0 1 2 3 4 5 6 7 8 9
//! band 0..4, halo 2     2 1|0 1 2 3|4 5          inside 0..6, lead 2; the border reflects
//! band 4..8, halo 2     2 3|4 5 6 7|8 9          inside 2..10, lead 0
//! ```

use crate::filter::Border;
use std::ops::Range;

/// The pixels of a line: some of a row, and a halo on both sides.
pub(in crate::engine::cpu) struct Span {
    /// Pixels of the row that lie within the picture.
    pub(in crate::engine::cpu) inside: Range<usize>,
    /// Where these begin in the line, in pixels.
    pub(in crate::engine::cpu) lead: usize,
    /// Pixels of the whole line.
    pub(in crate::engine::cpu) pixels: usize,
    /// Pixels of the line outside the picture, and which of the row they are; `None` where the border holds
    /// a constant.
    pub(in crate::engine::cpu) outside: Vec<(usize, Option<usize>)>,
}

impl Span {
    /// These pixels, which may begin before a row of `width` and end behind it.
    pub(in crate::engine::cpu) fn new(pixels: Range<i64>, width: usize, border: Border) -> Span {
        let within = |at: i64| at.clamp(0, width as i64) as usize;
        let inside = within(pixels.start)..within(pixels.end);
        let outside = (0..)
            .zip(pixels.clone())
            .filter(|(_, at)| !(0..width as i64).contains(at))
            .map(|(place, at)| (place, border.index(at, width)));
        Span {
            lead: (inside.start as i64 - pixels.start) as usize,
            pixels: (pixels.end - pixels.start) as usize,
            outside: outside.collect(),
            inside,
        }
    }

    /// `band` with so many pixels on both sides, in rows of `width`.
    pub(in crate::engine::cpu) fn around(
        band: &Range<usize>,
        halo: usize,
        width: usize,
        border: Border,
    ) -> Span {
        let pixels = band.start as i64 - halo as i64..(band.end + halo) as i64;
        Span::new(pixels, width, border)
    }
}
