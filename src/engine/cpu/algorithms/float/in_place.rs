//! Sums of one mask of 32-bit samples, which are read where they lie in the picture and stored in the result
//! without a detour: where nothing is to be done to samples or sums but to add them up.
//!
//! ```text
//! row of the picture        x x x x x x x x x x x x x x x x x x
//! columns of the result     left   |       middle       | right
//! lines of their sums   h h x x x h h                             copies of pixels with a halo
//!                               x x x x x x x x x x x x x x       rows of the picture
//!                                                   h h x x x h h
//! ```
//!
//! Taps of the middle columns lie in the picture. Those at either side are a few vectors of pixels wide. A
//! separable mask's row pass makes lines of all columns, which its column pass reads.

use super::masks::Masks;
use super::part::{EdgeMemory, InPlaceMemory, Part};
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::strip::{OutputRows, Strip};
use crate::engine::cpu::rows::sums::fused::{
    End, Lines, MOST_LINES, Next, ROWS, Taps, along_picture_row, along_row, sums,
};
use crate::engine::cpu::simd::float::Samples;
use crate::engine::cpu::simd::levels::Levels;
use crate::engine::cpu::simd::scratch::{LineRing, aligned, room, spread};
use crate::frame::Layout;
use std::ops::Range;

/// The columns of a part in pixels, split by what their sums read.
pub(super) struct ColumnSplit {
    /// The first pixels, if they read pixels outside the picture.
    left: Range<usize>,
    /// Whole vectors of pixels that read none.
    middle: Range<usize>,
    /// The rest.
    right: Range<usize>,
}

/// The split of `columns` of rows of `width` pixels, for vectors of `lanes` samples; `None` if there is no
/// middle.
pub(super) fn split_columns(
    masks: &Masks,
    columns: &Range<usize>,
    width: usize,
    lanes: usize,
) -> Option<ColumnSplit> {
    let half = masks.size.0 / 2;
    let is_first = columns.start < half;
    let start = columns.start + if is_first { half.next_multiple_of(lanes) } else { 0 };
    let end = columns.end.min(width.saturating_sub(half));
    let pixels = end.saturating_sub(start) / lanes * lanes;
    (pixels > 0).then(|| ColumnSplit {
        left: columns.start..start,
        middle: start..start + pixels,
        right: start + pixels..columns.end,
    })
}

/// The columns at one side of the middle: the sources of their lines.
struct Edge<'a> {
    pixels: &'a Range<usize>,
    span: Span,
    /// Samples of the columns in a row, up to whole vectors.
    samples: usize,
    /// Samples of a line: those of the columns, and a halo.
    pitch: usize,
}

impl Edge<'_> {
    /// Copies a row of the plane to a line. `outside` is a pixel of the border's constant.
    #[inline(always)]
    fn load(&self, row: &[f32], outside: &[f32], to: &mut [f32]) {
        let channels = outside.len();
        let span = &self.span;
        let from = &row[span.inside.start * channels..span.inside.end * channels];
        to[span.lead * channels..][..from.len()].copy_from_slice(from);
        for &(place, from) in &span.outside {
            let pixel = match from {
                Some(x) => &row[x * channels..][..channels],
                None => outside,
            };
            to[place * channels..][..channels].copy_from_slice(pixel);
        }
    }
}

/// What the rows of a strip are made from.
struct InPlace<'a> {
    part: &'a Part<'a>,
    masks: &'a Masks,
    split: &'a ColumnSplit,
    edges: Vec<Edge<'a>>,
    /// The start values of the sums of a row, up to whole vectors.
    starts: &'a [f32],
    /// A row of the border's constant.
    outside: &'a [f32],
    channels: usize,
}

