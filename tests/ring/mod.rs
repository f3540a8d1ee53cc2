//! A made-up run on a made-up card: a ring of slots whose parts take fixed times, ordered by the rules that
//! the real one follows.
#![allow(dead_code, clippy::unwrap_used)]

use framepipe::engine::{DeviceTimes, FrameTimes};
use framepipe::report::{
    Activity, Latencies, Measurements, PoolMemory, Recording, StageClock, Task, Throughput,
};
use hdrhistogram::Histogram;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Nanoseconds from the run's beginning to the card's zero.
pub(crate) const ZERO: u64 = 2_000_000;

/// Nanoseconds that each of the host's steps takes, and that it sees a download's end late.
const DECODE: u64 = 20_000;
const SUBMIT: u64 = 8_000;
const NOTICE: u64 = 5_000;
const ENCODE: u64 = 15_000;

const FRAME_BYTES: u64 = 3_110_400;

/// The three threads of the host: where each is, and what its clock has counted.
struct Host {
    began: Instant,
    decoder: u64,
    submitter: u64,
    encoder: u64,
    decode: StageClock,
    engine: StageClock,
    encode: StageClock,
    end_to_end: Latencies,
    /// Counts when it is asked to, since all of this is asked at once.
    throughput: Throughput,
    /// The frames on the card, each with the time at which it was decoded.
    flying: VecDeque<(u64, u64)>,
}

