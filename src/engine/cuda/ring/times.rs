//! When each frame's upload, kernels and download began and ended, by the card's own clock.
//!
//! The driver gives the time between two events as a float, which is exact for short times only. So times are
//! counted from an anchor, an event that is renewed each second:
//!
//! ```text
//! anchor 0 ---- frame ---- frame ---- anchor 1 ---- frame ..
//! ```
//!
//! From them come the seconds in which each part was under way, and histograms of its times.

use super::slot::{Amount, Flight, Mark};
use crate::engine::cuda::driver::device::Device;
use crate::engine::cuda::driver::stream::{Event, Stream};
use crate::engine::{DeviceTimes, EngineError, FrameTimes};
use hdrhistogram::Histogram;
use std::sync::Arc;
use std::time::Instant;

/// Frames whose times are kept one by one.
const KEPT: usize = 1024;

/// Seconds after which times are counted from a newer event: the driver gives differences as 32-bit floats in
/// milliseconds, which are too coarse over minutes.
const RENEW: f64 = 1.0;

/// The most seconds by which the measured end of a copy may be late; 31 microseconds were seen, on a busy
/// host. An end that is later still than the start of the work that waited for it is kept, since it shows
/// that the wait is missing: a copy of 2 MB takes longer.
const LATE: f64 = 40e-6;

/// The longest time that the histograms hold: an hour.
const MOST_NANOSECONDS: u64 = 3_600_000_000_000;

/// Collects the times of a run.
pub(crate) struct Times {
    /// The event from which differences are taken, and its time since the run's first event.
    anchor: Option<(Event, f64)>,
    /// The next anchor: recorded, perhaps not yet done.
    next: Option<Event>,
    first: Option<f64>,
    last: f64,
    /// When the last upload, kernels and download ended.
    ended: [f64; 3],
    /// By slot, the end of the work that the slot's next upload waits for.
    slots: Vec<f64>,
    sums: DeviceTimes,
    histograms: Option<[Histogram<u64>; 3]>,
}

impl Times {
    pub(crate) fn new(device: &Device) -> Times {
        let histogram = || Histogram::new_with_bounds(1, MOST_NANOSECONDS, 3).ok();
        let histograms = histogram()
            .zip(histogram())
            .zip(histogram())
            .map(|((a, b), c)| [a, b, c]);
        Times {
            anchor: None,
            next: None,
            first: None,
            last: 0.0,
            ended: [0.0; 3],
            slots: Vec::new(),
            sums: DeviceTimes {
                device: device.info.name.clone(),
                ..DeviceTimes::default()
            },
            histograms,
        }
    }

