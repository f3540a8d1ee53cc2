//! Measuring what the engines do: sweeps of single configurations, and runs of the whole pipeline in its steady state.
//!
//! Nothing is timed at its first call, every figure is a median with its spread, pixels are fresh noise in more memory than the last-level cache
//! holds, ceilings are measured in the same run, and what was timed is compared with another engine's result. docs/bench-schema.md states
//! every field of the JSON.

mod ceiling;
mod csv;
mod effort;
mod frames;
mod machine;
mod measure;
mod page;
mod published;
mod spread;
mod steady;
mod sweep;
mod text;
mod tune;

pub use csv::CSV_COLUMNS;
pub use effort::Effort;
pub use machine::{Machine, Versions, processor};
pub use measure::{Bench, BenchError, Case, Subject};
pub use published::{Entry, Published, REPORTS, Report, Row, Table, find as find_report};
pub use spread::Spread;
pub use steady::{STEADY_SCHEMA, STEADY_VERSION, Steady, SteadyPlan, run as run_steady};
pub use sweep::{Ceiling, CeilingKind, Cell, SWEEP_SCHEMA, SWEEP_VERSION, Scope, Sweep};
pub use text::{columns, figure};
pub use tune::{TUNING_SCHEMA, TUNING_VERSION, TuneGrid, TuneJob, TunedCell, TunedTime, Tuning};
