//! Samples of one component at the places of another's, where chroma is subsampled.
//!
//! ```text
//!   pixels            0   1   2   3   4
//!   chroma, left      c0      c1      c2      pixel 1 = (c0 + c1) / 2
//!                                             c1 = (p1 + 2 p2 + p3) / 4
//!   chroma, centre      c0      c1            pixel 1 = (3 c0 + c1) / 4
//!                                             c1 = (p1 + 3 p2 + 3 p3 + p4) / 8
//! ```
//!
//! Upwards samples are interpolated linearly; downwards they are weighted by the same triangle, so that each
//! pixel counts for the samples between which it lies. Beyond the ends the last sample counts.
//!
//! In an interlaced picture even rows are made of even rows, and odd ones of odd ones. They lie where those
//! of a progressive one do: the first of 4:2:0 a quarter of the way from one row of the top field to the
//! next, of the bottom field three quarters.

use crate::frame::{Colour, Frame, PixelFormat};
use crate::media::convert::component::Component;

/// Where samples of one row or column come from.
struct Axis {
    /// How many there are of each.
    taps: usize,
    /// Which samples each is made of, and what they count; sums are times `2^bits`.
    places: Vec<(u32, i32)>,
    bits: u32,
}

/// Samples of a row or column: how many, log2 of the pixels from one to the next, and where the first lies,
/// in halves of a pixel.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Samples {
    count: usize,
    log2: u32,
    origin: i32,
}

impl Axis {
    fn new(from: Samples, to: Samples) -> Axis {
        let count = if to == from {
            1
        } else {
            2 << to.log2.saturating_sub(from.log2)
        };
        // Halves of a pixel from one sample to the next; the triangle is as wide as the wider of the steps.
        let (step, new_step) = (2_i64 << from.log2, 2_i64 << to.log2);
        let width = step.max(new_step);
        let mut places = Vec::with_capacity(count * to.count);
        for index in 0..to.count as i64 {
            let at = index * new_step + i64::from(to.origin) - i64::from(from.origin);
            // The first sample within the triangle.
            let first = match to == from {
                true => index,
                false => (at - width).div_euclid(step) + 1,
            };
            for source in first..first + count as i64 {
                let weight = match to == from {
                    true => 1,
                    false => (width - (source * step - at).abs()).max(0),
                };
                let source = source.clamp(0, from.count as i64 - 1);
                places.push((source as u32, weight as i32));
            }
        }
        let sum: i64 = places[..count].iter().map(|&(_, weight)| i64::from(weight)).sum();
        Axis {
            taps: count,
            places,
            bits: sum.trailing_zeros(),
        }
    }

    /// The rows of two fields, each from those of the same one; none where a field has no rows.
    fn of_fields(from: Samples, to: Samples) -> Option<[Axis; 2]> {
        let field = |parity: u32| {
            let (from, to) = (from.of_field(parity), to.of_field(parity));
            let mut axis = (from.count.min(to.count) > 0).then(|| Axis::new(from, to))?;
            axis.places
                .iter_mut()
                .for_each(|(row, _)| *row = 2 * *row + parity);
            Some(axis)
        };
        Some([field(0)?, field(1)?])
    }

    /// The same with weights that are twice as large.
    fn doubled(mut self) -> Axis {
        self.places.iter_mut().for_each(|(_, weight)| *weight *= 2);
        self.bits += 1;
        self
    }

    fn of(&self, index: usize) -> &[(u32, i32)] {
        &self.places[index * self.taps..][..self.taps]
    }
}

impl Samples {
    /// Every other one of a column, from the first or the second on.
    fn of_field(self, parity: u32) -> Samples {
        Samples {
            count: (self.count + 1 - parity as usize) / 2,
            log2: self.log2 + 1,
            origin: self.origin + (parity << (self.log2 + 1)) as i32,
        }
    }
}

/// The samples of one component where those of another lie.
pub(super) struct Grid {
    x: Axis,
    y: Axis,
    /// In interlaced pictures, where rows are not all at their own places.
    fields: Option<[Axis; 2]>,
}

impl Grid {
    /// From chroma or not, of a format with these colour facts, to that of another; frames have this size.
    pub(super) fn new(
        (from, before, of_chroma): (PixelFormat, Colour, bool),
        (to, after, to_chroma): (PixelFormat, Colour, bool),
        (width, height): (usize, usize),
    ) -> Grid {
        let samples = |format: PixelFormat, colour: Colour, is_chroma: bool| {
            let log2 = match is_chroma {
                true => format.chroma_subsampling(),
                false => (0, 0),
            };
            let origin = match is_chroma {
                true => colour.chroma_origin(log2),
                false => (0, 0),
            };
            [(width, log2.0, origin.0), (height, log2.1, origin.1)].map(|(size, log2, origin)| Samples {
                count: size.div_ceil(1 << log2),
                log2,
                origin,
            })
        };
        let (from, to) = (samples(from, before, of_chroma), samples(to, after, to_chroma));
        let mut y = Axis::new(from[1], to[1]);
        let fields = match from[1] == to[1] {
            true => None,
            false => Axis::of_fields(from[1], to[1]),
        };
        if fields.is_some() {
            // Rows of a field are twice as far apart, and their weights twice as fine.
            y = y.doubled();
        }
        Grid {
            x: Axis::new(from[0], to[0]),
            y,
            fields,
        }
    }

