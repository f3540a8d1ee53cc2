//! Sweeps and steady runs as tables for people.

use super::super::measure::{Cell, Machine, Peak, PeakKind, Sweep, Versions};
use super::super::steady::Steady;
use crate::report::Completion;
use crate::report::table::Table;
use crate::wording::counted;
use std::fmt;

impl Sweep {
    /// The title of the sweep, and the machine.
    pub fn head(&self) -> String {
        let machine = Head(&self.machine, &self.versions, &self.date);
        format!("{}\n{machine}", self.title)
    }

    /// Notes about the figures.
    pub fn foot(&self) -> String {
        let mut text = String::new();
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        if self.ending == Completion::Interrupted {
            text.push_str("interrupted: this is what was measured until then\n");
        }
        text
    }
}

impl fmt::Display for Sweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.head())?;
        for peak in &self.peaks {
            writeln!(f, "peak     {}", line(peak))?;
        }
        let mut work = None;
        let mut table = head_of_cells();
        for cell in &self.cells {
            let this = (&cell.filter, &cell.format, cell.width, cell.height, &cell.border);
            if work != Some(this) {
                if work.is_some() {
                    table.fmt(f)?;
                }
                let (filter, format, width, height, border) = this;
                writeln!(f, "\n{filter}, {width}x{height} {format}, border {border}")?;
                work = Some(this);
                table = head_of_cells();
            }
            table.row(row(cell));
        }
        if work.is_some() {
            table.fmt(f)?;
        }
        if self.cells.iter().any(|c| c.warm_milliseconds.is_some()) {
            writeln!(
                f,
                "\nms: pictures and results in turn, together four times the last-level cache; warm: the \
                 same with as few as can be; copies: ms over that of a plain copy"
            )?;
        }
        if self.cells.iter().any(|c| c.speed_up.is_some()) {
            writeln!(
                f,
                "\nspeed-up: over the reference, one plain thread of this machine, in this run"
            )?;
        }
        f.write_str(&self.foot())
    }
}

/// The machine of a measurement.
pub(in crate::program::bench) struct Head<'a>(
    pub(in crate::program::bench) &'a Machine,
    pub(in crate::program::bench) &'a Versions,
    pub(in crate::program::bench) &'a str,
);

impl fmt::Display for Head<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Head(machine, versions, date) = self;
        writeln!(
            f,
            "machine  {}, {}, {}",
            machine.cpu,
            counted(machine.cores as u64, "core"),
            machine.instruction_set
        )?;
        if let Some(gpu) = &machine.gpu {
            writeln!(
                f,
                "card     {gpu}, compute capability {}, driver for CUDA {}, NVRTC {}",
                machine.compute_capability.as_deref().unwrap_or("unknown"),
                versions.cuda_driver.as_deref().unwrap_or("unknown"),
                versions.nvrtc.as_deref().unwrap_or("missing")
            )?;
        }
        writeln!(f, "date     {date}, framepipe {}", versions.framepipe)
    }
}

pub(super) fn line(peak: &Peak) -> String {
    let what = match peak.kind {
        PeakKind::Copy => "copy",
        PeakKind::Link => "link",
        PeakKind::MultiplyAdd => "multiply-adds",
        PeakKind::DotProduct => "dot products",
        PeakKind::Tensor => "tensor cores",
    };
    let unit = match peak.kind {
        PeakKind::Copy | PeakKind::Link => "GB/s",
        _ => "Gmac/s",
    };
    let mut text = format!("{} {what}", peak.engine);
    if let Some(threads) = peak.threads {
        text.push_str(&format!(", {}", counted(threads as u64, "thread")));
    }
    if let Some(bytes) = peak.bytes {
        text.push_str(&format!(", {:.2} MB", bytes as f64 / 1e6));
    }
    format!(
        "{text}: {} {unit} ({})",
        figure(peak.giga_per_second),
        peak.method
    )
}

fn head_of_cells() -> Table {
    Table::new(&[
        "engine",
        "algorithm",
        "block",
        "scope",
        "ms",
        "min",
        "p90",
        "warm",
        "Gpixel/s",
        "GB/s",
        "copy",
        "copies",
        "arith",
        "speed-up",
    ])
}

