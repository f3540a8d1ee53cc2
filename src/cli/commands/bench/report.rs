//! `framepipe bench report`: a report's tables, measured here, beside the report's own figures.

use super::Common;
use super::run::{Job, Run};
use crate::cli::Failure;
use clap::Args;
use framepipe::program::bench::{Cell, Entry, Published, Report, Table, figure, find_report, reports};
use std::fmt::Write;

/// The most rows of a frame with `--quick`.
const QUICK_ROWS: usize = 64;

/// Which report.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReportArguments {
    /// R1, R2, R3, R4 or R5.
    #[arg(value_parser = report)]
    report: &'static str,
    /// Only the tables with these numbers, counted from 1.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    tables: Vec<usize>,
    #[command(flatten)]
    common: Common,
}

fn report(text: &str) -> Result<&'static str, String> {
    find_report(text).map(|report| report.name).ok_or_else(|| {
        format!(
            "write {}",
            Vec::from_iter(reports().iter().map(|r| r.name)).join(", ")
        )
    })
}

/// The place of a job's cell.
type Place = (usize, usize, usize);

/// Measures the report's sweeps.
pub(super) fn run(arguments: &ReportArguments) -> Result<(), Failure> {
    let report =
        find_report(arguments.report).ok_or_else(|| Failure::Usage("there is no such report".to_owned()))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut tables = report.tables(cores).map_err(|error| Failure::usage(&error))?;
    if let Some(missing) = arguments.tables.iter().find(|n| !(1..=tables.len()).contains(n)) {
        return Err(Failure::Usage(format!(
            "{} has no table {missing}; its tables are numbered 1 to {}",
            report.name,
            tables.len()
        )));
    }
    if arguments.common.quick {
        tables.iter_mut().for_each(cut);
    }
    let mut run = Run::start(&arguments.common)?;
    let (mut jobs, mut places): (Vec<Job>, Vec<Place>) = (Vec::new(), Vec::new());
    for (t, table) in tables.iter().enumerate() {
        if !arguments.tables.is_empty() && !arguments.tables.contains(&(t + 1)) {
            continue;
        }
        for (r, row) in table.rows.iter().enumerate() {
            for (c, entry) in row.entries.iter().enumerate() {
                jobs.push(Job {
                    case: entry.case.clone(),
                    scope: entry.scope,
                    published: entry.published,
                });
                places.push((t, r, c));
            }
        }
    }
    let mut cells: Vec<(Place, Cell)> = Vec::new();
    let title = format!("report {}", report.name);
    let sweep = run.measure(&title, &jobs, |job, cell| cells.push((places[job], cell.clone())))?;
    let mut text = sweep.head();
    let _ = writeln!(text, "\n{}: {}", report.name, report.machine);
    remarks(&report, arguments.common.quick, &mut text);
    for (t, table) in tables.iter().enumerate() {
        if places.iter().any(|place| place.0 == t) {
            let of = |r, c| {
                cells
                    .iter()
                    .find(|(place, _)| *place == (t, r, c))
                    .map(|(_, cell)| cell)
            };
            let _ = write!(
                text,
                "\n{}. {}\n{}",
                t + 1,
                table.title,
                shape(table, &of, run.bench.has_card())
            );
        }
    }
    text.push_str(&sweep.foot());
    run.finish(&sweep, &text)
}

/// A table small enough for a first look. Its cells then differ from the report's.
fn cut(table: &mut Table) {
    let last = table.rows.len() - 1;
    let mut row = 0;
    table.rows.retain(|_| {
        row += 1;
        row == 1 || row == last + 1
    });
    for entry in table.rows.iter_mut().flat_map(|row| &mut row.entries) {
        entry.case.height = entry.case.height.min(QUICK_ROWS);
        entry.published = Published::default();
    }
}

fn remarks(report: &Report, quick: bool, text: &mut String) {
    for remark in &report.remarks {
        let _ = writeln!(text, "{remark}");
    }
    let _ = writeln!(
        text,
        "ms: here; theirs: the report's; ratio: theirs over ours; x: over the sequential loop"
    );
    if quick {
        let _ = writeln!(
            text,
            "--quick: frames are cut to {QUICK_ROWS} rows, so that they cannot be held against the report's"
        );
    }
}

/// The table in the report's shape: for each of its rows our figures, and below them theirs where there are
/// any.
fn shape<'a>(table: &Table, of: &dyn Fn(usize, usize) -> Option<&'a Cell>, has_card: bool) -> String {
    let mut head = vec![table.axis.to_owned(), String::new()];
    head.extend(table.columns.iter().cloned());
    let mut lines = vec![head];
    for (r, row) in table.rows.iter().enumerate() {
        let theirs =
            |get: fn(&Published) -> Option<f64>| row.entries.iter().any(|e| get(&e.published).is_some());
        let mut add = |name: &str, value: &dyn Fn(&Entry, Option<&Cell>) -> Option<f64>, missing: bool| {
            let label = if name == "ms" {
                row.label.clone()
            } else {
                String::new()
            };
            let mut line = vec![label, name.to_owned()];
            for (c, entry) in row.entries.iter().enumerate() {
                let cell = of(r, c);
                line.push(match value(entry, cell) {
                    Some(value) => figure(value),
                    None if !missing || cell.is_some() => String::new(),
                    None if entry.case.subject.needs_card() && !has_card => "no card".to_owned(),
                    None => "n/a".to_owned(),
                });
            }
            lines.push(line);
        };
        add("ms", &|_, cell| cell.map(|c| c.milliseconds.median), true);
        if theirs(|p| p.milliseconds) {
            add("theirs", &|entry, _| entry.published.milliseconds, false);
            add(
                "ratio",
                &|entry, cell| Some(entry.published.milliseconds? / cell?.milliseconds.median),
                false,
            );
        }
        add("x", &|_, cell| cell.and_then(|c| c.speed_up), false);
        if theirs(|p| p.speed_up) {
            add("theirs x", &|entry, _| entry.published.speed_up, false);
        }
    }
    framepipe::program::bench::columns(&lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_either_case() {
        assert_eq!(report("r2"), Ok("R2"));
        assert!(report("R9").unwrap_err().contains("R1, R2, R3, R4, R5"));
    }

    #[test]
    fn without_a_card_the_rows_of_the_card_say_so() {
        let tables = find_report("R5").unwrap().tables(2).unwrap();
        let text = shape(&tables[0], &|_, _| None, false);
        let line = text.lines().find(|l| l.starts_with("5 ")).unwrap();
        assert_eq!(line.matches("no card").count(), 3, "{text}");
        assert_eq!(line.matches("n/a").count(), 2, "{text}");
        // The report's own figures stand there all the same.
        assert!(text.contains("0.688") && text.contains("377"), "{text}");
    }

    #[test]
    fn a_first_look_is_held_against_nothing() {
        let mut tables = find_report("R1").unwrap().tables(2).unwrap();
        tables.iter_mut().for_each(cut);
        for table in &tables {
            assert_eq!(table.rows.len(), 2);
            let mut entries = table.rows.iter().flat_map(|row| &row.entries);
            assert!(entries.all(|e| e.case.height <= QUICK_ROWS && e.published == Published::default()));
        }
    }
}
