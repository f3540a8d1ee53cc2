//! The way to later pictures: seeking (`skip`), where a video can be cut into parts (`cuts`), and when a
//! picture is shown that is known by its number (`picture_time`). `key_frame` knows which packets need
//! nothing before them, `key_search` finds them by an index.

mod cuts;
mod key_frame;
mod key_search;
mod picture_time;
mod skip;

pub(super) use key_search::{KeyFrames, KeyKind};
pub(super) use skip::Skip;

/// Packets between a picture's place in decoding and in presentation: more than any reordering.
const REORDERED: usize = 64;
