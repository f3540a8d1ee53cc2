//! Sweeps and steady runs as pages to look at: what changes along each axis that was swept, and how far from
//! the peaks it stays.

use super::super::measure::{Cell, Machine, Peak, PeakKind, Scope, Sweep, Versions};
use super::super::steady::Steady;
use super::text::figure as number;
use crate::report::Measurements;
use crate::report::page::{
    self, Curve, CurveKind, Curves, Document, Dots, PageError, Scale, Series, SeriesStyle,
};
use crate::wording::counted;
use std::collections::BTreeMap;

/// Plots of one kind in a page at most; the table holds every cell.
const MOST: usize = 12;

/// A time that nine of ten are within, as a multiple of the median, from which on a machine was busy.
const NOISY: f64 = 1.5;

/// What can be swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Axis {
    Mask,
    Block,
    Threads,
    Size,
    Format,
}

impl Axis {
    const ALL: [Axis; 5] = [Axis::Mask, Axis::Block, Axis::Threads, Axis::Size, Axis::Format];

    fn name(self) -> &'static str {
        match self {
            Axis::Mask => "mask",
            Axis::Block => "block",
            Axis::Threads => "threads",
            Axis::Size => "size",
            Axis::Format => "format",
        }
    }

    /// A cell's place along the axis: in order, and by name. `None` if it has none.
    fn place(self, cell: &Cell) -> Option<(f64, String)> {
        let size = format!("{}x{}", cell.width, cell.height);
        match self {
            Axis::Mask => Some((cell.mask_width as f64, cell.mask_width.to_string())),
            Axis::Block => {
                let block = cell.block.clone()?;
                let (x, y) = block.split_once('x')?;
                let (x, y): (f64, f64) = (x.parse().ok()?, y.parse().ok()?);
                Some((x * y * 1e6 + x, block))
            }
            Axis::Threads => cell
                .threads
                .filter(|_| cell.engine == "cpu")
                .map(|t| (t as f64, t.to_string())),
            Axis::Size => Some((cell.width as f64 * cell.height as f64 / 1e6, size)),
            Axis::Format => Some((0.0, cell.format.clone())),
        }
    }

    /// What stays the same within a plot along this axis.
    fn plot(self, cell: &Cell) -> String {
        let filter = match self {
            Axis::Mask => cell.filter.split(':').next().unwrap_or_default().to_owned(),
            _ => cell.filter.clone(),
        };
        let mut words = vec![filter];
        match self {
            Axis::Size => words.push(cell.format.clone()),
            Axis::Format => words.push(format!("{}x{}", cell.width, cell.height)),
            _ => words.push(format!("{}x{} {}", cell.width, cell.height, cell.format)),
        }
        if cell.border != "replicate" {
            words.push(format!("border {}", cell.border));
        }
        words.push(scope_words(cell.scope).to_owned());
        words.join(", ")
    }
}

fn scope_words(scope: Scope) -> &'static str {
    match scope {
        Scope::Kernel => "convolution alone",
        Scope::Pageable => "with transfers, ordinary memory",
        Scope::Pinned => "with transfers, page-locked memory",
        Scope::Ring => "with transfers, in the ring",
    }
}

/// What computed a cell, beside its place along an axis.
fn engine(cell: &Cell, axis: Axis) -> String {
    let mut name = match &cell.variant {
        Some(variant) => format!("{} {variant}", cell.engine),
        None => cell.engine.clone(),
    };
    if let (Some(threads), true) = (cell.threads, axis != Axis::Threads && cell.engine == "cpu") {
        name.push_str(&format!(", {}", counted(threads as u64, "thread")));
    }
    name
}

/// One engine and algorithm along an axis.
struct Line<'a> {
    engine: String,
    algorithm: &'a str,
    points: Vec<Point<'a>>,
}

/// The best cell at one place: what else differs between cells of one line and place (a block's shape) is
/// chosen by its time.
struct Point<'a> {
    at: f64,
    label: String,
    cell: &'a Cell,
}

impl Line<'_> {
    fn name(&self) -> String {
        format!("{}, {}", self.engine, self.algorithm)
    }
}

