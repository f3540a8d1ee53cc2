//! The end of a run in three lines: the input with any conversion, the output, and the speed with advice to
//! raise it.

use super::escape;
use crate::cli::options::encoding::EncodingArguments;
use framepipe::report::{Completion, Report, Stage};
use framepipe::wording::{counted, size};
use std::fmt::Write;

/// Presets that are at least as fast as the one that is recommended.
const FAST: [&str; 3] = ["veryfast", "superfast", "ultrafast"];

/// The report to be shown in lines: other people's texts take one each.
pub(crate) fn legible(report: &Report) -> Report {
    let mut report = report.clone();
    let task = &mut report.task;
    escape::each([
        &mut task.input_name,
        &mut task.output_name,
        &mut task.input,
        &mut task.output,
        &mut task.engine_description,
    ]);
    escape::each(&mut task.filters);
    escape::each(report.notes.iter_mut().chain(&mut report.warnings));
    report
}

/// The three lines, then notes and warnings. `shown` is how many seconds the pictures are shown, `bytes` what
/// the output has.
pub(crate) fn brief(report: &Report, shown: Option<f64>, bytes: Option<u64>) -> String {
    let mut text = format!("input   {}\noutput  {}\n", report.task.input, report.task.output);
    let shown = shown.filter(|_| report.wall_seconds > 0.0);
    let speed = shown.map_or_else(String::new, |shown| {
        format!(" ({:.2}x)", shown / report.wall_seconds)
    });
    let ending = match report.ending {
        Completion::Complete => "",
        Completion::Interrupted => ", interrupted",
        Completion::Closed => ", cut short: the output's reader went away",
    };
    let bytes = bytes.map_or_else(String::new, |bytes| format!(", {}", size(bytes)));
    // Writing to a string does not fail.
    let verdict = verdict(report).map_or_else(String::new, |verdict| format!("; {verdict}"));
    let _ = writeln!(
        text,
        "{} in {:.1} s: {:.1} frames/s{speed}{bytes}{ending}{verdict}",
        counted(report.frames, "frame"),
        report.wall_seconds,
        report.frames_per_second
    );
    for (word, lines) in [("note", &report.notes), ("warning", &report.warnings)] {
        for line in lines {
            let _ = writeln!(text, "{word}: {line}");
        }
    }
    text
}

/// The limit of the run, and advice.
fn verdict(report: &Report) -> Option<String> {
    let limit = report.limit.as_ref()?;
    let (noun, percent) = (noun(limit.stage), limit.busy_share * 100.0);
    if !limit.is_clear() {
        return Some(format!(
            "no stage limits alone; {noun} is the busiest, {percent:.0}%"
        ));
    }
    let mut text = format!("{noun} limits, {percent:.0}% busy");
    if let Some(advice) = &limit.advice {
        let _ = write!(text, ": {advice}");
    }
    Some(text)
}

fn noun(stage: Stage) -> &'static str {
    match stage {
        Stage::Decode => "decoding",
        Stage::Engine => "filtering",
        Stage::Encode => "encoding",
    }
}

/// Adds to a report what would make the run faster, for everything that shows it.
pub(crate) fn advise(report: &mut Report, encoding: &EncodingArguments) {
    let stage = report.limit.as_ref().filter(|limit| limit.is_clear());
    let advice = stage.and_then(|limit| advice(limit.stage, report, encoding));
    if let Some(limit) = &mut report.limit {
        limit.advice = advice;
    }
}

/// Advice about a stage that limits the run; empty if there is none.
fn advice(stage: Stage, report: &Report, encoding: &EncodingArguments) -> Option<String> {
    match stage {
        Stage::Encode => {
            let has_presets = ["libx264", "libx265"]
                .iter()
                .any(|&name| report.task.output.contains(name));
            let is_fast = encoding
                .preset
                .as_deref()
                .is_some_and(|preset| FAST.contains(&preset));
            (has_presets && !is_fast).then(|| "try --preset veryfast".to_owned())
        }
        Stage::Engine => (report.task.engine == "reference").then(|| "try --engine cpu".to_owned()),
        Stage::Decode => None,
    }
}
