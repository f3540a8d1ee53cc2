//! Prefetching: the loop that stores rows also prefetches the next rows, a few cache lines per step.
//!
//! ```text
//! picture   .. read ..     | next rows to read     as many rows as are made at once
//! result    .. written ..  | next rows to write    the same, since a store waits for its cache line, too
//! ```
//!
//! Frames of a pipeline are in no cache, so it always pays there. For frames that are in a cache its cost is
//! within the noise.
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use crate::engine::cpu::simd::vector::Simd;

/// The rows to prefetch: of the picture, and of the result.
pub(in crate::engine::cpu) type NextRows<'a> = [&'a [u8]; 2];

/// Splits the result into the bytes before `end`, and up to `ahead` bytes after it to prefetch.
pub(in crate::engine::cpu) fn next_result(bytes: &mut [u8], end: usize, ahead: usize) -> (&mut [u8], &[u8]) {
    let (now, next) = bytes.split_at_mut(end.min(bytes.len()));
    let ahead = ahead.min(next.len());
    (now, &next[..ahead])
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
