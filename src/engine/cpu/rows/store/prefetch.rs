//! Prefetching: the loop that stores rows also prefetches the next rows, a few cache lines per step.
//!
//! ```text
//! picture   .. read ..     |     | rows to read     as many rows as are made at once
//! result    .. written ..  |     | rows to write    the same, since a store waits for its cache line, too
//!                    at least LEAD rows
//! ```
//!
//! Frames of a pipeline are in no cache, so it always pays there. For frames that are in a cache its cost is
//! within the noise.

use crate::engine::cpu::simd::vector::Simd;

/// The rows to prefetch: of the picture, and of the result.
pub(in crate::engine::cpu) type NextRows<'a> = [&'a [u8]; 2];

/// Rows from the first one that is made to the first one that is prefetched, at least. One row is made faster
/// than memory answers.
const LEAD: usize = 4;

/// Rows between the `count` rows that are made at once and those that are prefetched.
pub(in crate::engine::cpu) fn skipped(count: usize) -> usize {
    LEAD.saturating_sub(count)
}

/// Splits the result into the bytes before `end`, and up to `count` rows behind it to prefetch, whose starts
/// are `stride` bytes apart.
pub(in crate::engine::cpu) fn next_result(
    bytes: &mut [u8],
    end: usize,
    count: usize,
    stride: usize,
) -> (&mut [u8], &[u8]) {
    let (now, next) = bytes.split_at_mut(end.min(bytes.len()));
    let from = (skipped(count) * stride).min(next.len());
    let to = (from + count * stride).min(next.len());
    (now, &next[from..to])
}

/// Prefetches the part of the next rows for one step of a loop: `step` bytes of each, from byte `made` on.
#[inline(always)]
pub(in crate::engine::cpu) fn prefetch<L: Simd>(simd: L, next: NextRows<'_>, made: usize, step: usize) {
    const CACHE_LINE: usize = 64;
    for n in 0..2 {
        if made < next[n].len() {
            for at in (0..step).step_by(CACHE_LINE) {
                simd.prefetch(next[n].as_ptr().wrapping_add(made + at));
            }
        }
    }
}
