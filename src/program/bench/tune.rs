//! Measures which memory variant is the fastest for which work on one card: the table that `auto` chooses by.

use super::measure::{BenchError, Case, Machine, Spread, Subject, Versions, now};
use super::present::{Head, figure};
use crate::engine::EngineError;
use crate::engine::cuda::{
    Crossover, DeviceInfo, LaunchFeatures, MemoryVariant, SelectContext, Table as Tables, TableCell,
    VariantTime, contest,
};
use crate::filter::{Algorithm, Border, Filter, FilterError, Plan};
use crate::frame::{Colour, PixelFormat};
use crate::report::Completion;
use crate::report::table::Table;
use serde::Serialize;
use std::fmt;

/// The name in every tuning's `schema` field.
pub const TUNING_SCHEMA: &str = "framepipe-tuning";

/// The version in every tuning's `version` field; it grows when a field changes its meaning or goes away.
pub const TUNING_VERSION: u32 = 1;

/// The grid of a tuning: every size of mask, direct and separable, in every format and at every frame size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TuneGrid {
    /// Sides of the Gaussians, in pixels.
    pub mask_sizes: Vec<usize>,
    /// Formats that stand for their kind of samples and interleaving.
    pub formats: Vec<PixelFormat>,
    /// Pixels across and rows.
    pub frames: Vec<(usize, usize)>,
}

/// One work, and a case for each variant that can do it.
#[derive(Debug, Clone, PartialEq)]
pub struct TuneJob {
    work: LaunchFeatures,
    cases: Vec<(MemoryVariant, Case)>,
}

/// One variant's time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TunedTime {
    /// Where kernels keep weights and pixels.
    pub variant: MemoryVariant,
    /// Milliseconds of one frame's kernels.
    pub milliseconds: Spread,
}

/// The result for one work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TunedCell {
    /// The filter, as it is written on the command line.
    pub filter: String,
    /// Pixel format.
    pub format: String,
    /// Pixels across.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// The kernels' work.
    #[serde(flatten)]
    pub work: LaunchFeatures,
    /// The variant with the least median.
    pub winner: MemoryVariant,
    /// The second variant's median over the winner's; `None` if there is none.
    pub ahead: Option<f64>,
    /// The fastest first.
    pub times: Vec<TunedTime>,
}

/// A whole tuning, and its machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tuning {
    /// Always [`TUNING_SCHEMA`].
    pub schema: &'static str,
    /// The schema's version, [`TUNING_VERSION`].
    pub version: u32,
    /// When it began, UTC.
    pub date: String,
    /// On what.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// Whether all was measured.
    pub ending: Completion,
    /// The file that `auto` reads it from; `None` if it was not kept.
    pub kept: Option<String>,
    /// One a work, in the order of their measuring.
    pub cells: Vec<TunedCell>,
    /// What `--engine auto` decides by; `None` if it was not measured.
    pub crossover: Option<Crossover>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

impl TuneGrid {
    /// What takes some minutes.
    pub fn full() -> TuneGrid {
        TuneGrid {
            mask_sizes: vec![3, 5, 7, 9, 11, 15, 21, 31],
            formats: formats(&["gray", "gray10le", "gray16le", "rgb24"]),
            frames: vec![(1280, 720), (3840, 2160)],
        }
    }

    /// A first look.
    pub fn quick() -> TuneGrid {
        TuneGrid {
            mask_sizes: vec![3, 7, 15],
            formats: formats(&["gray", "rgb24"]),
            frames: vec![(1920, 1080)],
        }
    }

    /// The works to be timed on `card`. An error if a mask is impossible, or a format has planes of several
    /// kinds, which take different kernels.
    pub fn jobs(&self, card: &DeviceInfo) -> Result<Vec<TuneJob>, BenchError> {
        let mut jobs = Vec::new();
        for &(width, height) in &self.frames {
            for &format in &self.formats {
                for &size in &self.mask_sizes {
                    for algorithm in [Algorithm::Direct, Algorithm::Separable] {
                        jobs.push(job(card, size, algorithm, format, (width, height))?);
                    }
                }
            }
        }
        Ok(jobs)
    }
}

