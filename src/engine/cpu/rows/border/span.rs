//! Maps a part of a row with a halo on both sides to pixels of the row.
//!
//! ```text
//! row                   0 1 2 3 4 5 6 7 8 9
//! columns 0..4, halo 2  2 1|0 1 2 3|4 5          inside 0..6, lead 2; the border reflects
//! columns 4..8, halo 2  2 3|4 5 6 7|8 9          inside 2..10, lead 0
//! ```

use crate::filter::Border;
use std::ops::Range;

/// The sources of the pixels of a line: a part of a row, and a halo on both sides.
pub(in crate::engine::cpu) struct Span {
    /// The pixels of the row that the line holds.
    pub(in crate::engine::cpu) inside: Range<usize>,
    /// Index in the line of the first of these.
    pub(in crate::engine::cpu) lead: usize,
    /// Number of pixels of the line.
    pub(in crate::engine::cpu) pixels: usize,
    /// The pixels of the line outside the picture: the index in the line, and the pixel of the row that the
    /// border puts there, `None` for the constant.
    pub(in crate::engine::cpu) outside: Vec<(usize, Option<usize>)>,
}

impl Span {
    /// A line of `pixels`, which may begin before and end after a row of `width` pixels.
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

    /// A line of `columns` with `halo` pixels on both sides, in rows of `width` pixels.
    pub(in crate::engine::cpu) fn around(
        columns: &Range<usize>,
        halo: usize,
        width: usize,
        border: Border,
    ) -> Span {
        let pixels = columns.start as i64 - halo as i64..(columns.end + halo) as i64;
        Span::new(pixels, width, border)
    }
}
