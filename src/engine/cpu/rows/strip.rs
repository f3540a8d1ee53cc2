//! A picture in memory, and the strips of rows that threads filter.

use crate::filter::{Kernel, Step};
use crate::frame::Layout;
use std::ops::Range;

/// A picture to read.
#[derive(Clone, Copy)]
pub(in crate::engine::cpu) struct Picture<'a> {
    pub(in crate::engine::cpu) layout: &'a Layout,
    pub(in crate::engine::cpu) bytes: &'a [u8],
}

impl<'a> Picture<'a> {
    /// Row `y` of plane `index`, without its padding.
    #[inline]
    pub(in crate::engine::cpu) fn row(&self, index: usize, y: usize) -> &'a [u8] {
        let (bytes, start) = self.place(index, y);
        &bytes[start..start + self.layout.row_bytes(index)]
    }

    /// Some pixels of row `y` of plane `index`.
    #[inline]
    pub(in crate::engine::cpu) fn pixels(
        &self,
        (index, y): (usize, usize),
        pixels: &Range<usize>,
    ) -> &'a [u8] {
        let bytes = self.layout.planes()[index].channels * self.layout.format().bytes_per_sample();
        &self.row(index, y)[pixels.start * bytes..pixels.end * bytes]
    }

    /// The picture's bytes, and where row `y` of plane `index` begins in them.
    pub(in crate::engine::cpu) fn place(&self, index: usize, y: usize) -> (&'a [u8], usize) {
        let plane = &self.layout.planes()[index];
        (self.bytes, plane.offset + y * plane.stride)
    }

    /// `count` rows of plane `index` from row `y` on, with the padding between them; fewer at the plane's
    /// end, none if row `y` is outside.
    pub(in crate::engine::cpu) fn rows(&self, index: usize, y: i64, count: usize) -> &'a [u8] {
        let plane = self.layout.planes()[index];
        let Some(y) = usize::try_from(y).ok().filter(|&y| y < plane.height) else {
            return &[];
        };
        let last = (y + count).min(plane.height).max(y + 1) - 1;
        let end = plane.offset + last * plane.stride + self.layout.row_bytes(index);
        &self.bytes[plane.offset + y * plane.stride..end]
    }
}

/// Rows of one plane of the result, for one thread to write.
pub(in crate::engine::cpu) struct Strip<'a> {
    /// Index of the plane.
    pub(in crate::engine::cpu) plane: usize,
    /// Number of the first row in the plane.
    pub(in crate::engine::cpu) first_row: usize,
    /// Number of rows.
    pub(in crate::engine::cpu) rows: usize,
    /// The rows, with the plane's stride; the last one ends without padding.
    pub(in crate::engine::cpu) bytes: &'a mut [u8],
}

/// The output rows of one call. The last call of a strip may have fewer; the missing rows are written to
/// `spare` and dropped.
pub(in crate::engine::cpu) struct OutputRows<'a> {
    /// The rows that the strip has.
    pub(in crate::engine::cpu) bytes: &'a mut [u8],
    /// Bytes from a row to the next.
    pub(in crate::engine::cpu) stride: usize,
    /// Bytes of a row without padding.
    pub(in crate::engine::cpu) row_bytes: usize,
    /// Memory for as many rows as may be missing.
    pub(in crate::engine::cpu) spare: &'a mut [u8],
}

impl<'a> OutputRows<'a> {
    /// The rows one by one, `R` of them.
    pub(in crate::engine::cpu) fn split<const R: usize>(self) -> [&'a mut [u8]; R] {
        let there = self.bytes.chunks_mut(self.stride);
        let there = there.map(|row| &mut row[..self.row_bytes]);
        let mut rows = there.chain(self.spare.chunks_exact_mut(self.row_bytes));
        std::array::from_fn(|_| rows.next().unwrap_or_default())
    }
}

/// A row of a picture.
pub(in crate::engine::cpu) struct RowPosition {
    /// Index of the plane.
    pub(in crate::engine::cpu) plane: usize,
    /// Number of the row in the plane.
    pub(in crate::engine::cpu) row: usize,
}

impl Strip<'_> {
    /// Calls `make` with each row of the strip, padding excluded.
    pub(in crate::engine::cpu) fn each_row(
        &mut self,
        layout: &Layout,
        mut make: impl FnMut(RowPosition, &mut [u8]),
    ) {
        let (stride, len) = (layout.planes()[self.plane].stride, layout.row_bytes(self.plane));
        for (k, row) in self.bytes.chunks_mut(stride).take(self.rows).enumerate() {
            let position = RowPosition {
                plane: self.plane,
                row: self.first_row + k,
            };
            make(position, &mut row[..len]);
        }
    }
}

/// The limits that decide how many strips a plane is cut into.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine::cpu) struct StripCount {
    /// Threads that share the strips.
    threads: usize,
    /// Most strips of a plane.
    most: usize,
    /// Fewest rows of a strip, unless the plane is one strip.
    least_rows: usize,
}

