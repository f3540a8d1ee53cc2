//! Several decoders that share one input, and the part of each in the decode stage's work.

use super::present::table::Table;
use super::present::text::percent;
use super::{Measurements, Occupancy, StageClock};
use crate::frame::Decoded;
use crate::wording::counted;
use serde::Serialize;

/// One decoder's account.
#[derive(Debug, Clone, Default)]
pub struct DecoderClock {
    /// Where it works: `CPU`, or a card with its number.
    pub place: String,
    /// Its times. Its only input is the place where its next stretch begins.
    pub clock: StageClock,
}

/// One decoder in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct DecoderReport {
    /// Where it works.
    pub place: String,
    /// Its frames that the run used.
    pub frames: u64,
    /// Its frames over the frames of all decoders, 0 to 1.
    pub frame_share: f64,
    /// Where its time went: at work, without a stretch to decode, and without room for a frame whose turn has
    /// not come.
    #[serde(flatten)]
    pub occupancy: Occupancy,
}

impl DecoderClock {
    /// Counts a frame of `bytes` bytes of picture that became number `sequence` of the run.
    pub fn count(&mut self, sequence: u64, bytes: usize, decoded: &Decoded) {
        let Decoded {
            began,
            idle,
            busy,
            waited,
            ..
        } = *decoded;
        let clock = &mut self.clock;
        clock.input_wait += idle;
        clock.busy += busy;
        clock.output_wait += waited;
        clock.frame(bytes, busy);
        // It had no stretch at some time before; that wait is drawn first.
        clock.span(super::Activity::InputWait, sequence, began, idle);
        clock.span(super::Activity::Work, sequence, began + idle, busy);
        clock.span(super::Activity::QueueWait, sequence, began + idle + busy, waited);
    }

    /// The decode stage's account. `thread` puts the decoders' frames in order and works itself only on
    /// frames that no decoder made.
    pub fn sum_up(decoders: &[DecoderClock], mut thread: StageClock) -> StageClock {
        if decoders.is_empty() {
            return thread;
        }
        if thread.busy.is_zero() {
            thread.workers = 0;
            (thread.input_wait, thread.output_wait) = Default::default();
        }
        for DecoderClock { clock, .. } in decoders {
            thread.workers += clock.workers;
            thread.busy += clock.busy;
            thread.input_wait += clock.input_wait;
            thread.output_wait += clock.output_wait;
        }
        thread
    }
}

impl DecoderReport {
    /// All decoders of a run.
    pub(super) fn all(measured: &Measurements) -> Vec<DecoderReport> {
        let frames: u64 = measured.decoders.iter().map(|d| d.clock.frames).sum();
        let report = |DecoderClock { place, clock }: &DecoderClock| DecoderReport {
            place: place.clone(),
            frames: clock.frames,
            frame_share: clock.frames as f64 / frames.max(1) as f64,
            occupancy: clock.occupancy(measured.wall),
        };
        measured.decoders.iter().map(report).collect()
    }

    /// A line about each decoder of a run.
    pub fn lines(measured: &Measurements) -> Vec<String> {
        let decoders = DecoderReport::all(measured);
        let line = |(index, decoder): (usize, &DecoderReport)| {
            format!(
                "decode: decoder {} ({}) made {}, {}; busy {}, without a stretch {}, without room {}",
                index + 1,
                decoder.place,
                counted(decoder.frames, "frame"),
                percent(decoder.frame_share),
                percent(decoder.occupancy.busy_share),
                percent(decoder.occupancy.input_wait_share),
                percent(decoder.occupancy.output_wait_share),
            )
        };
        decoders.iter().enumerate().map(line).collect()
    }

    /// The decoders as rows under a head.
    pub(super) fn table(decoders: &[DecoderReport]) -> Table {
        let mut table = Table::new(&[
            "decoder", "on", "frames", "share", "busy", "no input", "no room", "p50", "p95", "p99", "max",
        ]);
        for (index, decoder) in decoders.iter().enumerate() {
            table.row(decoder.row(index));
        }
        table
    }