fn lines<'a>(cells: &[&'a Cell], axis: Axis) -> Vec<Line<'a>> {
    let mut lines: Vec<Line<'a>> = Vec::new();
    for &cell in cells {
        let Some((at, label)) = axis.place(cell) else {
            continue;
        };
        let engine = engine(cell, axis);
        let known = lines
            .iter()
            .position(|l| l.engine == engine && l.algorithm == cell.algorithm);
        let line = known.unwrap_or_else(|| {
            lines.push(Line {
                engine,
                algorithm: &cell.algorithm,
                points: Vec::new(),
            });
            lines.len() - 1
        });
        let points = &mut lines[line].points;
        match points.iter_mut().find(|p| p.label == label) {
            Some(point) if cell.milliseconds.median < point.cell.milliseconds.median => point.cell = cell,
            Some(_) => {}
            None => points.push(Point { at, label, cell }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|a, b| a.at.total_cmp(&b.at));
    }
    // A line of one point says nothing about the axis.
    lines.retain(|line| line.points.len() > 1);
    lines
}

/// Engines by colour and algorithms by shape, where there are several of both.
fn styles(lines: &[Line<'_>]) -> Vec<SeriesStyle> {
    let mut engines: Vec<&str> = Vec::new();
    let mut algorithms: Vec<&str> = Vec::new();
    for line in lines {
        if !engines.contains(&line.engine.as_str()) {
            engines.push(&line.engine);
        }
        if !algorithms.contains(&line.algorithm) {
            algorithms.push(line.algorithm);
        }
    }
    let place = |all: &[&str], one: &str| all.iter().position(|other| *other == one).unwrap_or(0);
    lines
        .iter()
        .enumerate()
        .map(|(index, line)| {
            if engines.len() < 2 || algorithms.len() < 2 {
                return SeriesStyle::nth(index);
            }
            SeriesStyle {
                colour: place(&engines, &line.engine),
                shape: place(&algorithms, line.algorithm),
            }
        })
        .collect()
}

impl Steady {
    /// The run as one HTML file with plots and tables; `measured` is what the pipeline measured of the whole
    /// run, `command` the command line.
    pub fn to_html(&self, measured: &Measurements, command: &str) -> Result<String, PageError> {
        let report = &self.report;
        let mut page = Document::new(&format!(
            "framepipe bench pipeline: {}",
            page::title(&report.task)
        ));
        page.paragraph("note", &on(&self.machine, &self.versions, &self.date));
        page.paragraph("note", command);
        let mut facts = vec![
            (number(self.frames_per_second), "frames/s"),
            (format!("{} s", number(self.seconds)), "measured"),
            (format!("{:+.1}%", self.drift * 100.0), "drift from begin to end"),
        ];
        if let Some(latency) = &self.latency {
            facts.push((
                format!("{} ms", number(latency.p50 * 1e3)),
                "median latency, end to end",
            ));
            facts.extend(
                latency
                    .p99
                    .map(|p99| (format!("{} ms", number(p99 * 1e3)), "99th percentile of it")),
            );
        }
        page.facts(&facts);
        if let Some(limit) = &report.limit {
            page.paragraph("limit", &limit.words());
        }
        for note in &self.notes {
            page.paragraph("note", &format!("Note: {note}"));
        }
        if !self.rates.is_empty() {
            let caption = format!(
                "Frames a second after {} s of warm-up.",
                number(self.warm_up_seconds)
            );
            page::rates(
                &mut page,
                &caption,
                (self.interval_seconds, &self.rates),
                self.frames_per_second,
            )?;
        }
        page.paragraph("note", "What follows is the whole run, warm-up and end included.");
        page::body(&mut page, report, measured)?;
        Ok(page.finish())
    }
}

/// The machine, time and versions of a measurement.
fn on(machine: &Machine, versions: &Versions, date: &str) -> String {
    let cores = machine.cores;
    let mut on = format!("{}, {cores} cores, {}", machine.cpu, machine.instruction_set);
    if let Some(gpu) = &machine.gpu {
        on = format!("{gpu}; {on}");
    }
    format!("{on}. {date}, framepipe {}.", versions.framepipe)
}

impl Sweep {
    /// The sweep as one HTML file with plots and tables; `command` is the command line.
    pub fn to_html(&self, command: &str) -> Result<String, PageError> {
        let mut page = Document::new(&self.title);
        self.beginning(&mut page, command);
        self.best(&mut page);
        page.list_contents();
        for axis in Axis::ALL {
            self.along(&mut page, axis)?;
        }
        for engine in ["cuda", "cpu"] {
            self.roofline(&mut page, engine)?;
        }
        self.tables(&mut page);
        Ok(page.finish())
    }

    fn beginning(&self, page: &mut Document, command: &str) {
        page.paragraph("note", &on(&self.machine, &self.versions, &self.date));
        page.paragraph("note", command);
        if self.ending != crate::report::Completion::Complete {
            page.paragraph("warning", "Interrupted: this is what was measured until then.");
        }
        for note in &self.notes {
            page.paragraph("note", &format!("Note: {note}"));
        }
        let is_noisy = |cell: &&Cell| cell.milliseconds.p90 > NOISY * cell.milliseconds.median;
        let noisy = self.cells.iter().filter(is_noisy).count();
        if noisy > 0 {
            let all = self.cells.len();
            page.paragraph(
                "warning",
                &format!(
                    "Of {all} cells {noisy} took {NOISY} times their median or more in one of ten times: \
                     something else was running, and small differences mean nothing."
                ),
            );
        }
    }

    /// The fastest cell of each work and scope.
    fn best(&self, page: &mut Document) {
        let mut best: Vec<(String, &Cell)> = Vec::new();
        let scope = self.cells.first().map(|cell| cell.scope);
        let scope = scope.filter(|&scope| self.cells.iter().all(|cell| cell.scope == scope));
        for cell in self.cells.iter().filter(|cell| cell.engine != "reference") {
            let mut work = format!("{}, {}x{} {}", cell.filter, cell.width, cell.height, cell.format);
            if cell.border != "replicate" {
                work.push_str(&format!(", border {}", cell.border));
            }
            if scope.is_none() {
                work.push_str(&format!(", {}", scope_words(cell.scope)));
            }
            match best.iter_mut().find(|(known, _)| *known == work) {
                Some((_, kept)) if kept.milliseconds.median <= cell.milliseconds.median => {}
                Some((_, kept)) => *kept = cell,
                None => best.push((work, cell)),
            }
        }
        if best.is_empty() {
            return;
        }
        page.heading("The fastest of each");
        if let Some(scope) = scope {
            page.paragraph("note", &format!("All of them: {}.", scope_words(scope)));
        }
        let rows: Vec<Vec<String>> = best
            .into_iter()
            .map(|(work, cell)| {
                let times = |factor: f64| format!("{}x", number(factor));
                vec![
                    work,
                    format!("{}, {}", engine(cell, Axis::Mask), cell.algorithm),
                    number(cell.milliseconds.median),
                    number(cell.gigapixels_per_second),
                    cell.share_of_copy
                        .map_or_else(String::new, |share| times(1.0 / share)),
                    cell.speed_up.map(times).unwrap_or_default(),
                ]
            })
            .collect();
        let head = [
            "what",
            "fastest",
            "ms",
            "Gpixel/s",
            "of a copy's time",
            "speed-up",
        ];
        let (head, rows) = without_empty(&head, rows);
        page.table(&head, &rows);
    }

    /// The plots along one axis, if it was swept: one for each choice of what else was.
    fn along(&self, page: &mut Document, axis: Axis) -> Result<(), PageError> {
        let mut plots: Vec<(String, Vec<&Cell>)> = Vec::new();
        for cell in &self.cells {
            let name = axis.plot(cell);
            match plots.iter_mut().find(|(n, _)| *n == name) {
                Some((_, cells)) => cells.push(cell),
                None => plots.push((name, vec![cell])),
            }
        }
        let mut drawn = 0;
        let mut left_out = 0;
        for (name, cells) in &plots {
            let mut lines = lines(cells, axis);
            // The reference is so slow that all other curves would collapse into one.
            if lines.iter().any(|line| line.engine != "reference") {
                lines.retain(|line| line.engine != "reference");
            }
            if lines.is_empty() {
                continue;
            }
            if drawn == MOST {
                left_out += 1;
                continue;
            }
            drawn += 1;
            let id = format!("{}-{drawn}", axis.name());
            match axis {
                Axis::Mask => mask_plot(page, &id, name, &lines)?,
                Axis::Block | Axis::Format => dots(page, &id, name, axis, &lines)?,
                Axis::Threads => threads_plot(page, &id, name, &lines)?,
                Axis::Size => size_plot(page, &id, name, &lines)?,
            }
        }
        if left_out > 0 {
            page.paragraph(
                "note",
                &format!("{left_out} more plots of this kind are left out; the table has their cells."),
            );
        }
        Ok(())
    }

    /// How the cells lie under the peak rates of one engine.
    fn roofline(&self, page: &mut Document, engine: &str) -> Result<(), PageError> {
        let intensity = |cell: &Cell| cell.multiply_adds as f64 / cell.bytes.max(1) as f64;
        let cells: Vec<&Cell> = self
            .cells
            .iter()
            .filter(|c| c.engine == engine && c.multiply_adds > 0)
            .collect();
        let peaks = |kind: PeakKind| {
            let own = self
                .peaks
                .iter()
                .filter(move |c: &&Peak| c.engine == engine && c.kind == kind);
            own.map(|c| c.giga_per_second)
                .fold(None, |most: Option<f64>, v| Some(most.map_or(v, |m| m.max(v))))
        };
        let least = cells.iter().map(|c| intensity(c)).fold(f64::INFINITY, f64::min);
        let most = cells.iter().map(|c| intensity(c)).fold(0.0, f64::max);
        if cells.is_empty() || peaks(PeakKind::Copy).is_none() {
            return Ok(());
        }
        let (least, most) = (least / 1.5, most * 1.5);
        let mut curves: Vec<Curve> = Vec::new();
        let mut groups: BTreeMap<(Scope, &str), Vec<(f64, f64)>> = BTreeMap::new();
        for cell in &cells {
            let points = groups.entry((cell.scope, &cell.algorithm)).or_default();
            points.push((intensity(cell), cell.gigamacs_per_second));
        }
        for ((scope, algorithm), points) in groups {
            curves.push(Curve {
                name: format!("{algorithm}, {}", scope_words(scope)),
                style: SeriesStyle::nth(curves.len()),
                kind: CurveKind::Points,
                points,
                spreads: Vec::new(),
            });
        }
        let with_transfers = cells.iter().any(|c| c.scope.has_transfers());
        for (kind, name, unit) in [
            (PeakKind::Copy, "memory copy", "GB/s"),
            (PeakKind::Link, "link to the card, both ways", "GB/s"),
            (PeakKind::MultiplyAdd, "32-bit multiply-adds", "Gmac/s"),
            (PeakKind::DotProduct, "dot products of bytes", "Gmac/s"),
            (PeakKind::Tensor, "tensor cores, bytes", "Gmac/s"),
        ] {
            let Some(limit) = peaks(kind) else { continue };
            if kind == PeakKind::Link && !with_transfers {
                continue;
            }
            let slanted = matches!(kind, PeakKind::Copy | PeakKind::Link);
            let at = |x: f64| if slanted { limit * x } else { limit };
            curves.push(Curve {
                name: format!("{name}: {} {unit}", number(limit)),
                style: SeriesStyle::nth(curves.len()),
                kind: CurveKind::Limit,
                points: vec![(least, at(least)), (most, at(most))],
                spreads: Vec::new(),
            });
        }
        let title = if engine == "cuda" {
            "Roofline of the card"
        } else {
            "Roofline of the CPU"
        };
        let arithmetic = if engine == "cuda" {
            " and what arithmetic can do (level)"
        } else {
            "; what arithmetic can do is not measured on a CPU"
        };
        let caption = format!(
            "Each point is a cell: how many multiply-adds it does for a byte read or written, and how many a \
             second. Dashed are the peak rates, measured in the same run: what memory or link can feed \
             (slanted; the largest copy rate that was measured, so small pictures that stay in a cache may \
             lie above it){arithmetic}. A separable filter does fewer multiply-adds for the same picture, \
             which puts it further to the left."
        );
        Curves {
            id: &format!("roofline-{engine}"),
            title,
            caption: &caption,
            axes: [
                ("multiply-adds a byte", Scale::Logarithmic),
                ("Gmac/s, 10^9 multiply-adds a second", Scale::Logarithmic),
            ],
            curves: &curves,
        }
        .draw(page)
    }

    fn tables(&self, page: &mut Document) {
        if !self.peaks.is_empty() {
            page.heading("Peak rates");
            for peak in &self.peaks {
                page.paragraph("note", &super::text::line(peak));
            }
        }
        page.heading("Cells");
        let mut works: Vec<(String, Vec<&Cell>)> = Vec::new();
        for cell in &self.cells {
            let work = work(cell);
            match works.iter_mut().find(|(known, _)| *known == work) {
                Some((_, cells)) => cells.push(cell),
                None => works.push((work, vec![cell])),
            }
        }
        for (work, cells) in works {
            page.paragraph("work", &work);
            let published = cells.iter().any(|c| c.published_milliseconds.is_some());
            let (head, rows) = without_empty(&columns(published), rows(&cells, published));
            page.table(&head, &rows);
        }
    }
}

/// A table without the columns in which nothing stands.
fn without_empty<'a>(head: &[&'a str], mut rows: Vec<Vec<String>>) -> (Vec<&'a str>, Vec<Vec<String>>) {
    let filled: Vec<bool> = (0..head.len())
        .map(|column| {
            rows.iter()
                .any(|row| row.get(column).is_some_and(|cell| !cell.is_empty()))
        })
        .collect();
    for row in &mut rows {
        let mut kept = filled.iter();
        row.retain(|_| kept.next().copied().unwrap_or(true));
    }
    let head = head.iter().zip(&filled).filter(|(_, filled)| **filled);
    (head.map(|(name, _)| *name).collect(), rows)
}

