//! The tables of the five reports that this project grew out of: what they measured, and the cells that measure the same here.
//!
//! docs/reports.md says what each report found, what is found here, and why the two differ.

use super::measure::{Case, Scope, Subject};
use crate::engine::cuda::MemoryVariant;
use crate::filter::{Algorithm, Border, Filter, FilterError};
use crate::frame::UnknownPixelFormat;
use MemoryVariant::{Constant, ConstantShared, Global, Shared, Texture};

/// What a report measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Published {
    /// Milliseconds.
    pub milliseconds: Option<f64>,
    /// Over the report's own sequential loop.
    pub speed_up: Option<f64>,
}

/// A filter or format of these tables that framepipe does not know; a test meets each of them.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The filter.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The pixel format.
    #[error(transparent)]
    Format(#[from] UnknownPixelFormat),
}

/// One place of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The configuration.
    pub case: Case,
    /// What the time covers.
    pub scope: Scope,
    /// What the report measured; nothing where it swept this, but its figure is not known.
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
    /// What was swept.
    pub title: String,
    /// What the rows are.
    pub axis: &'static str,
    /// What the columns are.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// One report.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// "R1" to "R5".
    pub name: &'static str,
    /// What it measured on.
    pub machine: &'static str,
    /// What it found, and how its measuring differs from what is done here.
    pub remarks: &'static [&'static str],
    build: fn(cores: usize) -> Result<Vec<Table>, PublishedError>,
}

impl Report {
    /// The report's tables; `cores` is the number of threads of the columns for all cores.
    pub fn tables(&self, cores: usize) -> Result<Vec<Table>, PublishedError> {
        (self.build)(cores)
    }
}

/// The five reports.
pub const REPORTS: [Report; 5] = [
    Report {
        name: "R1",
        machine: "RTX 3060 12 GB, gray u8",
        remarks: &[
            "Its kernels truncate where framepipe rounds; its separable global and constant kernels do both passes in one launch, which is a race.",
            "2K is taken as 2048x1080. Its best speed-up of all was 695x: 2K, direct, K 15, constant + shared.",
            "Its best blocks were 128 threads for the small image and 256 for the others.",
        ],
        build: r1,
    },
    Report {
        name: "R2",
        machine: "RTX A2000 12 GB; CPU part on an Apple M1 and a Xeon Silver 4314; gray as float",
        remarks: &[
            "Its shared tiles lack their corners, and its times hold first calls: with transfers they jump between 5 and 750 ms from run to run.",
            "Pixels are 8-bit integers here.",
        ],
        build: r2,
    },
    Report {
        name: "R3",
        machine: "GeForce 940MX, Core i7-6500U, RGB u8 interleaved",
        remarks: &[
            "Times are whole calls: the frame up, the kernel, the frame down, from ordinary memory.",
            "Speed-ups went from 40.7x (K 7, naive) to 106.2x; CPU threads gave 2.1x to 2.55x on 2 cores with 4 hardware threads.",
            "Its best blocks were 32x32 without shared memory and 16x16 with it. Pinned memory: 253 ms of uploads instead of 275, lost again in allocating it.",
        ],
        build: r3,
    },
    Report {
        name: "R4",
        machine: "RTX 3080 Laptop, RGB u8",
        remarks: &[
            "Times are whole calls with the first call's costs in them: context, allocation, texture set-up.",
            "Its best speed-up over its CPU was about 31x. Its shared tiles lack their corners.",
        ],
        build: r4,
    },
    Report {
        name: "R5",
        machine: "RTX 3070, Ryzen 7 3800X, float, one channel a grid layer",
        remarks: &[
            "Pixels are 8-bit integers here, one plane a channel; 1333x2000 pixels, zero border.",
            "Tile size made almost no difference there, since transfers dominate.",
        ],
        build: r5,
    },
];

/// The report of this name, in upper or lower case.
pub fn find(name: &str) -> Option<Report> {
    REPORTS
        .into_iter()
        .find(|report| report.name.eq_ignore_ascii_case(name))
}

