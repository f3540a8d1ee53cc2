//! The ring: several frames in flight through the card at a time, each in a slot of its memory.
//!
//! While one frame is filtered the next one goes up and the one before it comes down. With three slots:
//!
//! ```text
//! upload    | 0 | 1 | 2 | 3 | 4 |
//! compute       | 0 | 1 | 2 | 3 | 4 |
//! download          | 0 | 1 | 2 | 3 | 4 |
//!
//! frame 3 goes where frame 0 was: its upload waits for the kernels of 0, its kernels for the download of 0
//!
//! slot      picture 0  <- upload     picture 1  <- step 0     a chain's steps take turns between the two
//! flight    the frame's memory and events, on the host's side; a few more of them than slots
//! ```
//!
//! `graph` begins a slot's launches with one call, `times` tells by the card's clock when each part ran.

pub(crate) mod graph;
pub(crate) mod slot;
pub(crate) mod times;
