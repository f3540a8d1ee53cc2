//! Eight masks of 3x3, of which each is the one before it turned on by one place around the centre, and
//! weighs three neighbours in a row one way and the five others another.
//!
//! ```text
//!  5  5  5    -3  5  5    -3 -3  5
//! -3  0 -3    -3  0  5    -3  0  5   ..       a mask's sum = others (all eight) + more (its three)
//! -3 -3 -3    -3 -3 -3    -3 -3  5
//! ```

use super::kernel::CombinedKernel;

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
    /// `None` for other masks. The first one may begin anywhere: turned by 180 degrees (`flip`) it does
    /// elsewhere.
    pub(crate) fn of(kernel: &CombinedKernel) -> Option<Compass> {
        let is_ring = (kernel.width, kernel.height, kernel.masks.len()) == (3, 3, RING.len());
        let around = |mask: &Vec<i32>| RING.map(|(row, column)| i64::from(mask[3 * row + column]));
        let first = around(kernel.masks.first().filter(|_| is_ring)?);
        (0..RING.len()).find_map(|from| {
            let (three, others) = (first[from], first[(from + 3) % RING.len()]);
            let is_turned = |(k, mask): (usize, &Vec<i32>)| {
                let weights = around(mask);
                let is_one = |at: usize| (at + 2 * RING.len() - k - from) % RING.len() < 3;
                let weighs = |at: usize| if is_one(at) { three } else { others };
                mask[4] == 0 && (0..RING.len()).all(|at| weights[at] == weighs(at))
            };
            (three > others && kernel.masks.iter().enumerate().all(is_turned)).then_some(Compass {
                more: three - others,
                others,
            })
        })
    }

    /// True if the weights of each mask add up to 0, and so do all masks: then the largest of their sums is
    /// never below 0.
    pub(crate) fn is_balanced(&self) -> bool {
        3 * self.more + RING.len() as i64 * self.others == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::Combining;

    /// What weighs so much around the centre, as many places on as a mask's number says.
    fn kernel(ring: [i32; 8], from: usize) -> CombinedKernel {
        let mask = |k: usize| {
            let mut mask = vec![0; 9];
            for (at, (row, column)) in RING.into_iter().enumerate() {
                mask[3 * row + column] = ring[(at + 16 - k - from) % 8];
            }
            mask
        };
        CombinedKernel {
            width: 3,
            height: 3,
            masks: (0..8).map(mask).collect(),
            shift: 0,
            combining: Combining::Largest,
            long: false,
        }
    }

    #[test]
    fn masks_that_turn_are_known_wherever_the_first_one_begins() {
        for from in 0..8 {
            let compass = Compass::of(&kernel([5, 5, 5, -3, -3, -3, -3, -3], from)).unwrap();
            assert_eq!((compass.more, compass.others), (8, -3));
            assert!(compass.is_balanced());
            let compass = Compass::of(&kernel([2, 2, 2, -1, -1, -1, -1, -1], from)).unwrap();
            assert!(!compass.is_balanced());
        }
        for ring in [
            [5, 5, 5, -3, -3, -3, -3, -2],
            [5, 5, -3, -3, -3, -3, -3, -3],
            [-3, -3, -3, 5, 5, 5, 5, 5],
            [1; 8],
        ] {
            assert_eq!(Compass::of(&kernel(ring, 0)), None, "{ring:?}");
        }
        let mut middle = kernel([5, 5, 5, -3, -3, -3, -3, -3], 0);
        middle.masks[3][4] = 1;
        assert_eq!(Compass::of(&middle), None);
        let mut order = kernel([5, 5, 5, -3, -3, -3, -3, -3], 0);
        order.masks.swap(2, 3);
        assert_eq!(Compass::of(&order), None);
    }
}
