//! The report as a table for people, at most 100 columns wide.

use super::table::Table;
use crate::report::{Completion, DecoderReport, LatencySummary, PartReport, Report};
use crate::wording::{counted, mebibytes};
use std::fmt;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "input   {}", self.task.input)?;
        writeln!(f, "filter  {}", self.task.filters.join(", then "))?;
        writeln!(f, "engine  {}", self.task.engine_description)?;
        writeln!(f, "output  {}", self.task.output)?;
        writeln!(f)?;
        self.stage_table().fmt(f)?;
        writeln!(
            f,
            "times of a frame: decode and encode without waits; engine from submit to collect, with \
             waits"
        )?;
        if !self.decoders.is_empty() {
            writeln!(f)?;
            DecoderReport::table(&self.decoders).fmt(f)?;
        }
        if let Some(device) = &self.device {
            writeln!(f)?;
            self.device_table().fmt(f)?;
            if device.frames_timed < device.frames {
                writeln!(
                    f,
                    "{} of {} timed",
                    device.frames_timed,
                    counted(device.frames, "frame")
                )?;
            }
            writeln!(
                f,
                "kernels {}, transfers {} of the device's work; {} of the transfers hidden; overlap \
                 efficiency {:.3}",
                percent(device.kernel_share),
                percent(device.transfer_share),
                percent(device.transfer_hidden),
                device.overlap_efficiency
            )?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "{} in {}: {} frames/s{}; frame buffers {}",
            counted(self.frames, "frame"),
            time(self.wall_seconds),
            number(self.frames_per_second),
            match self.ending {
                Completion::Complete => "",
                Completion::Interrupted => " (interrupted)",
                Completion::Closed => " (cut short: the output's reader went away)",
            },
            mebibytes((self.memory.input_bytes + self.memory.output_bytes) as u128),
        )?;
        if let Some(limit) = &self.limit {
            writeln!(f, "{}", limit.words())?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for warning in &self.warnings {
            writeln!(f, "warning: {warning}")?;
        }
        Ok(())
    }
}

impl Report {
    fn stage_table(&self) -> Table {
        let mut table = Table::new(&[
            "stage", "threads", "frames", "alone/s", "MB/s", "busy", "no input", "no room", "p50", "p95",
            "p99", "max",
        ]);
        for stage in &self.stages {
            let mut row = vec![
                stage.stage.to_string(),
                stage.workers.to_string(),
                stage.frames.to_string(),
                stage
                    .frames_per_second_unhindered
                    .map_or_else(not_available, number),
                number(stage.megabytes_per_second),
                percent(stage.occupancy.busy_share),
                percent(stage.occupancy.input_wait_share),
                percent(stage.occupancy.output_wait_share),
            ];
            row.extend(percentiles(stage.occupancy.latency.as_ref()));
            table.row(row);
        }
        let mut row = vec!["in all".to_owned(), String::new(), self.frames.to_string()];
        row.resize(8, String::new());
        row.extend(percentiles(self.end_to_end.as_ref()));
        table.row(row);
        table
    }

    fn device_table(&self) -> Table {
        let mut table = Table::new(&["device", "total", "rate", "p50", "p95", "p99", "max"]);
        let Some(device) = &self.device else {
            return table;
        };
        let mut add = |name: &str, part: &PartReport, rate: Option<f64>, unit: &str| {
            let mut row = vec![
                name.to_owned(),
                time(part.seconds),
                rate.map_or_else(not_available, |r| format!("{r:.2} {unit}")),
            ];
            row.extend(percentiles(part.latency.as_ref()));
            table.row(row);
        };
        add(
            "upload",
            &device.upload,
            device.upload_gigabytes_per_second,
            "GB/s",
        );
        add(
            "kernel",
            &device.kernel,
            device.kernel_gigasamples_per_second,
            "Gsample/s",
        );
        add(
            "download",
            &device.download,
            device.download_gigabytes_per_second,
            "GB/s",
        );
        table
    }
}

pub(super) fn not_available() -> String {
    "n/a".to_owned()
}

pub(in crate::report) fn percentiles(latency: Option<&LatencySummary>) -> Vec<String> {
    match latency {
        Some(l) => [Some(l.p50), Some(l.p95), l.p99, Some(l.max)]
            .map(|seconds| seconds.map_or_else(not_available, time))
            .into(),
        None => vec![not_available(); 4],
    }
}

pub(in crate::report) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Three or four significant digits are enough to compare.
pub(in crate::report) fn number(value: f64) -> String {
    if value < 100.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.0}")
    }
}

/// Seconds in the unit that keeps the figure short.
pub(in crate::report) fn time(seconds: f64) -> String {
    let (value, unit) = match seconds {
        s if s >= 1.0 => (s, "s"),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s => (s * 1e6, "us"),
    };
    let digits = match value {
        v if v < 10.0 => 2,
        v if v < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::full;

    #[test]
    fn figures_keep_their_unit_short() {
        assert_eq!(time(0.0), "0.00us");
        assert_eq!(time(0.000_25), "250us");
        assert_eq!(time(0.012_34), "12.3ms");
        assert_eq!(time(123.4), "123s");
        assert_eq!(number(12.3456), "12.35");
        assert_eq!(number(15140.4), "15140");
    }

    #[test]
    fn columns_stand_under_each_other_within_100() {
        let mut report = full();
        for stage in &mut report.stages {
            stage.workers = 16;
            stage.frames = 1_234_567;
            stage.frames_per_second_unhindered = Some(123_456.0);
            stage.megabytes_per_second = 50_000.0;
        }
        let text = report.to_string();
        let table: Vec<&str> = text
            .lines()
            .skip_while(|l| !l.starts_with("stage"))
            .take(4)
            .collect();
        assert_eq!(table.len(), 4);
        for line in &table {
            assert_eq!(line.len(), table[0].len(), "{text}");
            assert!(line.len() <= 100, "{} columns:\n{text}", line.len());
        }
        for line in text.lines() {
            assert!(line.len() <= 110, "{text}");
        }
        assert!(text.contains("overlap efficiency 0.833"), "{text}");
        assert!(text.contains("warning: one packet was concealed"), "{text}");
    }
}
