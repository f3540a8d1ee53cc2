//! Whether a file is whole, and what of it lies behind its end or a damaged place.
//!
//! | file | what |
//! |---|---|
//! | `sizes.rs` | the sizes that a container states |
//! | `nut.rs`, `flv.rs` | where one of these ends |
//! | `packets.rs` | where a stream without a container ends |
//! | `blocks.rs` | what is no block or packet any more in the midst of a file |
//! | `avi.rs` | pictures without bytes at the end of an AVI file |
//! | `joined.rs` | a second movie behind the first |
//! | `fragments.rs` | how long pictures of an MP4 file last, and what of it is behind a damaged place |

pub(in crate::source::video) mod avi;
pub(in crate::source::video) mod blocks;
mod flv;
pub(in crate::source::video) mod fragments;
pub(in crate::source::video) mod joined;
pub(in crate::source::video) mod nut;
mod packets;
pub(in crate::source::video) mod sizes;

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
