//! The passes of a strip after the vertical decimation, which numbers and pairs of words share.

use super::Pyramid;
use crate::engine::cpu::rows::border::span::Span;
use crate::engine::cpu::rows::strip::OutputRows;
use crate::filter::{Convolve, PyramidGrid};
use crate::frame::Plane;

/// What the passes of a strip need to know of it.
pub(super) struct PassGeometry<'a> {
    pub(super) pyramid: &'a Pyramid,
    /// Pixels of a row.
    pub(super) width: usize,
    pub(super) channels: usize,
    /// The pixels that low pixels are decimated from.
    pub(super) span: Span,
    /// The border's constant of each component, as numbers between the passes.
    outside: Vec<i32>,
    /// The value to add to sums of the vertical decimation before the shift.
    rounding: i32,
}

impl<'a> PassGeometry<'a> {
    pub(super) fn new(pyramid: &'a Pyramid, plane: &Plane) -> PassGeometry<'a> {
        let kernel = &pyramid.kernel;
        let constant = |c: &Convolve| i32::from(c.border) << kernel.fraction_bits;
        PassGeometry {
            pyramid,
            width: plane.width,
            channels: plane.channels,
            span: Span::new(kernel.grid.pixels(plane.width), plane.width, pyramid.border),
            outside: pyramid.convolved.iter().map(constant).collect(),
            rounding: (kernel.rows.start() + pyramid.missing_in_sums()) as i32,
        }
    }

    /// Makes a component of an extended row from interleaved sums of the vertical decimation; `convert` makes
    /// what is stored of a number between the passes.
    #[inline(always)]
    pub(super) fn extend<T>(
        &self,
        sums: &[i32],
        channel: usize,
        convert: impl Fn(i32) -> T,
        extended: &mut [T],
    ) {
        match self.channels {
            1 => self.extend_component::<T, 1>(sums, channel, convert, extended),
            2 => self.extend_component::<T, 2>(sums, channel, convert, extended),
            3 => self.extend_component::<T, 3>(sums, channel, convert, extended),
            _ => self.extend_component::<T, 4>(sums, channel, convert, extended),
        }
    }

    /// The same with `C` components.
    #[inline(always)]
    fn extend_component<T, const C: usize>(
        &self,
        sums: &[i32],
        channel: usize,
        convert: impl Fn(i32) -> T,
        extended: &mut [T],
    ) {
        let (span, rounding, shift) = (&self.span, self.rounding, self.pyramid.kernel.rows.shift);
        let pixels = sums.as_chunks::<C>().0;
        let number = |sum: i32| convert((sum + rounding) >> shift);
        let line = &mut extended[span.lead..][..span.inside.len()];
        for (to, pixel) in line.iter_mut().zip(&pixels[span.inside.clone()]) {
            *to = number(pixel[channel % C]);
        }
        for &(at, from) in &span.outside {
            extended[at] = from.map_or_else(
                || convert(self.outside[channel]),
                |x| number(pixels[x][channel % C]),
            );
        }
    }
}

/// Lines in a ring: the line `k` after the first one.
pub(super) struct Slots<'a, T> {
    /// The memory of the ring.
    pub(super) elements: &'a [T],
    pub(super) start: &'a dyn Fn(usize) -> usize,
}

/// The passes of a strip.
pub(super) trait Passes {
    /// An element of a low row.
    type Low: Copy + Default;

    /// Elements of a low row.
    fn low_len(&self) -> usize;

    /// Makes the next low row from sums of the vertical decimation: the horizontal decimation, then the low
    /// filter along the row.
    fn make_low_row(&mut self, sums: &[i32], to: &mut [Self::Low]);

    /// Makes a wide row, interleaved, from a low row for each weight of the low filter: that filter along the
    /// column, then all columns.
    fn make_wide_row(&mut self, low: &Slots<'_, Self::Low>, to: &mut [i32]);

    /// Rows of the result that are made at once.
    fn at_once(&self) -> usize;

    /// Makes rows of the result from six wide rows, as many as `out` has and at most [`Passes::at_once`]. The
    /// first one lies `place` rows after a low row. `are_new` is true for the first rows from these six.
    fn make_rows(
        &mut self,
        wide: [&[i32]; PyramidGrid::TAPS],
        are_new: bool,
        place: usize,
        out: OutputRows<'_>,
    );
}
