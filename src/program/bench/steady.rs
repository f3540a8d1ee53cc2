//! A run of the whole pipeline for some seconds, of which the start is left out: throughput over time, drift,
//! latencies.

use super::measure::{Machine, Versions, now};
use crate::frame::Frame;
use crate::pipeline::{self, Job, PipelineError, Progress, Stop};
use crate::report::{Completion, Latencies, LatencySummary, Measurements, Report, Task};
use crate::sink::{AnySink, Flow, IndexedSink, Sink, SinkError, Written};
use crossbeam_channel::Receiver;
use serde::Serialize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The name in every steady run's `schema` field.
pub const STEADY_SCHEMA: &str = "framepipe-steady";

/// The version in every steady run's `version` field; it grows when a field changes its meaning or goes away.
pub const STEADY_VERSION: u32 = 1;

/// How long a run is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SteadyPlan {
    /// Warm-up after the first frame, left out of the figures.
    pub warm_up: Duration,
    /// The time that is measured after the warm-up.
    pub time: Duration,
}

/// The result of a steady run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Steady {
    /// Always [`STEADY_SCHEMA`].
    pub schema: &'static str,
    /// The schema's version, [`STEADY_VERSION`].
    pub version: u32,
    /// When it ended, UTC.
    pub date: String,
    /// The machine.
    pub machine: Machine,
    /// The versions.
    pub versions: Versions,
    /// Whether the whole time was measured.
    pub ending: Completion,
    /// Seconds that were left out.
    pub warm_up_seconds: f64,
    /// Seconds that were measured.
    pub seconds: f64,
    /// Frames in the measured seconds.
    pub frames: u64,
    /// Frames over seconds.
    pub frames_per_second: f64,
    /// 10^6 bytes of picture a second.
    pub megabytes_per_second: f64,
    /// Seconds of one of `rates`' stretches.
    pub interval_seconds: f64,
    /// Frames a second in each whole stretch.
    pub rates: Vec<f64>,
    /// How much the rate changed from start to end, by a line through `rates`, as a share of their mean;
    /// negative if it fell.
    pub drift: f64,
    /// From a frame's birth in the source to its being taken by the sink; `None` without frames.
    pub latency: Option<LatencySummary>,
    /// The whole run's report, warm-up included.
    pub report: Report,
    /// Notes about the figures.
    pub notes: Vec<String>,
}

/// The sink's clock, which starts with the first frame.
struct Tally {
    plan: SteadyPlan,
    interval: Duration,
    began: Option<Instant>,
    /// When the last frame that counts came.
    last: Duration,
    frames: u64,
    bytes: u64,
    stretches: Vec<u64>,
    latencies: Latencies,
    is_over: bool,
}

impl Tally {
    fn new(plan: SteadyPlan) -> Tally {
        // Ten stretches at least, of a second at most.
        let interval = (plan.time / 10)
            .min(Duration::from_secs(1))
            .max(Duration::from_millis(1));
        Tally {
            plan,
            interval,
            began: None,
            last: Duration::ZERO,
            frames: 0,
            bytes: 0,
            stretches: Vec::new(),
            latencies: Latencies::default(),
            is_over: false,
        }
    }

    /// Counts a frame that was taken at `now`; true when the time is up.
    fn add(&mut self, born: Instant, bytes: usize, now: Instant) -> bool {
        let began = *self.began.get_or_insert(now);
        let since = now.saturating_duration_since(began);
        let Some(at) = since.checked_sub(self.plan.warm_up) else {
            return false;
        };
        if at >= self.plan.time {
            self.is_over = true;
            return true;
        }
        let stretch = (at.as_nanos() / self.interval.as_nanos()) as usize;
        if self.stretches.len() <= stretch {
            self.stretches.resize(stretch + 1, 0);
        }
        self.stretches[stretch] += 1;
        self.frames += 1;
        self.bytes += bytes as u64;
        self.last = at;
        self.latencies.record(now.saturating_duration_since(born));
        false
    }

    /// The measured time in seconds: the whole plan, or up to the last frame if the run ended before.
    fn seconds(&self) -> f64 {
        let time = if self.is_over { self.plan.time } else { self.last };
        time.as_secs_f64()
    }

    /// Frames a second in each stretch that was measured whole.
    fn rates(&self) -> Vec<f64> {
        let length = self.interval.as_secs_f64();
        let whole = ((self.seconds() + 1e-9) / length) as usize;
        let counts = self.stretches.iter().copied().chain(std::iter::repeat(0));
        counts.take(whole).map(|count| count as f64 / length).collect()
    }
}

