//! A run's first frames in Chrome's trace event format, which Perfetto (<https://ui.perfetto.dev>) opens.
//!
//! Every stage thread is a track with a span for each frame's work and for each wait, and every stream of a
//! device is one. All times count from the run's beginning. docs/schemas.md describes the file.

use crate::engine::{DeviceTimes, FrameTimes};
use crate::report::{Activity, Measurements, Span, Spans, Stage, Task};
use crate::wording::counted;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::time::Instant;

/// The stages' process in the trace, and the device's.
const HOST: u32 = 1;
const DEVICE: u32 = 2;

/// Device times of one stream that overlap by less than this, in seconds, do so because a copy's end is seen
/// a little late and because the clock has steps of half a microsecond.
const LATE: f64 = 10e-6;

/// Where the zero of a device's clock lies on the host's.
///
/// A download ends before the host sees its end, and an upload begins after the host began to submit its
/// frame; so each frame bounds the zero from both sides, as does the host's instant before the first event,
/// where the engine tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Alignment {
    /// Seconds from the run's beginning to the device's zero.
    pub offset: f64,
    /// The zero may lie this many seconds to either side; 0 if only one side is bounded.
    pub tolerance: f64,
}

impl Alignment {
    /// Finds the zero from the activities of the engine stage's thread; `None` without a frame that both
    /// recorded.
    pub fn find(measured: &Measurements) -> Option<Alignment> {
        let device = measured.device.as_ref()?;
        let mut earliest = f64::NEG_INFINITY;
        if let (Some(origin), Some(began)) = (device.origin, measured.began) {
            earliest = seconds_after(origin, began);
        }
        let mut latest = f64::INFINITY;
        let mut times = device.frames.iter();
        // Both are in the frames' order, and the engine gives frames back in the order that it got them.
        for span in measured.stage(Stage::Engine).threads.iter().flat_map(Spans::list) {
            match span.activity {
                Activity::Submit => {
                    if let Some(frame) = find(device, span.sequence) {
                        earliest = earliest.max(span.begin as f64 / 1e9 - frame.upload.0);
                    }
                }
                Activity::Collect => {
                    if let Some(frame) = times.find(|f| f.sequence == span.sequence) {
                        latest = latest.min(span.end as f64 / 1e9 - frame.download.1);
                    }
                }
                _ => {}
            }
        }
        match (earliest.is_finite(), latest.is_finite()) {
            (true, true) => Some(Alignment {
                offset: f64::midpoint(earliest, latest),
                tolerance: (latest - earliest).abs() / 2.0,
            }),
            (false, true) => Some(Alignment {
                offset: latest,
                tolerance: 0.0,
            }),
            (true, false) => Some(Alignment {
                offset: earliest,
                tolerance: 0.0,
            }),
            (false, false) => None,
        }
    }
}

fn find(device: &DeviceTimes, sequence: u64) -> Option<&FrameTimes> {
    let at = device.frames.binary_search_by_key(&sequence, |f| f.sequence);
    at.ok().map(|at| &device.frames[at])
}

/// Seconds from `zero` to `instant`, which may lie before it.
fn seconds_after(instant: Instant, zero: Instant) -> f64 {
    match instant.checked_duration_since(zero) {
        Some(after) => after.as_secs_f64(),
        None => -zero.duration_since(instant).as_secs_f64(),
    }
}

/// The trace of one run.
#[derive(Debug, Clone, Copy)]
pub struct Trace<'a> {
    task: &'a Task,
    measured: &'a Measurements,
    kept: u64,
}

/// One event as the format has it; times in microseconds.
#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'a str,
    ph: &'a str,
    pid: u32,
    tid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'a str>,
    #[serde(skip_serializing_if = "Value::is_null")]
    args: Value,
}

impl Default for Event<'_> {
    fn default() -> Self {
        Event {
            name: "",
            cat: "",
            ph: "X",
            pid: HOST,
            tid: 0,
            ts: None,
            dur: None,
            id: None,
            bp: None,
            s: None,
            args: Value::Null,
        }
    }
}

/// Writes the events one a line.
struct Events<W> {
    out: W,
    any: bool,
}

