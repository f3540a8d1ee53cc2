//! The tables of the five reports that this project grew out of: their figures, and the cells that measure
//! the same here. The figures are in published.tsv, whose first lines describe it; this reads them.
//!
//! docs/lab/2026-11-21-five-reports.md says what each report found, what is found here, and why the two
//! differ.

use super::measure::{Case, Scope, Subject};
use crate::filter::{Algorithm, Border};
use std::error::Error;
use std::str::FromStr;

const TEXT: &str = include_str!("published.tsv");

/// Words that a column may have.
const KEYS: [&str; 9] = [
    "memory",
    "block",
    "threads",
    "filter",
    "algorithm",
    "border",
    "format",
    "size",
    "scope",
];

/// Figures of a report.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Published {
    /// Milliseconds.
    pub milliseconds: Option<f64>,
    /// Times as fast as the report's own sequential loop.
    pub speed_up: Option<f64>,
}

type Fault = Box<dyn Error + Send + Sync>;

/// A line of published.tsv that does not fit its head; a test reads all lines.
#[derive(Debug, thiserror::Error)]
#[error("published.tsv: '{line}'")]
pub struct PublishedError {
    line: &'static str,
    source: Fault,
}

/// One place of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The configuration.
    pub case: Case,
    /// The part of the work that is timed.
    pub scope: Scope,
    /// The report's figures; empty if it measured this cell but the figure is not known.
    pub published: Published,
}

/// One line of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its place on the axis.
    pub label: String,
    /// One a column.
    pub entries: Vec<Entry>,
}

/// One sweep.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The title of the sweep.
    pub title: String,
    /// The meaning of the rows.
    pub axis: &'static str,
    /// The meaning of the columns.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One report.
#[derive(Debug, Clone)]
pub struct Report {
    /// "R1" to "R5".
    pub name: &'static str,
    /// The machine that it measured on.
    pub machine: &'static str,
    /// Its findings, and how its way of measuring differs from the one here.
    pub remarks: Vec<&'static str>,
    lines: Vec<&'static str>,
}

/// The five reports.
pub fn reports() -> Vec<Report> {
    let mut reports: Vec<Report> = Vec::new();
    for line in TEXT.lines().filter(|line| !line.starts_with('#')) {
        let (kind, rest) = halves(line, '\t');
        match (kind, reports.last_mut()) {
            ("report", _) => {
                let (name, machine) = halves(rest, '\t');
                let (remarks, lines) = (Vec::new(), Vec::new());
                reports.push(Report {
                    name,
                    machine,
                    remarks,
                    lines,
                });
            }
            ("remark", Some(report)) => report.remarks.push(rest),
            (_, Some(report)) => report.lines.push(line),
            (_, None) => {}
        }
    }
    reports
}

/// The report of this name, in upper or lower case.
pub fn find(name: &str) -> Option<Report> {
    reports()
        .into_iter()
        .find(|report| report.name.eq_ignore_ascii_case(name))
}

impl Report {
    /// The report's tables; `cores` is the number of threads of the columns for all cores.
    pub fn tables(&self, cores: usize) -> Result<Vec<Table>, PublishedError> {
        let mut tables: Vec<Table> = Vec::new();
        // Title and words of each column, and the words of all.
        let (mut columns, mut all): (Vec<(&str, &str)>, &str) = (Vec::new(), "");
        let mut is_new = true;
        for &line in &self.lines {
            let (kind, rest) = halves(line, '\t');
            match (kind, tables.last_mut()) {
                ("table", _) => {
                    is_new = true;
                    tables.push(Table {
                        title: rest.to_owned(),
                        axis: "",
                        columns: Vec::new(),
                        rows: Vec::new(),
                    });
                }
                ("axis", Some(table)) => table.axis = rest,
                ("all", Some(_)) => all = rest,
                ("column", Some(_)) => {
                    if is_new {
                        columns.clear();
                    }
                    is_new = false;
                    columns.push(halves(rest, '\t'));
                }
                ("row", Some(table)) => {
                    table.columns = columns.iter().map(|column| column.0.to_owned()).collect();
                    let row =
                        row(rest, all, &columns, cores).map_err(|source| PublishedError { line, source })?;
                    insert(&mut table.rows, row, rest == "cores");
                }
                _ => {
                    let source = "no such kind of line".into();
                    return Err(PublishedError { line, source });
                }
            }
        }
        Ok(tables)
    }
}

/// Adds a row; one of `cores` goes where its number belongs, unless it is there.
fn insert(rows: &mut Vec<Row>, row: Row, is_cores: bool) {
    let number = |row: &Row| row.label.parse::<usize>().unwrap_or(usize::MAX);
    let place = rows.iter().position(|r| is_cores && number(r) >= number(&row));
    match place {
        Some(at) if rows[at].label == row.label => {}
        Some(at) => rows.insert(at, row),
        None => rows.push(row),
    }
}

fn row(text: &str, all: &str, columns: &[(&str, &str)], cores: usize) -> Result<Row, Fault> {
    let mut fields = text.split('\t');
    let label = match fields.next().unwrap_or_default() {
        "cores" => cores.to_string(),
        label => label.to_owned(),
    };
    let mut entries = Vec::new();
    for (_, own) in columns {
        let words = format!("{all} {own}").replace("{}", &label);
        let (case, scope) = cell(&Words::new(&words)?, cores)?;
        entries.push(Entry {
            case,
            scope,
            published: published(fields.next().unwrap_or("-"))?,
        });
    }
    match fields.next() {
        Some(more) => Err(format!("no column for '{more}'").into()),
        None => Ok(Row { label, entries }),
    }
}

