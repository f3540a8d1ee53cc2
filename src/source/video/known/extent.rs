//! Whether a file is whole.

/// What a file's own sizes say of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::source::video) enum Extent {
    /// All bytes that the container states are there.
    Whole,
    /// So many bytes are missing at the end.
    Missing(u64),
    /// The end is missing, at an unknown distance.
    Cut,
    /// It ends in the middle of a packet.
    MidPacket,
    /// Bytes before the end make no sense, and what comes behind them cannot be found.
    Broken,
    /// The container states nothing, or it is no file with an end.
    Unknown,
}
