//! How far an input has been read.

/// How far the input has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Reading,
    /// The decoder has been given the end: no packets follow.
    Draining,
    Ended,
}