impl Part<'_> {
    /// The split of the columns, if their results are sums of stored samples, and these lie in memory as
    /// numbers do.
    pub(super) fn in_place(
        &self,
        masks: &Masks,
        layout: &Layout,
        strip: &Strip<'_>,
        lanes: usize,
    ) -> Option<ColumnSplit> {
        let picture = &self.reader.picture;
        let geometry = picture.layout.planes()[strip.plane];
        let is_aligned = |bytes: &[u8], stride: usize| {
            bytes.as_ptr().cast::<f32>().is_aligned() && stride.is_multiple_of(size_of::<f32>())
        };
        let lie_as_numbers = is_aligned(strip.bytes, layout.planes()[strip.plane].stride)
            && is_aligned(&picture.bytes[geometry.offset..], geometry.stride);
        if !lie_as_numbers || !self.filter.makes_in_place(masks, strip.plane) {
            return None;
        }
        split_columns(masks, &self.columns, geometry.width, lanes)
    }

    /// Makes these columns in all rows of the strip.
    #[inline(always)]
    pub(super) fn make_in_place<S: Levels>(
        &self,
        s: S,
        (masks, split): (&Masks, &ColumnSplit),
        layout: &Layout,
        strip: &mut Strip<'_>,
        memory: &mut InPlaceMemory,
    ) {
        let (channels, half) = (self.reader.channels(), masks.size.0 / 2);
        let width = self.reader.picture.layout.planes()[strip.plane].width;
        let whole = |pixels: &Range<usize>| (pixels.len() * channels).next_multiple_of(S::LANES);
        let starts = room(&mut memory.starts, whole(&self.columns));
        self.starts(&mut starts[..self.columns.len() * channels]);
        starts[self.columns.len() * channels..].fill(0.0);
        let outside = room(&mut memory.outside, width * channels);
        for pixel in outside.chunks_exact_mut(channels) {
            pixel.copy_from_slice(&self.reader.outside);
        }
        let edges = [&split.left, &split.right].into_iter();
        let edges = edges.filter(|pixels| !pixels.is_empty()).map(|pixels| Edge {
            pixels,
            span: Span::around(pixels, half, width, self.reader.border),
            samples: whole(pixels),
            pitch: whole(pixels) + 2 * half * channels,
        });
        let work = InPlace {
            part: self,
            masks,
            split,
            edges: edges.collect(),
            starts,
            outside,
            channels,
        };
        work.make(
            s,
            layout,
            strip,
            (&mut memory.ring, &mut memory.spare),
            &mut memory.edges,
        );
    }
}

impl InPlace<'_> {
    /// Row `j` of the rows that the strip reads.
    #[inline(always)]
    fn row(&self, j: usize) -> &[f32] {
        let part = self.part;
        let y = (part.first_row + j) as i64 - (self.masks.size.1 / 2) as i64;
        match part.reader.border.index(y, part.height) {
            Some(y) => bytemuck::cast_slice(part.reader.picture.row(part.reader.plane, y)),
            None => self.outside,
        }
    }

    /// The samples of pixels of a row of the plane.
    fn samples(&self, pixels: &Range<usize>) -> Range<usize> {
        pixels.start * self.channels..pixels.end * self.channels
    }

    /// Index in a row of the first sample that the middle reads.
    fn first(&self) -> usize {
        (self.split.middle.start - self.masks.size.0 / 2) * self.channels
    }

    /// Makes the rows of the strip.
    #[inline(always)]
    fn make<S: Levels>(
        &self,
        s: S,
        layout: &Layout,
        strip: &mut Strip<'_>,
        (ring, spare): (&mut Vec<f32>, &mut Vec<f32>),
        memory: &mut EdgeMemory,
    ) {
        let (lines, part) = (self.masks.lines(), self.part);
        let mut ring = LineRing::new(ring, (lines, spread(self.starts.len())), 0);
        let (stride, row_bytes) = (layout.planes()[strip.plane].stride, size_of_val(self.outside));
        for k in (0..strip.rows).step_by(ROWS) {
            let end = ((k + ROWS) * stride).min(strip.bytes.len());
            let (there, later) = strip.bytes.split_at_mut(end);
            let out = OutputRows {
                bytes: &mut there[k * stride..],
                stride,
                row_bytes,
                spare: bytemuck::cast_slice_mut(room(spare, (ROWS - 1) * self.outside.len())),
            };
            let out: [&mut [f32]; ROWS] = out.split().map(bytemuck::cast_slice_mut);
            let below = (strip.plane, part.first_row + k + ROWS + self.masks.size.1 / 2);
            let next = Next::of(part.reader.picture, below, (later, stride), &self.split.middle);
            if let Some(row) = &self.masks.row {
                while let Some((j, to)) = ring.next_before(k + lines) {
                    self.pass_along(s, row, j, to, memory);
                }
                let rows = lines_of(lines, |j| &ring.all()[ring.slot(k + j)..]);
                let read = (&rows[..lines], 0);
                self.store(s, read, next.written(), (out, &part.columns), &mut memory.sums);
            } else {
                self.make_direct(s, k, next, out, memory);
            }
        }
    }

    /// Makes line `j` of a separable mask by its row pass.
    #[inline(always)]
    fn pass_along<S: Samples>(
        &self,
        s: S,
        weights: &[f32],
        j: usize,
        to: &mut [f32],
        memory: &mut EdgeMemory,
    ) {
        let (row, start) = (self.row(j), self.part.columns.start * self.channels);
        let in_line = |pixels| {
            let samples = self.samples(pixels);
            samples.start - start..samples.end - start
        };
        for edge in &self.edges {
            let line = aligned(&mut memory.lines, edge.pitch);
            edge.load(row, &self.part.reader.outside, line);
            let made = aligned(&mut memory.sums, edge.samples);
            along_row(s, (weights, 0.0), line, self.channels, made, |sum| sum);
            let to = &mut to[in_line(edge.pixels)];
            to.copy_from_slice(&made[..to.len()]);
        }
        let to = &mut to[in_line(&self.split.middle)];
        let rows = [row, self.row(j + ROWS)].map(|row| &row[self.first()..]);
        along_picture_row(s, (weights, 0.0), rows.into(), self.channels, to);
    }

    /// Makes the output rows from row `k` of the strip on, both sides and then the middle, by a mask that is
    /// not separable.
    #[inline(always)]
    fn make_direct<S: Samples>(
        &self,
        s: S,
        k: usize,
        next: Next<'_>,
        mut out: [&mut [f32]; ROWS],
        memory: &mut EdgeMemory,
    ) {
        let lines = self.masks.lines();
        for edge in &self.edges {
            let copies = aligned(&mut memory.lines, lines * edge.pitch);
            for (j, line) in copies.chunks_exact_mut(edge.pitch).enumerate() {
                edge.load(self.row(k + j), &self.part.reader.outside, line);
            }
            let rows = lines_of(lines, |j| &copies[j * edge.pitch..][..edge.pitch]);
            let out = out.each_mut().map(|row| &mut **row);
            self.store(
                s,
                (&rows[..lines], 0),
                Next::none(),
                (out, edge.pixels),
                &mut memory.sums,
            );
        }
        let rows = lines_of(lines, |j| self.row(k + j));
        let read = (&rows[..lines], self.first());
        self.store(s, read, next, (out, &self.split.middle), &mut memory.sums);
    }

    /// Stores the sums of `pixels` of the output rows, from the samples of `rows` from index `from` on. The
    /// last, partial vectors go through `memory`.
    #[inline(always)]
    fn store<S: Samples>(
        &self,
        s: S,
        (rows, from): (&[&[f32]], usize),
        next: Next<'_>,
        (out, pixels): ([&mut [f32]; ROWS], &Range<usize>),
        memory: &mut Vec<f32>,
    ) {
        let taps: &Taps<f32> = &self.masks.masks[0];
        let pixel_stride = self.channels;
        let samples = self.samples(pixels);
        let whole = samples.len() / S::LANES * S::LANES;
        let mut rests: [&mut [f32]; ROWS] = Default::default();
        let mut rests_of = rests.iter_mut();
        let body = out.map(|row| {
            let (body, rest) = row[samples.clone()].split_at_mut(whole);
            if let Some(to) = rests_of.next() {
                *to = rest;
            }
            body
        });
        let lines = Lines {
            rows,
            from,
            pixel_stride,
        };
        sums(s, taps, lines, (&self.starts[..whole], next), body, Quiet);
        if whole == samples.len() {
            return;
        }
        let lines = Lines {
            from: from + whole,
            ..lines
        };
        let mut vectors = aligned(memory, ROWS * S::LANES).chunks_exact_mut(S::LANES);
        let mut last: [&mut [f32]; ROWS] = std::array::from_fn(|_| vectors.next().unwrap_or_default());
        let starts = (&self.starts[whole..][..S::LANES], Next::none());
        sums(
            s,
            taps,
            lines,
            starts,
            last.each_mut().map(|row| &mut **row),
            Quiet,
        );
        for (to, from) in rests.into_iter().zip(last) {
            to.copy_from_slice(&from[..to.len()]);
        }
    }
}

