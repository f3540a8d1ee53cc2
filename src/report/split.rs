//! Where a device's time went: uploads, kernels, downloads, and how much of them ran at the same time.

use super::LatencySummary;
use super::measure::latency::summarise;
use crate::engine::DeviceTimes;
use serde::Serialize;

/// A device engine's account, from its own events.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DeviceReport {
    /// The device's name.
    pub device: String,
    /// Slots in the ring.
    pub slots: usize,
    /// Frames filtered.
    pub frames: u64,
    /// Frames that were timed; the seconds of all frames are estimated from them.
    pub frames_timed: u64,
    /// Seconds from the start of the first upload to the end of the last download.
    pub wall_seconds: f64,
    /// Copies to the device.
    pub upload: PartReport,
    /// Kernels.
    pub kernel: PartReport,
    /// Copies from the device.
    pub download: PartReport,
    /// 10^9 bytes a second while uploading; `None` if nothing was uploaded.
    pub upload_gigabytes_per_second: Option<f64>,
    /// 10^9 bytes a second while downloading; `None` if nothing was downloaded.
    pub download_gigabytes_per_second: Option<f64>,
    /// 10^9 samples a second while kernels ran; `None` if none ran.
    pub kernel_gigasamples_per_second: Option<f64>,
    /// Kernel seconds over the seconds of all three parts, 0 to 1.
    pub kernel_share: f64,
    /// Upload and download seconds over the seconds of all three parts, 0 to 1.
    pub transfer_share: f64,
    /// The part of the transfer seconds hidden behind other work, 0 to 1.
    pub transfer_hidden: f64,
    /// Seconds of the slowest part over the wall seconds, 0 to 1; 1 is perfect overlap.
    pub overlap_efficiency: f64,
}

/// One of the three parts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PartReport {
    /// Seconds in which the part ran for at least one frame.
    pub seconds: f64,
    /// Seconds a frame; `None` if no frame was measured.
    pub latency: Option<LatencySummary>,
}

impl DeviceReport {
    /// Sums up the engine's measurements.
    pub fn new(times: &DeviceTimes) -> DeviceReport {
        let [up, kernel, down] = times.totals;
        let sum = up + kernel + down;
        let part = |index: usize| PartReport {
            seconds: times.totals[index],
            latency: times.histograms.as_ref().and_then(|h| summarise(&h[index], 0)),
        };
        let rate = |amount: u64, seconds: f64| (seconds > 0.0).then(|| amount as f64 / seconds / 1e9);
        let of = |part: f64, whole: f64| {
            if whole > 0.0 {
                (part / whole).clamp(0.0, 1.0)
            } else {
                0.0
            }
        };
        // The wall time beyond the kernels is exposed transfer, or idling, which hides nothing either.
        let exposed = (times.wall - kernel).clamp(0.0, up + down);
        DeviceReport {
            device: times.device.clone(),
            slots: times.slots,
            frames: times.count + times.untimed,
            frames_timed: times.count,
            wall_seconds: times.wall,
            upload: part(0),
            kernel: part(1),
            download: part(2),
            upload_gigabytes_per_second: rate(times.bytes_up, up),
            download_gigabytes_per_second: rate(times.bytes_down, down),
            kernel_gigasamples_per_second: rate(times.samples, kernel),
            kernel_share: of(kernel, sum),
            transfer_share: of(up + down, sum),
            transfer_hidden: of(up + down - exposed, up + down),
            overlap_efficiency: of(up.max(kernel).max(down), times.wall),
        }
    }

    /// The slowest part's name.
    pub fn slowest(&self) -> &'static str {
        let parts = [
            ("upload", self.upload.seconds),
            ("kernel", self.kernel.seconds),
            ("download", self.download.seconds),
        ];
        parts
            .into_iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map_or("kernel", |(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(totals: [f64; 3], wall: f64) -> DeviceTimes {
        DeviceTimes {
            device: "Test".to_owned(),
            slots: 3,
            count: 10,
            totals,
            wall,
            bytes_up: 2_000_000_000,
            bytes_down: 1_000_000_000,
            samples: 4_000_000_000,
            ..DeviceTimes::default()
        }
    }

    #[test]
    fn perfect_overlap_hides_the_transfers() {
        let report = DeviceReport::new(&times([1.0, 4.0, 1.0], 4.0));
        assert_eq!(report.overlap_efficiency, 1.0);
        assert_eq!(report.transfer_hidden, 1.0);
        assert_eq!(report.slowest(), "kernel");
        assert_eq!(report.upload_gigabytes_per_second, Some(2.0));
        assert_eq!(report.download_gigabytes_per_second, Some(1.0));
        assert_eq!(report.kernel_gigasamples_per_second, Some(1.0));
        assert!((report.kernel_share - 4.0 / 6.0).abs() < 1e-12);
        assert!((report.kernel_share + report.transfer_share - 1.0).abs() < 1e-12);
    }

    #[test]
    fn one_step_after_another_hides_nothing() {
        let report = DeviceReport::new(&times([2.0, 1.0, 2.0], 5.0));
        assert_eq!(report.overlap_efficiency, 0.4);
        assert_eq!(report.transfer_hidden, 0.0);
    }

    #[test]
    fn both_directions_at_once_hide_half_of_the_transfer() {
        // Transfers of 4 s in each direction at once, kernels beneath them: 4 s of 8 are exposed less the
        // kernels' own.
        let report = DeviceReport::new(&times([4.0, 0.0, 4.0], 4.0));
        assert_eq!(report.transfer_hidden, 0.5);
        assert_eq!(report.overlap_efficiency, 1.0);
    }

    #[test]
    fn no_frames_give_no_rates_and_no_division_by_zero() {
        let report = DeviceReport::new(&DeviceTimes::default());
        assert_eq!(report.upload_gigabytes_per_second, None);
        assert_eq!(report.overlap_efficiency, 0.0);
        assert_eq!(report.kernel.latency, None);
    }
}