    /// The rows that row `y` is made of, and what they count.
    fn rows(&self, is_interlaced: bool, y: usize) -> &[(u32, i32)] {
        match self.fields.as_ref().filter(|_| is_interlaced) {
            Some(fields) => fields[y % 2].of(y / 2),
            None => self.y.of(y),
        }
    }

    /// Bits that [`Grid::row`]'s samples have below a level.
    pub(super) fn bits(&self) -> u32 {
        self.x.bits + self.y.bits
    }

    /// Row `y` of the samples of `component`, times two to the power of [`Grid::bits`]; of the same field
    /// where the frame is interlaced.
    pub(super) fn row(
        &self,
        (frame, component): (&Frame, Component),
        y: usize,
        read: &mut Vec<u16>,
        sums: &mut Vec<i32>,
        row: &mut [i32],
    ) {
        let width = frame.layout().planes()[component.plane].width;
        read.resize(width, 0);
        let is_alone = self.x.taps == 1;
        sums.clear();
        sums.resize(width, 0);
        // On a row of chroma the next one counts nothing.
        let rows = self.rows(frame.metadata.field_order.is_interlaced(), y);
        for &(line, weight) in rows.iter().filter(|(_, weight)| *weight != 0) {
            component.read(frame, line as usize, read);
            let all = sums.iter_mut().zip(&*read);
            all.for_each(|(sum, &sample)| *sum += weight * i32::from(sample));
        }
        if is_alone {
            row.copy_from_slice(sums);
            return;
        }
        for (sample, places) in row.iter_mut().zip(self.x.places.chunks_exact(self.x.taps)) {
            let terms = places.iter().map(|&(at, weight)| weight * sums[at as usize]);
            *sample = terms.sum();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(count: usize, log2: u32, origin: i32) -> Samples {
        Samples { count, log2, origin }
    }

    /// The weights of a sample, those of the same place together.
    fn weights(from: Samples, to: Samples, index: usize) -> (Vec<(u32, i32)>, i32) {
        let axis = Axis::new(from, to);
        let mut all: Vec<(u32, i32)> = Vec::new();
        for &(at, weight) in axis.of(index).iter().filter(|(_, weight)| *weight > 0) {
            match all.last_mut() {
                Some(last) if last.0 == at => last.1 += weight,
                _ => all.push((at, weight)),
            }
        }
        (all, 1 << axis.bits)
    }

    #[test]
    fn samples_lie_where_the_location_says() {
        let (pixels, left, centre) = (samples(9, 0, 0), samples(5, 1, 0), samples(5, 1, 1));
        assert_eq!(weights(left, pixels, 2), (vec![(1, 4)], 4));
        assert_eq!(weights(left, pixels, 3), (vec![(1, 2), (2, 2)], 4));
        assert_eq!(weights(centre, pixels, 2), (vec![(0, 1), (1, 3)], 4));
        assert_eq!(weights(centre, pixels, 0), (vec![(0, 4)], 4));
        assert_eq!(weights(pixels, left, 1), (vec![(1, 2), (2, 4), (3, 2)], 8));
        assert_eq!(
            weights(pixels, centre, 1),
            (vec![(1, 1), (2, 3), (3, 3), (4, 1)], 8)
        );
        assert_eq!(weights(pixels, left, 0), (vec![(0, 6), (1, 2)], 8));
        assert_eq!(weights(pixels, pixels, 7), (vec![(7, 1)], 1));
        // Four pixels, whose middle is one and a half behind the first.
        let (quarter, half) = (samples(3, 2, 3), samples(5, 1, 0));
        assert_eq!(weights(quarter, pixels, 4), (vec![(0, 3), (1, 5)], 8));
        assert_eq!(
            weights(half, quarter, 1),
            (vec![(1, 1), (2, 5), (3, 7), (4, 3)], 16)
        );
    }

    /// Whatever the places, weights add up to the same power of two.
    #[test]
    fn a_constant_stays_what_it_is() {
        for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))) {
            for (first, second) in (0..8).flat_map(|first| (0..8).map(move |second| (first, second))) {
                let axis = Axis::new(samples(7, from, first), samples(6, to, second));
                for index in 0..6 {
                    let sum: i32 = axis.of(index).iter().map(|&(_, weight)| weight).sum();
                    assert_eq!(sum, 1 << axis.bits, "{from} {to} {first} {second} {index}");
                }
            }
        }
    }
}