impl<W: Write> Events<W> {
    fn put(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    fn name(&mut self, what: &str, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        self.put(&Event {
            name: what,
            ph: "M",
            pid,
            tid,
            args: json!({ "name": name }),
            ..Event::default()
        })
    }

    /// Names a thread and puts it in its place among the others.
    fn thread(&mut self, pid: u32, tid: u32, name: &str) -> io::Result<()> {
        self.name("thread_name", pid, tid, name)?;
        self.put(&Event {
            name: "thread_sort_index",
            ph: "M",
            pid,
            tid,
            args: json!({ "sort_index": tid }),
            ..Event::default()
        })
    }

    /// A phase of the arrow that leads from a frame's decoding through all its work to its encoding.
    fn arrow(&mut self, phase: FlowPhase, pid: u32, tid: u32, ts: f64, frame: u64) -> io::Result<()> {
        self.put(&Event {
            name: "frame",
            cat: "frame",
            ph: match phase {
                FlowPhase::Start => "s",
                FlowPhase::Step => "t",
                FlowPhase::End => "f",
            },
            pid,
            tid,
            ts: Some(ts),
            id: Some(frame),
            bp: matches!(phase, FlowPhase::End).then_some("e"),
            ..Event::default()
        })
    }
}

/// A thread of the host.
struct Thread<'a> {
    stage: Stage,
    name: String,
    spans: &'a Spans,
    /// The name of its wait for input.
    waits_for: &'static str,
}

/// The phases of a flow event, which viewers draw as one arrow through all spans of a frame.
#[derive(Clone, Copy)]
enum FlowPhase {
    Start,
    Step,
    End,
}

impl<'a> Trace<'a> {
    /// The trace of a run whose stages kept the spans of the first `kept` frames.
    pub fn new(task: &'a Task, measured: &'a Measurements, kept: u64) -> Trace<'a> {
        Trace { task, measured, kept }
    }

    /// Writes the whole file.
    pub fn write_to(&self, mut out: impl Write) -> io::Result<()> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":")?;
        serde_json::to_writer(&mut out, &self.facts())?;
        out.write_all(b",\"traceEvents\":[")?;
        let mut events = Events { out, any: false };
        events.name("process_name", HOST, 0, "framepipe")?;
        let mut tid = 0;
        let mut end = 0_u64;
        for thread in self.threads() {
            tid += 1;
            events.thread(HOST, tid, &thread.name)?;
            // A call that waited inside is kept as two spans that may differ from the call by the clock's
            // steps.
            let mut last = 0;
            for span in thread.spans.list().iter().filter(|s| s.sequence < self.kept) {
                let begin = span.begin.max(last);
                last = span.end.max(begin);
                let span = Span {
                    begin,
                    end: last,
                    ..*span
                };
                host_span(&mut events, &thread, tid, &span)?;
            }
            end = end.max(last);
        }
        if let Some(device) = &self.measured.device {
            let offset = Alignment::find(self.measured).map_or(0.0, |a| a.offset);
            self.device(&mut events, device, offset)?;
        }
        if self.dropped() > 0 {
            events.put(&Event {
                name: &format!(
                    "kept: the first {}; not kept: {} more",
                    counted(self.measured.frames - self.dropped(), "frame"),
                    self.dropped()
                ),
                ph: "i",
                ts: Some(end as f64 / 1e3),
                s: Some("g"),
                ..Event::default()
            })?;
        }
        if let Some(device) = &self.measured.device
            && self.device_frames(device) < device.count.min(self.kept)
        {
            events.put(&Event {
                name: &format!(
                    "of the device's times, those of the first {} were kept",
                    counted(self.device_frames(device), "frame")
                ),
                ph: "i",
                pid: DEVICE,
                ts: Some(end as f64 / 1e3),
                s: Some("p"),
                ..Event::default()
            })?;
        }
        events.out.write_all(b"\n]}\n")?;
        events.out.flush()
    }

    /// The decoders' threads and the stages', with their names.
    fn threads(&self) -> Vec<Thread<'_>> {
        let decoders = self.measured.decoders.iter().enumerate();
        let decoders = decoders.flat_map(|(index, decoder)| {
            let name = format!("decoder {}, {}", index + 1, decoder.place);
            let threads = decoder.clock.threads.iter();
            threads.map(move |spans| Thread {
                stage: Stage::Decode,
                name: name.clone(),
                spans,
                waits_for: "stretch",
            })
        });
        let stages = Stage::ALL.into_iter().flat_map(|stage| {
            let threads = &self.measured.stage(stage).threads;
            threads.iter().enumerate().map(move |(index, spans)| {
                let name = match threads.len() {
                    1 => stage.to_string(),
                    _ => format!("{stage} {}", index + 1),
                };
                Thread {
                    stage,
                    name,
                    spans,
                    waits_for: "frame",
                }
            })
        });
        decoders.chain(stages).collect()
    }

    /// Frames of the run whose spans were not kept.
    fn dropped(&self) -> u64 {
        self.measured.frames.saturating_sub(self.kept)
    }

    /// Frames whose device times are in the trace.
    fn device_frames(&self, device: &DeviceTimes) -> u64 {
        (device.frames.len() as u64).min(self.kept)
    }

    /// The task of the run, and the extent of the trace.
    fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        let mut put = |name: &str, value: Value| {
            facts.insert(name.to_owned(), value);
        };
        put("program", json!(concat!("framepipe ", env!("CARGO_PKG_VERSION"))));
        put("input", json!(self.task.input));
        put("output", json!(self.task.output));
        put("filters", json!(self.task.filters));
        if let Some(origin) = &self.task.origin {
            put("command", json!(origin.command));
        }
        put("engine", json!(self.task.engine_description));
        put("frames", json!(self.measured.frames));
        put("frames_kept", json!(self.measured.frames - self.dropped()));
        put("frames_dropped", json!(self.dropped()));
        if let Some(device) = &self.measured.device {
            put("device", json!(device.device));
            put("device_slots", json!(device.slots));
            let kept = self.device_frames(device);
            put("device_frames_kept", json!(kept));
            put("device_frames_dropped", json!(device.count.saturating_sub(kept)));
            if let Some(alignment) = Alignment::find(self.measured) {
                put("device_clock_offset_us", json!(alignment.offset * 1e6));
                put("device_clock_tolerance_us", json!(alignment.tolerance * 1e6));
            }
        }
        facts
    }

    /// The device's streams, each a track; overlapping work of one kind ran on a further stream.
    fn device<W: Write>(&self, events: &mut Events<W>, device: &DeviceTimes, offset: f64) -> io::Result<()> {
        events.name("process_name", DEVICE, 0, &device.device)?;
        let mut tid = 0;
        for (part, span_of) in PARTS {
            let mut lanes: Vec<f64> = Vec::new();
            for frame in device.frames.iter().take_while(|f| f.sequence < self.kept) {
                let (begin, end) = span_of(frame);
                let lane = match lanes.iter().position(|&until| begin >= until - LATE) {
                    Some(lane) => lane,
                    None => {
                        lanes.push(f64::NEG_INFINITY);
                        let name = match lanes.len() {
                            1 => part.to_owned(),
                            n => format!("{part}, stream {n}"),
                        };
                        events.thread(DEVICE, tid + lanes.len() as u32, &name)?;
                        lanes.len() - 1
                    }
                };
                let begin = begin.max(lanes[lane]);
                let end = end.max(begin);
                lanes[lane] = end;
                let tid = tid + 1 + lane as u32;
                let ts = ((offset + begin) * 1e9).round() / 1e3;
                let mut args = json!({ "frame": frame.sequence, "slot": frame.slot });
                match part {
                    "upload" => args["bytes"] = json!(frame.bytes_up),
                    "download" => args["bytes"] = json!(frame.bytes_down),
                    _ => args["samples"] = json!(frame.samples),
                }
                events.put(&Event {
                    name: part,
                    cat: part,
                    pid: DEVICE,
                    tid,
                    ts: Some(ts),
                    dur: Some(((offset + end) * 1e9).round() / 1e3 - ts),
                    args,
                    ..Event::default()
                })?;
                events.arrow(FlowPhase::Step, DEVICE, tid, ts, frame.sequence)?;
            }
            tid += lanes.len().max(1) as u32;
        }
        Ok(())
    }
}

