//! What `framepipe bench` measures, and how it shows it: this ships with the program. The timing programs of
//! `cargo bench`, which only developers run, are in `benches/`.
//!
//! ```text
//!  published ─┐
//!  tune       ├─> measure: one configuration at a time, or a sweep of them
//!  steady ────┘      │
//!                    └──> present: text, CSV, a page
//! ```
//!
//! Nothing is timed at its first call, every figure is a median with its spread, pixels are fresh noise,
//! peaks of copying are measured in the same run, and what was timed is compared with another engine's
//! result. Pictures take turns and are together four times the last-level cache, since a pipeline's are in no
//! cache either; the CPU engine is timed on as few as can be, too. docs/schemas.md states every field of
//! the JSON.

mod measure;
mod present;
mod published;
mod steady;
mod tune;

pub use measure::{Bench, BenchError, Case, Effort, Machine, Spread, Subject, Versions, processor};
pub use measure::{Cell, Peak, PeakKind, SWEEP_SCHEMA, SWEEP_VERSION, Scope, Sweep};
pub use measure::{cold_bytes, last_level_cache, now, time_copies};
pub use present::{CSV_COLUMNS, columns, figure};
pub use published::{Entry, Published, PublishedError, Report, Row, Table, find as find_report, reports};
pub use steady::{STEADY_SCHEMA, STEADY_VERSION, Steady, SteadyPlan, run as run_steady};
pub use tune::{TUNING_SCHEMA, TUNING_VERSION, TuneGrid, TuneJob, TunedCell, TunedTime, Tuning};
