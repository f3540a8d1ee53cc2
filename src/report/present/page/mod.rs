//! The page of a run: one HTML file with plots and tables, which needs no network, no script and no other
//! file.
//!
//! Each plot is drawn twice, for a screen and for a phone, and the style sheet shows the one that fits; it
//! gives the drawings the colours of the reader's theme too.

mod document;
mod escape;
mod plots;

pub(crate) use document::Document;
pub(crate) use plots::curves::{Curve, CurveKind, Curves, Scale, SeriesStyle};
pub(crate) use plots::dot_plot::{Dots, Series};

use super::text::{self, number, percent, time};
use crate::report::{DeviceReport, LatencySummary, Measurements, Report, Stage, Task};
use crate::wording::mebibytes;
use plots::{latency, stacked_bars, throughput, timeline};
use plotters::drawing::DrawingAreaErrorKind;
use std::ffi::OsStr;
use std::path::Path;

/// The number of first frames whose spans a page can show; a run for a page asks its stages to keep them.
pub const FRAMES: u64 = 32;

/// The background colour, light and dark.
const GROUND: (&str, &str) = ("#ffffff", "#14171a");

/// A plot could not be drawn.
#[derive(Debug, thiserror::Error)]
#[error("drawing the page's plots: {0}")]
pub struct PageError(String);

impl<E: std::error::Error + Send + Sync> From<DrawingAreaErrorKind<E>> for PageError {
    fn from(error: DrawingAreaErrorKind<E>) -> Self {
        PageError(error.to_string())
    }
}

/// The page of one run.
pub fn run(report: &Report, measured: &Measurements) -> Result<String, PageError> {
    let mut page = Document::new(&format!("framepipe: {}", title(&report.task)));
    let mut facts = vec![
        (number(report.frames_per_second), "frames/s"),
        (report.frames.to_string(), "frames"),
        (time(report.wall_seconds), "wall time"),
    ];
    if let Some(latency) = &report.end_to_end {
        facts.push((time(latency.p50), "median latency, end to end"));
    }
    if let Some(device) = &report.device {
        facts.push((percent(device.transfer_hidden), "of the transfers hidden"));
    }
    page.facts(&facts);
    if let Some(limit) = &report.limit {
        page.paragraph("limit", &limit.words());
    }
    body(&mut page, report, measured)?;
    Ok(page.finish())
}

/// The input, the output and the filters for a title.
pub(crate) fn title(task: &Task) -> String {
    let input = short_name(&task.input_name, &task.input);
    let output = short_name(&task.output_name, &task.output);
    format!("{input} \u{2192} {output} ({})", task.filters.join(", then "))
}

/// The name of an input or output for a title: that of its file without folders, if it has one, or what is
/// `described` of one without a name.
fn short_name<'a>(name: &'a str, described: &'a str) -> &'a str {
    // The slash of a frame rate such as 30000/1001 is none of a path.
    if name.starts_with("synthetic:") {
        return name;
    }
    match Path::new(name).file_name().and_then(OsStr::to_str) {
        Some(name) => name,
        None if name.is_empty() => described,
        None => name,
    }
}

/// A plot of frames a second in stretches of `interval` seconds.
pub(crate) fn rates(
    page: &mut Document,
    caption: &str,
    (interval, rates): (f64, &[f64]),
    mean: f64,
) -> Result<(), PageError> {
    let end = interval * rates.len() as f64;
    let words = ("rates", "Throughput in the steady state", caption);
    throughput::steps(page, words, (interval, rates), end, mean)
}

/// All of a run except the head of its page.
pub(crate) fn body(page: &mut Document, report: &Report, measured: &Measurements) -> Result<(), PageError> {
    for note in &report.notes {
        page.paragraph("note", &format!("Note: {note}"));
    }
    for warning in &report.warnings {
        page.paragraph("warning", &format!("Warning: {warning}"));
    }
    throughput::draw(page, report)?;
    stacked_bars::stages(page, report)?;
    if let Some(device) = &report.device {
        stacked_bars::device(page, device)?;
    }
    if let Some(device) = &measured.device {
        timeline::device(page, device)?;
    }
    timeline::stages(page, measured)?;
    latency::stages(page, measured)?;
    latency::device(page, measured)?;
    // The facts of the JSON.
    stages_table(page, report);
    if !report.decoders.is_empty() {
        decoders_table(page, report);
    }
    latencies_table(page, report);
    if let Some(device) = &report.device {
        device_words(page, device);
    }
    run_words(page, report);
    Ok(())
}