/// The change from start to end of the line that fits `rates` best, as a share of their mean.
fn drift(rates: &[f64]) -> f64 {
    let count = rates.len() as f64;
    if rates.len() < 2 {
        return 0.0;
    }
    let mean = rates.iter().sum::<f64>() / count;
    let middle = (count - 1.0) / 2.0;
    let (mut over, mut under) = (0.0, 0.0);
    for (index, rate) in rates.iter().enumerate() {
        let x = index as f64 - middle;
        over += x * (rate - mean);
        under += x * x;
    }
    if mean > 0.0 {
        over / under * (count - 1.0) / mean
    } else {
        0.0
    }
}

/// A sink whose frames are counted.
struct Counted<S> {
    sink: S,
    tally: Arc<Mutex<Tally>>,
    stop: Stop,
}

impl<S> Counted<S> {
    fn add(&self, born: Instant, bytes: usize) {
        // Nothing can fail between lock and unlock.
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        if !tally.is_over && tally.add(born, bytes, Instant::now()) {
            self.stop.finish();
        }
    }
}

impl Sink for Counted<Box<dyn Sink>> {
    fn row_alignment(&self) -> usize {
        self.sink.row_alignment()
    }

    fn held_buffers(&self) -> usize {
        self.sink.held_buffers()
    }

    fn delayed_frames(&self) -> u64 {
        self.sink.delayed_frames()
    }

    fn watch(&mut self, stop: &Receiver<()>) {
        self.sink.watch(stop);
    }

    fn write(&mut self, frame: Frame) -> Result<Flow, SinkError> {
        let (born, bytes) = (frame.born, frame.layout().picture_bytes());
        let flow = self.sink.write(frame)?;
        self.add(born, bytes);
        Ok(flow)
    }

    fn finish(self: Box<Self>) -> Result<Written, SinkError> {
        self.sink.finish()
    }
}

impl IndexedSink for Counted<Arc<dyn IndexedSink>> {
    fn write(&self, frame: Frame) -> Result<(), SinkError> {
        let (born, bytes) = (frame.born, frame.layout().picture_bytes());
        self.sink.write(frame)?;
        self.add(born, bytes);
        Ok(())
    }

    fn finish(&self) -> Result<Written, SinkError> {
        self.sink.finish()
    }
}

/// Runs `job` until the plan's time is up, its input ends, or `stop` is used. Also returns the pipeline's own
/// measurements of the whole run.
pub fn run(
    job: Job,
    filters: Vec<String>,
    plan: SteadyPlan,
    device: usize,
    stop: &Stop,
    progress: &Progress,
) -> Result<(Steady, Measurements), PipelineError> {
    let tally = Arc::new(Mutex::new(Tally::new(plan)));
    let (count, end) = (Arc::clone(&tally), stop.clone());
    let sink = match job.sink {
        AnySink::Stream(sink) => AnySink::Stream(Box::new(Counted {
            sink,
            tally: count,
            stop: end,
        })),
        AnySink::Indexed(sink) => AnySink::Indexed(Arc::new(Counted {
            sink,
            tally: count,
            stop: end,
        })),
    };
    let mut task = Task {
        input: job.source.info().description.clone(),
        filters,
        engine: job.engine.name().to_owned(),
        engine_description: job.engine.description(),
        ..Task::default()
    };
    let outcome = pipeline::run(Job { sink, ..job }, stop, progress)?;
    task.output = outcome.written.description.clone();
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    let mut measured = outcome.measurements;
    let mut notes = Vec::new();
    if tally.is_over {
        // The end was ours.
        measured.ending = Completion::Complete;
    } else if measured.ending == Completion::Complete {
        notes.push(format!(
            "the input ended after {:.2} s of the {:.2} s that were to be measured",
            tally.seconds(),
            plan.time.as_secs_f64()
        ));
    }
    if tally.frames == 0 {
        notes.push("no frame came after the warm-up; make the run longer or the warm-up shorter".to_owned());
    }
    let (machine, versions) = Machine::here(device);
    let (seconds, rates) = (tally.seconds(), tally.rates());
    let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let steady = Steady {
        schema: STEADY_SCHEMA,
        version: STEADY_VERSION,
        date: now(),
        machine,
        versions,
        ending: measured.ending,
        warm_up_seconds: plan.warm_up.as_secs_f64(),
        seconds,
        frames: tally.frames,
        frames_per_second: rate(tally.frames as f64),
        megabytes_per_second: rate(tally.bytes as f64 / 1e6),
        interval_seconds: tally.interval.as_secs_f64(),
        drift: drift(&rates),
        rates,
        latency: tally.latencies.summary(),
        report: Report::new(task, &measured, outcome.remarks),
        notes,
    };
    Ok((steady, measured))
}

impl Steady {
    /// The figures as indented JSON with a final line break.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }

