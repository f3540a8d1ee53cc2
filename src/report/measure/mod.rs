//! What each stage's thread measures while a run goes on, in memory that does not grow with it.
//!
//! ```text
//! a frame's work, a wait -> clock.rs -> latency.rs      a histogram
//!                                       throughput.rs   frames over time
//!                                       spans.rs        what was done when, for some frames
//! ```

mod clock;
pub(super) mod latency;
pub(super) mod spans;
mod throughput;

pub use clock::{OpenRange, Recording, Stage, StageClock};
pub use latency::{LEAST_FOR_P99, Latencies, LatencySummary};
pub use spans::{Activity, SPANS_A_FRAME, Span, Spans};
pub use throughput::{Throughput, ThroughputReport};
