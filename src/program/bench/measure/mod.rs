//! Measures one configuration at a time.
//!
//! ```text
//! case      what is measured                 \
//! machine   where                             > bench: measures ─> sweep: a cell, beside the others
//! timing    how runs are timed               /                     error: why there is none
//! ```

mod bench;
mod case;
mod error;
mod machine;
mod sweep;
mod timing;

pub use bench::Bench;
pub use case::{Case, Subject};
pub use error::BenchError;
pub use machine::{Machine, Versions, cold_bytes, last_level_cache, now, processor};
#[cfg(test)]
pub(super) use sweep::tests as sample;
pub use sweep::{Cell, Peak, PeakKind, SWEEP_SCHEMA, SWEEP_VERSION, Scope, Sweep};
pub use timing::copies::time_copies;
pub use timing::effort::Effort;
pub use timing::spread::Spread;