/// R1's 8K table: K, then milliseconds and speed-up of separable global, constant, shared, direct global, constant, shared, then the
/// milliseconds of the sequential loops, separable and direct.
type WideRow = (usize, [(f64, f64); 6], [f64; 2]);
const R1_8K: [WideRow; 4] = [
    (
        3,
        [
            (1.75, 177.0),
            (1.74, 178.0),
            (2.03, 152.0),
            (1.40, 350.0),
            (1.35, 362.0),
            (1.75, 279.0),
        ],
        [310.0, 489.0],
    ),
    (
        7,
        [
            (2.11, 299.0),
            (1.97, 321.0),
            (2.76, 229.0),
            (5.38, 358.0),
            (4.74, 406.0),
            (3.72, 518.0),
        ],
        [633.0, 1927.0],
    ),
    (
        11,
        [
            (2.89, 378.0),
            (2.58, 423.0),
            (3.56, 308.0),
            (11.4, 404.0),
            (10.4, 446.0),
            (6.83, 677.0),
        ],
        [1091.0, 4624.0],
    ),
    (
        15,
        [
            (3.48, 492.0),
            (3.18, 539.0),
            (4.59, 373.0),
            (21.4, 384.0),
            (19.3, 426.0),
            (12.1, 680.0),
        ],
        [1713.0, 8241.0],
    ),
];
/// R2's 3840x2160 table: K, then milliseconds of global, constant, constant + shared.
const R2_4K: [(usize, [f64; 3]); 3] = [
    (3, [0.484, 0.501, 0.501]),
    (5, [1.131, 0.982, 0.586]),
    (7, [1.578, 1.393, 0.254]),
];
/// R2's CPU threads, 1920x1080: threads, then milliseconds at K 3 and K 7.
const R2_THREADS: [(usize, [f64; 2]); 2] = [(1, [3540.0, 15_000.0]), (64, [171.0, 733.0])];
/// R4's blocks, 10240x4320: the block's side, then milliseconds of global, shared, texture.
const R4_BLOCKS: [(usize, [f64; 3]); 3] = [
    (1, [361.0, 408.0, 361.0]),
    (8, [124.0, 110.0, 243.0]),
    (32, [115.0, 98.6, 233.0]),
];
/// R4's sequential loop at 10240x4320, milliseconds.
const R4_SEQUENTIAL: f64 = 3020.0;
/// R5: K, milliseconds of the sequential loop, of the kernel and its speed-up, with transfers and their speed-up.
type R5Row = (usize, Option<f64>, Option<(f64, f64)>, Option<(f64, f64)>);
const R5_ROWS: [R5Row; 2] = [
    (5, Some(259.0), Some((0.688, 377.0)), Some((10.4, 25.0))),
    (15, None, None, Some((17.5, 91.0))),
];

/// What the cells of a table share.
#[derive(Clone, Copy)]
struct Frames {
    format: &'static str,
    border: Border,
    size: (usize, usize),
}

impl Frames {
    fn entry(
        self,
        subject: Subject,
        spec: &str,
        algorithm: Algorithm,
        scope: Scope,
    ) -> Result<Entry, PublishedError> {
        Ok(Entry {
            case: Case {
                subject,
                filter: spec.parse::<Filter>()?,
                algorithm,
                border: self.border,
                format: self.format.parse()?,
                width: self.size.0,
                height: self.size.1,
            },
            scope,
            published: Published::default(),
        })
    }

    fn on_card(self, memory: MemoryVariant, spec: &str, scope: Scope) -> Result<Entry, PublishedError> {
        self.entry(
            Subject::Cuda { memory, block: None },
            spec,
            Algorithm::Direct,
            scope,
        )
    }

