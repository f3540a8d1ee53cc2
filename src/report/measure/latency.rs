//! Latencies: a histogram that never fails.

use hdrhistogram::Histogram;
use serde::Serialize;
use std::time::Duration;

/// The shortest and longest time that is resolved, in nanoseconds: 100 ns and one hour.
const RANGE: (u64, u64) = (100, 3_600_000_000_000);

/// The least number of times for which a 99th percentile is meaningful.
pub const LEAST_FOR_P99: u64 = 100;

/// A histogram of durations with three significant digits. Times beyond its range are clamped to it and
/// counted.
#[derive(Debug, Clone, Default)]
pub struct Latencies {
    // Created with the first record: even an empty one holds some hundred kilobytes.
    histogram: Option<Histogram<u64>>,
    out_of_range: u64,
}

/// Percentiles, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LatencySummary {
    /// How many times were recorded.
    pub count: u64,
    /// Mean, seconds.
    pub mean: f64,
    /// Median, seconds.
    pub p50: f64,
    /// 95th percentile, seconds.
    pub p95: f64,
    /// 99th percentile, seconds; `None` of fewer than [`LEAST_FOR_P99`] times, whose longest it would be.
    pub p99: Option<f64>,
    /// Longest, seconds.
    pub max: f64,
    /// How many of them were shorter than 100 ns or longer than an hour, and stand in the figures as these
    /// limits.
    pub out_of_range: u64,
}

impl Latencies {
    /// Counts one duration.
    pub fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        if self.histogram.is_none() {
            // The bounds are constants that the library accepts, so that this is always `Ok`.
            self.histogram = Histogram::new_with_bounds(RANGE.0, RANGE.1, 3).ok();
        }
        let clamped = nanos.clamp(RANGE.0, RANGE.1);
        self.out_of_range += u64::from(clamped != nanos);
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(clamped);
        }
    }

    /// Adds the times of another thread.
    pub fn merge(&mut self, other: &Latencies) {
        self.out_of_range += other.out_of_range;
        match (&mut self.histogram, &other.histogram) {
            // Both have the same bounds, so that every value of one fits the other.
            (Some(mine), Some(theirs)) => {
                let _ = mine.add(theirs);
            }
            (None, Some(theirs)) => self.histogram = Some(theirs.clone()),
            (_, None) => {}
        }
    }

    /// The recorded times in ascending order: seconds to three significant digits, and how often.
    pub fn recorded(&self) -> Vec<(f64, u64)> {
        self.histogram.as_ref().map_or_else(Vec::new, recorded)
    }

    /// The percentiles; `None` if nothing was recorded.
    pub fn summary(&self) -> Option<LatencySummary> {
        summarise(self.histogram.as_ref()?, self.out_of_range)
    }
}

/// The content of a histogram in nanoseconds: seconds, and how often.
pub(in crate::report) fn recorded(histogram: &Histogram<u64>) -> Vec<(f64, u64)> {
    histogram
        .iter_recorded()
        .map(|value| {
            (
                value.value_iterated_to() as f64 / 1e9,
                value.count_since_last_iteration(),
            )
        })
        .collect()
}

/// The percentiles of a histogram in nanoseconds; `None` if it is empty.
pub(in crate::report) fn summarise(histogram: &Histogram<u64>, out_of_range: u64) -> Option<LatencySummary> {
    if histogram.is_empty() {
        return None;
    }
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let at = |quantile| seconds(histogram.value_at_quantile(quantile).min(histogram.max()));
    Some(LatencySummary {
        count: histogram.len(),
        mean: histogram.mean() / 1e9,
        p50: at(0.50),
        p95: at(0.95),
        p99: (histogram.len() >= LEAST_FOR_P99).then(|| at(0.99)),
        max: seconds(histogram.max()),
        out_of_range,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_recorded_has_no_percentiles() {
        assert_eq!(Latencies::default().summary(), None);
        let mut merged = Latencies::default();
        merged.merge(&Latencies::default());
        assert_eq!(merged.summary(), None);
    }

    #[test]
    fn percentiles_are_within_three_digits() {
        let mut latencies = Latencies::default();
        for ms in 1..=99 {
            latencies.record(Duration::from_millis(ms));
        }
        // The 99th percentile of fewer than 100 times would be the longest.
        assert_eq!(latencies.summary().unwrap().p99, None);
        latencies.record(Duration::from_millis(100));
        let summary = latencies.summary().unwrap();
        assert!((summary.p99.unwrap() - 0.099).abs() < 1e-4, "{summary:?}");
        assert_eq!(summary.count, 100);
        assert!((summary.p50 - 0.050).abs() < 1e-4, "{summary:?}");
        assert!((summary.p95 - 0.095).abs() < 1e-4, "{summary:?}");
        assert!((summary.max - 0.100).abs() < 2e-4, "{summary:?}");
        assert_eq!(summary.out_of_range, 0);
    }

    #[test]
    fn times_beyond_the_range_are_clamped_and_counted() {
        let mut latencies = Latencies::default();
        latencies.record(Duration::ZERO);
        latencies.record(Duration::from_secs(7200));
        latencies.record(Duration::from_millis(1));
        let mut merged = Latencies::default();
        merged.merge(&latencies);
        merged.merge(&latencies);
        let summary = merged.summary().unwrap();
        assert_eq!((summary.count, summary.out_of_range), (6, 4));
        assert!((summary.max - 3600.0).abs() < 4.0, "{summary:?}");
    }
}