fn formats(names: &[&str]) -> Vec<PixelFormat> {
    names
        .iter()
        .filter_map(|name| PixelFormat::from_name(name))
        .collect()
}

fn job(
    card: &DeviceInfo,
    mask: usize,
    algorithm: Algorithm,
    format: PixelFormat,
    (width, height): (usize, usize),
) -> Result<TuneJob, BenchError> {
    let unfit = |text: String| BenchError::Engine(EngineError::Unfit(text));
    let filter: Filter = format!("gaussian:size={mask}")
        .parse()
        .map_err(|error: FilterError| unfit(error.to_string()))?;
    let case = |memory| Case {
        subject: Subject::Cuda { memory, block: None },
        filter: filter.clone(),
        algorithm,
        border: Border::Replicate,
        format,
        width,
        height,
    };
    let plan = Plan::new(&case(MemoryVariant::Auto).chain(), format, &Colour::default())?;
    let terms = SelectContext {
        memory: MemoryVariant::Auto,
        block: None,
        fuse: true,
        size: (width, height),
        card,
        table: &Tables::rule(),
    };
    let mut contests = contest(&plan, &terms)?;
    match contests.pop() {
        Some((work, able)) if contests.is_empty() => Ok(TuneJob {
            work,
            cases: able.into_iter().map(|memory| (memory, case(memory))).collect(),
        }),
        _ => Err(unfit(format!(
            "{format} has planes of several kinds, which take different kernels; tune formats with one kind, \
             such as gray, gray10le or rgb24"
        ))),
    }
}

impl TuneJob {
    /// The cases of the work, one for each variant.
    pub fn cases(&self) -> impl Iterator<Item = &Case> {
        self.cases.iter().map(|(_, case)| case)
    }
}

impl Tuning {
    /// A tuning without cells on this machine.
    pub fn new(machine: Machine, versions: Versions) -> Tuning {
        Tuning {
            schema: TUNING_SCHEMA,
            version: TUNING_VERSION,
            date: now(),
            machine,
            versions,
            ending: Completion::Complete,
            kept: None,
            cells: Vec::new(),
            crossover: None,
            notes: Vec::new(),
        }
    }

    /// Measures the jobs with `time`. `before` gets each case and its number, and ends the tuning with
    /// `false`; a job that was begun then leaves nothing.
    pub fn measure(
        &mut self,
        jobs: &[TuneJob],
        time: &mut dyn FnMut(&Case) -> Result<Spread, BenchError>,
        before: &mut dyn FnMut(usize, &Case) -> bool,
    ) -> Result<(), BenchError> {
        let mut number = 0;
        for job in jobs {
            let mut times = Vec::new();
            for (variant, case) in &job.cases {
                if !before(number, case) {
                    self.ending = Completion::Interrupted;
                    return Ok(());
                }
                number += 1;
                match time(case) {
                    Ok(milliseconds) => times.push(TunedTime {
                        variant: *variant,
                        milliseconds,
                    }),
                    Err(error) if error.is_refusal() => self.note(error.to_string()),
                    Err(error) => return Err(error),
                }
            }
            times.sort_by(|a, b| a.milliseconds.median.total_cmp(&b.milliseconds.median));
            let (Some(first), Some((_, case))) = (times.first(), job.cases.first()) else {
                continue;
            };
            let second = times.get(1);
            self.cells.push(TunedCell {
                filter: case.filter.label.clone(),
                format: case.format.to_string(),
                width: case.width,
                height: case.height,
                work: job.work,
                winner: first.variant,
                ahead: second.map(|s| s.milliseconds.median / first.milliseconds.median.max(1e-9)),
                times,
            });
        }
        Ok(())
    }

