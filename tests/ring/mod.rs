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

/// `count` frames through `slots` slots, two more submitted ahead; each upload, kernel run and download takes
/// so many seconds, a little more in every seventh frame. The stages keep the first `kept` frames.
pub(crate) fn run(count: u64, slots: usize, parts: [f64; 3], kept: u64) -> Measurements {
    let began = Instant::now();
    let recording = Recording {
        frames: kept,
        throughput: true,
    };
    let at = |nanoseconds: u64| began + Duration::from_nanos(nanoseconds);
    let ns = Duration::from_nanos;
    let [mut decode, mut engine, mut encode] = [(); 3].map(|()| StageClock::recording(recording, began));
    let mut end_to_end = Latencies::default();
    let mut histograms = [(); 3].map(|()| Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap());
    let mut totals = [0.0; 3];
    let mut frames: Vec<FrameTimes> = Vec::new();
    let mut flying: VecDeque<(u64, u64)> = VecDeque::new();
    // Where each of the three threads is.
    let (mut decoder, mut submitter, mut encoder) = (ZERO - 100_000, ZERO - 3_000, ZERO);
    // The clock counts when it is asked to, and all of this is asked at once.
    let mut throughput = Throughput::new(began);
    let mut collect = |engine: &mut StageClock,
                       submitter: &mut u64,
                       flying: &mut VecDeque<(u64, u64)>,
                       download_end: f64| {
        let (sequence, born) = flying.pop_front().unwrap();
        let end = (ZERO + (download_end * 1e9) as u64 + NOTICE).max(*submitter + 500);
        engine.span(Activity::Collect, sequence, at(*submitter), ns(end - *submitter));
        engine.busy += ns(end - *submitter);
        engine.frame(FRAME_BYTES as usize, ns(end - born));
        *submitter = end;
        let from = encoder;
        encoder = encoder.max(end);
        encode.span(Activity::InputWait, sequence, at(from), ns(encoder - from));
        encode.input_wait += ns(encoder - from);
        encode.span(Activity::Work, sequence, at(encoder), ns(ENCODE));
        encode.busy += ns(ENCODE);
        encoder += ENCODE;
        encode.frame(FRAME_BYTES as usize, ns(ENCODE));
        throughput.count(at(encoder));
        end_to_end.record(ns(encoder - born));
    };
    for sequence in 0..count {
        decode.span(Activity::Work, sequence, at(decoder), ns(DECODE));
        decode.busy += ns(DECODE);
        decode.frame(FRAME_BYTES as usize, ns(DECODE));
        let born = decoder;
        decoder += DECODE;
        if flying.len() == slots + 2 {
            let oldest = frames[flying[0].0 as usize];
            collect(&mut engine, &mut submitter, &mut flying, oldest.download.1);
        }
        let waited = submitter.saturating_sub(decoder);
        decode.span(Activity::QueueWait, sequence, at(decoder), ns(waited));
        decode.output_wait += ns(waited);
        decoder += waited;
        submitter = submitter.max(decoder);
        let submitted = (submitter as f64 + 3_000.0 - ZERO as f64) / 1e9;

        let slow = if sequence % 7 == 3 { 1.2 } else { 1.0 };
        let last = frames.last();
        let before = (sequence as usize).checked_sub(slots).map(|at| frames[at]);
        // An upload overwrites what the slot's last frame's kernels read, and kernels what its download
        // reads.
        let begin = [
            Some(submitted),
            last.map(|f| f.upload.1),
            before.map(|f| f.kernel.1),
        ];
        let upload = stretch(&begin, parts[0] * slow);
        let begin = [
            Some(upload.1),
            last.map(|f| f.kernel.1),
            before.map(|f| f.download.1),
        ];
        let kernel = stretch(&begin, parts[1] * slow);
        let download = stretch(&[Some(kernel.1), last.map(|f| f.download.1)], parts[2] * slow);
        for (index, span) in [upload, kernel, download].into_iter().enumerate() {
            totals[index] += span.1 - span.0;
            histograms[index]
                .record(((span.1 - span.0) * 1e9) as u64)
                .unwrap();
        }
        frames.push(FrameTimes {
            sequence,
            slot: sequence as usize % slots,
            upload,
            kernel,
            download,
            bytes_up: FRAME_BYTES,
            bytes_down: FRAME_BYTES,
            samples: FRAME_BYTES,
        });
        engine.span(Activity::Submit, sequence, at(submitter), ns(SUBMIT));
        engine.busy += ns(SUBMIT);
        flying.push_back((sequence, born));
        submitter += SUBMIT;
    }
    while let Some(&(sequence, _)) = flying.front() {
        collect(
            &mut engine,
            &mut submitter,
            &mut flying,
            frames[sequence as usize].download.1,
        );
    }
    encode.throughput = Some(throughput);
    let device = DeviceTimes {
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
    };
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
        device: Some(device),
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
