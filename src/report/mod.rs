//! Where a run's time went: each stage's own clock, latencies, the device's split, and which stage limits.
//!
//! Nothing here is shared between threads: a stage owns its [`StageClock`] and hands it over when its thread
//! is joined. docs/schemas.md states every field of the JSON.
//!
//! ```text
//! measure/   a stage's clock in a run -> decoders, split, limit: what follows from it -> present/
//! ```

mod decoders;
mod limit;
mod measure;
mod present;
mod split;

pub use decoders::{DecoderClock, DecoderReport};
pub use limit::Limit;
pub use measure::{
    Activity, LEAST_FOR_P99, Latencies, LatencySummary, OpenRange, Recording, SPANS_A_FRAME, Span, Spans,
    Stage, StageClock, Throughput, ThroughputReport,
};
#[cfg(feature = "cli")]
#[doc(hidden)]
pub use present::page;
pub(crate) use present::table;
pub use present::{Alignment, Trace};
pub use split::{DeviceReport, PartReport};

use crate::engine::DeviceTimes;
use crate::frame::Remarks;
use serde::Serialize;
use std::time::{Duration, Instant};

/// The name in every report's `schema` field.
pub const SCHEMA: &str = "framepipe-report";

/// The version in every report's `version` field; it grows when a field changes its meaning or goes away.
pub const VERSION: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Completion {
    /// The whole input was done.
    #[default]
    Complete,
    /// The user stopped it; frames in flight were finished.
    Interrupted,
    /// The output's reader went away.
    Closed,
}

/// The measurements of a run.
#[derive(Debug, Clone, Default)]
pub struct Measurements {
    /// How it ended.
    pub ending: Completion,
    /// Frames written.
    pub frames: u64,
    /// The host's instant that the spans of all stages count from; `None` before a run.
    pub began: Option<Instant>,
    /// From the start of the stages to the end of the last one.
    pub wall: Duration,
    /// The accounts of decode, engine and encode.
    pub stages: [StageClock; 3],
    /// The accounts of several decoders that share the input; the decode stage's account is their sum. Empty
    /// if the stage's own thread decodes.
    pub decoders: Vec<DecoderClock>,
    /// From each frame's birth in the source to its being taken by the sink.
    pub end_to_end: Latencies,
    /// The device's own times, if the engine has a device.
    pub device: Option<DeviceTimes>,
    /// The frame pools when they were largest.
    pub memory: PoolMemory,
}

/// The sizes of the frame pools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct PoolMemory {
    /// Buffers between source and engine, at most.
    pub input_buffers: usize,
    /// Bytes of those that were needed.
    pub input_bytes: usize,
    /// Buffers between engine and sink, at most.
    pub output_buffers: usize,
    /// Bytes of those that were needed.
    pub output_bytes: usize,
}

impl Measurements {
    /// One stage's account.
    pub fn stage(&self, stage: Stage) -> &StageClock {
        match stage {
            Stage::Decode => &self.stages[0],
            Stage::Engine => &self.stages[1],
            Stage::Encode => &self.stages[2],
        }
    }
}

/// The task of a run, for the report's head.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Task {
    /// The input as it was given, such as its path; empty if not stated.
    pub input_name: String,
    /// The output as it was given; empty if not stated.
    pub output_name: String,
    /// The input, as the source describes it.
    pub input: String,
    /// The output, as the sink describes it.
    pub output: String,
    /// The filters, in order, as the user wrote them.
    pub filters: Vec<String>,
    /// The engine's name.
    pub engine: String,
    /// The device and settings of the engine, as it describes them.
    pub engine_description: String,
    /// Where and how the run was made; `None` if not stated.
    pub origin: Option<Origin>,
}

/// Where and how a run was made, so that a reader of its report can repeat it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Origin {
    /// The command line, quoted for a shell.
    pub command: String,
    /// Processor, cores and vector instructions.
    pub machine: String,
    /// When it was begun, UTC, as `2026-11-21T10:05:00Z`.
    pub date: String,
    /// The program's version and that of FFmpeg's libraries.
    pub versions: String,
}

