//! Rows brought into the cache before they are read or written.
// Registers are arrays here, indexed by constants; an iterator over them is one that the compiler may not
// unroll.
#![allow(clippy::needless_range_loop)]

use super::alpha::Source;
use crate::engine::cpu::simd::vector::Simd;

/// Bytes of a plane from which on its rows are worth asking for early: smaller ones may still be in a cache
/// that all cores share.
const PREFETCH_MIN_BYTES: usize = 3 << 20;

/// `count` rows from row `y` on, as many as are there, to ask for while those before them are worked on; none
/// where that is not worth it: in small planes, and where rows are weighted by alpha before, which reads
/// them.
pub(in crate::engine::cpu) fn rows_to_prefetch(
    source: Source<'_>,
    plane: usize,
    y: i64,
    count: usize,
) -> &[u8] {
    let place = source.picture.layout.planes()[plane];
    let is_large = place.stride * place.height >= PREFETCH_MIN_BYTES;
    if source.alpha.is_some() || !is_large {
        return &[];
    }
    source.picture.rows(plane, y, count)
}

/// Asks for the part of rows `ahead` that belongs to a step: as many bytes as it makes, of which `made` are
/// made.
#[inline(always)]
pub(in crate::engine::cpu) fn prefetch<L: Simd, const N: usize>(
    simd: L,
    ahead: [&[u8]; N],
    made: usize,
    step: usize,
) {
    const CACHE_LINE: usize = 64;
    for n in 0..N {
        if made < ahead[n].len() {
            for at in (0..step).step_by(CACHE_LINE) {
                simd.prefetch(ahead[n].as_ptr().wrapping_add(made + at));
            }
        }
    }
}
