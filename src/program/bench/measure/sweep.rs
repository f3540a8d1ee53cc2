//! A sweep's results: one cell for each configuration and scope, and the peaks that they are held against.

use super::machine::{Machine, Versions, now};
use super::timing::spread::Spread;
use crate::report::Completion;
use serde::Serialize;
use std::fmt;

/// The name in every sweep's `schema` field.
pub const SWEEP_SCHEMA: &str = "framepipe-sweep";

/// The version in every sweep's `version` field; it grows when a field changes its meaning or goes away.
pub const SWEEP_VERSION: u32 = 1;

/// The part of the work that a time covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scope {
    /// The convolution alone: the kernels of a card, with the pictures in its memory, or a CPU engine's call
    /// with the pictures in the host's.
    Kernel,
    /// A frame up, kernels, down, one after another, from ordinary memory.
    Pageable,
    /// A frame up, kernels, down, one after another, from page-locked memory.
    Pinned,
    /// A frame in the steady state of the ring, in which uploads, kernels and downloads of different frames
    /// overlap.
    Ring,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 4] = [Scope::Kernel, Scope::Pageable, Scope::Pinned, Scope::Ring];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Kernel => "kernel",
            Scope::Pageable => "pageable",
            Scope::Pinned => "pinned",
            Scope::Ring => "ring",
        }
    }

    /// True if transfers between host and card are in it.
    pub fn has_transfers(self) -> bool {
        self != Scope::Kernel
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One configuration in one scope, with its times.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// "reference", "cpu" or "cuda".
    pub engine: String,
    /// The part of the work that is timed.
    pub scope: Scope,
    /// The memory variant of a card's kernels; the vector instructions of a CPU engine, if they were chosen.
    pub variant: Option<String>,
    /// The algorithm: "direct" or "separable".
    pub algorithm: String,
    /// Threads of a block, such as "32x8", the variant's own shape too.
    pub block: Option<String>,
    /// Threads of a CPU engine.
    pub threads: Option<usize>,
    /// The filter, as it is written on the command line.
    pub filter: String,
    /// Columns of the mask.
    pub mask_width: usize,
    /// Rows of the mask.
    pub mask_height: usize,
    /// Pixel format.
    pub format: String,
    /// Pixels across.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// What pixels outside the frame are.
    pub border: String,
    /// Milliseconds a frame; for pictures in the host's memory without help of caches.
    pub milliseconds: Spread,
    /// Milliseconds a frame of the CPU engine with as few pictures in turn as possible, so that caches hold
    /// as much of them as they can. `None` for other engines.
    pub warm_milliseconds: Option<Spread>,
    /// Rows of the frame that were timed; fewer than `height` for the reference, whose time is multiplied.
    pub rows_timed: usize,
    /// Frames used in turn, so that no cache holds them all.
    pub frames_in_turn: usize,
    /// Bytes of picture read and written for a frame, each counted once.
    pub bytes: u64,
    /// Multiplications of a sample by a weight for a frame.
    pub multiply_adds: u64,
    /// 10^9 pixels a second.
    pub gigapixels_per_second: f64,
    /// 10^9 bytes a second: `bytes` over the time.
    pub gigabytes_per_second: f64,
    /// 10^9 multiplications of a sample by a weight a second.
    pub gigamacs_per_second: f64,
    /// `gigabytes_per_second` over the rate of a plain copy of as many bytes: within the memory of the
    /// pictures, or over the link to the card and back at once if the scope has transfers. `None` if that was
    /// not measured.
    pub share_of_copy: Option<f64>,
    /// `gigamacs_per_second` over the card's rate of 32-bit integer multiply-adds; `None` if that was not
    /// measured. It can exceed 1 where a kernel has other instructions (dot products, tensor cores).
    pub share_of_arithmetic: Option<f64>,
    /// Milliseconds a frame of the reference engine on this machine's CPU; `None` if it was not measured.
    pub reference_milliseconds: Option<f64>,
    /// Speed-up: `reference_milliseconds` over the median.
    pub speed_up: Option<f64>,
    /// A report's figure for the same cell, in milliseconds; `None` if no report has one.
    pub published_milliseconds: Option<f64>,
    /// A report's speed-up for the same cell over its own sequential loop.
    pub published_speed_up: Option<f64>,
    /// Samples of the result that were compared with another engine's, all equal; 0 if none were.
    pub samples_checked: u64,
}

/// The quantity whose peak rate it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PeakKind {
    /// Reading and writing memory: a plain copy, bytes read and bytes written both counted, 10^9 bytes a
    /// second.
    Copy,
    /// Transfers to and from the card at once, bytes of both counted, 10^9 bytes a second.
    Link,
    /// 32-bit integer multiply-adds, 10^9 a second.
    MultiplyAdd,
    /// Multiply-adds of bytes by four-way dot products, 10^9 a second.
    DotProduct,
    /// Multiply-adds of bytes on tensor cores by `mma`, 10^9 a second.
    Tensor,
}

/// The most that the machine does of something, measured in the same run as the cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Peak {
    /// "cpu" or "cuda".
    pub engine: String,
    /// Of what.
    pub kind: PeakKind,
    /// Bytes of the picture that was copied.
    pub bytes: Option<u64>,
    /// Threads, on the CPU.
    pub threads: Option<usize>,
    /// 10^9 bytes or multiply-adds a second.
    pub giga_per_second: f64,
    /// How it was found, in words.
    pub method: String,
}