/// The report of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// Always [`SCHEMA`].
    pub schema: &'static str,
    /// Always [`VERSION`].
    pub version: u32,
    /// framepipe's version.
    pub program_version: &'static str,
    /// The task.
    pub task: Task,
    /// How the run ended.
    pub ending: Completion,
    /// Frames written.
    pub frames: u64,
    /// Seconds from the start of the stages to the end of the last one.
    pub wall_seconds: f64,
    /// Frames over wall seconds.
    pub frames_per_second: f64,
    /// Frames written over time; `None` if that was not requested, or without frames.
    pub throughput: Option<ThroughputReport>,
    /// Decode, engine, encode.
    pub stages: Vec<StageReport>,
    /// Several decoders that share the input, one by one; empty if there is only one.
    pub decoders: Vec<DecoderReport>,
    /// From a frame's birth in the source to its being taken by the sink; `None` without frames.
    pub end_to_end: Option<LatencySummary>,
    /// The stage that limits; `None` without frames.
    pub limit: Option<Limit>,
    /// The device's split; `None` if the engine has no device.
    pub device: Option<DeviceReport>,
    /// The frame pools.
    pub memory: PoolMemory,
    /// Changes without a loss.
    pub notes: Vec<String>,
    /// Problems that did not end the run.
    pub warnings: Vec<String>,
}

/// One stage in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StageReport {
    /// Which one.
    pub stage: Stage,
    /// Its threads.
    pub workers: usize,
    /// Frames passed on.
    pub frames: u64,
    /// Bytes of picture passed on.
    pub bytes: u64,
    /// Frames a second if the stage never waited; `None` without frames.
    pub frames_per_second_unhindered: Option<f64>,
    /// 10^6 bytes a second over the run's wall time.
    pub megabytes_per_second: f64,
    /// Where the time of its threads went.
    #[serde(flatten)]
    pub occupancy: Occupancy,
}

/// Where the time of a stage's threads, or of a decoder, went.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Occupancy {
    /// Seconds at work, summed over the threads.
    pub busy_seconds: f64,
    /// Seconds without input (a frame, a stretch to decode), summed over the threads.
    pub input_wait_seconds: f64,
    /// Seconds without a free buffer or without room for results, summed over the threads.
    pub output_wait_seconds: f64,
    /// Share of the threads' time at work, 0 to 1.
    pub busy_share: f64,
    /// Share of the threads' time without input, 0 to 1.
    pub input_wait_share: f64,
    /// Share of the threads' time without room for output, 0 to 1.
    pub output_wait_share: f64,
    /// Seconds that a frame took; `None` without frames.
    pub latency: Option<LatencySummary>,
}

impl Report {
    /// Puts the figures together.
    pub fn new(task: Task, measured: &Measurements, remarks: Remarks) -> Report {
        let seconds = measured.wall.as_secs_f64();
        let rate = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
        let device = measured.device.as_ref().map(DeviceReport::new);
        let stages = Stage::ALL
            .map(|stage| {
                let clock = measured.stage(stage);
                StageReport {
                    stage,
                    workers: clock.workers,
                    frames: clock.frames,
                    bytes: clock.bytes,
                    frames_per_second_unhindered: clock.unhindered_rate(),
                    megabytes_per_second: rate(clock.bytes as f64 / 1e6),
                    occupancy: clock.occupancy(measured.wall),
                }
            })
            .into();
        Report {
            schema: SCHEMA,
            version: VERSION,
            program_version: env!("CARGO_PKG_VERSION"),
            task,
            ending: measured.ending,
            frames: measured.frames,
            wall_seconds: seconds,
            frames_per_second: rate(measured.frames as f64),
            throughput: measured
                .stage(Stage::Encode)
                .throughput
                .as_ref()
                .and_then(Throughput::report),
            stages,
            decoders: DecoderReport::all(measured),
            end_to_end: measured.end_to_end.summary(),
            limit: Limit::find(measured, device.as_ref()),
            device,
            memory: measured.memory,
            warnings: remarks.warning_texts(),
            notes: remarks.notes,
        }
    }

    /// The report as indented JSON with a final line break.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use hdrhistogram::Histogram;
    use serde_json::Value;

    /// A run in which every optional field has a value.
    pub(crate) fn full() -> Report {
        let recording = Recording {
            frames: 1,
            throughput: true,
        };
        let mut clock = StageClock::recording(recording, Instant::now());
        clock.busy = Duration::from_millis(900);
        let mut end_to_end = Latencies::default();
        // As many as a 99th percentile takes.
        for _ in 0..LEAST_FOR_P99 {
            clock.frame(10_000, Duration::from_millis(3));
            end_to_end.record(Duration::from_millis(12));
        }
        let mut histogram = Histogram::new(3).unwrap();
        histogram.record_n(1_500_000, LEAST_FOR_P99).unwrap();
        let measured = Measurements {
            frames: LEAST_FOR_P99,
            wall: Duration::from_secs(1),
            stages: [clock.clone(), clock.clone(), clock.clone()],
            decoders: vec![DecoderClock {
                place: "card 0".to_owned(),
                clock,
            }],
            end_to_end,
            device: Some(DeviceTimes {
                device: "Test card".to_owned(),
                slots: 3,
                count: LEAST_FOR_P99,
                totals: [0.2, 0.5, 0.2],
                wall: 0.6,
                bytes_up: 1_000_000,
                bytes_down: 1_000_000,
                samples: 1_000_000,
                histograms: Some([histogram.clone(), histogram.clone(), histogram]),
                ..DeviceTimes::default()
            }),
            ..Measurements::default()
        };
        let task = Task {
            input_name: "clips/in.mp4".to_owned(),
            output_name: "blurred/out.mp4".to_owned(),
            input: "stream 0 of clips/in.mp4".to_owned(),
            output: "out.mp4".to_owned(),
            filters: vec!["gaussian:sigma=3".to_owned()],
            engine: "cuda".to_owned(),
            engine_description: "cuda: Test card".to_owned(),
            origin: Some(Origin::default()),
        };
        let remarks = Remarks {
            notes: vec!["the clock jumps once".to_owned()],
            warnings: vec!["one packet was concealed".to_owned().into()],
        };
        let mut report = Report::new(task, &measured, remarks);
        let limit = report.limit.as_mut().unwrap();
        limit.advice = Some("try --engine cpu".to_owned());
        report
    }

