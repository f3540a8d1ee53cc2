//! Which of several decoders made a frame, and how long it took.

use std::time::{Duration, Instant};

/// The times of a decoder since it handed over its previous frame, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Its number among the source's decoders, counted from 0.
    pub decoder: usize,
    /// When it handed over the previous frame.
    pub began: Instant,
    /// Time without anything to decode.
    pub idle: Duration,
    /// Time spent decoding, waits for the card included.
    pub busy: Duration,
    /// Time spent waiting for room among frames whose turn has not come.
    pub waited: Duration,
}