/// A part of a frame's path through a device, and its times.
type Part = (&'static str, fn(&FrameTimes) -> (f64, f64));

/// The parts in the order in which a frame goes through them.
pub(super) const PARTS: [Part; 3] = [
    ("upload", |f| f.upload),
    ("kernel", |f| f.kernel),
    ("download", |f| f.download),
];

fn host_span<W: Write>(events: &mut Events<W>, thread: &Thread<'_>, tid: u32, span: &Span) -> io::Result<()> {
    let &Thread { stage, waits_for, .. } = thread;
    let input_wait = format!("waits for a {waits_for}");
    let (name, phase) = match (span.activity, stage) {
        (Activity::InputWait, _) => (input_wait.as_str(), None),
        (Activity::BufferWait, _) => ("waits for a buffer", None),
        (Activity::QueueWait, _) => ("waits for room", None),
        (Activity::Submit, _) => ("submit", Some(FlowPhase::Step)),
        (Activity::Collect, _) => ("collect", Some(FlowPhase::Step)),
        (Activity::Work, stage) => {
            let phase = match stage {
                Stage::Decode => FlowPhase::Start,
                Stage::Engine => FlowPhase::Step,
                Stage::Encode => FlowPhase::End,
            };
            (stage.name(), Some(phase))
        }
    };
    let ts = span.begin as f64 / 1e3;
    events.put(&Event {
        name,
        cat: if span.activity.is_wait() {
            "wait"
        } else {
            stage.name()
        },
        tid,
        ts: Some(ts),
        dur: Some((span.end - span.begin) as f64 / 1e3),
        args: json!({ "frame": span.sequence }),
        ..Event::default()
    })?;
    match phase {
        Some(phase) => events.arrow(phase, HOST, tid, ts, span.sequence),
        None => Ok(()),
    }
}