    /// Every leaf as `a.b[].c`, each once, in order of appearance.
    pub(crate) fn paths(value: &Value, prefix: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let path = if prefix.is_empty() {
                        name.clone()
                    } else {
                        format!("{prefix}.{name}")
                    };
                    paths(inner, &path, found);
                }
            }
            Value::Array(items) => {
                for item in items {
                    paths(item, &format!("{prefix}[]"), found);
                }
            }
            Value::Null => panic!("{prefix} has no value; the sample run must fill every field"),
            _ if found.iter().any(|p| p == prefix) => {}
            _ => found.push(prefix.to_owned()),
        }
    }

    /// What every object has.
    const EVERYWHERE: [&str; 2] = ["schema", "version"];

    /// The fields that a section of docs/schemas.md lists, and those that every object has. Those of a common
    /// object are listed wherever the meaning of a field begins with its name.
    pub(crate) fn documented(section: &str) -> Vec<String> {
        let common = rows("Common objects");
        let inner = |word: &str| -> Vec<&str> {
            let prefix = format!("{}.", word.to_uppercase());
            let fields = common.iter().map(|(field, _)| field);
            fields.filter_map(|field| field.strip_prefix(&prefix)).collect()
        };
        let fields = rows(section).into_iter().flat_map(|(field, word)| {
            let inner = inner(&word);
            match inner.is_empty() {
                true => vec![field],
                false => inner.iter().map(|inner| format!("{field}.{inner}")).collect(),
            }
        });
        fields.chain(EVERYWHERE.map(str::to_owned)).collect()
    }

    /// The rows of the tables in a section of docs/schemas.md: each field, and the first word of its meaning.
    fn rows(section: &str) -> Vec<(String, String)> {
        let page = include_str!("../../docs/schemas.md");
        let (_, from) = page.split_once(&format!("\n## {section}\n")).unwrap();
        let lines = from.lines().take_while(|line| !line.starts_with("## "));
        let rows = lines.filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
        let found: Vec<_> = rows
            .flat_map(|(fields, meaning)| {
                let word = meaning
                    .split(|c: char| !c.is_alphabetic())
                    .next()
                    .unwrap_or_default();
                expanded(fields).into_iter().map(|field| (field, word.to_owned()))
            })
            .collect();
        assert!(!found.is_empty(), "{section}");
        found
    }

    /// The fields that `a.{b, c}.d` stands for.
    fn expanded(fields: &str) -> Vec<String> {
        let Some((before, rest)) = fields.split_once('{') else {
            return vec![fields.to_owned()];
        };
        let (names, after) = rest.split_once('}').unwrap_or((rest, ""));
        let names = names.split(", ");
        names
            .flat_map(|name| expanded(&format!("{before}{name}{after}")))
            .collect()
    }

    #[test]
    fn the_json_has_the_documented_fields_and_no_others() {
        let json: Value = serde_json::from_str(&full().to_json().unwrap()).unwrap();
        let mut found = Vec::new();
        paths(&json, "", &mut found);
        let mut documented = documented("Reports");
        found.sort();
        documented.sort();
        assert_eq!(found, documented);
        assert_eq!(json["schema"], SCHEMA);
        assert_eq!(json["version"], VERSION);
    }

    #[test]
    fn a_run_without_frames_has_a_report_too() {
        let report = Report::new(Task::default(), &Measurements::default(), Remarks::default());
        assert_eq!(report.limit, None);
        assert_eq!(report.end_to_end, None);
        let json: Value = serde_json::from_str(&report.to_json().unwrap()).unwrap();
        assert!(json["stages"][0]["latency"].is_null());
        assert!(json["device"].is_null());
        assert!(report.to_string().contains("n/a"));
    }
}