    fn note(&mut self, sentence: String) {
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// What `auto` is to choose by.
    pub fn table(&self) -> Vec<TableCell> {
        let cell = |cell: &TunedCell| TableCell {
            work: cell.work,
            times: cell
                .times
                .iter()
                .map(|t| VariantTime {
                    variant: t.variant,
                    milliseconds: t.milliseconds.median,
                })
                .collect(),
        };
        self.cells.iter().map(cell).collect()
    }

    /// The tuning as indented JSON with a final line break.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "kernels tuned")?;
        Head(&self.machine, &self.versions, &self.date).fmt(f)?;
        let mut table = Table::new(&[
            "filter", "", "format", "frame", "fastest", "ms", "second", "ms", "ahead",
        ]);
        for cell in &self.cells {
            let time = |index: usize| match cell.times.get(index) {
                Some(t) => [t.variant.to_string(), figure(t.milliseconds.median)],
                None => [String::new(), String::new()],
            };
            let algorithm = if cell.work.separable {
                "separable"
            } else {
                "direct"
            };
            let mut row = vec![
                cell.filter.clone(),
                algorithm.to_owned(),
                cell.format.clone(),
                format!("{}x{}", cell.width, cell.height),
            ];
            row.extend(time(0));
            row.extend(time(1));
            row.push(
                cell.ahead
                    .map_or_else(String::new, |ahead| format!("{ahead:.2}x")),
            );
            table.row(row);
        }
        write!(f, "\n{table}")?;
        if let Some(Crossover {
            start_seconds,
            term_nanoseconds,
            link_bytes_per_second,
        }) = self.crossover
        {
            let link = link_bytes_per_second / 1e9;
            writeln!(
                f,
                "\na card takes {start_seconds:.2} s to start and is given {link:.1} GB/s; a core takes \
                 {term_nanoseconds:.4} ns for a term"
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        match (&self.kept, self.ending) {
            (Some(file), _) => writeln!(
                f,
                "\nkept in {file}; --memory auto uses it from now on, until driver, NVRTC or framepipe \
                 change"
            ),
            (None, Completion::Interrupted) => writeln!(f, "\ninterrupted: nothing of this is kept"),
            (None, _) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{documented, paths};
    use serde_json::Value;

    fn card(compute_capability: (u32, u32)) -> DeviceInfo {
        DeviceInfo {
            name: "Test card".to_owned(),
            compute_capability,
            shared_per_block: 48 << 10,
            shared_per_block_optin: 99 << 10,
            max_threads_per_block: 1024,
            max_block: (1024, 1024),
            ..DeviceInfo::default()
        }
    }

    fn grid(format: &str) -> TuneGrid {
        TuneGrid {
            mask_sizes: vec![3, 15],
            formats: formats(&[format]),
            frames: vec![(640, 360)],
        }
    }

    fn empty() -> Tuning {
        let (mut machine, mut versions) = (Machine::default(), Versions::default());
        super::super::measure::sample::complete(&mut machine, &mut versions);
        Tuning::new(machine, versions)
    }

    fn memory(case: &Case) -> MemoryVariant {
        match case.subject {
            Subject::Cuda { memory, .. } => memory,
            other => panic!("{other:?} is timed"),
        }
    }

    /// A made-up card: `constant-shared` is the fastest for large direct masks, `registers` else, tensor
    /// cores are slow.
    fn made_up(case: &Case) -> Result<Spread, BenchError> {
        let large = case.filter.mask.width() > 9 && case.algorithm == Algorithm::Direct;
        let milliseconds = match memory(case) {
            MemoryVariant::ConstantShared if large => 0.1,
            MemoryVariant::Registers => 0.2,
            MemoryVariant::Global => return Err(EngineError::Unfit("no room".to_owned()).into()),
            _ => 0.3,
        };
        Spread::of(&[milliseconds]).ok_or_else(|| BenchError::NoTimes(case.to_string()))
    }

    #[test]
    fn winners_are_found_and_auto_goes_by_them() {
        let card = card((9, 0));
        let jobs = grid("gray").jobs(&card).unwrap();
        assert_eq!(jobs.len(), 4);
        assert!(jobs.iter().all(|job| job.cases().count() == 6));
        let mut tuning = empty();
        let mut reported = Vec::new();
        let done = tuning.measure(&jobs, &mut made_up, &mut |number, _| {
            reported.push(number);
            true
        });
        done.unwrap();
        assert_eq!(reported, (0..24).collect::<Vec<_>>());
        assert_eq!(tuning.ending, Completion::Complete);
        let winners: Vec<MemoryVariant> = tuning.cells.iter().map(|c| c.winner).collect();
        use MemoryVariant::{ConstantShared, Registers};
        // Direct and separable 3x3, then 15x15.
        assert_eq!(winners, [Registers, Registers, ConstantShared, Registers]);
        assert_eq!(tuning.cells[2].ahead, Some(2.0));
        assert_eq!(tuning.notes, ["no room"]);
        let text = tuning.to_string();
        assert!(
            text.contains("constant-shared") && text.contains("2.00x"),
            "{text}"
        );
        // The choice is the measured one.
        let table = Tables {
            cells: tuning.table(),
            ..Tables::rule()
        };
        assert_eq!(table.cells.len(), 4);
        assert_eq!(table.cells[2].times[0].variant, ConstantShared);
        assert_eq!(table.cells[2].work.mask_width, 15);
    }

    #[test]
    fn a_card_without_tensor_cores_is_tuned_without_them() {
        let jobs = grid("rgb24").jobs(&card((7, 5))).unwrap();
        let timed = jobs.iter().flat_map(TuneJob::cases).map(memory);
        let timed: Vec<MemoryVariant> = timed.collect();
        assert!(!timed.contains(&MemoryVariant::Tensor));
        assert!(timed.contains(&MemoryVariant::Registers));
    }

    #[test]
    fn an_interrupt_leaves_whole_cells_only() {
        let jobs = grid("gray").jobs(&card((9, 0))).unwrap();
        let mut tuning = empty();
        tuning
            .measure(&jobs, &mut made_up, &mut |number, _| number < 9)
            .unwrap();
        assert_eq!(tuning.ending, Completion::Interrupted);
        assert_eq!(tuning.cells.len(), 1);
        assert_eq!(tuning.cells[0].times.len(), 5);
        assert!(tuning.to_string().contains("interrupted"), "{tuning}");
    }

    #[test]
    fn what_is_wrong_ends_the_tuning() {
        let jobs = grid("gray").jobs(&card((9, 0))).unwrap();
        let mut broken = |case: &Case| Err(BenchError::NoTimes(case.to_string()));
        let error = empty().measure(&jobs, &mut broken, &mut |_, _| true);
        assert!(error.is_err());
        let error = grid("nv12").jobs(&card((9, 0))).unwrap_err();
        assert!(error.to_string().contains("planes of several kinds"), "{error}");
    }

    #[test]
    fn the_grids_are_of_formats_with_one_kind_of_planes() {
        for grid in [TuneGrid::full(), TuneGrid::quick()] {
            let jobs = grid.jobs(&card((9, 0))).unwrap();
            let cells = 2 * grid.mask_sizes.len() * grid.formats.len() * grid.frames.len();
            assert_eq!(jobs.len(), cells);
        }
        assert_eq!(TuneGrid::full().formats.len(), 4);
    }

    #[test]
    fn the_json_has_the_documented_fields_and_no_others() {
        let jobs = grid("gray").jobs(&card((9, 0))).unwrap();
        let mut tuning = empty();
        tuning.measure(&jobs, &mut made_up, &mut |_, _| true).unwrap();
        tuning.kept = Some("a.tuning".to_owned());
        tuning.crossover = Some(Crossover {
            start_seconds: 0.4,
            term_nanoseconds: 0.03,
            link_bytes_per_second: 5e10,
        });
        let json: Value = serde_json::from_str(&tuning.to_json().unwrap()).unwrap();
        let mut found = Vec::new();
        paths(&json, "", &mut found);
        let mut listed = documented("Tunings");
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
    }
}
