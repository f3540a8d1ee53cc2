//! Whether a filter is the same in all directions, so that pictures may be turned before it or after it.

use super::{Filter, Mask, Response};
use crate::frame::Turn;

/// The part of a mask's largest weight by which weights that should be one may differ.
const TOLERANCE: f64 = 1e-9;

/// Weights, row by row, and how many are in a row.
struct Weights {
    columns: usize,
    weights: Vec<f64>,
}

impl Weights {
    fn of(mask: &Mask) -> Weights {
        Weights {
            columns: mask.width(),
            weights: mask.weights().to_vec(),
        }
    }

    /// Those of the mask turned as a picture is.
    fn turned(mask: &Mask, turn: Turn) -> Weights {
        let (columns, rows) = turn.shown_size((mask.width(), mask.height()));
        let mut weights = vec![0.0; columns * rows];
        let middle = |length: usize| (length / 2) as isize;
        for j in 0..mask.height() {
            for i in 0..mask.width() {
                let offset = (
                    i as isize - middle(mask.width()),
                    j as isize - middle(mask.height()),
                );
                let (x, y) = turn.shown_offset(offset);
                let (x, y) = ((x + middle(columns)) as usize, (y + middle(rows)) as usize);
                weights[y * columns + x] = mask.at(i, j);
            }
        }
        Weights { columns, weights }
    }

    /// True if these are the weights of `mask`, all of them times `sign`.
    fn are(&self, mask: &Mask, sign: f64) -> bool {
        let other = Weights::of(mask);
        let most = self.weights.iter().fold(0.0, |most: f64, w| most.max(w.abs()));
        (self.columns, self.weights.len()) == (other.columns, other.weights.len())
            && self
                .weights
                .iter()
                .zip(&other.weights)
                .all(|(a, b)| (a - sign * b).abs() <= TOLERANCE * most)
    }

    /// The same for a sum whose sign is dropped.
    fn are_but_for_sign(&self, mask: &Mask) -> bool {
        self.are(mask, 1.0) || self.are(mask, -1.0)
    }
}

impl Filter {
    /// True if pictures that are turned before this filter come out otherwise than those that are turned
    /// after it.
    pub fn depends_on(&self, turn: Turn) -> bool {
        let turned: Vec<Weights> = self.masks().map(|mask| Weights::turned(mask, turn)).collect();
        let is_same = match &self.response {
            Response::WideGaussian { .. } => true,
            Response::Linear => turned.iter().all(|weights| weights.are(&self.mask, 1.0)),
            Response::Absolute => turned.iter().all(|weights| weights.are_but_for_sign(&self.mask)),
            Response::Magnitude { .. } => turned
                .iter()
                .all(|weights| self.masks().any(|mask| weights.are_but_for_sign(mask))),
            Response::Largest { .. } => turned
                .iter()
                .all(|weights| self.masks().any(|mask| weights.are(mask, 1.0))),
        };
        !is_same
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{Buffer, Frame, Layout, PixelFormat};

    /// Exif's orientations that a filter is not the same in.
    fn dependent(filter: &str) -> Vec<u8> {
        let filter: Filter = filter.parse().unwrap();
        let depends = |&exif: &u8| filter.depends_on(Turn::from_exif(exif).unwrap());
        (1..=8).filter(depends).collect()
    }

    #[test]
    fn filters_with_a_direction_depend_on_some_turns() {
        for filter in [
            "box:size=5",
            "gaussian:sigma=2",
            "gaussian:sigma=50",
            "sharpen",
            "laplacian8",
            "sobel",
            "prewitt",
            "scharr",
            "kirsch",
        ] {
            assert!(dependent(filter).is_empty(), "{filter}");
        }
        // Rows that differ survive a mirroring left to right, columns one top to bottom.
        assert_eq!(dependent("sobel-y"), [3, 4, 5, 6, 7, 8]);
        assert_eq!(dependent("sobel-x"), [2, 3, 5, 6, 7, 8]);
        assert_eq!(dependent("mask:rows=1,1,1"), [5, 6, 7, 8]);
        // The main diagonal is an axis of orientation 5, and both diagonals together of 3 and 7.
        assert_eq!(dependent("mask:rows=1,0,0;0,0,0;0,0,0"), [2, 3, 4, 6, 7, 8]);
        assert_eq!(dependent("mask:rows=1,0,0;0,0,0;0,0,1"), [2, 4, 6, 8]);
    }

    #[test]
    fn a_turned_picture_has_the_same_sums_under_a_filter_that_does_not_depend_on_it() {
        let layout = Layout::new(PixelFormat::GRAY, 5, 5, 1).unwrap();
        let mut frame = Frame::new(layout, Buffer::unpooled(Box::new(Vec::new()))).unwrap();
        frame
            .bytes_mut()
            .iter_mut()
            .zip(1_u32..)
            .for_each(|(to, n)| *to = (n * n % 251) as u8);
        for filter in [
            "sobel-x",
            "sobel-y",
            "emboss",
            "box:size=3",
            "mask:rows=0,0,7,5,3",
        ] {
            let filter: Filter = filter.parse().unwrap();
            let mask = &filter.mask;
            let middle = |frame: &Frame| -> f64 {
                let (left, top) = (2 - mask.width() / 2, 2 - mask.height() / 2);
                let row = |j: usize| (0..mask.width()).map(move |i| (i, j));
                let places = (0..mask.height()).flat_map(row);
                places
                    .map(|(i, j)| mask.at(i, j) * f64::from(frame.row(0, top + j)[left + i]))
                    .sum()
            };
            for turn in (1..=8).filter_map(Turn::from_exif) {
                let turned = turn.apply(&frame).unwrap();
                let is_other = (middle(&frame) - middle(&turned)).abs() > 1e-6;
                assert_eq!(
                    filter.depends_on(turn),
                    is_other,
                    "{} {}",
                    filter.label,
                    turn.word()
                );
            }
        }
    }
}