    fn in_blocks(
        self,
        memory: MemoryVariant,
        block: (usize, usize),
        spec: &str,
        scope: Scope,
    ) -> Result<Entry, PublishedError> {
        let block = Some((block.0 as u32, block.1 as u32));
        self.entry(Subject::Cuda { memory, block }, spec, Algorithm::Direct, scope)
    }

    fn sequential(self, spec: &str) -> Result<Entry, PublishedError> {
        self.entry(Subject::Reference, spec, Algorithm::Direct, Scope::Kernel)
    }

    fn threads(self, threads: usize, spec: &str) -> Result<Entry, PublishedError> {
        self.entry(Subject::Cpu { threads }, spec, Algorithm::Direct, Scope::Kernel)
    }
}

impl Entry {
    fn took(mut self, milliseconds: Option<f64>) -> Entry {
        self.published.milliseconds = milliseconds;
        self
    }

    fn faster(mut self, speed_up: Option<f64>) -> Entry {
        self.published.speed_up = speed_up;
        self
    }
}

fn table(title: String, axis: &'static str, columns: &[&str], rows: Vec<Row>) -> Table {
    Table {
        title,
        axis,
        columns: columns.iter().map(|&c| c.to_owned()).collect(),
        rows,
    }
}

fn odd(first: usize, last: usize) -> impl Iterator<Item = usize> {
    (first..=last).step_by(2)
}

fn r1(cores: usize) -> Result<Vec<Table>, PublishedError> {
    let columns = [
        "sep global",
        "sep const",
        "sep c+shared",
        "dir global",
        "dir const",
        "dir c+shared",
        "seq sep",
        "seq dir",
        "cores sep",
        "cores dir",
    ];
    let mut tables = Vec::new();
    for (name, size) in [
        ("300x200", (300, 200)),
        ("2K", (2048, 1080)),
        ("8K", (7680, 4320)),
    ] {
        let frames = Frames {
            format: "gray",
            border: Border::Replicate,
            size,
        };
        let mut rows = Vec::new();
        for k in odd(3, 15) {
            let known = R1_8K.iter().find(|row| name == "8K" && row.0 == k);
            let (smooth, edges) = (format!("gaussian:size={k}"), format!("log:size={k}"));
            let mut entries = Vec::new();
            for (index, memory) in [Global, Constant, ConstantShared, Global, Constant, ConstantShared]
                .into_iter()
                .enumerate()
            {
                let (spec, algorithm) = if index < 3 {
                    (&smooth, Algorithm::Separable)
                } else {
                    (&edges, Algorithm::Direct)
                };
                let subject = Subject::Cuda { memory, block: None };
                let entry = frames.entry(subject, spec, algorithm, Scope::Kernel)?;
                let figures = known.map(|row| row.1[index]);
                entries.push(entry.took(figures.map(|f| f.0)).faster(figures.map(|f| f.1)));
            }
            for subject in [Subject::Reference, Subject::Cpu { threads: cores }] {
                let is_theirs = subject == Subject::Reference;
                let both = [(&smooth, Algorithm::Separable), (&edges, Algorithm::Direct)];
                for (index, (spec, algorithm)) in both.into_iter().enumerate() {
                    let entry = frames.entry(subject, spec, algorithm, Scope::Kernel)?;
                    let figure = known.filter(|_| is_theirs).map(|row| row.2[index]);
                    entries.push(entry.took(figure));
                }
            }
            rows.push(Row {
                label: k.to_string(),
                entries,
            });
        }
        let title = format!("{name} gray, kernel only: Gaussian separable, Laplacian of Gaussian direct");
        tables.push(table(title, "K", &columns, rows));
    }
    let mut rows = Vec::new();
    for threads in [32, 64, 128, 256, 512, 1024] {
        let mut entries = Vec::new();
        for size in [(300, 200), (2048, 1080), (7680, 4320)] {
            let frames = Frames {
                format: "gray",
                border: Border::Replicate,
                size,
            };
            for memory in [Constant, ConstantShared] {
                entries.push(frames.in_blocks(memory, (threads, 1), "log:size=7", Scope::Kernel)?);
            }
        }
        rows.push(Row {
            label: threads.to_string(),
            entries,
        });
    }
    tables.push(table(
        "threads of a one-dimensional block, direct K 7, kernel only".to_owned(),
        "threads",
        &[
            "small const",
            "small c+shared",
            "2K const",
            "2K c+shared",
            "8K const",
            "8K c+shared",
        ],
        rows,
    ));
    Ok(tables)
}