/// The work of a cell.
fn work(cell: &Cell) -> String {
    let Cell {
        filter,
        width,
        height,
        format,
        border,
        ..
    } = cell;
    format!("{filter}, {width}x{height} {format}, border {border}")
}

fn columns(published: bool) -> Vec<&'static str> {
    let mut columns = vec![
        "engine", "block", "scope", "ms", "min", "p90", "warm", "Gpixel/s", "GB/s", "copy", "arith",
        "speed-up",
    ];
    if published {
        columns.extend(["report's ms", "report's speed-up"]);
    }
    columns
}

/// The cells in these columns.
fn rows(cells: &[&Cell], published: bool) -> Vec<Vec<String>> {
    let optional = |value: Option<String>| value.unwrap_or_default();
    let percent = |share: Option<f64>| optional(share.map(|s| format!("{:.0}%", s * 100.0)));
    let times = |factor: Option<f64>| optional(factor.map(|f| format!("{}x", number(f))));
    let row = |cell: &Cell| {
        let mut row = vec![
            format!("{}, {}", engine(cell, Axis::Mask), cell.algorithm),
            optional(cell.block.clone()),
            cell.scope.to_string(),
            number(cell.milliseconds.median),
            number(cell.milliseconds.min),
            number(cell.milliseconds.p90),
            optional(cell.warm_milliseconds.map(|warm| number(warm.median))),
            number(cell.gigapixels_per_second),
            number(cell.gigabytes_per_second),
            percent(cell.share_of_copy),
            percent(cell.share_of_arithmetic),
            times(cell.speed_up),
        ];
        if published {
            row.push(optional(cell.published_milliseconds.map(number)));
            row.push(times(cell.published_speed_up));
        }
        row
    };
    cells.iter().copied().map(row).collect()
}