impl StripCount {
    /// For `step` on `threads` threads.
    pub(in crate::engine::cpu) fn of(step: &Step, threads: usize) -> StripCount {
        let height = step.kernel.size().1;
        match &step.kernel {
            Kernel::Separable(_) => StripCount::new(height, true, threads),
            Kernel::Direct(_) | Kernel::Combined(_) | Kernel::Weighted(_) => {
                StripCount::new(height, false, threads)
            }
            Kernel::Pyramid(_) => StripCount::of_pyramid(height, threads),
        }
    }

    /// For a pyramid whose results depend on `height` rows. Each strip makes the low rows of its halo again.
    pub(in crate::engine::cpu) fn of_pyramid(height: usize, threads: usize) -> StripCount {
        StripCount {
            threads,
            most: threads,
            least_rows: height / 2,
        }
    }

    /// For a mask of `height` rows.
    pub(in crate::engine::cpu) fn new(height: usize, is_separable: bool, threads: usize) -> StripCount {
        // Each strip of a separable mask repeats the row pass of its halo.
        let (each, rows) = if is_separable { (2, 8) } else { (4, 2) };
        StripCount {
            threads,
            most: each * threads,
            least_rows: (rows * height).max(32),
        }
    }
}

/// Cuts the planes in `bytes` into strips: one per plane for one thread, otherwise up to a few per thread for
/// balance, but tall enough that overlapping halos cost little. Heights are multiples of `at_once(plane)`,
/// the rows that an algorithm makes at once, except for the last strip of a plane.
pub(in crate::engine::cpu) fn strips<'a>(
    StripCount {
        threads,
        most,
        least_rows,
    }: StripCount,
    layout: &Layout,
    mut bytes: &'a mut [u8],
    at_once: impl Fn(usize) -> usize,
) -> Vec<Strip<'a>> {
    let mut strips = Vec::new();
    let mut at = 0;
    for (index, plane) in layout.planes().iter().enumerate() {
        let (_, rest) = bytes.split_at_mut(plane.offset - at);
        let len = plane.stride * (plane.height - 1) + layout.row_bytes(index);
        let (mut own, rest) = rest.split_at_mut(len);
        at = plane.offset + len;
        bytes = rest;
        let at_once = at_once(index);
        let batches = plane.height.div_ceil(at_once);
        let parts = match (plane.height / least_rows).clamp(1, most) {
            _ if threads == 1 => 1,
            few if few < threads => few,
            // The same number for each thread.
            many => many / threads * threads,
        };
        let rows = at_once * batches.div_ceil(parts.min(batches));
        let mut first_row = 0;
        while first_row < plane.height {
            let rows = rows.min(plane.height - first_row);
            let end = (rows * plane.stride).min(own.len());
            let (strip, rest) = own.split_at_mut(end);
            own = rest;
            strips.push(Strip {
                plane: index,
                first_row,
                rows,
                bytes: strip,
            });
            first_row += rows;
        }
    }
    strips
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::{Algorithm, Border, Chain, Plan, Planes};
    use crate::frame::Colour;

    #[test]
    fn strips_are_whole_batches_and_cover_the_plane() {
        let chain = Chain {
            filters: vec!["mask:rows=1 2 3;4 5 6;7 8 9".parse().unwrap()],
            border: Border::Replicate,
            planes: Planes::All,
            algorithm: Algorithm::Direct,
            alpha: Default::default(),
        };
        let format = "gray".parse().unwrap();
        let step = &Plan::new(&chain, format, &Colour::default()).unwrap().steps[0];
        let rows = |height: usize, threads: usize, at_once: usize| -> Vec<usize> {
            let layout = Layout::new(format, 8, height, 1).unwrap();
            let mut bytes = vec![0; layout.size()];
            let strips = strips(StripCount::of(step, threads), &layout, &mut bytes, |_| at_once);
            assert!(
                strips
                    .windows(2)
                    .all(|two| two[0].first_row + two[0].rows == two[1].first_row)
            );
            strips.iter().map(|strip| strip.rows).collect()
        };
        assert_eq!(rows(1080, 1, 104), [1080]);
        // Eleven batches: two at a time for two threads, each by itself for more.
        assert_eq!(rows(1080, 2, 104), [208, 208, 208, 208, 208, 40]);
        assert_eq!(rows(1080, 8, 104), [[104; 10].to_vec(), vec![40]].concat());
        assert_eq!(rows(90, 4, 104), [90]);
        assert_eq!(rows(1081, 2, 2), [[136; 7].to_vec(), vec![129]].concat());
    }

    #[test]
    fn rows_are_those_of_the_plane_that_are_there() {
        let layout = Layout::new("yuv420p".parse().unwrap(), 6, 4, 32).unwrap();
        let bytes: Vec<u8> = (0..layout.size()).map(|at| at as u8).collect();
        let picture = Picture {
            layout: &layout,
            bytes: &bytes,
        };
        let plane = layout.planes()[1];
        let at = |y: usize| plane.offset + y * plane.stride;
        assert_eq!(picture.rows(1, 0, 2), &bytes[at(0)..at(1) + 3]);
        assert_eq!(picture.rows(1, 1, 2), &bytes[at(1)..at(1) + 3]);
        for (y, count) in [(-1, 2), (2, 2), (0, 0)] {
            let expected: &[u8] = if y == 0 { &bytes[at(0)..at(0) + 3] } else { &[] };
            assert_eq!(picture.rows(1, y, count), expected);
        }
    }
}