/// `-`, `milliseconds`, `milliseconds/speed-up` or `/speed-up`.
fn published(field: &str) -> Result<Published, Fault> {
    let number = |text: &str| -> Result<Option<f64>, Fault> {
        Ok(match text {
            "" | "-" => None,
            text => Some(text.parse()?),
        })
    };
    let (milliseconds, speed_up) = halves(field, '/');
    Ok(Published {
        milliseconds: number(milliseconds)?,
        speed_up: number(speed_up)?,
    })
}

fn cell(words: &Words<'_>, cores: usize) -> Result<(Case, Scope), Fault> {
    let subject = match (words.find("memory"), words.find("threads")) {
        (Some(memory), None) => {
            let block = words.find("block").map(pair::<u32>).transpose()?;
            let memory = memory.parse()?;
            Subject::Cuda { memory, block }
        }
        (None, Some("cores")) => Subject::Cpu {
            threads: cores,
            set: None,
        },
        (None, Some(threads)) => Subject::Cpu {
            threads: threads.parse()?,
            set: None,
        },
        (None, None) => Subject::Reference,
        (Some(_), Some(_)) => return Err("both 'memory' and 'threads'".into()),
    };
    let (width, height) = pair(words.get("size")?)?;
    let scope = words.get("scope")?;
    let is_meant = |s: &Scope| s.name() == scope;
    let case = Case {
        subject,
        filter: words.get("filter")?.parse()?,
        algorithm: words.get("algorithm")?.parse::<Algorithm>()?,
        border: words.get("border")?.parse::<Border>()?,
        format: words.get("format")?.parse()?,
        width,
        height,
    };
    let scope = Scope::ALL.into_iter().find(is_meant);
    Ok((case, scope.ok_or("no such scope")?))
}

/// `key=value` words; of two with the same key the last holds.
struct Words<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Result<Self, Fault> {
        let words: Vec<_> = text.split_whitespace().map(|word| halves(word, '=')).collect();
        match words.iter().find(|word| !KEYS.contains(&word.0)) {
            Some(word) => Err(format!("no such word: '{}'", word.0).into()),
            None => Ok(Words(words)),
        }
    }

    fn find(&self, key: &str) -> Option<&'a str> {
        let mut words = self.0.iter().rev();
        words.find(|word| word.0 == key).map(|word| word.1)
    }

    fn get(&self, key: &str) -> Result<&'a str, Fault> {
        self.find(key).ok_or_else(|| format!("no '{key}'").into())
    }
}

/// `WxH`.
fn pair<N: FromStr<Err: Into<Fault>>>(text: &str) -> Result<(N, N), Fault> {
    let (width, height) = halves(text, 'x');
    Ok((
        width.parse().map_err(Into::into)?,
        height.parse().map_err(Into::into)?,
    ))
}

/// The text before and after the first `mark`.
fn halves(text: &str, mark: char) -> (&str, &str) {
    text.split_once(mark).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cuda::MemoryVariant::{ConstantShared, Texture};

    #[test]
    fn every_report_has_tables_whose_rows_have_all_columns() {
        for report in reports() {
            let tables = report.tables(4).unwrap();
            assert!(tables.len() >= 2, "{}", report.name);
            for table in tables {
                for row in &table.rows {
                    let what = format!("{} {} {}", report.name, table.title, row.label);
                    assert_eq!(row.entries.len(), table.columns.len(), "{what}");
                    for entry in &row.entries {
                        let format = entry.case.format.name();
                        let held = ["gray", "rgb24", "grayf32le", "gbrpf32le"].contains(&format);
                        assert!(held, "{what}: {format}");
                    }
                }
            }
        }
        assert_eq!(find("r3").unwrap().name, "R3");
        assert!(find("R6").is_none());
    }

    fn figures(name: &str) -> Vec<Entry> {
        let tables = find(name).unwrap().tables(2).unwrap();
        tables
            .into_iter()
            .flat_map(|table| table.rows)
            .flat_map(|row| row.entries)
            .filter(|entry| entry.published != Published::default())
            .collect()
    }

    #[test]
    fn the_reports_figures_stand_at_the_cells_that_they_were_measured_of() {
        let counts = Vec::from_iter(reports().iter().map(|report| figures(report.name).len()));
        assert_eq!(counts, [32, 9 + 4, 1, 9 + 1, 4]);

        let r1 = figures("R1");
        assert!(r1.iter().all(|e| (e.case.width, e.case.height) == (7680, 4320)));
        let best = r1
            .iter()
            .find(|e| e.published.milliseconds == Some(12.1))
            .unwrap();
        assert_eq!(best.case.filter.mask.width(), 15);
        assert_eq!(best.case.algorithm, Algorithm::Direct);
        let memory = ConstantShared;
        assert_eq!(best.case.subject, Subject::Cuda { memory, block: None });
        assert_eq!(best.published.speed_up, Some(680.0));

        let r2 = figures("R2");
        let slow = r2
            .iter()
            .find(|e| e.published.milliseconds == Some(15_000.0))
            .unwrap();
        assert_eq!(
            slow.case.subject,
            Subject::Cpu {
                threads: 1,
                set: None
            }
        );
        assert_eq!(slow.case.filter.mask.width(), 7);

        let r4 = figures("R4");
        let texture = r4
            .iter()
            .find(|e| e.published.milliseconds == Some(243.0))
            .unwrap();
        let memory = Texture;
        let block = Some((8, 8));
        assert_eq!(texture.case.subject, Subject::Cuda { memory, block });
        assert_eq!(texture.scope, Scope::Pageable);

        let r5 = figures("R5");
        assert!(r5.iter().all(|e| e.case.border == Border::Zero));
    }
}