/// A sweep: cells, peaks, and the machine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sweep {
    /// Always [`SWEEP_SCHEMA`].
    pub schema: &'static str,
    /// The schema's version, [`SWEEP_VERSION`].
    pub version: u32,
    /// The title of the sweep.
    pub title: String,
    /// When it began, UTC.
    pub date: String,
    /// On what.
    pub machine: Machine,
    /// With what.
    pub versions: Versions,
    /// Whether all that was requested was measured.
    pub ending: Completion,
    /// The peak rates. Files of the schema have had this name for them from the start.
    #[serde(rename = "ceilings")]
    pub peaks: Vec<Peak>,
    /// The cells, in the order of their measuring.
    pub cells: Vec<Cell>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

impl Sweep {
    /// A sweep without cells on this machine.
    pub fn new(title: String, machine: Machine, versions: Versions) -> Sweep {
        Sweep {
            schema: SWEEP_SCHEMA,
            version: SWEEP_VERSION,
            title,
            date: now(),
            machine,
            versions,
            ending: Completion::Complete,
            peaks: Vec::new(),
            cells: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Keeps a sentence, once.
    pub fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        if !self.notes.contains(&sentence) {
            self.notes.push(sentence);
        }
    }

    /// The sweep as indented JSON with a final line break.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        let mut json = serde_json::to_string_pretty(self)?;
        json.push('\n');
        Ok(json)
    }
}

#[cfg(test)]
pub(in crate::program::bench) mod tests {
    use super::*;
    use crate::report::tests::{documented, paths};
    use serde_json::Value;

    /// Gives every optional field a value.
    pub(in crate::program::bench) fn complete(machine: &mut Machine, versions: &mut Versions) {
        machine.cache_bytes = Some(32 << 20);
        machine.gpu = Some("Test card".to_owned());
        machine.compute_capability = Some("9.0".to_owned());
        machine.multiprocessors = Some(132);
        machine.l2_bytes = Some(50 << 20);
        versions.cuda_driver = Some("13.0".to_owned());
        versions.nvrtc = Some("13.0".to_owned());
    }

    /// A sweep in which every optional field has a value.
    pub(in crate::program::bench) fn full() -> Sweep {
        let (mut machine, mut versions) = (Machine::default(), Versions::default());
        complete(&mut machine, &mut versions);
        let mut sweep = Sweep::new("a test".to_owned(), machine, versions);
        sweep.peaks.push(Peak {
            engine: "cuda".to_owned(),
            kind: PeakKind::Copy,
            bytes: Some(2_073_600),
            threads: Some(1),
            giga_per_second: 3900.0,
            method: "a copying kernel".to_owned(),
        });
        sweep.cells.push(Cell {
            engine: "cuda".to_owned(),
            scope: Scope::Kernel,
            variant: Some("auto".to_owned()),
            algorithm: "separable".to_owned(),
            block: Some("64x4".to_owned()),
            threads: Some(1),
            filter: "gaussian:size=7".to_owned(),
            mask_width: 7,
            mask_height: 7,
            format: "gray".to_owned(),
            width: 1920,
            height: 1080,
            border: "replicate".to_owned(),
            milliseconds: Spread::of(&[0.02, 0.019, 0.021]).unwrap(),
            warm_milliseconds: Spread::of(&[0.01, 0.009, 0.011]),
            rows_timed: 1080,
            frames_in_turn: 60,
            bytes: 4_147_200,
            multiply_adds: 29_030_400,
            gigapixels_per_second: 103.68,
            gigabytes_per_second: 207.36,
            gigamacs_per_second: 1451.5,
            share_of_copy: Some(0.05),
            share_of_arithmetic: Some(0.1),
            reference_milliseconds: Some(20.0),
            speed_up: Some(1000.0),
            published_milliseconds: Some(2.11),
            published_speed_up: Some(299.0),
            samples_checked: 2_073_600,
        });
        sweep.note("no card");
        sweep
    }

    #[test]
    fn the_json_has_the_documented_fields_and_no_others() {
        let json: Value = serde_json::from_str(&full().to_json().unwrap()).unwrap();
        let mut found = Vec::new();
        paths(&json, "", &mut found);
        let mut listed = documented("Sweeps");
        found.sort();
        listed.sort();
        assert_eq!(found, listed);
        assert_eq!(json["schema"], SWEEP_SCHEMA);
        assert_eq!(json["version"], SWEEP_VERSION);
    }

    #[test]
    fn words_of_the_json_are_those_of_the_table() {
        for scope in Scope::ALL {
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.name());
            assert_eq!(scope.has_transfers(), scope != Scope::Kernel);
        }
        assert_eq!(
            serde_json::to_value(PeakKind::MultiplyAdd).unwrap(),
            "multiply-add"
        );
    }

    #[test]
    fn a_note_is_reported_once() {
        let mut sweep = full();
        sweep.note("no card");
        sweep.note("another");
        assert_eq!(sweep.notes, ["no card", "another"]);
    }
}