fn stages_table(page: &mut Document, report: &Report) {
    page.heading("Stages");
    let share = |s: f64| percent(s);
    let rows: Vec<Vec<String>> = report
        .stages
        .iter()
        .map(|stage| {
            vec![
                stage.stage.to_string(),
                stage.workers.to_string(),
                stage.frames.to_string(),
                stage
                    .frames_per_second_unhindered
                    .map_or_else(text::not_available, number),
                number(stage.megabytes_per_second),
                share(stage.occupancy.busy_share),
                share(stage.occupancy.input_wait_share),
                share(stage.occupancy.output_wait_share),
            ]
        })
        .collect();
    page.table(
        &[
            "stage",
            "threads",
            "frames",
            "frames/s alone",
            "MB/s",
            "busy",
            "no input",
            "no room",
        ],
        &rows,
    );
}

fn decoders_table(page: &mut Document, report: &Report) {
    page.heading("Decoders");
    let rows = report.decoders.iter().enumerate();
    let rows: Vec<Vec<String>> = rows.map(|(index, decoder)| decoder.row(index)).collect();
    page.table(
        &[
            "decoder", "on", "frames", "share", "busy", "no input", "no room", "p50", "p95", "p99", "longest",
        ],
        &rows,
    );
}

fn latencies_table(page: &mut Document, report: &Report) {
    page.heading("Latencies");
    let mut rows = vec![latency_row("from end to end", report.end_to_end.as_ref())];
    for stage in &report.stages {
        rows.push(latency_row(
            latency_name(stage.stage),
            stage.occupancy.latency.as_ref(),
        ));
    }
    if let Some(device) = &report.device {
        for (name, part) in [
            ("upload", &device.upload),
            ("kernels", &device.kernel),
            ("download", &device.download),
        ] {
            rows.push(latency_row(name, part.latency.as_ref()));
        }
    }
    page.table(&["", "frames", "mean", "p50", "p95", "p99", "longest"], &rows);
}

fn device_words(page: &mut Document, device: &DeviceReport) {
    page.heading("Device");
    let rate =
        |rate: Option<f64>, unit: &str| rate.map_or_else(text::not_available, |r| format!("{r:.2} {unit}"));
    page.words(&[
        ("device", device.device.clone()),
        ("slots", device.slots.to_string()),
        ("frames", device.frames.to_string()),
        ("frames timed", device.frames_timed.to_string()),
        ("wall time", time(device.wall_seconds)),
        (
            "upload",
            format!(
                "{}, {}",
                time(device.upload.seconds),
                rate(device.upload_gigabytes_per_second, "GB/s")
            ),
        ),
        (
            "kernels",
            format!(
                "{}, {}",
                time(device.kernel.seconds),
                rate(device.kernel_gigasamples_per_second, "Gsample/s")
            ),
        ),
        (
            "download",
            format!(
                "{}, {}",
                time(device.download.seconds),
                rate(device.download_gigabytes_per_second, "GB/s")
            ),
        ),
        (
            "kernels and transfers",
            format!(
                "{} and {} of the work",
                percent(device.kernel_share),
                percent(device.transfer_share)
            ),
        ),
        ("transfers hidden", percent(device.transfer_hidden)),
        ("overlap efficiency", format!("{:.3}", device.overlap_efficiency)),
    ]);
}

fn run_words(page: &mut Document, report: &Report) {
    page.heading("The run");
    let memory = &report.memory;
    let mebibytes = |bytes: usize| mebibytes(bytes as u128);
    let origin = report.task.origin.clone().unwrap_or_default();
    let mut words = vec![
        ("command", origin.command),
        ("input", report.task.input.clone()),
        ("filters", report.task.filters.join(", then ")),
        ("engine", report.task.engine_description.clone()),
        ("output", report.task.output.clone()),
        ("ending", format!("{:?}", report.ending).to_lowercase()),
        (
            "frame buffers",
            format!(
                "{} at most between source and engine ({} needed), {} between engine and sink ({} needed)",
                memory.input_buffers,
                mebibytes(memory.input_bytes),
                memory.output_buffers,
                mebibytes(memory.output_bytes)
            ),
        ),
        ("machine", origin.machine),
        ("begun", origin.date),
        ("versions", origin.versions),
    ];
    words.retain(|(_, text)| !text.is_empty());
    page.words(&words);
}

/// What a stage's latencies are of. An engine's frames overlap, so that each waits for those before it.
pub(in crate::report::present::page) fn latency_name(stage: Stage) -> &'static str {
    match stage {
        Stage::Engine => "engine, submit to collect",
        stage => stage.name(),
    }
}

fn latency_row(name: &str, latency: Option<&LatencySummary>) -> Vec<String> {
    let mut row = vec![name.to_owned()];
    match latency {
        Some(l) => {
            row.push(l.count.to_string());
            row.extend([l.mean, l.p50, l.p95].map(time));
            row.push(l.p99.map_or_else(text::not_available, time));
            row.push(time(l.max));
        }
        None => row.resize(7, text::not_available()),
    }
    row
}
