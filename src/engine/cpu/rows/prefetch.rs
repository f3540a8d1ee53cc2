//! Rows brought into the cache before they are read or written. While rows are made, the loop that stores
//! them asks for what comes next, a few cache lines a step:
//!
//! ```text
//! picture   .. read ..  | next rows  ->  as many as are made at once, while these are made
//! result    .. made ..  | next rows  ->  the same, since a store waits for its cache line, too
//! ```
//!
//! Frames of a pipeline are in no cache, whatever their size, format and instruction set, so that it is
//! always done; what it costs frames that are in one is within the noise.
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use crate::engine::cpu::simd::vector::Simd;

/// Rows of the picture and rows of the result that come next.
pub(in crate::engine::cpu) type NextRows<'a> = [&'a [u8]; 2];

/// The result up to byte `end`, and up to `ahead` bytes after it.
pub(in crate::engine::cpu) fn next_result(bytes: &mut [u8], end: usize, ahead: usize) -> (&mut [u8], &[u8]) {
    let (now, next) = bytes.split_at_mut(end.min(bytes.len()));
    let ahead = ahead.min(next.len());
    (now, &next[..ahead])
}

/// Prefetches the part of the next rows that belongs to a step: as many bytes as it makes, of which `made`
/// are made.
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