/// Lines as the page draws them.
fn curves(lines: &[Line<'_>], value: impl Fn(&Cell) -> Option<f64>) -> Vec<Curve> {
    lines
        .iter()
        .zip(styles(lines))
        .map(|(line, style)| Curve {
            name: line.name(),
            style,
            kind: CurveKind::Joined,
            points: line
                .points
                .iter()
                .filter_map(|p| Some((p.at, value(p.cell)?)))
                .collect(),
            spreads: Vec::new(),
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// The lines' medians, with the least times and those that nine of ten are within.
fn times(lines: &[Line<'_>]) -> Vec<Curve> {
    let mut curves = curves(lines, |cell| Some(cell.milliseconds.median));
    for (curve, line) in curves.iter_mut().zip(lines) {
        let spread = |point: &Point<'_>| (point.cell.milliseconds.min, point.cell.milliseconds.p90);
        curve.spreads = line.points.iter().map(spread).collect();
    }
    curves
}

/// The caption of a plot of medians with their spread.
const MEDIANS: &str = "Medians; the bars go from the least time to the one that nine of ten are within.";

/// The same for the reports' figures, dashed, if there are any.
fn published(lines: &[Line<'_>], value: impl Fn(&Cell) -> Option<f64>) -> impl Iterator<Item = Curve> {
    curves(lines, value).into_iter().map(|curve| Curve {
        name: format!("{}, in the report", curve.name),
        kind: CurveKind::Dashed,
        ..curve
    })
}

/// The places of all lines, each once, in order.
fn places(lines: &[Line<'_>]) -> Vec<f64> {
    let mut places: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|p| p.at))
        .collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places
}

fn mask_plot(page: &mut Document, id: &str, name: &str, lines: &[Line<'_>]) -> Result<(), PageError> {
    let ticks = places(lines);
    let mut times = times(lines);
    times.extend(published(lines, |cell| cell.published_milliseconds));
    Curves {
        id,
        title: &format!("Time against mask size: {name}"),
        caption: MEDIANS,
        axes: [
            ("mask's width", Scale::LinearAt(ticks.clone())),
            ("ms a frame", Scale::Logarithmic),
        ],
        curves: &times,
    }
    .draw(page)?;
    let mut speed_ups = curves(lines, |cell| cell.speed_up.filter(|_| cell.engine != "reference"));
    speed_ups.extend(published(lines, |cell| cell.published_speed_up));
    Curves {
        id: &format!("{id}-speed-up"),
        title: &format!("Speed-up against mask size: {name}"),
        caption: "How many times faster than the reference, one plain thread of this machine's CPU, in the \
            same run.",
        axes: [
            ("mask's width", Scale::LinearAt(ticks)),
            ("times the reference", Scale::Logarithmic),
        ],
        curves: &speed_ups,
    }
    .draw(page)
}

fn threads_plot(page: &mut Document, id: &str, name: &str, lines: &[Line<'_>]) -> Result<(), PageError> {
    let mut curves = times(lines);
    for index in 0..curves.len() {
        let curve = &curves[index];
        let (Some(&first), Some(&last)) = (curve.points.first(), curve.points.last()) else {
            continue;
        };
        let ideal = Curve {
            name: format!("{}, if threads cost nothing", curve.name),
            style: curve.style,
            kind: CurveKind::Limit,
            points: vec![first, (last.0, first.1 * first.0 / last.0)],
            spreads: Vec::new(),
        };
        curves.push(ideal);
    }
    Curves {
        id,
        title: &format!("Time against threads: {name}"),
        caption: &format!("{MEDIANS} Dashed is a curve's first time divided by the threads."),
        axes: [
            ("threads", Scale::LogarithmicAt(places(lines))),
            ("ms a frame", Scale::Logarithmic),
        ],
        curves: &curves,
    }
    .draw(page)
}

fn size_plot(page: &mut Document, id: &str, name: &str, lines: &[Line<'_>]) -> Result<(), PageError> {
    Curves {
        id,
        title: &format!("Rate against frame size: {name}"),
        caption: "A rate that grows with the frame shows what a frame costs whatever its size.",
        axes: [
            ("megapixels a frame", Scale::LogarithmicAt(places(lines))),
            ("Gpixel/s", Scale::Logarithmic),
        ],
        curves: &curves(lines, |cell| Some(cell.gigapixels_per_second)),
    }
    .draw(page)
}

fn dots(page: &mut Document, id: &str, name: &str, axis: Axis, lines: &[Line<'_>]) -> Result<(), PageError> {
    let mut rows: Vec<(f64, &str)> = Vec::new();
    for point in lines.iter().flat_map(|line| &line.points) {
        if !rows.iter().any(|(_, label)| *label == point.label) {
            rows.push((point.at, &point.label));
        }
    }
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let rows: Vec<String> = rows.into_iter().map(|(_, label)| label.to_owned()).collect();
    let row_of = |label: &str| rows.iter().position(|row| row == label);
    let series: Vec<_> = lines
        .iter()
        .zip(styles(lines))
        .map(|(line, style)| {
            let dots = line
                .points
                .iter()
                .filter_map(|p| Some((row_of(&p.label)?, p.cell.milliseconds.median)));
            Series {
                name: line.name(),
                style,
                dots: dots.collect(),
            }
        })
        .collect();
    let (title, caption) = match axis {
        Axis::Block => (
            "Time against block shape",
            "Blocks by how many threads they have, fewest above. Medians.",
        ),
        _ => ("Time against pixel format", "Medians."),
    };
    Dots {
        id,
        title: &format!("{title}: {name}"),
        caption,
        axis: "ms a frame",
        rows: &rows,
        series: &series,
    }
    .draw(page)
}
