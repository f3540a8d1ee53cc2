//! Timing for benchmarks: kernels by themselves, and the link between host and card.
//!
//! It does not run when frames are filtered. Times are by the card's clock, between two events:
//!
//! ```text
//! kernel_time   event | one graph: frame 0, 1, 2 .. of several times the level-2 cache | event
//! link          event | copies up and down at the same time | event
//! ```

pub(crate) mod kernel_time;
pub(crate) mod link;