    /// Called before a frame's upload is enqueued: records the start of the run, and now and then a newer
    /// event from which to count.
    pub(crate) fn before_upload(&mut self, device: &Arc<Device>, upload: &Stream) -> Result<(), EngineError> {
        match &self.anchor {
            None => {
                let event = Event::new(device)?;
                self.sums.origin = Some(Instant::now());
                event.record(upload)?;
                self.anchor = Some((event, 0.0));
            }
            Some((_, at)) if self.next.is_none() && self.last - at > RENEW => {
                let event = Event::new(device)?;
                event.record(upload)?;
                self.next = Some(event);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Reads a frame's events, all of which are done. Frames come in the order in which they were enqueued.
    pub(crate) fn add(&mut self, sequence: u64, flight: &Flight, amount: Amount) -> Result<(), EngineError> {
        let Some((anchor, at)) = &self.anchor else {
            return Ok(());
        };
        let span = |mark: &Mark, waited_for: f64| -> Result<(f64, f64), EngineError> {
            let end = at + mark.end_time().seconds_since(anchor)?;
            let begin = match mark.begin_time() {
                Some(event) => at + event.seconds_since(anchor)?,
                None => waited_for,
            };
            Ok((begin.min(end), end))
        };
        let slot = flight.slot;
        if self.slots.len() <= slot {
            self.slots.resize(slot + 1, 0.0);
        }
        let marks = &flight.marks;
        let kernel = span(&marks.kernel, 0.0)?;
        // A copy that was not made took no time.
        let mut upload = match flight.is_uploaded {
            true => span(&marks.upload, self.ended[0].max(self.slots[slot]))?,
            false => (kernel.0, kernel.0),
        };
        // The kernels waited for the upload, whose measured end may be a little late.
        upload.1 = not_late(upload.1, kernel.0);
        let download = match flight.is_downloaded {
            true => span(&marks.download, kernel.1.max(self.ended[2]))?,
            false => (kernel.1, kernel.1),
        };
        // The same holds for the download of the slot's last frame, for which they waited too.
        let mut kept = self.sums.frames.iter_mut().rev();
        if let Some(last) = kept.find(|frame| frame.slot == slot) {
            last.download.1 = not_late(last.download.1, kernel.0);
        }
        self.slots[slot] = if flight.result_in_first {
            download.1
        } else {
            kernel.1
        };
        self.first.get_or_insert(upload.0);
        self.last = self.last.max(download.1);
        let sums = &mut self.sums;
        for (index, (begin, end)) in [upload, kernel, download].into_iter().enumerate() {
            // Overlapping work of one kind counts once.
            let ended = &mut self.ended[index];
            sums.totals[index] += (end - begin.max(*ended)).max(0.0);
            *ended = ended.max(end);
            if let Some(histograms) = &mut self.histograms {
                let nanoseconds = ((end - begin) * 1e9) as u64;
                histograms[index].saturating_record(nanoseconds.max(1));
            }
        }
        sums.count += 1;
        sums.bytes_up += amount.bytes_up;
        sums.bytes_down += amount.bytes_down;
        sums.samples += amount.samples;
        if sums.frames.len() < KEPT {
            sums.frames.push(FrameTimes {
                sequence,
                slot,
                upload,
                kernel,
                download,
                bytes_up: amount.bytes_up,
                bytes_down: amount.bytes_down,
                samples: amount.samples,
            });
        }
        self.renew()
    }

    /// Counts a frame whose times were not taken.
    pub(crate) fn pass(&mut self, amount: Amount) {
        let sums = &mut self.sums;
        sums.untimed += 1;
        sums.bytes_up += amount.bytes_up;
        sums.bytes_down += amount.bytes_down;
        sums.samples += amount.samples;
    }

    /// Counts from the newer event once it is done.
    fn renew(&mut self) -> Result<(), EngineError> {
        let Some(next) = self.next.take() else {
            return Ok(());
        };
        match &self.anchor {
            Some((anchor, at)) if next.is_done()? => {
                let at = at + next.seconds_since(anchor)?;
                self.anchor = Some((next, at));
            }
            _ => self.next = Some(next),
        }
        Ok(())
    }

    /// The run's times so far. Frames that were not timed count with the mean of those that were.
    pub(crate) fn summary(&self, slots: usize) -> DeviceTimes {
        let sums = &self.sums;
        let scale = (sums.count + sums.untimed) as f64 / sums.count.max(1) as f64;
        DeviceTimes {
            totals: sums.totals.map(|seconds| seconds * scale),
            slots,
            wall: self.first.map_or(0.0, |first| self.last - first),
            histograms: self.histograms.clone(),
            ..self.sums.clone()
        }
    }
}

/// The end of a copy by its clock; the start of the work that waited for it, if that is a little earlier.
fn not_late(end: f64, waiting: f64) -> f64 {
    if end - waiting <= LATE {
        end.min(waiting)
    } else {
        end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_a_little_late_is_corrected_and_a_missing_wait_shows() {
        assert_eq!(not_late(1.0, 2.0), 1.0);
        assert_eq!(not_late(1.0 + 20e-6, 1.0), 1.0);
        assert_eq!(not_late(1.0 + 50e-6, 1.0), 1.0 + 50e-6);
    }
}