fn r2(_cores: usize) -> Result<Vec<Table>, PublishedError> {
    let variants = [Global, Constant, ConstantShared];
    let names = ["global", "constant", "c+shared"];
    let of = |size| Frames {
        format: "gray",
        border: Border::Replicate,
        size,
    };
    let mut tables = Vec::new();

    let mut rows = Vec::new();
    for (k, figures) in R2_4K {
        let spec = format!("gaussian:size={k}");
        let entries = variants.iter().zip(figures).map(|(&memory, figure)| {
            let entry = of((3840, 2160)).on_card(memory, &spec, Scope::Kernel);
            entry.map(|e| e.took(Some(figure)))
        });
        let mut entries = entries.collect::<Result<Vec<_>, _>>()?;
        entries.push(of((3840, 2160)).on_card(ConstantShared, &spec, Scope::Pageable)?);
        entries.push(of((3840, 2160)).on_card(ConstantShared, &spec, Scope::Ring)?);
        rows.push(Row {
            label: k.to_string(),
            entries,
        });
    }
    tables.push(table(
        "3840x2160 gray, Gaussian, kernel only; then with transfers, serial and in the ring".to_owned(),
        "K",
        &["global", "constant", "c+shared", "c+s serial", "c+s ring"],
        rows,
    ));

    let mut rows = Vec::new();
    for size in [(1280, 720), (1920, 1080), (2560, 1440), (3840, 2160)] {
        let mut entries = Vec::new();
        for k in [3, 5, 7] {
            let spec = format!("gaussian:size={k}");
            for scope in [Scope::Kernel, Scope::Pageable] {
                entries.push(of(size).on_card(ConstantShared, &spec, scope)?);
            }
        }
        rows.push(Row {
            label: format!("{}x{}", size.0, size.1),
            entries,
        });
    }
    tables.push(table(
        "constant + shared, kernel only and with transfers".to_owned(),
        "size",
        &[
            "K3 kernel",
            "K3 serial",
            "K5 kernel",
            "K5 serial",
            "K7 kernel",
            "K7 serial",
        ],
        rows,
    ));

    let mut rows = Vec::new();
    for spec in ["laplacian8", "laplacian4", "gaussian:size=5", "log5", "sharpen"] {
        let entries = variants
            .iter()
            .map(|&memory| of((1920, 1080)).on_card(memory, spec, Scope::Kernel));
        rows.push(Row {
            label: spec.to_owned(),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    tables.push(table(
        "1920x1080 gray, the masks, kernel only".to_owned(),
        "mask",
        &names,
        rows,
    ));

    let mut rows = Vec::new();
    for threads in [1, 2, 4, 8, 16, 32, 64] {
        let known = R2_THREADS.iter().find(|row| row.0 == threads);
        let entries = [3, 7].into_iter().enumerate().map(|(index, k)| {
            let entry = of((1920, 1080)).threads(threads, &format!("gaussian:size={k}"));
            entry.map(|e| e.took(known.map(|row| row.1[index])))
        });
        rows.push(Row {
            label: threads.to_string(),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    tables.push(table(
        "1920x1080 gray on the CPU, direct".to_owned(),
        "threads",
        &["K 3", "K 7"],
        rows,
    ));

    let mut rows = Vec::new();
    for block in [(8, 8), (16, 16), (32, 32), (32, 8), (64, 8)] {
        let entries = variants
            .iter()
            .map(|&memory| of((1920, 1080)).in_blocks(memory, block, "gaussian:size=5", Scope::Kernel));
        rows.push(Row {
            label: format!("{}x{}", block.0, block.1),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    tables.push(table(
        "1920x1080 gray, block shapes, direct K 5, kernel only".to_owned(),
        "block",
        &names,
        rows,
    ));
    Ok(tables)
}

fn r3(cores: usize) -> Result<Vec<Table>, PublishedError> {
    let of = |size| Frames {
        format: "rgb24",
        border: Border::Replicate,
        size,
    };
    let variants = [Global, Constant, Shared, ConstantShared];
    let mut tables = Vec::new();
    for size in [
        (4000, 2000),
        (5000, 3000),
        (6000, 4000),
        (7000, 5000),
        (8000, 6000),
    ] {
        let mut rows = Vec::new();
        for k in [7, 13, 19, 25] {
            let spec = format!("binomial:size={k}");
            let mut entries = variants
                .iter()
                .map(|&memory| of(size).on_card(memory, &spec, Scope::Pageable))
                .collect::<Result<Vec<_>, _>>()?;
            if size == (7000, 5000) && k == 25 {
                entries[3].published.speed_up = Some(106.2);
            }
            entries.push(of(size).on_card(ConstantShared, &spec, Scope::Pinned)?);
            entries.push(of(size).on_card(ConstantShared, &spec, Scope::Ring)?);
            entries.push(of(size).sequential(&spec)?);
            rows.push(Row {
                label: k.to_string(),
                entries,
            });
        }
        tables.push(table(
            format!("{}x{} RGB, binomial, whole calls", size.0, size.1),
            "K",
            &[
                "naive",
                "constant",
                "shared",
                "c+shared",
                "c+s pinned",
                "c+s ring",
                "sequential",
            ],
            rows,
        ));
    }
    let mut rows = Vec::new();
    let mut threads = vec![1, 2, 4, 8, cores];
    threads.sort_unstable();
    threads.dedup();
    for threads in threads {
        let entries = [7, 25]
            .into_iter()
            .map(|k| of((4000, 2000)).threads(threads, &format!("binomial:size={k}")));
        rows.push(Row {
            label: threads.to_string(),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    tables.push(table(
        "4000x2000 RGB on the CPU, direct".to_owned(),
        "threads",
        &["K 7", "K 25"],
        rows,
    ));
    let mut rows = Vec::new();
    for side in [8, 16, 24, 32] {
        let entries = variants.iter().map(|&memory| {
            of((4000, 2000)).in_blocks(memory, (side, side), "binomial:size=7", Scope::Pageable)
        });
        rows.push(Row {
            label: format!("{side}x{side}"),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    tables.push(table(
        "4000x2000 RGB, square blocks, K 7, whole calls".to_owned(),
        "block",
        &["naive", "constant", "shared", "c+shared"],
        rows,
    ));
    Ok(tables)
}

fn r4(cores: usize) -> Result<Vec<Table>, PublishedError> {
    let of = |size| Frames {
        format: "rgb24",
        border: Border::Replicate,
        size,
    };
    let variants = [Global, Shared, Texture];
    let largest = (10_240, 4320);
    let mut rows = Vec::new();
    for side in [1, 2, 4, 8, 16, 32] {
        let known = R4_BLOCKS.iter().find(|row| row.0 == side);
        let mut entries = Vec::new();
        for (index, memory) in variants.into_iter().enumerate() {
            let entry = of(largest).in_blocks(memory, (side, side), "soft", Scope::Pageable)?;
            entries.push(entry.took(known.map(|row| row.1[index])));
        }
        for memory in variants {
            entries.push(of(largest).in_blocks(memory, (side, side), "soft", Scope::Kernel)?);
        }
        rows.push(Row {
            label: format!("{side}x{side}"),
            entries,
        });
    }
    let blocks = table(
        "10240x4320 RGB, soft 3x3: square blocks, whole calls, then kernels alone".to_owned(),
        "block",
        &[
            "global",
            "shared",
            "texture",
            "global kernel",
            "shared kernel",
            "texture kernel",
        ],
        rows,
    );
    let mut tables = vec![blocks];
    for spec in ["soft", "sharpen"] {
        let mut rows = Vec::new();
        for size in [
            (640, 480),
            (800, 600),
            (1024, 768),
            (1920, 1080),
            (2560, 1440),
            (3840, 2160),
            (7680, 4320),
            largest,
        ] {
            let mut entries = variants
                .iter()
                .map(|&memory| of(size).on_card(memory, spec, Scope::Pageable))
                .collect::<Result<Vec<_>, _>>()?;
            entries.push(of(size).on_card(Shared, spec, Scope::Ring)?);
            let theirs = (size == largest && spec == "soft").then_some(R4_SEQUENTIAL);
            entries.push(of(size).sequential(spec)?.took(theirs));
            entries.push(of(size).threads(cores, spec)?);
            rows.push(Row {
                label: format!("{}x{}", size.0, size.1),
                entries,
            });
        }
        tables.push(table(
            format!("RGB, {spec} 3x3, whole calls"),
            "size",
            &[
                "global",
                "shared",
                "texture",
                "shared ring",
                "sequential",
                "all cores",
            ],
            rows,
        ));
    }
    Ok(tables)
}

fn r5(cores: usize) -> Result<Vec<Table>, PublishedError> {
    let frames = Frames {
        format: "gbrp",
        border: Border::Zero,
        size: (1333, 2000),
    };
    let mut rows = Vec::new();
    for k in odd(3, 15) {
        let spec = format!("gaussian:size={k}");
        let known = R5_ROWS.iter().find(|row| row.0 == k);
        let kernel = known.and_then(|row| row.2);
        let serial = known.and_then(|row| row.3);
        rows.push(Row {
            label: k.to_string(),
            entries: vec![
                frames
                    .on_card(Shared, &spec, Scope::Kernel)?
                    .took(kernel.map(|f| f.0))
                    .faster(kernel.map(|f| f.1)),
                frames
                    .on_card(Shared, &spec, Scope::Pageable)?
                    .took(serial.map(|f| f.0))
                    .faster(serial.map(|f| f.1)),
                frames.on_card(Shared, &spec, Scope::Ring)?,
                frames.sequential(&spec)?.took(known.and_then(|row| row.1)),
                frames.threads(cores, &spec)?,
            ],
        });
    }
    let masks = table(
        "1333x2000, three planes, direct: kernel only, with transfers".to_owned(),
        "K",
        &["kernel", "serial", "ring", "sequential", "all cores"],
        rows,
    );
    let mut rows = Vec::new();
    for side in (8..=32).step_by(4) {
        let entries = [Scope::Kernel, Scope::Pageable]
            .into_iter()
            .map(|scope| frames.in_blocks(Shared, (side, side), "gaussian:size=5", scope));
        rows.push(Row {
            label: side.to_string(),
            entries: entries.collect::<Result<_, _>>()?,
        });
    }
    let tiles = table(
        "1333x2000, K 5: sides of square tiles".to_owned(),
        "tile",
        &["kernel", "serial"],
        rows,
    );
    Ok(vec![masks, tiles])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn every_report_has_tables_whose_rows_have_all_columns() {
        for report in REPORTS {
            let tables = report.tables(4).unwrap();
            assert!(tables.len() >= 2, "{}", report.name);
            for table in tables {
                for row in &table.rows {
                    let what = format!("{} {} {}", report.name, table.title, row.label);
                    assert_eq!(row.entries.len(), table.columns.len(), "{what}");
                    for entry in &row.entries {
                        let format = entry.case.format.name();
                        assert!(["gray", "rgb24", "gbrp"].contains(&format), "{what}: {format}");
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
        let counts = REPORTS.map(|report| figures(report.name).len());
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
        assert_eq!(slow.case.subject, Subject::Cpu { threads: 1 });
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
