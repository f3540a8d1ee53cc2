//! The times of repeated runs in four figures.

use serde::Serialize;

/// Median and spread of times in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median, in milliseconds.
    pub median: f64,
    /// The least, in milliseconds.
    pub min: f64,
    /// The 90th percentile: nine of ten times are no longer.
    pub p90: f64,
    /// How many were taken.
    pub count: usize,
}

impl Spread {
    /// The figures of `times`; `None` if there are none, or one is not finite.
    pub fn of(times: &[f64]) -> Option<Spread> {
        if times.is_empty() || !times.iter().all(|t| t.is_finite()) {
            return None;
        }
        let mut sorted = times.to_vec();
        sorted.sort_by(f64::total_cmp);
        Some(Spread {
            median: middle(&sorted),
            min: sorted[0],
            p90: sorted[(sorted.len() * 9).div_ceil(10) - 1],
            count: sorted.len(),
        })
    }
}

/// The median of sorted values: of an even number, the mean of the two in the middle.
fn middle(sorted: &[f64]) -> f64 {
    let half = sorted.len() / 2;
    if sorted.len().is_multiple_of(2) {
        f64::midpoint(sorted[half - 1], sorted[half])
    } else {
        sorted[half]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_does_not_mind_outliers_and_order() {
        let spread = Spread::of(&[3.0, 1.0, 500.0, 2.0, 2.5]).unwrap();
        assert_eq!(
            (spread.median, spread.min, spread.p90, spread.count),
            (2.5, 1.0, 500.0, 5)
        );
        let even = Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((even.median, even.p90), (2.5, 4.0));
    }

    #[test]
    fn nine_of_ten_are_no_longer_than_the_90th_percentile() {
        let times: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(Spread::of(&times).unwrap().p90, 90.0);
        assert_eq!(Spread::of(&times[..10]).unwrap().p90, 9.0);
        assert_eq!(Spread::of(&times[..1]).unwrap().p90, 1.0);
    }

    #[test]
    fn nothing_and_nonsense_have_no_figures() {
        assert_eq!(Spread::of(&[]), None);
        assert_eq!(Spread::of(&[1.0, f64::NAN]), None);
        assert_eq!(Spread::of(&[1.0, f64::INFINITY]), None);
    }
}
