//! Engines that work in front of any other one.
//!
//! ```text
//!  frame --> wrapper: what is to be filtered --> another engine --> wrapper: its result --> frame
//! ```
//!
//! | module | the other engine filters |
//! |---|---|
//! | `luma` | the luma of RGB frames, which is put back |
//! | `region` | a part of each picture; the rest keeps its bits |
//! | `compare` | the whole frame, which is shown beside what it was before |
//! | `several` | every N-th frame, for N engines such as the cards of a machine |

pub mod compare;
pub mod luma;
pub mod region;
pub mod several;

use super::EngineError;
use crate::frame::{Allocator, Buffer, FramePool, Pageable};

/// Alignment of the rows that are given to another engine, in bytes.
const ALIGNMENT: usize = 64;

/// A buffer of `pool`.
fn free(pool: &FramePool) -> Result<Buffer, EngineError> {
    match pool.try_take() {
        Some(buffer) => Ok(buffer),
        // Only if more pictures are in flight than the other engine allows.
        None => Ok(Buffer::unpooled(Pageable.allocate(0)?)),
    }
}
