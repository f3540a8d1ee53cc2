//! Counts and sums of the differences between two rows of samples, and the first of them.

/// What the samples of one component of one pair of frames differ by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Difference {
    /// Samples compared.
    pub samples: u64,
    /// Samples that differ.
    pub differing: u64,
    /// The largest absolute difference, in levels of the depth: 0 to 65535.
    pub largest: u16,
    /// The sum of absolute differences, in levels.
    pub sum: u64,
    /// The sum of squared differences, in squared levels; wide enough for any number of 16-bit samples.
    pub squares: u128,
    /// The first sample that differs, row by row; `None` if none does.
    pub first: Option<Place>,
}

/// A sample that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Column in the component's own grid, counted in samples from 0.
    pub x: usize,
    /// Row in the component's own grid, counted from 0.
    pub y: usize,
    /// The sample of A.
    pub a: u16,
    /// The sample of B.
    pub b: u16,
}

impl Difference {
    /// `samples` samples that are equal.
    pub fn none(samples: u64) -> Difference {
        Difference {
            samples,
            ..Difference::default()
        }
    }

    /// Adds row `y`, of equally many samples in A and B.
    pub fn add_row(&mut self, y: usize, a: &[u16], b: &[u16]) {
        let (mut differing, mut largest, mut sum, mut squares) = (0_u64, 0_u16, 0_u64, 0_u64);
        for (&a, &b) in a.iter().zip(b) {
            let difference = a.abs_diff(b);
            differing += u64::from(difference != 0);
            largest = largest.max(difference);
            sum += u64::from(difference);
            squares += u64::from(difference) * u64::from(difference);
        }
        if self.first.is_none() && differing > 0 {
            self.first = first(y, a, b);
        }
        self.samples += a.len().min(b.len()) as u64;
        self.differing += differing;
        self.largest = self.largest.max(largest);
        self.sum += sum;
        self.squares += u128::from(squares);
    }

    /// The mean of squared differences over the square of the largest sample value `max`: 0 to 1.
    pub fn relative_mse(&self, max: u32) -> f64 {
        if self.samples == 0 {
            return 0.0;
        }
        self.squares as f64 / self.samples as f64 / (f64::from(max) * f64::from(max))
    }
}

fn first(y: usize, a: &[u16], b: &[u16]) -> Option<Place> {
    let mut pairs = a.iter().zip(b).enumerate();
    pairs.find_map(|(x, (&a, &b))| (a != b).then_some(Place { x, y, a, b }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_differences_of_sixteen_bits_do_not_overflow() {
        let mut difference = Difference::default();
        let (low, high) = (vec![0; 70_000], vec![65_535; 70_000]);
        for y in 0..2 {
            difference.add_row(y, &low, &high);
        }
        assert_eq!((difference.samples, difference.differing), (140_000, 140_000));
        assert_eq!(difference.squares, 140_000 * 65_535 * 65_535);
        assert_eq!(difference.relative_mse(65_535), 1.0);
        assert_eq!(difference.first.map(|p| (p.x, p.y)), Some((0, 0)));
    }
}