    /// The rates as comma-separated values.
    pub fn to_csv(&self) -> String {
        let mut text = "from_seconds,frames_per_second\n".to_owned();
        for (index, rate) in self.rates.iter().enumerate() {
            // To the microsecond: multiples of a tenth of a second are no binary fractions.
            let seconds = (index as f64 * self.interval_seconds * 1e6).round() / 1e6;
            text.push_str(&format!("{seconds},{rate}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::none::NoFilter;
    use crate::pipeline::PipelineOptions;
    use crate::report::tests::{documented, full, paths};
    use crate::{sink, source};
    use serde_json::Value;

    fn plan(warm_up: u64, time: u64) -> SteadyPlan {
        SteadyPlan {
            warm_up: Duration::from_millis(warm_up),
            time: Duration::from_millis(time),
        }
    }

    #[test]
    fn the_warm_up_does_not_count_and_the_end_is_seen() {
        let mut tally = Tally::new(plan(100, 1000));
        let start = Instant::now();
        // A frame every 10 ms; the first tenth of a second is warm-up.
        for index in 0..110 {
            let now = start + Duration::from_millis(10 * index);
            assert!(!tally.add(now, 7, now + Duration::ZERO), "frame {index}");
        }
        assert!(tally.add(start, 7, start + Duration::from_millis(1100)));
        assert_eq!((tally.frames, tally.bytes), (100, 700));
        assert_eq!(tally.rates(), vec![100.0; 10]);
        assert!((tally.seconds() - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_stretch_without_frames_is_a_rate_of_nothing() {
        let mut tally = Tally::new(plan(0, 1000));
        let start = Instant::now();
        for at in [0, 50, 350, 1000] {
            tally.add(start, 1, start + Duration::from_millis(at));
        }
        assert_eq!(tally.rates()[..4], [20.0, 0.0, 0.0, 10.0]);
        assert_eq!(tally.rates().len(), 10);
    }

    #[test]
    fn drift_is_the_slope_and_not_the_noise() {
        assert_eq!(drift(&[]), 0.0);
        assert_eq!(drift(&[5.0]), 0.0);
        assert_eq!(drift(&[0.0, 0.0]), 0.0);
        assert!((drift(&[110.0, 100.0, 90.0]) + 0.2).abs() < 1e-12);
        assert!(drift(&[100.0, 120.0, 120.0, 100.0]).abs() < 1e-12);
    }

    fn short_run(frames: u64, plan: SteadyPlan) -> Steady {
        let spec = format!("synthetic:64x48:gray:25:{frames}").parse().unwrap();
        let job = Job {
            source: source::synthetic::open(&spec).unwrap(),
            engine: Box::new(NoFilter::default()),
            sink: AnySink::Stream(sink::null::create()),
            options: PipelineOptions::default(),
        };
        run(
            job,
            vec!["none".to_owned()],
            plan,
            0,
            &Stop::new(),
            &Progress::new(),
        )
        .unwrap()
        .0
    }

    #[test]
    fn an_endless_source_is_stopped_and_a_short_one_is_reported() {
        let endless = short_run(0, plan(20, 200));
        assert_eq!(endless.ending, Completion::Complete);
        assert!(
            endless.frames > 0 && endless.notes.is_empty(),
            "{:?}",
            endless.notes
        );
        assert_eq!(endless.seconds, 0.2);
        assert_eq!(endless.rates.len(), 10);
        let counted: f64 = endless.rates.iter().sum::<f64>() * endless.interval_seconds;
        assert!((counted - endless.frames as f64).abs() < 1e-6);
        assert!(endless.latency.is_some());
        let short = short_run(3, plan(0, 60_000));
        assert!(
            short.notes[0].contains("the input ended after"),
            "{:?}",
            short.notes
        );
        assert_eq!(short.frames, 3);
        let none = short_run(3, plan(30_000, 60_000));
        assert!(
            none.notes.iter().any(|n| n.contains("no frame came")),
            "{:?}",
            none.notes
        );
        assert!(none.to_string().contains("0 frames in"), "{none}");
    }

    #[test]
    fn the_json_has_the_documented_fields_and_no_others() {
        let mut steady = short_run(0, plan(10, 50));
        steady.report = full();
        // The run itself may be too short for a 99th percentile.
        steady.latency = steady.report.end_to_end;
        steady.notes = vec!["something".to_owned()];
        super::super::measure::sample::complete(&mut steady.machine, &mut steady.versions);
        let json: Value = serde_json::from_str(&steady.to_json().unwrap()).unwrap();
        let mut found = Vec::new();
        paths(&json, "", &mut found);
        // The report inside has a section of its own.
        found.retain(|p| !p.starts_with("report."));
        let mut listed = documented("Steady runs");
        listed.retain(|p| p != "report");
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
    }
}
