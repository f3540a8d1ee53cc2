//! Which of several decoders made a frame, and how long it took.

use std::time::{Duration, Instant};

/// What a decoder did from the moment when it had handed over its last frame, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Its number among the source's decoders, counted from 0.
    pub decoder: usize,
    /// When it had handed over the frame before.
    pub began: Instant,
    /// It had nothing to decode.
    pub idle: Duration,
    /// It decoded; where a card does so, its waits for the card are among that.
    pub busy: Duration,
    /// It waited for room among the frames whose turn has not come.
    pub waited: Duration,
}