fn row(cell: &Cell) -> Vec<String> {
    let mut what = cell.engine.clone();
    if let Some(variant) = &cell.variant {
        what.push_str(&format!(" {variant}"));
    }
    if let Some(threads) = cell.threads.filter(|_| cell.engine != "reference") {
        what.push_str(&format!(", {}", counted(threads as u64, "thread")));
    }
    let share = |share: Option<f64>| share.map_or_else(String::new, |s| format!("{:.0}%", s * 100.0));
    vec![
        what,
        cell.algorithm.clone(),
        cell.block.clone().unwrap_or_default(),
        cell.scope.to_string(),
        figure(cell.milliseconds.median),
        figure(cell.milliseconds.min),
        figure(cell.milliseconds.p90),
        cell.warm_milliseconds
            .map_or_else(String::new, |warm| figure(warm.median)),
        figure(cell.gigapixels_per_second),
        figure(cell.gigabytes_per_second),
        share(cell.share_of_copy),
        cell.share_of_copy
            .map_or_else(String::new, |share| figure(1.0 / share)),
        share(cell.share_of_arithmetic),
        cell.speed_up
            .map_or_else(String::new, |s| format!("{}x", figure(s))),
    ]
}

/// Lines of cells as columns: the first to the left, the rest to the right.
pub fn columns(lines: &[Vec<String>]) -> String {
    let mut table = Table::new(&[]);
    for line in lines {
        table.row(line.clone());
    }
    table.to_string().trim_start_matches('\n').to_owned()
}

/// Three significant digits, or as many as there are before the point.
pub fn figure(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    let digits = if magnitude.is_finite() {
        (2.0 - magnitude).clamp(0.0, 9.0) as usize
    } else {
        0
    };
    format!("{value:.digits$}")
}

impl fmt::Display for Steady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "steady state: {} to {}",
            self.report.task.input, self.report.task.output
        )?;
        writeln!(f, "engine   {}", self.report.task.engine_description)?;
        writeln!(f, "filter   {}", self.report.task.filters.join(", then "))?;
        Head(&self.machine, &self.versions, &self.date).fmt(f)?;
        writeln!(
            f,
            "\n{} frames in {:.2} s after {:.2} s of warm-up: {} frames/s, {} MB/s",
            self.frames,
            self.seconds,
            self.warm_up_seconds,
            figure(self.frames_per_second),
            figure(self.megabytes_per_second)
        )?;
        if let (Some(slowest), Some(fastest)) = (least(&self.rates), most(&self.rates)) {
            writeln!(
                f,
                "in stretches of {} s: {} to {} frames/s, drift {:+.1}% from begin to end",
                self.interval_seconds,
                figure(slowest),
                figure(fastest),
                self.drift * 100.0
            )?;
        }
        if let Some(l) = &self.latency {
            writeln!(
                f,
                "a frame's path through: p50 {} ms, p95 {} ms, p99 {}, longest {} ms",
                figure(l.p50 * 1e3),
                figure(l.p95 * 1e3),
                l.p99
                    .map_or_else(|| "n/a".to_owned(), |p99| format!("{} ms", figure(p99 * 1e3))),
                figure(l.max * 1e3)
            )?;
        }
        if !self.rates.is_empty() {
            writeln!(f)?;
            let mut table = Table::new(&["from s", "frames/s"]);
            for (index, rate) in self.rates.iter().enumerate() {
                table.row(vec![
                    format!("{:.1}", index as f64 * self.interval_seconds),
                    figure(*rate),
                ]);
            }
            table.fmt(f)?;
        }
        writeln!(f, "\nthe whole run, warm-up and end included:")?;
        self.report.fmt(f)?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

fn least(values: &[f64]) -> Option<f64> {
    values.iter().copied().min_by(f64::total_cmp)
}

fn most(values: &[f64]) -> Option<f64> {
    values.iter().copied().max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::bench::measure::sample::full;

    #[test]
    fn figures_have_three_digits() {
        let figures = [
            0.0,
            0.000_620_4,
            0.001_234,
            0.0123,
            0.1239,
            1.234,
            12.34,
            123.4,
            12_345.6,
        ];
        let texts = [
            "0", "0.000620", "0.00123", "0.0123", "0.124", "1.23", "12.3", "123", "12346",
        ];
        assert_eq!(figures.map(figure), texts.map(str::to_owned));
    }

    #[test]
    fn cells_of_the_same_work_stand_in_one_table() {
        let mut sweep = full();
        let mut other = sweep.cells[0].clone();
        other.variant = Some("texture".to_owned());
        sweep.cells.push(other.clone());
        other.width = 640;
        sweep.cells.push(other);
        let text = sweep.to_string();
        assert_eq!(text.matches("engine  ").count(), 2, "{text}");
        assert!(
            text.contains("\ngaussian:size=7, 1920x1080 gray, border replicate\n"),
            "{text}"
        );
        assert!(
            text.contains("\ngaussian:size=7, 640x1080 gray, border replicate\n"),
            "{text}"
        );
        let rows: Vec<&str> = text.lines().filter(|l| l.starts_with("cuda ")).collect();
        assert_eq!(rows.len(), 3);
        assert!(
            rows[0].contains("0.0200") && rows[0].ends_with("1000x"),
            "{}",
            rows[0]
        );
        assert!(text.contains("note: no card"), "{text}");
    }
}