    /// The cells of its row, as decoder number `index`.
    pub(super) fn row(&self, index: usize) -> Vec<String> {
        let mut row = vec![
            (index + 1).to_string(),
            self.place.clone(),
            self.frames.to_string(),
            percent(self.frame_share),
            percent(self.occupancy.busy_share),
            percent(self.occupancy.input_wait_share),
            percent(self.occupancy.output_wait_share),
        ];
        row.extend(super::present::text::percentiles(self.occupancy.latency.as_ref()));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const MS: Duration = Duration::from_millis(1);

    /// Frames of two decoders that take turns: each makes one in 3 ms, after 1 ms without a stretch, and then
    /// waits 4 ms for room.
    fn decoders(epoch: Instant) -> Vec<DecoderClock> {
        let recording = super::super::Recording {
            frames: 4,
            throughput: false,
        };
        let blank = DecoderClock {
            place: "CPU".to_owned(),
            clock: StageClock::recording(recording, epoch),
        };
        let mut decoders = vec![blank; 2];
        for sequence in 0..6_u32 {
            let decoded = Decoded {
                decoder: sequence as usize % 2,
                began: epoch + MS * (8 * (sequence / 2)),
                idle: MS,
                busy: 3 * MS,
                waited: 4 * MS,
            };
            decoders[decoded.decoder].count(sequence.into(), 10, &decoded);
        }
        decoders
    }

    #[test]
    fn a_stage_of_decoders_is_their_sum() {
        let decoders = decoders(Instant::now());
        let mut thread = StageClock::worker();
        (thread.input_wait, thread.output_wait) = (20 * MS, 3 * MS);
        let sum = DecoderClock::sum_up(&decoders, thread.clone());
        assert_eq!(
            (sum.workers, sum.busy, sum.input_wait, sum.output_wait),
            (2, 18 * MS, 6 * MS, 24 * MS)
        );
        // A thread that decodes what the decoders do not is one more.
        thread.busy = 7 * MS;
        let sum = DecoderClock::sum_up(&decoders, thread.clone());
        assert_eq!((sum.workers, sum.busy, sum.output_wait), (3, 25 * MS, 27 * MS));
        let alone = DecoderClock::sum_up(&[], thread.clone());
        assert_eq!(
            (alone.workers, alone.busy, alone.input_wait),
            (1, 7 * MS, 20 * MS)
        );
    }

    #[test]
    fn each_decoder_has_its_share_and_its_spans() {
        let epoch = Instant::now();
        let measured = Measurements {
            wall: 24 * MS,
            decoders: decoders(epoch),
            ..Measurements::default()
        };
        for report in DecoderReport::all(&measured) {
            assert_eq!((report.frames, report.frame_share), (3, 0.5));
            assert!((report.occupancy.busy_share - 9.0 / 24.0).abs() < 1e-9);
            assert!((report.occupancy.input_wait_share - 3.0 / 24.0).abs() < 1e-9);
            assert!((report.occupancy.output_wait_share - 12.0 / 24.0).abs() < 1e-9);
        }
        let lines = DecoderReport::lines(&measured);
        assert_eq!(
            lines[1],
            "decode: decoder 2 (CPU) made 3 frames, 50.0%; busy 37.5%, without a stretch 12.5%, without room \
             50.0%"
        );
        // Of the first four frames, on a line without a gap.
        let spans = measured.decoders[1].clock.threads[0].list();
        let times: Vec<(u64, u64, u64)> = spans.iter().map(|s| (s.sequence, s.begin, s.end)).collect();
        let ms = |frame: u64, begin: u64, end: u64| (frame, begin * 1_000_000, end * 1_000_000);
        assert_eq!(
            times,
            [
                ms(1, 0, 1),
                ms(1, 1, 4),
                ms(1, 4, 8),
                ms(3, 8, 9),
                ms(3, 9, 12),
                ms(3, 12, 16)
            ]
        );
    }
}