const fn ns(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

impl Host {
    fn new(kept: u64) -> Host {
        let began = Instant::now();
        let recording = Recording {
            frames: kept,
            throughput: true,
        };
        let [decode, engine, encode] = [(); 3].map(|()| StageClock::recording(recording, began));
        Host {
            began,
            decoder: ZERO - 100_000,
            submitter: ZERO - 3_000,
            encoder: ZERO,
            decode,
            engine,
            encode,
            end_to_end: Latencies::default(),
            throughput: Throughput::new(began),
            flying: VecDeque::new(),
        }
    }

    fn at(&self, nanoseconds: u64) -> Instant {
        self.began + ns(nanoseconds)
    }

    /// Decodes a frame, and gives the time at which that began.
    fn decode(&mut self, sequence: u64) -> u64 {
        let born = self.decoder;
        self.decode
            .span(Activity::Work, sequence, self.at(born), ns(DECODE));
        self.decode.busy += ns(DECODE);
        self.decode.frame(FRAME_BYTES as usize, ns(DECODE));
        self.decoder += DECODE;
        born
    }

    /// Hands the decoded frame to the submitter. Gives the second of the card's clock of its submission.
    fn hand_over(&mut self, sequence: u64) -> f64 {
        let waited = self.submitter.saturating_sub(self.decoder);
        let at = self.at(self.decoder);
        self.decode.span(Activity::QueueWait, sequence, at, ns(waited));
        self.decode.output_wait += ns(waited);
        self.decoder += waited;
        self.submitter = self.submitter.max(self.decoder);
        (self.submitter as f64 + 3_000.0 - ZERO as f64) / 1e9
    }

    fn submit(&mut self, sequence: u64, born: u64) {
        let at = self.at(self.submitter);
        self.engine.span(Activity::Submit, sequence, at, ns(SUBMIT));
        self.engine.busy += ns(SUBMIT);
        self.flying.push_back((sequence, born));
        self.submitter += SUBMIT;
    }

    /// Takes the oldest frame from the card, whose download ends at this second of its clock, and encodes it.
    fn collect(&mut self, download_end: f64) {
        let (sequence, born) = self.flying.pop_front().unwrap();
        let end = (ZERO + (download_end * 1e9) as u64 + NOTICE).max(self.submitter + 500);
        let (at, waited) = (self.at(self.submitter), ns(end - self.submitter));
        self.engine.span(Activity::Collect, sequence, at, waited);
        self.engine.busy += waited;
        self.engine.frame(FRAME_BYTES as usize, ns(end - born));
        self.submitter = end;
        let from = self.encoder;
        self.encoder = self.encoder.max(end);
        let (at, waited) = (self.at(from), ns(self.encoder - from));
        self.encode.span(Activity::InputWait, sequence, at, waited);
        self.encode.input_wait += waited;
        let at = self.at(self.encoder);
        self.encode.span(Activity::Work, sequence, at, ns(ENCODE));
        self.encode.busy += ns(ENCODE);
        self.encoder += ENCODE;
        self.encode.frame(FRAME_BYTES as usize, ns(ENCODE));
        let at = self.at(self.encoder);
        self.throughput.count(at);
        self.end_to_end.record(ns(self.encoder - born));
    }
}

/// The times of the next frame on the card, which is submitted at this second, behind `frames` through
/// `slots` slots. Its parts take so many seconds.
fn next_on_card(frames: &[FrameTimes], slots: usize, submitted: f64, parts: [f64; 3]) -> FrameTimes {
    let sequence = frames.len();
    let last = frames.last();
    let before = sequence.checked_sub(slots).map(|at| frames[at]);
    // An upload overwrites what the slot's last frame's kernels read, and kernels what its download reads.
    let begin = [
        Some(submitted),
        last.map(|f| f.upload.1),
        before.map(|f| f.kernel.1),
    ];
    let upload = stretch(&begin, parts[0]);
    let begin = [
        Some(upload.1),
        last.map(|f| f.kernel.1),
        before.map(|f| f.download.1),
    ];
    let kernel = stretch(&begin, parts[1]);
    let download = stretch(&[Some(kernel.1), last.map(|f| f.download.1)], parts[2]);
    FrameTimes {
        sequence: sequence as u64,
        slot: sequence % slots,
        upload,
        kernel,
        download,
        bytes_up: FRAME_BYTES,
        bytes_down: FRAME_BYTES,
        samples: FRAME_BYTES,
    }
}

/// What the card says of all its frames.
fn device_times(frames: Vec<FrameTimes>, slots: usize) -> DeviceTimes {
    let mut histograms = [(); 3].map(|()| Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap());
    let mut totals = [0.0; 3];
    for frame in &frames {
        for (index, span) in [frame.upload, frame.kernel, frame.download]
            .into_iter()
            .enumerate()
        {
            totals[index] += span.1 - span.0;
            histograms[index]
                .record(((span.1 - span.0) * 1e9) as u64)
                .unwrap();
        }
    }
    let count = frames.len() as u64;
    DeviceTimes {
        device: "Made-up card".to_owned(),
        slots,
        count,
        totals,
        wall: frames.last().map_or(0.0, |f| f.download.1) - frames.first().map_or(0.0, |f| f.upload.0),
        bytes_up: FRAME_BYTES * count,
        bytes_down: FRAME_BYTES * count,
        samples: FRAME_BYTES * count,
        histograms: Some(histograms),
        frames,
        ..DeviceTimes::default()
    }
}

/// `count` frames through `slots` slots, two more submitted ahead; each upload, kernel run and download takes
/// so many seconds, a little more in every seventh frame. The stages keep the first `kept` frames.
pub(crate) fn run(count: u64, slots: usize, parts: [f64; 3], kept: u64) -> Measurements {
    let mut host = Host::new(kept);
    let mut frames: Vec<FrameTimes> = Vec::new();
    for sequence in 0..count {
        let born = host.decode(sequence);
        if host.flying.len() == slots + 2 {
            let oldest = frames[host.flying[0].0 as usize];
            host.collect(oldest.download.1);
        }
        let submitted = host.hand_over(sequence);
        let slow = if sequence % 7 == 3 { 1.2 } else { 1.0 };
        let parts = parts.map(|seconds| seconds * slow);
        frames.push(next_on_card(&frames, slots, submitted, parts));
        host.submit(sequence, born);
    }
    while let Some(&(sequence, _)) = host.flying.front() {
        host.collect(frames[sequence as usize].download.1);
    }
    let Host {
        began,
        encoder,
        decode,
        engine,
        mut encode,
        end_to_end,
        throughput,
        ..
    } = host;
    encode.throughput = Some(throughput);
    Measurements {
        frames: count,
        began: Some(began),
        wall: ns(encoder + 1_000_000),
        stages: [decode, engine, encode],
        end_to_end,
        memory: PoolMemory {
            input_buffers: 9,
            input_bytes: 9 * FRAME_BYTES as usize,
            output_buffers: 9,
            output_bytes: 9 * FRAME_BYTES as usize,
        },
        device: Some(device_times(frames, slots)),
        ..Measurements::default()
    }
}

/// From the latest of these on, so long.
fn stretch(earliest: &[Option<f64>], length: f64) -> (f64, f64) {
    let begin = earliest.iter().flatten().fold(0.0_f64, |a, b| a.max(*b));
    (begin, begin + length)
}

/// What such a run was asked to do.
pub(crate) fn task(input: &str) -> Task {
    Task {
        input: input.to_owned(),
        output: "null:".to_owned(),
        filters: vec!["gaussian:size=5".to_owned()],
        engine: "cuda".to_owned(),
        engine_description: "cuda: Made-up card, memory variant auto, 3 slots".to_owned(),
        ..Task::default()
    }
}
