//! Eight masks of 3x3, of which each is the one before it turned on by one place around the centre, and
//! weighs three neighbours in a row one way and the five others another.
//!
//! ```text
//!  5  5  5    -3  5  5    -3 -3  5
//! -3  0 -3    -3  0  5    -3  0  5   ..       a mask's sum = others (all eight) + more (its three)
//! -3 -3 -3    -3 -3 -3    -3 -3  5
//! ```

use super::CombinedKernel;

/// The places around the centre of a 3x3 mask, clockwise from the upper left, as row and column.
pub(crate) const RING: [(usize, usize); 8] = [(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (2, 0), (1, 0)];

/// What such masks weigh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Compass {
    /// What three weigh more than the others.
    pub(crate) more: i64,
    pub(crate) others: i64,
}

impl Compass {
    /// `None` for other masks.
    pub(crate) fn of(kernel: &CombinedKernel) -> Option<Compass> {
        let is_ring = (kernel.width, kernel.height, kernel.masks.len()) == (3, 3, RING.len());
        let around = |mask: &Vec<i32>| RING.map(|(row, column)| i64::from(mask[3 * row + column]));
        let first = around(kernel.masks.first().filter(|_| is_ring)?);
        let others = first[3];
        let turned = |k: usize, weights: [i64; 8]| {
            let three = |at: usize| (at + RING.len() - k) % RING.len() < 3;
            (0..RING.len()).all(|at| weights[at] == if three(at) { first[0] } else { others })
        };
        let masks = kernel.masks.iter().enumerate();
        let mut known = masks.map(|(k, mask)| mask[4] == 0 && turned(k, around(mask)));
        (known.all(|is_known| is_known) && first[0] > others).then_some(Compass {
            more: first[0] - others,
            others,
        })
    }

    /// True if the weights of each mask add up to 0, and so do all masks: then the largest of their sums is
    /// never below 0.
    pub(crate) fn is_balanced(&self) -> bool {
        3 * self.more + RING.len() as i64 * self.others == 0
    }
}