/// Every NaN becomes the quiet NaN.
#[derive(Clone, Copy)]
struct Quiet;

impl<S: Samples> End<S> for Quiet {
    #[inline(always)]
    fn of(self, s: S, sum: S::V) -> S::V {
        s.quiet(sum)
    }
}

/// The first `count` lines.
#[inline(always)]
fn lines_of<'a>(count: usize, line: impl Fn(usize) -> &'a [f32]) -> [&'a [f32]; MOST_LINES] {
    std::array::from_fn(|j| if j < count { line(j) } else { &[] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_covers_all_columns_and_the_middle_reads_the_picture_only() {
        let mut with_middle = 0;
        for (mask_width, lanes) in [(1, 4), (3, 4), (3, 16), (15, 8), (63, 16)] {
            let half = mask_width / 2;
            let masks = Masks {
                row: None,
                masks: Vec::new(),
                combining: None,
                size: (mask_width, 3),
            };
            for width in 1..200 {
                for columns in [0..width, 0..width / 2, width / 2..width, width / 3..width / 2] {
                    let Some(found) = split_columns(&masks, &columns, width, lanes) else {
                        continue;
                    };
                    with_middle += 1;
                    let ColumnSplit { left, middle, right } = found;
                    assert_eq!(
                        (left.start, right.end),
                        (columns.start, columns.end),
                        "{width} {columns:?}"
                    );
                    assert_eq!(
                        (left.end, middle.end),
                        (middle.start, right.start),
                        "{width} {columns:?}"
                    );
                    assert!(
                        middle.start >= half && middle.end + half <= width,
                        "{width} {columns:?}"
                    );
                    assert!(middle.len().is_multiple_of(lanes) && !middle.is_empty());
                }
            }
        }
        assert!(with_middle > 1000, "{with_middle}");
    }
}
